/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tools that the conformance suite of the Model Context Protocol calls by name (npm
 * @modelcontextprotocol/conformance), as far as they need what src/mcp has. For tests only.
 */
#include <string.h>

#include "mcp/mcp.h"

#define FIXTURE_ROUNDS 2

struct fixture {
    struct mcp_tool tool;
    const char *ask[FIXTURE_ROUNDS]; /* inputRequests of each round */
    const char *key[FIXTURE_ROUNDS]; /* an answer that the round needs */
    const char *text;
    bool image, is_error, progress, only_declared;
};

#define FIXTURE(n) \
    .tool = {.name = (n), .description = "A fixture", .input_schema = "{\"type\":\"object\"}"}
#define ELICIT(key, message, field, type)                                                         \
    "\"" key "\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"" message           \
    "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" field "\":{\"type\":\"" type \
    "\"}},\"required\":[\"" field "\"]}}}"
#define SAMPLE(key, text)                                                                       \
    "\"" key "\":{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{\"role\":\"" \
    "user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}],\"maxTokens\":50}}"
#define ROOTS    "\"client_roots\":{\"method\":\"roots/list\",\"params\":{}}"
#define ASK_NAME ELICIT("user_name", "What is your name?", "name", "string")
#define ASK_OK   ELICIT("confirm", "Please confirm", "ok", "boolean")

static const struct fixture fixtures[] = {
    {FIXTURE("test_simple_text"), .text = "This is a simple text response for testing."},
    {FIXTURE("test_image_content"), .image = true},
    {FIXTURE("test_multiple_content_types"), .text = "Multiple content types test:", .image = true},
    {FIXTURE("test_error_handling"), .text = "This tool intentionally returns an error for testing",
     .is_error = true},
    {FIXTURE("test_tool_with_progress"), .text = "done", .progress = true},
    {FIXTURE("test_logging_tool"), .text = "Nothing is logged."},
    {FIXTURE("test_missing_capability"), .ask = {"{" SAMPLE("x", "?") "}"}, .key = {"x"}},
    {FIXTURE("test_streaming_elicitation"), .ask = {"{" ASK_OK "}"}, .key = {"confirm"}},
    {FIXTURE("test_input_required_result_elicitation"), .ask = {"{" ASK_NAME "}"},
     .key = {"user_name"}, .text = "Hello!"},
    {FIXTURE("test_input_required_result_sampling"),
     .ask = {"{" SAMPLE("capital_question", "What is the capital of France?") "}"},
     .key = {"capital_question"}, .text = "Paris"},
    {FIXTURE("test_input_required_result_list_roots"), .ask = {"{" ROOTS "}"},
     .key = {"client_roots"}, .text = "roots"},
    {FIXTURE("test_input_required_result_request_state"), .ask = {"{" ASK_OK "}"},
     .key = {"confirm"}, .text = "state-ok"},
    {FIXTURE("test_input_required_result_tampered_state"), .ask = {"{" ASK_OK "}"},
     .key = {"confirm"}, .text = "state-ok"},
    {FIXTURE("test_input_required_result_multiple_inputs"),
     .ask = {"{" ASK_NAME "," SAMPLE("greeting", "Generate a greeting") "," ROOTS "}"},
     .key = {"greeting"}, .text = "Hello!"},
    {FIXTURE("test_input_required_result_multi_round"),
     .ask = {"{" ELICIT("step1", "Step 1: What is your name?", "name", "string") "}",
             "{" ELICIT("step2", "Step 2: What is your favorite color?", "color", "string") "}"},
     .key = {"step1", "step2"}, .text = "done"},
    {FIXTURE("test_input_required_result_capabilities"),
     .ask = {"{" ASK_NAME "," SAMPLE("greeting", "Generate a greeting") "}"}, .key = {"greeting"},
     .text = "done", .only_declared = true},
    {.tool = {.name = "test_x_mcp_header",
              .description = "A fixture",
              .input_schema =
                  "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":"
                  "\"string\",\"x-mcp-header\":\"Region\"}},\"required\":[\"region\"]}"},
     .text = "there"},
};

#define FIXTURES (sizeof(fixtures) / sizeof(fixtures[0]))

static inline const struct fixture *fixture_find(const char *name)
{
    for (size_t i = 0; i < FIXTURES; i++)
        if (strcmp(fixtures[i].tool.name, name) == 0)
            return &fixtures[i];
    return NULL;
}

static inline void fixture_ask(const struct fixture *f, struct mcp_call *call, size_t round,
                               uint64_t now_ms, struct mcp_answer *ret)
{
    json_t *requests = json_loads(f->ask[round], 0, NULL), *one;
    const char state = (char)('0' + round), *key;
    const struct mcp_ask ask = {
        .requests = requests, .state = &state, .state_len = 1, .now_ms = now_ms};
    void *next;

    json_object_foreach_safe(requests, next, key, one)
    {
        const char *method = json_string_value(json_object_get(one, "method"));

        if (f->only_declared && !mcp_can_ask(call, method))
            (void)json_object_del(requests, key);
    }
    mcp_finish(call, &(struct mcp_result){.ask = &ask}, ret);
    json_decref(requests);
}

static inline void fixture_finish(const struct fixture *f, struct mcp_call *call, uint64_t now_ms,
                                  struct mcp_answer *ret)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a};
    const struct mcp_content content[] = {
        {.type = MCP_TEXT, .data = f->text, .len = f->text ? strlen(f->text) : 0},
        {.type = MCP_IMAGE, .data = png, .len = sizeof(png), .mime = "image/png"}};
    size_t round = call->state ? (size_t)(call->state[0] - '0') : 0;

    if (call->state && round < FIXTURE_ROUNDS && f->key[round] &&
        json_object_get(call->answers, f->key[round]))
        round++;
    if (round < FIXTURE_ROUNDS && f->ask[round]) {
        fixture_ask(f, call, round, now_ms, ret);
        return;
    }
    mcp_finish(call,
               &(struct mcp_result){.content = f->text ? content : content + 1,
                                    .n_content = (size_t)(f->text != NULL) + f->image,
                                    .is_error = f->is_error},
               ret);
}
