# SPDX-License-Identifier: Apache-2.0
"""PROBES 2.9, 2.10 and 2.16 against a whole gateway: boxes that race its file tools, secrets, the record and the store."""
import glob
import json
import os
import random
import subprocess
import sys
import threading
import time

import gateway_client as client
from gateway_client import Closed, Conn, request
from tap import Skip, need, same, test, wait_for

JSON = ("Content-Type", "application/json")
CANARY = "canary-5b1f0c9e"

# Swaps a folder, and a file, with links that lead out of the workspace: as fast as it can.
FLIPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
swap = lambda a, b: libc.syscall(316, -100, a, -100, b, 2)
os.symlink(sys.argv[1], 'out-dir'); os.symlink(sys.argv[1] + '/f', 'out-file')
n = 0
while True:
    for _ in range(500):
        swap(b'd', b'out-dir'); swap(b'f', b'out-file'); n += 2
    print(n, flush=True)
"""


def outside(w):
    """A folder beside the workspace that nobody may come to; what it looks like."""
    d = os.path.join(w.top, "canary")
    os.mkdir(d, 0o777)
    os.chmod(d, 0o777)
    with open(os.path.join(d, "f"), "w") as f:
        f.write(CANARY + "\n")
    os.chmod(os.path.join(d, "f"), 0o666)
    return d


def look(d):
    return sorted((n, os.stat(os.path.join(d, n)).st_mtime_ns, open(os.path.join(d, n)).read()) for n in os.listdir(d)), os.stat(d).st_mtime_ns


def naive(w, path):
    """What the file tools must not be: look first, open then. True: it came out."""
    try:
        if not os.path.realpath(w.path(path)).startswith(w.ws + "/"):
            return False
        with open(w.path(path)) as f:
            return CANARY in f.read()
    except OSError:
        return False


@test("FS-05 a box swaps names under the file tools: nothing outside is read or changed (control: look first, open then, does)")
def _(w):
    w.start().token()
    if w.exec("command -v python3")["exitCode"]:
        raise Skip("no python3 in the box to swap names with")
    canary = outside(w)
    w.exec("mkdir d; echo inside > d/f; echo inside > f")
    for name in ("d/f", "f"):
        if os.getuid() == 0:
            os.chmod(w.path(name), 0o666)
    before = look(canary)
    w.call("write", {"path": "flip.py", "content": FLIPPER})
    pid = w.begin(f"python3 flip.py {canary}")
    need(wait_for(lambda: w.process("log", pid)["content"]), w.process("poll", pid))
    calls = [("read", {"path": "d/f"}), ("read", {"path": "f"}), ("write", {"path": "d/f", "content": "inside\n"}), ("write", {"path": "f", "content": "inside\n"}),
             ("write", {"path": "d/new", "content": "inside\n"}), ("edit", {"path": "d/f", "edits": [{"oldText": "inside", "newText": "inside"}]}), ("ls", {"path": "d"}),
             ("grep", {"pattern": "canary", "path": "d"}), ("find", {"pattern": "*", "path": "d"}),
             ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: d/p\n+inside\n*** End Patch\n"}),
             ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: d/p\n*** End Patch\n"})]
    raw = [request("POST", "/v1/call", [JSON, *w.auth()], json.dumps({"tool": t, "arguments": a}).encode()) for t, a in calls]
    seen, n, came_out, end = {}, 0, 0, time.monotonic() + (120 if client.ARGS.full else 8)
    with Conn(w.port) as c:
        while time.monotonic() < end:
            for r, (tool, _) in zip(raw, calls):
                c.send(r)
                reply = c.reply()
                seen[(tool, reply.status)] = seen.get((tool, reply.status), 0) + 1
                need(CANARY.encode() not in reply.body, f"{tool}: {reply}")
                n += 1
            came_out += sum(naive(w, p) for p in ("d/f", "f") for _ in range(3))
    flips = int(w.process("log", pid, offset=0, limit=262144)["content"].split()[-1])
    w.process("kill", pid)
    same(look(canary), before, "what is outside")
    need(came_out > 0, f"control: no race was won in {n} calls and {flips} swaps: INCONCLUSIVE")
    need(all(s < 500 for _, s in seen) and seen.get(("read", 200)) and len({s for t, s in seen if t == "read"}) > 1, seen)
    print(f"# {n} calls, {flips} swaps at least, the careless reader came out {came_out} times")
    w.alive()


@test("FS-03 FS-07 FS-09 links out, loops, pipes and /proc are refused at once, whatever asks")
def _(w):
    w.start().token()
    canary = outside(w)
    w.exec("mkfifo p; ln -s loop loop; ln -s ../../.. up; ln -s /proc/self/environ env; ln -s /proc/self/fd/5 fd; ln -s /proc/self/root/etc/passwd pw; ln -s /dev/stdin in; "
           f"ln -s {canary}/f leaf; ln -s {canary} dir; ln -s {canary}/none dangling; echo y > real; ln -s real fine")
    before = look(canary)
    for path in ("p", "loop", "up/etc/passwd", "env", "fd", "pw", "in", "leaf", "dir/f", "dangling", "/etc/passwd", "../canary/f", f"{canary}/f", "/workspace/../etc/passwd", "d/../../canary/f",
                 "/workspace-evil/x", "~/.ssh/x", "//etc/passwd", "file:///etc/passwd", "a/", ".", "/workspace"):
        begin = time.monotonic()
        for tool, more in (("read", {}), ("write", {"content": "x"}), ("edit", {"edits": [{"oldText": CANARY, "newText": "x"}]})):
            r = w.post("/v1/call", {"tool": tool, "arguments": dict({"path": path}, **more)}, timeout=10)
            inside = path.startswith(("~/", "file:", "a/")) and tool == "write"  # names like others
            need(inside or r.status in (400, 403, 404, 409), f"{tool} {path}: {r}")
            need(CANARY not in r.body.decode() and "PATH=" not in r.body.decode(), r)
        need(time.monotonic() - begin < 5, f"{path}: it hangs")
    same(look(canary), before)
    same(w.call("read", {"path": "fine"})["result"]["content"], "y\n", "control: a link that stays inside")


@test("FS-19 the gateway is killed amid writes: each file is wholly old or wholly new, at most a temporary file stays for each kill")
def _(w):
    w.start().token()
    size = 300000
    w.call("write", {"path": "f", "content": "a" * size})
    w.call("write", {"path": "g", "content": "start\n" + "g" * 100000})
    writes = [request("POST", "/v1/call", [JSON, *w.auth()], json.dumps({"tool": "write", "arguments": {"path": "f", "content": x * size}}).encode()) for x in "ab"]
    edits = [request("POST", "/v1/call", [JSON, *w.auth()], json.dumps({"tool": "edit", "arguments": {"path": "g", "edits": [{"oldText": a, "newText": b}]}}).encode())
             for a, b in (("start", "START"), ("START", "start"))]
    changed = 0
    rounds = 200 if client.ARGS.full else 20
    for n in range(rounds):
        stop, done = threading.Event(), [0]

        def send():
            try:
                with Conn(w.port, 5) as c:
                    while not stop.is_set():
                        for x in (*writes, *edits):
                            c.send(x)
                            c.reply()
                            done[0] += 1
            except (OSError, Closed):
                pass
        t = threading.Thread(target=send)
        t.start()
        wait_for(lambda: done[0] >= 2)
        time.sleep(random.random() * 0.03)
        w.kill()
        stop.set()
        t.join(10)
        changed += done[0]
        for name, sizes in (("f", {size}), ("g", {6 + 100000})):
            text = w.text(name)
            need(len(text) in sizes and (len(set(text)) == 1 if name == "f" else text[:6].lower() == "start\n" and set(text[6:]) == {"g"}), f"round {n}: {name} is torn: {len(text)}")
        w.start()
    w.call("read", {"path": "f"})
    stray = glob.glob(w.path(".clawden-tmp-*"))
    print(f"# {changed} changes, {len(stray)} temporary files left")
    need(len(stray) <= rounds and set(os.listdir(w.ws)) - {os.path.basename(x) for x in stray} == {"f", "g"}, os.listdir(w.ws))
    if client.ARGS.full:  # the first call of the session has them looked for, once they are a minute old
        need(wait_for(lambda: not glob.glob(w.path(".clawden-tmp-*")), 75), "they stay")


@test("FS-21 of edits that expect the same version one is done, the others are 409")
def _(w):
    w.start().token()
    w.call("write", {"path": "f", "content": "one\n"})
    version = w.call("read", {"path": "f"})["result"]["version"]
    got = []

    def edit(n):
        r = w.post("/v1/call", {"tool": "edit", "arguments": {"path": "f", "expected": version, "edits": [{"oldText": "one", "newText": f"one {n}"}]}})
        got.append((r.status, r.json.get("error", {}).get("code")))
    threads = [threading.Thread(target=edit, args=(n,)) for n in range(10)]
    [t.start() for t in threads]
    [t.join(20) for t in threads]
    same(sorted(got, key=str), [(200, None)] + [(409, "changed")] * 9)
    w.exec("echo other > f")
    r = w.call("read", {"path": "f"})["result"]
    w.exec("echo box >> f")
    same(w.call("write", {"path": "f", "content": "x", "expected": r["version"]}, status=409)["error"]["code"], "changed", "the box changed it")
    same(w.text("f"), "other\nbox\n")


@test("FS-25 the workspace is moved away and a link put in its place: the link is not followed")
def _(w):
    w.start().token()
    canary = outside(w)
    w.call("write", {"path": "f", "content": "mine\n"})
    w.exec("true")
    before = look(canary)
    os.rename(w.ws, w.ws + ".old")
    os.symlink(canary, w.ws)
    try:
        for tool, arguments in (("read", {"path": "f"}), ("write", {"path": "new", "content": "x\n"}), ("write", {"path": "f", "content": "x\n"}), ("ls", {}), ("exec", {"command": "cat f; echo x > byexec"})):
            r = w.post("/v1/call", {"tool": tool, "arguments": arguments})
            need(CANARY not in r.body.decode() and r.status < 500, f"{tool}: {r}")
        same(look(canary), before, "the link's target")
    finally:
        os.unlink(w.ws)
        os.rename(w.ws + ".old", w.ws)


@test("FS-26 sessions with workspaces of their own do not reach each other's, by any spelling")
def _(w):
    w.configure(workspaceAccess="none")
    w.start().token()
    other = w.token("other", "agent:other:*")
    w.call("write", {"path": "secret", "content": CANARY})
    found = [os.path.join(d, "secret") for d, _, names in os.walk(w.top) if "secret" in names]
    same(len(found), 1, "where the first one's file is")
    inner = os.path.relpath(found[0], os.path.join(w.home, ".openclaw"))
    for path in ("secret", found[0], "../" + inner.split("/", 1)[-1], "../../" + inner, "/workspace/../" + inner, "../" + os.path.basename(os.path.dirname(found[0])) + "/secret"):
        r = w.post("/v1/call", {"tool": "read", "arguments": {"path": path}}, token=other)
        need(r.status in (400, 403, 404) and CANARY not in r.body.decode(), f"{path}: {r}")
    r = w.call("exec", {"command": f"cat {found[0]} ../*/secret /workspace/secret; ls /workspace"}, token=other)["result"]
    need(CANARY not in r["stdout"] + r["stderr"], r)
    same(w.call("read", {"path": "secret"})["result"]["content"], CANARY, "control")


# ---- secrets ----

@test("EX-18 AU-08 an isolated box sees no secret of the gateway's: environment, files, descriptors, record, store")
def _(w):
    w.env = dict(w.env, GH_TOKEN="ghp_" + CANARY, SOME_SECRET=CANARY)
    w.start().token()
    if os.getuid() == 0:
        with open(f"/proc/{w.p.pid}/environ", "rb") as f:
            need(CANARY.encode() in f.read(), "control: the gateway has it")
    r = w.exec("env; cat /proc/*/environ; grep -rsl 'canary-5b1f0c9[e]' /proc/*/environ /workspace /etc /home /root /run /var/tmp /tmp 2>/dev/null; true", timeout=60)
    need(CANARY not in r["stdout"] + r["stderr"] and r["status"] == "exited", r["stdout"][-600:])
    need(w.t not in r["stdout"], "its own token")
    r = w.exec(f"ls {w.data} {w.run} {w.top}; find / -xdev \\( -name store.db -o -name audit.jsonl -o -name tokens.json -o -name gateway.lock \\) -print 2>/dev/null; ls -l /proc/self/fd", timeout=60)
    for word in ("store.db", "audit.jsonl", "tokens.json", "gateway.lock", "ws\n"):
        need(word not in r["stdout"], r["stdout"])
    same(sorted(x.split()[8] for x in r["stdout"].splitlines() if " -> " in x), ["0", "1", "2", "3"], "descriptors (3 is the listing)")


@test("EX-19 during many calls no command line of the machine shows the token or a variable's value")
def _(w):
    w.env = dict(w.env, GH_TOKEN="ghp_" + CANARY)
    w.configure(docker={"env": {"GH_TOKEN": "${GH_TOKEN}"}}, networkExecAllow=["printenv"])
    w.start().token()
    shown, stop, rounds = [], threading.Event(), [0]

    def watch():
        while not stop.is_set():
            rounds[0] += 1
            for pid, line in client.cmdlines():
                if CANARY.encode() in line or w.t[17:].encode() in line:
                    shown.append((pid, line))
    t = threading.Thread(target=watch)
    t.start()
    try:
        for n in range(200 if client.ARGS.full else 40):
            r = w.exec("printenv GH_TOKEN")
            same(r["stdout"], f"ghp_{CANARY}\n", "control: the networked box has it")
            r = w.exec("sleep 0.02; echo $MINE", env={"MINE": CANARY + str(n)})
            same(r["stdout"], CANARY + str(n) + "\n")
            need(CANARY not in w.exec("printenv GH_TOKEN; true")["stdout"], "the isolated one has it")
    finally:
        stop.set()
        t.join(10)
    same(shown[:1], [], f"{len(shown)} times in {rounds[0]} looks")
    need(rounds[0] > 30, rounds)
    text = b"".join(open(p, "rb").read() for p in glob.glob(w.data + "/logs/*") + glob.glob(w.data + "/store.db*"))
    need(b"ghp_" + CANARY.encode() not in text.replace(b"ghp_" + CANARY.encode() + b"\\n", b""), "the record")
    need(w.t[17:].encode() not in text + w.output().encode(), "the token is in the record, the store or the log")


SPY = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
r = libc.ptrace(16, pid, 0, 0)
print('attached' if r == 0 else errno.errorcode[ctypes.get_errno()])
if r == 0: libc.ptrace(17, pid, 0, 0)
for name in ('mem', 'environ', 'maps', 'auxv'):
    try:
        with open(f'/proc/{pid}/{name}', 'rb') as f:
            if name != 'mem': f.read(16)
        print('opened')
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


@test("EX-22 a program of the same user cannot attach to the gateway or read its memory; there are no core files")
def _(w):
    w.start().token()
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    spy = lambda pid: subprocess.run([*bare, sys.executable, "-c", SPY, str(pid)], capture_output=True, text=True, timeout=20).stdout.split()
    for pid in w.pids():
        got = spy(pid)
        need(len(got) == 5 and set(got) <= {"EPERM", "EACCES"}, got)
        with open(f"/proc/{pid}/limits") as f:
            core = [x.split()[4:6] for x in f if x.startswith("Max core file size")]
        same(core, [["0", "0"]], "core files")
        with open(f"/proc/{pid}/status") as f:
            status = dict(x.split(":\t", 1) for x in f.read().splitlines() if ":\t" in x)
        if pid == w.front:
            same((status["Seccomp"], status["NoNewPrivs"], status["CapEff"].strip("0")), ("2", "1", ""), "the front")
    plain = subprocess.Popen([*bare, "sleep", "20"], preexec_fn=client.die_with_parent)
    time.sleep(0.1)
    with open("/proc/sys/kernel/yama/ptrace_scope") if os.path.exists("/proc/sys/kernel/yama/ptrace_scope") else open("/dev/null") as f:
        if f.read().strip() in ("", "0"):
            same(spy(plain.pid)[:2], ["attached", "opened"], "control: another process")
    plain.kill()
    plain.wait()


@test("the front has the listening socket, the line to the back and nothing else open")
def _(w):
    w.start().token()
    if os.getuid():
        raise Skip("only root may look at its descriptors")
    kinds = sorted(os.readlink(f"/proc/{w.front}/fd/{n}").split(":")[0] for n in os.listdir(f"/proc/{w.front}/fd") if int(n) > 2)
    need(set(kinds) <= {"socket", "anon_inode"} and kinds.count("socket") == 3, kinds)


# ---- the record and the store ----

def break_audit(w):
    logs = os.path.join(w.data, "logs")
    os.rename(os.path.join(logs, "audit.jsonl"), os.path.join(logs, "kept"))
    os.mkdir(os.path.join(logs, "audit.jsonl"))
    return logs


@test("AU-06 a record that cannot be written: nothing is admitted, and the caller is told")
def _(w):
    w.start().token()
    w.exec("true")
    logs = break_audit(w)
    for tool, arguments in (("exec", {"command": "touch ran"}), ("write", {"path": "ran", "content": ""}), ("read", {"path": "x"}),
                            ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: ran\n+x\n*** End Patch\n"})):
        r = w.post("/v1/call", {"tool": tool, "arguments": arguments})
        need(r.status == 503 and r.json["error"]["code"] == "unavailable", f"{tool}: {r}")
    s = w.socket()
    s.send({"id": 1, "op": "call", "params": {"tool": "exec", "arguments": {"command": "touch ran"}}})
    need(s.message()["status"] == 503, "over a WebSocket")
    need(not os.path.exists(w.path("ran")), "it ran")
    os.rmdir(os.path.join(logs, "audit.jsonl"))
    os.rename(os.path.join(logs, "kept"), os.path.join(logs, "audit.jsonl"))
    same(w.exec("touch ran")["exitCode"], 0, "control: it goes on when it can")
    if os.getuid():
        os.chmod(os.path.join(logs, "audit.jsonl"), 0o400)
        r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "touch ran2"}})
        need(r.status == 503 and not os.path.exists(w.path("ran2")), r)
        os.chmod(os.path.join(logs, "audit.jsonl"), 0o600)
    w.alive()


@test("AU-07 the record of a call is there before its command is")
def _(w):
    w.start().token()
    w.exec("true")
    for n in range(10):
        p = w.begin("sleep 0.3")
        begin = [i for i, r in enumerate(w.audit()) if r.get("call") == p and r["event"] == "call.begin"]
        same(len(begin), 1)
        w.process("kill", p)
    times = {}
    for r in w.audit():
        if "call" in r:
            times.setdefault(r["call"], []).append(r["event"])
    need(all(e[0] == "call.begin" for e in times.values()), times)


@test("AU-12 a store, a token file or a data folder that others could have planted or can read is refused")
def _(w):
    w.start().token()
    w.exec("true")
    w.term()
    db = os.path.join(w.data, "store.db")
    same(os.stat(db).st_mode & 0o077, 0, "store.db is for its owner alone")
    same(os.stat(w.data).st_mode & 0o077, 0, "the folder too")

    def starts():
        p = w.spawn("--listen", "127.0.0.1:0", "--no-link")
        wait_for(lambda: p.poll() is not None or "listens on" in w.output(p))
        up = p.poll() is None
        if up:
            p.terminate()
        p.wait(10)
        return up, w.output(p)
    need(starts()[0], "control")
    elsewhere = os.path.join(w.top, "elsewhere")
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        path = os.path.join(w.data, name)
        kept = os.path.exists(path) and os.rename(path, path + ".kept") is None
        os.symlink(elsewhere, path)
        up, text = starts()
        need(not os.path.exists(elsewhere), f"{name}: the link was followed")
        need(not up and "store.db" in text, f"{name} is a link: {text}")
        os.unlink(path)
        if kept:
            os.rename(path + ".kept", path)
    path = os.path.join(w.data, "tokens.json")
    os.chmod(path, 0o644)
    up, text = starts()
    need(not up and "tokens.json" in text, f"readable tokens: {text}")
    os.chmod(path, 0o600)
    os.chmod(w.data, 0o777)
    up, text = starts()
    need(not up or os.stat(w.data).st_mode & 0o077 == 0, f"a folder of everybody's: {text}")
    os.chmod(w.data, 0o700)
    need(starts()[0], "control")


@test("AU-13 a broken store is set aside and made anew from the record; an id that was used is still used")
def _(w):
    w.start().token()
    w.post("/v1/call", {"tool": "exec", "arguments": {"command": "echo x >> ran"}, "id": "before"})
    w.kill()
    for path in glob.glob(w.data + "/store.db-*"):
        os.unlink(path)
    with open(os.path.join(w.data, "store.db"), "r+b") as f:
        f.write(os.urandom(4096))
    w.start()
    need("store.db" in w.output() and glob.glob(w.data + "/store.db.bad-*"), f"nothing is said: {w.output()}")
    r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "echo x >> ran"}, "id": "before"})
    same((r.status, r.json.get("state"), w.text("ran")), (410, "done", "x\n"), "the id")
    same([c["tool"] for c in w.get("/v1/calls").json["calls"]], ["exec"], "its calls")
    r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "echo y >> ran"}, "id": "before"})
    same((r.status, w.text("ran")), (422, "x\n"), "another body")
