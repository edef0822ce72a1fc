/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/create.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/request.h"
#include "sandbox/sandbox.h"

/* A denial is a name that is taken, or something that a box must not see. */
static int say_denied(const struct request *q, const struct error *why)
{
    if (why->code == ERR_EXISTS)
        return say_refused("Conflict. The container name \"/%s\" is already in use by container "
                           "\"%s\". You have to remove (or rename) that container to be able to "
                           "reuse that name.",
                           q->record->name, why->msg);
    return say_refused("%s", why->msg);
}

int create_box(struct request *q, int argc, char **argv, int *ret_status)
{
    struct error err;

    if (!request_read(q, argc, argv, ret_status))
        return -1;
    *ret_status = q->run ? STATUS_REFUSED : 1;
    if (!request_finish(q))
        return -1;
    if (sandbox_create(q->record, &err) < 0) {
        *ret_status = say_denied(q, &err);
        return -1;
    }
    for (size_t i = 0; q->notes && q->notes[i]; i++)
        say_note("%s", q->notes[i]);
    return 0;
}

int cmd_create(int argc, char **argv)
{
    struct request q = {0};
    int status = 0;

    if (create_box(&q, argc, argv, &status) >= 0) {
        puts(q.record->id);
        status = 0;
    }
    request_done(&q);
    return status;
}
