/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include "tests/test.h"

static void test_removes(void **state)
{
    struct temp *t = *state;

    assert_int_equal(mkdirat(t->fd, "top", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "top/a", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "top/a/b", 0755), 0);
    assert_int_equal(mkdirat(t->fd, "top/.removed-0", 0755), 0); /* a name of its own making */
    temp_write(t, "top/a/b/file", "x", 1);
    temp_write(t, "outside", "kept", 4);
    assert_int_equal(symlinkat("../outside", t->fd, "top/link"), 0);
    assert_int_equal(symlinkat("..", t->fd, "top/a/up"), 0);
    assert_int_equal(fchmodat(t->fd, "top/a/b", 0, 0), 0); /* its owner may not look into it */
    assert_int_equal(tree_remove(t->fd, "top"), 0);
    assert_int_equal(faccessat(t->fd, "top", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(faccessat(t->fd, "outside", F_OK, 0), 0);
    assert_int_equal(tree_remove(t->fd, "top"), 0); /* what is not there is gone */
    assert_int_equal(tree_remove(t->fd, "outside"), 0);
}

/* Deeper than a path can say, and than a stack could follow. */
static void test_deep(void **state)
{
    struct temp *t = *state;
    int at = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < 5000; i++) {
        int next;

        assert_int_equal(mkdirat(at, i ? "d" : "deep", 0755), 0);
        next = openat(at, i ? "d" : "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    assert_int_equal(tree_remove(t->fd, "deep"), 0);
    assert_int_equal(faccessat(t->fd, "deep", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("a tree goes with all that is in it, and nothing that its links lead to",
                      test_removes),
        CLAIM_IN_TEMP("a tree goes however deep it is", test_deep),
    };

    return RUN_CLAIMS("base/tree", claims);
}
