/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tests/http_world.h"

#define BIG  (3u << 20)
#define NEXT "GET /hello HTTP/1.1\r\nHost: x.test\r\n\r\n"

static unsigned gone;

static void on_request(struct http_exchange *x)
{
    static char big[BIG];

    if (http_slice_is(x->path, "/big"))
        http_reply(x, 200, NULL, 0, big, sizeof(big));
    else if (http_slice_is(x->path, "/hello"))
        http_reply(x, 200, NULL, 0, "hello", 5);
    else if (x->method == HTTP_POST)
        (void)http_read_body(x, BIG);
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    (void)data;
    x->user = (void *)((uintptr_t)x->user + len);
    if (last)
        http_reply(x, 200, NULL, 0, "whole", (uintptr_t)x->user == BIG ? 5 : 0);
}

static void on_gone(struct http_exchange *x)
{
    (void)x;
    gone++;
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = on_body, .on_gone = on_gone, .on_writable = on_gone};

/* ---- certificates ---- */

static void write_pem(const struct temp *t, const char *name, EVP_PKEY *key, X509 *cert)
{
    FILE *f = fopen(temp_path(t, name), "we");

    assert_non_null(f);
    if (cert)
        assert_int_equal(PEM_write_X509(f, cert), 1);
    else
        assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(f), 0);
}

/* cert.pem and key.pem of that name. */
static void make_pair(const struct temp *t, const char *name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *n = X509_get_subject_name(cert);

    assert_true(key && cert);
    (void)X509_set_version(cert, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    (void)X509_set_pubkey(cert, key);
    (void)X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    (void)X509_set_issuer_name(cert, n);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    write_pem(t, "cert.pem", NULL, cert);
    write_pem(t, "key.pem", key, NULL);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* ---- a client ---- */

struct client {
    SSL *ssl;
    int fd;
};

static int tls_connect(struct world *w, struct http_tls *t)
{
    const struct http_listen how = {.stream = &http_tls_stream, .context = t, .is_secret = true};
    int p[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), 0);
    assert_int_equal(http_server_adopt(w->server, p[1], &how), 0);
    return p[0];
}

/* NULL: the handshake fails. */
static struct client *client_open(struct world *w, struct http_tls *t, int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct client *c = calloc(1, sizeof(*c));
    int r = -1;

    assert_true(ctx && c);
    SSL_CTX_set_security_level(ctx, 0); /* or it would not ask for old versions at all */
    (void)SSL_CTX_set_min_proto_version(ctx, version);
    (void)SSL_CTX_set_max_proto_version(ctx, version);
    c->fd = tls_connect(w, t);
    c->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    (void)SSL_set_fd(c->ssl, c->fd);
    for (int i = 0; i < 20 && r != 1; i++) {
        r = SSL_connect(c->ssl);
        world_run(w);
    }
    ERR_clear_error();
    if (r == 1)
        return c;
    SSL_free(c->ssl);
    (void)close(c->fd);
    free(c);
    return NULL;
}

static void client_close(struct client *c)
{
    SSL_free(c->ssl);
    (void)close(c->fd);
    free(c);
}

static void say(struct world *w, struct client *c, const char *data, size_t len)
{
    while (len) {
        int n = SSL_write(c->ssl, data, (int)len);

        world_run(w);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

/* Until so many answers are whole. */
static void hear(struct world *w, struct client *c, struct buf *ret)
{
    static char chunk[65536];
    int n, silent = 0;

    while (silent < 3) {
        world_run(w);
        n = SSL_read(c->ssl, chunk, sizeof(chunk));
        if (n > 0)
            buf_append(ret, chunk, (size_t)n);
        silent = n > 0 ? 0 : silent + 1;
    }
    ERR_clear_error();
}

static const char *name_of(struct client *c)
{
    static char text[64];
    X509 *cert = SSL_get_peer_certificate(c->ssl);

    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, text,
                                    sizeof(text));
    X509_free(cert);
    return text;
}

static struct http_tls *make_tls(const struct temp *t)
{
    struct http_tls *tls = NULL;
    struct error err = {0};

    CHECK_OK(http_tls_new(temp_path(t, "cert.pem"), temp_path(t, "key.pem"), &tls, &err), err);
    return tls;
}

static void check_hello(struct world *w, struct client *c)
{
    autobuf raw = {0}, got = {0};

    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    say(w, c, NEXT NEXT, 2 * strlen(NEXT));
    hear(w, c, &raw);
    sum_up(&raw, HTTP_GET, &got);
    CHECK_STR(got.data, "200 hello|200 hello|", "over TLS");
}

/* ---- claims ---- */

static void test_versions(void **state)
{
    static const struct {
        int version;
        bool good;
    } versions[] = {{TLS1_VERSION, false},
                    {TLS1_1_VERSION, false},
                    {TLS1_2_VERSION, true},
                    {TLS1_3_VERSION, true}};
    const struct temp *t = *state;
    struct http_tls *tls;
    struct world w;

    make_pair(t, "one");
    tls = make_tls(t);
    world_init(&w, &ops);
    FOR_EACH(row, versions)
    {
        struct client *c = client_open(&w, tls, row->version);

        CHECK(!!c == row->good, "version 0x%x", row->version);
        if (!c)
            continue;
        check_hello(&w, c);
        client_close(c);
    }
    world_run(&w);
    assert_int_equal(http_server_conns(w.server), 0);
    world_done(&w);
    http_tls_free(tls);
}

static void test_large(void **state)
{
    const struct temp *t = *state;
    autobuf raw = {0}, got = {0};
    static char body[BIG];
    struct http_tls *tls;
    struct client *c;
    struct world w;
    char head[128];

    make_pair(t, "one");
    tls = make_tls(t);
    world_init(&w, &ops);
    buf_init(&raw, 8u << 20);
    buf_init(&got, 8u << 20);
    c = client_open(&w, tls, TLS1_3_VERSION);
    say(&w, c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n", 30);
    hear(&w, c, &raw);
    (void)snprintf(head, sizeof(head), "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: %u\r\n\r\n",
                   BIG);
    say(&w, c, head, strlen(head));
    say(&w, c, body, sizeof(body));
    hear(&w, c, &raw);
    sum_up(&raw, HTTP_GET, &got);
    assert_int_equal(got.len, 4 + BIG + strlen("|200 whole|"));
    client_close(c);
    world_run(&w);
    world_done(&w);
    http_tls_free(tls);
}

static void test_reload(void **state)
{
    const struct temp *t = *state;
    struct client *old, *new;
    struct error err = {0};
    struct http_tls *tls;
    struct world w;

    make_pair(t, "one");
    tls = make_tls(t);
    world_init(&w, &ops);
    old = client_open(&w, tls, TLS1_3_VERSION);
    make_pair(t, "two");
    CHECK_OK(http_tls_reload(tls, &err), err);
    new = client_open(&w, tls, TLS1_3_VERSION);
    CHECK_STR(name_of(old), "one", "a connection that was there");
    CHECK_STR(name_of(new), "two", "a new connection");
    check_hello(&w, old);
    check_hello(&w, new);
    client_close(new);

    temp_write(t, "cert.pem", "nonsense", 8);
    CHECK_ERR(http_tls_reload(tls, &err), err, ERR_INVALID, "cert.pem");
    new = client_open(&w, tls, TLS1_3_VERSION);
    CHECK_STR(name_of(new), "two", "after a reload that failed");
    client_close(new);
    client_close(old);
    world_run(&w);
    world_done(&w);
    http_tls_free(tls);
}

static void test_bad_files(void **state)
{
    const struct temp *t = *state;
    struct http_tls *tls = NULL;
    struct error err = {0};
    autofree char *key = NULL;

    CHECK_ERR(http_tls_new("/nowhere", "/nowhere", &tls, &err), err, ERR_INVALID, "/nowhere");
    make_pair(t, "one");
    key = temp_read(t, "key.pem", NULL);
    make_pair(t, "two");
    temp_write(t, "key.pem", key, strlen(key));
    CHECK_ERR(http_tls_new(temp_path(t, "cert.pem"), temp_path(t, "key.pem"), &tls, &err), err,
              ERR_INVALID, "mismatch");
}

/* HT-21, the other way round; and a handshake that never ends. */
static void test_no_tls(void **state)
{
    const struct temp *t = *state;
    struct http_tls *tls;
    autobuf raw = {0};
    struct world w;
    int fd, slow;

    make_pair(t, "one");
    tls = make_tls(t);
    world_init(&w, &ops);
    http_server_limits(w.server)->head_usec = 30000;
    buf_init(&raw, 1u << 20);
    fd = tls_connect(&w, tls);
    slow = tls_connect(&w, tls);
    client_say(fd, NEXT);
    client_send(slow, "\x16\x03\x01\x02", 4);
    world_run(&w);
    assert_true(client_read(fd, &raw));
    CHECK(!raw.data || !strstr(raw.data, "HTTP"), "%s", raw.data);
    assert_false(client_read(slow, &raw));
    world_wait(&w, 60);
    assert_true(client_read(slow, &raw));
    assert_int_equal(http_server_conns(w.server), 0);
    (void)close(fd);
    (void)close(slow);
    world_done(&w);
    http_tls_free(tls);
}

static void test_gone(void **state)
{
    const struct temp *t = *state;
    struct http_tls *tls;
    struct client *c;
    struct world w;

    make_pair(t, "one");
    tls = make_tls(t);
    world_init(&w, &ops);
    gone = 0;
    for (int says_so = 0; says_so < 2; says_so++) {
        c = client_open(&w, tls, TLS1_3_VERSION);
        say(&w, c, "GET /never HTTP/1.1\r\nHost: x\r\n\r\n", 32);
        assert_int_equal(gone, says_so);
        if (says_so)
            (void)SSL_shutdown(c->ssl);
        client_close(c);
        world_run(&w);
        assert_int_equal(gone, says_so + 1);
    }
    world_done(&w);
    http_tls_free(tls);
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("TLS 1.2 and 1.3, nothing older", test_versions),
    CLAIM_IN_TEMP("large bodies both ways", test_large),
    CLAIM_IN_TEMP("a new certificate is for new connections", test_reload),
    CLAIM_IN_TEMP("files that do not fit are refused", test_bad_files),
    CLAIM_IN_TEMP("what is no TLS is closed, in time", test_no_tls),
    CLAIM_IN_TEMP("a client that goes away is noticed", test_gone),
};

int main(void)
{
    return RUN_CLAIMS("http/tls", claims);
}
