/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/address.h"

#include "tests/test.h"

static struct address parse(const char *text)
{
    struct address a;

    CHECK(address_parse(text, strlen(text), &a), "'%s' is no address", text);
    return a;
}

static void test_class(void **state)
{
    static const struct {
        const char *text;
        enum address_class class;
    } rows[] = {
        {"8.8.8.8", ADDRESS_PUBLIC},
        {"1.0.0.0", ADDRESS_PUBLIC},
        {"223.255.255.255", ADDRESS_PUBLIC},
        {"0.0.0.0", ADDRESS_UNSPECIFIED},
        {"0.255.255.255", ADDRESS_UNSPECIFIED},
        {"9.255.255.255", ADDRESS_PUBLIC},
        {"10.0.0.0", ADDRESS_PRIVATE},
        {"10.255.255.255", ADDRESS_PRIVATE},
        {"11.0.0.0", ADDRESS_PUBLIC},
        {"100.63.255.255", ADDRESS_PUBLIC},
        {"100.64.0.0", ADDRESS_SHARED},
        {"100.127.255.255", ADDRESS_SHARED},
        {"100.128.0.0", ADDRESS_PUBLIC},
        {"100.100.100.200", ADDRESS_METADATA},
        {"100.100.100.201", ADDRESS_SHARED},
        {"126.255.255.255", ADDRESS_PUBLIC},
        {"127.0.0.1", ADDRESS_LOOPBACK},
        {"127.255.255.254", ADDRESS_LOOPBACK},
        {"128.0.0.0", ADDRESS_PUBLIC},
        {"168.63.129.15", ADDRESS_PUBLIC},
        {"168.63.129.16", ADDRESS_METADATA},
        {"169.254.0.1", ADDRESS_LINK_LOCAL},
        {"169.254.169.254", ADDRESS_METADATA},
        {"169.254.170.2", ADDRESS_METADATA},
        {"169.255.0.0", ADDRESS_PUBLIC},
        {"172.15.255.255", ADDRESS_PUBLIC},
        {"172.16.0.0", ADDRESS_PRIVATE},
        {"172.31.255.255", ADDRESS_PRIVATE},
        {"172.32.0.0", ADDRESS_PUBLIC},
        {"192.0.0.8", ADDRESS_RESERVED},
        {"192.0.0.192", ADDRESS_METADATA},
        {"192.0.1.0", ADDRESS_PUBLIC},
        {"192.0.2.1", ADDRESS_DOCUMENTATION},
        {"192.88.99.1", ADDRESS_RESERVED},
        {"192.167.255.255", ADDRESS_PUBLIC},
        {"192.168.0.0", ADDRESS_PRIVATE},
        {"192.169.0.0", ADDRESS_PUBLIC},
        {"198.17.255.255", ADDRESS_PUBLIC},
        {"198.18.0.0", ADDRESS_BENCHMARK},
        {"198.19.255.255", ADDRESS_BENCHMARK},
        {"198.20.0.0", ADDRESS_PUBLIC},
        {"198.51.100.9", ADDRESS_DOCUMENTATION},
        {"203.0.113.9", ADDRESS_DOCUMENTATION},
        {"224.0.0.1", ADDRESS_MULTICAST},
        {"239.255.255.255", ADDRESS_MULTICAST},
        {"240.0.0.0", ADDRESS_RESERVED},
        {"255.255.255.254", ADDRESS_RESERVED},
        {"255.255.255.255", ADDRESS_BROADCAST},

        {"2606:4700:4700::1111", ADDRESS_PUBLIC},
        {"2000::", ADDRESS_PUBLIC},
        {"::", ADDRESS_UNSPECIFIED},
        {"::1", ADDRESS_LOOPBACK},
        {"::2", ADDRESS_UNSPECIFIED}, /* carries 0.0.0.2 */
        {"::8.8.8.8", ADDRESS_COMPATIBLE},
        {"::127.0.0.1", ADDRESS_LOOPBACK},
        {"::ffff:8.8.8.8", ADDRESS_MAPPED},
        {"::ffff:127.0.0.1", ADDRESS_LOOPBACK},
        {"::ffff:7f00:1", ADDRESS_LOOPBACK},
        {"::ffff:169.254.169.254", ADDRESS_METADATA},
        {"::ffff:10.1.2.3", ADDRESS_PRIVATE},
        {"::ffff:0:8.8.8.8", ADDRESS_TRANSLATED},
        {"::ffff:0:127.0.0.1", ADDRESS_LOOPBACK},
        {"64:ff9b::8.8.8.8", ADDRESS_NAT64},
        {"64:ff9b::7f00:1", ADDRESS_LOOPBACK},
        {"64:ff9b::a00:1", ADDRESS_PRIVATE},
        {"64:ff9b:1::8.8.8.8", ADDRESS_NAT64},
        {"64:ff9b:1::192.168.0.1", ADDRESS_PRIVATE},
        {"64:ff9b:2::8.8.8.8", ADDRESS_RESERVED},
        {"100::1", ADDRESS_DISCARD},
        {"100:0:0:1::1", ADDRESS_DISCARD},
        {"100:0:0:2::1", ADDRESS_RESERVED},
        {"2001::f7f7:f7f7", ADDRESS_TEREDO},   /* 8.8.8.8, inverted */
        {"2001::80ff:fffe", ADDRESS_LOOPBACK}, /* 127.0.0.1 */
        {"2001:2::1", ADDRESS_BENCHMARK},
        {"2001:20::1", ADDRESS_RESERVED},
        {"2001:200::1", ADDRESS_PUBLIC},
        {"2001:db8::1", ADDRESS_DOCUMENTATION},
        {"2002:808:808::1", ADDRESS_6TO4},
        {"2002:7f00:1::", ADDRESS_LOOPBACK},
        {"2002:a9fe:a9fe::1", ADDRESS_METADATA},
        {"3ffe::1", ADDRESS_RESERVED},
        {"3fff::1", ADDRESS_DOCUMENTATION},
        {"4000::1", ADDRESS_RESERVED},
        {"5f00::1", ADDRESS_RESERVED},
        {"fc00::1", ADDRESS_PRIVATE},
        {"fdff::1", ADDRESS_PRIVATE},
        {"fd00:ec2::254", ADDRESS_METADATA},
        {"fd20:ce::254", ADDRESS_METADATA},
        {"fdc1:a3d0::1", ADDRESS_PRIVATE}, /* a stand-in of ours */
        {"fe80::1", ADDRESS_LINK_LOCAL},
        {"fe80::a9fe:a9fe", ADDRESS_METADATA},
        {"fec0::1", ADDRESS_SITE_LOCAL},
        {"ff02::1", ADDRESS_MULTICAST},
        {"2606:4700::5efe:10.0.0.1", ADDRESS_PRIVATE}, /* ISATAP */
        {"2606:4700::200:5efe:127.0.0.1", ADDRESS_LOOPBACK},
        {"2606:4700::5efe:8.8.8.8", ADDRESS_PUBLIC},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct address a = parse(row->text);

        CHECK(address_class(&a) == row->class, "%s is %s, not %s", row->text,
              address_class_text(address_class(&a)), address_class_text(row->class));
    }
    for (int c = ADDRESS_PUBLIC; c <= ADDRESS_LOOPBACK; c++)
        assert_string_not_equal(address_class_text((enum address_class)c), "an unknown address");
    assert_int_equal(address_class(&(struct address){0}), ADDRESS_UNSPECIFIED);
}

static void test_text(void **state)
{
    static const char *const bad[] = {
        "",
        "1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.4 ",
        " 1.2.3.4",
        "01.2.3.4",
        "1.2.3.0x4",
        "1.2.3.256",
        "1.2.3.",
        ".1.2.3.4",
        "1..2.3",
        ":",
        ":::",
        "1:2",
        "::1%lo",
        "[::1]",
        "::g",
        "1:2:3:4:5:6:7:8:9",
        "::1.2.3",
        "::01.2.3.4",
        "::1.2.3.4:5",
        "00000::",
    };
    char text[LIMIT_ADDRESS_TEXT];
    struct address a;

    (void)state;
    FOR_EACH(row, bad) CHECK(!address_parse(*row, strlen(*row), &a), "'%s' was taken", *row);
    assert_false(address_parse("1.2.3.4\0", 8, &a));
    assert_false(address_parse("::1\0", 4, &a));
    a = parse("0:0:0:0:0:ffff:1.2.3.4");
    assert_string_equal(address_format(&a, text), "::ffff:1.2.3.4");
    a = parse("ABCD:0:0:1:0:0:0:2");
    assert_string_equal(address_format(&a, text), "abcd:0:0:1::2");
    a = address_v4(0x01020304);
    assert_string_equal(address_format(&a, text), "1.2.3.4");
    assert_string_equal(address_format(&(struct address){0}, text), "");
}

static void test_cidr(void **state)
{
    static const struct {
        const char *text, *problem; /* NULL: fine */
    } rows[] = {
        {"10.0.0.0/8", NULL},          {"0.0.0.0/0", NULL},
        {"192.0.2.7/32", NULL},        {"::/0", NULL},
        {"2001:db8::/32", NULL},       {"2001:db8::7/128", NULL},
        {"128.0.0.0/1", NULL},         {"10.0.0.1/8", "not zero"},
        {"128.0.0.0/0", "not zero"},   {"2001:db8::1/127", "not zero"},
        {"10.0.0.0/33", "longer"},     {"::/129", "longer"},
        {"10.0.0.0/", "no prefix"},    {"10.0.0.0/08", "no prefix"},
        {"10.0.0.0/+8", "no prefix"},  {"10.0.0.0/8 ", "no prefix"},
        {"10.0.0.0/8/8", "no prefix"}, {"10.0.0.0/1000", "no prefix"},
        {"10.0.0/8", "no address"},    {"10/8", "no address"},
        {"/8", "no address"},          {"10.0.0.0", "no address"},
    };
    char text[LIMIT_CIDR_TEXT];

    (void)state;
    FOR_EACH(row, rows)
    {
        struct cidr c;
        const char *problem = cidr_parse(row->text, strlen(row->text), &c);

        CHECK(!problem == !row->problem, "%s: %s", row->text, problem ? problem : "was taken");
        if (problem)
            CHECK(strstr(problem, row->problem), "%s: %s", row->text, problem);
        else
            CHECK_STR(cidr_format(&c, text), row->text, row->text);
    }
}

static void test_names(void **state)
{
    static const struct {
        const char *range, *address;
        bool contains, names;
    } rows[] = {
        {"10.0.0.0/8", "10.1.2.3", true, true},
        {"10.1.2.3/32", "10.1.2.3", true, true},
        {"10.1.2.0/24", "10.1.3.3", false, false},
        {"0.0.0.0/1", "10.1.2.3", true, false},
        {"0.0.0.0/1", "8.8.8.8", true, true},
        {"0.0.0.0/0", "127.0.0.1", true, false},
        {"169.254.0.0/16", "169.254.1.1", true, true},
        {"169.254.0.0/16", "169.254.169.254", true, false},
        {"169.254.169.254/32", "169.254.169.254", true, true},
        {"168.63.0.0/16", "168.63.129.16", true, false},
        {"168.63.0.0/16", "168.63.129.17", true, true},
        {"100.64.0.0/10", "100.100.100.200", true, false},
        {"fc00::/7", "fd00::1", true, true},
        {"fc00::/7", "fd00:ec2::254", true, false},
        {"fc00::/6", "fd00::1", true, false},
        {"::/0", "fd00::1", true, false},
        {"::/0", "2606:4700::1", true, true},
        {"10.0.0.0/8", "::ffff:10.0.0.1", false, false},
        {"::ffff:0.0.0.0/96", "::ffff:10.0.0.1", true, true},
        {"::ffff:0.0.0.0/96", "10.0.0.1", false, false},
        {"2001:db8::/33", "2001:db8:8000::1", false, false},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct address a = parse(row->address);
        struct cidr c;

        assert_null(cidr_parse(row->range, strlen(row->range), &c));
        CHECK(cidr_contains(&c, &a) == row->contains, "%s contains %s", row->range, row->address);
        CHECK(cidr_names(&c, &a) == row->names, "%s names %s", row->range, row->address);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("an address is of the stricter class of itself and what it carries", test_class),
        CLAIM("an address has one text form, and lax spellings are none", test_text),
        CLAIM("a range has no bits behind its prefix", test_cidr),
        CLAIM("a range names special addresses only if it is all theirs", test_names),
    };

    return RUN_CLAIMS("egress/address", claims);
}
