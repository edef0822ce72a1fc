/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FS-05: a thread exchanges a folder with a link to the outside, a file with such a link, a folder
 * with a file, as fast as it can, while each verb works. The canary outside is never read, changed,
 * or given a neighbour. FILES_FLIPS=N is how often per verb and kind of swap; four kinds
 * make 10^5 per verb.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "files/files.h"
#include "files/patch.h"
#include "tests/test.h"

#define EXCHANGE 2
#define CANARY   "CANARY, which nobody may read\n"
#define INSIDE   "inside, one\ninside, two\n"

struct swap {
    const char *name, *a, *b;
};

static const struct swap swaps[] = {
    {"folder <-> relative link", "d", "to-canary"},
    {"folder <-> absolute link", "d", "to-canary-absolute"},
    {"file <-> link", "d/f", "to-file"},
    {"folder <-> file", "d", "plain"},
};

struct world {
    struct temp *t;
    int ws;
    struct files_root root;
    const struct swap *swap;
    atomic_bool stop;
    atomic_ulong flips;
    struct stat canary, canary_dir;
};

static void *flip(void *arg)
{
    struct world *w = arg;

    while (!atomic_load_explicit(&w->stop, memory_order_relaxed))
        if (syscall(SYS_renameat2, w->ws, w->swap->a, w->ws, w->swap->b, EXCHANGE) == 0)
            atomic_fetch_add_explicit(&w->flips, 1, memory_order_relaxed);
    return NULL;
}

static unsigned long wanted_flips(void)
{
    const char *text = getenv("FILES_FLIPS");

    return text ? strtoul(text, NULL, 10) : 25000;
}

/* ---- the world ---- */

/* The workspace as it is before every round; nobody is at work in it. */
static void world_reset(struct world *w)
{
    char absolute[160];
    struct error err;

    if (w->ws >= 0) {
        (void)close(w->ws);
        assert_int_equal(renameat(w->t->fd, "ws", w->t->fd, "old"), 0);
        files_root_init(&w->root, w->t->fd, NULL);
        CHECK_OK(files_remove(&w->root, "old", true, NULL, &err), err);
    }
    assert_int_equal(mkdirat(w->t->fd, "ws", 0755), 0);
    w->ws = openat(w->t->fd, "ws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files_root_init(&w->root, w->ws, "/workspace");
    assert_int_equal(mkdirat(w->ws, "d", 0755), 0);
    temp_write(w->t, "ws/d/f", INSIDE, strlen(INSIDE));
    temp_write(w->t, "ws/plain", INSIDE, strlen(INSIDE));
    (void)snprintf(absolute, sizeof(absolute), "%s/canary", w->t->path);
    assert_int_equal(symlinkat("../canary", w->ws, "to-canary"), 0);
    assert_int_equal(symlinkat(absolute, w->ws, "to-canary-absolute"), 0);
    assert_int_equal(symlinkat("../../canary/f", w->ws, "to-file"), 0);
}

static void world_open(struct world *w, struct temp *t)
{
    *w = (struct world){.t = t, .ws = -1};
    assert_int_equal(mkdirat(t->fd, "canary", 0755), 0);
    temp_write(t, "canary/f", CANARY, strlen(CANARY));
    world_reset(w);
    assert_int_equal(fstatat(t->fd, "canary/f", &w->canary, 0), 0);
    assert_int_equal(fstatat(t->fd, "canary", &w->canary_dir, 0), 0);
}

/* Anything done to the canary or its folder shows in their times. */
static void check_canary(const struct world *w, const char *verb)
{
    autofree char *text = temp_read(w->t, "canary/f", NULL);
    struct stat f, d;

    CHECK_STR(text, CANARY, verb);
    assert_int_equal(fstatat(w->t->fd, "canary/f", &f, 0), 0);
    assert_int_equal(fstatat(w->t->fd, "canary", &d, 0), 0);
    CHECK(f.st_ino == w->canary.st_ino && f.st_ctim.tv_nsec == w->canary.st_ctim.tv_nsec &&
              f.st_ctim.tv_sec == w->canary.st_ctim.tv_sec &&
              d.st_ctim.tv_nsec == w->canary_dir.st_ctim.tv_nsec &&
              d.st_ctim.tv_sec == w->canary_dir.st_ctim.tv_sec,
          "%s, %s: the canary was touched", verb, w->swap->name);
}

static void check_bytes(const struct world *w, const struct buf *b, const char *verb)
{
    CHECK(!b->len || !memmem(b->data, b->len, "CANARY", 6), "%s, %s: the canary was read", verb,
          w->swap->name);
}

/* ---- the verbs: true if the call succeeded ---- */

static bool do_read(struct world *w)
{
    struct files_read ret;
    struct error err;
    autobuf b;
    int r;

    buf_init(&b, LIMIT_FILES_READ);
    r = files_read(&w->root, "d/f", &(struct files_ask){0}, &b, &ret, &err);
    check_bytes(w, &b, "read");
    return r == 0;
}

static bool do_write(struct world *w)
{
    struct files_written ret;
    struct error err;

    return files_write(&w->root, "d/f", INSIDE, strlen(INSIDE), FILES_PARENTS, NULL, NULL, &ret,
                       &err) == 0;
}

static bool do_edit(struct world *w)
{
    struct files_edit e = {"inside", "INSIDE", 6, 6, true}, back = {"INSIDE", "inside", 6, 6, true};
    struct files_written ret;
    struct error err;
    autobuf diff;
    bool ok;

    buf_init(&diff, LIMIT_FILES_DIFF * 2);
    ok = files_edit(&w->root, "d/f", &e, 1, NULL, &diff, &ret, &err) == 0;
    ok |= files_edit(&w->root, "d/f", &back, 1, NULL, &diff, &ret, &err) == 0;
    check_bytes(w, &diff, "edit");
    return ok;
}

static bool do_list(struct world *w)
{
    struct files_list l;
    struct error err;

    if (files_list(&w->root, "d", true, &(struct files_walk){0}, &l, &err) < 0)
        return false;
    for (size_t i = 0; i < l.n; i++)
        CHECK(l.entries[i].size != (int64_t)strlen(CANARY) || l.entries[i].kind == 'l',
              "list, %s: the canary is listed", w->swap->name);
    files_list_done(&l);
    return true;
}

static bool do_find(struct world *w)
{
    struct files_list l;
    struct error err;

    if (files_find(&w->root, ".", "**/f", &(struct files_walk){0}, &l, &err) < 0)
        return false;
    for (size_t i = 0; i < l.n; i++)
        CHECK(l.entries[i].size != (int64_t)strlen(CANARY) || l.entries[i].kind == 'l',
              "find, %s: the canary is found", w->swap->name);
    files_list_done(&l);
    return true;
}

static bool do_changed(struct world *w)
{
    struct files_list l;
    struct error err;

    if (files_changed(&w->root, 0, &(struct files_walk){.stay = true}, &l, &err) < 0)
        return false;
    for (size_t i = 0; i < l.n; i++)
        CHECK(l.entries[i].size != (int64_t)strlen(CANARY) || l.entries[i].kind == 'l',
              "changed, %s: the canary is named", w->swap->name);
    files_list_done(&l);
    return true;
}

static bool do_grep(struct world *w)
{
    struct files_query q = {.pattern = ".", .len = 1};
    struct files_grep g;
    struct error err;
    bool some;

    if (files_grep(&w->root, ".", &q, &g, &err) < 0)
        return false;
    check_bytes(w, &g.text, "grep");
    some = g.n > 0;
    files_grep_done(&g);
    return some;
}

static bool do_mkdir(struct world *w)
{
    struct error err;
    bool ok = files_mkdir(&w->root, "d/x/y", FILES_PARENTS, &err) == 0;

    (void)files_remove(&w->root, "d/x", true, NULL, &err);
    return ok;
}

static bool do_move(struct world *w)
{
    struct error err;
    bool ok = files_move(&w->root, "d/f", "d/moved", FILES_REPLACE, &err) == 0;

    ok &= files_move(&w->root, "d/moved", "d/f", FILES_REPLACE, &err) == 0;
    return ok;
}

/* `d/sub` is made anew each time, and `d` itself is what is swapped. */
static bool do_remove(struct world *w)
{
    struct files_written ret;
    struct error err;

    (void)files_write(&w->root, "d/sub/a/b", "x", 1, FILES_PARENTS, NULL, NULL, &ret, &err);
    (void)files_remove(&w->root, "d/f", true, NULL, &err);
    (void)files_write(&w->root, "d/f", INSIDE, strlen(INSIDE), 0, NULL, NULL, &ret, &err);
    return files_remove(&w->root, "d/sub", true, NULL, &err) == 0;
}

static bool do_patch(struct world *w)
{
    static const char text[] =
        "*** Begin Patch\n*** Add File: d/new\n+x\n*** Update File: d/f\n@@\n"
        "-inside, one\n+inside, one\n+more\n*** End Patch\n";
    struct files_written ret;
    struct patch_done done;
    autoptr(patch) p = NULL;
    struct error err;
    autobuf diff;
    bool ok;

    buf_init(&diff, LIMIT_FILES_DIFF * 2);
    CHECK_OK(patch_parse(text, strlen(text), &p, &err), err);
    ok = patch_apply(&w->root, p, PATCH_REPLACE, &diff, &done, &err) == 0;
    check_bytes(w, &diff, "patch");
    (void)files_remove(&w->root, "d/new", false, NULL, &err);
    (void)files_write(&w->root, "d/f", INSIDE, strlen(INSIDE), 0, NULL, NULL, &ret, &err);
    return ok;
}

/* ---- what path-based code does in the same world ---- */

/* Looks at every part of the path first if `careful`, as good code did before openat2. */
static bool control_read(const struct world *w, bool careful)
{
    char path[256], text[64] = "";
    struct stat st;
    int fd;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "%s/ws/d", w->t->path);
    if (careful && (lstat(path, &st) < 0 || S_ISLNK(st.st_mode)))
        return false;
    (void)snprintf(path, sizeof(path), "%s/ws/d/f", w->t->path);
    if (careful && (lstat(path, &st) < 0 || !S_ISREG(st.st_mode)))
        return false;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return n > 0 && strstr(text, "CANARY");
}

/* ---- */

static void run(struct world *w, const char *verb, bool (*call)(struct world *))
{
    unsigned long calls = 0, good = 0, wanted = wanted_flips();
    time_t limit = time(NULL) + 300;
    pthread_t thread;

    atomic_store(&w->stop, false);
    atomic_store(&w->flips, 0);
    assert_int_equal(pthread_create(&thread, NULL, flip, w), 0);
    while (atomic_load(&w->flips) < wanted && time(NULL) < limit) {
        good += call(w);
        calls++;
    }
    atomic_store(&w->stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_canary(w, verb);
    print_message("# %-6s %-25s %8lu flips, %7lu calls, %7lu of them succeeded\n", verb,
                  w->swap->name, atomic_load(&w->flips), calls, good);
    CHECK(atomic_load(&w->flips) >= wanted, "%s, %s: only %lu flips", verb, w->swap->name,
          atomic_load(&w->flips));
}

static void test_races(void **state)
{
    static const struct {
        const char *name;
        bool (*call)(struct world *);
    } verbs[] = {
        {"read", do_read},     {"write", do_write}, {"edit", do_edit},       {"list", do_list},
        {"find", do_find},     {"grep", do_grep},   {"mkdir", do_mkdir},     {"move", do_move},
        {"remove", do_remove}, {"patch", do_patch}, {"changed", do_changed},
    };
    struct temp *t = *state;
    struct world w;
    size_t before;

    world_open(&w, t);
    before = open_fds();
    FOR_EACH(swap, swaps)
    {
        w.swap = swap;
        FOR_EACH(verb, verbs)
        {
            world_reset(&w);
            run(&w, verb->name, verb->call);
        }
    }
    assert_int_equal(open_fds(), before);
    (void)close(w.ws);
}

static void test_control(void **state)
{
    struct temp *t = *state;
    unsigned long calls = 0, plain = 0, careful = 0, wanted = wanted_flips();
    time_t limit = time(NULL) + 60;
    struct world w;
    pthread_t thread;

    world_open(&w, t);
    w.swap = &swaps[0];
    assert_int_equal(pthread_create(&thread, NULL, flip, &w), 0);
    while ((atomic_load(&w.flips) < wanted || careful == 0) && time(NULL) < limit) {
        plain += control_read(&w, false);
        careful += control_read(&w, true);
        calls++;
    }
    atomic_store(&w.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("# control: %lu flips, %lu calls by path: %.1f %% read the canary; %.3f %% of "
                  "those that look at each part first\n",
                  atomic_load(&w.flips), calls, 100.0 * (double)plain / (double)calls,
                  100.0 * (double)careful / (double)calls);
    CHECK(plain > 0 && careful > 0, "the race cannot be lost here: this test shows nothing");
    (void)close(w.ws);
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("control: code that goes by paths does read the canary", test_control),
    CLAIM_IN_TEMP("no verb leaves the workspace while it is being swapped", test_races),
};

int main(void)
{
    return RUN_CLAIMS("files/race", claims);
}
