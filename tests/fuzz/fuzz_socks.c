/* SPDX-License-Identifier: Apache-2.0 */
/* However a client's bytes are cut, what is sent, where it wants to go and what is left agree. */
#include "egress/socks.h"

#include "tests/fuzz/fuzz.h"

struct outcome {
    struct socks socks;
    uint8_t sent[2 * LIMIT_SOCKS_REPLY];
    size_t n_sent, used;
};

static void feed(const uint8_t *data, size_t size, size_t step, struct outcome *o)
{
    enum socks_state state = SOCKS_MORE;
    size_t used;

    *o = (struct outcome){0};
    socks_init(&o->socks);
    while (o->used < size && (state == SOCKS_MORE || state == SOCKS_SEND)) {
        size_t left = size - o->used;

        state = socks_feed(&o->socks, data + o->used, left < step ? left : step, &used);
        PROPERTY(used > 0 || state == SOCKS_NOT, "no progress");
        o->used += used;
        if (state != SOCKS_SEND && state != SOCKS_CLOSE)
            continue;
        PROPERTY(o->n_sent + o->socks.reply_len <= sizeof(o->sent), "too much is sent");
        memcpy(o->sent + o->n_sent, o->socks.reply, o->socks.reply_len);
        o->n_sent += o->socks.reply_len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 2, 3, 5, 64};
    struct outcome whole, cut;

    feed(data, size, size + 1, &whole);
    PROPERTY(whole.socks.state != SOCKS_CLOSE || (whole.socks.problem && whole.n_sent > 0),
             "closed without a word");
    PROPERTY(whole.socks.state != SOCKS_CONNECT || (whole.socks.port && whole.socks.host.text[0]),
             "to nowhere");
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        feed(data, size, steps[i], &cut);
        PROPERTY(cut.socks.state == whole.socks.state && cut.used == whole.used &&
                     cut.socks.port == whole.socks.port &&
                     host_equal(&cut.socks.host, &whole.socks.host),
                 "by %zu: another request", steps[i]);
        PROPERTY(cut.n_sent == whole.n_sent && memcmp(cut.sent, whole.sent, cut.n_sent) == 0,
                 "by %zu: another answer", steps[i]);
    }
    return 0;
}
