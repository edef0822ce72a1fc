/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp-gen: compiles seccomp.table into BPF programs, at build time.
 *
 * Theory of operation. The table gives each system call an action for each profile. For one
 * profile and one architecture the calls are laid out by number; neighbours with the same action
 * melt into one segment, and the gaps between them are segments that answer ENOSYS. A balanced
 * tree of "number >= start of segment?" jumps finds the segment; its leaves return, or look at
 * arguments and then return. That is about one instruction a segment, eight comparisons deep,
 * and far cheaper to load than a list of calls. x32 calls need no test of their own: their numbers
 * are 0x40000000 and up, in the last segment.
 *
 * BPF jumps forward only. Programs are therefore written backwards: an instruction can only name
 * instructions that were emitted before it, which stand behind it in the finished program. An
 * instruction emitted twice with the same targets is emitted once (leaves are shared, and nothing
 * unreachable can arise), and a target too far for the 8-bit offset gets a trampoline.
 *
 * Arguments are compared by their low 32 bits: every argument looked at is an int, an unsigned
 * int or a umode_t in the kernel, or (clone) has its high half thrown away there. Looking at the
 * high half as well would let `cmd | 1UL << 32` walk past a refusal.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum {
    MAX_ENTRIES = 600,        /* calls in the table; Linux has 380 */
    MAX_SEGMENTS = 1202,      /* every entry with a gap behind it, and the two ends */
    MAX_SECTIONS = 40,        /* headings in the table */
    MAX_NAME = 32,            /* longest call is set_mempolicy_home_node */
    MAX_INSNS = BPF_MAXINSNS, /* what the kernel takes */
    GOLDEN_NUMBERS = 1024,
};

/* Offsets of conditional jumps are 8 bits. Smaller values exercise the trampolines. */
#ifndef MAX_JUMP
#define MAX_JUMP 255
#endif

#define X32_BIT 0x40000000u

/* ---- profiles, architectures, errors ---- */

enum { PROFILE_DEFAULT, N_PROFILES = 4 };
static const char *const profile_names[N_PROFILES] = {"default", "browser", "build", "runtime"};

enum { ARCH_X86_64, ARCH_AARCH64, N_ARCHES };
static const struct {
    const char *name, *macro;
    uint32_t scmp, audit;
} arches[N_ARCHES] = {
    [ARCH_X86_64] = {"x86_64", "__x86_64__", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64},
    [ARCH_AARCH64] = {"aarch64", "__aarch64__", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64},
};

/* Numbers are the same on both architectures. */
static const struct {
    const char *name;
    int value;
} errnos[] = {
    {"0", 0},
    {"EPERM", EPERM},
    {"EACCES", EACCES},
    {"EINVAL", EINVAL},
    {"ENOSYS", ENOSYS},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"EAFNOSUPPORT", EAFNOSUPPORT},
};

/* Calls younger than libseccomp 2.5.4. From 424 on, numbers are the same everywhere. */
static const struct {
    const char *name;
    int nr[N_ARCHES];
} young_calls[] = {
    {"uretprobe", {335, -1}},          {"uprobe", {336, -1}},
    {"cachestat", {451, 451}},         {"fchmodat2", {452, 452}},
    {"map_shadow_stack", {453, 453}},  {"futex_wake", {454, 454}},
    {"futex_wait", {455, 455}},        {"futex_requeue", {456, 456}},
    {"statmount", {457, 457}},         {"listmount", {458, 458}},
    {"lsm_get_self_attr", {459, 459}}, {"lsm_set_self_attr", {460, 460}},
    {"lsm_list_modules", {461, 461}},  {"mseal", {462, 462}},
    {"setxattrat", {463, 463}},        {"getxattrat", {464, 464}},
    {"listxattrat", {465, 465}},       {"removexattrat", {466, 466}},
    {"open_tree_attr", {467, 467}},    {"file_getattr", {468, 468}},
    {"file_setattr", {469, 469}},      {"listns", {470, 470}},
};

/* ---- the table in memory ---- */

struct action {
    enum { ACT_ALLOW, ACT_ERRNO, ACT_CHECK } kind;
    int value; /* ACT_ERRNO: the number; ACT_CHECK: index into rules[] */
};

struct entry {
    char name[MAX_NAME];
    int line;
    int nr[N_ARCHES]; /* -1: not on this architecture */
    struct action act[N_PROFILES];
};

static struct action default_action = {ACT_ERRNO, ENOSYS};

static struct entry entries[MAX_ENTRIES];
static size_t n_entries;
static char sections[MAX_SECTIONS][MAX_NAME];
static size_t n_sections;

static const char *table_path;
static int table_line;
static const char *without = ""; /* comma list, as given */

static bool same_action(struct action a, struct action b)
{
    return a.kind == b.kind && a.value == b.value;
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
    va_list ap;

    if (table_line)
        fprintf(stderr, "%s:%d: ", table_path, table_line);
    else
        fprintf(stderr, "seccomp-gen: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static bool in_list(const char *list, const char *word)
{
    const size_t len = strlen(word);

    while (*list) {
        const size_t n = strcspn(list, ",");
        if (n == len && !memcmp(list, word, len))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* ---- writing a program, last instruction first ---- */

struct insn {
    uint16_t code;
    uint32_t k;
    int jt, jf; /* indices of earlier emitted instructions; plain statements go on at jt */
};

struct program {
    struct insn insn[MAX_INSNS];
    int n;
};

static int find(const struct program *p, struct insn what)
{
    for (int i = p->n - 1; i >= 0; i--) {
        const struct insn *o = &p->insn[i];
        if (o->code == what.code && o->k == what.k && o->jt == what.jt && o->jf == what.jf)
            return i;
    }
    return -1;
}

static int append(struct program *p, struct insn what)
{
    if (p->n == MAX_INSNS)
        die("program exceeds %d instructions", MAX_INSNS);
    p->insn[p->n] = what;
    return p->n++;
}

/* An instruction that acts like `to` and is at most `max` away from the next one emitted. */
static int within(struct program *p, int to, int max)
{
    struct insn hop = {.code = BPF_JMP | BPF_JA, .jt = to, .jf = -1};
    int i;

    if (p->n - 1 - to <= max)
        return to;
    if (BPF_CLASS(p->insn[to].code) == BPF_RET)
        hop = p->insn[to]; /* as long as a jump to it, and one step shorter */
    i = find(p, hop);
    return i >= 0 && p->n - 1 - i <= max ? i : append(p, hop);
}

static int ret(struct program *p, uint32_t value)
{
    const struct insn what = {.code = BPF_RET | BPF_K, .k = value, .jt = -1, .jf = -1};
    const int i = find(p, what);

    return i >= 0 ? i : append(p, what);
}

static int ret_allow(struct program *p)
{
    return ret(p, SECCOMP_RET_ALLOW);
}

static int ret_errno(struct program *p, int value)
{
    return ret(p, SECCOMP_RET_ERRNO | (uint32_t)value);
}

static int statement(struct program *p, uint16_t code, uint32_t k, int next)
{
    const int i = find(p, (struct insn){.code = code, .k = k, .jt = next, .jf = -1});

    if (i >= 0)
        return i;
    next = within(p, next, 0);
    return append(p, (struct insn){.code = code, .k = k, .jt = next, .jf = -1});
}

static int load(struct program *p, size_t offset, int next)
{
    return statement(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, next);
}

/* Both architectures are little endian: the low half comes first. */
static int load_arg(struct program *p, unsigned arg, int next)
{
    return load(p, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t), next);
}

static int mask(struct program *p, uint32_t bits, int next)
{
    return statement(p, BPF_ALU | BPF_AND | BPF_K, bits, next);
}

/* `op` is BPF_JEQ, BPF_JGE or BPF_JSET. */
static int branch(struct program *p, uint16_t op, uint32_t k, int yes, int no)
{
    const uint16_t code = BPF_JMP | op | BPF_K;
    const int i = find(p, (struct insn){.code = code, .k = k, .jt = yes, .jf = no});

    if (i >= 0 || yes == no)
        return i >= 0 ? i : yes;
    yes = within(p, yes, MAX_JUMP - 1); /* the next line may put one instruction in between */
    no = within(p, no, MAX_JUMP);
    return append(p, (struct insn){.code = code, .k = k, .jt = yes, .jf = no});
}

/* Is the value one of these? Asked in the given order. */
static int one_of(struct program *p, const uint32_t *values, size_t n, int yes, int no)
{
    while (n--)
        no = branch(p, BPF_JEQ, values[n], yes, no);
    return no;
}

/* Does the value lie in one of these ranges (first, last; rising)? */
static int in_ranges(struct program *p, const uint32_t (*ranges)[2], size_t n, int yes, int no)
{
    const int outside = no;

    for (size_t i = 0; i < n; i++) {
        no = branch(p, BPF_JGE, ranges[i][0], yes, no);
        no = branch(p, BPF_JGE, ranges[i][1] + 1, outside, no);
    }
    return no;
}

/* ---- argument checks ---- */

/* Kernel values, spelled out because the headers of the build host may be older. */
enum {
    K_SET_ID = 06000,
    K_O_CREAT = 0100,
    K_O_TMPFILE = 020000000, /* without O_DIRECTORY, which differs between architectures */
    K_S_IFMT = 0170000,
    K_S_IFREG = 0100000,
    K_S_IFIFO = 0010000,
    K_S_IFSOCK = 0140000,
    K_SOCK_STREAM = 1,
    K_SOCK_DGRAM = 2,
    K_SOCK_RAW = 3,
    K_SOCK_SEQPACKET = 5,
    K_SOCK_FLAGS = 0x80800, /* SOCK_NONBLOCK | SOCK_CLOEXEC */
    K_AF_UNIX = 1,
    K_AF_INET = 2,
    K_AF_INET6 = 10,
    K_AF_NETLINK = 16,
};

/* mnt, cgroup, uts and ipc; user, pid and net are what a browser needs. */
#define NEW_ADMIN   0x0e020000u
#define NEW_BROWSER 0x70000000u
/* For clone the low byte is the exit signal, so a new time namespace can only be unshared. */
#define NEW_TIME 0x00000080u

struct rule {
    const char *name;
    int (*emit)(struct program *p, const struct rule *r);
    unsigned arg;   /* the argument looked at first */
    uint32_t value; /* what it is about, if the function serves several rules */
};

static int emit_flags(struct program *p, const struct rule *r)
{
    const int refuse = ret_errno(p, EPERM);

    return load_arg(p, r->arg, branch(p, BPF_JSET, r->value, refuse, ret_allow(p)));
}

static int emit_open(struct program *p, const struct rule *r)
{
    const struct rule mode = {.arg = r->arg + 1, .value = K_SET_ID};
    const int creates = emit_flags(p, &mode);

    return load_arg(p, r->arg, branch(p, BPF_JSET, r->value, creates, ret_allow(p)));
}

/* r->value: the errno for device nodes. */
static int emit_mknod(struct program *p, const struct rule *r)
{
    static const uint32_t types[] = {K_S_IFREG, K_S_IFIFO, K_S_IFSOCK, 0};
    const struct rule mode = {.arg = r->arg, .value = K_SET_ID};
    const int good = emit_flags(p, &mode);
    const int device = ret_errno(p, (int)r->value);

    return load_arg(p, r->arg, mask(p, K_S_IFMT, one_of(p, types, COUNT(types), good, device)));
}

/* Is the socket type, apart from its flags, one of these? */
static int socket_type(struct program *p, const uint32_t *types, size_t n, int yes)
{
    const int no = ret_errno(p, EPERM);

    return load_arg(p, 1, mask(p, ~(uint32_t)K_SOCK_FLAGS, one_of(p, types, n, yes, no)));
}

static int socket_unix(struct program *p)
{
    static const uint32_t types[] = {K_SOCK_STREAM, K_SOCK_DGRAM, K_SOCK_SEQPACKET};

    return socket_type(p, types, COUNT(types), ret_allow(p));
}

/* SMC, SCTP and MPTCP can be reached through AF_INET as well, by their protocol numbers. */
static int socket_inet(struct program *p)
{
    static const uint32_t types[] = {K_SOCK_STREAM, K_SOCK_DGRAM};
    static const uint32_t protocols[] = {0, 6 /* tcp */, 17 /* udp */, 1 /* icmp */,
                                         58 /* icmp6 */};
    const int refuse = ret_errno(p, EPROTONOSUPPORT);
    const int known = one_of(p, protocols, COUNT(protocols), ret_allow(p), refuse);

    return socket_type(p, types, COUNT(types), load_arg(p, 2, known));
}

/* Routes and addresses (getifaddrs); audit, uevents and netfilter look like they are not built. */
static int socket_netlink(struct program *p)
{
    static const uint32_t types[] = {K_SOCK_RAW, K_SOCK_DGRAM};
    const int refuse = ret_errno(p, EPROTONOSUPPORT);
    const int route = branch(p, BPF_JEQ, 0, ret_allow(p), refuse);

    return socket_type(p, types, COUNT(types), load_arg(p, 2, route));
}

static int emit_socket(struct program *p, const struct rule *r)
{
    static const uint32_t internet[] = {K_AF_INET, K_AF_INET6};
    const int inet = socket_inet(p);
    const int netlink = socket_netlink(p);
    const int local = socket_unix(p);
    int family = ret_errno(p, EAFNOSUPPORT);

    family = branch(p, BPF_JEQ, K_AF_NETLINK, netlink, family);
    family = one_of(p, internet, COUNT(internet), inet, family);
    family = branch(p, BPF_JEQ, K_AF_UNIX, local, family);
    return load_arg(p, r->arg, family);
}

static int emit_socketpair(struct program *p, const struct rule *r)
{
    const int local = socket_unix(p);
    const int refuse = ret_errno(p, EAFNOSUPPORT);

    return load_arg(p, r->arg, branch(p, BPF_JEQ, K_AF_UNIX, local, refuse));
}

static int emit_ioctl(struct program *p, const struct rule *r)
{
    static const uint32_t refused[][2] = {
        {0x4b00, 0x4bff}, /* KD*: keyboard maps, fonts and modes of the console, i/o ports */
        {0x5412, 0x5412}, /* TIOCSTI */
        {0x541c, 0x541d}, /* TIOCLINUX, TIOCCONS */
        {0x5423, 0x5423}, /* TIOCSETD: loads line disciplines */
        {0x5600, 0x56ff}, /* VT_*: switching and locking consoles */
    };
    const int refuse = ret_errno(p, EPERM);

    return load_arg(p, r->arg, in_ranges(p, refused, COUNT(refused), refuse, ret_allow(p)));
}

static int emit_arch_prctl(struct program *p, const struct rule *r)
{
    static const uint32_t good[][2] = {
        {0x1001, 0x1023}, /* FS, GS, CPUID faulting, AMX permission; not that of guests */
        {0x5001, 0x5005}, /* shadow stacks */
    };
    const int refuse = ret_errno(p, EPERM);

    return load_arg(p, r->arg, in_ranges(p, good, COUNT(good), ret_allow(p), refuse));
}

static int emit_personality(struct program *p, const struct rule *r)
{
    /* ADDR_NO_RANDOMIZE alone, or the question; else PER_LINUX32 and UNAME26 at will. */
    static const uint32_t alone[] = {0xffffffff, 0x40000};
    const int refuse = ret_errno(p, EPERM);
    const int names = branch(p, BPF_JEQ, 0, ret_allow(p), refuse);
    const int rest = mask(p, ~0x20008u, names);

    return load_arg(p, r->arg, one_of(p, alone, COUNT(alone), ret_allow(p), rest));
}

static const struct rule rules[] = {
    {"mode1", emit_flags, 1, K_SET_ID},
    {"mode2", emit_flags, 2, K_SET_ID},
    {"open", emit_open, 1, K_O_CREAT | K_O_TMPFILE},
    {"openat", emit_open, 2, K_O_CREAT | K_O_TMPFILE},
    {"mknod", emit_mknod, 1, EPERM},
    {"mknodat", emit_mknod, 2, EPERM},
    {"mknod-pretend", emit_mknod, 1, 0},
    {"mknodat-pretend", emit_mknod, 2, 0},
    {"clone", emit_flags, 0, NEW_ADMIN | NEW_BROWSER},
    {"clone-browser", emit_flags, 0, NEW_ADMIN},
    {"unshare", emit_flags, 0, NEW_ADMIN | NEW_BROWSER | NEW_TIME},
    {"unshare-browser", emit_flags, 0, NEW_ADMIN | NEW_TIME},
    {"socket", emit_socket, 0, 0},
    {"socketpair", emit_socketpair, 0, 0},
    {"ioctl", emit_ioctl, 1, 0},
    {"arch_prctl", emit_arch_prctl, 0, 0},
    {"self", emit_flags, 0, 0xffffffff}, /* a process id of 0 */
    {"personality", emit_personality, 0, 0},
};

/* ---- reading the table ---- */

static const char *next_word(char **rest)
{
    char *word;

    do
        word = strsep(rest, " \t\n");
    while (word && !*word);
    return word;
}

static bool is_action(const char *word)
{
    return !strcmp(word, "allow") || !strcmp(word, "errno") || !strcmp(word, "check");
}

/* The word after "errno" or "check". */
static struct action parse_operand(const char *kind, const char *word)
{
    if (!word)
        die("'%s' needs a name", kind);
    if (!strcmp(kind, "errno")) {
        for (size_t i = 0; i < COUNT(errnos); i++)
            if (!strcmp(errnos[i].name, word))
                return (struct action){ACT_ERRNO, errnos[i].value};
        die("unknown error '%s'", word);
    }
    for (size_t i = 0; i < COUNT(rules); i++)
        if (!strcmp(rules[i].name, word))
            return (struct action){ACT_CHECK, (int)i};
    die("unknown rule '%s'", word);
}

static struct action parse_action(const char *word, char **rest)
{
    if (!word || !is_action(word))
        die("expected allow, errno or check, not '%s'", word ? word : "end of line");
    if (!strcmp(word, "allow"))
        return (struct action){ACT_ALLOW, 0};
    return parse_operand(word, next_word(rest));
}

/* "browser,runtime: ACTION", any number of times. */
static void parse_overrides(char **rest, struct action act[N_PROFILES])
{
    bool seen[N_PROFILES] = {false};
    const char *list;

    while ((list = next_word(rest))) {
        const size_t len = strlen(list);
        struct action a;

        if (list[len - 1] != ':')
            die("expected 'PROFILE:', not '%s'", list);
        a = parse_action(next_word(rest), rest);
        for (size_t at = 0; at < len;) {
            const size_t n = strcspn(list + at, ",:");
            size_t p = 0;

            while (p < N_PROFILES &&
                   (strlen(profile_names[p]) != n || memcmp(profile_names[p], list + at, n) != 0))
                p++;
            if (p == N_PROFILES)
                die("unknown profile '%.*s'", (int)n, list + at);
            if (seen[p])
                die("profile '%s' is named twice", profile_names[p]);
            seen[p] = true;
            act[p] = a;
            at += n + 1;
        }
    }
}

static int resolve(const char *name, int arch)
{
    int nr = seccomp_syscall_resolve_name_arch(arches[arch].scmp, name);

    for (size_t i = 0; nr < 0 && i < COUNT(young_calls); i++)
        if (!strcmp(young_calls[i].name, name))
            nr = young_calls[i].nr[arch];
    return nr < 0 ? -1 : nr; /* libseccomp numbers calls of other architectures below -1 */
}

static void add_entry(const char *name)
{
    struct entry *e = &entries[n_entries];
    bool known = false;

    if (n_entries == MAX_ENTRIES)
        die("more than %d calls", MAX_ENTRIES);
    if (strlen(name) >= sizeof(e->name))
        die("unknown call '%s'", name);
    for (size_t i = 0; i < n_entries; i++)
        if (!strcmp(entries[i].name, name))
            die("'%s' is listed twice, first in line %d", name, entries[i].line);
    for (int a = 0; a < N_ARCHES; a++) {
        e->nr[a] = resolve(name, a);
        known |= e->nr[a] >= 0;
    }
    if (!known)
        die("unknown call '%s'", name);
    memcpy(e->name, name, strlen(name) + 1);
    e->line = table_line;
    n_entries++;
}

static void parse_section(const char *word)
{
    const size_t len = strlen(word);

    if (len < 3 || len - 2 >= MAX_NAME || word[len - 1] != ']')
        die("malformed section '%s'", word);
    if (n_sections == MAX_SECTIONS)
        die("more than %d sections", MAX_SECTIONS);
    memcpy(sections[n_sections], word + 1, len - 2);
    sections[n_sections++][len - 2] = '\0';
}

static void parse_line(char *line)
{
    const char *section = n_sections ? sections[n_sections - 1] : "";
    const bool weakened = in_list(without, "all") || in_list(without, section);
    const size_t first = n_entries;
    struct action act[N_PROFILES];
    char *rest = line;
    const char *word;

    line[strcspn(line, "#")] = '\0';
    word = next_word(&rest);
    if (!word)
        return;
    if (*word == '[') {
        parse_section(word);
        return;
    }

    for (; word && !is_action(word); word = next_word(&rest))
        add_entry(word);
    if (n_entries == first)
        die("no call before '%s'", word);
    act[PROFILE_DEFAULT] = parse_action(word, &rest);
    for (size_t p = 1; p < N_PROFILES; p++)
        act[p] = act[PROFILE_DEFAULT];
    parse_overrides(&rest, act);

    for (size_t i = first; i < n_entries; i++)
        for (size_t p = 0; p < N_PROFILES; p++)
            entries[i].act[p] = weakened ? (struct action){ACT_ALLOW, 0} : act[p];
}

/* A misspelt name would leave the defence in place and the negative control would prove nothing. */
static void check_without(void)
{
    char *list = strdup(without), *rest = list, *word;

    while (list && (word = strsep(&rest, ","))) {
        bool known = !*word || !strcmp(word, "arch") || !strcmp(word, "all");

        for (size_t i = 0; i < n_sections; i++)
            known |= !strcmp(sections[i], word);
        if (!known)
            die("--without: no section '%s'", word);
    }
    free(list);
}

static void read_table(void)
{
    FILE *f = fopen(table_path, "re");
    char line[512];

    if (!f)
        die("open '%s': %s", table_path, strerror(errno));
    while (fgets(line, sizeof(line), f)) {
        table_line++;
        if (!strchr(line, '\n'))
            die("line is too long, or its end is missing");
        parse_line(line);
    }
    if (ferror(f))
        die("read '%s': %s", table_path, strerror(errno));
    fclose(f);
    table_line = 0;
    check_without();
}

/* ---- from calls to a program ---- */

struct segment {
    uint32_t start; /* up to the next one's start */
    struct action act;
};

static int by_number_arch;

static int by_number(const void *a, const void *b)
{
    const struct entry *const *x = a, *const *y = b;

    return (*x)->nr[by_number_arch] - (*y)->nr[by_number_arch];
}

static size_t add_segment(struct segment *segs, size_t n, uint32_t start, struct action act)
{
    if (n && segs[n - 1].start == start)
        n--; /* a gap of length zero */
    if (n && same_action(segs[n - 1].act, act))
        return n;
    segs[n] = (struct segment){start, act};
    return n + 1;
}

static size_t make_segments(int profile, int arch, struct segment *segs)
{
    const struct entry *sorted[MAX_ENTRIES];
    size_t n_sorted = 0, n = 0;

    for (size_t i = 0; i < n_entries; i++)
        if (entries[i].nr[arch] >= 0)
            sorted[n_sorted++] = &entries[i];
    by_number_arch = arch;
    qsort(sorted, n_sorted, sizeof(sorted[0]), by_number);

    n = add_segment(segs, n, 0, default_action);
    for (size_t i = 0; i < n_sorted; i++) {
        const uint32_t nr = (uint32_t)sorted[i]->nr[arch];
        n = add_segment(segs, n, nr, sorted[i]->act[profile]);
        n = add_segment(segs, n, nr + 1, default_action);
    }
    if (arch == ARCH_X86_64 && in_list(without, "arch"))
        n = add_segment(segs, n, X32_BIT, (struct action){ACT_ALLOW, 0});
    return n;
}

static int emit_action(struct program *p, struct action a)
{
    switch (a.kind) {
    case ACT_ALLOW:
        return ret_allow(p);
    case ACT_ERRNO:
        return ret_errno(p, a.value);
    case ACT_CHECK:
        return rules[a.value].emit(p, &rules[a.value]);
    }
    abort();
}

static int emit_tree(struct program *p, const struct segment *segs, size_t n)
{
    int low, high;

    if (n == 1)
        return emit_action(p, segs[0].act);
    high = emit_tree(p, segs + n / 2, n - n / 2);
    low = emit_tree(p, segs, n / 2);
    return branch(p, BPF_JGE, segs[n / 2].start, high, low);
}

static void make_program(int profile, int arch, struct program *p)
{
    struct segment segs[MAX_SEGMENTS];
    int tree, alien;

    p->n = 0;
    tree = emit_tree(p, segs, make_segments(profile, arch, segs));
    tree = load(p, offsetof(struct seccomp_data, nr), tree);
    if (in_list(without, "arch") || in_list(without, "all"))
        return;

    /* First of all: the same number is another call elsewhere (int 0x80 on x86-64). */
    alien = ret(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, arch),
         branch(p, BPF_JEQ, arches[arch].audit, tree, alien));
}

/* ---- output ---- */

static void print_insn(FILE *f, const struct program *p, int i)
{
    const struct insn *in = &p->insn[i];
    const bool jump = BPF_CLASS(in->code) == BPF_JMP;
    const bool always = in->code == (BPF_JMP | BPF_JA);
    const int jt = jump ? i - 1 - in->jt : 0, jf = jump ? i - 1 - in->jf : 0;

    if (always)
        fprintf(f, "    {0x%02x, 0, 0, %d},\n", in->code, jt);
    else if (jt < 0 || jt > 255 || jf < 0 || jf > 255)
        die("jump of %d or %d instructions cannot be expressed", jt, jf);
    else
        fprintf(f, "    {0x%02x, %d, %d, 0x%08x},\n", in->code, jt, jf, in->k);
}

static void print_program(FILE *f, int profile, int arch)
{
    static struct program p;
    int calls = 0;

    for (size_t i = 0; i < n_entries; i++)
        calls += entries[i].nr[arch] >= 0 && entries[i].act[profile].kind != ACT_ERRNO;
    make_program(profile, arch, &p);
    fprintf(f, "/* %d instructions, %d calls allowed or checked */\n", p.n, calls);
    fprintf(f, "static const struct sock_filter seccomp_%s_%s[] = {\n", profile_names[profile],
            arches[arch].name);
    for (int i = p.n - 1; i >= 0; i--)
        print_insn(f, &p, i);
    fprintf(f, "};\n");
}

static FILE *open_output(const char *path)
{
    FILE *f = fopen(path, "we");

    if (!f)
        die("open '%s': %s", path, strerror(errno));
    return f;
}

static void close_output(FILE *f, const char *path)
{
    const bool failed = ferror(f);

    if (fclose(f) != 0 || failed)
        die("write '%s' failed", path);
}

/* All architectures for tests that interpret the programs; only its own for the engine. */
static void write_header(const char *path, const char *profiles)
{
    FILE *f = open_output(path);

    fprintf(f, "/* SPDX-License-Identifier: Apache-2.0 */\n"
               "/* Made from seccomp.table by seccomp-gen; do not edit. */\n"
               "#pragma once\n\n#include <linux/filter.h>\n");
    if (*without)
        fprintf(f,
                "\n/* Weakened for a negative control: never ship this. */\n"
                "#define SECCOMP_WITHOUT \"%s\"\n",
                without);
    for (int a = 0; a < N_ARCHES; a++) {
        fprintf(f, "\n#if defined(%s) || defined(SECCOMP_ALL_ARCHES)\n", arches[a].macro);
        for (int p = 0; p < N_PROFILES; p++)
            if (in_list(profiles, profile_names[p]))
                print_program(f, p, a);
        fprintf(f, "#endif\n");
    }
    for (int a = 0; a < N_ARCHES; a++) {
        fprintf(f, "\n#%s defined(%s)\n", a ? "elif" : "if", arches[a].macro);
        for (int p = 0; p < N_PROFILES; p++)
            if (in_list(profiles, profile_names[p]))
                fprintf(f, "#define seccomp_%s seccomp_%s_%s\n", profile_names[p], profile_names[p],
                        arches[a].name);
    }
    fprintf(f, "#else\n#error \"no seccomp filter for this architecture\"\n#endif\n");
    close_output(f, path);
}

static void print_golden(FILE *f, int nr, const char *name, struct action a)
{
    const char *shown = NULL;

    switch (a.kind) {
    case ACT_ALLOW:
        fprintf(f, "%d %s allow\n", nr, name);
        break;
    case ACT_ERRNO:
        for (size_t i = 0; i < COUNT(errnos); i++)
            if (errnos[i].value == a.value)
                shown = errnos[i].name;
        fprintf(f, "%d %s errno %s\n", nr, name, shown);
        break;
    case ACT_CHECK:
        fprintf(f, "%d %s check %s\n", nr, name, rules[a.value].name);
        break;
    }
}

/*
 * uretprobe and uprobe: the kernel asks no filter about them (6.14 and 6.18 on). They do nothing
 * but kill or fail, unless they come from a trampoline which the kernel itself has placed.
 */
static bool is_unfiltered(int nr)
{
    return nr == 335 || nr == 336;
}

/* Calls that the table does not list still have a name. */
static void print_unlisted(FILE *f, int nr)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr);
    const char *shown = name ? name : "-";

    for (size_t i = 0; !name && i < COUNT(young_calls); i++)
        if (young_calls[i].nr[ARCH_X86_64] == nr)
            shown = young_calls[i].name;
    if (is_unfiltered(nr))
        fprintf(f, "%d %s unfiltered\n", nr, shown);
    else
        print_golden(f, nr, shown, default_action);
    free(name);
}

/* "nr name action" for the first numbers of x86-64, default profile; tests ask the kernel. */
static void write_golden(const char *path)
{
    FILE *f = open_output(path);

    for (int nr = 0; nr < GOLDEN_NUMBERS; nr++) {
        const struct entry *e = entries;

        while (e < entries + n_entries && e->nr[ARCH_X86_64] != nr)
            e++;
        if (e < entries + n_entries)
            print_golden(f, nr, e->name, e->act[PROFILE_DEFAULT]);
        else
            print_unlisted(f, nr);
    }
    close_output(f, path);
}

static void check_profiles(const char *profiles)
{
    char *list = strdup(profiles), *rest = list, *word;

    while (list && (word = strsep(&rest, ","))) {
        bool known = false;

        for (size_t p = 0; p < N_PROFILES; p++)
            known |= !strcmp(profile_names[p], word);
        if (!known)
            die("--profile: no profile '%s'", word);
    }
    free(list);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"table", required_argument, NULL, 't'},   {"without", required_argument, NULL, 'w'},
        {"profile", required_argument, NULL, 'p'}, {"golden", required_argument, NULL, 'g'},
        {"output", required_argument, NULL, 'o'},  {NULL, 0, NULL, 0},
    };
    const char *profiles = "default,browser,build,runtime", *golden = NULL, *output = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
        switch (c) {
        case 't':
            table_path = optarg;
            break;
        case 'w':
            without = optarg;
            break;
        case 'p':
            profiles = optarg;
            break;
        case 'g':
            golden = optarg;
            break;
        case 'o':
            output = optarg;
            break;
        default:
            return 2;
        }
    }
    if (!table_path || !output || optind != argc) {
        fprintf(stderr, "usage: seccomp-gen --table FILE [--without LIST] [--profile LIST]"
                        " [--golden FILE] -o HEADER\n");
        return 2;
    }
    check_profiles(profiles);
    if (in_list(without, "all"))
        default_action = (struct action){ACT_ALLOW, 0};
    read_table();
    write_header(output, profiles);
    if (golden)
        write_golden(golden);
    return 0;
}
