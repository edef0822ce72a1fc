/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "egress/client.h"
#include "engine/tty.h"
#include "image/image.h"
#include "sandbox/boxes.h"
#include "sandbox/life.h"
#include "sandbox/receipt.h"
#include "sandbox/user.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* 6.3 */
#endif

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- environment ---- */

struct environment {
    char **list;
    size_t n, cap;
};

/* A later value takes the place of an earlier one of the same name. */
static void put(struct environment *e, char *entry)
{
    size_t name = strcspn(entry, "=");

    for (size_t i = 0; i < e->n; i++)
        if (strncmp(e->list[i], entry, name) == 0 && e->list[i][name] == '=') {
            e->list[i] = entry;
            return;
        }
    if (e->n + 1 >= e->cap) {
        e->cap = e->cap ? 2 * e->cap : 64;
        e->list = realloc(e->list, e->cap * sizeof(*e->list));
        if (!e->list)
            abort();
    }
    e->list[e->n++] = entry;
    e->list[e->n] = NULL;
}

char **exec_environment(const struct box_record *r, char *const *more, const char *home,
                        bool terminal)
{
    static char host[80], home_entry[LIMIT_PATH];
    struct environment e = {0};

    (void)snprintf(host, sizeof(host), "HOSTNAME=%.*s", r->hostname ? 64 : 12,
                   r->hostname ? r->hostname : r->id);
    (void)snprintf(home_entry, sizeof(home_entry), "HOME=%s", home);
    put(&e, (char *)DEFAULT_PATH);
    put(&e, host);
    put(&e, home_entry);
    if (terminal)
        put(&e, (char *)"TERM=xterm");
    for (size_t i = 0; sandbox_has_network(r) && client_proxy_env[i]; i++)
        put(&e, (char *)client_proxy_env[i]);
    for (size_t i = 0; r->env && r->env[i]; i++)
        put(&e, r->env[i]);
    for (size_t i = 0; more && more[i]; i++)
        put(&e, more[i]);
    return e.list;
}

/* ---- who ---- */

static int find_user(const struct box_record *r, const struct hold *h, const char *text,
                     struct box_user *ret, struct error *err)
{
    autoptr(image) image = NULL;
    char ref[80];
    int e = 0;

    if (!text) {
        *ret = (struct box_user){.uid = r->uid, .gid = r->gid};
        (void)snprintf(ret->home, sizeof(ret->home), "%s", r->home ? r->home : "/");
        return 0;
    }
    if (r->image_id[0]) {
        (void)snprintf(ref, sizeof(ref), "sha256:%s", r->image_id);
        e = image_find(ref, &image, err);
    }
    if (e >= 0)
        e = user_resolve(text, image ? image->root_fd : -1, ret, err);
    if (e < 0)
        return e;
    if (!h->last.live.has_range && (ret->uid != r->uid || ret->gid != r->gid))
        return error_set(
            err, ERR_DENIED,
            "user %s: a box of an ordinary user has one user only, %u:%u, which is the "
            "caller outside; create the box with --user %s, or run as root",
            text, (unsigned)r->uid, (unsigned)r->gid, text);
    return 0;
}

/* ---- running ---- */

static int attach_running(const struct hold *h, struct box **ret, struct error *err)
{
    int r = hold_attach(h, ret, err);

    if (r < 0)
        return r;
    if (!life_is_paused((*ret)->init_pid)) {
        (void)utimensat(h->folder, "lock", NULL, 0); /* last used */
        return 0;
    }
    engine_native.destroy(*ret);
    *ret = NULL;
    return error_set(err, ERR_DENIED, "the box is paused");
}

static int run_detached(struct box *b, struct box_exec *what, struct run_result *ret,
                        struct error *err)
{
    struct box_event e;
    int r;

    what->detach = true;
    what->stdio[0] = what->stdio[1] = what->stdio[2] = -1;
    r = b->ops->exec(b, what, err);
    if (r >= 0)
        r = b->ops->next_event(b, &e, err);
    if (r >= 0 && e.kind == BOX_STARTED)
        close_fd(&e.pty_fd);
    if (r >= 0) {
        ret->started = e.kind == BOX_STARTED;
        ret->exec_sys = e.kind == BOX_FAILED ? e.sys : 0;
        ret->exec_at = e.kind == BOX_FAILED ? e.at : NULL;
    }
    b->ops->destroy(b);
    return r;
}

static int run_attached(struct box *b, const struct box_exec *what, bool terminal,
                        struct run_result *ret, struct error *err)
{
    const struct box_spec none = {.workspace_fd = -1};
    struct run_request req = {
        .engine = &engine_native, .spec = &none, .live = b, .exec = what, .terminal = terminal};

    return run_command(&req, ret, err);
}

/* Bytes that nobody can change any more once they are executed. */
static int open_program(const struct sandbox_exec *x, int *ret, struct error *err)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    autoclose int fd = -1;
    int r;

    if (!x->program)
        return 0;
    fd = memfd_create(x->argv[0], flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(x->argv[0], flags);
    if (fd < 0)
        return error_sys(err, -errno, "make an executable memfd (is vm.memfd_noexec 2?)");
    r = fd_write_full(fd, x->program, x->program_bytes);
    if (r < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return error_sys(err, r < 0 ? r : -errno, "write the program '%s'", x->argv[0]);
    *ret = TAKE_FD(fd);
    return 0;
}

static int run_recorded(const struct box_record *r, struct box *b, struct box_exec *what,
                        const struct sandbox_exec *x, struct run_result *ret, struct error *err)
{
    struct receipt receipt = {.r = r, .argv = x->argv, .env = x->env};
    autoclose int use = -1;
    int e = receipt_begin(&receipt, err);

    if (e >= 0) {
        e = network_use(r, b->init_pid, receipt.call, &use, err);
        if (e < 0)
            receipt_end(&receipt, ret);
    }
    if (e < 0) {
        b->ops->destroy(b);
        return e;
    }
    e = x->detach ? run_detached(b, what, ret, err) : run_attached(b, what, x->terminal, ret, err);
    receipt_end(&receipt, ret);
    return e;
}

static int open_null(bool interactive, struct error *err)
{
    int fd = interactive ? STDIN_FILENO : open("/dev/null", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? error_sys(err, -errno, "open /dev/null") : fd;
}

/* What init is to be told; .env and .program are to be freed and closed. */
static int prepare(const struct box_record *r, const struct hold *h, const struct sandbox_exec *x,
                   struct box_exec *ret, struct error *err)
{
    struct box_user user;
    int e = find_user(r, h, x->user, &user, err);

    if (e < 0)
        return e;
    *ret = (struct box_exec){.argv = x->argv,
                             .env = exec_environment(r, x->env, user.home, x->terminal),
                             .cwd = x->workdir   ? x->workdir
                                    : r->workdir ? r->workdir
                                                 : "/",
                             .rows = x->rows,
                             .cols = x->cols,
                             .leave = true,
                             .uid = user.uid,
                             .gid = user.gid};
    return open_program(x, &ret->program, err);
}

static void prepared_done(struct box_exec *what)
{
    free((void *)what->env);
    if (what->program)
        (void)close(what->program);
}

int sandbox_exec(const struct box_record *r, const struct sandbox_exec *x, struct run_result *ret,
                 struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct box_exec what = {0};
    struct box *b;
    int e = hold_open(r, false, &h, err), in;

    *ret = (struct run_result){0};
    if (e < 0)
        return e;
    in = open_null(x->interactive, err);
    if (in < 0)
        return in;
    e = prepare(r, &h, x, &what, err);
    if (e >= 0)
        e = attach_running(&h, &b, err);
    if (e >= 0) {
        memcpy(what.stdio, (int[3]){in, STDOUT_FILENO, STDERR_FILENO}, sizeof(what.stdio));
        if (x->terminal)
            tty_size(STDIN_FILENO, &what.rows, &what.cols);
        e = run_recorded(r, b, &what, x, ret, err);
    }
    prepared_done(&what);
    if (in != STDIN_FILENO)
        (void)close(in);
    return e;
}

/* ---- for a caller with a loop ---- */

int sandbox_begin(const struct box_record *r, const struct sandbox_exec *x, const int stdio[3],
                  const char *call, struct sandbox_command *ret, struct error *err)
{
    struct sandbox_command c = {.hold = malloc(sizeof(*c.hold)), .use = -1};
    struct box_exec what = {0};
    int e;

    if (!c.hold)
        return error_sys(err, -ENOMEM, "begin a command");
    *c.hold = (struct hold)HOLD_EMPTY;
    e = hold_open(r, false, c.hold, err);
    if (e >= 0)
        e = prepare(r, c.hold, x, &what, err);
    if (e >= 0)
        e = attach_running(c.hold, &c.box, err);
    if (e >= 0)
        e = network_use(r, c.box->init_pid, call, &c.use, err);
    if (e >= 0) {
        memcpy(what.stdio, stdio, sizeof(what.stdio));
        what.pty = x->terminal;
        e = c.box->ops->exec(c.box, &what, err);
    }
    prepared_done(&what);
    if (e < 0)
        sandbox_finish(&c);
    else
        *ret = c;
    return e;
}

void sandbox_finish(struct sandbox_command *c)
{
    if (c->box)
        c->box->ops->destroy(c->box);
    if (c->hold)
        hold_close(c->hold);
    free(c->hold);
    close_fd(&c->use);
    *c = (struct sandbox_command){.use = -1};
}

int sandbox_run(const struct box_record *r, bool interactive, bool terminal, struct run_result *ret,
                struct error *err)
{
    autohold h = HOLD_EMPTY;
    autofree char **env = NULL;
    struct error none;
    struct box *b;
    int e = hold_open(r, true, &h, err), in;

    *ret = (struct run_result){0};
    if (e < 0)
        return e;
    in = open_null(interactive, err);
    if (in < 0)
        return in;
    e = life_begin(r, &h, err);
    if (e >= 0 && keeper_is_needed(r, &h.last) && life_only_waits(r) == false)
        e = keeper_start(r, &h, false, err);
    if (e >= 0)
        e = hold_attach(&h, &b, err);
    close_fd(&h.lock); /* others may stop it while it runs */
    if (e >= 0) {
        env = exec_environment(r, NULL, r->home ? r->home : "/", terminal);
        struct box_exec what = {.argv = r->command,
                                .env = env,
                                .cwd = r->workdir ? r->workdir : "/",
                                .stdio = {in, STDOUT_FILENO, STDERR_FILENO},
                                .uid = r->uid,
                                .gid = r->gid};
        if (terminal)
            tty_size(STDIN_FILENO, &what.rows, &what.cols);
        e = run_recorded(
            r, b, &what,
            &(struct sandbox_exec){.argv = r->command, .env = r->env, .terminal = terminal}, ret,
            err);
    }
    if (in != STDIN_FILENO)
        (void)close(in);
    hold_close(&h);
    h = (struct hold)HOLD_EMPTY;
    if (hold_open(r, true, &h, &none) >= 0)
        (void)life_end(&h, e < 0 ? 125 : run_exit_status(ret), &none);
    return e;
}

int sandbox_open_inside(const struct box_record *r, const char *path, int flags, mode_t mode,
                        struct error *err)
{
    autohold h = HOLD_EMPTY;
    autoclose int root = -1;
    char proc[48];
    struct box *b;
    int e = hold_open(r, false, &h, err), fd;

    if (e >= 0)
        e = hold_attach(&h, &b, err);
    if (e < 0)
        return e;
    (void)snprintf(proc, sizeof(proc), "/proc/%d/root", (int)b->init_pid);
    root = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
    e = root < 0 ? -errno : 0;
    engine_native.destroy(b);
    if (e < 0)
        return error_sys(err, e, "open the root of the box");
    while (*path == '/')
        path++;
    fd = path_open(root, *path ? path : ".", flags, mode, PATH_IN_ROOT);
    return fd < 0 ? error_sys(err, fd, "open '/%s' in the box", path) : fd;
}
