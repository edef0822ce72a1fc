/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/fs/fault.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "cmd/fs/text.h"

/* musl's own texts differ, so they stand here; the type is Python's. */
static const struct {
    int sys;
    const char *text, *type;
} words[] = {
    {EPERM, "Operation not permitted", "PermissionError"},
    {ENOENT, "No such file or directory", "FileNotFoundError"},
    {EINTR, "Interrupted system call", "InterruptedError"},
    {EIO, "Input/output error", NULL},
    {ENXIO, "No such device or address", NULL},
    {EBADF, "Bad file descriptor", NULL},
    {EAGAIN, "Resource temporarily unavailable", "BlockingIOError"},
    {ENOMEM, "Cannot allocate memory", NULL},
    {EACCES, "Permission denied", "PermissionError"},
    {EBUSY, "Device or resource busy", NULL},
    {EEXIST, "File exists", "FileExistsError"},
    {EXDEV, "Invalid cross-device link", NULL},
    {ENODEV, "No such device", NULL},
    {ENOTDIR, "Not a directory", "NotADirectoryError"},
    {EISDIR, "Is a directory", "IsADirectoryError"},
    {EINVAL, "Invalid argument", NULL},
    {ENFILE, "Too many open files in system", NULL},
    {EMFILE, "Too many open files", NULL},
    {ETXTBSY, "Text file busy", NULL},
    {EFBIG, "File too large", NULL},
    {ENOSPC, "No space left on device", NULL},
    {EROFS, "Read-only file system", NULL},
    {EMLINK, "Too many links", NULL},
    {EPIPE, "Broken pipe", "BrokenPipeError"},
    {ENAMETOOLONG, "File name too long", NULL},
    {ENOSYS, "Function not implemented", NULL},
    {ENOTEMPTY, "Directory not empty", NULL},
    {ELOOP, "Too many levels of symbolic links", NULL},
    {EOVERFLOW, "Value too large for defined data type", NULL},
    {EILSEQ, "Invalid or incomplete multibyte or wide character", NULL},
    {EOPNOTSUPP, "Operation not supported", NULL},
    {ESTALE, "Stale file handle", NULL},
    {EDQUOT, "Disk quota exceeded", NULL},
};

static void copy_name(char to[LIMIT_PATH], const char *from)
{
    size_t n = strnlen(from, LIMIT_PATH - 1);

    memcpy(to, from, n);
    to[n] = 0;
}

int fault_pair(struct fault *f, int sys, const char *name, const char *other)
{
    f->sys = sys;
    f->type = f->text = NULL;
    f->named = name;
    f->paired = other;
    if (name)
        copy_name(f->name, name);
    if (other)
        copy_name(f->other, other);
    return -sys;
}

int fault_sys(struct fault *f, int sys, const char *name)
{
    return fault_pair(f, sys, name, NULL);
}

int fault_say(struct fault *f, int sys, const char *text, const char *name)
{
    int r = fault_pair(f, sys, name, NULL);

    f->text = text;
    return r;
}

int fault_type(struct fault *f, const char *type, const char *text)
{
    (void)fault_pair(f, ECANCELED, NULL, NULL);
    f->type = type;
    f->text = text;
    return -ECANCELED;
}

const char *fault_text(int sys)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (words[i].sys == sys)
            return words[i].text;
    return "Unknown error";
}

static const char *type_of(int sys)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (words[i].sys == sys && words[i].type)
            return words[i].type;
    return "OSError";
}

void fault_print(const struct fault *f)
{
    autobuf b;

    buf_init(&b, LIMIT_FS_MESSAGE);
    buf_puts(&b, f->type ? f->type : type_of(f->sys));
    buf_puts(&b, ": ");
    if (!f->type) {
        buf_puts(&b, "[Errno ");
        text_number(&b, f->sys, 1);
        buf_puts(&b, "] ");
    }
    buf_puts(&b, f->text ? f->text : fault_text(f->sys));
    if (f->named) {
        buf_puts(&b, f->type ? "" : ": ");
        text_quoted(&b, f->name);
    }
    if (f->paired) {
        buf_puts(&b, " -> ");
        text_quoted(&b, f->other);
    }
    buf_puts(&b, "\n");
    if (!b.failed)
        (void)fd_write_full(STDERR_FILENO, b.data, b.len);
}
