/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/record.h"

#include "base/buf.h"
#include "base/jtext.h"
#include "tests/test.h"

/* Words of a record are owned where it is used; here they are literals. */
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"

static void test_round_trip(void **state)
{
    char *command[] = {"sh", "-c", "echo \"x\"\n", NULL}, *env[] = {"A=1", "B=\xc3\xa9", NULL},
         *none[] = {NULL};
    struct box_label labels[] = {{"a.b", "c"}, {"d", ""}};
    struct box_mount mounts[] = {{.kind = BOX_BIND,
                                  .source = "/src",
                                  .target = "/dst",
                                  .options = "ro,z",
                                  .read_only = true},
                                 {.kind = BOX_TMPFS,
                                  .target = "/tmp",
                                  .bytes = 5ull << 30,
                                  .mode = 01777,
                                  .no_exec = true,
                                  .implied = true}};
    struct box_ulimit ulimits[] = {{"nofile", 100, -1}};
    struct box_port ports[] = {{"127.0.0.1", 0, 9222, "tcp"}};
    struct box_record r = {.name = "box",
                           .image = "img",
                           .n_entrypoint = 1,
                           .command = command,
                           .env = env,
                           .workdir = "/w",
                           .user = "1000:1000",
                           .uid = 1000,
                           .gid = 100,
                           .home = "/home/x",
                           .network = "none",
                           .labels = labels,
                           .n_labels = 2,
                           .mounts = mounts,
                           .n_mounts = 2,
                           .ulimits = ulimits,
                           .n_ulimits = 1,
                           .ports = ports,
                           .n_ports = 1,
                           .dns = none,
                           .limits = {.memory_bytes = 1ull << 40, .cpu_milli = 1500, .pids = 7},
                           .memory_swap = -1,
                           .read_only_root = true,
                           .created_usec = 1794732000000000};
    autoptr(box_record) back = NULL;
    autoptr(jtext_doc) doc = NULL;
    struct error err;
    autobuf text, again;

    (void)state;
    memset(r.id, 'a', 64);
    buf_init(&text, 1 << 20);
    buf_init(&again, 1 << 20);
    record_write(&r, &text);
    CHECK_OK(jtext_parse(text.data, text.len, &doc, &err), err);
    CHECK_OK(record_read(jtext_root(doc), &back, &err), err);
    record_write(back, &again);
    assert_string_equal(again.data, text.data);
    assert_string_equal(back->command[2], "echo \"x\"\n");
    assert_int_equal(back->mounts[1].bytes, 5ull << 30);
    assert_int_equal(back->ulimits[0].hard, -1);
}

static void test_refuses(void **state)
{
    static const char *const bad[] = {"{}", "[]", "{\"id\":\"short\",\"name\":\"x\"}",
                                      "{\"id\":5,\"name\":\"x\"}"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        autoptr(jtext_doc) doc = NULL;
        struct box_record *r = NULL;
        struct error err;

        CHECK_OK(jtext_parse(bad[i], strlen(bad[i]), &doc, &err), err);
        CHECK_ERR(record_read(jtext_root(doc), &r, &err), err, ERR_INVALID, "box.json");
    }
}

static void test_last(void **state)
{
    struct box_last l = {.live = {.init_pid = 77,
                                  .has_range = true,
                                  .belts = 5,
                                  .cgroups = {"/a", "", "/c"}},
                         .started_usec = 5,
                         .finished_usec = 9,
                         .exit_code = 137,
                         .oom_killed = true,
                         .problem = "memory"},
                    back;
    autoptr(jtext_doc) doc = NULL;
    struct error err;
    autobuf text;

    (void)state;
    l.live.grades[LIMIT_MEMORY] = GRADE_KERNEL;
    buf_init(&text, 1 << 16);
    last_write(&l, &text);
    CHECK_OK(jtext_parse(text.data, text.len, &doc, &err), err);
    CHECK_OK(last_read(jtext_root(doc), &back, &err), err);
    assert_int_equal(back.live.grades[LIMIT_MEMORY], GRADE_KERNEL);
    assert_string_equal(back.live.cgroups[2], "/c");
    assert_int_equal(back.exit_code, 137);
    assert_true(back.live.has_range && back.oom_killed);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a record is read back as it was written", test_round_trip),
        CLAIM("a record without id or name is refused", test_refuses),
        CLAIM("the last start is read back as it was written", test_last),
    };

    return RUN_CLAIMS("sandbox/record", claims);
}
