/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loaded last, in our own folder: our parts of the files as they stand there (no variable is
 * put in, so none of their values is kept), which file they are of, and when. It counts only for
 * the same openclaw.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/state.h"
#include "config/internal.h"

#define NAME    "config.last-good.json"
#define VERSION 1

static const char *const part_names[SOURCES] = {"openclaw", "yaml", "profile"};

static json_t *to_json(const struct config *c)
{
    json_t *files = json_array(),
           *out = json_pack("{s:i,s:s}", "version", VERSION, "file", c->main_file);

    for (size_t i = 0; i < c->n_sources; i++)
        (void)json_array_append_new(files, json_string(c->sources[i].name));
    (void)json_object_set_new(out, "files", files);
    for (size_t i = 0; i < SOURCES; i++)
        if (c->parts[i])
            (void)json_object_set(out, part_names[i], c->parts[i]);
    return out;
}

static json_t *read_file(int dir)
{
    autoclose int fd = openat(dir, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        st.st_size > LIMIT_CONFIG_REMEMBERED)
        return NULL;
    return json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
}

static int write_file(int dir, const json_t *what)
{
    autoclose int fd = -1;
    autofree char *text = json_dumps(what, JSON_COMPACT);
    char temp[64]; /* each process its own: two that load at once must not write into one */
    int r;

    if (!text)
        return -ENOMEM;
    (void)snprintf(temp, sizeof(temp), NAME ".%ld", (long)getpid());
    (void)unlinkat(dir, temp, 0);
    fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    r = fd_write_full(fd, text, strlen(text));
    if (r >= 0 && (fsync(fd) < 0 || renameat(dir, temp, dir, NAME) < 0))
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir, temp, 0);
    return r;
}

int last_good_write(struct config *c, struct error *err)
{
    autoclose int dir = state_open_data(err);
    json_t *now, *old;
    int r = 0;

    if (dir < 0)
        return dir;
    now = to_json(c);
    old = read_file(dir);
    (void)json_object_del(old, "time");
    if (!json_equal(now, old)) {
        (void)json_object_set_new(now, "time", json_integer((json_int_t)time(NULL)));
        r = write_file(dir, now);
    }
    json_decref(now);
    json_decref(old);
    return r < 0 ? error_sys(err, r, "remember the configuration") : 0;
}

int last_good_read(struct config *c, long long *ret_when, struct error *err)
{
    autoclose int dir = state_open_data(err);
    char path[LIMIT_PATH + sizeof(NAME)];
    const char *file;
    json_t *all;
    int r;

    if (dir < 0)
        return dir;
    r = state_data_path(path, LIMIT_PATH, err);
    if (r < 0)
        return r;
    all = read_file(dir);
    file = json_string_value(json_object_get(all, "file"));
    if (!file || strcmp(file, c->main_file) != 0 ||
        json_integer_value(json_object_get(all, "version")) != VERSION) {
        json_decref(all);
        return error_set(err, ERR_NOT_FOUND, "no configuration is remembered");
    }
    for (size_t i = 0; i < SOURCES; i++)
        c->parts[i] = json_incref(json_object_get(all, part_names[i]));
    *ret_when = json_integer_value(json_object_get(all, "time"));
    json_decref(all);
    (void)snprintf(path + strlen(path), sizeof(NAME) + 1, "/" NAME);
    c->remembered_file = config_keep(c, path);
    return c->remembered_file ? 0 : error_sys(err, -ENOMEM, "read the configuration");
}
