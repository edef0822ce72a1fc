/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/socks.h"

#include <string.h>

#include "base/error.h"

enum { VERSION_4 = 4, VERSION_5 = 5 };
enum { METHOD_NONE = 0, METHOD_UNACCEPTABLE = 0xff };
enum { COMMAND_CONNECT = 1, COMMAND_BIND = 2, COMMAND_UDP = 3 };
enum { TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4 };

void socks_init(struct socks *s)
{
    *s = (struct socks){0};
}

size_t socks_reply(enum socks_code code, uint8_t out[LIMIT_SOCKS_REPLY])
{
    memset(out, 0, LIMIT_SOCKS_REPLY);
    out[0] = VERSION_5;
    out[1] = (uint8_t)code;
    out[3] = TYPE_V4;
    return LIMIT_SOCKS_REPLY;
}

static enum socks_state refuse(struct socks *s, enum socks_code code, const char *problem)
{
    s->reply_len = socks_reply(code, s->reply);
    s->problem = problem;
    return SOCKS_CLOSE;
}

/* ---- the greeting ---- */

static enum socks_state refuse_version_4(struct socks *s)
{
    memset(s->reply, 0, 8);
    s->reply[1] = 0x5b; /* "rejected or failed", in its own words */
    s->reply_len = 8;
    s->problem = "SOCKS4 is not spoken here: use socks5h://";
    return SOCKS_CLOSE;
}

static enum socks_state on_greeting(struct socks *s)
{
    bool fine = memchr(s->message + 2, METHOD_NONE, s->message[1]) != NULL;

    s->reply[0] = VERSION_5;
    s->reply[1] = fine ? METHOD_NONE : METHOD_UNACCEPTABLE;
    s->reply_len = 2;
    s->greeted = 1;
    s->n = 0;
    if (fine)
        return SOCKS_SEND;
    s->problem = "the client wants to authenticate: there is nothing to authenticate with";
    return SOCKS_CLOSE;
}

static size_t greeting_len(const struct socks *s)
{
    return s->n < 2 ? 2 : 2u + s->message[1];
}

/* ---- the request ---- */

/* What is known to be needed so far; 0: the address type is none. */
static size_t request_len(const struct socks *s)
{
    if (s->n < 5)
        return 5;
    switch (s->message[3]) {
    case TYPE_V4:
        return 4 + 4 + 2;
    case TYPE_NAME:
        return 4 + 1 + s->message[4] + 2u;
    case TYPE_V6:
        return 4 + 16 + 2;
    default:
        return 0;
    }
}

static bool read_host(struct socks *s, struct error *err)
{
    struct address a = {.bits = s->message[3] == TYPE_V4 ? 32 : 128};

    if (s->message[3] == TYPE_NAME)
        return host_parse((const char *)s->message + 5, s->message[4], HOST_BARE, &s->host, err) ==
               0;
    memcpy(a.bytes, s->message + 4, a.bits / 8);
    host_from_address(&a, &s->host);
    return true;
}

static enum socks_state on_request(struct socks *s)
{
    struct error err;

    if (s->message[2] != 0)
        return refuse(s, SOCKS_FAILED, "the reserved byte is not 0");
    if (s->message[1] == COMMAND_BIND || s->message[1] == COMMAND_UDP)
        return refuse(s, SOCKS_NO_COMMAND, "only CONNECT is offered, neither BIND nor UDP");
    if (s->message[1] != COMMAND_CONNECT)
        return refuse(s, SOCKS_NO_COMMAND, "an unknown command");
    s->port = (uint16_t)(s->message[s->n - 2] << 8 | s->message[s->n - 1]);
    if (s->port == 0)
        return refuse(s, SOCKS_FAILED, "0 is no port");
    if (!read_host(s, &err))
        return refuse(s, SOCKS_FAILED, "the name is not a host");
    return SOCKS_CONNECT;
}

/* ---- both ---- */

/* After each byte: it is cheap, and no cut matters. */
static enum socks_state on_byte(struct socks *s)
{
    size_t need;

    if (s->n == 1 && s->message[0] != VERSION_5) {
        if (s->greeted)
            return refuse(s, SOCKS_FAILED, "the request is not SOCKS5");
        return s->message[0] == VERSION_4 ? refuse_version_4(s) : SOCKS_NOT;
    }
    need = s->greeted ? request_len(s) : greeting_len(s);
    if (need == 0)
        return refuse(s, SOCKS_NO_ADDRESS_TYPE, "an unknown type of address");
    if (s->n < need)
        return SOCKS_MORE;
    return s->greeted ? on_request(s) : on_greeting(s);
}

enum socks_state socks_feed(struct socks *s, const uint8_t *data, size_t len, size_t *ret_used)
{
    size_t used = 0;

    if (s->state == SOCKS_SEND)
        s->state = SOCKS_MORE;
    while (s->state == SOCKS_MORE && used < len) {
        s->message[s->n++] = data[used++];
        s->state = on_byte(s);
    }
    if (s->state == SOCKS_NOT)
        used = 0;
    *ret_used = used;
    return s->state;
}
