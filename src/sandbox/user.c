/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/user.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

#define ID_MAX 65534u /* the last one of a box's ids is its init's */

static const char made_up_passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                                     "sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\n"
                                     "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n";
static const char made_up_group[] = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n";

static void load(int root_fd, const char *file, const char *made_up, char *text, size_t size)
{
    autoclose int fd = -1;
    ssize_t n;

    if (root_fd < 0) {
        (void)snprintf(text, size, "%s", made_up);
        return;
    }
    fd = path_open(root_fd, file, O_RDONLY | O_NONBLOCK, 0, PATH_IN_ROOT);
    n = fd < 0 ? 0 : fd_read_full(fd, text, size - 1);
    text[n > 0 ? n : 0] = 0;
}

static bool read_id(const char *text, unsigned *ret)
{
    char *end;
    unsigned long n;

    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 6)
        return false;
    n = strtoul(text, &end, 10);
    *ret = (unsigned)n;
    return n <= ID_MAX;
}

/* The line of "name:x:id:…" whose name or id this is; its fields, at most n. */
static bool find_line(char *text, const char *name, bool by_id, char **fields, size_t n)
{
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        for (size_t i = 0; i < n; i++)
            fields[i] = line ? strsep(&line, ":") : (char *)"";
        if (strcmp(fields[by_id ? 2 : 0], name) == 0)
            return true;
    }
    return false;
}

static int resolve_user(const char *name, int root_fd, struct box_user *ret, struct error *err)
{
    static char text[LIMIT_SMALL_FILE];
    char *fields[7];
    bool is_number = read_id(name, &ret->uid), known;

    load(root_fd, "etc/passwd", made_up_passwd, text, sizeof(text));
    known = find_line(text, name, is_number, fields, 7);
    (void)snprintf(ret->home, sizeof(ret->home), "%s",
                   known && fields[5][0] == '/' ? fields[5] : "/");
    ret->gid = 0; /* as docker: a number without an entry is in group 0 */
    if (known && read_id(fields[2], &ret->uid) && read_id(fields[3], &ret->gid))
        return 0;
    if (is_number)
        return 0;
    return error_set(err, ERR_INVALID, "unable to find user %s: no matching entries in passwd file",
                     name);
}

static int resolve_group(const char *name, int root_fd, struct box_user *ret, struct error *err)
{
    static char text[LIMIT_SMALL_FILE];
    char *fields[3];

    if (read_id(name, &ret->gid))
        return 0;
    load(root_fd, "etc/group", made_up_group, text, sizeof(text));
    if (find_line(text, name, false, fields, 3) && read_id(fields[2], &ret->gid))
        return 0;
    return error_set(err, ERR_INVALID, "unable to find group %s: no matching entries in group file",
                     name);
}

int user_resolve(const char *text, int root_fd, struct box_user *ret, struct error *err)
{
    char copy[256], *group;
    int r;

    *ret = (struct box_user){0};
    if (!text || !*text)
        text = "0";
    if (strlen(text) >= sizeof(copy))
        return error_set(err, ERR_TOO_LARGE, "user of %zu bytes: at most %zu", strlen(text),
                         sizeof(copy) - 1);
    (void)snprintf(copy, sizeof(copy), "%s", text);
    group = strchr(copy, ':');
    if (group)
        *group++ = 0;
    r = resolve_user(copy[0] ? copy : "0", root_fd, ret, err);
    return r < 0 || !group || !*group ? r : resolve_group(group, root_fd, ret, err);
}
