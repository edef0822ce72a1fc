/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of variables: KEY=VALUE lines with the quotes of systemd's EnvironmentFile. They hold
 * secrets, so they must be closed to others, and no message shows a byte of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "config/internal.h"
#include "json/chars.h"

#define SECRETS_FILE "/etc/openclaw/secrets.env"

struct env_reader {
    const char *text, *at, *end;
    enum env_syntax syntax;
};

static int env_wrong(const struct env_reader *r, const char *at, struct text_place *ret_place,
                     struct error *err, const char *what)
{
    *ret_place = chars_place(r->text, at);
    return error_set(err, ERR_INVALID, "%s", what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_name(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static void skip_blanks(struct env_reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

static void skip_line(struct env_reader *r)
{
    while (r->at < r->end && *r->at != '\n')
        r->at++;
}

static int read_quoted(struct env_reader *r, struct buf *value, struct text_place *ret_place,
                       struct error *err)
{
    const char *open = r->at++;

    for (; r->at < r->end && *r->at != *open; r->at++) {
        bool escape = *open == '"' && *r->at == '\\' && r->at + 1 < r->end;

        if (escape && r->at[1] == '\n') {
            r->at++;
            continue;
        }
        if (escape && strchr("\"\\`$", r->at[1]))
            r->at++;
        buf_append(value, r->at, 1);
    }
    if (r->at >= r->end)
        return env_wrong(r, open, ret_place, err,
                         "this quote is never closed; add the closing one");
    r->at++;
    skip_blanks(r);
    if (r->at < r->end && *r->at != '\n' && *r->at != '#')
        return env_wrong(r, r->at, ret_place, err,
                         "text after the closing quote; quote the whole value");
    skip_line(r);
    return 0;
}

static void read_bare(struct env_reader *r, struct buf *value)
{
    for (; r->at < r->end && *r->at != '\n'; r->at++) {
        if (r->syntax == ENV_DOTENV && *r->at == '#' && is_blank(r->at[-1])) {
            skip_line(r);
            break;
        }
        if (*r->at == '\\' && r->at + 1 < r->end && ++r->at && *r->at == '\n')
            continue;
        buf_append(value, r->at, 1);
    }
    while (value->len && is_blank(value->data[value->len - 1]))
        value->data[--value->len] = 0;
}

static int read_line(struct env_reader *r, json_t *ret, struct text_place *ret_place,
                     struct error *err)
{
    const char *name;
    autofree char *key = NULL;
    autobuf value = {0};
    int res = 0;

    buf_init(&value, LIMIT_ENV_FILE);
    if (r->end - r->at > 7 && strncmp(r->at, "export", 6) == 0 && is_blank(r->at[6])) {
        r->at += 6;
        skip_blanks(r);
    }
    name = r->at;
    while (r->at < r->end && is_name(*r->at, r->at == name))
        r->at++;
    if (r->at == name)
        return env_wrong(r, name, ret_place, err,
                         "a name of letters, digits and '_' expected; write NAME=VALUE");
    key = strndup(name, (size_t)(r->at - name));
    if (r->at >= r->end || *r->at != '=')
        return env_wrong(r, r->at, ret_place, err, "'=' expected; write NAME=VALUE");
    r->at++;
    skip_blanks(r);
    if (r->at < r->end && (*r->at == '"' || *r->at == '\''))
        res = read_quoted(r, &value, ret_place, err);
    else
        read_bare(r, &value);
    if (res < 0)
        return res;
    if (!key || value.failed ||
        json_object_set_new(ret, key, json_string(value.len ? value.data : "")) < 0)
        return error_sys(err, -ENOMEM, "read variables");
    return 0;
}

int env_parse(const char *text, size_t len, enum env_syntax syntax, json_t *ret,
              struct text_place *ret_place, struct error *err)
{
    struct env_reader r = {text, text, text + len, syntax};
    const char *bad = memchr(text, 0, len);
    const char *broken = chars_find_bad(text, text + len);

    if (bad && (!broken || bad < broken))
        return env_wrong(&r, bad, ret_place, err, "a NUL byte; remove it");
    if (broken)
        return env_wrong(&r, broken, ret_place, err, "not UTF-8; save the file as UTF-8");
    while (r.at < r.end) {
        int res;

        skip_blanks(&r);
        if (r.at >= r.end)
            break;
        if (*r.at == '\n') {
            r.at++;
            continue;
        }
        if (*r.at == '#' || *r.at == ';') {
            skip_line(&r);
            continue;
        }
        res = read_line(&r, ret, ret_place, err);
        if (res < 0)
            return res;
    }
    return 0;
}

/* ---- the two files ---- */

static int check_closed(int fd, const char *path, struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_sys(err, -errno, "%s", file_show(path).text);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return error_set(err, ERR_DENIED, "%s: belongs to uid %u; it must be yours or root's",
                         file_show(path).text, (unsigned)st.st_uid);
    if (st.st_mode & 077)
        return error_set(err, ERR_DENIED,
                         "%s: mode %04o: others could read or change its secrets; chmod 600",
                         file_show(path).text, (unsigned)st.st_mode & 07777);
    return 0;
}

static int read_env_file(struct config *c, const char *path, enum env_syntax syntax,
                         struct error *err)
{
    autofree char *canonical = NULL;
    autoclose int fd = source_open(path, NULL, &canonical, err);
    struct text_place place = {0};
    json_t *own;
    size_t number;
    int r;

    if (fd == -ERR_NOT_FOUND || (fd < 0 && err->sys == EACCES && syntax == ENV_SYSTEMD))
        return 0; /* the system's secrets are not for every user */
    if (fd < 0)
        return fd;
    r = check_closed(fd, path, err);
    if (r >= 0)
        r = source_read(c, fd, path, canonical, LIMIT_ENV_FILE, &number, err);
    if (r < 0)
        return r;
    own = json_object();
    r = env_parse(c->sources[number].text, c->sources[number].len, syntax, own, &place, err);
    if (r < 0)
        r = source_wrong_at(&c->sources[number], place, err);
    else if (json_object_update_missing(c->variables, own) < 0)
        r = error_sys(err, -ENOMEM, "%s", file_show(path).text);
    json_decref(own);
    /* What was read is kept in one place only. */
    explicit_bzero(c->sources[number].text, c->sources[number].len);
    c->sources[number].len = 0;
    return r;
}

int env_files_read(struct config *c, struct error *err)
{
    const char *secrets = getenv("CLAWDEN_SECRETS_ENV");
    char path[LIMIT_PATH];
    int n = snprintf(path, sizeof(path), "%s/.env", c->state_dir), r;

    if (n < 0 || (size_t)n >= sizeof(path))
        return error_set(err, ERR_TOO_LARGE, "%s: too long a path", file_show(c->state_dir).text);
    r = read_env_file(c, path, ENV_DOTENV, err);
    if (r < 0)
        return r;
    return read_env_file(c, secrets && secrets[0] ? secrets : SECRETS_FILE, ENV_SYSTEMD, err);
}
