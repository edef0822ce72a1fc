/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <sys/mman.h>

#include "tests/test.h"

static char text[20000];

/* Standard error goes to a memfd while one message is logged; what arrived is in `text`. */
static void capture(enum log_level level, const char *msg)
{
    int mem = memfd_create("log", MFD_CLOEXEC), old = dup(STDERR_FILENO);
    ssize_t n;

    assert_true(mem >= 0 && old >= 0);
    assert_true(dup2(mem, STDERR_FILENO) >= 0);
    log_printf(level, "%s", msg);
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    n = pread(mem, text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = 0;
    (void)close(mem);
    (void)close(old);
}

static void begin(const char *format, const char *debug)
{
    (void)(format ? setenv("CLAWDEN_LOG", format, 1) : unsetenv("CLAWDEN_LOG"));
    (void)(debug ? setenv("CLAWDEN_DEBUG", debug, 1) : unsetenv("CLAWDEN_DEBUG"));
    log_init("prog");
}

static void test_text(void **state)
{
    static const struct {
        enum log_level level;
        const char *msg, *line;
    } rows[] = {
        {LOG_INFO, "ready", "prog: ready\n"},
        {LOG_WARN, "odd", "prog: warning: odd\n"},
        {LOG_ERROR, "no", "prog: no\n"},
        {LOG_ERROR, "100%s %n", "prog: 100%s %n\n"},
        {LOG_ERROR, "\xc3\xa4", "prog: \xc3\xa4\n"},
        {LOG_DEBUG, "unseen", ""},
    };

    (void)state;
    begin(NULL, NULL);
    FOR_EACH(row, rows)
    {
        capture(row->level, row->msg);
        CHECK_STR(text, row->line, row->msg);
    }
}

static void test_debug(void **state)
{
    (void)state;
    begin(NULL, "1");
    capture(LOG_DEBUG, "seen");
    assert_string_equal(text, "prog: seen\n");
    begin(NULL, "0");
    capture(LOG_DEBUG, "unseen");
    assert_string_equal(text, "");
}

static void test_control_bytes(void **state)
{
    (void)state;
    begin(NULL, NULL);
    capture(LOG_ERROR, "a\x1b]0;evil\x07\r\nfake: line\x7f");
    assert_string_equal(text, "prog: a\\x1b]0;evil\\x07\\x0d\\x0afake: line\\x7f\n");
}

static void test_c1(void **state)
{
    (void)state;
    begin(NULL, NULL);
    capture(LOG_ERROR, "a\xc2\x9d"
                       "0;evil\xc2\x9c");
    CHECK(!strstr(text, "\xc2\x9d"), "OSC as UTF-8 passes");
    capture(LOG_ERROR, "a\x9d"
                       "0;evil\x9c");
    CHECK(!strchr(text, '\x9d'), "OSC as one byte passes");
}

static void test_json(void **state)
{
    size_t n;

    (void)state;
    begin("json", NULL);
    capture(LOG_WARN, "say \"hi\"\n\x1b");
    n = strlen(text);
    assert_memory_equal(text, "{\"time\":", 8);
    assert_non_null(strstr(text, ",\"program\":\"prog\",\"level\":\"warn\",\"message\":\"say "
                                 "\\\"hi\\\"\\u000a\\u001b\"}\n"));
    assert_ptr_equal(strchr(text, '\n'), text + n - 1); /* one line */
}

static void test_long(void **state)
{
    char msg[5000];

    (void)state;
    memset(msg, '\x01', sizeof(msg) - 1);
    msg[sizeof(msg) - 1] = 0;
    begin(NULL, NULL);
    capture(LOG_ERROR, msg);
    assert_int_equal(strlen(text), 6 + 4 * 1023 + 1);
    begin("json", NULL);
    capture(LOG_ERROR, msg);
    assert_true(strlen(text) > 6 * 1023);
    assert_string_equal(text + strlen(text) - 3, "\"}\n");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a message is one line with the program's name", test_text),
        CLAIM("debug messages are written on demand", test_debug),
        CLAIM("control bytes of a message never reach the terminal", test_control_bytes),
        CLAIM("control characters above ASCII never reach the terminal either", test_c1),
        CLAIM("a JSON message is one object on one line", test_json),
        CLAIM("the longest message still fits when all of it is escaped", test_long),
    };

    return RUN_CLAIMS("base/log", claims);
}
