/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the front may ask the back (link.h). Every LINK_ASK is
 *
 *     {"op": ..., "params": {...},
 *      "token": "cdn_..."      as the client sent it, or of the door he came by (doors.h); or
 * "cookie": "...", from a login; or neither: `clawden mcp`'s front is its user's own "peer":
 * "127.0.0.1",    for limits on guessing "request": "..."}       16 hex digits, for the log
 *
 * and every answer has a JSON object as its body. What is refused is answered with
 *     {"error": {"code", "message"}}    400 401 404 409 413 422 429 500 503
 *     {"call", "denied": {"op", "target", "rule", "reason", "key", "final", "approval"?}, "ask"?}
 *                                                                         403
 * and 429 and 503 may have "retry_after" (seconds) in "error".
 *
 * op          params → body
 * call        {"tool", "arguments", "agent"?, "session"?, "key"?, "stream"?: bool}
 *             → {"call", "tool", "session", "result": {...}, "receipt": {...}}
 *             With "stream" events come first. LINK_CANCEL ends what runs, with all it started.
 *             MCP alone: "asks": true, the client's user can be asked; if he may allow the call,
 *             "ask" beside "denied" is the question, one line, and "answer": {"approval",
 *             "allow": bool} of the next try is what he said.
 * events      {"call", "after"?: number}
 *             The events of a call again, from a number on, then its answer as of `call`.
 *             LINK_CANCEL ends only this stream.
 * look        {"call"} → its answer, or {"call", "state": "running"}
 * cancel      {"call"} → {"call", "cancelled": bool}
 * calls       {"session"?, "agent"?, "tool"?, "state"?, "since"?, "until"?, "limit"?}
 *             → {"calls": [...]}
 * sessions    {"agent"?, "limit"?} → {"sessions": [...]}
 * session.end {"session"} → {"session", "boxes": n}: ends its commands and removes its boxes
 * boxes       {} → {"boxes": [...]}
 * audit       {"session"?, "agent"?, "event"?, "call"?, "tool"?, "since"?, "until"?, "limit"?}
 *             → {"records": [...], "more": bool}
 * approvals   {} → {"approvals": [...]}: calls that wait for a person's yes
 * approve     {"approval", "allow": bool} → {"approval", "state", "tool", "session"}
 * me          {} → {"token", "agent", "sessions": [...], "rights": [...], "session"}
 * ready       {} → {"ready": bool, "reasons": [...], "version"}; 503 if not
 * metrics     {} → {"metrics": [{"name","type","help","samples":[{"labels":{},"value":n}]}]}
 * login       {"code"} → {"cookie": "...", "expires": seconds}; no token is needed
 * logout      {} → {}
 *
 * Events, each an object; `seq` grows, and is what `after` of `events` takes:
 *     {"seq": n, "type": "started", "call": "..."}
 *     {"seq": n, "type": "output", "stream": "stdout"|"stderr", "data": "..."}   or "data64" for
 *                bytes that are not UTF-8
 *     {"seq": n, "type": "dropped", "bytes": n}       output beyond what is kept
 *     {"seq": n, "type": "end", "status": s, ...}     the answer's body is in it; always the last
 *
 * LINK_FACTS is {"version", "instance": {"mcp_key": 64 hex digits}, "hosts": [...], "origins":
 * [...], "metrics_open": bool, "tls": {"certificate", "key"}?}: the names that a Host field may
 * have (with or without a port), the origins beside our own, whether /metrics is open to loopback.
 */
