# SPDX-License-Identifier: Apache-2.0
"""A box in a box (C48): what asks for one from within gets the box beside it, and nobody else's."""
import json
import os
import resource
import shutil
import signal
import socket
import time

from gateway_client import running
from tap import Skip, need, same, test, wait_for

DOOR = "/run/clawden.sock"
# What a program in the box can do with the door, byte by byte.
CLIENT = f"""
import json, socket, sys
def ask(method, path, value=None, headers=()):
    s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect("{DOOR}")
    body = b"" if value is None else json.dumps(value).encode()
    lines = [f"{{method}} {{path}} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    if value is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {{len(body)}}"]
    s.sendall("\\r\\n".join(lines).encode() + b"\\r\\n\\r\\n" + body)
    got = b""
    while True:
        d = s.recv(65536)
        if not d:
            break
        got += d
    head, _, body = got.partition(b"\\r\\n\\r\\n")
    return int(head.split()[1]), body.decode()
def call(tool, arguments, **more):
    return ask("POST", "/v1/call", dict(tool=tool, arguments=arguments, **more))
"""


def bring_programs(w):
    """ClawDen's own programs, where a box sees them."""
    os.makedirs(w.path("bin"), exist_ok=True)
    for name in ("clawden", "clawden-sandbox"):
        shutil.copy(os.path.join(w.bin, name), w.path("bin"))
    if os.getuid() == 0:
        for d, _, files in os.walk(w.path("bin")):
            for f in ["", *files]:
                os.chown(os.path.join(d, f), 1000, 1000)


def inside(w, text, **more):
    """What the client above prints, as a value, from within the session's box."""
    with open(w.path("client.py"), "w") as f:
        f.write(CLIENT + text)
    os.chmod(w.path("client.py"), 0o644)
    r = w.call("exec", {"command": "python3 client.py"}, **more)["result"]
    need(r["exitCode"] == 0, r)
    return json.loads(r["stdout"])


@test("DOOR clawden-sandbox exec within a box runs its command in the box beside it, with the same workspace")
def _(w):
    w.start().token()
    bring_programs(w)
    own = w.exec("hostname")["stdout"]
    r = w.exec("bin/clawden-sandbox exec -- sh -c 'hostname; echo made > made; echo to stderr >&2; exit 7'; echo status $?")
    lines = r["stdout"].split()
    same((lines[1:], r["stderr"]), (["status", "7"], "to stderr\n"))
    need(lines[0] != own.strip(), "it ran in the box that asked")
    with open(w.path("made")) as f:
        same(f.read(), "made\n")
    names = w.clawden("sandbox", "list", "--json").stdout
    need(names.count("-sib") >= 1, names)


@test("DOOR folder, environment, input, signal, missing program and time come through")
def _(w):
    w.start().token()
    bring_programs(w)
    os.mkdir(w.path("sub"))
    if os.getuid() == 0:
        os.chown(w.path("sub"), 1000, 1000)
    r = w.exec("A=1 bin/clawden-sandbox exec --env A --env B=two --chdir /workspace/sub -- sh -c 'echo $A $B; pwd; cat' < /etc/hostname")["stdout"]
    same(r.split("\n")[:2], ["1 two", "/workspace/sub"])
    same(w.exec("echo given | bin/clawden outside -- cat")["stdout"], "given\n")
    same(w.exec("(echo one; sleep 0.5; echo zw\u00f6lf) | bin/clawden outside -- sh -c 'read a; echo got $a; read b; echo got $b'")["stdout"], "got one\ngot zw\u00f6lf\n")
    same(w.exec("yes 0123456789abcde | head -c 20000000 | bin/clawden outside -- wc -c")["stdout"], "20000000\n")
    same(w.exec("bin/clawden-sandbox exec -- sh -c 'kill -TERM $$'")["exitCode"], 128 + signal.SIGTERM)
    same(w.exec("bin/clawden-sandbox exec -- there-is-no-such-program")["exitCode"], 127)
    r = w.exec("bin/clawden outside -- echo a \"$(printf '\\377')\" b")
    same((r["exitCode"], r["stdout"], "word 3" in r["stderr"]), (2, "", True), "a word that JSON has no way to say")
    begun = time.monotonic()
    r = w.exec("bin/clawden-sandbox exec --timeout 0.3 -- sleep 60")
    same(r["exitCode"], 124, r)
    need(time.monotonic() - begun < 30, "it waited")
    r = w.exec("bin/clawden outside -- printf '\\377\\000x' | od -An -tx1")
    same(r["stdout"].split(), ["ff", "00", "78"])


@test("DOOR what the box beside cannot have is refused by name, not left out quietly")
def _(w):
    w.start().token()
    bring_programs(w)
    for option in ("--memory=64m", "--allow-network", "--workspace=/tmp", "--json", "--rootfs=host-ro", "--multi-tenant"):
        r = w.exec(f"bin/clawden-sandbox exec {option} -- true")
        same(r["exitCode"], 2, option)
        need(option.split("=")[0] + ":" in r["stderr"], r["stderr"])
    same(w.exec("bin/clawden-sandbox exec --quiet -- true")["exitCode"], 0, "control")


@test("DOOR a box speaks for its own session and no other, whatever it says")
def _(w):
    w.start().token()
    begun = w.call("exec", {"command": "echo of other; sleep 60", "background": True}, session="agent:main:other")
    w.call("write", {"path": "theirs", "content": "secret"}, session="agent:main:other")
    mine = w.call("exec", {"command": "echo of the host; sleep 60", "background": True}, session="agent:main:mine")
    out = inside(w, f"""
r = {{}}
r["me"] = ask("GET", "/v1/me")
r["own"] = call("exec", dict(command="echo own"))
r["named"] = call("exec", dict(command="echo own"), session="agent:main:mine")
for s in ("agent:main:other", "agent:main:*", "agent:x:mine", "agent:main:MINE", "other"):
    r["to " + s] = call("exec", dict(command="id"), session=s)[0]
r["agent"] = call("exec", dict(command="id"), agent="x")[0]
r["list"] = call("process", dict(action="list"), session="agent:main:other")[0]
r["look"] = ask("GET", "/v1/calls/{begun["call"]}")[0]
r["events"] = ask("GET", "/v1/calls/{begun["call"]}/events")[0]
r["end"] = ask("DELETE", "/v1/sessions/agent:main:other")[0]
for p in ("/v1/sessions", "/v1/audit", "/metrics", "/v1/calls", "/v1/boxes"):
    r["get " + p] = ask("GET", p)
r["end own"] = ask("DELETE", "/v1/sessions/agent:main:mine")[0]
r["mine"] = [ask("GET", "/v1/calls/{mine["call"]}")[0], call("process", dict(action="list")),
             call("process", dict(action="kill", process="{mine["call"]}"))[0], ask("DELETE", "/v1/calls/{mine["call"]}")[0]]
r["again"] = ask("GET", "/v1/calls/" + json.loads(r["own"][1])["call"])[0]
r["bearer"] = ask("GET", "/v1/me", headers=["Authorization: Bearer {w.t}"])[0]
r["host"] = ask("GET", "/v1/me", headers=["Origin: http://evil.example"])[0]
print(json.dumps(r))
""", session="agent:main:mine")
    me = json.loads(out["me"][1])
    same((out["me"][0], me["sessions"], sorted(me["rights"])), (200, ["agent:main:mine"], ["read", "run"]))
    same((out["own"][0], out["named"][0]), (200, 200), out["own"])
    same(json.loads(out["own"][1])["session"], "agent:main:mine")
    for k in out:
        if k.startswith("to ") or k in ("agent", "list"):
            same(out[k] in (400, 403), True, k)
    same((out["look"], out["events"], out["bearer"], out["host"]), (404, 404, 400, 403))
    same((out["end"], out["end own"], out["again"]), (403, 403, 200))
    for k in out:
        if k.startswith("get "):
            same(out[k][0], 403, k)
    same((out["mine"][0], out["mine"][2:], "of the host" in str(out["mine"][1])), (404, [404, 404], False))
    need(len(json.loads(out["mine"][1][1])["result"]["processes"]) == 2, "control: its own two")
    same(w.process("list")["processes"] is not None, True)
    same(w.call("process", {"action": "poll", "process": begun["result"]["process"]}, session="agent:main:other")["result"]["status"], "running", "control")


@test("DOOR the record says which box asked, and for whom")
def _(w):
    w.start().token()
    out = inside(w, """
print(json.dumps([json.loads(ask("GET", "/v1/me")[1])["token"], json.loads(call("exec", dict(command="true"))[1])["call"]]))
""")
    records = [r for r in w.get("/v1/audit?event=call.begin").json["records"] if r["call"] == out[1]]
    same([(r["token"], r["session"], r["verdict"]) for r in records], [(out[0], "agent:main:main", "allow")])
    need(out[0] != w.t[4:16], "it is the caller's own token")


@test("DOOR policy holds for what comes out of a box as for what comes from elsewhere")
def _(w):
    w.configure(json.dumps({"agents": {"defaults": {"workspace": w.ws, "sandbox": {}}}, "tools": {"sandbox": {"tools": {"allow": ["exec", "read"], "deny": ["write"]}}}}))
    w.start().token()
    out = inside(w, 'print(json.dumps([call("process", dict(action="list")), call("exec", dict(command="true"))[0]]))\n')
    same((out[0][0], out[1]), (403, 200))
    same(json.loads(out[0][1])["denied"]["final"], True)


@test("DOOR our rights to files and the session's network are not the box's")
def _(w):
    w.configure(networkExecAllow=["gh", "printenv"], networkDocker={"env": {"GH_TOKEN": "of-the-operator"}})
    w.start().token()
    with open(w.path("closed"), "w") as f:
        f.write("the host's")
    os.chmod(w.path("closed"), 0o600)
    same(w.call("exec", {"command": "printenv GH_TOKEN"})["result"]["stdout"], "of-the-operator\n", "control")
    out = inside(w, """
r = {}
r["secret"] = json.loads(call("exec", dict(command="printenv GH_TOKEN"))[1])["result"]
r["bad"] = [call(t, a)[0] for t, a in (("read", dict(path="closed")), ("write", dict(path="x", content="y")), ("grep", dict(pattern="host")),
            ("ls", dict()), ("web_fetch", dict(url="http://127.0.0.1:1/")), ("exec", dict(command="sleep 60", background=True)))]
r["status"] = json.loads(call("session_status", {})[1])["result"]["boxes"]
print(json.dumps(r))
""")
    same((out["secret"]["stdout"], out["bad"]), ("", [403] * 6))
    same(sorted(b["route"] for b in out["status"]), ["isolated", "isolated sibling", "network"])
    need(not os.path.exists(w.path("x")), "it was written")


@test("DOOR a box cannot use up what others need: bodies, questions, finished commands")
def _(w):
    w.start().token()
    other = w.call("exec", {"command": "echo kept"}, session="agent:main:other")["call"]
    out = inside(w, """
import time
held = []
for i in range(32):
    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect("%s")
    s.sendall(b"POST /v1/call HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: 20000000\\r\\n\\r\\n")
    held.append(s.recv(30))
many = 0
for i in range(110):
    many += call("exec", dict(command="true"))[0] == 200
print(json.dumps([sorted(set(h.decode()[9:12] for h in held)), many]))
""" % DOOR)
    same(out[0], ["413"])
    need(out[1] > 90, out)
    same(w.call("process", {"action": "log", "process": other}, session="agent:main:other")["result"]["content"], "kept\n")


# A second client: questions on one connection, and many that wait at once, over WebSockets.
MANY = f"""
import os, struct, threading, time
def connect():
    s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect("{DOOR}")
    return s
def fast(n):
    s, f, seen = connect(), None, {{}}
    f = s.makefile("rb")
    for i in range(n):
        s.sendall(b"GET /v1/me HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        status, size = int(f.readline().split()[1]), 0
        for line in iter(f.readline, b"\\r\\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split()[1])
        f.read(size)
        seen[status] = seen.get(status, 0) + 1
    return seen
class Ws:
    def __init__(self):
        self.s = connect()
        self.s.sendall(b"GET /v1/ws HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
                       b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n")
        self.f = self.s.makefile("rb")
        if b" 101 " not in self.f.readline():
            sys.exit("no WebSocket")
        while self.f.readline() != b"\\r\\n":
            pass
    def send(self, value):
        data = json.dumps(value).encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(data))
        self.s.sendall(b"\\x81" + size + b"\\0\\0\\0\\0" + data)
    def take(self):
        first, n = self.f.read(2)
        n = struct.unpack(">H", self.f.read(2))[0] if n == 126 else struct.unpack(">Q", self.f.read(8))[0] if n == 127 else n
        return json.loads(self.f.read(n)) if first == 0x81 else self.f.read(n) and None
"""


@test("DOOR a box asks so often in a second and waits for so many answers, and no more; others are not held up")
def _(w):
    w.start().token()
    seen = inside(w, MANY + "print(json.dumps(fast(1500)))")
    need(seen.get("200", 0) >= 200 and seen.get("429", 0) > 0, f"1,500 questions as fast as it goes: {seen}")
    time.sleep(1.1)
    refused, waiting, other = inside(w, MANY + """
first = Ws()
first.send({"id": 0, "op": "call", "params": {"tool": "exec", "arguments": {"command": "sleep 30"}, "stream": True}})
call_id = first.take()["event"]["call"]
sockets = [Ws(), Ws()]
for w in sockets:
    for i in range(40):
        w.send({"id": i, "op": "events", "params": {"call": call_id}})
refused, waiting = [], set()
for n, w in enumerate(sockets):
    while len([1 for r in refused if r[0] == n]) + len([1 for x in waiting if x[0] == n]) < 40:
        m = w.take()
        if m and "status" in m:
            refused.append([n, m["status"], m["body"]["error"]["code"]])
        elif m:
            waiting.add((n, m["id"]))
print(json.dumps([refused, len(waiting), 0]))
""")
    same({tuple(r[1:]) for r in refused}, {(429, "too_many")})
    need(waiting == 63 and len(refused) == 17, (waiting, len(refused)))
    same(w.call("exec", {"command": "echo on"}, session="agent:main:other")["result"]["stdout"], "on\n")


@test("DOOR other settings of who shares a box shut the doors of those who shared one")
def _(w):
    w.configure(scope="agent", workspaceAccess="none")
    w.start().token()
    w.exec("true")
    w.call("write", {"path": "client.py", "content": CLIENT + """
import time
for i in range(200):
    try: out = call("exec", dict(command="cat secret"))
    except OSError as e: out = str(e)
    open("seen", "w").write(json.dumps(out)); time.sleep(0.1)
"""}, session="agent:main:two")
    w.call("exec", {"command": "setsid python3 client.py >/dev/null 2>&1 & sleep 1"}, session="agent:main:two")
    need(wait_for(lambda: "200" in w.call("exec", {"command": "cat seen"}, session="agent:main:two")["result"]["stdout"], 20), "control: it has a door")
    w.configure(scope="session", workspaceAccess="none")
    w.p.send_signal(signal.SIGHUP)
    time.sleep(1)
    w.call("write", {"path": "secret", "content": "of main alone"})
    time.sleep(1)
    found = [os.path.join(d, "seen") for d, _, f in os.walk(w.top) if "seen" in f]
    need(found, "control: it writes what it sees")
    for f in found:
        with open(f) as g:
            need("of main alone" not in g.read(), f)


@test("DOOR the box beside has no door, and no box by itself")
def _(w):
    w.start().token()
    bring_programs(w)
    r = w.exec(f"bin/clawden outside -- sh -c 'ls -A /run | grep -c clawden; bin/clawden outside -- true; echo $?; bin/clawden-sandbox exec -- true; echo $?'")
    same(r["stdout"].split(), ["0", "125", "125"], r)
    need(w.exec(f"test -S {DOOR} && echo yes")["stdout"] == "yes\n", "control")


@test("DOOR who ends takes with him what he asked for")
def _(w):
    w.start().token()
    bring_programs(w)
    mark = f"31{os.getpid()}.{time.time_ns() % 10**9}"
    p = w.begin(f"bin/clawden outside -- sleep {mark}")
    need(wait_for(lambda: running(f"sleep\0{mark}"), 20), "it does not run")
    w.process("kill", p)
    need(wait_for(lambda: not running(f"sleep\0{mark}"), 20), "it runs on")


@test("DOOR a box that opens it a thousand times takes nothing from others")
def _(w):
    w.start().token()
    r = w.exec(f"""python3 -c '
import socket
held, n = [], 0
for i in range(1000):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5)
    try:
        s.connect("{DOOR}"); s.sendall(b"GET /v1/me HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        if s.recv(100).startswith(b"HTTP/1.1 200"): n += 1
    except OSError: pass
    held.append(s)
print(n)'""")
    same(r["stdout"], "32\n", r)
    w.alive()
    same(w.exec("echo on")["stdout"], "on\n")
    same(inside(w, 'print(json.dumps(ask("GET", "/v1/me")[0]))\n'), 200)


@test("DOOR a gateway that was killed and started again is behind it again")
def _(w):
    w.start().token()
    bring_programs(w)
    same(w.exec("bin/clawden outside -- echo one")["stdout"], "one\n")
    w.kill()
    w.start()
    same(w.exec("bin/clawden outside -- echo two")["stdout"], "two\n")


@test("DOOR new settings do not shut it")
def _(w):
    w.start().token()
    bring_programs(w)
    p = w.begin("for i in 1 2 3 4 5 6 7 8 9 10; do bin/clawden outside -- echo $i; sleep 0.3; done")
    need(wait_for(lambda: "2\n" in w.process("log", p).get("content", ""), 20), "it does not begin")
    w.p.send_signal(signal.SIGHUP)
    r = w.process("poll", p, wait=60)
    same((r["exitCode"], w.process("log", p)["content"].split()), (0, [str(i) for i in range(1, 11)]))


@test("DOOR where an agent's sessions share a box it is the agent's main one; where agents do, there is none")
def _(w):
    w.configure(scope="agent")
    w.start().token()
    me = inside(w, 'print(json.dumps(json.loads(ask("GET", "/v1/me")[1])["sessions"]))\n', session="agent:main:two")
    same(me, ["agent:main:main"])
    same(w.term(), 0)
    w.clawden("sandbox", "recreate", "--all", "--force")
    w.configure(scope="shared")
    w.start()
    same(w.exec(f"ls {DOOR} 2>/dev/null | wc -l")["stdout"].strip(), "0")


@test("DOOR what ends the session ends the box beside it, too")
def _(w):
    w.start().token()
    bring_programs(w)
    same(w.exec("bin/clawden outside -- true")["exitCode"], 0)
    same(w.ask("DELETE", "/v1/sessions/agent:main:main").status, 200)
    need(wait_for(lambda: "-sib" not in w.clawden("sandbox", "list", "--json").stdout, 20), "it is still there")


@test("DOOR outside of boxes there is none, and that is said")
def _(w):
    r = w.clawden("outside", "--", "true")
    same(r.returncode, 125)
    need("no box" in r.stderr and "clawden-sandbox exec" in r.stderr, r.stderr)
    same((w.clawden("outside").returncode, w.clawden("outside", "--nonsense", "x").returncode), (2, 2))
    need("curl" in w.clawden("outside", "--help").stdout, "help")


@test("DOOR a full house: who knocks while others have all the room neither breaks anything nor speaks for another")
def _(w):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 5000:
        raise Skip(f"{hard} descriptors are not enough")
    resource.setrlimit(resource.RLIMIT_NOFILE, (5000, hard))
    w.start().token()
    p = w.begin(f"""python3 -c '
import socket, time, os
def knock():
    s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect("{DOOR}"); return s
one = knock(); open("first", "w"); said = b""
while not os.path.exists("full"): time.sleep(0.05)
two = knock(); time.sleep(0.3); open("second", "w")
while not os.path.exists("empty"): time.sleep(0.05)
for s in (two, one):
    try:
        s.sendall(b"GET /v1/me HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"); said += s.recv(2000)
    except OSError: pass
print(said.count(b"agent:main:main") >= 1)'""")
    need(wait_for(lambda: os.path.exists(w.path("first")), 20), "the first does not come")
    held = []
    try:
        for i in range(4095):
            s = socket.socket()
            s.bind((f"127.0.0.{2 + i % 2}", 0))
            s.connect(("127.0.0.1", w.port))
            held.append(s)
        time.sleep(0.5)
        with open(w.path("full"), "w"):
            pass
        need(wait_for(lambda: os.path.exists(w.path("second")), 20), "the second does not come")
    finally:
        for s in held:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    time.sleep(0.5)
    with open(w.path("empty"), "w"):
        pass
    w.alive()
    same(w.process("poll", p, wait=30)["status"], "exited")
    same(w.process("log", p)["content"], "True\n")
