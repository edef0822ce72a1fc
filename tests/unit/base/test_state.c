/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include "base/limits.h"
#include "base/path.h"
#include "tests/test.h"

static const char *const names[] = {"CLAWDEN_DATA_DIR", "CLAWDEN_RUNTIME_DIR", "XDG_RUNTIME_DIR",
                                    "HOME"};
static char *saved[COUNT(names)];

/* Each test starts with none of the variables set. */
static int setup(void **state)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *v = getenv(names[i]);

        saved[i] = v ? strdup(v) : NULL;
        (void)unsetenv(names[i]);
    }
    return temp_setup(state);
}

static int teardown(void **state)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        (void)unsetenv(names[i]);
        if (saved[i])
            (void)setenv(names[i], saved[i], 1);
        free(saved[i]);
    }
    return temp_teardown(state);
}

static void check_is(int fd, const char *want)
{
    char path[LIMIT_PATH];
    struct stat st;

    CHECK(fd >= 0, "'%s' was not opened", want);
    assert_int_equal(path_of_fd(fd, path, sizeof(path)), 0);
    assert_string_equal(path, want);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    (void)close(fd);
}

static void test_data_path(void **state)
{
    char path[LIMIT_PATH], want[LIMIT_PATH];
    struct error err;

    (void)state;
    (void)setenv("HOME", "/home/somebody", 1);
    CHECK_OK(state_data_path(path, sizeof(path), &err), err);
    assert_string_equal(path, "/home/somebody/.clawden");
    (void)setenv("CLAWDEN_DATA_DIR", "/data", 1);
    CHECK_OK(state_data_path(path, sizeof(path), &err), err);
    assert_string_equal(path, "/data");
    (void)setenv("CLAWDEN_DATA_DIR", "relative", 1); /* not absolute: not used */
    CHECK_OK(state_data_path(path, sizeof(path), &err), err);
    assert_string_equal(path, "/home/somebody/.clawden");
    (void)setenv("CLAWDEN_DATA_DIR", "", 1);
    (void)unsetenv("HOME"); /* then /etc/passwd */
    if (state_data_path(path, sizeof(path), &err) >= 0) {
        (void)snprintf(want, sizeof(want), "/.clawden");
        assert_int_equal(path[0], '/');
        assert_non_null(strstr(path, want));
    } else {
        assert_int_equal(err.code, ERR_NOT_FOUND);
    }
}

static void test_made(void **state)
{
    struct temp *t = *state;
    struct error err = {0};
    int fd;

    (void)setenv("CLAWDEN_DATA_DIR", temp_path(t, "data/deep"), 1);
    (void)setenv("CLAWDEN_RUNTIME_DIR", temp_path(t, "run"), 1);
    fd = state_open_data(&err);
    CHECK(fd >= 0, "%s", err.msg);
    check_is(fd, temp_path(t, "data/deep"));
    fd = state_open_runtime(&err);
    CHECK(fd >= 0, "%s", err.msg);
    check_is(fd, temp_path(t, "run"));
}

static void test_runtime_of_user(void **state)
{
    struct temp *t = *state;
    struct error err = {0};

    if (geteuid() == 0)
        return; /* root's is /run/clawden, which a test leaves alone */
    (void)setenv("HOME", t->path, 1);
    check_is(state_open_runtime(&err), temp_path(t, ".clawden/run"));
    (void)setenv("XDG_RUNTIME_DIR", t->path, 1);
    check_is(state_open_runtime(&err), temp_path(t, "clawden"));
}

static void test_not_ours(void **state)
{
    static const mode_t modes[] = {0777, 01777, 0770, 0702, 0720};
    struct temp *t = *state;
    struct error err;

    assert_int_equal(mkdirat(t->fd, "open", 0700), 0);
    (void)setenv("CLAWDEN_DATA_DIR", temp_path(t, "open"), 1);
    FOR_EACH(mode, modes)
    {
        assert_int_equal(fchmodat(t->fd, "open", *mode, 0), 0);
        CHECK_ERR(state_open_data(&err), err, ERR_DENIED, "closed to others");
    }
    if (geteuid() == 0) {
        assert_int_equal(fchmodat(t->fd, "open", 0700, 0), 0);
        assert_int_equal(fchownat(t->fd, "open", 12345, 12345, 0), 0);
    } else {
        (void)setenv("CLAWDEN_DATA_DIR", "/usr", 1); /* root's, 0755 */
    }
    CHECK_ERR(state_open_data(&err), err, ERR_DENIED, "it must be yours");
}

static void test_link(void **state)
{
    struct temp *t = *state;
    struct error err;

    assert_int_equal(mkdirat(t->fd, "real", 0700), 0);
    assert_int_equal(symlinkat("real", t->fd, "link"), 0);
    (void)setenv("CLAWDEN_DATA_DIR", temp_path(t, "link"), 1);
    CHECK_ERR(state_open_data(&err), err, ERR_SYS, "open folder");
    temp_write(t, "file", "", 0);
    (void)setenv("CLAWDEN_DATA_DIR", temp_path(t, "file"), 1);
    CHECK_ERR(state_open_data(&err), err, ERR_SYS, "Not a directory");
}

static void test_private(void **state)
{
    struct temp *t = *state;
    struct error err;

    assert_int_equal(mkdirat(t->fd, "readable", 0755), 0);
    assert_int_equal(fchmodat(t->fd, "readable", 0755, 0), 0);
    (void)setenv("CLAWDEN_DATA_DIR", temp_path(t, "readable"), 1);
    CHECK_ERR(state_open_data(&err), err, ERR_DENIED, "0755");
}

static void test_too_long(void **state)
{
    char longer[2 * LIMIT_PATH], path[LIMIT_PATH];
    struct error err = {0};

    (void)state;
    memset(longer, 'a', sizeof(longer));
    longer[0] = '/';
    longer[sizeof(longer) - 1] = 0;
    (void)setenv("CLAWDEN_DATA_DIR", longer, 1);
    assert_true(state_data_path(path, sizeof(path), &err) < 0);
    (void)setenv("CLAWDEN_DATA_DIR", "/data/of/mine", 1);
    assert_true(state_data_path(path, 8, &err) < 0);
}

#define CLAIM_STATE(text, fn)                                                             \
    {                                                                                     \
        .name = (text), .test_func = (fn), .setup_func = setup, .teardown_func = teardown \
    }

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_STATE("the data folder is CLAWDEN_DATA_DIR, else ~/.clawden", test_data_path),
        CLAIM_STATE("missing folders are made, for this user only", test_made),
        CLAIM_STATE("a user's runtime folder is in XDG_RUNTIME_DIR, else in ~/.clawden",
                    test_runtime_of_user),
        CLAIM_STATE("a folder that others own or may write is not used", test_not_ours),
        CLAIM_STATE("a link or a file is no folder of ours", test_link),
        CLAIM_STATE("a folder that others may read is not used", test_private),
        CLAIM_STATE("a path that is too long is refused, never cut", test_too_long),
    };

    return RUN_CLAIMS("base/state", claims);
}
