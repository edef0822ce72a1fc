/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/throttle.h"

#include <signal.h>

#define WINDOW_USEC 1000000u

void throttle_tick(struct throttle *t, uint32_t milli, pid_t init, uint64_t cpu_usec, uint64_t now,
                   throttle_signal signal_box)
{
    uint64_t allowed;

    /* CPU time can seem to shrink: that of children nobody waits for is dropped. */
    if (cpu_usec < t->cpu || (now - t->begun >= WINDOW_USEC && !t->stopped)) {
        t->begun = now;
        t->cpu = cpu_usec;
    }
    allowed = (now - t->begun + THROTTLE_TICK_USEC) * milli / 1000;
    if (cpu_usec - t->cpu > allowed && !t->stopped) {
        signal_box(init, SIGSTOP);
        t->stopped = true;
    } else if (cpu_usec - t->cpu <= allowed && t->stopped) {
        signal_box(init, SIGCONT);
        t->stopped = false;
    }
}
