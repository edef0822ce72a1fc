# SPDX-License-Identifier: Apache-2.0
"""Calls that wait for a person's yes: who is asked, who answers, what a yes is good for, and what it is not."""
import json
import os
import re
import sqlite3
import threading

from tap import need, same, test

RULE = "exec:git push*"
KEY = "agents.defaults.sandbox.approve"
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def begin(w, *rules, rights=("run",)):
    """A gateway that asks by these rules, and a token."""
    w.configure(approve=list(rules or [RULE]))
    w.start()
    return w.token("main", "agent:main:*", *(x for r in rights for x in ("--right", r)))


def push(w, words="push", token=None, status=None, **more):
    """A call that RULE asks about; in the box there is nothing to push."""
    r = w.post("/v1/call", dict({"tool": "exec", "arguments": {"argv": ["git", *words.split()]}}, **more), token=token)
    if status:
        same(r.status, status, repr(r))
    return r


def asked(r):
    """The id under which this call waits."""
    same(r.status, 403, repr(r))
    d = r.json["denied"]
    same((d["final"], d["key"]), (False, KEY), str(d))
    need(re.fullmatch("[0-9a-f]{16}", d["approval"]), d)
    return d["approval"]


def ran(r):
    same(r.status, 200, repr(r))
    return r.json["result"]


def approve(w, *words):
    r = w.clawden("approve", *words)
    same((r.returncode, r.stderr), (0, ""), r.stdout)
    return r.stdout


def answer(w, approval, allow, token=None):
    return w.post(f"/v1/approvals/{approval}", {"allow": allow}, token=token)


def waiting(w, token=None):
    return [a["approval"] for a in w.get("/v1/approvals", token=token).json["approvals"]]


def later(w, ms=600000):
    """Ten minutes pass for what is kept."""
    with sqlite3.connect(os.path.join(w.data, "store.db"), timeout=10) as db:
        db.execute("UPDATE approvals SET asked = asked - ?1, expires = expires - ?1", (ms,))
    db.close()


def events(w):
    """What the record says of approvals and of calls, in its order."""
    return [(r["event"], r.get("verdict") or r.get("by")) for r in w.audit() if r["event"].split(".")[0] == "approval" or r["event"] == "call.begin"]


# ---- being asked ----

@test("APPROVE nobody is asked without a rule, nor about what no rule means")
def _(w):
    w.start().token()
    ran(push(w))
    same(waiting(w), [])
    w.term()
    w.configure(approve=[RULE, "apply_patch"])
    w.start()
    ran(push(w, "status"))
    same(w.call("write", {"path": "a", "content": "x"})["result"]["created"], True)
    same((waiting(w), w.audit(event="approval.ask")), ([], []))


@test("APPROVE a call that a rule means is refused with an id, not for ever, and does nothing; rule and setting are named, and it is recorded")
def _(w):
    begin(w, RULE, "write")
    r = push(w)
    d = r.json["denied"]
    approval = asked(r)
    same((d["op"], d["target"], d["rule"]), ("exec", "git push", RULE))
    need(f"clawden approve {approval}" in d["reason"], d["reason"])
    same(asked(push(w)), approval, "the same call waits once")
    r = w.post("/v1/call", {"tool": "write", "arguments": {"path": "a", "content": "x"}})
    need(asked(r) != approval, r)
    same((r.json["denied"]["rule"], os.path.exists(w.path("a"))), ("write", False))
    one = [a for a in w.get("/v1/approvals").json["approvals"] if a["approval"] == approval][0]
    same((one["tool"], one["session"], one["rule"], json.loads(one["arguments"])), ("exec", "agent:main:main", RULE, {"argv": ["git", "push"]}))
    record = w.get("/v1/audit?event=approval.ask&tool=exec").json["records"]
    same([(x["approval"], x["rule"], x["target"]) for x in record], [(approval, RULE, "git push")])
    same([x["verdict"] for x in w.get("/v1/audit?event=call.begin&tool=exec").json["records"]], ["deny", "deny"])
    same([x["state"] for x in w.get("/v1/calls?tool=exec").json["calls"]], ["denied", "denied"])


@test("APPROVE patterns of tools and groups, and an agent's own list, which takes nothing away")
def _(w):
    w.configure(json.dumps({"agents": {"defaults": {"workspace": w.ws, "sandbox": {"approve": ["group:fs"]}},
                                       "entries": {"main": {"sandbox": {"approve": ["session_*"]}}}}}))
    w.start().token()
    for tool, arguments in (("write", {"path": "a", "content": ""}), ("ls", {}), ("session_status", {})):
        asked(w.post("/v1/call", {"tool": tool, "arguments": arguments}))
    same(w.exec("true")["exitCode"], 0)
    need(not os.path.exists(w.path("a")), "it was written")


EVASIONS = [
    "git push", "  git   push", "git\tpush origin", "'git' push", 'git "push"', "g'i't pu'sh'", "GIT PUSH", "/usr/bin/git push", "./git push", "git '' push",
    "true && git push", "true; git push", "true | git push", "git push &", "(git push)", "{ git push; }", "X=1 git push", "env git push",
    "env X=1 git push", "sh -c 'git push'", "bash -lc 'git push'", "exec git push", "command git push", "eval git push", "nice git push",
    "timeout 5 git push", "xargs git push", "find . -exec git push ;", "`echo git` push", "$(echo git) push", "g${X}it push", "\\git push", "git \\push",
    "git pu\nsh", "true\ngit push", "git push # x", "git p*sh", "! git push", "if true; then git push; fi", "python3 -c 'import os'", "perl -e 1",
    "busybox sh", "sudo git push", "awk 'BEGIN{system(\"git push\")}'", "'git push'", "'git push", "git $'push'", "git {push,x}", "git push>x", "<x git push",
]
HARMLESS = ["git status", "git -C x status", "ls -l", "python3 x.py", "echo push", "cat git", "'echo' \"git push\""]


@test("APPROVE whatever is not surely another simple command is asked about: quotes, blanks, paths, lists, shells, launchers")
def _(w):
    begin(w)
    for line in EVASIONS:
        r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": line}})
        need(r.status == 403 and r.json["denied"]["final"] is False and r.json["denied"]["rule"] == RULE, f"{line!r}: {r!r}")
        later(w)  # room for the next
    for argv in (["git", "push"], ["/bin/git", "push", "x"], ["sh", "-c", "git push"], ["git", "push --x"], ["env", "git", "push"], ["git", "it's"], ["git", "a\nb"]):
        asked(w.post("/v1/call", {"tool": "exec", "arguments": {"argv": argv}}))
    for tool in ("bash", "execute"):
        asked(w.post("/v1/call", {"tool": tool, "arguments": {"command": "git push"}}))
    for line in HARMLESS:
        same(w.post("/v1/call", {"tool": "exec", "arguments": {"command": line}}).status, 200, line)


@test("APPROVE entries that could never mean anything are refused when the file is read, with key and value")
def _(w):
    for bad in ("git push", "exec:", "exec: git", "exec:git  push", "exec:git 'push'", "Exec:git", "bash:git", "", "group:", "a/b", "wri te", "x" * 64):
        w.configure(approve=["write", bad])
        r = w.clawden("config", "check")
        need(r.returncode and "approve" in r.stderr + r.stdout and f"'{bad}'" in r.stderr + r.stdout, f"{bad!r}: {r.stdout} {r.stderr}")
    w.configure(approve=["group:nosuch"])
    r = w.clawden("config", "check")
    need(r.returncode and "group:nosuch" in r.stderr + r.stdout, r.stdout + r.stderr)
    w.configure(approve=["write", "web_*", "group:fs", "exec:git push*", "exec:*"])
    same(w.clawden("config", "check").returncode, 0, "control")
    need("approve 'exec:git push*'" in w.clawden("why", "git push").stdout, "why does not say it")


# ---- the yes ----

@test("APPROVE after the yes at the command line the same call runs, once; the next one asks anew")
def _(w):
    begin(w)
    first = asked(push(w))
    need(first in approve(w) and '{"argv":["git","push"]}' in approve(w), "the list")
    same([x["approval"] for x in json.loads(approve(w, "--json"))], [first])
    approve(w, first)
    same((waiting(w), approve(w)), ([], "nothing waits\n"))
    ran(push(w))
    second = asked(push(w))
    need(second != first, "the yes was used twice")
    me = f"uid {os.getuid()}"
    same(events(w), [("approval.ask", None), ("call.begin", "deny"), ("approval.allow", me), ("approval.use", me), ("call.begin", "allow"),
                     ("approval.ask", None), ("call.begin", "deny")])
    same([r["approval"] for r in w.audit(event="call.begin", verdict="allow")], [first])
    same(w.clawden("audit", "verify").returncode, 0)
    same(w.clawden("approve", first).returncode, 1, "it is used up")


@test("APPROVE a yes is for that call alone: other arguments, another session or another token ask anew (OV-17)")
def _(w):
    begin(w)
    other = w.token("main", "agent:main:*")
    first = asked(push(w))
    approve(w, first)
    seen = {first}
    for how in (dict(words="push x"), dict(arguments={"argv": ["git", "push"], "cwd": "src"}), dict(arguments={"command": "git push"}),
                dict(session="agent:main:b"), dict(token=other), dict(arguments={"argv": ["git", "push"], "timeout": 9})):
        seen.add(asked(push(w, **how)))
    same(len(seen), 7)
    ran(push(w))
    for x in seen - {first}:
        approve(w, x)
    asked(push(w))
    ran(push(w, token=other))


@test("APPROVE a no is final for that call as long as it holds, and nobody turns it into a yes; a yes can be taken back")
def _(w):
    begin(w)
    x = asked(push(w))
    same(approve(w, "--deny", x)[:7], "denied:")
    for _ in range(2):
        r = push(w, status=403)
        same((r.json["denied"]["final"], r.json["denied"]["rule"], "approval" in r.json["denied"]), (True, RULE, False))
    same(w.clawden("approve", x).returncode, 1, "a yes after the no")
    same(w.audit(event="approval.deny")[0]["by"], f"uid {os.getuid()}")
    asked(push(w, "push other"))
    later(w)
    y = asked(push(w))
    need(y != x, "the no holds for ever")
    approve(w, y)
    approve(w, "--deny", y)
    same(push(w, status=403).json["denied"]["final"], True)


@test("APPROVE a question is forgotten after ten minutes, and so is a yes that was not used")
def _(w):
    begin(w)
    x = asked(push(w))
    later(w)
    same((waiting(w), w.clawden("approve", x).returncode), ([], 1))
    y = asked(push(w))
    approve(w, y)
    later(w, 590000)
    ran(push(w))
    z = asked(push(w))
    approve(w, z)
    later(w)
    need(asked(push(w)) not in (x, y, z), "an old yes was good")
    later(w, -10**9)  # the clock was set back: nobody knows how old it is
    same(waiting(w), [])
    asked(push(w))


@test("APPROVE a key is not used up by a call that was only asked about: after the yes the same id runs, once")
def _(w):
    begin(w, "write")
    ask = {"tool": "write", "arguments": {"path": "a", "content": "x"}, "id": "k"}
    x = asked(w.post("/v1/call", ask))
    same(asked(w.post("/v1/call", ask)), x)
    approve(w, x)
    done = w.post("/v1/call", ask)
    same(ran(done)["created"], True)
    os.unlink(w.path("a"))
    same(w.post("/v1/call", ask).json, done.json, "the answer that is known")
    need(not os.path.exists(w.path("a")), "it ran twice")
    same(w.post("/v1/call", dict(ask, arguments={"path": "b", "content": "x"})).status, 422)
    no = dict(ask, id="n", arguments={"path": "c", "content": ""})
    approve(w, "--deny", asked(w.post("/v1/call", no)))
    same([w.post("/v1/call", no).json["denied"]["final"] for _ in range(2)], [True, True])
    w.term()
    for name in os.listdir(w.data):
        if name.startswith("store.db"):
            os.unlink(os.path.join(w.data, name))
    w.start()  # from the audit: what was only asked about did not take the key there either
    same(w.post("/v1/call", ask).json.get("call"), done.json["call"])


@test("APPROVE a restart keeps the question, and a kill the yes")
def _(w):
    begin(w)
    x = asked(push(w))
    w.term()
    need(x in approve(w), "the question is gone")
    w.start()
    same(asked(push(w)), x)
    approve(w, x)
    w.kill()
    w.start()
    ran(push(w))
    need(asked(push(w)) != x, "it was used twice")


@test("APPROVE eight of the same call at once use a yes once")
def _(w):
    begin(w)
    for _ in range(5):
        approve(w, asked(push(w)))
        answers = []
        all_ = [threading.Thread(target=lambda: answers.append(push(w).status)) for _ in range(8)]
        for t in all_:
            t.start()
        for t in all_:
            t.join(60)
        same(sorted(answers), [200] + [403] * 7)


# ---- who may say it ----

@test("APPROVE a token does not allow its own calls without the right; others' are not there for it; admin answers for others")
def _(w):
    begin(w)
    other, admin = w.token("main", "agent:main:*"), w.token("main", "agent:main:*", "--right", "admin")
    x = asked(push(w))
    same((waiting(w), waiting(w, other), waiting(w, admin)), ([x], [], [x]))
    r = answer(w, x, True)
    same((r.status, r.json["error"]["code"]), (403, "denied"), "its own")
    same(answer(w, x, True, other).status, 404, "another's")
    same(answer(w, "0" * 16, True).status, 404)
    asked(push(w))
    same(w.audit(event="approval.allow"), [])
    r = answer(w, x, True, admin)
    same((r.status, r.json["state"], r.json["session"]), (200, "allowed", "agent:main:main"))
    same(answer(w, x, True, admin).status, 409, "twice")
    ran(push(w))
    same([a["by"] for a in w.audit(event="approval.allow")], [admin[4:16]])
    own = asked(push(w, token=admin))
    same(answer(w, own, True, admin).status, 403, "admin for itself")


@test("APPROVE the right `approve` is for the token's sessions, its own calls too, and for nothing else")
def _(w):
    begin(w)
    far, near = w.token("other", "agent:other:*", "--right", "approve"), w.token("main", "agent:main:main", "--right", "approve")
    both = w.token("main", "agent:main:*", "--right", "run", "--right", "approve")
    x, y = asked(push(w)), asked(push(w, session="agent:main:b"))
    same((waiting(w, far), waiting(w, near), set(waiting(w, both))), ([], [x], {x, y}))
    same((answer(w, x, True, far).status, answer(w, y, True, near).status), (404, 404))
    same(answer(w, x, True, near).status, 200)
    ran(push(w))
    same(push(w, token=near).json["denied"]["rule"], "token's rights", "it runs nothing")
    same(w.post("/v1/call", {"tool": "ls"}, token=near).status, 403, "it reads nothing")
    same(w.get("/v1/me", token=near).json["rights"], ["approve"])
    same(w.get("/v1/me", token=both).json["rights"], ["read", "run", "approve"])
    z = asked(push(w, token=both))
    same(answer(w, z, True, both).status, 200)
    ran(push(w, token=both))
    need("run+approve" in w.clawden("token", "list").stdout, "token list")


@test("APPROVE bodies that say anything but true or false, and paths that are none, are refused; no credential is 401")
def _(w):
    begin(w)
    x = asked(push(w))
    both = w.token("main", "agent:main:*", "--right", "approve")
    for body in ({}, {"allow": 1}, {"allow": "true"}, {"allow": None}, {"allow": True, "x": 1}, {"allow": True, "approval": "0" * 16}, [True]):
        same(w.post(f"/v1/approvals/{x}", body, token=both).status, 400, str(body))
    same(w.post("/v1/approvals/x%27%20OR%201", {"allow": True}, token=both).status, 404)
    same(w.ask("GET", f"/v1/approvals/{x}").status, 405)
    same((w.post(f"/v1/approvals/{x}", {"allow": True}, token=False).status, w.ask("GET", "/v1/approvals", token=False).status), (401, 401))
    asked(push(w))
    ws = w.socket(w.auth(both))
    ws.send({"id": 1, "op": "approvals"})
    same([a["approval"] for a in ws.message()["body"]["approvals"]], [x])
    ws.send({"id": 2, "op": "approve", "params": {"approval": x, "allow": True}})
    same(ws.message()["body"]["state"], "allowed")
    ws.send({"id": 3, "op": "call", "params": {"tool": "exec", "arguments": {"command": "git push"}, "asks": True}})
    same(ws.message()["status"], 400, "what only our own front may say")
    ws.send({"id": 4, "op": "call", "params": {"tool": "exec", "arguments": {"command": "git push"}, "answer": {"approval": x, "allow": True}}})
    same(ws.message()["status"], 400)
    ran(push(w))


@test("APPROVE so many calls of one token can wait, and no more; others can; the command line teaches, and refuses what it does not know")
def _(w):
    begin(w)
    ids = {asked(push(w, f"push {i}")) for i in range(64)}
    same(len(ids), 64)
    d = push(w, "push more", status=403).json["denied"]
    need(d["final"] is False and "approval" not in d and "64" in d["reason"], d)
    asked(push(w, token=w.token("main", "agent:main:*")))
    approve(w, ids.pop())
    r = w.clawden("approve", "--help")
    need(r.returncode == 0 and "exec:git *push*" in r.stdout and "--deny ID" in r.stdout, r.stdout)
    same([w.clawden("approve", *x).returncode for x in (("--deny",), ("--nonsense",), ("a", "b"), ("0" * 16,), ("nonsense",))], [2, 2, 2, 1, 1])


@test("APPROVE what cannot be recorded is neither asked, nor allowed, nor run")
def _(w):
    begin(w)
    x = asked(push(w))
    log = os.path.join(w.data, "logs", "audit.jsonl")
    os.rename(log, log + ".away")
    os.mkdir(log)
    same(push(w, "push y").status, 503)
    need(w.clawden("approve", x).returncode, "it was allowed")
    os.rmdir(log)
    os.rename(log + ".away", log)
    same(waiting(w), [x])
    approve(w, x)
    os.rename(log, log + ".away")
    os.mkdir(log)
    same(push(w).status, 503)
    os.rmdir(log)
    os.rename(log + ".away", log)
    ran(push(w))


# ---- MCP ----

def mcp(w, token, capabilities=None, arguments=None, **more):
    """A call of 2026-07-28; its result, or error."""
    meta = dict(META, **{"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}} if capabilities is None else capabilities})
    params = dict({"name": "exec", "arguments": arguments or {"argv": ["git", "push"]}, "_meta": meta}, **more)
    headers = [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "exec")]
    m = w.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers, token=token).json
    return m.get("result") or m["error"]


def reply(action, **content):
    return {"approve": dict({"action": action}, **({"content": content} if content else {}))}


@test("APPROVE MCP: the client's user is asked in one line; his yes runs the call once")
def _(w):
    begin(w, rights=("run", "approve"))
    q = mcp(w, w.t)
    same(q["resultType"], "input_required", str(q))
    ask = q["inputRequests"]["approve"]
    same((ask["method"], ask["params"]["mode"]), ("elicitation/create", "form"))
    same(ask["params"]["message"], f"Allow exec \"'git' 'push'\" in session agent:main:main? (approve: {RULE})")
    same(ask["params"]["requestedSchema"]["properties"]["allow"]["type"], "boolean")
    same(len(waiting(w)), 1)
    r = mcp(w, w.t, requestState=q["requestState"], inputResponses=reply("accept", allow=True))
    same((r["resultType"], r["isError"]), ("complete", False), str(r))
    same([(a["by"]) for a in w.audit(event="approval.allow")], [w.t[4:16]])
    again = mcp(w, w.t, requestState=q["requestState"], inputResponses=reply("accept", allow=True))
    same(again["resultType"], "input_required", "an old answer is no answer")
    same(len(w.audit(event="approval.use")), 1)


@test("APPROVE MCP: no, cancel, and whatever is no clear yes is a no; no answer at all is asked again")
def _(w):
    begin(w, rights=("run", "approve"))
    for i, said in enumerate((reply("decline"), reply("cancel"), reply("accept", allow=False), reply("accept"), reply("accept", allow="true"),
                              reply("accept", yes=True), reply("decline", allow=True))):
        arguments = {"argv": ["git", "push", str(i)]}
        q = mcp(w, w.t, arguments=arguments)
        same(mcp(w, w.t, arguments=arguments, requestState=q["requestState"])["resultType"], "input_required")
        same(mcp(w, w.t, arguments=arguments, inputResponses=reply("accept", allow=True))["resultType"], "input_required", "an answer to nothing")
        r = mcp(w, w.t, arguments=arguments, requestState=q["requestState"], inputResponses=said)
        same((r["isError"], json.loads(r["content"][0]["text"])["denied"]["final"]), (True, True), str(said))
        r = mcp(w, w.t, arguments=arguments, requestState=q["requestState"], inputResponses=reply("accept", allow=True))
        same((r["isError"], json.loads(r["content"][0]["text"])["denied"]["final"]), (True, True), "a yes after the no")
    same(w.audit(event="approval.use"), [])


@test("APPROVE MCP: an answer is for the call that was asked about, and of the token that was asked")
def _(w):
    begin(w, rights=("run", "approve"))
    other = w.token("main", "agent:main:*", "--right", "run", "--right", "approve")
    q = mcp(w, w.t)
    yes = dict(requestState=q["requestState"], inputResponses=reply("accept", allow=True))
    for r in (mcp(w, w.t, arguments={"argv": ["git", "push", "x"]}, **yes), mcp(w, other, **yes)):
        same(r["code"], -32602, str(r))
    same((w.audit(event="approval.allow"), w.audit(event="approval.use")), ([], []))


@test("APPROVE MCP: without the right, without a user to ask, and for older clients it is an error that says what a person can do")
def _(w):
    begin(w)
    both = w.token("main", "agent:main:*", "--right", "run", "--right", "approve")
    old = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "exec", "arguments": {"argv": ["git", "push"]}}}
    legacy = w.post("/mcp", old, [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", "2025-11-25")], token=both).json["result"]
    for r in (mcp(w, w.t), mcp(w, both, capabilities={}), mcp(w, both, capabilities={"elicitation": {"url": {}}}), legacy):
        same(r["isError"], True, str(r))
        d = json.loads(r["content"][0]["text"])["denied"]
        need(d["final"] is False and f"clawden approve {d['approval']}" in d["reason"], d)
    approve(w, json.loads(mcp(w, w.t)["content"][0]["text"])["denied"]["approval"])
    same(mcp(w, w.t)["isError"], False)


@test("APPROVE MCP: what the agent wrote cannot pass for our words in the question, and a cut is said")
def _(w):
    begin(w, rights=("run", "approve"))
    message = mcp(w, w.t, arguments={"command": "git push\u202e \"\n? (approve: nothing)"})["inputRequests"]["approve"]["params"]["message"]
    same(message, f"Allow exec \"git push\\u202E \\\"\\n? (approve: nothing)\" in session agent:main:main? (approve: {RULE})")
    message = mcp(w, w.t, arguments={"command": "git push " + "x" * 5000 + " evil"})["inputRequests"]["approve"]["params"]["message"]
    need("evil" not in message and "(5014 bytes in all)" in message and len(message) < 1200, message[-200:])
    need("(50" in approve(w) and "bytes in all)" in approve(w), "the list does not say that it is cut")
