# SPDX-License-Identifier: Apache-2.0
"""Calls of a whole gateway: tools, who may see them, streams, ids that are used again, commands that run on."""
import base64
import hashlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from urllib.parse import quote

import gateway_client as client
from gateway_client import Conn, ends, request, running
from tap import Skip, need, same, test, wait_for


def marker():
    """Seconds that nobody else sleeps."""
    return f"7{random.randrange(10**7):07d}"


def lines(w, name="ran"):
    try:
        return len(w.text(name).splitlines())
    except FileNotFoundError:
        return 0


# ---- what it is for ----

@test("6-1 an agent writes, edits, runs and greps in its box, and each call is in the record")
def _(w):
    w.start().token()
    w.call("write", {"path": "src/a.sh", "content": "echo hello\n"})
    r = w.call("edit", {"path": "src/a.sh", "edits": [{"oldText": "hello", "newText": "there $1"}]})["result"]
    need("+echo there $1" in r["diff"], r)
    same(w.exec("sh src/a.sh you > out; cat out; exit 3"),
         dict(w.exec("sh src/a.sh you; exit 3"), next=w.exec("sh src/a.sh you; exit 3")["next"]))
    r = w.exec("sh src/a.sh you; exit 3")
    same((r["status"], r["exitCode"], r["stdout"]), ("exited", 3, "there you\n"))
    r = w.call("grep", {"pattern": "the.e"})["result"]
    need("src/a.sh" in json.dumps(r) and "out" in json.dumps(r), r)
    same(w.text("out"), "there you\n")
    same(w.call("read", {"path": "out"})["result"]["content"], "there you\n")
    need(len(w.audit(event="call.begin", tool="exec")) == 4 and len(w.audit(event="call.end", tool="exec", state="done")) == 4, w.audit())
    same(w.clawden("audit", "verify").returncode, 0, "the record does not verify")


def foreign(w, token, own, call, pid, session):
    """What a stranger, whose own session is another, gets by request."""
    look = lambda method, path: w.ask(method, path, token=token).status
    seen = {"look": look("GET", f"/v1/calls/{call}"), "events": look("GET", f"/v1/calls/{call}/events"), "cancel": look("DELETE", f"/v1/calls/{call}"),
            "end": look("DELETE", f"/v1/sessions/{session}"),
            "audit": len(w.get(f"/v1/audit?session={session}", token=token).json["records"]),
            "audit of the call": len(w.get(f"/v1/audit?call={call}", token=token).json["records"]),
            "calls": len(w.get(f"/v1/calls?session={session}", token=token).json["calls"]),
            "sessions": len([s for s in w.get("/v1/sessions", token=token).json["sessions"] if s["session"] == session]),
            "boxes": len(w.get("/v1/boxes", token=token).json["boxes"])}
    for action in ("poll", "log", "kill", "write"):
        arguments = dict({"action": action, "process": pid}, **({"data": "x"} if action == "write" else {}))
        r = w.post("/v1/call", {"tool": "process", "arguments": arguments, "session": own}, token=token)
        seen[action] = r.status
        r = w.post("/v1/call", {"tool": "process", "arguments": arguments, "session": session}, token=token)
        seen[action + " there"] = r.status
    for tool, arguments in (("exec", {"command": "echo x > stolen"}), ("read", {"path": "note"}), ("session_status", {})):
        seen[tool] = w.post("/v1/call", {"tool": tool, "arguments": arguments, "session": session}, token=token).status
    s = client.WebSocket(w.port, w.auth(token))
    for n, (op, params) in enumerate((("look", {"call": call}), ("events", {"call": call}), ("cancel", {"call": call}), ("session.end", {"session": session})), 1):
        s.send({"id": n, "op": op, "params": params})
        seen["ws " + op] = s.message()["status"]
    return seen


@test("6-2 HT-06 a token of another session or agent touches nothing of this one's: calls, events, processes, record")
def _(w):
    w.start().token()
    m = marker()
    session = "agent:main:a"
    w.call("exec", {"command": "echo secret-note > note"}, session=session)
    pid = w.call("exec", {"command": f"sleep {m}", "background": True}, session=session)["result"]["process"]
    for agent, pattern, own in (("other", "agent:other:*", "agent:other:a"), ("main", "agent:main:b*", "agent:main:b1")):
        token = w.token(agent, pattern)
        got = foreign(w, token, own, pid, pid, session)
        for key in ("look", "events", "cancel", "end", "ws look", "ws events", "ws cancel", "ws session.end", "poll", "log", "kill", "write"):
            same(got[key], 404, f"{agent}: {key}")
        for key in ("exec", "read", "session_status", "poll there", "log there", "kill there", "write there"):
            same(got[key], 403, f"{agent}: {key}")
        for key in ("audit", "audit of the call", "calls", "sessions", "boxes"):
            same(got[key], 0, f"{agent}: {key}")
        r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "true"}, "session": session}, token=token)
        need("secret" not in r.body.decode() and set(r.json["denied"]) == {"op", "target", "rule", "reason", "key", "final"}, r)
    need(wait_for(lambda: running(m)) and not os.path.exists(w.path("stolen")), "the command is gone, or something ran")
    same(w.get(f"/v1/calls/{pid}").status, 200, "control: its own token")
    same(w.call("process", {"action": "poll", "process": pid}, session=session)["result"]["status"], "running")
    need(w.get(f"/v1/audit?call={pid}").json["records"], "control: its own record")
    same(w.ask("DELETE", f"/v1/sessions/{session}").status, 200, "control: it may end its session")
    need(ends(m), "the session's command runs on")


@test("6-2 HT-06 a token that may only read runs, writes and ends nothing; fields that name a right are refused")
def _(w):
    w.start().token()
    reader = w.token("main", "agent:main:*", "--right", "read")
    w.call("write", {"path": "note", "content": "x\n"})
    m = marker()
    pid = w.begin(f"sleep {m}")
    same(w.call("read", {"path": "note"}, token=reader)["result"]["content"], "x\n")
    for tool, arguments in (("exec", {"command": "id"}), ("write", {"path": "n", "content": ""}), ("edit", {"path": "note", "edits": [{"oldText": "x", "newText": "y"}]}),
                            ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: note\n*** End Patch\n"}),
                            ("process", {"action": "kill", "process": pid}), ("process", {"action": "write", "process": pid, "data": "x"})):
        need("denied" in w.call(tool, arguments, status=403, token=reader), tool)
    same(w.ask("DELETE", f"/v1/calls/{pid}", token=reader).status, 403)
    same(w.ask("DELETE", "/v1/sessions/agent:main:main", token=reader).status, 404)
    for field in ("scope", "owner", "role", "rights", "token"):
        r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "id"}, field: "admin"}, token=reader)
        need(r.status == 400 and field in r.json["error"]["message"], r)
    r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "id"}}, headers=[("X-User", "root"), ("X-Forwarded-User", "root")], token=reader)
    same(r.status, 403)
    same(w.text("note"), "x\n")
    need(wait_for(lambda: running(m)), "its command is gone")  # a busy machine may not have begun it


@test("6-2 HT-06 no spelling of a session or an agent gets a token out of its pattern")
def _(w):
    w.start().token()
    token = w.token("main", "agent:main:b*")
    other = w.token("other", "agent:other:*")
    for session in ("agent:main:a", "agent:main:A", "AGENT:MAIN:a", "agent:main: b", " agent:main:a", "agent:main:a ", "agent:MAIN:a", "main:a", "a", "*", "agent:main:*", "agent:*:b", "agent:main:a\tb",
                    "agent:main:a:agent:main:b", "agent:main::b", "agent::b", "agent:main", "agent:main:", ":b", "agent:main:b/../a", "agent:main:\u0062", "b1", "agent:other:b", "agent:main:a\u200b"):
        for t, mine in ((token, "agent:main:b"), (other, "agent:other:")):
            r = w.post("/v1/call", {"tool": "session_status", "session": session}, token=t)
            need(r.status in (200, 400, 403), f"{session!r}: {r}")
            need(r.status != 200 or r.json["session"].startswith(mine) and r.json["result"]["session"] == r.json["session"], f"{session!r}: {r}")
            for path in ("/v1/sessions/" + quote(session),):
                need(w.ask("DELETE", path, token=t).status in (200, 400, 404), session)
    for agent in ("main", "MAIN", " main", "*", "other!", "main\u200b"):
        r = w.post("/v1/call", {"tool": "session_status", "agent": agent}, token=other)
        need(r.status in (200, 400, 403) and (r.status != 200 or r.json["session"].startswith("agent:other:")), f"{agent}: {r}")
        r = w.post("/v1/call", {"tool": "session_status", "agent": agent, "session": "agent:main:b1"}, token=other)
        need(r.status in (400, 403), f"{agent}: {r}")
    same(w.call("session_status", session="agent:main:b1", token=token)["session"], "agent:main:b1", "control")


@test("6-3 AU-07 the gateway is killed amid a call: no process is left, and the record says begun, then interrupted")
def _(w):
    w.start().token()
    m = marker()
    w.exec("true")
    c = Conn(w.port)
    line = f"echo x >> ran; (setsid sleep {m} &) ; sleep {m}"
    body = json.dumps({"tool": "exec", "arguments": {"command": line}, "id": "the-one"}).encode()
    c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")], body))
    need(wait_for(lambda: lines(w) == 1 and len(running(f"sleep\0{m}")) >= 2), "it does not run")
    call = [r for r in w.audit(event="call.begin") if m in r["target"]][0]["call"]
    same(w.get(f"/v1/calls/{call}").json["state"], "running", "control")
    w.kill()
    need(ends(m), "processes of the call outlive the gateway")
    need(wait_for(lambda: not w.left(), 3), f"processes of the gateway are left: {w.left()}")
    w.start()
    r = w.get(f"/v1/calls/{call}")
    same((r.status, r.json["state"], r.json["error"]["code"]), (500, "interrupted", "interrupted"))
    same([(x["event"], x.get("state")) for x in w.audit(call=call)], [("call.begin", None), ("call.end", "interrupted")])
    same([c["state"] for c in w.get("/v1/calls?limit=50").json["calls"] if c["call"] == call], ["interrupted"])
    r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": line}, "id": "the-one"})
    same((r.status, r.json["state"], r.json["call"]), (500, "interrupted", call), "the same id")
    same((lines(w), running(m)), (1, []), "it ran twice")
    same(w.exec("echo on")["stdout"], "on\n", "the session goes on")
    same(w.clawden("audit", "verify").returncode, 0)


@test("6-3 a background command dies with the gateway, killed or ended; its end is in the record if that could still write")
def _(w):
    w.start().token()
    for how in (w.kill, w.term):
        m = marker()
        pid = w.begin(f"(setsid sleep {m} &); sleep {m}")
        need(wait_for(lambda: len(running(f"sleep\0{m}")) == 2), "it does not run")
        how()
        need(ends(m), "it outlives the gateway")
        w.start()
        same(w.process("list")["processes"], [])
        if how == w.term:  # a kill may have taken what was not written yet
            same(w.get(f"/v1/calls/{pid}").json["result"]["status"], "running", "what the call was answered")
    same([x.get("state") for x in w.audit(call=pid, event="process.end")], ["interrupted"], "process.end")


@test("the front and the back end together, whichever is killed")
def _(w):
    w.start().token()
    for which in (0, 1):
        m = marker()
        w.begin(f"sleep {m}")
        os.kill((w.p.pid, w.front)[which], signal.SIGKILL)
        w.p.wait(10)
        need(wait_for(lambda: not os.path.exists(f"/proc/{w.front}")), "the front is left")
        need(ends(m), "the command is left")
        w.start()


# ---- streams ----

COUNT = "i=0; while [ $i -lt 200 ]; do seq $((i*100+1)) $((i*100+100)); i=$((i+1)); sleep 0.005; done; exit 7"
NUMBERS = "".join(f"{i}\n" for i in range(1, 20001))


@test("a stream that is dropped and taken up again loses and doubles nothing: 20,000 numbers, then the true status")
def _(w):
    w.start().token()
    owner = w.stream_call(COUNT, more={"id": "count"})
    call = next(iter(owner))[2]["call"]
    text, last, drops, end = "", None, 0, None
    while not end:
        s = w.stream_events(call, after=last)
        same((s.status, s.headers and dict(s.headers).get("Content-Type")), (200, "text/event-stream"))
        for n, (seq, kind, e) in enumerate(s):
            need(last is None or seq > last, f"{seq} after {last}")
            last = seq
            if kind == "output":
                text += e["data"]
            elif kind == "end":
                end = e
                break
            if n == 12 and drops < 15:
                drops += 1
                break
        s.c.close()
    need(drops >= 5, f"dropped only {drops} times")
    same(text, NUMBERS, "the text")
    same((end["result"]["status"], end["result"]["exitCode"]), ("exited", 7))
    own = list(owner)
    same("".join(e["data"] for _, k, e in own if k == "output"), NUMBERS, "the first stream")
    same((own[-1][1], own[-1][2]["result"]["exitCode"]), ("end", 7))
    # after its end, from the middle, and from a number that is none
    again = list(w.stream_events(call, after=0))
    same("".join(e["data"] for _, k, e in again if k == "output"), NUMBERS, "after the end")
    half = own[len(own) // 2][0]
    rest = list(w.stream_events(call, after=half))
    same("".join(e["data"] for _, k, e in rest if k == "output"), "".join(e["data"] for s, k, e in own if k == "output" and s > half))
    same(w.stream_events(call, after=1).status, 400, "no event has this number")
    for bad in ("-1", "x", "", "1.5", "99999999999999999999"):
        same(w.stream_events(call, after=bad).status, 400, bad)
        need(w.get(f"/v1/calls/{call}/events?after={bad}").status == 400, bad)
    # who was away for long: the number of the end is larger than any before, also after a restart
    same([(k, s > last) for s, k, _ in w.stream_events(call, after=last)], [("end", False)], "the end again")
    w.term()
    w.start()
    for after in (None, half, last):
        events = list(w.stream_events(call, after=after))
        same([(k, s > (after or 0), e["result"]["exitCode"]) for s, k, e in events], [("end", True, 7)], f"after {after}")


@test("a stream of a call that starts no command has its answer in its end; a refusal has its own status")
def _(w):
    w.start().token()
    head = [("Content-Type", "application/json"), ("Accept", "text/event-stream"), *w.auth()]
    go = lambda tool, arguments: client.Stream(Conn(w.port), request("POST", "/v1/call", head, json.dumps({"tool": tool, "arguments": arguments}).encode()))
    (seq, kind, e), = go("write", {"path": "f", "content": "x\n"})
    same((kind, e["result"]["created"], e["seq"]), ("end", True, seq))
    (_, kind, again), = w.stream_events(e["call"])
    same((kind, again["result"]), ("end", e["result"]))
    for status, tool, arguments in ((404, "read", {"path": "none"}), (404, "nothing", {}), (400, "exec", {})):
        s = go(tool, arguments)
        same((s.status, dict(s.headers)["Content-Type"]), (status, "application/json"), tool)


@test("a background command's stream can be followed and ends with its true status")
def _(w):
    w.start().token()
    pid = w.begin("for i in 1 2 3; do echo $i; sleep 0.1; done; exit 5")
    s = w.stream_events(pid, conn=Conn(w.port, 8))
    got = list(s)
    same("".join(e["data"] for _, k, e in got if k == "output"), "1\n2\n3\n")
    same((got[-1][1], got[-1][2]["result"]["exitCode"]), ("end", 5))
    same(list(w.stream_events(pid, conn=Conn(w.port, 8)))[-1][2]["result"]["exitCode"], 5, "after its end")


@test("events over a WebSocket: growing numbers, several calls at once, the end with the true status; stop kills")
def _(w):
    w.start().token()
    s = w.socket()
    m = marker()
    for n in range(1, 6):
        s.send({"id": n, "op": "call", "params": {"tool": "exec", "arguments": {"command": f"seq {n * 1000}; exit {n}"}, "stream": True}})
    s.send({"id": 9, "op": "call", "params": {"tool": "exec", "arguments": {"command": f"echo go; sleep {m}"}, "stream": True}})
    text, seq, done = {}, {}, {}
    while len(done) < 5 or not text.get(9):
        e = s.message()
        if "status" in e:
            done[e["id"]] = e
        else:
            n, e = e["id"], e["event"]
            need(n not in seq or e["seq"] > seq[n], e)
            seq[n] = e["seq"]
            text[n] = text.get(n, "") + e.get("data", "")
    for n in range(1, 6):
        same(text[n], "".join(f"{i}\n" for i in range(1, n * 1000 + 1)), n)
        same((done[n]["status"], done[n]["body"]["result"]["exitCode"]), (200, n))
    need(wait_for(lambda: running(m)), "control: it runs")
    s.send({"id": 9, "op": "stop"})
    same(s.message()["status"], 499)
    need(ends(m), "what was stopped runs on")
    s.send({"id": 9, "op": "stop"})
    same(s.message()["status"], 404, "nothing is open")


@test("a client that goes away takes its command and all that it started along, unless it is in the background")
def _(w):
    w.start().token()
    m, b = marker(), marker()
    pid = w.begin(f"sleep {b}")
    for how in ("close", "reset", "sse", "ws"):
        line = f"(setsid sleep {m} &); (sleep {m} & sleep {m} & wait) & sleep {m}"
        body = {"tool": "exec", "arguments": {"command": line}}
        if how == "sse":
            c = w.stream_call(line).c
        elif how == "ws":
            s = w.socket()
            s.send({"id": 1, "op": "call", "params": body})
            c = s.c
        else:
            c = Conn(w.port)
            c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")], json.dumps(body).encode()))
        need(wait_for(lambda: len(running(f"sleep\0{m}")) == 4), f"{how}: it does not run")
        if how == "reset":
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        need(ends(m), f"{how}: it runs on")
    call = [r["call"] for r in w.audit(event="call.begin") if m in r["target"]][-1]
    need(wait_for(lambda: w.audit(call=call, event="call.end")), "its end is not recorded")
    r = w.get(f"/v1/calls/{call}").json
    same(r["result"]["status"], "cancelled", r)
    need(running(b), "the background command is gone")
    same(w.process("poll", pid)["status"], "running")
    r = w.ask("DELETE", f"/v1/calls/{pid}")
    same((r.status, r.json["cancelled"]), (200, True))
    need(ends(b), "cancel left it")
    same(w.process("poll", pid, wait=5)["status"], "cancelled")


@test("HT-31 a stream that nobody reads does not grow the gateway, nor hold up others; the command's status is true")
def _(w):
    w.start().token()
    w.exec("true")
    before = w.rss()
    sse = w.stream_call("yes", conn=Conn(w.port, rcvbuf=4096), timeout=3)
    call = next(iter(sse))[2]["call"]
    s = w.socket()
    s.send({"id": 1, "op": "call", "params": {"tool": "exec", "arguments": {"command": "yes yes", "timeout": 3}, "stream": True}})
    most, slowest, end = 0, 0, time.monotonic() + 4
    while time.monotonic() < end:
        most = max(most, w.rss() - before)
        begin = time.monotonic()
        w.get("/v1/me")
        slowest = max(slowest, time.monotonic() - begin)
        time.sleep(0.1)
    need(w.sanitized() or most < 24 << 10, f"it grew by {most} KiB")
    need(slowest < 3, f"another request took {slowest:.1f} s")
    need(wait_for(lambda: "result" in w.get(f"/v1/calls/{call}").json), "it has not ended")
    r = w.get(f"/v1/calls/{call}").json["result"]
    same((r["status"], r["limit"]["name"]), ("limit", "time"))
    need(r["outputBytes"] > 10 << 20 and r["truncated"], r["outputBytes"])
    # what was not read is still there, in order
    n = 0
    for _, kind, e in sse:
        if kind == "output":
            need(set(e["data"]) <= {"y", "\n"}, "other bytes")
            n += len(e["data"])
    same((kind, e["result"]["limit"]["name"]), ("end", "time"))
    need(n > 1 << 20, n)
    w.alive()


@test("bytes that are no text come as they are in events, and both streams in their order")
def _(w):
    w.start().token()
    got = list(w.stream_call("printf 'a\\377\\000b'; sleep 0.1; echo err >&2; sleep 0.1; printf '\\303'; sleep 0.1; printf '\\251\\n'"))
    out = [(e["stream"], base64.b64decode(e["data64"]) if "data64" in e else e["data"].encode()) for _, k, e in got if k == "output"]
    same(b"".join(d for s, d in out if s == "stdout"), b"a\xff\0b\xc3\xa9\n")
    same([s for s, _ in out], ["stdout", "stderr", "stdout"], out)
    same(got[-1][2]["result"]["stderr"], "err\n")


# ---- HT-34: an id is for one call ----

def keyed(w, key, line="echo x >> ran", **kw):
    return w.post("/v1/call", {"tool": "exec", "arguments": {"command": line}, "id": key}, **kw)


@test("HT-34 the same id twice is one call and one answer; another body is 422, another token's id is its own")
def _(w):
    w.start().token()
    a, b = keyed(w, "k1"), keyed(w, "k1")
    same((a.status, a.body), (b.status, b.body))
    same(lines(w), 1)
    c = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "echo x >> ran"}}, headers=[("Idempotency-Key", "k1")])
    same((c.body, lines(w)), (a.body, 1), "the header")
    r = keyed(w, "k1", "echo y >> ran")
    same((r.status, r.json["error"]["code"], lines(w)), (422, "key_reused", 1))
    same(w.post("/v1/call", {"tool": "exec", "arguments": {"command": "echo x >> ran"}, "id": "k1"}, headers=[("Idempotency-Key", "k2")]).status, 400)
    for bad in ("", "a b", "x" * 129, "é", "a\n"):
        same(keyed(w, bad).status, 400, bad)
    other = w.token("main", "agent:main:*")
    same((keyed(w, "k1", token=other).status, lines(w)), (200, 2), "another token")
    same((keyed(w, "k3").status, lines(w)), (200, 3), "control: another id")
    # what was refused, and what failed, is remembered as well
    for tool, arguments in (("read", {"path": "none"}), ("edit", {"path": "ran", "edits": [{"oldText": "nowhere", "newText": ""}]})):
        first = w.post("/v1/call", {"tool": tool, "arguments": arguments, "id": tool})
        same(w.post("/v1/call", {"tool": tool, "arguments": arguments, "id": tool}).body, first.body)
    edit = {"tool": "edit", "arguments": {"path": "ran", "edits": [{"oldText": "x\nx\nx", "newText": "once"}]}, "id": "edit-1"}
    same([w.post("/v1/call", edit).status for _ in range(3)], [200] * 3)
    same(w.text("ran"), "once\n")


@test("HT-34 twenty at once with one id: one runs, and all get its answer, streams too")
def _(w):
    w.start().token()
    for round in range(3):
        got = []

        def one(n):
            if n % 4 == 0:
                s = w.stream_call("echo x >> ran; sleep 0.2; echo done", more={"id": f"many{round}"})
                e = list(s)[-1][2]
                got.append((e["call"], e["result"]["stdout"]))
            else:
                r = keyed(w, f"many{round}", "echo x >> ran; sleep 0.2; echo done").json
                got.append((r["call"], r["result"]["stdout"]))
        threads = [threading.Thread(target=one, args=(n,)) for n in range(20)]
        [t.start() for t in threads]
        [t.join(30) for t in threads]
        same((len(got), set(got), lines(w)), (20, {(got[0][0], "done\n")}, round + 1))


@test("HT-34 the first of those who wait goes away: the call goes on for the others, or ends for all, but runs once")
def _(w):
    w.start().token()
    first = Conn(w.port)
    line = "echo x >> ran; sleep 0.6; echo done"
    first.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")],
                       json.dumps({"tool": "exec", "arguments": {"command": line}, "id": "left"}).encode()))
    need(wait_for(lambda: lines(w) == 1), "it does not run")
    got = []
    t = threading.Thread(target=lambda: got.append(keyed(w, "left", line, timeout=10)))
    t.start()
    time.sleep(0.1)
    first.close()
    t.join(15)
    need(got and got[0].status == 200, "the second client hangs")
    need(got[0].json["result"]["status"] in ("exited", "cancelled"), got)
    same((keyed(w, "left", line).body, lines(w)), (got[0].body, 1))


@test("HT-34 after a restart, and after kill -9 between run and reply, the id gives the recorded answer and nothing runs again")
def _(w):
    w.start().token()
    first = keyed(w, "kept")
    same(w.term(), 0)
    w.start()
    again = keyed(w, "kept")
    same((again.status, again.body, lines(w)), (200, first.body, 1), "after SIGTERM")
    # the front cannot tell the client: the back has run it, and recorded the end
    c = Conn(w.port)
    line = "echo x >> second; sleep 0.2; echo out"
    c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")],
                   json.dumps({"tool": "exec", "arguments": {"command": line}, "id": "between"}).encode()))
    need(wait_for(lambda: lines(w, "second") == 1), "it does not run")
    os.kill(w.front, signal.SIGSTOP)
    need(wait_for(lambda: [r for r in w.audit(event="call.end") if r["call"] == w.audit(event="call.begin")[-1]["call"]]), "no end")
    time.sleep(0.1)
    w.kill()
    w.start()
    r = keyed(w, "between", line)
    same((r.status, r.json["result"]["stdout"], lines(w, "second")), (200, "out\n", 1), "after kill -9")


@test("HT-34 kill -9 at any moment, then the same id again: at most one run, and the answer tells which")
def _(w):
    w.start().token()
    w.exec("true")
    rounds, seen = (60 if client.ARGS.full else 12), {}
    for n in range(rounds):
        c = Conn(w.port)
        c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")],
                       json.dumps({"tool": "exec", "arguments": {"command": f"echo x >> r{n}"}, "id": f"r{n}"}).encode()))
        time.sleep(random.random() * 0.02)
        w.kill()
        c.close()
        w.start()
        r = keyed(w, f"r{n}", f"echo x >> r{n}")
        ran = lines(w, f"r{n}")
        need(r.status in (200, 500), r)
        seen[r.status] = seen.get(r.status, 0) + 1
        if r.status == 200:
            same(ran, 1, f"round {n}: told 200")
        else:
            need(r.json["state"] == "interrupted" and ran <= 1, f"round {n}: {r}, {ran} runs")
    same(w.clawden("audit", "verify").returncode, 0, seen)


# ---- process ----

@test("commands in the background: list, poll with a wait, the log of 3 MB piece by piece, to its end")
def _(w):
    w.start().token()
    pid = w.begin("seq 1 440000; echo end >&2; exit 6")
    r = w.process("poll", pid, wait=20)
    same((r["status"], r["exitCode"], r["process"], r["background"]), ("exited", 6, pid, True))
    want = "".join(f"{i}\n" for i in range(1, 440001)) + "end\n"
    text, at, n = [], 0, 0
    while True:
        r = w.process("log", pid, offset=at, **({"limit": 262144} if n % 2 else {}))
        text.append(r["content"])
        need(r["next"] >= at, r["next"])
        at, n = r["next"], n + 1
        if not r["more"]:
            break
    need("".join(text) == want, f"{len(''.join(text))} bytes for {len(want)}, in {n} pieces")
    same(r["outputBytes"], len(want))
    same(w.process("log", pid, offset=at)["content"], "", "at the end")
    same(w.call("process", {"action": "log", "process": pid, "offset": at + 1}, status=400)["error"]["code"], "invalid")
    same(w.call("process", {"action": "log", "process": pid, "offset": 3}, status=400)["error"]["code"], "invalid")
    same(w.call("process", {"action": "poll", "process": "f" * 32}, status=404)["error"]["code"], "not_found")
    other = w.begin("sleep 5")
    begin = time.monotonic()
    same(w.process("poll", other, wait=0.5)["status"], "running")
    need(0.4 < time.monotonic() - begin < 20, "it did not wait")
    same([p["process"] for p in w.process("list")["processes"]][:2], [other, pid], "newest first")


@test("a background command reads what is written to it until eof; a killed one is gone with its tree; signals arrive")
def _(w):
    w.start().token()
    pid = w.begin("while read x; do echo got $x; done; echo end")
    for text in ("a\n", "b\nc"):
        w.process("write", pid, data=text)
    w.process("write", pid, data="\n", eof=True)
    same(w.process("poll", pid, wait=10)["status"], "exited")
    same(w.process("log", pid)["content"], "got a\ngot b\ngot c\nend\n")
    need(w.call("process", {"action": "write", "process": pid, "data": "x"}, status=409)["error"], "it is over")
    m = marker()
    pid = w.begin(f"trap '' TERM HUP; (setsid sleep {m} &); sleep {m}; sleep {m}")
    need(wait_for(lambda: len(running(f"sleep\0{m}")) == 2), "it does not run")
    w.process("kill", pid)
    need(ends(m), "it is not dead")
    same(w.process("poll", pid, wait=5)["status"], "cancelled")
    pid = w.begin("trap 'echo usr; exit 9' USR1; echo up; while :; do sleep 0.05; done")
    need(wait_for(lambda: "up" in w.process("log", pid)["content"]), "no trap yet")
    w.process("kill", pid, signal="SIGUSR1")
    r = w.process("poll", pid, wait=5)
    same((r["status"], r.get("exitCode")), ("exited", 9), r)
    pid = w.begin(f"exec sleep {m}")
    w.process("kill", pid, signal="SIGTERM")
    r = w.process("poll", pid, wait=5)
    same((r["status"], r.get("signal")), ("signaled", "SIGTERM"), r)
    same(w.call("process", {"action": "kill", "process": pid, "signal": "SIGWINCH"}, status=400)["error"]["code"], "invalid")


@test("a terminal: its size, and its size after resize; both streams are one")
def _(w):
    w.start().token()
    pid = w.begin("stty size; read x; stty size; echo err >&2; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all", pty=True, rows=31, cols=97)
    need(wait_for(lambda: "31 97" in w.process("log", pid)["content"]), w.process("log", pid))
    w.process("resize", pid, rows=50, cols=132)
    w.process("write", pid, data="\n")
    same(w.process("poll", pid, wait=10)["status"], "exited")
    text = w.process("log", pid)["content"].replace("\r", "")
    need("50 132\nerr\nall\n" in text, text)
    plain = w.begin("sleep 5")
    need(w.call("process", {"action": "resize", "process": plain, "rows": 5, "cols": 5}, status=400)["error"], "it has no terminal")


@test("a command that is out of time is killed with its tree, and the answer says which limit")
def _(w):
    w.start().token()
    m = marker()
    begin = time.monotonic()
    r = w.exec(f"echo before; trap '' TERM; (setsid sleep {m} &); sleep {m}; sleep {m}", timeout=0.7)
    need(time.monotonic() - begin < 10, "it took too long")
    same((r["status"], r["limit"]["name"], r["limit"]["value"], r["stdout"]), ("limit", "time", 0.7, "before\n"))
    need(ends(m), "its tree is left")
    same(w.exec("echo in time", timeout=5)["status"], "exited", "control")
    pid = w.begin(f"sleep {m}", timeout=0.5)
    same(w.process("poll", pid, wait=10)["limit"]["name"], "time", "in the background")
    need(ends(m), "its tree is left")


@test("a command that is out of memory is told so by name, where the kernel counts it")
def _(w):
    w.configure(docker={"memory": "64m"})
    w.start().token()
    r = w.exec("x=$(head -c 150000000 /dev/zero | tr '\\0' x); echo ${#x}", timeout=30)
    if r["stdout"].strip() == "150000000":
        raise Skip("nobody keeps a limit of memory here")
    if r["status"] != "limit":  # supervised: there is no cgroup to tell whom it was
        same((r["status"], r["signal"], r["reason"]), ("signaled", "SIGKILL", "the box was ended, and everything in it"))
    else:
        same(r["limit"]["name"], "memory", r)
    same(w.exec("echo on")["stdout"], "on\n", "the session goes on")


@test("what is written beyond the spool is dropped and counted; beginning and end of the answer are true")
def _(w):
    w.start().token()
    got = {}
    n = 72000000
    s = w.stream_call(f"head -c {n} /dev/zero | tr '\\0' x; echo; echo last >&2; exit 4", conn=Conn(w.port, 60))
    kept, last = 0, -1
    for seq, kind, e in s:
        need(seq > last, f"{kind}: {seq} after {last}")
        got[kind], last = e, seq
        if kind == "output":
            kept += len(e["data"])
    same(kept + got["dropped"]["bytes"], n + 1 + 5, "kept and dropped")
    need(got["dropped"]["bytes"] > 1 << 20, got["dropped"])
    r = got["end"]["result"]
    same((r["exitCode"], r["outputBytes"], r["truncated"]), (4, n + 6, True))
    need(len(r["stdout"]) < 100000 and r["stdout"].startswith("xxx"), len(r["stdout"]))
    need(w.sanitized() or w.rss() < 200 << 10, w.rss())


@test("what a command is given to read: 1 MiB whole, or not read at all; what waits for it is bounded")
def _(w):
    w.start().token()
    text = "".join(f"{i:07d}\n" for i in range(131072))
    r = w.exec("sha256sum", stdin=text)
    same(r["stdout"].split()[0], hashlib.sha256(text.encode()).hexdigest())
    same(w.exec("cat", stdin=text)["outputBytes"], len(text))
    same(w.exec("echo not read; exit 2", stdin=text)["exitCode"], 2)
    same(w.exec("cat; echo end")["stdout"], "end\n", "none: at its end at once")
    before = w.rss()
    pid = w.begin("sleep 30")
    for n in range(40):
        r = w.post("/v1/call", {"tool": "process", "arguments": {"action": "write", "process": pid, "data": text[:1000000]}})
        if r.status != 200:
            break
    need(r.status == 409 and 10 <= n <= 20, f"write {n}: {r}")
    w.grew(before, 96)
    same(w.call("exec", {"command": "true", "stdin": "x" * 1048577}, status=400)["error"]["code"], "invalid", "1 MiB and a byte")


@test("thirty follow one command and one of them in ten goes away: the others get all of it")
def _(w):
    w.start().token()
    pid = w.begin("i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); sleep 0.01; done; exit 3")
    want, got = "".join(f"line {i}\n" for i in range(100)), []

    def follow(n):
        s = w.stream_events(pid)
        text = ""
        for seq, kind, e in s:
            text += e.get("data", "")
            if n % 10 == 0 and len(text) > 100:
                s.c.close()
                return
        got.append((text == want, kind, e["result"]["exitCode"]))
    threads = [threading.Thread(target=follow, args=(n,)) for n in range(30)]
    [t.start() for t in threads]
    c = Conn(w.port)
    c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")], json.dumps({"tool": "process", "arguments": {"action": "poll", "process": pid, "wait": 60}}).encode()))
    time.sleep(0.2)
    c.close()
    [t.join(20) for t in threads]
    same(got, [(True, "end", 3)] * 27)
    w.alive()


# ---- what a command has changed ----

def changed(w, line, **more):
    """(files, is there more) of its receipt; a moment later, so that what was done before is older."""
    time.sleep(0.05)
    r = w.call("exec", dict({"command": line}, **more))["receipt"]
    return r["files"], r.get("filesTruncated", False)


def put(w, name, text=""):
    """As the host does it, for whoever the box runs as."""
    path = w.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    if os.getuid() == 0:
        while path != w.ws:
            os.chown(path, 1000, 1000)
            path = os.path.dirname(path)


@test("a command's receipt names the files that it made and changed, in the answer and in the record; read takes the names")
def _(w):
    w.start().token()
    for name in ("kept", "src/old", "src/deep/x", ".git/config"):
        put(w, name, "1")
    same(changed(w, "cat kept src/old; ls -R; true"), ([], False), "nothing")
    same(changed(w, "echo 2 >>src/old; echo 1 >new; mkdir -p a/b/c; echo x >.git/hook; ln -s /etc link; mkfifo pipe; touch -d 2001-01-01 back"),
         ([".git/hook", "a/b/c/", "back", "link", "new", "pipe", "src/old"], False))
    same(changed(w, "rm src/deep/x; chmod 700 kept"), (["kept", "src/deep/"], False), "what is left of a removed file")
    same(changed(w, "rm kept"), (["./"], False), "in the workspace itself")
    same(changed(w, "mv src lib"), (["lib/"], False), "a folder that was renamed")
    files, cut = changed(w, r"""printf 1 >"$(printf 'a\001\nb')"; printf 2 >"$(printf '\377\376')"; printf 3 >'back\slash'; printf 4 >'"'; printf 5 >"$(printf '\342\200\256x')" """)
    same((sorted(files), cut), (sorted(['"', "a\\x01\\x0ab", "back\\\\slash", "\\xe2\\x80\\xaex", "\\xff\\xfe"]), False), "strange names")
    same(sorted(w.call("read", {"path": f})["result"]["content"] for f in files), list("12345"))
    same(changed(w, "exec 2>&1; echo x >one; kill -9 $$"), (["one"], False), "one that was killed")
    same(changed(w, "echo x >two; sleep 30", timeout=0.3), (["two"], False), "one that took too long")
    got = [r["files"] for r in w.audit(event="call.end", tool="exec")]
    same((got[0], got[2], got[-1]), ([], ["kept", "src/deep/"], ["two"]), "the record")
    r = w.clawden("audit", "verify")
    same(r.returncode, 0, f"the chain: {r.stdout}{r.stderr}")
    same([r.get("files") for r in w.get("/v1/audit?event=call.end&tool=exec&limit=1").json["records"]], [["two"]], "the record, read back")
    need("files" not in w.call("write", {"path": "f", "content": ""})["receipt"], "a file tool's answer has its path")


@test("a background command's receipt has its files too, in the record and at the end of its stream")
def _(w):
    w.start().token()
    put(w, "old")
    time.sleep(0.05)
    pid = w.begin("read line; echo $line >made; rm old")
    w.process("write", pid, data="x\n")
    end = list(w.stream_events(pid))[-1][2]
    same((end["result"]["status"], end["receipt"]["files"]), ("exited", ["made"]))
    same([r["files"] for r in w.audit(event="process.end", call=pid)], [["made"]])
    same([r.get("files") for r in w.audit(event="call.end", call=pid)], [None], "nothing is known when it begins")


@test("a large workspace is looked through by a process of its own; what a receipt cannot hold is told")
def _(w):
    w.start().token()
    for n in range(3000):
        put(w, f"d{n % 30}/f{n}")
    same(changed(w, "echo x >>d29/f2999; echo x >last"), (["d29/f2999", "last"], False), "two of 3,000")
    files, cut = changed(w, "for d in d*; do touch $d/*; done")
    same((len(files), cut, files), (256, True, sorted(files)), "3,000 of 3,000")
    files, cut = changed(w, "mkdir long; for c in a b c d e f g h i j k l m n o p; do : >long/$c$(printf '%0250d' 0 | tr 0 '\001'); done; : >short")
    need(cut and "short" in files and len(json.dumps(files)) < 9000, (len(files), cut))
    pids = [w.begin(f"echo {n} >b{n}") for n in range(30)]
    need(wait_for(lambda: len(w.audit(event="process.end")) == 30, 30), "not all ended")
    for r in w.audit(event="process.end"):
        n = pids.index(r["call"])
        need(r.get("filesTruncated") or f"b{n}" in r["files"], f"{n}: {r}")
    need(wait_for(lambda: sorted(w.children()) == [str(w.front)]), f"processes are left: {w.children()}")
    w.alive()


@test("a hostile workspace: 400 folders deep, closed folders, FIFOs, links that lead out, a folder that is swapped for one")
def _(w):
    w.start().token()
    m = marker()
    outside = os.path.join(w.top, "outside")
    os.mkdir(outside)
    os.chmod(outside, 0o755)
    files, cut = changed(w, "i=0; while [ $i -lt 400 ]; do mkdir d && cd d; i=$((i+1)); done; echo x >deep")
    same((cut, [f for f in files if "deep" in f]), (True, []), "below what is looked at")
    same(w.exec("rm -r d")["exitCode"], 0)
    files, cut = changed(w, "mkdir closed; echo x >closed/f; chmod 0 closed")
    same((files, cut), (["closed/f"], False) if os.getuid() == 0 else (["closed/"], True), "a closed folder")
    same(w.exec("chmod 700 closed; rm -r closed")["exitCode"], 0)
    same(changed(w, f"mkfifo a b; ln -s {outside} out; ln -s / root; ln -s . self; mkdir real; ln -s {outside} real/out"),
         (["a", "b", "out", "real/out", "root", "self"], False), "FIFOs and links")
    pid = w.begin(f"mkdir swap; while :; do mv -T swap kept; ln -s {outside} swap; rm swap; mv -T kept swap; done; sleep {m}")
    stop = threading.Event()

    def touch():
        while not stop.wait(0.002):
            with open(os.path.join(outside, "canary"), "w"):
                pass
    t = threading.Thread(target=touch)
    t.start()
    try:
        for _ in range(60):
            r = w.call("exec", {"argv": ["true"]})["receipt"]["files"]
            need(not [f for f in r if "canary" in f], r)
    finally:
        stop.set()
        t.join()
    w.process("kill", pid)
    w.alive()


@test("a gateway that is told to end while it looks through a workspace records the ends of what was over")
def _(w):
    w.start().token()
    for n in range(2000):
        put(w, f"d{n % 20}/f{n}")
    for _ in range(3):
        pids = [w.begin("echo x >d0/f0") for _ in range(4)]
        time.sleep(0.02)
        w.term()
        for pid in pids:
            ends = w.audit(event="process.end", call=pid)
            same(len(ends), 1, f"{pid}: {ends}")
            need(ends[0]["state"] == "interrupted" or "files" in ends[0], ends)
        w.start()


# ---- many, and boxes that go ----

@test("hundred commands at once in ten sessions: each gets its own answer; more than 64 in one session are refused, not queued")
def _(w):
    w.start().token()
    got = {}

    def one(n):
        r = w.call("exec", {"command": f"echo {n}; sleep 0.1; echo {n} >&2; exit {n % 7}"}, session=f"agent:main:s{n % 10}")["result"]
        got[n] = (r["stdout"], r["stderr"], r["exitCode"])
    threads = [threading.Thread(target=one, args=(n,)) for n in range(100)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    same(got, {n: (f"{n}\n", f"{n}\n", n % 7) for n in range(100)})
    m = marker()
    for n in range(64):
        w.begin(f"sleep {m}")
    r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "true"}})
    need(400 <= r.status < 500 and "64" in r.json["error"]["message"], r)
    same(w.call("exec", {"command": "echo ok"}, session="agent:main:s1")["result"]["stdout"], "ok\n", "another session")
    same(w.ask("DELETE", "/v1/sessions/agent:main:main").status, 200)
    need(ends(m), "they run on")
    same(w.exec("echo again")["stdout"], "again\n")


@test("a box that is removed from outside: its command ends and is told so, the next call gets a new box")
def _(w):
    w.start().token()
    m = marker()
    s = w.stream_call(f"echo up; sleep {m}")
    events = iter(s)
    need(wait_for(lambda: running(m)), "it does not run")
    same(w.clawden("sandbox", "recreate", "--all", "--force").returncode, 0)
    end = list(events)[-1][2]
    need(end["result"]["status"] in ("signaled", "cancelled", "limit") and ends(m), end)
    same(w.exec("echo new")["stdout"], "new\n")
    for n in range(5):  # gone between two calls
        w.clawden("sandbox", "recreate", "--all", "--force")
        same(w.exec(f"echo {n}")["stdout"], f"{n}\n")


@test("another program of the same store (clawden mcp) starting and ending does not touch the gateway's calls")
def _(w):
    w.start().token()
    got = []
    t = threading.Thread(target=lambda: got.append(w.exec("sleep 1.5; echo done")))
    t.start()
    need(wait_for(lambda: [c for c in w.get("/v1/calls").json["calls"] if c["state"] == "running"]), "it does not run")
    call = w.get("/v1/calls").json["calls"][0]["call"]
    for how in ("end", "kill"):
        p = subprocess.Popen([os.path.join(w.bin, "clawden"), "mcp"], env=w.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=w.top)
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                  "clientInfo": {"name": "t", "version": "1"}}}).encode() + b"\n")
        p.stdin.flush()
        need(b'"result"' in p.stdout.readline(), "clawden mcp does not answer")
        if how == "kill":
            p.kill()
        p.stdin.close()
        p.wait(10)
        p.stdout.close()
        same(w.get(f"/v1/calls/{call}").json.get("state"), "running", how)
    t.join(10)
    need(got and got[0]["stdout"] == "done\n", got)
    same([r["state"] for r in w.audit(call=call, event="call.end")], ["done"])


@test("a client that goes away, or cancels, while its box is still being made leaves no command behind")
def _(w):
    w.start().token()
    for n in range(6):
        c = Conn(w.port)
        body = json.dumps({"tool": "exec", "arguments": {"command": f"echo x >> early{n}; sleep 0.2; echo x >> late{n}"}, "session": f"agent:main:c{n}"}).encode()
        c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")], body))
        time.sleep(0.004 * n)
        c.close()
    need(wait_for(lambda: len(w.audit(event="call.begin")) == len(w.audit(event="call.end"))), "calls without an end")
    time.sleep(0.4)
    same([n for n in range(6) if os.path.exists(w.path(f"late{n}"))], [], "commands that went on")
    w.alive()
