#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boxes that outlive their makers: what dies with whom, what is left behind, and what a killed program leaves. TAP.

  live.py [--bin DIR] [--only WORD] [--full]
"""
import argparse
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from tap import Skip, Spawner, default_label, gone, need, processes, run, same, test, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "openclaw-sandbox:bookworm-slim"
ARGS = None


class World:
    """A caller with a data folder and a workspace of its own; its boxes go with it."""

    def __init__(self):
        self.docker = os.path.join(os.path.abspath(ARGS.bin), "../libexec/clawden/bin/docker")
        self.top = tempfile.mkdtemp(prefix="clawden-live-")
        os.chmod(self.top, 0o755)
        self.ws = os.path.join(self.top, "ws")
        self.uid = os.getuid() or 1000
        for d in (self.ws, os.path.join(self.top, "home")):
            os.mkdir(d)
        if os.getuid() == 0:
            os.chown(self.ws, 1000, 1000)
        self.data = os.path.join(self.top, "data")
        self.env = {"HOME": os.path.join(self.top, "home"), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                    "CLAWDEN_DATA_DIR": self.data, "CLAWDEN_EGRESS_IDLE": "1", "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"),
                    "HOST_SECRET": "do-not-tell"}
        self.spawner = None
        if ARGS.berth:
            self.spawner = Spawner(os.path.join(os.path.abspath(ARGS.bin), "clawden-spawn"), self.env)
        else:
            self.env.update(Spawner.without)

    def clear(self):
        boxes = os.path.join(self.data, "boxes")
        for name in os.listdir(boxes) if os.path.isdir(boxes) else []:
            self("rm", "-f", name)
        if self.spawner:
            self.spawner.stop()
            self.spawner = None

    def close(self):
        self.clear()
        shutil.rmtree(self.top, ignore_errors=True)

    def __call__(self, *words, **kw):
        kw.setdefault("timeout", 60)
        if "input" not in kw:
            kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.docker, *words], env=self.env, cwd=self.ws, text=kw.pop("text", True),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    def start(self, *words, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([self.docker, *words], env=self.env, cwd=self.ws, **kw)

    def words(self, name, *flags, command=("sleep", "infinity")):
        return ["create", "--name", name, "--read-only", "--network", "none", "--user", f"{self.uid}:{self.uid}", "--workdir",
                "/workspace", "-v", f"{self.ws}:/workspace", *flags, IMAGE, *command]

    def box(self, name="box", *flags, command=("sleep", "infinity")):
        r = self(*self.words(name, *flags, command=command))
        same(r.returncode, 0, r.stderr)
        if self.spawner:
            self.spawner.wait_ready()
        r = self("start", name)
        same(r.returncode, 0, r.stderr)
        same(self.state(name)["from_slot"], self.spawner is not None, "from a berth")
        return name

    def box_in_place(self, name):
        same(self(*self.words(name)).returncode, 0)
        r = self("start", name)
        same((r.returncode, r.stderr), (0, ""))
        same(self.state(name)["from_slot"], False)
        return name

    def state(self, name):
        with open(os.path.join(self.data, "boxes", self("inspect", "-f", "{{.Id}}", name).stdout.strip(), "state.json")) as f:
            return json.load(f)

    def sh(self, box, script, **kw):
        return self("exec", box, "sh", "-c", script, **kw)

    def pid(self, box):
        return int(self("inspect", "-f", "{{.State.Pid}}", box).stdout)

    def inside(self, box):
        """Processes of the box, init and the lister's own four apart."""
        return int(self.sh(box, "ls /proc | grep -c '^[0-9]'").stdout or 1 << 20)  # no room for a lister: too many


# ---- what dies with whom ----

@test("everything that a command started dies when its client is killed, sessions and daemons too")
def _(w):
    w.box()
    base = w.inside("box")
    p = w.start("exec", "box", "sh", "-c", "sleep 71111 & setsid sleep 71112 & (setsid sh -c 'sleep 71113' &); echo up; sleep 71114",
                stdout=subprocess.PIPE)
    p.stdout.readline()
    time.sleep(0.1)
    need(len(processes("sleep 7111")) >= 4, "not all are there")
    p.kill()
    p.wait()
    p.stdout.close()
    need(gone("sleep 7111"), f"still there: {processes('sleep 7111')}")
    need(wait_for(lambda: w.inside("box") <= base), f"{w.inside('box')} processes in the box, {base} before")


@test("SIGTERM to the client reaches the command, and what it ignores is killed")
def _(w):
    w.box()
    p = w.start("exec", "box", "sh", "-c", "trap 'echo got; exit 3' TERM; echo up; while :; do sleep 0.05; done", stdout=subprocess.PIPE)
    p.stdout.readline()
    p.terminate()
    same((p.stdout.read(), p.wait(10)), (b"got\n", 3))
    p.stdout.close()
    p = w.start("exec", "box", "sh", "-c", "setsid sleep 72222 & echo up; sleep 72223", stdout=subprocess.PIPE)
    p.stdout.readline()
    p.terminate()
    same(p.wait(10), 143, "a command that SIGTERM ends")
    p.stdout.close()
    need(gone("sleep 7222"), "what it had started lives on")
    p = w.start("exec", "box", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 72221; done", stdout=subprocess.PIPE)
    p.stdout.readline()
    p.terminate()
    same(p.wait(20), 137, "a command that ignores SIGTERM")
    p.stdout.close()
    need(gone("sleep 72221"), "it lives on")


@test("what a command left running when it ended stays, as in docker, and dies with the box")
def _(w):
    w.box()
    r = w.sh("box", "setsid sleep 73331 >/dev/null 2>&1 & echo done; exit 4")
    same((r.stdout, r.returncode), ("done\n", 4))
    time.sleep(0.2)
    same(len(processes("^sleep 73331")), 1, "left running")
    w("rm", "-f", "box")
    need(gone("sleep 73331"), "it outlived its box")


@test("a command that holds its streams open with something in the background still ends when it ends")
def _(w):
    w.box()
    t = time.monotonic()
    r = w.sh("box", "sleep 73332 & echo out; echo err >&2")
    same((r.stdout, r.stderr, r.returncode), ("out\n", "err\n", 0))
    need(time.monotonic() - t < 10, "it waited for the background")


@test("a detached command lives on without its client")
def _(w):
    w.box()
    same(w("exec", "-d", "box", "sh", "-c", "sleep 0.5; echo yes > /workspace/made; sleep 74441").returncode, 0)
    need(wait_for(lambda: os.path.exists(os.path.join(w.ws, "made"))), "it did not go on")
    need(processes("sleep 74441"), "it is gone")
    r = w("exec", "-d", "box", "no-such-program")
    need(r.returncode == 1 and "executable file not found" in r.stderr, f"a missing program: {r}")


@test("a fork bomb dies with its client; the box and its other commands do not")
def _(w):
    w.box("box", "--pids-limit", "128")
    other = w.start("exec", "-i", "box", "sh", "-c", "echo up; read x; echo still here", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    p = w.start("exec", "box", "sh", "-c", "f() { f | f & }; f; sleep 75551", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    p.kill()
    p.wait()
    need(gone(r"f\(\) \{ f \| f", 20), "the bomb goes on")
    other.stdin.write(b"go\n")
    other.stdin.close()
    same((other.stdout.read(), other.wait(10)), (b"still here\n", 0))
    other.stdout.close()
    same(w.sh("box", "echo fine").stdout, "fine\n")


@test("processes that flee from one another by fork and exit are caught")
def _(w):
    w.box()
    base = w.inside("box")
    code = ("import os,time\n"
            "for i in range(20):\n"
            "    if os.fork() == 0:\n"
            "        while True:\n"
            "            try:\n"
            "                if os.fork(): os._exit(0)\n"
            "            except OSError: pass\n"
            "print('up', flush=True)\n"
            "time.sleep(76661)")
    p = w.start("exec", "box", "python3", "-c", code, stdout=subprocess.PIPE)
    p.stdout.readline()
    time.sleep(0.3)
    p.kill()
    p.wait()
    p.stdout.close()
    need(wait_for(lambda: w.inside("box") <= base, 60), f"{w.inside('box')} processes, {base} before")


@test("killing its own reaper frees nobody")
def _(w):
    w.box()
    r = w.sh("box", "kill -9 $PPID; sleep 77771 & sleep 1; echo survived")
    if os.getuid() == 0:  # there init has another user
        same(r.stdout, "survived\n")
    else:
        same((r.stdout, r.returncode), ("", 137))
        need(gone("sleep 77771"), "its child lives on")
    same(w.sh("box", "kill -9 1 2>/dev/null; kill -9 -1 2>/dev/null; echo x").returncode in (0, 137), True)
    same(w.sh("box", "echo fine").stdout, "fine\n", "the box")


@test("orphans are reaped: no zombie stays")
def _(w):
    w.box()
    w.sh("box", "for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'sleep 0.05 &' &); done; sleep 0.3")
    r = w.sh("box", "cat /proc/[0-9]*/stat | cut -d')' -f2 | grep -c '^ Z'")
    same(r.stdout.strip(), "0")


# ---- streams, environment, many at once ----

@test("nothing of the host's environment is in a command's")
def _(w):
    w.box("box", "--env", "OWN=1")
    names = {line.split("=")[0] for line in w("exec", "-e", "MORE=2", "box", "env").stdout.split("\n") if line}
    need(names <= {"PATH", "HOME", "HOSTNAME", "OWN", "MORE", "PWD", "SHLVL", "_"}, names)
    need("OWN" in names and "MORE" in names, names)


@test("bytes arrive whole both ways, also 20 MiB of them")
def _(w):
    w.box()
    data = os.urandom(20 << 20)
    same(w("exec", "-i", "box", "cat", input=data, text=False).stdout == data, True)
    r = w("exec", "box", "cat", timeout=10)
    same((r.stdout, r.returncode), ("", 0), "without -i there is no stdin")


@test("sixty commands at once give sixty right answers")
def _(w):
    w.box("box", "--pids-limit", "512")
    ps = [w.start("exec", "box", "sh", "-c", f"sleep 0.1; echo {i}; exit {i % 7}", stdout=subprocess.PIPE) for i in range(60)]
    for i, p in enumerate(ps):
        same((p.communicate(timeout=60)[0], p.returncode), (f"{i}\n".encode(), i % 7))


@test("a thousand commands leave no process, no descriptor and no file")
def _(w):
    w.box()
    pid = w.pid("box")

    def look():
        fds = len(os.listdir(f"/proc/{pid}/fd")) if os.getuid() == 0 else "only root may look into init"
        return (fds, len(os.listdir(f"/proc/{pid}/task")), w.inside("box"),
                sorted(os.listdir(os.path.join(w.data, "boxes", os.listdir(os.path.join(w.data, "boxes"))[0]))),
                os.listdir(w.ws))
    same(w("exec", "box", "true").returncode, 0)
    time.sleep(0.3)  # init lets go of a connection a moment after its client
    before = look()

    def hundred():
        for _ in range(ARGS.commands // 4):
            r = w("exec", "box", "true")
            if r.returncode:
                bad.append(r)
    bad = []
    threads = [threading.Thread(target=hundred) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(bad, [])
    need(wait_for(lambda: look() == before), f"{look()}, before {before}")


@test("the init of an idle box is a few pages")
def _(w):
    w.box()
    w.sh("box", "true")
    time.sleep(0.2)
    with open(f"/proc/{w.pid('box')}/status") as f:
        rss = int([line for line in f if line.startswith("VmRSS")][0].split()[1])
    need(rss <= 32, f"{rss} KiB")


# ---- state ----

@test("a box whose init is killed is stopped, and start revives it")
def _(w):
    w.box()
    w.sh("box", "echo kept > /workspace/file")
    os.kill(w.pid("box"), signal.SIGKILL)
    need(wait_for(lambda: w("inspect", "-f", "{{.State.Running}}", "box").stdout == "false\n"), "it says that it runs")
    r = w("exec", "box", "true")
    need(r.returncode == 1 and "is not running" in r.stderr, r)
    same(w("start", "box").returncode, 0)
    same(w.sh("box", "cat /workspace/file").stdout, "kept\n")


@test("a paused box runs nothing, and goes on where it was")
def _(w):
    w.box()
    p = w.start("exec", "box", "sh", "-c", "echo up; for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done; echo end", stdout=subprocess.PIPE)
    p.stdout.readline()
    same(w("pause", "box").returncode, 0)
    time.sleep(0.8)
    same(p.poll(), None, "it went on")
    need("is paused" in w("exec", "box", "true").stderr, "exec in a paused box")
    same(w("unpause", "box").returncode, 0)
    same(p.wait(10), 0)
    p.stdout.close()


@test("the main command's end is the box's end, with its status and its log")
def _(w):
    w.box("box", command=("sh", "-c", "echo to the log; sleep 0.3; exit 5"))
    need(wait_for(lambda: w("inspect", "-f", "{{.State.Running}}", "box").stdout == "false\n"), "it runs on")
    same(w("inspect", "-f", "{{.State.ExitCode}}", "box").stdout, "5\n")
    same(w("logs", "box").stdout, "to the log\n")


@test("a main command that cannot be run is told at the start, and nothing is left of it")
def _(w):
    same(w(*w.words("box", command=("no-such-program",))).returncode, 0)
    r = w("start", "box")
    need(r.returncode != 0 and "no-such-program" in r.stderr, r)
    same(w("inspect", "-f", "{{.State.Running}}", "box").stdout, "false\n")
    same(w("rm", "box").returncode, 0)


@test("memory beyond the limit ends, and is told")
def _(w):
    w.box("box", "--memory", "64m")
    r = w("exec", "box", "python3", "-c", "x = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nimport time; time.sleep(3)\nprint('had it')")
    need("had it" not in r.stdout and r.returncode != 0, r)


@test("a removed box is gone: processes, folder, name, cgroups")
def _(w):
    w.box()
    box_id = w("inspect", "-f", "{{.Id}}", "box").stdout.strip()
    p = w.start("exec", "box", "sleep", "78881")
    need(wait_for(lambda: processes("sleep 78881")), "it did not start")
    same(w("rm", "-f", "box").returncode, 0)
    need(p.wait(10) != 0, "a killed command ended well")
    need(gone("sleep 78881"), "its command lives on")
    same((os.listdir(os.path.join(w.data, "boxes")), os.listdir(os.path.join(w.data, "names"))), ([], []))
    r = subprocess.run(["find", "/sys/fs/cgroup", "-name", f"*{box_id[:12]}*"], capture_output=True, text=True)
    same(r.stdout, "")


@test("prune takes idle and old boxes, never one that runs a command, and leaves workspaces alone")
def _(w):
    def prune(*words):
        return subprocess.run([os.path.join(os.path.abspath(ARGS.bin), "clawden"), "prune", *words], env=w.env, capture_output=True, text=True)
    w.box("idle")
    w.box("busy")
    w.sh("idle", "echo kept > /workspace/file")
    p = w.start("exec", "busy", "sleep", "78882")
    need(wait_for(lambda: processes("sleep 78882")), "it did not start")
    boxes = os.path.join(w.data, "boxes")
    for d in os.listdir(boxes):
        os.utime(os.path.join(boxes, d, "lock"), (1, 1))
    same(prune("--idle", "0", "--age", "0").stdout, "")
    need("would remove" in prune("--dry-run").stdout, "a dry run")
    need(" idle (idle)" in prune().stdout, "the idle box")
    same(w("ps", "-a", "--format", "{{.Names}}").stdout, "busy\n")
    same(os.listdir(w.ws), ["file"])
    p.kill()
    p.wait()
    same(prune("--idle", "bad").returncode, 2)


@test("clawden ps, config and openclaw setup do what they say, and setup is undone")
def _(w):
    def clawden(*words, **kw):
        return subprocess.run([os.path.join(os.path.abspath(ARGS.bin), "clawden"), *words], env=dict(w.env, **kw), capture_output=True, text=True)
    w.box("shown")
    need("shown" in clawden("ps").stdout, clawden("ps"))
    config = json.loads(clawden("config", "--json", CLAWDEN_BOX_PIDS="99").stdout)
    same((config["box.pids"]["value"], config["box.pids"]["from"]), ("99", "CLAWDEN_BOX_PIDS"))
    place = os.path.join(w.top, "bin")
    os.mkdir(place)
    r = clawden("openclaw", "setup", "--dir", place)
    same(r.returncode, 0, r.stderr)
    link = os.path.join(place, "docker")
    same(subprocess.run([link, "version", "--format", "{{.Client.Version}}"], env=w.env, capture_output=True).returncode, 0)
    same(clawden("openclaw", "setup", "--dir", place).returncode, 0, "twice is once")
    same(clawden("openclaw", "setup", "--undo").returncode, 0)
    same(os.listdir(place), [])
    open(link, "w").close()
    r = clawden("openclaw", "setup", "--dir", place)
    need("is there already and stays" in r.stdout and "OPENCLAW_PATH_BOOTSTRAPPED=1" in r.stdout, r)
    same(os.path.islink(link), False)


# ---- races and crashes ----

@test("of many creates of one name one wins")
def _(w):
    ps = [w.start(*w.words("one"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    ends = [(p.communicate()[0], p.returncode) for p in ps]
    same(sorted(rc for _, rc in ends), [0] + [1] * 7)
    same(len(os.listdir(os.path.join(w.data, "boxes"))), 1)


@test("many starts and removals of one box at once end in one of the two")
def _(w):
    for _ in range(3):
        same(w(*w.words("race")).returncode, 0)
        ps = [w.start(verb, *flags, "race", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
              for verb, flags in (("start", ()), ("rm", ("-f",)), ("start", ()), ("rm", ("-f",)))]
        for p in ps:
            p.wait(30)
        same(os.listdir(os.path.join(w.data, "boxes")), [])


def strace_works(w):
    if not shutil.which("strace"):
        raise Skip("strace is not installed: 'make test' installs it")
    r = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", "inject=getpid:signal=KILL:when=1", "true"], capture_output=True)
    if r.returncode not in (0, -9, 137):
        raise Skip(f"strace cannot trace here: {r.stderr.decode().strip()[:80]}")


def inits():
    """Those that are process 1 of a box: reapers are theirs, and go with them."""
    found = set()
    for pid in processes("^clawden-init"):
        try:
            with open(f"/proc/{pid}/status") as f:
                if f.read().split("NSpid:")[1].split("\n")[0].split()[-1] == "1":
                    found.add(pid)
        except OSError:
            pass
    return found


def crash(w, words, before, after):
    """Kills the command at its 1st, 2nd, ... system call until it is through. `after` must hold each time."""
    step, n, others = (1, 0, inits())
    while True:
        before()
        r = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", f"inject=all:signal=KILL:when={step}", w.docker, *words],
                           env=w.env, cwd=w.ws, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        killed = r.returncode in (-9, 137)
        after(step)
        n += 1
        if not killed:
            break
        step += 1 if ARGS.full else 1 + step // 12
    need(n > 15, f"only {n} steps")
    need(wait_for(lambda: inits() <= others), f"inits left behind: {inits() - others}")


@test("what a killed create left is swept by a later one")
def _(w):
    w.box()
    old = os.path.join(w.data, "boxes", "tmp-" + "0" * 64)
    os.mkdir(old)
    open(os.path.join(old, "lock"), "w").close()
    os.utime(old, (1, 1))
    nameless = os.path.join(w.data, "boxes", "1" * 64)
    shutil.copytree(os.path.join(w.data, "boxes", w("inspect", "-f", "{{.Id}}", "box").stdout.strip()), nameless,
                    ignore=lambda d, names: [n for n in names if n.endswith(".sock")])
    same(w(*w.words("other")).returncode, 0)
    same((os.path.exists(old), os.path.exists(nameless)), (False, False))


def nothing_left(w, step):
    w("rm", "-f", "crash")
    w(*w.words("sweeper"))
    w("rm", "-f", "sweeper")
    left = os.listdir(os.path.join(w.data, "boxes")), os.listdir(os.path.join(w.data, "names"))
    # What has no id or no lock could be just being made: it is swept when it is ten seconds old.
    left = ([d for d in left[0] if not d.startswith("tmp-") and os.path.exists(os.path.join(w.data, "boxes", d, "lock"))], left[1])
    same(left, ([], []), f"after a kill at system call {step}")


@test("SIGKILL at each step of create leaves a whole box or nothing")
def _(w):
    strace_works(w)

    def after(step):
        if w("inspect", "crash").returncode == 0:
            same(w("start", "crash").returncode, 0, f"start of a box made by a create that was killed at {step}")
        nothing_left(w, step)
    crash(w, w.words("crash"), lambda: None, after)


@test("SIGKILL at each step of start leaves a box that runs or can be started")
def _(w):
    strace_works(w)

    def after(step):
        same(w("start", "crash").returncode, 0, f"start after a start that was killed at {step}")
        same(w.sh("crash", "echo fine").stdout, "fine\n", f"after a kill at {step}")
        nothing_left(w, step)
    crash(w, ["start", "crash"], lambda: w(*w.words("crash")), after)


def children(pid):
    return [int(p) for p in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


@test("SIGKILL of start just before its init is there: the next start finds and ends what was being made")
def _(w):
    strace_works(w)
    others = inits()
    same(w(*w.words("late")).returncode, 0)
    env = dict(w.env, CLAWDEN_NO_SPAWNER="1")
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=execveat:delay_enter=4000000", w.docker, "start", "late"], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def held():  # who makes the box, while what becomes its init stands before execveat()
        for maker in children(tracer.pid):
            for pid in children(maker):
                if all(state_of(pid) == "t" and not time.sleep(0.02) for _ in range(10)):
                    return maker
        return 0
    need(wait_for(lambda: held()), "nobody stands before execveat()")
    os.kill(held(), signal.SIGKILL)
    same(w("start", "late").returncode, 0)
    need(wait_for(lambda: tracer.poll() is not None, 20), "what the first start made lives on beside the second's")
    same(w.sh("late", "echo fine").stdout, "fine\n")
    w("rm", "-f", "late")
    need(wait_for(lambda: inits() <= others), f"left behind: {inits() - others}")


@test("SIGKILL at each step of exec leaves the box as it was")
def _(w):
    strace_works(w)
    w.box("crash")
    base = w.inside("crash")
    crash(w, ["exec", "crash", "sh", "-c", "sleep 0.01; echo x"], lambda: None,
          lambda step: same(w.sh("crash", "echo fine").stdout, "fine\n", f"after a kill at {step}"))
    need(wait_for(lambda: w.inside("crash") <= base), f"{w.inside('crash')} processes, {base} before")


@test("SIGKILL at each step of rm leaves nothing for the next rm")
def _(w):
    strace_works(w)

    def before():
        w(*w.words("crash"))
        same(w("start", "crash").returncode, 0)
    crash(w, ["rm", "-f", "crash"], before, lambda step: nothing_left(w, step))


@test("the caller's umask does not close a live box's own folders, and it is the first to go when memory is gone")
def _(w):
    same(w(*w.words("box")).returncode, 0)
    r = subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", w.docker, "start", "box"], env=w.env, capture_output=True, text=True)
    same(r.returncode, 0, r.stderr)
    r = w.sh("box", "cat /etc/passwd > /dev/null && ls /dev/shm /etc > /dev/null && cat /proc/self/oom_score_adj")
    same((r.returncode, r.stdout), (0, "1000\n"), r.stderr)


# ---- berths ----

def needs_berths(w):
    """A world with a spawner, whatever the run: these are about nothing else."""
    w.env.pop("CLAWDEN_NO_SPAWNER", None)
    if not w.spawner:
        w.spawner = Spawner(os.path.join(os.path.abspath(ARGS.bin), "clawden-spawn"), w.env)


LOOK = """
sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/(master|shared):[0-9]+//' /proc/self/mountinfo | sed "s/$HOSTNAME_/NAME/" | sort
grep -vE '^(Pid|PPid|Tgid|Ngid|NStgid|NSpid|NSpgid|NSsid|Vm|Rss|.*ctxt|Cpus_|Mems_|SigQ|FDSize|Name|untag|x86)' /proc/self/status
cat /proc/self/limits /etc/passwd /etc/group /etc/hosts /etc/hostname /etc/nsswitch.conf
for n in user mnt pid net ipc uts cgroup; do [ /proc/self/ns/$n -ef /proc/1/ns/$n ] 2>/dev/null; done
ls -lan / /dev /etc /run /tmp /workspace | grep -v '^total' | awk '{print $1, $3, $4, $9, $10, $11}'
cat /proc/self/uid_map /proc/self/gid_map | awk '{print $1, $3}'; cat /proc/self/cgroup | sed 's/[0-9]*://'
cat /proc/sys/user/max_user_namespaces /proc/sys/user/max_inotify_instances; cat /proc/net/dev | awk '{print $1}'
ls /proc/sys/kernel | wc -l; cat /proc/1/oom_score_adj; touch /x /usr/x /etc/x /proc/x 2>&1; unshare -U true 2>&1; env | sort
"""


@test("a box from a berth cannot be told from inside from one that was built in place")
def _(w):
    needs_berths(w)
    flags = ("--hostname", "same", "--add-host", "other:10.1.2.3", "--ulimit", "nofile=100:200", "--memory", "300m", "--pids-limit", "77",
             "--tmpfs", "/scratch:size=1m", "--tmpfs", "/tmp:size=3m", "--env", "A=b")
    seen = {}
    for way, env in (("berth", {}), ("in place", Spawner.without)):
        same(w(*w.words(way.replace(" ", "-"), *flags)).returncode, 0)
        r = subprocess.run([w.docker, "start", way.replace(" ", "-")], env=dict(w.env, **env), capture_output=True, text=True)
        same(r.returncode, 0, r.stderr)
        same(w.state(way.replace(" ", "-"))["from_slot"], way == "berth")
        seen[way] = w.sh(way.replace(" ", "-"), LOOK).stdout.split("\n")
    need(len(seen["berth"]) > 80, "looked at nothing")
    a, b = ([line for line in seen[x] if line not in seen[y]] for x, y in (("berth", "in place"), ("in place", "berth")))
    same((a, b), ([], []), "what differs")


@test("live boxes outlive the spawner that they came from, also one that is killed")
def _(w):
    needs_berths(w)
    same(w(*w.words("one")).returncode, 0)
    same(w("start", "one").returncode, 0)
    same(w.state("one")["from_slot"], True)
    w.spawner.wait_ready()
    same(w(*w.words("two")).returncode, 0)
    same(w("start", "two").returncode, 0)
    w.spawner.p.kill()
    w.spawner.p.wait()
    need(gone("clawden-berth"), "berths outlive the spawner")
    same([w.sh(box, "echo fine").stdout for box in ("one", "two")], ["fine\n"] * 2)
    same(w("rm", "-f", "one", "two").returncode, 0)


@test("the first box is built in place and starts a spawner; the next one comes from a berth")
def _(w):
    w.env.pop("CLAWDEN_NO_SPAWNER", None)
    w.env["CLAWDEN_SPAWN_IDLE"] = "3"
    if w.spawner:
        w.spawner.stop()
        w.spawner = None
    same(w(*w.words("one")).returncode, 0)
    same(w("start", "one").returncode, 0)
    same(w.state("one")["from_slot"], False)
    sock = os.path.join(w.env["CLAWDEN_RUNTIME_DIR"], "berth.sock")
    need(wait_for(lambda: os.path.exists(sock)), "no spawner was started")

    def from_berth():
        w("rm", "-f", "two")
        same(w(*w.words("two")).returncode, 0)
        same(w("start", "two").returncode, 0)
        return w.state("two")["from_slot"]
    need(wait_for(from_berth), "no box comes from a berth")
    need(wait_for(lambda: not os.path.exists(sock), 15), "the spawner stays")
    same(w.sh("two", "echo fine").stdout, "fine\n", "after the spawner has left")


@test("a spawner that does not answer, answers nonsense or dies is never more than a detour")
def _(w):
    w.env.pop("CLAWDEN_NO_SPAWNER", None)
    if w.spawner:
        w.spawner.stop()
        w.spawner = None
    run = w.env["CLAWDEN_RUNTIME_DIR"]
    os.makedirs(run, 0o700, exist_ok=True)
    lock = open(os.path.join(run, "spawn.lock"), "w")  # no spawner starts while it is held
    fcntl.flock(lock, fcntl.LOCK_EX)
    for answer in (None, b"", b"x" * 632, b"\2" + bytes(631)):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.bind(os.path.join(run, "berth.sock"))
        sock.listen()

        def serve():
            conn, _ = sock.accept()
            conn.recv(4096)
            if answer is None:
                time.sleep(1)
            elif answer:
                conn.send(answer)
            conn.close()
        t = threading.Thread(target=serve)
        t.start()
        name = w.box_in_place("odd")
        t.join()
        same(w.sh(name, "echo fine").stdout, "fine\n", repr(answer)[:20])
        w("rm", "-f", name)
        sock.close()
        os.unlink(os.path.join(run, "berth.sock"))
    lock.close()


def is_traced(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return "TracerPid:\t0" not in f.read()
    except OSError:
        return True  # and killed already


@test("a berth that is killed at any system call costs nothing but time")
def _(w):
    strace_works(w)
    if os.getuid():
        raise Skip("a berth is not dumpable: only root can trace it")
    needs_berths(w)
    seen = set()
    for step in list(range(1, 60, 1 if ARGS.full else 4)) + [70, 90, 120, 200]:
        w.spawner.wait_ready()
        need(wait_for(lambda: len(w.spawner.berths()) == 2), "not both berths are there")
        pids = w.spawner.berths()
        tracer = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-e", f"inject=all:signal=KILL:when={step}",
                                   "-p", ",".join(map(str, pids))], stderr=subprocess.DEVNULL)
        need(wait_for(lambda: all(map(is_traced, pids))), "strace does not attach")
        same(w(*w.words("crash")).returncode, 0)
        r = w("start", "crash")
        same((r.returncode, r.stderr), (0, ""), f"killed at {step}")
        seen.add(w.state("crash")["from_slot"])
        tracer.terminate()
        tracer.wait()
        out = w.sh("crash", "echo fine")
        if out.stdout != "fine\n":  # the traced one had become the box: killed is killed, and start revives it
            same(w("start", "crash").returncode, 0)
            same(w.sh("crash", "echo fine").stdout, "fine\n", f"killed at {step}: {out}")
        w("rm", "-f", "crash")
    same(seen, {False, True}, "both ways were seen")


# ---- a berth gives a box nothing that its maker does not have ----

def wrap(w, name, program, *before):
    """A program of its own that runs `program` behind other words."""
    path = os.path.join(w.top, name)
    with open(path, "w") as f:
        f.write(f"#!/bin/sh\nexec {' '.join(before)} {program} \"$@\"\n")
    os.chmod(path, 0o755)
    return path


def ordinary(group=1000, groups="--clear-groups"):
    return ["setpriv", "--reuid 1000", f"--regid {group}", groups]


def become_ordinary(w, before=()):
    """The world of an ordinary user, whose boxes keep his groups and are given the mounts that their maker sees."""
    if os.getuid():
        raise Skip("only root can be several users")
    w.clear()
    shutil.rmtree(w.env["CLAWDEN_RUNTIME_DIR"], ignore_errors=True)
    for d in ("home", "ws", "data", "run"):
        os.makedirs(os.path.join(w.top, d), exist_ok=True)
        os.chmod(os.path.join(w.top, d), 0o755 if d == "ws" else 0o700)
        os.chown(os.path.join(w.top, d), 1000, 1000)
    w.env.pop("CLAWDEN_NO_SPAWNER", None)
    w.env["CLAWDEN_SPAWN_IDLE"] = "3"  # of one that a client starts
    programs = [shutil.copy(os.path.realpath(p), w.top) for p in (w.docker, os.path.join(os.path.abspath(ARGS.bin), "clawden-spawn"))]
    w.docker = wrap(w, "as-user", programs[0], *before, *ordinary())
    return programs


def start_twice(w, start, *flags):
    """The same box by way of a spawner, and without one."""
    for name, env in (("by-spawner", {}), ("in-place", Spawner.without)):
        same(w(*w.words(name, *flags)).returncode, 0)
        r = subprocess.run([start, "start", name], env=dict(w.env, **env), capture_output=True, text=True)
        same(r.returncode, 0, r.stderr)


@test("a box has no higher limits than whoever starts it, also if the spawner has")
def _(w):
    needs_berths(w)
    start_twice(w, wrap(w, "limited", w.docker, "prlimit", "--nofile=300:300", "--fsize=1000000:1000000", "--stack=1000000:2000000"))
    a, b = (w.sh(box, "cat /proc/self/limits").stdout for box in ("by-spawner", "in-place"))
    same(a, b)
    need(" 300 " in a and " 1000000 " in a, a)


@test("a box has the groups of whoever starts it, not those of the spawner")
def _(w):
    docker, spawn = become_ordinary(w)
    for group, groups, from_berth in ((1000, "--clear-groups", True), (2000, "--clear-groups", False), (1000, "--groups 27,44", False)):
        w.spawner = Spawner(wrap(w, "spawn", spawn, *ordinary(group, groups)), w.env)
        start_twice(w, w.docker)
        same(w.state("by-spawner")["from_slot"], from_berth, (group, groups))
        a, b = (w.sh(box, "id -G; cat /proc/self/gid_map").stdout for box in ("by-spawner", "in-place"))
        same(a, b, (group, groups))
        w("rm", "-f", "by-spawner", "in-place")
        w.spawner.stop()
        w.spawner = None


@test("no box has the host's group 0, also by way of a spawner")
def _(w):
    docker, spawn = become_ordinary(w)
    w.docker = wrap(w, "group-0", docker, *ordinary(0))
    same(w(*w.words("zero", "--user", "1000:0")).returncode, 0)
    r = w("start", "zero")  # which starts a spawner
    need(r.returncode and "primary group is 0" in r.stderr, r)
    r = subprocess.run([wrap(w, "spawn", spawn, *ordinary(0))], env=w.env, capture_output=True, text=True, timeout=20)
    need(r.returncode and "primary group is 0" in r.stderr, r)


class Mounts:
    """A mount namespace, as a service of the host may have one; nothing of it is seen outside. The world's boxes go with it."""

    def __init__(self, w):
        if os.getuid():
            raise Skip("only root can mount as the host does")
        self.w = w
        self.p = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sleep", "infinity"])
        self.enter = ["nsenter", "-t", str(self.p.pid), "-m"]
        need(wait_for(lambda: os.stat(f"/proc/{self.p.pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino), "no namespace")

    def cover(self, path):
        same(subprocess.run(self.enter + ["mount", "-t", "tmpfs", "none", path]).returncode, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.w.clear()
        self.p.kill()
        self.p.wait()


def hide_something(w):
    os.mkdir(os.path.join(w.ws, "covered"))
    with open(os.path.join(w.ws, "covered", "secret"), "w") as f:
        f.write("seen\n")
    return os.path.join(w.ws, "covered")


@test("what is covered where the caller is stays covered in the box, whatever the spawner sees")
def _(w):
    docker, spawn = become_ordinary(w)
    place = hide_something(w)
    with Mounts(w) as m:
        m.cover(place)
        w.spawner = Spawner(wrap(w, "spawn", spawn, *ordinary()), w.env)
        start_twice(w, wrap(w, "elsewhere", docker, *m.enter, *ordinary()))
        same([w.sh(box, "ls /workspace/covered").stdout for box in ("by-spawner", "in-place")], ["", ""])


@test("what the host mounts over a folder covers it in the next box as well, where mounts are private too")
def _(w):
    with Mounts(w) as m:
        docker, spawn = become_ordinary(w, m.enter)
        place = hide_something(w)
        w.spawner = Spawner(wrap(w, "spawn", spawn, *m.enter, *ordinary()), w.env)
        m.cover(place)
        start_twice(w, w.docker)
        same([w.sh(box, "ls /workspace/covered").stdout for box in ("by-spawner", "in-place")], ["", ""])
        w.spawner.wait_ready()
        same(w(*w.words("later")).returncode, 0)
        same(w("start", "later").returncode, 0)
        same((w.state("later")["from_slot"], w.sh("later", "ls /workspace/covered").stdout), (True, ""))


# ---- what a berth's end costs ----

@test("clients that go away or are of another build do not use berths up")
def _(w):
    needs_berths(w)
    need(wait_for(lambda: len(w.spawner.berths()) == 2), "not both berths are there")
    before = w.spawner.berths()
    for i in range(20):
        c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        c.settimeout(5)
        c.connect(os.path.join(w.env["CLAWDEN_RUNTIME_DIR"], "berth.sock"))
        if i % 2:
            c.send(struct.pack("=IIQ", 8, 0, 12345))
            same(c.recv(4096)[:4], struct.pack("=I", 7), "refused")
        c.close()
    same(w.spawner.berths(), before)
    w.box()


@test("start says that a box runs only if it does: a berth may die on the last step")
def _(w):
    strace_works(w)
    if os.getuid():
        raise Skip("a berth is not dumpable: only root can trace it")
    needs_berths(w)
    for call in ("listen", "setsid", "execveat") * 4:
        need(wait_for(lambda: len(w.spawner.berths()) == 2), "not both berths are there")
        pids = w.spawner.berths()
        tracer = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when=1", "-p", ",".join(map(str, pids))],
                                  stderr=subprocess.DEVNULL)
        need(wait_for(lambda: all(map(is_traced, pids))), "strace does not attach")
        same(w(*w.words("crash")).returncode, 0)
        r = w("start", "crash")
        same((r.returncode, r.stderr, w.state("crash")["from_slot"]), (0, "", False), f"killed in {call}")
        same(w.sh("crash", "echo fine").stdout, "fine\n", f"killed in {call}")
        tracer.terminate()
        tracer.wait()
        w("rm", "-f", "crash")


def groups_of(pid):
    with open(f"/proc/{pid}/cgroup") as f:
        return f.read()


@test("a berth that fails leaves no cgroup behind")
def _(w):
    needs_berths(w)

    def groups():
        r = subprocess.run(["find", "/sys/fs/cgroup", "-name", f"clawden-slot-*-{w.spawner.p.pid}"], capture_output=True, text=True)
        return len(r.stdout.split())
    need(wait_for(lambda: len(w.spawner.berths()) == 2), "not both berths are there")
    before = groups()
    if not before:
        raise Skip("no cgroups here")
    same(w(*w.words("bad", "--ulimit", "nofile=4:4")).returncode, 0)
    for _ in range(3):
        need(w("start", "bad").returncode, "a box without descriptors started")
    need(wait_for(lambda: groups() <= before), f"{groups()} groups, {before} before")


@test("a spawner that makes its berths anew leaves the box alone that one of them has just become")
def _(w):
    strace_works(w)
    with Mounts(w) as m:
        docker, spawn = become_ordinary(w, m.enter)
        w.spawner = Spawner(wrap(w, "spawn", spawn, *m.enter, *ordinary()), w.env)
        same(w(*w.words("new")).returncode, 0)
        # It hears of the mount, and looks around a second later: what it knew of its berths is old by then.
        tracer = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-e", "inject=poll:delay_exit=1000000", "-p", str(w.spawner.p.pid)],
                                  stderr=subprocess.DEVNULL)
        need(wait_for(lambda: is_traced(w.spawner.p.pid)), "strace does not attach")
        time.sleep(2.5)  # it was in poll() already: the next one is delayed
        m.cover(os.path.join(w.top, "home"))
        same(w("start", "new").returncode, 0)
        same(w.state("new")["from_slot"], True)
        need(wait_for(lambda: not w.spawner.berths()), "the mount was not heard of")
        tracer.terminate()
        tracer.wait()
        same(w.sh("new", "echo fine").stdout, "fine\n")


def run_as_number(pid, program, env):
    """A child with this very number: the kernel gives them out anew when it has come to the end."""
    number = ctypes.c_int(pid)
    words = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1)
    got = ctypes.CDLL(None, use_errno=True).syscall(435, ctypes.byref(words), ctypes.sizeof(words))  # clone3, set_tid
    if got == 0:
        os.execve(program, [program], env)
    if got < 0:
        raise Skip(f"clone3 with a number of our own: {os.strerror(ctypes.get_errno())}")


@test("a later spawner with the number of an earlier one shares no cgroup with boxes of that one")
def _(w):
    if os.getuid():
        raise Skip("only root can choose the number of a process")
    needs_berths(w)
    w.box("old")
    number, program = w.spawner.p.pid, w.spawner.program
    if "clawden-slot" not in groups_of(w.pid("old")):
        raise Skip("no cgroups here")
    w.spawner.p.kill()
    w.spawner.p.wait()
    run_as_number(number, program, dict(w.env, CLAWDEN_SPAWN_IDLE="600"))
    try:
        w.spawner.wait_ready()
        need(wait_for(lambda: len(w.spawner.berths()) == 2), "not both berths are there")
        slots = subprocess.run(["ps", "-o", "pid=", "--ppid", str(number)], capture_output=True, text=True).stdout.split()
        shared = [pid for pid in slots if groups_of(pid) == groups_of(w.pid("old"))]
        same(shared, [], "in the group of the old box")
    finally:
        os.kill(number, signal.SIGTERM)
        os.waitpid(number, 0)
        w.spawner = None


def main():
    global ARGS
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    a.add_argument("--berth", action="store_true", help="boxes come from berths of a spawner")
    a.add_argument("--commands", type=int, default=1000, help="how many leave nothing behind")
    a.add_argument("--full", action="store_true", help="the crash tests take every system call, not some")
    ARGS = a.parse_args()
    return run("LIVE", World, ARGS.only, ARGS.label + (", berth" if ARGS.berth else ""))


if __name__ == "__main__":
    sys.exit(main())
