/* SPDX-License-Identifier: Apache-2.0 */
/* list, find, grep: FS-07, 09, 13, 14, 27. */
#include "files/files.h"

#include <time.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "tests/test.h"

static const struct files_walk plain;

static struct files_root root_of(const struct temp *t)
{
    struct files_root root;

    files_root_init(&root, t->fd, NULL);
    return root;
}

static void write_at(const struct temp *t, const char *path, const char *text)
{
    struct files_root root = root_of(t);
    struct files_written w;
    struct error err;

    CHECK_OK(files_write(&root, path, text, strlen(text), FILES_PARENTS, NULL, NULL, &w, &err),
             err);
}

/* Names and kinds on one line. */
static void check_list(const struct files_list *list, const char *want)
{
    autobuf b;

    buf_init(&b, 10000);
    for (size_t i = 0; i < list->n; i++) {
        buf_printf(&b, "%s%c:", i ? " " : "", list->entries[i].kind);
        files_name_escape(&b, files_list_name(list, i), strlen(files_list_name(list, i)));
    }
    CHECK_STR(b.len ? b.data : "", want, "list");
}

static void make_tree(const struct temp *t)
{
    write_at(t, "b.c", "int b;\n");
    write_at(t, "a.c", "int a;\nint x;\n");
    write_at(t, "src/m.c", "int main(void)\n{\n    return a;\n}\n");
    write_at(t, "src/deep/er/n.h", "#define N 1\n");
    write_at(t, ".git/config", "int secret;\n");
    assert_int_equal(symlinkat("/etc", t->fd, "src/etc"), 0);
    assert_int_equal(symlinkat("../a.c", t->fd, "src/link.c"), 0);
    assert_int_equal(mkfifoat(t->fd, "pipe", 0600), 0);
}

static void test_list(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_list l;
    struct error err;

    make_tree(t);
    CHECK_OK(files_list(&root, ".", false, &plain, &l, &err), err);
    check_list(&l, "d:.git -:a.c -:b.c p:pipe d:src");
    assert_int_equal(l.entries[1].size, 14);
    assert_true(l.entries[1].mtime_ns > 0 && l.stop == FILES_ALL);
    files_list_done(&l);
    CHECK_OK(files_list(&root, "src/", true, &plain, &l, &err), err);
    check_list(&l, "d:deep d:deep/er -:deep/er/n.h l:etc l:link.c -:m.c");
    files_list_done(&l);
    CHECK_OK(files_list(&root, ".", true, &(struct files_walk){.limit = 3}, &l, &err), err);
    check_list(&l, "d:.git -:a.c -:b.c");
    assert_int_equal(l.stop, FILES_STOP_MANY);
    files_list_done(&l);
    CHECK_OK(files_list(&root, ".git", true, &plain, &l, &err), err);
    check_list(&l, "-:config");
    files_list_done(&l);
    CHECK_ERR(files_list(&root, "src/etc", false, &plain, &l, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(files_list(&root, "a.c", false, &plain, &l, &err), err, ERR_INVALID, "not a folder");
    CHECK_ERR(files_list(&root, "no", false, &plain, &l, &err), err, ERR_NOT_FOUND, "no");
    CHECK_ERR(files_list(&root, "..", false, &plain, &l, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(files_list(&root, ".", false, &(struct files_walk){.limit = 10001}, &l, &err), err,
              ERR_INVALID, "limit");
}

static void test_strange_names(void **state)
{
    static const char *const names[] = {"\xff\xfe", "new\nline", "\x1b[31m", "-rf", "b\\s", " "};
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_list l;
    struct error err;

    FOR_EACH(name, names)
    temp_write(t, *name, *name, strlen(*name));
    CHECK_OK(files_list(&root, ".", false, &plain, &l, &err), err);
    check_list(&l, "-:\\x1b[31m -:  -:-rf -:b\\\\s -:new\\x0aline -:\\xff\\xfe");
    /* What is shown leads back to the very file. */
    for (size_t i = 0; i < l.n; i++) {
        autobuf shown, path, text;
        struct files_read got;
        const char *name = files_list_name(&l, i);

        buf_init(&shown, 1000);
        buf_init(&path, 1000);
        buf_init(&text, 1000);
        files_name_escape(&shown, name, strlen(name));
        CHECK_OK(files_name_parse(shown.data, shown.len, &path, &err), err);
        CHECK_OK(files_read(&root, path.data, &(struct files_ask){.raw = true}, &text, &got, &err),
                 err);
        CHECK_STR(text.data, name, shown.data);
    }
    files_list_done(&l);
}

static void test_find(void **state)
{
    static const struct {
        const char *path, *pattern, *want;
        bool git;
    } rows[] = {
        {".", "*.c", "-:a.c -:b.c l:src/link.c -:src/m.c", false},
        {".", "src/*.c", "l:src/link.c -:src/m.c", false},
        {".", "**/n.h", "-:src/deep/er/n.h", false},
        {".", "**/er", "d:src/deep/er", false},
        {"src", "**/*.{c,h}", "-:deep/er/n.h l:link.c -:m.c", false},
        {".", "config", "", false},
        {".", "config", "-:.git/config", true},
        {".", "passwd", "", false},
    };
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_list l;
    struct error err;

    make_tree(t);
    FOR_EACH(row, rows)
    {
        CHECK_OK(files_find(&root, row->path, row->pattern,
                            &(struct files_walk){.with_git = row->git}, &l, &err),
                 err);
        check_list(&l, row->want);
        files_list_done(&l);
    }
    CHECK_ERR(files_find(&root, ".", "[", &plain, &l, &err), err, ERR_INVALID, "glob");
}

/* ---- grep ---- */

static int grep(const struct temp *t, const char *path, const char *pattern, unsigned context,
                const char *glob, struct files_grep *ret, struct error *err)
{
    struct files_root root = root_of(t);
    struct files_query q = {
        .pattern = pattern, .len = strlen(pattern), .context = context, .glob = glob};

    return files_grep(&root, path, &q, ret, err);
}

static void check_grep(const struct files_grep *g, const char *want)
{
    autobuf b;

    buf_init(&b, 100000);
    for (size_t i = 0; i < g->n; i++)
        buf_printf(&b, "%s%c%llu%c%s\n", g->text.data + g->matches[i].path,
                   g->matches[i].is_context ? '-' : ':', (unsigned long long)g->matches[i].line,
                   g->matches[i].is_context ? '-' : ':', g->text.data + g->matches[i].text);
    CHECK_STR(b.len ? b.data : "", want, "grep");
}

static void test_grep(void **state)
{
    struct temp *t = *state;
    struct files_grep g;
    struct error err;

    make_tree(t);
    CHECK_OK(grep(t, ".", "^int", 0, NULL, &g, &err), err);
    check_grep(&g, "a.c:1:int a;\na.c:2:int x;\nb.c:1:int b;\nsrc/m.c:1:int main(void)\n");
    assert_int_equal(g.files, 4);
    files_grep_done(&g);
    CHECK_OK(grep(t, "src", "return \\w;", 1, "*.c", &g, &err), err);
    check_grep(&g, "m.c-2-{\nm.c:3:    return a;\nm.c-4-}\n");
    files_grep_done(&g);
    CHECK_OK(grep(t, "a.c", "x", 1, NULL, &g, &err), err);
    check_grep(&g, "a.c-1-int a;\na.c:2:int x;\n");
    files_grep_done(&g);
    CHECK_OK(grep(t, ".", "root:", 0, NULL, &g, &err), err);
    check_grep(&g, "");
    files_grep_done(&g);
    CHECK_ERR(grep(t, "src/etc", "root", 0, NULL, &g, &err), err, ERR_DENIED, "leads out");
    CHECK_ERR(grep(t, "pipe", "x", 0, NULL, &g, &err), err, ERR_INVALID, "FIFO");
    CHECK_ERR(grep(t, ".", "(", 0, NULL, &g, &err), err, ERR_INVALID, "without ')'");
    CHECK_ERR(grep(t, ".", "a", 21, NULL, &g, &err), err, ERR_INVALID, "context");
}

static void test_grep_context(void **state)
{
    struct temp *t = *state;
    struct files_grep g;
    struct error err;

    write_at(t, "f", "1\n2\nx3\n4\n5\nx6\n7\n8\n9\n10\nx11");
    CHECK_OK(grep(t, "f", "x", 2, NULL, &g, &err), err);
    check_grep(&g, "f-1-1\nf-2-2\nf:3:x3\nf-4-4\nf-5-5\nf:6:x6\nf-7-7\nf-8-8\nf-9-9\nf-10-10\n"
                   "f:11:x11\n");
    files_grep_done(&g);
    write_at(t, "f", "x1\r\nx2\r\n\r\n4\r\n");
    CHECK_OK(grep(t, "f", "\\d$", 1, NULL, &g, &err), err);
    check_grep(&g, "f:1:x1\nf:2:x2\nf-3-\nf:4:4\n");
    files_grep_done(&g);
    CHECK_OK(grep(t, "f", "^$", 0, NULL, &g, &err), err);
    check_grep(&g, "f:3:\n");
    files_grep_done(&g);
}

/* A reference that knows nothing of windows, on files larger than one. */
static void test_grep_large(void **state)
{
    struct temp *t = *state;
    autobuf b;
    struct files_grep g;
    struct error err;
    size_t want = 0;

    buf_init(&b, 16u << 20);
    for (unsigned i = 1; i <= 200000; i++)
        buf_printf(&b, "%s %u %.*s\n", i % 997 == 0 ? "needle" : "hay", i, (int)(i % 40),
                   "----------------------------------------");
    temp_write(t, "f", b.data, b.len);
    CHECK_OK(grep(t, "f", "ne+dle", 1, NULL, &g, &err), err);
    for (size_t i = 0; i < g.n; i++) {
        const char *text = g.text.data + g.matches[i].text;
        unsigned long long line = 0;

        (void)sscanf(text, "%*s %llu", &line);
        CHECK(line == g.matches[i].line, "line %llu holds '%s'",
              (unsigned long long)g.matches[i].line, text);
        CHECK(g.matches[i].is_context == (line % 997 != 0), "line %llu", line);
        want += !g.matches[i].is_context;
    }
    assert_int_equal(want, 200000 / 997);
    assert_int_equal(g.n, 3 * want);
    assert_int_equal(g.bytes, b.len);
    files_grep_done(&g);
}

static void test_grep_bounds(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_query q = {.pattern = "(a+)+$", .len = 6, .how.deadline_ms = 2000};
    size_t n = 3u << 20;
    autofree char *text = malloc(n + 1);
    struct files_grep g;
    struct error err;
    time_t start = time(NULL);

    memset(text, 'a', n);
    text[n - 1] = '!';
    text[n] = 0;
    temp_write(t, "long", text, n);
    temp_write(t, "binary", "aaa\0aaa\n", 8);
    CHECK_OK(files_grep(&root, ".", &q, &g, &err), err);
    assert_int_equal(g.binary, 1);
    assert_true(g.files == 1 && time(NULL) - start < 10);
    files_grep_done(&g);
    q.pattern = "a!";
    q.len = 2;
    CHECK_OK(files_grep(&root, ".", &q, &g, &err), err);
    assert_int_equal(g.n, 1);
    assert_true(g.matches[0].cut && g.matches[0].len == LIMIT_FILES_LINE_OUT);
    assert_int_equal(g.matches[0].line, 1);
    files_grep_done(&g);
    /* As many as were asked for. */
    write_at(t, "many", "x\nx\nx\nx\nx\n");
    q.pattern = "x";
    q.len = 1;
    q.how.limit = 3;
    CHECK_OK(files_grep(&root, "many", &q, &g, &err), err);
    assert_true(g.n_matching == 3 && g.stop == FILES_STOP_MANY);
    files_grep_done(&g);
}

/* FS-27: a glob bomb on a deep tree. */
static void test_walk_depth(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_list l;
    struct error err;
    struct timespec a, b;
    int at = dup(t->fd);

    for (int i = 0; i < 200; i++) {
        int next;

        assert_int_equal(mkdirat(at, "d", 0755), 0);
        next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    CHECK_OK(files_find(&root, ".", "**/**/**/**/**/**/**/**/x", &plain, &l, &err), err);
    (void)clock_gettime(CLOCK_MONOTONIC, &b);
    assert_true(b.tv_sec - a.tv_sec < 5);
    assert_int_equal(l.stop, FILES_STOP_WORK); /* it says that it did not go all the way down */
    assert_int_equal(l.visited, LIMIT_FILES_DEPTH);
    files_list_done(&l);
}

/* Looking at 3,000 names takes a few milliseconds; one is allowed. */
static void test_walk_deadline(void **state)
{
    struct temp *t = *state;
    struct files_root root = root_of(t);
    struct files_query q = {.pattern = "x", .len = 1, .how.deadline_ms = 1};
    struct files_grep g;
    struct files_list l;
    struct error err;

    for (int i = 0; i < 3000; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "f%d", i);
        temp_write(t, name, "y", 1);
    }
    CHECK_OK(files_list(&root, ".", true, &(struct files_walk){.deadline_ms = 1}, &l, &err), err);
    assert_int_equal(l.stop, FILES_STOP_TIME);
    files_list_done(&l);
    CHECK_OK(files_grep(&root, ".", &q, &g, &err), err);
    assert_int_equal(g.stop, FILES_STOP_TIME);
    files_grep_done(&g);
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("a list is sorted, and does not follow links", test_list),
    CLAIM_IN_TEMP("strange names are shown escaped and lead back", test_strange_names),
    CLAIM_IN_TEMP("find knows globs and leaves .git alone", test_find),
    CLAIM_IN_TEMP("grep finds lines in files that are files", test_grep),
    CLAIM_IN_TEMP("lines around a match come once", test_grep_context),
    CLAIM_IN_TEMP("line numbers are right across windows", test_grep_large),
    CLAIM_IN_TEMP("grep is bounded in time and bytes", test_grep_bounds),
    CLAIM_IN_TEMP("walks are bounded in depth", test_walk_depth),
    CLAIM_IN_TEMP("walks are bounded in time", test_walk_deadline),
};

int main(void)
{
    return RUN_CLAIMS("files/walk", claims);
}
