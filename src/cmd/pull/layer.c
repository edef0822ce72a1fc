/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One layer as a stream. libarchive is used twice, as a reader only: the outer one takes the
 * compression off, the inner one reads the tar from what the outer gives. Between them stand the
 * hash (a layer's diff id is that of the uncompressed tar) and the caps (how much it may grow).
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cmd/pull/pull.h"

#define TAR_BLOCK 512

struct stream {
    struct work *work;
    struct archive *outer, *inner;
    struct sha256 hash;
    uint64_t packed;   /* bytes of the layer as it came */
    uint64_t unpacked; /* bytes of tar so far */
    uint64_t zeros;    /* of these, the zeros at the end */
    struct error *err; /* filled by the reader when it is not libarchive that gives up */
    bool refused;
    const char *what;
    char chunk[LIMIT_STREAM_CHUNK];
};

static void stream_close(struct stream *s)
{
    if (s->inner)
        (void)archive_read_free(s->inner);
    if (s->outer)
        (void)archive_read_free(s->outer);
    s->inner = s->outer = NULL;
}

/* libarchive's own words, or what the reader below refused. */
static int broken(struct stream *s, struct archive *a, struct error *err)
{
    const char *why = archive_error_string(a);

    if (s->refused)
        return -(int)err->code;
    return error_set(err, ERR_INVALID, "%s cannot be read: %s; get it again from its source",
                     s->what, why ? why : "damaged");
}

static int check_growth(struct stream *s)
{
    const struct options *o = s->work->o;
    uint64_t most = o->max_bytes + o->max_entries * 1024; /* names and padding beside the data */

    if (s->unpacked > most)
        return error_set(s->err, ERR_TOO_LARGE,
                         "%s unpacks to more than %llu bytes: refused, --max-size says how much is "
                         "taken",
                         s->what, (unsigned long long)o->max_bytes);
    if (s->unpacked > LIMIT_IMAGE_RATIO_FREE + LIMIT_IMAGE_RATIO * s->packed)
        return error_set(s->err, ERR_TOO_LARGE,
                         "%s grows from %llu bytes to more than %u times as many: refused as a "
                         "bomb",
                         s->what, (unsigned long long)s->packed, LIMIT_IMAGE_RATIO);
    return check_interrupt(s->err);
}

static void count_zeros(struct stream *s, const char *data, size_t n)
{
    size_t tail = 0;

    while (tail < n && data[n - 1 - tail] == 0)
        tail++;
    s->zeros = tail == n ? s->zeros + n : tail;
}

/* What the inner archive reads; also called to drain what stands behind the end of the tar. */
static la_ssize_t read_unpacked(struct archive *a, void *ctx, const void **ret)
{
    struct stream *s = ctx;
    la_ssize_t n = archive_read_data(s->outer, s->chunk, sizeof(s->chunk));

    if (n < 0) {
        if (a)
            archive_set_error(a, EIO, "%s", archive_error_string(s->outer));
        else
            (void)broken(s, s->outer, s->err);
        return -1;
    }
    s->unpacked += (uint64_t)n;
    sha256_update(&s->hash, s->chunk, (size_t)n);
    count_zeros(s, s->chunk, (size_t)n);
    if (check_growth(s) < 0) {
        s->refused = true;
        if (a)
            archive_set_error(a, EFBIG, "refused");
        return -1;
    }
    *ret = s->chunk;
    return n;
}

static int open_outer(struct stream *s, int fd, struct error *err)
{
    struct archive_entry *e;
    int r;

    s->outer = archive_read_new();
    if (!s->outer)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    (void)archive_read_support_filter_gzip(s->outer);
    (void)archive_read_support_filter_bzip2(s->outer);
    (void)archive_read_support_filter_xz(s->outer);
    (void)archive_read_support_filter_zstd(s->outer);
    (void)archive_read_support_format_raw(s->outer);
    (void)archive_read_support_format_empty(s->outer);
    if (archive_read_open_fd(s->outer, fd, sizeof(s->chunk)) != ARCHIVE_OK)
        return broken(s, s->outer, err);
    r = archive_read_next_header(s->outer, &e);
    if (r == ARCHIVE_EOF)
        return error_set(err, ERR_INVALID, "%s is empty", s->what);
    if (r != ARCHIVE_OK)
        return broken(s, s->outer, err);
    if (archive_filter_count(s->outer) > 2) /* itself and "none" */
        return error_set(err, ERR_INVALID, "%s is compressed more than once: refused", s->what);
    return 0;
}

static int stream_open(struct stream *s, struct work *w, int fd, const char *what,
                       struct error *err)
{
    struct stat st;

    s->work = w;
    s->what = what;
    s->err = err;
    sha256_init(&s->hash);
    if (lseek(fd, 0, SEEK_SET) < 0 || fstat(fd, &st) < 0)
        return error_sys(err, -errno, "read %s", what);
    s->packed = (uint64_t)st.st_size;
    if (open_outer(s, fd, err) < 0)
        return -(int)err->code;
    s->inner = archive_read_new();
    if (!s->inner)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    (void)archive_read_support_format_tar(s->inner);
    (void)archive_read_support_format_empty(s->inner);
    if (archive_read_open(s->inner, s, NULL, read_unpacked, NULL) != ARCHIVE_OK)
        return broken(s, s->inner, err);
    return 0;
}

/* 1 with the next entry, 0 at the end. Warnings are failures: a name was not understood. */
static int stream_next(struct stream *s, struct archive_entry **ret, struct error *err)
{
    int r = archive_read_next_header(s->inner, ret);

    if (r == ARCHIVE_EOF)
        return 0;
    if (r != ARCHIVE_OK)
        return broken(s, s->inner, err);
    if (!archive_entry_pathname(*ret))
        return error_set(err, ERR_INVALID, "%s has an entry without a readable name: refused",
                         s->what);
    return 1;
}

/* Reads to the end, so that the hash is of everything. */
static int stream_finish(struct stream *s, struct layer_result *ret, struct error *err)
{
    const void *data;
    la_ssize_t n;

    while ((n = read_unpacked(NULL, s, &data)) > 0)
        ;
    if (n < 0)
        return -(int)err->code;
    sha256_finish_hex(&s->hash, ret->diff_id);
    return 0;
}

/* ---- into a root ---- */

static int entry_of(struct stream *s, struct archive_entry *from, struct entry *ret,
                    struct error *err)
{
    unsigned type = archive_entry_filetype(from);

    *ret = (struct entry){
        .type = ENTRY_SPECIAL,
        .name = archive_entry_pathname(from),
        .mode = (unsigned)archive_entry_perm(from),
        .uid = archive_entry_uid(from),
        .gid = archive_entry_gid(from),
        .mtime_sec = archive_entry_mtime(from),
        .mtime_nsec = archive_entry_mtime_nsec(from),
    };
    if (archive_entry_hardlink(from)) {
        ret->type = ENTRY_HARD_LINK;
        ret->target = archive_entry_hardlink(from);
    } else if (type == AE_IFLNK) {
        ret->type = ENTRY_SYMLINK;
        ret->target = archive_entry_symlink(from);
    } else if (type == AE_IFDIR) {
        ret->type = ENTRY_FOLDER;
    } else if (type == AE_IFREG) {
        ret->type = ENTRY_FILE;
        if (archive_entry_size(from) < 0)
            return error_set(err, ERR_INVALID, "%s: entry '%.200s' has a negative size: refused",
                             s->what, ret->name);
        ret->size = (uint64_t)archive_entry_size(from);
    } else if (type != AE_IFCHR && type != AE_IFBLK && type != AE_IFIFO && type != AE_IFSOCK) {
        return error_set(err, ERR_INVALID, "%s: entry '%.200s' is of no known type: refused",
                         s->what, ret->name);
    }
    return 0;
}

/* user.* is kept where the file system can; the rest would speak to the host's kernel. */
static void put_xattrs(struct work *w, struct archive_entry *from, int fd)
{
    const char *name;
    const void *value;
    size_t size;

    (void)archive_entry_xattr_reset(from);
    while (archive_entry_xattr_next(from, &name, &value, &size) == ARCHIVE_OK)
        if (fd < 0 || strncmp(name, "user.", 5) != 0 || fsetxattr(fd, name, value, size, 0) < 0)
            w->dropped.xattrs++;
}

static int copy_data(struct stream *s, struct unpacker *u, const struct entry *e, int fd,
                     struct error *err)
{
    for (;;) {
        const void *data;
        size_t n;
        la_int64_t offset;
        int r = archive_read_data_block(s->inner, &data, &n, &offset);

        if (r == ARCHIVE_EOF)
            return 0;
        if (r != ARCHIVE_OK)
            return broken(s, s->inner, err);
        r = unpack_write(u, e, fd, data, n, (uint64_t)offset, err);
        if (r < 0)
            return r;
    }
}

static int unpack_one(struct stream *s, struct unpacker *u, struct archive_entry *from,
                      struct error *err)
{
    autoclose int fd = -1;
    struct entry e;
    int r = entry_of(s, from, &e, err);

    if (r >= 0)
        r = unpack_entry(u, &e, &fd, err);
    if (r < 0)
        return r;
    put_xattrs(s->work, from, fd);
    if (fd < 0)
        return 0;
    r = copy_data(s, u, &e, fd, err);
    return r < 0 ? r : unpack_file_end(u, &e, fd, err);
}

/* The digits of "layer sha256:...", or the word itself. */
static const char *short_name(const struct stream *s)
{
    const char *colon = strchr(s->what, ':');

    return colon ? colon + 1 : s->what;
}

static int unpack_all(struct stream *s, struct unpacker *u, struct error *err)
{
    struct archive_entry *e;
    int r;

    while ((r = stream_next(s, &e, err)) > 0) {
        r = unpack_one(s, u, e, err);
        if (r < 0)
            return r;
        progress_say(&s->work->progress, "unpack", short_name(s), s->unpacked, 0);
    }
    return r;
}

int layer_unpack(struct work *w, int fd, int root, const char *what, bool whole_tar,
                 struct layer_result *ret, struct error *err)
{
    cleanup_(stream_close) struct stream s = {.outer = NULL};
    cleanup_(unpack_done) struct unpacker u = {.parent = -1};
    int r = unpack_begin(&u, w, root, what, err);

    if (r >= 0)
        r = stream_open(&s, w, fd, what, err);
    if (r >= 0)
        r = unpack_all(&s, &u, err);
    if (r >= 0)
        r = stream_finish(&s, ret, err);
    if (r < 0)
        return r;
    if (whole_tar && s.zeros < TAR_BLOCK)
        return error_set(err, ERR_INVALID,
                         "%s has no end: it is cut off; get it again from its "
                         "source",
                         what);
    unpack_end(&u);
    return 0;
}

/* ---- other uses of tars ---- */

int layer_each(struct work *w, int fd, on_member fn, void *ctx, struct layer_result *ret,
               struct error *err)
{
    cleanup_(stream_close) struct stream s = {.outer = NULL};
    struct archive_entry *e;
    int r = stream_open(&s, w, fd, "the archive", err);

    if (r < 0)
        return r;
    while ((r = stream_next(&s, &e, err)) > 0) {
        r = fn(ctx, s.inner, e, err);
        if (r < 0)
            return s.refused ? -(int)err->code : r;
        if (r > 0)
            return 0; /* it has seen enough */
    }
    return r < 0 ? r : stream_finish(&s, ret, err);
}
