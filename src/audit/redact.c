/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/redact.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

#define REDACTED "[redacted]"

static const char *const secret_parts[] = {"token",   "secret",     "passw",       "api_key", "apikey",
                                           "api-key", "private_key", "private-key", "credential",
                                           "authorization", "access_key", "access-key", "cookie"};
/* How well-known tokens begin. */
static const char *const secret_starts[] = {"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-",
                                            "xoxb-", "xoxp-", "xoxa-", "AKIA", "ASIA", "eyJ", "npm_", "AIza",
                                            "-----BEGIN"};

static bool contains(const char *text, unsigned long len, const char *part)
{
    unsigned long n = strlen(part);

    for (unsigned long i = 0; i + n <= len; i++)
        if (strncasecmp(text + i, part, n) == 0)
            return true;
    return false;
}

bool redact_is_secret_name(const char *name, unsigned long len)
{
    for (unsigned long i = 0; i < sizeof(secret_parts) / sizeof(*secret_parts); i++)
        if (contains(name, len, secret_parts[i]))
            return true;
    return false;
}

/* Where a token of known shape begins in the word, or NULL. It starts the word or follows a separator. */
static const char *find_token(const char *word)
{
    for (const char *p = word; *p; p++) {
        if (p != word && !strchr("=:/@ ,;'\"", p[-1]))
            continue;
        for (unsigned long i = 0; i < sizeof(secret_starts) / sizeof(*secret_starts); i++) {
            unsigned long n = strlen(secret_starts[i]);

            if (strncmp(p, secret_starts[i], n) == 0 && strlen(p) >= n + 8)
                return p;
        }
    }
    return NULL;
}

/* user:password@ of a URL: where the password begins and ends. */
static bool find_userinfo(const char *word, const char **ret_from, const char **ret_to)
{
    const char *s = strstr(word, "://"), *at, *colon;

    if (!s)
        return false;
    s += 3;
    at = strchr(s, '@');
    colon = strchr(s, ':');
    if (!at || !colon || colon > at || memchr(s, '/', (unsigned long)(at - s)))
        return false;
    *ret_from = colon + 1;
    *ret_to = at;
    return true;
}

static unsigned long kept_length(const char *before, const char *word)
{
    const char *sign = word + strcspn(word, "=:"), *token;

    if (before && before[0] == '-' && !strchr(before, '=') && redact_is_secret_name(before, strlen(before)))
        return 0;
    if (*sign && redact_is_secret_name(word, (unsigned long)(sign - word)))
        return (unsigned long)(sign - word) + 1;
    if (contains(word, strlen(word), "bearer "))
        return 0;
    token = find_token(word);
    return token ? (unsigned long)(token - word) : strlen(word);
}

void redact_word(struct buf *out, const char *before, const char *word)
{
    unsigned long keep = kept_length(before, word), len = strlen(word);
    const char *from, *to;
    autobuf text;

    buf_init(&text, LIMIT_AUDIT_ARGV);
    if (keep == len && find_userinfo(word, &from, &to)) {
        buf_append(&text, word, (unsigned long)(from - word));
        buf_puts(&text, REDACTED);
        buf_puts(&text, to);
    } else {
        buf_append(&text, word, keep);
        if (keep < len)
            buf_puts(&text, REDACTED);
    }
    if (text.failed)
        buf_puts(out, "\"[cut]\"");
    else
        buf_json_string(out, text.data ? text.data : "", text.len);
}
