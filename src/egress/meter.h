/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one connection has carried, and whether it may carry more. Its bytes count, as they are
 * read, for its box, for the host that it goes to, and for each call that was active when it began;
 * each has a budget, and the box a rate that all its connections share. Nobody can tell which of
 * several calls made a connection, so it counts for all of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dest;
struct relay_box;

#define LIMIT_METER_CALLS      4u                       /* ids in an event; more are left out */
#define LIMIT_METER_CALLS_TEXT (LIMIT_METER_CALLS * 33) /* with commas and a NUL */
#define LIMIT_METER_REASON     384u                     /* a sentence with a host in it */

struct meter {
    struct relay_box *box;
    struct dest *dest; /* NULL: none yet, or none at all */
    uint64_t begun;    /* calls that began later are not meant; 0: none is */
    uint64_t bytes_out, bytes_in;
    char calls[LIMIT_METER_CALLS_TEXT];
};

/* A connection of the box begins, in the presence of the calls that are active now. */
void meter_begin(struct meter *m, struct relay_box *b);
/* Bytes that may be read now; 0: not now, but soon. A budget is overrun by one byte at most. */
size_t meter_allowance(struct meter *m);
/* So many went. False: a budget is used up. */
bool meter_spend(struct meter *m, uint64_t n, bool out);
/* Is a budget overrun (or, for a connection that is to begin, used up)? In words, or NULL. */
const char *meter_overrun(const struct meter *m, char text[LIMIT_METER_REASON]);
const char *meter_used_up(const struct meter *m, char text[LIMIT_METER_REASON]);
