/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, samples, starting programs, progress. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- clock ---- */

double now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void sleep_msec(unsigned msec)
{
    struct timespec t = {.tv_sec = msec / 1000, .tv_nsec = (long)(msec % 1000) * 1000000};

    (void)nanosleep(&t, NULL); /* shorter after a signal, as wanted */
}

/* ---- samples ---- */

void samples_add(struct samples *s, double usec)
{
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 256;
        s->usec = realloc(s->usec, s->room * sizeof(*s->usec));
        if (!s->usec)
            abort();
    }
    s->usec[s->n++] = usec;
    s->sorted = false;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double samples_quantile(struct samples *s, double q)
{
    if (!s->n)
        return 0;
    if (!s->sorted)
        qsort(s->usec, s->n, sizeof(*s->usec), compare_doubles);
    s->sorted = true;
    return s->usec[(size_t)(q * (double)(s->n - 1) + 0.5)];
}

/* ---- programs ---- */

static int stderr_file = -1;
static off_t stderr_seen;
static int bad_status; /* of the last command that did not end well, as from waitpid; < 0: none */

char **words_join(char *const *first, char *const *second)
{
    size_t n = 0, m = 0;
    char **all;

    while (first[n])
        n++;
    while (second[m])
        m++;
    all = calloc(n + m + 1, sizeof(*all));
    if (!all)
        abort();
    memcpy(all, first, n * sizeof(*all));
    memcpy(all + n, second, m * sizeof(*all));
    return all;
}

/*
 * Payloads inherit 0-2 as they stand here, so that no case pays for a dup2 that another does not.
 * Their stderr is a file, not a pipe: a program that is started in the background by a payload and
 * stays (a spawner) would keep a pipe open.
 */
int stdio_part(struct bench *b)
{
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10),
        err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char path[544];

    (void)snprintf(path, sizeof(path), "%s/stderr", b->dir);
    stderr_file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out < 0 || err < 0 || null < 0 || stderr_file < 0)
        return -errno;
    b->out = fdopen(out, "w");
    b->err = fdopen(err, "w");
    if (!b->out || !b->err)
        return -ENOMEM;
    if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(stderr_file, STDERR_FILENO) < 0)
        return -errno;
    (void)close(null);
    return 0;
}

void failure_status(int status)
{
    bad_status = status;
}

void failure_text(const char *text)
{
    bad_status = -1;
    (void)dprintf(stderr_file, "%s\n", text);
}

static int print_status(char *text, size_t size)
{
    if (bad_status < 0)
        return 0;
    if (WIFSIGNALED(bad_status))
        return snprintf(text, size, "signal %d: ", WTERMSIG(bad_status));
    return snprintf(text, size, "exit %d: ", WEXITSTATUS(bad_status));
}

const char *failure_take(void)
{
    static char text[320];
    off_t end = lseek(stderr_file, 0, SEEK_END), from = stderr_seen;
    int len = print_status(text, sizeof(text));
    off_t room = (off_t)sizeof(text) - len - 1;
    ssize_t n;

    if (end - from > room)
        from = end - room;
    n = pread(stderr_file, text + len, (size_t)room, from);
    text[len + (n > 0 ? (int)n : 0)] = '\0';
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = p[1] ? ';' : '\0';
    if (n <= 0)
        (void)snprintf(text + len, (size_t)room, "it said nothing");
    stderr_seen = end;
    return text;
}

pid_t command_start(char *const *argv, int out_fd, int json_fd)
{
    pid_t pid = vfork();

    if (pid != 0)
        return pid;
    if ((out_fd < 0 || dup2(out_fd, STDOUT_FILENO) >= 0) && (json_fd < 0 || dup2(json_fd, 3) >= 0))
        (void)execve(argv[0], argv, environ);
    _exit(127);
}

bool command_wait(pid_t pid)
{
    int status;

    if (pid < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    bad_status = status;
    return false;
}

void command_reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

double command_time(char *const *argv)
{
    double start = now_usec();
    bool ok = command_wait(command_start(argv, -1, -1));
    double end = now_usec();

    command_reap(); /* outside the measured time */
    return ok ? end - start : -1;
}

double command_time_captured(char *const *argv)
{
    double start = now_usec(), end;
    char text[4096];
    int fds[2];
    pid_t pid;
    bool ok;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    pid = command_start(argv, fds[1], -1);
    (void)close(fds[1]);
    while (read(fds[0], text, sizeof(text)) > 0)
        ;
    ok = command_wait(pid);
    (void)close(fds[0]);
    end = now_usec();
    return ok ? end - start : -1;
}

int command_from_slot(char *const *argv)
{
    static char *const json[] = {"--json", "--json-fd", "3", NULL};
    char *head[] = {argv[0], argv[1], NULL}, text[8192];
    char **front = words_join(head, json), **all = words_join(front, argv + 2);
    int fds[2] = {-1, -1}, r = -1;
    ssize_t n;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0 && command_wait(command_start(all, -1, fds[1]))) {
        n = read(fds[0], text, sizeof(text) - 1); /* one object, far smaller than a pipe */
        text[n > 0 ? n : 0] = '\0';
        r = strstr(text, "\"from_slot\":true") != NULL;
    }
    (void)close(fds[0]);
    (void)close(fds[1]);
    free(front);
    free(all);
    return r;
}

/*
 * A network namespace is taken down by a kernel thread after its last process is gone. Without a
 * pause the case that follows a box would pay for it, and on average that is every case.
 */
void settle(void)
{
    static int fd = -1;
    char text[64];
    int running;

    if (fd < 0)
        fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 6 && fd >= 0; i++) {
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        if (sscanf(text, "%*s %*s %*s %d", &running) != 1 || running <= 1)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 700000}, NULL);
    }
}

/* ---- notes ---- */

static void add_note(struct bench *b, const char *fmt, va_list ap)
{
    if (b->n_notes < ARRAY_LEN(b->notes) && vasprintf(&b->notes[b->n_notes], fmt, ap) >= 0)
        b->n_notes++;
}

void note(struct bench *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_note(b, fmt, ap);
    va_end(ap);
}

void fail(struct bench *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_note(b, fmt, ap);
    va_end(ap);
    b->failed = true;
}

/* ---- progress ---- */

static struct {
    FILE *to;
    const char *what;
    double began, shown;
    bool bar;
} meter;

void progress_begin(struct bench *b, const char *what)
{
    double now = now_usec();

    meter.to = b->err;
    meter.what = what;
    meter.began = meter.shown = now;
    meter.bar = isatty(fileno(b->err));
}

void progress(double share)
{
    double now = now_usec(), period = meter.bar ? 0.2e6 : 10e6;
    int width = 30, full = (int)(share * width);

    if (now - meter.began < 2e6 || (now - meter.shown < period && meter.shown > meter.began))
        return;
    meter.shown = now;
    if (meter.bar)
        (void)fprintf(meter.to, "\r%-34s [%.*s%*s] %3.0f %%", meter.what, full,
                      "##############################", width - full, "", share * 100);
    else
        (void)fprintf(meter.to, "%s: %.0f %%\n", meter.what, share * 100);
    (void)fflush(meter.to);
}

void progress_end(void)
{
    if (meter.bar && meter.shown > meter.began)
        (void)fprintf(meter.to, "\r%78s\r", "");
    (void)fflush(meter.to);
}
