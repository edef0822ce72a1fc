/* SPDX-License-Identifier: Apache-2.0 */
#include "image/reference.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define UPPER   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DECIMAL "0123456789"

bool digest_is_hex(const char *text, size_t len)
{
    return len >= 1 && len <= 64 && strspn(text, DECIMAL "abcdef") >= len;
}

bool digest_parse(const char *text, char ret_hex[DIGEST_HEX])
{
    if (strncmp(text, "sha256:", 7) != 0 || strlen(text) != 7 + 64 || !digest_is_hex(text + 7, 64))
        return false;
    memcpy(ret_hex, text + 7, DIGEST_HEX);
    return true;
}

/* One part of a repository: words of [a-z0-9] with '.', '_', '__' or dashes between them. */
static bool is_part(const char *s, size_t len)
{
    const char *end = s + len;

    for (;;) {
        size_t word = strspn(s, LOWER DECIMAL), gap;

        if (word == 0)
            return false;
        s += word;
        if (s >= end)
            return s == end;
        gap = strspn(s, "-");
        if (gap == 0)
            gap = s[0] == '.' ? 1 : s[0] == '_' ? (s[1] == '_' ? 2 : 1) : 0;
        if (gap == 0)
            return false;
        s += gap;
    }
}

static bool is_repository(const char *s)
{
    for (;;) {
        size_t n = strcspn(s, "/");

        if (!is_part(s, n))
            return false;
        if (!s[n])
            return true;
        s += n + 1;
    }
}

/* A name, an IPv4 address or [IPv6], and a port. */
static bool is_host(const char *s)
{
    size_t n;

    if (s[0] == '[') {
        n = 1 + strspn(s + 1, DECIMAL "abcdefABCDEF:.");
        if (n < 3 || s[n++] != ']')
            return false;
    } else {
        n = strspn(s, LOWER UPPER DECIMAL ".-");
        if (n == 0 || strchr(".-", s[0]) || strchr(".-", s[n - 1]) || strstr(s, ".."))
            return false;
    }
    if (s[n] == ':') {
        size_t digits = strspn(s + n + 1, DECIMAL);

        if (digits < 1 || digits > 5)
            return false;
        n += 1 + digits;
    }
    return s[n] == 0;
}

static bool is_tag(const char *s)
{
    size_t n = strlen(s);

    return n >= 1 && n <= 128 && !strchr(".-", s[0]) && strspn(s, LOWER UPPER DECIMAL "_.-") == n;
}

/* The first part is a host if it could not be a part of a repository, or is "localhost". */
static void split_registry(struct reference *ref)
{
    char *slash = strchr(ref->repository, '/');
    size_t n;

    if (!slash)
        return;
    n = (size_t)(slash - ref->repository);
    memcpy(ref->registry, ref->repository, n);
    ref->registry[n] = 0;
    if (strpbrk(ref->registry, ".:[") || strcmp(ref->registry, "localhost") == 0)
        memmove(ref->repository, slash + 1, strlen(slash));
    else
        ref->registry[0] = 0;
}

int reference_parse(const char *text, struct reference *ret, struct error *err)
{
    struct reference ref = {0};
    char *at, *colon;

    if (strlen(text) > LIMIT_IMAGE_NAME)
        return error_set(err, ERR_TOO_LARGE, "the image name has %zu bytes: at most %u",
                         strlen(text), LIMIT_IMAGE_NAME);
    memcpy(ref.repository, text, strlen(text) + 1);
    at = strchr(ref.repository, '@');
    if (at) {
        *at = 0;
        if (!digest_parse(at + 1, ref.digest))
            return error_set(err, ERR_INVALID,
                             "image '%s': what stands behind '@' is no digest: write sha256: and "
                             "64 digits of 0-9a-f",
                             text);
    }
    colon = strrchr(ref.repository, ':');
    if (colon && !strchr(colon, '/')) {
        *colon = 0;
        if (!is_tag(colon + 1))
            return error_set(err, ERR_INVALID,
                             "image '%s': '%s' is no tag: at most 128 of A-Za-z0-9_.-", text,
                             colon + 1);
        memcpy(ref.tag, colon + 1, strlen(colon + 1) + 1);
    } else if (!at) {
        memcpy(ref.tag, "latest", sizeof("latest"));
    }
    split_registry(&ref);
    if (ref.registry[0] && !is_host(ref.registry))
        return error_set(err, ERR_INVALID, "image '%s': '%s' is no host of a registry", text,
                         ref.registry);
    if (!is_repository(ref.repository))
        return error_set(err, ERR_INVALID,
                         "image '%s': write NAME[:TAG], with a name of a-z0-9 and single . _ - /",
                         text);
    if (strlen(ref.registry) + strlen(ref.repository) + strlen(ref.tag) + 2 > LIMIT_IMAGE_NAME)
        return error_set(err, ERR_TOO_LARGE,
                         "the image name '%s' is too long with its tag: at "
                         "most %u bytes",
                         text, LIMIT_IMAGE_NAME);
    *ret = ref;
    return 0;
}

void reference_format(const struct reference *ref, char text[REFERENCE_TEXT])
{
    int n = snprintf(text, REFERENCE_TEXT, "%s%s%s%s%s", ref->registry, ref->registry[0] ? "/" : "",
                     ref->repository, ref->digest[0] ? "@sha256:" : ":",
                     ref->digest[0] ? ref->digest : ref->tag);

    if (n < 0 || n >= (int)REFERENCE_TEXT)
        text[0] = 0; /* a digest was added to a long name: cut, it would name another image */
}

/* What may stand in a file name as it is; the rest becomes %XX. */
static bool is_plain(char c)
{
    return c && strchr(LOWER UPPER DECIMAL "._-", c);
}

int reference_encode(const char *text, char *file, size_t size)
{
    size_t n = 0;

    for (; *text; text++) {
        if (n + 4 > size)
            return -ENAMETOOLONG;
        if (is_plain(*text))
            file[n++] = *text;
        else
            n += (size_t)snprintf(file + n, 4, "%%%02X", (unsigned char)*text);
    }
    file[n] = 0;
    return n == 0 || n > 255 || file[0] == '.' ? -EINVAL : 0;
}

static int hex_value(char c)
{
    const char *at = c ? strchr("0123456789ABCDEF", c) : NULL;

    return at ? (int)(at - "0123456789ABCDEF") : -1;
}

int reference_decode(const char *file, char text[REFERENCE_TEXT])
{
    struct reference ref;
    struct error err;
    char again[REFERENCE_TEXT], out[REFERENCE_TEXT];
    size_t n = 0;

    for (; *file; file++) {
        int c = (unsigned char)*file;

        if (c == '%') {
            int hi = hex_value(file[1]), lo = hi < 0 ? -1 : hex_value(file[2]);

            if (lo < 0)
                return -EINVAL;
            c = hi << 4 | lo;
            file += 2;
        }
        if (!c || n + 1 >= sizeof(out))
            return -EINVAL;
        out[n++] = (char)c;
    }
    out[n] = 0;
    /* Only what we would write ourselves is a name. */
    if (reference_parse(out, &ref, &err) < 0)
        return -EINVAL;
    reference_format(&ref, again);
    if (strcmp(again, out) != 0)
        return -EINVAL;
    memcpy(text, out, n + 1);
    return 0;
}
