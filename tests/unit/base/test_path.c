/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "base/limits.h"
#include "tests/test.h"

/*
 * t/box is the folder that must not be left:
 *   box/file  box/dir/file  box/in -> dir/file  box/up -> ../outside  box/abs -> /outside (of the
 * box) box/root -> /dir/file   box/proc -> /proc/self/fd   box/loop -> loop   outside
 */
static int make_tree(struct temp *t)
{
    int box;

    assert_int_equal(mkdirat(t->fd, "box", 0700), 0);
    assert_int_equal(mkdirat(t->fd, "box/dir", 0700), 0);
    temp_write(t, "box/file", "1", 1);
    temp_write(t, "box/dir/file", "2", 1);
    temp_write(t, "outside", "3", 1);
    assert_int_equal(symlinkat("dir/file", t->fd, "box/in"), 0);
    assert_int_equal(symlinkat("../outside", t->fd, "box/up"), 0);
    assert_int_equal(symlinkat(temp_path(t, "outside"), t->fd, "box/abs"), 0);
    assert_int_equal(symlinkat("/dir/file", t->fd, "box/root"), 0);
    assert_int_equal(symlinkat("/proc/self/fd", t->fd, "box/proc"), 0);
    assert_int_equal(symlinkat("loop", t->fd, "box/loop"), 0);
    assert_int_equal(symlinkat("dir", t->fd, "box/dirlink"), 0);
    box = openat(t->fd, "box", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(box >= 0);
    return box;
}

static void test_policies(void **state)
{
    enum { OK = 0 };
    static const struct {
        const char *path;
        int beneath, nolinks, in_root;
    } rows[] = {
        {"file", OK, OK, OK},
        {"dir/file", OK, OK, OK},
        {"dir/../file", OK, OK, OK},
        {"./dir//file", OK, OK, OK},
        {"in", OK, -ELOOP, OK},
        {"dirlink/file", OK, -ELOOP, OK},
        {"up", -EXDEV, -ELOOP, -ENOENT},
        {"abs", -EXDEV, -ELOOP, -ENOENT},
        {"root", -EXDEV, -ELOOP, OK},
        {"proc/0", -EXDEV, -ELOOP, -ELOOP},
        {"loop", -ELOOP, -ELOOP, -ELOOP},
        {"..", -EXDEV, -EXDEV, OK},
        {"../outside", -EXDEV, -EXDEV, -ENOENT},
        {"dir/../../outside", -EXDEV, -EXDEV, -ENOENT},
        {"/etc/passwd", -EXDEV, -EXDEV, -ENOENT},
        {"/file", -EXDEV, -EXDEV, OK},
        {"none", -ENOENT, -ENOENT, -ENOENT},
        {"", -ENOENT, -ENOENT, -ENOENT},
    };
    int box = make_tree(*state);
    size_t before = open_fds();

    FOR_EACH(row, rows)
    {
        const int want[] = {row->beneath, row->nolinks, row->in_root};
        static const enum path_policy policies[] = {PATH_BENEATH, PATH_BENEATH_NOLINKS,
                                                    PATH_IN_ROOT};

        for (size_t i = 0; i < COUNT(policies); i++) {
            int fd = path_open(box, row->path, O_RDONLY, 0, policies[i]);

            CHECK(fd >= 0 ? want[i] == OK : fd == want[i], "'%s' under policy %zu: %d, want %d",
                  row->path, i, fd, want[i]);
            CHECK(fd < 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC), "'%s': survives exec", row->path);
            if (fd >= 0)
                (void)close(fd);
        }
    }
    assert_int_equal(open_fds(), before);
    (void)close(box);
}

static void test_canonical(void **state)
{
    struct temp *t = *state;
    int box = make_tree(t), fd;

    fd = path_open(AT_FDCWD, temp_path(t, "box/dir/file"), O_RDONLY, 0, PATH_CANONICAL);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(path_open(AT_FDCWD, temp_path(t, "box/in"), O_RDONLY, 0, PATH_CANONICAL),
                     -ELOOP);
    assert_int_equal(
        path_open(AT_FDCWD, temp_path(t, "box/dirlink/file"), O_RDONLY, 0, PATH_CANONICAL), -ELOOP);
    (void)close(box);
}

static void test_create(void **state)
{
    struct temp *t = *state;
    int box = make_tree(t), fd;
    struct stat st;

    fd = path_open(box, "dir/new", O_WRONLY | O_CREAT | O_EXCL, 0600, PATH_BENEATH_NOLINKS);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    (void)close(fd);
    assert_int_equal(path_open(box, "up", O_WRONLY | O_CREAT | O_TRUNC, 0600, PATH_BENEATH),
                     -EXDEV);
    assert_int_equal(path_open(box, "../new", O_WRONLY | O_CREAT, 0600, PATH_BENEATH), -EXDEV);
    assert_int_equal(faccessat(t->fd, "new", F_OK, 0), -1);
    (void)close(box);
}

static void test_mode_of_folder(void **state)
{
    struct temp *t = *state;
    int fd;

    fd = path_open(t->fd, ".", O_RDONLY | O_DIRECTORY, 0700, PATH_BENEATH);
    CHECK(fd >= 0, "open a folder with a mode: %d", fd);
    (void)close(fd);
}

static void test_unknown_policy(void **state)
{
    struct temp *t = *state;

    assert_int_equal(path_open(t->fd, ".", O_RDONLY, 0, (enum path_policy)99), -EINVAL);
}

static void test_of_fd(void **state)
{
    struct temp *t = *state;
    char path[LIMIT_PATH], small[8];
    int p[2];

    assert_int_equal(path_of_fd(t->fd, path, sizeof(path)), 0);
    assert_string_equal(path, t->path);
    assert_int_equal(path_of_fd(t->fd, small, sizeof(small)), -ENAMETOOLONG);
    assert_int_equal(path_of_fd(t->fd, path, strlen(t->path)), -ENAMETOOLONG);
    assert_int_equal(path_of_fd(t->fd, path, strlen(t->path) + 1), 0);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(path_of_fd(p[0], path, sizeof(path)), -ENOENT); /* "pipe:[…]" is no path */
    (void)close(p[0]);
    (void)close(p[1]);
    assert_int_equal(path_of_fd(-1, path, sizeof(path)), -ENOENT);
}

static void test_of_removed(void **state)
{
    struct temp *t = *state;
    char path[LIMIT_PATH];
    int fd;

    assert_int_equal(mkdirat(t->fd, "gone", 0700), 0);
    fd = openat(t->fd, "gone", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(unlinkat(t->fd, "gone", AT_REMOVEDIR), 0);
    assert_int_equal(path_of_fd(fd, path, sizeof(path)), -ENOENT);
    (void)close(fd);
}

static void test_within(void **state)
{
    static const struct {
        const char *path, *dir;
        bool in;
    } rows[] = {
        {"/a", "/a", true},
        {"/a/b", "/a", true},
        {"/a/b/c", "/a/b", true},
        {"/ab", "/a", false},
        {"/a", "/ab", false},
        {"/a", "/a/b", false},
        {"/", "/", true},
        {"/a", "/", true},
        {"/home/u2", "/home/u", false},
        {"/proc", "/proc", true},
        {"/procfs/x", "/proc", false},
    };

    (void)state;
    FOR_EACH(row, rows)
    CHECK(path_is_within(row->path, row->dir) == row->in, "'%s' in '%s'", row->path, row->dir);
}

static void test_make_dirs(void **state)
{
    struct temp *t = *state;
    char longer[LIMIT_PATH + 10];
    struct stat st;

    assert_int_equal(path_make_dirs(temp_path(t, "a/b/c"), 0700), 0);
    assert_int_equal(path_make_dirs(temp_path(t, "a/b/c"), 0700), 0); /* again */
    assert_int_equal(path_make_dirs(temp_path(t, "a/b/c/d/"), 0700), 0);
    assert_int_equal(fstatat(t->fd, "a/b/c/d", &st, 0), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0700);
    temp_write(t, "file", "", 0);
    assert_int_equal(path_make_dirs(temp_path(t, "file/x"), 0700), -ENOTDIR);
    memset(longer, 'a', sizeof(longer));
    longer[0] = '/';
    longer[sizeof(longer) - 1] = 0;
    assert_int_equal(path_make_dirs(longer, 0700), -ENAMETOOLONG);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("openat2 policies refuse links out", test_policies),
        CLAIM_IN_TEMP("a canonical path holds no link", test_canonical),
        CLAIM_IN_TEMP("nothing is made or cut outside the folder", test_create),
        CLAIM_IN_TEMP("a mode is ignored unless something is made", test_mode_of_folder),
        CLAIM_IN_TEMP("an unknown policy opens nothing", test_unknown_policy),
        CLAIM_IN_TEMP("the path of a descriptor is whole or an error", test_of_fd),
        CLAIM_IN_TEMP("a folder that was removed has no path", test_of_removed),
        CLAIM("a path is within a folder by whole names only", test_within),
        CLAIM_IN_TEMP("missing folders are made with their mode", test_make_dirs),
    };

    return RUN_CLAIMS("base/path", claims);
}
