// SPDX-License-Identifier: Apache-2.0
// A chat-completions server on loopback that answers each request of an agent with the next step of a script, so that a
// real client can be driven without a model: {"tool": name, "args": {...}} or {"text": "..."}.
//   SCRIPT  JSON array of steps     LOG  JSON lines: time, step, and the last tool result that the model was shown
// Prints its port on the first line.
import fs from "node:fs";
import http from "node:http";

const steps = JSON.parse(fs.readFileSync(process.env.SCRIPT, "utf8"));
let next = 0;

function reply(body, res) {
  const isAgent = (body.tools ?? []).length > 0;
  const step = steps[isAgent ? next++ : next] ?? { text: "done" };
  const shown = (body.messages ?? []).filter((m) => m.role === "tool").at(-1)?.content;
  fs.appendFileSync(process.env.LOG, JSON.stringify({ t: Date.now() / 1000, step, shown }) + "\n");
  const calls = step.tool && isAgent
    ? [{ index: 0, id: `call_${next}`, type: "function", function: { name: step.tool, arguments: JSON.stringify(step.args ?? {}) } }]
    : undefined;
  const message = { role: "assistant", content: calls ? null : (step.text ?? "done"), tool_calls: calls };
  const finish = calls ? "tool_calls" : "stop";
  const base = { id: `c${next}`, created: 0, model: body.model };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  if (!body.stream) {
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify({ ...base, object: "chat.completion", usage, choices: [{ index: 0, message, finish_reason: finish }] }));
    return;
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  const send = (more) => res.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...more })}\n\n`);
  send({ choices: [{ index: 0, delta: message, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: finish }], usage });
  res.end("data: [DONE]\n\n");
}

const server = http.createServer((req, res) => {
  let text = "";
  req.on("data", (chunk) => (text += chunk));
  req.on("end", () => {
    if (req.url.endsWith("/models")) {
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ object: "list", data: [{ id: "scripted", object: "model" }] }));
      return;
    }
    let body = {};
    try { body = JSON.parse(text); } catch { /* answered like any other */ }
    reply(body, res);
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
