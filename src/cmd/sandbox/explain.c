/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sandbox/sandbox.h"
int cmd_explain(struct options *o) { (void)o; return 0; }
