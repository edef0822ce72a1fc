/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u /* crafted collisions cost a walk over the whole table, which is short */

struct dests {
    struct dest *buckets[BUCKETS];
    struct dest *all[LIMIT_RELAY_DESTS];
    size_t n;
    struct dest others;
    bool used_others;
};

int dests_new(struct dests **ret)
{
    struct dests *d = calloc(1, sizeof(*d));

    if (!d)
        return -ENOMEM;
    (void)snprintf(d->others.host, sizeof(d->others.host), DEST_OTHERS);
    *ret = d;
    return 0;
}

void dests_free(struct dests *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++)
        free(d->all[i]);
    free(d);
}

static size_t bucket_of(const char *host)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *host; host++)
        h = (h ^ (unsigned char)*host) * 16777619u;
    return h % BUCKETS;
}

static struct dest *find(const struct dests *d, const char *host)
{
    for (struct dest *e = d->buckets[bucket_of(host)]; e; e = e->next)
        if (strcmp(e->host, host) == 0)
            return e;
    return NULL;
}

static struct dest *get(struct dests *d, const char *host, size_t max)
{
    struct dest *e = find(d, host), **bucket = &d->buckets[bucket_of(host)];

    if (e)
        return e;
    e = d->n < max ? calloc(1, sizeof(*e)) : NULL;
    if (!e) {
        d->used_others = true;
        return &d->others;
    }
    (void)snprintf(e->host, sizeof(e->host), "%s", host);
    e->next = *bucket;
    *bucket = e;
    d->all[d->n++] = e;
    return e;
}

struct dest *dests_reach(struct dests *d, const char *host)
{
    return get(d, host, LIMIT_RELAY_DESTS);
}

struct dest *dests_refuse(struct dests *d, const char *host)
{
    return get(d, host, LIMIT_RELAY_DESTS / 2);
}

const struct dest *dests_find(const struct dests *d, const char *host)
{
    return find(d, host);
}

const struct dest *dests_at(const struct dests *d, size_t i)
{
    if (i < d->n)
        return d->all[i];
    return i == d->n && d->used_others ? &d->others : NULL;
}
