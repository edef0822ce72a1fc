/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned OPERATION ROOT FOLDER …: what changes or reads files. ROOT is a mount of the box, FOLDER a
 * path below it that was canonical a moment ago and must still be: a link on the way is refused, so
 * that whoever swaps a folder for a link in between gains nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/fs/fs.h"

/* Exit statuses that the client knows. */
enum { STATUS_FAILED = 1, STATUS_NOT_FOUND = 2, STATUS_EXISTS = 17 };

static bool is_yes(const char *word)
{
    return strcmp(word, "1") == 0;
}

/* ---- operations on an open folder; args is what follows FOLDER ---- */

static int op_write(int at, char **args, struct fault *f)
{
    return publish_write(at, args[0], f);
}

static int op_create(int at, char **args, struct fault *f)
{
    return publish_create(at, args[0], f);
}

/* As int() reads it, but for digits in groups or of other scripts. Too large is as good as none. */
static bool read_number(const char *text, long long *ret)
{
    const char *p = text + strspn(text, " \t\n\v\f\r");
    bool negative = *p == '-';
    unsigned long long n = 0;
    size_t digits;

    p += *p == '-' || *p == '+';
    digits = strspn(p, "0123456789");
    if (digits == 0 || p[digits + strspn(p + digits, " \t\n\v\f\r")])
        return false;
    for (size_t i = 0; i < digits && n <= LLONG_MAX / 16; i++)
        n = n * 10 + (unsigned long long)(p[i] - '0');
    *ret = negative ? -(long long)n : (long long)n;
    return true;
}

static int op_read(int at, char **args, struct fault *f)
{
    long long max = -1;
    int r;

    if (args[1] && !read_number(args[1], &max)) {
        r = fault_say(f, ECANCELED, "invalid literal for int() with base 10: ", args[1]);
        f->type = "ValueError";
        return r;
    }
    if (args[1] && max < 0)
        return fault_say(f, EINVAL, "read limit must be non-negative", args[0]);
    return file_read(at, args[0], max, f);
}

static int op_readdir(int at, char **args, struct fault *f)
{
    autobuf json;
    int r;

    (void)args;
    buf_init(&json, LIMIT_FS_NAMES);
    r = dir_list(at, &json, f);
    if (r >= 0 && fs_answer(&json) != 0)
        r = fault_sys(f, EPIPE, NULL);
    return r;
}

static int op_mkdirp(int at, char **args, struct fault *f)
{
    (void)args;
    return file_sync(at, f);
}

static int remove_one(int at, const char *name, struct fault *f)
{
    struct stat st;
    int r = file_lstat(at, name, &st, f);

    if (r >= 0 && unlinkat(at, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        r = fault_sys(f, errno, name);
    return r;
}

static int op_remove(int at, char **args, struct fault *f)
{
    int r = is_yes(args[1]) ? subtree_remove(at, args[0], f) : remove_one(at, args[0], f);

    if (r >= 0)
        r = file_sync(at, f);
    return r == -ENOENT && is_yes(args[2]) ? 0 : r;
}

/* ---- which ---- */

static const struct operation {
    const char *name;
    unsigned n_args; /* at least, after FOLDER */
    bool names_file; /* the first of them is a name in FOLDER */
    bool makes;      /* missing folders are made ... */
    bool asks;       /* ... if the second of them is 1 */
    int (*run)(int at, char **args, struct fault *f);
} operations[] = {
    {"write", 2, true, true, true, op_write},     {"create", 2, true, true, true, op_create},
    {"read", 1, true, false, false, op_read},     {"readdir", 0, false, false, false, op_readdir},
    {"mkdirp", 0, false, true, false, op_mkdirp}, {"remove", 3, true, false, false, op_remove},
};

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

static int check_name(const char *name, struct fault *f)
{
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/'))
        return fault_say(f, EINVAL, "invalid basename", name);
    return 0;
}

static int too_few(struct fault *f)
{
    return fault_type(f, "IndexError", "list index out of range");
}

static size_t count(char **args)
{
    size_t n = 0;

    while (args[n])
        n++;
    return n;
}

/* ROOT FOLDER ARGS */
static int run_one(const struct operation *o, char **args, struct fault *f, bool *ret_missing)
{
    autoclose int root = -1, at = -1;
    int r;

    *ret_missing = false;
    if (count(args) < 2 + o->n_args)
        return too_few(f);
    r = o->names_file ? check_name(args[2], f) : 0;
    if (r < 0)
        return r;
    root = dir_open(AT_FDCWD, args[0], f);
    if (root < 0)
        return root;
    at = dir_walk(root, args[1], o->makes && (!o->asks || is_yes(args[3])), f);
    r = at < 0 ? at : o->run(at, args + 2, f);
    *ret_missing = r == -ENOENT;
    return r;
}

/* ROOT FOLDER NAME ROOT FOLDER NAME MAKE */
static int run_two(bool copy, char **args, struct fault *f)
{
    autoclose int from_root = -1, root = -1, from_at = -1, at = -1;
    int r;

    if (count(args) < 7)
        return too_few(f);
    r = check_name(args[2], f);
    if (r >= 0)
        r = check_name(args[5], f);
    if (r < 0)
        return r;
    from_root = dir_open(AT_FDCWD, args[0], f);
    if (from_root < 0)
        return from_root;
    root = dir_open(AT_FDCWD, args[3], f);
    if (root < 0)
        return root;
    from_at = dir_walk(from_root, args[1], false, f);
    if (from_at < 0)
        return from_at;
    at = dir_walk(root, args[4], is_yes(args[6]), f);
    if (at < 0)
        return at;
    return copy ? publish_copy(from_at, args[2], at, args[5], f)
                : move_entry(from_at, args[2], at, args[5], f);
}

int fs_pinned(char **args)
{
    static struct fault f;
    const struct operation *o;
    bool missing = false;
    int r;

    if (!args[0]) {
        r = too_few(&f);
    } else if (strcmp(args[0], "copy") == 0 || strcmp(args[0], "rename") == 0) {
        r = run_two(args[0][0] == 'c', args + 1, &f);
    } else if ((o = find_operation(args[0]))) {
        r = run_one(o, args + 1, &f, &missing);
        if (o->run == op_create && r == -EEXIST)
            return STATUS_EXISTS;
        if (o->run == op_read && missing)
            return STATUS_NOT_FOUND;
    } else {
        r = fault_type(&f, "RuntimeError", "unknown sandbox mutation operation");
    }
    if (r >= 0)
        return 0;
    fault_print(&f);
    return STATUS_FAILED;
}
