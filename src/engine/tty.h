/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The caller's terminal while a box uses it: raw mode and its way back, the window's size, and a
 * filter for what a box prints. The box has a terminal of its own; bytes are carried between the two.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Puts the terminal into raw mode; tty_restore() puts back what was there. */
int tty_raw(int fd);
void tty_restore(void);
void tty_size(int fd, uint16_t *rows, uint16_t *cols);
void tty_set_size(int fd, uint16_t rows, uint16_t cols);

/*
 * Takes out of a stream the sequences with which a program talks to the terminal rather than to its
 * reader: OSC (clipboard, title, links), DCS, APC, PM, SOS, window reports. Colours, cursor movement and
 * everything else of CSI pass. State is kept across calls.
 */
struct tty_filter {
    enum { TTY_TEXT, TTY_ESC, TTY_CSI, TTY_STRING, TTY_STRING_ESC, TTY_C1 } state;
    char csi[32]; /* a sequence that is not decided yet */
    size_t csi_len;
};

/* Filters in place; the new length. data has room for
 * sizeof(csi) + 4 bytes more than len: a sequence held back before may come out now. */
size_t tty_filter_apply(struct tty_filter *f, char *data, size_t len);
