/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TLS 1.2 and 1.3 for the server's connections, by OpenSSL. One http_tls is a certificate with its
 * key; reading them anew is for connections that come after it, those that are there keep theirs.
 */
#include "base/cleanup.h"
#include "http/stream.h"

struct error;
struct http_tls;

/* PEM files: the certificate with its chain, and the key that belongs to it. */
int http_tls_new(const char *chain, const char *key, struct http_tls **ret, struct error *err);
/* From the same files. On failure the old ones stay in use. */
int http_tls_reload(struct http_tls *t, struct error *err);
/* The same from PEM texts, for who has no files; these are replaced, not reloaded. */
int http_tls_new_pem(const char *chain, const char *key, struct http_tls **ret, struct error *err);
int http_tls_replace_pem(struct http_tls *t, const char *chain, const char *key, struct error *err);
/* After the server: its connections still use it. */
void http_tls_free(struct http_tls *t);
DEFINE_AUTOPTR(http_tls)

/* For struct http_listen, with a http_tls as its context and is_secret set. */
extern const struct http_stream_ops http_tls_stream;
