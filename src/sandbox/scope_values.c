/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/scope_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- lists ---- */

void scope_add_text(char ***list, const char *text)
{
    size_t n = 0;

    while (*list && (*list)[n])
        n++;
    *list = need(realloc(*list, (n + 2) * sizeof(**list)));
    (*list)[n] = need(strdup(text));
    (*list)[n + 1] = NULL;
}

void scope_warn(struct scope_plan *p, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    scope_add_text(&p->warnings, text);
}

void scope_add_mount(struct box_record *r, struct box_mount m)
{
    r->mounts = need(realloc(r->mounts, (r->n_mounts + 1) * sizeof(*r->mounts)));
    r->mounts[r->n_mounts++] = m;
}

void scope_add_bind(struct box_record *r, const char *source, const char *target, bool read_only)
{
    scope_add_mount(r, (struct box_mount){.kind = BOX_BIND,
                                          .source = need(strdup(source)),
                                          .target = need(strdup(target)),
                                          .options = read_only ? need(strdup("ro")) : NULL,
                                          .read_only = read_only});
}

void scope_add_label(struct box_record *r, const char *name, const char *value)
{
    r->labels = need(realloc(r->labels, (r->n_labels + 1) * sizeof(*r->labels)));
    r->labels[r->n_labels++] =
        (struct box_label){.name = need(strdup(name)), .value = need(strdup(value))};
}

/* ---- sizes ---- */

/* The factor of "", "b", "k", "kb", "kib" and so on; 0 if it is none. */
static double factor_of(const char *suffix)
{
    static const char units[] = "kmgtp";
    const char *unit;

    if (!suffix[0] || strcasecmp(suffix, "b") == 0)
        return 1;
    unit = strchr(units, suffix[0] | 0x20);
    if (!unit || (suffix[1] && strcasecmp(suffix + 1, "b") && strcasecmp(suffix + 1, "ib")))
        return 0;
    return ldexp(1, 10 * (int)(unit - units + 1));
}

static int size_of_text(const char *s, uint64_t *ret, struct error *err)
{
    size_t n = strspn(s, "0123456789."), blank = s[n] == ' ';
    double value;
    char *end;

    if (n == 0 || n > 64)
        return error_set(err, ERR_INVALID, "size '%s': write 512m, 1g, or a number of bytes", s);
    value = strtod(s, &end) * factor_of(s + n + blank);
    if (end != s + n || value < 1 || value >= 9223372036854775807.0)
        return error_set(err, ERR_INVALID, "size '%s': write 512m, 1g, or a number of bytes", s);
    *ret = (uint64_t)value;
    return 0;
}

int scope_size(const json_t *value, uint64_t *ret_bytes, struct error *err)
{
    double n = json_number_value(value);

    if (json_is_string(value))
        return size_of_text(json_string_value(value), ret_bytes, err);
    if (n < 1 || n >= 9223372036854775807.0)
        return error_set(err, ERR_INVALID, "size %.0f: out of range", n);
    *ret_bytes = (uint64_t)n;
    return 0;
}

/* ---- mounts ---- */

static void mount_done(struct box_mount *m)
{
    free(m->source);
    free(m->target);
    free(m->options);
    *m = (struct box_mount){0};
}

static bool is_word(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static bool is_one_of(const char *s, size_t len, const char *const *words)
{
    for (; *words; words++)
        if (is_word(s, len, *words))
            return true;
    return false;
}

static int set_target(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    if (len == 0 || s[0] != '/' || len >= LIMIT_PATH)
        return error_set(err, ERR_INVALID, "mount on '%.*s': a path of the box begins with '/'",
                         (int)(len < 200 ? len : 200), s);
    m->target = need(strndup(s, len));
    return 0;
}

/* Octal, as the kernel reads it. */
static bool read_mode(const char *s, size_t len, uint32_t *ret)
{
    uint32_t mode = 0;

    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '7')
            return false;
        mode = mode << 3 | (uint32_t)(s[i] - '0');
    }
    *ret = mode;
    return mode && mode <= 01777;
}

static int tmpfs_size(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    autofree char *text = need(strndup(s, len));
    int r = size_of_text(text, &m->bytes, err);

    if (r >= 0 && m->bytes < 4096)
        return error_set(err, ERR_INVALID, "size '%s' is less than a page", text);
    return r;
}

static int tmpfs_option(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    static const char *const always[] = {"rw", "nosuid", "nodev", "noatime", "relatime", NULL};

    if (is_one_of(s, len, always))
        return 0;
    if (is_word(s, len, "ro"))
        m->read_only = true;
    else if (is_word(s, len, "noexec") || is_word(s, len, "exec"))
        m->no_exec = s[0] == 'n';
    else if (len > 5 && strncmp(s, "size=", 5) == 0)
        return tmpfs_size(m, s + 5, len - 5, err);
    else if (len <= 5 || strncmp(s, "mode=", 5) != 0 || !read_mode(s + 5, len - 5, &m->mode))
        return error_set(err, ERR_INVALID, "option '%.*s' of a tmpfs is not known", (int)len, s);
    return 0;
}

static int bind_option(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    /* Mounts of the host never come into a box later, so that every bind is private. */
    static const char *const no_effect[] = {"z",         "Z",          "nocopy",  "cached",
                                            "delegated", "consistent", "private", "rprivate",
                                            "slave",     "rslave",     NULL};

    if (is_word(s, len, "ro") || is_word(s, len, "rw"))
        m->read_only = s[1] == 'o';
    else if (!is_one_of(s, len, no_effect))
        return error_set(err, ERR_INVALID, "option '%.*s' of a bind is not known", (int)len, s);
    return 0;
}

static int read_options(struct box_mount *m, const char *text, struct error *err)
{
    int r = 0;

    m->options = need(strdup(text));
    for (const char *p = m->options; r >= 0 && *p;) {
        size_t n = strcspn(p, ",");

        r = m->kind == BOX_TMPFS ? tmpfs_option(m, p, n, err) : bind_option(m, p, n, err);
        p += n + (p[n] != 0);
    }
    return r;
}

int scope_tmpfs(const char *text, struct box_mount *ret, struct error *err)
{
    struct box_mount m = {.kind = BOX_TMPFS};
    size_t target = strcspn(text, ":");
    int r = set_target(&m, text, target, err);

    if (r >= 0 && text[target])
        r = read_options(&m, text + target + 1, err);
    if (r < 0) {
        mount_done(&m);
        return error_wrap(err, "tmpfs '%s'", text);
    }
    *ret = m;
    return 0;
}

int scope_bind(const char *text, struct box_mount *ret, struct error *err)
{
    struct box_mount m = {.kind = BOX_BIND};
    size_t source = strcspn(text, ":"), target = text[source] ? strcspn(text + source + 1, ":") : 0;
    const char *rest = text[source] ? text + source + 1 + target : text + source;
    int r = 0;

    if (source == 0 || text[0] != '/' || target == 0)
        r = error_set(err, ERR_INVALID, "write /folder/of/the/host:/folder/of/the/box[:ro]");
    if (r >= 0)
        r = set_target(&m, text + source + 1, target, err);
    if (r >= 0) {
        m.source = need(strndup(text, source));
        r = *rest ? read_options(&m, rest + 1, err) : 0;
    }
    if (r < 0) {
        mount_done(&m);
        return error_wrap(err, "bind '%s'", text);
    }
    *ret = m;
    return 0;
}

/* ---- ulimits ---- */

/* A whole number, -1 for "unlimited", that is all of s[0..len). */
static bool read_limit(const char *s, size_t len, int64_t *ret)
{
    int64_t n = 0;

    if (is_word(s, len, "-1") || is_word(s, len, "unlimited")) {
        *ret = -1;
        return true;
    }
    for (size_t i = 0; i < len; i++)
        if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, s[i] - '0', &n))
            return false;
    *ret = n;
    return len > 0;
}

static bool limit_of_json(const json_t *v, int64_t *ret)
{
    if (json_is_string(v))
        return read_limit(json_string_value(v), strlen(json_string_value(v)), ret);
    *ret = (int64_t)json_number_value(v);
    return json_is_number(v) && *ret >= -1;
}

static bool read_pair(const json_t *v, int64_t *soft, int64_t *hard)
{
    const char *text = json_string_value(v);
    size_t n;

    if (json_is_object(v)) {
        const json_t *s = json_object_get(v, "soft"), *h = json_object_get(v, "hard");

        return limit_of_json(s ? s : h, soft) && limit_of_json(h ? h : s, hard);
    }
    if (!text) {
        bool fine = limit_of_json(v, soft);

        *hard = *soft;
        return fine;
    }
    n = strcspn(text, ":");
    if (!read_limit(text, n, soft))
        return false;
    *hard = *soft;
    return !text[n] || read_limit(text + n + 1, strlen(text + n + 1), hard);
}

int scope_ulimit(const char *name, const json_t *value, struct box_ulimit *ret, struct error *err)
{
    static const char *const names[] = {
        "core",   "cpu",   "data", "fsize",  "locks",  "memlock", "msgqueue",   "nice",
        "nofile", "nproc", "rss",  "rtprio", "rttime", "stack",   "sigpending", NULL};
    int64_t soft = 0, hard = 0;

    if (!is_one_of(name, strlen(name), names))
        return error_set(err, ERR_INVALID, "docker.ulimits: '%s' is no limit of a process", name);
    if (!read_pair(value, &soft, &hard))
        return error_set(err, ERR_INVALID,
                         "docker.ulimits.%s: a number, \"soft:hard\" or {soft, hard}", name);
    if (hard != -1 && (soft == -1 || soft > hard))
        return error_set(err, ERR_INVALID,
                         "docker.ulimits.%s: the soft limit is above the hard one", name);
    *ret = (struct box_ulimit){.name = need(strdup(name)), .soft = soft, .hard = hard};
    return 0;
}
