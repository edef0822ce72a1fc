/* SPDX-License-Identifier: Apache-2.0 */
/* pull NAME: manifest, config and layers from a registry (OCI distribution, docker v2). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cmd/pull/pull.h"

#define ACCEPT                                               \
    "Accept: application/vnd.oci.image.manifest.v1+json, "   \
    "application/vnd.oci.image.index.v1+json, "              \
    "application/vnd.docker.distribution.manifest.v2+json, " \
    "application/vnd.docker.distribution.manifest.list.v2+json"
#define MOST_WAIT_SEC 10u

struct registry {
    const struct options *o;
    struct reference ref;
    struct http *http;
    const char *scheme;
    char auth[AUTH_LINE];
    struct blob_writer *blob; /* what is being downloaded */
};

static void registry_done(struct registry *r)
{
    http_free(r->http);
    explicit_bzero(r->auth, sizeof(r->auth));
}

static int registry_open(struct registry *g, const struct options *o, struct error *err)
{
    bool plain;
    int r;

    g->o = o;
    r = reference_parse(o->what, &g->ref, err);
    if (r < 0)
        return r;
    if (!g->ref.registry[0])
        return error_set(err, ERR_INVALID,
                         "'%s' names no registry: write HOST/%s, with the host that serves it",
                         o->what, o->what);
    plain = o->plain_http || host_is_loopback(g->ref.registry);
    g->scheme = plain ? "http" : "https";
    return http_new(o, plain, &g->http, err);
}

/* What a status means to the person who typed the name. */
static int bad_status(const struct registry *g, const char *what, long status, struct error *err)
{
    if (status == 404)
        return error_set(err, ERR_NOT_FOUND, "'%s' has no %s: check the name and the tag",
                         g->ref.registry, what);
    if (status == 401 || status == 403)
        return error_set(err, ERR_DENIED,
                         "'%s' does not give us %s (HTTP %ld): check the name, and the password in "
                         "~/.docker/config.json or CLAWDEN_REGISTRY_AUTH_FILE",
                         g->ref.registry, what, status);
    return error_set(err, ERR_SYS, "'%s' answers HTTP %ld for %s: try again later", g->ref.registry,
                     status, what);
}

static int pause_before(unsigned attempt, unsigned asked, struct error *err)
{
    unsigned ms = asked ? (asked < MOST_WAIT_SEC ? asked : MOST_WAIT_SEC) * 1000 : 250u << attempt;

    for (unsigned i = 0; i < ms / 50; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        if (check_interrupt(err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/*
 * One request with everything around it: a token if the registry wants one, a few more tries if
 * that may help. r->from is taken anew for each try.
 */
static int registry_get(struct registry *g, struct http_request *r, const char *what,
                        struct http_answer *ret, struct error *err)
{
    bool asked = false;
    int e = 0;

    for (unsigned attempt = 0; attempt < LIMIT_PULL_TRIES; attempt++) {
        if (attempt && pause_before(attempt, ret->retry_after, err) < 0)
            return -(int)err->code;
        r->auth = g->auth;
        if (g->blob)
            r->from = g->blob->got;
        e = http_get(g->http, r, ret, err);
        if (e >= 0 && (ret->status == 200 || ret->status == 206))
            return 0;
        if (e >= 0 && ret->status == 416 && g->blob) { /* what we have is not a part of it */
            e = blob_writer_restart(g->blob, err);
            if (e < 0)
                return e;
            continue;
        }
        if (e >= 0 && ret->status == 401 && ret->challenge[0] && !asked) {
            asked = true;
            e = auth_answer(g->http, g->o, g->ref.registry, g->ref.repository, ret->challenge,
                            g->auth, err);
            if (e < 0)
                return e;
            attempt--; /* the answer to a challenge is no second try */
            ret->retry_after = 0;
            continue;
        }
        if (!ret->transient)
            break;
    }
    return e < 0 ? e : bad_status(g, what, ret->status, err);
}

/* ---- documents ---- */

static int keep_text(void *ctx, const void *data, size_t len, struct error *err)
{
    struct buf *b = ctx;

    buf_append(b, data, len);
    return b->failed ? error_set(err, ERR_TOO_LARGE,
                                 "the registry sends more than %zu bytes: "
                                 "refused",
                                 b->max)
                     : 0;
}

static int begin_text(void *ctx, bool resumed, struct error *err)
{
    (void)resumed, (void)err;
    buf_clear(ctx);
    buf_append(ctx, "", 0);
    return 0;
}

/* A manifest by tag or digest, or the config: into memory. */
static int get_text(struct registry *g, const char *kind, const char *which, const char *what,
                    struct buf *ret, struct http_answer *answer, struct error *err)
{
    char url[1024];
    struct http_request r = {.url = url,
                             .accept = strcmp(kind, "manifests") == 0 ? ACCEPT : NULL,
                             .on_start = begin_text,
                             .on_data = keep_text,
                             .ctx = ret};

    (void)snprintf(url, sizeof(url), "%s://%s/v2/%s/%s/%s", g->scheme, g->ref.registry,
                   g->ref.repository, kind, which);
    return registry_get(g, &r, what, answer, err);
}

/* The same with a digest that is known. */
static int get_known(struct registry *g, const char *kind, const struct descriptor *d,
                     const char *what, struct buf *ret, struct http_answer *answer,
                     struct error *err)
{
    char which[80], hex[SHA256_HEX];
    int r;

    (void)snprintf(which, sizeof(which), "sha256:%s", d->hex);
    r = get_text(g, kind, which, what, ret, answer, err);
    if (r < 0)
        return r;
    sha256_hex(ret->data, ret->len, hex);
    if (strcmp(hex, d->hex) != 0 || (d->size != UINT64_MAX && ret->len != d->size))
        return error_set(
            err, ERR_INVALID,
            "%s sha256:%.12s... came as %zu bytes with the digest sha256:%.12s...: the "
            "registry or the way to it is broken, the image is refused",
            what, d->hex, ret->len, hex);
    return 0;
}

static int get_first(struct registry *g, struct buf *ret, struct http_answer *answer,
                     struct error *err)
{
    struct descriptor d = {.size = UINT64_MAX};
    char hex[SHA256_HEX], said[DIGEST_HEX];
    int r;

    if (g->ref.digest[0]) {
        memcpy(d.hex, g->ref.digest, DIGEST_HEX);
        return get_known(g, "manifests", &d, "manifest", ret, answer, err);
    }
    r = get_text(g, "manifests", g->ref.tag, "such image", ret, answer, err);
    if (r < 0 || !answer->digest[0])
        return r;
    sha256_hex(ret->data, ret->len, hex);
    if (!digest_parse(answer->digest, said) || strcmp(said, hex) != 0)
        return error_set(err, ERR_INVALID,
                         "the manifest has the digest sha256:%.12s..., the registry says '%.40s': "
                         "the image is refused",
                         hex, answer->digest);
    return 0;
}

/* The manifest for this machine, whether or not an index stands before it. */
static int get_manifest(struct registry *g, struct buf *text, struct manifest *ret,
                        char index_hex[DIGEST_HEX], struct error *err)
{
    struct http_answer answer;
    struct descriptor d;
    enum media kind;
    int r = get_first(g, text, &answer, err);

    if (r >= 0)
        r = manifest_kind(text->data, text->len, media_parse(answer.type), &kind, err);
    if (r < 0)
        return r;
    if (kind == MEDIA_INDEX) {
        sha256_hex(text->data, text->len, index_hex);
        r = index_choose(text->data, text->len, NULL, &d, err);
        if (r >= 0)
            r = get_known(g, "manifests", &d, "manifest", text, &answer, err);
        if (r >= 0)
            r = manifest_kind(text->data, text->len, d.media, &kind, err);
        if (r >= 0 && kind != MEDIA_MANIFEST)
            r = error_set(err, ERR_INVALID, "the index names another index: refused");
    }
    return r < 0 ? r : manifest_parse(text->data, text->len, ret, err);
}

/* ---- layers ---- */

static int begin_blob(void *ctx, bool resumed, struct error *err)
{
    struct registry *g = ctx;

    return resumed || g->blob->got == 0 ? 0 : blob_writer_restart(g->blob, err);
}

static int add_to_blob(void *ctx, const void *data, size_t len, struct error *err)
{
    struct registry *g = ctx;
    int r = blob_writer_add(g->blob, data, len, err);

    progress_say(&g->blob->work->progress, "download", g->blob->hex, g->blob->got, g->blob->size);
    return r;
}

static int download(struct registry *g, struct blob_writer *b, const struct descriptor *d,
                    struct error *err)
{
    char url[1024], what[40];
    struct http_answer answer;
    struct http_request r = {.url = url, .on_start = begin_blob, .on_data = add_to_blob, .ctx = g};
    int e;

    if (b->got == d->size && d->size)
        return 0; /* all of it was there */
    (void)snprintf(url, sizeof(url), "%s://%s/v2/%s/blobs/sha256:%s", g->scheme, g->ref.registry,
                   g->ref.repository, d->hex);
    (void)snprintf(what, sizeof(what), "blob sha256:%.12s", d->hex);
    g->blob = b;
    e = registry_get(g, &r, what, &answer, err);
    g->blob = NULL;
    return e;
}

static int fetch_from_registry(void *ctx, struct work *w, const struct descriptor *d,
                               struct error *err)
{
    /* Twice: what an earlier pull left may be damaged, then it is dropped and got afresh. */
    for (int i = 0;; i++) {
        cleanup_(blob_writer_done) struct blob_writer b = {.fd = -1};
        int r = blob_writer_resume(&b, w, d->hex, d->size, err);
        bool resumed = r == 0 && b.got > 0;

        if (r != 0)
            return r < 0 ? r : 0;
        if (resumed)
            log_debug("resume blob %.12s at %llu", d->hex, (unsigned long long)b.got);
        r = download(ctx, &b, d, err);
        if (r >= 0)
            r = blob_writer_commit(&b, err);
        if (r == -ERR_INVALID)
            blob_writer_forget(&b);
        if (r >= 0 || r != -ERR_INVALID || !resumed || i)
            return r;
    }
}

/* ---- the verb ---- */

static int name_pulled(struct work *w, const struct registry *g, const struct config *c,
                       const struct manifest *m, const char *index_hex, struct error *err)
{
    struct reference ref = g->ref;
    char name[REFERENCE_TEXT];
    int r;

    reference_format(&ref, name);
    r = work_name(w, c, m, name, err);
    if (r >= 0 && index_hex[0]) { /* the digest that people see at the registry */
        char by_index[REFERENCE_TEXT];

        memcpy(ref.digest, index_hex, DIGEST_HEX);
        reference_format(&ref, by_index);
        if (by_index[0])
            r = image_store_set_name(&w->store, by_index, c->id, err);
    }
    if (r >= 0 && w->o->name)
        r = work_name(w, c, m, w->o->name, err);
    if (r >= 0)
        work_report(w, c, w->o->name ? w->o->name : name);
    return r;
}

static int pull_image(struct work *w, struct registry *g, struct error *err)
{
    cleanup_(config_done) struct config c = {0};
    static struct manifest m;
    char index_hex[DIGEST_HEX] = "";
    struct http_answer answer;
    autobuf manifest, config;
    int r;

    buf_init(&manifest, LIMIT_IMAGE_MANIFEST);
    buf_init(&config, LIMIT_IMAGE_CONFIG);
    r = get_manifest(g, &manifest, &m, index_hex, err);
    if (r >= 0)
        r = get_known(g, "blobs", &m.config, "config", &config, &answer, err);
    if (r >= 0)
        r = config_parse(config.data, config.len, &c, err);
    if (r >= 0)
        r = blob_put(w, m.hex, manifest.data, manifest.len, err);
    if (r >= 0)
        r = blob_put(w, c.id, config.data, config.len, err);
    if (r >= 0)
        r = assemble(w, &m, &c, fetch_from_registry, g, err);
    return r < 0 ? r : name_pulled(w, g, &c, &m, index_hex, err);
}

int pull(const struct options *o, struct error *err)
{
    cleanup_(work_end) struct work w = {.store = {.fd = -1}, .lock = -1, .temp = -1};
    cleanup_(registry_done) struct registry g = {.o = o};
    int r = registry_open(&g, o, err);

    if (r >= 0)
        r = work_begin(&w, o, err);
    if (r >= 0)
        r = pull_image(&w, &g, err);
    /* What came right before the way broke is kept for the next try; a refused image is not. */
    w.drop_blobs = r == -ERR_INVALID || r == -ERR_TOO_LARGE || r == -ERR_UNSUPPORTED;
    return r < 0 ? error_wrap(err, "pull '%.200s'", o->what) : 0;
}
