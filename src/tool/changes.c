/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/changes.h"

#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "files/files.h"

#define STEP_NS 1000000000ll /* clocks that part by more were set, not corrected */

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct moment moment_now(void)
{
    /* The clock that files get their times from: a finer one would be ahead of the first of them.
     */
    return (struct moment){.wall_ns = now_ns(CLOCK_REALTIME_COARSE),
                           .steady_ns = now_ns(CLOCK_MONOTONIC)};
}

/* What the wall clock would have said at that moment, had it been set by then as it is now. */
static int64_t wall_of(const struct moment *m)
{
    struct moment now = moment_now();
    int64_t back = (now.steady_ns - m->steady_ns) - (now.wall_ns - m->wall_ns);

    return back > STEP_NS ? m->wall_ns - back : m->wall_ns;
}

/* As it stands in JSON text, with its comma. */
static size_t bytes_of(const char *path, size_t len)
{
    size_t n = len + 3;

    for (size_t i = 0; i < len; i++)
        n += path[i] == '"' || path[i] == '\\';
    return n;
}

/* False: it does not fit; a shorter one still may. */
static bool add(json_t *files, const char *name, size_t *room)
{
    autobuf path = {.max = LIMIT_CHANGED_TEXT};
    size_t n;

    files_name_escape(&path, name, strlen(name));
    n = path.failed ? SIZE_MAX : bytes_of(path.data, path.len);
    if (n > *room)
        return false;
    *room -= n;
    return json_array_append_new(files, json_stringn(path.data, path.len)) == 0;
}

struct changes changes_since(int workspace, const struct moment *m, bool thorough)
{
    const struct files_walk how = {.limit = LIMIT_CHANGED_NAMES,
                                   .visit = thorough ? 0 : LIMIT_CHANGED_QUICK,
                                   .deadline_ms =
                                       thorough ? LIMIT_CHANGED_MS : LIMIT_CHANGED_QUICK_MS,
                                   .with_git = true, /* its hooks are programs */
                                   .stay = true};
    struct changes c = {.files = json_array()};
    size_t room = LIMIT_CHANGED_TEXT;
    struct files_list list;
    struct files_root root;
    struct error none;

    files_root_init(&root, workspace, NULL);
    if (files_changed(&root, wall_of(m), &how, &list, &none) < 0) {
        c.is_cut = true;
        return c;
    }
    c.is_worth_again = list.stop == FILES_STOP_WORK || list.stop == FILES_STOP_TIME;
    c.is_cut = list.stop != FILES_ALL || list.unreadable;
    for (size_t i = 0; i < list.n; i++)
        c.is_cut |= !add(c.files, files_list_name(&list, i), &room);
    files_list_done(&list);
    return c;
}
