/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Without a cgroup a share of a processor is kept by letting the box pause, tick by tick. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct throttle {
    uint64_t begun, cpu; /* of the present window */
    bool stopped;
};

/* What stops and continues the box: watch_signal(), or watch_signal_commands() of a live one. */
typedef void (*throttle_signal)(pid_t init, int signo);

/* cpu_usec: what the box has used in all. Called every THROTTLE_TICK_USEC. */
#define THROTTLE_TICK_USEC 20000u
void throttle_tick(struct throttle *t, uint32_t milli, pid_t init, uint64_t cpu_usec, uint64_t now,
                   throttle_signal signal_box);
