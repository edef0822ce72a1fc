/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The hosts that a box has reached or wanted to reach, and what it did with each: for budgets while
 * it runs and for receipts afterwards. A host keeps its entry as long as the box lives. The box
 * chooses the names, so there is a maximum: what comes after it shares one entry, and with it one
 * budget. Hosts that were only refused get half of the table at most: a scan does not hide what
 * was reached. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/host.h"

#define LIMIT_RELAY_DESTS 1024u /* 340 KiB of a box at most */
#define DEST_OTHERS       "(others)"

struct dest {
    struct dest *next; /* of the same hash */
    uint32_t open;     /* connections at this moment */
    uint64_t connections, denied, bytes_out, bytes_in;
    char host[LIMIT_HOST_NAME + 1];
};

struct dests;

/* -ENOMEM. */
int dests_new(struct dests **ret);
void dests_free(struct dests *d);
DEFINE_AUTOPTR(dests)

/* The entry of a host, made if there is none, or the shared one. Stays where it is. */
struct dest *dests_reach(struct dests *d, const char *host);
/* The same for one that is refused. */
struct dest *dests_refuse(struct dests *d, const char *host);
/* Its own entry, or NULL. */
const struct dest *dests_find(const struct dests *d, const char *host);
/* In the order in which they came, then the shared one if it was used; NULL: no more. */
const struct dest *dests_at(const struct dests *d, size_t i);
