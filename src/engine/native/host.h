/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Looks at the host before a plan is made. Reads only. */
#include "engine/native/plan.h"

struct error;

/* Everything but ids' range and cgroups, which belong to one box. */
int host_look(const struct box_spec *spec, struct host_facts *ret, struct error *err);
