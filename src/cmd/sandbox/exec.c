/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/redact.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "cmd/sandbox/sandbox.h"
#include "egress/client.h"
#include "engine/native/belts.h"
#include "engine/run.h"
#include "engine/tty.h"

struct record {
    struct options *o;
    struct audit audit;
    uint32_t belts; /* --json: what the live box's /proc showed */
};

/* ---- audit ---- */

/* Its sockets, and all of it to the relay, before anything runs in it. */
static int join_network(const struct options *o, struct box *box, struct error *err)
{
    return o->egress
               ? client_join(
                     &(struct client_box){.id = box->id, .init = box->init_pid, .wish = o->egress},
                     err)
               : 0;
}

static int begin_record(void *arg, struct box *box, struct error *err)
{
    struct record *rec = arg;
    uint32_t held = 0, seen = 0;
    autobuf f;

    if ((rec->o->json || rec->o->egress) && box->ops->settle(box, err) < 0)
        return -(int)err->code;
    if (join_network(rec->o, box, err) < 0)
        return -(int)err->code;
    if (rec->o->json && belts_read(box->init_pid, &held, &seen) >= 0)
        rec->belts = held | (box->belts & ~seen);
    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "box", box->id);
    buf_json_num(&f, "uid", (long long)getuid());
    buf_json_str(&f, "workspace", rec->o->workspace_path);
    redact_argv(&f, rec->o->command);
    redact_env_names(&f, rec->o->env);
    return audit_append(&rec->audit, "run.begin", rec->o->command[0], &f, err);
}

/* ---- the result, for audit and --json ---- */

static void put_limit(struct buf *b, const struct run_result *r)
{
    buf_json_key(b, "limit");
    if (r->limit == LIMIT_NONE) {
        buf_puts(b, "null");
        return;
    }
    buf_puts(b, "{");
    buf_json_str(b, "kind", limit_name(r->limit));
    buf_json_num(b, "limit", (long long)r->limit_value);
    buf_json_num(b, "observed", (long long)r->observed);
    buf_json_str(b, "unit",
                 r->limit == LIMIT_PIDS                                 ? "processes"
                 : r->limit == LIMIT_WALL || r->limit == LIMIT_CPU_TIME ? "microseconds"
                                                                        : "bytes");
    buf_json_bool(b, "killed", r->status == SIGKILL);
    buf_puts(b, "}");
}

static void put_result(struct buf *b, const struct run_result *r, int exit_status)
{
    buf_json_num(b, "exit", exit_status);
    if (r->started && WIFSIGNALED(r->status))
        buf_json_num(b, "signal", WTERMSIG(r->status));
    put_limit(b, r);
    buf_json_seconds(b, "wall_seconds", r->wall_usec);
    buf_json_seconds(b, "cpu_seconds", r->usage.cpu_usec);
    buf_json_num(b, "peak_memory_bytes", (long long)r->usage.peak_bytes);
    buf_json_str(b, "peak_memory_of", r->usage.peak_is_whole_box ? "box" : "largest process");
    if (r->output_counted)
        buf_json_num(b, "output_bytes", (long long)r->output_bytes);
}

static void put_belts(struct buf *b, const struct run_result *r)
{
    static const enum limit_kind shown[] = {LIMIT_MEMORY,    LIMIT_CPU,      LIMIT_PIDS,
                                            LIMIT_WALL,      LIMIT_CPU_TIME, LIMIT_OUTPUT,
                                            LIMIT_FILE_SIZE, LIMIT_TMP,      LIMIT_DISK};

    buf_json_key(b, "belts");
    buf_puts(b, "{");
    for (int i = 0; i < BELT_COUNT; i++)
        buf_json_bool(b, belt_name((enum belt)i), r->belts & 1u << i);
    buf_puts(b, "}");
    buf_json_key(b, "grades");
    buf_puts(b, "{");
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        buf_json_str(b, limit_name(shown[i]), grade_name(r->grades[shown[i]]));
    buf_puts(b, "}");
}

static void end_record(struct record *rec, const struct run_result *r, int exit_status)
{
    struct error err;
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "box", r->box_id);
    put_result(&f, r, exit_status);
    if (audit_append(&rec->audit, r->limit == LIMIT_NONE ? "run.end" : "run.limit",
                     rec->o->command[0], &f, &err) < 0)
        log_warn("%s: the end of this run is not recorded", err.msg);
}

static void print_json(const struct options *o, const struct run_result *r, int exit_status)
{
    autobuf b;

    buf_init(&b, LIMIT_JSON_RESULT);
    buf_puts(&b, "{");
    buf_json_str(&b, "box", r->box_id);
    buf_json_bool(&b, "started", r->started);
    put_result(&b, r, exit_status);
    buf_json_bool(&b, "from_slot", r->from_slot);
    put_belts(&b, r);
    buf_puts(&b, "}\n");
    if (!b.failed)
        (void)fd_write_full(o->json_fd, b.data, b.len);
}

static void print_failure(const struct options *o, const struct error *err)
{
    autobuf b;

    if (!o->json) {
        log_error("%s", err->msg);
        return;
    }
    buf_init(&b, LIMIT_JSON_RESULT);
    buf_puts(&b, "{");
    buf_json_bool(&b, "started", false);
    buf_json_num(&b, "exit", EXIT_OURS);
    buf_json_key(&b, "error");
    buf_puts(&b, "{");
    buf_json_str(&b, "code", error_code_name(err->code));
    buf_json_str(&b, "message", err->msg);
    buf_puts(&b, "}}\n");
    (void)fd_write_full(o->json_fd, b.data, b.len);
}

static void print_end(const struct options *o, const struct run_result *r)
{
    char text[256];

    bool at_folder = r->exec_at && strcmp(r->exec_at, "execute") != 0;

    if (!r->started && r->exec_sys)
        log_error("%s '%s': %s", r->exec_at ? r->exec_at : "execute",
                  !at_folder ? o->command[0]
                  : o->chdir ? o->chdir
                             : box_workspace(o),
                  strerror(r->exec_sys));
    else if (!o->quiet && run_limit_text(r, text, sizeof(text))[0])
        log_error("%s", text);
}

/* ---- the verb ---- */

static bool has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

static int run(struct options *o, struct record *rec, struct error *err)
{
    struct box_exec what = {.argv = o->command,
                            .env = o->env,
                            .cwd = o->chdir ? o->chdir : box_workspace(o),
                            .stdio = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}};
    struct run_request req = {.engine = &engine_native,
                              .spec = &o->spec,
                              .exec = &what,
                              .terminal = has_terminal(),
                              .on_box = begin_record,
                              .arg = rec};
    struct run_result res;
    int status;

    if (req.terminal)
        tty_size(STDIN_FILENO, &what.rows, &what.cols);
    if (run_command(&req, &res, err) < 0)
        return -1;
    res.belts = rec->belts;
    status = run_exit_status(&res);
    end_record(rec, &res, status);
    if (o->json)
        print_json(o, &res, status);
    print_end(o, &res);
    return status;
}

int cmd_exec(struct options *o)
{
    struct record rec = {.o = o, .audit = {.dir = -1}};
    struct error err = {0};
    int status = -1;

    if (!o->command) {
        log_error("no command: write 'clawden-sandbox exec [options] -- command [words]'");
        return EXIT_USAGE;
    }
    if (outside_is_near())
        return cmd_outside(o);
    if (prepare(o, &err) >= 0 && audit_open(&rec.audit, &err) >= 0)
        status = run(o, &rec, &err);
    if (status < 0)
        print_failure(o, &err);
    audit_close(&rec.audit);
    return status < 0 ? EXIT_OURS : status;
}
