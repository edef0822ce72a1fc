/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/boxes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jtext.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/state.h"
#include "base/tree.h"

#define TMP_PREFIX    "tmp-"
#define YOUNG_SECONDS 10

bool boxes_is_id(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

bool boxes_name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(name);

    if (n < 2 || n > LIMIT_BOX_NAME || !strchr(letters, name[0]) || boxes_is_id(name))
        return false;
    for (const char *p = name; *p; p++)
        if (!strchr(letters, *p) && !strchr("_.-", *p))
            return false;
    return true;
}

static int make_folder(const char *name, struct error *err)
{
    autoclose int data = state_open_data(err);
    int fd;

    if (data < 0)
        return data;
    /* It is there but for the first time. */
    fd = openat(data, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? error_sys(err, -errno, "open the folder '%s' in the data folder", name)
                      : fd;
    if (mkdirat(data, name, 0700) < 0 && errno != EEXIST)
        return error_sys(err, -errno, "make the folder '%s' in the data folder", name);
    fd = openat(data, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? error_sys(err, -errno, "open the folder '%s' in the data folder", name) : fd;
}

/* Opened and checked once in a program's life: a command asks for each several times. */
static int open_folder(const char *name, struct error *err)
{
    static int boxes = -1, names = -1;
    int *known = name[0] == 'b' ? &boxes : &names, fd;

    if (*known < 0)
        *known = make_folder(name, err);
    if (*known < 0)
        return *known;
    fd = fcntl(*known, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? error_sys(err, -errno, "open the folder '%s' in the data folder", name) : fd;
}

int boxes_open(struct error *err)
{
    return open_folder("boxes", err);
}

int boxes_open_box(const char *id, struct error *err)
{
    autoclose int boxes = boxes_open(err);
    int fd;

    if (boxes < 0)
        return boxes;
    fd = openat(boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERR_NOT_FOUND, "no such box: %s", id);
    return fd < 0 ? error_sys(err, -errno, "open the folder of box %.12s", id) : fd;
}

int boxes_lock(int folder, struct error *err)
{
    autoclose int fd = openat(folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_sys(err, -errno, "open the lock of the box");
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return error_sys(err, -errno, "lock the box");
    return TAKE_FD(fd);
}

/* ---- files ---- */

static int write_file(int folder, const char *name, const struct buf *text, struct error *err)
{
    autoclose int fd = -1;
    char temp[64];
    int r;

    if (text->failed)
        return error_set(err, ERR_TOO_LARGE, "%s would be larger than %zu bytes", name, text->max);
    (void)snprintf(temp, sizeof(temp), ".%s.%d", name, (int)getpid());
    fd = openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, -errno, "make %s", name);
    r = fd_write_full(fd, text->data, text->len);
    if (r >= 0 && renameat(folder, temp, folder, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(folder, temp, 0);
    return r < 0 ? error_sys(err, r, "write %s", name) : 0;
}

static int read_file(int folder, const char *name, struct jtext_doc **ret, struct error *err)
{
    autoclose int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    autofree char *text = NULL;
    struct stat st;
    ssize_t n;
    int r;

    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERR_NOT_FOUND, "no %s", name);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, -errno, "open %s", name);
    if (st.st_size > (off_t)LIMIT_BOX_RECORD)
        return error_set(err, ERR_TOO_LARGE, "%s has %lld bytes: at most %u", name,
                         (long long)st.st_size, LIMIT_BOX_RECORD);
    text = malloc((size_t)st.st_size + 1);
    n = text ? fd_read_full(fd, text, (size_t)st.st_size) : -ENOMEM;
    if (n < 0)
        return error_sys(err, (int)n, "read %s", name);
    r = jtext_parse(text, (size_t)n, ret, err);
    return r < 0 ? error_wrap(err, "%s", name) : 0;
}

int boxes_load(const char *id, struct box_record **ret, struct error *err)
{
    autoclose int folder = boxes_open_box(id, err);
    autoptr(jtext_doc) doc = NULL;
    int r = folder < 0 ? folder : read_file(folder, "box.json", &doc, err);

    if (r >= 0)
        r = record_read(jtext_root(doc), ret, err);
    return r < 0 && err->code != ERR_NOT_FOUND ? error_wrap(err, "box %.12s", id) : r;
}

int boxes_load_last(int folder, struct box_last *ret, struct error *err)
{
    autoptr(jtext_doc) doc = NULL;
    int r = read_file(folder, "state.json", &doc, err);

    return r < 0 ? r : last_read(jtext_root(doc), ret, err);
}

int boxes_save_last(int folder, const struct box_last *l, struct error *err)
{
    autobuf text;

    buf_init(&text, LIMIT_BOX_RECORD);
    last_write(l, &text);
    return write_file(folder, "state.json", &text, err);
}

int boxes_load_rules(int folder, const char *name, struct wish **ret, struct error *err)
{
    autoptr(jtext_doc) doc = NULL;
    int r = read_file(folder, name, &doc, err);

    return r < 0 ? r : wish_read(jtext_root(doc), ret, err);
}

int boxes_save_rules(int folder, const char *name, const struct wish *w, struct error *err)
{
    autobuf text;

    buf_init(&text, LIMIT_BOX_RECORD);
    wish_write(w, &text);
    return write_file(folder, name, &text, err);
}

/* ---- names ---- */

/* The id behind a name, if a folder stands behind it; "" if not. */
static void read_name(int names, int boxes, const char *name, char id[65])
{
    char target[80];
    ssize_t n = readlinkat(names, name, target, sizeof(target) - 1);

    id[0] = 0;
    if (n != 64)
        return;
    target[n] = 0;
    if (boxes_is_id(target) && faccessat(boxes, target, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        (void)snprintf(id, 65, "%s", target);
}

static int take_name(int names, int boxes, const struct box_record *r, struct error *err)
{
    char holder[65], temp[64];

    for (int i = 0; i < 16; i++) {
        if (symlinkat(r->id, names, r->name) == 0)
            return 0;
        if (errno != EEXIST)
            return error_sys(err, -errno, "make the name '%s'", r->name);
        read_name(names, boxes, r->name, holder);
        if (holder[0])
            return error_set(err, ERR_EXISTS, "%s", holder);
        /* A link to nothing: its box was being removed when somebody was killed. */
        (void)snprintf(temp, sizeof(temp), ".%d", (int)getpid());
        if (renameat(names, r->name, names, temp) == 0)
            (void)unlinkat(names, temp, 0);
    }
    return error_set(err, ERR_DENIED, "the name '%s' is being taken by others all the time",
                     r->name);
}

/* A reading position of its own: that of a copied descriptor is shared. */
static DIR *open_list(int boxes)
{
    int fd = openat(boxes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d && fd >= 0)
        (void)close(fd);
    return d;
}

/* ---- adding and dropping ---- */

int boxes_add(const struct box_record *r, struct error *err)
{
    autoclose int boxes = boxes_open(err), names = boxes < 0 ? -1 : open_folder("names", err);
    autoclose int folder = -1, lock = -1;
    autobuf text;
    char temp[96];
    int e;

    buf_init(&text, LIMIT_BOX_RECORD);
    if (boxes < 0 || names < 0)
        return -(int)err->code;
    (void)snprintf(temp, sizeof(temp), TMP_PREFIX "%s", r->id);
    if (mkdirat(boxes, temp, 0700) < 0)
        return error_sys(err, -errno, "make the folder of the box");
    folder = openat(boxes, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    lock = folder < 0 ? error_sys(err, -errno, "open the folder of the box")
                      : boxes_lock(folder, err); /* nobody takes it for garbage */
    e = lock;
    if (e >= 0) {
        record_write(r, &text);
        e = write_file(folder, "box.json", &text, err);
    }
    if (e >= 0 && renameat(boxes, temp, boxes, r->id) < 0)
        e = error_sys(err, -errno, "name the folder of the box");
    if (e < 0) {
        (void)tree_remove(boxes, temp);
        return e;
    }
    e = take_name(names, boxes, r, err);
    if (e < 0)
        (void)tree_remove(boxes, r->id);
    return e;
}

int boxes_drop(const struct box_record *r, struct error *err)
{
    autoclose int boxes = boxes_open(err), names = boxes < 0 ? -1 : open_folder("names", err);
    char holder[65];

    if (boxes < 0 || names < 0)
        return -(int)err->code;
    read_name(names, boxes, r->name, holder);
    if (strcmp(holder, r->id) == 0)
        (void)unlinkat(names, r->name, 0);
    (void)tree_remove(boxes, r->id);
    return 0;
}

/* Nobody holds its lock, and no name leads to it: whoever made or removed it was killed. */
static void sweep_one(int boxes, int names, const char *entry)
{
    const bool is_temp = strncmp(entry, TMP_PREFIX, sizeof(TMP_PREFIX) - 1) == 0;
    autoclose int folder = openat(boxes, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    autoclose int lock = folder < 0 ? -1 : openat(folder, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    autoptr(box_record) r = NULL;
    struct error ignored;
    char holder[65] = "";
    struct stat st;

    if (folder < 0 || (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0))
        return;
    /* One that is just being made is nobody's for a moment. */
    if ((is_temp || lock < 0) &&
        (fstat(folder, &st) < 0 || time(NULL) - st.st_mtime < YOUNG_SECONDS))
        return;
    if (!is_temp && boxes_load(entry, &r, &ignored) >= 0)
        read_name(names, boxes, r->name, holder);
    if (strcmp(holder, entry) != 0)
        (void)tree_remove(boxes, entry);
}

void boxes_sweep(void)
{
    struct error ignored;
    autoclose int boxes = boxes_open(&ignored);
    autoclose int names = boxes < 0 ? -1 : open_folder("names", &ignored);
    DIR *d = names < 0 ? NULL : open_list(boxes);

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            sweep_one(boxes, names, e->d_name);
    if (d)
        (void)closedir(d);
}

/* ---- finding ---- */

int boxes_each(int (*fn)(void *arg, const char *id), void *arg, struct error *err)
{
    autoclose int boxes = boxes_open(err);
    DIR *d = boxes < 0 ? NULL : open_list(boxes);
    int r = 0;

    if (!d)
        return boxes < 0 ? boxes : error_sys(err, -errno, "list the boxes");
    for (struct dirent *e; r == 0 && (e = readdir(d));)
        if (boxes_is_id(e->d_name))
            r = fn(arg, e->d_name);
    (void)closedir(d);
    return r;
}

struct prefix {
    const char *text;
    size_t len, found;
    char *id;
};

static int match_prefix(void *arg, const char *id)
{
    struct prefix *p = arg;

    if (strncmp(id, p->text, p->len) == 0 && p->found++ == 0)
        (void)snprintf(p->id, 65, "%s", id);
    return 0;
}

int boxes_resolve(const char *ref, char id[65], struct error *err)
{
    autoclose int boxes = boxes_open(err), names = boxes < 0 ? -1 : open_folder("names", err);
    struct prefix p = {.id = id};
    int r;

    ref += ref[0] == '/'; /* the name as inspect shows it */
    p.text = ref;
    p.len = strlen(ref);
    if (boxes < 0 || names < 0)
        return -(int)err->code;
    id[0] = 0;
    if (boxes_is_id(ref)) {
        if (faccessat(boxes, ref, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            (void)snprintf(id, 65, "%s", ref);
    } else if (boxes_name_is_valid(ref)) {
        read_name(names, boxes, ref, id);
    }
    if (id[0])
        return 0;
    if (p.len == 0 || p.len > 64 || strspn(ref, "0123456789abcdef") != p.len)
        return error_set(err, ERR_NOT_FOUND, "no such box: %s", ref);
    r = boxes_each(match_prefix, &p, err);
    if (r < 0)
        return r;
    if (p.found > 1)
        return error_set(err, ERR_INVALID, "'%s' begins the ids of %zu boxes: say more of it", ref,
                         p.found);
    return p.found ? 0 : error_set(err, ERR_NOT_FOUND, "no such box: %s", ref);
}
