/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/clawden/clawden.h"

/* `clawden ps …` is `docker ps …`. */
int cmd_ps(int argc, char **argv)
{
    char *words[64] = {(char *)"docker"};

    for (int i = 0; i < argc && i < 62; i++)
        words[1 + i] = argv[i];
    return cmd_docker(argc + 1, words);
}

/* Becomes libexec/clawden/bin/docker of the folder that our own bin stands in. */
int cmd_docker(int argc, char **argv)
{
    static const char *const places[] = {"../libexec/clawden/bin/docker", "docker"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    (void)argc;
    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    if (slash)
        slash[1] = 0;
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(*places); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", self, places[i]);
        (void)execv(path, argv);
    }
    log_error("docker: %s: it belongs into libexec/clawden/bin", strerror(errno));
    return 125;
}
