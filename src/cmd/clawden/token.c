/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/units.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "guard/tokens.h"

#define DAY_SEC 86400

struct asked {
    struct token token;
    char *sessions[LIMIT_PATTERNS + 1];
    size_t n_sessions;
    const char *id;
    bool json;
};

static void usage(void)
{
    puts("clawden token: who may call the gateway.\n"
         "\n"
         "  clawden token create --agent ID --session PATTERN... [--right "
         "read|run|admin|approve]...\n"
         "                       [--expires 30d] [--note TEXT] [--json]\n"
         "  clawden token list [--json]\n"
         "  clawden token rotate ID       another secret for it: the old one is refused at once\n"
         "  clawden token revoke ID\n"
         "\n"
         "A token is shown once, when it is made; what is kept is a digest. It is good for the\n"
         "sessions of its agent whose keys match a pattern ('*' is any run of characters) and for "
         "its\n"
         "rights: read looks, run (the standard) changes and runs as well, admin is for "
         "everybody's\n"
         "sessions. approve says yes or no to calls that wait for a person (clawden approve "
         "--help); it\n"
         "is given beside another right, or alone to who does nothing else.\n"
         "\n"
         "  clawden token create --agent main --session '*'\n"
         "  clawden token create --agent ci --session 'agent:ci:build-*' --expires 12h --note "
         "'nightly'\n"
         "  clawden token create --agent '*' --session '*' --right approve --note phone");
}

/* ---- words ---- */

static int take_right(struct asked *q, const char *value)
{
    if (strcmp(value, "read") == 0)
        q->token.rights |= RIGHT_READ;
    else if (strcmp(value, "run") == 0)
        q->token.rights |= RIGHT_READ | RIGHT_RUN;
    else if (strcmp(value, "admin") == 0)
        q->token.rights |= RIGHT_READ | RIGHT_RUN | RIGHT_ADMIN;
    else if (strcmp(value, "approve") == 0)
        q->token.rights |= RIGHT_APPROVE;
    else {
        log_error("--right '%s': write read, run, admin or approve", value);
        return -1;
    }
    return 0;
}

/* "30d", or what units know. */
static int take_expiry(struct asked *q, const char *value)
{
    size_t n = strlen(value);
    uint64_t usec = 0, days = 0;
    char number[16];

    if (n > 1 && n < sizeof(number) && value[n - 1] == 'd') {
        (void)snprintf(number, sizeof(number), "%.*s", (int)n - 1, value);
        if (units_parse_count(number, 36500, &days) >= 0)
            usec = days * DAY_SEC * 1000000ull;
    } else if (units_parse_duration(value, &usec) < 0) {
        usec = 0;
    }
    if (usec < 1000000) {
        log_error("--expires '%s': write a time from now like 12h or 30d", value);
        return -1;
    }
    q->token.expires = (int64_t)time(NULL) + (int64_t)(usec / 1000000);
    return 0;
}

static int take_value(struct asked *q, const char *name, char *value)
{
    if (strcmp(name, "--agent") == 0) {
        q->token.agent = value;
    } else if (strcmp(name, "--session") == 0) {
        if (q->n_sessions >= LIMIT_PATTERNS) {
            log_error("--session: at most %u patterns", LIMIT_PATTERNS);
            return -1;
        }
        q->sessions[q->n_sessions++] = value;
    } else if (strcmp(name, "--right") == 0) {
        return take_right(q, value);
    } else if (strcmp(name, "--expires") == 0) {
        return take_expiry(q, value);
    } else if (strcmp(name, "--note") == 0) {
        q->token.note = value;
    } else {
        (void)usage_unknown("clawden token", name);
        return -1;
    }
    return 0;
}

/* Negative: go on; else the exit status. */
static int read_words(struct asked *q, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *equals = strchr(argv[i], '=');

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) {
            q->json = true;
        } else if (argv[i][0] != '-' && !q->id) {
            q->id = argv[i];
        } else if (argv[i][0] == '-' && equals) {
            *equals = 0;
            if (take_value(q, argv[i], equals + 1) < 0)
                return 2;
        } else if (i + 1 < argc) {
            if (take_value(q, argv[i], argv[i + 1]) < 0)
                return 2;
            i++;
        } else {
            log_error("token: '%s' is not known, or lacks its value: see 'clawden token --help'",
                      argv[i]);
            return 2;
        }
    }
    return -1;
}

/* ---- verbs ---- */

/* That somebody may call from now on, or not any more, is part of the record. */
static int record(const char *event, const char *id, struct error *err)
{
    struct audit audit;
    autobuf f;
    int r = audit_open(&audit, err);

    buf_init(&f, LIMIT_AUDIT_LINE);
    if (r < 0)
        return r;
    buf_json_str(&f, "token", id);
    buf_json_num(&f, "uid", (long long)getuid());
    r = audit_append(&audit, event, id, &f, err);
    audit_close(&audit);
    return r;
}

static void print_new(const struct asked *q, const char *id, const char *text)
{
    if (q->json)
        printf("{\"id\":\"%s\",\"token\":\"%s\"}\n", id, text);
    else
        printf("%s\n", text);
}

static int make(struct asked *q, struct error *err)
{
    char text[TOKEN_TEXT], id[TOKEN_ID];
    int r;

    if (!q->token.rights)
        q->token.rights = RIGHT_READ | RIGHT_RUN;
    q->token.sessions = q->sessions;
    r = tokens_create(&q->token, text, id, err);
    if (r >= 0)
        r = record("token.create", id, err);
    if (r >= 0)
        print_new(q, id, text);
    explicit_bzero(text, sizeof(text));
    return r;
}

static int rotate(struct asked *q, struct error *err)
{
    char text[TOKEN_TEXT];
    int r = tokens_rotate(q->id, text, err);

    if (r >= 0)
        r = record("token.rotate", q->id, err);
    if (r >= 0)
        print_new(q, q->id, text);
    explicit_bzero(text, sizeof(text));
    return r;
}

static int take_back(struct asked *q, struct error *err)
{
    int r = tokens_revoke(q->id, err);

    return r < 0 ? r : record("token.revoke", q->id, err);
}

static void put_token(struct buf *b, const struct token *t)
{
    buf_puts(b, "{");
    buf_json_str(b, "id", t->id);
    buf_json_str(b, "agent", t->agent);
    buf_json_strings(b, "sessions", t->sessions, SIZE_MAX);
    buf_json_key(b, "rights");
    for (unsigned r = RIGHT_READ, n = 0; r <= RIGHT_APPROVE; r <<= 1)
        if (t->rights & r)
            buf_printf(b, "%s\"%s\"", n++ ? "," : "[", right_name((enum right)r));
    buf_puts(b, "]");
    buf_json_num(b, "created", t->created);
    buf_json_num(b, "expires", t->expires);
    buf_json_str(b, "note", t->note);
    buf_puts(b, "}");
}

static int list_json(const struct tokens *tokens)
{
    const struct token *t;
    autobuf b;

    buf_init(&b, 16u << 20);
    buf_puts(&b, "[");
    for (size_t i = 0; (t = tokens_at(tokens, i)); i++) {
        buf_puts(&b, i ? "," : "");
        put_token(&b, t);
    }
    buf_puts(&b, "]\n");
    return fd_write_full(STDOUT_FILENO, b.data, b.len);
}

/* The highest, and approve beside it. */
static const char *rights_text(unsigned rights, char *ret, size_t size)
{
    unsigned high = rights & RIGHT_ADMIN ? RIGHT_ADMIN
                    : rights & RIGHT_RUN ? RIGHT_RUN
                                         : rights & RIGHT_READ;

    (void)snprintf(ret, size, "%s%s%s", right_name((enum right)high),
                   high && rights & RIGHT_APPROVE ? "+" : "",
                   rights & RIGHT_APPROVE ? right_name(RIGHT_APPROVE) : "");
    return ret;
}

static void print_row(const struct token *t)
{
    char rights[32];
    char when[32] = "never";
    time_t at = (time_t)t->expires;
    struct tm utc;

    if (t->expires && gmtime_r(&at, &utc))
        (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &utc);
    printf("%s  %-12s %-24s %-13s %-16s %s\n", t->id, t->agent, t->sessions[0],
           rights_text(t->rights, rights, sizeof(rights)),
           t->expires && t->expires <= (int64_t)time(NULL) ? "expired" : when, t->note);
}

static int list(struct asked *q, struct error *err)
{
    autoptr(tokens) tokens = NULL;
    const struct token *t;
    int r = tokens_load(&tokens, err);

    if (r < 0)
        return r;
    if (q->json)
        return list_json(tokens);
    printf("%-12s  %-12s %-24s %-13s %-16s %s\n", "ID", "AGENT", "SESSIONS", "RIGHT",
           "EXPIRES (UTC)", "NOTE");
    for (size_t i = 0; (t = tokens_at(tokens, i)); i++)
        print_row(t);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct asked *q, struct error *err);
    bool needs_id;
} verbs[] = {{"create", make, false},
             {"list", list, false},
             {"rotate", rotate, true},
             {"revoke", take_back, true}};

int cmd_token(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "--help";
    struct asked q = {0};
    struct error err = {0};
    int status;

    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        usage();
        return argc > 1 ? 0 : 2;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        if (strcmp(verb, verbs[i].name) != 0)
            continue;
        status = read_words(&q, argc - 2, argv + 2);
        if (status >= 0)
            return status;
        if (verbs[i].run == make && (!q.token.agent || !q.n_sessions)) {
            log_error("token create: %s is missing: see 'clawden token --help'",
                      q.token.agent ? "--session PATTERN" : "--agent ID");
            return 2;
        }
        if (verbs[i].needs_id != (q.id != NULL)) {
            log_error(q.id ? "token %s: '%s' is one word too many" : "token %s: which one? %s",
                      verb, q.id ? q.id : "'clawden token list' shows their ids");
            return 2;
        }
        if (verbs[i].run(&q, &err) >= 0)
            return 0;
        log_error("%s", err.msg);
        return 1;
    }
    return usage_unknown_verb("clawden token", verb, verbs, sizeof(verbs) / sizeof(*verbs),
                              sizeof(*verbs));
}
