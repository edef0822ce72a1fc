/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The caller's terminal while a box uses it: raw mode and its way back, the window's size, and a
 * filter for what a box prints. The box has a terminal of its own; bytes are carried between the
 * two.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Puts the terminal into raw mode; tty_restore() puts back what was there. */
int tty_raw(int fd);
void tty_restore(void);
void tty_size(int fd, uint16_t *rows, uint16_t *cols);
/* Gives one terminal the size of another. */
void tty_copy_size(int from, int to);

/*
 * Takes out of a stream the sequences with which a program talks to the terminal rather than to its
 * reader: OSC (clipboard, title, links), DCS, APC, PM, SOS, window reports, character set and reset
 * commands, every C1 control. Colours, cursor movement and the rest of CSI pass. A sequence passes
 * only when it is complete and known; whatever it is not sure about it drops. State is kept across
 * calls.
 */
struct tty_filter {
    enum { TTY_TEXT, TTY_ESC, TTY_CSI, TTY_STRING, TTY_STRING_ESC, TTY_STRING_C2, TTY_C2 } state;
    char held[64]; /* behind ESC or ESC [, not decided yet */
    size_t n_held;
    unsigned more; /* bytes that the present UTF-8 character still needs */
};

/* Filters in place; the new length. data has room for TTY_FILTER_ROOM bytes more than len. */
#define TTY_FILTER_ROOM 128
size_t tty_filter_apply(struct tty_filter *f, char *data, size_t len);
