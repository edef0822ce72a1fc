/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head.h"

#include <assert.h>
#include <string.h>

#include "http/chars.h"

/* METHOD SP target SP HTTP/1.1: what is longer is refused before its end is seen. */
#define REQUEST_LINE (LIMIT_HTTP_METHOD + 1 + LIMIT_HTTP_TARGET + 1 + 8)

static const char *const method_names[] = {
    [HTTP_GET] = "GET",
    [HTTP_HEAD] = "HEAD",
    [HTTP_POST] = "POST",
    [HTTP_PUT] = "PUT",
    [HTTP_PATCH] = "PATCH",
    [HTTP_DELETE] = "DELETE",
    [HTTP_OPTIONS] = "OPTIONS",
    [HTTP_CONNECT] = "CONNECT",
    [HTTP_PROPFIND] = "PROPFIND",
    [HTTP_PROPPATCH] = "PROPPATCH",
    [HTTP_MKCOL] = "MKCOL",
    [HTTP_COPY] = "COPY",
    [HTTP_MOVE] = "MOVE",
    [HTTP_LOCK] = "LOCK",
    [HTTP_UNLOCK] = "UNLOCK",
    [HTTP_REPORT] = "REPORT",
    [HTTP_MKACTIVITY] = "MKACTIVITY",
    [HTTP_CHECKOUT] = "CHECKOUT",
    [HTTP_MERGE] = "MERGE",
};

#define N_METHODS (sizeof(method_names) / sizeof(*method_names))

const char *http_method_name(enum http_method method)
{
    return method_names[method];
}

void http_parser_init_request(struct http_parser *p, uint64_t max_body)
{
    memset(p, 0, offsetof(struct http_parser, fields));
    p->fault = (struct http_fault){0};
    p->max_body = max_body;
}

void http_parser_init_response(struct http_parser *p, enum http_method asked, uint64_t max_body)
{
    http_parser_init_request(p, max_body);
    p->is_response = true;
    p->asked = asked;
}

static int refuse(struct http_parser *p, unsigned status, const char *reason)
{
    return http_refuse(&p->fault, p->is_response ? 502 : status, reason);
}

/* ---- lines ---- */

static int refuse_long(struct http_parser *p, const char *data, bool whole_head)
{
    if (!p->started && !p->is_response) {
        if (!memchr(data + p->line, ' ', LIMIT_HTTP_METHOD + 1))
            return refuse(p, 400, "the method is too long");
        return refuse(p, 414, "the request target is too long");
    }
    return refuse(p, 431, whole_head ? "the head is too large" : "a line of the head is too long");
}

/*
 * 1 with the place of the CR that ends this line, 0 if it is not there yet. Which refusal comes
 * depends on the bytes up to the first bad one only: that is why a split changes nothing.
 */
static int find_line_end(struct http_parser *p, const char *data, size_t len, size_t *ret_end)
{
    size_t line = p->started || p->is_response ? LIMIT_HTTP_LINE : REQUEST_LINE;
    size_t cap = p->line + line, at = p->seen;
    bool whole_head = cap > LIMIT_HTTP_HEAD - 2;

    assert(len >= at);
    if (whole_head) /* the last place where CRLF still fits; a line may begin behind it */
        cap = p->line > LIMIT_HTTP_HEAD - 2 ? p->line : LIMIT_HTTP_HEAD - 2;
    at += http_span(data + at, (len < cap ? len : cap) - at, HTTP_CHAR_TEXT);
    p->seen = (uint32_t)at;
    if (at == len)
        return 0;
    if (at == cap && (data[at] != '\r' || at > LIMIT_HTTP_HEAD - 2))
        return refuse_long(p, data, whole_head);
    if (data[at] == '\n')
        return refuse(p, 400, "a line ends without CR");
    if (data[at] != '\r')
        return refuse(p, 400, "the head holds a control byte");
    if (at + 1 == len)
        return 0;
    if (data[at + 1] != '\n')
        return refuse(p, 400, "a CR stands without its LF");
    *ret_end = at;
    return 1;
}

static int read_field(struct http_parser *p, const char *data, size_t at, size_t len)
{
    size_t name = http_span(data + at, len, HTTP_CHAR_TOKEN);
    struct http_slice value;

    if (data[at] == ' ' || data[at] == '\t')
        return refuse(p, 400, "a line of the head begins with a blank (folding)");
    if (name == len)
        return refuse(p, 400, "a header has no ':'");
    if (data[at + name] == ' ' || data[at + name] == '\t')
        return refuse(p, 400, "a blank stands in a header name or before its ':'");
    if (data[at + name] != ':')
        return refuse(p, 400, "a header name holds a byte that no name may");
    if (name == 0)
        return refuse(p, 400, "a header has no name");
    if (p->n == LIMIT_HTTP_HEADERS)
        return refuse(p, 431, "too many headers");
    value = http_trim((struct http_slice){data + at + name + 1, len - name - 1});
    p->fields[p->n].name = (uint32_t)at;
    p->fields[p->n].name_len = (uint16_t)name;
    p->fields[p->n].value = (uint32_t)(value.at - data);
    p->fields[p->n++].value_len = (uint16_t)value.len;
    return 0;
}

/* ---- start lines ---- */

static int read_method(struct http_parser *p, struct http_slice text, struct http_head *head)
{
    if (text.len > LIMIT_HTTP_METHOD)
        return refuse(p, 400, "the method is too long");
    if (text.len == 0 || http_span(text.at, text.len, HTTP_CHAR_TOKEN) != text.len)
        return refuse(p, 400, "the method is no word");
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] >= 'a' && text.at[i] <= 'z')
            return refuse(p, 400, "the method is not in capitals");
    for (size_t i = 0; i < N_METHODS; i++) {
        if (!http_slice_is(text, method_names[i]))
            continue;
        head->method = (enum http_method)i;
        head->method_text = text;
        return 0;
    }
    return refuse(p, 405, "the method is not allowed");
}

static int read_target(struct http_parser *p, struct http_slice text, struct http_head *head)
{
    int r;

    if (text.len > LIMIT_HTTP_TARGET)
        return refuse(p, 414, "the request target is too long");
    head->target = text;
    if (head->method == HTTP_CONNECT) {
        head->form = HTTP_AUTHORITY;
        r = http_authority_parse(text.at, text.len, &head->url, &p->fault);
        if (r == 0 && head->url.port == 0)
            return refuse(p, 400, "CONNECT without a port");
        return r;
    }
    if (text.len == 1 && text.at[0] == '*') {
        head->form = HTTP_ASTERISK;
        return head->method == HTTP_OPTIONS ? 0 : refuse(p, 400, "'*' is for OPTIONS only");
    }
    if (text.len && text.at[0] == '/') {
        head->form = HTTP_ORIGIN;
        return http_path_parse(text.at, text.len, &head->url, &p->fault);
    }
    head->form = HTTP_ABSOLUTE;
    return http_url_parse(text.at, text.len, &head->url, &p->fault);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int read_version(struct http_parser *p, const char *text, size_t len, struct http_head *head)
{
    if (len != 8 || memcmp(text, "HTTP/", 5) != 0 || !is_digit(text[5]) || text[6] != '.' ||
        !is_digit(text[7]))
        return refuse(p, 400, "the HTTP version is missing or malformed");
    if (text[5] != '1' || text[7] > '1')
        return refuse(p, 505, "the HTTP version is neither 1.0 nor 1.1");
    head->minor = (unsigned)(text[7] - '0');
    return 0;
}

static int read_request_line(struct http_parser *p, const char *line, size_t len,
                             struct http_head *head)
{
    const char *end = line + len, *target = memchr(line, ' ', len), *version;
    int r;

    r = read_method(p, (struct http_slice){line, target ? (size_t)(target - line) : len}, head);
    if (r < 0)
        return r;
    target = target ? target + 1 : end;
    version = memchr(target, ' ', (size_t)(end - target));
    if (!version)
        return refuse(p, 400, "the request line is not METHOD target HTTP/1.1");
    r = read_target(p, (struct http_slice){target, (size_t)(version - target)}, head);
    if (r < 0)
        return r;
    return read_version(p, version + 1, (size_t)(end - version - 1), head);
}

/* Servers that leave the reason out often leave out its blank as well, which hurts nobody. */
static int read_status_line(struct http_parser *p, const char *line, size_t len,
                            struct http_head *head)
{
    int r = read_version(p, line, len < 8 ? len : 8, head);

    if (r < 0)
        return r;
    if (len < 12 || line[8] != ' ' || line[9] < '1' || line[9] > '5' || !is_digit(line[10]) ||
        !is_digit(line[11]) || (len > 12 && line[12] != ' '))
        return refuse(p, 400, "the status line is malformed");
    head->status = (unsigned)(100 * (line[9] - '0') + 10 * (line[10] - '0') + (line[11] - '0'));
    if (len > 13)
        head->reason = (struct http_slice){line + 13, len - 13};
    return 0;
}

static int read_start(struct http_parser *p, const char *data, struct http_head *head)
{
    memset(head, 0, offsetof(struct http_head, headers));
    if (p->is_response)
        return read_status_line(p, data + p->start, p->start_len, head);
    return read_request_line(p, data + p->start, p->start_len, head);
}

/* ---- fields that mean something here ---- */

enum known {
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    HOST,
    EXPECT,
    AUTHORIZATION,
    PROXY_AUTHORIZATION,
    CONTENT_TYPE,
    ORIGIN,
    N_KNOWN
};

/* Of those that come twice one reader takes the first and another the last. */
static const struct {
    const char *name, *twice;
    bool in_response;
} known[N_KNOWN] = {
    [CONTENT_LENGTH] = {"Content-Length", "Content-Length comes twice", true},
    [TRANSFER_ENCODING] = {"Transfer-Encoding", "Transfer-Encoding comes twice", true},
    [HOST] = {"Host", "Host comes twice", false},
    [EXPECT] = {"Expect", "Expect comes twice", false},
    [AUTHORIZATION] = {"Authorization", "Authorization comes twice", false},
    [PROXY_AUTHORIZATION] = {"Proxy-Authorization", "Proxy-Authorization comes twice", false},
    [CONTENT_TYPE] = {"Content-Type", "Content-Type comes twice", false},
    [ORIGIN] = {"Origin", "Origin comes twice", false},
};

static int find_known(struct http_parser *p, const struct http_head *head,
                      const struct http_slice *found[N_KNOWN])
{
    for (size_t i = 0; i < head->n_headers; i++)
        for (size_t k = 0; k < N_KNOWN; k++) {
            if ((p->is_response && !known[k].in_response) ||
                !http_slice_is(head->headers[i].name, known[k].name))
                continue;
            if (found[k])
                return refuse(p, 400, known[k].twice);
            found[k] = &head->headers[i].value;
        }
    return 0;
}

/* Does some reader of this coding, but not every one, see a chunked body? */
static bool resembles_chunked(struct http_slice s)
{
    for (size_t i = 0; i + 7 <= s.len; i++)
        if (http_same(s.at + i, 7, "chunked", 7))
            return true;
    return s.len == 0;
}

/* H2: what the two fields say, before it is known whether a body follows at all. */
static int read_framing(struct http_parser *p, const struct http_slice *length,
                        const struct http_slice *coding, struct http_head *head)
{
    if (length && coding)
        return refuse(p, 400, "Content-Length and Transfer-Encoding together");
    if (length) {
        if (!http_number(*length, LIMIT_HTTP_BODY, &head->length))
            return refuse(p, 400, "Content-Length is no plain number");
        head->has_length = true;
        head->framing = HTTP_BY_LENGTH;
    }
    if (coding) {
        if (head->minor == 0)
            return refuse(p, 400, "Transfer-Encoding in HTTP/1.0");
        if (!http_slice_is(*coding, "chunked"))
            return resembles_chunked(*coding)
                       ? refuse(p, 400, "Transfer-Encoding is not exactly 'chunked'")
                       : refuse(p, 501, "Transfer-Encoding other than 'chunked'");
        head->framing = HTTP_CHUNKED;
    }
    return 0;
}

static int check_request_body(struct http_parser *p, const struct http_head *head)
{
    bool announced = head->framing == HTTP_CHUNKED || head->length > 0;

    /* Servers that do not expect it leave it in the connection, as the next request. */
    if (announced && (head->method == HTTP_GET || head->method == HTTP_HEAD))
        return refuse(p, 400, "GET and HEAD with a body");
    if (head->framing != HTTP_NO_BODY && head->method == HTTP_CONNECT)
        return refuse(p, 400, "CONNECT with a body");
    return 0;
}

static int check_response_body(struct http_parser *p, struct http_head *head)
{
    bool tunnel = p->asked == HTTP_CONNECT && head->status / 100 == 2;

    if (head->status / 100 == 1 || head->status == 204) {
        if (head->framing == HTTP_CHUNKED || head->length > 0)
            return refuse(p, 400, "a status without a body announces one");
        head->has_length = false;
    }
    if (tunnel) {
        head->has_length = false;
        head->length = 0;
    }
    if (tunnel || p->asked == HTTP_HEAD || head->status / 100 == 1 || head->status == 204 ||
        head->status == 304)
        head->framing = HTTP_NO_BODY;
    else if (head->framing == HTTP_NO_BODY)
        head->framing = HTTP_UNTIL_CLOSE;
    return 0;
}

/* H3, for targets that name a host. CONNECT's Host often comes without the port. */
static bool hosts_agree(const struct http_head *head)
{
    const struct http_url *url = &head->url, *host = &head->host;
    uint16_t default_port = head->form == HTTP_AUTHORITY ? url->port : url->https ? 443 : 80;

    return url->is_ipv6 == host->is_ipv6 &&
           http_same(url->host.at, url->host.len, host->host.at, host->host.len) &&
           http_url_port(url) == (host->port ? host->port : default_port);
}

static int check_host(struct http_parser *p, const struct http_slice *host, struct http_head *head)
{
    int r;

    if (!host)
        return head->minor == 0 ? 0 : refuse(p, 400, "Host is missing");
    r = http_authority_parse(host->at, host->len, &head->host, &p->fault);
    if (r < 0)
        return refuse(p, 400, "Host is no host[:port]");
    if ((head->form == HTTP_ABSOLUTE || head->form == HTTP_AUTHORITY) && !hosts_agree(head))
        return refuse(p, 400, "Host and the target name different hosts");
    return 0;
}

static int check_connection(struct http_parser *p, struct http_head *head)
{
    struct http_slice rest, token;
    unsigned n = 0;

    head->keep_alive = head->minor == 1 && head->framing != HTTP_UNTIL_CLOSE;
    for (size_t i = 0; i < head->n_headers; i++) {
        if (!http_slice_is(head->headers[i].name, "Connection"))
            continue;
        rest = head->headers[i].value;
        while (http_list_next(&rest, &token)) {
            if (++n > LIMIT_HTTP_CONNECTION)
                return refuse(p, 400, "Connection names too many fields");
            if (http_span(token.at, token.len, HTTP_CHAR_TOKEN) != token.len)
                return refuse(p, 400, "Connection is no list of names");
            if (http_slice_is(token, "close"))
                head->keep_alive = false;
        }
    }
    return 0;
}

static int check_expect(struct http_parser *p, const struct http_slice *expect,
                        struct http_head *head)
{
    if (!expect)
        return 0;
    if (!http_slice_is(*expect, "100-continue"))
        return refuse(p, 417, "Expect is not '100-continue'");
    head->expects_continue = head->minor == 1; /* an HTTP/1.0 client does not know 100 */
    return 0;
}

static int check_meaning(struct http_parser *p, struct http_head *head)
{
    const struct http_slice *found[N_KNOWN] = {0};
    int r;

    r = find_known(p, head, found);
    if (r < 0)
        return r;
    r = read_framing(p, found[CONTENT_LENGTH], found[TRANSFER_ENCODING], head);
    if (r < 0)
        return r;
    r = p->is_response ? check_response_body(p, head) : check_request_body(p, head);
    if (r < 0)
        return r;
    r = p->is_response ? 0 : check_host(p, found[HOST], head);
    if (r < 0)
        return r;
    r = check_connection(p, head);
    if (r < 0)
        return r;
    r = check_expect(p, found[EXPECT], head);
    if (r < 0)
        return r;
    if (head->framing == HTTP_BY_LENGTH && head->length > p->max_body)
        return refuse(p, 413, "the body is too large");
    return 0;
}

/* ---- the whole ---- */

/* The lines are known to be fine: turns places into slices, and asks what they mean together. */
static int finish(struct http_parser *p, const char *data, struct http_head *head)
{
    int r = read_start(p, data, head);

    if (r < 0)
        return r;
    head->n_headers = p->n;
    for (size_t i = 0; i < p->n; i++)
        head->headers[i] = (struct http_header){
            .name = {data + p->fields[i].name, p->fields[i].name_len},
            .value = {data + p->fields[i].value, p->fields[i].value_len},
        };
    return check_meaning(p, head);
}

static int read_line(struct http_parser *p, const char *data, size_t at, size_t len,
                     struct http_head *scratch)
{
    if (p->started)
        return read_field(p, data, at, len);
    if (len == 0) { /* RFC 9112 2.2: some clients end a body with a CRLF too many */
        if (p->is_response || p->skipped_line)
            return refuse(p, 400, "empty lines before the message");
        p->skipped_line = true;
        return 0;
    }
    p->started = true;
    p->start = (uint32_t)at;
    p->start_len = (uint32_t)len;
    return read_start(p, data, scratch);
}

static int parse(struct http_parser *p, const char *data, size_t len, struct http_head *ret)
{
    for (;;) {
        size_t at = p->line, end;
        int r = find_line_end(p, data, len, &end);

        if (r <= 0)
            return r;
        p->line = p->seen = (uint32_t)end + 2;
        if (p->started && end == at) {
            r = finish(p, data, ret);
            return r < 0 ? r : (int)p->line;
        }
        r = read_line(p, data, at, end - at, ret);
        if (r < 0)
            return r;
    }
}

int http_parse(struct http_parser *p, const char *data, size_t len, struct http_head *ret,
               struct http_fault *fault)
{
    int r;

    if (p->fault.status) {
        *fault = p->fault;
        return -(int)fault->status;
    }
    r = parse(p, data, len, ret);
    if (r < 0)
        *fault = p->fault;
    return r;
}

/* ---- looking into a head ---- */

const struct http_slice *http_find(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++)
        if (http_slice_is(head->headers[i].name, name))
            return &head->headers[i].value;
    return NULL;
}

bool http_list_next(struct http_slice *rest, struct http_slice *ret)
{
    const char *comma;
    size_t n;

    if (!rest->at)
        return false;
    comma = memchr(rest->at, ',', rest->len);
    n = comma ? (size_t)(comma - rest->at) : rest->len;
    *ret = http_trim((struct http_slice){rest->at, n});
    *rest = comma ? (struct http_slice){comma + 1, rest->len - n - 1} : (struct http_slice){0};
    return true;
}

bool http_lists(const struct http_head *head, const char *name, const char *token)
{
    struct http_slice rest, item;

    for (size_t i = 0; i < head->n_headers; i++) {
        if (!http_slice_is(head->headers[i].name, name))
            continue;
        rest = head->headers[i].value;
        while (http_list_next(&rest, &item))
            if (http_slice_is(item, token))
                return true;
    }
    return false;
}
