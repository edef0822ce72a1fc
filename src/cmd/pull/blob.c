/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/pull/pull.h"

#define WAIT_FOR_OTHER_SEC 600 /* another pull of the same blob */

static void blob_path(char path[96], const char *folder, const char *hex)
{
    (void)snprintf(path, 96, "blobs/%s/%s", folder, hex);
}

bool blob_have(const struct work *w, const char *hex, uint64_t size)
{
    char path[96];
    struct stat st;

    blob_path(path, "sha256", hex);
    return fstatat(w->store.fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == size;
}

int blob_open(const struct work *w, const char *hex, struct error *err)
{
    char path[96];
    int fd;

    blob_path(path, "sha256", hex);
    fd = openat(w->store.fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? error_sys(err, -errno, "open '%s/%s'", w->store.path, path) : fd;
}

static int check_size(const char *hex, uint64_t size, struct error *err)
{
    if (size > LIMIT_IMAGE_BLOB)
        return error_set(err, ERR_TOO_LARGE,
                         "blob sha256:%.12s... has %llu bytes: at most %llu are taken", hex,
                         (unsigned long long)size, (unsigned long long)LIMIT_IMAGE_BLOB);
    return 0;
}

int blob_writer_init(struct blob_writer *b, struct work *w, const char *hex, uint64_t size,
                     struct error *err)
{
    *b = (struct blob_writer){.work = w, .fd = -1, .size = size};
    memcpy(b->hex, hex, DIGEST_HEX);
    sha256_init(&b->hash);
    if (check_size(hex, size, err) < 0)
        return -(int)err->code;
    (void)unlinkat(w->temp, "blob", 0);
    b->fd = openat(w->temp, "blob", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return b->fd < 0 ? error_sys(err, -errno, "make a file in '%s'", w->store.path) : 0;
}

/* Opens and locks blobs/partial/<hex>: 0, 1 if somebody else has it, or negative. */
static int lock_partial(struct blob_writer *b, const char *path, struct error *err)
{
    struct stat mine, named;

    b->fd = openat(b->work->store.fd, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (b->fd < 0)
        return error_sys(err, -errno, "open '%s/%s'", b->work->store.path, path);
    if (flock(b->fd, LOCK_EX | LOCK_NB) < 0) {
        close_fd(&b->fd);
        return 1;
    }
    /* Committed or dropped between our open and our lock: then it is not the one with the name. */
    if (fstat(b->fd, &mine) < 0 ||
        fstatat(b->work->store.fd, path, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
        mine.st_ino != named.st_ino) {
        close_fd(&b->fd);
        return 1;
    }
    return 0;
}

/* Hashes what an earlier pull left. */
static int take_over(struct blob_writer *b, struct error *err)
{
    char chunk[LIMIT_STREAM_CHUNK];
    struct stat st;
    ssize_t n;

    if (fstat(b->fd, &st) < 0)
        return error_sys(err, -errno, "look at partial blob %.12s", b->hex);
    if ((uint64_t)st.st_size > b->size)
        return blob_writer_restart(b, err);
    while ((n = fd_read_full(b->fd, chunk, sizeof(chunk))) > 0) {
        sha256_update(&b->hash, chunk, (size_t)n);
        b->got += (uint64_t)n;
    }
    return n < 0 ? error_sys(err, (int)n, "read partial blob %.12s", b->hex) : 0;
}

int blob_writer_resume(struct blob_writer *b, struct work *w, const char *hex, uint64_t size,
                       struct error *err)
{
    char path[96];
    int r = 1;

    *b = (struct blob_writer){.work = w, .fd = -1, .size = size, .partial = true};
    memcpy(b->hex, hex, DIGEST_HEX);
    sha256_init(&b->hash);
    if (check_size(hex, size, err) < 0)
        return -(int)err->code;
    blob_path(path, "partial", hex);
    for (int i = 0; i < WAIT_FOR_OTHER_SEC * 10 && r == 1; i++) {
        r = lock_partial(b, path, err);
        if (r == 1)
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        if (check_interrupt(err) < 0)
            return -(int)err->code;
        if (r <= 0 || !blob_have(w, hex, size))
            continue;
        return 1;
    }
    if (r < 0)
        return r;
    if (r == 1)
        return error_set(err, ERR_TIMEOUT,
                         "blob sha256:%.12s... is being pulled by another program since %d "
                         "seconds: try again when it has ended",
                         hex, WAIT_FOR_OTHER_SEC);
    if (blob_have(w, hex, size)) {
        (void)unlinkat(w->store.fd, path, 0);
        return 1;
    }
    return take_over(b, err);
}

int blob_writer_add(struct blob_writer *b, const void *data, size_t len, struct error *err)
{
    int r = check_interrupt(err);

    if (r < 0)
        return r;
    if (len > b->size - b->got)
        return error_set(err, ERR_INVALID,
                         "blob sha256:%.12s...: more bytes came than the %llu of its descriptor: "
                         "its source is damaged or lies",
                         b->hex, (unsigned long long)b->size);
    r = fd_write_full(b->fd, data, len);
    if (r < 0)
        return error_sys(err, r,
                         "write blob sha256:%.12s... of %llu bytes in '%s' (free space "
                         "there, or set CLAWDEN_DATA_DIR)",
                         b->hex, (unsigned long long)b->size, b->work->store.path);
    sha256_update(&b->hash, data, len);
    b->got += len;
    return 0;
}

int blob_writer_restart(struct blob_writer *b, struct error *err)
{
    if (ftruncate(b->fd, 0) < 0 || lseek(b->fd, 0, SEEK_SET) < 0)
        return error_sys(err, -errno, "begin blob sha256:%.12s... again", b->hex);
    sha256_init(&b->hash);
    b->got = 0;
    return 0;
}

/* Out of memory it is forgotten: then the next removal finds it. */
static void remember(struct work *w, const char *hex)
{
    void *p = realloc(w->blobs, (w->n_blobs + 1) * sizeof(*w->blobs));

    if (!p)
        return;
    w->blobs = p;
    memcpy(w->blobs[w->n_blobs++], hex, DIGEST_HEX);
}

void blob_drop_all(struct work *w)
{
    char path[96];

    for (size_t i = 0; i < w->n_blobs; i++) {
        blob_path(path, "sha256", w->blobs[i]);
        (void)unlinkat(w->store.fd, path, 0);
    }
}

int blob_writer_commit(struct blob_writer *b, struct error *err)
{
    char path[96], from[96], hex[SHA256_HEX];
    const struct work *w = b->work;

    if (b->got != b->size)
        return error_set(err, ERR_INVALID,
                         "blob sha256:%.12s... has %llu bytes, its descriptor says %llu: its "
                         "source is damaged or cut off",
                         b->hex, (unsigned long long)b->got, (unsigned long long)b->size);
    sha256_finish_hex(&b->hash, hex);
    blob_path(from, "partial", b->hex);
    if (strcmp(hex, b->hex) != 0)
        return error_set(err, ERR_INVALID,
                         "the digest of blob sha256:%.12s... is sha256:%.12s...: its source is "
                         "damaged or lies, nothing of it was kept",
                         b->hex, hex);
    blob_path(path, "sha256", b->hex);
    if (renameat(b->partial ? w->store.fd : w->temp, b->partial ? from : "blob", w->store.fd,
                 path) < 0)
        return error_sys(err, -errno, "name blob '%s/%s'", w->store.path, path);
    remember(b->work, b->hex);
    return 0;
}

void blob_writer_forget(struct blob_writer *b)
{
    char path[96];

    blob_path(path, "partial", b->hex);
    if (b->partial)
        (void)unlinkat(b->work->store.fd, path, 0);
}

void blob_writer_done(struct blob_writer *b)
{
    close_fd(&b->fd);
}

int blob_put(struct work *w, const char *hex, const void *data, size_t len, struct error *err)
{
    cleanup_(blob_writer_done) struct blob_writer b = {.fd = -1};
    int r;

    if (blob_have(w, hex, len))
        return 0;
    r = blob_writer_init(&b, w, hex, len, err);
    if (r >= 0)
        r = blob_writer_add(&b, data, len, err);
    return r < 0 ? r : blob_writer_commit(&b, err);
}
