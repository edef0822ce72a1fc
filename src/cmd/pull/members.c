/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a saved image: a tar of an OCI layout, or what "docker save" writes. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/pull/pull.h"

#define MOST_LINKS 4

struct member {
    char *name, *link; /* link: the name it stands for, or NULL */
};

struct members {
    struct work *work;
    struct member *list;
    size_t n;
};

/* "./a/b" and "a/b" are one name. */
static const char *plain(const char *name)
{
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return name;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* ---- what kind of tar it is ---- */

struct look {
    bool oci, docker, other;
};

/* Could this top name be in a saved image? */
static bool is_image_name(const char *name, size_t n)
{
    static const char *const known[] = {"blobs", "index.json", "oci-layout", "manifest.json",
                                        "repositories"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strlen(known[i]) == n && strncmp(name, known[i], n) == 0)
            return true;
    return n >= 64 && digest_is_hex(name, 64); /* <config>.json, <layer>.tar, <layer>/ */
}

static int look_at(void *ctx, struct archive *a, struct archive_entry *e, struct error *err)
{
    struct look *l = ctx;
    const char *name = plain(archive_entry_pathname(e));
    size_t n = strcspn(name, "/");

    (void)a;
    (void)err;
    if (n == 0 || strcmp(name, ".") == 0)
        return 0;
    if (!is_image_name(name, n)) {
        l->other = true;
        return 1;
    }
    if (strcmp(name, "oci-layout") == 0)
        l->oci = true;
    if (strcmp(name, "manifest.json") == 0)
        l->docker = true;
    return 0;
}

int layer_look(int fd, enum tar_kind *ret, struct error *err)
{
    const struct options o = {.max_bytes = LIMIT_IMAGE_BYTES, .max_entries = LIMIT_IMAGE_ENTRIES};
    struct work w = {.o = &o, .progress = {.mode = PROGRESS_NONE}};
    struct layer_result unused;
    struct look l = {0};
    int r = layer_each(&w, fd, look_at, &l, &unused, err);

    if (r < 0)
        return r;
    *ret = l.other ? TAR_ROOT : l.oci ? TAR_OCI : l.docker ? TAR_DOCKER : TAR_ROOT;
    return 0;
}

/* ---- its files ---- */

static int save_data(struct members *m, struct archive *a, uint64_t size, int fd, const char *name,
                     struct error *err)
{
    char chunk[LIMIT_STREAM_CHUNK];
    uint64_t got = 0;
    la_ssize_t n;
    int r;

    m->work->bytes += size;
    if (size > LIMIT_IMAGE_BLOB || m->work->bytes > m->work->o->max_bytes)
        return error_set(err, ERR_TOO_LARGE,
                         "the archive's '%.200s' has %llu bytes: more than --max-size takes", name,
                         (unsigned long long)size);
    while ((n = archive_read_data(a, chunk, sizeof(chunk))) > 0) {
        got += (uint64_t)n;
        r = got > size ? -EFBIG : fd_write_full(fd, chunk, (size_t)n);
        if (r < 0)
            return error_sys(err, r,
                             "write '%.200s' of the archive in '%.150s' (free space there, "
                             "or set CLAWDEN_DATA_DIR)",
                             name, m->work->store.path);
    }
    if (n < 0)
        return error_set(err, ERR_INVALID,
                         "the archive cannot be read at '%.200s': %s; get it again from its source",
                         name, archive_error_string(a));
    return 0;
}

static int add_member(struct members *m, const char *name, const char *link, struct error *err)
{
    struct member *p;

    if (m->n >= LIMIT_IMAGE_MEMBERS)
        return error_set(err, ERR_TOO_LARGE, "the archive has more than %u files: refused",
                         LIMIT_IMAGE_MEMBERS);
    p = realloc(m->list, (m->n + 1) * sizeof(*p));
    if (!p)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    m->list = p;
    p[m->n] = (struct member){.name = strdup(name), .link = link ? strdup(link) : NULL};
    m->n++;
    if (!p[m->n - 1].name || (link && !p[m->n - 1].link))
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    return 0;
}

/* Old "docker save" links equal layers: "../<hex>/layer.tar" beside "<hex>/layer.tar". */
static const char *link_target(struct archive_entry *e)
{
    const char *t = archive_entry_hardlink(e);

    if (t)
        return plain(t);
    t = archive_entry_symlink(e);
    return t && strncmp(t, "../", 3) == 0 ? t + 3 : t;
}

static int save_member(void *ctx, struct archive *a, struct archive_entry *e, struct error *err)
{
    struct members *m = ctx;
    const char *name = plain(archive_entry_pathname(e));
    bool link = archive_entry_hardlink(e) || archive_entry_filetype(e) == AE_IFLNK;
    autoclose int fd = -1;
    char number[32];
    int r;

    if (++m->work->entries > m->work->o->max_entries)
        return error_set(err, ERR_TOO_LARGE, "the archive has too many entries: refused");
    if (!link && archive_entry_filetype(e) != AE_IFREG)
        return 0;
    if (ends_with(name, "/VERSION") || ends_with(name, "/json"))
        return 0; /* of a format that nobody reads any more */
    r = add_member(m, name, link ? link_target(e) : NULL, err);
    if (r < 0 || link)
        return r;
    (void)snprintf(number, sizeof(number), "member-%zu", m->n - 1);
    fd = openat(m->work->temp, number, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, -errno, "make a file in '%s'", m->work->store.path);
    if (archive_entry_size(e) < 0)
        return error_set(err, ERR_INVALID, "the archive's '%.200s' has a negative size", name);
    return save_data(m, a, (uint64_t)archive_entry_size(e), fd, name, err);
}

int members_read(struct work *w, int fd, struct members **ret, struct error *err)
{
    autoptr(members) m = calloc(1, sizeof(*m));
    struct layer_result unused;
    int r;

    if (!m)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    m->work = w;
    r = layer_each(w, fd, save_member, m, &unused, err);
    if (r < 0)
        return r;
    w->bytes = w->entries = 0; /* the caps count what the layers unpack */
    *ret = TAKE_PTR(m);
    return 0;
}

void members_free(struct members *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        free(m->list[i].name);
        free(m->list[i].link);
    }
    free(m->list);
    free(m);
}

int members_open(const struct members *m, const char *name)
{
    for (int hops = 0; hops <= MOST_LINKS; hops++) {
        size_t i = m->n; /* the last of a name wins, as in every tar */

        name = plain(name);
        while (i-- > 0 && strcmp(m->list[i].name, name) != 0)
            ;
        if (i == (size_t)-1)
            return -ENOENT;
        if (!m->list[i].link) {
            char number[32];
            int fd;

            (void)snprintf(number, sizeof(number), "member-%zu", i);
            fd = openat(m->work->temp, number, O_RDONLY | O_CLOEXEC);
            return fd < 0 ? -errno : fd;
        }
        name = m->list[i].link;
    }
    return -ELOOP;
}
