/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host is refused or has one canonical form; and what the C library reads as an address, by its
 * strict or its lax reader, is never taken for a name or for another address.
 */
#include "egress/host.h"

#include <arpa/inet.h>

#include "base/error.h"
#include "tests/fuzz/fuzz.h"

static void check_canonical(const struct host *h)
{
    struct host again = {0};
    struct error err;

    PROPERTY(strlen(h->text) <= LIMIT_HOST_NAME && h->text[0], "length of '%s'", h->text);
    PROPERTY(strspn(h->text, "abcdefghijklmnopqrstuvwxyz0123456789.-:") == strlen(h->text),
             "'%s' holds something else", h->text);
    PROPERTY(host_parse(h->text, strlen(h->text), HOST_BARE, &again, &err) == 0, "'%s': %s",
             h->text, err.msg);
    PROPERTY(host_equal(h, &again), "'%s' is '%s' again", h->text, again.text);
}

static void check_libc(const uint8_t *data, size_t size, const struct host *h)
{
    char *text = fuzz_text(data, size);
    struct in6_addr v6;
    struct in_addr v4;

    if (!memchr(data, 0, size)) {
        if (inet_aton(text, &v4) && h) /* lax: 0x7f.1, 127.1, "1.2.3.4 x" */
            PROPERTY(h->kind == HOST_V4 && strcmp(h->text, text) == 0 &&
                         memcmp(&v4, h->address.bytes, 4) == 0,
                     "'%s' is '%s'", text, h->text);
        if (inet_pton(AF_INET, text, &v4) == 1)
            PROPERTY(h && h->kind == HOST_V4, "'%s' is no IPv4 address", text);
        PROPERTY((inet_pton(AF_INET6, text, &v6) == 1) == (h && h->kind == HOST_V6),
                 "'%s': IPv6 or not", text);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[LIMIT_AUTHORITY_TEXT];
    struct host bare = {0}, bracketed, host, again;
    struct error err = {0};
    uint16_t port, port_again;
    int r = host_parse((const char *)data, size, HOST_BARE, &bare, &err);

    PROPERTY(r == 0 || err.msg[0], "refused without a reason");
    if (r == 0)
        check_canonical(&bare);
    check_libc(data, size, r == 0 ? &bare : NULL);
    if (host_parse((const char *)data, size, HOST_BRACKETED, &bracketed, &err) == 0) {
        check_canonical(&bracketed);
        if (r == 0)
            PROPERTY(host_equal(&bare, &bracketed), "two readings of '%s'", bare.text);
    }
    if (host_parse_authority((const char *)data, size, 80, &host, &port, &err) == 0) {
        host_format_authority(&host, port, text);
        PROPERTY(host_parse_authority(text, strlen(text), 0, &again, &port_again, &err) == 0,
                 "'%s': %s", text, err.msg);
        PROPERTY(port == port_again && port != 0 && host_equal(&host, &again), "'%s'", text);
    }
    return 0;
}
