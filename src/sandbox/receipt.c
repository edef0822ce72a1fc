/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/receipt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/redact.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"

static void put_box(struct buf *f, const struct box_record *r)
{
    buf_json_str(f, "box", r->id);
    buf_json_str(f, "name", r->name);
    buf_json_num(f, "uid", (long long)getuid());
}

int receipt_box(const char *event, const struct box_record *r, struct error *err)
{
    struct audit audit;
    autobuf f;
    int e = audit_open(&audit, err);

    buf_init(&f, LIMIT_AUDIT_LINE);
    if (e < 0)
        return e;
    put_box(&f, r);
    if (r->image)
        buf_json_str(&f, "image", r->image);
    e = audit_append(&audit, event, r->name, &f, err);
    audit_close(&audit);
    return e;
}

int receipt_begin(struct receipt *x, struct error *err)
{
    unsigned char raw[8] = {0};
    autobuf f;
    int e = audit_open(&x->audit, err);

    buf_init(&f, LIMIT_AUDIT_LINE);
    if (e < 0)
        return e;
    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return error_sys(err, -errno, "get random bytes for the receipt");
    for (size_t i = 0; i < sizeof(raw); i++)
        (void)snprintf(x->call + 2 * i, 3, "%02x", raw[i]);
    put_box(&f, x->r);
    buf_json_str(&f, "call", x->call);
    redact_argv(&f, x->argv);
    redact_env_names(&f, x->env);
    e = audit_append(&x->audit, "exec.begin", x->argv[0], &f, err);
    if (e < 0)
        audit_close(&x->audit);
    return e;
}

void receipt_end(struct receipt *x, const struct run_result *result)
{
    struct error err;
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "box", x->r->id);
    buf_json_str(&f, "call", x->call);
    buf_json_num(&f, "exit", run_exit_status(result));
    if (result->started && WIFSIGNALED(result->status))
        buf_json_num(&f, "signal", WTERMSIG(result->status));
    buf_json_seconds(&f, "wall_seconds", result->wall_usec);
    buf_json_seconds(&f, "cpu_seconds", result->usage.cpu_usec);
    if (audit_append(&x->audit, "exec.end", x->argv[0], &f, &err) < 0)
        log_warn("%s: the end of this command is not recorded", err.msg);
    audit_close(&x->audit);
}
