/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dest.h"

#include "tests/test.h"

static struct dest *reach(struct dests *d, unsigned i)
{
    char host[32];

    (void)snprintf(host, sizeof(host), "n%u.test", i);
    return dests_reach(d, host);
}

static void test_entries(void **state)
{
    autoptr(dests) d = NULL;
    struct dest *a;

    (void)state;
    assert_int_equal(dests_new(&d), 0);
    assert_null(dests_at(d, 0));
    assert_null(dests_find(d, "a.test"));
    a = dests_reach(d, "a.test");
    a->bytes_in = 7;
    assert_ptr_equal(dests_refuse(d, "a.test"), a);
    assert_ptr_not_equal(dests_refuse(d, "b.test"), a);
    assert_ptr_equal(dests_reach(d, "a.test"), a);
    assert_ptr_equal(dests_find(d, "a.test"), a);
    assert_string_equal(dests_at(d, 0)->host, "a.test");
    assert_int_equal(dests_at(d, 0)->bytes_in, 7);
    assert_string_equal(dests_at(d, 1)->host, "b.test");
    assert_null(dests_at(d, 2));
}

static void test_full(void **state)
{
    autoptr(dests) d = NULL;
    struct dest *first, *others;

    (void)state;
    assert_int_equal(dests_new(&d), 0);
    first = reach(d, 0);
    for (unsigned i = 1; i < LIMIT_RELAY_DESTS; i++)
        assert_string_not_equal(reach(d, i)->host, DEST_OTHERS);
    assert_null(dests_at(d, LIMIT_RELAY_DESTS));
    others = reach(d, LIMIT_RELAY_DESTS);
    assert_string_equal(others->host, DEST_OTHERS);
    assert_ptr_equal(reach(d, LIMIT_RELAY_DESTS + 1), others);
    assert_ptr_equal(reach(d, 0), first);
    assert_ptr_equal(dests_at(d, LIMIT_RELAY_DESTS), others);
    assert_null(dests_at(d, LIMIT_RELAY_DESTS + 1));
    assert_null(dests_find(d, DEST_OTHERS));
}

static void test_scan(void **state)
{
    autoptr(dests) d = NULL;
    char host[32];

    (void)state;
    assert_int_equal(dests_new(&d), 0);
    for (unsigned i = 0; i < 2 * LIMIT_RELAY_DESTS; i++) {
        (void)snprintf(host, sizeof(host), "evil%u.test", i);
        dests_refuse(d, host)->denied++;
    }
    assert_int_equal(dests_at(d, LIMIT_RELAY_DESTS / 2)->denied, 3 * LIMIT_RELAY_DESTS / 2);
    assert_string_equal(reach(d, 1)->host, "n1.test");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a host has one entry, wherever it was met first", test_entries),
        CLAIM("what comes when the table is full shares one entry", test_full),
        CLAIM("hosts that are only refused do not fill the table", test_scan),
    };

    return RUN_CLAIMS("egress/dest", claims);
}
