/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions on their way. An id is a place of the table and a turn that grows each time the place
 * is used: an answer that was on its way when its question was given up finds another turn there,
 * and is dropped (F2).
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/front_internal.h"

void questions_init(struct questions *a)
{
    for (size_t i = 0; i < LIMIT_LINK_ASKS; i++) {
        a->free[i] = (uint16_t)(LIMIT_LINK_ASKS - 1 - i);
        a->ids[i] = (uint32_t)i;
    }
    a->n_free = LIMIT_LINK_ASKS;
}

static size_t place_of(uint32_t id)
{
    return id % LIMIT_LINK_ASKS;
}

/* 0: all are in use. */
static uint32_t enter(struct questions *all, struct question *a)
{
    size_t place;

    if (all->n_free == 0)
        return 0;
    place = all->free[--all->n_free];
    all->ids[place] += LIMIT_LINK_ASKS;
    if (all->ids[place] < LIMIT_LINK_ASKS) /* once around; 0 is no question */
        all->ids[place] += LIMIT_LINK_ASKS;
    all->at[place] = a;
    return all->ids[place];
}

static void leave(struct questions *all, struct question *a)
{
    size_t place = place_of(a->id);

    all->at[place] = NULL;
    all->free[all->n_free++] = (uint16_t)place;
    a->id = 0;
    a->owed = 0;
}

static struct question *find(struct questions *all, uint32_t id)
{
    size_t place = place_of(id);

    return all->ids[place] == id ? all->at[place] : NULL;
}

static json_t *make_question(const char *op, json_t *params, const struct asker *who)
{
    json_t *q = json_pack("{ss so ss ss}", "op", op, "params", params ? params : json_object(),
                          "peer", who->peer, "request", who->request);

    if (q && who->who.kind != CREDENTIAL_NONE &&
        json_object_set_new(q, who->who.kind == CREDENTIAL_TOKEN ? "token" : "cookie",
                            json_string(who->who.text)) < 0) {
        json_decref(q);
        return NULL;
    }
    return q;
}

bool question_send(struct front *f, struct question *a, const char *op, json_t *params,
                   const struct asker *who)
{
    json_t *q = make_question(op, params, who);
    autofree char *text = q ? json_dumps(q, JSON_COMPACT) : NULL;

    json_decref(q);
    if (!text)
        return false;
    a->front = f;
    a->owed = 0;
    a->id = enter(&f->asks, a);
    if (a->id == 0)
        return false;
    link_send(&f->link, LINK_ASK, a->id, text, strlen(text));
    explicit_bzero(text, strlen(text));
    return true;
}

void question_cancel(struct question *a)
{
    if (a->id == 0)
        return;
    link_send(&a->front->link, LINK_CANCEL, a->id, NULL, 0);
    leave(&a->front->asks, a);
}

void question_taken(struct question *a)
{
    uint32_t n = (uint32_t)a->owed;

    if (a->id && n)
        link_send(&a->front->link, LINK_TAKEN, a->id, &n, sizeof(n));
    a->owed = 0;
}

static void on_event(struct question *a, const char *data, size_t len)
{
    a->owed += len;
    if (a->on_event)
        a->on_event(a, data, len);
    else
        question_taken(a);
}

static void on_answer(struct front *f, struct question *a, const char *data, size_t len)
{
    uint16_t status;

    memcpy(&status, data, sizeof(status));
    leave(&f->asks, a);
    a->on_answer(a, status >= 200 && status < 600 ? status : 500, data + sizeof(status),
                 len - sizeof(status));
}

void questions_on_frame(struct front *f, enum link_kind kind, uint32_t id, const char *data,
                        size_t len)
{
    struct question *a = find(&f->asks, id);

    if (!a)
        return; /* given up meanwhile */
    if (kind == LINK_EVENT)
        on_event(a, data, len);
    else
        on_answer(f, a, data, len);
}
