/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/redact.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

#define REDACTED "[redacted]"

static const char *const secret_parts[] = {
    "token",      "secret",      "passw",       "api_key",    "apikey",
    "api-key",    "private_key", "private-key", "credential", "authorization",
    "access_key", "access-key",  "cookie"};
/* How well-known tokens begin. */
static const char *const secret_starts[] = {
    "ghp_",  "gho_",  "ghs_", "ghu_", "github_pat_", "glpat-", "sk-",  "xoxb-",
    "xoxp-", "xoxa-", "AKIA", "ASIA", "eyJ",         "npm_",   "AIza", "-----BEGIN"};

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

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static bool is_alnum(char c)
{
    return is_name_byte(c) && c != '_' && c != '-' && c != '.';
}

/* Does a token of known shape begin here? It starts the word or stands behind no letter or digit.
 */
static bool is_token(const char *word, const char *p)
{
    if (p != word && is_alnum(p[-1]))
        return false;
    for (unsigned long i = 0; i < sizeof(secret_starts) / sizeof(*secret_starts); i++) {
        unsigned long n = strlen(secret_starts[i]);

        if (strncmp(p, secret_starts[i], n) == 0 && strlen(p) >= n + 8)
            return true;
    }
    return false;
}

/* Is p the sign behind a secret's name: TOKEN=, "password":, Authorization : ? */
static bool ends_secret_name(const char *word, const char *p)
{
    const char *end = p, *first;

    if (*p != '=' && *p != ':')
        return false;
    while (end > word && (end[-1] == ' ' || end[-1] == '"' || end[-1] == '\''))
        end--;
    for (first = end; first > word && is_name_byte(first[-1]);)
        first--;
    return redact_is_secret_name(first, (unsigned long)(end - first));
}

/* How much of the word may be seen: up to the first thing that looks like a secret. */
static unsigned long seen_length(const char *before, const char *word)
{
    if (before && before[0] == '-' && !strchr(before, '=') &&
        redact_is_secret_name(before, strlen(before)))
        return 0;
    if (contains(word, strlen(word), "bearer "))
        return 0;
    for (const char *p = word; *p; p++) {
        if (is_token(word, p))
            return (unsigned long)(p - word);
        if (ends_secret_name(word, p))
            return (unsigned long)(p - word) + 1;
    }
    return strlen(word);
}

/* user:password@ behind the :// at s: where the password begins and ends. A number there is a port.
 */
static bool find_password(const char *s, const char **ret_from, const char **ret_to)
{
    const char *end = s + strcspn(s, " \t\n\r\"'<>"), *colon, *at = NULL, *next = strstr(s, "://");

    if (next && next < end)
        end = next;
    colon = memchr(s, ':', (unsigned long)(end - s));
    for (const char *p = s; p < end; p++)
        if (*p == '@')
            at = p;
    if (!colon || !at || colon > at || colon[1 + strspn(colon + 1, "0123456789")] == '/')
        return false;
    *ret_from = colon + 1;
    *ret_to = at;
    return true;
}

/* The first len bytes of the word, every password of a URL left out. */
static void put_seen(struct buf *text, const char *word, unsigned long len)
{
    const char *p = word, *end = word + len;

    while (p < end) {
        const char *mark = strstr(p, "://"), *from, *to;

        if (!mark || mark + 3 > end || !find_password(mark + 3, &from, &to)) {
            const char *stop = mark && mark + 3 <= end ? mark + 3 : end;

            buf_append(text, p, (unsigned long)(stop - p));
            p = stop;
            continue;
        }
        if (from > end)
            from = end;
        buf_append(text, p, (unsigned long)(from - p));
        if (to >= end)
            return; /* what follows is hidden anyway */
        buf_puts(text, REDACTED);
        p = to;
    }
}

void redact_word(struct buf *out, const char *before, const char *word)
{
    unsigned long seen = seen_length(before, word);
    autobuf text;

    buf_init(&text, LIMIT_AUDIT_ARGV);
    put_seen(&text, word, seen);
    if (word[seen])
        buf_puts(&text, REDACTED);
    if (text.failed)
        buf_puts(out, "\"[cut]\"");
    else
        buf_json_string(out, text.data ? text.data : "", text.len);
}

void redact_argv(struct buf *b, char *const *argv)
{
    size_t first = b->len;

    buf_json_key(b, "argv");
    buf_puts(b, "[");
    for (size_t i = 0; argv[i]; i++) {
        if (i)
            buf_puts(b, ",");
        if (b->len - first > LIMIT_AUDIT_ARGV) {
            buf_puts(b, "\"[cut]\"");
            break;
        }
        if (strlen(argv[i]) > LIMIT_AUDIT_ARGV) /* a whole script: it would not be shown anyway */
            buf_puts(b, "\"[cut]\"");
        else
            redact_word(b, i ? argv[i - 1] : NULL, argv[i]);
    }
    buf_puts(b, "]");
}

void redact_env_names(struct buf *b, char *const *env)
{
    buf_json_key(b, "env");
    buf_puts(b, "[");
    for (size_t i = 0; env && env[i] && i < 64; i++) {
        if (i)
            buf_puts(b, ",");
        buf_json_string(b, env[i], strcspn(env[i], "="));
    }
    buf_puts(b, "]");
}
