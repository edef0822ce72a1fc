/* SPDX-License-Identifier: Apache-2.0 */
/* However a hello is cut, the facts and the bytes taken are the same. */
#include "egress/hello.h"

#include "tests/fuzz/fuzz.h"

static size_t feed(struct hello *h, const uint8_t *data, size_t size, size_t step)
{
    size_t at = 0, used;

    hello_init(h);
    while (at < size && h->state == HELLO_MORE) {
        (void)hello_feed(h, data + at, size - at < step ? size - at : step, &used);
        at += used;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 2, 3, 7, 100};
    static struct hello whole, cut;
    size_t used = feed(&whole, data, size, size + 1);

    PROPERTY(used == whole.n && memcmp(whole.raw, data, used) == 0, "other bytes are kept");
    PROPERTY(whole.state <= HELLO_DONE || whole.problem, "refused without a reason");
    PROPERTY(whole.state != HELLO_MORE || used == size, "bytes are left, and more are wanted");
    if (whole.state == HELLO_DONE)
        PROPERTY((whole.sni == HELLO_SNI_NAME || whole.sni == HELLO_SNI_ADDRESS) ==
                     (whole.host.text[0] != 0 && whole.sni != HELLO_SNI_SEVERAL),
                 "a name without its due");
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        PROPERTY(feed(&cut, data, size, steps[i]) == used, "by %zu: other bytes", steps[i]);
        PROPERTY(cut.state == whole.state && cut.sni == whole.sni && cut.ech == whole.ech &&
                     cut.version == whole.version && host_equal(&cut.host, &whole.host),
                 "by %zu: other facts", steps[i]);
    }
    return 0;
}
