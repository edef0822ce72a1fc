#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boxes of scopes: what a configuration comes to inside, who shares them, when they are made anew. TAP.

  scope.py [--bin DIR] [--only WORD]
"""
import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from tap import default_label, gone, need, processes, run, same, test, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "openclaw-sandbox:bookworm-slim"
SECRET, GATEWAY = "ghp_7Qm2secretvalue", "gw_9Xk4secretvalue"
ARGS = None


class World:
    """A person with an OpenClaw of his own: home, configuration, workspace, boxes."""

    def __init__(self):
        self.bin = os.path.abspath(ARGS.bin)
        self.top = tempfile.mkdtemp(prefix="clawden-scope-")
        os.chmod(self.top, 0o755)
        self.home = os.path.join(self.top, "home")
        self.ws = os.path.join(self.top, "ws")
        self.state = os.path.join(self.home, ".openclaw")
        self.data = os.path.join(self.top, "data")
        for d in (self.home, self.ws, self.state):
            os.mkdir(d)
        if os.getuid() == 0:
            os.chown(self.ws, 1000, 1000)
        self.env = {"HOME": self.home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "CLAWDEN_DATA_DIR": self.data,
                    "CLAWDEN_EGRESS_IDLE": "1", "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"), "CLAWDEN_NO_SPAWNER": "1",
                    "GH_TOKEN": SECRET, "OPENCLAW_GATEWAY_TOKEN": GATEWAY, "HOST_ONLY": "do-not-tell"}
        self.sandbox = {"docker": {"env": {"LANG": "C.UTF-8", "PLAIN": "yes", "GH_TOKEN": "${GH_TOKEN}",
                                           "OPENCLAW_GATEWAY_TOKEN": "${OPENCLAW_GATEWAY_TOKEN}"}}}
        self.more = {}
        self.write()

    def write(self, **changes):
        """openclaw.json, with `docker_x=...` put into the docker block and the rest into the sandbox's."""
        for key, value in changes.items():
            if key.startswith("docker_"):
                self.sandbox["docker"][key[7:]] = value
            else:
                self.sandbox[key] = value
        text = {"agents": {"defaults": {"workspace": self.ws, "sandbox": self.sandbox}}}
        for key, value in self.more.items():
            text[key] = value
        with open(os.path.join(self.state, "openclaw.json"), "w") as f:
            json.dump(text, f)

    def close(self):
        self("recreate", "--all", "--force")
        boxes = os.path.join(self.data, "boxes")
        for name in os.listdir(boxes) if os.path.isdir(boxes) else []:
            self.docker("rm", "-f", name)
        shutil.rmtree(self.top, ignore_errors=True)

    def spawn(self, *words, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([os.path.join(self.bin, "clawden"), "sandbox", *words], env=self.env, cwd=self.ws, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    def __call__(self, *words, input=None, **kw):
        p = self.spawn(*words, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, **kw)
        out, err = p.communicate(input, timeout=60)
        need("Sanitizer" not in err, err)
        return subprocess.CompletedProcess(words, p.returncode, out, err)

    def docker(self, *words):
        return subprocess.run([os.path.join(self.bin, "../libexec/clawden/bin/docker"), *words], env=self.env, cwd=self.ws,
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def sh(self, line, *words, code=0):
        """A command line as the tool exec; its standard output."""
        r = self("exec", *words, "--command", line)
        same(r.returncode, code, r.stderr)
        return r.stdout

    def net(self, line, *words):
        """In the box with a network: a tool that networkAllow names."""
        return self.sh(line, "--tool", "web_fetch", *words)

    def list(self, *words):
        r = self("list", "--json", *words)
        same(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def boxes(self):
        return sorted(c["containerName"] for c in self.list()["containers"])

    def ids(self):
        names = os.path.join(self.data, "names")
        return {n: os.readlink(os.path.join(names, n)) for n in os.listdir(names)} if os.path.isdir(names) else {}

    def cool(self, seconds=6 * 60):
        """As if nobody had used any box for so long."""
        for lock in glob.glob(os.path.join(self.data, "boxes", "*", "lock")):
            then = time.time() - seconds
            os.utime(lock, (then, then))

    def audit(self):
        text = b""
        for path in glob.glob(os.path.join(self.data, "logs", "*")):
            with open(path, "rb") as f:
                text += f.read()
        return text


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


# ---- two boxes, and who gets which variable ----

@test("a scope has an isolated box and one with a network, made when they are needed")
def _(w):
    w.sh("true")
    same(w.boxes(), ["openclaw-sbx-agent-main-cli-2ef8d38c"])
    w.net("true")
    same(w.boxes(), ["openclaw-sbx-agent-main-cli-2ef8d38c", "openclaw-sbx-agent-main-cli-2ef8d38c-net"])


@test("start makes the box of a session before it is called for; what goes wrong is told with its code")
def _(w):
    r = w("start", "--session", "agent:main:early")
    same((r.returncode, len(r.stdout.strip())), (0, 64), r.stderr)
    again = json.loads(w("start", "--session", "agent:main:early", "--json").stdout)
    same((again["id"], w.boxes()), (r.stdout.strip(), [again["name"]]))
    net = json.loads(w("start", "--session", "agent:main:early", "--network", "--json").stdout)
    same(net["name"], again["name"] + "-net")
    w.sh("true", "--session", "agent:main:early")
    same(len(w.boxes()), 2)
    r = w("start", "--session", "agent:main:x", "--agent", "other", "--json")
    same((r.returncode, json.loads(r.stdout)["error"]["code"]), (125, "invalid"))


@test("the isolated box lacks what the network's has: GH_TOKEN; a literal is in both, the gateway's token in neither")
def _(w):
    isolated, net = variables(w.sh("env")), variables(w.net("env"))
    same(net.get("GH_TOKEN"), SECRET)
    need("GH_TOKEN" not in isolated, "the isolated box has the token")
    same((isolated.get("PLAIN"), net.get("PLAIN")), ("yes", "yes"))
    need("OPENCLAW_GATEWAY_TOKEN" not in isolated and "OPENCLAW_GATEWAY_TOKEN" not in net, "the gateway's token is in a box")
    need(GATEWAY not in repr(isolated) + repr(net), "its value is in a box")
    need("HOST_ONLY" not in isolated and "HOST_ONLY" not in net, "the caller's environment is in a box")


@test("networkDocker.env reaches the network's box alone, a secret-looking literal too")
def _(w):
    w.write(networkDocker={"env": {"ONLY_NET": "1"}}, docker_env={"MY_API_KEY": "literal", "PLAIN": "yes"})
    isolated, net = variables(w.sh("env")), variables(w.net("env"))
    same((net.get("ONLY_NET"), net.get("MY_API_KEY")), ("1", "literal"))
    need("ONLY_NET" not in isolated and "MY_API_KEY" not in isolated, "the isolated box has it")


@test("with one box only the references are in it")
def _(w):
    w.write(networkAllow=[], networkExecAllow=[])
    same(variables(w.sh("env")).get("GH_TOKEN"), SECRET)
    same(len(w.boxes()), 1)


@test("secrets are in no command line, list, label or audit record")
def _(w):
    p = w.spawn("exec", "--tool", "web_fetch", "--command", "sleep 72111")
    need(wait_for(lambda: processes("^sleep 72111")), "it does not run")
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                need(SECRET.encode() not in f.read(), f"{path} shows it")
        except OSError:
            pass
    need(SECRET not in w("list", "--json").stdout + w("list").stdout, "list shows it")
    need(SECRET not in w.docker("ps", "-a", "--format", "{{.Labels}}").stdout, "labels show it")
    p.kill()
    p.communicate()
    need(gone("^sleep 72111"), "the command outlives its client")
    need(w.audit() and SECRET.encode() not in w.audit() and GATEWAY.encode() not in w.audit(), "audit shows it")
    for path in glob.glob(os.path.join(w.data, "boxes", "*", "box.json")):
        same(os.stat(path).st_mode & 0o077, 0, "box.json is for its owner alone")


# ---- routing ----

@test("a command of networkExecAllow runs as words, without a shell, and a line with more in it isolated")
def _(w):
    w.write(networkExecAllow=["printenv"])
    same(w.sh("printenv GH_TOKEN"), SECRET + "\n")
    need(b'"printenv","GH_TOKEN"' in w.audit().replace(b", ", b",") and b'"-lc"' not in w.audit(), "a shell ran it")
    for line in ("printenv GH_TOKEN; true", "printenv GH_TOKEN | cat", "true && printenv GH_TOKEN", "X=1 printenv GH_TOKEN",
                 "printenv $(echo GH_TOKEN)", "printenv GH_TOKEN > f", "printenv GH_TOKEN\ntrue", "sh -c 'printenv GH_TOKEN'"):
        r = w("exec", "--command", line)
        need(SECRET not in r.stdout, f"{line!r} got the token")
    same(os.path.exists(os.path.join(w.ws, "f")), True)
    with open(os.path.join(w.ws, "f")) as f:
        same(f.read(), "")


@test("words behind -- run as they are, quotes, blanks and dollars in them")
def _(w):
    words = ["a b", "$HOME", "it's", "x;y", "", "*", "-n"]
    same(w("exec", "--", "printf", "[%s]", *words).stdout, "".join(f"[{x}]" for x in words))
    w.write(networkExecAllow=["printenv"])
    w.cool()
    same(w("exec", "--", "printenv", "GH_TOKEN").stdout, SECRET + "\n")
    need(SECRET not in w("exec", "--", "sh", "-c", "printenv GH_TOKEN").stdout, "sh got the token")
    same(w("exec", "--", "printf", "%s", "it's").stdout, "it's")


@test("what is let out to the network is not what the workspace or a PATH makes of its name")
def _(w):
    os.mkdir(os.path.join(w.ws, "bin"))
    with open(os.path.join(w.ws, "bin/sometool"), "w") as f:
        f.write("#!/bin/sh\necho stolen $GH_TOKEN\n")
    os.chmod(os.path.join(w.ws, "bin/sometool"), 0o755)
    w.write(networkExecAllow=["sometool", "git"], docker_env={"PATH": "/workspace/bin:/usr/bin:/bin", "GH_TOKEN": "${GH_TOKEN}"})
    r = w("exec", "--command", "sometool")
    need("stolen" not in r.stdout and r.returncode == 127, r)
    for workdir in ("/usr/local/bin", "/usr", "/proc", "/etc/x", "/", "relative"):
        w.write(docker_workdir=workdir)
        r = w("exec", "--command", "true")
        need(r.returncode == 125 and "Sandbox security: " in r.stderr, f"{workdir}: {r}")
    if not shutil.which("git"):
        return
    w.write(networkExecAllow=["git"], docker_workdir="/workspace", docker_env={"GH_TOKEN": "${GH_TOKEN}"})
    w.cool()
    trap = "#!/bin/sh\nprintenv GH_TOKEN >> /workspace/stolen\n"
    with open(os.path.join(w.ws, "trap.sh"), "w") as f:
        f.write(trap)
    os.chmod(os.path.join(w.ws, "trap.sh"), 0o755)
    same(w("exec", "--command", "git init -q . && git config core.fsmonitor /workspace/trap.sh && git config core.hooksPath /workspace && "
           "cp trap.sh post-checkout && cp trap.sh pre-commit").returncode, 0)
    for line in ("git status", "git -c user.name=x -c user.email=x@x commit --allow-empty -qm x", "git log"):
        w("exec", "--command", line)
    same(os.path.exists(os.path.join(w.ws, "stolen")), False, "a repository's configuration ran a program beside the token")


@test("a gh that stands in the workspace is not what `gh` means")
def _(w):
    with open(os.path.join(w.ws, "gh"), "w") as f:
        f.write("#!/bin/sh\necho stolen $GH_TOKEN\n")
    os.chmod(os.path.join(w.ws, "gh"), 0o755)
    r = w("exec", "--", "gh", "pr", "list")
    need("stolen" not in r.stdout, "the planted gh ran")
    if not os.path.exists("/usr/bin/gh"):
        same(r.returncode, 127, r.stderr)


@test("what the policy denies does not run: 125, the reason and the key")
def _(w):
    r = w("exec", "--tool", "browser", "--command", "touch ran")
    same(r.returncode, 125)
    need("denied" in r.stderr and "tools.sandbox.tools" in r.stderr, r.stderr)
    need(not os.path.exists(os.path.join(w.ws, "ran")), "it ran")
    r = w("exec", "--tool", "browser", "--json", "--command", "true")
    told = json.loads(r.stderr)
    same((r.returncode, told["allowed"], told["exit"]), (125, False, 125))
    same(w.boxes(), [])


@test("a session that is not sandboxed is refused, unless --direct says that it may run here")
def _(w):
    w.write(mode="non-main")
    r = w("exec", "--session", "agent:main:main", "--command", "echo $HOST_ONLY")
    same((r.returncode, r.stdout), (125, ""))
    need("--direct" in r.stderr and "mode" in r.stderr, r.stderr)
    same(w("exec", "--session", "agent:main:main", "--direct", "--command", "echo $HOST_ONLY").stdout, "do-not-tell\n")
    same(w("exec", "--direct", "--command", "echo $HOST_ONLY").stdout, "\n")  # another session: in its box all the same


@test("exit statuses are the command's; 127 and 126 where it cannot be executed")
def _(w):
    for code in (0, 1, 42, 125, 255):
        same(w("exec", "--command", f"exit {code}").returncode, code)
    same(w("exec", "--", "no-such-program").returncode, 127)
    same(w("exec", "--", "/workspace").returncode, 126)
    same(w("exec", "--command", "kill -9 $$").returncode, 137)


@test("-i gives it our input, without -i it has none")
def _(w):
    same(w("exec", "-i", "--command", "cat", input="hello").stdout, "hello")
    same(w("exec", "--command", "cat", input="hello").stdout, "")


@test("wrong words are refused before anything runs")
def _(w):
    for words in ([], ["--command"], ["--command", "true", "--", "true"], ["--"], ["--bogus", "--command", "true"],
                  ["--session", "x\ny", "--command", "true"], ["--agent", "ops", "--session", "agent:main:x", "--command", "true"],
                  ["--agent", "a" * 200, "--command", "true"], ["--preset", "none-such", "--command", "true"],
                  ["--config", "/no/such/file", "--command", "true"]):
        r = w("exec", *words)
        same(r.returncode, 125, f"{words}: {r.stderr}")
        need(r.stderr, f"{words}: nothing was said")
    same(w("bogus").returncode, 2)
    for verb in ("exec", "list", "recreate", "rm", "prune"):
        r = w(verb, "--help")
        same((r.returncode, r.stderr), (0, ""))
        need("clawden sandbox" in r.stdout, verb)
    same(w.boxes(), [])


# ---- workspaces ----

@test("rw: the agent's folder is /workspace, and what is written is its owner's")
def _(w):
    w.sh("echo hi > made; pwd")
    with open(os.path.join(w.ws, "made")) as f:
        same(f.read(), "hi\n")
    st = os.stat(os.path.join(w.ws, "made"))
    same((st.st_uid, st.st_gid), (os.stat(w.ws).st_uid, os.stat(w.ws).st_gid))
    same(w.sh("test -e /agent || echo none"), "none\n")


@test("ro: a folder of its own is /workspace, the agent's is /agent, to be read only")
def _(w):
    w.write(workspaceAccess="ro")
    with open(os.path.join(w.ws, "note"), "w") as f:
        f.write("agent's")
    os.chmod(os.path.join(w.ws, "note"), 0o644)
    same(w.sh("cat /agent/note; echo mine > /workspace/own; cat /workspace/own"), "agent'smine\n")
    need(w("exec", "--command", "echo x > /agent/new").returncode != 0, "/agent can be written")
    own = os.path.join(w.state, "sandboxes", "agent-main-cli-2ef8d38c")
    same(os.listdir(own), ["own"])
    same(os.stat(own).st_mode & 0o777, 0o700)
    same(os.listdir(w.ws), ["note"])


@test("none: only a folder of its own, which can be written")
def _(w):
    w.write(workspaceAccess="none")
    same(w.sh("touch a; ls; test -e /agent || echo none"), "a\nnone\n")
    same(os.listdir(w.ws), [])
    own = w.list()["containers"][0]["workspaceDir"]
    same(own, os.path.join(os.path.realpath(w.state), "sandboxes", "agent-main-cli-2ef8d38c"))


@test("workspaceRoot is used where it is set, ~ is the home folder, the shared scope's is the root itself")
def _(w):
    w.write(workspaceAccess="none", workspaceRoot="~/roots")
    w.sh("touch a")
    same(os.listdir(os.path.join(w.home, "roots", "agent-main-cli-2ef8d38c")), ["a"])
    w.write(scope="shared", workspaceRoot="~/shared-root")
    w.sh("touch b")
    same(os.listdir(os.path.join(w.home, "shared-root")), ["b"])


# ---- scopes ----

@test("scope session: each session its own box; agent: one per agent; shared: one for all")
def _(w):
    calls = [("agent:main:a",), ("agent:main:b",), ("agent:ops:a",)]
    for scope, want in (("session", 3), ("agent", 2), ("shared", 1)):
        w.write(scope=scope)
        for (session,) in calls:
            w.sh("echo $HOSTNAME >> /tmp/mark; sort -u /tmp/mark | wc -l", "--session", session)
        same(len(w.boxes()), want, scope)
        keys = sorted(c["sessionKey"] for c in w.list()["containers"])
        same(keys, {"session": ["agent:main:a", "agent:main:b", "agent:ops:a"], "agent": ["agent:main", "agent:ops"],
                    "shared": ["shared"]}[scope])
        same(w("recreate", "--all", "--force").returncode, 0)


@test("what one call leaves in a box the next of its scope finds, another scope does not")
def _(w):
    w.sh("echo x > /tmp/left", "--session", "agent:main:a")
    same(w.sh("cat /tmp/left", "--session", "agent:main:a"), "x\n")
    same(w.sh("cat /tmp/left 2>&1 >/dev/null | wc -l", "--session", "agent:main:b"), "1\n")


@test("two scopes whose names would be one are refused, and both are named")
def _(w):
    w.write(docker_containerPrefix="p" * 63)
    w.sh("true", "--session", "agent:main:a")
    r = w("exec", "--session", "agent:main:b", "--command", "true")
    same(r.returncode, 125)
    need("agent:main:a" in r.stderr and "agent:main:b" in r.stderr, r.stderr)
    same(len(w.boxes()), 1)


@test("many programs at once make one box, and its setup runs once, before any command")
def _(w):
    w.write(docker_setupCommand="sleep 0.3; echo done >> /workspace/setup-log")
    many = [w.spawn("exec", "--command", "cat /workspace/setup-log; echo $HOSTNAME") for _ in range(6)]
    outs = [p.communicate(timeout=60) + (p.returncode,) for p in many]
    same({o[2] for o in outs}, {0}, outs)
    same(len({o[0] for o in outs}), 1, outs)
    same(outs[0][0].splitlines()[0], "done")
    same(len(w.boxes()), 1)


@test("a box of a newer client's name is the scope's box, and is kept as that client made it")
def _(w):
    key = "agent:main:cli:workspace:" + hashlib.sha256(w.ws.encode()).hexdigest()[:32]
    name = "openclaw-sbx-workspace-" + hashlib.sha256(key.encode()).hexdigest()[:32]
    r = w.docker("create", "--name", name, "--network", "none", "--label", "openclaw.sandbox=1", "--label",
                 f"openclaw.sessionKey={key}", "--label", "openclaw.configHash=of-the-client", "--workdir", "/workspace", "-v",
                 f"{w.ws}:/workspace", "--user", "1000:1000", "--env", "BY=client", IMAGE, "sleep", "infinity")
    same(r.returncode, 0, r.stderr)
    same(w.sh("echo $BY"), "client\n")
    same(w.boxes(), [name])
    need(w.list()["containers"][0]["running"], "it was not started")
    same(w("recreate", "--session", "agent:main:cli", "--force").stdout, f"removed {name}\nDone: 1 removed, 0 failed\n")


# ---- changes of the configuration ----

@test("a changed configuration: a hot box is kept and that is said, a cold one is made anew")
def _(w):
    w.sh("true")
    (name, first), = w.ids().items()
    w.write(docker_env={"NEW": "1"})
    r = w("exec", "--command", "echo $NEW")
    same((r.returncode, r.stdout), (0, "\n"))
    need(f"Sandbox config changed for {name} (recently used). Recreate to apply: clawden sandbox recreate --session "
         "agent:main:cli" in r.stderr, r.stderr)
    same(w.ids(), {name: first})
    w.cool()
    r = w("exec", "--command", "echo $NEW")
    same((r.returncode, r.stdout), (0, "1\n"))
    need("config changed" not in r.stderr, r.stderr)
    need(w.ids()[name] != first, "it is the old box")


@test("a stopped box is not hot: it is made anew at once; the same configuration only starts it")
def _(w):
    w.sh("true")
    (name, first), = w.ids().items()
    same(w.docker("stop", name).returncode, 0)
    w.sh("true")
    same(w.ids(), {name: first})
    same(w.docker("stop", name).returncode, 0)
    w.write(docker_pidsLimit=100)
    w.sh("true")
    need(w.ids()[name] != first, "it is the old box")


@test("the same settings in another order are the same box")
def _(w):
    w.write(docker_env={"A": "1", "B": "2"})
    w.sh("true")
    first = w.ids()
    w.sandbox = dict(reversed(list(w.sandbox.items())))
    w.write(docker_env={"B": "2", "A": "1"})
    w.cool()
    w.sh("true")
    same(w.ids(), first)
    w.write(docker_tmpfs=["/run", "/tmp", "/var/tmp"])
    w.cool()
    w.sh("true")
    need(w.ids() != first, "a list in another order is another box")


# ---- the box ----

@test("the setup command runs once in a new box; if it fails there is no box, and its last line is told")
def _(w):
    w.write(docker_setupCommand=["echo one >> /workspace/log", "echo two >> /workspace/log"])
    w.sh("true")
    w.sh("true")
    with open(os.path.join(w.ws, "log")) as f:
        same(f.read(), "one\ntwo\n")
    w("recreate", "--all", "--force")
    w.write(docker_setupCommand="echo first; echo the reason >&2; exit 9")
    r = w("exec", "--command", "touch ran")
    same(r.returncode, 125)
    need("the reason" in r.stderr and "status 9" in r.stderr and "first" not in r.stderr, r.stderr)
    same((w.boxes(), os.path.exists(os.path.join(w.ws, "ran"))), ([], False))


@test("a setup that was cut short is not taken for done")
def _(w):
    w.write(docker_setupCommand="echo began >> /workspace/log; test -e /workspace/go || sleep 73111; echo set >> /workspace/log")
    p = w.spawn("exec", "--command", "true")
    need(wait_for(lambda: processes("^sleep 73111")), "the setup does not run")
    p.kill()
    p.communicate()
    need(gone("^sleep 73111"), "the setup goes on")
    open(os.path.join(w.ws, "go"), "w").close()
    same(w.sh("cat log"), "began\nbegan\nset\n")


@test("a process that the setup leaves running keeps nobody waiting")
def _(w):
    w.write(docker_setupCommand="sleep 74111 & echo up")
    start = time.monotonic()
    w.sh("true")
    need(time.monotonic() - start < 20, "it waited for it")


@test("limits, scratch folders, hosts and ulimits are those of the configuration")
def _(w):
    w.write(docker_tmpfs=["/tmp:size=8m", "/run", "/scratch:size=4m,mode=1777"], docker_ulimits={"nofile": "123:456", "core": 0},
            docker_extraHosts=["db.internal:10.1.2.3"], docker_memory=300 << 20, docker_pidsLimit=50)
    same(w.sh("ulimit -n; ulimit -Hn; ulimit -c"), "123\n456\n0\n")
    need("10.1.2.3" in w.sh("cat /etc/hosts"), "no such host")
    same(w.sh("df -k --output=size /scratch /tmp | tail -n 2").split(), ["4096", "8192"])
    (name, box), = w.ids().items()
    with open(os.path.join(w.data, "boxes", box, "box.json")) as f:
        limits = json.load(f)["limits"]
    same((limits["memory"], limits["pids"]), (300 << 20, 50))


@test("the root is read-only, and the network's always is")
def _(w):
    need(w("exec", "--command", "touch /usr/x").returncode != 0, "the root can be written")
    w.write(docker_readOnlyRoot=False)
    w.net("true")
    with open(os.path.join(w.data, "boxes", w.ids()["openclaw-sbx-agent-main-cli-2ef8d38c-net"], "box.json")) as f:
        record = json.load(f)
    same((record["read_only_root"], record["network"]), (True, "bridge"))


@test("binds: one that is missing is left out with a warning, one that leads out of the workspace is refused")
def _(w):
    os.mkdir(os.path.join(w.ws, "data"))
    outside = os.path.join(w.top, "outside")
    os.mkdir(outside)
    w.write(docker_binds=[f"{w.ws}/data:/data:ro", f"{w.ws}/missing:/missing"])
    r = w("exec", "--command", "test -d /data && ! test -e /missing && ! touch /data/x 2>/dev/null && echo right")
    same((r.returncode, r.stdout), (0, "right\n"), r.stderr)
    need("missing" in r.stderr and "left out" in r.stderr, r.stderr)
    for binds, word in (([f"{outside}:/o"], "outside"), (["/etc:/e:ro"], "/etc"), ([f"{w.ws}/link:/o"], "leads to")):
        if word == "leads to":
            os.symlink(outside, os.path.join(w.ws, "link"))
        w.write(docker_binds=binds)
        w.cool()
        r = w("exec", "--command", "true")
        same(r.returncode, 125, binds)
        need("Sandbox security" in r.stderr and word in r.stderr, r.stderr)
    w.write(docker_dangerouslyAllowExternalBindSources=True)
    w.cool()
    same(w.sh("test -d /o && echo there"), "there\n")


@test("a vault is bound at its own path if it is there, read-only if that is said")
def _(w):
    vault = os.path.join(w.top, "vault")
    w.write(vaultPath=vault)
    same(w.sh(f"test -e {vault} || echo none"), "none\n")
    os.mkdir(vault)
    if os.getuid() == 0:
        os.chown(vault, 1000, 1000)
    w.cool()
    w.sh(f"touch {vault}/note")
    same(os.listdir(vault), ["note"])
    w.write(vaultAccess="ro")
    w.cool()
    need(w("exec", "--command", f"touch {vault}/more").returncode != 0, "it can be written")
    same(w.sh(f"ls {vault}"), "note\n")


@test("a vault that stands among the binds, as S1 has it, is the vault: once, the stricter access holds, a stale entry is left out")
def _(w):
    vault = os.path.join(w.top, "vault")
    w.write(vaultPath=vault, docker_binds=[f"{vault}:{vault}:rw"])
    r = w("exec", "--command", f"test -e {vault} || echo none")
    same((r.returncode, r.stdout), (0, "none\n"), r.stderr)
    need("is left out: it does not exist" in r.stderr, r.stderr)
    os.mkdir(vault)
    if os.getuid() == 0:
        os.chown(vault, 1000, 1000)
    w.cool()
    w.sh(f"touch {vault}/note")
    same(w.sh(f"grep -c ' {vault} ' /proc/self/mountinfo"), "1\n")
    for change in ({"vaultAccess": "ro"}, {"vaultAccess": "rw", "docker_binds": [f"{vault}:{vault}:ro"]}):
        w.write(**change)
        w.cool()
        need(w("exec", "--command", f"touch {vault}/more").returncode != 0, f"it can be written: {change}")
        same(w.sh(f"ls {vault}"), "note\n")
    w.write(docker_binds=[f"{vault}:/elsewhere"])
    r = w("exec", "--command", "true")
    need(r.returncode == 125 and "outside the workspace" in r.stderr, r.stderr)


# ---- list, recreate, rm, prune ----

@test("list has OpenClaw's shape, in JSON and in words, and only boxes of scopes")
def _(w):
    same(w("list").stdout, "No sandbox boxes found.\n")
    same(w.list(), {"containers": [], "browsers": []})
    w.docker("create", "--name", "other", IMAGE, "sleep", "infinity")
    w.docker("create", "--name", "eyes", "--label", "openclaw.sandbox=1", "--label", "openclaw.sandboxBrowser=1", "--label",
             "openclaw.sessionKey=agent:main:x", IMAGE, "sleep", "infinity")
    w.sh("true")
    box, = w.list()["containers"]
    same(list(box), ["containerName", "backendId", "runtimeLabel", "sessionKey", "createdAtMs", "lastUsedAtMs", "image",
                     "configLabelKind", "configHash", "workspaceDir", "running", "imageMatch"])
    same((box["sessionKey"], box["image"], box["running"], box["imageMatch"], box["workspaceDir"]),
         ("agent:main:cli", IMAGE, True, True, os.path.realpath(w.ws)))
    need(re.fullmatch("[0-9a-f]{64}", box["configHash"]), box["configHash"])
    need(abs(box["createdAtMs"] / 1000 - time.time()) < 60 and abs(box["lastUsedAtMs"] / 1000 - time.time()) < 60, box)
    same([b["containerName"] for b in w.list("--browser")["browsers"]], ["eyes"])
    same(w.list("--browser")["containers"], [])
    text = w("list").stdout
    for word in (box["containerName"], "Status:  running", f"Image:   {IMAGE} (match)", "Backend:", "Age:", "Idle:",
                 "Session: agent:main:cli", "Total: 1 (1 running)"):
        need(word in text, f"{word!r} is not in {text!r}")
    need(text.isascii(), "marks without a terminal")


@test("recreate removes what is chosen, asks nobody without --force, and says how it went")
def _(w):
    for session in ("agent:main:a", "agent:main:b", "agent:ops:a"):
        w.sh("true", "--session", session)
    w.net("true", "--session", "agent:main:a")
    for words in ([], ["--all", "--agent", "main"], ["--session", "x", "--agent", "main"], ["--all", "--bogus"], ["name"]):
        same(w("recreate", *words).returncode, 2, words)
    r = w("recreate", "--all")
    same(r.returncode, 2)
    need("--force" in r.stderr, r.stderr)
    same(len(w.boxes()), 4)
    same(w("recreate", "--session", "agent:none:x", "--force").returncode, 0)
    r = w("recreate", "--session", "agent:main:a", "--force")
    same(r.returncode, 0)
    same(r.stdout.splitlines()[-1], "Done: 2 removed, 0 failed")
    same(sorted(r.stdout.splitlines()[:2])[0].split()[0], "removed")
    r = w("recreate", "--agent", "main", "--force", "--json")
    told = json.loads(r.stdout)
    same((len(told["removed"]), told["failed"]), (1, []))
    same([c["sessionKey"] for c in w.list()["containers"]], ["agent:ops:a"])
    same(w("recreate", "--all", "--force").returncode, 0)
    same(w.boxes(), [])


@test("recreate --session finds the box that the session shares with others")
def _(w):
    w.write(scope="agent")
    w.sh("true", "--session", "agent:main:a")
    same(w("recreate", "--session", "agent:main:b", "--force").stdout.splitlines()[-1], "Done: 1 removed, 0 failed")
    same(w.boxes(), [])


@test("rm takes names, and only those of scopes")
def _(w):
    w.docker("create", "--name", "other", IMAGE, "sleep", "infinity")
    w.sh("true")
    name, = w.boxes()
    r = w("rm", "other", name, "none-such")
    same(r.returncode, 1)
    same(r.stdout, f"removed {name}\nDone: 1 removed, 2 failed\n")
    need("docker rm" in r.stderr and "none-such" in r.stderr, r.stderr)
    same(w.boxes(), [])
    same(w.docker("inspect", "-f", "{{.Name}}", "other").returncode, 0)
    same(w("rm").returncode, 2)


@test("prune removes idle boxes of scopes, never one at work, and no workspace unless asked")
def _(w):
    w.write(workspaceAccess="none", prune={"idleHours": 1, "maxAgeDays": 0})
    w.docker("create", "--name", "other", IMAGE, "sleep", "infinity")
    for session in ("agent:main:a", "agent:main:b"):
        w.sh("touch x", "--session", session)
    same(w("prune").stdout, "Nothing to remove.\n")
    busy = w.spawn("exec", "--session", "agent:main:b", "--command", "sleep 75111")
    need(wait_for(lambda: processes("^sleep 75111")), "it does not run")
    w.cool(2 * 3600)
    r = w("prune", "--dry-run")
    need("would remove openclaw-sbx-agent-main-a-" in r.stdout and "main-b" not in r.stdout, r.stdout)
    same(len(w.boxes()), 2)
    r = w("prune", "--set", "prune.idleHours=0")
    same(r.stdout, "Nothing to remove.\n")
    r = w("prune", "--json")
    told = json.loads(r.stdout)
    same(([x["sessionKey"] for x in told["removed"]], told["removed"][0]["reason"], told["workspaces"], told["failed"]),
         (["agent:main:a"], "idle", [], 0))
    same(len(os.listdir(os.path.join(w.state, "sandboxes"))), 2)
    same(w("prune", "--all").stdout, "Nothing to remove.\n")  # the other one is at work
    busy.kill()
    busy.communicate()
    need(gone("^sleep 75111"), "it outlives its client")
    need(wait_for(lambda: "removed" in w("prune", "--all", "--workspaces").stdout), "it stays")
    same(len(os.listdir(os.path.join(w.state, "sandboxes"))), 1)
    same(w.boxes(), [])
    same(w.docker("inspect", "-f", "{{.Name}}", "other").returncode, 0)


@test("prune --workspaces never takes an agent's folder, nor one that another box has")
def _(w):
    w.sh("touch precious")
    need("removed" in w("prune", "--all", "--workspaces").stdout, "nothing was removed")
    same(os.listdir(w.ws), ["precious"])
    w.write(workspaceAccess="none")
    w.sh("touch x")
    p = w.spawn("exec", "--tool", "web_fetch", "--command", "sleep 76111")
    need(wait_for(lambda: processes("^sleep 76111")), "it does not run")
    need("removed" in w("prune", "--all", "--workspaces").stdout, "nothing was removed")
    own = os.path.join(w.state, "sandboxes", "agent-main-cli-2ef8d38c")
    same(os.listdir(own), ["x"])
    p.kill()
    p.communicate()


# ---- what an attacker, or a hasty operator, would try ----

@test("variables that belong to the network's box leave the isolated one when a second box comes to be")
def _(w):
    w.write(networkAllow=[], networkExecAllow=[])
    same(variables(w.sh("env")).get("GH_TOKEN"), SECRET)  # the only box of the scope (C4)
    del w.sandbox["networkAllow"], w.sandbox["networkExecAllow"]
    w.write()
    r = w("exec", "--command", "env")
    same(r.returncode, 125, "a box that was just used has the token")
    need("clawden sandbox recreate --session agent:main:cli" in r.stderr and SECRET not in r.stdout, r.stderr)
    w.cool()
    need("GH_TOKEN" not in w.sh("env"), "the isolated box keeps the token")


@test("a hot box with a network or a folder that was taken away is not used as if it had none")
def _(w):
    os.mkdir(os.path.join(w.ws, "sub"))
    for before, after in (({"docker_network": "bridge"}, {"docker_network": "none"}),
                          ({"docker_binds": [f"{w.ws}/sub:/data"]}, {"docker_binds": [f"{w.ws}/sub:/data:ro"]}),
                          ({"docker_binds": [f"{w.ws}/sub:/data:rw,rprivate"]}, {"docker_binds": []})):
        w.write(**before)
        w.sh("true")
        w.write(**after)
        r = w("exec", "--command", "touch /data/x")
        same(r.returncode, 125, r.stderr)
        need("recreate --session agent:main:cli" in r.stderr and "\n" not in r.stderr.rstrip(), r.stderr)
        w("recreate", "--all", "--force")


@test("the gateway's token is in no box under another name, nor by a setup command")
def _(w):
    w.write(docker_env={"ALIAS": "x-${OPENCLAW_GATEWAY_TOKEN}", "GH_TOKEN": "${GH_TOKEN}"}, networkDocker={"env": {"B": "${OPENCLAW_GATEWAY_TOKEN}"}},
            docker_setupCommand="echo ${OPENCLAW_GATEWAY_TOKEN}-${GH_TOKEN}-${HOSTNAME}-$${PWD} > /tmp/said")
    r = w("exec", "--command", "env; cat /tmp/said")
    need(GATEWAY not in r.stdout and SECRET not in r.stdout and "-/workspace\n" in r.stdout, r.stdout)
    need("docker.setupCommand names ${GH_TOKEN}" in r.stderr and SECRET not in r.stderr, r.stderr)
    out = w.net("env; cat /tmp/said")
    need(GATEWAY not in out and f"-{SECRET}-" in out, out)
    need(SECRET not in w("explain", "--json").stdout, "explain shows it")


@test("no workspace, link or vault shows the gateway's own files")
def _(w):
    with open(os.path.join(w.state, ".env"), "w") as f:
        f.write("K=" + SECRET + "\n")
    os.chmod(os.path.join(w.state, ".env"), 0o600)
    link, state = os.path.join(w.ws, "link"), w.state
    os.symlink(state, link)
    moved = os.path.join(w.top, "moved")
    os.symlink(w.home, moved)
    for change in ({"scope": "shared", "workspaceAccess": "none", "workspaceRoot": state},
                   {"scope": "shared", "workspaceAccess": "none", "workspaceRoot": moved + "/.openclaw"},
                   {"scope": "shared", "workspaceAccess": "none", "workspaceRoot": w.top + "/home/.."},
                   {"docker_dangerouslyAllowExternalBindSources": True, "docker_binds": [link + ":/x"]},
                   {"docker_dangerouslyAllowExternalBindSources": True, "docker_binds": [moved + ":/x:ro"]},
                   {"vaultPath": link}):
        w.sandbox = {"docker": {}}
        w.write(**change)
        r = w("exec", "--command", "cat .env /x/.env /*/link/.env")
        same(r.returncode, 125, change)
        need(SECRET not in r.stdout and ("Sandbox security:" in r.stderr or "workspaceRoot" in r.stderr), r.stderr)
        same(w.boxes(), [])
    w.ws, w.sandbox = state, {"docker": {}}
    w.write()
    r = w("exec", "--command", "cat .env")
    need(r.returncode == 125 and "Sandbox security: the workspace" in r.stderr, r.stderr)


@test("an agent's id in another spelling is the same agent, with the same rules")
def _(w):
    w.write()
    path = os.path.join(w.state, "openclaw.json")
    with open(path) as f:
        text = json.load(f)
    text["agents"]["entries"] = {n: {"tools": {"sandbox": {"tools": {"deny": ["exec"]}}}} for n in ("work", "team.x")}
    with open(path, "w") as f:
        json.dump(text, f)
    for words in (("--agent", "work"), ("--agent", "work!"), ("--agent", "WORK"), ("--agent", " work"), ("--session", "agent:work:x"),
                  ("--agent", "team.x"), ("--agent", "team-x"), ("--session", "agent:team.x:y")):
        r = w("exec", *words, "--", "id")
        need(r.returncode == 125 and "denied" in r.stderr, (words, r.stdout, r.stderr))
    same(w.boxes(), [])


@test("list and prune keep to the agent or session that is named")
def _(w):
    for session in ("agent:main:a", "agent:main:b", "agent:work:a"):
        w.sh("true", "--session", session)
    same(sorted(c["sessionKey"] for c in w.list("--agent", "main")["containers"]), ["agent:main:a", "agent:main:b"])
    same([c["sessionKey"] for c in w.list("--session", "agent:main:b")["containers"]], ["agent:main:b"])
    same(w("prune", "--all", "--agent", "nobody").stdout, "Nothing to remove.\n")
    told = json.loads(w("prune", "--all", "--agent", "work", "--json").stdout)
    same([x["sessionKey"] for x in told["removed"]], ["agent:work:a"])
    told = json.loads(w("prune", "--all", "--session", "agent:main:a", "--json").stdout)
    same([x["sessionKey"] for x in told["removed"]], ["agent:main:a"])
    same([c["sessionKey"] for c in w.list()["containers"]], ["agent:main:b"])


@test("a box whose command has just ended is never taken for a busy one")
def _(w):
    w.sh("true")
    for _ in range(250):  # what served the one before it is going while the next one looks
        need("would remove" in w("prune", "--all", "--dry-run").stdout, "a command that has ended counts")


def main():
    global ARGS
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    p.add_argument("--only", default="")
    p.add_argument("--label", default=default_label())
    ARGS = p.parse_args()
    return run("SCOPE", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
