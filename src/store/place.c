/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the store has, whose they are, and who has them open.
 *
 * SQLite opens by path and follows what it finds there, so everything that it may open is looked at
 * first; the folder is closed to others, so nobody else can change it afterwards.
 *
 * store.lock tells the living from the dead: byte 0 is held while the store is being opened, and
 * byte N by the process that took number N, for as long as it lives. The kernel lets go of it for
 * whoever is killed. store.db itself is never opened here: closing it would drop the locks that
 * SQLite has on it in the same process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/internal.h"

#define LOCK_NAME  "store.lock"
#define OPENING    0
#define WAIT_MS    30000
#define WAIT_STEP  5
#define BAD_NAME   64u
#define WAL_SUFFIX "-wal"

static int check_file(int data, const char *name, struct error *err)
{
    struct stat st;

    if (fstatat(data, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, -errno, "look at '%s'", name);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
        return error_set(err, ERR_DENIED,
                         "'%s' is a link or belongs to somebody else: remove it from the data "
                         "folder",
                         name);
    if (st.st_mode & 077)
        return error_set(err, ERR_DENIED, "'%s' has mode %04o: others may use it; chmod 600 it",
                         name, (unsigned)st.st_mode & 07777);
    return 0;
}

int place_check(int data, struct error *err)
{
    static const char *const names[] = {DB_NAME, DB_NAME WAL_SUFFIX, DB_NAME "-shm",
                                        DB_NAME "-journal", LOCK_NAME};
    struct stat st;

    if (fstat(data, &st) < 0)
        return error_sys(err, -errno, "look at the data folder");
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
        return error_set(err, ERR_DENIED,
                         "the data folder belongs to uid %u with mode %04o: it must be yours and "
                         "closed to others (chmod 700)",
                         (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int r = check_file(data, names[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- store.lock ---- */

static int lock_byte(int fd, int command, short type, off_t at, off_t len, short *ret_type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = len};
    int r;

    do
        r = fcntl(fd, command, &l);
    while (r < 0 && errno == EINTR);
    if (ret_type)
        *ret_type = l.l_type;
    return r < 0 ? -errno : 0;
}

int place_lock(struct store *s, struct error *err)
{
    const struct timespec step = {.tv_nsec = WAIT_STEP * 1000000L};
    int r;

    s->lock = openat(s->data, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return error_sys(err, -errno, "open '" LOCK_NAME "'");
    for (int waited = 0;; waited += WAIT_STEP) {
        r = lock_byte(s->lock, F_OFD_SETLK, F_WRLCK, OPENING, 1, NULL);
        if (r != -EAGAIN && r != -EACCES)
            return r < 0 ? error_sys(err, r, "lock '" LOCK_NAME "'") : 0;
        if (waited >= WAIT_MS)
            return error_set(err, ERR_TIMEOUT,
                             "'" LOCK_NAME "' is locked: another program has been opening the "
                             "store for %d seconds",
                             WAIT_MS / 1000);
        (void)nanosleep(&step, NULL);
    }
}

void place_unlock(struct store *s)
{
    (void)lock_byte(s->lock, F_OFD_SETLK, F_UNLCK, OPENING, 1, NULL);
}

/* Does another hold one of these bytes? In doubt, yes. */
static bool is_held(const struct store *s, off_t at, off_t len)
{
    short type;

    return lock_byte(s->lock, F_OFD_GETLK, F_WRLCK, at, len, &type) < 0 || type != F_UNLCK;
}

bool place_is_alone(const struct store *s)
{
    return !is_held(s, OPENING + 1, 0 /* to the end */);
}

bool place_is_alive(const struct store *s, int64_t owner)
{
    return owner > OPENING && (owner == s->owner || is_held(s, (off_t)owner, 1));
}

bool place_claim(const struct store *s, int64_t owner)
{
    return owner > OPENING && lock_byte(s->lock, F_OFD_SETLK, F_WRLCK, (off_t)owner, 1, NULL) == 0;
}

/* ---- store.db ---- */

int place_make(int data, struct error *err)
{
    /* SQLite would make it readable by others; its -wal and -shm get the modes of this one. */
    autoclose int fd =
        openat(data, DB_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    return fd < 0 && errno != EEXIST ? error_sys(err, -errno, "make '" DB_NAME "'") : 0;
}

static off_t size_of(int data, const char *name)
{
    struct stat st;

    return fstatat(data, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_size;
}

bool place_has_only_wal(int data)
{
    return size_of(data, DB_NAME) == 0 && size_of(data, DB_NAME WAL_SUFFIX) > 0;
}

static int move(int data, const char *from, const char *to)
{
    if (renameat2(data, from, data, to, RENAME_NOREPLACE) == 0 || errno == ENOENT)
        return 0;
    return -errno;
}

int place_move_aside(int data, const char *why, struct buf *note, struct error *err)
{
    char name[BAD_NAME], wal[BAD_NAME];
    int r = -EEXIST;

    for (unsigned n = 1; n <= LIMIT_BAD && r == -EEXIST; n++) {
        (void)snprintf(name, sizeof(name), DB_NAME ".bad-%u", n);
        (void)snprintf(wal, sizeof(wal), "%s" WAL_SUFFIX, name);
        r = size_of(data, wal) ? -EEXIST : move(data, DB_NAME, name);
    }
    if (r == -EEXIST)
        return error_set(err, ERR_TOO_LARGE,
                         "'" DB_NAME "' is broken (%s), and %u such files are there already: "
                         "remove '" DB_NAME ".bad-*'",
                         why, LIMIT_BAD);
    if (r >= 0)
        r = move(data, DB_NAME WAL_SUFFIX, wal);
    if (r < 0)
        return error_sys(err, r, "move the broken '" DB_NAME "' (%s) to '%s'", why, name);
    (void)unlinkat(data, DB_NAME "-shm", 0);
    (void)unlinkat(data, DB_NAME "-journal", 0);
    buf_printf(note, "%s" DB_NAME " was broken (%s) and is now %s", note->len ? "; " : "", why,
               name);
    return 0;
}
