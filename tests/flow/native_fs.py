#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clawden-fs against what it stands for. Prints TAP.

  native_fs.py [--bin DIR] [--fs PROGRAM] [--only WORD] [--ops N] [--seed N]

Claims with fixed expectations run always. The differential ones run the client's own scripts, which are not ours to
keep here: they are taken from an installed client (OPENCLAW_DIR, or ~/.cache/clawden-openclaw-client), by asking its
code for them, and checked against the hashes that the drop-in knows.
"""
import argparse
import hashlib
import json
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

from tap import Skip, default_label, need, run, same, test

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWN = {"canon": "3b45ccc8ebcbd0ff50acaa6e3ad5e095fa1e0a96439900da40a1bc5c1f2c2777",
         "stat": "7e701e90bb9a7ef6d5b61af3dbef04645dc95babd46dc0c3ad8ba29a7a0566a0",
         "pinned": "c6a034108632f49c1a312593adadb7e33385426f31710ee8dd0320bdeb9a629e"}
ARGS = None


def b(path):
    return os.fsencode(path)


# ---- the client's scripts ----

ASK = r"""
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
Set.prototype.union ??= function (o) { return new Set([...this, ...o]); }; // Node before 22
const dist = process.argv[2], seen = new Set();
const file = readdirSync(dist).find((f) => /^fs-bridge-[^.]*\.mjs$/.test(f) &&
  readFileSync(join(dist, f), "utf8").includes("createSandboxFsBridge(params)"));
const make = Object.values(await import(pathToFileURL(join(dist, file)))).find((f) => f.name === "createSandboxFsBridge");
const backend = { async runShellCommand({ script, args }) {
  seen.add(script);
  return { code: 0, stdout: Buffer.from(args[0] + "\n"), stderr: Buffer.alloc(0) };
} };
const bridge = make({ containerOnlyMounts: [], sandbox: { workspaceDir: "/tmp", agentWorkspaceDir: "/tmp",
  containerWorkdir: "/workspace", workspaceAccess: "rw", docker: { binds: [] }, backend } });
for (const call of [() => bridge.stat({ filePath: "x" }), () => bridge.mkdirp({ filePath: "x" })])
  try { await call(); } catch {}
process.stdout.write(JSON.stringify([...seen]));
process.exit(0);
"""
SCRIPTS = None


def scripts():
    """The three scripts by name; Skip says why they are not to be had."""
    global SCRIPTS
    if SCRIPTS is None:
        SCRIPTS = look_for_scripts()
    if isinstance(SCRIPTS, str):
        raise Skip(SCRIPTS)
    return SCRIPTS


def look_for_scripts():
    top = os.environ.get("OPENCLAW_DIR") or os.environ.get("CLAWDEN_OPENCLAW_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "clawden-openclaw-client")
    dist = os.path.join(top, "node_modules/openclaw/dist")
    if not os.path.isdir(dist):
        return "the OpenClaw client is not installed (OPENCLAW_DIR)"
    if not shutil.which("node") or not os.access("/usr/bin/python3", os.X_OK):
        return "node and python3 are needed to run the client's scripts"
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "ask.mjs"), "w") as f:
            f.write(ASK)
        r = subprocess.run(["node", f.name, dist], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if r.returncode:
        return "the client's code does not give its scripts: " + r.stderr.decode(errors="replace").strip().split("\n")[0]
    by_hash = {hashlib.sha256(s.encode()).hexdigest(): s for s in json.loads(r.stdout)}
    found = {name: by_hash[h] for name, h in KNOWN.items() if h in by_hash}
    return found if len(found) == len(KNOWN) else "the installed client has other scripts: " + ", ".join(sorted(by_hash))


# ---- running ----

class World:
    def __init__(self):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="clawden-fs-"))
        self.more = []
        self.umask = 0o022
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def close(self):
        for d in [self.top, *self.more]:
            subprocess.run(["chmod", "-R", "u+rwx", d], stderr=subprocess.DEVNULL)
            subprocess.run(["rm", "-rf", d])  # shutil.rmtree() gives up on a deep tree

    def folder(self, name):
        path = os.path.join(self.top, name)
        os.mkdir(path)
        return path

    def other_device(self):
        """A folder on another file system."""
        for place in ("/dev/shm", "/var/tmp", f"/run/user/{os.getuid()}", os.path.expanduser("~")):
            if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) and os.stat(place).st_dev != os.stat(self.top).st_dev:
                self.more.append(os.path.realpath(tempfile.mkdtemp(prefix="clawden-fs-", dir=place)))
                return self.more[-1]
        raise Skip("there is no second file system that this user may write to")

    def call(self, argv, data=b"", env=None, **kw):
        return subprocess.run([b(a) for a in argv], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
                              env=dict(self.env, **(env or {})), cwd="/", umask=self.umask, **kw)

    def ours(self, verb, *args, **kw):
        return self.call([ARGS.fs, verb, *args], **kw)

    def theirs(self, verb, *args, **kw):
        # GNU readlink -f never ends on a link such as b -> b/c; `timeout` ends its children too.
        guard = ["timeout", "-k", "1", "5"] if verb == "canon" else []
        return self.call([*guard, "sh", "-c", scripts()[verb], "openclaw-sandbox-fs", *args], **kw)

    def ok(self, verb, *args, **kw):
        r = self.ours(verb, *args, **kw)
        same((r.returncode, r.stderr), (0, b""), f"{verb} {args}")
        return r.stdout

    def fails(self, status, words, verb, *args, **kw):
        r = self.ours(verb, *args, **kw)
        same((r.returncode, r.stdout), (status, b""), f"{verb} {args} ({r.stderr})")
        need(words.encode() in r.stderr and r.stderr.count(b"\n") == (1 if words else 0), f"{r.stderr!r} does not say {words!r}")


def put(path, text=b"text", mode=0o644):
    with open(path, "wb") as f:
        f.write(text)
    os.chmod(path, mode)


def get(path):
    with open(path, "rb") as f:
        return f.read()


def left(path):
    return sorted(os.listdir(b(path)))


# ---- fixed expectations ----

@test("canon resolves the deepest part that exists and appends the rest")
def _(w):
    ws = w.folder("ws")
    os.makedirs(f"{ws}/a/b")
    os.symlink("a/b", f"{ws}/rel")
    os.symlink(f"{ws}/a", f"{ws}/abs")
    os.symlink("missing", f"{ws}/dangling")
    os.symlink("loop", f"{ws}/loop")
    for path, want in (("a/b", "a/b"), ("rel", "a/b"), ("abs/b/new/x y", "a/b/new/x y"), ("rel/new", "a/b/new"), ("no/such/way", "no/such/way"),
                       ("dangling", "missing"), ("abs/b/line\n", "a/b/line\n")):
        same(w.ok("canon", f"{ws}/{path}", "0", "0"), f"{ws}/{want}\n".encode(), path)
    same(w.ok("canon", f"{ws}/abs", "1", "0"), f"{ws}\n".encode(), "a final link that is meant itself")
    same(w.ok("canon", f"{ws}/a", "1", "0"), f"{ws}/a\n".encode(), "no link")
    w.fails(1, "", "canon", f"{ws}/loop", "0", "0")
    same(w.ok("canon", f"{ws}/loop/x", "0", "1"), f"{ws}/loop/x\n".encode(), "a loop that only wants a name")
    same(w.ok("canon", "/", "0", "0"), b"/\n")


@test("stat prints type, size and time, and tells a missing file from a missing folder")
def _(w):
    ws = w.folder("ws")
    put(f"{ws}/full", b"12345")
    put(f"{ws}/empty", b"")
    os.symlink("full", f"{ws}/link")
    os.mkfifo(f"{ws}/fifo")
    os.utime(f"{ws}/full", ns=(0, 1700000000123456789))
    same(w.ok("stat", ws, "full"), b"regular file|5|2023-11-14 22:13:20.123456789 +0000\n")
    same(w.ok("stat", ws, "full", env={"TZ": "XXX-5:30"}), b"regular file|5|2023-11-15 03:43:20.123456789 +0530\n")
    same(w.ok("stat", ws, "full", env={"TZ": "XXX3:30"}), b"regular file|5|2023-11-14 18:43:20.123456789 -0330\n")
    for name, want in (("empty", b"regular empty file|0|"), ("link", b"symbolic link|4|"), ("fifo", b"fifo|0|"), (".", b"directory|")):
        need(w.ok("stat", ws, name).startswith(want), name)
    w.fails(1, "No such file or directory", "stat", ws, "absent")
    w.fails(2, f"can't cd to {ws}/absent", "stat", f"{ws}/absent", "x")
    need(b"No such file" not in w.ours("stat", f"{ws}/absent", "x").stderr, "a missing folder would look like a missing file")


@test("write replaces at once, keeps the mode, makes folders when asked to and leaves nothing else")
def _(w):
    ws = w.folder("ws")
    data = os.urandom(300000)
    w.ok("pinned", "write", ws, "new/deep", "f", "1", data=data)
    same((get(f"{ws}/new/deep/f"), stat.S_IMODE(os.stat(f"{ws}/new/deep/f").st_mode)), (data, 0o600))
    same(stat.S_IMODE(os.stat(f"{ws}/new").st_mode), 0o755, "mode of a folder")
    put(f"{ws}/kept", mode=0o754)
    before = os.open(f"{ws}/kept", os.O_RDONLY)
    w.ok("pinned", "write", ws, "", "kept", "0", data=b"")
    same((get(f"{ws}/kept"), stat.S_IMODE(os.stat(f"{ws}/kept").st_mode)), (b"", 0o754))
    same(os.read(before, 10), b"text", "whoever had it open keeps the old content")
    os.close(before)
    w.fails(1, "FileNotFoundError: [Errno 2] No such file or directory: 'absent'", "pinned", "write", ws, "absent/x", "f", "0")
    os.mkdir(f"{ws}/dir")
    w.fails(1, "IsADirectoryError: [Errno 21] Is a directory: '.openclaw-write-", "pinned", "write", ws, "", "dir", "0")
    for name in ("", ".", "..", "a/b"):
        w.fails(1, f"OSError: [Errno 22] invalid basename: '{name}'", "pinned", "write", ws, "", name, "0")
    same(left(ws), [b"dir", b"kept", b"new"], "what is there")
    os.symlink("kept", f"{ws}/link")
    w.ok("pinned", "write", ws, "", "link", "0", data=b"new")
    need(not os.path.islink(f"{ws}/link") and get(f"{ws}/kept") == b"", "a link is replaced, not followed")


@test("create never replaces: exit status 17, and of many at once one wins")
def _(w):
    ws = w.folder("ws")
    w.ok("pinned", "create", ws, "d", "f", "1", data=b"one")
    w.fails(17, "", "pinned", "create", ws, "d", "f", "1", data=b"two")
    same((get(f"{ws}/d/f"), stat.S_IMODE(os.stat(f"{ws}/d/f").st_mode)), (b"one", 0o600))
    os.symlink("nowhere", f"{ws}/d/link")
    w.fails(17, "", "pinned", "create", ws, "d", "link", "1", data=b"two")
    ps = [subprocess.Popen([ARGS.fs, "pinned", "create", ws, "d", "race", "0"], stdin=subprocess.PIPE) for _ in range(12)]
    for i, p in enumerate(ps):
        p.stdin.write(b"%d" % i)
    for p in ps:
        p.stdin.close()
    codes = [p.wait(30) for p in ps]
    same(sorted(codes), [0] + [17] * 11)
    same(get(f"{ws}/d/race"), b"%d" % codes.index(0))
    same(left(f"{ws}/d"), [b"f", b"link", b"race"])


@test("read gives the bytes of regular files with one name, within a bound; absent is exit status 2")
def _(w):
    ws = w.folder("ws")
    data = os.urandom(200001)
    put(f"{ws}/f", data)
    same(w.ok("pinned", "read", ws, "", "f"), data)
    same(w.ok("pinned", "read", ws, "", "f", "200001"), data)
    w.fails(1, "OSError: [Errno 27] file exceeds bounded read limit: 'f'", "pinned", "read", ws, "", "f", "200000")
    w.fails(1, "OSError: [Errno 22] read limit must be non-negative: 'f'", "pinned", "read", ws, "", "f", "-1")
    w.fails(1, "ValueError: invalid literal for int() with base 10: '1e9'", "pinned", "read", ws, "", "f", "1e9")
    w.fails(2, "", "pinned", "read", ws, "", "absent")
    w.fails(2, "", "pinned", "read", ws, "absent", "f")
    w.fails(1, "No such file or directory", "pinned", "read", f"{ws}/absent", "", "f")
    os.link(f"{ws}/f", f"{ws}/second")
    os.mkfifo(f"{ws}/fifo")
    os.symlink("f", f"{ws}/link")
    w.fails(1, "PermissionError: [Errno 1] hardlinked file is not allowed: 'f'", "pinned", "read", ws, "", "f")
    w.fails(1, "PermissionError: [Errno 1] only regular files are allowed: 'fifo'", "pinned", "read", ws, "", "fifo")
    w.fails(1, "OSError: [Errno 40] Too many levels of symbolic links: 'link'", "pinned", "read", ws, "", "link")


@test("readdir lists every name, whatever its bytes are")
def _(w):
    ws = w.folder("ws")
    same(w.ok("pinned", "readdir", ws, ""), b"[]\n")
    names = [b"plain", b"a b", b"quote\"'", b"back\\slash", b"tab\tnew\nline", b"\x01\x1f\x7f", "größe".encode(), "😀".encode(), b"bad\xff\xc3", b"\xed\xa0\x80", b"-n"]
    for n in names:
        put(b(ws) + b"/" + n)
    os.mkdir(f"{ws}/dir")
    os.symlink("dir", f"{ws}/link")
    text = w.ok("pinned", "readdir", ws, ".")
    got = {e["name"].encode(errors="surrogateescape") if "\\ud8" not in json.dumps(e["name"]) else e["name"].encode(): e for e in json.loads(text)}
    same(sorted(got), sorted(names + [b"dir", b"link"]))
    need(all(32 <= c < 127 or c in (10, 127) for c in text), "not ASCII")
    same([(e["isDirectory"], e["isFile"]) for e in (got[b"dir"], got[b"link"], got[b"plain"])], [(True, False), (False, False), (False, True)])
    for i in range(3000):
        put(f"{ws}/dir/{i:05}-{'x' * 100}", b"")
    same(len(json.loads(w.ok("pinned", "readdir", ws, "dir"))), 3000)


@test("no link is followed on the way, and nothing is made for a path that goes up")
def _(w):
    ws, out = w.folder("ws"), w.folder("out")
    put(f"{out}/f", b"secret")
    os.symlink(out, f"{ws}/link")
    os.symlink(ws, f"{w.top}/root")
    for args in (("write", ws, "link", "f", "1"), ("create", ws, "link", "g", "1"), ("read", ws, "link", "f"), ("readdir", ws, "link"), ("mkdirp", ws, "link/new"),
                 ("remove", ws, "link", "f", "1", "1"), ("rename", ws, "link", "f", ws, "", "f", "1"), ("copy", ws, "link", "f", ws, "", "f", "1"),
                 ("rename", ws, "", "link", ws, "link", "g", "1"), ("mkdirp", f"{w.top}/root", "new")):
        w.fails(1, "NotADirectoryError: [Errno 20] Not a directory: '", "pinned", *args)
    for rel in ("..", "new/../x", "../out", "a/..", "./.."):
        w.fails(1, "PermissionError: [Errno 1] path traversal is not allowed: '..'", "pinned", "mkdirp", ws, rel)
    same((left(ws), left(out), get(f"{out}/f")), ([b"link"], [b"f"], b"secret"))
    w.ok("pinned", "mkdirp", ws, "./a//b/./...c/")
    need(os.path.isdir(f"{ws}/a/b/...c"), "dots in names are names")


@test("remove takes links, not what they point to, and force forgives only what is absent")
def _(w):
    ws, out = w.folder("ws"), w.folder("out")
    put(f"{out}/f")
    os.makedirs(f"{ws}/t/a/b")
    os.symlink(out, f"{ws}/t/a/link")
    os.mkfifo(f"{ws}/t/fifo")
    put(f"{ws}/t/a/b/ro", mode=0)
    w.fails(1, "OSError: [Errno 39] Directory not empty: 't'", "pinned", "remove", ws, "", "t", "0", "1")
    w.ok("pinned", "remove", ws, "", "t", "1", "0")
    same((left(ws), left(out)), ([], [b"f"]))
    w.ok("pinned", "remove", ws, "", "t", "1", "1")
    w.fails(1, "FileNotFoundError: [Errno 2] No such file or directory: 't'", "pinned", "remove", ws, "", "t", "1", "0")
    w.fails(1, "No such file or directory: 'no'", "pinned", "remove", ws, "no", "t", "1", "1")


@test("a tree of any usual depth is removed, and one that is too deep is refused in one line")
def _(w):
    for depth, status in ((900, 0), (1500, 1)):
        ws = w.folder(f"d{depth}")
        fd = os.open(ws, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir("d", dir_fd=fd)
            fd, old = os.open("d", os.O_RDONLY, dir_fd=fd), fd
            os.close(old)
        os.close(fd)
        r = w.ours("pinned", "remove", ws, "", "d", "1", "0")
        same(r.returncode, status, f"{depth}: {r.stderr}")
        need(status == 0 or b"RecursionError" in r.stderr or b"Too many open files" in r.stderr, r.stderr)


@test("rename moves whatever it is and makes the folder it goes to")
def _(w):
    ws = w.folder("ws")
    put(f"{ws}/f", b"1", 0o640)
    os.mkdir(f"{ws}/d")
    os.symlink("nowhere", f"{ws}/l")
    os.link(f"{ws}/f", f"{ws}/f2")
    for name in "fdl":
        w.ok("pinned", "rename", ws, "", name, ws, "new/deep", name, "1")
    same((left(ws), left(f"{ws}/new/deep"), os.readlink(f"{ws}/new/deep/l")), ([b"f2", b"new"], [b"d", b"f", b"l"], "nowhere"))
    w.fails(1, "FileNotFoundError: [Errno 2] No such file or directory: 'f' -> 'g'", "pinned", "rename", ws, "", "f", ws, "", "g", "1")


@test("between file systems a move copies, keeps modes, and removes the source only when all is there")
def _(w):
    ws, far = w.folder("ws"), w.other_device()
    os.makedirs(f"{ws}/t/a/empty")
    os.chmod(f"{ws}/t/a", 0o750)
    put(f"{ws}/t/a/f", b"content" * 30000, 0o751)
    os.symlink("/nowhere", f"{ws}/t/link")
    put(f"{ws}/one", b"1", 0o604)
    os.symlink("one", f"{ws}/l")
    for name in ("t", "one", "l"):
        w.ok("pinned", "rename", ws, "", name, far, "in", name, "1")
    same((left(ws), left(f"{far}/in"), os.readlink(f"{far}/in/t/link")), ([], [b"l", b"one", b"t"], "/nowhere"))
    same([stat.S_IMODE(os.lstat(f"{far}/in/{p}").st_mode) for p in ("t/a", "t/a/f", "one")], [0o750, 0o751, 0o604])
    same(get(f"{far}/in/t/a/f"), b"content" * 30000)
    os.mkfifo(f"{far}/in/t/a/zz")
    w.fails(1, "PermissionError: [Errno 1] only regular files are allowed: 'zz'", "pinned", "rename", far, "in", "t", ws, "", "t", "1")
    same((left(ws), left(f"{far}/in")), ([], [b"l", b"one", b"t"]), "a move that failed")


@test("copy makes a second file of a regular one, over what was there")
def _(w):
    ws = w.folder("ws")
    put(f"{ws}/f", b"x" * 70000, 0o640)
    put(f"{ws}/g", b"old", 0o600)
    w.ok("pinned", "copy", ws, "", "f", ws, "", "g", "0")
    same((get(f"{ws}/g"), stat.S_IMODE(os.stat(f"{ws}/g").st_mode)), (b"x" * 70000, 0o640))
    os.mkdir(f"{ws}/d")
    w.fails(1, "only regular files are allowed: 'd'", "pinned", "copy", ws, "", "d", ws, "", "e", "0")
    w.fails(1, "Is a directory: '.openclaw-copy-", "pinned", "copy", ws, "", "f", ws, "", "d", "0")
    same(left(ws), [b"d", b"f", b"g"])


@test("a folder that is swapped for a link again and again never leads a write outside")
def _(w):
    ws, out = w.folder("ws"), w.folder("out")
    os.mkdir(f"{ws}/d")
    os.symlink(out, f"{ws}/l")
    done, rounds = threading.Event(), []

    def swap():
        while not done.is_set():
            for a, c in (("d", "x"), ("l", "d"), ("d", "l"), ("x", "d")):
                os.rename(f"{ws}/{a}", f"{ws}/{c}")
            rounds.append(1)
    t = threading.Thread(target=swap)
    t.start()
    end, codes = time.monotonic() + 1.5, set()
    try:
        while time.monotonic() < end:
            codes.add(w.ours("pinned", "write", ws, "d", "f", "0", data=b"x").returncode)
            codes.add(w.ours("pinned", "rename", ws, "d", "f", ws, "d", "g", "0").returncode)
    finally:
        done.set()
        t.join()
    need(len(rounds) > 100, "nothing was swapped")
    same((left(out), codes), ([], {0, 1}), "what came out")


@test("in a box: known scripts are done without the shell, others and CLAWDEN_NATIVE_FS=0 with it")
def _(w):
    docker = next((p for p in (os.path.join(ARGS.bin, "../libexec/clawden/bin/docker"), os.path.join(ARGS.bin, "docker")) if os.path.exists(p)), None)
    if not docker:
        raise Skip("the drop-in docker is not beside the programs")
    known = scripts()
    ws = w.folder("ws")
    put(f"{ws}/f", b"old", 0o640)
    w.env.update(HOME=w.folder("home"), CLAWDEN_DATA_DIR=f"{w.top}/data", CLAWDEN_EGRESS_IDLE="1", CLAWDEN_RUNTIME_DIR=f"{w.top}/run", CLAWDEN_NO_SPAWNER="1")
    r = w.call([docker, "create", "--name", "fs", "-v", f"{ws}:/workspace", "-w", "/workspace", "openclaw-sandbox:bookworm-slim", "sleep", "infinity"])
    same(r.returncode, 0, r.stderr)
    try:
        same(w.call([docker, "start", "fs"]).returncode, 0)

        def both(script, *args, **kw):
            rs = [w.call([docker, "exec", "-i", "fs", "sh", "-c", script, "openclaw-sandbox-fs", *args], env={"CLAWDEN_NATIVE_FS": v}, **kw) for v in "01"]
            same([r.returncode for r in rs], [rs[0].returncode] * 2, f"{args} {rs}")
            same(rs[1].stdout, rs[0].stdout, args)
            return rs
        for args in (("/workspace/f", "0", "0"), ("/workspace/no/such", "0", "1"), ("/bin/sh", "0", "0")):
            both(known["canon"], *args)
        same(both(known["stat"], "/workspace", "f")[1].stdout[:15], b"regular file|3|")
        for args in (("write", "/workspace", "n", "f", "1"), ("read", "/workspace", "n", "f"), ("readdir", "/workspace", ""), ("create", "/workspace", "n", "f", "0"),
                     ("rename", "/workspace", "", "nothing", "/tmp", "", "f", "1"), ("remove", "/workspace", "", "none", "1", "1"), ("write", "/usr", "", "x", "0")):
            rs = both(known["pinned"], *args, data=b"new")
            if rs[0].returncode == 1:
                need(b"Traceback" in rs[0].stderr and b"Traceback" not in rs[1].stderr, rs)
                same(*(re.sub(rb"[0-9a-f]{12}", b"X", last_line(r.stderr)) for r in rs))
        same(get(f"{ws}/n/f"), b"new")
        r = both("echo $0 $#", "a", "b")
        same(r[1].stdout, b"openclaw-sandbox-fs 2\n")
        same(both(known["canon"], "/usr/../bin", "0", "0")[1].stdout[-4:], b"bin\n")
    finally:
        w.call([docker, "rm", "-f", "fs"])


# ---- differential ----

NAMES = [b"a", b"b", b"c.txt", b"d e", b"sub", b"deep", "ü".encode(), "日本😀".encode(), b"new\nline", b"end\n", b"-rf", b"--", b"-", b"'q'", b'"dq"', b"'\"", b"back\\s", b"*",
         b"$x", b"...", b"x" * 255, b"bad\xff\xfe", b"\xc3", b"\x7f", b"tab\t", "\u200b".encode(), "\xa0".encode(), b".hidden"]
ODD = [b"", b".", b"..", b"a/b", b"y" * 256, b"z" * 3000, b"/"]
DATA = [b"", b"x", b"line\n" * 20, bytes(range(256)) * 256, b"z" * 65537]


class Tree:
    """The same tree made twice from one seed: `theirs` is what the scripts work on, `mine` what the program works on."""

    def __init__(self, w, seed, far=False):
        self.w = w
        self.rnd = random.Random(seed)
        self.pairs = [self.twins(w.top, seed)]
        if far:
            self.pairs.append(self.twins(w.other_device(), seed))
        self.names = [[] for _ in self.pairs]
        for k in range(len(self.pairs)):
            self.fill(k)

    def twins(self, top, seed):
        both = [os.path.join(b(top), b"%s%d" % (side, seed)) for side in (b"t", b"m")]
        for d in both:
            os.mkdir(d, 0o755)
        return both

    def fill(self, k):
        rnd, dirs, plan = self.rnd, [b""], []
        for _ in range(rnd.randint(12, 45)):
            path = os.path.join(rnd.choice(dirs), rnd.choice(NAMES))
            if any(p == path for p, *_ in plan):
                continue
            kind = rnd.choices(["file", "dir", "link", "fifo", "hard", "socket"], [40, 30, 22, 3, 5, 1])[0]
            what = rnd.choice(DATA)
            if kind == "dir":
                dirs.append(path)
            if kind == "link":
                what = rnd.choice([b"a", b"../a", b"b/c.txt", b"missing", b"missing/x", b".", b"..", b"loop", b"@/a", b"@/deep/b", b"@", b"@/nope", b"/etc", b"/nope/x",
                                   os.path.basename(path), b"../sub", b"a/", b"sub/../b", b"c.txt/", b"c.txt/.."])
            plan.append((path, kind, what, rnd.choice([0o644, 0o600, 0o755, 0o444, 0o640, 0o4755, 0o1777, 0]), rnd.randint(-2 * 10**18, 4 * 10**18)))
        for top in self.pairs[k]:
            self.make(top, plan)
        self.names[k] = [p for p, *_ in plan]

    @staticmethod
    def make(top, plan):
        for path, kind, what, mode, when in plan:
            full = os.path.join(top, path)
            try:
                if kind == "dir":
                    os.mkdir(full)
                elif kind == "link":
                    os.symlink(what.replace(b"@", top), full)
                elif kind == "fifo":
                    os.mkfifo(full)
                elif kind == "hard":
                    os.link(os.path.join(top, next(p for p, t, *_ in plan if t == "file")), full)
                elif kind == "socket":
                    fd = os.open(os.path.dirname(full), os.O_RDONLY)
                    with socket.socket(socket.AF_UNIX) as s:
                        s.bind(b"/proc/self/fd/%d/" % fd + os.path.basename(full)[:60])
                    os.close(fd)
                else:
                    put(full, what, mode)
                    os.utime(full, ns=(0, when))
            except (OSError, StopIteration):
                pass  # the same on both sides
        for path, kind, _, mode, _ in reversed(plan):
            full = os.path.join(top, path)
            if kind == "dir" and mode in (0o444, 0o640, 0) and os.path.isdir(full):
                os.chmod(full, {0o444: 0o555, 0o640: 0o300, 0: 0}[mode])

    # -- choices: a value is a function of the top that it is for --

    def path(self, k, want=None):
        """Mostly something that is there now; want is what would be fitting: "file", "dir", or "new" in a folder."""
        rnd = self.rnd
        known = rnd.choice(sorted(self.live(k, want)) or [b""])
        if want == "new":
            known = os.path.join(known, rnd.choice(NAMES))
        once = rnd.choice(self.names[k] or [b""])
        return rnd.choices([known, once, os.path.join(known, rnd.choice(NAMES)), os.path.join(once, rnd.choice(NAMES), rnd.choice(NAMES)), rnd.choice(NAMES), b""],
                           [58, 8, 14, 6, 11, 3])[0]

    def live(self, k, want):
        top = self.pairs[k][0]
        if want in ("dir", "new"):
            yield b""
        for where, dirs, files in os.walk(top):
            dirs[:] = [d for d in dirs if not d.startswith(b".openclaw-")]  # left by a failed move: another name on each side
            for name in (dirs if want in ("dir", "new") else files if want == "file" else dirs + files):
                yield os.path.join(where, name)[len(top) + 1:]

    def root(self, k):
        rnd = self.rnd
        sub = rnd.choices([b"", b"/" + self.path(k), b"/nope"], [90, 8, 2])[0]
        return lambda side: self.pairs[k][side] + sub

    def entry(self, k, want=None):
        """ROOT FOLDER NAME"""
        rnd = self.rnd
        folder, name = os.path.split(self.path(k, want))
        if rnd.random() < 0.06:
            folder = rnd.choice([folder + b"/", b"./" + folder, folder + b"//.", b"../" + folder, folder + b"/..", b"/" + folder, b"." * 3])
        if rnd.random() < 0.06:
            name = rnd.choice(ODD)
        return [self.root(k), lambda _: folder, lambda _: name or b"a"]

    # -- comparing --

    def clean(self, text):
        for pair in self.pairs:
            for top in pair:
                text = text.replace(top, b"@")
        return re.sub(rb"(\.openclaw-[a-z]+-)[0-9a-f]{12}", rb"\1X", text)

    def shape(self, side):
        """Every name with type, mode, links and content."""
        rows = []
        for pair in self.pairs:
            todo = [b""]
            while todo:
                path = todo.pop()
                full = os.path.join(pair[side], path)
                st = os.lstat(full)
                what = b""
                if stat.S_ISLNK(st.st_mode):
                    what = os.readlink(full)
                elif stat.S_ISREG(st.st_mode):
                    what = b"%d" % st.st_size
                    if os.access(full, os.R_OK):
                        what = hashlib.sha1(get(full)).hexdigest().encode()
                elif stat.S_ISDIR(st.st_mode) and os.access(full, os.R_OK | os.X_OK):
                    todo += [os.path.join(path, n) for n in os.listdir(full)]
                rows.append((self.clean(path), oct(st.st_mode), 0 if stat.S_ISDIR(st.st_mode) else st.st_nlink, self.clean(what)))
        return sorted(rows)

    def compare(self, verb, args, data=b"", env=None, changes=True):
        """One call on both sides; sides is one when nothing is changed, so that even paths are the same."""
        sides = (0, 1) if changes else (0, 0)
        words = [[a(s) if callable(a) else b(a) for a in args] for s in sides]
        theirs = self.w.theirs(verb, *words[0], data=data, env=env)
        mine = self.w.ours(verb, *words[1], data=data, env=env)
        if verb == "canon" and theirs.returncode in (124, 137):
            need(mine.returncode in (0, 1), mine)
            return "the script does not end"
        what = f"{verb} {words[0]} umask {self.w.umask:o}: " + ", ".join(
            f"{who} {r.returncode} {r.stdout[-300:]!r} {r.stderr[-300:]!r}" for who, r in (("theirs", theirs), ("ours", mine)))
        same(mine.returncode, theirs.returncode, what)
        got, want = mine.stdout, theirs.stdout
        if b"readdir" in words[0] and theirs.returncode == 0:
            got, want = (sorted(json.loads(t), key=json.dumps) for t in (got, want))
        same(got, want, what)
        same(b"No such file or directory" in last_line(mine.stderr), b"No such file or directory" in last_line(theirs.stderr), what)
        if verb == "pinned":
            same(self.clean(last_line(mine.stderr)), self.clean(last_line(theirs.stderr)), what)
        else:
            same(bool(mine.stderr), bool(theirs.stderr), what)
        if changes:
            one, two = self.shape(0), self.shape(1)
            need(one == two, f"{what}: trees differ: {set(one) ^ set(two)}")
        return theirs.returncode


def last_line(text):
    """Without the number of a descriptor, which Python gives as the name of a folder it was to list."""
    return re.sub(rb": \d+$", b"", text.rstrip(b"\n").rsplit(b"\n", 1)[-1])


def differ(w, n, per_tree, do, far=False):
    """n calls over freshly made trees; every kind of outcome must have been among them."""
    scripts()
    seen = {}
    for i in range(n):
        if i % per_tree == 0:
            t = Tree(w, ARGS.seed * 1000 + i, far)
        w.umask = t.rnd.choice([0o022, 0o077, 0o002, 0])
        code = do(t)
        seen[code] = seen.get(code, 0) + 1
    print(f"# {n} calls, by exit status: {seen}", flush=True)
    need(len(seen) > 1, f"only {seen}")


@test("the same as the script: canon")
def _(w):
    def do(t):
        k = t.rnd.choice
        path = t.path(0)
        return t.compare("canon", [lambda s: t.pairs[0][s] + (b"/" + path if path else b""), k("01"), k("01")], changes=False)
    differ(w, ARGS.ops * 2, 60, do)


@test("the same as the script: stat")
def _(w):
    def do(t):
        folder, name = os.path.split(t.path(0))
        if name == b"-":
            name = b"a"
        tz = t.rnd.choice([{}, {"TZ": "UTC"}, {"TZ": "Europe/Berlin"}, {"TZ": "America/St_Johns"}, {"TZ": "XXX-5:30"}, {"TZ": "no/such"}])
        return t.compare("stat", [lambda s: t.pairs[0][s] + (b"/" + folder if folder else b""), lambda s: name], env=tz, changes=False)
    differ(w, ARGS.ops * 2, 60, do)


@test("the same as the script: read and readdir")
def _(w):
    def do(t):
        if t.rnd.random() < 0.4:
            folder = t.path(0, "dir")
            return t.compare("pinned", ["readdir", t.root(0), lambda s: folder], changes=False)
        more = t.rnd.choice([[], [], [], [], ["999999"], ["0"], ["100"], ["65536"], ["99999999999999999999"], ["-1"], ["1e3"], [" 7 "], ["+9"], [""]])
        return t.compare("pinned", ["read", *t.entry(0, "file"), *more], changes=False)
    differ(w, ARGS.ops, 40, do)


@test("the same as the script: write, create and mkdirp, with the trees that they leave")
def _(w):
    def do(t):
        op = t.rnd.choice(["write", "create", "mkdirp"])
        if op == "mkdirp":
            folder = t.path(0)
            return t.compare("pinned", [op, t.root(0), lambda s: folder])
        return t.compare("pinned", [op, *t.entry(0, t.rnd.choice([None, "new"])), t.rnd.choice("01")], data=t.rnd.choice(DATA))
    differ(w, ARGS.ops, 30, do)


@test("the same as the script: remove, with the trees that it leaves")
def _(w):
    def do(t):
        return t.compare("pinned", ["remove", *t.entry(0), t.rnd.choice("011"), t.rnd.choice("01")])
    differ(w, ARGS.ops // 2, 12, do)


@test("the same as the script: rename and copy, with the trees that they leave")
def _(w):
    def do(t):
        return t.compare("pinned", [t.rnd.choice(["rename", "copy"]), *t.entry(0, t.rnd.choice([None, "file"])), *t.entry(0, t.rnd.choice([None, "new"])), t.rnd.choice("01")])
    differ(w, ARGS.ops, 25, do)


@test("the same as the script: rename and copy between file systems, with the trees that they leave")
def _(w):
    def do(t):
        a, z = t.rnd.choice([(0, 1), (1, 0)])
        return t.compare("pinned", [t.rnd.choice(["rename", "rename", "copy"]), *t.entry(a), *t.entry(z, t.rnd.choice([None, "new"])), t.rnd.choice("011")])
    differ(w, ARGS.ops, 15, do, far=True)


def main():
    global ARGS
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--fs", default="")
    a.add_argument("--only", default="")
    a.add_argument("--ops", type=int, default=80)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--label", default=default_label())
    ARGS = a.parse_args()
    ARGS.bin = os.path.abspath(ARGS.bin)
    ARGS.fs = os.path.abspath(ARGS.fs or os.path.join(ARGS.bin, "clawden-fs"))
    return run("NATIVE-FS", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
