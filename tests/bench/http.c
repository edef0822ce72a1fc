/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for wrk: `bench_http PORT [PEM KEY]` at 127.0.0.1, TLS with a certificate. /healthz is a
 * small JSON answer; /later is given from the loop, after the callback; /part in chunks; /ws is a
 * WebSocket that says everything back; POST is read. It prints its memory and connections at
 * SIGUSR1, and ends at SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "http/chars.h"
#include "http/server.h"
#include "http/tls.h"
#include "http/websocket.h"
#include "loop/loop.h"

static const struct http_field json[] = {{"Content-Type", "application/json"}};
#define ANSWER "{\"status\":\"ok\",\"sessions\":0,\"version\":\"0.0.0\",\"x\":1}"

struct later {
    struct loop_task task;
    struct http_exchange *x;
};

static void answer(struct http_exchange *x)
{
    http_reply(x, 200, json, 1, ANSWER, sizeof(ANSWER) - 1);
}

static void on_turn(struct loop_task *t)
{
    struct later *l = (struct later *)t;

    answer(l->x);
    free(l);
}

static void on_message(struct ws *w, bool is_text, const char *data, size_t len)
{
    (void)ws_send(w, is_text, data, len);
}

static void on_ws_gone(struct ws *w, unsigned code)
{
    (void)w;
    (void)code;
}

static void on_request(struct http_exchange *x)
{
    static const struct ws_ops echo = {.on_message = on_message, .on_gone = on_ws_gone};
    static const struct ws_options ws = {.ops = &echo, .max_message = 1u << 20};
    struct later *l;

    if (http_slice_is(x->path, "/ws")) {
        (void)ws_accept(x, &ws);
    } else if (x->method == HTTP_POST) {
        (void)http_read_body(x, 1u << 30);
    } else if (http_slice_is(x->path, "/later")) {
        l = calloc(1, sizeof(*l));
        if (!l)
            abort();
        l->task.on_turn = on_turn;
        l->x = x;
        x->user = l;
        loop_later(http_loop(x), &l->task);
    } else if (http_slice_is(x->path, "/part")) {
        http_reply_start(x, 200, json, 1);
        (void)http_reply_part(x, ANSWER, sizeof(ANSWER) - 1);
        http_reply_end(x);
    } else if (http_slice_is(x->path, "/healthz")) {
        answer(x);
    } else {
        http_fail(x, 404, NULL);
    }
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    (void)data;
    (void)len;
    if (last)
        answer(x);
}

static void on_gone(struct http_exchange *x)
{
    struct later *l = x->user;

    if (!l)
        return;
    loop_forget(&l->task);
    free(l);
}

static void on_writable(struct http_exchange *x)
{
    (void)x;
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = on_body, .on_gone = on_gone, .on_writable = on_writable};

struct signals {
    struct loop_io io;
    struct http_server *server;
};

static void tell(const struct http_server *s)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmRSS", 5) == 0)
            printf("%zu connections, %s", http_server_conns(s), line);
    if (f)
        (void)fclose(f);
    (void)fflush(stdout);
}

static void on_signal(struct loop_io *io, uint32_t events)
{
    struct signals *s = (struct signals *)io;
    struct signalfd_siginfo info;

    (void)events;
    if (read(io->fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGUSR1)
        tell(s->server);
    else
        loop_quit(io->loop);
}

int main(int argc, char **argv)
{
    struct http_listen how = {.stream = &http_tls_stream, .is_secret = true};
    struct signals sig = {.io.on_ready = on_signal};
    autoptr(http_tls) tls = NULL;
    autoptr(loop) l = NULL;
    struct error err = {0};
    sigset_t set;
    int fd;

    if (argc != 2 && argc != 4)
        return 2;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (loop_new(&l) < 0 || loop_add(l, &sig.io, fd, EPOLLIN) < 0)
        return 1;
    if (http_server_new(l, &ops, NULL, &sig.server, &err) < 0)
        return 1;
    if (argc == 4 && http_tls_new(argv[2], argv[3], &tls, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    how.context = tls;
    if (http_listen_tcp(sig.server, "127.0.0.1", (uint16_t)strtoul(argv[1], NULL, 10),
                        tls ? &how : NULL, NULL, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    (void)loop_run(l);
    loop_remove(&sig.io);
    http_server_free(sig.server);
    (void)close(fd);
    return 0;
}
