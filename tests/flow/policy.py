#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""May this call run, and where: explain, why, what-if and config, asked as a person asks them. TAP.

  policy.py [--bin DIR] [--only WORD]
"""
import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

from tap import default_label, need, run, same, test

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../data/config")
TOP = os.path.join(HERE, "../..")
ARGS = None


class World:
    """A person with a home, files of configuration, and nothing of this machine's own."""

    def __init__(self):
        self.clawden = os.path.join(os.path.abspath(ARGS.bin), "clawden")
        self.top = tempfile.mkdtemp(prefix="clawden-policy-")
        os.chmod(self.top, 0o755)
        self.home = os.path.join(self.top, "home")
        self.state = os.path.join(self.home, ".openclaw")
        os.makedirs(os.path.join(self.state, "workspace"))
        if os.getuid() == 0:
            os.chown(os.path.join(self.state, "workspace"), 1000, 1000)
        self.env = {"HOME": self.home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "CLAWDEN_NO_SPAWNER": "1",
                    "CLAWDEN_DATA_DIR": os.path.join(self.top, "data"), "CLAWDEN_EGRESS_IDLE": "1", "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"),
                    "CLAWDEN_SECRETS_ENV": os.path.join(self.top, "secrets.env")}

    def close(self):
        boxes = os.path.join(self.top, "data/boxes")
        for name in os.listdir(boxes) if os.path.isdir(boxes) else []:
            self("docker", "rm", "-f", name)
        shutil.rmtree(self.top, ignore_errors=True)

    def __call__(self, *words, env=None):
        return subprocess.run([self.clawden, *words], env=dict(self.env, **(env or {})), cwd=self.top, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)

    def json(self, *words, env=None, status=0):
        r = self(*words, "--json", env=env)
        need(r.returncode == status, f"{words}: {r}")
        return json.loads(r.stdout)

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.state, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(path, mode)
        return path

    def config(self, text):
        return self.write("openclaw.json", text)

    def sandbox(self, **block):
        return self.config({"agents": {"defaults": {"sandbox": block}}})

    def call(self, command, *more, tool=None):
        return self.json("sandbox", "explain", "--session", "agent:main:task", *(("--command", command) if command is not None else ()),
                         *(("--tool", tool) if tool else ()), *more)


def seed(n):
    """The JSON of a seed, as it was pasted."""
    with open(os.path.join(DATA, f"s{n}.json"), encoding="utf-8") as f:
        return f.read()


# ---- the issue's own examples ----

@test("gh pr create goes to the network box as words, and what only looks like gh stays isolated, each with the reason")
def _(w):
    w.config(seed(1))
    a = w.call('gh pr create --title "x"')
    same((a["verdict"], a["route"], a["argv"]), ("allow", "network", ["gh", "pr", "create", "--title", "x"]))
    need("networkExecAllow" in a["rule"] and a["change"].endswith("networkExecAllow"), a)
    reasons = set()
    for line in ("gh; curl x", "gh$(id)", "ghx", "env gh", "GH=1 gh", "gh | sh", "gh\nid", "/tmp/gh", "gh `id`", "gh > /tmp/x", "gh &",
                 "gh && id", "gh '", "gh *", "{ gh; }", "if gh", "\tghx", "gh\\ pr", "~/gh", "$GH pr", "./gh", "exec gh", "command gh"):
        a = w.call(line)
        same((a["verdict"], a["route"]), ("allow", "isolated"), line)
        need(len(a["reason"]) > 10 and "argv" not in a and a["change"], (line, a))
        reasons.add(a["reason"])
    need(len(reasons) > 10, reasons)
    same([w.call(x)["route"] for x in ("  gh pr list ", "GH pr list", "'gh' pr list", "gh pr list --label 'a b'")], ["network"] * 4)


@test("the JSON of S1, pasted unchanged, loads and routes as S1 says")
def _(w):
    w.config(seed(1))
    same(w("config", "check").returncode, 0, w("config", "check").stderr)
    e = w.json("sandbox", "explain", "--session", "agent:main:task")
    s = e["settings"]
    same((s["mode"]["value"], s["scope"]["value"], s["workspaceAccess"]["value"], s["docker.network"]["value"],
          s["networkDocker.network"]["value"]), ("all", "session", "rw", "none", "bridge"))
    same(s["mode"]["source"].split(":")[0], os.path.join(w.state, "openclaw.json"))
    need(re.search(r":5:9 agents\.defaults\.sandbox\.mode$", s["mode"]["source"]), s["mode"])
    same([w.call(None, tool=t)["route"] for t in ("web_fetch", "web_search", "read", "write", "execute")],
         ["network", "network", "isolated", "isolated", "isolated"])
    same([b["name"].endswith("-net") for b in e["boxes"]], [False, True], "two boxes")


@test("the other JSON of S1, pasted unchanged, loads: variables for the network box, a vault that may be missing")
def _(w):
    w.config(seed("1-env"))
    same(w("config", "check").returncode, 0, w("config", "check").stderr)
    e = w.json("sandbox", "explain", "--session", "agent:main:task", env={"GH_TOKEN": "gho_x", "BRAVE_API_KEY": "b"})
    to = {v["name"]: v["to"] for v in e["boxes"][0]["env"]}
    same((to["GH_TOKEN"], to["BRAVE_API_KEY"]), ("network", "network"))
    w.config(seed("1-vault"))
    r = w("config", "check")
    same(r.returncode, 0, r.stderr)
    targets = [m["target"] for m in w.json("sandbox", "explain", "--session", "agent:main:task")["boxes"][0]["mounts"]]
    same("/workspace-obsidian" in targets, os.path.isdir("/workspace-obsidian"), targets)


@test("the JSON of S3, pasted unchanged, loads; its main session is direct, the others share a box per agent")
def _(w):
    w.config(seed(3))
    same(w("config", "check").returncode, 0, w("config", "check").stderr)
    e = w.json("sandbox", "explain")
    same((e["sessionKey"], e["runtime"], e["boxes"]), ("agent:main:main", "direct", []))
    e = w.json("sandbox", "explain", "--session", "agent:main:telegram:group:7")
    same((e["runtime"], e["sandbox"]["scope"], e["boxes"][0]["name"]), ("sandboxed", "agent", "openclaw-sbx-agent-main-f331f052"))
    verdicts = {t: w.call(None, tool=t)["verdict"] for t in ("exec", "sessions_list", "browser", "canvas", "cron", "discord", "web_fetch")}
    same(verdicts, {"exec": "allow", "sessions_list": "allow", "browser": "allow", "canvas": "deny", "cron": "deny", "discord": "deny",
                    "web_fetch": "deny"})
    need("tools.sandbox.tools.deny" in w.call(None, tool="canvas")["rule"], w.call(None, tool="canvas"))
    same(w.call(None, tool="web_fetch")["change"], "tools.sandbox.tools.allow")


@test("the gateway's token is accepted in the file and reaches no box; explain says so")
def _(w):
    w.config(seed(3))
    env = {"OPENCLAW_GATEWAY_TOKEN": "tok-secret-1"}
    r = w("sandbox", "explain", "--session", "agent:main:x", "--json", env=env)
    entry = next(e for e in json.loads(r.stdout)["boxes"][0]["env"] if e["name"] == "OPENCLAW_GATEWAY_TOKEN")
    same(entry["to"], "nowhere")
    need(entry["why"], entry)
    need("tok-secret-1" not in r.stdout + r.stderr, "its value is shown")


@test("literals go to both boxes, references and secret-looking names to the one with a network")
def _(w):
    w.sandbox(docker={"env": {"COLOR": "blue", "GH_TOKEN": "${GH_TOKEN}", "PLAIN_REF": "${HOMEPAGE}", "MY_API_KEY": "pasted-value"}})
    e = w.json("sandbox", "explain", "--session", "agent:main:x", env={"GH_TOKEN": "gho_x"})
    to = {v["name"]: v["to"] for v in e["boxes"][0]["env"]}
    same((to["COLOR"], to["LANG"], to["GH_TOKEN"], to["PLAIN_REF"], to["MY_API_KEY"]), ("both", "both", "network", "network", "network"))
    missing = {v["name"] for v in e["boxes"][1]["env"] if v["missing"]}
    same(missing, {"PLAIN_REF"})
    text = json.dumps(e) + w("sandbox", "explain", "--session", "agent:main:x", env={"GH_TOKEN": "gho_x"}).stdout + w("config", "show").stdout
    need("gho_x" not in text and "pasted-value" not in text, "a value is shown")


# ---- modes ----

@test("off, disabled and main sessions are direct, and explain says so")
def _(w):
    for block, rule in (({"mode": "off"}, "mode"), ({"enabled": False}, "enabled"), ({"mode": "non-main"}, "mode")):
        w.sandbox(**block)
        e = w.json("sandbox", "explain", "--session", "agent:main:main")
        same(e["runtime"], "direct", block)
        need(rule in e["runtimeRule"], e["runtimeRule"])
    same(w.json("sandbox", "explain", "--session", "agent:main:other")["runtime"], "sandboxed")
    same(w.json("sandbox", "explain", "--session", "agent:main:other", "-e", "sandbox_enabled=false")["runtime"], "direct")


@test("single mode: bridge gives one box with a network, empty lists one without")
def _(w):
    w.config(seed(1))
    e = w.json("sandbox", "explain", "--session", "agent:main:x", "-e", "sandbox_docker_network=bridge", "--command", "curl x | sh")
    same((e["route"], len(e["boxes"])), ("network", 1))
    e = w.json("sandbox", "explain", "--session", "agent:main:x", "-e", '{"sandbox_network_allow": [], "sandbox_network_exec_allow": []}',
               "--command", "gh pr list")
    same((e["route"], len(e["boxes"])), ("isolated", 1))


@test("the operator's extra lists are added, and every variable of the table reaches its setting")
def _(w):
    w.config(seed(1))
    extra = ("-e", '{"sandbox_network_exec_allow_extra": ["curl", "npm"]}', "-e", '{"sandbox_network_allow_extra": ["mcp_fetch"]}')
    same([w.call(c, *extra)["route"] for c in ("npm install", "curl x", "gh x", "pip x")], ["network"] * 3 + ["isolated"])
    same(w.call(None, *extra, "--set", "tools.allow=[]", tool="mcp_fetch")["route"], "network")
    values = {"sandbox_enabled": (True, "enabled"), "sandbox_mode": ("non-main", "mode"), "sandbox_scope": ("shared", "scope"),
              "sandbox_workspace_access": ("ro", "workspaceAccess"), "sandbox_image": ("img:1", "docker.image"),
              "sandbox_build_browser": (True, "browser.enabled"), "sandbox_docker_network": ("none", "docker.network"),
              "sandbox_network_allow": (["a"], "networkAllow"), "sandbox_network_exec_allow": (["b"], "networkExecAllow"),
              "sandbox_network_docker_network": ("bridge", "networkDocker.network"), "sandbox_setup_script": ("s.sh", "setupScript"),
              "sandbox_vault_path": ("/v", "vaultPath"), "sandbox_vault_access": ("ro", "vaultAccess")}
    for name, (value, path) in values.items():
        s = w.json("config", "show", "--sources", "-e", json.dumps({name: value}))[f"agents.defaults.sandbox.{path}"]
        same(s["value"], value, name)
        need(name in s["source"], s)
    r = w("config", "check", "-e", "sandbox_moode=all")
    need(r.returncode == 1 and "sandbox_mode" in r.stderr, r)


# ---- wrong input ----

@test("an unknown key is named with its place and the nearest known one")
def _(w):
    path = w.config('{\n  agents: { defaults: { sandbox: {\n    docker: { netwrok: "none" },\n  } } },\n}\n')
    r = w("config", "check")
    same(r.returncode, 1)
    need(f"{path}:3:15: " in r.stderr and "netwrok" in r.stderr and "docker.network" in r.stderr, r.stderr)


@test("every kind of wrong file is an error with its place, never half applied")
def _(w):
    sandbox = '{"agents":{"defaults":{"sandbox":%s}}}'
    cases = [('{"a": 1,, }', ":1:9"), (sandbox % '{"mode": "al"}', "off|non-main|all"), (sandbox % '{"scope": 3}', "session|agent|shared"),
             (sandbox % '{"docker": {"pidsLimit": 0}}', "pidsLimit"), (sandbox % '{"docker": {"cpus": "two"}}', "cpus"),
             (sandbox % '{"mode": "all", "mode": "off"}', "mode"), (sandbox % '{"docker": []}', "docker"), ("[]", "object"),
             ('{"agents": {"defaults": {"sandbox": {"docker": {"env": {"A": 1}}}}}}', "env"), ("[" * 10000, ":1:"), ('{"a": "\xff"}', ":1:"),
             ('{"$include": "missing.json"}', "missing.json"), ('{"$include": "../../outside.json"}', "outside"),
             ('{"$include": "openclaw.json"}', "openclaw.json"), ('{"tools":{"sandbox":{"tools":{"allow":["a"],"alsoAllow":["b"]}}}}', "alsoAllow"),
             ('{"x": "' + "y" * (2 << 20) + '"}', "")]
    with open(os.path.join(w.top, "outside.json"), "w") as f:
        f.write("{}")
    for text, want in cases:
        path = os.path.join(w.state, "openclaw.json")
        with open(path, "wb") as f:
            f.write(text.encode("latin-1"))
        r = w("config", "check")
        need(r.returncode == 1 and want in r.stderr and r.stderr.count("\n") == 1, f"{text[:60]!r}: {r.returncode} {r.stderr!r}")


@test("a bad file leaves the last good one in force, and says so")
def _(w):
    path = w.sandbox(scope="agent", networkExecAllow=["npm"])
    same(w.call("npm ci")["route"], "network")
    w.config('{"agents": {"defaults": {"sandbox": {"scope": ')
    e = w.call("npm ci")
    same((e["route"], e["settings"]["scope"]["value"]), ("network", "agent"))
    need(any(path in x and "stays in force" in x for x in e["warnings"]), e["warnings"])
    r = w("why", "npm ci")
    need("stays in force" in r.stderr, r)
    same(w("config", "check").returncode, 1, "check never falls back")
    last = os.path.join(w.top, "data/config.last-good.json")
    same(stat.S_IMODE(os.stat(last).st_mode), 0o600)


@test("secrets that others can read are refused; values of variables never show in errors")
def _(w):
    w.sandbox(docker={"image": "${IMG}", "env": {"GH_TOKEN": "${GH_TOKEN}"}})
    w.write(".env", "GH_TOKEN=gho_file\nIMG=from-env-file:1\n")
    s = w.json("config", "show")
    same(s["agents.defaults.sandbox.docker.image"], "from-env-file:1")
    w.write(".env", "GH_TOKEN=gho_file\n", 0o644)
    r = w("config", "check")
    need(r.returncode == 1 and ".env" in r.stderr and "600" in r.stderr and "gho_file" not in r.stderr, r)
    w.write(".env", "GH_TOKEN='gho_file\n")
    r = w("config", "check")
    need(r.returncode == 1 and ".env:1:" in r.stderr and "gho_file" not in r.stderr, r)


@test("what a box must never see or have is refused, as OpenClaw words it")
def _(w):
    home = w.home
    os.makedirs(os.path.join(home, ".ssh"))
    os.symlink(os.path.join(home, ".ssh"), os.path.join(w.state, "workspace/innocent"))
    for docker in ({"binds": ["/etc:/x"]}, {"binds": ["/:/x"]}, {"binds": ["/var/run/docker.sock:/s"]}, {"binds": ["rel:/x"]},
                   {"binds": [f"{home}/.ssh:/x"]}, {"binds": [f"{home}:/x"]}, {"binds": ["/srv/x:/workspace/y"]}, {"binds": ["/srv/x:/proc"]},
                   {"binds": [f"{w.state}/workspace/innocent:/x"]}, {"network": "host"}, {"network": "container:abc"},
                   {"seccompProfile": "Unconfined"}, {"apparmorProfile": " unconfined "}):
        w.sandbox(docker=dict(docker))
        r = w("config", "check")
        need(r.returncode == 1 and "Sandbox security: " in r.stderr, f"{docker}: {r.returncode} {r.stderr!r}")
        e = w.json("sandbox", "explain", "--session", "agent:main:x")
        need("Sandbox security: " in e["refused"] and not e["boxes"], e)


# ---- the other verbs ----

@test("why answers offline with the rule and the key, and what-if shows what would change")
def _(w):
    r = w("why", "gh pr list")
    need(r.returncode == 0 and r.stdout.startswith("network") and "networkExecAllow" in r.stdout, r)
    r = w("why", "npm ci")
    need(r.returncode == 0 and r.stdout.startswith("isolated"), r)
    same(w("why", "--tool", "canvas").returncode, 1)
    same(os.path.exists(os.path.join(w.top, "data/boxes")), False, "a question made a box")
    r = w("what-if", "--set", 'networkExecAllow=["npm"]', "npm ci", "--json")
    a = json.loads(r.stdout)
    same((a["now"]["route"], a["then"]["route"]), ("isolated", "network"))
    same(list(a["changed"]), ["agents.defaults.sandbox.networkExecAllow"])
    same(w.json("why", "npm ci")["route"], "isolated", "what-if was kept")
    r = w("what-if", "--set", "docker.netwrok=none")
    need(r.returncode == 1 and "docker.network" in r.stderr, r)


@test("an older configuration in force is said by why and what-if too, and what-if answers")
def _(w):
    w.sandbox(networkExecAllow=["npm"])
    same(w.json("why", "npm ci")["route"], "network")
    w.config("{bad")
    for words in (("why", "npm ci"), ("why", "npm ci", "--json"), ("what-if", "--set", "mode=off", "npm ci"),
                  ("what-if", "--set", "mode=off", "npm ci", "--json"), ("config", "show"), ("sandbox", "prune")):
        r = w(*words)
        need(r.returncode == 0 and "openclaw.json:1:5" in r.stderr and "stays in force" in r.stderr, (words, r))
        same(r.stderr.count("stays in force"), 1, words)
    same(w.json("what-if", "--set", "mode=off", "npm ci")["then"]["route"], "direct")


@test("two programs that remember at once do not share a file while they write")
def _(w):
    w.sandbox(mode="all")
    w("why", "ls")
    os.mkdir(os.path.join(w.top, "data/config.last-good.new"))  # the one name there used to be, taken by another
    w.sandbox(networkExecAllow=["npm"])
    same(w("why", "ls").stderr, "")
    with open(os.path.join(w.top, "data/config.last-good.json")) as f:
        need("npm" in f.read(), "it was not remembered")
    same(sorted(n for n in os.listdir(os.path.join(w.top, "data")) if n.startswith("config.")), ["config.last-good.json", "config.last-good.new"])


@test("no value of a variable is shown, whatever stands beside it, and explain says what a box lacks")
def _(w):
    w.sandbox(docker={"env": {"A": "literal-s3cret ${NOPE}", "B": "${NOPE}", "C": "$${X}s3cret"}, "setupCommand": "echo ${TOKEN_X}"})
    env = {"TOKEN_X": "very-s3cret"}
    for words in (("config", "show", "--sources"), ("sandbox", "explain"), ("sandbox", "explain", "--json"), ("config", "check"),
                  ("what-if", "--set", "docker.memory=2g")):
        r = w(*words, env=env)
        need(r.returncode == 0 and "s3cret" not in r.stdout + r.stderr, (words, r))
    same(w.json("sandbox", "explain")["settings"]["docker.env"]["value"], {"LANG": "(literal)", "A": "(literal)", "B": "${NOPE}", "C": "(literal)"})
    warnings = w.json("sandbox", "explain", env=env)["warnings"]
    need(any("docker.setupCommand names ${TOKEN_X}" in x for x in warnings), warnings)
    boxes = w.json("sandbox", "explain", "--command", "gh pr list", env=env)["boxes"]
    same([(b["network"]["name"], b["network"].get("allow")) for b in boxes], [("none", None), ("bridge", ["public:*"])])
    need("nothing but its own loopback" in w("sandbox", "explain").stdout, "what the isolated box reaches")


@test("egress: rules come from the settings of the agent, a wrong one is named, allowlist without any is told")
def _(w):
    w.sandbox(networkDocker={"network": "allowlist"}, egress={"allow": ["api.example.test", "*.cdn.example.test:8443"], "deny": ["bad.cdn.example.test"],
                                                               "hostPorts": [11434], "bytes": "2g", "newPerSecond": 9})
    box = w.json("sandbox", "explain", "--command", "gh pr list")["boxes"][1]
    same(box["network"], {"name": "allowlist", "allow": ["api.example.test", "*.cdn.example.test:8443"], "deny": ["bad.cdn.example.test"],
                          "hostPorts": [11434], "relay": False})
    rules = json.loads(w("sandbox", "network", "--settings", "--network", "bridge").stdout)
    same((rules["allow"], rules["bytes"], rules["new_per_sec"], rules["allow_key"]),
         (["public:*", "api.example.test", "*.cdn.example.test:8443"], 2 << 30, 9, "agents.defaults.sandbox.egress.allow"))
    for key, value, words in (("allow", ["a..b"], ("egress.allow", "a..b")), ("allow", ["*"], ("egress.allow",)), ("deny", ["10.0.0.0/33"], ("egress.deny",)),
                              ("hostPorts", [0], ("egress.hostPorts", "1 to 65535")), ("hostPorts", ["80"], ("egress.hostPorts",)),
                              ("allow", "x", ("egress.allow", "list")), ("alow", [], ("egress.alow", "egress.allow"))):
        w.sandbox(egress={key: value})
        r = w("config", "check")
        need(r.returncode == 1 and all(x in r.stderr for x in words), (key, value, r))
    w.sandbox(networkDocker={"network": "allowlist"})
    need(any("reaches nothing" in x for x in w.json("sandbox", "explain")["warnings"]), "an empty list is not told")


@test("every help ends with a line break")
def _(w):
    for words in (("config",), ("why",), ("what-if",), ("sandbox",), ("sandbox", "explain"), ("sandbox", "exec"), ("sandbox", "list"),
                  ("sandbox", "prune"), ("sandbox", "rm")):
        need(w(*words, "--help").stdout.endswith("\n"), words)


@test("an agent's own block wins, in both forms of the file, and its source is named")
def _(w):
    for agents in ({"entries": {"work": {"sandbox": {"networkExecAllow": ["npm"]}}}},
                   {"list": [{"id": "work", "sandbox": {"networkExecAllow": ["npm"]}}]}):
        w.config({"agents": agents})
        same(w.json("sandbox", "explain", "--agent", "work", "--command", "npm ci")["route"], "network")
        same(w.json("sandbox", "explain", "--agent", "main", "--command", "npm ci")["route"], "isolated")
        change = w.json("sandbox", "explain", "--agent", "work", "--command", "pip x")["change"]
        need("defaults" not in change and "networkExecAllow" in change, change)
        s = w.json("sandbox", "explain", "--session", "agent:work:x")["settings"]["networkExecAllow"]
        need("agents." in s["source"] and "networkExecAllow" in s["source"], s)


@test("belts are read from the live box: explain changes when the box does")
def _(w):
    e = w.json("sandbox", "explain", "--session", "agent:main:x")
    same(e["protection"]["asked"], "a box made for this question")
    need(all(e["protection"]["belts"].values()), e["protection"])
    r = w("sandbox", "exec", "--session", "agent:main:x", "--", "true")
    same(r.returncode, 0, r.stderr)
    e = w.json("sandbox", "explain", "--session", "agent:main:x")
    same((e["protection"]["asked"], e["boxes"][0]["running"], e["boxes"][0]["configCurrent"]), ("the scope's box", True, True))
    need(all(e["protection"]["belts"].values()), e["protection"])
    if ARGS.weak and os.path.exists(os.path.join(ARGS.weak, "clawden")):
        r = subprocess.run([os.path.join(ARGS.weak, "clawden"), "sandbox", "explain", "--session", "agent:main:y", "--json"], env=w.env,
                           capture_output=True, text=True, timeout=60)
        belts = json.loads(r.stdout)["protection"]["belts"]
        same([b for b in belts if not belts[b]], ["seccomp"], "a build without seccomp says so")


@test("the schema, the manual and the defaults file are made from the table, and those in the project are fresh")
def _(w):
    r = w("config", "schema")
    need(r.returncode == 0 and r.stdout, r)
    schema = json.loads(r.stdout)
    same(schema["$defs"]["sandbox"]["properties"]["docker"]["properties"]["network"]["default"], "none")
    same(schema["$defs"]["sandbox"]["additionalProperties"], False)
    for fmt, path in (("ansible", "ansible/roles/sandbox/defaults/main.yml"), ("man", "docs/man/clawden-config.5")):
        path = os.path.join(TOP, path)
        if os.path.exists(path):  # staged copies have the tests only
            with open(path) as f:
                same(w("config", "schema", "--format", fmt).stdout, f.read(), f"{path}: make it with 'clawden config schema --format {fmt}'")
    for key in ("docker.network", "networkExecAllow", "tools.deny", "prune.idleHours"):
        need(f"\n  {key}\n" in w("config", "--help").stdout, f"{key} is not in --help")
    text = w("config", "schema", "--format", "ansible").stdout
    names = re.findall(r"^(sandbox_\w+):", text, re.M)
    same(len(names), 15, names)


@test("include, variables, YAML and the profile are layers in their order")
def _(w):
    w.write("base.json5", "{ agents: { defaults: { sandbox: { scope: 'agent', docker: { memory: '300m' } } } } } // shared")
    w.config('{ $include: "./base.json5", agents: { defaults: { sandbox: { docker: { pidsLimit: 33 } } } } }')
    os.makedirs(os.path.join(w.top, "data"), 0o700)
    with open(os.path.join(w.top, "data/clawden.yaml"), "w") as f:
        f.write("sandbox:\n  scope: shared\n  docker:\n    cpus: 0.5\n")
    w.write("sandbox-profile.toml", '[extra_vars]\nsandbox_workspace_access = "none"\n')
    s = w.json("config", "show", "--sources")

    def at(path):
        return s["agents.defaults.sandbox." + path]
    same([at(p)["value"] for p in ("scope", "docker.memory", "docker.pidsLimit", "docker.cpus", "workspaceAccess", "mode")],
         ["agent", "300m", 33, 0.5, "none", "all"])
    for path, word in (("scope", "base.json5:1:"), ("docker.pidsLimit", "openclaw.json:1:"), ("docker.cpus", "clawden.yaml:4:"),
                       ("workspaceAccess", "sandbox-profile.toml:2:"), ("mode", "preset")):
        need(word in at(path)["source"], at(path))
    same(w.json("config", "show", "-e", "sandbox_workspace_access=ro")["agents.defaults.sandbox.workspaceAccess"], "ro")
    with open(os.path.join(w.top, "clawden.yaml"), "w") as f:  # the present folder's: a stranger's
        f.write("mode: direct\nsandbox:\n  networkDocker: {env: {X: '${GH_TOKEN}'}}\n")
    r = w("why", "ls")
    need(r.stdout.startswith("isolated") and "does not count" in r.stderr, r)
    r = w("why", "ls", env={"CLAWDEN_YAML": "clawden.yaml"})
    need(r.stdout.startswith("direct"), r)
    same(w.json("config", "show", "--preset", "dev")["agents.defaults.sandbox.mode"], "non-main")


def main():
    global ARGS
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--weak", default=os.environ.get("CLAWDEN_WEAK_BUILD", ""), help="programs built without seccomp")
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    ARGS = a.parse_args()
    return run("POLICY", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
