/* SPDX-License-Identifier: Apache-2.0 */
/* What --volume, --mount and --tmpfs take. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "sandbox/sandbox.h"
#include "sandbox/values.h"

void values_mount_done(struct box_mount *m)
{
    free(m->source);
    free(m->target);
    free(m->options);
    *m = (struct box_mount){0};
}

static char *copy(const char *s, size_t len)
{
    char *r = strndup(s, len);

    if (!r)
        abort();
    return r;
}

static bool is_word(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

/* ---- paths ---- */

/* Without "//", "." and "..", which is what docker makes of a path in a box; "/" stays "/". */
static void clean_path(char *path)
{
    char *to = path, *from = path;

    while (*from) {
        size_t n;

        from += strspn(from, "/");
        n = strcspn(from, "/");
        if (is_word(from, n, "..")) {
            while (to > path && *--to != '/')
                ;
        } else if (n && !is_word(from, n, ".")) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    if (to == path)
        *to++ = '/';
    *to = 0;
}

static int set_target(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    if (len == 0 || s[0] != '/')
        return error_set(err, ERR_INVALID, "invalid mount path: '%.*s' mount path must be absolute",
                         (int)len, s);
    if (len >= LIMIT_PATH)
        return error_set(err, ERR_INVALID, "invalid mount path: it is too long");
    m->target = copy(s, len);
    clean_path(m->target);
    if (strcmp(m->target, "/") == 0)
        return error_set(err, ERR_INVALID, "invalid specification: destination can't be '/'");
    return 0;
}

/* A path of the host: absolute, or beginning with '.' and then relative to where we are. */
static int set_source(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    char cwd[LIMIT_PATH];

    if (len && s[0] == '/') {
        m->source = copy(s, len);
        return 0;
    }
    if (len == 0 || s[0] != '.')
        return error_set(
            err, ERR_UNSUPPORTED,
            "'%.*s' is no path: ClawDen keeps no named volumes; bind a folder of yours", (int)len,
            s);
    if (!getcwd(cwd, sizeof(cwd)))
        return error_sys(err, -errno, "find the current folder");
    if (asprintf(&m->source, "%s/%.*s", cwd, (int)len, s) < 0)
        abort();
    return 0;
}

/* ---- options ---- */

static bool is_propagation(const char *s, size_t len)
{
    /* private and rprivate are what every mount of a box is. */
    static const char *const words[] = {"shared", "rshared", "slave", "rslave"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (is_word(s, len, words[i]))
            return true;
    return false;
}

static int refuse_propagation(const char *s, size_t len, struct error *err)
{
    return error_set(err, ERR_DENIED,
                     "mount propagation '%.*s' is refused: mounts of a box are its own", (int)len,
                     s);
}

static int volume_option(struct box_mount *m, const char *s, size_t len, int *ret_mode,
                         struct error *err)
{
    static const char *const without_effect[] = {"z",         "Z",          "nocopy",  "cached",
                                                 "delegated", "consistent", "private", "rprivate"};

    if (is_propagation(s, len))
        return refuse_propagation(s, len, err);
    if (is_word(s, len, "ro") || is_word(s, len, "rw")) {
        m->read_only = s[1] == 'o';
        if (++*ret_mode > 1)
            return error_set(err, ERR_INVALID, "invalid mode: %s", m->options);
        return 0;
    }
    for (size_t i = 0; i < sizeof(without_effect) / sizeof(*without_effect); i++)
        if (is_word(s, len, without_effect[i]))
            return 0;
    return error_set(err, ERR_INVALID, "invalid mode: %.*s", (int)len, s);
}

static int volume_options(struct box_mount *m, const char *s, struct error *err)
{
    int modes = 0, r = 0;

    m->options = copy(s, strlen(s));
    for (const char *p = m->options; r >= 0;) {
        size_t n = strcspn(p, ",");

        r = volume_option(m, p, n, &modes, err);
        if (!p[n])
            break;
        p += n + 1;
    }
    return r;
}

static int read_volume(struct box_mount *m, const char *s, struct error *err)
{
    size_t source = strcspn(s, ":"), target;
    const char *rest;
    int r;

    if (!s[source])
        return error_set(err, ERR_UNSUPPORTED,
                         "'%s' asks for a volume: ClawDen keeps none; write HOST:BOX, or --tmpfs",
                         s);
    rest = s + source + 1;
    target = strcspn(rest, ":");
    if (source == 0 || target == 0)
        return error_set(err, ERR_INVALID, "invalid spec: %s: empty section between colons", s);
    if (rest[target] && strchr(rest + target + 1, ':'))
        return error_set(err, ERR_INVALID, "invalid spec: %s: too many colons", s);
    r = set_source(m, s, source, err);
    if (r >= 0)
        r = set_target(m, rest, target, err);
    if (r >= 0 && rest[target])
        r = volume_options(m, rest + target + 1, err);
    return r;
}

int values_volume(const char *s, struct box_mount *ret, struct error *err)
{
    struct box_mount m = {.kind = BOX_BIND};
    int r = read_volume(&m, s, err);

    if (r < 0)
        values_mount_done(&m);
    else
        *ret = m;
    return r;
}

/* ---- tmpfs ---- */

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
    autofree char *text = copy(s, len);
    int r = values_size(text, &m->bytes, err);

    if (r >= 0 && m->bytes < 4096)
        return error_set(err, ERR_INVALID, "tmpfs size '%s' is less than a page", text);
    return r;
}

static int tmpfs_option(struct box_mount *m, const char *s, size_t len, struct error *err)
{
    static const char *const always[] = {"rw", "nosuid", "nodev", "noatime", "relatime"};

    for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
        if (is_word(s, len, always[i]))
            return 0;
    if (is_word(s, len, "ro"))
        m->read_only = true;
    else if (is_word(s, len, "noexec") || is_word(s, len, "exec"))
        m->no_exec = s[0] == 'n';
    else if (len > 5 && strncmp(s, "size=", 5) == 0)
        return tmpfs_size(m, s + 5, len - 5, err);
    else if (len > 5 && strncmp(s, "mode=", 5) == 0 && read_mode(s + 5, len - 5, &m->mode))
        return 0;
    else if (is_propagation(s, len))
        return refuse_propagation(s, len, err);
    else
        return error_set(err, ERR_INVALID, "invalid tmpfs option [\"%.*s\"]", (int)len, s);
    return 0;
}

static int read_tmpfs(struct box_mount *m, const char *s, struct error *err)
{
    size_t target = strcspn(s, ":");
    int r = set_target(m, s, target, err);

    if (r < 0 || !s[target])
        return r;
    m->options = copy(s + target + 1, strlen(s + target + 1));
    for (const char *p = m->options; r >= 0 && *p;) {
        size_t n = strcspn(p, ",");

        r = tmpfs_option(m, p, n, err);
        p += n + (p[n] != 0);
    }
    return r;
}

int values_tmpfs(const char *s, struct box_mount *ret, struct error *err)
{
    struct box_mount m = {
        .kind = BOX_TMPFS}; /* docker's has noexec, which breaks browsers and build tools (C43) */
    int r = read_tmpfs(&m, s, err);

    if (r < 0)
        values_mount_done(&m);
    else
        *ret = m;
    return r;
}

/* ---- --mount ---- */

struct mount_words {
    const char *type, *source, *target, *size, *mode;
    size_t type_len, source_len, target_len, size_len, mode_len;
    bool read_only;
};

static int mount_flag(struct mount_words *w, const char *value, size_t len, struct error *err)
{
    w->read_only = !value || is_word(value, len, "true") || is_word(value, len, "1");
    if (!w->read_only && !is_word(value, len, "false") && !is_word(value, len, "0"))
        return error_set(err, ERR_INVALID, "invalid value for readonly: %.*s", (int)len, value);
    return 0;
}

static int mount_word(struct mount_words *w, const char *s, size_t len, struct error *err)
{
    static const char *const names[] = {"type",        "source", "src",        "target",
                                        "destination", "dst",    "tmpfs-size", "tmpfs-mode",
                                        "readonly",    "ro",     "consistency"};
    const char *equals = memchr(s, '=', len), *value = equals ? equals + 1 : NULL;
    size_t key = equals ? (size_t)(equals - s) : len, n = value ? len - key - 1 : 0, i = 0;

    while (i < sizeof(names) / sizeof(*names) && !is_word(s, key, names[i]))
        i++;
    if (i == 8 || i == 9)
        return mount_flag(w, value, n, err);
    if (!value)
        return error_set(err, ERR_INVALID, "invalid field '%.*s' must be a key=value pair",
                         (int)len, s);
    if (i == 0)
        w->type = value, w->type_len = n;
    else if (i <= 2)
        w->source = value, w->source_len = n;
    else if (i <= 5)
        w->target = value, w->target_len = n;
    else if (i == 6)
        w->size = value, w->size_len = n;
    else if (i == 7)
        w->mode = value, w->mode_len = n;
    else if (is_word(s, key, "bind-propagation"))
        return refuse_propagation(value, n, err);
    else if (i != 10)
        return error_set(err, ERR_UNSUPPORTED, "field '%.*s' is not supported by ClawDen", (int)key,
                         s);
    return 0;
}

static int make_mount(struct box_mount *m, const struct mount_words *w, struct error *err)
{
    int r;

    if (!w->target)
        return error_set(err, ERR_INVALID, "target is required");
    r = set_target(m, w->target, w->target_len, err);
    if (r < 0)
        return r;
    m->read_only = w->read_only;
    if (w->type && is_word(w->type, w->type_len, "tmpfs")) {
        m->kind = BOX_TMPFS;
        m->no_exec = true;
        if (w->source)
            return error_set(err, ERR_INVALID, "a tmpfs has no source");
        if (w->size && tmpfs_size(m, w->size, w->size_len, err) < 0)
            return -(int)err->code;
        if (w->mode && !read_mode(w->mode, w->mode_len, &m->mode))
            return error_set(err, ERR_INVALID, "invalid value for tmpfs-mode: %.*s",
                             (int)w->mode_len, w->mode);
        return 0;
    }
    if (!w->type || !is_word(w->type, w->type_len, "bind"))
        return error_set(err, ERR_UNSUPPORTED,
                         "mount type '%.*s' is not supported by ClawDen: "
                         "write type=bind or type=tmpfs",
                         w->type ? (int)w->type_len : 6, w->type ? w->type : "volume");
    if (!w->source)
        return error_set(err, ERR_INVALID, "field Source must not be empty");
    if (w->read_only)
        m->options = copy("ro", 2);
    return set_source(m, w->source, w->source_len, err);
}

int values_mount(const char *s, struct box_mount *ret, struct error *err)
{
    struct box_mount m = {.kind = BOX_BIND};
    struct mount_words w = {0};
    int r = 0;

    for (const char *p = s; r >= 0;) {
        size_t n = strcspn(p, ",");

        r = mount_word(&w, p, n, err);
        if (!p[n])
            break;
        p += n + 1;
    }
    if (r >= 0)
        r = make_mount(&m, &w, err);
    if (r < 0)
        values_mount_done(&m);
    else
        *ret = m;
    return r;
}
