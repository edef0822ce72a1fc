/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "cmd/gateway/gateway.h"
#include "http/tls.h"

#define FIRST_INHERITED 3
#define LIMIT_PEM       (256u << 10)
#define LIMIT_FACTS     (2u << 20)
#define BACKLOG         1024

/* ---- addresses ---- */

struct endpoint {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t len;
    bool is_loopback;
};

static void set_port(struct endpoint *e, uint16_t port)
{
    if (e->a.any.sa_family == AF_INET)
        e->a.v4.sin_port = htons(port);
    else
        e->a.v6.sin6_port = htons(port);
}

static uint16_t port_of(const struct endpoint *e)
{
    return ntohs(e->a.any.sa_family == AF_INET ? e->a.v4.sin_port : e->a.v6.sin6_port);
}

static int parse(const char *text, struct endpoint *ret, struct error *err)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool bracket = n > 2 && text[0] == '[' && text[n - 1] == ']';

    *ret = (struct endpoint){.len = 0};
    if (!colon || !colon[1] || *end || port < 0 || port > 65535 || n >= sizeof(host))
        return error_set(err, ERR_INVALID,
                         "--listen '%s': ADDRESS:PORT is needed, as 127.0.0.1:18789 or "
                         "[::1]:18789, or unix:PATH",
                         text);
    (void)snprintf(host, sizeof(host), "%.*s", (int)(bracket ? n - 2 : n), text + bracket);
    if (strcmp(host, "localhost") == 0)
        (void)snprintf(host, sizeof(host), "127.0.0.1");
    if (!bracket && inet_pton(AF_INET, host, &ret->a.v4.sin_addr) == 1) {
        ret->a.v4.sin_family = AF_INET;
        ret->len = sizeof(ret->a.v4);
        ret->is_loopback = ntohl(ret->a.v4.sin_addr.s_addr) >> 24 == 127;
    } else if (inet_pton(AF_INET6, host, &ret->a.v6.sin6_addr) == 1) {
        ret->a.v6.sin6_family = AF_INET6;
        ret->len = sizeof(ret->a.v6);
        ret->is_loopback = IN6_IS_ADDR_LOOPBACK(&ret->a.v6.sin6_addr);
    } else {
        return error_set(err, ERR_INVALID, "--listen '%s': '%s' is no address", text, host);
    }
    set_port(ret, (uint16_t)port);
    return 0;
}

static int bind_to(const struct endpoint *e)
{
    autoclose int fd = socket(e->a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &e->a.any, e->len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static void name_url(struct listening *l, int fd, bool tls)
{
    struct endpoint e = {.len = sizeof(e.a)};
    char host[INET6_ADDRSTRLEN] = "";

    if (l->url[0] || getsockname(fd, &e.a.any, &e.len) < 0)
        return;
    if (e.a.any.sa_family == AF_INET)
        (void)inet_ntop(AF_INET, &e.a.v4.sin_addr, host, sizeof(host));
    else if (e.a.any.sa_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &e.a.v6.sin6_addr, host, sizeof(host));
    else
        return;
    (void)snprintf(l->url, sizeof(l->url),
                   e.a.any.sa_family == AF_INET ? "http%s://%s:%u" : "http%s://[%s]:%u",
                   tls ? "s" : "", host, (unsigned)port_of(&e));
}

static void add(struct listening *l, int fd, bool tls)
{
    l->list[l->n++] = (struct front_listener){.fd = fd, .tls = tls};
    name_url(l, fd, tls);
}

/* ---- the ways to get a socket ---- */

static int open_unix(struct listening *l, const char *path, struct error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;
    mode_t old;
    int r;

    if (strlen(path) >= sizeof(a.sun_path))
        return error_set(err, ERR_TOO_LARGE, "--listen unix:%s: the path has more than %zu bytes",
                         path, sizeof(a.sun_path) - 1);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) { /* of one that was killed? */
        autoclose int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(probe, (struct sockaddr *)&a, sizeof(a)) < 0 && errno == ECONNREFUSED)
            (void)unlink(path);
    }
    old = umask(0177);
    r = fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, BACKLOG) < 0 ? -errno
                                                                                            : 0;
    (void)umask(old);
    if (r < 0)
        return error_sys(err, r, "--listen unix:%s", path);
    add(l, TAKE_FD(fd), false);
    return 0;
}

static int open_one(const struct options *o, struct listening *l, const char *text,
                    struct error *err)
{
    struct endpoint e;
    bool tls = o->certificate != NULL;
    int r;

    if (strncmp(text, "unix:", 5) == 0)
        return open_unix(l, text + 5, err);
    r = parse(text, &e, err);
    if (r < 0)
        return r;
    if (!e.is_loopback && !tls)
        return error_set(err, ERR_DENIED,
                         "--listen %s: others could read the tokens on the way; give --tls-cert "
                         "and --tls-key, or listen on 127.0.0.1",
                         text);
    r = bind_to(&e);
    if (r < 0)
        return r == -EADDRINUSE
                   ? error_set(err, ERR_EXISTS,
                               "--listen %s: the port is in use; choose another, or leave --listen "
                               "out: then the next free one is taken",
                               text)
                   : error_sys(err, r, "--listen %s", text);
    add(l, r, tls);
    return 0;
}

/* The standard port, or one of the next: another gateway may have it. */
static int open_standard(const struct options *o, struct listening *l, struct error *err)
{
    struct endpoint e;
    int r = parse("127.0.0.1:0", &e, err);

    for (unsigned i = 0; r >= 0 && i < PORTS_TRIED; i++) {
        int fd;

        set_port(&e, (uint16_t)(GATEWAY_PORT + i));
        fd = bind_to(&e);
        if (fd >= 0) {
            l->is_next = i > 0;
            add(l, fd, o->certificate != NULL);
            return 0;
        }
        r = fd == -EADDRINUSE ? 0 : error_sys(err, fd, "listen on 127.0.0.1:%u", GATEWAY_PORT + i);
    }
    return r < 0 ? r
                 : error_set(err, ERR_EXISTS, "127.0.0.1:%u and the %u ports after it are taken",
                             GATEWAY_PORT, PORTS_TRIED - 1);
}

/* Socket activation: whoever hands us a socket has bound it. Ours to check all the same. */
static int take_inherited(const struct options *o, struct listening *l, struct error *err)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    long n = pid && fds && strtol(pid, NULL, 10) == (long)getpid() ? strtol(fds, NULL, 10) : 0;

    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    for (int fd = FIRST_INHERITED; fd < FIRST_INHERITED + n && l->n < LIMIT_FRONT_LISTENERS; fd++) {
        struct endpoint e = {.len = sizeof(e.a)};

        int listens = 0;
        socklen_t len = sizeof(listens);

        if (getsockname(fd, &e.a.any, &e.len) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
            return error_sys(err, -errno, "descriptor %d of LISTEN_FDS", fd);
        if (!listens)
            return error_set(err, ERR_INVALID, "descriptor %d of LISTEN_FDS does not listen", fd);
        e.is_loopback =
            e.a.any.sa_family == AF_UNIX ||
            (e.a.any.sa_family == AF_INET && ntohl(e.a.v4.sin_addr.s_addr) >> 24 == 127) ||
            (e.a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&e.a.v6.sin6_addr));
        if (!e.is_loopback && !o->certificate)
            return error_set(err, ERR_DENIED,
                             "a socket of LISTEN_FDS is not loopback: give --tls-cert and "
                             "--tls-key");
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        add(l, fd, e.a.any.sa_family != AF_UNIX && o->certificate);
    }
    return 0;
}

int listening_open(const struct options *o, struct listening *ret, struct error *err)
{
    int r;

    *ret = (struct listening){0};
    r = take_inherited(o, ret, err);
    for (size_t i = 0; r >= 0 && i < o->n_listen; i++)
        r = open_one(o, ret, o->listen[i], err);
    if (r >= 0 && !ret->n)
        r = open_standard(o, ret, err);
    if (r < 0)
        listening_close(ret);
    return r;
}

void listening_close(struct listening *l)
{
    while (l->n)
        close_fd(&l->list[--l->n].fd);
}

/* ---- what the front has to know ---- */

struct pem {
    char text[LIMIT_PEM];
    size_t n;
};

static int read_pem(const char *option, const char *path, struct pem *ret, struct error *err)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -errno : fd_read_full(fd, ret->text, LIMIT_PEM);

    if (n < 0)
        return error_sys(err, (int)n, "%s '%s'", option, path);
    if (n >= (ssize_t)LIMIT_PEM)
        return error_set(err, ERR_TOO_LARGE, "%s '%s' has %u bytes or more", option, path,
                         LIMIT_PEM);
    ret->text[n] = 0;
    ret->n = (size_t)n;
    return 0;
}

/* Here, and not only in the front, which knows no files that it could name. */
static int put_tls(struct buf *b, const struct options *o, struct error *err)
{
    autofree struct pem *pems = calloc(2, sizeof(*pems));
    autoptr(http_tls) tls = NULL;
    int r = pems ? read_pem("--tls-cert", o->certificate, &pems[0], err)
                 : error_sys(err, -ENOMEM, "read '%s'", o->certificate);

    if (r >= 0)
        r = read_pem("--tls-key", o->key, &pems[1], err);
    if (r >= 0 && http_tls_new_pem(pems[0].text, pems[1].text, &tls, err) < 0)
        r = error_wrap(err, "--tls-cert '%s', --tls-key '%s'", o->certificate, o->key);
    if (r >= 0) {
        buf_json_key(b, "tls");
        buf_puts(b, "{");
        buf_json_key(b, "certificate");
        buf_json_string(b, pems[0].text, pems[0].n);
        buf_json_key(b, "key");
        buf_json_string(b, pems[1].text, pems[1].n);
        buf_puts(b, "}");
    }
    if (pems)
        explicit_bzero(pems, 2 * sizeof(*pems));
    return r;
}

int facts_write(const struct options *o, struct buf *ret, struct error *err)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *hosts[LIMIT_NAMES + 3];
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < 3; i++)
        hosts[n++] = own[i];
    for (size_t i = 0; i < o->n_hosts; i++)
        hosts[n++] = o->hosts[i];
    buf_init(ret, LIMIT_FACTS);
    buf_puts(ret, "{");
    buf_json_strings(ret, "hosts", (char *const *)hosts, n);
    buf_json_strings(ret, "origins", (char *const *)o->origins, o->n_origins);
    buf_json_bool(ret, "metrics_open", o->open_metrics);
    if (o->certificate)
        r = put_tls(ret, o, err);
    buf_puts(ret, "}");
    if (r >= 0 && ret->failed)
        r = error_set(err, ERR_TOO_LARGE, "--host, --origin and the certificates are too long");
    return r;
}
