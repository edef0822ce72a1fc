/* SPDX-License-Identifier: Apache-2.0 */
/* Writing, editing and names that come and go: FS-03, 06, 07, 19, 21, 22, 23. */
#include "files/files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "files/patch.h"
#include "tests/test.h"

static struct files_root root_of(const struct temp *t)
{
    struct files_root root;

    files_root_init(&root, t->fd, "/workspace");
    return root;
}

static int put(const struct temp *t, const char *path, const char *text, unsigned flags,
               const struct files_id *id, struct files_written *ret, struct error *err)
{
    struct files_root root = root_of(t);

    return files_write(&root, path, text, strlen(text), flags, id, NULL, ret, err);
}

static void check_file(const struct temp *t, const char *name, const char *want)
{
    autofree char *text = temp_read(t, name, NULL);

    CHECK_STR(text, want, name);
}

static size_t count_names(const struct temp *t, const char *dir)
{
    DIR *d = fdopendir(openat(t->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 2;
}

/* ---- write ---- */

static void test_write(void **state)
{
    struct temp *t = *state;
    struct files_written w;
    struct error err;
    struct stat st;

    CHECK_OK(put(t, "a", "one\n", 0, NULL, &w, &err), err);
    assert_true(w.created && w.owner_kept);
    assert_int_equal(fstatat(t->fd, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(fchmodat(t->fd, "a", 04751, 0), 0);
    CHECK_OK(put(t, "a", "two\n", 0, NULL, &w, &err), err);
    assert_false(w.created);
    check_file(t, "a", "two\n");
    assert_int_equal(fstatat(t->fd, "a", &st, 0), 0);
    CHECK((st.st_mode & 07777) == 0751, "set-id bits must go, the rest stays: %o", st.st_mode);
    CHECK_OK(put(t, "d/e/f", "deep", FILES_PARENTS, NULL, &w, &err), err);
    check_file(t, "d/e/f", "deep");
    CHECK_ERR(put(t, "x/y", "deep", 0, NULL, &w, &err), err, ERR_NOT_FOUND, "x/y");
    CHECK_ERR(put(t, "a", "three", FILES_NEW, NULL, &w, &err), err, ERR_EXISTS, "taken");
    CHECK_ERR(put(t, "a/b", "x", FILES_PARENTS, NULL, &w, &err), err, ERR_INVALID, "not a folder");
    CHECK_ERR(put(t, "d", "x", 0, NULL, &w, &err), err, ERR_INVALID, "folder");
    CHECK_ERR(put(t, ".", "x", 0, NULL, &w, &err), err, ERR_INVALID, "workspace itself");
    CHECK_ERR(put(t, "d/..", "x", 0, NULL, &w, &err), err, ERR_INVALID, "folder");
    CHECK_ERR(put(t, "../x", "x", FILES_PARENTS, NULL, &w, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(put(t, "d/../../x/y", "x", FILES_PARENTS, NULL, &w, &err), err, ERR_DENIED, "leads");
    check_file(t, "a", "two\n");
    assert_int_equal(count_names(t, "."), 2);
}

static void test_write_links(void **state)
{
    struct temp *t = *state;
    struct files_written w;
    struct error err;
    struct stat st;
    autofree char *outside = NULL, *up = NULL;

    assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
    temp_write(t, "d/real", "old", 3);
    assert_int_equal(symlinkat("d/real", t->fd, "link"), 0);
    CHECK_OK(put(t, "link", "new", 0, NULL, &w, &err), err);
    check_file(t, "d/real", "new");
    assert_int_equal(fstatat(t->fd, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(symlinkat("d/born", t->fd, "dangling"), 0);
    CHECK_OK(put(t, "dangling", "here", 0, NULL, &w, &err), err);
    check_file(t, "d/born", "here");
    /* Out of the workspace, absolute and relative, and around in a circle. */
    (void)asprintf(&outside, "%s-outside", t->path);
    assert_int_equal(symlinkat(outside, t->fd, "out"), 0);
    (void)asprintf(&up, "..%s", strrchr(outside, '/'));
    assert_int_equal(symlinkat(up, t->fd, "out-up"), 0);
    assert_int_equal(symlinkat("self", t->fd, "self"), 0);
    assert_int_equal(symlinkat("..", t->fd, "up"), 0);
    CHECK_ERR(put(t, "out", "x", 0, NULL, &w, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(put(t, "out-up", "x", 0, NULL, &w, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(put(t, "up/x", "x", FILES_PARENTS, NULL, &w, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(put(t, "self", "x", 0, NULL, &w, &err), err, ERR_DENIED, "link");
    CHECK_ERR(put(t, "up", "x", 0, NULL, &w, &err), err, ERR_INVALID, "folder");
    assert_int_equal(access(outside, F_OK), -1);
}

/* FS-06: the outside name of a hard link keeps its content. */
static void test_hard_link(void **state)
{
    struct temp *t = *state;
    struct files_root root;
    struct files_written w;
    struct files_edit e = {"CANARY", "changed", 6, 7, false};
    struct error err;
    autoclose int ws = -1;

    temp_write(t, "canary", "CANARY", 6);
    assert_int_equal(mkdirat(t->fd, "ws", 0755), 0);
    assert_int_equal(linkat(t->fd, "canary", t->fd, "ws/h", 0), 0);
    ws = openat(t->fd, "ws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files_root_init(&root, ws, NULL);
    CHECK_OK(files_edit(&root, "h", &e, 1, NULL, NULL, &w, &err), err);
    assert_true(w.link_broken);
    check_file(t, "canary", "CANARY");
    check_file(t, "ws/h", "changed");
}

static void test_special(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_edit e = {"a", "b", 1, 1, false};
    struct files_written w;
    struct error err;

    assert_int_equal(mkfifoat(t->fd, "p", 0666), 0);
    CHECK_ERR(put(t, "p", "x", 0, NULL, &w, &err), err, ERR_INVALID, "FIFO");
    CHECK_ERR(files_edit(&root, "p", &e, 1, NULL, NULL, &w, &err), err, ERR_INVALID, "FIFO");
    assert_int_equal(count_names(t, "."), 1);
}

static void test_owner(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_written w;
    struct error err;
    struct stat st;
    char value[8];

    if (geteuid() != 0) {
        (void)host_lacks("root, to give files to others");
        return;
    }
    assert_int_equal(mkdirat(t->fd, "u", 0755), 0);
    assert_int_equal(fchownat(t->fd, "u", 1234, 1235, 0), 0);
    CHECK_OK(put(t, "u/x/y/f", "new", FILES_PARENTS, NULL, &w, &err), err);
    assert_int_equal(fstatat(t->fd, "u/x/y/f", &st, 0), 0);
    assert_true(st.st_uid == 1234 && st.st_gid == 1235);
    assert_int_equal(fstatat(t->fd, "u/x/y", &st, 0), 0);
    assert_true(st.st_uid == 1234 && st.st_gid == 1235);
    CHECK_OK(files_mkdir(&root, "u/z", 0, &err), err);
    assert_int_equal(fstatat(t->fd, "u/z", &st, 0), 0);
    assert_true(st.st_uid == 1234 && st.st_gid == 1235);
    /* A replaced file keeps its own owner, not the folder's; and what a user put on it. */
    assert_int_equal(fchownat(t->fd, "u/x/y/f", 77, 78, 0), 0);
    assert_int_equal(fchmodat(t->fd, "u/x/y/f", 0600, 0), 0);
    (void)setxattr(temp_path(t, "u/x/y/f"), "user.note", "mine", 4, 0);
    CHECK_OK(put(t, "u/x/y/f", "again", 0, NULL, &w, &err), err);
    assert_true(w.owner_kept);
    assert_int_equal(fstatat(t->fd, "u/x/y/f", &st, 0), 0);
    assert_true(st.st_uid == 77 && st.st_gid == 78 && (st.st_mode & 07777) == 0600);
    assert_int_equal(getxattr(temp_path(t, "u/x/y/f"), "user.note", value, sizeof(value)), 4);
    /* Folders made on the way do not leave us as somebody else. */
    CHECK_OK(put(t, "mine", "x", 0, NULL, &w, &err), err);
    assert_int_equal(fstatat(t->fd, "mine", &st, 0), 0);
    assert_int_equal(st.st_uid, 0);
}

/* ---- expected identity: FS-21 ---- */

static void test_stale(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_edit first = {"one", "two", 3, 3, false}, second = {"end", "END", 3, 3, false};
    struct files_read seen;
    struct files_written w;
    struct error err;
    autobuf b;

    buf_init(&b, 1000);
    temp_write(t, "f", "one end\n", 8);
    CHECK_OK(files_read(&root, "f", &(struct files_ask){0}, &b, &seen, &err), err);
    CHECK_OK(files_edit(&root, "f", &first, 1, &seen.id, NULL, &w, &err), err);
    CHECK_ERR(files_edit(&root, "f", &second, 1, &seen.id, NULL, &w, &err), err, ERR_EXISTS,
              "changed since it was read");
    assert_int_equal(err.sys, ESTALE);
    check_file(t, "f", "two end\n");
    /* What an edit says it wrote is good for the next. */
    CHECK_OK(files_edit(&root, "f", &second, 1, &w.id, NULL, &w, &err), err);
    check_file(t, "f", "two END\n");
    CHECK_ERR(put(t, "f", "x", 0, &seen.id, &w, &err), err, ERR_EXISTS, "changed");
    CHECK_ERR(put(t, "gone", "x", 0, &seen.id, &w, &err), err, ERR_EXISTS, "changed");
    CHECK_ERR(put(t, "for/nothing/f", "x", FILES_PARENTS, &seen.id, &w, &err), err, ERR_EXISTS,
              "changed");
    assert_int_equal(faccessat(t->fd, "for", F_OK, 0), -1); /* what was made for it is gone */
    /* Without a hash, the stat counts. */
    memset(w.id.sha256, 0, sizeof(w.id.sha256));
    CHECK_OK(put(t, "f", "three\n", 0, &w.id, &w, &err), err);
    w.id.sha256[0] = 0;
    w.id.mtime_ns++;
    CHECK_ERR(put(t, "f", "x", 0, &w.id, &w, &err), err, ERR_EXISTS, "changed");
    assert_int_equal(count_names(t, "."), 1);
}

/*
 * Somebody replaces the file over and over, each time with a higher number, until we have changed
 * it once. If ours is what stands there in the end, it was made from the last of theirs.
 */
struct rival {
    const struct temp *t;
    atomic_bool stop;
    atomic_uint last;
};

static void *replace_on(void *arg)
{
    struct rival *v = arg;

    while (!atomic_load(&v->stop)) {
        char text[64];
        int n = snprintf(text, sizeof(text), "%u\nold\n", v->last + 1);

        temp_write(v->t, "next", text, (size_t)n);
        assert_int_equal(renameat(v->t->fd, "next", v->t->fd, "f"), 0);
        v->last++;
    }
    return NULL;
}

static int edit_once(const struct temp *t, bool by_patch, struct error *err)
{
    static const char text[] =
        "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch\n";
    struct files_root root = root_of(t);
    struct files_edit e = {"old", "new", 3, 3, false};
    struct files_written w;
    struct patch_done done;
    autoptr(patch) p = NULL;

    if (!by_patch)
        return files_edit(&root, "f", &e, 1, NULL, NULL, &w, err);
    CHECK_OK(patch_parse(text, strlen(text), &p, err), *err);
    return patch_apply(&root, p, 0, NULL, &done, err);
}

static void test_lost_update(void **state)
{
    struct temp *t = *state;
    unsigned stale = 0, kept = 0;

    for (unsigned round = 0; round < 400; round++) {
        struct rival v = {.t = t};
        autofree char *text = NULL;
        pthread_t thread;
        unsigned number = 0;
        struct error err;
        int r;

        temp_write(t, "f", "0\nold\n", 6);
        assert_int_equal(pthread_create(&thread, NULL, replace_on, &v), 0);
        while (atomic_load(&v.last) < 1 + round % 4) /* it is at work */
            ;
        r = edit_once(t, round % 2, &err);
        atomic_store(&v.stop, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        CHECK(r == 0 || err.sys == ESTALE || err.code == ERR_NOT_FOUND, "%s", err.msg);
        text = temp_read(t, "f", NULL);
        assert_int_equal(sscanf(text, "%u", &number), 1);
        CHECK(number == atomic_load(&v.last),
              "round %u: theirs was %u, what stands there is from %u", round, atomic_load(&v.last),
              number);
        stale += r < 0;
        kept += strstr(text, "new") != NULL;
        CHECK(count_names(t, ".") == 1, "round %u: something is left", round);
    }
    print_message("# 400 races: %u refused, %u times ours came last\n", stale, kept);
    assert_true(stale > 0);
}

/* ---- edit: FS-22 ---- */

static void test_edits(void **state)
{
    static const struct {
        const char *text, *old, *new, *want; /* want NULL: refused, with `why` */
        bool all;
        enum error_code code;
        const char *why;
    } rows[] = {
        {"a b c", "b", "x", "a x c", false, 0, ""},
        {"a\r\nb\r\nc", "b", "x", "a\r\nx\r\nc", false, 0, ""},
        {"no end", "end", "END", "no END", false, 0, ""},
        {"a.*[b", ".*[", "\\1&$0", "a\\1&$0b", false, 0, ""},
        {"x x x", "x", "xx", "xx xx xx", true, 0, ""},
        {"aaaa", "aa", "b", "bb", true, 0, ""},
        {"aaa", "aa", "b", "ba", true, 0, ""},
        {"keep", "keep", "", "", false, 0, ""},
        {"a", "", "b", NULL, false, ERR_INVALID, "empty"},
        {"a", "a", "a", NULL, false, ERR_INVALID, "the same"},
        {"aaa", "aa", "b", NULL, false, ERR_INVALID, "2 matches"},
        {"x\ny\nx\n", "x", "z", NULL, false, ERR_INVALID, "2 matches (lines 1, 3)"},
        {"abc", "d", "e", NULL, false, ERR_NOT_FOUND, "no match in the file: read"},
        {"abc", "d", "e", NULL, true, ERR_NOT_FOUND, "no match"},
        {"1\n2\n\tif (x)\n", "    if (x)", "y", NULL, false, ERR_NOT_FOUND, "line 3 is the same"},
        {"a\r\nb\r\n", "a\nb\n", "y", NULL, false, ERR_NOT_FOUND, "\\r\\n"},
        {"", "a", "y", NULL, false, ERR_NOT_FOUND, "no match"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct files_edit e = {row->old, row->new, strlen(row->old), strlen(row->new), row->all};
        autobuf out = {0};
        struct error err;

        if (row->want) {
            CHECK_OK(files_edit_text(row->text, strlen(row->text), &e, 1, &out, &err), err);
            CHECK_STR(out.data, row->want, row->text);
        } else {
            CHECK_ERR(files_edit_text(row->text, strlen(row->text), &e, 1, &out, &err), err,
                      row->code, row->why);
            assert_null(out.data);
        }
    }
}

static void test_several_edits(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_edit edits[] = {{"one", "1", 3, 1, false}, {"1\ntwo", "12", 5, 2, false}};
    struct files_edit bad[] = {{"12", "x", 2, 1, false}, {"12", "y", 2, 1, false}};
    struct files_written w;
    struct error err;
    autobuf diff;

    buf_init(&diff, 100000);
    temp_write(t, "f", "zero\none\ntwo\nthree", 18);
    CHECK_OK(files_edit(&root, "f", edits, 2, NULL, &diff, &w, &err), err);
    check_file(t, "f", "zero\n12\nthree");
    CHECK_STR(diff.data,
              "@@ -1,4 +1,3 @@\n zero\n-one\n-two\n+12\n three\n\\ No newline at end of file\n",
              "diff");
    assert_true(w.added == 1 && w.removed == 2);
    CHECK_ERR(files_edit(&root, "f", bad, 2, NULL, NULL, &w, &err), err, ERR_NOT_FOUND,
              "edit 'f': edit 2: the old text has no match in the file as the edits before");
    check_file(t, "f", "zero\n12\nthree");
    CHECK_ERR(files_edit(&root, "none", edits, 2, NULL, NULL, &w, &err), err, ERR_NOT_FOUND,
              "none");
    assert_int_equal(count_names(t, "."), 1);
}

static void test_huge_line(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_edit e = {"NEEDLE", "pin", 6, 3, false};
    size_t n = 100u << 20, len;
    autofree char *text = malloc(n), *after = NULL;
    struct files_written w;
    struct error err;

    memset(text, 'a', n);
    memcpy(text + n / 2, "NEEDLE", 6);
    temp_write(t, "f", text, n);
    CHECK_OK(files_edit(&root, "f", &e, 1, NULL, NULL, &w, &err), err);
    after = temp_read(t, "f", &len);
    assert_int_equal(len, n - 3);
    assert_memory_equal(after, text, n / 2);
    assert_memory_equal(after + n / 2, "pin", 3);
    assert_memory_equal(after + n / 2 + 3, text + n / 2 + 6, n / 2 - 6);
}

static void test_diff(void **state)
{
    static const struct {
        const char *a, *b, *want;
    } rows[] = {
        {"a\nb\nc\n", "a\nb\nc\n", ""},
        {"", "x\n", "@@ -0,0 +1,1 @@\n+x\n"},
        {"x\n", "", "@@ -1,1 +0,0 @@\n-x\n"},
        {"a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
         "@@ -7,3 +7,4 @@\n 7\n 8\n 9\n+10\n"},
        {"a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
         "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autobuf out;
        uint64_t added, removed;

        buf_init(&out, 10000);
        files_diff(row->a, strlen(row->a), row->b, strlen(row->b), &out, &added, &removed);
        CHECK_STR(out.len ? out.data : "", row->want, row->b);
    }
}

/* What a reader of the diff would make of the old text. */
static void follow_diff(const char *old, const char *diff, struct buf *out)
{
    size_t at = 1;

    for (const char *p = diff, *nl; (nl = strchr(p, '\n')); p = nl + 1) {
        size_t from, n = (size_t)(nl + 1 - p);

        if (p[0] == '\\') { /* the line before has no newline */
            out->len -= out->data[out->len - 1] == '\n' && p > diff;
            continue;
        }
        if (sscanf(p, "@@ -%zu", &from) == 1) {
            /* An empty range names the line before it. */
            for (from += strstr(p, ",0 +") && strstr(p, ",0 +") < nl; at < from && *old; at++) {
                const char *end = strchr(old, '\n');

                buf_append(out, old, end ? (size_t)(end + 1 - old) : strlen(old));
                old = end ? end + 1 : old + strlen(old);
            }
            continue;
        }
        if (p[0] != '-')
            buf_append(out, p + 1, n - 1);
        if (p[0] != '+') {
            const char *end = strchr(old, '\n');

            at++;
            old = end ? end + 1 : old + strlen(old);
        }
    }
    buf_puts(out, old);
}

static void test_diff_random(void **state)
{
    unsigned seed = 3;

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        char text[2][200] = {"", ""};
        uint64_t added, removed;
        autobuf diff, made;

        for (int k = 0; k < 2; k++)
            for (unsigned i = 0, n = (round * 7 + (unsigned)k * 5) % 40, len = 0; i < n; i++) {
                seed = seed * 1103515245 + 12345;
                len += (unsigned)snprintf(text[k] + len, sizeof(text[k]) - len, "%u\n",
                                          (seed >> 16) % 50 < 40 ? i % 9 : (seed >> 20) % 9);
            }
        buf_init(&diff, 100000);
        buf_init(&made, 100000);
        buf_puts(&made, "");
        files_diff(text[0], strlen(text[0]), text[1], strlen(text[1]), &diff, &added, &removed);
        follow_diff(text[0], diff.len ? diff.data : "", &made);
        CHECK_STR(made.data, text[1], text[0]);
        CHECK((diff.len == 0) == (strcmp(text[0], text[1]) == 0), "round %u", round);
    }
}

/* ---- remove, move, mkdir ---- */

static void test_remove(void **state)
{
    struct temp *t = *state;
    struct files_root root;
    struct error err;
    struct stat st;
    uint64_t n;
    autoclose int ws = -1;
    autofree char *out = NULL;

    assert_int_equal(mkdirat(t->fd, "canary", 0755), 0);
    temp_write(t, "canary/f", "CANARY", 6);
    assert_int_equal(mkdirat(t->fd, "ws", 0755), 0);
    ws = openat(t->fd, "ws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files_root_init(&root, ws, NULL);
    assert_int_equal(mkdirat(ws, "d", 0755), 0);
    assert_int_equal(mkdirat(ws, "d/e", 0755), 0);
    assert_int_equal(mkdirat(ws, "d/e/f", 0755), 0);
    (void)asprintf(&out, "%s/canary", t->path);
    assert_int_equal(symlinkat(out, ws, "d/l"), 0);
    assert_int_equal(symlinkat("../../../canary", ws, "d/e/l"), 0);
    assert_int_equal(fchmodat(ws, "d/e/f", 0, 0), 0);
    assert_int_equal(fchmodat(ws, "d/e", 0, 0), 0);
    CHECK_ERR(files_remove(&root, "d", false, NULL, &err), err, ERR_INVALID, "recursive");
    CHECK_ERR(files_remove(&root, ".", true, NULL, &err), err, ERR_INVALID, "workspace itself");
    CHECK_ERR(files_remove(&root, "..", true, NULL, &err), err, ERR_INVALID, "folder");
    CHECK_ERR(files_remove(&root, "../canary", true, NULL, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(files_remove(&root, "d/l/f", true, NULL, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(files_remove(&root, "no", true, NULL, &err), err, ERR_NOT_FOUND, "no such");
    CHECK_OK(files_remove(&root, "d", true, &n, &err), err);
    assert_int_equal(n, 5);
    assert_int_equal(fstatat(ws, "d", &st, 0), -1);
    check_file(t, "canary/f", "CANARY");
    assert_int_equal(symlinkat(out, ws, "l"), 0);
    CHECK_OK(files_remove(&root, "l", true, NULL, &err), err);
    check_file(t, "canary/f", "CANARY");
}

static void test_remove_mount(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct error err;

    assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "d/m", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "canary", 0755), 0);
    temp_write(t, "canary/f", "CANARY", 6);
    if (mount(temp_path(t, "canary"), temp_path(t, "d/m"), NULL, MS_BIND, NULL) < 0) {
        (void)host_lacks("the right to mount");
        return;
    }
    CHECK_ERR(files_remove(&root, "d", true, NULL, &err), err, ERR_DENIED, "mount");
    assert_int_equal(umount2(temp_path(t, "d/m"), MNT_DETACH), 0);
    check_file(t, "canary/f", "CANARY");
}

static void test_remove_deep(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    int at = dup(t->fd);
    struct error err;
    size_t before;

    for (int i = 0; i < 150; i++) {
        int next;

        assert_int_equal(mkdirat(at, "d", 0755), 0);
        next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    before = open_fds();
    CHECK_ERR(files_remove(&root, "d", true, NULL, &err), err, ERR_TOO_LARGE, "128 deep");
    assert_int_equal(open_fds(), before);
    /* In parts it goes. */
    CHECK_OK(files_remove(&root, "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d",
                          true, NULL, &err),
             err);
    CHECK_OK(files_remove(&root, "d", true, NULL, &err), err);
}

static void test_move(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct error err;
    struct stat st;

    temp_write(t, "a", "A", 1);
    temp_write(t, "b", "B", 1);
    assert_int_equal(symlinkat("/etc/passwd", t->fd, "l"), 0);
    assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
    CHECK_ERR(files_move(&root, "a", "b", 0, &err), err, ERR_EXISTS, "taken");
    check_file(t, "b", "B");
    CHECK_OK(files_move(&root, "a", "b", FILES_REPLACE, &err), err);
    check_file(t, "b", "A");
    CHECK_ERR(files_move(&root, "b", "x/y/z", 0, &err), err, ERR_NOT_FOUND, "x/y/z");
    CHECK_OK(files_move(&root, "b", "x/y/z", FILES_PARENTS, &err), err);
    check_file(t, "x/y/z", "A");
    CHECK_OK(files_move(&root, "l", "m", 0, &err), err);
    assert_int_equal(fstatat(t->fd, "m", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    CHECK_ERR(files_move(&root, "x", "x/y/w", 0, &err), err, ERR_INVALID, "into itself");
    CHECK_ERR(files_move(&root, "x", "../x", 0, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(files_move(&root, "nothing", "p/q", FILES_PARENTS, &err), err, ERR_NOT_FOUND, "no");
    CHECK_ERR(files_move(&root, ".", "p", 0, &err), err, ERR_INVALID, "workspace itself");
    assert_int_equal(fstatat(t->fd, "p", &st, 0), -1); /* what was made for nothing is gone */
}

static void test_mkdir(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct error err;
    struct stat st;

    assert_int_equal(symlinkat("/tmp", t->fd, "l"), 0);
    CHECK_OK(files_mkdir(&root, "a/b/c/", FILES_PARENTS, &err), err);
    assert_int_equal(fstatat(t->fd, "a/b/c", &st, 0), 0);
    CHECK_OK(files_mkdir(&root, "a/b/c", FILES_PARENTS, &err), err);
    CHECK_ERR(files_mkdir(&root, "a", 0, &err), err, ERR_EXISTS, "taken");
    CHECK_ERR(files_mkdir(&root, "l", FILES_PARENTS, &err), err, ERR_EXISTS, "taken");
    CHECK_ERR(files_mkdir(&root, "l/x", FILES_PARENTS, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(files_mkdir(&root, "x/y", 0, &err), err, ERR_NOT_FOUND, "x/y");
}

/* ---- FS-19: killed at any moment ---- */

static void test_killed(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    size_t n = 300000;
    autofree char *old = malloc(n), *new = malloc(n);
    unsigned was_new = 0, strays = 0;
    struct error err;
    uint64_t swept;

    memset(old, 'o', n);
    memset(new, 'n', n);
    for (int i = 0; i < 200; i++) {
        autofree char *text = NULL;
        size_t len;
        pid_t pid;

        temp_write(t, "f", old, n);
        pid = fork();
        if (pid == 0) {
            struct files_written w;

            for (;;) {
                (void)files_write(&root, "f", new, n, 0, NULL, NULL, &w, &err);
                (void)files_write(&root, "f", old, n, 0, NULL, NULL, &w, &err);
            }
        }
        (void)usleep((useconds_t)(200 + i * 37 % 3000));
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        text = temp_read(t, "f", &len);
        CHECK(len == n && (memcmp(text, old, n) == 0 || memcmp(text, new, n) == 0),
              "round %d: a torn file of %zu bytes", i, len);
        was_new += text[0] == 'n';
        strays += count_names(t, ".") > 1;
        CHECK_OK(files_sweep(&root, 0, &swept, &err), err);
        CHECK(count_names(t, ".") == 1, "round %d: a stray file is left", i);
    }
    print_message("# 200 kills: %u found the new file, %u left a stray file\n", was_new, strays);
    assert_true(was_new > 0); /* the kills came while it worked */
}

static void test_sweep(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct error err;
    uint64_t n;

    assert_int_equal(mkdirat(t->fd, ".git", 0755), 0);
    temp_write(t, ".clawden-tmp-0123456789abcdef", "x", 1);
    temp_write(t, ".git/.clawden-tmp-00000000000000ff", "x", 1);
    temp_write(t, ".clawden-tmp-mine", "x", 1);
    temp_write(t, ".clawden-tmp-0123456789abcdef0", "x", 1);
    CHECK_OK(files_sweep(&root, 60000, &n, &err), err);
    assert_int_equal(n, 0);
    CHECK_OK(files_sweep(&root, 0, &n, &err), err);
    assert_int_equal(n, 2);
    check_file(t, ".clawden-tmp-mine", "x");
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("a file is made or replaced, with its mode", test_write),
    CLAIM_IN_TEMP("a write goes where links inside lead, and never out", test_write_links),
    CLAIM_IN_TEMP("the outside name of a hard link is never changed", test_hard_link),
    CLAIM_IN_TEMP("FIFOs are refused at once", test_special),
    CLAIM_IN_TEMP("owner and attributes are kept, or the folder's owner taken", test_owner),
    CLAIM_IN_TEMP("a file that changed since it was read is refused", test_stale),
    CLAIM_IN_TEMP("a change of somebody else is never lost", test_lost_update),
    CLAIM("an edit is exact, literal and keeps every other byte", test_edits),
    CLAIM_IN_TEMP("several edits are made all or none", test_several_edits),
    CLAIM_IN_TEMP("a line of 100 MiB is edited", test_huge_line),
    CLAIM("a diff shows what changed", test_diff),
    CLAIM("a diff leads from the old text to the new", test_diff_random),
    CLAIM_IN_TEMP("removing does not follow links", test_remove),
    CLAIM_IN_TEMP("removing does not enter mounts", test_remove_mount),
    CLAIM_IN_TEMP("removing is bounded in depth", test_remove_deep),
    CLAIM_IN_TEMP("a move replaces only when asked", test_move),
    CLAIM_IN_TEMP("folders are made inside alone", test_mkdir),
    CLAIM_IN_TEMP("killed at any moment, the file is old or new", test_killed),
    CLAIM_IN_TEMP("the sweep takes our temporary files alone", test_sweep),
};

int main(void)
{
    return RUN_CLAIMS("files/write", claims);
}
