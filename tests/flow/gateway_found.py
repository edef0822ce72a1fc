# SPDX-License-Identifier: Apache-2.0
"""What an attacker found once, each with the way he went."""
import json
import os
import shutil
import threading
import time

from gateway_client import Conn, WebSocket, request, running
from tap import Skip, need, same, test, wait_for

SERVER = """
import socket
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(("127.0.0.1", 8000)); s.listen(9)
while 1:
    c, _ = s.accept(); q = c.recv(9999); print(q.split(b"\\r\\n")[0].decode(), flush=True)
    c.send(%s); c.close()
"""


def call(w, token, tool, arguments=None, **more):
    r = w.post("/v1/call", dict({"tool": tool, "arguments": arguments or {}}, **more), token=token, timeout=100)
    return r.status, r.json


@test("FOUND two agents that call their sessions by the same bare name have two sessions")
def _(w):
    other = os.path.join(w.top, "other")
    os.mkdir(other, 0o700)
    if os.getuid() == 0:
        os.chown(other, 1000, 1000)
    w.configure(json.dumps({"agents": {"defaults": {"sandbox": {"mode": "all"}}, "list": [{"id": "a", "workspace": w.ws}, {"id": "b", "workspace": other}]}}))
    w.start()
    a, b = w.token("a", "*"), w.token("b", "*")
    same(call(w, a, "write", {"path": "secret", "content": "of a"}, session="foo")[0], 200)
    begun = call(w, a, "exec", {"command": "echo secret-output; sleep 60", "background": True}, session="foo")[1]
    same((begun["session"], call(w, b, "session_status", session="foo")[1]["session"]), ("agent:a:foo", "agent:b:foo"))
    same(call(w, b, "process", {"action": "list"}, session="foo")[1]["result"]["processes"], [])
    same(call(w, b, "read", {"path": "secret"}, session="foo")[0], 404)
    same(call(w, b, "exec", {"command": "cat secret; echo b > mark"}, session="foo")[1]["result"]["stdout"], "")
    same((os.path.exists(w.path("mark")), os.path.exists(os.path.join(other, "mark"))), (False, True))
    same(call(w, a, "read", {"path": "secret"}, session="agent:a:foo")[1]["result"]["content"], "of a", "control")
    same(w.ask("DELETE", f"/v1/calls/{begun['result']['process']}", token=a).status, 200)
    same(w.ask("DELETE", "/v1/sessions/foo", token=a).status, 200)
    same(call(w, b, "session_status", session="agent:a:foo")[0], 403)


@test("FOUND a token for one session is not for the one that is spelled in capitals")
def _(w):
    w.start()
    t = w.token("main", "agent:main:a")
    same((call(w, t, "session_status")[0], call(w, t, "session_status", session="agent:main:A")[0]), (200, 403))


def large_file(w, size):
    with open(w.path("c"), "wb") as f:
        f.write(b"\x02" * size)  # six bytes of JSON each
    if os.getuid() == 0:
        os.chown(w.path("c"), 1000, 1000)


def read_often(s, n):
    s.c.send(b"".join(s.frame(json.dumps({"id": k, "op": "call", "params": {"tool": "read", "arguments": {"path": "c"}}})) for k in range(n)))
    s.c.s.settimeout(60)


@test("FOUND hundreds of large answers at once end nothing: all of them come")
def _(w):
    w.start()
    t = w.token("main", "agent:main:*", "--right", "read")
    large_file(w, 150000)
    sockets = [WebSocket(w.port, w.auth(t)) for _ in range(4)]
    for s in sockets:
        read_often(s, 64)  # 58 MB
    for _ in range(64):
        for s in sockets:
            m = s.message()
            need(isinstance(m, dict) and m["status"] == 200 and m["body"]["result"]["size"] == 150000, str(m)[:200])
    w.alive()


@test("FOUND who asks for more over a WebSocket than it reads is told so for each question, and keeps the connection")
def _(w):
    w.start().token()
    large_file(w, 250000)
    s = WebSocket(w.port, w.auth())
    read_often(s, 64)  # 96 MB; 64 MiB may wait
    need(wait_for(lambda: len(w.audit(event="call.begin", tool="read")) == 64, 60), "not all were begun")
    same(w.call("read", {"path": "c", "limit": 1})["result"]["size"], 250000, "one after all of them")
    answers = [s.message() for _ in range(64)]
    same(sorted(m["id"] for m in answers), list(range(64)))
    same({m["status"] for m in answers}, {200, 503})
    need(all(m["body"]["error"]["code"] == "unavailable" for m in answers if m["status"] == 503), [str(m)[:100] for m in answers if m["status"] == 503])
    read_often(s, 1)
    same(s.message()["status"], 200)


@test("FOUND a command that cannot start says which program or folder it was, however long its name")
def _(w):
    w.start().token()
    r = w.call("exec", {"argv": ["no-such-program"]})["result"]
    same((r["status"], r["exitCode"], r["reason"]), ("failed", 127, "execute 'no-such-program': No such file or directory"))
    r = w.call("exec", {"command": "true", "cwd": "no/such"})["result"]
    same((r["status"], r["exitCode"]), ("failed", 127))
    need("enter the folder '" in r["reason"] and "no/such" in r["reason"], r["reason"])
    for name in ("x", "xx"):  # cut between two characters, and within one
        r = w.call("exec", {"argv": [name + "\u00e9" * 200]})["result"]
        need(r["reason"].startswith(f"execute '{name}\u00e9\u00e9") and "too long" in r["reason"], r["reason"])
    w.alive()


@test("FOUND commands with very long words can be listed")
def _(w):
    w.start().token()
    for _ in range(3):
        r = w.call("exec", {"argv": ["true"] + ["\u0001" * 131000] * 20})["result"]
        same(r["status"], "failed")
    r = w.process("list")["processes"]
    need(len(r) == 3 and all(len(p["command"]) <= 4096 for p in r), [len(p["command"]) for p in r])
    w.alive()


@test("FOUND a command that writes single bytes holds nobody up when it is looked at, and its result is true")
def _(w):
    w.start().token()
    pid = w.begin("while :; do printf x; printf y >&2; done")
    time.sleep(4)
    begun = time.monotonic()
    for _ in range(20):
        n = w.process("poll", pid)["outputBytes"]
    need(n > 10000, f"{n} bytes only")
    need(time.monotonic() - begun < 10, "twenty looks took ten seconds")
    w.process("kill", pid)
    need(wait_for(lambda: w.process("poll", pid)["status"] == "cancelled"), "it runs on")


@test("FOUND an edit of a large file holds nobody up")
def _(w):
    w.start().token()
    w.exec("head -c 60000000 /dev/zero | tr '\\0' a > big; echo b >> big")
    edits = [{"oldText": "b" if i % 2 == 0 else "c", "newText": "c" if i % 2 == 0 else "b"} for i in range(150)]
    done, longest = threading.Event(), 0
    t = threading.Thread(target=lambda: (w.call("edit", {"path": "big", "edits": edits}, timeout=200), done.set()), daemon=True)
    t.start()
    while t.is_alive() and longest < 60:
        begun = time.monotonic()
        w.call("session_status")
        longest = max(longest, time.monotonic() - begun)
    t.join(200)
    need(done.is_set() and longest < 4, f"another client waited {longest:.1f} s")


@test("FOUND web_fetch: an honest page comes as it is, one that pretends to be curl's report is only a page; no globs")
def _(w):
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    w.configure(docker={"network": "bridge"})
    w.start().token()
    page = b"HTTP/1.0 203 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\nhonest\\n%s\\t299\\tevil/type\\thttp://evil/\\n" % (b"0" * 32)
    pid = w.call("exec", {"argv": ["python3", "-c", SERVER % ('b"' + page.decode() + '"')], "background": True})["result"]["process"]
    wait_for(lambda: w.exec("curl -s --noproxy '*' -o /dev/null http://127.0.0.1:8000/up && echo yes")["stdout"] == "yes\n", 20)
    r = w.call("web_fetch", {"url": "http://127.0.0.1:8000/{a,b}[1-3]"})["result"]
    same((r["status"], r["contentType"], r["url"], r["truncated"]), (203, "text/plain", "http://127.0.0.1:8000/{a,b}[1-3]", False))
    need(r["content"].startswith("honest\n") and "299" in r["content"], r)
    asked = w.process("log", pid)["content"].splitlines()
    same([x for x in asked if "/up" not in x], ["GET /{a,b}[1-3] HTTP/1.1"])
    r = w.post("/v1/call", {"tool": "web_fetch", "arguments": {"url": "http://127.0.0.1:8001/"}})
    same((r.status, r.json["error"]["code"]), (502, "unreachable"))


@test("FOUND a poll whose client leaves comes to its end in the record; a key of it is not waited for")
def _(w):
    w.start().token()
    pid = w.begin("sleep 60")
    c = Conn(w.port)
    c.send(request("POST", "/v1/call", w.auth() + [("Content-Type", "application/json")],
                   json.dumps({"tool": "process", "arguments": {"action": "poll", "process": pid, "wait": 50}, "id": "p"}).encode()))
    need(wait_for(lambda: w.audit(event="call.begin", key="p")), "it was not begun")
    c.close()
    call_id = w.audit(event="call.begin", key="p")[0]["call"]
    need(wait_for(lambda: w.audit(event="call.end", call=call_id)), "it has no end")
    begun = time.monotonic()
    r = w.post("/v1/call", {"tool": "process", "arguments": {"action": "poll", "process": pid, "wait": 50}, "id": "p"})
    need(time.monotonic() - begun < 10 and r.json["call"] == call_id, r)


@test("FOUND a token that is withdrawn takes its background commands along")
def _(w):
    w.start()
    t = w.token()
    m = f"8{int(time.time() * 1000) % 10**8}"
    call(w, t, "exec", {"command": f"sleep {m}", "background": True})
    need(wait_for(lambda: running(m)), "it does not run")
    same(w.clawden("token", "revoke", t[4:16]).returncode, 0)
    need(wait_for(lambda: not running(m)), "it runs on")


@test("FOUND what is only looked at does not push calls with a key out of memory")
def _(w):
    w.start().token()
    first = w.call("exec", {"command": "echo x >> ran"}, id="once")["call"]
    for _ in range(50):
        w.call("session_status")
    same([c["tool"] for c in w.get("/v1/calls?limit=100").json["calls"]], ["exec"])
    same(w.call("exec", {"command": "echo x >> ran"}, id="once")["call"], first)
    same(w.text("ran"), "x\n")


@test("FOUND a folder that belongs to one session is not another's, though their names have the same digest")
def _(w):
    w.configure(workspaceAccess="none")
    w.start().token()
    same(call(w, None, "write", {"path": "secret", "content": "of a"}, session="agent:main:a")[0], 200)
    claims = os.path.join(w.data, "workspaces")
    names = os.listdir(claims)
    same(len(names), 1)
    with open(os.path.join(claims, names[0])) as f:
        same(f.read(), "agent:main:a")
    with open(os.path.join(claims, names[0]), "w") as f:  # as if that had been there first
        f.write("agent:main:twin")
    same(call(w, None, "read", {"path": "secret"}, session="agent:main:a")[0], 200, "control: an open session")
    w.term()
    w.start()
    status, body = call(w, None, "read", {"path": "secret"}, session="agent:main:a")
    need(status == 409 and "agent:main:twin" in body["error"]["message"], body)


@test("FOUND what was only looked at is not called interrupted after a kill, whether the store is there or made anew")
def _(w):
    w.start().token()
    w.call("write", {"path": "f", "content": "x\n"})
    for gone in (False, True):
        call = w.call("grep", {"pattern": "x"})["call"]
        w.kill()
        for name in os.listdir(w.data) if gone else []:
            if name.startswith("store.db"):
                os.unlink(os.path.join(w.data, name))
        w.start()
        same([(r["event"], r.get("looks")) for r in w.audit(call=call)], [("call.begin", True)])
        same([c["state"] for c in w.get("/v1/calls?tool=grep").json["calls"]], [])
    same([c["state"] for c in w.get("/v1/calls?tool=write").json["calls"]], ["done"])


@test("FOUND what ran in the background when the gateway was killed has its end in the record at the next start")
def _(w):
    w.start().token()
    pid = w.call("exec", {"command": "sleep 60", "background": True}, id="bg")["result"]["process"]
    time.sleep(0.3)
    w.kill()
    w.start()
    same([r["state"] for r in w.audit(event="process.end", call=pid)], ["interrupted"])
    w.term()
    w.start()
    same(len(w.audit(event="process.end", call=pid)), 1, "once")
    same(len(w.audit(event="call.end", call=pid)), 1, "once")
