/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jtext.h"
#include "base/sha256.h"
#include "base/state.h"
#include "base/utf8.h"
#include "policy/glob.h"

#define FILE_NAME   "tokens.json"
#define LOCK_NAME   "tokens.lock"
#define PREFIX      "cdn_"
#define SECRET      64u /* hex digits */
#define LIMIT_FILE  (8u << 20)
#define SECRET_AT   (sizeof(PREFIX) - 1 + TOKEN_ID - 1 + 1)
#define TEXT_LENGTH (SECRET_AT + SECRET)

_Static_assert(TEXT_LENGTH + 1 == TOKEN_TEXT, "a token's text has its size");

struct tokens {
    struct token *list;
    size_t n;
    struct stat seen; /* the file as it was read; all zero: there was none */
    int dir, held;    /* its folder, and it: while it is open its number is no other file's */
};

static const struct {
    enum right right;
    const char *name;
} rights[] = {
    {RIGHT_READ, "read"}, {RIGHT_RUN, "run"}, {RIGHT_ADMIN, "admin"}, {RIGHT_APPROVE, "approve"}};

const char *right_name(enum right r)
{
    for (size_t i = 0; i < sizeof(rights) / sizeof(*rights); i++)
        if (rights[i].right == r)
            return rights[i].name;
    return "";
}

/* ---- lists ---- */

static void free_strings(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

static void token_done(struct token *t)
{
    free(t->agent);
    free_strings(t->sessions);
    free(t->note);
}

void tokens_free(struct tokens *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        token_done(&t->list[i]);
    close_fd(&t->dir);
    close_fd(&t->held);
    free(t->list);
    free(t);
}

const struct token *tokens_at(const struct tokens *t, size_t i)
{
    return i < t->n ? &t->list[i] : NULL;
}

static struct token *find(const struct tokens *t, const char *id)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->list[i].id, id) == 0)
            return &t->list[i];
    return NULL;
}

/* Room for one more, all zero. */
static struct token *grow(struct tokens *t)
{
    struct token *list = realloc(t->list, (t->n + 1) * sizeof(*list));

    if (!list)
        return NULL;
    t->list = list;
    list[t->n] = (struct token){0};
    return &list[t->n++];
}

static bool copy_sessions(struct token *t, size_t n, const char *(*next)(void *arg), void *arg)
{
    t->sessions = calloc(n + 1, sizeof(*t->sessions));
    for (size_t i = 0; t->sessions && i < n; i++) {
        const char *s = next(arg);

        t->sessions[i] = s && strlen(s) <= LIMIT_PATTERN ? strdup(s) : NULL;
        if (!t->sessions[i])
            return false;
    }
    return t->sessions;
}

/* ---- hex ---- */

static void to_hex(const uint8_t *data, size_t n, char *text)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", data[i]);
}

static bool from_hex(const char *text, uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = text[2 * i] ? utf8_hex(text[2 * i]) : -1;
        int low = high >= 0 ? utf8_hex(text[2 * i + 1]) : -1;

        if (low < 0)
            return false;
        data[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * n] == 0;
}

static bool is_lower_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
            return false;
    return true;
}

/* ---- reading ---- */

static const char *next_session(void *arg)
{
    const struct jtext **v = arg;
    const char *s = jtext_string(*v);

    *v = jtext_next(*v);
    return s;
}

static bool read_one(const struct jtext *v, struct token *t)
{
    const struct jtext *sessions = jtext_get(v, "sessions"), *first = jtext_first(sessions);
    const char *id = jtext_string(jtext_get(v, "id")),
               *digest = jtext_string(jtext_get(v, "digest")),
               *agent = jtext_string(jtext_get(v, "agent")),
               *note = jtext_string(jtext_get(v, "note"));
    int64_t may;

    if (!id || strlen(id) != TOKEN_ID - 1 || !is_lower_hex(id, TOKEN_ID - 1) || !digest ||
        !from_hex(digest, t->digest, sizeof(t->digest)) || !agent ||
        strlen(agent) > LIMIT_PATTERN || jtext_count(sessions) > LIMIT_PATTERNS ||
        !jtext_int(jtext_get(v, "rights"), &may) ||
        !jtext_int(jtext_get(v, "created"), &t->created) ||
        !jtext_int(jtext_get(v, "expires"), &t->expires))
        return false;
    memcpy(t->id, id, TOKEN_ID);
    t->rights = (unsigned)may & RIGHTS_ALL;
    t->agent = strdup(agent);
    t->note = strdup(note ? note : "");
    return t->agent && t->note && copy_sessions(t, jtext_count(sessions), next_session, &first);
}

static int parse(struct tokens *t, const char *text, size_t len, struct error *err)
{
    autoptr(jtext_doc) doc = NULL;
    const struct jtext *list;
    int r = jtext_parse(text, len, &doc, err);

    if (r < 0)
        return error_wrap(err, FILE_NAME);
    list = jtext_get(jtext_root(doc), "tokens");
    if (jtext_count(list) > LIMIT_TOKENS)
        return error_set(err, ERR_TOO_LARGE, FILE_NAME ": more than %u tokens", LIMIT_TOKENS);
    for (const struct jtext *v = jtext_first(list); v; v = jtext_next(v)) {
        struct token *one = grow(t);

        if (!one)
            return error_sys(err, -ENOMEM, "read " FILE_NAME);
        if (!read_one(v, one))
            return error_set(err, ERR_INVALID, FILE_NAME ": token %zu is damaged", t->n);
    }
    return 0;
}

static int load_from(int dir, struct tokens **ret, struct error *err)
{
    autoptr(tokens) t = calloc(1, sizeof(*t));
    autoclose int fd = openat(dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    autofree char *text = NULL;
    ssize_t n;
    int r = 0;

    if (!t)
        return error_sys(err, -ENOMEM, "read " FILE_NAME);
    t->dir = t->held = -1;
    if (fd < 0 && errno != ENOENT)
        return error_sys(err, -errno, "open " FILE_NAME);
    if (fd >= 0) {
        if (fstat(fd, &t->seen) < 0)
            return error_sys(err, -errno, "look at " FILE_NAME);
        if (!S_ISREG(t->seen.st_mode) || t->seen.st_uid != geteuid() || t->seen.st_mode & 077)
            return error_set(err, ERR_DENIED,
                             FILE_NAME
                             " is not a private file of yours: chmod 600 it, or remove it "
                             "and make new tokens");
        if (t->seen.st_size > (off_t)LIMIT_FILE)
            return error_set(err, ERR_TOO_LARGE, FILE_NAME " is larger than %u MB",
                             LIMIT_FILE >> 20);
        text = malloc((size_t)t->seen.st_size + 1);
        n = text ? fd_read_full(fd, text, (size_t)t->seen.st_size) : -ENOMEM;
        r = n < 0 ? error_sys(err, (int)n, "read " FILE_NAME) : parse(t, text, (size_t)n, err);
    }
    if (r < 0)
        return r;
    t->held = TAKE_FD(fd);
    *ret = TAKE_PTR(t);
    return 0;
}

int tokens_load(struct tokens **ret, struct error *err)
{
    autoclose int dir = state_open_data(err);
    int r = dir < 0 ? dir : load_from(dir, ret, err);

    if (r < 0)
        return r;
    (*ret)->dir = TAKE_FD(dir);
    return 0;
}

bool tokens_is_stale(const struct tokens *t)
{
    struct stat now = {0};

    if (fstatat(t->dir, FILE_NAME, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return t->seen.st_ino != 0;
    return now.st_ino != t->seen.st_ino || now.st_dev != t->seen.st_dev ||
           now.st_size != t->seen.st_size || now.st_mtim.tv_sec != t->seen.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != t->seen.st_mtim.tv_nsec;
}

/* ---- writing ---- */

static void put_one(struct buf *b, const struct token *t)
{
    char digest[2 * sizeof(t->digest) + 1];

    to_hex(t->digest, sizeof(t->digest), digest);
    buf_puts(b, "{");
    buf_json_str(b, "id", t->id);
    buf_json_str(b, "digest", digest);
    buf_json_str(b, "agent", t->agent);
    buf_json_strings(b, "sessions", t->sessions, SIZE_MAX);
    buf_json_num(b, "rights", t->rights);
    buf_json_num(b, "created", t->created);
    buf_json_num(b, "expires", t->expires);
    buf_json_str(b, "note", t->note);
    buf_puts(b, "}");
}

static int save(int dir, const struct tokens *t, struct error *err)
{
    autoclose int fd = -1;
    char temp[48];
    autobuf b;
    int r;

    buf_init(&b, LIMIT_FILE);
    buf_puts(&b, "{\"tokens\":[");
    for (size_t i = 0; i < t->n; i++) {
        buf_puts(&b, i ? ",\n" : "\n");
        put_one(&b, &t->list[i]);
    }
    buf_puts(&b, "\n]}\n");
    if (b.failed)
        return error_set(err, ERR_TOO_LARGE, FILE_NAME " would be larger than %u MB",
                         LIMIT_FILE >> 20);
    (void)snprintf(temp, sizeof(temp), ".%s.%d", FILE_NAME, (int)getpid());
    fd = openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, -errno, "make " FILE_NAME);
    r = fd_write_full(fd, b.data, b.len);
    if (r >= 0 && fsync(fd) < 0) /* a token that was revoked must not come back */
        r = -errno;
    if (r >= 0 && renameat(dir, temp, dir, FILE_NAME) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir, temp, 0);
    return r < 0 ? error_sys(err, r, "write " FILE_NAME) : 0;
}

/* ---- changing ---- */

struct open_tokens {
    int dir, lock;
    struct tokens *list;
};

static void close_tokens(struct open_tokens *o)
{
    tokens_free(o->list);
    close_fd(&o->lock);
    close_fd(&o->dir);
}

/* One after the other: what somebody else has just written is not lost. */
static int open_tokens(struct open_tokens *o, struct error *err)
{
    int r = o->dir = state_open_data(err);

    if (r < 0)
        return r;
    o->lock = openat(o->dir, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (o->lock < 0)
        return error_sys(err, -errno, "open " LOCK_NAME);
    while (flock(o->lock, LOCK_EX) < 0)
        if (errno != EINTR)
            return error_sys(err, -errno, "lock " LOCK_NAME);
    return load_from(o->dir, &o->list, err);
}

static int open_token(struct open_tokens *o, const char *id, struct token **ret, struct error *err)
{
    int r = open_tokens(o, err);

    if (r < 0)
        return r;
    *ret = find(o->list, id);
    return *ret ? 0
                : error_set(err, ERR_NOT_FOUND,
                            "no such token: %s ('clawden token list' shows them)", id);
}

#define OPEN_TOKENS_EMPTY     \
    {                         \
        .dir = -1, .lock = -1 \
    }

static void digest_of(const char *secret, uint8_t ret[32])
{
    struct sha256 s;

    sha256_init(&s);
    sha256_update(&s, secret, SECRET);
    sha256_finish(&s, ret);
}

static int make_secret(struct token *t, char ret_text[TOKEN_TEXT], struct error *err)
{
    uint8_t raw[SECRET / 2];
    char secret[SECRET + 1];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return error_sys(err, -errno, "get random bytes for the token");
    to_hex(raw, sizeof(raw), secret);
    digest_of(secret, t->digest);
    (void)snprintf(ret_text, TOKEN_TEXT, PREFIX "%s_%s", t->id, secret);
    explicit_bzero(raw, sizeof(raw));
    explicit_bzero(secret, sizeof(secret));
    return 0;
}

static int make_id(const struct tokens *t, char id[TOKEN_ID], struct error *err)
{
    uint8_t raw[(TOKEN_ID - 1) / 2];

    do {
        if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
            return error_sys(err, -errno, "get random bytes for the token");
        to_hex(raw, sizeof(raw), id);
    } while (find(t, id));
    return 0;
}

static const char *next_string(void *arg)
{
    char *const **list = arg;

    return *(*list)++;
}

static int check_wanted(const struct token *w, size_t *ret_n, struct error *err)
{
    size_t n = 0;

    if (!w->agent || !w->agent[0] || strlen(w->agent) > LIMIT_PATTERN)
        return error_set(err, ERR_INVALID,
                         "a token is for an agent: name it, or write '*' for all");
    for (; w->sessions && w->sessions[n]; n++)
        if (!w->sessions[n][0] || strlen(w->sessions[n]) > LIMIT_PATTERN)
            return error_set(err, ERR_INVALID, "a pattern of sessions has 1 to %u bytes",
                             LIMIT_PATTERN);
    if (n == 0 || n > LIMIT_PATTERNS)
        return error_set(err, ERR_INVALID,
                         "a token is for sessions: 1 to %u patterns, '*' for all of the agent",
                         LIMIT_PATTERNS);
    if (!w->rights)
        return error_set(err, ERR_INVALID, "a token without a right is good for nothing");
    *ret_n = n;
    return 0;
}

int tokens_create(const struct token *wanted, char ret_text[TOKEN_TEXT], char ret_id[TOKEN_ID],
                  struct error *err)
{
    cleanup_(close_tokens) struct open_tokens o = OPEN_TOKENS_EMPTY;
    char *const *sessions = wanted->sessions;
    struct token *t;
    size_t n;
    int r = check_wanted(wanted, &n, err);

    if (r >= 0)
        r = open_tokens(&o, err);
    if (r < 0)
        return r;
    if (o.list->n >= LIMIT_TOKENS)
        return error_set(err, ERR_TOO_LARGE, "%u tokens are there: revoke some", LIMIT_TOKENS);
    r = make_id(o.list, ret_id, err);
    t = r < 0 ? NULL : grow(o.list);
    if (r < 0)
        return r;
    if (!t)
        return error_sys(err, -ENOMEM, "make a token");
    memcpy(t->id, ret_id, TOKEN_ID);
    t->rights = wanted->rights;
    t->created = (int64_t)time(NULL);
    t->expires = wanted->expires;
    t->agent = strdup(wanted->agent);
    t->note = strdup(wanted->note ? wanted->note : "");
    if (!t->agent || !t->note || !copy_sessions(t, n, next_string, &sessions))
        return error_sys(err, -ENOMEM, "make a token");
    r = make_secret(t, ret_text, err);
    return r < 0 ? r : save(o.dir, o.list, err);
}

int tokens_revoke(const char *id, struct error *err)
{
    cleanup_(close_tokens) struct open_tokens o = OPEN_TOKENS_EMPTY;
    struct token *t;
    int r = open_token(&o, id, &t, err);

    if (r < 0)
        return r;
    token_done(t);
    memmove(t, t + 1, (size_t)(o.list->list + o.list->n - (t + 1)) * sizeof(*t));
    o.list->n--;
    return save(o.dir, o.list, err);
}

int tokens_rotate(const char *id, char ret_text[TOKEN_TEXT], struct error *err)
{
    cleanup_(close_tokens) struct open_tokens o = OPEN_TOKENS_EMPTY;
    struct token *t;
    int r = open_token(&o, id, &t, err);

    if (r < 0)
        return r;
    r = make_secret(t, ret_text, err);
    return r < 0 ? r : save(o.dir, o.list, err);
}

/* ---- asking ---- */

static bool same_digest(const uint8_t *a, const uint8_t *b)
{
    unsigned differ = 0;

    for (int i = 0; i < 32; i++)
        differ |= (unsigned)(a[i] ^ b[i]);
    return differ == 0;
}

int token_make(struct token *t, char ret_text[TOKEN_TEXT], struct error *err)
{
    static const struct tokens none;
    int r = make_id(&none, t->id, err);

    return r < 0 ? r : make_secret(t, ret_text, err);
}

static bool is_token_text(const char *text, size_t len)
{
    return len == TEXT_LENGTH && memcmp(text, PREFIX, sizeof(PREFIX) - 1) == 0 &&
           text[SECRET_AT - 1] == '_' && is_lower_hex(text + SECRET_AT, SECRET);
}

bool token_is(const struct token *t, const char *text, size_t len)
{
    uint8_t digest[32];

    if (!is_token_text(text, len) || memcmp(text + sizeof(PREFIX) - 1, t->id, TOKEN_ID - 1) != 0)
        return false;
    digest_of(text + SECRET_AT, digest);
    return same_digest(digest, t->digest);
}

const struct token *tokens_check(const struct tokens *t, const char *text, size_t len, int64_t now)
{
    static const uint8_t nobody[32]; /* of no secret that anybody could find */
    const struct token *one;
    uint8_t digest[32];
    char id[TOKEN_ID];

    if (!is_token_text(text, len))
        return NULL;
    (void)snprintf(id, sizeof(id), "%.*s", (int)TOKEN_ID - 1, text + sizeof(PREFIX) - 1);
    one = find(t, id);
    digest_of(text + SECRET_AT, digest); /* also for an id that is not there */
    if (!same_digest(digest, one ? one->digest : nobody) || !one)
        return NULL;
    return one->expires && one->expires <= now ? NULL : one;
}

bool token_may(const struct token *t, unsigned right, const char *agent, const char *session)
{
    if ((t->rights & right) != right)
        return false;
    if (t->rights & RIGHT_ADMIN)
        return true;
    if (t->is_door)
        return strcmp(t->agent, agent) == 0 && strcmp(t->sessions[0], session) == 0;
    if (!glob_match(t->agent, agent))
        return false;
    for (size_t i = 0; t->sessions[i]; i++)
        if (glob_match_exact(t->sessions[i], session))
            return true;
    return false;
}
