/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A belt around the parsers of what strangers send: from here on this process writes below the
 * store only and executes nothing, whatever a layer, a registry or a bug wants. Reading stays as it
 * is.
 */
#include "base/confine.h"

#include "cmd/pull/pull.h"

int confine(int store, struct error *err)
{
    const struct confine_place place = {store, CONFINE_WRITE};
    int r = confine_files(&place, 1, false, err);

    return r < 0 ? r : 0;
}
