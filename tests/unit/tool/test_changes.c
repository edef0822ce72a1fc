/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a receipt: bounded, spelled as elsewhere, honest about what is missing. */
#include "tool/changes.h"

#include <time.h>

#include "base/limits.h"
#include "tests/unit/tool/json.h"

/* A moment that is later than the time of anything which happened so far: from 6.13 on, a file's
 * may be ahead of the coarse clock. */
static struct moment next_tick(void)
{
    struct timespec t;
    struct moment m;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    do {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        m = moment_now();
    } while (m.wall_ns <= (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
    return m;
}

static void put_many(const struct temp *t, int n, const char *format)
{
    char name[300];

    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), format, i);
        temp_write(t, name, "", 0);
    }
}

static void test_spelled(void **state)
{
    struct temp *t = *state;
    autojson want = json_of("['\\\\x07bell', 'quote\\\"', 'sub/']");
    struct moment m = next_tick();
    struct changes c;

    temp_write(t, "quote\"", "", 0);
    temp_write(t, "\abell", "", 0);
    assert_int_equal(mkdirat(t->fd, "sub", 0755), 0);
    c = changes_since(t->fd, &m, false);
    assert_true(json_equal(c.files, want));
    assert_false(c.is_cut || c.is_worth_again);
    json_decref(c.files);
}

static void test_quick_and_thorough(void **state)
{
    struct temp *t = *state;
    struct changes c;
    struct moment m;

    put_many(t, 2 * LIMIT_CHANGED_QUICK, "f%d");
    m = next_tick();
    temp_write(t, "f7", "x", 1);
    c = changes_since(t->fd, &m, false);
    assert_true(c.is_cut && c.is_worth_again);
    json_decref(c.files);
    c = changes_since(t->fd, &m, true);
    assert_false(c.is_cut || c.is_worth_again);
    assert_int_equal(json_array_size(c.files), 1);
    assert_string_equal(json_string_value(json_array_get(c.files, 0)), "f7");
    json_decref(c.files);
}

/* A second look would find as many: it is not worth it. */
static void test_many_names(void **state)
{
    struct temp *t = *state;
    struct moment m = next_tick();
    struct changes c;

    put_many(t, LIMIT_CHANGED_NAMES + 1, "%d");
    c = changes_since(t->fd, &m, false);
    assert_int_equal(json_array_size(c.files), LIMIT_CHANGED_NAMES);
    assert_true(c.is_cut && !c.is_worth_again);
    json_decref(c.files);
}

/* Each byte of these is five in JSON. */
static void test_long_names(void **state)
{
    struct temp *t = *state;
    struct moment m = next_tick();
    char name[256], *text;
    struct changes c;

    for (char k = 'a'; k < 'a' + 20; k++) {
        memset(name, 1, 255);
        name[0] = k;
        name[255] = 0;
        temp_write(t, name, "", 0);
    }
    temp_write(t, "z", "", 0);
    c = changes_since(t->fd, &m, true);
    text = json_dumps(c.files, JSON_COMPACT);
    assert_true(strlen(text) <= LIMIT_CHANGED_TEXT);
    assert_int_equal(json_array_size(c.files), LIMIT_CHANGED_TEXT / (1 + 254 * 5 + 3) + 1);
    assert_true(c.is_cut && !c.is_worth_again);
    CHECK(strstr(text, "\"z\"]"), "a short name behind long ones is left out: %s", text);
    free(text);
    json_decref(c.files);
}

/* As if the wall clock had been set back an hour since. */
static void test_clock_set_back(void **state)
{
    struct temp *t = *state;
    struct moment m = next_tick();
    struct changes c;

    temp_write(t, "f", "", 0);
    m.wall_ns += 3600 * 1000000000ll;
    c = changes_since(t->fd, &m, false);
    assert_int_equal(json_array_size(c.files), 1);
    json_decref(c.files);
}

static void test_no_workspace(void **state)
{
    struct moment m = moment_now();
    struct changes c = changes_since(-1, &m, true);

    (void)state;
    assert_int_equal(json_array_size(c.files), 0);
    assert_true(c.is_cut && !c.is_worth_again);
    json_decref(c.files);
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("names are spelled as the file tools spell them", test_spelled),
    CLAIM_IN_TEMP("what a quick look does not reach, a thorough one does", test_quick_and_thorough),
    CLAIM_IN_TEMP("as many names as a receipt holds, and it is told", test_many_names),
    CLAIM_IN_TEMP("as many bytes as a receipt holds; a long name hides no short one",
                  test_long_names),
    CLAIM_IN_TEMP("a wall clock that was set back hides nothing", test_clock_set_back),
    CLAIM("a workspace that cannot be looked at is told", test_no_workspace),
};

int main(void)
{
    return RUN_CLAIMS("tool/changes", claims);
}
