/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, and the paths that every verb goes by: FS-01..03, 07, 09, 10, 11, 13..15, 17, 18, 25. */
#include "files/files.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "tests/test.h"

static struct files_root root_of(const struct temp *t)
{
    struct files_root root;

    files_root_init(&root, t->fd, "/workspace");
    return root;
}

static int read_path(const struct temp *t, const char *path, struct files_ask ask, struct buf *b,
                     struct files_read *ret, struct error *err)
{
    struct files_root root = root_of(t);

    buf_init(b, LIMIT_FILES_READ);
    return files_read(&root, path, &ask, b, ret, err);
}

/* ---- paths ---- */

static void test_paths_refused(void **state)
{
    static const struct {
        const char *path;
        enum error_code code;
    } rows[] = {
        {"", ERR_INVALID},
        {".", ERR_INVALID},
        {"..", ERR_DENIED},
        {"../x", ERR_DENIED},
        {"d/../../x", ERR_DENIED},
        {"d/./..//../x", ERR_DENIED},
        {"/etc/passwd", ERR_DENIED},
        {"//etc/passwd", ERR_DENIED},
        {"file:///etc/passwd", ERR_INVALID},
        {"~/.ssh/x", ERR_INVALID},
        {"~", ERR_INVALID},
        {"a/", ERR_INVALID},
        {"a/x", ERR_INVALID},
        {"d", ERR_INVALID},
        {"d/", ERR_INVALID},
        {"/workspace/../etc/passwd", ERR_DENIED},
        {"/workspace-evil/x", ERR_DENIED},
        {"/workspace", ERR_INVALID},
        {"/workspacea", ERR_DENIED},
        {"%2e%2e/%2e%2e/etc/passwd", ERR_NOT_FOUND},
        {"..%2fx", ERR_NOT_FOUND},
        {"\\..\\x", ERR_NOT_FOUND},
        {"\xc0\xae\xc0\xae/x", ERR_NOT_FOUND},
        {"a;x", ERR_NOT_FOUND},
        {"out", ERR_DENIED},
        {"out-up", ERR_DENIED},
        {"out-dir/passwd", ERR_DENIED},
        {"self", ERR_DENIED},
        {"dangling", ERR_NOT_FOUND},
        {"environ", ERR_DENIED},
        {"stdin", ERR_DENIED},
        {"fifo", ERR_INVALID},
        {"socket", ERR_INVALID},
        {"null", ERR_INVALID},
    };
    struct temp *t = *state;
    char longest[5000];
    struct files_read ret;
    struct error err;
    size_t before = open_fds();
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);

    temp_write(t, "a", "x", 1);
    assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
    assert_int_equal(symlinkat("/etc/passwd", t->fd, "out"), 0);
    assert_int_equal(symlinkat("../../etc/passwd", t->fd, "out-up"), 0);
    assert_int_equal(symlinkat("/etc", t->fd, "out-dir"), 0);
    assert_int_equal(symlinkat("self", t->fd, "self"), 0);
    assert_int_equal(symlinkat("nothing", t->fd, "dangling"), 0);
    assert_int_equal(symlinkat("/proc/self/environ", t->fd, "environ"), 0);
    assert_int_equal(symlinkat("/dev/stdin", t->fd, "stdin"), 0);
    assert_int_equal(mkfifoat(t->fd, "fifo", 0666), 0);
    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/socket", t->path);
    assert_int_equal(bind(sock, (struct sockaddr *)&un, sizeof(un)), 0);
    (void)close(sock);
    if (mknodat(t->fd, "null", S_IFCHR | 0666, 0x103) < 0)
        assert_int_equal(mkfifoat(t->fd, "null", 0666), 0); /* no root: the next best thing */
    FOR_EACH(row, rows)
    {
        autobuf b = {0};

        CHECK(read_path(t, row->path, (struct files_ask){0}, &b, &ret, &err) == -(int)row->code,
              "'%s': %s (%s)", row->path, error_code_name(err.code), err.msg);
        CHECK(b.len == 0, "'%s': bytes came out", row->path);
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    autobuf b = {0};
    CHECK_ERR(read_path(t, longest, (struct files_ask){0}, &b, &ret, &err), err, ERR_INVALID,
              "4095");
    longest[300] = 0;
    CHECK_ERR(read_path(t, longest, (struct files_ask){0}, &b, &ret, &err), err, ERR_INVALID,
              "255");
    assert_int_equal(open_fds(), before);
}

static void test_paths_taken(void **state)
{
    static const char *const rows[] = {
        "a",    "./a",  "/workspace/a", "/workspace//a", "d/../a",          "d/.././/a",
        "link", "d/up", "dl/up",        "two",           "/workspace/d/up", "./~/f/a",
    };
    struct temp *t = *state;
    char name[16] = "chain0";

    temp_write(t, "a", "hello\n", 6);
    assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "~", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "~/f", 0755), 0);
    temp_write(t, "~/f/a", "hello\n", 6);
    assert_int_equal(symlinkat("a", t->fd, "link"), 0);
    assert_int_equal(symlinkat("link", t->fd, "two"), 0);
    assert_int_equal(symlinkat("../a", t->fd, "d/up"), 0);
    assert_int_equal(symlinkat("d", t->fd, "dl"), 0);
    FOR_EACH(row, rows)
    {
        autobuf b = {0};
        struct files_read ret;
        struct error err;

        CHECK_OK(read_path(t, *row, (struct files_ask){0}, &b, &ret, &err), err);
        CHECK_STR(b.data, "hello\n", *row);
    }
    /* FS-03: a chain of 41 links. */
    assert_int_equal(symlinkat("a", t->fd, name), 0);
    for (int i = 1; i <= 41; i++) {
        char to[16];

        (void)snprintf(to, sizeof(to), "%s", name);
        (void)snprintf(name, sizeof(name), "chain%d", i);
        assert_int_equal(symlinkat(to, t->fd, name), 0);
    }
    autobuf b = {0};
    struct files_read ret;
    struct error err;
    CHECK_ERR(read_path(t, name, (struct files_ask){0}, &b, &ret, &err), err, ERR_DENIED, "link");
}

/* FS-25: the workspace is the descriptor, whatever its name says by now. */
static void test_root_swap(void **state)
{
    struct temp *t = *state;
    autoclose int fd = -1;
    struct files_root root;
    struct files_read ret;
    struct error err;
    autobuf b = {0};

    assert_int_equal(mkdirat(t->fd, "ws", 0755), 0);
    temp_write(t, "ws/f", "inside", 6);
    assert_int_equal(mkdirat(t->fd, "canary", 0755), 0);
    temp_write(t, "canary/f", "CANARY", 6);
    fd = openat(t->fd, "ws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(renameat(t->fd, "ws", t->fd, "moved"), 0);
    assert_int_equal(symlinkat("canary", t->fd, "ws"), 0);
    files_root_init(&root, fd, NULL);
    buf_init(&b, 100);
    CHECK_OK(files_read(&root, "f", &(struct files_ask){0}, &b, &ret, &err), err);
    CHECK_STR(b.data, "inside", "pinned");
    CHECK_ERR(files_read(&root, "/workspace/f", &(struct files_ask){0}, &b, &ret, &err), err,
              ERR_DENIED, "outside");
}

/* ---- lines and bytes ---- */

static void test_lines(void **state)
{
    static const struct {
        const char *text, *want;
        int64_t offset, limit, lines, total, next;
        bool cut;
    } rows[] = {
        {"", "", 0, 0, 0, 0, 0, false},
        {"\n", "\n", 0, 0, 1, 1, 0, false},
        {"a", "a", 1, 0, 1, 1, 0, false},
        {"a\nb\nc\n", "a\nb\nc\n", 0, 0, 3, 3, 0, false},
        {"a\nb\nc\n", "b\n", 2, 1, 1, 3, 3, true},
        {"a\nb\nc\n", "b\nc\n", 2, 2, 2, 3, 0, false},
        {"a\nb\nc", "c", 3, 5, 1, 3, 0, false},
        {"a\nb\nc", "", 4, 5, 0, 3, 0, false},
        {"a\r\nb\r\n", "a\r\n", 1, 1, 1, 2, 2, true},
        {"a\nb\n", "", INT64_MAX, INT64_MAX, 0, 2, 0, false},
        {"a\n\n\n", "\n", 2, 1, 1, 3, 3, true},
    };
    struct temp *t = *state;

    FOR_EACH(row, rows)
    {
        autobuf b = {0};
        struct files_read ret;
        struct error err;
        char hex[SHA256_HEX];

        temp_write(t, "f", row->text, strlen(row->text));
        CHECK_OK(read_path(t, "f", (struct files_ask){.offset = row->offset, .limit = row->limit},
                           &b, &ret, &err),
                 err);
        CHECK_STR(b.len ? b.data : "", row->want, row->text);
        CHECK(ret.lines == row->lines && ret.total_lines == row->total && ret.cut == row->cut &&
                  ret.next == row->next && ret.kind == FILES_TEXT,
              "'%s' from %lld: %lld of %lld, next %lld", row->text, (long long)row->offset,
              (long long)ret.lines, (long long)ret.total_lines, (long long)ret.next);
        CHECK(!row->cut || strstr(ret.note, "go on with offset"), "note '%s'", ret.note);
        sha256_hex(row->text, strlen(row->text), hex);
        CHECK_STR(ret.id.sha256, hex, row->text);
    }
}

static void test_nonsense(void **state)
{
    static const struct files_ask rows[] = {{.offset = -1},
                                            {.limit = -1},
                                            {.raw = true, .offset = -1},
                                            {.raw = true, .limit = INT64_MIN}};
    struct temp *t = *state;

    temp_write(t, "f", "x", 1);
    FOR_EACH(row, rows)
    {
        autobuf b = {0};
        struct files_read ret;
        struct error err;

        CHECK_ERR(read_path(t, "f", *row, &b, &ret, &err), err, ERR_INVALID, "it");
    }
}

/* FS-10: 10 GiB that are not there; ranges at the end of the world. */
static void test_large(void **state)
{
    struct temp *t = *state;
    int fd = openat(t->fd, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int64_t size = 10ll << 30;
    struct files_read ret;
    struct error err;
    autobuf b = {0}, c = {0}, d = {0};

    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(pwrite(fd, "END", 3, size - 3), 3);
    (void)close(fd);
    CHECK_OK(read_path(t, "big", (struct files_ask){0}, &b, &ret, &err), err);
    assert_int_equal(ret.kind, FILES_BINARY);
    assert_int_equal(b.len, 0);
    assert_int_equal(ret.total_lines, -1);
    assert_string_equal(ret.id.sha256, "");
    CHECK_OK(
        read_path(t, "big", (struct files_ask){.raw = true, .offset = size - 3}, &c, &ret, &err),
        err);
    assert_string_equal(c.data, "END");
    assert_false(ret.cut);
    CHECK_OK(
        read_path(t, "big", (struct files_ask){.raw = true, .offset = INT64_MAX}, &d, &ret, &err),
        err);
    assert_int_equal(d.len, 0);
    buf_clear(&d);
    CHECK_OK(read_path(t, "big", (struct files_ask){.raw = true}, &d, &ret, &err), err);
    assert_int_equal(d.len, LIMIT_FILES_READ);
    assert_true(ret.cut && ret.next == LIMIT_FILES_READ);
}

/* A line longer than fits is gone on with in bytes; characters stay whole. */
static void test_long_line(void **state)
{
    struct temp *t = *state;
    size_t n = LIMIT_FILES_READ + 1000;
    autofree char *text = malloc(2 * n + 10);
    struct files_read ret;
    struct error err;
    autobuf b = {0}, c = {0};

    text[0] = 'x';
    for (size_t i = 0; i < n; i++)
        memcpy(text + 1 + 2 * i, "\xc3\xa9", 2);
    memcpy(text + 1 + 2 * n, "\nlast\n", 6);
    temp_write(t, "f", text, 2 * n + 7);
    CHECK_OK(read_path(t, "f", (struct files_ask){0}, &b, &ret, &err), err);
    assert_int_equal(ret.kind, FILES_TEXT);
    assert_true(ret.cut && ret.next_raw);
    assert_int_equal(ret.next, (int64_t)b.len);
    assert_int_equal(b.len % 2, 1);
    assert_true(b.len >= LIMIT_FILES_READ - 2);
    assert_int_equal(ret.total_lines, 2);
    CHECK(strstr(ret.note, "raw"), "%s", ret.note);
    CHECK_OK(read_path(t, "f", (struct files_ask){.offset = 2}, &c, &ret, &err), err);
    assert_string_equal(c.data, "last\n");
}

/* What is cut is cut between lines, and reading on from there gives every byte once. */
static void test_read_on(void **state)
{
    struct temp *t = *state;
    autobuf all, got;
    struct files_read ret = {.next = 1};
    struct error err;

    buf_init(&all, 8u << 20);
    buf_init(&got, 8u << 20);
    for (unsigned i = 0; i < 30000; i++)
        buf_printf(&all, "line %u %.*s\n", i, (int)(i % 60),
                   "............................................................");
    temp_write(t, "f", all.data, all.len);
    do {
        autobuf b = {0};

        CHECK_OK(read_path(t, "f", (struct files_ask){.offset = ret.next, .limit = 20000}, &b, &ret,
                           &err),
                 err);
        CHECK(b.len <= LIMIT_FILES_READ && b.len && b.data[b.len - 1] == '\n', "%zu", b.len);
        buf_append(&got, b.data, b.len);
        CHECK(ret.total_lines == 30000, "%lld", (long long)ret.total_lines);
    } while (ret.cut);
    assert_int_equal(got.len, all.len);
    assert_memory_equal(got.data, all.data, all.len);
}

/* FS-11: somebody appends and truncates at full speed; text and hash are of the same bytes. */
static void test_growing(void **state)
{
    struct temp *t = *state;
    pid_t pid = fork();
    time_t limit = time(NULL) + 60;
    unsigned sizes = 0;
    size_t last = 0;

    if (pid == 0) {
        int fd = openat(t->fd, "f", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        for (unsigned i = 0;; i++)
            if (write(fd, "0123456789abcde\n", 16) < 0 || (i % 8000 == 0 && ftruncate(fd, 0) < 0))
                _exit(1);
    }
    while (faccessat(t->fd, "f", F_OK, 0) < 0)
        (void)usleep(100);
    for (int i = 0; (i < 500 || sizes <= 20) && time(NULL) < limit; i++) {
        autobuf b = {0};
        struct files_read ret;
        struct error err;
        char hex[SHA256_HEX];

        CHECK_OK(read_path(t, "f", (struct files_ask){.limit = 100000}, &b, &ret, &err), err);
        sha256_hex(b.len ? b.data : "", b.len, hex);
        CHECK(ret.kind == FILES_BINARY || strcmp(hex, ret.id.sha256) == 0, "round %d", i);
        sizes += b.len != last;
        last = b.len;
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    assert_true(sizes > 20); /* it did change meanwhile */
}

static void test_kinds(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum files_kind kind;
        const char *name;
    } rows[] = {
        {"\x89PNG\r\n\x1a\n....", 12, FILES_PNG, "image/png"},
        {"\xff\xd8\xff\xe0....", 8, FILES_JPEG, "image/jpeg"},
        {"GIF89a....", 10, FILES_GIF, "image/gif"},
        {"RIFF....WEBPVP8 ", 16, FILES_WEBP, "image/webp"},
        {"RIFF....WAVEfmt ", 16, FILES_TEXT, "text"},
        {"a\0b", 3, FILES_BINARY, "binary"},
        {"a\xff\n", 3, FILES_BINARY, "binary"},
        {"\xed\xa0\x80\n", 4, FILES_BINARY, "binary"},
        {"end\xc3", 4, FILES_BINARY, "binary"},
        {"gr\xc3\xbc\xc3\x9f\n", 7, FILES_TEXT, "text"},
    };
    struct temp *t = *state;

    FOR_EACH(row, rows)
    {
        autobuf b = {0}, raw = {0};
        struct files_read ret;
        struct error err;

        temp_write(t, "f", row->bytes, row->len);
        CHECK_OK(read_path(t, "f", (struct files_ask){0}, &b, &ret, &err), err);
        CHECK(ret.kind == row->kind, "'%s': %s", row->bytes, files_kind_name(ret.kind));
        CHECK_STR(files_kind_name(ret.kind), row->name, row->name);
        CHECK(b.len == (row->kind == FILES_TEXT ? row->len : 0), "'%s': %zu", row->bytes, b.len);
        CHECK_OK(read_path(t, "f", (struct files_ask){.raw = true}, &raw, &ret, &err), err);
        CHECK(raw.len == row->len && memcmp(raw.data, row->bytes, row->len) == 0, "raw");
    }
}

/* ---- names ---- */

static void test_names(void **state)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"plain.txt", "plain.txt"},
        {"-rf", "-rf"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"a\nb", "a\\x0ab"},
        {"\x1b[2J", "\\x1b[2J"},
        {"\x7f", "\\x7f"},
        {"back\\slash", "back\\\\slash"},
        {"\\x41", "\\\\x41"},
        {"\xe2\x80\xae"
         "txt.exe",
         "\\xe2\\x80\\xaetxt.exe"},
        {"\xc2\x85", "\\xc2\\x85"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"e\xcc\x81", "e\xcc\x81"},
        {"\xc3\xa9", "\xc3\xa9"},
    };
    static const char *const wrong[] = {"a\\",  "\\n",   "\\x4",       "\\xzz", "\\x41", "\\xFF",
                                        "a\nb", "\\x00", "\\xc3\\xa9", "\xff",  "C:\\x"};
    struct error err;

    (void)state;
    FOR_EACH(row, rows)
    {
        autobuf text, back;

        buf_init(&text, 1000);
        buf_init(&back, 1000);
        files_name_escape(&text, row->name, strlen(row->name));
        CHECK_STR(text.data, row->text, row->text);
        CHECK_OK(files_name_parse(text.data, text.len, &back, &err), err);
        CHECK_STR(back.data, row->name, row->text);
    }
    FOR_EACH(row, wrong)
    {
        autobuf back;

        buf_init(&back, 1000);
        CHECK_ERR(files_name_parse(*row, strlen(*row), &back, &err), err, ERR_INVALID, "path");
    }
    autobuf back;
    buf_init(&back, 1000);
    CHECK_ERR(files_name_parse("a\0b", 3, &back, &err), err, ERR_INVALID, "NUL");
}

/* FS-17: e with an accent in two ways, and both cases, are four files. */
static void test_distinct(void **state)
{
    static const char *const names[] = {"\xc3\xa9", "e\xcc\x81", "A", "a"};
    struct temp *t = *state;

    FOR_EACH(name, names)
    temp_write(t, *name, *name, strlen(*name));
    FOR_EACH(name, names)
    {
        autobuf b = {0};
        struct files_read ret;
        struct error err;

        CHECK_OK(read_path(t, *name, (struct files_ask){0}, &b, &ret, &err), err);
        CHECK_STR(b.data, *name, *name);
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("paths that leave, and things that are no files, are refused",
                  test_paths_refused),
    CLAIM_IN_TEMP("paths and links that stay inside are followed", test_paths_taken),
    CLAIM_IN_TEMP("the workspace is its descriptor, not its name", test_root_swap),
    CLAIM_IN_TEMP("lines are counted and given from offset to limit", test_lines),
    CLAIM_IN_TEMP("negative offsets and limits are refused", test_nonsense),
    CLAIM_IN_TEMP("a file of 10 GiB costs no more than the limits", test_large),
    CLAIM_IN_TEMP("a line that does not fit is gone on with in bytes", test_long_line),
    CLAIM_IN_TEMP("reading on gives every line once", test_read_on),
    CLAIM_IN_TEMP("a file that grows is read once, as it was", test_growing),
    CLAIM_IN_TEMP("images and binary files are told", test_kinds),
    CLAIM("names have one spelling each, and it leads back", test_names),
    CLAIM_IN_TEMP("names that look alike are different files", test_distinct),
};

int main(void)
{
    return RUN_CLAIMS("files/read", claims);
}
