/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments: do they fit the schema, and what a schema cannot say? What is a call about? */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "mcp/schema.h"
#include "tool/tool.h"
#include "json/chars.h"

static struct chars_shown show(const char *s)
{
    return chars_show(s, s + strlen(s));
}

/* ---- schemas, read once ---- */

static const json_t *schema_of(const struct tool *t)
{
    static json_t **read; /* as many as tools[]; kept for good */
    size_t i = (size_t)(t - tools);

    if (!read)
        read = calloc(n_tools, sizeof(*read));
    if (read && !read[i])
        read[i] = json_loads(t->input_schema, JSON_REJECT_DUPLICATES, NULL);
    return read ? read[i] : NULL;
}

/* ---- NUL ---- */

/* What goes into files and pipes as it is. */
static bool is_content(const char *key)
{
    static const char *const names[] = {"content", "oldText", "newText", "patch", "data", "stdin"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

/* Everything else ends up as a C string somewhere, where it would be another one. */
static int check_nul(const char *key, const json_t *v, struct error *err)
{
    const char *name;
    json_t *one;
    size_t i;

    if (json_is_string(v) && strlen(json_string_value(v)) != json_string_length(v))
        return error_set(err, ERR_INVALID, "%s: it has a NUL byte, which it cannot have", key);
    json_object_foreach((json_t *)v, name, one)
    {
        bool free_text = is_content(name) && strcmp(key, "env") != 0; /* a variable's own name */

        if (!free_text && check_nul(name, one, err) < 0)
            return -(int)err->code;
    }
    json_array_foreach(v, i, one)
    {
        if (check_nul(key, one, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* ---- exec ---- */

/* Length of a string that becomes a word of the kernel's; sums up. */
static int check_word(const char *what, size_t len, size_t *total, struct error *err)
{
    if (len > LIMIT_EXEC_WORD)
        return error_set(err, ERR_INVALID, "%s: it has %zu bytes; at most %d fit", what, len,
                         LIMIT_EXEC_WORD);
    *total += len + 1;
    if (*total > LIMIT_ARG_BYTES)
        return error_set(err, ERR_INVALID, "%s: argv and env have more than %u bytes together",
                         what, LIMIT_ARG_BYTES);
    return 0;
}

static bool is_variable(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return n > 0 && !name[n] && !(name[0] >= '0' && name[0] <= '9');
}

static int check_env(json_t *env, size_t *total, struct error *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    if (json_object_size(env) > LIMIT_EXEC_ENV)
        return error_set(err, ERR_INVALID, "env: must have at most %d variables, has %zu",
                         LIMIT_EXEC_ENV, json_object_size(env));
    json_object_foreach(env, name, value)
    {
        if (!is_variable(name))
            return error_set(err, ERR_INVALID,
                             "env: %s is no name of a variable: letters, digits and _, no digit "
                             "first",
                             show(name).text);
        r = check_word("env", strlen(name) + 1 + json_string_length(value), total, err);
        if (r < 0)
            return r;
    }
    return r;
}

static int check_exec(json_t *a, struct error *err)
{
    const json_t *command = json_object_get(a, "command"), *argv = json_object_get(a, "argv"), *one;
    size_t total = 0, i;
    int r = check_env(json_object_get(a, "env"), &total, err);

    if (r < 0)
        return r;
    if (!command == !argv)
        return error_set(err, ERR_INVALID,
                         "command, argv: exactly one of them is needed, and there %s",
                         command ? "are both" : "is none");
    if (argv && json_string_length(json_array_get(argv, 0)) == 0)
        return error_set(err, ERR_INVALID, "argv[0]: it is empty; a program is needed");
    if (!json_is_true(json_object_get(a, "pty")) &&
        (json_object_get(a, "rows") || json_object_get(a, "cols")))
        return error_set(err, ERR_INVALID, "rows, cols: they need pty true");
    if (command)
        return check_word("command", json_string_length(command), &total, err);
    json_array_foreach(argv, i, one)
    {
        r = check_word("argv", json_string_length(one), &total, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- process ---- */

static const struct action {
    const char *name;
    const char *needs[4], *takes[4]; /* beside action; end with NULL */
} actions[] = {
    {"list", {NULL}, {NULL}},
    {"poll", {"process"}, {"wait"}},
    {"log", {"process"}, {"offset", "limit"}},
    {"write", {"process"}, {"data", "eof"}},
    {"kill", {"process"}, {"signal"}},
    {"resize", {"process", "rows", "cols"}, {NULL}},
};

static bool is_among(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int check_action(const struct action *act, json_t *a, struct error *err)
{
    const char *name;
    json_t *unused;

    for (const char *const *n = act->needs; *n; n++)
        if (!json_object_get(a, *n))
            return error_set(err, ERR_INVALID, "%s: is required by action '%s'", *n, act->name);
    json_object_foreach(a, name, unused)
    {
        (void)unused;
        if (strcmp(name, "action") != 0 && !is_among(act->needs, name) &&
            !is_among(act->takes, name))
            return error_set(err, ERR_INVALID, "%s: action '%s' does not take it", name, act->name);
    }
    if (strcmp(act->name, "write") == 0 && !json_object_get(a, "data") &&
        !json_is_true(json_object_get(a, "eof")))
        return error_set(err, ERR_INVALID,
                         "data: is required by action 'write', unless eof is true");
    return 0;
}

static int check_process(json_t *a, struct error *err)
{
    const char *name = json_string_value(json_object_get(a, "action"));

    for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            return check_action(&actions[i], a, err);
    return error_set(err, ERR_INVALID, "action: '%s' is none", name);
}

/* ---- the others ---- */

static int check_write(json_t *a, struct error *err)
{
    size_t n = json_string_length(json_object_get(a, "content"));

    if (n > LIMIT_TOOL_CONTENT)
        return error_set(err, ERR_INVALID, "content: it has %zu bytes; at most %d at once", n,
                         LIMIT_TOOL_CONTENT);
    if (json_is_true(json_object_get(a, "new")) && json_object_get(a, "expected"))
        return error_set(err, ERR_INVALID,
                         "new, expected: a file is either new or the one that was read");
    return 0;
}

/* Whoever fetches it reads it properly; this is for those who mean a path. */
static int check_fetch(json_t *a, struct error *err)
{
    const char *url = json_string_value(json_object_get(a, "url"));
    size_t n = strncasecmp(url, "https://", 8) == 0  ? 8
               : strncasecmp(url, "http://", 7) == 0 ? 7
                                                     : 0;

    if (n == 0 || !url[n])
        return error_set(err, ERR_INVALID, "url: %s does not begin with https:// or http://",
                         show(url).text);
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return error_set(err, ERR_INVALID, "url: it has a blank or a control character");
    return 0;
}

static const struct own_check {
    const char *tool;
    int (*check)(json_t *a, struct error *err);
} own_checks[] = {
    {"exec", check_exec},
    {"process", check_process},
    {"write", check_write},
    {"web_fetch", check_fetch},
};

int tool_check(const struct tool *t, json_t *arguments, struct error *err)
{
    const char *name = t->same_as ? t->same_as : t->name;
    const json_t *schema = schema_of(t);
    int r;

    if (!schema)
        return error_set(err, ERR_SYS, "read the schema of '%s': out of memory", t->name);
    if (!arguments)
        return error_set(err, ERR_INVALID, "arguments: there are none; an object is needed");
    r = schema_check(schema, arguments, "arguments", err);
    for (size_t i = 0; r == 0 && i < sizeof(own_checks) / sizeof(*own_checks); i++)
        if (strcmp(own_checks[i].tool, name) == 0)
            r = own_checks[i].check(arguments, err);
    return r < 0 ? r : check_nul("arguments", arguments, err); /* by now every name can be shown */
}

/* ---- what it is about ---- */

/* As much as fits, in whole characters and one line. */
static const char *put_target(char out[TOOL_TARGET], const char *s, size_t len)
{
    size_t n = len < TOOL_TARGET - 1 ? len : TOOL_TARGET - 1;

    while (n < len && n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)s[i] < ' ' || s[i] == 0x7f ? ' ' : s[i];
    out[n] = 0;
    return out;
}

static const char *target_words(const json_t *argv, char out[TOOL_TARGET])
{
    autobuf words = {.max = LIMIT_ARG_BYTES};
    const json_t *one;
    size_t i;

    json_array_foreach(argv, i, one)
    {
        if (words.len < TOOL_TARGET)
            buf_printf(&words, "%s%s", i ? " " : "", json_string_value(one));
    }
    return put_target(out, words.len ? words.data : "", words.len);
}

/* The first file that a patch names. */
static const char *target_patch(const char *patch, char out[TOOL_TARGET])
{
    static const char *const heads[] = {"*** Add File: ", "*** Update File: ", "*** Delete File: "};
    const char *first = NULL, *name = "";

    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        const char *at = strstr(patch, heads[i]);

        if (at && (!first || at < first)) {
            first = at;
            name = at + strlen(heads[i]);
        }
    }
    return put_target(out, name, strcspn(name, "\r\n"));
}

const char *tool_target(const struct tool *t, json_t *arguments, char out[TOOL_TARGET])
{
    static const char *const fields[] = {"path", "command", "process", "url", "query"};
    const json_t *argv = json_object_get(arguments, "argv");
    const json_t *patch = json_object_get(arguments, "patch"), *v;

    if (json_is_array(argv))
        return target_words(argv, out);
    if (json_is_string(patch))
        return target_patch(json_string_value(patch), out);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        v = json_object_get(arguments, fields[i]);
        if (json_is_string(v))
            return put_target(out, json_string_value(v), json_string_length(v));
    }
    return put_target(out, ".", t->kind == TOOL_FILES); /* ls, find, grep: the workspace */
}
