/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/request.h"

#include "sandbox/sandbox.h"
#include "tests/test.h"

/* Reads the words of one `create`, NULL at the end. */
static bool read_words(struct request *q, const char *const *words, int *status)
{
    static char *argv[64];
    int argc = 0;

    for (; words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    argv[argc] = NULL;
    return request_read(q, argc, argv, status);
}

static void test_openclaw(void **state)
{
    static const char *const words[] = {"--name",
                                        "openclaw-sbx-workspace-38502bcd49db0457833284614a314188",
                                        "--init",
                                        "--label",
                                        "openclaw.sandbox=1",
                                        "--label",
                                        "openclaw.sessionKey=agent:main:test4",
                                        "--read-only",
                                        "--tmpfs",
                                        "/tmp",
                                        "--tmpfs",
                                        "/var/tmp",
                                        "--tmpfs",
                                        "/run",
                                        "--network",
                                        "bridge",
                                        "--user",
                                        "0:0",
                                        "--cap-drop",
                                        "ALL",
                                        "--security-opt",
                                        "no-new-privileges",
                                        "--dns",
                                        "1.1.1.1",
                                        "--add-host",
                                        "internal.service:10.0.0.5",
                                        "--pids-limit",
                                        "256",
                                        "--memory",
                                        "512m",
                                        "--memory-swap",
                                        "1g",
                                        "--cpus",
                                        "1.5",
                                        "--ulimit",
                                        "nofile=1024:2048",
                                        "--ulimit",
                                        "nproc=256",
                                        "--workdir",
                                        "/workspace",
                                        "-v",
                                        "/srv/a:/workspace:z",
                                        "-v",
                                        "/srv/a/skills:/workspace/skills:ro,z",
                                        "openclaw-sandbox:bookworm-slim",
                                        "sleep",
                                        "infinity",
                                        NULL};
    struct request q = {0};
    struct box_record *r;
    int status = -1;

    (void)state;
    assert_true(read_words(&q, words, &status));
    r = q.record;
    assert_string_equal(r->name, words[1]);
    assert_string_equal(r->image, "openclaw-sandbox:bookworm-slim");
    assert_string_equal(q.command[0], "sleep");
    assert_string_equal(q.command[1], "infinity");
    assert_true(r->init && r->read_only_root && !r->tty && !r->open_stdin);
    assert_int_equal(r->n_labels, 2);
    assert_string_equal(r->labels[1].value, "agent:main:test4");
    assert_int_equal(r->n_mounts, 5);
    assert_true(r->mounts[4].read_only && !r->mounts[3].read_only);
    assert_int_equal(r->limits.memory_bytes, 512 << 20);
    assert_int_equal(r->memory_swap, 1 << 30);
    assert_int_equal(r->limits.cpu_milli, 1500);
    assert_int_equal(r->limits.pids, 256);
    assert_int_equal(r->n_ulimits, 2);
    assert_string_equal(r->network, "bridge");
    assert_string_equal(r->user, "0:0");
    assert_string_equal(r->security[0], "no-new-privileges");
    request_done(&q);
}

static void check_refused(const char *const row[5], int want)
{
    const char *words[6] = {row[0], row[1], row[2], row[3], row[4], NULL};
    struct request q = {0};
    int status = -1;

    CHECK(!read_words(&q, words, &status), "%s %s: taken", words[0], words[1]);
    CHECK(status == want, "%s %s: status %d", words[0], words[1], status);
    request_done(&q);
}

/* The words of create: what docker's client finds out itself is 125, what its daemon does is 1. */
static void test_refused(void **state)
{
    static const char *const malformed[][5] = {
        {"--memory", "x", "img"},
        {"--label", "=x", "img"},
        {"-e", "=x", "img"},
        {"--env-file", "/nonexistent", "img"},
        {"--dns", "foo", "img"},
        {"--add-host", "foo", "img"},
        {"--pull", "sometimes", "img"},
        {"--frob", "img"},
        {"-Z", "img"},
    };
    static const char *const rows[][5] = {
        {"--privileged", "img"},
        {"--network", "host", "img"},
        {"--net=host", "img"},
        {"--network", "container:x", "img"},
        {"--cap-add", "SYS_ADMIN", "img"},
        {"--device", "/dev/kvm", "img"},
        {"--gpus", "all", "img"},
        {"--pid", "host", "img"},
        {"--ipc=host", "img"},
        {"--userns", "host", "img"},
        {"--uts", "host", "img"},
        {"--volumes-from", "x", "img"},
        {"--security-opt", "seccomp=unconfined", "img"},
        {"--security-opt", "apparmor=Unconfined", "img"},
        {"--security-opt", "systempaths=unconfined", "img"},
        {"--security-opt", "no-new-privileges=false", "img"},
        {"--restart", "always", "img"},
        {"--platform", "linux/mips", "img"},
        {"-v", "vol:/x", "img"},
        {"-v", "/a:/b:shared", "img"},
        {"-v", "/a:/b", "--tmpfs=/b", "img"},
        {"-p", "80-90:80-90", "img"},
        {"--memory", "5m", "img"},
        {"--name", "a b", "img"},
        {"-w", "relative", "img"},
        {"--mount", "type=bind,src=/nonexistent-source,dst=/x", "img"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_refused(*row, 1);
    FOR_EACH(row, malformed)
    check_refused(*row, 125);
}

static void test_taken(void **state)
{
    static const char *const rows[][5] = {
        {"--privileged=false", "img"},
        {"--security-opt", "no-new-privileges:true", "img"},
        {"--security-opt", "no-new-privileges=true", "img"},
        {"--security-opt", "seccomp=/some/file.json", "img"},
        {"--pid", "private", "img"},
        {"--restart", "no", "img"},
        {"--platform", "linux", "img"},
        {"--memory", "0", "img"},
        {"-p", "127.0.0.1::9222", "img"},
        {"--pull", "never", "img"},
        {"-itd", "img"},
        {"--", "img"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        const char *words[6] = {(*row)[0], (*row)[1], (*row)[2], (*row)[3], (*row)[4], NULL};
        struct request q = {.run = true};
        int status = -1;

        CHECK(read_words(&q, words, &status), "%s %s: refused", words[0], words[1]);
        CHECK_STR(q.record->image, "img", words[0]);
        request_done(&q);
    }
}

static void test_env_order(void **state)
{
    const struct temp *t = *state;
    const char *words[] = {"-e",  "A=flag", "--env-file", temp_path(t, "f"),
                           "img", "cmd",    "-e",         NULL};
    struct request q = {0};
    int status = -1;

    temp_write(t, "f", "A=file\nB=file", 13);
    assert_true(read_words(&q, words, &status));
    assert_string_equal(env_find(&q.given, "A"), "flag");
    assert_string_equal(env_find(&q.files, "B"), "file");
    assert_string_equal(q.command[1], "-e"); /* behind the image nothing is ours */
    request_done(&q);
}

static const struct CMUnitTest claims[] = {
    CLAIM("the create of OpenClaw is understood to its last word", test_openclaw),
    CLAIM("what a box must not have is refused", test_refused),
    CLAIM("what is harmless is taken", test_taken),
    CLAIM_IN_TEMP("env files and env are kept apart; words behind the image are the command's",
                  test_env_order),
};

int main(void)
{
    (void)!freopen("/dev/null", "w", stderr); /* what is refused says so */
    return RUN_CLAIMS("docker/request", claims);
}
