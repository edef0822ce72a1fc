/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/pull/pull.h"

#define BAR_WIDTH 24
enum { REDRAW_USEC = 100000, LINE_USEC = 5000000 };

static int64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void progress_init(struct progress *p, enum progress_mode mode)
{
    *p = (struct progress){.mode = mode};
    if (mode == PROGRESS_AUTO) {
        p->terminal = isatty(STDERR_FILENO);
        p->mode = PROGRESS_PLAIN;
    }
}

static void draw_bar(struct progress *p, const char *what, const char *hex, uint64_t done,
                     uint64_t total)
{
    char have[24], all[24], bar[BAR_WIDTH + 1];
    uint64_t full = total ? done * BAR_WIDTH / total : 0;

    for (uint64_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = 0;
    p->drawn = true;
    (void)fprintf(stderr, "\r\033[K%s %.12s [%s] %s of %s", what, hex, bar,
                  units_format_size(done, have, sizeof(have)),
                  total ? units_format_size(total, all, sizeof(all)) : "?");
}

void progress_say(struct progress *p, const char *what, const char *hex, uint64_t done,
                  uint64_t total)
{
    bool last = total && done >= total;
    char have[24], all[24];
    int64_t now;

    if (p->mode == PROGRESS_NONE)
        return;
    now = now_usec();
    if (!p->said_usec && !last && p->mode == PROGRESS_PLAIN) {
        p->said_usec = now; /* what is done at once needs no line */
        return;
    }
    if (!last && p->said_usec && now - p->said_usec < (p->terminal ? REDRAW_USEC : LINE_USEC))
        return;
    p->said_usec = now;
    if (p->mode == PROGRESS_JSON)
        (void)fprintf(stderr, "{\"event\":\"%s\",\"what\":\"%s\",\"done\":%llu,\"total\":%llu}\n",
                      what, hex, (unsigned long long)done, (unsigned long long)total);
    else if (p->terminal)
        draw_bar(p, what, hex, done, total);
    else
        (void)fprintf(stderr, "%s %.12s: %s of %s\n", what, hex,
                      units_format_size(done, have, sizeof(have)),
                      total ? units_format_size(total, all, sizeof(all)) : "?");
    if (last)
        progress_end(p);
}

void progress_end(struct progress *p)
{
    if (p->terminal && p->drawn)
        (void)fputs("\n", stderr);
    p->drawn = false;
    p->said_usec = 0;
}
