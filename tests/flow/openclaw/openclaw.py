#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real, unmodified OpenClaw client on the drop-in `docker`, offline: a scripted model calls its tools. Prints TAP.

  openclaw.py [--bin DIR] [--client DIR] [--only WORD]

The client (npm packages, 850 MB) is installed into --client, by default $CLAWDEN_OPENCLAW_DIR or a cache folder of the
caller's, unless it is there already.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Skip, default_label, gone, need, processes, run, same, test, wait_for  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENT, NODE = "openclaw@2026.9.6", "node@24.21.0"
ARGS = None


def install(folder):
    """Node first: the client's installer refuses an older one."""
    mark = os.path.join(folder, "installed")
    if os.path.exists(mark):
        return
    if not shutil.which("npm"):
        raise Skip("npm is not installed")
    os.makedirs(folder, exist_ok=True)
    env = dict(os.environ, PATH=os.path.join(folder, "node_modules/.bin") + ":" + os.environ.get("PATH", "/usr/bin:/bin"))
    for words in (["init", "-y"], ["install", "--no-audit", "--no-fund", "--foreground-scripts", NODE],
                  ["install", "--no-audit", "--no-fund", CLIENT]):
        r = subprocess.run(["npm", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=900)
        if r.returncode:
            if re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|network|_CERT|UNABLE_TO_VERIFY", r.stderr):
                raise Skip("the npm registry cannot be reached: " + r.stderr.strip().split("\n")[-1][:100])
            raise AssertionError(f"npm {' '.join(words)}: {r.stderr[-400:]}")
    open(mark, "w").close()


class World:
    """A home with an OpenClaw in it, whose sandbox is on."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="clawden-openclaw-")
        os.chmod(self.top, 0o755)
        self.home = os.path.join(self.top, "home")
        self.ws = os.path.join(self.home, ".openclaw/workspace")
        os.makedirs(self.ws)
        if os.getuid() == 0:
            os.chown(self.ws, 1000, 1000)
        self.bin = os.path.join(ARGS.client, "node_modules/.bin")
        self.docker = os.path.join(os.path.abspath(ARGS.bin), "../libexec/clawden/bin")
        self.data = os.path.join(self.top, "data")
        self.env = {"HOME": self.home, "PATH": f"{self.docker}:{self.bin}:/usr/bin:/bin", "NO_COLOR": "1", "LANG": "C.UTF-8",
                    # Else the client puts /usr/bin first, and with it whatever docker is there.
                    "OPENCLAW_PATH_BOOTSTRAPPED": "1", "NODE_OPTIONS": f"--require {HERE}/not-in-a-container.cjs",
                    "CLAWDEN_DATA_DIR": self.data, "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run")}
        self.model = None

    def close(self):
        if self.model:
            self.model.kill()
            self.model.wait()
            self.model.stdout.close()
        boxes = os.path.join(self.data, "boxes")
        for name in os.listdir(boxes) if os.path.isdir(boxes) else []:
            subprocess.run([os.path.join(self.docker, "docker"), "rm", "-f", name], env=self.env, capture_output=True)
        subprocess.run([os.path.join(os.path.abspath(ARGS.bin), "clawden-spawn"), "--stop"], env=self.env, timeout=20)
        shutil.rmtree(self.top, ignore_errors=True)

    def call(self, *words, timeout=240):
        return subprocess.run(words, env=self.env, cwd=self.top, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout)

    def turn(self, steps, sandbox=None, key="agent:main:test"):
        """One turn of the agent: (seconds, what the model was shown) for each tool step."""
        script, log = os.path.join(self.top, "steps.json"), os.path.join(self.top, f"model-{time.monotonic_ns()}.jsonl")
        with open(script, "w") as f:
            json.dump(steps + [{"text": "all done"}], f)
        self.model = subprocess.Popen([os.path.join(self.bin, "node"), os.path.join(HERE, "model.mjs")], stdout=subprocess.PIPE,
                                      text=True, env={"SCRIPT": script, "LOG": log, "PATH": self.bin})
        port = int(self.model.stdout.readline())
        config = {"gateway": {"mode": "local", "bind": "loopback", "port": 18789, "auth": {"mode": "token", "token": "test"}},
                  "models": {"mode": "merge", "providers": {"scripted": {
                      "baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": "none", "api": "openai-completions",
                      "models": [{"id": "scripted", "name": "Scripted", "reasoning": False, "input": ["text"], "contextWindow": 128000,
                                  "maxTokens": 4096, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}},
                  "agents": {"defaults": {"model": {"primary": "scripted/scripted"}, "skipBootstrap": True,
                                          "sandbox": sandbox or {"mode": "all", "scope": "agent", "workspaceAccess": "rw"}}},
                  "tools": {"exec": {"security": "full", "ask": "off"}}}
        with open(os.path.join(self.home, ".openclaw/openclaw.json"), "w") as f:
            json.dump(config, f)
        r = self.call("openclaw", "agent", "--local", "--session-key", key, "--message", "go", "--json")
        self.model.kill()
        self.model.wait()
        self.model.stdout.close()
        self.model = None
        same(r.returncode, 0, "openclaw agent: " + r.stderr[-600:])
        with open(log) as f:
            rows = [json.loads(line) for line in f]
        return [(b["t"] - a["t"], a["step"]["tool"], str(b.get("shown"))) for a, b in zip(rows, rows[1:]) if a["step"].get("tool")]

    def boxes(self):
        r = self.call(os.path.join(self.docker, "docker"), "ps", "-a", "--no-trunc", "--format", "{{.ID}} {{.Names}} {{.State}}")
        return r.stdout.split("\n")[:-1]

    def tree(self):
        found = {}
        for d, _, files in os.walk(self.ws):
            for name in files:
                with open(os.path.join(d, name), "rb") as f:
                    found[os.path.relpath(os.path.join(d, name), self.ws)] = hashlib.sha256(f.read()).hexdigest()
        return found


def tool(name, **args):
    return {"tool": name, "args": args}


@test("every tool of the client does its work in a box")
def _(w):
    patch = "*** Begin Patch\n*** Add File: notes/b.txt\n+from patch\n*** Update File: notes/a.txt\n@@\n-hello\n+HELLO\n*** End Patch\n"
    rows = w.turn([tool("exec", command="echo hi; exit 3"),
                   tool("write", path="notes/a.txt", content="hello\nworld\n"),
                   tool("read", path="notes/a.txt"),
                   tool("ls", path="notes"),
                   tool("edit", path="notes/a.txt", edits=[{"oldText": "world", "newText": "sandbox"}]),
                   tool("apply_patch", input=patch),
                   tool("exec", command="cat /workspace/notes/a.txt; env | sort; id -u; cat /proc/1/cmdline", workdir="/workspace/notes",
                        env={"FOO": "bar"}, timeoutSeconds=20)])
    for seconds, name, shown in rows:
        print(f"# {seconds:6.3f} s {name:12} {shown[:90]!r}", flush=True)
    texts = [shown for _, _, shown in rows]
    same(len(texts), 7)
    need("hi" in texts[0] and "code 3" in texts[0], texts[0])
    need("Successfully wrote 12 bytes" in texts[1], texts[1])
    need("hello\nworld" in texts[2], texts[2])
    need("a.txt" in texts[3], texts[3])
    need("Successfully replaced" in texts[4], texts[4])
    need("Success" in texts[5], texts[5])
    for word in ("HELLO\nsandbox", "FOO=bar", "HOME=/workspace/notes", "clawden-init"):
        need(word in texts[6], f"{word!r} not in {texts[6]!r}")
    with open(os.path.join(w.ws, "notes/a.txt")) as f:
        same(f.read(), "HELLO\nsandbox\n")
    owner = os.stat(os.path.join(w.ws, "notes/b.txt")).st_uid
    same(owner, 1000 if os.getuid() == 0 else os.getuid(), "owner of a file that a tool made")


@test("a command that timed out is gone, and its box lives on")
def _(w):
    rows = w.turn([tool("exec", command="setsid sleep 81113 & sleep 81114; echo late", timeoutSeconds=2),
                   tool("exec", command="echo again")])
    need("timed out" in rows[0][2], rows[0])
    need(gone("^sleep 8111[34]"), f"still there: {processes('sleep 8111')}")
    need("again" in rows[1][2], rows[1])
    same(len(w.boxes()), 1)


@test("a second turn finds the box of the first; recreate removes it")
def _(w):
    w.turn([tool("exec", command="echo kept > /tmp/in-the-box")])
    first = w.boxes()
    rows = w.turn([tool("exec", command="cat /tmp/in-the-box")])
    need("kept" in rows[0][2], rows)
    same(w.boxes(), first)
    pid = w.call(os.path.join(w.docker, "docker"), "inspect", "-f", "{{.State.Pid}}", first[0].split()[0]).stdout.strip()
    need(os.path.exists(f"/proc/{pid}"), f"no process {pid}")
    r = w.call("openclaw", "sandbox", "recreate", "--all", "--force")
    same(r.returncode, 0, r.stderr[-300:])
    same(w.boxes(), [])
    need(wait_for(lambda: not os.path.exists(f"/proc/{pid}")), "its init lives on")


@test("the client's list, explain and doctor see the boxes")
def _(w):
    w.turn([tool("exec", command="true")])
    r = w.call("openclaw", "sandbox", "list", "--json")
    same(r.returncode, 0, r.stderr[-300:])
    found = json.loads(r.stdout[r.stdout.index("{"):])["containers"]
    same([(c["running"], c["imageMatch"]) for c in found], [(True, True)])


@test("limits, binds, tmpfs and read-only workspaces of its configuration are kept")
def _(w):
    extra = os.path.join(w.ws, "extra")
    os.makedirs(extra)
    with open(os.path.join(extra, "data.txt"), "w") as f:
        f.write("bound\n")
    sandbox = {"mode": "all", "scope": "agent", "workspaceAccess": "none",
               "docker": {"pidsLimit": 64, "memory": "256m", "binds": [f"{extra}:/data:ro"], "ulimits": {"nofile": {"soft": 100, "hard": 200}},
                          "env": {"LANG": "C.UTF-8", "FROM_CONFIG": "yes"}, "extraHosts": ["internal.service:10.0.0.5"]}}
    rows = w.turn([tool("exec", command="cat /data/data.txt; touch /data/x; ulimit -n; ulimit -Hn; echo $FROM_CONFIG; grep internal /etc/hosts; "
                                        "touch /usr/x; ls -d /workspace; (echo > /dev/tcp/10.0.0.5/80) 2>&1 | tail -1")], sandbox)
    shown = rows[0][2]
    for word in ("bound", "100\n200", "yes", "10.0.0.5\tinternal.service", "/workspace"):
        need(word in shown, f"{word!r} not in {shown!r}")
    same(os.listdir(extra), ["data.txt"])


def main():
    global ARGS
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../../build/bin"))
    a.add_argument("--client", default=os.environ.get("CLAWDEN_OPENCLAW_DIR") or
                   os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "clawden-openclaw-client"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    a.add_argument("--install-only", action="store_true")
    ARGS = a.parse_args()
    try:
        install(ARGS.client)
    except Skip as e:
        print(f"1..1\nok 1 - OPENCLAW the real client ({ARGS.label}) # SKIP {e}")
        return 0
    if ARGS.install_only:
        print("1..1\nok 1 - OPENCLAW the client is installed")
        return 0
    return run("OPENCLAW", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
