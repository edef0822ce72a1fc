/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config of an image: what it wants its commands to be started with. Everything is checked
 * here, at import, so that what starts boxes reads values and makes no decisions.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/units.h"
#include "cmd/pull/pull.h"

#define MAX_ID 65535u /* what the id maps of boxes hold */

void config_done(struct config *c)
{
    json_decref(c->json);
    free(c->diff_ids);
    *c = (struct config){0};
}

/* ---- the parts that need no root ---- */

static int check_words(const json_t *config, const char *key, struct error *err)
{
    const json_t *list = json_object_get(config, key), *word;
    size_t i;

    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || json_array_size(list) > LIMIT_IMAGE_WORDS)
        return error_set(err, ERR_INVALID, "%s of the config is no list of at most %u words", key,
                         LIMIT_IMAGE_WORDS);
    json_array_foreach((json_t *)list, i, word)
    {
        if (!json_is_string(word))
            return error_set(err, ERR_INVALID, "%s of the config: word %zu is no string", key,
                             i + 1);
    }
    return 0;
}

static int check_env(const json_t *config, struct error *err)
{
    const json_t *word;
    size_t i;
    int r = check_words(config, "Env", err);

    if (r < 0)
        return r;
    json_array_foreach(json_object_get(config, "Env"), i, word)
    {
        const char *s = json_string_value(word);

        if (s[0] == '=' || !strchr(s, '='))
            return error_set(err, ERR_INVALID,
                             "Env of the config: '%.200s' is not of the form NAME=VALUE; refused",
                             s);
    }
    return 0;
}

static int check_labels(const json_t *config, struct error *err)
{
    json_t *labels = json_object_get(config, "Labels"), *value;
    const char *key;

    if (!labels || json_is_null(labels))
        return 0;
    if (!json_is_object(labels) || json_object_size(labels) > LIMIT_IMAGE_WORDS)
        return error_set(err, ERR_INVALID, "Labels of the config are no object of at most %u",
                         LIMIT_IMAGE_WORDS);
    json_object_foreach(labels, key, value)
    {
        if (!json_is_string(value))
            return error_set(err, ERR_INVALID, "label '%.200s' of the config is no string", key);
    }
    return 0;
}

/* "8080/tcp", "53/udp", "8000-8010/tcp"; a bare number is tcp. */
static bool is_port(const char *s)
{
    for (int part = 0;; part++) {
        size_t n = strspn(s, "0123456789");

        if (n < 1 || n > 5 || strtoul(s, NULL, 10) < 1 || strtoul(s, NULL, 10) > 65535)
            return false;
        s += n;
        if (*s != '-' || part)
            break;
        s++;
    }
    return !*s || strcmp(s, "/tcp") == 0 || strcmp(s, "/udp") == 0 || strcmp(s, "/sctp") == 0;
}

static int check_ports(const json_t *config, struct error *err)
{
    json_t *ports = json_object_get(config, "ExposedPorts"), *value;
    const char *key;

    if (!ports || json_is_null(ports))
        return 0;
    if (!json_is_object(ports) || json_object_size(ports) > LIMIT_IMAGE_WORDS)
        return error_set(err, ERR_INVALID, "ExposedPorts of the config are no object of at most %u",
                         LIMIT_IMAGE_WORDS);
    json_object_foreach(ports, key, value)
    {
        if (!is_port(key))
            return error_set(err, ERR_INVALID, "ExposedPorts of the config: '%.100s' is no port",
                             key);
    }
    return 0;
}

/* Single slashes, no "." and no ".."; "" becomes "/". */
static int check_workdir(const json_t *config, char workdir[LIMIT_PATH], struct error *err)
{
    static const char *const kernel[] = {"/proc", "/sys", "/dev"};
    const char *s = json_string_value(json_object_get(config, "WorkingDir"));
    size_t n = 0;

    s = s && s[0] ? s : "/";
    if (s[0] != '/' || strlen(s) >= LIMIT_PATH)
        return error_set(err, ERR_INVALID,
                         "WorkingDir of the config is '%.200s': it must be an "
                         "absolute path; refused",
                         s);
    for (const char *p = s; *p;) {
        size_t len = strcspn(p, "/");

        if (len == 2 && p[0] == '.' && p[1] == '.')
            return error_set(err, ERR_INVALID,
                             "WorkingDir of the config is '%.200s': it must not "
                             "have '..'; refused",
                             s);
        if (len && !(len == 1 && p[0] == '.')) {
            workdir[n++] = '/';
            memcpy(workdir + n, p, len);
            n += len;
        }
        p += len + (p[len] == '/');
    }
    if (n == 0)
        workdir[n++] = '/';
    workdir[n] = 0;
    for (size_t i = 0; i < sizeof(kernel) / sizeof(*kernel); i++)
        if (path_is_within(workdir, kernel[i]))
            return error_set(err, ERR_INVALID,
                             "WorkingDir of the config is '%.200s': not below "
                             "/proc, /sys or /dev; refused",
                             s);
    return 0;
}

static int read_diff_ids(const json_t *o, struct config *c, struct error *err)
{
    const json_t *list = json_object_get(json_object_get(o, "rootfs"), "diff_ids"), *id;
    size_t i;

    c->n_diff_ids = json_array_size(list);
    if (c->n_diff_ids < 1 || c->n_diff_ids > LIMIT_IMAGE_LAYERS)
        return error_set(err, ERR_INVALID, "the config names %zu layers: from 1 to %u are taken",
                         c->n_diff_ids, LIMIT_IMAGE_LAYERS);
    c->diff_ids = calloc(c->n_diff_ids, sizeof(*c->diff_ids));
    if (!c->diff_ids)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    json_array_foreach((json_t *)list, i, id)
    {
        if (!json_is_string(id) || !digest_parse(json_string_value(id), c->diff_ids[i]))
            return error_set(err, ERR_INVALID, "diff id %zu of the config is no digest: refused",
                             i + 1);
    }
    return 0;
}

static int check_platform(const json_t *o, struct error *err)
{
    const char *os = json_string_value(json_object_get(o, "os"));
    const char *arch = json_string_value(json_object_get(o, "architecture"));

    if ((os && os[0] && strcmp(os, "linux") != 0) ||
        (arch && arch[0] && strcmp(arch, machine_architecture()) != 0))
        return error_set(
            err, ERR_UNSUPPORTED,
            "the image is for %.30s/%.30s, this machine is linux/%s: use one that fits",
            os ? os : "linux", arch ? arch : "?", machine_architecture());
    return 0;
}

/* "2024-05-01T10:20:30.5Z", to the second; 0 for what is none. */
static int64_t read_time(const char *s)
{
    struct tm t = {0};
    time_t sec;

    if (!s || !strptime(s, "%Y-%m-%dT%H:%M:%S", &t))
        return 0;
    sec = timegm(&t);
    return sec > 0 && sec < INT64_C(1) << 40 ? (int64_t)sec * 1000000 : 0;
}

int config_parse(const char *text, size_t len, struct config *ret, struct error *err)
{
    cleanup_(config_done) struct config c = {0};
    json_error_t e;
    const json_t *config;
    int r;

    sha256_hex(text, len, c.id);
    c.json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!json_is_object((json_t *)c.json))
        return error_set(err, ERR_INVALID,
                         "the config is no JSON object (line %d: %.200s): "
                         "refused",
                         e.line, e.text);
    config = json_object_get(c.json, "config");
    c.created_usec = read_time(json_string_value(json_object_get(c.json, "created")));
    r = check_platform(c.json, err);
    if (r >= 0)
        r = read_diff_ids(c.json, &c, err);
    if (r >= 0)
        r = check_env(config, err);
    if (r >= 0)
        r = check_words(config, "Cmd", err);
    if (r >= 0)
        r = check_words(config, "Entrypoint", err);
    if (r >= 0)
        r = check_labels(config, err);
    if (r >= 0)
        r = check_ports(config, err);
    if (r >= 0)
        r = check_workdir(config, c.workdir, err);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct config){0};
    return 0;
}

/* ---- what only the root can say ---- */

/* A text file of the image, NUL-terminated, to be freed; NULL if there is none to speak of. */
static char *read_table(int root, const char *name)
{
    autoclose int fd = path_open(root, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, PATH_IN_ROOT);
    char *text = fd < 0 ? NULL : malloc(LIMIT_IMAGE_PASSWD + 1);
    ssize_t n = text ? fd_read_full(fd, text, LIMIT_IMAGE_PASSWD) : -1;

    if (n < 0) {
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

/* A number that a box can have as an id; -1 if it is a name, -2 if it is out of range. */
static long read_id(const char *s)
{
    size_t n = strspn(s, "0123456789");

    if (s[0] == '-' && s[1] && strspn(s + 1, "0123456789") == strlen(s + 1))
        return -2;
    if (n == 0 || s[n])
        return -1;
    return n > 5 || strtoul(s, NULL, 10) > MAX_ID ? -2 : (long)strtoul(s, NULL, 10);
}

/*
 * Looks for the line whose field `by` (0 name, 2 number) is `key`; then field `want` as an id, else
 * -1. The fields of passwd are name:x:uid:gid:..., of group name:x:gid:...
 */
static long look_up(const char *table, int by, const char *key, int want)
{
    for (const char *line = table; line && *line;) {
        const char *field[4] = {line}, *end = line + strcspn(line, "\n");
        int n = 1;

        for (const char *p = line; p < end && n < 4; p++)
            if (*p == ':')
                field[n++] = p + 1;
        if (n > want && n > by) {
            size_t len = strcspn(field[by], ":\n");
            char value[16];

            if (len == strlen(key) && strncmp(field[by], key, len) == 0) {
                (void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(field[want], ":\n"),
                               field[want]);
                return read_id(value);
            }
        }
        line = *end ? end + 1 : NULL;
    }
    return -1;
}

static int bad_user(const char *user, const char *why, struct error *err)
{
    return error_set(err, ERR_INVALID, "User of the config is '%.100s': %s; refused", user, why);
}

static int resolve_user(struct config *c, int root, struct error *err)
{
    const char *user =
        json_string_value(json_object_get(json_object_get(c->json, "config"), "User"));
    autofree char *passwd = NULL, *group = NULL;
    char name[128];
    const char *colon;
    long uid, gid;

    if (!user || !user[0])
        return 0; /* root of the box */
    colon = strchr(user, ':');
    if (strlen(user) >= sizeof(name))
        return bad_user(user, "too long", err);
    (void)snprintf(name, sizeof(name), "%.*s", (int)(colon ? colon - user : (long)strlen(user)),
                   user);
    passwd = read_table(root, "etc/passwd");
    uid = read_id(name);
    gid = uid >= 0 ? look_up(passwd, 2, name, 3) : look_up(passwd, 0, name, 3);
    if (uid == -1)
        uid = look_up(passwd, 0, name, 2);
    if (uid < 0)
        return bad_user(
            user, uid == -1 ? "no such name in its /etc/passwd" : "ids go from 0 to 65535", err);
    if (colon) {
        group = read_table(root, "etc/group");
        gid = read_id(colon + 1);
        if (gid == -1)
            gid = look_up(group, 0, colon + 1, 2);
        if (gid == -1)
            return bad_user(user, "no such group in its /etc/group", err);
    } else if (gid == -1) {
        gid = 0; /* a number without a line: as everybody has it */
    }
    if (gid < 0)
        return bad_user(user, "ids go from 0 to 65535", err);
    c->uid = (unsigned)uid;
    c->gid = (unsigned)gid;
    return 0;
}

/* A work folder that goes through links must end at a folder of the image. */
static int resolve_workdir(const struct config *c, int root, struct error *err)
{
    static const char *const kernel[] = {"/proc", "/sys", "/dev"};
    char top[LIMIT_PATH], path[LIMIT_PATH];
    const char *inside = c->workdir[1] ? c->workdir + 1 : ".";
    autoclose int fd = path_open(root, inside, O_PATH | O_DIRECTORY, 0, PATH_BENEATH_NOLINKS);
    int r = 0;

    if (fd >= 0 || fd == -ENOENT)
        return 0; /* no links on the way; it may be made later */
    fd = path_open(root, inside, O_PATH | O_DIRECTORY, 0, PATH_IN_ROOT);
    if (fd < 0)
        r = fd;
    if (r == 0)
        r = path_of_fd(root, top, sizeof(top));
    if (r == 0)
        r = path_of_fd(fd, path, sizeof(path));
    for (size_t i = 0; r == 0 && i < sizeof(kernel) / sizeof(*kernel); i++)
        if (path_is_within(path + strlen(top), kernel[i]))
            r = -EXDEV;
    return r < 0 ? error_set(err, ERR_INVALID,
                             "WorkingDir of the config is '%.200s': it leads to no folder of the "
                             "image's own; refused",
                             c->workdir)
                 : 0;
}

int config_resolve(struct config *c, int root, struct error *err)
{
    int r = resolve_user(c, root, err);

    return r < 0 ? r : resolve_workdir(c, root, err);
}

/* ---- what we write ---- */

int config_synthesize(const char *diff_id, const char *path, struct buf *ret, struct error *err)
{
    autofree char *given = path ? NULL : strdup("{}");

    if (path) {
        json_error_t why;
        json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);

        if (!json_is_object(json)) {
            json_decref(json);
            return error_set(err, ERR_INVALID, "--config '%.200s': %s", path,
                             json ? "not a JSON object" : why.text);
        }
        given = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(json);
    }
    if (!given)
        return error_set(err, ERR_SYS, "out of memory");
    buf_printf(ret,
               "{\"architecture\":\"%s\",\"config\":%s,\"os\":\"linux\",\"rootfs\":{\"diff_ids\":["
               "\"sha256:%s\"],\"type\":\"layers\"}}",
               machine_architecture(), given, diff_id);
    return ret->failed
               ? error_set(err, ERR_TOO_LARGE, "--config '%.200s': too large", path ? path : "")
               : 0;
}

static void put_words(struct buf *b, const char *key, const json_t *list)
{
    const json_t *word;
    size_t i;

    buf_json_key(b, key);
    buf_puts(b, "[");
    json_array_foreach((json_t *)list, i, word)
    {
        buf_puts(b, i ? "," : "");
        buf_json_string(b, json_string_value(word), json_string_length(word));
    }
    buf_puts(b, "]");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys in order, whatever order the config has: as a list, or as an object with their values. */
static void put_keys(struct buf *b, const char *key, json_t *object, bool with_values)
{
    size_t n = json_object_size(object), i = 0;
    const char **keys = calloc(n + 1, sizeof(*keys)), *name;
    json_t *value;

    buf_json_key(b, key);
    buf_puts(b, with_values ? "{" : "[");
    if (keys) {
        json_object_foreach(object, name, value)
        {
            keys[i++] = name;
        }
        qsort(keys, n, sizeof(*keys), by_text);
    }
    for (i = 0; keys && i < n; i++) {
        buf_puts(b, i ? "," : "");
        buf_json_string(b, keys[i], strlen(keys[i]));
        if (with_values) {
            value = json_object_get(object, keys[i]);
            buf_puts(b, ":");
            buf_json_string(b, json_string_value(value), json_string_length(value));
        }
    }
    buf_puts(b, with_values ? "}" : "]");
    b->failed |= !keys;
    free(keys);
}

static void put_digest(struct buf *b, const char *key, const char *hex)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "sha256:%s", hex);
    buf_json_str(b, key, text);
}

static void put_layers(struct buf *b, const struct config *c, const struct manifest *m,
                       const bool *stored)
{
    buf_json_key(b, "layers");
    buf_puts(b, "[");
    for (size_t i = 0; i < c->n_diff_ids; i++) {
        buf_puts(b, i ? ",{" : "{");
        put_digest(b, "digest", m->layers[i].hex);
        put_digest(b, "diff_id", c->diff_ids[i]);
        buf_json_num(b, "size", (long long)m->layers[i].size);
        buf_json_bool(b, "stored", stored[i]);
        buf_puts(b, "}");
    }
    buf_puts(b, "]");
}

static int64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void config_record(const struct config *c, const struct manifest *m, const char *chain,
                   const struct measure *size, const bool *stored, struct buf *b)
{
    const json_t *config = json_object_get(c->json, "config");
    const char *user = json_string_value(json_object_get(config, "User"));
    const char *arch = json_string_value(json_object_get(c->json, "architecture"));

    buf_puts(b, "{");
    buf_json_num(b, "version", 1);
    put_digest(b, "id", c->id);
    put_digest(b, "root", chain);
    if (m->hex[0])
        put_digest(b, "manifest", m->hex);
    buf_json_str(b, "architecture", arch && arch[0] ? arch : machine_architecture());
    buf_json_str(b, "user", user ? user : "");
    buf_json_num(b, "uid", c->uid);
    buf_json_num(b, "gid", c->gid);
    buf_json_str(b, "workdir", c->workdir);
    put_words(b, "env", json_object_get(config, "Env"));
    put_words(b, "entrypoint", json_object_get(config, "Entrypoint"));
    put_words(b, "cmd", json_object_get(config, "Cmd"));
    put_keys(b, "labels", json_object_get(config, "Labels"), true);
    put_keys(b, "ports", json_object_get(config, "ExposedPorts"), false);
    put_layers(b, c, m, stored);
    buf_json_num(b, "size", (long long)size->bytes);
    buf_json_num(b, "entries", (long long)size->entries);
    buf_json_num(b, "created_usec", c->created_usec);
    buf_json_num(b, "imported_usec", now_usec());
    buf_puts(b, "}\n");
}
