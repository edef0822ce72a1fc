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

void tty_set_size(int fd, uint16_t rows, uint16_t cols)
{
    struct winsize w = {.ws_row = rows, .ws_col = cols};

    (void)ioctl(fd, TIOCSWINSZ, &w);
}

/* ESC followed by one of these opens a string that ends with BEL or ESC \. */
static bool opens_string(unsigned char c)
{
    return c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_';
}

/* The same openers as single bytes, after the 0xC2 that UTF-8 puts before them. */
static bool opens_string_c1(unsigned char c)
{
    return c == 0x90 || c == 0x98 || c == 0x9d || c == 0x9e || c == 0x9f;
}

struct out {
    char *data;
    size_t len;
};

static void put(struct out *o, char c)
{
    o->data[o->len++] = c;
}

/* A CSI sequence is complete: window operations (…t) are dropped, the rest goes through. */
static void end_csi(struct tty_filter *f, struct out *o, char final)
{
    if (final != 't') {
        put(o, 033);
        put(o, '[');
        memcpy(o->data + o->len, f->csi, f->csi_len);
        o->len += f->csi_len;
        put(o, final);
    }
    f->csi_len = 0;
    f->state = TTY_TEXT;
}

static void step_text(struct tty_filter *f, struct out *o, unsigned char c)
{
    if (c == 033)
        f->state = TTY_ESC;
    else if (c == 0xc2)
        f->state = TTY_C1;
    else
        put(o, (char)c);
}

static void step_escape(struct tty_filter *f, struct out *o, unsigned char c)
{
    if (opens_string(c)) {
        f->state = TTY_STRING;
    } else if (c == '[') {
        f->state = TTY_CSI;
        f->csi_len = 0;
    } else {
        f->state = TTY_TEXT;
        if (c == 'c' || c == 'Z') /* reset and identify: the terminal answers or forgets */
            return;
        put(o, 033);
        put(o, (char)c);
    }
}

static void step_csi(struct tty_filter *f, struct out *o, unsigned char c)
{
    if (c >= 0x40 && c <= 0x7e)
        end_csi(f, o, (char)c);
    else if (c < 0x20 || c > 0x7e || f->csi_len == sizeof(f->csi))
        f->state = TTY_TEXT; /* malformed or endless: nothing of it passes */
    else
        f->csi[f->csi_len++] = (char)c;
}

size_t tty_filter_apply(struct tty_filter *f, char *data, size_t len)
{
    /* A held-back sequence may come out of state: build beside, then copy. One chunk is bounded. */
    static char built[LIMIT_RELAY_CHUNK + 64];
    struct out o = {built, 0};

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];

        switch (f->state) {
        case TTY_TEXT:
            step_text(f, &o, c);
            break;
        case TTY_C1:
            f->state = opens_string_c1(c) ? TTY_STRING : c == 0x9b ? TTY_CSI : TTY_TEXT;
            if (f->state == TTY_TEXT) {
                put(&o, (char)0xc2);
                put(&o, (char)c);
            }
            f->csi_len = 0;
            break;
        case TTY_ESC:
            step_escape(f, &o, c);
            break;
        case TTY_CSI:
            step_csi(f, &o, c);
            break;
        case TTY_STRING:
            if (c == 7)
                f->state = TTY_TEXT;
            else if (c == 033)
                f->state = TTY_STRING_ESC;
            break;
        case TTY_STRING_ESC:
            f->state = c == '\\' ? TTY_TEXT : TTY_STRING;
            break;
        }
    }
    memcpy(data, built, o.len);
    return o.len;
}
