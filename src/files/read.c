/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the file, as far as its size was when it was opened: what was asked for is kept,
 * the rest is hashed and its lines counted, so that text and identity are of the same bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "files/internal.h"

const char *files_kind_name(enum files_kind kind)
{
    static const char *const names[] = {"text",       "binary",    "image/png",
                                        "image/jpeg", "image/gif", "image/webp"};

    return names[kind];
}

/* ---- what kind ---- */

/* A character cut off at the end is no fault if `open`. */
static bool is_text(const char *s, size_t n, bool open)
{
    uint32_t c;

    if (memchr(s, 0, n))
        return false;
    for (size_t i = 0, k; i < n; i += k) {
        k = utf8_ascii(s + i, n - i);
        if (k == 0)
            k = utf8_take(s + i, n - i, &c);
        if (k == 0)
            return open && n - i < 4 && (unsigned char)s[i] >= 0xc2;
    }
    return true;
}

static enum files_kind kind_of(const char *s, size_t n, bool open)
{
    if (n >= 8 && memcmp(s, "\x89PNG\r\n\x1a\n", 8) == 0)
        return FILES_PNG;
    if (n >= 3 && memcmp(s, "\xff\xd8\xff", 3) == 0)
        return FILES_JPEG;
    if (n >= 6 && (memcmp(s, "GIF87a", 6) == 0 || memcmp(s, "GIF89a", 6) == 0))
        return FILES_GIF;
    if (n >= 12 && memcmp(s, "RIFF", 4) == 0 && memcmp(s + 8, "WEBP", 4) == 0)
        return FILES_WEBP;
    return is_text(s, n, open) ? FILES_TEXT : FILES_BINARY;
}

/* ---- the pass ---- */

struct scan {
    bool raw;
    int64_t first, end; /* lines, or bytes: [first, end) is wanted */
    struct buf *out;
    size_t start, room; /* out->len at the start; bytes that may be added */
    int64_t at, line;   /* the byte and the line that come next */
    size_t line_start;  /* out->len where the line being kept began */
    bool full, hashing, ends_open;
    int64_t full_line, full_at;
    struct sha256 hash;
};

static void keep(struct scan *s, const char *p, size_t n)
{
    size_t room = s->room - (s->out->len - s->start);
    size_t take = n < room ? n : room;

    buf_append(s->out, p, take);
    if (take == n)
        return;
    s->full = true;
    s->full_line = s->line;
    s->full_at = s->at + (int64_t)take;
}

static void feed_bytes(struct scan *s, const char *p, size_t n)
{
    int64_t from = s->first > s->at ? s->first - s->at : 0;
    int64_t to = s->end - s->at < (int64_t)n ? s->end - s->at : (int64_t)n;

    if (from < to) {
        int64_t at = s->at;

        s->at += from;
        if (!s->full)
            keep(s, p + from, (size_t)(to - from));
        s->at = at;
    }
    s->at += (int64_t)n;
}

static void feed_lines(struct scan *s, const char *p, size_t n)
{
    while (n) {
        const char *nl = memchr(p, '\n', n);
        size_t k = nl ? (size_t)(nl - p) + 1 : n;

        if (!s->ends_open && !s->full)
            s->line_start = s->out->len;
        if (s->line >= s->first && s->line < s->end && !s->full)
            keep(s, p, k);
        s->at += (int64_t)k;
        s->line += nl != NULL;
        s->ends_open = !nl;
        p += k;
        n -= k;
    }
}

/* Reads from the start up to `upto`; the kind is told by the first chunk. */
static int scan_file(int fd, int64_t upto, struct scan *s, enum files_kind *ret_kind)
{
    size_t size = upto < LIMIT_FILES_CHUNK ? (size_t)upto + 1 : LIMIT_FILES_CHUNK;
    autofree char *chunk = malloc(size);
    int64_t done = 0;

    if (!chunk)
        return -ENOMEM;
    *ret_kind = FILES_TEXT;
    while (done < upto) {
        size_t want = upto - done < (int64_t)size ? (size_t)(upto - done) : size;
        ssize_t n = fd_read_full(fd, chunk, want);

        if (n <= 0)
            return (int)n;
        if (done == 0)
            *ret_kind = kind_of(chunk, (size_t)n, n < upto);
        if (s->hashing)
            sha256_update(&s->hash, chunk, (size_t)n);
        if (s->raw)
            feed_bytes(s, chunk, (size_t)n);
        else
            feed_lines(s, chunk, (size_t)n);
        done += n;
    }
    return 0;
}

/* ---- what came of it ---- */

/* Lines: back to the last whole one, unless a single line is more than fits. */
static void end_cut_lines(struct scan *s, struct files_read *ret)
{
    ret->cut = true;
    if (s->full_line > s->first) {
        s->out->len = s->line_start;
        s->out->data[s->out->len] = 0;
        ret->next = s->full_line;
        ret->lines = s->full_line - s->first;
        return;
    }
    for (unsigned i = 0; i < 3 && s->out->len > s->start && s->full_at > 0; i++) {
        uint32_t c;
        size_t back = i + 1;

        /* The last character begins `back` bytes before the end; is it whole? */
        if (((unsigned char)s->out->data[s->out->len - back] & 0xc0) == 0x80)
            continue;
        if (utf8_take(s->out->data + s->out->len - back, back, &c) == 0) {
            s->out->len -= back;
            s->full_at -= (int64_t)back;
            s->out->data[s->out->len] = 0;
        }
        break;
    }
    ret->lines = 1;
    ret->next = s->full_at;
    ret->next_raw = true;
}

static void end_lines(struct scan *s, bool whole, struct files_read *ret)
{
    int64_t total = s->line - 1 + s->ends_open;

    ret->total_lines = whole ? total : -1;
    if (s->full) {
        end_cut_lines(s, ret);
    } else {
        int64_t end = s->end < total + 1 ? s->end : total + 1;

        ret->lines = end > s->first ? end - s->first : 0;
        ret->cut = end <= total || (!whole && end == total + 1);
        ret->next = ret->cut ? end : 0;
    }
}

static void write_note(const struct scan *s, struct files_read *ret)
{
    char total[32] = "more than were counted";

    if (s->raw) {
        if (ret->cut)
            (void)snprintf(ret->note, sizeof(ret->note),
                           "%" PRId64 " bytes in all; go on with offset %" PRId64, ret->size,
                           ret->next);
        return;
    }
    if (ret->total_lines >= 0)
        (void)snprintf(total, sizeof(total), "%" PRId64, ret->total_lines);
    if (ret->kind != FILES_TEXT)
        (void)snprintf(ret->note, sizeof(ret->note), "%s, %" PRId64 " bytes: read it raw",
                       files_kind_name(ret->kind), ret->size);
    else if (ret->next_raw)
        (void)snprintf(ret->note, sizeof(ret->note),
                       "line %" PRId64 " (of %s) is longer than %u bytes; go on raw at byte "
                       "%" PRId64,
                       s->first, total, LIMIT_FILES_READ, ret->next);
    else if (ret->cut)
        (void)snprintf(ret->note, sizeof(ret->note),
                       "lines %" PRId64 "-%" PRId64 " of %s; go on with offset %" PRId64, s->first,
                       s->first + ret->lines - 1, total, ret->next);
    else if (ret->lines == 0 && s->first > 1)
        (void)snprintf(ret->note, sizeof(ret->note), "the file has only %s lines", total);
}

static int finish(struct scan *s, int64_t looked, struct files_read *ret)
{
    if (s->hashing)
        sha256_finish_hex(&s->hash, ret->id.sha256);
    if (s->out->failed)
        return -EFBIG;
    if (s->raw) {
        int64_t got = (int64_t)(s->out->len - s->start);

        ret->cut = s->first + got < ret->size;
        ret->next = ret->cut ? s->first + got : 0;
        ret->total_lines = -1;
    } else {
        end_lines(s, looked >= ret->size, ret);
        if (ret->kind == FILES_TEXT &&
            !is_text(s->out->data ? s->out->data + s->start : "", s->out->len - s->start, false))
            ret->kind = FILES_BINARY;
        if (ret->kind != FILES_TEXT) {
            s->out->len = s->start;
            ret->lines = 0;
            ret->cut = ret->next_raw = false;
        }
    }
    write_note(s, ret);
    return 0;
}

static int check_ask(const struct files_ask *ask, struct scan *s, struct error *err)
{
    int64_t most = ask->raw ? LIMIT_FILES_READ : LIMIT_FILES_LINES;

    if (ask->offset < 0)
        return error_set(err, ERR_INVALID, "offset %" PRId64 ": it counts from the start; %s",
                         ask->offset, ask->raw ? "the first byte is 0" : "the first line is 1");
    if (ask->limit < 0)
        return error_set(err, ERR_INVALID, "limit %" PRId64 ": it is negative; leave it out for %u",
                         ask->limit, (unsigned)most);
    s->raw = ask->raw;
    s->line = 1;
    s->first = !ask->raw && ask->offset == 0 ? 1 : ask->offset;
    if (__builtin_add_overflow(s->first, ask->limit ? ask->limit : most, &s->end))
        s->end = INT64_MAX;
    return 0;
}

/* A range of a large file is read where it is; the file is not hashed. */
static int read_range(int fd, struct scan *s, int64_t size, enum files_kind *ret_kind)
{
    autofree char *data = malloc(s->room + 64);
    int64_t n = (s->end < size ? s->end : size) - s->first;
    ssize_t got;

    if (!data)
        return -ENOMEM;
    got = pread(fd, data, 64, 0);
    *ret_kind = got > 0 ? kind_of(data, (size_t)got, true) : FILES_TEXT;
    if (n <= 0)
        return 0;
    if ((size_t)n > s->room)
        n = (int64_t)s->room;
    got = pread(fd, data, (size_t)n, s->first);
    if (got < 0)
        return -errno;
    if (!is_text(data, (size_t)got, true) && *ret_kind == FILES_TEXT)
        *ret_kind = FILES_BINARY;
    buf_append(s->out, data, (size_t)got);
    return 0;
}

int files_read(const struct files_root *root, const char *path, const struct files_ask *ask,
               struct buf *content, struct files_read *ret, struct error *err)
{
    struct scan s = {.out = content, .start = content->len};
    autoclose int fd = -1;
    int64_t looked = 0;
    struct stat st;
    int r = check_ask(ask, &s, err);

    if (r < 0)
        return r;
    fd = files_open_file(root, path, "read", &st, err);
    if (fd < 0)
        return TAKE_FD(fd);
    s.room = ask->room ? ask->room : LIMIT_FILES_READ;
    if (content->max - content->len < s.room)
        s.room = content->max - content->len;
    *ret = (struct files_read){.size = st.st_size};
    ret->id = (struct files_id){.dev = st.st_dev,
                                .ino = st.st_ino,
                                .size = st.st_size,
                                .mtime_ns = files_nanoseconds(st.st_mtim)};
    s.hashing = st.st_size <= LIMIT_FILES_HASH;
    sha256_init(&s.hash);
    if (s.raw && !s.hashing) {
        r = read_range(fd, &s, st.st_size, &ret->kind);
    } else {
        looked = st.st_size < LIMIT_FILES_SCAN ? st.st_size : LIMIT_FILES_SCAN;
        r = scan_file(fd, looked, &s, &ret->kind);
    }
    if (r == 0)
        r = finish(&s, looked, ret);
    return r < 0 ? files_place_error(err, r, "read", path) : 0;
}
