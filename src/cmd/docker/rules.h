/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

struct box_record;

/*
 * What a new box may reach, as the user's settings say: asked of `clawden`, because this program
 * starts for every command and reads no configuration. False: a message was written.
 */
bool rules_ask(struct box_record *r);
