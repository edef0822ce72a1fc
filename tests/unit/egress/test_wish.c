/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/wish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "egress/address.h"
#include "egress/host.h"
#include "tests/test.h"

static struct wish *make(void)
{
    struct wish *w;

    assert_int_equal(wish_new("a.key", "d.key", "p.key", "b.key", &w), 0);
    return w;
}

static void test_lists(void **state)
{
    autoptr(wish) w = make();

    (void)state;
    assert_int_equal(wish_add(w, WISH_ALLOW, "example.test"), 0);
    assert_int_equal(wish_add(w, WISH_ALLOW, "example.test"), 0);
    assert_int_equal(wish_add(w, WISH_DENY, "example.test"), 0);
    assert_int_equal(w->n_allow, 1);
    assert_int_equal(wish_remove(w, "example.test"), 2);
    assert_int_equal(wish_remove(w, "example.test"), 0);
    assert_int_equal(w->n_allow + w->n_deny, 0);
    for (unsigned i = 0; i < LIMIT_RULES; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "h%u.test", i);
        assert_int_equal(wish_add(w, WISH_ALLOW, text), 0);
    }
    assert_int_equal(wish_add(w, WISH_ALLOW, "one.more"), -E2BIG);
    for (unsigned i = 0; i < LIMIT_HOST_PORTS; i++)
        assert_int_equal(wish_add_host_port(w, (uint16_t)(i + 1)), 0);
    assert_int_equal(wish_add_host_port(w, 1), 0);
    assert_int_equal(wish_add_host_port(w, 9999), -E2BIG);
}

static void fill(struct wish *w)
{
    assert_int_equal(wish_add(w, WISH_ALLOW, "*.example.test:8443"), 0);
    assert_int_equal(wish_add(w, WISH_ALLOW, "10.0.0.0/8:5432"), 0);
    assert_int_equal(wish_add(w, WISH_DENY, "bad.example.test"), 0);
    assert_int_equal(wish_add_host_port(w, 11434), 0);
    w->budgets = (struct wish_budgets){.bytes = 1ull << 40,
                                       .bytes_per_sec = 7,
                                       .host_bytes = 8,
                                       .call_bytes = 9,
                                       .conns = 10,
                                       .host_conns = 11,
                                       .new_per_sec = 12};
}

/* Written, read, copied: the same; and each field counts when two are compared. */
static void test_text(void **state)
{
    autoptr(wish) w = make();
    autoptr(wish) back = NULL;
    autoptr(wish) copy = NULL;
    struct error err;
    autobuf text;

    (void)state;
    buf_init(&text, LIMIT_WISH_TEXT);
    fill(w);
    wish_write(w, &text);
    assert_int_equal(wish_parse(text.data, text.len, &back, &err), 0);
    copy = wish_copy(back);
    assert_true(wish_equal(w, back) && wish_equal(w, copy));
    assert_int_equal(back->budgets.bytes, 1ull << 40);
    assert_string_equal(copy->budgets_key, "b.key");
    assert_int_equal(wish_remove(copy, "bad.example.test"), 1);
    assert_false(wish_equal(w, copy));
    for (size_t i = 0; i < sizeof(struct wish_budgets) / sizeof(uint32_t); i++) {
        struct wish_budgets saved = back->budgets;

        if (i * sizeof(uint32_t) >= offsetof(struct wish_budgets, new_per_sec) + sizeof(uint32_t))
            break; /* padding */
        ((uint32_t *)&back->budgets)[i]++;
        assert_false(wish_equal(w, back));
        back->budgets = saved;
    }
}

static void test_bad_text(void **state)
{
    static const char *const bad[] = {"",
                                      "[",
                                      "{\"allow\":[1]}",
                                      "{\"deny\":[null]}",
                                      "{\"host_ports\":[0]}",
                                      "{\"host_ports\":[65536]}",
                                      "{\"host_ports\":[\"80\"]}"};
    struct wish *w;
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_true(wish_parse(bad[i], strlen(bad[i]), &w, &err) < 0);
    assert_int_equal(wish_parse("{\"bytes\":-1}", 12, &w, &err), 0);
    assert_int_equal(w->budgets.bytes, 0);
    wish_free(w);
}

static void test_rules(void **state)
{
    autoptr(wish) w = make();
    autoptr(rules) rules = NULL;
    struct egress_verdict v;
    uint16_t ports[8];
    struct error err;
    struct host host;
    size_t n;

    (void)state;
    fill(w);
    assert_int_equal(wish_rules(w, &rules, &err), 0);
    assert_int_equal(host_parse("a.example.test", 14, HOST_BARE, &host, &err), 0);
    rules_decide_name(rules, &host, 8443, &v);
    assert_int_equal(v.decision, EGRESS_RESOLVE);
    rules_decide_name(rules, &host, 22, &v);
    assert_int_equal(v.decision, EGRESS_DENY);
    assert_string_equal(v.setting, "a.key");
    n = wish_ports(w, ports, 8);
    assert_int_equal(n, 7); /* the usual five, 11434, 5432: 8443 is one of the five */
    assert_int_equal(ports[0], 443);
    assert_int_equal(wish_ports(w, ports, 2), 2);
    assert_int_equal(wish_add(w, WISH_ALLOW, "a..b"), 0);
    rules_free(rules);
    rules = NULL;
    assert_true(wish_rules(w, &rules, &err) < 0);
    assert_non_null(strstr(err.msg, "a.key"));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("entries stand once in a list, and a list has a limit", test_lists),
        CLAIM("written and read it is the same, and every field counts", test_text),
        CLAIM("what is not one is refused", test_bad_text),
        CLAIM("its rules name its keys, and its ports are those that matter", test_rules),
    };

    return RUN_CLAIMS("egress/wish", claims);
}
