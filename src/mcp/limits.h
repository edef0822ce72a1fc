/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sizes that an MCP client chooses: one line, one reason (as in base/limits.h). */

#define LIMIT_MCP_MESSAGE (8u << 20)  /* one request: a file that is written, and its escapes */
#define LIMIT_MCP_REPLY   (32u << 20) /* one reply: an image of 8 MiB, or its text escaped thrice */
#define LIMIT_MCP_DEPTH   64u         /* objects and arrays in each other; arguments nest four */
#define LIMIT_MCP_VALUES  131072u     /* values in one request: each costs up to 250 bytes */
#define LIMIT_MCP_ID      256u        /* bytes of a request's id or progress token: it is echoed */
#define LIMIT_MCP_VERSION 64u         /* a protocol version as it is shown in an error */
#define LIMIT_MCP_STATE   4096u       /* what a tool keeps while it waits for an answer */
#define LIMIT_MCP_TOOL    128u        /* bytes of a tool's name; the specification's own limit */
