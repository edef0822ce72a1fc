/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "guard/guard.h"
#include "policy/words.h"

#define KILL_USEC  10000000ull /* an init that does not answer so long is not asked again */
#define LAST_READS 256         /* of what an ended command's pipes hold: 16 MiB */

struct jobs {
    struct loop *loop;
    struct spools spools;
    size_t stdin_bytes;
    struct job *list; /* newest first, whether they run or not */
    size_t running, kept;
    struct loop_timer sweep;
};

/* ---- boxes ---- */

struct job_box *job_box_new(struct box_record *taken)
{
    struct job_box *b = calloc(1, sizeof(*b));
    struct box_usage u = {0};
    struct error none;

    if (!b)
        abort();
    *b = (struct job_box){.refs = 1, .record = taken};
    if (sandbox_usage(taken, &u, &none) >= 0)
        b->oom_kills = u.oom_kills;
    return b;
}

struct job_box *job_box_hold(struct job_box *b)
{
    b->refs++;
    return b;
}

void job_box_drop(struct job_box *b)
{
    if (!b || --b->refs)
        return;
    box_record_free(b->record);
    free(b);
}

/* ---- the table ---- */

static void stop_waiting(struct job *j)
{
    struct loop_io *ios[] = {&j->control, &j->out[0], &j->out[1], &j->in, &j->pty};

    for (size_t i = 0; i < sizeof(ios) / sizeof(*ios); i++) {
        loop_remove(ios[i]);
        if (ios[i] != &j->control) /* that one is the connection's */
            close_fd(&ios[i]->fd);
    }
    loop_stop_timer(&j->deadline);
    sandbox_finish(&j->command);
}

static void job_free(struct job *j)
{
    if (!j)
        return;
    stop_waiting(j);
    loop_forget(&j->tell);
    while (j->watches) {
        struct job_watch *w = j->watches;

        job_unwatch(w);
        if (w->on_gone)
            w->on_gone(w);
    }
    if (j->back) {
        *j->back = j->next;
        if (j->next)
            j->next->back = j->back;
        if (j->is_over)
            j->all->kept--;
        else
            j->all->running--;
    }
    job_box_drop(j->box);
    spool_done(&j->spool);
    j->all->stdin_bytes -= j->stdin_text.len;
    buf_done(&j->stdin_text);
    free(j->line);
    free(j->answer);
    json_decref(j->before);
    json_decref(j->network);
    json_decref(j->changed.files);
    close_fd(&j->workspace);
    free(j);
}
DEFINE_AUTOPTR(job)

static void sweep(struct jobs *all)
{
    uint64_t now = loop_now(all->loop);
    struct job *next;

    for (struct job *j = all->list; j; j = next) {
        next = j->next;
        if (j->is_over && !j->watches && now - j->ended_usec > JOB_KEPT_USEC)
            job_free(j);
    }
}

static void on_sweep(struct loop_timer *t)
{
    struct jobs *all = OF(struct jobs, sweep, t);

    sweep(all);
    (void)loop_set_timer(all->loop, t, JOB_KEPT_USEC / 10);
}

/* The oldest that is over makes room; of the session itself, if it has more than its share. */
static void make_room(struct jobs *all, const char *session)
{
    struct job *oldest = NULL, *own = NULL;
    size_t n = 0;

    if (all->kept < LIMIT_KEPT_SESSION) /* nobody has more than that */
        return;
    for (struct job *j = all->list; j; j = j->next) {
        if (!j->is_over || j->watches)
            continue;
        oldest = j;
        if (strcmp(j->session, session) == 0) {
            own = j;
            n++;
        }
    }
    if (n >= LIMIT_KEPT_SESSION)
        job_free(own);
    else if (all->kept >= LIMIT_JOBS_KEPT && oldest)
        job_free(oldest);
}

int jobs_new(struct loop *l, int folder, struct jobs **ret, struct error *err)
{
    struct jobs *all = calloc(1, sizeof(*all));

    if (!all)
        return error_sys(err, -ENOMEM, "make the table of commands");
    all->loop = l;
    all->spools.folder = folder;
    all->sweep.on_time = on_sweep;
    (void)loop_set_timer(l, &all->sweep, JOB_KEPT_USEC / 10);
    *ret = all;
    return 0;
}

void jobs_free(struct jobs *all)
{
    if (!all)
        return;
    while (all->list)
        job_free(all->list);
    loop_stop_timer(&all->sweep);
    free(all);
}

size_t jobs_running(const struct jobs *all)
{
    return all->running;
}

struct job *jobs_next(struct jobs *all, const char *session, struct job *after)
{
    for (struct job *j = after ? after->next : all->list; j; j = j->next)
        if (!session || strcmp(j->session, session) == 0)
            return j;
    return NULL;
}

struct job *jobs_find(struct jobs *all, const char *session, const char *id)
{
    for (struct job *j = NULL; (j = jobs_next(all, session, j));)
        if (strcmp(j->id, id) == 0)
            return j;
    return NULL;
}

/* ---- who watches ---- */

void job_watch(struct job *j, struct job_watch *w)
{
    w->job = j;
    w->next = j->watches;
    w->back = &j->watches;
    if (w->next)
        w->next->back = &w->next;
    j->watches = w;
}

void job_unwatch(struct job_watch *w)
{
    if (!w->job)
        return;
    *w->back = w->next;
    if (w->next)
        w->next->back = w->back;
    w->job = NULL;
}

static void on_tell(struct loop_task *t)
{
    struct job *j = OF(struct job, tell, t);
    struct job_watch *next;

    for (struct job_watch *w = j->watches; w; w = next) {
        next = w->next; /* a watcher may leave, but only itself */
        w->on_news(w);
    }
}

static void news(struct job *j)
{
    if (j->watches)
        loop_later(j->all->loop, &j->tell);
}

void job_set_answer(struct job *j, unsigned status, const char *text)
{
    free(j->answer);
    j->answer = strdup(text);
    j->answer_status = status;
    if (!j->answer)
        abort();
    news(j);
}

void job_set_changed(struct job *j, struct changes taken)
{
    json_decref(j->changed.files);
    j->changed = taken;
    close_fd(&j->workspace);
}

/* ---- what it writes ---- */

/* How many of the last bytes are the beginning of a character that is not whole. */
static size_t torn(const char *data, size_t len)
{
    for (size_t n = 1; n <= 3 && n <= len; n++) {
        unsigned char c = (unsigned char)data[len - n];

        if (c < 0x80)
            return 0;
        if (c >= 0xc0)
            return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > n ? n : 0;
    }
    return 0;
}

static void add_output(struct job *j, enum spool_stream s, char *data, size_t len, bool last)
{
    size_t keep = last ? 0 : torn(data, len);

    spool_add(&j->spool, s, data, len - keep);
    memcpy(j->held[s], data + len - keep, keep);
    j->n_held[s] = keep;
}

/* 1: something came; 0: nothing is there; -1: nothing will. */
static int read_some(struct job *j, struct loop_io *io, enum spool_stream s)
{
    char data[4 + LIMIT_SPOOL_PIECE - 4];
    size_t held = j->n_held[s];
    ssize_t n;

    memcpy(data, j->held[s], held);
    n = read(io->fd, data + held, sizeof(data) - held);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) { /* a terminal whose other end is closed says EIO */
        add_output(j, s, data, held, true);
        return -1;
    }
    add_output(j, s, data, held + (size_t)n, false);
    return 1;
}

static void on_output(struct job *j, struct loop_io *io, enum spool_stream s)
{
    if (read_some(j, io, s) < 0) {
        loop_remove(io);
        close_fd(&io->fd);
    }
    news(j);
}

static void on_stdout(struct loop_io *io, uint32_t events)
{
    (void)events;
    on_output(OF(struct job, out[SPOOL_OUT], io), io, SPOOL_OUT);
}

static void on_stderr(struct loop_io *io, uint32_t events)
{
    (void)events;
    on_output(OF(struct job, out[SPOOL_ERR], io), io, SPOOL_ERR);
}

/* The command has ended; what it left running may hold the pipes, but what it wrote is in them. */
static void read_the_rest(struct job *j)
{
    struct loop_io *ios[] = {&j->out[SPOOL_OUT], &j->out[SPOOL_ERR], &j->pty};
    const enum spool_stream streams[] = {SPOOL_OUT, SPOOL_ERR, SPOOL_OUT};

    for (size_t i = 0; i < sizeof(ios) / sizeof(*ios); i++) {
        for (int k = 0; ios[i]->loop && k < LAST_READS && read_some(j, ios[i], streams[i]) > 0; k++)
            ;
        if (j->n_held[streams[i]])
            add_output(j, streams[i], j->held[streams[i]], j->n_held[streams[i]], true);
    }
}

/* ---- what it reads ---- */

static void stdin_add(struct job *j, const char *data, size_t len)
{
    if (j->stdin_sent) { /* what was sent makes room */
        memmove(j->stdin_text.data, j->stdin_text.data + j->stdin_sent,
                j->stdin_text.len - j->stdin_sent);
        j->stdin_text.len -= j->stdin_sent;
        j->all->stdin_bytes -= j->stdin_sent;
        j->stdin_sent = 0;
    }
    buf_append(&j->stdin_text, data, len);
    j->all->stdin_bytes += len;
}

static void stdin_forget(struct job *j)
{
    j->all->stdin_bytes -= j->stdin_text.len;
    buf_clear(&j->stdin_text);
    j->stdin_sent = 0;
}

static void close_stdin(struct job *j)
{
    loop_remove(&j->in);
    close_fd(&j->in.fd);
    j->stdin_open = false;
}

static void write_some(struct job *j)
{
    struct loop_io *io = j->pty.loop ? &j->pty : &j->in;
    size_t left = j->stdin_text.len - j->stdin_sent;
    ssize_t n = left ? write(io->fd, j->stdin_text.data + j->stdin_sent, left) : 0;

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        stdin_forget(j);
        if (io == &j->in)
            close_stdin(j);
        return;
    }
    j->stdin_sent += n > 0 ? (size_t)n : 0;
    left = j->stdin_text.len - j->stdin_sent;
    if (!left)
        stdin_forget(j);
    if (io == &j->pty)
        (void)loop_change(io, EPOLLIN | (left ? EPOLLOUT : 0));
    else if (!left && j->stdin_ends)
        close_stdin(j);
    else
        (void)loop_change(io, left ? EPOLLOUT : 0);
}

static void on_stdin(struct loop_io *io, uint32_t events)
{
    struct job *j = OF(struct job, in, io);

    if (events & (EPOLLERR | EPOLLHUP))
        close_stdin(j); /* nobody reads it */
    else
        write_some(j);
}

static void on_pty(struct loop_io *io, uint32_t events)
{
    struct job *j = OF(struct job, pty, io);

    if (events & EPOLLOUT)
        write_some(j);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        on_output(j, io, SPOOL_OUT);
}

static size_t stdin_of_session(const struct job *j)
{
    size_t n = 0;

    for (const struct job *k = j->all->list; k; k = k->next)
        if (k->stdin_text.len && strcmp(k->session, j->session) == 0)
            n += k->stdin_text.len;
    return n;
}

int job_write(struct job *j, const char *data, size_t len, bool ends)
{
    const char end_of_input = 4;

    if (j->is_over || (!j->stdin_open && !j->pty.loop) || j->stdin_ends)
        return -EPIPE;
    if (stdin_of_session(j) + len + 1 > LIMIT_JOB_STDIN ||
        j->all->stdin_bytes + len + 1 > LIMIT_JOBS_STDIN)
        return -ENOBUFS;
    stdin_add(j, data, len);
    if (ends && j->pty.loop)
        stdin_add(j, &end_of_input, 1);
    else
        j->stdin_ends = ends;
    write_some(j);
    return 0;
}

int job_resize(struct job *j, uint16_t rows, uint16_t cols)
{
    const struct winsize size = {.ws_row = rows, .ws_col = cols};

    if (!j->pty.loop)
        return -ENOTTY;
    return ioctl(j->pty.fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

/* ---- its end ---- */

static void over(struct job *j, enum job_end end)
{
    struct box_usage u = {0};

    if (j->command.box && j->command.box->ops->usage(j->command.box, &u) == 0) {
        j->cpu_usec = u.cpu_usec;
        j->peak_bytes = u.peak_bytes;
    }
    read_the_rest(j);
    if (j->before) {
        json_t *now = job_traffic(j->box->record);

        j->network = job_traffic_since(j->before, now);
        json_decref(now);
    }
    j->end = j->meant != JOB_RUNNING ? j->meant : end;
    j->ended_usec = loop_now(j->all->loop);
    stop_waiting(j);
    j->is_over = true;
    j->all->running--;
    j->all->kept++;
    news(j);
}

/* A process of the box was killed for memory since this began: that is why. */
static bool was_out_of_memory(struct job *j)
{
    struct box_usage u = {0};
    struct error none;
    bool more = sandbox_usage(j->box->record, &u, &none) >= 0 && u.oom_kills > j->box->oom_kills;

    if (more)
        j->box->oom_kills = u.oom_kills;
    return more;
}

static void on_exited(struct job *j, int status)
{
    j->status = status;
    if (WIFSIGNALED(status) && j->meant == JOB_RUNNING && WTERMSIG(status) == SIGKILL &&
        was_out_of_memory(j)) {
        (void)snprintf(j->limit, sizeof(j->limit), "memory");
        j->limit_value = j->box->record->limits.memory_bytes;
        j->limit_seen = j->peak_bytes;
        j->meant = JOB_LIMIT;
    }
    over(j, WIFSIGNALED(status) ? JOB_SIGNALED : JOB_EXITED);
}

static void use_pty(struct job *j, int fd)
{
    if (j->pty.loop || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        loop_add(j->all->loop, &j->pty, fd, EPOLLIN) < 0) {
        (void)close(fd);
        return;
    }
    write_some(j);
}

static void on_control(struct loop_io *io, uint32_t events)
{
    struct job *j = OF(struct job, control, io);
    struct box_event e;
    struct error err;
    bool at_folder;

    (void)events;
    if (j->command.box->ops->next_event(j->command.box, &e, &err) < 0) {
        (void)snprintf(j->reason, sizeof(j->reason), "%.250s", err.msg);
        over(j, JOB_FAILED);
        return;
    }
    switch (e.kind) {
    case BOX_STARTED:
        if (e.pty_fd >= 0)
            use_pty(j, e.pty_fd);
        break;
    case BOX_FAILED:
        at_folder = e.at && strcmp(e.at, "execute") != 0;
        (void)snprintf(j->reason, sizeof(j->reason), "%.40s '%s': %.60s", e.at ? e.at : "execute",
                       at_folder ? j->folder : j->program, strerror(e.sys));
        j->status = (e.sys == ENOENT ? 127 : 126) << 8;
        over(j, JOB_FAILED);
        break;
    case BOX_EXITED:
        on_exited(j, e.status);
        break;
    case BOX_GONE:
        j->status = SIGKILL;
        (void)snprintf(j->reason, sizeof(j->reason), "the box was ended, and everything in it");
        over(j, JOB_SIGNALED);
        break;
    }
}

static void on_deadline(struct loop_timer *t)
{
    struct job *j = OF(struct job, deadline, t);

    if (j->meant !=
        JOB_RUNNING) { /* it was told, and init does not answer: closing is an order too */
        j->status = SIGKILL;
        over(j, JOB_SIGNALED);
        return;
    }
    (void)snprintf(j->limit, sizeof(j->limit), "time");
    j->limit_seen = loop_now(j->all->loop) - j->begun_usec;
    j->meant = JOB_LIMIT;
    (void)j->command.box->ops->ask_end(j->command.box);
    (void)loop_set_timer(j->all->loop, t, KILL_USEC);
}

void job_cancel(struct job *j, const char *why)
{
    if (j->is_over || j->meant != JOB_RUNNING)
        return;
    j->meant = JOB_CANCELLED;
    (void)snprintf(j->reason, sizeof(j->reason), "%s", why);
    (void)j->command.box->ops->ask_end(j->command.box);
    (void)loop_set_timer(j->all->loop, &j->deadline, KILL_USEC);
}

void job_signal(struct job *j, int signo)
{
    if (!j->is_over)
        (void)j->command.box->ops->signal(j->command.box, signo);
}

/* ---- its beginning ---- */

/* The pipes: ret[i] is the command's end. */
static int open_pipes(struct job *j, bool with_stdin, int ret[3], struct error *err)
{
    int p[2];

    for (int i = 0; i < SPOOL_STREAMS; i++) {
        if (pipe2(p, O_CLOEXEC) < 0)
            return error_sys(err, -errno, "make a pipe");
        j->out[i].fd = p[0];
        ret[1 + i] = p[1];
        (void)fcntl(p[0], F_SETFL, O_NONBLOCK);
    }
    if (!with_stdin) {
        ret[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return ret[0] < 0 ? error_sys(err, -errno, "open /dev/null") : 0;
    }
    if (pipe2(p, O_CLOEXEC) < 0)
        return error_sys(err, -errno, "make a pipe");
    ret[0] = p[0];
    j->in.fd = p[1];
    j->stdin_open = true;
    (void)fcntl(p[1], F_SETFL, O_NONBLOCK);
    return 0;
}

static int wait_for(struct job *j, struct error *err)
{
    struct loop *l = j->all->loop;
    double seconds = j->limit_value / 1e6;
    int r = loop_add(l, &j->control, j->command.box->control_fd, EPOLLIN);

    for (int i = 0; r >= 0 && i < SPOOL_STREAMS; i++)
        if (j->out[i].fd >= 0)
            r = loop_add(l, &j->out[i], j->out[i].fd, EPOLLIN);
    if (r >= 0 && j->in.fd >= 0)
        r = loop_add(l, &j->in, j->in.fd, EPOLLOUT);
    if (r >= 0)
        r = loop_set_timer(l, &j->deadline, (uint64_t)(seconds * 1e6));
    return r < 0 ? error_sys(err, r, "wait for the command") : 0;
}

/* NAME=VALUE of the client's `env`, then `more`; ends with NULL. To be freed with its texts up to
 * *ret_own. */
static char **environment(json_t *env, char *const *more, size_t *ret_own)
{
    size_t n = json_object_size(env), m = 0, k = 0;
    const char *name;
    json_t *value;
    char **list;

    while (more && more[m])
        m++;
    list = calloc(n + m + 1, sizeof(*list));
    if (!list)
        return NULL;
    json_object_foreach(env, name, value)
    {
        if (asprintf(&list[k], "%s=%s", name, json_string_value(value)) < 0)
            abort();
        k++;
    }
    *ret_own = k;
    for (size_t i = 0; i < m; i++)
        list[k++] = more[i];
    return list;
}

static int start(struct job *j, const struct job_request *q, struct error *err)
{
    json_t *args = q->arguments, *input = json_object_get(args, "stdin");
    bool pty = json_is_true(json_object_get(args, "pty"));
    bool waits = j->background || json_is_true(json_object_get(args, "stdinOpen"));
    int fds[3] = {-1, -1, -1}, r = 0;
    size_t own = 0;
    char **env = environment(json_object_get(args, "env"), q->env, &own);
    const struct sandbox_exec x = {
        .argv = q->argv,
        .env = env,
        .workdir = json_string_value(json_object_get(args, "cwd")),
        .terminal = pty,
        .rows = (uint16_t)json_integer_value(json_object_get(args, "rows")),
        .cols = (uint16_t)json_integer_value(json_object_get(args, "cols"))};

    if (!env)
        return error_sys(err, -ENOMEM, "begin a command");
    (void)snprintf(j->program, sizeof(j->program), "%.127s", q->argv[0]);
    (void)snprintf(j->folder, sizeof(j->folder), "%.127s",
                   x.workdir ? x.workdir : q->box->record->workdir);
    if (input)
        stdin_add(j, json_string_value(input), json_string_length(input));
    j->stdin_ends = input && !waits;
    if (!pty)
        r = open_pipes(j, input || waits, fds, err);
    if (r >= 0)
        r = sandbox_begin(q->box->record, &x, fds, j->id, &j->command, err);
    for (int i = 0; i < 3; i++)
        close_fd(&fds[i]);
    for (size_t i = 0; i < own; i++)
        free(env[i]);
    free(env);
    return r < 0 ? r : wait_for(j, err);
}

static int count_session(struct jobs *all, const char *session)
{
    int n = 0;

    for (struct job *j = all->list; j; j = j->next)
        n += !j->is_over && strcmp(j->session, session) == 0;
    return n;
}

static struct job *job_new(struct jobs *all, const struct job_request *q)
{
    struct job *j = calloc(1, sizeof(*j));
    json_t *timeout = json_object_get(q->arguments, "timeout");
    double seconds = timeout ? json_number_value(timeout) : JOB_TIMEOUT_SEC;

    if (!j)
        return NULL;
    *j = (struct job){.all = all,
                      .command.use = -1,
                      .workspace = -1,
                      .control = {.on_ready = on_control, .fd = -1},
                      .out = {{.on_ready = on_stdout, .fd = -1}, {.on_ready = on_stderr, .fd = -1}},
                      .in = {.on_ready = on_stdin, .fd = -1},
                      .pty = {.on_ready = on_pty, .fd = -1},
                      .deadline.on_time = on_deadline,
                      .tell.on_turn = on_tell,
                      .begun_usec = loop_now(all->loop)};
    seconds = fmin(fmax(seconds, 0.001), LIMIT_JOB_TIMEOUT);
    j->limit_value = (uint64_t)(seconds * 1e6);
    j->background = json_is_true(json_object_get(q->arguments, "background"));
    spool_init(&j->spool, &all->spools, q->head ? q->head : SPOOL_HEAD);
    buf_init(&j->stdin_text, LIMIT_JOB_STDIN);
    (void)snprintf(j->id, sizeof(j->id), "%s", q->pass->call);
    (void)snprintf(j->session, sizeof(j->session), "%s", q->pass->session);
    (void)snprintf(j->token, sizeof(j->token), "%s", q->pass->token);
    j->line = words_quote(q->argv);
    if (j->line && strlen(j->line) > LIMIT_JOB_LINE) {
        memcpy(j->line + LIMIT_JOB_LINE - 4, " ...", 5);
        j->line = realloc(j->line, LIMIT_JOB_LINE + 1);
    }
    return j;
}

int job_begin(struct jobs *all, const struct job_request *q, struct job **ret, struct error *err)
{
    autoptr(job) j = NULL;
    int r;

    if (all->running >= LIMIT_JOBS ||
        count_session(all, q->pass->session) >= (int)LIMIT_JOBS_SESSION)
        return error_set(err, ERR_TOO_LARGE,
                         "%s commands run already; wait for one, or end one with process kill",
                         all->running >= LIMIT_JOBS ? "1024" : "64 of this session's");
    make_room(all, q->pass->session);
    j = job_new(all, q);
    if (!j)
        return error_sys(err, -ENOMEM, "begin a command");
    j->box = job_box_hold(q->box);
    j->before = job_traffic(q->box->record);
    if (q->workspace >= 0)
        j->workspace = fcntl(q->workspace, F_DUPFD_CLOEXEC, 3); /* the session may go before it */
    j->begun = moment_now();
    r = start(j, q, err);
    if (r < 0)
        return r;
    j->next = all->list;
    j->back = &all->list;
    if (j->next)
        j->next->back = &j->next;
    all->list = j;
    all->running++;
    *ret = TAKE_PTR(j);
    return 0;
}
