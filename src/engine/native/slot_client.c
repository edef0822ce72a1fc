/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/native.h"
int slot_client_start(const struct box_spec *spec, struct native_box *nb, struct error *err)
{
    (void)spec; (void)nb; (void)err;
    return 0;
}
void slot_client_finish(struct native_box *nb) { (void)nb; }
void slot_client_wake(void) {}
