/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What of the host a box may see: checked when it is created, so that the person hears of it, and
 * again at each start, on the objects that are opened then.
 */
#include "base/limits.h"
#include "sandbox/sandbox.h"

/*
 * Makes the record's mounts canonical: sources without links, targets normalised, outer mounts
 * before those inside them, the usual tmpfs mounts added. Binds whose source is missing are dropped
 * with a warning.
 */
int places_check(struct box_record *r, struct error *err);

struct places {
    struct box_place list[LIMIT_PLACES];
    size_t n;
};

/* Opens them, makes the mount points that lie in other binds. */
int places_open(const struct box_record *r, struct places *ret, struct error *err);
void places_close(struct places *p);
