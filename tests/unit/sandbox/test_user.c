/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/user.h"

#include "tests/test.h"

static const struct row {
    const char *text;
    uid_t uid;
    gid_t gid;
    const char *home; /* NULL: refused */
} host[] = {
    {NULL, 0, 0, "/root"},
    {"", 0, 0, "/root"},
    {"root", 0, 0, "/root"},
    {"1000", 1000, 1000, "/tmp"},
    {"1000:5", 1000, 5, "/tmp"},
    {"sandbox", 1000, 1000, "/tmp"},
    {"4242", 4242, 0, "/"},
    {"4242:root", 4242, 0, "/"},
    {"65534:65534", 65534, 65534, "/nonexistent"},
    {":7", 0, 7, "/root"},
    {"65535", 0, 0, NULL},
    {"-1", 0, 0, NULL},
    {"4294967296", 0, 0, NULL},
    {"nosuch", 0, 0, NULL},
    {"0:nosuch", 0, 0, NULL},
    {"1000:65536", 0, 0, NULL},
    {"x:x:0:0", 0, 0, NULL},
    {"1000 ", 0, 0, NULL},
};

static void check(const struct row *row, int root)
{
    struct box_user u;
    struct error err;
    int r = user_resolve(row->text, root, &u, &err);

    CHECK((r >= 0) == (row->home != NULL), "'%s': %d", row->text ? row->text : "NULL", r);
    if (r < 0)
        return;
    CHECK(u.uid == row->uid && u.gid == row->gid, "'%s': %u:%u", row->text ? row->text : "NULL",
          u.uid, u.gid);
    CHECK_STR(u.home, row->home, row->text ? row->text : "NULL");
}

static void test_host(void **state)
{
    (void)state;
    FOR_EACH(row, host)
    check(row, -1);
}

/* An image's own files decide; its links lead nowhere outside. */
static void test_image(void **state)
{
    static const struct row image[] = {{"node", 1001, 1002, "/home/node"},
                                       {"1001", 1001, 1002, "/home/node"},
                                       {"node:staff", 1001, 50, "/home/node"},
                                       {"evil", 0, 0, NULL},
                                       {"sandbox", 0, 0, NULL}};
    static const char passwd[] = "root:x:0:0::/root:/bin/sh\nnode:x:1001:1002::/home/node:/bin/"
                                 "sh\nevil:x:70000:1::/:\nbroken\n";
    struct temp *t = *state;

    assert_int_equal(mkdirat(t->fd, "etc", 0755), 0);
    temp_write(t, "etc/passwd", passwd, strlen(passwd));
    temp_write(t, "etc/group", "staff:x:50:\n", 12);
    FOR_EACH(row, image)
    check(row, t->fd);
    assert_int_equal(unlinkat(t->fd, "etc/passwd", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", t->fd, "etc/passwd"), 0); /* itself, inside: a loop */
    check(&(struct row){"daemon", 0, 0, NULL}, t->fd);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("users of the host's system folders are three, and numbers", test_host),
        CLAIM_IN_TEMP("users of an image are those of its own files", test_image),
    };

    return RUN_CLAIMS("sandbox/user", claims);
}
