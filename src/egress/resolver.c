/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. There is one struct resolver_name for each name that is asked for or whose
 * answer is kept. It has two parts, A and AAAA, which go from server to server independently of
 * each other, one ask at a time. When both have settled, or the time is over, the name is answered:
 * each lookup that waits for it is told in a turn of its own, from the loop. That is the last thing
 * such a turn does, so that on_done may free whatever it likes.
 *
 * I1: a name that is not answered has a lookup that waits for it; the last one that goes takes the
 *     questions with it.
 * I2: a name that is not in the tree is answered, and goes with the last lookup that waits for it.
 */
#include "egress/resolver.h"

#include <assert.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "egress/resolver_internal.h"

#define ROUNDS          2u  /* times that every server is asked */
#define TTL_MIN         1u  /* seconds: a connection is many lookups of one name in a moment */
#define TTL_MAX         60u /* who changes an address is not to wait long for us */
#define TTL_NONE        5u  /* of a name without addresses: it may just be about to be made */
#define MAX_ADDRESSES   (2 * LIMIT_DNS_ADDRESSES)
#define PORT_NAMESERVER 53u

static const struct resolver_times real_times = {
    .try_usec = 2000000,
    .grace_usec = 200000,
    .total_usec = 5000000,
    .second_usec = 1000000,
};

enum { V4, V6, N_PARTS };

struct part {
    struct resolver_ask ask; /* first: it is cast */
    struct resolver_name *name;
    unsigned tries;   /* servers asked so far, each round anew */
    unsigned current; /* the one that is asked now */
    unsigned refused; /* a bit for each that answered, but did not say what we need */
    bool settled;     /* nobody is asked any more */
    bool answered;    /* and rcode, n and ttl are set */
    enum dns_rcode rcode;
    size_t n;
    uint32_t ttl;
};

struct resolver_name {
    struct host host; /* first: the tree's key */
    struct resolver *resolver;
    struct resolver_lookup *waiting, **last;
    struct part parts[N_PARTS];
    struct loop_timer timer; /* until the answer is given, whatever it is then */
    bool in_tree, answered;
    /* The answer. Before: IPv4 from 0 on, IPv6 from LIMIT_DNS_ADDRESSES on. */
    enum dns_rcode rcode;
    size_t n;
    struct address addresses[MAX_ADDRESSES];
    uint64_t expires_usec;
    struct resolver_name *older, *newer; /* in the order of use, once it is answered */
};

struct resolver {
    struct loop *loop;
    struct resolver_server servers[LIMIT_RESOLVER_SERVERS];
    unsigned n_servers;
    struct resolver_times times;
    size_t n_pending; /* lookups */
    /* Balanced, not hashed: a box chooses the names, and must not choose where they collide. */
    void *tree;
    struct resolver_name *newest, *oldest; /* those whose answers are kept */
    size_t n_kept;
};

/* ---- names ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct host *)a)->text, ((const struct host *)b)->text);
}

static struct resolver_name *find(struct resolver *r, const struct host *host)
{
    void *node = tfind(host, &r->tree, compare);

    return node ? *(struct resolver_name **)node : NULL;
}

static void keep_newest(struct resolver_name *name)
{
    struct resolver *r = name->resolver;

    name->newer = NULL;
    name->older = r->newest;
    if (r->newest)
        r->newest->newer = name;
    else
        r->oldest = name;
    r->newest = name;
    r->n_kept++;
}

static void keep_no_more(struct resolver_name *name)
{
    struct resolver *r = name->resolver;

    if (name->newer)
        name->newer->older = name->older;
    else
        r->newest = name->older;
    if (name->older)
        name->older->newer = name->newer;
    else
        r->oldest = name->newer;
    r->n_kept--;
}

/* Takes it out of the tree, where nobody finds it any more; it goes unless a lookup still waits. */
static void drop(struct resolver_name *name)
{
    struct resolver *r = name->resolver;

    (void)tdelete(&name->host, &r->tree, compare);
    name->in_tree = false;
    if (name->answered)
        keep_no_more(name);
    if (!name->waiting)
        free(name);
}

static void stop_asking(struct resolver_name *name)
{
    for (int i = 0; i < N_PARTS; i++)
        resolver_ask_stop(&name->parts[i].ask);
    loop_stop_timer(&name->timer);
}

/* ---- lookups ---- */

static void attach(struct resolver_lookup *l, struct resolver_name *name)
{
    l->name = name;
    l->next = NULL;
    l->back = name->last;
    *name->last = l;
    name->last = &l->next;
    name->resolver->n_pending++;
}

/* The name may be gone then. */
static void detach(struct resolver_lookup *l)
{
    struct resolver_name *name = TAKE_PTR(l->name);

    *l->back = l->next;
    if (l->next)
        l->next->back = l->back;
    else
        name->last = l->back;
    name->resolver->n_pending--;
    if (name->waiting)
        return;
    if (!name->answered) {
        stop_asking(name);
        drop(name);
    } else if (!name->in_tree) {
        free(name);
    }
}

static uint32_t seconds_left(const struct resolver_name *name)
{
    uint64_t now = loop_now(name->resolver->loop), second = name->resolver->times.second_usec;

    return name->expires_usec <= now ? 0
                                     : (uint32_t)((name->expires_usec - now + second - 1) / second);
}

static void on_turn(struct loop_task *t)
{
    struct resolver_lookup *l =
        (struct resolver_lookup *)((char *)t - offsetof(struct resolver_lookup, task));
    const struct resolver_name *name = l->name;
    struct address list[MAX_ADDRESSES]; /* the name may go before it is read */
    enum dns_rcode rcode = name->rcode;
    uint32_t ttl = seconds_left(name);
    size_t n = name->n;

    memcpy(list, name->addresses, n * sizeof(list[0]));
    detach(l);
    l->on_done(l, rcode, list, n, ttl);
}

/* ---- answers ---- */

/* For how many seconds the answer is kept; 0: not at all. */
static uint32_t ttl_of(const struct resolver_name *name)
{
    uint32_t ttl = TTL_MAX;

    if (name->rcode == DNS_SERVFAIL)
        return 0;
    if (name->n == 0)
        return TTL_NONE;
    for (int i = 0; i < N_PARTS; i++) {
        const struct part *p = &name->parts[i];

        if (!p->answered) /* half an answer: the other half is asked for again soon */
            return TTL_MIN;
        if (p->n > 0 && p->ttl < ttl)
            ttl = p->ttl;
    }
    return ttl < TTL_MIN ? TTL_MIN : ttl;
}

static enum dns_rcode rcode_of(const struct resolver_name *name)
{
    const struct part *v4 = &name->parts[V4], *v6 = &name->parts[V6];

    if (name->n > 0)
        return DNS_NOERROR;
    if (!v4->answered || !v6->answered) /* what was not said may be an address */
        return DNS_SERVFAIL;
    return v4->rcode == DNS_NXDOMAIN && v6->rcode == DNS_NXDOMAIN ? DNS_NXDOMAIN : DNS_NOERROR;
}

/* With what is there. Calls nobody. */
static void conclude(struct resolver_name *name)
{
    struct resolver *r = name->resolver;
    size_t v4 = name->parts[V4].n, v6 = name->parts[V6].n;
    uint32_t ttl;

    stop_asking(name);
    memmove(name->addresses + v4, name->addresses + LIMIT_DNS_ADDRESSES,
            v6 * sizeof(name->addresses[0]));
    name->n = v4 + v6;
    name->rcode = rcode_of(name);
    ttl = ttl_of(name);
    name->expires_usec = loop_now(r->loop) + ttl * r->times.second_usec;
    name->answered = true;
    keep_newest(name);
    for (struct resolver_lookup *l = name->waiting; l; l = l->next)
        loop_later(r->loop, &l->task);
    if (ttl == 0)
        drop(name);
    else if (r->n_kept > LIMIT_RESOLVER_CACHE)
        drop(r->oldest);
}

static void on_time_over(struct loop_timer *t)
{
    conclude((struct resolver_name *)((char *)t - offsetof(struct resolver_name, timer)));
}

/* ---- questions ---- */

static void ask_next(struct part *p)
{
    struct resolver *r = p->name->resolver;

    while (p->tries < ROUNDS * r->n_servers) {
        p->current = p->tries++ % r->n_servers;
        if (p->refused & 1u << p->current)
            continue;
        if (resolver_ask_start(&p->ask, r->loop, &r->servers[p->current], r->times.try_usec) == 0)
            return;
    }
    p->settled = true;
}

static void take(struct part *p, const struct dns_answer *answer)
{
    size_t at = p == &p->name->parts[V4] ? 0 : LIMIT_DNS_ADDRESSES;

    memcpy(p->name->addresses + at, answer->addresses, answer->n * sizeof(answer->addresses[0]));
    p->n = answer->n;
    p->rcode = answer->rcode;
    p->ttl = answer->ttl;
    p->settled = p->answered = true;
}

/* The other type has only a little time left; it never gets more than it had. */
static void hurry(struct resolver_name *name)
{
    struct resolver *r = name->resolver;

    if (name->timer.at_usec > loop_now(r->loop) + r->times.grace_usec)
        (void)loop_set_timer(r->loop, &name->timer, r->times.grace_usec); /* moved: cannot fail */
}

static void on_ask_end(struct resolver_ask *a, const struct dns_answer *answer)
{
    struct part *p = (struct part *)a;
    struct resolver_name *name = p->name;

    if (answer && (answer->rcode == DNS_NOERROR || answer->rcode == DNS_NXDOMAIN)) {
        take(p, answer);
    } else {
        if (answer) /* the same again would not help */
            p->refused |= 1u << p->current;
        ask_next(p);
    }
    if (name->parts[V4].settled && name->parts[V6].settled)
        conclude(name);
    else if (p->n > 0)
        hurry(name);
}

static struct resolver_name *name_new(struct resolver *r, const struct host *host)
{
    struct resolver_name *name = calloc(1, sizeof(*name));

    if (!name)
        return NULL;
    name->host = *host;
    name->resolver = r;
    name->last = &name->waiting;
    name->timer.on_time = on_time_over;
    for (int i = 0; i < N_PARTS; i++) {
        struct part *p = &name->parts[i];

        p->name = name;
        p->ask.on_end = on_ask_end;
        p->ask.host = &name->host;
        p->ask.type = i == V4 ? DNS_TYPE_A : DNS_TYPE_AAAA;
    }
    if (!tsearch(&name->host, &r->tree, compare)) {
        free(name);
        return NULL;
    }
    name->in_tree = true;
    return name;
}

static int ask(struct resolver *r, struct resolver_lookup *l, const struct host *host)
{
    struct resolver_name *name = name_new(r, host);
    int result;

    if (!name)
        return -ENOMEM;
    result = loop_set_timer(r->loop, &name->timer, r->times.total_usec);
    if (result < 0) {
        drop(name);
        return result;
    }
    attach(l, name);
    ask_next(&name->parts[V4]);
    ask_next(&name->parts[V6]);
    if (name->parts[V4].settled && name->parts[V6].settled) /* no server can be reached at all */
        conclude(name);
    return 0;
}

int resolver_start(struct resolver *r, struct resolver_lookup *l, const struct host *host)
{
    struct resolver_name *name;

    assert(!l->name);
    if (host->kind != HOST_NAME || !host->text[0])
        return -EINVAL;
    if (r->n_pending >= LIMIT_RESOLVER_PENDING)
        return -EBUSY;
    l->task = (struct loop_task){.on_turn = on_turn};
    name = find(r, host);
    if (name && name->answered && name->expires_usec <= loop_now(r->loop)) {
        drop(name);
        name = NULL;
    }
    if (!name)
        return ask(r, l, host);
    attach(l, name);
    if (name->answered) {
        keep_no_more(name);
        keep_newest(name);
        loop_later(r->loop, &l->task);
    }
    return 0;
}

void resolver_cancel(struct resolver_lookup *l)
{
    if (!l->name)
        return;
    loop_forget(&l->task);
    detach(l);
}

/* ---- the resolver ---- */

int resolver_new_timed(struct loop *loop, const struct resolver_server *servers, size_t n,
                       const struct resolver_times *times, struct resolver **ret, struct error *err)
{
    struct resolver *r;

    if (n == 0 || n > LIMIT_RESOLVER_SERVERS)
        return error_set(err, ERR_INVALID, "make a resolver: %zu servers, not 1 to %u", n,
                         LIMIT_RESOLVER_SERVERS);
    for (size_t i = 0; i < n; i++)
        if ((servers[i].address.bits != 32 && servers[i].address.bits != 128) || !servers[i].port)
            return error_set(err, ERR_INVALID, "make a resolver: server %zu has no address or port",
                             i + 1);
    r = calloc(1, sizeof(*r));
    if (!r)
        return error_sys(err, -ENOMEM, "make a resolver");
    r->loop = loop;
    memcpy(r->servers, servers, n * sizeof(servers[0]));
    r->n_servers = (unsigned)n;
    r->times = *times;
    *ret = r;
    return 0;
}

int resolver_new(struct loop *loop, const struct resolver_server *servers, size_t n,
                 struct resolver **ret, struct error *err)
{
    return resolver_new_timed(loop, servers, n, &real_times, ret, err);
}

static bool same_servers(const struct resolver *r, const struct resolver_server *servers, size_t n)
{
    bool same = r->n_servers == n;

    for (size_t i = 0; same && i < n; i++)
        same = r->servers[i].port == servers[i].port &&
               r->servers[i].address.bits == servers[i].address.bits &&
               memcmp(r->servers[i].address.bytes, servers[i].address.bytes,
                      servers[i].address.bits / 8u) == 0;
    return same;
}

void resolver_change(struct resolver *r, const struct resolver_server *servers, size_t n)
{
    if (n == 0 || n > LIMIT_RESOLVER_SERVERS || same_servers(r, servers, n))
        return;
    memcpy(r->servers, servers, n * sizeof(servers[0]));
    r->n_servers = (unsigned)n;
    while (r->newest) /* another network, other answers */
        drop(r->newest);
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    assert(r->n_pending == 0);
    while (r->newest)
        drop(r->newest);
    assert(!r->tree); /* I1 */
    free(r);
}

/* ---- resolv.conf ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/*
 * As glibc reads it: the word stands at the line's very beginning, the address ends at a blank or a
 * comment, and what follows is not looked at.
 */
static bool parse_line(const char *line, size_t len, struct resolver_server *ret)
{
    static const char word[] = "nameserver";
    size_t at = sizeof(word) - 1, n = 0;

    if (len <= at || memcmp(line, word, at) != 0 || !is_blank(line[at]))
        return false;
    while (at < len && is_blank(line[at]))
        at++;
    while (at + n < len && !is_blank(line[at + n]) && !memchr("#;\r", line[at + n], 3))
        n++;
    ret->port = PORT_NAMESERVER;
    return address_parse(line + at, n, &ret->address);
}

size_t resolver_parse_conf(const char *text, size_t len, struct resolver_server *ret, size_t max)
{
    size_t n = 0;

    if (max > LIMIT_RESOLVER_SERVERS)
        max = LIMIT_RESOLVER_SERVERS;
    while (len > 0 && n < max) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) : len, step = end ? line + 1 : line;
        struct resolver_server server;

        if (parse_line(text, line, &server))
            ret[n++] = server;
        text += step;
        len -= step;
    }
    return n;
}
