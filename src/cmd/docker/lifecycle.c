/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "cmd/docker/outcome.h"
#include "cmd/docker/run.h"
#include "sandbox/sandbox.h"

enum { V_TIME, V_SIGNAL, V_FORCE, V_VOLUMES, V_LINK, V_ATTACH, V_INTERACTIVE };

#define DEFAULT_GRACE_USEC 10000000ull /* docker's ten seconds */

struct options {
    int signo;
    uint64_t grace_usec;
    bool force, attach, interactive;
};

/* ---- values ---- */

static const struct {
    const char *name;
    int signo;
} signals[] = {{"HUP", SIGHUP},    {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ABRT", SIGABRT},
               {"KILL", SIGKILL},  {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"PIPE", SIGPIPE},
               {"ALRM", SIGALRM},  {"TERM", SIGTERM}, {"CHLD", SIGCHLD}, {"CONT", SIGCONT},
               {"STOP", SIGSTOP},  {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU},
               {"WINCH", SIGWINCH}};

/* "KILL", "SIGKILL", "9"; 0 if it is none. */
static int read_signal(const char *s)
{
    char *end;
    long n = strtol(s, &end, 10);

    if (*s && !*end)
        return n > 0 && n < 65 ? (int)n : 0;
    if (strncasecmp(s, "SIG", 3) == 0)
        s += 3;
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        if (strcasecmp(s, signals[i].name) == 0)
            return signals[i].signo;
    return 0;
}

static int on_flag(void *arg, const struct flags *f)
{
    struct options *o = arg;
    char *end;
    long n;

    switch (f->flag->id) {
    case V_TIME:
        n = strtol(f->value, &end, 10);
        if (!f->value[0] || *end || n < -1 || n > 86400)
            return flags_bad(f, "strconv.ParseInt: parsing \"%s\": invalid syntax", f->value);
        o->grace_usec = n < 0 ? 86400000000ull : (uint64_t)n * 1000000;
        break;
    case V_SIGNAL:
        o->signo = read_signal(f->value);
        if (!o->signo)
            return -say_daemon("invalid signal: %s", f->value);
        break;
    case V_FORCE:
        o->force = f->on;
        break;
    case V_ATTACH:
        o->attach = f->on;
        break;
    case V_INTERACTIVE:
        o->interactive = f->on;
        break;
    default: /* --volumes: there are none */
        break;
    }
    return 0;
}

static bool read_words(struct flags *f, int argc, char **argv, struct options *o)
{
    f->usage = "CONTAINER [CONTAINER...]";
    f->argc = argc;
    f->argv = argv;
    return flags_read(f, 1, -1, on_flag, o);
}

/* ---- verbs ---- */

static int start(const struct box_record *r, struct error *err)
{
    struct box_state s;
    int n = sandbox_state(r, &s, err);

    if (n >= 0 && s.paused)
        return error_set(err, ERR_DENIED, "cannot start a paused container, try unpause instead");
    return n < 0 ? n : sandbox_start(r, err);
}

/* What runs already has its streams elsewhere. */
static int start_attached(const char *ref, bool interactive)
{
    autoptr(box_record) r = say_find(ref);
    struct box_state s;
    struct error err;
    bool started;
    int status;

    if (!r)
        return 1;
    if (sandbox_state(r, &s, &err) < 0)
        return say_daemon("%s", err.msg);
    if (s.running)
        return say_daemon("attaching to a box that runs is not supported by ClawDen: 'docker logs "
                          "-f %s' shows what is written",
                          ref);
    status = run_attached(r, interactive && r->open_stdin, OUTCOME_CREATE, &started);
    if (r->auto_remove)
        run_remove(r);
    return started ? status : 1;
}

/* Each of them; those that could not be started are named together at the end, as docker does. */
static int start_all(char **words)
{
    char failed[1024] = "";

    for (; *words; words++) {
        autoptr(box_record) r = say_find(*words);
        size_t n = strlen(failed);
        struct error err;

        if (r && start(r, &err) >= 0) {
            puts(*words);
            continue;
        }
        if (r && !outcome_of_start(&err, OUTCOME_CREATE, r->command[0], r->workdir))
            (void)say_daemon("%s", err.msg);
        (void)snprintf(failed + n, sizeof(failed) - n, "%s%s", n ? ", " : "", *words);
    }
    if (!failed[0])
        return 0;
    (void)fflush(stdout);
    (void)fprintf(stderr, "Error: failed to start containers: %s\n", failed);
    return 1;
}

static int stop(const struct box_record *r, void *arg, struct error *err)
{
    const struct options *o = arg;

    return sandbox_stop(r, o->signo, o->grace_usec, err);
}

static int restart(const struct box_record *r, void *arg, struct error *err)
{
    int n = stop(r, arg, err);

    return n < 0 ? n : sandbox_start(r, err);
}

int cmd_start(int argc, char **argv)
{
    static const struct flag rows[] = {
        {"attach", 'a', V_ATTACH, NULL, "follow the main command, and end with its status"},
        {"interactive", 'i', V_INTERACTIVE, NULL, "the same, with standard input"}};
    struct flags f = {.verb = "start", .rows = rows, .n_rows = 2};
    struct options o = {0};

    if (!read_words(&f, argc, argv, &o))
        return f.status;
    if (!o.attach && !o.interactive)
        return start_all(f.words);
    if (f.n_words > 1) {
        (void)fprintf(stderr, "you cannot start and attach multiple containers at once\n");
        return 1;
    }
    return start_attached(f.words[0], o.interactive);
}

static const struct flag stop_rows[] = {
    {"timeout", 't', V_TIME, "SECONDS", "how long to wait before it is killed (default 10)"},
    {"time", 0, V_TIME, "SECONDS", NULL},
    {"signal", 's', V_SIGNAL, "SIGNAL", "what the main command gets first (default TERM)"}};

int cmd_stop(int argc, char **argv)
{
    struct flags f = {.verb = "stop", .rows = stop_rows, .n_rows = 3};
    struct options o = {.signo = SIGTERM, .grace_usec = DEFAULT_GRACE_USEC};

    return read_words(&f, argc, argv, &o) ? say_each(f.words, stop, &o) : f.status;
}

int cmd_restart(int argc, char **argv)
{
    struct flags f = {.verb = "restart", .rows = stop_rows, .n_rows = 3};
    struct options o = {.signo = SIGTERM, .grace_usec = DEFAULT_GRACE_USEC};

    return read_words(&f, argc, argv, &o) ? say_each(f.words, restart, &o) : f.status;
}

static int not_running(const struct box_record *r, struct error *err)
{
    return error_set(err, ERR_NOT_FOUND, "container %s is not running", r->id);
}

static int send_signal(const struct box_record *r, const struct options *o, struct error *err)
{
    struct box_state s;
    int n = sandbox_state(r, &s, err);

    if (n >= 0 && !s.running)
        return error_set(err, ERR_NOT_FOUND,
                         "cannot kill container: %s: container %s is not running", r->name, r->id);
    if (n >= 0)
        n = o->signo == SIGKILL ? sandbox_stop(r, SIGKILL, 0, err)
                                : sandbox_signal(r, o->signo, err);
    return n;
}

int cmd_kill(int argc, char **argv)
{
    static const struct flag rows[] = {{"signal", 's', V_SIGNAL, "SIGNAL",
                                        "what the main command gets (default KILL: everything)"}};
    struct flags f = {.verb = "kill", .rows = rows, .n_rows = 1};
    struct options o = {.signo = SIGKILL};
    int status = 0;

    if (!read_words(&f, argc, argv, &o))
        return f.status;
    for (char **w = f.words; *w; w++) {
        autoptr(box_record) r = NULL;
        struct error err;

        if (sandbox_find(*w, &r, &err) < 0 && err.code == ERR_NOT_FOUND)
            status = say_daemon("cannot kill container: %s: No such container: %s", *w, *w);
        else if (!r || send_signal(r, &o, &err) < 0)
            status = say_daemon("%s", err.msg);
        else
            puts(*w);
    }
    return status;
}

static int set_paused(const struct box_record *r, void *arg, struct error *err)
{
    bool pause = *(bool *)arg;
    struct box_state s;
    int n = sandbox_state(r, &s, err);

    if (n >= 0 && !s.running && pause)
        return not_running(r, err);
    if (n >= 0 && s.paused == pause)
        return error_set(err, ERR_INVALID, "Container %s is %spaused", r->id,
                         pause ? "already " : "not ");
    return n < 0 ? n : sandbox_pause(r, pause, err);
}

int cmd_pause(int argc, char **argv)
{
    struct flags f = {.verb = "pause"};
    struct options o = {0};
    bool pause = true;

    return read_words(&f, argc, argv, &o) ? say_each(f.words, set_paused, &pause) : f.status;
}

int cmd_unpause(int argc, char **argv)
{
    struct flags f = {.verb = "unpause"};
    struct options o = {0};
    bool pause = false;

    return read_words(&f, argc, argv, &o) ? say_each(f.words, set_paused, &pause) : f.status;
}

/* ---- rm ---- */

static int remove_one(const char *ref, const struct options *o)
{
    autoptr(box_record) r = NULL;
    struct box_state s;
    struct error err;

    if (sandbox_find(ref, &r, &err) < 0) {
        if (err.code != ERR_NOT_FOUND)
            return say_daemon("%s", err.msg);
        (void)say_daemon("No such container: %s", ref);
        return o->force ? 0 : 1;
    }
    if (!o->force && sandbox_state(r, &s, &err) >= 0 && s.running)
        return say_daemon("cannot remove container \"/%s\": container is %s", r->name,
                          s.paused ? "paused and must be unpaused first"
                                   : "running: stop the container before removing or force remove");
    if (sandbox_remove(r, o->force, &err) < 0)
        return say_daemon("%s", err.msg);
    puts(ref);
    return 0;
}

int cmd_rm(int argc, char **argv)
{
    static const struct flag rows[] = {{"force", 'f', V_FORCE, NULL, "also a box that runs"},
                                       {"volumes", 'v', V_VOLUMES, NULL, "there are none"},
                                       {"link", 'l', V_LINK, NULL, NULL}};
    struct flags f = {.verb = "rm", .rows = rows, .n_rows = 3};
    struct options o = {0};
    int status = 0;

    if (!read_words(&f, argc, argv, &o))
        return f.status;
    for (char **w = f.words; *w; w++)
        status |= remove_one(*w, &o);
    return status;
}

/* ---- wait ---- */

static int wait_for(const char *ref)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    autoptr(box_record) r = say_find(ref);
    struct box_state s;
    struct error err;

    if (!r)
        return 1;
    for (;;) {
        if (sandbox_state(r, &s, &err) < 0)
            return say_daemon("%s", err.msg);
        if (!s.running)
            break;
        (void)nanosleep(&pause, NULL);
    }
    printf("%d\n", s.exit_code);
    (void)fflush(stdout);
    return 0;
}

int cmd_wait(int argc, char **argv)
{
    struct flags f = {.verb = "wait"};
    struct options o = {0};
    int status = 0;

    if (!read_words(&f, argc, argv, &o))
        return f.status;
    for (char **w = f.words; *w; w++)
        status |= wait_for(*w);
    return status;
}
