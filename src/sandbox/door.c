/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket of ours inside a running box. It is made from outside, in a folder of the box that is
 * opened through its init: no process of ours stands in the box's namespaces, and the box needs no
 * mount for it. An abstract name would not do: Landlock keeps commands from those of strangers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/sandbox.h"

#define BACKLOG 64

/* The folder's owner is somebody whom the box's file system knows; we, as root, are not. */
static int bind_as_owner(int sock, int folder, const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    mode_t mask;
    struct stat st;
    int n, r;

    if (fstat(folder, &st) < 0)
        return -errno;
    n = snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof(at.sun_path))
        return -ENAMETOOLONG;
    (void)setfsgid(st.st_gid);
    (void)setfsuid(st.st_uid);
    mask = umask(0111);              /* whichever of its users the box has */
    (void)unlinkat(folder, name, 0); /* of a gateway that is gone */
    r = bind(sock, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
    (void)umask(mask);
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    return r;
}

int sandbox_listen_inside(const struct box_record *r, const char *folder, const char *name,
                          struct error *err)
{
    autoclose int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), dir = -1;
    int e;

    if (sock < 0)
        return error_sys(err, -errno, "make a socket");
    dir = sandbox_open_inside(r, folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, err);
    if (dir < 0)
        return dir;
    e = bind_as_owner(sock, dir, name);
    if (e >= 0 && listen(sock, BACKLOG) < 0)
        e = -errno;
    if (e < 0)
        return error_sys(err, e, "listen on '%s/%s' in box '%s'", folder, name, r->name);
    return TAKE_FD(sock);
}
