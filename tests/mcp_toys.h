/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Three tools that do next to nothing, for the tests of src/mcp: unit, fuzz and flow. */
#include <string.h>

#include "mcp/mcp.h"

static const struct mcp_tool toy_tools[] = {
    {.name = "echo",
     .title = "Echo",
     .description = "Says the text again",
     .input_schema = "{\"type\":\"object\",\"properties\":{"
                     "\"text\":{\"type\":\"string\",\"maxLength\":1000},"
                     "\"times\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"
                     "\"style\":{\"enum\":[\"plain\",\"loud\"]},"
                     "\"place\":{\"type\":\"object\",\"properties\":{"
                     "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
                     "\"floor\":{\"type\":\"integer\",\"x-mcp-header\":\"Floor\"},"
                     "\"open\":{\"type\":\"boolean\",\"x-mcp-header\":\"Open\"}},"
                     "\"additionalProperties\":false}},"
                     "\"required\":[\"text\"],\"additionalProperties\":false}",
     .read_only = true,
     .idempotent = true},
    {.name = "count",
     .description = "Counts, and tells how far it is",
     .input_schema = "{\"type\":\"object\",\"properties\":{"
                     "\"to\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000},"
                     "\"pause_ms\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000}},"
                     "\"required\":[\"to\"],\"additionalProperties\":false}",
     .output_schema = "{\"type\":\"object\",\"properties\":{\"counted\":{\"type\":\"integer\"}},"
                      "\"required\":[\"counted\"],\"additionalProperties\":false}",
     .read_only = true},
    {.name = "ask",
     .description = "Does something that a person has to allow",
     .input_schema = "{\"type\":\"object\",\"properties\":{\"what\":{\"type\":\"string\"}},"
                     "\"required\":[\"what\"],\"additionalProperties\":false}",
     .destructive = true,
     .open_world = true},
    {.name = "say",
     .description = "Another name of echo",
     .input_schema = "{\"type\":\"object\"}",
     .unlisted = true},
};

static const uint8_t toy_key[MCP_KEY] = "thirty-two bytes that are no key";

static const struct mcp_info toy_info = {
    .name = "toys",
    .title = "Toys",
    .version = "1.0",
    .instructions = "Play.",
    .tools = toy_tools,
    .n_tools = sizeof(toy_tools) / sizeof(toy_tools[0]),
    .key = toy_key,
    .state_ttl_ms = 60000,
    .list_ttl_ms = 300000,
};

/* The question of `ask`, to be freed. */
static inline json_t *toy_question(const char *what)
{
    return json_pack("{s{ss s{ss ss s{ss s{s{ss}}}}}}", "allow", "method", "elicitation/create",
                     "params", "mode", "form", "message", what, "requestedSchema", "type", "object",
                     "properties", "yes", "type", "boolean");
}
