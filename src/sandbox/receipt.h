/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What happened to a box, in the audit. A command that cannot be recorded is not run. */
#include "audit/audit.h"
#include "sandbox/sandbox.h"

/* "box.create", "box.start", "box.stop", "box.remove". */
int receipt_box(const char *event, const struct box_record *r, struct error *err);

/* One command: begin() before it runs, end() after. */
struct receipt {
    struct audit audit;
    const struct box_record *r;
    char *const *argv, *const *env;
    char call[17]; /* ties the two lines together */
};

int receipt_begin(struct receipt *x, struct error *err);
void receipt_end(struct receipt *x, const struct run_result *result);
