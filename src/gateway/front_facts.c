/* SPDX-License-Identifier: Apache-2.0 */
/* What the back tells the front about the world: first before anything is served, and again after
 * each reload. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/front_internal.h"

static void free_list(char **list)
{
    for (char **s = list; s && *s; s++)
        free(*s);
    free(list);
}

void facts_done(struct facts *f)
{
    free_list(f->hosts);
    free_list(f->origins);
    free(f->version);
    *f = (struct facts){0};
}

static int read_list(const json_t *facts, const char *name, char ***ret, struct error *err)
{
    const json_t *list = json_object_get(facts, name), *one;
    size_t i, n = json_array_size(list);
    char **all;

    if (n > LIMIT_FRONT_HOSTS)
        return error_set(err, ERR_TOO_LARGE, "facts: '%s' has %zu entries, at most %u", name, n,
                         LIMIT_FRONT_HOSTS);
    all = calloc(n + 1, sizeof(*all));
    if (!all)
        return error_sys(err, -ENOMEM, "facts: '%s'", name);
    json_array_foreach(list, i, one)
    {
        all[i] = strdup(json_is_string(one) ? json_string_value(one) : "");
        if (!all[i]) {
            free_list(all);
            return error_sys(err, -ENOMEM, "facts: '%s'", name);
        }
    }
    *ret = all;
    return 0;
}

static int read_facts(const json_t *facts, struct facts *ret, struct error *err)
{
    const char *version = json_string_value(json_object_get(facts, "version"));
    int r = read_list(facts, "hosts", &ret->hosts, err);

    if (r >= 0)
        r = read_list(facts, "origins", &ret->origins, err);
    ret->metrics_open = json_is_true(json_object_get(facts, "metrics_open"));
    ret->version = strdup(version ? version : "0");
    if (r >= 0 && !ret->version)
        r = error_sys(err, -ENOMEM, "facts: 'version'");
    return r;
}

/* A pair that cannot be used is told, and the old one stays. */
static int read_tls(struct front *f, const json_t *facts, struct error *err)
{
    const json_t *tls = json_object_get(facts, "tls");
    const json_t *chain = json_object_get(tls, "certificate"), *key = json_object_get(tls, "key");

    if (!json_is_string(chain) || !json_is_string(key))
        return 0;
    if (!f->tls)
        return http_tls_new_pem(json_string_value(chain), json_string_value(key), &f->tls, err);
    return http_tls_replace_pem(f->tls, json_string_value(chain), json_string_value(key), err);
}

static int listen_all(struct front *f, struct error *err)
{
    for (size_t i = 0; i < f->o.n_listeners; i++) {
        struct front_listener *l = &f->listeners[i];
        const struct http_listen how = {.stream = l->tls ? &http_tls_stream : NULL,
                                        .context = f->tls,
                                        .is_secret = l->tls,
                                        .user = l};
        int r;

        if (l->tls && !f->tls)
            return error_set(err, ERR_INVALID,
                             "a listener is to have TLS, and there is no certificate");
        r = http_listen_fd(f->server, TAKE_FD(l->fd), &how, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int begin(struct front *f, const json_t *facts, struct error *err)
{
    const json_t *instance = json_object_get(facts, "instance");
    int r = front_mcp_new(f, json_string_value(json_object_get(instance, "mcp_key")), err);

    if (r >= 0 && f->server)
        r = listen_all(f, err);
    if (r < 0)
        return r;
    f->has_facts = true;
    link_send(&f->link, LINK_READY, 0, NULL, 0);
    if (f->stdio)
        stdio_start(f->stdio);
    return 0;
}

int facts_take(struct front *f, const char *text, size_t len, struct error *err)
{
    json_t *v = json_loadb(text, len, 0, NULL);
    struct facts new = {0};
    int r = json_is_object(v) ? read_facts(v, &new, err)
                              : error_set(err, ERR_INVALID, "facts are not a JSON object");

    if (r < 0) {
        facts_done(&new);
    } else {
        facts_done(&f->facts);
        f->facts = new;
        r = read_tls(f, v, err);
    }
    if (r >= 0 && !f->has_facts)
        r = begin(f, v, err);
    json_decref(v);
    return r;
}
