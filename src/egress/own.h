/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is an address this very machine's? The kernel's routes say so, whatever the address looks like.
 */
#include <stdbool.h>

struct address;

/* True for everything that is delivered here, or to everybody on a link; and if the kernel does not
 * say. False for what is sent out, and for what cannot be reached at all. */
bool own_address(const struct address *a);
