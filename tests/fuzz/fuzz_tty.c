/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal filter: whatever a box prints, however it is cut, what comes out never makes a
 * terminal see a string introducer (OSC, DCS, APC, PM, SOS) or a window operation. Judged by a
 * small terminal of our own (after Paul Williams' parser for the DEC terminals), not by looking for
 * bytes.
 *
 * First byte: how the rest is cut into pieces.
 */
#include "engine/tty.h"

#include "base/limits.h"
#include "tests/fuzz/fuzz.h"

enum look { GROUND, ESCAPE, ESCAPE_MIDDLE, CSI };

struct terminal {
    enum look state;
    bool half; /* 0xC2 was the last byte */
};

static bool is_introducer(unsigned char c)
{
    return c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_';
}

/* Feeds one character (C1 as 0x80-0x9F); what must never be seen, or NULL. */
static const char *see(struct terminal *t, unsigned char c)
{
    if (c >= 0x80 && c <= 0x9f) { /* the same as ESC and c - 0x40, anywhere */
        t->state = ESCAPE;
        c -= 0x40;
    } else if (c == 0x1b) {
        t->state = ESCAPE;
        return NULL;
    } else if (c == 0x18 || c == 0x1a) {
        t->state = GROUND;
        return NULL;
    } else if (c < 0x20 || c == 0x7f) {
        return NULL; /* executed in the middle of anything */
    }
    switch (t->state) {
    case GROUND:
        return NULL;
    case ESCAPE:
        t->state = c == '[' ? CSI : c >= 0x20 && c <= 0x2f ? ESCAPE_MIDDLE : GROUND;
        return is_introducer(c) ? "a string introducer" : c == 'c' ? "a reset" : NULL;
    case ESCAPE_MIDDLE:
        if (c >= 0x30)
            t->state = GROUND;
        return NULL;
    case CSI:
        if (c >= 0x40)
            t->state = GROUND;
        return c == 't' ? "a window operation" : NULL;
    }
    return NULL;
}

/* UTF-8: only C2 80..9F are control characters above ASCII; any other byte ends a half one. */
static const char *watch(const char *out, size_t len)
{
    struct terminal t = {0};

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)out[i];
        const char *bad = NULL;

        if (t.half && c >= 0x80 && c <= 0x9f)
            bad = see(&t, c);
        else if (c < 0x80)
            bad = see(&t, c);
        else if (t.state != GROUND && c != 0xc2)
            t.state = t.state == CSI ? CSI : GROUND; /* a printed character ends an escape */
        t.half = c == 0xc2;
        if (bad)
            return bad;
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t piece = size ? data[0] % 16 : 0, len = size ? size - 1 : 0, done = 0;
    struct tty_filter f = {0};
    char *out, *part;
    const char *bad;

    if (len > 16384)
        return 0;
    out = malloc(2 * len + TTY_FILTER_ROOM);
    if (!out)
        abort();
    for (size_t at = 0; at < len;) {
        size_t n = piece && piece < len - at ? piece : len - at, got;

        part = malloc(n + TTY_FILTER_ROOM); /* exactly what tty.h asks for */
        if (!part)
            abort();
        memcpy(part, data + 1 + at, n);
        got = tty_filter_apply(&f, part, n);
        PROPERTY(got <= n + TTY_FILTER_ROOM, "%zu bytes became %zu", n, got);
        memcpy(out + done, part, got);
        done += got;
        at += n;
        free(part);
    }
    PROPERTY(done <= len, "%zu bytes became %zu", len, done);
    bad = watch(out, done);
    PROPERTY(!bad, "the terminal sees %s", bad);
    free(out);
    return 0;
}
