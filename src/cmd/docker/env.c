/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"

void env_done(struct env *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->list[i]);
    free(e->list);
    *e = (struct env){0};
}

static char **find(const struct env *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->n; i++)
        if (strncmp(e->list[i], name, len) == 0 && e->list[i][len] == '=')
            return &e->list[i];
    return NULL;
}

const char *env_find(const struct env *e, const char *name)
{
    char **entry = find(e, name, strlen(name));

    return entry ? *entry + strlen(name) + 1 : NULL;
}

static int add(struct env *e, char *entry, size_t name, struct error *err)
{
    size_t len = strlen(entry);

    if (len > LIMIT_DOCKER_ENV_STRING) {
        int r = error_set(
            err, ERR_TOO_LARGE,
            "variable %.*s has %zu bytes: the kernel gives a program at most %u in one",
            (int)(name < 100 ? name : 100), entry, len - name - 1, LIMIT_DOCKER_ENV_STRING);

        free(entry);
        return r;
    }
    if (e->n == LIMIT_DOCKER_ENV_COUNT) {
        free(entry);
        return error_set(err, ERR_TOO_LARGE, "more than %u variables", LIMIT_DOCKER_ENV_COUNT);
    }
    if ((e->n & (e->n + 1)) == 0) { /* full at 2^k - 1 entries and the NULL */
        e->list = realloc(e->list, 2 * (e->n + 1) * sizeof(*e->list));
        if (!e->list)
            abort();
    }
    e->list[e->n++] = entry;
    e->list[e->n] = NULL;
    return 0;
}

static char *make_entry(const char *text, size_t name)
{
    const char *value;
    char *entry = NULL;

    if (text[name] == '=') {
        entry = strdup(text);
    } else {
        value = getenv(text);
        if (!value)
            return NULL;
        if (asprintf(&entry, "%s=%s", text, value) < 0)
            entry = NULL;
    }
    if (!entry)
        abort();
    return entry;
}

int env_set(struct env *e, const char *text, struct error *err)
{
    size_t name = strcspn(text, "=");
    char **old, *entry;

    if (name == 0)
        return error_set(err, ERR_INVALID, "invalid environment variable: no name before the '='");
    entry = make_entry(text, name);
    if (!entry)
        return 0;
    old = find(e, text, name);
    if (!old)
        return add(e, entry, name, err);
    if (strlen(entry) > LIMIT_DOCKER_ENV_STRING)
        return add(e, entry, name, err); /* says so */
    free(*old);
    *old = entry;
    return 0;
}

int env_default(struct env *e, const char *text, struct error *err)
{
    return find(e, text, strcspn(text, "=")) ? 0 : env_set(e, text, err);
}

/* ---- files ---- */

/* What Go calls white space, as far as it is one byte. */
static const char blanks[] = " \t\v\f\r";

static int parse_line(struct env *e, const char *name, size_t number, char *line, struct error *err)
{
    size_t n;

    line += strspn(line, blanks);
    if (!*line || *line == '#')
        return 0;
    n = strcspn(line, "=");
    if (n == 0)
        return error_set(err, ERR_INVALID, "invalid env file (%s): no variable name on line %zu",
                         name, number);
    if (strcspn(line, blanks) < n)
        return error_set(
            err, ERR_INVALID,
            "invalid env file (%s): the variable name on line %zu contains whitespaces", name,
            number);
    if (env_set(e, line, err) < 0)
        return error_wrap(err, "invalid env file (%s), line %zu", name, number);
    return 0;
}

int env_parse(struct env *e, const char *name, char *text, size_t len, struct error *err)
{
    char *end = text + len;
    size_t number = 0;

    if (memchr(text, 0, len))
        return error_set(err, ERR_INVALID, "invalid env file (%s): it holds a NUL byte", name);
    if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return error_set(err, ERR_INVALID, "invalid env file (%s): it is not UTF-8", name);
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3; /* a byte order mark, which docker skips too */
    while (text < end) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        int r;

        if (!stop)
            stop = end;
        if (stop > text && stop[-1] == '\r')
            stop[-1] = 0;
        *stop = 0;
        r = parse_line(e, name, ++number, text, err);
        if (r < 0)
            return r;
        text = stop + 1;
    }
    return 0;
}

int env_read_file(struct env *e, const char *path, struct error *err)
{
    autofree char *text = malloc(LIMIT_DOCKER_ENV_FILE);
    ssize_t n;

    if (!text)
        return error_sys(err, -ENOMEM, "open %s", path);
    n = fd_read_text(AT_FDCWD, path, text, LIMIT_DOCKER_ENV_FILE);
    if (n == -EFBIG)
        return error_set(err, ERR_TOO_LARGE, "env file %s is larger than %u bytes", path,
                         LIMIT_DOCKER_ENV_FILE - 1);
    if (n == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, "open %s: no such file or directory", path);
    if (n < 0)
        return error_sys(err, (int)n, "open %s", path);
    return env_parse(e, path, text, (size_t)n, err);
}
