/* SPDX-License-Identifier: Apache-2.0 */
#include "image/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/state.h"
#include "base/tree.h"
#include "image/image.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define MACHINE   "/var/lib/clawden/images"

static const char *const folders[] = {"blobs", "blobs/sha256", "blobs/partial", "names", "roots"};

void image_store_close(struct image_store *s)
{
    close_fd(&s->fd);
}

int image_store_open_own(struct image_store *ret, struct error *err)
{
    struct image_store s = {.fd = -1};
    autoclose int data = state_open_data(err), fd = -1;
    size_t n;
    int r;

    if (data < 0)
        return data;
    r = state_data_path(s.path, sizeof(s.path) - sizeof("/images"), err);
    if (r < 0)
        return r;
    n = strlen(s.path);
    (void)snprintf(s.path + n, sizeof(s.path) - n, "/images");
    if (mkdirat(data, "images", 0700) < 0 && errno != EEXIST)
        return error_sys(err, -errno, "make the image store '%s'", s.path);
    fd = openat(data, "images", DIR_FLAGS);
    if (fd < 0)
        return error_sys(err, -errno, "open the image store '%s'", s.path);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
        if (mkdirat(fd, folders[i], 0700) < 0 && errno != EEXIST)
            return error_sys(err, -errno, "make '%s/%s'", s.path, folders[i]);
    s.fd = TAKE_FD(fd);
    *ret = s;
    return 0;
}

/* A store is trusted only if nobody but its owner can write it. */
static int look(const char *path, uid_t owner, struct image_store *ret, struct error *err)
{
    autoclose int fd = open(path, DIR_FLAGS);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ENOTDIR))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, -errno, "open the image store '%s'", path);
    if (st.st_uid != owner || (st.st_mode & 022))
        return error_set(err, ERR_DENIED,
                         "the image store '%s' belongs to uid %u with mode %04o: it must be uid "
                         "%u's and writable by nobody else",
                         path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777, (unsigned)owner);
    (void)snprintf(ret->path, sizeof(ret->path), "%s", path);
    ret->fd = TAKE_FD(fd);
    return 1;
}

int image_store_look_own(struct image_store *ret, struct error *err)
{
    char path[LIMIT_PATH];
    int r = state_data_path(path, sizeof(path) - sizeof("/images"), err);

    *ret = (struct image_store){.fd = -1};
    if (r < 0)
        return r;
    (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/images");
    return look(path, geteuid(), ret, err);
}

int image_store_look_machine(struct image_store *ret, struct error *err)
{
    *ret = (struct image_store){.fd = -1, .read_only = true};
    return look(MACHINE, 0, ret, err);
}

int image_store_lock(const struct image_store *s, bool exclusive, struct error *err)
{
    autoclose int fd = openat(s->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_sys(err, -errno, "open '%s/lock'", s->path);
    /* An import may take minutes; a removal does not wait for it longer than this. */
    for (int i = 0; i < (exclusive ? 50 : 6000); i++) {
        if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
            return TAKE_FD(fd);
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_sys(err, -errno, "lock '%s/lock'", s->path);
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return error_set(err, ERR_TIMEOUT,
                     "the image store '%s' is in use by an import, a pull or a removal: try again "
                     "when it has ended",
                     s->path);
}

/* ---- records ---- */

/* Takes the hold and opens the root; the caller frees the image if this fails. */
static int open_root(const struct image_store *s, struct image *image, struct error *err)
{
    char path[80];

    image->hold_fd = openat(s->fd, image->id, DIR_FLAGS);
    if (image->hold_fd < 0 || flock(image->hold_fd, LOCK_SH | LOCK_NB) < 0)
        return error_sys(err, -errno, "hold image %.12s", image->id);
    /* Removal takes the folder away under an exclusive lock: what we hold must still be it. */
    if (faccessat(image->hold_fd, "image.json", F_OK, 0) < 0)
        return error_set(err, ERR_NOT_FOUND, "image %.12s is being removed", image->id);
    (void)snprintf(path, sizeof(path), "roots/%s", image->root);
    image->root_fd = openat(s->fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (image->root_fd < 0)
        return error_sys(err, -errno, "open the root of image %.12s ('%s/%s')", image->id, s->path,
                         path);
    return 0;
}

int image_store_load(const struct image_store *s, const char *id, bool with_root,
                     struct image **ret, struct error *err)
{
    autoptr(image) image = NULL;
    autofree char *text = NULL;
    autoclose int fd = -1;
    char path[80];
    struct stat st;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "%s/image.json", id);
    fd = openat(s->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERR_NOT_FOUND, "there is no image %.12s in '%s'", id, s->path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, -errno, "open '%s/%s'", s->path, path);
    if (!S_ISREG(st.st_mode) || st.st_size > LIMIT_IMAGE_RECORD)
        return error_set(err, ERR_INVALID, "'%s/%s' is no record of an image", s->path, path);
    text = malloc((size_t)st.st_size + 1);
    n = text ? fd_read_full(fd, text, (size_t)st.st_size) : -ENOMEM;
    if (n < 0)
        return error_sys(err, (int)n, "read '%s/%s'", s->path, path);
    if (image_parse(text, (size_t)n, &image, err) < 0)
        return error_wrap(err, "image %.12s in '%s'", id, s->path);
    if (strcmp(image->id, id) != 0)
        return error_set(err, ERR_INVALID, "'%s/%s' is the record of another image", s->path, path);
    image->read_only = s->read_only;
    if (with_root && open_root(s, image, err) < 0)
        return -(int)err->code;
    *ret = TAKE_PTR(image);
    return 0;
}

int image_store_set_name(const struct image_store *s, const char *name, const char *id,
                         struct error *err)
{
    char file[256], path[sizeof("names/") + 256], temp[64];

    if (reference_encode(name, file, sizeof(file)) < 0)
        return error_set(err, ERR_TOO_LARGE, "the image name '%s' is too long for a file name",
                         name);
    (void)snprintf(path, sizeof(path), "names/%s", file);
    (void)snprintf(temp, sizeof(temp), "names/.tmp-%d", (int)getpid());
    (void)unlinkat(s->fd, temp, 0);
    if (symlinkat(id, s->fd, temp) < 0 || renameat(s->fd, temp, s->fd, path) < 0) {
        int r = -errno;

        (void)unlinkat(s->fd, temp, 0);
        return error_sys(err, r, "name the image '%s' in '%s'", name, s->path);
    }
    return 0;
}

/* ---- temporary folders ---- */

int image_store_make_temp(const struct image_store *s, char name[STORE_TEMP_NAME],
                          struct error *err)
{
    for (int i = 0; i < 100; i++) {
        unsigned long long random = 0;
        autoclose int fd = -1;
        struct stat st;

        (void)!getrandom(&random, sizeof(random), 0);
        (void)snprintf(name, STORE_TEMP_NAME, "tmp-%d-%016llx", (int)getpid(), random);
        if (mkdirat(s->fd, name, 0700) < 0) {
            if (errno == EEXIST)
                continue;
            return error_sys(err, -errno, "make a temporary folder in '%s'", s->path);
        }
        fd = openat(s->fd, name, DIR_FLAGS);
        /* A sweep may come between: then it has the lock, or the folder is gone already. */
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
            return TAKE_FD(fd);
    }
    return error_set(err, ERR_SYS, "make a temporary folder in '%s': it is taken away each time",
                     s->path);
}

void image_store_sweep(const struct image_store *s)
{
    int fd = openat(s->fd, ".", DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        close_fd(&fd);
        return;
    }
    while ((e = readdir(d))) {
        autoclose int temp = -1;

        if (strncmp(e->d_name, "tmp-", 4) != 0)
            continue;
        temp = openat(s->fd, e->d_name, DIR_FLAGS);
        if (temp >= 0 && flock(temp, LOCK_EX | LOCK_NB) == 0)
            (void)tree_remove(s->fd, e->d_name);
    }
    (void)closedir(d);
}

/* ---- what nobody names ---- */

struct keep {
    char (*hex)[DIGEST_HEX];
    size_t n, cap;
    bool failed;
};

static void keep_add(struct keep *k, const char *hex)
{
    if (!hex[0])
        return;
    if (k->n == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 64;
        void *p = realloc(k->hex, cap * sizeof(*k->hex));

        if (!p) {
            k->failed = true;
            return;
        }
        k->hex = p;
        k->cap = cap;
    }
    memcpy(k->hex[k->n++], hex, DIGEST_HEX);
}

static int compare_hex(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool keeps(const struct keep *k, const char *name)
{
    return k->n && bsearch(name, k->hex, k->n, sizeof(*k->hex), compare_hex);
}

/* First out of sight under a name that a sweep knows: a root cut in half must not look whole. */
static int discard(const struct image_store *s, const char *folder, const char *name)
{
    char temp[STORE_TEMP_NAME], path[400];
    struct error err;
    autoclose int fd = image_store_make_temp(s, temp, &err);

    if (fd < 0)
        return -EIO;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (renameat(s->fd, path, fd, "gone") < 0)
        return -errno;
    return tree_remove(s->fd, temp);
}

/* Calls discard() for every name of a folder that is not kept. */
static int collect_folder(const struct image_store *s, const char *folder, const struct keep *k)
{
    int fd = openat(s->fd, folder, DIR_FLAGS), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        r = -errno;
        close_fd(&fd);
        return r;
    }
    while ((e = readdir(d)) && r >= 0)
        if (e->d_name[0] != '.' && !keeps(k, e->d_name))
            r = discard(s, folder, e->d_name);
    (void)closedir(d);
    return r;
}

/* Notes what one record names; a record that cannot be read keeps everything: false. */
static bool note_image(const struct image_store *s, const char *id, struct keep *roots,
                       struct keep *blobs)
{
    autoptr(image) image = NULL;
    struct error err;

    if (image_store_load(s, id, false, &image, &err) < 0) {
        if (err.code == ERR_NOT_FOUND) { /* a folder without record: garbage of a removal */
            (void)discard(s, ".", id);
            return true;
        }
        return false;
    }
    keep_add(roots, image->root);
    keep_add(blobs, image->id);
    keep_add(blobs, image->manifest);
    for (size_t i = 0; i < image->n_layers; i++)
        keep_add(blobs, image->layers[i].digest);
    return true;
}

static bool note_images(const struct image_store *s, struct keep *roots, struct keep *blobs)
{
    int fd = openat(s->fd, ".", DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    bool ok = true;

    if (!d) {
        close_fd(&fd);
        return false;
    }
    while (ok && (e = readdir(d)))
        if (strlen(e->d_name) == 64 && digest_is_hex(e->d_name, 64))
            ok = note_image(s, e->d_name, roots, blobs);
    (void)closedir(d);
    return ok && !roots->failed && !blobs->failed;
}

/* Names that a killed writer left half made, or whose image is gone. */
static void collect_names(const struct image_store *s)
{
    int fd = openat(s->fd, "names", DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        close_fd(&fd);
        return;
    }
    while ((e = readdir(d))) {
        char id[DIGEST_HEX + 16] = "", record[sizeof(id) + 16];
        ssize_t n = readlinkat(dirfd(d), e->d_name, id, sizeof(id) - 1);

        if (n < 0)
            continue; /* no link: "." and ".." */
        (void)snprintf(record, sizeof(record), "%s/image.json", id);
        if (e->d_name[0] == '.' || n != 64 || !digest_is_hex(id, 64) ||
            faccessat(s->fd, record, F_OK, 0) < 0)
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    (void)closedir(d);
}

int image_store_collect(const struct image_store *s, struct error *err)
{
    struct keep roots = {0}, blobs = {0}, none = {0};
    int r = 0;

    collect_names(s);
    if (note_images(s, &roots, &blobs)) {
        if (roots.n)
            qsort(roots.hex, roots.n, sizeof(*roots.hex), compare_hex);
        if (blobs.n)
            qsort(blobs.hex, blobs.n, sizeof(*blobs.hex), compare_hex);
        r = collect_folder(s, "roots", &roots);
        if (r >= 0)
            r = collect_folder(s, "blobs/sha256", &blobs);
        if (r >= 0)
            r = collect_folder(s, "blobs/partial", &none);
    }
    free(roots.hex);
    free(blobs.hex);
    return r < 0 ? error_sys(err, r, "remove what no image needs from '%s'", s->path) : 0;
}
