/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/tree.h"
#include "cmd/clawden/sandbox.h"
#include "sandbox/scope_parts.h"

#define HOUR_USEC 3600000000ll

struct pruning {
    struct settings_args args;
    bool all, browser, dry_run, workspaces;
    char root[LIMIT_PATH]; /* workspaceRoot, without links; "" if there is none */
    json_t *removed, *folders;
    unsigned failed;
};

struct candidates {
    const struct settings_args *args;
    bool browser; /* only those of browsers */
    char scope[NAMES_KEY];
    char **ids, **whys;
    size_t n;
};

static void usage(void)
{
    puts(
        "clawden sandbox prune [--all] [--session KEY | --agent ID] [--dry-run] [--workspaces] "
        "[--json]\n"
        "\n"
        "Removes boxes of sessions and agents that nobody has used for prune.idleHours, or that "
        "are\n"
        "older than prune.maxAgeDays; 0 switches a rule off. A box with a running command is "
        "never\n"
        "removed.\n"
        "\n"
        "  --all               however young and busy they were; still none with a running "
        "command\n"
        "  --session KEY       only those of a scope key, or of the scope that this session is in\n"
        "  --agent ID          only those of an agent, by its own prune settings\n"
        "  --browser           only boxes of browsers\n"
        "  --workspaces        the folders that boxes had of their own (workspaceAccess ro or "
        "none)\n"
        "                      go with them; the agents' own folders never do\n"
        "  --dry-run           only say which\n"
        "\n"
        "  clawden sandbox prune --dry-run\n"
        "  clawden sandbox prune --set prune.idleHours=1");
}

/* ---- candidates ---- */

static void note(void *arg, const struct box_record *r, const char *why)
{
    struct candidates *c = arg;

    if ((!sandbox_is_listed(r, true) && (c->browser || !sandbox_is_listed(r, false))) ||
        !sandbox_is_asked(r, c->args, c->scope))
        return;
    c->ids = realloc(c->ids, (c->n + 1) * sizeof(*c->ids));
    c->whys = realloc(c->whys, (c->n + 1) * sizeof(*c->whys));
    if (!c->ids || !c->whys || !(c->ids[c->n] = strdup(r->id)) || !(c->whys[c->n] = strdup(why)))
        abort();
    c->n++;
}

/* ---- workspaces ---- */

static bool is_used(const char *folder)
{
    struct box_record **list;
    struct error none;
    bool used = false;

    if (sandbox_list(&list, &none) < 0)
        return true;
    for (size_t i = 0; list[i]; i++)
        for (size_t m = 0; m < list[i]->n_mounts; m++)
            used |= list[i]->mounts[m].kind == BOX_BIND && list[i]->mounts[m].source &&
                    strcmp(list[i]->mounts[m].source, folder) == 0;
    sandbox_list_free(list);
    return used;
}

/* The box's own folder: `<workspaceRoot>/<slug>`, which it had mounted; "" if it had none. */
static void own_folder(const struct pruning *q, const struct box_record *r, char *ret, size_t size)
{
    char slug[NAMES_SLUG], plain[NAMES_KEY];
    const char *key = sandbox_key(r);
    enum names_version v;

    ret[0] = 0;
    sandbox_plain_key(key, plain);
    v = strcmp(plain, key) == 0 ? NAMES_PLAIN : NAMES_WORKSPACE;
    /* The shared scope's folder is the root itself, with the others in it. */
    if (!q->root[0] || strcmp(key, "shared") == 0 || names_slug(v, key, slug) < 0 || !slug[0] ||
        strchr(slug, '/') || slug[0] == '.')
        return;
    for (size_t i = 0; i < r->n_mounts; i++) {
        char path[LIMIT_PATH + NAMES_SLUG + 1];

        (void)snprintf(path, sizeof(path), "%s/%s", q->root, slug);
        if (r->mounts[i].kind == BOX_BIND && r->mounts[i].source &&
            strcmp(r->mounts[i].source, path) == 0)
            (void)snprintf(ret, size, "%s", path);
    }
}

static void prune_folder(struct pruning *q, const char *folder)
{
    autoclose int root = open(q->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r = 0;

    if (!folder[0] || access(folder, F_OK) < 0 || (!q->dry_run && is_used(folder)))
        return;
    if (!q->dry_run)
        r = root < 0 ? -errno : tree_remove(root, strrchr(folder, '/') + 1);
    if (r < 0) {
        log_error("remove '%s': %s", folder, strerror(-r));
        q->failed++;
        return;
    }
    (void)json_array_append_new(q->folders, json_string(folder));
    if (!q->args.json)
        printf("%s %s\n", q->dry_run ? "would remove" : "removed", folder);
}

/* ---- pruning ---- */

static void prune_one(struct pruning *q, const char *id, const char *why)
{
    autoptr(box_record) r = NULL;
    char folder[LIMIT_PATH + NAMES_SLUG + 1];
    struct error err;
    int e = sandbox_find(id, &r, &err);

    if (e >= 0 && !q->dry_run)
        e = sandbox_remove(r, true, &err);
    if (e == -ERR_NOT_FOUND)
        return;
    if (e < 0) {
        log_error("%s: %s", r ? r->name : id, err.msg);
        q->failed++;
        return;
    }
    (void)json_array_append_new(q->removed, json_pack("{s:s, s:s, s:s}", "containerName", r->name,
                                                      "sessionKey", sandbox_key(r), "reason", why));
    if (!q->args.json)
        printf("%s %s (%s)\n", q->dry_run ? "would remove" : "removed", r->name, why);
    own_folder(q, r, folder, sizeof(folder));
    if (q->workspaces)
        prune_folder(q, folder);
}

static int load(struct pruning *q, struct sandbox_prune *p)
{
    autoptr(config) c = NULL;
    char root[LIMIT_PATH], real[PATH_MAX];
    struct settings s = {0};
    struct error err;
    int r;

    q->args.in.remember = true;
    if (sandbox_load(&q->args, &c) < 0)
        return -1;
    r = config_for_agent(c, q->args.agent ? q->args.agent : "", &s, &err);
    if (r >= 0)
        r = scope_workspace_root(c, &s, root, sizeof(root), &err);
    if (r < 0) {
        log_error("%s", err.msg);
        settings_done(&s);
        return -1;
    }
    if (realpath(root, real) && strlen(real) < sizeof(q->root))
        (void)snprintf(q->root, sizeof(q->root), "%s", real);
    p->idle_usec = (int64_t)settings_number(&s, SETTING_PRUNE_IDLE) * HOUR_USEC;
    p->age_usec = (int64_t)settings_number(&s, SETTING_PRUNE_AGE) * 24 * HOUR_USEC;
    if (q->all)
        p->idle_usec = -2000000; /* before any use, by a clock that counts whole seconds */
    settings_done(&s);
    return 0;
}

/* The general prune looks at every box: it names them, and those of scopes are taken. */
static int prune(struct pruning *q)
{
    struct candidates found = {.args = &q->args, .browser = q->browser};
    struct sandbox_prune p = {.dry_run = true, .on_prune = note, .arg = &found};
    struct error err;
    int r = load(q, &p);

    sandbox_scope_asked(&q->args, found.scope);
    if (r >= 0 && (p.idle_usec || p.age_usec)) {
        r = sandbox_prune(&p, &err);
        if (r < 0)
            log_error("%s", err.msg);
    }
    for (size_t i = 0; i < found.n; i++) {
        if (r >= 0)
            prune_one(q, found.ids[i], q->all ? "all" : found.whys[i]);
        free(found.ids[i]);
        free(found.whys[i]);
    }
    free(found.ids);
    free(found.whys);
    return r < 0 || q->failed;
}

static void print_json(const struct pruning *q)
{
    json_t *all = json_pack("{s:b, s:O, s:O, s:i}", "dryRun", q->dry_run, "removed", q->removed,
                            "workspaces", q->folders, "failed", (int)q->failed);

    (void)json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

int sandbox_verb_prune(int argc, char **argv)
{
    struct pruning q = {.removed = NULL};
    int status = -1, r;

    for (int i = 1; i < argc && status < 0; i++) {
        if (sandbox_wants_help(argv[i])) {
            usage();
            status = 0;
        } else if (strcmp(argv[i], "--all") == 0) {
            q.all = true;
        } else if (strcmp(argv[i], "--browser") == 0) {
            q.browser = true;
        } else if (strcmp(argv[i], "--force") == 0) {
            /* nothing is asked anyway; who is used to recreate writes it */
        } else if (strcmp(argv[i], "--dry-run") == 0) {
            q.dry_run = true;
        } else if (strcmp(argv[i], "--workspaces") == 0) {
            q.workspaces = true;
        } else if ((r = settings_args_take(&q.args, argc, argv, &i)) <= 0) {
            status = r < 0 ? 2 : sandbox_unknown("prune", argv[i]);
        }
    }
    if (status < 0) {
        q.removed = json_array();
        q.folders = json_array();
        status = prune(&q);
        if (q.args.json)
            print_json(&q);
        else if (!json_array_size(q.removed) && status == 0)
            puts("Nothing to remove.");
        json_decref(q.removed);
        json_decref(q.folders);
    }
    settings_args_done(&q.args);
    return status;
}
