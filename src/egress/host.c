/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/host.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What no host holds, each with its own words: these are the bytes that fool other readers. */
static const char *bad_byte(unsigned char c)
{
    if (c == 0)
        return "it holds a NUL byte";
    if (c == ' ' || c == '\t')
        return "it holds a blank";
    if (c < 0x20 || c == 0x7f)
        return "it holds a control byte";
    if (c >= 0x80)
        return "it is not ASCII: write an international name in its xn-- form";
    switch (c) {
    case '%':
        return "it holds '%': neither escapes nor zones belong in a host";
    case '@':
        return "it holds '@': a user does not belong in a host";
    case '/':
    case '\\':
        return "it holds a slash: a path does not belong in a host";
    case '_':
        return "it holds an underscore";
    case '*':
        return "it holds a '*'";
    case ':':
        return "it holds a ':'";
    default:
        return "it holds a character that is no letter, digit, dash or dot";
    }
}

/* A number as inet_aton() and browsers read one: decimal, octal, 0x and hex digits. */
static bool is_number(const char *label, size_t len)
{
    size_t i = 0;

    if (len >= 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X')) {
        for (i = 2; i < len && is_hex(label[i]); i++)
            ;
        return i == len;
    }
    while (i < len && is_digit(label[i]))
        i++;
    return i == len;
}

static const char *check_label(const char *label, size_t len)
{
    if (len == 0)
        return "a label is empty";
    if (len > LIMIT_HOST_LABEL)
        return "a label has more than 63 bytes";
    if (label[0] == '-' || label[len - 1] == '-')
        return "a label begins or ends with a dash";
    return NULL;
}

/* `text` holds only letters, digits, dashes and dots. */
static const char *parse_name(const char *text, size_t len, struct host *ret)
{
    size_t start = 0, last = 0;

    if (len > 0 && text[len - 1] == '.')
        len--; /* the root's dot */
    if (len == 0)
        return "it is empty";
    if (len > LIMIT_HOST_NAME)
        return "it has more than 253 bytes";
    for (size_t i = 0; i <= len; i++) {
        const char *problem;

        if (i < len && text[i] != '.')
            continue;
        problem = check_label(text + start, i - start);
        if (problem)
            return problem;
        last = start;
        start = i + 1;
    }
    if (is_number(text + last, len - last))
        return "it is an address in disguise: write an IPv4 address as four decimal numbers";
    for (size_t i = 0; i < len; i++)
        ret->text[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 'a' - 'A') : text[i];
    ret->text[len] = 0;
    ret->kind = HOST_NAME;
    return NULL;
}

static const char *parse_v6(const char *text, size_t len, struct host *ret)
{
    struct address a;

    for (size_t i = 0; i < len; i++)
        if (!is_hex(text[i]) && text[i] != ':' && text[i] != '.')
            return text[i] == '[' || text[i] == ']' ? "its brackets do not match"
                                                    : bad_byte((unsigned char)text[i]);
    if (!address_parse(text, len, &a) || a.bits != 128)
        return "it is no IPv6 address";
    host_from_address(&a, ret);
    return NULL;
}

static const char *parse(const char *text, size_t len, enum host_form form, struct host *ret)
{
    struct address a;

    if (len == 0)
        return "it is empty";
    if (len > LIMIT_HOST_INPUT)
        return "it is too long";
    if (text[0] == '[') {
        if (form != HOST_BRACKETED || text[len - 1] != ']')
            return "its brackets do not match";
        return parse_v6(text + 1, len - 2, ret);
    }
    if (form == HOST_BARE && memchr(text, ':', len))
        return parse_v6(text, len, ret);
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (!is_digit(c) && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '.')
            return bad_byte((unsigned char)c);
    }
    if (address_parse(text, len, &a)) {
        host_from_address(&a, ret);
        return NULL;
    }
    return parse_name(text, len, ret);
}

int host_parse(const char *text, size_t len, enum host_form form, struct host *ret,
               struct error *err)
{
    struct host h = {0};
    const char *problem = parse(text, len, form, &h);

    if (problem)
        return error_set(err, ERR_INVALID, "not a host: %s", problem);
    *ret = h;
    return 0;
}

bool port_parse(const char *text, size_t len, uint16_t *ret)
{
    unsigned n = 0;

    if (len < 1 || len > 5 || text[0] == '0')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return false;
        n = n * 10 + (unsigned)(text[i] - '0');
    }
    if (n > UINT16_MAX)
        return false;
    *ret = (uint16_t)n;
    return true;
}

int host_parse_authority(const char *text, size_t len, uint16_t default_port, struct host *ret_host,
                         uint16_t *ret_port, struct error *err)
{
    const char *from = len > 0 && text[0] == '[' ? memchr(text, ']', len) : text;
    const char *colon = from ? memchr(from, ':', len - (size_t)(from - text)) : NULL;
    size_t n = colon ? (size_t)(colon - text) : len;
    uint16_t port = default_port;
    struct host h;
    int r;

    r = host_parse(text, n, HOST_BRACKETED, &h, err);
    if (r < 0)
        return r;
    if (colon ? !port_parse(colon + 1, len - n - 1, &port) : port == 0)
        return error_set(err, ERR_INVALID, "not a port: %s",
                         colon ? "write 1 to 65535 in decimal" : "it is missing");
    *ret_host = h;
    *ret_port = port;
    return 0;
}

void host_from_address(const struct address *a, struct host *ret)
{
    char text[LIMIT_ADDRESS_TEXT];

    *ret = (struct host){.kind = a->bits == 32 ? HOST_V4 : HOST_V6, .address = *a};
    address_format(a, text);
    memcpy(ret->text, text, strlen(text) + 1);
}

bool host_equal(const struct host *a, const struct host *b)
{
    return a->kind == b->kind && strcmp(a->text, b->text) == 0;
}

bool host_is_below(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);

    return n > s + 1 && name[n - s - 1] == '.' && memcmp(name + n - s, suffix, s) == 0;
}

const char *host_format_authority(const struct host *h, uint16_t port,
                                  char text[LIMIT_AUTHORITY_TEXT])
{
    (void)snprintf(text, LIMIT_AUTHORITY_TEXT, h->kind == HOST_V6 ? "[%s]:%u" : "%s:%u", h->text,
                   port);
    return text;
}
