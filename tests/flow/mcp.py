#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real MCP clients against src/mcp, through the toys of tests/flow/mcp_echo.c (stdio, and HTTP through a bridge), and against the gateway. Prints TAP.

  mcp.py [PROGRAM] [--bin DIR] [--client DIR] [--only WORD] [--serve PORT]

PROGRAM is mcp_echo; without it only the gateway of --bin is driven, and without --bin only the toys.

The clients and the conformance suite (npm, 280 MB) are installed into --client, by default $CLAWDEN_MCP_DIR or a cache folder of the caller's, unless
they are there already. --serve leaves the bridge running for a client of one's own (inspector, conformance suite).
"""
import argparse
import http.server
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gateway_client  # noqa: E402
from tap import TESTS, Skip, default_label, need, run, same, test, wait_for  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0", "@modelcontextprotocol/conformance@0.2.0-alpha.12",
            "@modelcontextprotocol/inspector@2.12.0", "node@22.23.3"]
TOOLS = ["exec", "process", "read", "write", "edit", "apply_patch", "ls", "find", "grep", "web_fetch", "web_search", "session_status"]
ARGS = None


def install(folder):
    """Exact versions: npm takes old ones here, without a word, when it does not like the engine."""
    mark = os.path.join(folder, "installed")
    if os.path.exists(mark) and open(mark).read().split() == PACKAGES:
        return
    if not shutil.which("npm"):
        raise Skip("npm is not installed")
    os.makedirs(folder, exist_ok=True)
    for words in (["init", "-y"], ["install", "--no-audit", "--no-fund", "--save-exact", *PACKAGES]):
        r = subprocess.run(["npm", *words], cwd=folder, capture_output=True, text=True, timeout=600)
        if r.returncode:
            why = re.search(r".*(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|network|_CERT|UNABLE_TO_VERIFY).*", r.stderr)
            if why:
                raise Skip(f"the npm registry cannot be reached: {why[0].strip()[:100]}")
            raise AssertionError(f"npm {' '.join(words)}: {r.stderr[-400:]}")
    with open(mark, "w") as f:
        f.write("\n".join(PACKAGES))


class Server:
    """The program in its --posts mode: one line in, one line out."""

    def __init__(self, *words):
        self.p = subprocess.Popen([ARGS.program, "--posts", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def post(self, headers, body, version=None, session_unknown=False):
        line = {"headers": headers, "body": body, "session_unknown": session_unknown}
        if version:
            line["version"] = version
        with self.lock:
            self.p.stdin.write(json.dumps(line) + "\n")
            self.p.stdin.flush()
            return json.loads(self.p.stdout.readline())

    def close(self):
        self.p.stdin.close()
        need(self.p.wait(20) == 0, f"the server ended with {self.p.returncode}")
        self.p.stdout.close()


def bridge(server, port=0):
    """HTTP around it, as a gateway would have it: POST only, JSON or a stream, sessions for those who initialize."""
    sessions = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, status, body=b"", **headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def is_local(self):
            """No page of somewhere else, also by a name that leads here."""
            here = (f"127.0.0.1:{httpd.server_address[1]}", f"localhost:{httpd.server_address[1]}")
            origin = self.headers.get("Origin")
            return self.headers.get("Host") in here and (origin is None or origin.removeprefix("http://") in here)

        def do_GET(self):
            self.reply(405, Allow="POST")

        do_DELETE = do_GET

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "surrogateescape")
            if not self.is_local():
                self.reply(403)
                return
            name = self.headers.get("Mcp-Session-Id")
            a = server.post(dict(self.headers.items()), body, sessions.get(name), bool(name) and name not in sessions)
            extra = {}
            if a.get("version"):
                extra["Mcp_Session_Id"] = secrets.token_hex(16)
                sessions[extra["Mcp_Session_Id"]] = a["version"]
            messages = a["messages"]
            if len(messages) > 1:
                text = "".join(f"event: message\ndata: {m}\n\n" for m in messages)
                self.reply(a["status"], text.encode(), Content_Type="text/event-stream", X_Accel_Buffering="no", **extra)
            else:
                self.reply(a["status"], "".join(messages).encode(), Content_Type="application/json", **extra)

    class Many(http.server.ThreadingHTTPServer):
        request_queue_size = 128  # clients come fifty at a time; five is the module's own

        def handle_error(self, *_):
            pass  # a client that goes away in the middle

    httpd = Many(("127.0.0.1", port), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    return httpd


class World:
    """The toys need nothing; who needs a gateway makes one."""

    def __init__(self):
        self.gateway = None

    def with_gateway(self, start=True):
        self.gateway = gateway_client.World()
        self.gateway.token()
        return self.gateway.start() if start else self.gateway

    def close(self):
        g, self.gateway = self.gateway, None
        if g:
            g.close()


def talk(kind, target, what="toys", env=None):
    install(ARGS.client)
    node = os.path.join(ARGS.client, "node_modules/.bin/node")
    r = subprocess.run([node, os.path.join(HERE, "mcp_client.cjs"), ARGS.client, kind, target, what], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=120, env=env)
    need(r.returncode == 0, f"the client failed: {r.stderr[-800:]}")
    return json.loads(r.stdout)


def over_http(fn, *words):
    """fn(URL of a server of its own)."""
    install(ARGS.client)
    server = Server(*words)
    httpd = bridge(server)
    try:
        return fn(f"http://127.0.0.1:{httpd.server_address[1]}/mcp")
    finally:
        httpd.shutdown()
        httpd.server_close()
        server.close()


def talk_http(kind):
    return over_http(lambda url: talk(kind, url))


def check(saw, version):
    modern = version == "2026-07-28"
    same(saw["version"], version, "the version")
    same(saw["server"]["name"], "toys", "the server")
    same(saw["instructions"], "Play.", "instructions")
    same([t["name"] for t in saw["tools"]], ["echo", "count", "ask"], "tools")
    same(saw["tools"][2]["annotations"]["destructiveHint"], True, "annotations")
    same(saw["echo"]["content"], [{"type": "text", "text": "grüß ☃"}], "echo")
    same((saw["bad"]["isError"], saw["bad"]["content"][0]["text"]), (True, "text: must be of type string, not integer"), "bad arguments")
    same(saw["unknown"]["code"], -32602, "an unknown tool")
    same(saw["progress"], [1, 2, 3], "progress")
    same(saw["count"]["structuredContent"], {"counted": 3}, "structured content")
    same(json.loads(saw["count"]["content"][0]["text"]), {"counted": 3}, "its text")
    same(saw["many"], [f"n{i}" for i in range(50)], "fifty at once")
    if modern:
        same(saw["asked"], "remove it", "the question")
        same(saw["ask"]["value"]["content"][0]["text"], "done", "after the answer")
    else:
        same(saw["ask"]["value"]["isError"], True, "a question that cannot be put")
        same(saw["ping"], {"value": saw["ping"].get("value")}, "ping")
    same(saw["errors"], [], "the client complains")
    if "after" in saw:
        need("value" not in saw["stopped"], f"a cancelled call came to its end: {saw['stopped']}")
        same(saw["after"]["content"][0]["text"], "still here", "after a cancellation")
        m = re.search(r"cancelled at (\d+)", saw["stderr"])
        need(m and int(m.group(1)) < 100, f"the server did not hear of it: {saw['stderr']!r}")


@test("SDK 1.32.2 over stdio: 2025-11-25")
def _(w):
    check(talk("sdk1", ARGS.program), "2025-11-25")


@test("SDK 1.32.2 over HTTP: 2025-11-25")
def _(w):
    check(talk_http("sdk1"), "2025-11-25")


@test("SDK 2.4.0 as it is, over stdio: 2025-11-25")
def _(w):
    check(talk("sdk2", ARGS.program), "2025-11-25")


@test("SDK 2.4.0 finds 2026-07-28 by itself, over stdio")
def _(w):
    check(talk("sdk2-auto", ARGS.program), "2026-07-28")


@test("SDK 2.4.0 finds 2026-07-28 by itself, over HTTP")
def _(w):
    check(talk_http("sdk2-auto"), "2026-07-28")


@test("SDK 2.4.0 with nothing but 2026-07-28, over stdio")
def _(w):
    check(talk("sdk2-pin", ARGS.program), "2026-07-28")


@test("SDK 2.4.0 with nothing but 2026-07-28, over HTTP")
def _(w):
    check(talk_http("sdk2-pin"), "2026-07-28")


# Scenarios that fail, and why. One that is listed and passes is a failure too.
NOT_OFFERED = {
    "resources and prompts": ["resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read", "prompts-list",
                              "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"],
    "completion": ["completion-complete"],
    "sound and resources in results": ["tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"],
}
NOT_OFFERED_MODERN = {
    "prompts": ["input-required-result-non-tool-request", "caching"],
    "the tasks extension": ["tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
                            "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error",
                            "tasks-mrtr-composition"],
    "$defs and $ref, which our schemas do without": ["json-schema-2020-12"],
}
NOT_OFFERED_LEGACY = {
    "requests of the server to its client": ["tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults",
                                             "elicitation-sep1330-enums"],
    "log messages to the client": ["tools-call-with-logging"],
    "resources": ["resources-subscribe", "resources-unsubscribe"],
    "$defs and $ref, which our schemas do without": ["json-schema-2020-12"],
}


def conform(version, *lists):
    def suite(url):
        modules = os.path.join(ARGS.client, "node_modules")
        return subprocess.run([os.path.join(modules, ".bin/node"), os.path.join(modules, "@modelcontextprotocol/conformance/dist/index.js"),
                               "server", "--url", url, "--requirements", version], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300)
    r = over_http(suite, "--fixtures")
    rows = re.findall(r"^([✓✗]) ([\w-]+): (\d+) passed", r.stdout.split("=== SUMMARY ===")[-1], re.M)
    need(len(rows) > 30, f"the suite ran {len(rows)} scenarios: {r.stderr[-500:]}")
    same(sorted(name for mark, name, _ in rows if mark == "✗"), sorted(n for one in lists for names in one.values() for n in names),
         f"scenarios that fail, of {len(rows)}")


@test("the conformance suite for 2026-07-28: nothing fails but what is not offered")
def _(w):
    conform("2026-07-28", NOT_OFFERED, NOT_OFFERED_MODERN)


@test("the conformance suite for 2025-11-25: nothing fails but what is not offered")
def _(w):
    conform("2025-11-25", NOT_OFFERED, NOT_OFFERED_LEGACY)


@test("end of input is the end of the server, also with a count under way")
def _(w):
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "count", "arguments": {"to": 1000, "pause_ms": 1000}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}})
    r = subprocess.run([ARGS.program], input=line + "\n", capture_output=True, text=True, timeout=10)
    same((r.returncode, r.stdout, r.stderr), (0, "", ""), "the server")


N_TOYS = len(TESTS)


# ---- the gateway ----

def check_files(r):
    """Results that do not depend on the transport: what each tool says, and says again in words."""
    same(r["write"]["structuredContent"]["created"], True, "write")
    same(r["edit"]["structuredContent"]["diff"], "@@ -1,2 +1,2 @@\n-one\n+1\n two grüß ☃\n", "edit")
    same(r["grep"]["structuredContent"]["matches"], [{"path": "src/a.txt", "line": 2, "text": "two grüß ☃"}], "grep")
    same(r["read"]["content"], [{"type": "text", "text": "1\ntwo grüß ☃\n"}], "read")
    same(r["find"]["structuredContent"]["paths"], ["src/a.txt"], "find")
    same([e["path"] for e in r["ls"]["structuredContent"]["entries"]], ["src"], "ls")
    same(r["patch"]["structuredContent"]["added"], 1, "apply_patch")
    same((r["image"]["content"][0]["type"], r["image"]["content"][0]["mimeType"]), ("image", "image/png"), "an image")
    same(r["status"]["structuredContent"]["workspace"], "/workspace", "session_status")


def check_commands(r):
    def of(name, *keys):
        return tuple(r[name]["structuredContent"].get(k) for k in keys)

    same(of("exec", "status", "exitCode", "stdout", "stderr"), ("exited", 3, "1\ntwo grüß ☃\n", "oops\n"), "exec")
    same(r["exec"]["content"][0]["text"], "1\ntwo grüß ☃\noops\n[exit status 3]", "exec in words")
    same(of("signaled", "status", "signal"), ("signaled", "SIGSEGV"), "a signal")
    same((of("limit", "status"), r["limit"]["structuredContent"]["limit"]["name"]), (("limit",), "time"), "a limit")
    same(of("long", "truncated", "outputBytes"), (True, 588895), "long output")
    same(of("failed", "status"), ("failed",), "no such program")
    same(of("background", "status"), ("running",), "background")
    same([p["process"] for p in r["list"]["structuredContent"]["processes"]][0], of("background", "process")[0], "list")
    same(of("log", "content", "more"), ("got it\n", False), "log")
    same(of("over", "status", "signal"), ("cancelled", "SIGKILL"), "kill")
    same(of("slow", "stdout"), ("step 1\nstep 2\nstep 3\n",), "with progress")
    same(of("after", "stdout"), ("still here\n",), "after a cancellation")
    for name in ("missing", "outside", "bad"):
        same(r[name].get("isError"), True, name)
        need(r[name]["content"][0]["text"], f"{name}: it says nothing")


def check_gateway(w, saw, version):
    same(saw["version"], version, "the version")
    same(saw["server"]["name"], "clawden", "the server")
    need("workspace" in saw["instructions"], "instructions")
    same([t["name"] for t in saw["tools"]], TOOLS, "tools")
    need(all(t["outputSchema"]["type"] == "object" for t in saw["tools"]), "a tool without a schema of its results")
    check_files(saw["results"])
    check_commands(saw["results"])
    same(saw["unknown"]["code"], -32602, "an unknown tool")
    need("step 1" in "".join(m or "" for _, m in saw["heard"]) and "step 3" in "".join(m or "" for _, m in saw["heard"]), f"progress: {saw['heard']}")
    need(all(a[0] < b[0] for a, b in zip(saw["heard"], saw["heard"][1:])), f"progress does not grow: {saw['heard']}")
    same(saw["many"], [f"n{i}\n" for i in range(20)], "twenty at once")
    need("value" not in saw["stopped"], f"a cancelled call came to its end: {saw['stopped']}")
    same(saw["errors"], [], "the client complains")
    need("Sanitizer" not in saw["stderr"], saw["stderr"])


def drive(w, kind, version, stdio):
    install(ARGS.client)
    g = w.with_gateway(start=not stdio)
    marker = "mark-" + secrets.token_hex(8)
    env = dict(g.env, MARKER=marker)
    if stdio:
        saw = talk(kind, os.path.join(g.bin, "clawden"), "gateway", dict(env, ARGS="mcp"))
    else:
        saw = talk(kind, f"http://127.0.0.1:{g.port}/mcp", "gateway", dict(env, TOKEN=g.t))
        g.alive()
    check_gateway(w, saw, version)
    need(gateway_client.ends(marker), "what was cancelled runs on")
    states = [r["state"] for r in g.audit(event="call.end", tool="exec")]
    need(len(states) > 25, f"ends in the audit: {states}")


for kind, version, how in (("sdk1", "2025-11-25", "SDK 1.32.2"), ("sdk2", "2025-11-25", "SDK 2.4.0 as it is"),
                           ("sdk2-auto", "2026-07-28", "SDK 2.4.0 by itself"), ("sdk2-pin", "2026-07-28", "SDK 2.4.0 with nothing else")):
    for stdio in (True, False):
        test(f"the gateway with {how}, over {'stdio' if stdio else 'HTTP'}: {version}")(
            lambda w, kind=kind, version=version, stdio=stdio: drive(w, kind, version, stdio))


# The inspector's exit statuses.
TOOL_ERROR, NO_ACCESS = 5, 3


class Inspector:
    """The inspector without its page: one question each time."""

    def __init__(self, g, stdio):
        modules = os.path.join(ARGS.client, "node_modules")
        self.env = dict(g.env, HOME=os.path.join(g.top, "inspector"))  # it keeps files there
        self.words = [os.path.join(modules, ".bin/node"), os.path.join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"]
        self.target = [os.path.join(g.bin, "clawden"), "mcp"] if stdio else [f"http://127.0.0.1:{g.port}/mcp", "--transport", "http"]
        self.token = [] if stdio else ["--header", f"Authorization: Bearer {g.t}"]
        if stdio:
            self.token = [w for k, v in g.env.items() if k.startswith("CLAWDEN_") or k == "HOME" for w in ("-e", f"{k}={v}")]

    def ask(self, *words, status=0, token=True):
        """(what it prints as a value, what it complains about)"""
        r = subprocess.run([*self.words, *self.target, *(self.token if token else []), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=60, env=self.env)
        same(r.returncode, status, f"{words}: {r.stdout[-400:]}{r.stderr[-800:]}")
        return json.loads(r.stdout) if r.stdout.strip() else None, r.stderr

    def call(self, name, *arguments, status=0):
        return self.ask("--method", "tools/call", "--tool-name", name, *(w for a in arguments for w in ("--tool-arg", a)), status=status)[0]


def drive_inspector(w, stdio):
    install(ARGS.client)
    g = w.with_gateway(start=not stdio)
    i = Inspector(g, stdio)
    listed, complaints = i.ask("--method", "tools/list", "--strict")
    same([t["name"] for t in listed["tools"]], TOOLS, "tools")
    need("Warning" not in complaints and "Error" not in complaints, f"it does not like a schema: {complaints}")
    r = i.call("exec", "command=echo one >f; cat f; exit 3")
    same([r["structuredContent"][k] for k in ("status", "exitCode", "stdout")], ["exited", 3, "one\n"], "exec")
    same(r["_meta"]["clawden/receipt"]["files"], ["f"], "its receipt")
    same(i.call("read", "path=f")["content"], [{"type": "text", "text": "one\n"}], "read")
    same(i.call("read", "path=none", status=TOOL_ERROR)["isError"], True, "a file that is not there")
    if not stdio:
        i.ask("--method", "tools/list", "--stored-auth-only", status=NO_ACCESS, token=False)
        g.alive()


for stdio in (True, False):
    test(f"the gateway with the inspector 2.12.0, over {'stdio' if stdio else 'HTTP'}: it lists, runs, reads, and likes every schema")(
        lambda w, stdio=stdio: drive_inspector(w, stdio))


def mcp_post(g, name, arguments, token, session=None):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": meta}}
    headers = [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)]
    return g.post("/mcp", body, headers + ([("X-ClawDen-Session", session)] if session else []), token=token)


@test("the gateway: a second token has no part in the first one's session, and none at all is 401")
def _(w):
    g = w.with_gateway()
    other = g.token("other", "agent:other:*")
    same(mcp_post(g, "write", {"path": "secret", "content": "mine"}, g.t).json["result"]["isError"], False, "the first")
    r = mcp_post(g, "read", {"path": "secret"}, other, "agent:main:main").json["result"]
    same(r["isError"], True, "the second")
    denied = json.loads(r["content"][0]["text"])["denied"]
    same((denied["rule"], denied["final"]), ("token's sessions", True), "the denial")
    need("mine" not in json.dumps(r), "it came through")
    same([x["verdict"] for x in g.audit(event="call.begin", session="agent:main:main") if x["tool"] == "read"][-1:], ["deny"], "the audit")
    same(mcp_post(g, "read", {"path": "secret"}, False).status, 401, "no token")
    same(mcp_post(g, "read", {"path": "secret"}, "cdn_" + "0" * 12 + "_" + "0" * 64).status, 401, "a made-up one")


def approve(w, kind, stdio, action="accept"):
    """What a client saw of a call that waits for a yes, and whether it was made."""
    install(ARGS.client)
    g = w.with_gateway(start=False)
    g.configure(approve=["write"])
    env = dict(g.env, ACTION=action)
    if stdio:
        saw = talk(kind, os.path.join(g.bin, "clawden"), "approve", dict(env, ARGS="mcp"))
    else:
        g.start()
        token = g.token("main", "agent:main:*", "--right", "run", "--right", "approve")
        saw = talk(kind, f"http://127.0.0.1:{g.port}/mcp", "approve", dict(env, TOKEN=token))
    same(saw["errors"], [], "the client complains")
    return g, saw, os.path.exists(g.path("asked.txt"))


@test("the gateway with SDK 2.4.0: its user is asked, and his yes makes the call, over stdio and HTTP")
def _(w):
    for stdio, session in ((True, "agent:main:mcp"), (False, "agent:main:main")):
        g, saw, made = approve(w, "sdk2-pin", stdio)
        same(saw["asked"], f'Allow write "asked.txt" in session {session}? (approve: write)', "the question")
        same((made, saw["write"].get("isError")), (True, False), str(saw["write"]))
        events = [r["event"] for r in g.audit() if r["event"].startswith("approval.")]
        same(events, ["approval.ask", "approval.allow", "approval.use"], "the record")
        if stdio:
            same(g.audit(event="approval.allow")[0]["by"], "local", "by whom")
        w.close()


@test("the gateway with SDK 2.4.0: his no, and no answer, is a refusal; older clients hear what a person can do")
def _(w):
    for kind, action in (("sdk2-pin", "decline"), ("sdk2-pin", "cancel"), ("sdk1", ""), ("sdk2", "")):
        g, saw, made = approve(w, kind, True, action)
        same((made, saw["write"]["isError"], "asked" in saw), (False, True, bool(action)), f"{kind} {action}")
        denied = json.loads(saw["write"]["content"][0]["text"])["denied"]
        same(denied["final"], bool(action), str(denied))
        need(action or f"clawden approve {denied['approval']}" in denied["reason"], denied)
        w.close()


@test("clawden mcp: end of input ends it, with what it runs")
def _(w):
    g = w.with_gateway(start=False)
    marker = "mark-" + secrets.token_hex(8)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "exec", "arguments": {"argv": ["sh", "-c", "sleep 300; :", marker]}, "_meta": meta}})
    p = subprocess.Popen([os.path.join(g.bin, "clawden"), "mcp"], env=g.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdin.write(line + "\n")
    p.stdin.flush()
    need(wait_for(lambda: gateway_client.running(marker)), "it did not begin")
    out, err = p.communicate(timeout=20)
    same((p.returncode, out), (0, ""), f"its end: {err}")
    need(gateway_client.ends(marker), "the command runs on")


def main():
    global ARGS
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("program", nargs="?")
    a.add_argument("--bin")
    a.add_argument("--client", default=os.environ.get("CLAWDEN_MCP_DIR") or
                   os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "clawden-mcp-client"))
    a.add_argument("--install-only", action="store_true", help="make --client ready, and no more")
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    a.add_argument("--serve", type=int)
    ARGS = gateway_client.ARGS = a.parse_args()
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, lambda number, _: sys.exit(128 + number))  # worlds are taken away on the way out
    if ARGS.install_only:
        del TESTS[:]
        test("the clients are installed")(lambda w: install(ARGS.client))
    elif not (ARGS.program or ARGS.bin):
        a.error("PROGRAM or --bin is needed")
    else:
        TESTS[:] = (TESTS[:N_TOYS] if ARGS.program else []) + (TESTS[N_TOYS:] if ARGS.bin else [])
    ARGS.program = ARGS.program and os.path.abspath(ARGS.program)
    if ARGS.serve is not None:
        httpd = bridge(Server("--fixtures"), ARGS.serve)
        print(f"http://127.0.0.1:{httpd.server_address[1]}/mcp", flush=True)
        threading.Event().wait()
    sys.exit(run("MCP", World, ARGS.only, ARGS.label))


if __name__ == "__main__":
    main()
