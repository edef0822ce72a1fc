/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/state.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/sandbox.h"
#include "version.h"

#define API_VERSION "1.47" /* the words that the verbs here understand */

static const struct flag rows[] = {{"format", 'f', 0, "TEMPLATE", "print this; json: one object"}};

static int on_flag(void *arg, const struct flags *f)
{
    *(const char **)arg = f->value;
    return 0;
}

static const char *architecture(const struct utsname *u)
{
    return strcmp(u->machine, "x86_64") == 0    ? "amd64"
           : strcmp(u->machine, "aarch64") == 0 ? "arm64"
                                                : u->machine;
}

static int show(const char *format, const struct buf *b)
{
    return show_template(strcmp(format, "json") == 0 ? "{{json .}}" : format, b);
}

/* ---- version ---- */

static void put_side(struct buf *b, const char *key, const struct utsname *u)
{
    buf_json_key(b, key);
    buf_puts(b, "{");
    buf_json_str(b, "Version", CLAWDEN_VERSION);
    buf_json_str(b, "ApiVersion", API_VERSION);
    buf_json_str(b, "APIVersion", API_VERSION);
    buf_json_str(b, "MinAPIVersion", API_VERSION);
    buf_json_str(b, "Os", "linux");
    buf_json_str(b, "Arch", architecture(u));
    buf_json_str(b, "KernelVersion", u->release);
    buf_json_key(b, "Platform");
    buf_puts(b, "{");
    buf_json_str(b, "Name", "ClawDen");
    buf_puts(b, "}}");
}

int cmd_version(int argc, char **argv)
{
    struct flags f = {.verb = "version", .rows = rows, .n_rows = 1, .argc = argc, .argv = argv};
    const char *format = NULL;
    struct utsname u = {0};
    autobuf b;

    buf_init(&b, LIMIT_SMALL_FILE);
    if (!flags_read(&f, 0, 0, on_flag, &format))
        return f.status;
    (void)uname(&u);
    if (!format) {
        printf(
            "Client: ClawDen's drop-in docker\n Version:     %s\n API version: %s\n OS/Arch:     "
            "linux/%s\n\nServer: none: boxes have no daemon\n Version:     %s\n",
            CLAWDEN_VERSION, API_VERSION, architecture(&u), CLAWDEN_VERSION);
        return 0;
    }
    buf_puts(&b, "{");
    put_side(&b, "Client", &u);
    put_side(&b, "Server", &u);
    buf_puts(&b, "}");
    return show(format, &b);
}

/* ---- info ---- */

struct counts {
    size_t all, running, paused;
};

static void count_boxes(struct counts *c)
{
    struct box_record **list = NULL;
    struct error err;

    if (sandbox_list(&list, &err) < 0)
        return;
    for (; list[c->all]; c->all++) {
        struct box_state s = {0};

        (void)sandbox_state(list[c->all], &s, &err);
        c->running += s.running && !s.paused;
        c->paused += s.paused;
    }
    sandbox_list_free(list);
}

static void put_info(struct buf *b, const struct counts *c)
{
    char root[LIMIT_PATH] = "";
    struct sysinfo memory = {0};
    struct utsname u = {0};
    struct error err;

    (void)uname(&u);
    (void)sysinfo(&memory);
    (void)state_data_path(root, sizeof(root), &err);
    buf_puts(b, "{");
    buf_json_num(b, "Containers", (long long)c->all);
    buf_json_num(b, "ContainersRunning", (long long)c->running);
    buf_json_num(b, "ContainersPaused", (long long)c->paused);
    buf_json_num(b, "ContainersStopped", (long long)(c->all - c->running - c->paused));
    buf_json_num(b, "Images", (long long)images_count());
    buf_json_str(b, "Driver", "clawden");
    buf_json_str(b, "DockerRootDir", root);
    buf_json_str(b, "KernelVersion", u.release);
    buf_json_str(b, "OperatingSystem", "Linux");
    buf_json_str(b, "OSType", "linux");
    buf_json_str(b, "Architecture", u.machine);
    buf_json_num(b, "NCPU", sysconf(_SC_NPROCESSORS_ONLN));
    buf_json_num(b, "MemTotal", (long long)memory.totalram * memory.mem_unit);
    buf_json_str(b, "Name", u.nodename);
    buf_json_str(b, "ServerVersion", CLAWDEN_VERSION);
    buf_json_key(b, "SecurityOptions");
    buf_puts(b, "[\"name=seccomp,profile=clawden\",\"name=userns\",\"name=no-new-privileges\"");
    buf_puts(b, geteuid() ? ",\"name=rootless\"]" : "]");
    buf_json_key(b, "Warnings");
    buf_puts(b, "[]}");
}

int cmd_info(int argc, char **argv)
{
    struct flags f = {.verb = "info", .rows = rows, .n_rows = 1, .argc = argc, .argv = argv};
    const char *format = NULL;
    struct counts c = {0};
    autobuf b;

    buf_init(&b, LIMIT_SMALL_FILE);
    if (!flags_read(&f, 0, 0, on_flag, &format))
        return f.status;
    count_boxes(&c);
    put_info(&b, &c);
    if (format)
        return show(format, &b);
    return show_template("Client: ClawDen's drop-in docker\n\nServer: none: boxes have no daemon\n"
                         " Containers: {{.Containers}}\n  Running: {{.ContainersRunning}}\n"
                         "  Paused: {{.ContainersPaused}}\n  Stopped: {{.ContainersStopped}}\n"
                         " Images: {{.Images}}\n Server Version: {{.ServerVersion}}\n"
                         " Security Options:{{range .SecurityOptions}}\n  {{.}}{{end}}\n"
                         " Kernel Version: {{.KernelVersion}}\n Architecture: {{.Architecture}}\n"
                         " CPUs: {{.NCPU}}\n Total Memory: {{.MemTotal}}\n"
                         " Docker Root Dir: {{.DockerRootDir}}{{range .Warnings}}\nWARNING: "
                         "{{.}}{{end}}",
                         &b);
}
