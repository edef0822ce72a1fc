/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file tools, from JSON to JSON: FS-01, 02, 03, 06, 07, 09, 10, 13, 14, 15, 17, 21, 22, 27.
 * Each test has a workspace, ws, and beside it a folder, out, that nobody may look into or change.
 */
#include <time.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "files/files.h"
#include "guard/guard.h"
#include "mcp/base64.h"
#include "mcp/schema.h"
#include "tests/unit/tool/json.h"
#include "tool/tool.h"

#define CANARY "canary: nobody reads this\n"

static const char *const all_tools[] = {"read", "write", "edit", "apply_patch",
                                        "ls",   "find",  "grep"};

/* ---- the scene ---- */

static int ws_fd = -1;

static void in_ws(const struct temp *t, const char *name, const char *text)
{
    char path[600];

    (void)snprintf(path, sizeof(path), "ws/%s", name);
    temp_write(t, path, text, strlen(text));
}

static struct temp *use(void **state)
{
    struct temp *t = *state;

    assert_int_equal(mkdirat(t->fd, "ws", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "out", 0755), 0);
    temp_write(t, "out/f", CANARY, strlen(CANARY));
    if (ws_fd >= 0)
        (void)close(ws_fd);
    ws_fd = openat(t->fd, "ws", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(ws_fd >= 0);
    return t;
}

static void link_to(const char *to, const char *name)
{
    assert_int_equal(symlinkat(to, ws_fd, name), 0);
}

/* The canary and the names beside it are as they were. */
static void check_outside(const struct temp *t, const char *after)
{
    autofree char *text = temp_read(t, "out/f", NULL);
    DIR *d = opendir(temp_path(t, "out"));
    size_t n = 0;

    CHECK_STR(text, CANARY, after);
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    CHECK(n == 3, "%s: something was made outside", after);
}

/* Takes the arguments. A result is held against what the tool promises. */
static int run_as(const struct pass *p, const char *tool, json_t *arguments, json_t **ret,
                  struct error *err)
{
    const struct tool *t = tool_find(tool);
    struct files_root root;
    struct error why;
    int r;

    files_root_init(&root, ws_fd, "/workspace");
    r = tool_files(p, t, &root, arguments, ret, err);
    json_decref(arguments);
    if (r == 0) {
        autojson schema = json_loads(t->output_schema, 0, NULL);

        CHECK(schema_check(schema, *ret, "result", &why) == 0, "%s: %s", tool, why.msg);
    }
    return r;
}

static int run(const char *tool, json_t *arguments, json_t **ret, struct error *err)
{
    static const struct pass may_write = {.may_write = true};

    return run_as(&may_write, tool, arguments, ret, err);
}

static json_t *call(const char *tool, json_t *arguments)
{
    json_t *result = NULL;
    struct error err;

    CHECK(run(tool, arguments, &result, &err) == 0, "%s: %s", tool, err.msg);
    return result;
}

static json_t *call_text(const char *tool, const char *arguments)
{
    return call(tool, json_of(arguments));
}

/* Expects a failure, whatever else. */
static void refused(const char *tool, json_t *arguments, enum error_code code, const char *why)
{
    struct error err = {0};
    json_t *result = NULL;
    int r = run(tool, arguments, &result, &err);

    json_decref(result);
    CHECK(r == -(int)code && (code == ERR_NONE || strstr(err.msg, why)),
          "%s: %s '%s', want %s '%s'", tool, error_code_name(err.code), err.msg,
          error_code_name(code), why);
}

static const char *text_of(const json_t *result, const char *key)
{
    const char *s = json_string_value(json_object_get(result, key));

    return s ? s : "(none)";
}

static int64_t number_of(const json_t *result, const char *key)
{
    const json_t *v = json_object_get(result, key);

    return v ? json_integer_value(v) : -1;
}

/* Arguments for a tool that is to meet this path. */
static json_t *arguments_for(const char *tool, const char *path)
{
    if (strcmp(tool, "write") == 0)
        return json_pack("{s:s,s:s}", "path", path, "content", "x");
    if (strcmp(tool, "edit") == 0)
        return json_pack("{s:s,s:[{s:s,s:s}]}", "path", path, "edits", "oldText", "canary",
                         "newText", "dead");
    if (strcmp(tool, "apply_patch") == 0)
        return json_pack("{s:o}", "patch",
                         json_sprintf("*** Begin Patch\n*** Update File: %s\n@@\n-" CANARY
                                      "+dead\n*** End Patch\n",
                                      path));
    if (strcmp(tool, "find") == 0)
        return json_pack("{s:s,s:s}", "path", path, "pattern", "*");
    if (strcmp(tool, "grep") == 0)
        return json_pack("{s:s,s:s}", "path", path, "pattern", "a");
    return json_pack("{s:s}", "path", path);
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- paths ---- */

static void test_paths(void **state)
{
    static const char *const paths[] = {
        "/etc/passwd",
        "//etc/passwd",
        "file:///etc/passwd",
        "~/.ssh/x",
        "../out/f",
        "d/../../out/f",
        "d/./..//../out/f",
        "..",
        "/workspace/../out/f",
        "/workspace-evil/x",
        "file", /* -> the canary, absolute */
        "up",   /* -> ../out/f */
        "folder/f" /* -> the canary's folder */,
        "self",
        "chain41",
        "environ",
        "fd",
        "rooted",
        "stdin",
        "devfd",
    };
    struct temp *t = use(state);
    char name[16], to[16] = "inside", direct[64];
    int fd;

    assert_int_equal(mkdirat(ws_fd, "d", 0755), 0);
    in_ws(t, "inside", "a\n");
    link_to(temp_path(t, "out/f"), "file");
    link_to("../out/f", "up");
    link_to("../out", "folder");
    link_to("self", "self");
    link_to("/proc/self/environ", "environ");
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", t->fd);
    link_to(name, "fd");
    link_to("/proc/self/root/etc/passwd", "rooted");
    link_to("/dev/stdin", "stdin");
    link_to("/dev/fd/0", "devfd");
    for (int i = 1; i <= 41; i++) {
        (void)snprintf(name, sizeof(name), "chain%d", i);
        link_to(to, name);
        (void)snprintf(to, sizeof(to), "%s", name);
    }
    FOR_EACH(path, paths)
    {
        FOR_EACH(tool, all_tools)
        {
            json_t *result = NULL;
            struct error err = {0};
            int r = run(*tool, arguments_for(*tool, *path), &result, &err);

            CHECK(r < 0, "%s '%s': it worked", *tool, *path);
            CHECK(err.code == ERR_DENIED || err.code == ERR_INVALID || err.code == ERR_NOT_FOUND,
                  "%s '%s': %s", *tool, *path, err.msg);
            check_outside(t, *path);
        }
    }
    /* The controls: the links do lead out, and what stays inside is followed. */
    fd = openat(ws_fd, "up", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, direct, 6), 6);
    assert_memory_equal(direct, "canary", 6);
    (void)close(fd);
    autojson r = call_text("read", "{'path':'chain39'}");
    assert_string_equal(text_of(r, "content"), "a\n");
    assert_string_equal(text_of(r, "path"), "chain39");
    autojson same = call_text("read", "{'path':'/workspace/d/../inside'}");
    assert_string_equal(text_of(same, "content"), "a\n");
    autojson whole = call_text("ls", "{'path':'.'}");
    assert_true(json_array_size(json_object_get(whole, "entries")) > 40);
}

static void test_odd_paths(void **state)
{
    struct temp *t = use(state);

    assert_int_equal(mkdirat(ws_fd, "d", 0755), 0);
    in_ws(t, "a", "x");
    FOR_EACH(tool, all_tools)
    {
        if (strcmp(*tool, "apply_patch") != 0)
            refused(*tool, arguments_for(*tool, ""), ERR_INVALID, "path");
    }
    refused("read", json_of("{'path':'a/'}"), ERR_INVALID, "a file is needed");
    refused("write", json_of("{'path':'new/','content':''}"), ERR_INVALID, "a file is needed");
    refused("read", json_of("{'path':'d'}"), ERR_INVALID, "a folder");
    refused("read", json_of("{'path':'.'}"), ERR_INVALID, "a folder");
    refused("write", json_of("{'path':'.','content':''}"), ERR_INVALID, "workspace itself");
    refused("ls", json_of("{'path':'a'}"), ERR_INVALID, "not a folder");
    refused("read", json_of("{'path':'none'}"), ERR_NOT_FOUND, "no such file");
}

/* FS-03: nothing is made where a dangling link leads out; inside, its target is. */
static void test_dangling(void **state)
{
    struct temp *t = use(state);

    link_to("../out/new", "out-rel");
    link_to(temp_path(t, "out/new"), "out-abs");
    link_to("../out/deep/new", "out-deep");
    link_to("made", "inside");
    refused("write", json_of("{'path':'out-rel','content':'x'}"), ERR_DENIED, "out of");
    refused("write", json_of("{'path':'out-abs','content':'x'}"), ERR_DENIED, "out of");
    refused("write", json_of("{'path':'out-deep','content':'x'}"), ERR_DENIED, "out of");
    refused("apply_patch",
            json_of("{'patch':'*** Begin Patch\\n*** Add File: out-rel\\n+x\\n*** End Patch'}"),
            ERR_DENIED, "out of");
    check_outside(t, "dangling");
    autojson r = call_text("write", "{'path':'inside','content':'x'}");
    autofree char *made = temp_read(t, "ws/made", NULL);
    assert_string_equal(made, "x");
}

static void test_hard_links(void **state)
{
    struct temp *t = use(state);

    assert_int_equal(linkat(t->fd, "out/f", ws_fd, "h", 0), 0);
    autojson w = call_text("write", "{'path':'h','content':'mine\\n'}");
    assert_non_null(
        strstr(json_string_value(json_array_get(json_object_get(w, "warnings"), 0)), "hard links"));
    check_outside(t, "write");
    autofree char *mine = temp_read(t, "ws/h", NULL);
    assert_string_equal(mine, "mine\n");
    assert_int_equal(unlinkat(ws_fd, "h", 0), 0);
    assert_int_equal(linkat(t->fd, "out/f", ws_fd, "h", 0), 0);
    autojson e = call_text("edit", "{'path':'h','edits':[{'oldText':'canary','newText':'mine'}]}");
    check_outside(t, "edit");
    assert_non_null(json_object_get(e, "warnings"));
    assert_int_equal(unlinkat(ws_fd, "h", 0), 0);
    assert_int_equal(linkat(t->fd, "out/f", ws_fd, "h", 0), 0);
    autojson p = call("apply_patch", arguments_for("apply_patch", "h"));
    check_outside(t, "apply_patch");
    assert_int_equal(number_of(p, "updated"), 1);
}

static void test_fifo(void **state)
{
    double begun = now();
    struct temp *t = use(state);

    assert_int_equal(mkfifoat(ws_fd, "p", 0666), 0);
    in_ws(t, "q", "a\n");
    FOR_EACH(tool, all_tools)
    {
        refused(*tool, arguments_for(*tool, "p"), ERR_INVALID,
                strcmp(*tool, "ls") == 0 || strcmp(*tool, "find") == 0 ? "not a folder" : "FIFO");
    }
    autojson g = call_text("grep", "{'pattern':'a'}"); /* walks past it */
    assert_int_equal(json_array_size(json_object_get(g, "matches")), 1);
    autojson l = call_text("ls", "{}");
    assert_string_equal(text_of(json_array_get(json_object_get(l, "entries"), 0), "type"), "other");
    CHECK(now() - begun < 5, "it took %.1f s", now() - begun);
}

/* ---- names ---- */

/* Raw names, and the spelling of each in JSON and in a patch. */
static const struct {
    const char *raw, *spelled;
} names[] = {
    {"\xff\xfe", "\\xff\\xfe"},
    {"\\xff\\xfe", "\\\\xff\\\\xfe"},
    {"new\nline", "new\\x0aline"},
    {"\x1b[31m", "\\x1b[31m"},
    {"\x7f", "\\x7f"},
    {"\xe2\x80\xaetxt.exe", "\\xe2\\x80\\xaetxt.exe"},
    {"-rf", "-rf"},
    {"\xc3\xa9", "\xc3\xa9"},
    {"e\xcc\x81", "e\xcc\x81"},
    {"A", "A"},
    {"a", "a"},
    {"with blank", "with blank"},
    {"'quoted\"", "'quoted\""},
};

static bool is_listed(const json_t *list, const char *path)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *it = json_is_string(one) ? json_string_value(one) : text_of(one, "path");

        if (strcmp(it, path) == 0)
            return true;
    }
    return false;
}

static void test_names(void **state)
{
    struct temp *t = use(state);
    char longest[256];

    memset(longest, 'n', 255);
    longest[255] = 0;
    for (size_t i = 0; i < COUNT(names); i++)
        in_ws(t, names[i].raw, names[i].spelled);
    autojson l = call_text("ls", "{}");
    autojson f = call_text("find", "{'pattern':'*','path':'/workspace/'}");
    assert_int_equal(json_array_size(json_object_get(l, "entries")), COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        char below[300];
        autojson r = call("read", json_pack("{s:s}", "path", names[i].spelled));

        CHECK_STR(text_of(r, "content"), names[i].spelled, names[i].spelled); /* its own, only */
        CHECK(is_listed(json_object_get(l, "entries"), names[i].spelled), "ls: %s",
              names[i].spelled);
        (void)snprintf(below, sizeof(below), "/workspace/%s", names[i].spelled);
        CHECK(is_listed(json_object_get(f, "paths"), below), "find: %s", below);
        autojson again = call("read", json_pack("{s:s}", "path", below));
        CHECK_STR(text_of(again, "content"), names[i].spelled, below);
        autojson p = call("apply_patch",
                          json_pack("{s:o}", "patch",
                                    json_sprintf("*** Begin Patch\n*** Update File: %s\n@@\n-%s\n"
                                                 "+%zu\n*** End Patch",
                                                 names[i].spelled, names[i].spelled, i)));
        CHECK(number_of(p, "updated") == 1, "patch: %s", names[i].spelled);
        autojson after = call("read", json_pack("{s:s}", "path", names[i].spelled));
        (void)snprintf(below, sizeof(below), "%zu\n", i);
        CHECK_STR(text_of(after, "content"), below, names[i].spelled);
    }
    autojson w = call("write", json_pack("{s:s,s:s}", "path", longest, "content", "x"));
    assert_true(json_is_true(json_object_get(w, "created")));
    refused("write", json_pack("{s:o,s:s}", "path", json_sprintf("%sn", longest), "content", ""),
            ERR_INVALID, "255");
}

/* No second spelling, no NUL, no half of a character: never another file. */
static void test_names_refused(void **state)
{
    static const char *const bad[] = {"\\\\x61", "\\\\n",        "a\\\\b",  "\\\\xFF",
                                      "a\\nb",   "\xe2\x80\xae", "\\\\x00", "a\\u0000b"};
    struct temp *t = use(state);
    char args[200];

    in_ws(t, "a", "a");
    in_ws(t, "a\nb", "a");
    FOR_EACH(name, bad)
    {
        (void)snprintf(args, sizeof(args), "{'path':'%s'}", *name);
        refused("read", json_of(args), ERR_INVALID, "path:");
        refused("ls", json_of(args), ERR_INVALID, "path:");
        (void)snprintf(args, sizeof(args), "{'path':'%s','content':'x'}", *name);
        refused("write", json_of(args), ERR_INVALID, "path:");
    }
    refused("apply_patch",
            json_of("{'patch':'*** Begin Patch\\n*** Delete File: a\\u0000b\\n*** End Patch'}"),
            ERR_INVALID, "NUL");
    refused("apply_patch",
            json_of("{'patch':'*** Begin Patch\\n*** Delete File: \\\\x61\\n*** End Patch'}"),
            ERR_INVALID, "patch line 2: path:");
    assert_null(json_try("{'path':'\\ud800'}")); /* the reader of JSON has no such text */
    assert_int_equal(faccessat(ws_fd, "a", F_OK, 0), 0);
}

/* ---- read ---- */

static void test_read_text(void **state)
{
    struct temp *t = use(state);

    in_ws(t, "a", "one\r\ntwo\nthree");
    in_ws(t, "empty", "");
    autojson r = call_text("read", "{'path':'a','offset':2,'limit':1}");
    assert_string_equal(text_of(r, "content"), "two\n");
    assert_string_equal(text_of(r, "kind"), "text");
    assert_int_equal(number_of(r, "lines"), 1);
    assert_int_equal(number_of(r, "totalLines"), 3);
    assert_int_equal(number_of(r, "next"), 3);
    assert_int_equal(number_of(r, "size"), 14);
    assert_int_equal(strlen(text_of(r, "version")), 64);
    autojson whole = call_text("read", "{'path':'a'}");
    assert_string_equal(text_of(whole, "content"), "one\r\ntwo\nthree");
    assert_null(json_object_get(whole, "next"));
    assert_null(json_object_get(whole, "note"));
    assert_string_equal(text_of(whole, "version"), text_of(r, "version"));
    autojson bytes = call_text("read", "{'path':'a','bytes':true,'offset':1,'limit':3}");
    assert_string_equal(text_of(bytes, "data"), "bmUN");
    assert_int_equal(number_of(bytes, "next"), 4);
    assert_null(json_object_get(bytes, "content"));
    autojson none = call_text("read", "{'path':'empty'}");
    assert_string_equal(text_of(none, "content"), "");
    assert_int_equal(number_of(none, "lines"), 0);
}

static void test_read_other(void **state)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    struct temp *t = use(state);
    char *line = malloc(LIMIT_FILES_READ + 11);
    autobuf data = {.max = LIMIT_TOOL_IMAGE};
    int fd;

    temp_write(t, "ws/i.png", png, sizeof(png));
    autojson r = call_text("read", "{'path':'i.png'}");
    assert_string_equal(text_of(r, "kind"), "image");
    assert_string_equal(text_of(r, "mimeType"), "image/png");
    assert_true(base64_take(text_of(r, "data"), strlen(text_of(r, "data")), BASE64_PLAIN, &data));
    assert_memory_equal(data.data, png, sizeof(png));
    assert_null(json_object_get(r, "content"));
    /* An image that is larger than a text may be comes whole; one that is too large does not. */
    fd = openat(ws_fd, "i.png", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, LIMIT_TOOL_IMAGE), 0);
    autojson big = call_text("read", "{'path':'i.png'}");
    assert_int_equal(strlen(text_of(big, "data")), LIMIT_TOOL_IMAGE / 3 * 4);
    assert_null(json_object_get(big, "next"));
    assert_int_equal(ftruncate(fd, LIMIT_TOOL_IMAGE + 1), 0);
    autojson huge = call_text("read", "{'path':'i.png'}");
    assert_null(json_object_get(huge, "data"));
    assert_non_null(strstr(text_of(huge, "note"), "make it smaller"));
    (void)close(fd);
    temp_write(t, "ws/b", "a\0b", 3);
    autojson binary = call_text("read", "{'path':'b'}");
    assert_string_equal(text_of(binary, "kind"), "binary");
    assert_non_null(strstr(text_of(binary, "note"), "bytes true"));
    assert_null(json_object_get(binary, "content"));
    autojson raw = call_text("read", "{'path':'b','bytes':true}");
    assert_string_equal(text_of(raw, "data"), "YQBi");
    memset(line, 'x', LIMIT_FILES_READ + 10);
    temp_write(t, "ws/long", line, LIMIT_FILES_READ + 10);
    free(line);
    autojson cut = call_text("read", "{'path':'long'}");
    assert_int_equal(number_of(cut, "nextByte"), LIMIT_FILES_READ);
    assert_null(json_object_get(cut, "next"));
    autojson rest = call_text("read", "{'path':'long','bytes':true,'offset':262144}");
    assert_string_equal(text_of(rest, "data"), "eHh4eHh4eHh4eA==");
}

static void test_read_large(void **state)
{
    struct temp *t = use(state);
    double begun = now();
    int fd = openat(ws_fd, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    (void)t;
    assert_int_equal(write(fd, "text\n", 5), 5);
    assert_int_equal(ftruncate(fd, (off_t)10 << 30), 0);
    (void)close(fd);
    autojson first = call_text("read", "{'path':'huge','limit':1}");
    assert_int_equal(number_of(first, "size"), (int64_t)10 << 30);
    autojson part = call_text("read", "{'path':'huge','bytes':true,'limit':100000000}");
    assert_int_equal(strlen(text_of(part, "data")), (LIMIT_FILES_READ + 2) / 3 * 4);
    assert_int_equal(number_of(part, "next"), LIMIT_FILES_READ);
    assert_int_equal(strncmp(text_of(part, "version"), "stat:", 5), 0);
    autojson far = call_text("read", "{'path':'huge','bytes':true,'offset':9223372036854775807}");
    assert_string_equal(text_of(far, "data"), "");
    autojson lines = call_text(
        "read", "{'path':'huge','offset':9223372036854775807,'limit':9223372036854775807}");
    assert_null(json_object_get(lines, "next"));
    refused("read", json_of("{'path':'huge','offset':-1}"), ERR_INVALID, "offset");
    refused("read", json_of("{'path':'huge','limit':-5}"), ERR_INVALID, "limit");
    refused("read", json_of("{'path':'huge','limit':0}"), ERR_INVALID, "limit");
    CHECK(now() - begun < 20, "it took %.1f s", now() - begun);
}

/* ---- write, edit ---- */

static void test_write(void **state)
{
    struct temp *t = use(state);
    struct stat st;

    autojson w = call_text("write", "{'path':'d/e/f','content':'one\\ntwo\\n'}");
    assert_true(json_is_true(json_object_get(w, "created")));
    assert_int_equal(number_of(w, "added"), 2);
    assert_int_equal(number_of(w, "removed"), 0);
    assert_null(json_object_get(w, "warnings"));
    assert_int_equal(fchmodat(ws_fd, "d/e/f", 0750, 0), 0);
    autojson again = call_text("write", "{'path':'d/e/f','content':'one\\n2\\n'}");
    assert_true(json_is_false(json_object_get(again, "created")));
    assert_int_equal(number_of(again, "removed"), 1);
    assert_int_equal(fstatat(ws_fd, "d/e/f", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    refused("write", json_of("{'path':'d/e/f','content':'','new':true}"), ERR_EXISTS, "taken");
    refused("write", json_of("{'path':'x/y','content':'','parents':false}"), ERR_NOT_FOUND, "");
    assert_int_equal(faccessat(ws_fd, "x", F_OK, 0), -1);
    autojson b =
        call_text("write", "{'path':'bin','content':'AP8A','encoding':'base64','new':true}");
    size_t len;
    autofree char *bytes = temp_read(t, "ws/bin", &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "\0\xff\0", 3);
    refused("write", json_of("{'path':'bin','content':'AP8','encoding':'base64'}"), ERR_INVALID,
            "base64");
    refused("write", json_of("{'path':'bin','content':'AP 8A','encoding':'base64'}"), ERR_INVALID,
            "base64");
    autojson nul = call_text("write", "{'path':'nul','content':'a\\u0000b'}");
    autofree char *text = temp_read(t, "ws/nul", &len);
    assert_int_equal(len, 3);
    autojson empty = call_text("write", "{'path':'nul','content':'','encoding':'base64'}");
    assert_int_equal(fstatat(ws_fd, "nul", &st, 0), 0);
    assert_int_equal(st.st_size, 0);
    /* What is too large to be compared can still be replaced. */
    assert_int_equal(truncate(temp_path(t, "ws/nul"), (off_t)LIMIT_FILES_WRITE + 1), 0);
    autojson small = call_text("write", "{'path':'nul','content':'x\\n'}");
    assert_null(json_object_get(small, "added"));
    assert_int_equal(fstatat(ws_fd, "nul", &st, 0), 0);
    assert_int_equal(st.st_size, 2);
}

static void test_lost_update(void **state)
{
    static const char first[] = "[{'oldText':'one','newText':'1'}]",
                      second[] = "[{'oldText':'two','newText':'2'}]";
    struct temp *t = use(state);

    in_ws(t, "f", "one two\n");
    autojson r = call_text("read", "{'path':'f'}");
    const char *version = text_of(r, "version");
    autojson won = call("edit", json_pack("{s:s,s:o,s:s}", "path", "f", "edits", json_of(first),
                                          "expected", version));
    assert_true(strcmp(text_of(won, "version"), version) != 0);
    refused("edit",
            json_pack("{s:s,s:o,s:s}", "path", "f", "edits", json_of(second), "expected", version),
            ERR_EXISTS, "has changed");
    refused("write",
            json_pack("{s:s,s:s,s:s}", "path", "f", "content", "mine", "expected", version),
            ERR_EXISTS, "has changed");
    refused("write",
            json_pack("{s:s,s:s,s:s}", "path", "g", "content", "mine", "expected", version),
            ERR_EXISTS, "has changed");
    autofree char *text = temp_read(t, "ws/f", NULL);
    assert_string_equal(text, "1 two\n");
    /* The controls: with the newer version, and with none at all. */
    autojson next = call("edit", json_pack("{s:s,s:o,s:s}", "path", "f", "edits", json_of(second),
                                           "expected", text_of(won, "version")));
    autojson blind = call_text("write", "{'path':'f','content':'mine'}");
    autojson after = call("write", json_pack("{s:s,s:s,s:s}", "path", "f", "content", "yours",
                                             "expected", text_of(blind, "version")));
    assert_false(json_is_true(json_object_get(after, "created")));
    assert_non_null(next);
}

/* Large files are known by their stat. */
static void test_versions(void **state)
{
    static const char *const bad[] = {
        "x",
        "stat:1:2:3",
        "stat:1:2:3:4:5",
        "stat: 1:2:3:4",
        "stat:01:2:3:4",
        "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"};
    struct temp *t = use(state);
    int fd = openat(ws_fd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    in_ws(t, "f", "");
    FOR_EACH(v, bad)
    {
        refused("write", json_pack("{s:s,s:s,s:s}", "path", "f", "content", "", "expected", *v),
                ERR_INVALID, "expected:");
    }
    assert_int_equal(ftruncate(fd, LIMIT_FILES_HASH + 1), 0);
    autojson r = call_text("read", "{'path':'big','bytes':true,'limit':1}");
    assert_int_equal(pwrite(fd, "x", 1, 0), 1);
    refused(
        "write",
        json_pack("{s:s,s:s,s:s}", "path", "big", "content", "", "expected", text_of(r, "version")),
        ERR_EXISTS, "has changed");
    autojson again = call_text("read", "{'path':'big','bytes':true,'limit':1}");
    autojson w = call("write", json_pack("{s:s,s:s,s:s}", "path", "big", "content", "", "expected",
                                         text_of(again, "version")));
    assert_non_null(w);
    (void)close(fd);
}

static void test_edits(void **state)
{
    static const struct {
        const char *before, *edits, *after, *why; /* after NULL: refused */
    } rows[] = {
        {"a b a", "[{'oldText':'b','newText':'c'}]", "a c a", NULL},
        {"a b a", "[{'oldText':'a','newText':'c'}]", NULL, "2 matches"},
        {"a b a", "[{'oldText':'a','newText':'c','all':true}]", "c b c", NULL},
        {"aaa", "[{'oldText':'aa','newText':'b'}]", NULL, "2 matches"}, /* they overlap */
        {"aaa", "[{'oldText':'aa','newText':'b','all':true}]", "ba", NULL},
        {"abc", "[{'oldText':'','newText':'x'}]", NULL, "oldText: must have at least 1"},
        {"abc", "[{'oldText':'b','newText':'b'}]", NULL, "the same"},
        {"abc", "[{'oldText':'x','newText':'b'}]", NULL, "no match"},
        {"a.c (x)*", "[{'oldText':'.c (x)*','newText':'$1\\\\1'}]", "a$1\\1", NULL},
        {"abc", "[{'oldText':'.','newText':'x'}]", NULL, "no match"},
        {"a\r\nb\r\n", "[{'oldText':'b','newText':'c'}]", "a\r\nc\r\n", NULL},
        {"a\r\nb\r\n", "[{'oldText':'a\\nb','newText':'c'}]", NULL, "line ends"},
        {"a\nb", "[{'oldText':'b','newText':'c'}]", "a\nc", NULL},
        {"abc", "[{'oldText':'a','newText':'b'},{'oldText':'bbc','newText':'d'}]", "d", NULL},
        {"abc", "[{'oldText':'a','newText':'x'},{'oldText':'a','newText':'y'}]", NULL, "edit 2"},
        {"\xff one \xfe", "[{'oldText':'one','newText':'two'}]", "\xff two \xfe", NULL},
        {"abc", "[{'oldText':'b','newText':''}]", "ac", NULL},
    };
    struct temp *t = use(state);

    FOR_EACH(row, rows)
    {
        const char *want = row->after ? row->after : row->before;
        json_t *a = json_pack("{s:s,s:o}", "path", "f", "edits", json_of(row->edits));

        in_ws(t, "f", row->before);
        if (row->after) {
            autojson r = call("edit", a);

            CHECK(strncmp(text_of(r, "diff"), "@@ ", 3) == 0, "%s: no diff", row->edits);
        } else {
            struct error err = {0};
            json_t *r = NULL;

            CHECK(run("edit", a, &r, &err) < 0, "%s: it worked", row->edits);
            CHECK(strstr(err.msg, row->why), "%s: %s", row->edits, err.msg);
        }
        autofree char *text = temp_read(t, "ws/f", NULL);
        CHECK_STR(text, want, row->edits);
    }
    refused("edit", json_of("{'path':'none','edits':[{'oldText':'a','newText':'b'}]}"),
            ERR_NOT_FOUND, "no such file");
}

/* FS-22: one line of 100 MiB; the diff that comes back is small all the same. */
static void test_edit_large(void **state)
{
    struct temp *t = use(state);
    size_t size = (size_t)100 << 20, len;
    char *text = malloc(size);

    assert_non_null(text);
    memset(text, 'x', size);
    memcpy(text + size / 2, "here", 4);
    temp_write(t, "ws/f", text, size);
    autojson r = call_text("edit", "{'path':'f','edits':[{'oldText':'here','newText':'there'}]}");
    autofree char *after = temp_read(t, "ws/f", &len);
    assert_int_equal(len, size + 1);
    assert_memory_equal(after + size / 2, "therex", 6);
    assert_true(strlen(text_of(r, "diff")) < 4096);
    free(text);
}

static void test_patch(void **state)
{
    struct temp *t = use(state);

    in_ws(t, "a", "1\n2\n3\n");
    in_ws(t, "old", "x\n");
    in_ws(t, "gone", "x\n");
    autojson r =
        call_text("apply-patch", "{'patch':'*** Begin Patch\\n*** Add File: d/new\\n+n\\n"
                                 "*** Update File: a\\n@@\\n 1\\n-2\\n+two\\n"
                                 "*** Update File: old\\n*** Move to: moved\\n@@\\n-x\\n+y\\n"
                                 "*** Delete File: gone\\n*** End Patch\\n'}");
    assert_int_equal(number_of(r, "added"), 1);
    assert_int_equal(number_of(r, "updated"), 2);
    assert_int_equal(number_of(r, "moved"), 1);
    assert_int_equal(number_of(r, "deleted"), 1);
    assert_non_null(strstr(text_of(r, "diff"), "--- old\n+++ moved\n"));
    autofree char *a = temp_read(t, "ws/a", NULL);
    assert_string_equal(a, "1\ntwo\n3\n");
    /* All or none. */
    refused("apply_patch",
            json_of("{'patch':'*** Begin Patch\\n*** Delete File: a\\n"
                    "*** Update File: moved\\n@@\\n-nothing\\n+z\\n*** End Patch'}"),
            ERR_NOT_FOUND, "moved");
    assert_int_equal(faccessat(ws_fd, "a", F_OK, 0), 0);
    refused("apply_patch", json_of("{'patch':'hello'}"), ERR_INVALID, "patch line 1");
}

/* ---- who may write ---- */

static void test_may_not_write(void **state)
{
    static const struct pass reader = {.may_write = false};
    struct temp *t = use(state);

    in_ws(t, "f", CANARY);
    FOR_EACH(name, all_tools)
    {
        bool reads = tool_find(*name)->read_only;
        const char *path = strcmp(*name, "ls") == 0 || strcmp(*name, "find") == 0 ? "." : "f";
        json_t *r = NULL;
        struct error err = {0};
        int res = run_as(&reader, *name, arguments_for(*name, path), &r, &err);

        json_decref(r);
        CHECK(res == (reads ? 0 : -ERR_DENIED), "%s: %d %s", *name, res, err.msg);
        CHECK(reads || strstr(err.msg, "only read"), "%s: %s", *name, err.msg);
    }
    autofree char *text = temp_read(t, "ws/f", NULL);
    assert_string_equal(text, CANARY);
    /* The control: the same calls with a pass that may. */
    autojson w = call("edit", arguments_for("edit", "f"));
    assert_non_null(w);
}

/* Whoever forgets to check the arguments is not let through, nor brought down. */
static void test_unchecked(void **state)
{
    (void)use(state);
    FOR_EACH(name, all_tools)
    {
        refused(*name, json_of("[]"), ERR_INVALID, "arguments");
        refused(*name, json_of("{'path':{},'pattern':1,'patch':[]}"), ERR_INVALID, "");
    }
    refused("exec", json_of("{'command':'ls'}"), ERR_NOT_FOUND, "no file tool");
}

/* ---- ls, find, grep ---- */

static void test_ls(void **state)
{
    struct temp *t = use(state);

    assert_int_equal(mkdirat(ws_fd, "d", 0755), 0);
    assert_int_equal(mkdirat(ws_fd, ".git", 0755), 0);
    in_ws(t, "d/x", "12345");
    in_ws(t, ".git/config", "");
    link_to("nowhere", "l");
    autojson r = call_text("ls", "{'recursive':true}");
    const json_t *entries = json_object_get(r, "entries"), *file = json_array_get(entries, 2);
    assert_int_equal(json_array_size(entries), 4);
    assert_string_equal(text_of(json_array_get(entries, 0), "path"), ".git");
    assert_string_equal(text_of(json_array_get(entries, 1), "type"), "directory");
    assert_string_equal(text_of(file, "path"), "d/x");
    assert_int_equal(number_of(file, "size"), 5);
    assert_int_equal(strlen(text_of(file, "modified")), strlen("2026-01-01T00:00:00Z"));
    assert_string_equal(text_of(json_array_get(entries, 3), "type"), "symlink");
    assert_true(json_is_false(json_object_get(r, "truncated")));
    autojson below = call_text("ls", "{'path':'d/'}");
    assert_string_equal(text_of(json_array_get(json_object_get(below, "entries"), 0), "path"),
                        "d/x");
    autojson few = call_text("ls", "{'limit':1}");
    assert_int_equal(json_array_size(json_object_get(few, "entries")), 1);
    assert_true(json_is_true(json_object_get(few, "truncated")));
    assert_string_equal(text_of(few, "why"), "limit");
    assert_true(text_of(few, "note")[0]);
}

static void test_find_grep(void **state)
{
    struct temp *t = use(state);

    assert_int_equal(mkdirat(ws_fd, "g", 0755), 0);
    in_ws(t, "g/g", "alpha\nbeta\ngamma\n");
    in_ws(t, "a.c", "Beta\nb\xff\n");
    temp_write(t, "ws/bin", "beta\0", 5);
    autojson f = call_text("find", "{'pattern':'g'}");
    assert_int_equal(json_array_size(json_object_get(f, "paths")), 2);
    assert_true(is_listed(json_object_get(f, "paths"), "g/"));
    assert_true(is_listed(json_object_get(f, "paths"), "g/g"));
    autojson r = call_text("grep", "{'pattern':'^beta$','ignoreCase':true,'context':1}");
    const json_t *m = json_object_get(r, "matches");
    assert_int_equal(json_array_size(m), 5);
    assert_string_equal(text_of(json_array_get(m, 0), "path"), "a.c");
    assert_string_equal(text_of(json_array_get(m, 0), "text"), "Beta");
    assert_string_equal(text_of(json_array_get(m, 1), "text"), "b\xef\xbf\xbd");
    assert_true(json_is_true(json_object_get(json_array_get(m, 1), "context")));
    assert_string_equal(text_of(json_array_get(m, 3), "path"), "g/g");
    assert_int_equal(number_of(json_array_get(m, 3), "line"), 2);
    assert_int_equal(number_of(r, "binary"), 1);
    /* A file's path is given back as it was asked for, even if its folder has the same name. */
    autojson one = call_text("grep", "{'pattern':'beta','path':'g/g'}");
    assert_string_equal(text_of(json_array_get(json_object_get(one, "matches"), 0), "path"), "g/g");
    autojson folder = call_text("grep", "{'pattern':'beta','path':'g'}");
    assert_string_equal(text_of(json_array_get(json_object_get(folder, "matches"), 0), "path"),
                        "g/g");
    autojson globbed = call_text("grep", "{'pattern':'b','glob':'*.c','literal':true}");
    assert_int_equal(json_array_size(json_object_get(globbed, "matches")), 1);
    autojson few = call_text("grep", "{'pattern':'a','limit':1}");
    assert_string_equal(text_of(few, "why"), "limit");
    refused("grep", json_of("{'pattern':'('}"), ERR_INVALID, "");
    refused("grep", json_of("{'pattern':'(a)\\\\1'}"), ERR_INVALID, "");
    refused("find", json_of("{'pattern':'[a'}"), ERR_INVALID, "");
}

/* FS-27 */
static void test_bombs(void **state)
{
    struct temp *t = use(state);
    double begun = now();
    size_t len = 4000000;
    char *text = malloc(len), path[400] = "";

    for (int i = 0; i < 60; i++) {
        (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "%sd%d", i ? "/" : "", i);
        assert_int_equal(mkdirat(ws_fd, path, 0755), 0);
    }
    memset(text, 'a', len);
    for (size_t i = 1000000; i <= len; i += 1000000) /* four lines */
        memcpy(text + i - 2, "!\n", 2);
    temp_write(t, "ws/as", text, len);
    free(text);
    autojson f = call_text("find", "{'pattern':'**/**/**/**/**/**/*x'}");
    assert_int_equal(json_array_size(json_object_get(f, "paths")), 0);
    autojson all = call_text("find", "{'pattern':'**/d59'}");
    assert_int_equal(json_array_size(json_object_get(all, "paths")), 1);
    autojson g = call_text("grep", "{'pattern':'(a+)+$'}");
    assert_int_equal(json_array_size(json_object_get(g, "matches")), 0);
    CHECK(now() - begun < 3 * LIMIT_TOOL_SEARCH_MS / 1000.0 + 5, "it took %.1f s", now() - begun);
}

/* A file that begins as text and has a hole behind it: nothing but the clock ends the search. */
static void test_deadline(void **state)
{
    struct temp *t = use(state);
    autofree char *chunk = malloc(LIMIT_FILES_CHUNK);
    double begun = now();
    int fd;

    memset(chunk, 'y', LIMIT_FILES_CHUNK);
    temp_write(t, "ws/x", chunk, LIMIT_FILES_CHUNK);
    fd = openat(ws_fd, "x", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)1 << 38), 0);
    (void)close(fd);
    autojson g = call_text("grep", "{'pattern':'nowhere'}");
    assert_true(json_is_true(json_object_get(g, "truncated")));
    assert_string_equal(text_of(g, "why"), "time");
    CHECK(now() - begun < LIMIT_TOOL_SEARCH_MS / 1000.0 + 5, "it took %.1f s", now() - begun);
}

/* A long path before every name: the answer stays bounded, and says so. */
static void test_answer_size(void **state)
{
    struct temp *t = use(state);
    char part[201], path[4000] = "", name[32];
    int dir = dup(ws_fd), next;

    (void)t;
    memset(part, 0x01, 200); /* four characters each when it is shown */
    part[200] = 0;
    for (int i = 0; i < 15; i++) {
        for (int k = 0; k < 200; k++)
            (void)snprintf(path + strlen(path), 5, "\\x01");
        assert_int_equal(mkdirat(dir, part, 0755), 0);
        next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(dir);
        dir = next;
        if (strlen(path) > 3100)
            break;
        (void)snprintf(path + strlen(path), 2, "/");
    }
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "f%d", i);
        next = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(next >= 0);
        (void)close(next);
    }
    (void)close(dir);
    autojson l = call("ls", json_pack("{s:s,s:i}", "path", path, "limit", 5000));
    autofree char *text = json_dumps(l, JSON_COMPACT);
    CHECK(strlen(text) < 2 * LIMIT_FILES_OUT, "%zu bytes", strlen(text));
    assert_string_equal(text_of(l, "why"), "size");
    autojson f =
        call("find", json_pack("{s:s,s:s,s:i}", "path", path, "pattern", "f*", "limit", 5000));
    assert_string_equal(text_of(f, "why"), "size");
    assert_true(json_array_size(json_object_get(f, "paths")) > 100);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("FS-01, 02, 03, 09: no path leads out, by any tool", test_paths),
        CLAIM_IN_TEMP("FS-02: empty paths, folders and files are told apart", test_odd_paths),
        CLAIM_IN_TEMP("FS-03: a dangling link makes nothing outside", test_dangling),
        CLAIM_IN_TEMP("FS-06: other names of a file keep their content", test_hard_links),
        CLAIM_IN_TEMP("FS-07: a FIFO is refused at once", test_fifo),
        CLAIM_IN_TEMP("FS-13, 14, 17: every name has one spelling, and is one file", test_names),
        CLAIM_IN_TEMP("FS-13, 15: other spellings and NUL are refused", test_names_refused),
        CLAIM_IN_TEMP("read gives lines, and says where to go on", test_read_text),
        CLAIM_IN_TEMP("read gives images whole, other files as bytes", test_read_other),
        CLAIM_IN_TEMP("FS-10: large files and ranges", test_read_large),
        CLAIM_IN_TEMP("write makes, replaces, decodes", test_write),
        CLAIM_IN_TEMP("FS-21: who comes second with an old version changes nothing",
                      test_lost_update),
        CLAIM_IN_TEMP("versions have one spelling; large files have one too", test_versions),
        CLAIM_IN_TEMP("FS-22: edits are exact and literal", test_edits),
        CLAIM_IN_TEMP("FS-22: a line of 100 MiB can be edited", test_edit_large),
        CLAIM_IN_TEMP("apply_patch does all or nothing", test_patch),
        CLAIM_IN_TEMP("a pass that may not write changes nothing", test_may_not_write),
        CLAIM_IN_TEMP("arguments that nobody checked are refused", test_unchecked),
        CLAIM_IN_TEMP("ls tells what is there", test_ls),
        CLAIM_IN_TEMP("find and grep tell where it is", test_find_grep),
        CLAIM_IN_TEMP("FS-27: globs and patterns do not explode", test_bombs),
        CLAIM_IN_TEMP("FS-27: a search ends at its deadline", test_deadline),
        CLAIM_IN_TEMP("an answer is bounded, whatever names it has to tell", test_answer_size),
    };

    return RUN_CLAIMS("tool/files", claims);
}
