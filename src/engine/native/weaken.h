/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Negative controls. A probe proves something only if it reports an escape against a box that lacks
 * the defence. Such boxes come from builds of their own (`meson configure -Dweaken=seccomp`, in a
 * folder of their own): the one step named there is left out. A shipped build has no such switch;
 * tests/contain/no_weaken checks that.
 */
#include <stdbool.h>

#include "engine/native/plan.h"

static inline bool weaken_skips(enum step_op op)
{
#ifdef CLAWDEN_WEAKEN
    static const char marker[] __attribute__((used)) = "clawden-weakened-build";

    return op == CLAWDEN_WEAKEN;
#else
    (void)op;
    return false;
#endif
}
