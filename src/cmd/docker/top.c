/* SPDX-License-Identifier: Apache-2.0 */
/* `top`: the processes of a box; `stats`: what it uses. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/sandbox.h"

/* ---- top ---- */

struct process {
    int ppid;
    unsigned long long ticks, begun; /* of the processor; since the machine's start */
    unsigned uid;
    char command[4096];
};

/* The words of a command line with blanks between them, without what a terminal would obey. */
static void read_command(int dir, char *text, size_t size)
{
    ssize_t n = fd_read_value(dir, "cmdline", text, size);

    for (ssize_t i = 0; i < n - 1; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = ' ';
    if (n > 0)
        return;
    n = fd_read_value(dir, "comm", text, size);
    text[n > 0 ? strcspn(text, "\n") : 0] = 0;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
}

static bool read_process(pid_t pid, struct process *p)
{
    char path[64], text[4096], *after, *line;
    unsigned long long user, sys;
    autoclose int dir = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d", pid);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fd_read_value(dir, "stat", text, sizeof(text)) <= 0)
        return false;
    after = strrchr(text, ')'); /* the name before it may hold anything */
    if (!after || sscanf(after,
                         ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
                         "%*d %*d %llu",
                         &p->ppid, &user, &sys, &p->begun) != 4)
        return false;
    p->ticks = user + sys;
    if (fd_read_value(dir, "status", text, sizeof(text)) <= 0)
        return false;
    line = strstr(text, "\nUid:");
    p->uid = line ? (unsigned)strtoul(line + 5, NULL, 10) : 0;
    read_command(dir, p->command, sizeof(p->command));
    return true;
}

/*
 * The columns of `ps -ef`, which docker shows, as wide as docker makes them. Init stands for its
 * reapers, one of which serves this very look.
 */
static void on_process(void *arg, pid_t pid)
{
    const pid_t *init = arg;
    long hz = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
    unsigned long long seconds, alive;
    struct timespec up;
    struct process p;
    char begun[16] = "?";
    struct tm tm;
    time_t at;

    if (!read_process(pid, &p) || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
        return; /* it has ended */
    if (p.ppid == *init)
        return;
    seconds = p.ticks / (unsigned long long)hz;
    alive = (unsigned long long)up.tv_sec - p.begun / (unsigned long long)hz;
    at = time(NULL) - (time_t)alive;
    if (localtime_r(&at, &tm))
        (void)strftime(begun, sizeof(begun), "%H:%M", &tm);
    printf("%-19u %-19d %-19d %-19llu %-19s %-19s %02llu:%02llu:%02llu            %s\n", p.uid, pid,
           p.ppid, alive ? 100 * seconds / alive : 0, begun, "?", seconds / 3600, seconds / 60 % 60,
           seconds % 60, p.command);
}

int cmd_top(int argc, char **argv)
{
    struct flags f = {
        .verb = "top", .usage = "CONTAINER", .words_end_flags = true, .argc = argc, .argv = argv};
    autoptr(box_record) r = NULL;
    struct box_state s;
    struct error err;

    if (!flags_read(&f, 1, -1, NULL, NULL))
        return f.status;
    r = say_find(f.words[0]);
    if (!r)
        return 1;
    if (f.n_words > 1)
        return say_daemon("options of ps are not supported by ClawDen: 'docker top %s' shows what "
                          "'ps -ef' would; or 'docker exec %s ps %s'",
                          f.words[0], f.words[0], f.words[1]);
    if (sandbox_state(r, &s, &err) < 0)
        return say_daemon("%s", err.msg);
    if (!s.running)
        return say_daemon("container %s is not running", r->id);
    printf("%-19s %-19s %-19s %-19s %-19s %-19s %-19s CMD\n", "UID", "PID", "PPID", "C", "STIME",
           "TTY", "TIME");
    return sandbox_each_process(r, on_process, &s.init_pid, &err) < 0 ? say_daemon("%s", err.msg)
                                                                      : 0;
}

/* ---- stats ---- */

enum { S_NO_STREAM, S_FORMAT, S_ALL, S_NO_TRUNC };

static const struct flag stats_rows[] = {
    {"no-stream", 0, S_NO_STREAM, NULL, "once, not every second"},
    {"format", 0, S_FORMAT, "TEMPLATE",
     "table, json or a template: .Name .CPUPerc .MemUsage .PIDs"},
    {"all", 'a', S_ALL, NULL, "boxes that do not run, too"},
    {"no-trunc", 0, S_NO_TRUNC, NULL, "whole ids"},
};

static const char stats_columns[] =
    "{\"ID\":\"CONTAINER ID\",\"Container\":\"CONTAINER\",\"Name\":\"NAME\",\"CPUPerc\":\"CPU %\","
    "\"MemUsage\":\"MEM USAGE / LIMIT\",\"MemPerc\":\"MEM %\",\"PIDs\":\"PIDS\","
    "\"NetIO\":\"NET I/O\",\"BlockIO\":\"BLOCK I/O\"}";

struct stats_options {
    bool once, all, no_trunc;
    const char *format;
};

static int on_stats_flag(void *arg, const struct flags *f)
{
    struct stats_options *o = arg;

    if (f->flag->id == S_NO_STREAM)
        o->once = f->on;
    else if (f->flag->id == S_FORMAT)
        o->format = f->value;
    else if (f->flag->id == S_ALL)
        o->all = f->on;
    else
        o->no_trunc = f->on;
    return 0;
}

static uint64_t monotonic_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static char *make_stats(const struct box_record *r, const struct box_usage *u, uint64_t cpu_usec,
                        uint64_t wall_usec, bool no_trunc)
{
    uint64_t limit = r->limits.memory_bytes;
    char text[128], used[32], all[32];
    autobuf b;

    buf_init(&b, LIMIT_SMALL_FILE);
    buf_puts(&b, "{");
    (void)snprintf(text, sizeof(text), "%.*s", no_trunc ? 64 : 12, r->id);
    buf_json_str(&b, "ID", text);
    buf_json_str(&b, "Container", text);
    buf_json_str(&b, "Name", r->name);
    (void)snprintf(text, sizeof(text), "%.2f%%",
                   wall_usec ? 100.0 * (double)cpu_usec / (double)wall_usec : 0.0);
    buf_json_str(&b, "CPUPerc", text);
    (void)snprintf(text, sizeof(text), "%s / %s",
                   say_size(u->memory_bytes, 1024, used, sizeof(used)),
                   limit ? say_size(limit, 1024, all, sizeof(all)) : "unlimited");
    buf_json_str(&b, "MemUsage", text);
    (void)snprintf(text, sizeof(text), "%.2f%%",
                   limit ? 100.0 * (double)u->memory_bytes / (double)limit : 0.0);
    buf_json_str(&b, "MemPerc", text);
    (void)snprintf(text, sizeof(text), "%u", u->pids);
    buf_json_str(&b, "PIDs", text);
    buf_json_str(&b, "NetIO", "0B / 0B"); /* a box has no network */
    buf_json_str(&b, "BlockIO", "--");
    buf_puts(&b, "}");
    return b.failed ? NULL : TAKE_PTR(b.data);
}

/* Two looks, a moment apart: how busy it is shows only then. */
static int show_stats(struct box_record **list, size_t n, const struct stats_options *o)
{
    static const struct timespec moment = {.tv_nsec = 300000000};
    autofree struct box_usage *before = calloc(n + 1, sizeof(*before));
    autofree char **lines = calloc(n + 1, sizeof(*lines));
    uint64_t begun = monotonic_usec();
    struct error err;
    size_t n_lines = 0;
    int status;

    if (!before || !lines)
        abort();
    for (size_t i = 0; i < n; i++)
        (void)sandbox_usage(list[i], &before[i], &err);
    (void)nanosleep(&moment, NULL);
    for (size_t i = 0; i < n; i++) {
        struct box_usage now = {0};
        uint64_t cpu;
        bool live = sandbox_usage(list[i], &now, &err) >= 0;

        if (!live && !o->all)
            continue;
        cpu = now.cpu_usec > before[i].cpu_usec ? now.cpu_usec - before[i].cpu_usec : 0;
        lines[n_lines] = make_stats(list[i], &now, cpu, monotonic_usec() - begun, o->no_trunc);
        n_lines += lines[n_lines] != NULL;
    }
    status = show_rows(o->format,
                       "{{.ID}}\t{{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t"
                       "{{.BlockIO}}\t{{.PIDs}}",
                       stats_columns, lines, n_lines, false);
    for (size_t i = 0; i < n_lines; i++)
        free(lines[i]);
    return status;
}

/* The named boxes, or all that run; NULL after a message. Ends with NULL. */
static struct box_record **choose(char **words, int n_words, bool all, size_t *ret_n)
{
    struct box_record **list = NULL;
    struct error err;
    size_t n = 0, kept = 0;

    if (n_words == 0) {
        if (sandbox_list(&list, &err) < 0) {
            (void)say_daemon("%s", err.msg);
            return NULL;
        }
        for (; list[n]; n++) {
            struct box_state s = {0};

            if (all || (sandbox_state(list[n], &s, &err) >= 0 && s.running))
                list[kept++] = list[n];
            else
                box_record_free(list[n]);
        }
        list[kept] = NULL;
        *ret_n = kept;
        return list;
    }
    list = calloc((size_t)n_words + 1, sizeof(struct box_record *));
    if (!list)
        abort();
    for (; n < (size_t)n_words; n++) {
        list[n] = say_find(words[n]);
        if (!list[n]) {
            sandbox_list_free(list);
            return NULL;
        }
    }
    *ret_n = n;
    return list;
}

int cmd_stats(int argc, char **argv)
{
    struct flags f = {.verb = "stats",
                      .usage = "[CONTAINER...]",
                      .rows = stats_rows,
                      .n_rows = sizeof(stats_rows) / sizeof(*stats_rows),
                      .argc = argc,
                      .argv = argv};
    struct stats_options o = {0};
    int status;

    if (!flags_read(&f, 0, -1, on_stats_flag, &o))
        return f.status;
    do {
        size_t n = 0;
        struct box_record **list = choose(f.words, f.n_words, o.all, &n);

        if (!list)
            return 1;
        status = show_stats(list, n, &o);
        sandbox_list_free(list);
    } while (!o.once && status == 0);
    return status;
}
