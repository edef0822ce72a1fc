/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tty.h"

#include <sys/ioctl.h>
#include <termios.h>

#include "base/limits.h"
#include "tests/test.h"

#define ESC "\x1b"
#define BEL "\x07"
#define ST  ESC "\\"

struct row {
    const char *name, *in, *out;
};

/* Filters `in` cut into pieces of n bytes (0: whole); what comes out, NUL-terminated. */
static const char *filter(const char *in, size_t len, size_t n)
{
    static char out[4096];
    struct tty_filter f = {0};
    size_t done = 0;

    for (size_t at = 0; at < len;) {
        size_t part = n && n < len - at ? n : len - at;
        char piece[2048 + TTY_FILTER_ROOM];
        size_t got;

        assert_true(part <= 2048);
        memcpy(piece, in + at, part);
        got = tty_filter_apply(&f, piece, part);
        assert_true(done + got < sizeof(out));
        memcpy(out + done, piece, got);
        done += got;
        at += part;
    }
    out[done] = 0;
    return out;
}

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t piece = 0; piece < 4; piece++)
            CHECK_STR(filter(rows[i].in, strlen(rows[i].in), piece), rows[i].out, rows[i].name);
}

static void test_passes(void **state)
{
    static const struct row rows[] = {
        {"text", "hello\r\n\ttab\b\x07", "hello\r\n\ttab\b\x07"},
        {"colour", ESC "[31mred" ESC "[0m", ESC "[31mred" ESC "[0m"},
        {"256 colours", ESC "[38;5;196mx", ESC "[38;5;196mx"},
        {"cursor", ESC "[2J" ESC "[10;20H" ESC "[K" ESC "[?25l",
         ESC "[2J" ESC "[10;20H" ESC "[K" ESC "[?25l"},
        {"intermediate", ESC "[2 q", ESC "[2 q"},
        {"save and restore", ESC "7" ESC "8", ESC "7" ESC "8"},
        {"character set", ESC "(0lqk" ESC "(B", ESC "(0lqk" ESC "(B"},
        {"keypad", ESC "=" ESC ">", ESC "=" ESC ">"},
        {"UTF-8", "\xc3\xa9 \xc2\xa9 \xe2\x9c\x93 \xf0\x9f\x90\x9a",
         "\xc3\xa9 \xc2\xa9 \xe2\x9c\x93 \xf0\x9f\x90\x9a"},
        {"continuation bytes like C1", "\xc4\x9b \xe2\x80\x9d", "\xc4\x9b \xe2\x80\x9d"},
        {"CSI as one character becomes the usual two",
         "\xc2\x9b"
         "31mx",
         ESC "[31mx"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_strings(void **state)
{
    static const struct row rows[] = {
        {"title", "a" ESC "]0;evil" BEL "b", "ab"},
        {"title with ST", "a" ESC "]0;evil" ST "b", "ab"},
        {"clipboard", "a" ESC "]52;c;ZXZpbA==" BEL "b", "ab"},
        {"hyperlink", ESC "]8;;http://evil" ST "text" ESC "]8;;" ST, "text"},
        {"DCS", "a" ESC "P$qm" ST "b", "ab"},
        {"APC", "a" ESC "_Gf=100;AAAA" ST "b", "ab"},
        {"PM", "a" ESC "^x" ST "b", "ab"},
        {"SOS", "a" ESC "Xx" ST "b", "ab"},
        {"OSC as one character",
         "a\xc2\x9d"
         "0;evil" BEL "b",
         "ab"},
        {"DCS as one character", "a\xc2\x90$qm" ST "b", "ab"},
        {"SOS, PM, APC as one character", "\xc2\x98x" ST "\xc2\x9ex" ST "\xc2\x9fx" ST "b", "b"},
        {"sequence inside a string", ESC "]0;" ESC "[31mevil" BEL "b", "b"},
        {"string inside a string", ESC "]0;" ESC "]0;evil" BEL "b", "b"},
        {"text with UTF-8 inside", ESC "]0;\xc3\xa9\xc2\xa9" BEL "b", "b"},
        {"without an end", "a" ESC "]0;evil", "a"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_reports(void **state)
{
    static const struct row rows[] = {
        {"report title", "a" ESC "[21tb", "ab"},
        {"resize", "a" ESC "[8;50;200tb", "ab"},
        {"push title", "a" ESC "[22;0tb", "ab"},
        {"as one character",
         "a\xc2\x9b"
         "21tb",
         "ab"},
        {"reset", "a" ESC "cb", "ab"},
        {"identify", "a" ESC "Zb", "ab"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_malformed(void **state)
{
    static const struct row rows[] = {
        {"escape at the end", "a" ESC, "a"},
        {"half a sequence at the end", "a" ESC "[31", "a"},
        {"half a character at the end", "a\xc2", "a"},
        {"control byte inside", ESC "[21\r", ""},
    };
    static const char *const broken[] = {ESC "[3" ESC "]0;x" BEL, ESC "[3\r" ESC "]0;x" BEL};
    char endless[400] = ESC "[";

    (void)state;
    check_rows(rows, COUNT(rows));
    FOR_EACH(text, broken) /* what of it is shown as text does no harm */
    CHECK(!strchr(filter(*text, strlen(*text), 0), 033), "an escape passes");
    memset(endless + 2, '1', sizeof(endless) - 4);
    endless[sizeof(endless) - 2] = 'm';
    CHECK(!strchr(filter(endless, strlen(endless), 0), 033), "an endless sequence passes");
}

/* What a terminal would make of it: after ESC, C0 controls are executed and change nothing. */
static bool has_introducer(const char *s)
{
    for (; *s; s++) {
        const char *p = s + 1;

        if (s[0] == '\xc2' && s[1] && strchr("\x90\x98\x9d\x9e\x9f", s[1]))
            return true;
        if (*s != 033)
            continue;
        while (*p && ((unsigned char)*p < 0x20 || *p == 0x7f))
            p++;
        if (*p && (strchr("]PX^_", *p) ||
                   (p[0] == '\xc2' && p[1] && strchr("\x90\x98\x9d\x9e\x9f", p[1]))))
            return true;
    }
    return false;
}

static void test_tricks(void **state)
{
    static const struct row rows[] = {
        {"two escapes", ESC ESC "]0;evil" BEL, ""},
        {"three escapes", ESC ESC ESC "]0;evil" BEL, ""},
        {"a control byte after the escape", ESC "\r]0;evil" BEL, ""},
        {"DEL after the escape", ESC "\x7f]0;evil" BEL, ""},
        {"an escape after half a character", "\xc2" ESC "]0;evil" BEL, ""},
        {"two halves of a character",
         "\xc2\xc2\x9d"
         "0;evil" BEL,
         ""},
        {"half a character after the escape",
         ESC "\xc2\x9d"
             "0;evil" BEL,
         ""},
        {"a sequence that swallows half a character",
         "\xc2\xc2" ESC "[\xc2\x9d"
         "0;evil" BEL,
         ""},
    };

    (void)state;
    FOR_EACH(row, rows)
    for (size_t piece = 0; piece < 4; piece++)
        CHECK(!has_introducer(filter(row->in, strlen(row->in), piece)), "%s: passes", row->name);
}

static void test_true_colour(void **state)
{
    static const struct row rows[] = {
        {"two colours", ESC "[38;2;255;255;255;48;2;100;100;100mx",
         ESC "[38;2;255;255;255;48;2;100;100;100mx"},
        {"and more", ESC "[0;1;3;4;38;2;255;255;255;48;2;255;255;255mx",
         ESC "[0;1;3;4;38;2;255;255;255;48;2;255;255;255mx"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_other_ends(void **state)
{
    static const struct row rows[] = {
        {"ST as one character",
         ESC "]0;t\xc2\x9c"
             "b",
         "b"},
        {"cancelled",
         ESC "]0;t\x18"
             "b",
         "b"},
        {"ended after a lone escape", ESC "]0;t" ESC ESC "\\b", "b"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

/* The longest that can be held back comes out with a full chunk behind it. */
static void test_room(void **state)
{
    struct tty_filter f = {0};
    static char data[LIMIT_STREAM_CHUNK + TTY_FILTER_ROOM];
    size_t n;

    (void)state;
    memcpy(data, ESC "[", 2);
    memset(data + 2, '1', sizeof(f.held));
    assert_int_equal(tty_filter_apply(&f, data, 2 + sizeof(f.held)), 0);
    memset(data, 'm', LIMIT_STREAM_CHUNK);
    n = tty_filter_apply(&f, data, LIMIT_STREAM_CHUNK);
    assert_int_equal(n, LIMIT_STREAM_CHUNK + 2 + sizeof(f.held));
    assert_memory_equal(data, ESC "[111", 5);
    assert_int_equal(data[n - 1], 'm');
}

/* ---- a real terminal ---- */

static void test_raw(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1;
    struct termios before, raw, after;
    uint16_t rows, cols;
    const char *name;

    (void)state;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || !(name = ptsname(master)) ||
        (slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        (void)host_lacks("a pseudo terminal");
        return;
    }
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &(struct winsize){.ws_row = 50, .ws_col = 132}), 0);
    tty_size(slave, &rows, &cols);
    tty_copy_size(-1, slave); /* from no terminal: nothing changes */
    tty_size(slave, &rows, &cols);
    assert_int_equal(rows, 50);
    assert_int_equal(cols, 132);
    assert_int_equal(tcgetattr(slave, &before), 0);
    assert_int_equal(tty_raw(slave), 0);
    assert_int_equal(tcgetattr(slave, &raw), 0);
    assert_int_equal(raw.c_lflag & (ECHO | ICANON | ISIG), 0);
    tty_restore();
    tty_restore(); /* twice is once */
    assert_int_equal(tcgetattr(slave, &after), 0);
    assert_int_equal(after.c_lflag, before.c_lflag);
    assert_int_equal(after.c_iflag, before.c_iflag);
    (void)close(slave);
    (void)close(master);
}

static void test_no_terminal(void **state)
{
    uint16_t rows = 9, cols = 9;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)state;
    assert_int_equal(tty_raw(fd), -ENOTTY);
    tty_restore();
    tty_size(fd, &rows, &cols);
    assert_int_equal(rows, 0);
    assert_int_equal(cols, 0);
    (void)close(fd);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("text, colours and cursor movement pass, however they are cut", test_passes),
        CLAIM("strings to the terminal do not pass (OSC, DCS, APC, PM, SOS)", test_strings),
        CLAIM("window operations and reset do not pass", test_reports),
        CLAIM("nothing passes of what is malformed", test_malformed),
        CLAIM("no trick carries an introducer through", test_tricks),
        CLAIM("a sequence with two true colours passes", test_true_colour),
        CLAIM("a string ends where a terminal ends it", test_other_ends),
        CLAIM("what was held back fits in front of a full chunk", test_room),
        CLAIM("a terminal is put back as it was", test_raw),
        CLAIM("what is no terminal is left alone", test_no_terminal),
    };

    return RUN_CLAIMS("engine/tty", claims);
}
