#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The drop-in `docker`, called with the words that OpenClaw and people use. Prints TAP.

  docker.py [--docker FILE] [--only WORD]

Runs as whoever starts it. Every test gets a home, a data folder, a runtime folder and a workspace of its own, and its
boxes are removed behind it.
"""
import argparse
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

from tap import Skip, default_label, need, run, same, test, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "openclaw-sandbox:bookworm-slim"
ID = r"[0-9a-f]{64}"


class World:
    """A caller with nothing but its own temporary folders."""

    def __init__(self, docker):
        self.docker = docker
        self.top = tempfile.mkdtemp(prefix="clawden-docker-")
        os.chmod(self.top, 0o755)
        self.home = os.path.join(self.top, "home")
        self.ws = os.path.join(self.top, "ws")
        for d in (self.home, self.ws):
            os.mkdir(d)
        self.uid = os.getuid() or 1000  # of the workspace, as OpenClaw chooses the box's user
        if os.getuid() == 0:
            os.chown(self.ws, self.uid, self.uid)
        self.env = {"HOME": self.home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                    "CLAWDEN_DATA_DIR": os.path.join(self.top, "data"),
                    "CLAWDEN_EGRESS_IDLE": "1", "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"), "CLAWDEN_NO_SPAWNER": "1"}

    def close(self):
        ids = self("ps", "-aq", "--no-trunc").stdout.split()
        if ids:
            self("rm", "-f", *ids)
        shutil.rmtree(self.top, ignore_errors=True)

    def start(self, *words, **kw):
        env = dict(self.env, **kw.pop("env", {}))
        return subprocess.Popen([self.docker, *words], env=env, cwd=self.ws, **kw)

    def __call__(self, *words, **kw):
        kw.setdefault("timeout", 60)
        kw.setdefault("cwd", self.ws)
        if "input" not in kw:
            kw.setdefault("stdin", subprocess.DEVNULL)
        env = dict(self.env, **kw.pop("env", {}))
        return subprocess.run([self.docker, *words], env=env, text=kw.pop("text", True), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **kw)

    def box(self, *flags, name="box", command=("sleep", "infinity"), start=True):
        """A box as OpenClaw makes it; its id."""
        r = self("create", "--name", name, "--init", "--read-only", "--tmpfs", "/tmp", "--network", "none", "--user",
                 f"{self.uid}:{self.uid}", "--cap-drop", "ALL", "--workdir", "/workspace", "-v", f"{self.ws}:/workspace:z",
                 *flags, IMAGE, *command)
        same(r.returncode, 0, f"create ({r.stderr.strip()})")
        if start:
            s = self("start", name)
            same((s.returncode, s.stdout), (0, name + "\n"), f"start ({s.stderr.strip()})")
        return r.stdout.strip()

    def file(self, name, data):
        path = os.path.join(self.top, name)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path


def matches(text, pattern):
    return re.fullmatch(pattern, text, re.S) is not None


def check(r, rc, out=r".*", err=r".*", what=""):
    same(r.returncode, rc, f"{what} exit status ({r.stdout!r} {r.stderr!r})")
    need(matches(r.stdout, out), f"{what} stdout {r.stdout!r} is not {out!r}")
    need(matches(r.stderr, err), f"{what} stderr {r.stderr!r} is not {err!r}")


def alive(marker):
    """Does a process with this word on its command line exist?"""
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if pid.isdigit() and int(pid) != os.getpid() and marker.encode() in f.read():
                    return True
        except OSError:
            pass
    return False


# ---- every call of OpenClaw, in its own words ----

LABEL_HASH = '{{ index .Config.Labels "openclaw.configHash" }}'
LABEL_NONE = '{{ index .Config.Labels "openclaw.nothing" }}'
CONTRACT = '{{ index .Config.Labels "org.openclaw.sandbox-browser.contract" }}'
MOUNTS = '{"Mounts":{{json .Mounts}},"Tmpfs":{{json .HostConfig.Tmpfs}}}'
MOUNTS_ID = '{"Id":{{json .ID}},"Mounts":{{json .Mounts}},"Tmpfs":{{json .HostConfig.Tmpfs}}}'

# (row of the contract, words, exit status, stdout, stderr); NAME, ID and ENV are put in.
TRACE = [
    (1, ["inspect", "-f", "{{.State.Running}}", "NAME"], 1, r"\n", r"Error: No such object: NAME\n"),
    (3, ["image", "inspect", IMAGE], 0, r"\[.*\]\n", r"clawden: .*host's own system folders\n"),
    (3, ["image", "inspect", "no-such-image:tag"], 1, r"\[\]\n", r"(?i).*no such image: no-such-image:tag\n"),
    (4, ["create", "--name", "NAME", "--init", "--label", "openclaw.sandbox=1", "--label", "openclaw.sessionKey=agent:main:w",
         "--label", "openclaw.createdAtMs=1794710075566", "--label", "openclaw.mountFormatVersion=4", "--label",
         "openclaw.configHash=8799aa", "--read-only", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run", "--network",
         "none", "--user", "UID:UID", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "256",
         "--memory", "512m", "--memory-swap", "1g", "--cpus", "1.5", "--ulimit", "nofile=1024:2048", "--workdir", "/workspace",
         "-v", "WS:/workspace:z", "-v", "WS/skills:/workspace/skills:ro,z", "--env-file", "ENV", IMAGE, "sleep", "infinity"],
     0, ID + r"\n", r"clawden: image .*\n"),
    (1, ["inspect", "-f", "{{.State.Running}}", "NAME"], 0, r"false\n", r""),
    (5, ["start", "NAME"], 0, r"NAME\n", r""),
    (5, ["start", "NAME"], 0, r"NAME\n", r""),
    (1, ["inspect", "-f", "{{.State.Running}}", "NAME"], 0, r"true\n", r""),
    (2, ["inspect", "-f", LABEL_HASH, "NAME"], 0, r"8799aa\n", r""),
    (2, ["inspect", "-f", LABEL_NONE, "NAME"], 0, r"(<no value>)?\n", r""),
    (6, ["exec", "-i", "NAME", "/bin/sh", "-lc", "echo set > /workspace/setup"], 0, r"", r""),
    (6, ["exec", "-i", "NAME", "/bin/sh", "-lc", "exit 3"], 3, r"", r""),
    (7, ["inspect", "--format", "{{.Id}}", "NAME"], 0, ID + r"\n", r""),
    (8, ["inspect", "--format", MOUNTS, "ID"], 0, r'\{"Mounts":\[\{"Type":"bind".*\],"Tmpfs":\{"/run":"","/tmp":"","/var/tmp":""\}\}\n', r""),
    (9, ["exec", "ID", "cat", "/proc/self/mountinfo"], 0, r".* /workspace .*", r""),
    (10, ["exec", "-i", "-w", "/workspace", "--env-file", "ENV", "ID", "/bin/sh", "-lc",
          'export PATH="${OPENCLAW_PREPEND_PATH}:$PATH"; unset OPENCLAW_PREPEND_PATH; pwd; echo "$PATH $A"'],
     0, r"/workspace\n(/usr/bin:/bin|/usr/bin):.* from file\n", r""),
    (10, ["exec", "-i", "-w", "/workspace/skills", "-e", "HOME=/workspace/skills", "-e", "LANG=C.UTF-8", "NAME", "/bin/sh", "-lc",
          "echo $HOME; pwd"], 0, r"/workspace/skills\n/workspace/skills\n", r""),
    (11, ["exec", "-i", "ID", "sh", "-c", 'set -eu; cd -- "$1"; LC_ALL=C stat -c "%F|%s|%y" -- "$2"', "openclaw-sandbox-fs",
          "/workspace", "setup"], 0, r"regular file\|4\|.*\n", r""),
    (11, ["exec", "-i", "ID", "sh", "-c", 'set -eu; cd -- "$1"; LC_ALL=C stat -c "%F|%s|%y" -- "$2"', "openclaw-sandbox-fs",
          "/workspace", "nothing"], 1, r"", r".*No such file or directory\n"),
    (12, ["inspect", "-f", "{{.Config.Image}}", "NAME"], 0, re.escape(IMAGE) + r"\n", r""),
    (14, ["inspect", "-f", "{{range .Config.Env}}{{println .}}{{end}}", "NAME"], 0, r"(.*\n)?A=from file\n.*", r""),
    (15, ["network", "inspect", "openclaw-sandbox-browser"], 1, r"\[\]\n", r".*not found\n"),
    (15, ["network", "create", "--driver", "bridge", "openclaw-sandbox-browser"], 0, ID + r"\n", r"clawden: .*\n"),
    (15, ["network", "inspect", "openclaw-sandbox-browser"], 0, r"\[.*openclaw-sandbox-browser.*\]\n", r""),
    (16, ["image", "inspect", "-f", CONTRACT, IMAGE], 0, r"\n", r"clawden: .*\n"),
    (17, ["port", "NAME", "9222/tcp"], 1, r"", r"Error: No public port '9222/tcp' published for NAME\n"),
    (18, ["ps", "-a", "--filter", "label=openclaw.sandboxBrowser=1", "--format", "{{.Names}}"], 0, r"", r""),
    (18, ["ps", "-a", "--filter", "label=openclaw.sandbox=1", "--format", "{{.Names}}"], 0, r"NAME\n", r""),
    (18, ["inspect", "-f", LABEL_HASH + "\t" + LABEL_NONE, "NAME"], 0, r"8799aa\t\n", r""),
    (18, ["port", "NAME"], 0, r"", r""),
    (19, ["version", "--format", "{{.Server.Version}}"], 0, r"\d+\.\d+\.\d+\n", r""),
    (20, ["inspect", "-f", "{{.Id}} {{.State.Running}} {{.State.Paused}}", "NAME"], 0, ID + r" true false\n", r""),
    (20, ["pause", "ID"], 0, r"ID\n", r""),
    (20, ["inspect", "-f", "{{.State.Paused}}", "ID"], 0, r"true\n", r""),
    (20, ["exec", "ID", "true"], 1, r"", r"Error response from daemon: Container ID is paused, unpause the container before exec\n"),
    (20, ["unpause", "ID"], 0, r"ID\n", r""),
    (20, ["inspect", "-f", "{{.Id}}", "NAME"], 0, r"ID\n", r""),
    (21, ["inspect", "--type", "container", "--format", MOUNTS_ID, "ID"], 0, r'\{"Id":"ID","Mounts":\[.*\}\n', r""),
    (13, ["rm", "-f", "NAME"], 0, r"NAME\n", r""),
    (13, ["rm", "-f", "ID"], 0, r"", r"Error response from daemon: No such container: ID\n"),
]


@test("every call of OpenClaw answers as docker does")
def _(w):
    os.mkdir(os.path.join(w.ws, "skills"))
    if os.getuid() == 0:
        os.chown(os.path.join(w.ws, "skills"), w.uid, w.uid)
    env = w.file("env", "A=from file\nOPENCLAW_PREPEND_PATH=/no/such/folder:/usr/bin:/bin:/nor/this")
    name, box = "openclaw-sbx-workspace-38502bcd49db0457833284614a314188", "0" * 64

    def fill(s):
        return {"NAME": name, "ID": box, "ENV": env, "UID:UID": f"{w.uid}:{w.uid}"}.get(s, s.replace("WS", w.ws))
    for row, words, rc, out, err in TRACE:
        r = w(*[fill(x) for x in words])
        if words[0] == "create":
            box = r.stdout.strip()
        pattern = [p.replace("NAME", name).replace("ID", box) if p != ID + r"\n" else p for p in (out, err)]
        check(r, rc, *pattern, what=f"row {row} {words[0]} {words[1]}")


@test("the binds that inspect names are the top mounts of mountinfo with the same mode")
def _(w):
    inner, other = os.path.join(w.ws, "inner"), os.path.join(w.top, "other")
    for d in (inner, other):
        os.mkdir(d)
        if os.getuid() == 0:
            os.chown(d, w.uid, w.uid)
    w.box("-v", f"{inner}:/workspace/inner:ro,z", "-v", f"{other}:/data")
    said = json.loads(w("inspect", "--format", MOUNTS, "box").stdout)["Mounts"]
    same({m["Destination"] for m in said}, {"/workspace", "/workspace/inner", "/data"})
    lines = [line.split(" ") for line in w("exec", "box", "cat", "/proc/self/mountinfo").stdout.splitlines()]
    for m in said:
        top = [f for f in lines if f[4] == m["Destination"]]
        same(len(top), 1, f"mounts at {m['Destination']}")
        same(top[0][5].split(",")[0], "rw" if m["RW"] else "ro", m["Destination"])
    same(w("exec", "box", "touch", "/data/new").returncode, 0)
    same(os.stat(os.path.join(other, "new")).st_uid, w.uid, "owner of a new file")
    need(w("exec", "box", "touch", "/workspace/inner/new").returncode != 0, "a read-only bind was written")


# ---- exec ----

@test("exec gives exit codes, signals and what cannot be run as docker does")
def _(w):
    box = w.box()
    pre = "OCI runtime exec failed: exec failed: unable to start container process: "
    check(w("exec", "box", "sh", "-c", "exit 7"), 7, "", "")
    check(w("exec", "box", "sh", "-c", "kill -9 $$"), 137, "", "")
    check(w("exec", "box", "nope"), 127, "", re.escape(pre + 'exec: "nope": executable file not found in $PATH: unknown\n'))
    check(w("exec", "box", "/etc/passwd"), 126, "", re.escape(pre + 'exec: "/etc/passwd": permission denied: unknown\n'))
    check(w("exec", "-w", "/x", "box", "true"), 126, "",
          re.escape(pre + 'chdir to cwd ("/x") set in config.json failed: no such file or directory: unknown\n'))
    check(w("exec", "nobox", "true"), 1, "", "Error response from daemon: No such container: nobox\n")
    check(w("exec", "box"), 1, "", ".*requires at least 2 arguments.*")
    check(w("exec", "--frob", "box", "true"), 125, "", "unknown flag: --frob\nSee 'docker exec --help'.\n")
    check(w("exec", "--privileged", "box", "true"), 1, "", "Error response from daemon: .*refused.*")
    check(w("exec", "-it", "box", "true"), 1, "", "the input device is not a TTY\n")
    check(w("exec", box[:12], "echo", "by prefix"), 0, "by prefix\n", "")
    same(w("stop", "-t", "0", "box").returncode, 0)
    check(w("exec", "box", "true"), 1, "", f"Error response from daemon: container {box} is not running\n")


@test("exec carries stdin with -i, none without, and 8 MiB of output")
def _(w):
    w.box()
    data = os.urandom(300000)
    same(w("exec", "-i", "box", "cat", input=data, text=False).stdout, data, "stdin")
    same(w("exec", "box", "cat", input="not for you").stdout, "", "without -i")
    r = w("exec", "box", "head", "-c", str(8 << 20), "/dev/zero", text=False)
    same((r.returncode, len(r.stdout)), (0, 8 << 20))


@test("exec: variables of -e, of --env-file and of the caller; -e wins; the box's own stay")
def _(w):
    w.box("-e", "BOX=1", "-e", "A=box")
    f = w.file("env", "A=file\nB=file\nFROM_HERE\n# no\n\n  C=indented")
    r = w("exec", "-e", "B=flag", "--env-file", f, "-e", "FROM_THERE", "box", "sh", "-c",
          "echo $A $B $C $BOX $FROM_HERE $FROM_THERE", env={"FROM_HERE": "here", "FROM_THERE": "there"})
    same(r.stdout, "file flag indented 1 here there\n")


@test("exec drops folders of OPENCLAW_PREPEND_PATH that the box does not have, never to nothing")
def _(w):
    w.box()
    show = ("box", "sh", "-c", "echo $OPENCLAW_PREPEND_PATH")
    name = "OPENCLAW_PREPEND_PATH="
    same(w("exec", "-e", name + f"{w.home}/bin:/usr/bin:relative::/bin:{w.top}", *show).stdout, "/usr/bin:/bin\n")
    left = w("exec", "-e", name + f"{w.home}:..:", *show).stdout.strip()
    need(left and not any(p == "" or p[0] != "/" for p in left.split(":")), left)


@test("a command ends when the client that started it is killed")
def _(w):
    w.box()
    marker = "75319642"
    p = w.start("exec", "-i", "box", "sh", "-c", f"sleep {marker} & sleep {marker}; true", stdin=subprocess.PIPE)
    need(wait_for(lambda: alive(marker)), "it did not start")
    p.send_signal(signal.SIGKILL)
    p.wait()
    p.stdin.close()
    need(wait_for(lambda: not alive("sleep\0" + marker)), "it lives on")
    same(w("exec", "box", "echo", "fine").stdout, "fine\n")


@test("exec -d returns at once and its command goes on until the box ends")
def _(w):
    w.box()
    check(w("exec", "-d", "box", "sh", "-c", "sleep 0.5; touch /workspace/done; sleep 64738291"), 0, "", "")
    need(wait_for(lambda: os.path.exists(os.path.join(w.ws, "done"))), "it did not go on")
    same(w("rm", "-f", "box").returncode, 0)
    need(wait_for(lambda: not alive("64738291")), "it outlived the box")


@test("twenty commands at once in one box")
def _(w):
    w.box()
    ps = [w.start("exec", "-i", "box", "sh", "-c", f"sleep 0.2; echo {i} > f{i}", stdin=subprocess.DEVNULL) for i in range(20)]
    same([p.wait(60) for p in ps], [0] * 20)
    same(len([f for f in os.listdir(w.ws) if f[0] == "f"]), 20)


# ---- bad input ----

@test("a name is taken once, and free again after rm")
def _(w):
    box = w.box(start=False)
    check(w("create", "--name", "box", "--network", "none", IMAGE, "true"), 1, "",
          f'Error response from daemon: Conflict. The container name "/box" is already in use by container "{box}". '
          r"You have to remove \(or rename\) that container to be able to reuse that name.\n")
    same(w("rm", "box").returncode, 0)
    w.box(start=False)


@test("unknown boxes are named by every verb")
def _(w):
    for words in (["start", "no"], ["stop", "no"], ["kill", "no"], ["restart", "no"], ["pause", "no"], ["unpause", "no"],
                  ["rm", "no"], ["logs", "no"], ["top", "no"], ["wait", "no"], ["port", "no"], ["cp", "no:/x", "."],
                  ["stats", "--no-stream", "no"], ["exec", "no", "true"]):
        check(w(*words), 1, "", "Error response from daemon: (cannot kill container: no: )?No such container: no\n"
                                "(Error: failed to start containers: no\n)?", what=words[0])
    check(w("rm", "-f", "no"), 0, "", "Error response from daemon: No such container: no\n")
    check(w("inspect", "no"), 1, r"\[\]\n", "Error: No such object: no\n")
    check(w("inspect", "-f", "{{.Id}}", "no"), 1, r"\n", "Error: No such object: no\n")


REFUSED = [
    ["--privileged"], ["--network", "host"], ["--net=host"], ["--network", "container:x"], ["--cap-add", "SYS_ADMIN"],
    ["--device", "/dev/null"], ["--gpus", "all"], ["--pid", "host"], ["--ipc", "host"], ["--uts", "host"],
    ["--userns", "host"], ["--volumes-from", "x"], ["--security-opt", "seccomp=unconfined"],
    ["--security-opt", "apparmor=unconfined"], ["--restart", "always"], ["-v", "named:/x"], ["-v", "/tmp:/x:rshared"],
    ["-p", "80-90:80-90"], ["--memory", "4m"], ["--name", "-bad"], ["--platform", "linux/mips"],
]


@test("what a box must not have is refused with a reason, by create with 1, by run with 125, and nothing made")
def _(w):
    for flags in REFUSED:
        check(w("create", *flags, IMAGE, "true"), 1, "", r"Error response from daemon: .*\n", what=f"create {flags}")
        check(w("run", *flags, IMAGE, "true"), 125, "", r"docker: Error response from daemon: .*\n", what=f"run {flags}")
    same(w("ps", "-aq").stdout, "")
    check(w("create", "--frob", IMAGE), 125, "", "unknown flag: --frob\nSee 'docker create --help'.\n")
    check(w("create", "-Z", IMAGE), 125, "", "unknown shorthand flag: 'Z' in -Z\nSee 'docker create --help'.\n")
    check(w("create"), 1, "", ".*requires at least 1 argument.*")
    check(w("create", "--network", "none", "no-such-image", "true"), 1, "",
          "Unable to find image 'no-such-image:latest' locally\n"
          "Error response from daemon: No such image: no-such-image:latest\n.*")


@test("env files: no final newline, NUL, values of 1 MiB, missing, a name with blanks")
def _(w):
    secret = "s3cr3t-value"
    w.box("--env-file", w.file("a", "A=1\nB=2"))
    same(w("exec", "box", "sh", "-c", "echo $A $B").stdout, "1 2\n")
    cases = [(b"A=" + secret.encode() + b"\0\n", "NUL"), (b"A=" + secret.encode() * 90000, "bytes"),
             (f"A B={secret}\n".encode(), "whitespaces"), (f"={secret}\n".encode(), "no variable name")]
    for data, word in cases:
        f = w.file("bad", data)
        for status, before, words in ((125, "docker: ", ["create", "--network", "none", "--env-file", f, IMAGE, "true"]),
                                      (1, "", ["exec", "--env-file", f, "box", "true"])):
            r = w(*words)
            check(r, status, "", f"{before}.*{word}.*", what=f"{words[0]} {word}")
            need(secret not in r.stderr, "the value is in the message")
    check(w("exec", "--env-file", "/nonexistent", "box", "true"), 1, "", "open /nonexistent: no such file or directory\n")
    f = w.file("most", "A=" + "x" * 131000)
    same(w("exec", "--env-file", f, "box", "sh", "-c", "echo ${#A}").stdout, "131000\n")


@test("a bind whose source is missing is left out and said; a link is followed once; closed folders are refused")
def _(w):
    real, link = os.path.join(w.top, "real"), os.path.join(w.top, "link")
    os.mkdir(real)
    with open(os.path.join(real, "here"), "w") as f:
        f.write("text")
    os.symlink(real, link)
    r = w("create", "--name", "b1", "--network", "none", "-v", f"{w.top}/missing:/missing", "-v", f"{link}:/link:ro", IMAGE, "sleep",
          "infinity")
    check(r, 0, ID + r"\n", r".*missing.*")
    said = json.loads(w("inspect", "--format", MOUNTS, "b1").stdout)["Mounts"]
    same([(m["Source"], m["Destination"]) for m in said], [(os.path.realpath(real), "/link")])
    same(w("start", "b1").returncode, 0)
    same(w("exec", "b1", "cat", "/link/here").stdout, "text")
    os.symlink("/etc", os.path.join(w.top, "etc"))
    for source in ("/", "/etc", "/proc", "/sys", "/dev", "/run", "/etc/ssl", os.path.join(w.top, "etc"), w.env["CLAWDEN_DATA_DIR"]):
        r = w("create", "--network", "none", "-v", f"{source}:/x", IMAGE, "true")
        check(r, 1, "", r"Error response from daemon: .*", what=source)
    check(w("create", "--network", "none", "--mount", f"type=bind,src={w.top}/missing,dst=/x", IMAGE, "true"), 1, "",
          ".*bind source path does not exist.*")


@test("rm refuses a running box and rm -f ends it with its commands")
def _(w):
    w.box()
    marker = "86421357"
    p = w.start("exec", "box", "sleep", marker, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    need(wait_for(lambda: alive("sleep\0" + marker)), "it did not start")
    check(w("rm", "box"), 1, "", ".*cannot remove container \"/box\": container is running.*")
    check(w("rm", "-f", "box"), 0, "box\n", "")
    need(p.wait(20) != 0, "a killed command ended with 0")
    need(not alive("sleep\0" + marker), "the command lives on")
    same(os.listdir(w.ws), [], "the bind is untouched")


@test("templates: mistakes exit 64, what does not fit exits 1, as docker's do")
def _(w):
    w.box(start=False)
    check(w("inspect", "-f", "{{", "box"), 64, "", "template parsing error: template: :1: unclosed action\n")
    check(w("inspect", "-f", "{{frob .Id}}", "box"), 64, "", 'template parsing error: .*function "frob" not defined\n')
    check(w("inspect", "-f", "{{.Nope}}", "box"), 1, r"\n", 'template parsing error: .*map has no entry for key "Nope"\n')
    same(w("inspect", "-f", "json", "box").stdout[:2], "[{")
    o = json.loads(w("inspect", "box").stdout)[0]
    same((o["Name"], o["State"]["Status"], o["HostConfig"]["Privileged"], o["ClawDen"]["Root"]), ("/box", "created", False, "host"))
    same(w("inspect", "-f", "{{.Id}}", "box", "no").returncode, 1)


# ---- the other verbs ----

@test("defaults are 256 processes, 1 GiB, /tmp of 500 MB; what is given replaces them")
def _(w):
    w.box(start=False)
    values = "{{.HostConfig.PidsLimit}} {{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}"
    same(w("inspect", "-f", values, "box").stdout, f"256 {1 << 30} 0\n")
    w.box("--memory", "64m", "--pids-limit", "20", "--cpus", "0.5", name="small")
    same(w("inspect", "-f", values, "small").stdout, f"20 {64 << 20} 500000000\n")
    same(w("exec", "small", "sh", "-c", "df -k /tmp | tail -1 | tr -s ' ' | cut -d' ' -f2").stdout, "512000\n")
    r = w("create", "--name", "plain", "--network", "none", IMAGE, "sleep", "infinity")
    check(r, 0)
    same(w("inspect", "-f", "{{json .HostConfig.Tmpfs}} {{json .Mounts}} {{index .ClawDen.Scratch \"/tmp\"}}", "plain").stdout,
         f"null [] {500 << 20}\n")


@test("run: streams, exit code, --rm, -d, logs, wait")
def _(w):
    net = ("--network", "none")
    check(w("run", "--rm", *net, IMAGE, "sh", "-c", "echo out; exit 5"), 5, "out\n")
    check(w("run", "--rm", "-i", *net, IMAGE, "cat", input="in"), 0, "in")
    check(w("run", "--rm", *net, IMAGE, "nope"), 127, "", ".*executable file not found in \\$PATH: unknown\n")
    check(w("run", "--rm", *net, "--entrypoint", "echo", IMAGE, "word"), 0, "word\n")
    same(w("ps", "-aq").stdout, "")
    check(w("run", "-d", "--name", "bg", *net, IMAGE, "sh", "-c", "echo one; echo two; sleep 0.3; echo three; exit 4"), 0, ID + "\n")
    check(w("logs", "-f", "bg"), 0, "one\ntwo\nthree\n")
    check(w("logs", "--tail", "1", "bg"), 0, "three\n")
    check(w("wait", "bg"), 0, "4\n")
    same(w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "bg").stdout, "exited 4\n")
    check(w("run", "-d", "--rm", "--name", "gone", *net, IMAGE, "true"), 0, ID + "\n")
    need(wait_for(lambda: w("inspect", "gone").returncode == 1), "--rm left it")


@test("ps: states, filters, templates, tables, ids")
def _(w):
    a = w.box("--label", "k=v", "--label", "x", name="alpha")
    b = w.box("--label", "k=w", name="beta", start=False)
    same(w("ps", "--format", "{{.Names}}").stdout, "alpha\n")
    same(sorted(w("ps", "-a", "--format", "{{.Names}} {{.State}}").stdout.split("\n")), ["", "alpha running", "beta created"])
    same(w("ps", "-aq", "--no-trunc", "--filter", "name=alp").stdout, a + "\n")
    same(w("ps", "-aq", "--filter", "id=" + b[:10]).stdout, b[:12] + "\n")
    same(w("ps", "-aq", "--filter", "label=k=w").stdout, b[:12] + "\n")
    same(w("ps", "-aq", "--filter", "label=x", "--filter", "label=k=w").stdout, "")
    same(w("ps", "-q", "--filter", "status=created").stdout, b[:12] + "\n")
    same(w("ps", "-a", "--filter", "label=k=v", "--format", r'{{.Label "k"}}\t{{.Image}}').stdout, f"v\t{IMAGE}\n")
    table = w("ps", "-a").stdout.split("\n")
    need(table[0].startswith("CONTAINER ID   IMAGE ") and table[0].endswith("NAMES"), table[0])
    same(len(table), 4)
    same({json.loads(x)["Names"] for x in w("ps", "-a", "--format", "json").stdout.splitlines()}, {"alpha", "beta"})
    check(w("ps", "--filter", "frob"), 125, "", "invalid argument.*")


@test("stop, kill, restart, pause and unpause change what inspect says")
def _(w):
    w.box()

    def status():
        return w("inspect", "-f", "{{.State.Status}}", "box").stdout.strip()
    check(w("pause", "box"), 0, "box\n", "")
    same(status(), "paused")
    check(w("pause", "box"), 1, "", ".*already paused\n")
    check(w("unpause", "box"), 0, "box\n", "")
    same(status(), "running")
    check(w("restart", "-t", "0", "box"), 0, "box\n", "")
    same(status(), "running")
    check(w("kill", "box"), 0, "box\n", "")
    same(status(), "exited")
    check(w("kill", "box"), 1, "", ".*is not running\n")
    check(w("start", "box"), 0, "box\n", "")
    check(w("stop", "-t", "0", "box"), 0, "box\n", "")
    same(status(), "exited")
    check(w("kill", "-s", "FROB", "box"), 1, "", ".*invalid signal: FROB\n")


@test("a signal is the main command's, and the box ends with it; a stop does not wait in vain")
def _(w):
    how = ("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}")
    w.box(command=("sleep", "500"))
    check(w("kill", "-s", "TERM", "box"), 0, "box\n", "")
    check(w("wait", "box"), 0, "143\n", "")
    same(w("start", "box").returncode, 0)
    begun = time.monotonic()
    check(w("stop", "box"), 0, "box\n", "")
    need(time.monotonic() - begun < 8, "the whole grace was waited for")
    same(w(*how, "box").stdout, "exited 143\n")
    w.box(name="heeds", command=("sh", "-c", "trap 'echo got > got; exit 5' USR1; echo up > up; while :; do sleep 0.05; done"))
    need(wait_for(lambda: os.path.exists(os.path.join(w.ws, "up"))), "it did not start")
    check(w("kill", "-s", "USR1", "heeds"), 0)
    check(w("wait", "heeds"), 0, "5\n", "")
    w.box(name="idle")
    check(w("kill", "-s", "WINCH", "idle"), 0)
    same(w(*how, "idle").stdout, "running 0\n")
    check(w("kill", "-s", "TERM", "idle"), 0)
    same(w(*how, "idle").stdout, "exited 143\n")


@test("a main command that reads waits with -di, and its log outlives a restart")
def _(w):
    check(w("run", "-di", "--name", "box", "--network", "none", IMAGE, "sh", "-c", "echo begun; cat; echo ended"), 0, ID + "\n")
    need(wait_for(lambda: w("logs", "box").stdout == "begun\n"), w("logs", "box").stdout)
    same(w("inspect", "-f", "{{.State.Running}}", "box").stdout, "true\n")
    same(w("restart", "-t", "1", "box").returncode, 0)
    need(wait_for(lambda: w("logs", "box").stdout == "begun\nbegun\n"), w("logs", "box").stdout)


@test("cp: files and folders both ways, links as links, nothing of a stopped box")
def _(w):
    w.box()
    src = os.path.join(w.top, "src")
    os.makedirs(os.path.join(src, "sub"))
    for name, text in (("a", "A"), ("sub/b", "B" * 200000)):
        with open(os.path.join(src, name), "w") as f:
            f.write(text)
    os.symlink("/etc/passwd", os.path.join(src, "link"))
    os.chmod(os.path.join(src, "a"), 0o4755)
    check(w("cp", src, "box:/tmp/new"), 0, "", "")
    same(w("exec", "box", "sh", "-c", "cat /tmp/new/a; wc -c < /tmp/new/sub/b; readlink /tmp/new/link; stat -c %a /tmp/new/a").stdout,
         "A200000\n/etc/passwd\n755\n")
    same(w("exec", "box", "stat", "-c", "%u", "/tmp/new/a").stdout, f"{w.uid}\n", "owner in the box")
    check(w("cp", src, "box:/tmp/new"), 0, "", "")
    same(w("exec", "box", "cat", "/tmp/new/src/a").stdout, "A", "into a folder that is there")
    check(w("cp", "box:/tmp/new/.", os.path.join(w.top, "back")), 0, "", "")
    with open(os.path.join(w.top, "back/sub/b")) as f:
        same(f.read(), "B" * 200000)
    same(os.readlink(os.path.join(w.top, "back/link")), "/etc/passwd")
    w("exec", "box", "sh", "-c", "echo own > /tmp/own; ln -s /tmp/own /tmp/lead")
    check(w("cp", "-L", "box:/tmp/lead", os.path.join(w.top, "led")), 0, "", "")
    with open(os.path.join(w.top, "led")) as f:
        same(f.read(), "own\n", "what a link of the box leads to, in the box")
    check(w("cp", "-L", "box:tmp/new/link", os.path.join(w.top, "passwd")), 0, "", "")
    with open(os.path.join(w.top, "passwd")) as f:
        need("sandbox" in f.read(), "the host's /etc/passwd came out of the box")
    check(w("cp", "box:/no/such", w.top), 1, "", "Error response from daemon: Could not find the file /no/such in container box\n")
    check(w("cp", "a", "b"), 1, "", "must specify at least one container source\n")
    check(w("cp", "box:/a", "box:/b"), 1, "", "copying between containers is not supported\n")
    w("stop", "-t", "0", "box")
    check(w("cp", "box:/tmp/new/a", w.top), 1, "", ".*not running.*")


@test("cp cannot be led out of the box by links that the box makes")
def _(w):
    w.box()
    outside = w.file("outside", "host's own")
    w("exec", "box", "sh", "-c", f"ln -s {outside} /tmp/out; ln -s {w.top} /tmp/dir; ln -s / /tmp/root")
    check(w("cp", w.file("in", "box's"), "box:/tmp/out"), 1, "", ".*")
    check(w("cp", os.path.join(w.top, "in"), "box:/tmp/dir/outside"), 1, "", ".*")
    with open(outside) as f:
        same(f.read(), "host's own")
    got = os.path.join(w.top, "got")
    w("cp", f"box:/tmp/root{outside}", got)
    need(not os.path.exists(got), "a file of the host came out of the box")


@test("networks are names; published ports are named by inspect, port and ps while the box runs")
def _(w):
    r = w("create", "--name", "n1", "-p", "127.0.0.1::9222", "-p", "9223", "-p", "9224/udp", IMAGE, "sleep", "infinity")
    check(r, 0, ID + "\n", "(.*\n)?clawden: --publish 9223/tcp: on 127.0.0.1 alone.*\nclawden: --publish 9224/udp: .*only TCP.*\n")
    o = json.loads(w("inspect", "n1").stdout)[0]
    same((o["NetworkSettings"]["Ports"], o["Warnings"]), ({}, []))
    same(o["HostConfig"]["PortBindings"]["9222/tcp"], [{"HostIp": "127.0.0.1", "HostPort": ""}])
    check(w("port", "n1", "9222"), 1, "", "Error: No public port '9222/tcp' published for n1\n")
    check(w("start", "n1"), 0, "n1\n", "")
    at = w("port", "n1", "9222").stdout
    need(re.fullmatch(r"127\.0\.0\.1:\d+\n", at), at)
    bound = json.loads(w("inspect", "n1").stdout)[0]["NetworkSettings"]["Ports"]
    same((bound["9222/tcp"], bound["9224/udp"]), ([{"HostIp": "127.0.0.1", "HostPort": at.strip().split(":")[1]}], []))
    need(f"{at.strip()}->9222/tcp" in w("ps").stdout, w("ps").stdout)
    check(w("create", "-p", "0.0.0.0:80:80", IMAGE), 1, "", ".*loopback alone.*")
    r = w("create", "--name", "n2", "--network", "none", "-p", "9222", IMAGE, "sleep", "infinity")
    check(r, 0, ID + "\n", "(.*\n)?clawden: --publish is recorded; with --network none nothing is forwarded\n")
    same(len(json.loads(w("inspect", "n2").stdout)[0]["Warnings"]), 1)
    same(w("network", "rm", "bridge").returncode, 1)
    check(w("network", "create", "--driver", "overlay", "x1"), 1, "", ".*overlay.*")
    check(w("network", "create", "x1"), 0)
    need("x1" in w("network", "ls").stdout, "ls")
    check(w("network", "rm", "x1"), 0, "x1\n", "")
    check(w("network", "inspect", "x1"), 1, r"\[\]\n", ".*not found\n")


@test("top and stats show a running box")
def _(w):
    w.box()
    p = w.start("exec", "box", "sleep", "5", stdin=subprocess.DEVNULL)
    need(wait_for(lambda: "sleep 5" in w("top", "box").stdout), "top")
    same(w("top", "box").stdout.count("clawden-init"), 1, "of our own processes only init is shown")
    r = w("stats", "--no-stream", "--format", "{{.Name}} {{.PIDs}} {{.MemUsage}}")
    check(r, 0, r"box [1-9]\d* [\d.]+[KM]?i?B / 1GiB\n", "")
    p.kill()
    p.wait()


@test("help teaches, and what is not there says what to do instead")
def _(w):
    for words in ([], ["help"], ["--help"], ["help", "exec"], ["create", "--help"], ["image"], ["network"], ["ps", "--help"]):
        r = w(*words)
        need(r.returncode == 0 and "docker" in r.stdout and not r.stderr, f"{words}: {r}")
    for verb in ("build", "compose", "login", "rename", "volume", "events", "attach"):
        check(w(verb, "x"), 1, "", f"docker: '{verb}' is not part of ClawDen's drop-in docker: .+\n")
    check(w("frob"), 1, "", "docker: unknown command: docker frob\nSee 'docker --help'.\n")
    check(w("--version"), 0, r"Docker version \d.*\n", "")
    o = json.loads(w("info", "--format", "json").stdout)
    same((o["Containers"], o["OSType"]), (0, "linux"))


@test("values of variables are on no command line and in no message")
def _(w):
    secret = "v4lue-not-to-be-seen"
    w.box("-e", "A=" + secret, start=False)
    same(w("start", "box").returncode, 0)
    f = w.file("env", "B=" + secret + "\n")
    p = w.start("exec", "--env-file", f, "box", "sleep", "97531864", stdin=subprocess.DEVNULL)
    need(wait_for(lambda: alive("97531864")), "it did not start")
    need(not alive(secret), "a value is on a command line")
    p.kill()
    p.wait()
    need(secret not in w("exec", "box", "nope").stderr, "a value is in a message")


# ---- images ----

def make_image(w, docker):
    """A `docker save` of one layer: its only program is the drop-in itself, which is static."""
    def tar(path, members):
        with tarfile.open(path, "w") as t:
            for name, data, mode in members:
                i = tarfile.TarInfo(name)
                i.size, i.mode = len(data), mode
                if name.endswith("/"):
                    i.type = tarfile.DIRTYPE
                t.addfile(i, io.BytesIO(data))
    with open(docker, "rb") as f:
        program = f.read()
    layer = os.path.join(w.top, "layer.tar")
    tar(layer, [("bin/", b"", 0o755), ("bin/docker", program, 0o755), ("work/", b"", 0o755), ("tmp/", b"", 0o1777),
                ("proc/", b"", 0o755), ("dev/", b"", 0o755)])
    with open(layer, "rb") as f:
        data = f.read()
    config = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine), "os": "linux",
              "config": {"Entrypoint": ["/bin/docker"], "Cmd": ["--version"], "Env": ["PATH=/bin", "A=image", "B=image"],
                         "WorkingDir": "/work", "User": f"{w.uid}:{w.uid}", "Labels": {"kind": "test"}},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest()]}}
    text = json.dumps(config).encode()
    name = hashlib.sha256(text).hexdigest()
    path = os.path.join(w.top, "image.tar")
    folder = hashlib.sha256(data).hexdigest() + "/"
    manifest = [{"Config": name + ".json", "RepoTags": ["tiny:1"], "Layers": [folder + "layer.tar"]}]
    tar(path, [("manifest.json", json.dumps(manifest).encode(), 0o644), (name + ".json", text, 0o644), (folder, b"", 0o755),
               (folder + "layer.tar", data, 0o644)])
    return path, name


@test("an image's entrypoint, cmd, env, folder and user are the box's; flags win")
def _(w):
    beside = os.path.dirname(os.path.realpath(w.docker))
    pull = [p for p in (os.path.join(beside, "clawden-pull"), os.path.join(beside, "../../../bin/clawden-pull")) if os.path.exists(p)]
    if not pull:
        raise Skip("clawden-pull is not there")
    path, config = make_image(w, os.path.realpath(w.docker))
    r = subprocess.run([pull[0], "import", path], env=w.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    same(r.returncode, 0, r.stdout)
    net = ("--network", "none")
    check(w("run", "--rm", *net, "tiny:1"), 0, "Docker version .*\n")
    check(w("run", "--rm", *net, "tiny:1", "frob"), 1, "", ".*unknown command: docker frob.*")
    check(w("run", "--rm", *net, "--entrypoint", "/bin/docker", "tiny:1", "help"), 0, "docker: .*")
    check(w("run", "--rm", *net, "--entrypoint", "", "tiny:1"), 125, "", ".*no command specified\n")
    check(w("create", "--name", "box", *net, "-e", "B=flag", "tiny:1"), 0, ID + "\n", "")
    o = json.loads(w("inspect", "box").stdout)[0]
    same((o["Config"]["User"], o["Config"]["WorkingDir"], o["ClawDen"]["Root"], o["Image"]),
         (f"{w.uid}:{w.uid}", "/work", "image", "sha256:" + config))
    same(sorted(o["Config"]["Env"]), ["A=image", "B=flag", "PATH=/bin"])
    same(w("image", "inspect", "-f", '{{ index .Config.Labels "kind" }}', "tiny:1").stdout, "test\n")
    same(w("ps", "-a", "--filter", "label=kind=test", "--format", "{{.Names}}").stdout, "box\n")
    check(w("rmi", "tiny:1"), 1, "", '.*conflict: unable to remove repository reference "tiny:1" .*is using its referenced image.*')
    same(w("images", "--format", "{{.Repository}}:{{.Tag}}").stdout, "tiny:1\n")
    check(w("cp", "box:/bin/docker", os.path.join(w.top, "out")), 0, "", "")
    same(os.path.getsize(os.path.join(w.top, "out")), os.path.getsize(w.docker), "out of a box that never ran")
    check(w("cp", w.file("in", "text"), "box:/tmp/in"), 0, "", "")
    same(w("inspect", "-f", "{{.State.Status}} {{.State.StartedAt}}", "box").stdout, "created 0001-01-01T00:00:00Z\n")
    same(w("rm", "box").returncode, 0)
    same(w("rmi", "tiny:1").returncode, 0)
    check(w("image", "inspect", "tiny:1"), 1, r"\[\]\n", ".*No such image: tiny:1\n")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--docker", default=os.path.join(HERE, "../../build/libexec/clawden/bin/docker"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    args = a.parse_args()
    return run("DOCKER", lambda: World(os.path.abspath(args.docker)), args.only, args.label)


if __name__ == "__main__":
    sys.exit(main())
