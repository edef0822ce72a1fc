#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole programs, used as a person or a script would use them. Prints TAP.

  flow.py [--bin DIR] [--only WORD]

Runs as whoever starts it. Every test gets a home, a data folder, a runtime folder and a workspace of its own.
"""
import argparse
import fcntl
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

from tap import Skip, default_label, need, run, same, test, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))


class World:
    """A caller with nothing but its own temporary folders."""

    def __init__(self, bindir):
        self.bin = bindir
        self.top = tempfile.mkdtemp(prefix="clawden-flow-")
        self.home = os.path.join(self.top, "home")
        self.ws = os.path.join(self.top, "ws")
        for d in (self.home, self.ws):
            os.mkdir(d)
        self.env = {"HOME": self.home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                    "CLAWDEN_DATA_DIR": os.path.join(self.top, "data"),
                    "CLAWDEN_EGRESS_IDLE": "1", "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"), "CLAWDEN_NO_SPAWNER": "1"}

    def close(self):
        subprocess.run([self.prog("clawden-spawn"), "--stop"], env=self.env, timeout=20)
        shutil.rmtree(self.top, ignore_errors=True)

    def prog(self, name):
        return os.path.join(self.bin, name)

    def run(self, *args, **kw):
        """clawden-sandbox exec ARGS; stdout and stderr captured as text."""
        return self.call("clawden-sandbox", "exec", *args, **kw)

    def call(self, name, *args, **kw):
        kw.setdefault("timeout", 60)
        kw.setdefault("cwd", self.ws)
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        env = dict(self.env, **kw.pop("env", {}))
        for k in [k for k, v in env.items() if v is None]:
            del env[k]
        return subprocess.run([self.prog(name), *args], env=env, text=kw.pop("text", True), **kw)

    def audit(self):
        with open(os.path.join(self.env["CLAWDEN_DATA_DIR"], "logs/audit.jsonl")) as f:
            return [json.loads(line) for line in f]


def refused(r, code, *words):
    """One line on stderr that names these words; nothing was run."""
    same(r.returncode, code, f"exit status ({r.stderr.strip()})")
    lines = r.stderr.strip().split("\n")
    same(len(lines), 1, f"lines on stderr {lines}")
    for w in words:
        need(w in lines[0], f"{w!r} not in {lines[0]!r}")
    need("RAN" not in (r.stdout or ""), "the command ran")


# ---- what a run is ----

@test("a command's stdout, stderr and exit status are its own")
def _(w):
    r = w.run("--", "sh", "-c", "echo out; echo err >&2; exit 7")
    same((r.stdout, r.stderr, r.returncode), ("out\n", "err\n", 7))


@test("stdin from a pipe, a file and nothing arrives whole")
def _(w):
    data = os.urandom(300000).hex()
    same(w.run("--", "cat", input=data, stdin=None).stdout, data, "pipe")
    path = os.path.join(w.top, "input")
    with open(path, "w") as f:
        f.write(data)
    with open(path) as f:
        same(w.run("--", "cat", stdin=f).stdout, data, "file")
    same(w.run("--", "cat").stdout, "", "nothing")


@test("a file given as stdin or stdout cannot be opened again by the box")
def _(w):
    path = os.path.join(w.top, "secret")
    with open(path, "w") as f:
        f.write("before")
    with open(path) as f:
        r = w.run("--", "sh", "-c", "echo X > /proc/self/fd/0; echo X >> /dev/stdin", stdin=f)
    with open(path) as f:
        same(f.read(), "before", "the caller's file")
    with open(path, "w") as f:
        w.run("--", "sh", "-c", "timeout 0.3 cat < /proc/self/fd/1; echo X >> /proc/self/fd/0; echo out", stdout=f)
    with open(path) as f:
        same(f.read(), "out\n", "stdout as a file")


@test("the workspace is writable at its own path and as /workspace, and nothing else is")
def _(w):
    r = w.run("--", "sh", "-c", "pwd; echo a > one; echo b > /workspace/two; touch /x /usr/x /etc/x /home/x /root/x; ls /workspace")
    need(r.stdout.startswith(os.path.realpath(w.ws) + "\n"), r.stdout)
    same(sorted(os.listdir(w.ws)), ["one", "two"])
    same(r.stderr.count("Read-only file system"), 5, r.stderr)
    st = os.stat(os.path.join(w.ws, "one"))
    same((st.st_uid, st.st_gid), (os.getuid(), os.getgid()), "owner of a new file")


@test("--ro: the workspace can be read, not written")
def _(w):
    with open(os.path.join(w.ws, "f"), "w") as f:
        f.write("text")
    r = w.run("--ro", "--", "sh", "-c", "cat f; echo x > f; echo x > /workspace/f; rm f")
    same(r.stdout, "text")
    same(r.stderr.count("Read-only"), 3, r.stderr)


@test("$WORKSPACE names the workspace, and --workspace goes before it")
def _(w):
    other = os.path.join(w.top, "other")
    os.mkdir(other)
    same(w.run("--", "pwd", env={"WORKSPACE": other}).stdout.strip(), os.path.realpath(other))
    same(w.run("--workspace", w.ws, "--", "pwd", env={"WORKSPACE": other}).stdout.strip(), os.path.realpath(w.ws))


@test("the environment is clean, with what is named on top")
def _(w):
    envfile = os.path.join(w.top, "env")
    with open(envfile, "w") as f:
        f.write("# a comment\nFROM_FILE=1 2\n\nTAKEN\n")
    r = w.run("--env", "A=b=c", "--env-file", envfile, "--env", "GIVEN", "--", "env",
              env={"SECRET": "x", "GIVEN": "yes", "TAKEN": "too", "LD_PRELOAD": ""})
    got = dict(line.split("=", 1) for line in r.stdout.strip().split("\n"))
    need("SECRET" not in got and "CLAWDEN_DATA_DIR" not in got, got)
    same((got["A"], got["FROM_FILE"], got["GIVEN"], got["TAKEN"]), ("b=c", "1 2", "yes", "too"))
    same((got["HOME"], got["USER"], got["TERM"]), ("/tmp", "sandbox", "dumb"))


@test("--chdir starts in a folder of the box, and a missing one is named")
def _(w):
    same(w.run("--chdir", "/usr", "--", "pwd").stdout, "/usr\n")
    r = w.run("--chdir", "/nowhere", "--", "echo", "RAN")
    refused(r, 127, "enter the folder '/nowhere'", "No such file")


@test("--rootfs host-ro shows the host without its secrets; a folder becomes the root")
def _(w):
    r = w.run("--rootfs", "host-ro", "--", "sh", "-c",
              "test -r /etc/passwd && echo etc; cat /etc/shadow; ls -A /root /home/* 2>/dev/null | grep -v : | grep -v clawden-flow; pwd; echo x > ok; echo x > /etc/x")
    need(r.stdout.startswith("etc\n"), r)
    need(os.path.exists(os.path.join(w.ws, "ok")), r.stderr)
    need("root:" not in r.stdout, "shadow was read")
    root = os.path.join(w.top, "root")
    for d in ("bin", "etc", "lib"):
        os.makedirs(os.path.join(root, d))
    shutil.copy(w.prog("clawden-sandbox"), os.path.join(root, "bin/hello"))  # a static program
    os.chmod(root, 0o755)
    r = w.run("--rootfs", root, "--", "/bin/hello", "--version")
    need(r.stdout.startswith("clawden-sandbox "), r)
    same(w.run("--rootfs", root, "--", "/usr/bin/id").returncode, 127, "the host is not there")
    same(sorted(os.listdir(root)), ["bin", "etc", "lib"], "nothing was left in the image")


@test("a workspace that cannot be id-mapped keeps its owner too, unless that is 0")
def _(w):
    if os.getuid():
        raise Skip("ordinary users map no ids: the box's user is they themselves")
    for owner, want in ((1234, 0), (0, 125)):
        dirs = {n: os.path.join(w.top, f"{n}{owner}") for n in ("lower", "upper", "work", "merged")}
        for d in dirs.values():
            os.mkdir(d)
            os.chown(d, owner, owner)
        # In a mount namespace of its own: nothing is left on the machine.
        script = (f"mount -t overlay o -o lowerdir={dirs['lower']},upperdir={dirs['upper']},workdir={dirs['work']} {dirs['merged']} && "
                  f"{w.prog('clawden-sandbox')} exec --workspace {dirs['merged']} -- sh -c 'id -u; touch made'; "
                  f"s=$?; stat -c %u {dirs['merged']}/made; exit $s")
        r = subprocess.run(["unshare", "-m", "sh", "-c", script], env=w.env, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=30)
        same(r.returncode, want, r.stderr)
        if owner:
            same(r.stdout, f"1000\n{owner}\n", r.stderr)
        else:
            need("owner 0" in r.stderr, r.stderr)


# ---- limits ----

@test("time: exit 124, named, and everything is gone")
def _(w):
    t = time.monotonic()
    r = w.run("--timeout", "500ms", "--", "sh", "-c", "trap '' TERM HUP INT; sleep 987654 & sleep 987654")
    need(time.monotonic() - t < 5, "took too long")
    refused(r, 124, "time limit 0.500s")
    same(subprocess.run(["pgrep", "-fx", "sleep 987654"], stdout=subprocess.PIPE).stdout, b"", "left behind")


@test("memory: exit 137, named with limit and observed value, audited")
def _(w):
    r = w.run("--memory", "64m", "--json", "--quiet", "--", "python3", "-c", "x = bytearray(400 << 20)")
    same(r.returncode, 137, r.stderr)
    j = json.loads(r.stderr.strip().split("\n")[-1])
    same(j["limit"]["kind"], "memory")
    need(j["limit"]["observed"] >= 60 << 20, j["limit"])
    same(w.audit()[-1]["event"], "run.limit")
    same(w.audit()[-1]["limit"]["kind"], "memory")


@test("processes: a fork bomb is stopped and named")
def _(w):
    r = w.run("--pids", "30", "--timeout", "20", "--", "python3", "-c",
              "import os\nwhile 1:\n try: os.fork()\n except OSError: pass")
    need("pids limit 30 reached" in r.stderr, r.stderr[-600:])
    same(w.audit()[-1]["limit"]["kind"], "pids")
    need(r.returncode != 0, "a stopped bomb is no success")


@test("output: cut at the limit, killed, named; a pipe's reader gets exactly that much")
def _(w):
    r = w.run("--output", "100k", "--", "sh", "-c", "yes; echo RAN ON")
    same((len(r.stdout), r.returncode), (102400, 137))
    need("output limit 100k" in r.stderr, r.stderr)


@test("scratch space: ENOSPC at its size, named, the command's own status")
def _(w):
    r = w.run("--tmp", "4m", "--", "sh", "-c", "dd if=/dev/zero of=/tmp/x bs=1M count=9 2>/dev/null; exit 5")
    same(r.returncode, 5)
    need("tmp limit 4m reached" in r.stderr, r.stderr)


@test("CPU time and file size: killed or refused, and named")
def _(w):
    r = w.run("--cpu-time", "300ms", "--timeout", "20", "--", "sh", "-c", "while :; do :; done")
    same(r.returncode, 137)
    need("cpu_time limit" in r.stderr, r.stderr)
    r = w.run("--file-size", "1m", "--", "dd", "if=/dev/zero", "of=big", "bs=1M", "count=3")
    need("file_size limit 1m" in r.stderr, r.stderr)
    same(os.path.getsize(os.path.join(w.ws, "big")), 1 << 20)


@test("half a processor is half a processor")
def _(w):
    r = w.run("--cpu", "50%", "--timeout", "2", "--json", "--quiet", "--", "sh", "-c", "while :; do :; done")
    j = json.loads(r.stderr)
    need(0.5 < j["cpu_seconds"] < 1.5, j["cpu_seconds"])


# ---- bad input ----

@test("bad words: exit 2, one line that names the value, nothing run")
def _(w):
    for args, word in [(["--nope"], "--nope"), (["--timeout", "soon"], "soon"), (["--timeout", "0"], "0"),
                       (["--timeout", "-5"], "-5"), (["--memory", "12q"], "12q"), (["--memory", "0"], "0"),
                       (["--memory", "99999999999999g"], "99999999999999g"), (["--cpu", "0"], "0"),
                       (["--cpu", "lots"], "lots"), (["--pids", "0"], "0"), (["--pids", "1.5"], "1.5"),
                       (["--output", "-1m"], "-1m"), (["--env", "=x"], "NAME=value"), (["--env", "a b=c"], "a b"),
                       (["--env-file", "/nonexistent"], "/nonexistent"), (["--rootfs", "moon"], "moon"),
                       (["--json-fd", "77"], "77"), (["--timeout"], "--timeout")]:
        r = w.run(*args, "--", "echo", "RAN") if args != ["--timeout"] else w.run("--timeout")
        refused(r, 2, word)
    refused(w.run(), 2, "no command")
    refused(w.call("clawden-sandbox", "fly"), 2, "fly")
    refused(w.call("clawden", "fly"), 2, "fly")


@test("--allow-network with what is no rule is refused, and the entry is named")
def _(w):
    for rules in ("", "*", "a..b", "example.test,", "example.test:0", "10.0.0.0/33", "http://example.test", "exa mple.test", "*.*.test"):
        r = w.run(f"--allow-network={rules}", "--", "echo", "RAN")
        refused(r, 2, "--allow-network")
    refused(w.run("--host-ports=0", "--", "echo", "RAN"), 2, "--host-ports")
    refused(w.run("--allow-network=a.test", "--deny-network=b..c", "--", "echo", "RAN"), 2, "--deny-network")


@test("workspaces that must not be one are refused by name")
def _(w):
    for path, word in [("/", "/"), ("/etc", "/etc"), ("/usr", "/usr"), ("/tmp", "/tmp"), ("/proc/self", "/proc"),
                       ("/nonexistent", "/nonexistent"), (w.home, "home"), (w.top, "home"), ("/dev", "/dev"),
                       (w.env["CLAWDEN_DATA_DIR"], "ClawDen")]:
        os.makedirs(w.env["CLAWDEN_DATA_DIR"], exist_ok=True)
        refused(w.run("--workspace", path, "--", "echo", "RAN"), 125, word)
    link = os.path.join(w.ws, "link")
    os.symlink("/etc", link)
    refused(w.run("--workspace", link, "--", "echo", "RAN"), 125, "/etc")
    odd = os.path.join(w.top, "a\nb")
    os.mkdir(odd)
    refused(w.run("--workspace", odd, "--", "echo", "RAN"), 125, "line break")
    if os.getuid():
        closed = os.path.join(w.top, "closed")
        os.mkdir(closed, 0o000)
        refused(w.run("--workspace", closed, "--", "echo", "RAN"), 125, "closed")
        os.rmdir(closed)  # who cannot look into it cannot remove it as part of a tree


@test("odd but legal workspace names work: spaces, commas, colons, quotes, 200 bytes")
def _(w):
    for name in ["a b", "a,upperdir=x", "a:b", "a'\"b", "a\\054b", "x" * 200, "é", "-rf"]:
        d = os.path.join(w.top, name)
        os.mkdir(d)
        r = w.run("--workspace", d, "--", "sh", "-c", "echo hi > f")
        same(r.returncode, 0, f"{name!r}: {r.stderr}")
        need(os.path.exists(os.path.join(d, "f")), name)


@test("a million bytes of arguments arrive; more than the limit is refused")
def _(w):
    words = ["x" * 1000] * 1000
    same(w.run("--", "sh", "-c", "echo $#", "sh", *words).stdout, "1000\n")
    big = os.path.join(w.top, "big.env")
    with open(big, "w") as f:
        f.write("BIG=" + "x" * (2 << 20))
    r = w.run("--env-file", big, "--", "echo", "RAN")
    need(r.returncode in (2, 125), r)
    need("RAN" not in r.stdout, r)


@test("closed stdin, stdout and stderr; few descriptors; a full disk: refused or run, never half")
def _(w):
    def closed():
        for fd in (0, 1, 2):
            os.close(fd)
    r = subprocess.run([w.prog("clawden-sandbox"), "exec", "--", "sh", "-c", "touch ran; exit 3"], cwd=w.ws, env=w.env,
                       preexec_fn=closed, timeout=30)
    same((r.returncode, os.listdir(w.ws)), (3, ["ran"]))
    r = w.run("--", "echo", "RAN", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
    refused(r, 125)
    need("open files" in r.stderr or "descriptors" in r.stderr, r.stderr)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            r = w.run("--", "echo", "hello", stdout=full)
        need(r.returncode in (0, 1), r)
    d = w.env["CLAWDEN_DATA_DIR"]
    os.makedirs(d + "/logs", mode=0o700, exist_ok=True)
    os.chmod(d, 0o700)
    shutil.rmtree(d + "/logs")
    os.mkdir(d + "/logs", 0o700)
    with open(d + "/logs/audit.jsonl", "w"):
        pass
    os.chmod(d + "/logs/audit.jsonl", 0o644)
    refused(w.run("--", "echo", "RAN"), 125, "audit")


@test("exit statuses: 126 and 127 for what cannot be executed, 128+n for signals")
def _(w):
    refused(w.run("--", "no-such-program"), 127, "no-such-program")
    refused(w.run("--", "/etc/passwd"), 126, "/etc/passwd")
    with open(os.path.join(w.ws, "junk"), "w") as f:
        f.write("not a program")
    os.chmod(os.path.join(w.ws, "junk"), 0o755)
    refused(w.run("--", "./junk"), 126, "junk")
    same(w.run("--", "sh", "-c", "kill -TERM $$").returncode, 143)
    same(w.run("--", "sh", "-c", "kill -KILL $$").returncode, 137)


@test("multi-tenant mode denies what the kernel does not keep, whatever else is asked")
def _(w):
    r = w.run("--rootfs", "host-ro", "--multi-tenant", "--allow-degraded", "--", "echo", "RAN")
    refused(r, 125, "multi-tenant")
    for value, is_on in (("1", True), ("true", True), ("yes", True), ("0", False), ("false", False), ("", False)):
        r = w.run("--rootfs", "host-ro", "--", "echo", "RAN", env={"CLAWDEN_MULTI_TENANT": value})
        need((r.returncode == 125) == is_on, f"CLAWDEN_MULTI_TENANT={value}: {r}")
    r = w.run("--allow-degraded", "--", "echo", "RAN", env={"CLAWDEN_MULTI_TENANT": "1"})
    j = w.run("--json", "--quiet", "--", "true")
    if json.loads(j.stderr)["grades"]["memory"] == "kernel":
        same((r.returncode, r.stdout), (0, "RAN\n"), r.stderr)
    else:
        refused(r, 125, "multi-tenant", "memory")


# ---- --json, explain, doctor ----

@test("--json: one object on stderr or on a descriptor, with belts read from the live box")
def _(w):
    rd, wr = os.pipe()
    r = w.run("--json", "--json-fd", str(wr), "--", "sh", "-c", "echo out; exit 4", pass_fds=[wr])
    os.close(wr)
    j = json.loads(os.read(rd, 65536))
    os.close(rd)
    same((r.stdout, r.stderr, j["exit"], j["started"], j["limit"]), ("out\n", "", 4, True, None))
    need(all(j["belts"].values()), j["belts"])
    need(j["wall_seconds"] > 0 and j["cpu_seconds"] >= 0 and j["peak_memory_bytes"] > 0, j)
    j = json.loads(w.run("--json", "--workspace", "/etc", "--", "true").stderr)
    same((j["started"], j["exit"], j["error"]["code"]), (False, 125, "denied"))


@test("explain shows the plan, the grades and the belts of a real box")
def _(w):
    r = w.call("clawden-sandbox", "explain")
    same(r.returncode, 0, r.stderr)
    for word in ("Plan", "load the seccomp filter", "mount a fresh proc", "seen in /proc", "memory"):
        need(word in r.stdout, word)
    need(" OFF " not in r.stdout, r.stdout)
    j = json.loads(w.call("clawden-sandbox", "explain", "--json", "--memory", "64m").stdout)
    same(j["limits"]["memory"]["value"], 64 << 20)
    need(all(j["belts"].values()), j["belts"])
    need(len(j["plan"]) > 50, len(j["plan"]))


@test("explain says what a box would reach, and that it reaches nothing otherwise")
def _(w):
    r = w.call("clawden-sandbox", "explain", "--allow-network=example.test,*.cdn.test:8443", "--deny-network=bad.cdn.test", "--host-ports=11434")
    need(all(x in r.stdout for x in ("example.test", "*.cdn.test:8443", "not bad.cdn.test", "host.clawden.internal:11434")), r.stdout)
    need("none but its own loopback" not in r.stdout, r.stdout)
    need("none but its own loopback" in w.call("clawden-sandbox", "explain").stdout, "without a network")
    j = json.loads(w.call("clawden-sandbox", "explain", "--json", "--allow-network").stdout)
    same(j["network"]["allow"], ["public:*"])
    same(json.loads(w.call("clawden-sandbox", "explain", "--json").stdout)["network"], None)


@test("explain tells the truth about a box with one belt less")
def _(w):
    weak = os.environ.get("CLAWDEN_WEAK_BUILD")
    if not weak:
        raise Skip("no weakened build was given (CLAWDEN_WEAK_BUILD)")
    r = subprocess.run([os.path.join(weak, "clawden-sandbox"), "explain"], cwd=w.ws, env=w.env, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    need(re.search(r"OFF\s+seccomp\s+seen in /proc", r.stdout), r.stdout[:1500])


@test("doctor tries everything, in words and in JSON")
def _(w):
    r = w.call("clawden", "doctor")
    same(r.returncode, 0, r.stdout)
    need("a box" in r.stdout and "user namespaces" in r.stdout, r.stdout)
    j = json.loads(w.call("clawden", "doctor", "--json").stdout)
    need(j["ok"] and len(j["checks"]) >= 10, j)
    need(all(c["works"] or c["fix"] for c in j["checks"]), j)


@test("every program has --help that teaches and --version")
def _(w):
    for name, words in [("clawden-sandbox", ["--timeout", "Examples", "Exit status"]), ("clawden", ["doctor", "audit"]),
                        ("clawden-spawn", ["--stop"]), ("clawden-egress", ["--stop", "--allow-network"]),
                        ("clawden-gateway", ["--listen", "--tls-cert", "clawden token create"])]:
        r = w.call(name, "--help")
        same(r.returncode, 0, name)
        for word in words:
            need(word in r.stdout, f"{name}: {word}")
        need(re.match(name + r" \d", w.call(name, "--version").stdout), name)
    same(w.call("clawden", "audit", "--help").returncode, 0)
    same(w.call("clawden", "doctor", "--help").returncode, 0)
    need("--listen" in w.call("clawden", "gateway", "--help").stdout, "clawden gateway")
    for client, word in (("claude", "claude mcp add clawden -- "), ("codex", "[mcp_servers.clawden]"), ("cursor", "mcpServers")):
        r = w.call("clawden", "mcp", "install", client)
        need(r.returncode == 0 and word in r.stdout and "clawden" in r.stdout, r)
    same(w.call("clawden", "mcp", "install", "nobody").returncode, 2)


@test("a verb's own help is one word away, and a mistake is one line that names the word and the help")
def _(w):
    for words in (("token", "create"), ("token", "list"), ("mcp", "install"), ("config", "check"), ("audit", "verify"), ("prune",), ("why",)):
        r = w.call("clawden", *words, "--help")
        need(r.returncode == 0 and "clawden " + words[0] in r.stdout and not r.stderr, (words, r))
    for words in (("nonsense",), ("config", "nonsense"), ("config", "check", "--nonsense"), ("audit", "nonsense"), ("doctor", "nonsense"),
                  ("prune", "nonsense"), ("why", "--nonsense"), ("sandbox", "nonsense"), ("sandbox", "explain", "--nonsense"), ("token", "nonsense"),
                  ("token", "list", "--nonsense"), ("image", "list", "nonsense"), ("openclaw", "nonsense")):
        r = w.call("clawden", *words)
        refused(r, 2, "nonsense", "--help")
        same(r.stdout, "", words)
    for words, said in ((("why",), "--tool"), (("why", "gh", "pr"), "quotes"), (("what-if",), "--set"), (("token", "create"), "--agent"),
                        (("token", "create", "--agent", "main"), "--session"), (("mcp", "install"), "codex"),
                        (("mcp", "install", "nobody"), "nobody"), (("prune", "--idle"), "--idle")):
        refused(w.call("clawden", *words), 2, said)
    pulls = w.call("clawden-pull", "--version").returncode != 127  # a machine without its libraries: only boxes are made there
    for name in ("clawden-spawn", "clawden-egress", "clawden-sandbox", "clawden-gateway", *(["clawden-pull"] if pulls else [])):
        r = w.call(name, "nonsense")
        refused(r, 2, "nonsense", "--help")
        same(r.stdout, "", name)
    for option, value, good in (("--name", "X", "NAME[:TAG]"), ("--max-size", "x", "8g"), ("--timeout", "x", "30s"), ("--progress", "x", "plain")) if pulls else ():
        refused(w.call("clawden", "image", "import", ".", option, value), 2, f"{option} '{value}'", good)
    refused(w.call("clawden", "sandbox", "network", "nobody"), 1, "nobody", "clawden ps -a")
    refused(w.run("--workspace", "/nowhere", "--", "echo", "RAN"), 125, "'/nowhere'", "--workspace")
    refused(w.call("clawden", "token", "revoke", "nobody"), 1, "nobody", "clawden token list")
    refused(w.call("clawden", "why", "ls", "--preset", "nobody"), 1, "--preset 'nobody'", "strict|dev")
    r = w.call("clawden", "openclaw", "setup", "--dir", "/nowhere")
    refused(r, 1, "--dir '/nowhere'")
    same(r.stdout, "")
    same(json.loads(w.call("clawden", "config", "check", "--json").stdout), {"ok": True, "files": [], "agents": 0})


@test("a verb that is nearly one is told with the one that was meant")
def _(w):
    for words, want in ((["sandbx"], "clawden: unknown verb 'sandbx': did you mean 'sandbox'? See 'clawden --help'\n"),
                        (["sandbox", "lsit"], "clawden: sandbox: unknown verb 'lsit': did you mean 'list'? See 'clawden sandbox --help'\n"),
                        (["token", "Rotat"], "clawden: token: unknown verb 'Rotat': did you mean 'rotate'? See 'clawden token --help'\n"),
                        (["image", "xyz"], "clawden: image: unknown verb 'xyz': see 'clawden image --help'\n"),
                        (["image", "--pull"], "clawden: image: unknown option '--pull': see 'clawden image --help'\n")):
        r = w.call("clawden", *words)
        same((r.returncode, r.stdout, r.stderr), (2, "", want))


@test("the manual has every option that --help has, and no other")
def _(w):
    pages = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/man")
    if not os.path.isdir(pages):
        raise Skip("the manual is not beside the tests")
    for name in ("clawden-sandbox", "clawden-gateway", "clawden-pull", "clawden-spawn", "clawden-egress"):
        told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", w.call(name, "--help").stdout)) | {"--version", "--help"}
        with open(os.path.join(pages, name + ".1")) as f:
            page = f.read().replace("\\-", "-")
        listed = re.search(r"^\.SH OPTIONS$(.*?)^\.SH ", page, re.S | re.M).group(1)
        have = {o for line in listed.split("\n") if line.startswith((".B", "\\fB")) for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", re.sub(r"\\f[BIR]", " ", line))}
        foreign = {"clawden-gateway": {"--right"}, "clawden-egress": {"--allow-network"}}.get(name, set())
        same(sorted(told - have - foreign), [], name + ": not in the manual")
        same(sorted(have - told), [], name + ": not in --help")
    verbs = re.findall(r"^  clawden (\S+)", w.call("clawden", "--help").stdout, re.M)
    with open(os.path.join(pages, "clawden.1")) as f:
        page = f.read().replace("\\-", "-")
    same([v for v in verbs if "\\fB" + v not in page], [])


@test("bash completes verbs and options as --help names them, and commands behind --")
def _(w):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/completion/clawden.bash")
    if not os.path.exists(script):
        raise Skip("the completion is not beside the tests")
    ask = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _clawden; printf "%s\\n" "${COMPREPLY[@]}"'

    def complete(*words):
        r = subprocess.run(["bash", "-c", ask, "bash", script, w.prog(words[0]), *words[1:]], env=w.env, capture_output=True, text=True, timeout=30)
        same((r.returncode, r.stderr), (0, ""), words)
        return r.stdout.split()
    need({"doctor", "docker", "sandbox", "gateway", "audit", "what-if"} <= set(complete("clawden", "")), complete("clawden", ""))
    same(complete("clawden", "do"), ["docker", "doctor"])
    same(complete("clawden", "sandbox", "ex"), ["exec", "explain"])
    same(complete("clawden", "token", "create", "--se"), ["--session"])
    same(complete("clawden", "docker", "run", "--mem"), ["--memory", "--memory-swap"])
    same(complete("clawden-sandbox", "exec", "--memory", "64m", "--time"), ["--timeout"])
    need("true" in complete("clawden-sandbox", "exec", "--", "tru"), "a command")
    same(complete("clawden-sandbox", "exec", "--workspace", "/no-verb"), [])


# ---- audit ----

@test("audit: begin before, end after, chained, private, secrets left out")
def _(w):
    w.run("--env", "MY_TOKEN=hunter2hunter2", "--", "sh", "-c", "exit 3", "--token", "hunter2hunter2", "password=hunter2hunter2",
          "https://me:hunter2hunter2@example.test/")
    a = w.audit()
    same([e["event"] for e in a], ["run.begin", "run.end"])
    same((a[0]["argv"][0], a[1]["exit"], a[0]["box"]), ("sh", 3, a[1]["box"]))
    need("MY_TOKEN" in a[0]["env"], a[0]["env"])
    logs = os.path.join(w.env["CLAWDEN_DATA_DIR"], "logs")
    for name in os.listdir(logs):
        same(os.stat(os.path.join(logs, name)).st_mode & 0o777, 0o600, name)
        with open(os.path.join(logs, name)) as f:
            need("hunter2" not in f.read(), f"a secret is in {name}")
    same(w.call("clawden", "audit", "verify").returncode, 0)
    need("exit 3" in w.call("clawden", "audit").stdout, "audit text")
    w.run("--timeout", "0.1s", "--", "sleep", "9")
    need(re.search(r"end +exit 124 .*LIMIT timeout 0\.100s \(\d+\.\d{3}s seen\)$", w.call("clawden", "audit").stdout, re.M), w.call("clawden", "audit").stdout)
    same(len(w.call("clawden", "audit", "--json").stdout.strip().split("\n")), 4)


@test("audit verify notices a changed, a removed and an inserted line")
def _(w):
    for i in range(4):
        w.run("--", "true")
    path = os.path.join(w.env["CLAWDEN_DATA_DIR"], "logs/audit.jsonl")
    with open(path) as f:
        good = f.readlines()
    for bad, line in [(good[:2] + [good[2].replace('"true"', '"rm"')] + good[3:], 3), (good[:3] + good[4:], 4),
                      (good[:5] + [good[1]] + good[5:], 6)]:
        with open(path, "w") as f:
            f.writelines(bad)
        r = w.call("clawden", "audit", "verify")
        same(r.returncode, 1, r.stdout)
        need(f"line {line}:" in r.stdout, r.stdout)


@test("audit --follow prints runs as they happen")
def _(w):
    w.run("--", "true")
    p = subprocess.Popen([w.prog("clawden"), "audit", "--follow"], env=w.env, stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline(), p.stdout.readline()
        w.run("--", "sh", "-c", "exit 42")
        lines = []
        while not any("exit 42" in x for x in lines):
            need(select.select([p.stdout], [], [], 10)[0], "nothing came")
            lines.append(p.stdout.readline())
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


@test("runs at the same time keep one chain")
def _(w):
    ps = [subprocess.Popen([w.prog("clawden-sandbox"), "exec", "--", "true"], cwd=w.ws, env=w.env) for _ in range(12)]
    for p in ps:
        same(p.wait(60), 0)
    same(len(w.audit()), 24)
    same(w.call("clawden", "audit", "verify").returncode, 0)


# ---- signals and terminals ----

def children_named(name):
    return subprocess.run(["pgrep", "-fx", name], stdout=subprocess.PIPE, text=True).stdout.split()


def gone(name, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not children_named(name):
            return True
        time.sleep(0.02)
    return False


@test("SIGTERM and SIGINT reach the command; SIGKILL of the wrapper takes the box with it")
def _(w):
    for sig, want in [(signal.SIGTERM, 11), (signal.SIGINT, 12)]:
        p = subprocess.Popen([w.prog("clawden-sandbox"), "exec", "--", "sh", "-c",
                              "trap 'exit 11' TERM; trap 'exit 12' INT; echo up; while :; do sleep 0.1; done"],
                             cwd=w.ws, env=w.env, stdout=subprocess.PIPE)
        p.stdout.readline()
        p.send_signal(sig)
        same(p.wait(20), want)
        p.stdout.close()
    for mode in ({}, {"CLAWDEN_NO_SPAWNER": "0"}):
        p = subprocess.Popen([w.prog("clawden-sandbox"), "exec", "--", "sh", "-c", "echo up; sleep 876543 & sleep 876543"],
                             cwd=w.ws, env=dict(w.env, **mode), stdout=subprocess.PIPE)
        p.stdout.readline()
        p.kill()
        p.wait()
        p.stdout.close()
        need(gone("sleep 876543"), "the box outlived its maker")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, w, *args, rows=31, cols=97):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(w.ws)
            os.execve(w.prog("clawden-sandbox"), ["clawden-sandbox", "exec", *args], dict(w.env, TERM="xterm"))
        self.resize(rows, cols)

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def until(self, word, seconds=10):
        got, end = b"", time.monotonic() + seconds
        while word.encode() not in got:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {word!r} in {got!r}; processes:\n{self.processes()}")
            try:
                chunk = os.read(self.fd, 4096)
            except OSError:
                chunk = b""
            if not chunk:
                raise AssertionError(f"end before {word!r}: {got!r}")
            got += chunk
        return got.decode(errors="replace")

    def processes(self):
        """Ours and what is below it, with what each waits for: for the message of a failure."""
        rows = [line.split(None, 2) for line in subprocess.run(
            ["ps", "-eo", "pid,ppid,pgid,tpgid,stat,wchan:20,args"], capture_output=True, text=True).stdout.splitlines()[1:]]
        ours = {str(self.pid)}
        for _ in range(8):
            ours |= {r[0] for r in rows if r[1] in ours}
        return "\n".join(" ".join(r) for r in rows if r[0] in ours)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        t = time.monotonic() + 10
        while time.monotonic() < t:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 4096)
                except OSError:
                    pass
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("did not end")


@test("on a terminal the box has one of its own, with its size, resize and Ctrl-C")
def _(w):
    t = Terminal(w, "--", "bash", "--norc", "-i")
    time.sleep(0.3)
    t.type("tty; stty size\n")
    out = t.until("31 97")
    need("/dev/pts/" in out, out)
    t.resize(40, 120)
    t.type("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.1; done; echo si$((1+1))e\n")
    t.until("si2e")
    t.type("sleep 1000\n")
    time.sleep(0.3)
    t.type("\x03")
    t.type("echo st$((1+1))ll\n")
    t.until("st2ll")
    t.type("sleep 1000\n")
    time.sleep(0.2)
    t.type("\x1a")
    t.until("Stopped")
    t.type("kill -9 %1\n")
    time.sleep(0.3)
    t.type("exit 9\nexit 9\n")  # the first may be answered with "There are stopped jobs."
    same(t.end(), 9)


@test("the caller's terminal comes back as it was, and a closed one ends the box")
def _(w):
    t = Terminal(w, "--", "sh", "-c", "echo up; sleep 765432")
    t.until("up")
    os.close(t.fd)
    t.end_pid = os.waitpid(t.pid, 0)
    need(gone("sleep 765432"), "the box outlived its terminal")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(w.ws)
        before = termios.tcgetattr(0)
        subprocess.run([w.prog("clawden-sandbox"), "exec", "--", "true"], env=w.env)
        print("SAME" if termios.tcgetattr(0) == before else "DIFFERENT", flush=True)
        os._exit(0)
    out = b""
    while b"SAME" not in out and b"DIFFERENT" not in out:
        out += os.read(fd, 1024)
    os.waitpid(pid, 0)
    os.close(fd)
    need(b"SAME" in out, out)


@test("what a box prints to a terminal cannot command it: clipboard, title, reports are taken out")
def _(w):
    t = Terminal(w, "--", "printf", r"A\033]52;c;aGk=\007B\033]0;title\033\\C\033[21tD\033P+q\033\\E\033[31mred\033[0mF\302\2350;x\007G\n")
    out = t.until("G")
    need("A" in out and "BCDE\x1b[31mred\x1b[0mFG" in out.replace("\r", ""), repr(out))
    t.end()


# ---- the spawner ----

def slot_env():
    return {"CLAWDEN_NO_SPAWNER": "0"}


def from_slot(w, *args):
    r = w.run("--json", "--quiet", *args, "--", "true", env=slot_env())
    same(r.returncode, 0, r.stderr)
    return json.loads(r.stderr)["from_slot"]


@test("the first run starts a spawner, later ones take its slots, and it leaves when idle")
def _(w):
    w.env["CLAWDEN_SPAWN_IDLE"] = "2"
    same(from_slot(w), False)
    need(wait_for(lambda: from_slot(w)), "no slot was ever used")
    sock = os.path.join(w.env["CLAWDEN_RUNTIME_DIR"], "spawn.sock")
    need(wait_for(lambda: not os.path.exists(sock), 15), "the spawner stays")


@test("boxes from slots are like boxes built in place")
def _(w):
    script = ("id; pwd; ls -A / /dev /etc /tmp /run /home /root; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp:'; "
              "p=$(ls /proc); echo \"$p\" | grep -c '^[0-9]'; ulimit -a; umask; hostname; env | sort; cat /proc/self/uid_map | wc -l; ls -l /proc/self/fd | wc -l")
    need(wait_for(lambda: from_slot(w)), "no slot")
    a = w.run("--", "sh", "-c", script, env=slot_env())
    b = w.run("--no-spawner", "--", "sh", "-c", script)
    for x, y in zip(a.stdout.split("\n"), b.stdout.split("\n")):
        if x != y and not re.match(r"(/home|clawden-flow|.*process)", x):
            raise AssertionError(f"slot {x!r}, in place {y!r}")


@test("a slot is not used by a caller who has lower limits, other mounts or other groups than the spawner")
def _(w):
    need(wait_for(lambda: from_slot(w)), "no slot")
    env = dict(w.env, **slot_env())

    def run(*before):
        r = subprocess.run([*before, w.prog("clawden-sandbox"), "exec", "--json", "--quiet", "--", "sh", "-c", "ulimit -n; ls covered"],
                           env=env, cwd=w.ws, capture_output=True, text=True, timeout=30)
        return json.loads(r.stderr)["from_slot"], r.stdout.split()
    os.mkdir(os.path.join(w.ws, "covered"))
    open(os.path.join(w.ws, "covered/secret"), "w").close()
    need(wait_for(lambda: run()[0]), "no slot for an equal caller")
    same(run("prlimit", "--nofile=77:77"), (False, ["77", "secret"]))
    if resource.getrlimit(resource.RLIMIT_SIGPENDING)[1] > 4096:  # it grows with the machine's memory
        same(run("prlimit", "--sigpending=4095:4095")[0], False)
        need(wait_for(lambda: run("prlimit", "--sigpending=4096:4096")[0]), "built in place, though no box has more")
    if os.getuid() == 0:
        same(run("unshare", "-m", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none covered && exec "$@"', "sh")[0], False)
        same(run("unshare", "-m", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none covered && exec "$@"', "sh")[1][1:], [])


@test("the caller's umask does not close the box's own folders, and the box is the first to go when memory is gone")
def _(w):
    script = "cat /etc/passwd > /dev/null && ls /dev/shm /etc > /dev/null && cat /proc/self/oom_score_adj"
    r = subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", w.prog("clawden-sandbox"), "exec", "--", "sh", "-c", script], env=w.env,
                       cwd=w.ws, capture_output=True, text=True, timeout=30)
    same((r.returncode, r.stdout), (0, "1000\n"), r.stderr)


@test("nothing of one box is seen by the next from the same slot")
def _(w):
    need(wait_for(lambda: from_slot(w)), "no slot")
    marks = "echo secret > /tmp/m; echo secret > /dev/shm/m; echo secret > /run/m; mkdir -p /var/tmp/m; hostname other 2>/dev/null; "
    seen = set()
    other = os.path.join(w.top, "deep", "er")
    os.makedirs(other)
    for i in range(6):
        where = [] if i % 2 else ["--workspace", other]
        r = w.run(*where, "--tmp", f"{5 + i}m", "--", "sh", "-c",
                  marks + "ls -A /tmp /dev/shm /run /var/tmp | grep -cx m; hostname; find / -xdev -name 'er' 2>/dev/null | wc -l; df -m /tmp | tail -1 | awk '{print $2}'; (sleep 1000 &) ; true",
                  env=slot_env())
        out = r.stdout.split("\n")
        same(out[0], "4", "only its own marks")
        same(out[1], "clawden")
        same(out[3], str(5 + i), "size of /tmp")
        seen.add(out[2])
    need(gone("sleep 1000"), "a process was left in a slot")


@test("a stuck, dead or foreign spawner is not used, and never a reason to run unsandboxed")
def _(w):
    run = w.env["CLAWDEN_RUNTIME_DIR"]
    os.makedirs(run, 0o700, exist_ok=True)
    path = os.path.join(run, "spawn.sock")
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(path)
    s.listen(8)  # accepts and never answers
    lock = open(os.path.join(run, "spawn.lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    r = w.run("--", "cat", "/proc/self/status", env=slot_env())
    need("Seccomp:\t2" in r.stdout, r)
    s.close()  # dead: the socket file is there, nobody listens
    r = w.run("--", "cat", "/proc/self/status", env=slot_env())
    need("Seccomp:\t2" in r.stdout, r)
    lock.close()
    os.chmod(run, 0o777)  # not ours alone any more
    r = w.run("--", "cat", "/proc/self/status", env=slot_env())
    need("Seccomp:\t2" in r.stdout or r.returncode == 125, r)
    os.chmod(run, 0o700)


@test("killing the spawner kills its boxes, and the next run is built in place")
def _(w):
    need(wait_for(lambda: from_slot(w)), "no slot")
    p = subprocess.Popen([w.prog("clawden-sandbox"), "exec", "--", "sh", "-c", "echo up; sleep 654321"], cwd=w.ws,
                         env=dict(w.env, **slot_env()), stdout=subprocess.PIPE)
    p.stdout.readline()
    same(w.call("clawden-spawn", "--stop").returncode, 0)
    need(p.wait(20) != 0, "a killed box ended with 0")
    p.stdout.close()
    need(gone("sleep 654321"), "the box outlived the spawner")
    same(w.run("--", "echo", "fine", env=slot_env()).stdout, "fine\n")


@test("many boxes at once, more than there are slots, all run")
def _(w):
    need(wait_for(lambda: from_slot(w)), "no slot")
    ps = [subprocess.Popen([w.prog("clawden-sandbox"), "exec", "--", "sh", "-c", f"sleep 0.2; echo {i} > f{i}"], cwd=w.ws,
                           env=dict(w.env, **slot_env())) for i in range(20)]
    for p in ps:
        same(p.wait(60), 0)
    same(len(os.listdir(w.ws)), 20)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    args = a.parse_args()
    return run("FLOW", lambda: World(os.path.abspath(args.bin)), args.only, args.label)


if __name__ == "__main__":
    sys.exit(main())
