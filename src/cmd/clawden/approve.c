/* SPDX-License-Identifier: Apache-2.0 */
/* `clawden approve`: calls that wait for a person's yes. Works on the store itself: a gateway need
 * not run, and one that does sees the answer with the next call. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/state.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "guard/approvals.h"

struct asked {
    const char *id;
    bool deny, json;
};

/* What is opened for one answer. */
struct place {
    int data;
    struct audit audit;
    struct store *store;
};

static void usage(void)
{
    puts(
        "clawden approve: calls of agents that wait for your yes.\n"
        "\n"
        "  clawden approve [--json]      what waits: which tool, for which session, by which rule\n"
        "  clawden approve ID            allow it: the agent may make this very call, once\n"
        "  clawden approve --deny ID     refuse it, or take back a yes that was not used yet\n"
        "\n"
        "Which calls must wait is a setting, 'approve' of a sandbox block (openclaw.json or\n"
        "clawden.yaml): tools by name or pattern, and command lines after exec:\n"
        "\n"
        "  { agents: { defaults: { sandbox: { approve: ['apply_patch', 'exec:git *push*'] } } } }\n"
        "\n"
        "The agent is told the ID with the refusal, and makes the same call again after the yes.\n"
        "A yes is for the same tool and arguments, of the same token, in the same session; with\n"
        "anything else the agent asks anew. Question and answer are good for ten minutes each.\n"
        "What you say is in the record (clawden audit).");
}

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- opening ---- */

static void place_done(struct place *p)
{
    store_free(p->store);
    if (p->audit.dir >= 0)
        audit_close(&p->audit);
    close_fd(&p->data);
}

static int place_open(struct place *p, struct error *err)
{
    autofree char *note = NULL;
    int r = p->data = state_open_data(err);

    if (r >= 0)
        r = audit_open(&p->audit, err);
    if (r >= 0)
        r = store_open(p->data, &p->store, &note, err);
    if (note)
        log_warn("%s", note);
    return r;
}

/* ---- listing ---- */

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

/* A session's key is what somebody else chose: a terminal never sees a control byte. */
static char *plain(const json_t *o, const char *name)
{
    return json_dumps(json_object_get(o, name), JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
}

static void print_row(const json_t *o, int64_t now)
{
    autofree char *session = plain(o, "session"), *rule = plain(o, "rule");
    int64_t left = json_integer_value(json_object_get(o, "expires")) - now;

    printf("%-16s  %-12s  %2" PRId64 ":%02" PRId64 "  %-12s  %s  %s\n    %s\n",
           text_of(o, "approval"), text_of(o, "token"), left / 60000, left / 1000 % 60,
           text_of(o, "tool"), session ? session : "?", rule ? rule : "?", text_of(o, "arguments"));
}

static int list(struct place *p, const struct asked *q, struct error *err)
{
    json_t *all = NULL, *one;
    int64_t now = now_ms();
    size_t i;
    int r = store_approvals(p->store, now, &all, err);

    if (r < 0)
        return r;
    if (q->json) {
        (void)json_dumpf(all, stdout, JSON_COMPACT);
        puts("");
    } else if (json_array_size(all) == 0) {
        puts("nothing waits");
    } else {
        printf("%-16s  %-12s  %5s  %-12s  %s\n", "ID", "TOKEN", "LEFT", "TOOL", "SESSION, RULE");
        json_array_foreach(all, i, one) print_row(one, now);
    }
    json_decref(all);
    return 0;
}

/* ---- answering ---- */

static int answer(struct place *p, const struct asked *q, struct error *err)
{
    const struct approvals a = {.store = p->store, .audit = &p->audit};
    struct store_approval x;
    int r = approvals_answer(&a, NULL, q->id, !q->deny, now_ms(), &x, err);

    if (r < 0)
        return r;
    if (q->json)
        printf("{\"approval\":\"%s\",\"state\":\"%s\"}\n", x.id, approval_state_name(x.state));
    else
        printf("%s: %s %s\n", approval_state_name(x.state), x.tool, x.arguments);
    return 0;
}

/* ---- words ---- */

static bool read_words(struct asked *q, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            q->json = true;
        } else if (strcmp(argv[i], "--deny") == 0) {
            q->deny = true;
        } else if (argv[i][0] != '-' && !q->id) {
            q->id = argv[i];
        } else {
            (void)usage_unknown("clawden approve", argv[i]);
            return false;
        }
    }
    if (q->deny && !q->id)
        log_error("approve --deny: which one? 'clawden approve' shows their ids");
    return !q->deny || q->id;
}

int cmd_approve(int argc, char **argv)
{
    cleanup_(place_done) struct place p = {.data = -1, .audit.dir = -1};
    struct asked q = {0};
    struct error err = {0};
    int r;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage();
        return 0;
    }
    if (!read_words(&q, argc, argv))
        return 2;
    r = place_open(&p, &err);
    if (r >= 0)
        r = q.id ? answer(&p, &q, &err) : list(&p, &q, &err);
    if (r >= 0)
        return 0;
    log_error("%s", err.msg);
    return 1;
}
