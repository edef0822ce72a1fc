/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/base64.h"
#include "mcp/limits.h"
#include "unit/gateway/front_world.h"

#define MCP            AUTH JSON_TYPE "Accept: application/json, text/event-stream\r\n"
#define LEGACY         MCP "MCP-Protocol-Version: 2025-06-18\r\n"
#define MODERN(method) MCP "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"
#define META                                                                 \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{},"                     \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"}"
#define INITIALIZE                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"
#define EXEC(more)                                                                           \
    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"exec\"," \
    "\"arguments\":{\"command\":\"id\"}" more "}}"

static void keep(struct back_world *b, uint32_t id, const json_t *q)
{
    (void)b;
    (void)id;
    (void)q;
}

static int begin_call(struct back_world *b, const char *fields, const char *body)
{
    char text[4096];
    int fd = world_connect(&b->w);

    b->on_call = keep;
    (void)snprintf(text, sizeof(text),
                   "POST /mcp HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n%s", fields,
                   strlen(body), body);
    client_say(fd, text);
    world_run(&b->w);
    return fd;
}

/* ---- HTTP ---- */

static void test_legacy(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_POST(&b, 200, "\"protocolVersion\":\"2025-06-18\"", "/mcp", MCP, INITIALIZE);
    CHECK_STR(asked(&b, "op"), "\"me\"", "initialize");
    CHECK_POST(&b, 200, "\"version\":\"1.2.3\"", "/mcp", MCP, INITIALIZE);
    CHECK_POST(&b, 202, "", "/mcp", LEGACY,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    CHECK_POST(&b, 200, "\"name\":\"apply_patch\"", "/mcp", LEGACY, LIST);
    CHECK_POST(&b, 200, "\"structuredContent\":{", "/mcp", LEGACY, EXEC(""));
    CHECK_STR(asked(&b, "params"),
              "{\"arguments\":{\"command\":\"id\"},\"stream\":false,\"tool\":\"exec\"}", "call");
    CHECK_POST(&b, 200, "\"content\":[{\"type\":\"text\",\"text\":\"hi\\n\"}]", "/mcp", LEGACY,
               EXEC(""));
    CHECK_POST(
        &b, 200, "-32602", "/mcp", LEGACY,
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"no\"}}");
    CHECK_POST(&b, 400, "-32700", "/mcp", LEGACY, "x");
    CHECK_STR(asked(&b, "op"), "\"me\"", "nonsense");
    back_end(&b);
}

static void test_modern(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_POST(&b, 200, "\"resultType\":\"complete\"", "/mcp", MODERN("server/discover"),
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META
               "}}}");
    CHECK_POST(&b, 200, "\"name\":\"exec\"", "/mcp", MODERN("tools/list"),
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}}");
    CHECK_POST(
        &b, 200, "\"stdout\":\"hi\\n\"", "/mcp",
        MODERN("tools/call") "Mcp-Name: exec\r\nX-ClawDen-Agent: a\r\nX-ClawDen-Session: s\r\n",
        EXEC("," META "}"));
    CHECK_STR(asked(&b, "params"),
              "{\"agent\":\"a\",\"arguments\":{\"command\":\"id\"},\"session\":\"s\",\"stream\":"
              "false,\"tool\":\"exec\"}",
              "call");
    /* Headers that say something else than the body are no way around a proxy. */
    CHECK_POST(&b, 400, "-32020", "/mcp", MODERN("tools/list") "Mcp-Name: exec\r\n",
               EXEC("," META "}"));
    CHECK_POST(&b, 400, "twice", "/mcp",
               MODERN("tools/call") "Mcp-Name: exec\r\nMcp-Name: exec\r\n", EXEC("," META "}"));
    CHECK_POST(&b, 400, "twice", "/mcp", LEGACY "X-ClawDen-Agent: a\r\nX-ClawDen-Agent: b\r\n",
               EXEC(""));
    CHECK_POST(&b, 400, "UTF-8", "/mcp", LEGACY "X-ClawDen-Agent: \xff\r\n", EXEC(""));
    back_end(&b);
}

static void test_credentials(void **state)
{
    static const char *const bodies[] = {INITIALIZE, LIST, EXEC(""), "x",
                                         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}"};
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(body, bodies)
    {
        CHECK_POST(&b, 401, "WWW-Authenticate", "/mcp", JSON_TYPE, *body);
        CHECK_POST(&b, 401, "WWW-Authenticate", "/mcp",
                   JSON_TYPE "Authorization: Bearer " TOKEN_B "\r\n", *body);
    }
    back_end(&b);
}

static void test_progress(void **state)
{
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    int fd;

    (void)state;
    back_begin(&b);
    fd = begin_call(&b, LEGACY, EXEC(",\"_meta\":{\"progressToken\":\"p\"}"));
    CHECK_STR(asked(&b, "params/stream"), "true", "stream");
    back_tell(&b, b.id, "{\"seq\":1,\"type\":\"started\",\"call\":\"" CALL_A "\"}");
    back_tell(&b, b.id,
              "{\"seq\":2,\"type\":\"output\",\"stream\":\"stdout\",\"data\":\"so far\"}");
    back_tell(&b, b.id, "{\"seq\":3,\"type\":\"end\"}");
    world_run(&b.w);
    assert_true(b.n_taken >= 3);
    back_say(&b, b.id, 200, ANSWER);
    world_run(&b.w);
    (void)client_read(fd, &got);
    CHECK(strstr(got.data, "Content-Type: text/event-stream"), "%s", got.data);
    CHECK(strstr(got.data, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
                           "\"notifications/progress\",\"params\":{\"progressToken\":\"p\","
                           "\"progress\":2,\"message\":\"so far\"}}\n\n"),
          "%s", got.data);
    CHECK(strstr(got.data, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{"), "%s", got.data);
    CHECK(strstr(got.data, "\r\n0\r\n\r\n"), "%s", got.data);
    (void)close(fd);
    buf_done(&got);
    /* Who takes no events gets a plain reply. */
    b.on_call = NULL;
    CHECK_POST(&b, 200, "Content-Type: application/json", "/mcp", AUTH JSON_TYPE,
               EXEC(",\"_meta\":{\"progressToken\":\"p\"}"));
    CHECK_STR(asked(&b, "params/stream"), "false", "stream");
    back_end(&b);
}

static void refuse(struct back_world *b, uint32_t id, const json_t *q)
{
    (void)q;
    if (b->n_taken++ == 0)
        back_say(b, id, 403,
                 "{\"call\":\"c\",\"denied\":{\"op\":\"exec\",\"rule\":\"r\",\"final\":true}}");
    else
        back_say(b, id, 422, "{\"error\":{\"code\":\"x\",\"message\":\"no such file\"}}");
}

static void test_errors(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    b.on_call = refuse;
    CHECK_POST(&b, 200, "\\\"denied\\\":{\\\"op\\\":\\\"exec\\\"", "/mcp", LEGACY, EXEC(""));
    CHECK_POST(&b, 200, "\"text\":\"no such file\"}],\"isError\":true", "/mcp", LEGACY, EXEC(""));
    back_end(&b);
}

static void test_cancel(void **state)
{
    static const char given_up[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                   "\"params\":{\"requestId\":3}}";
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    uint32_t id;
    int fd, two;

    (void)state;
    back_begin(&b);
    fd = begin_call(&b, LEGACY, EXEC(""));
    id = b.id;
    CHECK_POST(&b, 401, "", "/mcp", JSON_TYPE "Authorization: Bearer " TOKEN_B "\r\n", given_up);
    assert_int_equal(b.n_cancelled, 0);
    CHECK_POST(&b, 202, "", "/mcp", LEGACY, given_up);
    assert_int_equal(b.n_cancelled, 1);
    assert_int_equal(b.cancelled, id);
    (void)client_read(fd, &got);
    assert_int_equal(status_of(got.data), 202);
    (void)close(fd);
    /* Two clients of one token that use the same id: neither is ended for the other. */
    fd = begin_call(&b, LEGACY, EXEC(""));
    two = begin_call(&b, LEGACY, EXEC(""));
    CHECK_POST(&b, 202, "", "/mcp", LEGACY, given_up);
    assert_int_equal(b.n_cancelled, 1);
    (void)close(fd);
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, 2);
    (void)close(two);
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, 3);
    buf_done(&got);
    back_end(&b);
}

/* ---- texts ---- */

static void test_texts(void **state)
{
    static const struct {
        const char *tool, *result, *text;
    } rows[] = {
        {"exec", "{\"status\":\"exited\",\"exitCode\":0,\"stdout\":\"a\\n\",\"stderr\":\"\"}",
         "a\n"},
        {"bash", "{\"status\":\"exited\",\"exitCode\":2,\"stdout\":\"a\",\"stderr\":\"b\"}",
         "a\nb\n[exit status 2]"},
        {"exec", "{\"status\":\"exited\",\"exitCode\":0,\"stdout\":\"\",\"stderr\":\"\"}",
         "[no output]"},
        {"exec", "{\"status\":\"signaled\",\"signal\":\"SIGSEGV\",\"stdout\":\"\"}",
         "[ended by SIGSEGV]"},
        {"exec", "{\"status\":\"limit\",\"limit\":{\"name\":\"timeout\"},\"truncated\":true}",
         "[ended by the limit 'timeout']\n[output is cut; process, action log has the whole]"},
        {"exec", "{\"status\":\"running\",\"process\":\"p1\"}", "[it goes on: process 'p1']"},
        {"read", "{\"kind\":\"text\",\"content\":\"x\\ny\",\"note\":\"more\"}", "x\ny\n[more]"},
        {"read", "{\"kind\":\"binary\",\"size\":3}", "{\"kind\":\"binary\",\"size\":3}"},
        {"ls", "{\"entries\":[]}", "{\"entries\":[]}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct buf out = {.max = 4096};
        json_t *v = json_loads(row->result, 0, NULL);

        front_mcp_text(row->tool, v, &out);
        CHECK_STR(out.data, row->text, row->result);
        json_decref(v);
        buf_done(&out);
    }
}

static void picture(struct back_world *b, uint32_t id, const json_t *q)
{
    (void)q;
    back_say(b, id, 200,
             "{\"result\":{\"path\":\"a.png\",\"kind\":\"image\",\"size\":3,\"version\":\"v\","
             "\"mimeType\":\"image/png\",\"data\":\"AQID\"}}");
}

static void test_image(void **state)
{
    struct back_world b;
    char *got;

    (void)state;
    back_begin(&b);
    b.on_call = picture;
    got = ask_post(&b, "/mcp", LEGACY,
                   "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"read\",\"arguments\":{\"path\":\"a.png\"}}}");
    CHECK(strstr(got, "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"AQID\"}"), "%s",
          got);
    CHECK(strstr(got, "\"structuredContent\":{\"path\":\"a.png\""), "%s", got);
    CHECK(!strstr(strstr(got, "AQID") + 4, "AQID"), "%s", got);
    free(got);
    back_end(&b);
}

/* ---- standard input and output ---- */

struct pipes {
    int to, from; /* the client's ends */
};

static void begin_stdio(struct back_world *b, struct pipes *p)
{
    int in[2], out[2];

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    back_begin_with(
        b,
        (struct front_options){
            .stdio = true, .in_fd = in[0], .out_fd = out[1], .agent = "main", .session = "here"});
    back_facts(b, facts_text);
    *p = (struct pipes){in[1], out[0]};
    (void)fcntl(p->from, F_SETFL, O_NONBLOCK);
}

static void end_stdio(struct back_world *b, struct pipes *p)
{
    int in = b->front->o.in_fd, out = b->front->o.out_fd;

    back_end(b);
    (void)close(in);
    (void)close(out);
    if (p->to >= 0)
        (void)close(p->to);
    if (p->from >= 0)
        (void)close(p->from);
}

static void say(struct back_world *b, struct pipes *p, const char *line)
{
    size_t len = strlen(line);

    assert_int_equal(write(p->to, line, len), (ssize_t)len);
    assert_int_equal(write(p->to, "\n", 1), 1);
    world_run(&b->w);
}

static void hear(struct back_world *b, struct pipes *p, struct buf *got)
{
    char chunk[65536];
    ssize_t n;

    world_run(&b->w);
    buf_clear(got);
    buf_puts(got, "");
    while ((n = read(p->from, chunk, sizeof(chunk))) > 0) {
        buf_append(got, chunk, (size_t)n);
        world_run(&b->w);
    }
}

static void test_stdio(void **state)
{
    struct buf got = {.max = 16u << 20};
    struct back_world b;
    struct pipes p;

    (void)state;
    begin_stdio(&b, &p);
    say(&b, &p, INITIALIZE);
    say(&b, &p, "");
    say(&b, &p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "\"protocolVersion\":\"2025-06-18\"") &&
              strchr(got.data, '\n') == got.data + got.len - 1,
          "%s", got.data);
    say(&b, &p, LIST "\r");
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "\"name\":\"exec\""), "%s", got.data);
    say(&b, &p, EXEC(",\"_meta\":{\"progressToken\":1}"));
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "\"id\":3,\"result\":") && strstr(got.data, "hi\\n"), "%s", got.data);
    CHECK_STR(asked(&b, "params"),
              "{\"agent\":\"main\",\"arguments\":{\"command\":\"id\"},\"session\":\"here\","
              "\"stream\":true,\"tool\":\"exec\"}",
              "call");
    CHECK_STR(asked(&b, "token"), "none", "call");
    assert_int_equal(b.n_asked, 1);
    say(&b, &p,
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"exec\","
        "\"arguments\":{\"command\":\"id\"}," META "}}}");
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "\"resultType\":\"complete\""), "%s", got.data);
    buf_done(&got);
    end_stdio(&b, &p);
}

static void test_stdio_calls(void **state)
{
    struct buf got = {.max = 16u << 20};
    struct back_world b;
    struct pipes p;
    uint32_t id;

    (void)state;
    begin_stdio(&b, &p);
    b.on_call = keep;
    say(&b, &p, INITIALIZE);
    say(&b, &p, EXEC(",\"_meta\":{\"progressToken\":1}"));
    id = b.id;
    back_tell(&b, id, "{\"seq\":1,\"type\":\"output\",\"data\":\"so far\"}");
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "\"message\":\"so far\""), "%s", got.data);
    say(&b, &p,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
        "cancelled\",\"params\":{\"requestId\":3}}");
    assert_int_equal(b.n_cancelled, 1);
    assert_int_equal(b.cancelled, id);
    back_say(&b, id, 200, ANSWER);
    hear(&b, &p, &got);
    CHECK_STR(got.data, "", "after the end");
    /* Standard input ends: so does what runs, and the front. */
    say(&b, &p, EXEC(""));
    (void)close(p.to);
    p.to = -1;
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, 2);
    assert_true(b.has_ended && !b.ended);
    buf_done(&got);
    end_stdio(&b, &p);
}

static void test_stdio_long_line(void **state)
{
    struct buf got = {.max = 16u << 20};
    struct back_world b;
    struct pipes p;
    char *piece = calloc(1, 65536);

    (void)state;
    memset(piece, 'x', 65536);
    begin_stdio(&b, &p);
    for (unsigned i = 0; i < 3 * (LIMIT_MCP_MESSAGE >> 16); i++) {
        assert_int_equal(write(p.to, piece, 65536), 65536);
        world_run(&b.w);
        assert_true(b.front->stdio != NULL);
    }
    say(&b, &p, "");
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "too long"), "%s", got.data);
    say(&b, &p, INITIALIZE);
    hear(&b, &p, &got);
    CHECK(strstr(got.data, "protocolVersion"), "%s", got.data);
    free(piece);
    buf_done(&got);
    end_stdio(&b, &p);
}

/* A client that writes and does not read: it is not read from either, and nobody blocks. */
static void test_stdio_slow(void **state)
{
    struct buf got = {.max = 64u << 20};
    struct back_world b;
    struct pipes p;
    unsigned n = 0;

    (void)state;
    begin_stdio(&b, &p);
    (void)fcntl(p.to, F_SETFL, O_NONBLOCK);
    say(&b, &p, INITIALIZE);
    while (n < 100000 && write(p.to, LIST "\n", sizeof(LIST)) == (ssize_t)sizeof(LIST)) {
        n++;
        world_run(&b.w);
        assert_false(b.has_ended);
    }
    assert_true(n > 10 && n < 5000);
    (void)close(p.to);
    p.to = -1;
    for (unsigned i = 0, ended = 0; i < 10000 && ended < 2; i++) {
        char chunk[65536];
        ssize_t r = read(p.from, chunk, sizeof(chunk));

        if (r > 0)
            buf_append(&got, chunk, (size_t)r);
        ended += b.has_ended;
        world_run(&b.w);
    }
    assert_true(b.has_ended && !b.ended);
    for (size_t i = 0, lines = 0; i < got.len; i++) {
        lines += got.data[i] == '\n';
        if (i + 1 == got.len)
            assert_int_equal(lines, n + 1);
    }
    buf_done(&got);
    end_stdio(&b, &p);
}

static void test_stdio_no_reader(void **state)
{
    struct back_world b;
    struct pipes p;

    (void)state;
    begin_stdio(&b, &p);
    b.on_call = keep;
    say(&b, &p, INITIALIZE);
    say(&b, &p, EXEC(""));
    (void)close(p.from);
    p.from = -1;
    say(&b, &p, LIST);
    world_run(&b.w);
    assert_true(b.has_ended);
    assert_int_equal(b.n_cancelled, 1);
    end_stdio(&b, &p);
}

static void test_stdio_files(void **state)
{
    const struct temp *t = *state;
    struct back_world b;
    char *text;
    int in, out;

    temp_write(t, "in", INITIALIZE "\n" LIST, sizeof(INITIALIZE "\n" LIST) - 1);
    in = openat(t->fd, "in", O_RDONLY | O_CLOEXEC);
    out = openat(t->fd, "out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    back_begin_with(&b, (struct front_options){.stdio = true, .in_fd = in, .out_fd = out});
    back_facts(&b, facts_text);
    world_run(&b.w);
    assert_true(b.has_ended && !b.ended);
    text = temp_read(t, "out", NULL);
    CHECK(strstr(text, "protocolVersion") && strstr(text, "apply_patch"), "%s", text);
    free(text);
    back_end(&b);
    (void)close(in);
    (void)close(out);
}

/* ---- questions to the client's user ---- */

#define CAN_ASK                                                              \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}"

static void wait_for_yes(struct back_world *b, uint32_t id, const json_t *q)
{
    const char *ask =
        json_object_get(json_object_get(q, "params"), "asks") ? ",\"ask\":\"Allow exec?\"" : "";
    char text[256];

    (void)snprintf(text, sizeof(text),
                   "{\"call\":\"c\",\"denied\":{\"final\":false,\"approval\":\"ap1\"}%s}", ask);
    back_say(b, id, 403, text);
}

/* The state of the question that came; to be freed. */
static char *state_of(const char *answer)
{
    const char *at = strstr(answer, "\"requestState\":\""), *end;

    CHECK(at, "no state: %s", answer);
    at += strlen("\"requestState\":\"");
    end = strchr(at, '"');
    return strndup(at, (size_t)(end - at));
}

static void test_question(void **state)
{
    static const struct {
        const char *answer, *want;
    } rows[] = {
        {"{\"action\":\"accept\",\"content\":{\"allow\":true}}", "true"},
        {"{\"action\":\"accept\",\"content\":{\"allow\":false}}", "false"},
        {"{\"action\":\"accept\",\"content\":{\"allow\":\"true\"}}", "false"},
        {"{\"action\":\"accept\"}", "false"},
        {"{\"action\":\"decline\",\"content\":{\"allow\":true}}", "false"},
        {"{\"action\":\"cancel\"}", "false"},
        {"{}", "false"},
    };
    static const char fields[] = MODERN("tools/call") "Mcp-Name: exec\r\n";
    struct back_world b;
    char *answer, *kept;

    (void)state;
    back_begin(&b);
    b.on_call = wait_for_yes;
    answer = ask_post(&b, "/mcp", fields, EXEC("," CAN_ASK "}"));
    CHECK_STR(asked(&b, "params/asks"), "true", "asks");
    CHECK(strstr(answer, "\"resultType\":\"input_required\"") && strstr(answer, "Allow exec?") &&
              strstr(answer, "\"allow\":{\"type\":\"boolean\""),
          "%s", answer);
    kept = state_of(answer);
    FOR_EACH(row, rows)
    {
        char body[2048];

        (void)snprintf(body, sizeof(body),
                       EXEC("," CAN_ASK "},\"requestState\":\"%s\",\"inputResponses\":{"
                            "\"approve\":%s}"),
                       kept, row->answer);
        free(ask_post(&b, "/mcp", fields, body));
        CHECK_STR(asked(&b, "params/answer/approval"), "\"ap1\"", row->answer);
        CHECK_STR(asked(&b, "params/answer/allow"), row->want, row->answer);
    }
    free(kept);
    free(answer);
    back_end(&b);
}

/* Nobody can be asked: the refusal says what can be done. */
static void test_no_question(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    b.on_call = wait_for_yes;
    CHECK_POST(&b, 200, "\\\"approval\\\":\\\"ap1\\\"", "/mcp",
               MODERN("tools/call") "Mcp-Name: exec\r\n", EXEC("," META "}"));
    CHECK_POST(&b, 200, "\\\"approval\\\":\\\"ap1\\\"", "/mcp", LEGACY,
               EXEC(",\"inputResponses\":{\"approve\":{\"action\":\"accept\"}}"));
    CHECK_STR(asked(&b, "params"),
              "{\"arguments\":{\"command\":\"id\"},\"stream\":false,\"tool\":\"exec\"}", "legacy");
    back_end(&b);
}

static const struct CMUnitTest claims[] = {
    CLAIM("legacy clients begin, list and call", test_legacy),
    CLAIM("modern clients discover, list and call, and headers agree", test_modern),
    CLAIM("nothing is told without a credential that the back knows", test_credentials),
    CLAIM("progress comes as events, the reply last", test_progress),
    CLAIM("a refusal is a result that is an error, with its JSON", test_errors),
    CLAIM("a call is given up by notification or by closing", test_cancel),
    CLAIM("the model reads what a person would", test_texts),
    CLAIM("a picture is content, once", test_image),
    CLAIM("the client's user is asked, and only a clear yes is one", test_question),
    CLAIM("where nobody can be asked a refusal stays one", test_no_question),
    CLAIM("standard input: both eras, as the user's own", test_stdio),
    CLAIM("standard input: progress, cancellation, the end", test_stdio_calls),
    CLAIM("standard input: a line that is too long is refused as one", test_stdio_long_line),
    CLAIM("standard output that is not read stops the input, and is not lost", test_stdio_slow),
    CLAIM("standard output without a reader is the end", test_stdio_no_reader),
    CLAIM_IN_TEMP("files will do for standard input and output", test_stdio_files),
};

int main(void)
{
    return RUN_CLAIMS("gateway/front_mcp", claims);
}
