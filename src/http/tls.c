/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/error.h"

struct http_tls {
    char *chain, *key; /* files, or NULL */
    SSL_CTX *ctx;
    BIO_METHOD *bio;
};

/* ---- sockets ---- */

/* OpenSSL's own writes with write(), which a peer that is gone answers with SIGPIPE. */
static int bio_write(BIO *b, const char *data, int len)
{
    int fd = (int)(intptr_t)BIO_get_data(b);
    ssize_t n = send(fd, data, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);

    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    return (int)n;
}

static int bio_read(BIO *b, char *data, int size)
{
    int fd = (int)(intptr_t)BIO_get_data(b);
    ssize_t n = recv(fd, data, (size_t)size, MSG_DONTWAIT);

    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    return (int)n;
}

static long bio_ctrl(BIO *b, int what, long number, void *data)
{
    (void)b;
    (void)number;
    (void)data;
    return what == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

static BIO_METHOD *make_bio(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "http");

    if (!m || !BIO_meth_set_write(m, bio_write) || !BIO_meth_set_read(m, bio_read) ||
        !BIO_meth_set_ctrl(m, bio_ctrl) || !BIO_meth_set_create(m, bio_create)) {
        BIO_meth_free(m);
        return NULL;
    }
    return m;
}

/* ---- certificates ---- */

static int tls_error(struct error *err, const char *what, const char *path)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return error_set(err, ERR_INVALID, "%s '%s': %s", what, path, reason ? reason : "it failed");
}

/* Only HTTP/1.1 is spoken here: a client that offers nothing of the kind may try all the same. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *offered, unsigned len, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *found;

    (void)ssl;
    (void)user;
    if (SSL_select_next_proto(&found, ret_len, ours, sizeof(ours) - 1, offered, len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *ret = found;
    return SSL_TLSEXT_ERR_OK;
}

/* Where a pair comes from: files, or texts. */
struct pair {
    const char *chain, *key;
    bool is_text;
};

static const char *pair_name(const struct pair *p)
{
    return p->is_text ? "the PEM text" : p->chain;
}

static int read_files(SSL_CTX *ctx, const struct pair *p, struct error *err)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, p->chain) != 1)
        return tls_error(err, "read certificate", p->chain);
    if (SSL_CTX_use_PrivateKey_file(ctx, p->key, SSL_FILETYPE_PEM) != 1)
        return tls_error(err, "read key", p->key);
    return 0;
}

/* A key that needs a password is none that we can use: nobody is there to be asked. */
static int no_password(char *text, int size, int writing, void *user)
{
    (void)text;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

/* The first certificate is the server's own, those after it lead to who signed it. */
static bool use_chain(SSL_CTX *ctx, BIO *b)
{
    X509 *cert = PEM_read_bio_X509_AUX(b, NULL, no_password, NULL);
    bool ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(b, NULL, no_password, NULL))) {
        ok = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
        if (!ok)
            X509_free(cert);
    }
    if (ok)
        ERR_clear_error(); /* of the end of the text */
    return ok;
}

static int read_texts(SSL_CTX *ctx, const struct pair *p, struct error *err)
{
    BIO *chain = BIO_new_mem_buf(p->chain, -1), *key = BIO_new_mem_buf(p->key, -1);
    EVP_PKEY *private = key ? PEM_read_bio_PrivateKey(key, NULL, no_password, NULL) : NULL;
    int r = 0;

    if (!chain || !use_chain(ctx, chain))
        r = tls_error(err, "read certificate of", pair_name(p));
    else if (!private || SSL_CTX_use_PrivateKey(ctx, private) != 1)
        r = tls_error(err, "read key of", pair_name(p));
    EVP_PKEY_free(private);
    BIO_free(key);
    BIO_free(chain);
    return r;
}

static int set_up(SSL_CTX *ctx, const struct pair *p, struct error *err)
{
    int r;

    if (!SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
        !SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20"))
        return tls_error(err, "set up TLS for", pair_name(p));
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    /* The answer's buffer may move and grow between two tries; an idle connection needs none. */
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    r = p->is_text ? read_texts(ctx, p, err) : read_files(ctx, p, err);
    if (r < 0)
        return r;
    if (SSL_CTX_check_private_key(ctx) != 1)
        return tls_error(err, "match key with certificate", pair_name(p));
    return 0;
}

/* ---- pairs ---- */

static int replace(struct http_tls *t, const struct pair *p, struct error *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    int r;

    if (!ctx)
        return tls_error(err, "set up TLS for", pair_name(p));
    r = set_up(ctx, p, err);
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    SSL_CTX_free(t->ctx); /* connections hold it for as long as they need it */
    t->ctx = ctx;
    return 0;
}

int http_tls_reload(struct http_tls *t, struct error *err)
{
    if (!t->chain)
        return error_set(err, ERR_INVALID, "reload a certificate that came as text");
    return replace(t, &(struct pair){t->chain, t->key, false}, err);
}

int http_tls_replace_pem(struct http_tls *t, const char *chain, const char *key, struct error *err)
{
    return replace(t, &(struct pair){chain, key, true}, err);
}

static int make(const struct pair *p, struct http_tls **ret, struct error *err)
{
    autoptr(http_tls) t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return error_sys(err, -ENOMEM, "set up TLS");
    t->chain = p->is_text ? NULL : strdup(p->chain);
    t->key = p->is_text ? NULL : strdup(p->key);
    t->bio = make_bio();
    if (!t->bio || (!p->is_text && (!t->chain || !t->key)))
        return error_sys(err, -ENOMEM, "set up TLS");
    r = replace(t, p, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(t);
    return 0;
}

int http_tls_new(const char *chain, const char *key, struct http_tls **ret, struct error *err)
{
    return make(&(struct pair){chain, key, false}, ret, err);
}

int http_tls_new_pem(const char *chain, const char *key, struct http_tls **ret, struct error *err)
{
    return make(&(struct pair){chain, key, true}, ret, err);
}

void http_tls_free(struct http_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    BIO_meth_free(t->bio);
    free(t->chain);
    free(t->key);
    free(t);
}

/* ---- streams ---- */

static int tls_open(struct http_stream *s, void *context)
{
    struct http_tls *t = context;
    SSL *ssl = SSL_new(t->ctx);
    BIO *bio = ssl ? BIO_new(t->bio) : NULL;

    if (!bio) {
        SSL_free(ssl);
        ERR_clear_error();
        return -ENOMEM;
    }
    BIO_set_data(bio, (void *)(intptr_t)s->fd);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    s->state = ssl;
    return 0;
}

/* What a call that got no further says; `events` is what the same call waits for from now on. */
static ssize_t explain(struct http_stream *s, int r, uint32_t *events)
{
    int why = SSL_get_error(s->state, r);

    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        *events = why == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
        return -EAGAIN;
    }
    return why == SSL_ERROR_ZERO_RETURN ? 0 : -EPROTO;
}

static ssize_t tls_read(struct http_stream *s, void *data, size_t size)
{
    int r = SSL_read(s->state, data, (int)size);

    if (r <= 0)
        return explain(s, r, &s->read_events);
    s->read_events = EPOLLIN;
    return r;
}

static ssize_t tls_write(struct http_stream *s, const void *data, size_t len)
{
    ssize_t n;
    int r = SSL_write(s->state, data, len < (1u << 20) ? (int)len : 1 << 20);

    if (r <= 0) {
        n = explain(s, r, &s->write_events);
        return n ? n : -EPIPE;
    }
    s->write_events = EPOLLOUT;
    return r;
}

static void tls_finish(struct http_stream *s)
{
    if (SSL_is_init_finished(s->state))
        (void)SSL_shutdown(s->state);
    ERR_clear_error();
    (void)shutdown(s->fd, SHUT_WR);
}

/* Who closes without lingering says goodbye as well: the peer can tell an end from a cut. */
static void tls_close(struct http_stream *s)
{
    if (SSL_is_init_finished(s->state))
        (void)SSL_shutdown(s->state);
    ERR_clear_error();
    SSL_free(s->state);
    s->state = NULL;
}

const struct http_stream_ops http_tls_stream = {
    .open = tls_open,
    .read = tls_read,
    .write = tls_write,
    .finish = tls_finish,
    .close = tls_close,
};
