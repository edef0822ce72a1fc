/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a job: its result, its receipt, its output piece by piece. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "mcp/base64.h"
#include "tool/jobs.h"
#include "tool/tool.h"

static bool is_utf8(const char *s, size_t len)
{
    uint32_t c;

    for (size_t n; len; s += n, len -= n)
        if (!(n = utf8_take(s, len, &c)))
            return false;
    return true;
}

json_t *job_event(const struct spool_piece *p, const char *data)
{
    json_t *e = json_object();

    (void)json_object_set_new(e, "seq", json_integer((json_int_t)p->next));
    (void)json_object_set_new(e, "type", json_string("output"));
    (void)json_object_set_new(e, "stream",
                              json_string(p->stream == SPOOL_OUT ? "stdout" : "stderr"));
    if (is_utf8(data, p->len)) {
        (void)json_object_set_new(e, "data", json_stringn_nocheck(data, p->len));
    } else {
        autobuf b;

        buf_init(&b, 2 * p->len + 8);
        base64_put(data, p->len, BASE64_PLAIN, &b);
        (void)json_object_set_new(e, "data64", json_stringn_nocheck(b.data ? b.data : "", b.len));
    }
    return e;
}

/* ---- the result ---- */

static const char *end_name(const struct job *j)
{
    static const char *const names[] = {"running", "exited", "signaled",
                                        "limit",   "failed", "cancelled"};

    return names[j->is_over ? j->end : JOB_RUNNING];
}

static const char *signal_name(int signo, char *text, size_t size)
{
    const char *abbreviation = sigabbrev_np(signo);

    if (abbreviation)
        (void)snprintf(text, size, "SIG%s", abbreviation);
    else
        (void)snprintf(text, size, "%d", signo);
    return text;
}

static void set_stream(json_t *to, const struct job *j, enum spool_stream s, const char *name)
{
    autobuf b;

    buf_init(&b, j->spool.head[s].max + SPOOL_TAIL + 256);
    (void)spool_text(&j->spool, s, &b);
    (void)json_object_set_new(to, name, tool_text(b.data, b.len));
}

static void set_status(json_t *to, const struct job *j)
{
    char text[32];
    bool killed = j->is_over && WIFSIGNALED(j->status);

    (void)json_object_set_new(to, "status", json_string(end_name(j)));
    if (j->is_over && WIFEXITED(j->status))
        (void)json_object_set_new(to, "exitCode", json_integer(WEXITSTATUS(j->status)));
    if (killed)
        (void)json_object_set_new(
            to, "signal", json_string(signal_name(WTERMSIG(j->status), text, sizeof(text))));
    if (j->is_over && j->end == JOB_LIMIT) {
        bool is_time = strcmp(j->limit, "time") == 0;
        double unit = is_time ? 1e6 : 1;
        json_t *l = json_object();

        (void)json_object_set_new(l, "name", json_string(j->limit));
        (void)json_object_set_new(l, "value", json_real((double)j->limit_value / unit));
        (void)json_object_set_new(l, "seen", json_real((double)j->limit_seen / unit));
        (void)json_object_set_new(to, "limit", l);
    }
    if (j->reason[0])
        (void)json_object_set_new(to, "reason", tool_text(j->reason, strlen(j->reason)));
}

static bool is_cut(const struct job *j)
{
    for (int i = 0; i < SPOOL_STREAMS; i++)
        if (j->spool.bytes[i] > j->spool.head[i].max + SPOOL_TAIL)
            return true;
    return j->spool.dropped > 0;
}

json_t *job_result(const struct job *j, bool with_output)
{
    json_t *r = json_object();
    bool cut = is_cut(j);

    set_status(r, j);
    if (with_output) {
        set_stream(r, j, SPOOL_OUT, "stdout");
        set_stream(r, j, SPOOL_ERR, "stderr");
    }
    (void)json_object_set_new(r, "truncated", json_boolean(cut));
    (void)json_object_set_new(
        r, "outputBytes",
        json_integer((json_int_t)(j->spool.bytes[0] + j->spool.bytes[1] + j->spool.dropped)));
    (void)json_object_set_new(r, "next", json_integer((json_int_t)j->spool.end));
    if (!j->is_over || cut)
        (void)json_object_set_new(r, "process", json_string(j->id));
    return r;
}

/* ---- the network ---- */

json_t *job_traffic(const struct box_record *r)
{
    json_t *all = NULL, *hosts = json_object(), *one;
    struct error none;
    autobuf text;
    size_t i;

    buf_init(&text, LIMIT_JSON_RESULT);
    if (sandbox_has_network(r) && sandbox_traffic(r, &text, &none) >= 0)
        all = json_loadb(text.data, text.len, 0, NULL);
    json_array_foreach(json_object_get(all, "hosts"), i, one)
    {
        const char *host = json_string_value(json_object_get(one, "host"));

        if (host)
            (void)json_object_set(hosts, host, one);
    }
    json_decref(all);
    if (all)
        return hosts;
    json_decref(hosts);
    return NULL;
}

json_t *job_traffic_since(json_t *before, json_t *now)
{
    static const char *const counters[] = {"connections", "denied", "bytesOut", "bytesIn"};
    json_t *list = json_array(), *one;
    const char *host;

    json_object_foreach(now, host, one)
    {
        json_t *old = json_object_get(before, host), *since = json_object();
        bool more = false;

        (void)json_object_set_new(since, "host", json_string(host));
        for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
            json_int_t n = json_integer_value(json_object_get(one, counters[i])) -
                           json_integer_value(json_object_get(old, counters[i]));

            more |= n > 0;
            (void)json_object_set_new(since, counters[i], json_integer(n));
        }
        if (more)
            (void)json_array_append(list, since);
        json_decref(since);
    }
    return list;
}

json_t *job_receipt(const struct job *j)
{
    json_t *r = json_object();

    (void)json_object_set_new(r, "wallSeconds",
                              json_real((double)(j->ended_usec - j->begun_usec) / 1e6));
    (void)json_object_set_new(r, "cpuSeconds", json_real((double)j->cpu_usec / 1e6));
    (void)json_object_set_new(r, "peakMemoryBytes", json_integer((json_int_t)j->peak_bytes));
    (void)json_object_set_new(
        r, "outputBytes",
        json_integer((json_int_t)(j->spool.bytes[0] + j->spool.bytes[1] + j->spool.dropped)));
    if (j->changed.files)
        (void)json_object_set(r, "files", j->changed.files);
    if (j->changed.files && j->changed.is_cut)
        (void)json_object_set_new(r, "filesTruncated", json_true());
    if (j->network)
        (void)json_object_set(r, "network", j->network);
    return r;
}
