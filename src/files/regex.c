/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matcher. A state is the set of steps that the text so far leads to, and what kind of byte
 * came last; what the next byte makes of it is found out once and kept. Assertions are decided when
 * the next byte is known, so that a state is a set from before them.
 */
#include "files/regex.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "files/regex_internal.h"

#define UNKNOWN (-1)
#define MATCH   (-2)
#define END     256 /* the end of the text or the line, as a byte */
#define ROW     257 /* of the table: a state's number is where its row starts */
#define BUCKETS 2048
#define LEAST   3 /* bytes of a needle that is worth looking for */

enum before {
    BEFORE_START,
    BEFORE_WORD,
    BEFORE_OTHER,
};

struct state {
    size_t first, n; /* in pool */
    uint32_t hash;
    int chain; /* next of the same bucket */
    enum before before;
};

/* A set that is emptied in no time. */
struct set {
    uint32_t *list, *where;
    size_t n;
};

struct files_regex {
    struct program prog;
    bool lines;   /* a newline ends the line */
    bool words;   /* some assertion asks what came before */
    char *needle; /* text that every match has in it ... */
    size_t needle_len;
    bool literal; /* ... and that is all: there is no automaton */

    struct state *states;
    int32_t *table; /* what each byte makes of each state */
    size_t n_states, cap_states;
    uint32_t *pool;
    size_t n_pool, cap_pool;
    int buckets[BUCKETS];
    int start;
    struct set now, then;
    uint32_t *stack;
};

/* ---- sets ---- */

static bool set_init(struct set *s, size_t size)
{
    s->list = calloc(size, sizeof(*s->list));
    s->where = calloc(size, sizeof(*s->where));
    return s->list && s->where;
}

static bool set_add(struct set *s, uint32_t v)
{
    if (s->where[v] < s->n && s->list[s->where[v]] == v)
        return false;
    s->where[v] = (uint32_t)s->n;
    s->list[s->n++] = v;
    return true;
}

/* ---- states ---- */

static uint32_t hash_set(const struct set *s, enum before before)
{
    uint32_t h = 2166136261u ^ (uint32_t)before;

    for (size_t i = 0; i < s->n; i++)
        h = (h ^ s->list[i]) * 16777619u;
    return h ^ h >> 15;
}

static int find_state(const struct files_regex *re, const struct set *s, enum before before,
                      uint32_t hash)
{
    for (int i = re->buckets[hash % BUCKETS]; i >= 0; i = re->states[i].chain) {
        const struct state *st = &re->states[i];

        if (st->hash == hash && st->before == before && st->n == s->n &&
            memcmp(re->pool + st->first, s->list, s->n * sizeof(*s->list)) == 0)
            return i * ROW;
    }
    return -1;
}

static bool more_states(struct files_regex *re)
{
    size_t cap = 2 * re->cap_states;
    struct state *states;
    int32_t *table;

    if (cap > LIMIT_FILES_STATES)
        return false;
    states = reallocarray(re->states, cap, sizeof(*states));
    if (!states)
        return false;
    re->states = states;
    table = reallocarray(re->table, cap, ROW * sizeof(*table));
    if (!table)
        return false;
    re->table = table;
    re->cap_states = cap;
    return true;
}

static bool room_for_state(struct files_regex *re, size_t n)
{
    size_t cap = 2 * re->cap_pool;
    uint32_t *more;

    if (re->n_states == re->cap_states && !more_states(re))
        return false;
    if (re->n_pool + n <= re->cap_pool)
        return true;
    if (cap > LIMIT_FILES_STEPS || cap < re->n_pool + n)
        return false;
    more = reallocarray(re->pool, cap, sizeof(*more));
    if (!more)
        return false;
    re->pool = more;
    re->cap_pool = cap;
    return true;
}

/* There is room. */
static int make_state(struct files_regex *re, const struct set *s, enum before before,
                      uint32_t hash)
{
    struct state *st = &re->states[re->n_states];

    st->first = re->n_pool;
    st->n = s->n;
    st->hash = hash;
    st->before = before;
    st->chain = re->buckets[hash % BUCKETS];
    memset(re->table + re->n_states * ROW, 0xff, ROW * sizeof(*re->table)); /* UNKNOWN */
    if (s->n)
        memcpy(re->pool + re->n_pool, s->list, s->n * sizeof(*s->list));
    re->n_pool += s->n;
    re->buckets[hash % BUCKETS] = (int)re->n_states++;
    return re->buckets[hash % BUCKETS] * ROW;
}

/* Forgets everything but the start. */
static void flush(struct files_regex *re)
{
    uint32_t first = re->prog.start, zero = 0;
    struct set s = {.list = &first, .where = &zero, .n = 1};

    re->n_states = re->n_pool = 0;
    memset(re->buckets, 0xff, sizeof(re->buckets));
    re->start = make_state(re, &s, BEFORE_START, hash_set(&s, BEFORE_START));
}

/* The state of a set; *ret_flushed if older ones are gone. The first allocation holds two. */
static int state_of(struct files_regex *re, const struct set *s, enum before before,
                    bool *ret_flushed)
{
    uint32_t hash = hash_set(s, before);
    int i = find_state(re, s, before, hash);

    if (i >= 0)
        return i;
    if (!room_for_state(re, s->n)) {
        flush(re);
        *ret_flushed = true;
    }
    return make_state(re, s, before, hash);
}

/* ---- one byte ---- */

static bool is_word(int c)
{
    return c < 128 && (isalnum(c) || c == '_');
}

static bool holds(uint8_t what, enum before before, bool at_end, bool word)
{
    switch ((enum assertion)what) {
    case AT_START:
        return before == BEFORE_START;
    case AT_END:
    case AT_END_CR:
        return at_end;
    case AT_WORD:
        return (before == BEFORE_WORD) != word;
    case AT_NO_WORD:
        return (before == BEFORE_WORD) == word;
    }
    return false;
}

/* Follows splits and the assertions that hold here from one step; true if the match is reached. */
static bool close_over(struct files_regex *re, uint32_t from, enum before before, bool at_end,
                       bool word)
{
    size_t n = 0;

    if (set_add(&re->now, from))
        re->stack[n++] = from;
    while (n) {
        const struct step *s = &re->prog.steps[re->stack[--n]];

        if (s->op == STEP_MATCH)
            return true;
        if (s->op == STEP_BYTE || (s->op == STEP_ASSERT && !holds(s->lo, before, at_end, word)))
            continue;
        if (set_add(&re->now, s->x))
            re->stack[n++] = s->x;
        if (s->op == STEP_SPLIT && set_add(&re->now, s->y))
            re->stack[n++] = s->y;
    }
    return false;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The steps that byte c leads to, and the start again: a match may begin anywhere. */
static void move_on(struct files_regex *re, int c)
{
    re->then.n = 0;
    (void)set_add(&re->then, re->prog.start);
    for (size_t i = 0; i < re->now.n; i++) {
        const struct step *s = &re->prog.steps[re->now.list[i]];

        if (s->op == STEP_BYTE && c >= s->lo && c <= s->hi)
            (void)set_add(&re->then, s->x);
    }
    /* In one order, so that equal sets are found equal. */
    qsort(re->then.list, re->then.n, sizeof(*re->then.list), by_number);
}

static int step_on(struct files_regex *re, int from, int c)
{
    const struct state *st = &re->states[from / ROW];
    bool at_end = c == END || (c == '\n' && re->lines), word = !at_end && is_word(c), match = false;
    bool flushed = false;
    int to;

    re->now.n = 0;
    for (size_t i = 0; i < st->n && !match; i++)
        match = close_over(re, re->pool[st->first + i], st->before, at_end, word);
    if (match) {
        to = MATCH;
    } else if (at_end) {
        to = re->start;
    } else {
        move_on(re, c);
        to = state_of(re, &re->then, re->words && word ? BEFORE_WORD : BEFORE_OTHER, &flushed);
    }
    if (!flushed)
        re->table[from + c] = to;
    return to;
}

/* ---- texts ---- */

/* Where a match is known, or -1; *ret_state is where the text ended. */
static ptrdiff_t run(struct files_regex *re, const char *text, size_t len, int *ret_state)
{
    const unsigned char *p = (const unsigned char *)text;
    const int32_t *table = re->table;
    int s = re->start;

    for (size_t i = 0; i < len; i++) {
        int t = table[s + p[i]];

        if (t < 0) {
            t = t == UNKNOWN ? step_on(re, s, p[i]) : t;
            if (t == MATCH)
                return (ptrdiff_t)i;
            table = re->table;
        }
        s = t;
    }
    *ret_state = s;
    return -1;
}

static bool matches_end(struct files_regex *re, int s)
{
    int t = re->table[s + END];

    return (t == UNKNOWN ? step_on(re, s, END) : t) == MATCH;
}

/* Lines without the needle are not looked at. */
static ptrdiff_t scan_by_needle(struct files_regex *re, const char *text, size_t len)
{
    const char *p = text, *end = text + len, *hit;

    while (p < end && (hit = memmem(p, (size_t)(end - p), re->needle, re->needle_len))) {
        const char *nl = memrchr(p, '\n', (size_t)(hit - p)), *line = nl ? nl + 1 : p;
        const char *stop = memchr(hit, '\n', (size_t)(end - hit));
        int s = 0;

        stop = stop ? stop : end;
        if (run(re, line, (size_t)(stop - line), &s) >= 0 || matches_end(re, s))
            return hit - text;
        p = stop + (stop < end);
    }
    return -1;
}

ptrdiff_t files_regex_scan(struct files_regex *re, const char *text, size_t len)
{
    ptrdiff_t at;
    int s = 0;

    if (len == 0)
        return -1;
    if (re->literal) {
        const char *hit = memmem(text, len, re->needle, re->needle_len);

        return hit ? hit - text : -1;
    }
    if (re->needle)
        return scan_by_needle(re, text, len);
    at = run(re, text, len, &s);
    if (at >= 0 || (re->lines && text[len - 1] == '\n'))
        return at;
    return matches_end(re, s) ? (ptrdiff_t)len : -1;
}

bool files_regex_match(struct files_regex *re, const char *line, size_t len)
{
    int s = 0;

    if (re->literal)
        return memmem(line, len, re->needle, re->needle_len) != NULL;
    return run(re, line, len, &s) >= 0 || matches_end(re, s);
}

/* ---- making ---- */

void files_regex_free(struct files_regex *re)
{
    if (!re)
        return;
    free(re->prog.steps);
    free(re->needle);
    free(re->states);
    free(re->table);
    free(re->pool);
    free(re->now.list);
    free(re->now.where);
    free(re->then.list);
    free(re->then.where);
    free(re->stack);
    free(re);
}

static int literal_parse(const char *s, size_t len, bool fold, struct tree *t, struct error *err)
{
    int cat = files_tree_node(t, NODE_CAT), last = -1;

    for (size_t i = 0; i < len && cat >= 0; i++) {
        int n = files_tree_byte(t, (unsigned char)s[i], fold);

        if (n < 0)
            return error_sys(err, n, "pattern");
        files_tree_chain(t, cat, &last, n);
    }
    return cat < 0 ? error_sys(err, cat, "pattern") : cat;
}

/* The longest run of plain characters among the parts that every match goes through. */
static void find_needle(struct files_regex *re, const struct tree *t, int root)
{
    char now[LIMIT_FILES_PATTERN + 4], best[sizeof(now)];
    size_t n = 0, most = 0;
    const struct node *top = &t->nodes[root];

    if (top->kind != NODE_ALT || t->nodes[top->child].next >= 0)
        return;
    for (int i = t->nodes[top->child].child; i >= 0; i = t->nodes[i].next) {
        const struct node *node = &t->nodes[i];
        bool one = node->kind == NODE_CHARS && node->n == 1;
        struct range r = one ? t->ranges[node->first] : (struct range){0, 1};

        if (r.lo != r.hi || r.lo == '\n' || (r.lo >= 0xd800 && r.lo < 0xe000)) {
            n = 0;
            continue;
        }
        n += utf8_put(r.lo, now + n);
        if (n > most)
            memcpy(best, now, most = n);
    }
    re->needle = most < LEAST ? NULL : malloc(most);
    if (!re->needle)
        return;
    memcpy(re->needle, best, most);
    re->needle_len = most;
}

static int build(struct files_regex *re, const char *s, size_t len, unsigned flags,
                 struct error *err)
{
    bool fold = flags & FILES_REGEX_ICASE;
    struct tree t = {0};
    int root = flags & FILES_REGEX_GLOB      ? files_glob_parse(s, len, &t, err)
               : flags & FILES_REGEX_LITERAL ? literal_parse(s, len, fold, &t, err)
                                             : files_regex_parse(s, len, fold, &t, err);
    int r = root < 0 ? root : files_regex_compile(&t, root, &re->prog, err);

    if (r == 0 && re->lines)
        find_needle(re, &t, root);
    files_tree_done(&t);
    for (size_t i = 0; r == 0 && i < re->prog.n; i++)
        re->words |= re->prog.steps[i].op == STEP_ASSERT && re->prog.steps[i].lo >= AT_WORD;
    return r;
}

/* Room for two states of any size: after a flush, the start and one more always fit. */
static bool prepare(struct files_regex *re)
{
    size_t n = re->prog.n + 1;

    re->cap_states = 4;
    re->cap_pool = 2 * n + 256;
    re->states = calloc(re->cap_states, sizeof(*re->states));
    re->table = calloc(re->cap_states, ROW * sizeof(*re->table));
    re->pool = calloc(re->cap_pool, sizeof(*re->pool));
    re->stack = calloc(n, sizeof(*re->stack));
    if (!re->states || !re->table || !re->pool || !re->stack || !set_init(&re->now, n) ||
        !set_init(&re->then, n))
        return false;
    flush(re);
    return true;
}

int files_regex_new(const char *pattern, size_t len, unsigned flags, struct files_regex **ret,
                    struct error *err)
{
    autoptr(files_regex) re = NULL;
    int r;

    if (len == 0 && !(flags & FILES_REGEX_GLOB))
        return error_set(err, ERR_INVALID, "pattern: it is empty; every line would match");
    if (len > LIMIT_FILES_PATTERN)
        return error_set(err, ERR_TOO_LARGE, "pattern: it has %zu bytes; at most %u", len,
                         LIMIT_FILES_PATTERN);
    if (memchr(pattern, 0, len))
        return error_set(err, ERR_INVALID, "pattern: it has a NUL byte, which no text has");
    re = calloc(1, sizeof(*re));
    if (!re)
        return error_sys(err, -ENOMEM, "pattern");
    re->lines = !(flags & FILES_REGEX_GLOB);
    if ((flags & FILES_REGEX_LITERAL) && memchr(pattern, '\n', len))
        return error_set(err, ERR_INVALID, "pattern: it has a newline; lines are searched alone");
    if ((flags & (FILES_REGEX_LITERAL | FILES_REGEX_ICASE)) == FILES_REGEX_LITERAL) {
        re->needle = malloc(len);
        if (!re->needle)
            return error_sys(err, -ENOMEM, "pattern");
        memcpy(re->needle, pattern, len);
        re->needle_len = len;
        re->literal = true;
    } else {
        r = build(re, pattern, len, flags, err);
        if (r < 0)
            return r;
        if (!prepare(re))
            return error_sys(err, -ENOMEM, "pattern");
    }
    *ret = TAKE_PTR(re);
    return 0;
}
