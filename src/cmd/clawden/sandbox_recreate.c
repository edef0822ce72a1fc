/* SPDX-License-Identifier: Apache-2.0 */
/* `recreate` and `rm`: both remove boxes; the next call that needs one makes it anew. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "cmd/clawden/sandbox.h"

struct removal {
    const char *verb;
    struct settings_args args;
    bool all, browser, force;
    char **names; /* of rm; borrowed */
    int n_names;
    struct box_record **chosen; /* each owned */
    size_t n;
};

static void usage(const char *verb)
{
    bool rm = strcmp(verb, "rm") == 0;

    printf("clawden sandbox %s %s--all | --session KEY | --agent ID [--browser] [--force] "
           "[--json]\n",
           verb, rm ? "NAME... | " : "");
    puts("\n"
         "Removes boxes of sessions and agents, running or not; the next call makes them anew, "
         "with\n"
         "the configuration of then. Workspaces stay what they are: folders of yours.\n");
    if (rm)
        puts("  NAME                boxes by name, id or the beginning of an id; nobody is asked");
    puts(
        "  --all               every one\n"
        "  --session KEY       those of a scope key, or of the scope that this session is in: the\n"
        "                      isolated box and the one with a network\n"
        "  --agent ID          those of an agent\n"
        "  --browser           those of browsers instead\n"
        "  --force             do not ask\n"
        "\n"
        "Exit status: 0 all removed, 1 some could not be, 2 the words were wrong.\n"
        "\n"
        "  clawden sandbox recreate --session agent:main:work\n"
        "  clawden sandbox recreate --all --force");
}

/* ---- choosing ---- */

static void add(struct removal *q, struct box_record *r)
{
    q->chosen = realloc(q->chosen, (q->n + 1) * sizeof(*q->chosen));
    if (!q->chosen)
        abort();
    q->chosen[q->n++] = r;
}

static int choose(struct removal *q)
{
    struct box_record **list;
    char scope[NAMES_KEY] = "";
    struct error err;

    if (sandbox_list(&list, &err) < 0) {
        log_error("%s", err.msg);
        return -1;
    }
    sandbox_scope_asked(&q->args, scope);
    for (size_t i = 0; list[i]; i++) {
        struct box_record *r = list[i];

        if (sandbox_is_listed(r, q->browser) && sandbox_is_asked(r, &q->args, scope))
            add(q, r);
        else
            box_record_free(r);
    }
    free(list);
    return 0;
}

static int choose_by_name(struct removal *q)
{
    int bad = 0;

    for (int i = 0; i < q->n_names; i++) {
        struct box_record *r = NULL;
        struct error err;

        if (sandbox_find(q->names[i], &r, &err) < 0) {
            log_error("%s ('clawden sandbox list' shows them)", err.msg);
            bad++;
        } else if (!sandbox_is_listed(r, false) && !sandbox_is_listed(r, true)) {
            log_error("'%s' is not a box of a session or an agent: clawden docker rm -f %s",
                      q->names[i], q->names[i]);
            box_record_free(r);
            bad++;
        } else {
            add(q, r);
        }
    }
    return bad;
}

/* ---- asking ---- */

/* 0: go on; otherwise leave with that status. */
static int ask(const struct removal *q)
{
    char answer[16];

    if (q->force || q->names || q->n == 0)
        return 0;
    if (!isatty(STDIN_FILENO) || q->args.json) {
        log_error("%zu boxes would be removed, and there is nobody to ask: add --force", q->n);
        return 2;
    }
    printf("Boxes to be removed:\n");
    for (size_t i = 0; i < q->n; i++)
        printf("  %s  %s\n", q->chosen[i]->name, sandbox_key(q->chosen[i]));
    printf("Commands that run in them are killed. Remove %zu? [y/N] ", q->n);
    (void)fflush(stdout);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    puts("Cancelled.");
    return 1;
}

/* ---- removing ---- */

static void say(const struct removal *q, json_t *removed, json_t *failed, size_t i,
                const struct error *why)
{
    const char *name = q->chosen[i]->name;

    if (why)
        (void)json_array_append_new(
            failed, json_pack("{s:s, s:s}", "containerName", name, "error", why->msg));
    else
        (void)json_array_append_new(removed, json_string(name));
    if (why)
        log_error("%s: %s", name, why->msg);
    else if (!q->args.json)
        printf("%s %s\n", isatty(STDOUT_FILENO) ? "✓ Removed" : "removed", name);
}

static int remove_all(const struct removal *q, size_t failures)
{
    json_t *removed = json_array(), *failed = json_array(), *all;

    for (size_t i = 0; i < q->n; i++) {
        struct error err;
        int r = sandbox_remove(q->chosen[i], true, &err);

        /* Somebody else was faster: it is gone, as asked for. */
        say(q, removed, failed, i, r < 0 && r != -ERR_NOT_FOUND ? &err : NULL);
    }
    failures += json_array_size(failed);
    if (q->args.json) {
        all = json_pack("{s:O, s:O}", "removed", removed, "failed", failed);
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
    } else if (q->n || failures) {
        printf("Done: %zu removed, %zu failed\n", json_array_size(removed), failures);
    } else {
        puts("No boxes match: nothing to remove.");
    }
    json_decref(removed);
    json_decref(failed);
    return failures > 0;
}

/* ---- the verbs ---- */

/* -1: go on. */
static int read_words(struct removal *q, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int r;

        if (sandbox_wants_help(argv[i])) {
            usage(q->verb);
            return 0;
        }
        if (strcmp(argv[i], "--all") == 0) {
            q->all = true;
        } else if (strcmp(argv[i], "--browser") == 0) {
            q->browser = true;
        } else if (strcmp(argv[i], "--force") == 0 || strcmp(argv[i], "-f") == 0) {
            q->force = true;
        } else if (argv[i][0] != '-' && strcmp(q->verb, "rm") == 0) {
            argv[1 + q->n_names++] = argv[i]; /* at the front, where words were read already */
            q->names = argv + 1;
        } else {
            r = settings_args_take(&q->args, argc, argv, &i);
            if (r <= 0)
                return r < 0 ? 2 : sandbox_unknown(q->verb, argv[i]);
        }
    }
    if ((q->names != NULL) + q->all + (q->args.session != NULL) + (q->args.agent != NULL) == 1)
        return -1;
    log_error("sandbox %s: say which: exactly one of %s--all, --session KEY, --agent ID", q->verb,
              strcmp(q->verb, "rm") == 0 ? "NAME..., " : "");
    return 2;
}

int sandbox_verb_remove(int argc, char **argv)
{
    struct removal q = {.verb = argv[0]};
    int status = read_words(&q, argc, argv), missing = 0;

    if (status < 0) {
        missing = q.names ? choose_by_name(&q) : choose(&q);
        status = missing < 0 ? 1 : ask(&q);
        if (status == 0)
            status = remove_all(&q, (size_t)missing);
    }
    for (size_t i = 0; i < q.n; i++)
        box_record_free(q.chosen[i]);
    free(q.chosen);
    settings_args_done(&q.args);
    return status;
}
