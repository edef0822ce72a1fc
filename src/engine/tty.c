/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tty.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"

static struct termios saved;
static int saved_fd = -1;

int tty_raw(int fd)
{
    struct termios t;

    if (tcgetattr(fd, &saved) < 0)
        return -errno;
    t = saved;
    cfmakeraw(&t);
    if (tcsetattr(fd, TCSADRAIN, &t) < 0)
        return -errno;
    saved_fd = fd;
    return 0;
}

void tty_restore(void)
{
    if (saved_fd < 0)
        return;
    (void)tcsetattr(saved_fd, TCSADRAIN, &saved);
    saved_fd = -1;
}

void tty_size(int fd, uint16_t *rows, uint16_t *cols)
{
    struct winsize w = {0};

    (void)ioctl(fd, TIOCGWINSZ, &w);
    *rows = w.ws_row;
    *cols = w.ws_col;
}

void tty_copy_size(int from, int to)
{
    struct winsize w;

    /* Setting what is set already tells nobody anything: the kernel compares. */
    if (ioctl(from, TIOCGWINSZ, &w) == 0)
        (void)ioctl(to, TIOCSWINSZ, &w);
}

/* ESC followed by one of these opens a string that ends with BEL or ESC \. ESC k: screen's title.
 */
static bool opens_string(unsigned char c)
{
    return c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_' || c == 'k';
}

struct out {
    char *data;
    size_t len;
};

static void put(struct out *o, unsigned char c)
{
    o->data[o->len++] = (char)c;
}

static void enter(struct tty_filter *f, int state)
{
    f->state = state;
    f->n_held = 0;
    f->more = 0;
}

static bool hold(struct tty_filter *f, unsigned char c)
{
    if (f->n_held == sizeof(f->held))
        return false;
    f->held[f->n_held++] = (char)c;
    return true;
}

static void release(struct tty_filter *f, struct out *o, bool csi, unsigned char final)
{
    put(o, 033);
    if (csi)
        put(o, '[');
    memcpy(o->data + o->len, f->held, f->n_held);
    o->len += f->n_held;
    put(o, final);
}

/* Continuation bytes pass only inside a character: alone, those below 0xa0 are C1 controls. */
static void step_text(struct tty_filter *f, struct out *o, unsigned char c)
{
    if (f->more && (c & 0xc0) == 0x80) {
        f->more--;
        put(o, c);
        return;
    }
    f->more = 0;
    if (c == 033)
        enter(f, TTY_ESC);
    else if (c == 0xc2)
        enter(f, TTY_C2);
    else if (c < 0x80 || c >= 0xa0) {
        f->more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc3 ? 1 : 0;
        put(o, c);
    }
}

/* Behind 0xC2, where UTF-8 puts the C1 controls. */
static void step_c2(struct tty_filter *f, struct out *o, unsigned char c)
{
    enter(f, TTY_TEXT);
    if ((c & 0xc0) != 0x80) {
        step_text(f, o, c); /* not a character: the lone 0xC2 is dropped, this byte begins anew */
    } else if (c >= 0xa0) {
        put(o, 0xc2);
        put(o, c);
    } else if (c == 0x9b) {
        enter(f, TTY_CSI);
    } else if (c == 0x90 || c == 0x98 || c == 0x9d || c == 0x9e || c == 0x9f) {
        enter(f, TTY_STRING);
    }
}

/* Sequences that begin with ESC and end with one byte. Intermediate bytes: only those of G0-G3 and
 * #. */
static void step_escape(struct tty_filter *f, struct out *o, unsigned char c)
{
    if (c == 033) {
        enter(f, TTY_ESC);
    } else if (c < 0x20) { /* a terminal obeys it and waits on: so do we, but a line end ends the
                              doubt */
        if (c == '\n' || c == '\r') {
            enter(f, TTY_TEXT);
            put(o, c);
        }
    } else if (c == 0x7f) {
        return;
    } else if (c > 0x7f) {
        enter(f, TTY_TEXT);
        step_text(f, o, c);
    } else if (c < 0x30) {
        if (!strchr("()*+#", c) || !hold(f, c))
            f->held[0] = '!', f->n_held = 1; /* spoilt: its end is awaited, nothing of it passes */
    } else if (f->n_held == 0 && opens_string(c)) {
        enter(f, TTY_STRING);
    } else if (f->n_held == 0 && c == '[') {
        enter(f, TTY_CSI);
    } else {
        bool spoilt = f->n_held && f->held[0] == '!';

        if (!spoilt && !(f->n_held == 0 && (c == 'c' || c == 'Z'))) /* reset, identify */
            release(f, o, false, c);
        enter(f, TTY_TEXT);
    }
}

static void step_csi(struct tty_filter *f, struct out *o, unsigned char c)
{
    if (c == 033) {
        enter(f, TTY_ESC);
    } else if (c < 0x20 || c >= 0x7f) {
        if (c != 0x7f)
            f->n_held = sizeof(f->held) + 1; /* spoilt */
    } else if (c >= 0x40) {
        /* t: window operations and reports; n, c: the terminal would type an answer. */
        if (f->n_held <= sizeof(f->held) && c != 't' && c != 'n' && c != 'c')
            release(f, o, true, c);
        enter(f, TTY_TEXT);
    } else if (f->n_held > sizeof(f->held) || !hold(f, c)) {
        f->n_held = sizeof(f->held) + 1;
    }
}

static void step_string(struct tty_filter *f, unsigned char c)
{
    if ((f->state == TTY_STRING_ESC && c == '\\') || (f->state == TTY_STRING_C2 && c == 0x9c))
        enter(f, TTY_TEXT);
    else if (c == 7 || c == 030 || c == 032) /* BEL; CAN and SUB cut it short */
        enter(f, TTY_TEXT);
    else
        f->state = c == 033 ? TTY_STRING_ESC : c == 0xc2 ? TTY_STRING_C2 : TTY_STRING;
}

size_t tty_filter_apply(struct tty_filter *f, char *data, size_t len)
{
    /* A held-back sequence may come out of state: build beside, then copy. One chunk is bounded. */
    static char built[LIMIT_STREAM_CHUNK + TTY_FILTER_ROOM];
    struct out o = {built, 0};

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];

        switch (f->state) {
        case TTY_TEXT:
            step_text(f, &o, c);
            break;
        case TTY_C2:
            step_c2(f, &o, c);
            break;
        case TTY_ESC:
            step_escape(f, &o, c);
            break;
        case TTY_CSI:
            step_csi(f, &o, c);
            break;
        case TTY_STRING:
        case TTY_STRING_ESC:
        case TTY_STRING_C2:
            step_string(f, c);
            break;
        }
    }
    memcpy(data, built, o.len);
    return o.len;
}
