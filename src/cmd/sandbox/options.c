/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/units.h"
#include "base/usage.h"
#include "cmd/sandbox/sandbox.h"
#include "config/config.h"

/* One row per option: the parser and the help are made from it. */
enum opt {
    O_TIMEOUT = 256,
    O_MEMORY,
    O_CPU,
    O_PIDS,
    O_OUTPUT,
    O_CPU_TIME,
    O_FILE_SIZE,
    O_DISK,
    O_TMP,
    O_NETWORK,
    O_DENY,
    O_HOST_PORTS,
    O_NET_RATE,
    O_NET_NEW,
    O_WORKSPACE,
    O_RO,
    O_ROOTFS,
    O_BUILD_ROOT,
    O_ENV,
    O_ENV_FILE,
    O_CHDIR,
    O_MULTI,
    O_DEGRADED,
    O_JSON,
    O_JSON_FD,
    O_NO_SPAWNER,
    O_FRESH_NET,
    O_QUIET,
    O_HELP,
};

static const struct row {
    const char *name;
    enum opt opt;
    const char *arg; /* NULL: none; "[...]": optional */
    const char *help;
} rows[] = {
    {"timeout", O_TIMEOUT, "TIME",
     "kill the command after this time: 30s, 2m, 1h; a bare number is seconds"},
    {"memory", O_MEMORY, "SIZE",
     "memory of the whole box: 256m, 1g; a bare number is MB (default 1g)"},
    {"cpu", O_CPU, "N|N%", "processors it may use: 0.5 or 50% (default: all)"},
    {"pids", O_PIDS, "N", "processes and threads at once (default 256)"},
    {"output", O_OUTPUT, "SIZE", "bytes it may write to stdout and stderr together"},
    {"cpu-time", O_CPU_TIME, "TIME", "CPU seconds of all its processes together"},
    {"file-size", O_FILE_SIZE, "SIZE", "size of any one file it writes"},
    {"disk", O_DISK, "SIZE", "how far the free space of the workspace's disk may fall"},
    {"tmp", O_TMP, "SIZE", "size of /tmp and the other scratch folders together (default 500m)"},
    {"allow-network", O_NETWORK, "[=HOST,...]",
     "let it reach these hosts (host, host:port, *.suffix, CIDR, public); alone: the public "
     "internet"},
    {"deny-network", O_DENY, "HOST,...", "but not these"},
    {"host-ports", O_HOST_PORTS, "PORT,...",
     "let it reach these ports of this machine's loopback, as host.clawden.internal"},
    {"network-rate", O_NET_RATE, "SIZE", "bytes per second it may send and receive (default 100m)"},
    {"network-new", O_NET_NEW, "N", "connections it may begin per second (default 128)"},
    {"workspace", O_WORKSPACE, "DIR",
     "the folder it works in (default $WORKSPACE, else the current one)"},
    {"ro", O_RO, NULL, "the workspace is read-only"},
    {"rootfs", O_ROOTFS, "WHAT", "host (default), host-ro, or a folder with an unpacked image"},
    {"build-root", O_BUILD_ROOT, "DIR",
     "this folder is the root, writable, and the command its user 0: for building an image"},
    {"env", O_ENV, "K=V", "set a variable; K alone takes it from this environment"},
    {"env-file", O_ENV_FILE, "FILE", "set the variables of a file of K=V lines"},
    {"chdir", O_CHDIR, "PATH", "start in this folder of the box (default: the workspace)"},
    {"multi-tenant", O_MULTI, NULL,
     "deny the run if any belt or limit is missing (CLAWDEN_MULTI_TENANT=1)"},
    {"allow-degraded", O_DEGRADED, NULL, "run even if a limit cannot be kept here"},
    {"json", O_JSON, NULL, "print one JSON object about the run to stderr"},
    {"json-fd", O_JSON_FD, "N", "print it to this descriptor"},
    {"no-spawner", O_NO_SPAWNER, NULL,
     "build the box in place, use and start no spawner (CLAWDEN_NO_SPAWNER=1)"},
    {"fresh-net", O_FRESH_NET, NULL, "never reuse an untouched network namespace of a slot"},
    {"quiet", O_QUIET, NULL, "no line on stderr when a limit was reached"},
    {"help", O_HELP, NULL, "this text"},
};
enum { N_ROWS = sizeof(rows) / sizeof(*rows) };

#define BIT(opt) (1ull << ((opt)-O_TIMEOUT)) /* in options.asked */

#define DEFAULT_MEMORY (1ull << 30)
#define DEFAULT_PIDS   256
#define DEFAULT_TMP    (500ull << 20)
#define MAX_PIDS       4194304
#define MIN_MEMORY     (4ull << 20)

void options_help(void)
{
    for (int i = 0; i < N_ROWS; i++) {
        char left[48];
        const char *arg = rows[i].arg;

        (void)snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
                       arg && arg[0] != '[' ? " " : "", arg ? arg : "");
        printf("  %-24s %s\n", left, rows[i].help);
    }
}

static int bad(const char *option, const char *value, int r, const char *want)
{
    log_error("--%s '%s': %s; %s", option, value, r == -ERANGE ? "out of range" : "not understood",
              want);
    return -1;
}

static int want_duration(const char *option, const char *value, uint64_t *ret)
{
    int r = units_parse_duration(value, ret);

    return r < 0 ? bad(option, value, r, "write a time above 0 like 30s, 2m or 1h") : 0;
}

static int want_size(const char *option, const char *value, uint64_t *ret)
{
    int r = units_parse_size(value, ret);

    return r < 0 ? bad(option, value, r, "write a size above 0 like 256m or 1g") : 0;
}

static void add_env(struct options *o, char *entry)
{
    o->env = realloc(o->env, (o->n_env + 2) * sizeof(*o->env));
    if (!o->env || !entry)
        abort();
    o->env[o->n_env++] = entry;
    o->env[o->n_env] = NULL;
}

static bool is_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(s[i] == '_' || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') ||
              (i && s[i] >= '0' && s[i] <= '9')))
            return false;
    return len > 0;
}

/* K=V sets, K alone copies. Later ones win, which is why the list is searched from the end. */
static int set_env(struct options *o, const char *what, const char *where)
{
    size_t n = strcspn(what, "=");
    char *entry;

    if (!is_name(what, n)) {
        log_error("%s: '%.*s' is not a name of a variable; write NAME=value", where, (int)n, what);
        return -1;
    }
    if (!what[n]) {
        const char *value = getenv(what);

        if (!value)
            return 0; /* not set here: not set there */
        if (asprintf(&entry, "%s=%s", what, value) < 0)
            abort();
    } else {
        entry = strdup(what);
    }
    for (size_t i = 0; i < o->n_env; i++)
        if (strncmp(o->env[i], what, n) == 0 && o->env[i][n] == '=') {
            free(o->env[i]);
            o->env[i] = entry;
            return 0;
        }
    add_env(o, entry);
    return 0;
}

static int read_env_file(struct options *o, const char *path)
{
    autofree char *text = malloc(LIMIT_ENV_FILE);
    ssize_t n;
    int line = 0;

    if (!text)
        abort();
    n = fd_read_text(AT_FDCWD, path, text, LIMIT_ENV_FILE);
    if (n < 0) {
        log_error("--env-file '%s': %s", path, strerror((int)-n));
        return -1;
    }
    if (memchr(text, 0, (size_t)n)) {
        log_error("--env-file '%s': holds a NUL byte", path);
        return -1;
    }
    for (char *p = text, *end; *p; p = end + (*end != 0)) {
        char where[LIMIT_PATH];
        char last;

        line++;
        end = p + strcspn(p, "\n");
        last = *end;
        *end = 0;
        p += strspn(p, " \t");
        (void)snprintf(where, sizeof(where), "--env-file '%s' line %d", path, line);
        if (*p && *p != '#' && set_env(o, p, where) < 0)
            return -1;
        *end = last;
    }
    return 0;
}

static int set_root(struct options *o, const char *value)
{
    if (strcmp(value, "host") == 0) {
        o->spec.root = ROOT_HOST;
    } else if (strcmp(value, "host-ro") == 0) {
        o->spec.root = ROOT_HOST_RO;
    } else if (strchr(value, '/')) {
        o->spec.root = ROOT_DIR;
        o->rootfs = value;
    } else {
        log_error("--rootfs '%s': not understood; write host, host-ro or a path with a '/'", value);
        return -1;
    }
    return 0;
}

/* Changing owners and making devices seems to work there; nothing else is different. */
static int set_build_root(struct options *o, const char *value)
{
    o->spec.root = ROOT_DIR;
    o->rootfs = value;
    o->spec.writable_root = o->spec.builds_image = true;
    o->spec.rw_fd = -1;
    o->spec.uid = o->spec.gid = 0;
    o->spec.use_spawner = false;
    return 0;
}

/* ---- the network ---- */

static int add_rule(struct options *o, enum wish_list which, const char *entry)
{
    int r = 0;

    if (!o->egress)
        r = wish_new("--allow-network", "--deny-network", "--host-ports", NULL, &o->egress);
    if (r >= 0)
        r = wish_add(o->egress, which, entry);
    if (r < 0)
        log_error("a rule of the network: %s", strerror(-r));
    return r < 0 ? -1 : 0;
}

/* Several at once, separated by commas. An empty list is a slip, and would not mean "nothing". */
static int add_rules(struct options *o, enum wish_list which, const char *option, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        autofree char *entry = strndup(list, n);

        if (!entry)
            abort();
        if (!n)
            break;
        if (add_rule(o, which, entry) < 0)
            return -1;
        list += n;
        if (!*list)
            return 0;
        list++;
    }
    log_error("%s: an empty host; write it like %s=example.com,*.example.org", option, option);
    return -1;
}

static int add_host_ports(struct options *o, const char *list)
{
    if (!o->egress &&
        wish_new("--allow-network", "--deny-network", "--host-ports", NULL, &o->egress) < 0)
        abort();
    for (;;) {
        size_t n = strcspn(list, ",");
        autofree char *entry = strndup(list, n);
        uint64_t port;

        if (!entry)
            abort();
        if (units_parse_count(entry, UINT16_MAX, &port) < 0 ||
            wish_add_host_port(o->egress, (uint16_t)port) < 0) {
            log_error("--host-ports '%s': not a port, or too many; write it like "
                      "--host-ports=11434",
                      entry);
            return -1;
        }
        if (!list[n])
            return 0;
        list += n + 1;
    }
}

/* All of them, once they are there. */
static int check_rules(struct options *o)
{
    autoptr(rules) rules = NULL;
    struct error err;

    if (!o->egress)
        return 0;
    if (wish_rules(o->egress, &rules, &err) < 0) {
        log_error("%s", err.msg);
        return -1;
    }
    o->egress->budgets.bytes_per_sec = o->rate;
    o->egress->budgets.new_per_sec = o->new_per_sec;
    o->spec.network = true;
    return 0;
}

static int set_limit(struct options *o, enum opt opt, const char *name, const char *value)
{
    struct box_limits *l = &o->spec.limits;
    uint64_t n = 0;
    int r;

    switch ((int)opt) {
    case O_TIMEOUT:
        return want_duration(name, value, &l->wall_usec);
    case O_CPU_TIME:
        return want_duration(name, value, &l->cpu_usec);
    case O_MEMORY:
        r = want_size(name, value, &l->memory_bytes);
        if (r == 0 && l->memory_bytes < MIN_MEMORY) {
            log_error("--memory '%s': out of range; a box needs at least 4m", value);
            return -1;
        }
        return r;
    case O_OUTPUT:
        return want_size(name, value, &l->output_bytes);
    case O_FILE_SIZE:
        return want_size(name, value, &l->file_bytes);
    case O_DISK:
        return want_size(name, value, &l->disk_bytes);
    case O_TMP:
        return want_size(name, value, &l->tmp_bytes);
    case O_PIDS:
        r = units_parse_count(value, MAX_PIDS, &n);
        l->pids = (uint32_t)n;
        return r < 0 ? bad(name, value, r, "write a number from 1 to 4194304") : 0;
    default:
        r = units_parse_cpu(value, &l->cpu_milli);
        return r < 0 ? bad(name, value, r, "write processors like 0.5 or 50%, above 0") : 0;
    }
}

static int set_other(struct options *o, enum opt opt, const char *value)
{
    uint64_t n;

    switch ((int)opt) {
    case O_NETWORK:
        return value ? add_rules(o, WISH_ALLOW, "--allow-network", value)
                     : add_rule(o, WISH_ALLOW, WISH_PUBLIC);
    case O_DENY:
        return add_rules(o, WISH_DENY, "--deny-network", value);
    case O_HOST_PORTS:
        return add_host_ports(o, value);
    case O_NET_RATE:
        return want_size("network-rate", value, &o->rate);
    case O_NET_NEW:
        if (units_parse_count(value, 100000, &n) < 0)
            return bad("network-new", value, -ERANGE, "write a number from 1 to 100000");
        o->new_per_sec = (uint32_t)n;
        return 0;
    case O_WORKSPACE:
        o->workspace = value;
        return 0;
    case O_RO:
        o->spec.workspace_ro = true;
        return 0;
    case O_BUILD_ROOT:
        return set_build_root(o, value);
    case O_ROOTFS:
        return set_root(o, value);
    case O_ENV:
        return set_env(o, value, "--env");
    case O_ENV_FILE:
        return read_env_file(o, value);
    case O_CHDIR:
        o->chdir = value;
        return 0;
    case O_MULTI:
        o->spec.multi_tenant = true;
        return 0;
    case O_DEGRADED:
        o->spec.allow_degraded = true;
        return 0;
    case O_JSON:
        o->json = true;
        return 0;
    case O_JSON_FD:
        o->json = true;
        if (units_parse_count(value, 65535, &n) < 0 || n < 2 || fcntl((int)n, F_GETFD) < 0) {
            log_error("--json-fd '%s': not an open descriptor of 2 or above", value);
            return -1;
        }
        o->json_fd = (int)n;
        return 0;
    case O_NO_SPAWNER:
        o->spec.use_spawner = false;
        return 0;
    case O_FRESH_NET:
        o->spec.fresh_net = true;
        return 0;
    default:
        o->quiet = true;
        return 0;
    }
}

static void set_defaults(struct options *o)
{
    *o = (struct options){.json_fd = STDERR_FILENO};
    o->spec = (struct box_spec){.root = ROOT_HOST,
                                .root_fd = -1,
                                .workspace_fd = -1,
                                .uid = 1000,
                                .gid = 1000,
                                .use_spawner = !config_is_on(CONFIG_SPAWNER_OFF),
                                .multi_tenant = config_is_on(CONFIG_MULTI_TENANT)};
    o->spec.limits = (struct box_limits){
        .memory_bytes = DEFAULT_MEMORY, .pids = DEFAULT_PIDS, .tmp_bytes = DEFAULT_TMP};
}

int options_parse(struct options *o, int argc, char **argv)
{
    struct option longs[N_ROWS + 1] = {0};
    int c, index = 0;

    set_defaults(o);
    for (int i = 0; i < N_ROWS; i++)
        longs[i] = (struct option){rows[i].name,
                                   !rows[i].arg            ? no_argument
                                   : rows[i].arg[0] == '[' ? optional_argument
                                                           : required_argument,
                                   NULL, (int)rows[i].opt};
    opterr = 0;
    optind = 1;
    /* '+': the first word that is no option is the command; nothing behind it is ours. */
    while ((c = getopt_long(argc, argv, "+:h", longs, &index)) != -1) {
        const char *word = argv[optind - 1];
        int r;

        if (c == '?') {
            (void)usage_unknown("clawden-sandbox", word);
            return -1;
        }
        if (c == ':') {
            log_error("option '%s' needs a value", word);
            return -1;
        }
        if (c == O_HELP || c == 'h')
            return 1;
        o->asked |= BIT(c);
        r = c <= O_TMP ? set_limit(o, (enum opt)c, longs[index].name, optarg)
                       : set_other(o, (enum opt)c, optarg);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        o->command = argv + optind;
    return check_rules(o);
}

const char *options_not_for_sibling(const struct options *o)
{
    static const uint64_t fit = BIT(O_TIMEOUT) | BIT(O_ENV) | BIT(O_ENV_FILE) | BIT(O_CHDIR) |
                                BIT(O_QUIET) | BIT(O_NO_SPAWNER) | BIT(O_FRESH_NET);

    for (int i = 0; i < N_ROWS; i++)
        if (o->asked & ~fit & BIT(rows[i].opt))
            return rows[i].name;
    return NULL;
}

void options_done(struct options *o)
{
    for (size_t i = 0; i < o->n_env; i++)
        free(o->env[i]);
    free(o->env);
    wish_free(o->egress);
    if (o->spec.workspace_fd >= 0)
        (void)close(o->spec.workspace_fd);
    if (o->spec.root_fd >= 0)
        (void)close(o->spec.root_fd);
}
