/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/values.h"

#include "sandbox/sandbox.h"
#include "tests/test.h"

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {{"0", 0},
                {"1048576", 1048576},
                {"512m", 512 << 20},
                {"512M", 512 << 20},
                {"512mb", 512 << 20},
                {"512MiB", 512 << 20},
                {"1.5g", 3ull << 29},
                {"1g", 1 << 30},
                {"2t", 2ull << 40},
                {"64 k", 64 << 10},
                {"7b", 7},
                {".5k", 512},
                {"5.", 5}};
    static const char *const bad[] = {"",      "abc",  "-5",   "m",   "1x",           "1kk", "1kbb",
                                      "1mibb", "1 2m", "1..2", "1m ", "99999999999t", "0x10"};
    struct error err;
    uint64_t n;

    (void)state;
    FOR_EACH(row, rows)
    {
        CHECK_OK(values_size(row->text, &n, &err), err);
        CHECK(n == row->want, "%s: %llu", row->text, (unsigned long long)n);
    }
    FOR_EACH(text, bad)
    CHECK(values_size(*text, &n, &err) < 0, "'%s' is a size", *text);
}

static void test_cpus_and_pids(void **state)
{
    static const struct {
        const char *text;
        uint32_t want;
    } cpus[] = {{"1.5", 1500}, {"2", 2000},  {"0.5", 500},    {".25", 250},
                {"0", 0},      {"0.01", 10}, {"1.0009", 1000}},
      pids[] = {{"256", 256}, {"-1", 0}, {"0", 0}, {"4194304", 4194304}};
    static const char *const bad[] = {"",  "abc",   "-1",  "1.2.3",       "0.001",
                                      ".", "99999", "1,5", "0.0000000001"};
    struct error err;
    uint32_t n;

    (void)state;
    FOR_EACH(row, cpus)
    {
        CHECK_OK(values_cpus(row->text, &n, &err), err);
        CHECK(n == row->want, "%s: %u", row->text, n);
    }
    FOR_EACH(text, bad)
    CHECK(values_cpus(*text, &n, &err) < 0, "'%s' is a number of cpus", *text);
    FOR_EACH(row, pids)
    {
        CHECK_OK(values_pids(row->text, &n, &err), err);
        CHECK(n == row->want, "%s: %u", row->text, n);
    }
    CHECK_ERR(values_pids("abc", &n, &err), err, ERR_INVALID, "strconv.ParseInt");
    CHECK(values_pids("4194305", &n, &err) < 0, "too many");
}

static void test_ulimits(void **state)
{
    static const struct {
        const char *text, *name;
        long long soft, hard;
    } rows[] = {{"nofile=1024:2048", "nofile", 1024, 2048},
                {"nproc=256", "nproc", 256, 256},
                {"core=-1", "core", -1, -1},
                {"memlock=5:-1", "memlock", 5, -1}};
    static const struct {
        const char *text, *part;
    } bad[] = {{"foo", "invalid ulimit argument: foo"},
               {"foo=1", "invalid ulimit type: foo"},
               {"nofile=10:5", "must be less than or equal to hard limit: 10 > 5"},
               {"nofile=-1:5", "must be less than or equal"},
               {"nofile=", "invalid ulimit argument"},
               {"nofile=a", "invalid ulimit argument"},
               {"nofile=1:2:3", "invalid ulimit argument"},
               {"nofile=-2", "invalid ulimit argument"}};
    struct box_ulimit u;
    struct error err;

    (void)state;
    FOR_EACH(row, rows)
    {
        CHECK_OK(values_ulimit(row->text, &u, &err), err);
        CHECK_STR(u.name, row->name, row->text);
        CHECK(u.soft == row->soft && u.hard == row->hard, "%s: other values", row->text);
        free(u.name);
    }
    FOR_EACH(row, bad)
    CHECK_ERR(values_ulimit(row->text, &u, &err), err, ERR_INVALID, row->part);
}

static void test_ports(void **state)
{
    static const struct {
        const char *text, *ip;
        unsigned host, port;
        const char *protocol;
    } rows[] = {{"80", "", 0, 80, "tcp"},
                {"8080:80", "", 8080, 80, "tcp"},
                {":80", "", 0, 80, "tcp"},
                {"127.0.0.1::9222", "127.0.0.1", 0, 9222, "tcp"},
                {"127.0.0.1:8080:80/udp", "127.0.0.1", 8080, 80, "udp"},
                {"[::1]:8080:80", "::1", 8080, 80, "tcp"},
                {"[::1]::80/TCP", "::1", 0, 80, "tcp"}};
    static const char *const bad[] = {"",           "abc",  "99999",        "0",       "1-3:4-6",
                                      "80-90",      "a:80", "1.2.3:1:2",    "80/icmp", "1:2:3:4",
                                      "[::1:80:80", "80:",  "127.0.0.1:80", "-1"};
    struct box_port p;
    struct error err;

    (void)state;
    FOR_EACH(row, rows)
    {
        CHECK_OK(values_port(row->text, &p, &err), err);
        CHECK_STR(p.host_ip, row->ip, row->text);
        CHECK_STR(p.protocol, row->protocol, row->text);
        CHECK(p.host_port == row->host && p.port == row->port, "%s: other ports", row->text);
        values_port_done(&p);
    }
    FOR_EACH(text, bad)
    CHECK(values_port(*text, &p, &err) < 0, "'%s' is a port", *text);
}

static void test_volumes(void **state)
{
    static const struct {
        const char *text, *source, *target, *options;
        bool read_only;
    } rows[] = {{"/a:/b", "/a", "/b", NULL, false},
                {"/a:/b:ro", "/a", "/b", "ro", true},
                {"/a:/b:ro,z", "/a", "/b", "ro,z", true},
                {"/a:/b:z", "/a", "/b", "z", false},
                {"/a:/b:rw,Z,nocopy,consistent", "/a", "/b", "rw,Z,nocopy,consistent", false},
                {"/a:/b//c/./d/../e/", "/a", "/b/c/e", NULL, false},
                {"/a:/../b", "/a", "/b", NULL, false}};
    static const struct {
        const char *text;
        enum error_code code;
        const char *part;
    } bad[] = {{"/a", ERR_UNSUPPORTED, "keeps none"},
               {"name:/b", ERR_UNSUPPORTED, "named volumes"},
               {"~/a:/b", ERR_UNSUPPORTED, "no path"},
               {"/a:/b:ro:x", ERR_INVALID, "too many colons"},
               {"/a:b", ERR_INVALID, "must be absolute"},
               {"/a:/", ERR_INVALID, "destination can't be '/'"},
               {"/a:/b/..", ERR_INVALID, "destination can't be '/'"},
               {"/a::ro", ERR_INVALID, "empty section"},
               {":/b", ERR_INVALID, "empty section"},
               {"/a:/b:", ERR_INVALID, "invalid mode"},
               {"/a:/b:ro,rw", ERR_INVALID, "invalid mode: ro,rw"},
               {"/a:/b:frob", ERR_INVALID, "invalid mode: frob"},
               {"/a:/b:rshared", ERR_DENIED, "propagation"},
               {"/a:/b:ro,slave", ERR_DENIED, "propagation"}};
    struct box_mount m;
    struct error err;

    (void)state;
    FOR_EACH(row, rows)
    {
        CHECK_OK(values_volume(row->text, &m, &err), err);
        CHECK_STR(m.source, row->source, row->text);
        CHECK_STR(m.target, row->target, row->text);
        CHECK_STR(m.options ? m.options : "-", row->options ? row->options : "-", row->text);
        CHECK(m.read_only == row->read_only && m.kind == BOX_BIND, "%s: other kind", row->text);
        values_mount_done(&m);
    }
    FOR_EACH(row, bad)
    CHECK_ERR(values_volume(row->text, &m, &err), err, row->code, row->part);
}

static void test_relative_volume(void **state)
{
    char here[4096], want[4200];
    struct box_mount m;
    struct error err;

    (void)state;
    assert_non_null(getcwd(here, sizeof(here)));
    (void)snprintf(want, sizeof(want), "%s/./x", here);
    CHECK_OK(values_volume("./x:/b", &m, &err), err);
    assert_string_equal(m.source, want);
    values_mount_done(&m);
}

static void test_tmpfs(void **state)
{
    struct box_mount m;
    struct error err;

    (void)state;
    CHECK_OK(values_tmpfs("/run", &m, &err), err);
    assert_true(m.kind == BOX_TMPFS && !m.no_exec && !m.read_only && m.bytes == 0 && !m.options);
    values_mount_done(&m);
    CHECK_OK(values_tmpfs("/run:noexec", &m, &err), err);
    assert_true(m.no_exec);
    values_mount_done(&m);
    CHECK_OK(values_tmpfs("/run:rw,exec,nosuid,size=64m,mode=755", &m, &err), err);
    assert_true(!m.no_exec && m.bytes == 64 << 20 && m.mode == 0755);
    assert_string_equal(m.options, "rw,exec,nosuid,size=64m,mode=755");
    values_mount_done(&m);
    CHECK_ERR(values_tmpfs("run", &m, &err), err, ERR_INVALID, "absolute");
    CHECK_ERR(values_tmpfs("/run:frob", &m, &err), err, ERR_INVALID, "invalid tmpfs option");
    CHECK_ERR(values_tmpfs("/run:mode=99", &m, &err), err, ERR_INVALID, "invalid tmpfs option");
    CHECK_ERR(values_tmpfs("/run:mode=4755", &m, &err), err, ERR_INVALID, "invalid tmpfs option");
    CHECK_ERR(values_tmpfs("/run:size=1", &m, &err), err, ERR_INVALID, "page");
    CHECK_ERR(values_tmpfs("/run:default", &m, &err), err, ERR_INVALID, "invalid tmpfs option");
    CHECK_ERR(values_tmpfs("/run:shared", &m, &err), err, ERR_DENIED, "propagation");
}

static void test_mounts(void **state)
{
    struct box_mount m;
    struct error err;

    (void)state;
    CHECK_OK(values_mount("type=bind,source=/a,target=/b,readonly", &m, &err), err);
    assert_true(m.kind == BOX_BIND && m.read_only);
    assert_string_equal(m.source, "/a");
    assert_string_equal(m.target, "/b");
    values_mount_done(&m);
    CHECK_OK(values_mount("dst=/b,src=/a,type=bind,ro=false", &m, &err), err);
    assert_false(m.read_only);
    values_mount_done(&m);
    CHECK_OK(values_mount("type=tmpfs,destination=/t,tmpfs-size=1m,tmpfs-mode=700", &m, &err), err);
    assert_true(m.kind == BOX_TMPFS && m.bytes == 1 << 20 && m.mode == 0700);
    values_mount_done(&m);
    CHECK_ERR(values_mount("type=bind,source=/a", &m, &err), err, ERR_INVALID,
              "target is required");
    CHECK_ERR(values_mount("foo", &m, &err), err, ERR_INVALID, "must be a key=value pair");
    CHECK_ERR(values_mount("type=volume,target=/b", &m, &err), err, ERR_UNSUPPORTED, "volume");
    CHECK_ERR(values_mount("target=/b", &m, &err), err, ERR_UNSUPPORTED, "volume");
    CHECK_ERR(values_mount("type=bind,target=/b", &m, &err), err, ERR_INVALID, "Source");
    CHECK_ERR(values_mount("type=bind,source=/a,target=/b,bind-propagation=rshared", &m, &err), err,
              ERR_DENIED, "propagation");
    CHECK_ERR(values_mount("type=bind,source=/a,target=/b,frob=1", &m, &err), err, ERR_UNSUPPORTED,
              "frob");
    CHECK_ERR(values_mount("type=tmpfs,source=/a,target=/b", &m, &err), err, ERR_INVALID,
              "no source");
}

static void test_names(void **state)
{
    static const char *const good[] = {"ab", "openclaw-sbx-agent-main.1_x", "A0"};
    static const char *const bad[] = {"", "a", "-a", ".a", "_a", "a b", "a/b", "a:b", "a\n"};

    (void)state;
    FOR_EACH(name, good)
    CHECK(values_is_name(*name), "%s", *name);
    FOR_EACH(name, bad)
    CHECK(!values_is_name(*name), "'%s'", *name);
}

static const struct CMUnitTest claims[] = {
    CLAIM("sizes follow docker's rules: a bare number is bytes", test_sizes),
    CLAIM("cpus and pids", test_cpus_and_pids),
    CLAIM("ulimits", test_ulimits),
    CLAIM("ports, without ranges", test_ports),
    CLAIM("volumes are binds; options without effect are taken, propagation is refused",
          test_volumes),
    CLAIM("a volume's source may be relative", test_relative_volume),
    CLAIM("tmpfs", test_tmpfs),
    CLAIM("--mount takes bind and tmpfs", test_mounts),
    CLAIM("names of boxes", test_names),
};

int main(void)
{
    return RUN_CLAIMS("docker/values", claims);
}
