/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "cmd/clawden/sandbox.h"
#include "image/image.h"

/* OpenClaw's own images are compared by name, and by what the name means in the store by now. */
enum match { MATCH_UNKNOWN, MATCH_NO, MATCH_YES };

struct row {
    const struct box_record *r;
    struct box_state state;
    int64_t created_ms, used_ms;
    enum match match;
};

struct listing {
    struct box_record **boxes;
    struct row *rows;
    size_t n, running, mismatched;
};

static void usage(void)
{
    puts(
        "clawden sandbox list [--session KEY | --agent ID] [--browser] [--json]\n"
        "\n"
        "The boxes of sessions and agents, newest first: those that ClawDen made, and those that\n"
        "OpenClaw made through the drop-in docker. Other boxes: clawden ps -a\n"
        "\n"
        "  --session KEY       only those of a scope key, or of the scope that this session is in\n"
        "  --agent ID          only those of an agent\n"
        "  --browser           those of browsers instead\n"
        "  --json              {\"containers\":[...],\"browsers\":[...]}, as OpenClaw prints it");
}

/* ---- looking ---- */

static enum match match_of(const struct config *c, const struct box_record *r, bool browser)
{
    autoptr(image) image = NULL;
    char agent[NAMES_AGENT];
    struct settings s = {0};
    struct error none;
    const char *want;
    enum match m;

    sandbox_agent(r, agent);
    if (!c || config_for_agent(c, agent[0] ? agent : "main", &s, &none) < 0)
        return MATCH_UNKNOWN;
    want = settings_text(&s, browser ? SETTING_BROWSER_IMAGE : SETTING_IMAGE);
    m = want && r->image && strcmp(want, r->image) == 0 ? MATCH_YES : MATCH_NO;
    settings_done(&s);
    if (m == MATCH_YES && image_find(r->image, &image, &none) >= 0 &&
        strcmp(image->id, r->image_id) != 0)
        m = MATCH_NO;
    return m;
}

static int64_t created_ms(const struct box_record *r)
{
    const char *label = scope_label(r, LABEL_CREATED);
    long long ms = label ? strtoll(label, NULL, 10) : 0;

    return ms > 0 ? ms : r->created_usec / 1000;
}

static int look(struct listing *l, const struct config *c, struct settings_args *a, bool browser)
{
    char scope[NAMES_KEY];
    struct error err;
    size_t all = 0;

    if (sandbox_list(&l->boxes, &err) < 0) {
        log_error("%s", err.msg);
        return -1;
    }
    sandbox_scope_asked(a, scope);
    while (l->boxes[all])
        all++;
    l->rows = calloc(all + 1, sizeof(*l->rows));
    if (!l->rows)
        abort();
    for (size_t i = 0; i < all; i++) {
        struct row *w = &l->rows[l->n];

        if (!sandbox_is_listed(l->boxes[i], browser) || !sandbox_is_asked(l->boxes[i], a, scope) ||
            sandbox_state(l->boxes[i], &w->state, &err) < 0) /* gone meanwhile */
            continue;
        w->r = l->boxes[i];
        w->created_ms = created_ms(w->r);
        w->used_ms = w->state.used_usec / 1000;
        w->match = match_of(c, w->r, browser);
        l->running += w->state.running;
        l->mismatched += w->match == MATCH_NO;
        l->n++;
    }
    return 0;
}

/* ---- JSON ---- */

/* The host's folder that is the box's working folder. */
static json_t *workspace_of(const struct box_record *r)
{
    for (size_t i = 0; i < r->n_mounts; i++)
        if (r->mounts[i].kind == BOX_BIND && r->mounts[i].source &&
            strcmp(r->mounts[i].target, r->workdir ? r->workdir : "/workspace") == 0)
            return json_string(r->mounts[i].source);
    return json_null();
}

static json_t *json_of(const struct row *w)
{
    const struct box_record *r = w->r;
    json_t *o = json_object();

    (void)json_object_set_new(o, "containerName", json_string(r->name));
    (void)json_object_set_new(o, "backendId", json_string("clawden"));
    (void)json_object_set_new(o, "runtimeLabel", json_string(r->name));
    (void)json_object_set_new(o, "sessionKey", json_string(sandbox_key(r)));
    (void)json_object_set_new(o, "createdAtMs", json_integer(w->created_ms));
    (void)json_object_set_new(o, "lastUsedAtMs", json_integer(w->used_ms));
    (void)json_object_set_new(o, "image", json_string(r->image ? r->image : ""));
    (void)json_object_set_new(o, "configLabelKind", json_string("Image"));
    (void)json_object_set_new(o, "configHash",
                              scope_label(r, LABEL_HASH) ? json_string(scope_label(r, LABEL_HASH))
                                                         : json_null());
    (void)json_object_set_new(o, "workspaceDir", workspace_of(r));
    (void)json_object_set_new(o, "running", json_boolean(w->state.running));
    (void)json_object_set_new(o, "imageMatch",
                              w->match == MATCH_UNKNOWN ? json_null()
                                                        : json_boolean(w->match == MATCH_YES));
    return o;
}

static void print_json(const struct listing *l, bool browser)
{
    json_t *list = json_array(), *empty = json_array(), *all = json_object();

    for (size_t i = 0; i < l->n; i++)
        (void)json_array_append_new(list, json_of(&l->rows[i]));
    (void)json_object_set_new(all, "containers", browser ? empty : list);
    (void)json_object_set_new(all, "browsers", browser ? list : empty);
    (void)json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

/* ---- text ---- */

static const char *span(int64_t ms, char *text, size_t size)
{
    long long s = ms < 0 ? 0 : ms / 1000;

    if (s < 60)
        (void)snprintf(text, size, "%llds", s);
    else if (s < 3600)
        (void)snprintf(text, size, "%lldm", s / 60);
    else if (s < 86400)
        (void)snprintf(text, size, "%lldh %lldm", s / 3600, s / 60 % 60);
    else
        (void)snprintf(text, size, "%lldd %lldh", s / 86400, s / 3600 % 24);
    return text;
}

/* The client's marks are for people at a terminal; in a file or a pipe the words do. */
static const char *mark(const char *sign, const char *words)
{
    return isatty(STDOUT_FILENO) ? sign : words;
}

static void print_row(const struct row *w, int64_t now_ms)
{
    char age[32], idle[32];

    printf("%s\n", w->r->name);
    printf("  Status:  %s\n", w->state.paused    ? "paused"
                              : w->state.running ? mark("🟢 running", "running")
                                                 : mark("⚫ stopped", "stopped"));
    printf("  Image:   %s%s\n", w->r->image ? w->r->image : "",
           w->match == MATCH_YES  ? mark(" ✓", " (match)")
           : w->match == MATCH_NO ? mark(" ⚠️ mismatch", " (mismatch)")
                                  : "");
    printf("  Backend: clawden\n");
    printf("  Age:     %s\n", span(now_ms - w->created_ms, age, sizeof(age)));
    printf("  Idle:    %s\n", span(now_ms - w->used_ms, idle, sizeof(idle)));
    printf("  Session: %s\n\n", sandbox_key(w->r));
}

static void print_text(const struct listing *l, bool browser)
{
    int64_t now_ms = (int64_t)time(NULL) * 1000;

    if (l->n == 0) {
        printf("No sandbox %s found.\n", browser ? "browsers" : "boxes");
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        print_row(&l->rows[i], now_ms);
    printf("Total: %zu (%zu running)\n", l->n, l->running);
    if (l->mismatched)
        printf("%zu with another image than configured: 'clawden sandbox recreate --all' removes "
               "them, the next call makes them anew\n",
               l->mismatched);
}

int sandbox_verb_list(int argc, char **argv)
{
    auto_settings_args a = {.json = false};
    autoptr(config) c = NULL;
    struct listing l = {.n = 0};
    bool browser = false;
    int r = 0;

    for (int i = 1; i < argc; i++) {
        if (sandbox_wants_help(argv[i])) {
            usage();
            return 0;
        }
        if (strcmp(argv[i], "--browser") == 0)
            browser = true;
        else if ((r = settings_args_take(&a, argc, argv, &i)) <= 0)
            return r < 0 ? 2 : sandbox_unknown("list", argv[i]);
    }
    (void)sandbox_load(&a, &c); /* a list without a word about images is better than none */
    r = look(&l, c, &a, browser);
    if (r >= 0 && a.json)
        print_json(&l, browser);
    else if (r >= 0)
        print_text(&l, browser);
    free(l.rows);
    sandbox_list_free(l.boxes);
    return r < 0;
}
