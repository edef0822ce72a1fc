/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/doors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "guard/guard.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"

#define PER_TURN   8
#define PAUSE_USEC 100000

struct doors {
    struct loop *loop;
    struct doors_options o;
    struct door *list, *closing; /* closing: what came by them ends when this round is over */
};

struct door {
    struct doors *all;
    struct door *next, **back;
    unsigned refs;
    char box[65];
    char id[TOKEN_ID], token[TOKEN_TEXT];
    struct loop_io io;
    struct loop_timer pause;
    struct loop_task end;
};

int doors_new(struct loop *l, const struct doors_options *o, struct doors **ret, struct error *err)
{
    struct doors *all = calloc(1, sizeof(*all));

    if (!all) {
        (void)close(o->channel);
        return error_sys(err, -ENOMEM, "make the table of doors");
    }
    all->loop = l;
    all->o = *o;
    *ret = all;
    return 0;
}

static void leave_list(struct door *d)
{
    if (!d->back)
        return;
    *d->back = d->next;
    if (d->next)
        d->next->back = d->back;
    d->back = NULL;
}

static void enter_list(struct door *d, struct door **list)
{
    d->next = *list;
    d->back = list;
    if (d->next)
        d->next->back = &d->next;
    *list = d;
}

static void door_free(struct door *d)
{
    leave_list(d);
    loop_forget(&d->end);
    loop_stop_timer(&d->pause);
    loop_remove(&d->io);
    close_fd(&d->io.fd);
    if (d->id[0])
        guard_door_close(d->all->o.guard, d->id);
    explicit_bzero(d->token, sizeof(d->token));
    free(d);
}

void doors_free(struct doors *all)
{
    if (!all)
        return;
    while (all->closing)
        door_free(all->closing);
    close_fd(&all->o.channel);
    free(all);
}

static void on_pause_over(struct loop_timer *t)
{
    (void)loop_change(&OF(struct door, pause, t)->io, EPOLLIN);
}

/* Who comes in is the front's to speak with; if it is too busy to take him, he is turned away. */
static void on_knock(struct loop_io *io, uint32_t events)
{
    struct door *d = OF(struct door, io, io);

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        autoclose int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0) {
            /* Whoever waits goes on waiting: without a pause the loop would do nothing else. */
            if (errno != EAGAIN && loop_set_timer(io->loop, &d->pause, PAUSE_USEC) == 0)
                (void)loop_change(io, 0);
            return;
        }
        (void)fd_send(d->all->o.channel, d->token, sizeof(d->token), &fd, 1);
    }
}

static int cut(struct door *d, const struct box_record *r, const struct guard_door *who,
               struct error *err)
{
    int fd = sandbox_listen_inside(r, DOOR_FOLDER, DOOR_NAME, err), e;

    if (fd < 0)
        return fd;
    d->io = (struct loop_io){.on_ready = on_knock, .fd = fd};
    d->pause.on_time = on_pause_over;
    e = guard_door(d->all->o.guard, who, d->token, d->id, err);
    if (e < 0)
        return e;
    e = loop_add(d->all->loop, &d->io, fd, EPOLLIN);
    return e < 0 ? error_sys(err, e, "wait for who comes out of box '%s'", r->name) : 0;
}

struct door *door_open(struct doors *all, const struct box_record *r, const struct guard_door *who)
{
    struct error err;
    struct door *d;

    for (d = all->list; d; d = d->next)
        if (strcmp(d->box, r->id) == 0) {
            d->refs++;
            return d;
        }
    d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->all = all;
    d->refs = 1;
    d->io.fd = -1;
    (void)snprintf(d->box, sizeof(d->box), "%s", r->id);
    if (cut(d, r, who, &err) < 0) {
        log_debug("%s: its commands cannot ask for a sibling", err.msg);
        door_free(d);
        return NULL;
    }
    enter_list(d, &all->list);
    return d;
}

static void on_end(struct loop_task *t)
{
    struct door *d = OF(struct door, end, t);
    struct doors *all = d->all;
    char id[TOKEN_ID];

    (void)snprintf(id, sizeof(id), "%s", d->id);
    door_free(d);
    all->o.on_closed(all->o.arg, id);
}

/* Whoever closes it may be at work for somebody who came by it. */
void door_close(struct door *d)
{
    if (!d || --d->refs)
        return;
    leave_list(d);
    enter_list(d, &d->all->closing);
    loop_stop_timer(&d->pause);
    loop_remove(&d->io);
    close_fd(&d->io.fd);
    d->end.on_turn = on_end;
    loop_later(d->all->loop, &d->end);
}
