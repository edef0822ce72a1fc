#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same command lines to a real docker and to our drop-in; status, stdout and stderr are compared. Prints TAP.

  docker_real.py [--docker FILE] [--bin DIR] [--dockerd FILE] [--only WORD]

Needs root and the programs of `scripts/deps dockerd`, and is skipped without. The engine (tests/dockerd) is this run's own,
in a folder of its own; so are the boxes. What is different on purpose stands in DIFFERENT, with the reason.
"""
import argparse
import concurrent.futures
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

from tap import TESTS, default_label, need, run, same, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE, BARE = "tiny:1", "bare:1"  # the second has no /etc/hosts
NONE = ("--network", "none")
SLEEP = (*NONE, IMAGE, "sleep", "1000")

# ---- what is different, and why ----

OLD = "docker 20.10's words; ours are those of later versions"
OLD_END = "docker 20.10 ends with a full stop and a line that points at its help; later versions say both differently"
EARLY = "found out when the box is made, not when it is started"
NO_VOLUMES = "ClawDen keeps no volumes: a folder that nobody named would hide what is written to it"
LIMITS = "a box has limits even if nobody names one"
INIT = "a box always has an init, so its command is not process 1, which the kernel shields from signals"
NO_FILE = "a file of docker's, not of ours"
ONE_LOG = "one file keeps the two streams in the order in which they were written; it does not tell them apart"
NO_TIMES = "the log holds what was written, not when; that is said instead of showing everything"
ENDS = "a command ends with whoever asked for it: an agent's timeout kills the client, and means the command"
HOSTS = "an image that has no /etc/hosts and is not to be changed has no place for one"
GO = "docker prints Go's own structures; ours has JSON alone"
NAMES_ONLY = "said on stderr, because it is so: networks are names"

# (command line, part of the answer, what docker says, what ours says, reason): all but the part and the reason are patterns;
# <1> in the fourth is the first group of the third. A part is status, stdout, stderr, a field of inspect or a column, or
# stream: where the text stands. What no longer differs must be taken out: the last test sees to that.
DIFFERENT = [
    (r".*", "stderr", r"Error: No such (container|image): (\S+)\n", r"Error response from daemon: No such <1>: <2>\n", OLD),
    (r"image inspect missing absent", "stderr", r"(Error: No such image: \w+\n){2}", r"(Error response from daemon: No such image: \w+\n){2}", OLD),
    (r"rm -f box missing", "stderr", r"(Error: No such container: \w+\n){2}", r"(Error response from daemon: No such container: \w+\n){2}", OLD),
    (r"network .*", "stderr", r"Error: No such network: (\S+)\n", r"Error response from daemon: network <1> not found\n", OLD),
    (r"cp .*", "stderr", r"Error: No such container:path: (\w+):(/.+)\n",
     r"Error response from daemon: Could not find the file <2> in container <1>\n", OLD),
    (r"cp .*missing:.*", "stderr", r"Error: No such container:path: missing:/x?\n", r"Error response from daemon: No such container: missing\n", OLD),
    (r"cp box:/work/d/a/ .*", "stderr", r"Error response from daemon: lstat TOP/.*: not a directory\n",
     r"Error response from daemon: open '/work/d/a/': Not a directory\n", "docker's names the place where it keeps the box's files"),
    (r".*", "stderr", r"Error response from daemon: Container <id> is not running\n",
     r"Error response from daemon: container <id> is not running\n", OLD),
    (r"kill .*", "stderr", r"Error response from daemon: Cannot kill container: (\w+): (C?)(o?.*)\n",
     r"Error response from daemon: cannot kill container: <1>: c?<3>\n", OLD),
    (r"kill -s .*", "stderr", r"Error response from daemon: Invalid signal: (\w+)\n", r"Error response from daemon: invalid signal: <1>\n", OLD),
    (r"ps .*", "stderr", r"Error response from daemon: Invalid filter '(.*)'\n", r"Error response from daemon: invalid filter '<1>'\n", OLD),
    (r"stop -t x box", "stderr", r"invalid argument \"x\" for \"-t, --time\" flag: (.*)",
     r"invalid argument \"x\" for \"-t, --timeout\" flag: <1>", OLD),
    (r"rm( still missing)? box", "stderr",
     r"(Error: No such container: missing\n)?Error response from daemon: You cannot remove a running container <id>.*\n",
     r"(Error response from daemon: No such container: missing\n)?Error response from daemon: cannot remove container \"/box\": container is running: .*\n", OLD),
    (r"rm box", "stderr", r"Error response from daemon: You cannot remove a paused container <id>\..*\n",
     r"Error response from daemon: cannot remove container \"/box\": container is paused and must be unpaused first\n", OLD),
    (r".*", "stderr", r"\"docker ([a-z ]+)\" (?:requires|accepts) .*",
     r"docker: 'docker <1>' (requires|accepts) .* arguments?\n\nUsage:  docker <1> .*", OLD),
    (r"create --dns bad .*", "stderr", r"(.*): bad is not an ip address\n(.*)", r"<1>: IP address is not correctly formatted: bad\n<2>", OLD),
    (r"create -p .*", "stderr", r"docker: Invalid containerPort: (\w+)\.\n(.*)", r"docker: invalid containerPort: <1>\n<2>", OLD),
    (r"create --env-file .*", "stderr", r"docker: (.*?)\.\n(.*)", r"docker: <1>\n<2>", OLD_END),
    (r"run .*--entrypoint .*", "stderr", r"docker: Error response from daemon: No command specified\.\n.*",
     r"docker: Error response from daemon: no command specified\n", OLD),
    (r"run .*", "stderr", r"(docker: Error response from daemon: .*?)\.?\nSee 'docker run --help'\.\n", r"<1>\.?\n", OLD_END),
    (r"run .*-u nouser .*", "stderr", r"(.*)\.\n", r"<1>\n", OLD_END),
    (r"run .*", "stderr", r"(docker: Error response from daemon: )(failed to create shim task: OCI runtime create failed: )runc create failed: (.*?)\.\n",
     r"<1>failed to create task for container: <2><3>\n", "the words of later versions; there is no runc here"),
    (r"start (-a )?(bad|none)", "stderr", r"(Error response from daemon: )(failed to create shim task: OCI runtime create failed: )runc create failed: (.*)",
     r"<1>failed to create task for container: <2><3>", "the words of later versions; there is no runc here"),
    (r"\w*frob", "stderr", r"docker: 'frob' is not a docker command\.\n.*", r"docker: unknown command: docker frob\n.*", OLD),
    (r"(container|image|network) frob", "stderr", r"\nUsage:  docker (\w+) COMMAND\n.*", r"docker: unknown command: docker <1> frob\n.*", OLD),
    (r"--frob ps", "stderr", r"(unknown flag: --frob\nSee 'docker --help'\.\n).+", r"<1>", "docker 20.10 prints its whole help behind it"),
    (r"(\w+) a( b)?", "stderr", r".*\n", r"docker: '\w+' is not part of ClawDen's drop-in docker: .+\n", "not there; what to do instead is"),
    (r"create --pull frob .*", "status", r"0", r"125", OLD),
    (r"create --pull frob .*", "stdout", r"<id>\n", r"", OLD),
    (r"create --pull frob .*", "stderr", r"", r"invalid argument .*must be one of .*", OLD),

    (r"exec .*", "stream", r"stdout", r"stderr",
     "docker 20.10 writes why a command could not be run where its output would be; later versions and ours do not"),
    (r"exec .*", "status", r"126", r"127", "docker 20.10 gives 126 for a command that is not there; later versions and shells give 127"),
    (r"exec .*/etc/text.*", "stderr", r"(.*): Are you trying to mount a directory onto a file.*\n", r"<1>\n", "advice for somebody else"),
    (r"exec -u -1 .*", "stderr", r"uids and gids must be in range .*\n", r"unable to find user -1: .*\n", "a number is written without a sign"),
    (r"exec -u agent box id", "stdout", r"(.*) groups=50\(staff\),1001\(agents\)\n", r"<1>\n", "a command of a box has its group and no others"),
    (r"(exec|create) -e .*", "stderr", r"invalid argument .* invalid environment variable: .*",
     r"docker: invalid environment variable: no name before the '='\n.*",
     "what stands behind the '=' may be a secret, and is not repeated"),

    (r"exec box .*leep 4242'", "status", r"0", r"1", ENDS),
    (r"exec box .*leep 4242'", "stdout", r"1\n", r"0\n", ENDS),

    (r"create .*--dns 1.1.1.1 .*", "stderr", r"", r"clawden: --dns is recorded; .*\n", "a box asks the host's name servers, through the relay"),
    (r"run .*--read-only .*bare:1 .*/etc/hosts", "status", r"0", r"2", HOSTS),
    (r"run .*--read-only .*bare:1 .*/etc/hosts", "stdout", r"10.0.0.5\s+other\n", r"", HOSTS),
    (r"run .*--read-only .*bare:1 .*/etc/hosts", "stderr", r"", r".*No such file or directory\n", HOSTS),

    (r"(plain|full) .*", "Driver", r'"overlay2"', r'"clawden"', "it is what it is"),
    (r"(plain|full) .*", "HostConfig.Runtime", r'"runc"', r'"clawden"', "it is what it is"),
    (r"(plain|full) .*", "HostConfig.LogConfig", r'.*"json-file".*', r'.*"clawden".*', "it is what it is"),
    (r"plain .*", "HostConfig.Memory", r"0", r"1073741824", LIMITS),
    (r"plain .*", "HostConfig.PidsLimit", r"null", r"256", LIMITS),
    (r"(plain|full) .*", "HostConfig.ShmSize", r"67108864", r"524288000", "/dev/shm is part of the box's scratch space"),
    (r"(plain|full) .*", "LogPath", r'"TOP.*"', r'""', NO_FILE),
    (r"(plain|full) .*", "ResolvConfPath", r'"TOP.*"', r'""', NO_FILE),
    (r"(plain|full) .*", "HostnamePath", r'"TOP.*"', r'""', NO_FILE),
    (r"(plain|full) .*", "HostsPath", r'"TOP.*"', r'""', NO_FILE),
    (r"(plain|full) .*", "NetworkSettings.Networks", r'(.*"EndpointID": )"(?:<id>)?"(.*"NetworkID": )"<id>"(.*)', r'<1>""<2>""<3>',
     "networks are names"),
    (r"image", "Metadata", r".*LastTagTime.*", r"null", "when an image was last named is not kept"),
    (r"inspect -f {{.State}} box", "stdout", r"{running .*}\n", r"map\[.*\]\n", GO),
    (r"inspect -f {{split .*", "status", r"0", r"64", "templates have docker's functions except split, which would make a list"),
    (r"inspect -f {{split .*", "stdout", r"\[ box\]\n", r"", "templates have docker's functions except split, which would make a list"),
    (r"inspect -f {{split .*", "stderr", r"", r".*function \"split\" not defined\n",
     "templates have docker's functions except split, which would make a list"),
    (r"ps .*{{.Nope}}", "stderr", r"failed to execute template: (.*): can't evaluate field Nope in type \*formatter.ContainerContext\n",
     r'template parsing error: <1>: map has no entry for key "Nope"\n', GO),
    (r"version .*", "stderr", r"template: version:.*can't evaluate field Nope in type .*",
     r'template parsing error: .*map has no entry for key "Nope"\n', GO),
    (r"ps .*{{", "stderr", r"failed to parse template: (.*)", r"template parsing error: <1>", "the words of every other list"),
    (r"ps row .*", "Size", r"0B \(virtual .*\)", r"0B", "the layer of a box is not measured"),

    (r"ps -a --format {{.Names}}", "stdout", r"(.*\n)[a-z]+_[a-z]+\n(box\n)", r"<1>box-<short>\n<2>", "a name that says whose it is"),

    (r"create --cpus .*", "status", r"1", r"125", "a share of more processors than there are is no harm; what is no number is told as one"),
    (r"create --cpus .*", "stderr", r"Error response from daemon: Range of CPUs is from .*", r"invalid argument .*",
     "a share of more processors than there are is no harm; what is no number is told as one"),
    (r"create -v relative/path:/x .*", "stderr", r"Error response from daemon: create relative/path: .*",
     r"Error response from daemon: .*ClawDen keeps no named volumes.*", NO_VOLUMES),
    (r"create -v /etc .*", "status", r"0", r"1", NO_VOLUMES),
    (r"create -v /etc .*", "stdout", r"<id>\n", r"", NO_VOLUMES),
    (r"create -v /etc .*", "stderr", r"", r"Error response from daemon: .*ClawDen keeps none.*", NO_VOLUMES),
    (r"create --mount type=frob.*", "stderr", r".*: mount type unknown\n", r".*write type=bind or type=tmpfs\n", "what to write instead"),
    (r"create --restart frob .*", "stderr", r".*invalid restart policy 'frob'\n", r".*there is no daemon that would restart a box\n",
     "nothing restarts a box"),
    (r"create --tmpfs /x:frob .*", "status", r"0", r"1", EARLY),
    (r"create --tmpfs /x:frob .*", "stdout", r"<id>\n", r"", EARLY),
    (r"create --tmpfs /x:frob .*", "stderr", r"", r"Error response from daemon: invalid tmpfs option .*", EARLY),
    (r"create --user nouser .*", "status", r"0", r"1", EARLY),
    (r"create --user nouser .*", "stdout", r"<id>\n", r"", EARLY),
    (r"create --user nouser .*", "stderr", r"", r"Error response from daemon: unable to find user nouser: .*", EARLY),
    (r"create .* UPPER .*", "stderr", r"invalid reference format: .*", r"Error response from daemon: image 'UPPER': write NAME.*",
     "what to write instead"),

    (r"run .*kill -(9|TERM) \$\$.*", "status", r"0", r"137|143", INIT),
    (r"run .*echo \$\$", "stdout", r"1\n", r"\d+\n", INIT),
    (r"run .*ls /sys/class/net", "status", r"0", r"1", "a box has no /sys"),
    (r"run .*ls /sys/class/net", "stdout", r"lo\n", r"", "a box has no /sys"),
    (r"run .*ls /sys/class/net", "stderr", r"", r"ls: .*No such file or directory\n", "a box has no /sys"),
    (r"run .*/new/deep:/host .*", "status", r"0", r"1", "C19: a folder that is not there is left out, not made as root"),
    (r"run .*/new/deep:/host .*", "stderr", r"", r"docker: warning: bind 'WS/new/deep' is left out: .*",
     "C19: a folder that is not there is left out, not made as root"),
    (r"inspect .* bad(too)?", "stdout", r"created 127( failed to create .*)?\n", r"exited 127 ?\n",
     "it was started: its init ran, its command could not"),

    (r"cp box:/etc/text -", "status", r"0", r"1", "no tar streams; files and folders are copied as such"),
    (r"cp box:/etc/text -", "stdout", r"text\0.*", r"", "no tar streams; files and folders are copied as such"),
    (r"cp box:/etc/text -", "stderr", r"", r"Error response from daemon: tar streams are not supported .*",
     "no tar streams; files and folders are copied as such"),

    (r"logs --tail x? talk", "status", r"0", r"125", "what is no number is told, not taken for all"),
    (r"logs --tail x? talk", "stdout", r"line 1\n.*", r"", "what is no number is told, not taken for all"),
    (r"logs --tail x? talk", "stderr", r"", r"invalid argument .*", "what is no number is told, not taken for all"),
    (r"logs --since .*", "status", r"0", r"1", NO_TIMES),
    (r"logs --since .*", "stdout", r"line 1\n.*", r"", NO_TIMES),
    (r"logs --since .*", "stderr", r"", r"Error response from daemon: --since is not supported by ClawDen: .*", NO_TIMES),
    (r"logs (-f )?both", "stdout", r"out\nout2\n", r"out\nerr\nout2\n", ONE_LOG),
    (r"logs (-f )?both", "stderr", r"err\n", r"", ONE_LOG),
    (r"logs seen", "stdout", r"seen\n(.*)", r"<1>", "what an attached run writes goes to whoever started it, and nowhere else"),

    (r"top box -o .*", "status", r"0", r"1", "docker runs the host's ps for this; nothing of the host is run here"),
    (r"top box -o .*", "stdout", r"PID +COMMAND\n.*", r"", "docker runs the host's ps for this; nothing of the host is run here"),
    (r"top box -o .*", "stderr", r"", r"Error response from daemon: options of ps are not supported by ClawDen: .*",
     "docker runs the host's ps for this; nothing of the host is run here"),
    (r"port box frob", "stderr", r"strconv.ParseUint: .*", r"Error: No public port 'frob/tcp' published for box\n",
     "a port that is none is not published"),
    (r"network create --driver bridge mine", "stderr", r"", r"clawden: network 'mine' is a name only: .*", NAMES_ONLY),
    (r"network ls .*", "stdout", r"host\nnone\n", r"bridge\nnone\n", "this engine was started without a bridge; a box never has the host's network"),
]


# ---- an image for both ----

PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nagent:x:1000:1001:agent:/home/agent:/bin/sh\n"
GROUP = "root:x:0:\nnogroup:x:65534:\nstaff:x:50:agent\nagents:x:1001:\n"
CONFIG = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "KIND=tiny"], "Cmd": ["sh"], "WorkingDir": "/work", "Labels": {"of": "image"}}


def add(tar, name, data=None, mode=0o755, link=None):
    i = tarfile.TarInfo(name)
    i.mode, i.mtime = mode, 1700000000
    if link:
        i.type, i.linkname = tarfile.SYMTYPE, link
    elif data is None:
        i.type = tarfile.DIRTYPE
    else:
        i.size = len(data)
    tar.addfile(i, io.BytesIO(data or b""))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def make_layer(with_hosts):
    """Busybox under the names of its programs, the libraries that it needs, and a few users."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for d in ("bin", "etc", "home", "home/agent", "lib", "lib64", "proc", "root", "sys", "dev", "usr", "usr/bin", "work", "var", "run"):
            add(t, d)
        add(t, "tmp", mode=0o1777)
        for path in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", "/bin/busybox"], stdout=subprocess.PIPE, text=True).stdout):
            add(t, ("lib64/" if "/ld-" in path else "lib/") + os.path.basename(path), read(path))
        add(t, "bin/busybox", read("/bin/busybox"))
        for name in subprocess.run(["/bin/busybox", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split():
            if name != "busybox":
                add(t, "bin/" + name, link="busybox")
        add(t, "etc/passwd", PASSWD.encode(), 0o644)
        add(t, "etc/group", GROUP.encode(), 0o644)
        add(t, "etc/text", b"text\n", 0o644)
        if with_hosts:
            add(t, "etc/hosts", b"", 0o644)
    return out.getvalue()


def make_image(path, name, with_hosts=True):
    """What `docker save` writes: read by `docker load` and by `clawden image import`, with one id."""
    layer = make_layer(with_hosts)
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine), "os": "linux",
                         "created": "2026-01-02T03:04:05Z", "config": CONFIG,
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
    file = hashlib.sha256(config).hexdigest() + ".json"
    with tarfile.open(path, "w") as t:
        add(t, "manifest.json", json.dumps([{"Config": file, "RepoTags": [name], "Layers": [digest + "/layer.tar"]}]).encode(), 0o644)
        add(t, file, config, 0o644)
        add(t, digest)
        add(t, digest + "/layer.tar", layer, 0o644)


# ---- the two that are compared ----

class Answer:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __iter__(self):
        return iter((("status", str(self.status)), ("stdout", self.out), ("stderr", self.err)))


class Side:
    """One docker, with files of its own at WS."""

    def __init__(self, name, program, top, env):
        self.name, self.program, self.env = name, program, env
        self.ws = os.path.join(top, name)
        self.ids = {}

    def words(self, words):
        return [w.replace("@ID", self.ids.get("last", "none")).replace("@WS", self.ws) for w in words]

    def start(self, *words, **kw):
        return subprocess.Popen([self.program, *self.words(words)], env=self.env, cwd=self.ws, **kw)

    def __call__(self, *words, given=None, timeout=30):
        kw = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
        try:
            r = subprocess.run([self.program, *self.words(words)], env=self.env, cwd=self.ws, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=timeout, **kw)
        except subprocess.TimeoutExpired:
            return Answer(f"none after {timeout} s", "", "")
        if words[0] in ("create", "run") and re.fullmatch(rb"[0-9a-f]{64}\n", r.stdout):
            self.ids["last"] = self.ids[len(self.ids)] = r.stdout.decode().strip()
        return Answer(r.returncode, r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace"))

    def plain(self, text):
        """Without what is never the same: folders, ids, times."""
        text = text.replace(self.ws, "WS").replace(os.path.dirname(self.ws), "TOP")
        text = re.sub(r'"Mounts":(\[{.*?}\])', lambda m: '"Mounts":' + json.dumps(sorted(json.loads(m.group(1)), key=str)), text)  # in any order
        text = re.sub(r"\b\d[\d.]*[kMG]B\b", "<size>", text)
        text = re.sub(r"\b[0-9a-f]{64}\b", "<id>", text)
        for i in self.ids.values():
            text = text.replace(i[:12], "<short>")
        text = re.sub(r'time="\S+" level=error msg="error waiting for container: .*\n', "", text)  # docker's client says it now and then
        text = re.sub(r"(?m)^WARNING: .*\n", "", text)  # and its engine, of what a kernel lacks
        text = re.sub(r"\b2\d\d\d-\d\d-\d\dT[\d:]+(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>", text)
        text = re.sub(r"\b2\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} \w+", "<go-time>", text)
        text, n = re.subn(r"\b(Less than a second|\d+ (second|minute)s?|About a minute)\b", "<age>", text)
        return re.sub(r"  +", "  ", text) if n else text  # columns are as wide as the ages in them


class World:
    """Both, and what was found different in this test."""

    def __init__(self):
        self.found, self.rows = [], {}

    def note(self, line, part, real, ours):
        for d in DIFFERENT:
            said = d[1] == part and re.fullmatch(d[0], line) and re.fullmatch(d[2], real, re.S)
            if said and re.fullmatch(re.sub(r"<(\d)>", lambda m: re.escape(said.group(int(m.group(1)))), d[3]), ours, re.S):
                USED.add(d)
                return
        self.found.append(f"{line}\n{part}: docker {real!r}\n{part}: ours   {ours!r}")

    def compare(self, line, real, ours):
        if real.out.endswith("\r\n") and not real.err and not ours.out:
            self.note(line, "stream", "stdout", "stderr")
            real = Answer(real.status, "", real.out.replace("\r\n", "\n"))
        for (part, a), (_, b) in zip(real, ours):
            a, b = REAL.plain(a), OURS.plain(b)
            if a != b:
                self.note(line, part, a, b)

    def ask(self, *words, **kw):
        """The same words to both, at the same time."""
        return list(BOTH.map(lambda side: side(*words, **kw), (REAL, OURS)))

    def __call__(self, *words, **kw):
        """And their answers compared."""
        COUNT["lines"] += 1
        real, ours = self.ask(*words, **kw)
        self.compare(" ".join(words), real, ours)
        return real, ours

    def setup(self, *words):
        """What must work on both for the test to mean anything."""
        for a in self(*words):
            same(a.status, 0, " ".join(words) + " " + a.err)

    def box(self, *flags, name="box", start=True):
        self.setup("create", "--name", name, *flags, *SLEEP)
        if start:
            self.setup("start", name)

    def file(self, name, data, mode=0o644):
        for side in (REAL, OURS):
            path = os.path.join(side.ws, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(data)
            os.chmod(path, mode)

    def row(self, side, name, fields):
        """A row of a list: docker's is kept, ours is held against it."""
        if side == "docker":
            self.rows[name] = fields
            return
        real = self.rows[name]
        for key in sorted(set(real) | set(fields)):
            COUNT["fields"] += 1
            a, b = REAL.plain(str(real.get(key))), OURS.plain(str(fields.get(key)))
            if a != b:
                self.note("ps row " + name, key, a, b)

    def finish(self):
        need(not self.found, f"{len(self.found)} differ\n" + "\n".join(self.found))

    def close(self):
        for side in (REAL, OURS):
            ids = side("ps", "-aq", "--no-trunc").out.split()
            if ids:
                side("rm", "-f", *ids)
            subprocess.run(["find", side.ws, "-mindepth", "1", "-delete"], check=True)
            side.ids.clear()


REAL = OURS = None
BOTH = concurrent.futures.ThreadPoolExecutor(2)
COUNT = {"lines": 0, "fields": 0}
USED = set()


def test(claim):
    """All that differs is told, also if the test does not come to its end."""
    def put(fn):
        def whole(w):
            try:
                fn(w)
            except Exception as e:
                w.found.append(f"{type(e).__name__}: {e}")
            w.finish()
        TESTS.append((claim, whole))
        return fn
    return put


# ---- OpenClaw's own words ----

LABEL_HASH = '{{ index .Config.Labels "openclaw.configHash" }}'
LABEL_NONE = '{{ index .Config.Labels "openclaw.nothing" }}'
MOUNTS = '{"Mounts":{{json .Mounts}},"Tmpfs":{{json .HostConfig.Tmpfs}}}'
STAT = 'set -eu; cd -- "$1"; LC_ALL=C stat -c "%F|%s" -- "$2"'

OPENCLAW_CREATE = [
    "create", "--name", "NAME", "--init", "--label", "openclaw.sandbox=1", "--label", "openclaw.sessionKey=agent:main:w", "--label",
    "openclaw.createdAtMs=1794710075566", "--label", "openclaw.mountFormatVersion=4", "--label", "openclaw.configHash=8799aa",
    "--read-only", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run", "--network", "none", "--user", "1000:1000", "--cap-drop",
    "ALL", "--security-opt", "no-new-privileges", "--dns", "1.1.1.1", "--add-host", "internal.service:10.0.0.5", "--pids-limit", "256",
    "--memory", "512m", "--memory-swap", "1g", "--cpus", "0.5", "--ulimit", "nofile=1024:2048", "--ulimit", "nproc=256", "--workdir",
    "/workspace", "-v", "@WS/work:/workspace:z", "-v", "@WS/work/skills:/workspace/skills:ro,z", "-v", "@WS/data:/data:ro", "--env-file",
    "@WS/env", IMAGE, "sleep", "infinity"]

OPENCLAW = [
    ["inspect", "-f", "{{.State.Running}}", "NAME"],
    ["image", "inspect", "no-such-image:tag"],
    ["inspect", "--format", MOUNTS, "NAME"],
    OPENCLAW_CREATE,
    ["inspect", "-f", "{{.State.Running}}", "NAME"],
    ["exec", "-i", "NAME", "true"],
    ["start", "NAME"],
    ["start", "NAME"],
    ["inspect", "-f", "{{.State.Running}}", "NAME"],
    ["inspect", "-f", LABEL_HASH, "NAME"],
    ["inspect", "-f", LABEL_NONE, "NAME"],
    ["exec", "-i", "NAME", "/bin/sh", "-lc", "echo set > /workspace/setup"],
    ["exec", "-i", "NAME", "/bin/sh", "-lc", "exit 3"],
    ["inspect", "--format", "{{.Id}}", "NAME"],
    ["inspect", "--format", MOUNTS, "@ID"],
    ["exec", "-i", "-w", "/workspace", "-e", "HOME=/workspace", "-e", "LANG=C.UTF-8", "-e", "OPENCLAW_SHELL=exec", "-e",
     "OPENCLAW_PREPEND_PATH=/usr/bin:/bin", "NAME", "/bin/sh", "-lc",
     'export PATH="${OPENCLAW_PREPEND_PATH}:$PATH"; unset OPENCLAW_PREPEND_PATH; pwd; echo "$PATH $HOME $A"; id -u; id -g'],
    ["exec", "-i", "-w", "/workspace", "--env-file", "@WS/env", "@ID", "/bin/sh", "-lc", "pwd; echo $A; env | grep -c ."],
    ["exec", "-i", "-w", "/workspace/skills", "-e", "HOME=/workspace/skills", "NAME", "/bin/sh", "-lc", "echo $HOME; pwd; touch x"],
    ["exec", "-i", "@ID", "sh", "-c", STAT, "openclaw-sandbox-fs", "/workspace", "setup"],
    ["exec", "-i", "@ID", "sh", "-c", STAT, "openclaw-sandbox-fs", "/workspace", "nothing"],
    ["exec", "-i", "@ID", "sh", "-c", STAT, "openclaw-sandbox-fs", "/no/such", "nothing"],
    ["exec", "@ID", "grep", "internal.service", "/etc/hosts"],
    ["exec", "@ID", "sh", "-c", "touch /new; touch /data/new; touch /tmp/new && ls /tmp"],
    ["exec", "@ID", "sh", "-c", "ulimit -n; ulimit -Hn; ulimit -u"],
    ["inspect", "-f", "{{.Config.Image}}", "NAME"],
    ["inspect", "-f", "{{range .Config.Env}}{{println .}}{{end}}", "NAME"],
    ["network", "inspect", "openclaw-sandbox-browser"],
    ["image", "inspect", "-f", '{{ index .Config.Labels "org.openclaw.sandbox-browser.contract" }}', IMAGE],
    ["image", "inspect", "-f", '{{ index .Config.Labels "of" }}', IMAGE],
    ["port", "NAME", "9222/tcp"],
    ["port", "NAME"],
    ["ps", "-a", "--filter", "label=openclaw.sandboxBrowser=1", "--format", "{{.Names}}"],
    ["ps", "-a", "--filter", "label=openclaw.sandbox=1", "--format", "{{.Names}}"],
    ["inspect", "-f", LABEL_HASH + "\t" + LABEL_NONE, "NAME"],
    ["inspect", "-f", "{{.Id}} {{.State.Running}} {{.State.Paused}}", "NAME"],
    ["pause", "@ID"],
    ["inspect", "-f", "{{.State.Paused}}", "@ID"],
    ["exec", "-i", "@ID", "true"],
    ["unpause", "@ID"],
    ["inspect", "-f", "{{.Id}}", "NAME"],
    ["inspect", "--type", "container", "--format", '{"Id":{{json .ID}},"Mounts":{{json .Mounts}}}', "@ID"],
    ["inspect", "--type", "container", "--format", "{{.Id}}", "no-such"],
    ["rm", "-f", "NAME"],
    ["rm", "-f", "NAME"],
    ["rm", "-f", "@ID"],
]


@test("every call of OpenClaw is answered in docker's words")
def _(w):
    name = "openclaw-sbx-workspace-38502bcd49db0457833284614a314188"
    w.file("work/skills/one", "skill\n")
    w.file("data/file", "data\n")
    w.file("env", "A=from file\nOPENCLAW_CLI=1\n")
    for side in (REAL, OURS):
        os.chown(os.path.join(side.ws, "work"), 1000, 1000)
    for words in OPENCLAW:
        w(*[name if x == "NAME" else x for x in words])


# ---- exec ----

@test("exec: exit statuses and signals")
def _(w):
    w.box()
    for n in (0, 1, 2, 42, 64, 124, 125, 126, 127, 128, 130, 137, 143, 200, 255):
        w("exec", "box", "sh", "-c", f"exit {n}")
    for name in ("HUP", "INT", "ABRT", "KILL", "SEGV", "TERM"):
        w("exec", "box", "sh", "-c", f"kill -{name} $$; sleep 1")


@test("exec: what cannot be run")
def _(w):
    w.box()
    for words in (["nope"], ["/nope"], ["/etc/text"], ["/etc"], ["./nope"], [""], ["/etc/text/x"]):
        w("exec", "box", *words)
    w("exec", "-w", "/nope", "box", "true")
    w("exec", "-w", "/etc/text", "box", "true")
    w("exec", "-w", "relative", "box", "pwd")
    w("exec", "-u", "nouser", "box", "true")
    w("exec", "-u", "1000:nogroupatall", "box", "true")
    w("exec", "-u", "-1", "box", "true")
    w("exec", "box")
    w("exec")
    w("exec", "nobox", "true")
    w("exec", "-it", "box", "true")
    w("exec", "--frob", "box", "true")
    w("exec", "-Z", "box", "true")
    w("exec", "-w")
    w("exec", "-e", "=x", "box", "true")
    w("exec", "--env-file", "@WS/missing", "box", "true")


@test("exec: folder, variables, users")
def _(w):
    w.box("-e", "A=box", "-e", "B=box")
    w.file("env", "B=file\nC=file\n# no\n\nFROM_HERE\n")
    w("exec", "box", "pwd")
    w("exec", "-w", "/etc", "box", "pwd")
    w("exec", "--workdir=/tmp", "box", "pwd")
    w("exec", "box", "sh", "-c", "env | sort | grep -v HOSTNAME")
    w("exec", "-e", "A=exec", "-e", "D=", "-e", "E", "box", "sh", "-c", 'echo "$A $B ${D-unset} ${E-unset}"')
    w("exec", "--env-file", "@WS/env", "-e", "C=flag", "box", "sh", "-c", 'echo "$A $B $C ${FROM_HERE-unset}"')
    w("exec", "-e", "PATH=/nowhere", "box", "true")
    w("exec", "-e", "TWO=first", "-e", "TWO=second", "box", "sh", "-c", "echo $TWO")
    for user in ("agent", "1000", "1000:50", "agent:staff", "nobody", "0", "root", "4242", "4242:4243"):
        w("exec", "-u", user, "box", "sh", "-c", "id -u; id -g; echo $HOME")
    w("exec", "-u", "agent", "box", "id")
    w("exec", "box", "id", "-un")
    w("exec", "--user=agent", "box", "sh", "-c", "touch /etc/new")
    w("exec", "-iw", "/etc", "box", "pwd")
    w("exec", "-i", "--", "box", "echo", "--", "-x")
    w("exec", "box", "echo", "-i", "--frob")


@test("exec: stdin, stdout and stderr")
def _(w):
    w.box()
    data = (bytes(range(32, 127)) * 11038)[:1 << 20]
    w("exec", "-i", "box", "md5sum", given=data)
    w("exec", "-i", "box", "cat", given=data)
    w("exec", "box", "cat", given=b"not for you")
    w("exec", "-i", "box", "cat", given=b"")
    w("exec", "-i", "box", "head", "-c", "5", given=data)
    w("exec", "box", "sh", "-c", "echo out; echo err >&2; echo out2; echo err2 >&2; exit 9")
    w("exec", "box", "sh", "-c", "seq 1 200000")
    w("exec", "box", "sh", "-c", "printf 'no newline'")
    w("exec", "-t", "box", "sh", "-c", "echo terminal; test -t 1 && echo yes; echo err >&2; exit 3")
    w("exec", "-i", "box", "sh", "-c", "exec <&-; echo closed", given=b"unread")
    w("exec", "-d", "box", "sh", "-c", "echo later > /tmp/later")
    need(all(wait_for(lambda: side("exec", "box", "cat", "/tmp/later").out == "later\n") for side in (REAL, OURS)), "exec -d did not run")
    w("exec", "-d", "box", "nope")
    w("exec", "-d", "nobox", "true")


@test("exec: in a box that is made, paused, stopped or gone")
def _(w):
    w.box(start=False)
    w("exec", "box", "true")
    w.setup("start", "box")
    w("pause", "box")
    w("exec", "box", "true")
    w("unpause", "box")
    w("exec", "box", "true")
    w.setup("kill", "box")
    w("exec", "box", "true")
    w("exec", "-d", "box", "true")
    w.setup("rm", "box")
    w("exec", "box", "true")


@test("exec: a command whose client is killed")
def _(w):
    w.box()
    for side in (REAL, OURS):
        p = side.start("exec", "-i", "box", "sleep", "4242", stdin=subprocess.PIPE)
        need(wait_for(lambda: "sleep 4242" in side("top", "box").out), "it did not start")
        p.kill()
        p.wait()
        p.stdin.close()
    time.sleep(1)
    w("exec", "box", "sh", "-c", "ps | grep -c '[s]leep 4242'")


# ---- inspect ----

FIELDS = [
    "Id", "Created", "Path", "Args", "State.Status", "State.Running", "State.Paused", "State.Restarting", "State.OOMKilled", "State.Dead",
    "State.Pid", "State.ExitCode", "State.Error", "State.StartedAt", "State.FinishedAt", "Image", "Name", "RestartCount", "Platform",
    "Driver", "LogPath", "ResolvConfPath", "HostnamePath", "HostsPath", "MountLabel", "ProcessLabel", "AppArmorProfile", "ExecIDs",
    "HostConfig.Binds", "HostConfig.NetworkMode", "HostConfig.PortBindings", "HostConfig.RestartPolicy", "HostConfig.AutoRemove",
    "HostConfig.CapAdd", "HostConfig.CapDrop", "HostConfig.Dns", "HostConfig.ExtraHosts", "HostConfig.Privileged",
    "HostConfig.ReadonlyRootfs", "HostConfig.SecurityOpt", "HostConfig.Tmpfs", "HostConfig.Memory", "HostConfig.MemorySwap",
    "HostConfig.NanoCpus", "HostConfig.PidsLimit", "HostConfig.Ulimits", "HostConfig.Init", "HostConfig.ShmSize", "HostConfig.CpuShares",
    "HostConfig.CpuQuota", "HostConfig.PidMode", "HostConfig.IpcMode", "HostConfig.UTSMode", "HostConfig.UsernsMode", "HostConfig.Devices",
    "HostConfig.LogConfig", "HostConfig.PublishAllPorts", "HostConfig.GroupAdd", "HostConfig.Runtime", "HostConfig.CgroupParent",
    "HostConfig.VolumesFrom", "HostConfig.Links", "HostConfig.DnsOptions", "HostConfig.DnsSearch", "HostConfig.OomKillDisable",
    "Mounts", "Config.Hostname", "Config.Domainname", "Config.User", "Config.AttachStdin", "Config.AttachStdout", "Config.AttachStderr",
    "Config.Tty", "Config.OpenStdin", "Config.StdinOnce", "Config.Env", "Config.Cmd", "Config.Image", "Config.Volumes",
    "Config.WorkingDir", "Config.Entrypoint", "Config.OnBuild", "Config.Labels", "Config.ExposedPorts", "NetworkSettings.Ports",
    "NetworkSettings.IPAddress", "NetworkSettings.Gateway", "NetworkSettings.Networks",
]


def field(o, path):
    """One field as text; what is not there is null to a template. Docker's lists of mounts come in any order."""
    for key in path.split("."):
        o = o.get(key) if isinstance(o, dict) else None
    if path in ("Mounts", "HostConfig.Binds") and o:
        o = sorted(o, key=str)
    if path == "State.Pid":
        o = "some" if o > 0 else "none"
    return json.dumps(o, sort_keys=True)


def fields(w, name, what, paths=FIELDS):
    real, ours = w.ask("inspect", "--format", "{{json .}}", name)
    a, b = json.loads(real.out), json.loads(ours.out)
    for path in paths:
        COUNT["fields"] += 1
        x, y = REAL.plain(field(a, path)), OURS.plain(field(b, path))
        if x != y:
            w.note(what, path, x, y)


@test("inspect: the fields that clients read, of a plain box and of one with everything")
def _(w):
    w.box(name="plain", start=False)
    fields(w, "plain", "plain created")
    w.setup("start", "plain")
    fields(w, "plain", "plain running")
    w.setup("pause", "plain")
    fields(w, "plain", "plain paused")
    w.setup("kill", "plain")
    fields(w, "plain", "plain killed")
    w.file("work/skills/one", "skill\n")
    w.file("data/file", "data\n")
    w.file("env", "A=from file\n")
    w.setup(*["full" if x == "NAME" else x for x in OPENCLAW_CREATE])
    fields(w, "full", "full created")
    w.setup("start", "full")
    fields(w, "full", "full running")


IMAGE_FIELDS = [
    "Id", "RepoTags", "RepoDigests", "Comment", "Created", "Author", "Architecture", "Os", "RootFS.Type", "RootFS.Layers", "Config.User",
    "Config.Env", "Config.Cmd", "Config.Entrypoint", "Config.WorkingDir", "Config.Labels", "Config.ExposedPorts", "Config.Volumes",
    "Parent", "Metadata",
]


@test("inspect: the fields of an image")
def _(w):
    fields(w, IMAGE, "image", IMAGE_FIELDS)


@test("inspect: templates, lists, what is missing, what is none")
def _(w):
    w.box("--label", "a=1", "--label", "b=", "--label", "c")
    w.box(name="other", start=False)
    for t in ("{{.Name}}", "{{json .Config.Labels}}", "{{.Config.Labels}}", "{{.Config.Env}}", "{{json .Config.Cmd}}", "{{len .Config.Cmd}}",
              "{{.State.Status}}", "{{.State.ExitCode}}", "{{.HostConfig.NetworkMode}}", "{{if .State.Running}}yes{{else}}no{{end}}",
              "{{.Config.Cmd}}", "{{index .Config.Cmd 0}}", "{{index .Config.Cmd 5}}", "{{.Nope}}", "{{.State.Nope}}", "{{.Config.Labels.a}}",
              "{{.Config.Labels.nope}}", "{{range $k, $v := .Config.Labels}}{{$k}}={{$v}};{{end}}", "{{printf \"%s %d\" .Name .State.ExitCode}}",
              "{{upper .Name}}", "{{join .Config.Cmd \" \"}}", "{{.State.Running | json}}", "{{", "{{frob .Id}}", "{{.Id", "plain text",
              "{{.HostConfig.Privileged}}", "{{.Path}} {{.Args}}", "{{not .State.Running}}", "{{eq .State.Status \"running\"}}",
              "{{.HostConfig.Tmpfs}}", "{{json .HostConfig.Binds}}", "{{.HostConfig.Binds}}", "{{slice .Id 0 0}}", "{{.State}}",
              "{{with .Config}}{{.Image}}{{end}}", "{{.NetworkSettings.IPAddress}}", "{{.Config.Tty}}", "{{title .State.Status}}",
              "{{range .Mounts}}{{.Source}}{{end}}", "{{split .Name \"/\"}}", "{{.Mounts}}", "{{json .Mounts}}", "a\\tb\\n"):
        w("inspect", "-f", t, "box")
    w("inspect", "-f", "{{.Name}}", "box", "other")
    w("inspect", "-f", "{{.Name}}", "box", "missing", "other")
    w("inspect", "-f", "{{.Name}}", "missing", "box")
    w("inspect", "missing")
    w("inspect", "missing", "absent")
    w("inspect")
    w("inspect", "--type", "image", "missing")
    w("inspect", "--type", "image", "box")
    w("inspect", "--type", "container", "box", "-f", "{{.Name}}")
    w("inspect", "--type", "container", "missing")
    w("inspect", "--type", "frob", "box")
    w("container", "inspect", "-f", "{{.Name}}", "box")
    w("container", "inspect", "missing")
    w("inspect", "-f", "{{.RepoTags}}", IMAGE)
    w("inspect", "-f", "{{.Id}}", IMAGE)
    w("image", "inspect", "-f", "{{json .Config.Env}} {{.Architecture}} {{.Os}} {{json .RepoTags}} {{.Config.WorkingDir}}", IMAGE)
    w("image", "inspect", "missing")
    w("image", "inspect", "missing", "absent")
    w("image", "inspect", "missing:tag", IMAGE, "-f", "{{.Os}}")
    w("image", "inspect")


# ---- ps ----

@test("ps: states, filters, formats")
def _(w):
    w("ps")
    w("ps", "-a", "--format", "{{.Names}}")
    w.box("--label", "k=v", "--label", "x", name="alpha")
    w.box("--label", "k=w", name="beta", start=False)
    w.setup("create", "--name", "gamma", *NONE, IMAGE, "sh", "-c", "exit 3")
    w.setup("start", "gamma")
    w("wait", "gamma")
    w("ps")
    w("ps", "-a")
    w("ps", "-a", "--no-trunc")
    w("ps", "-q")
    w("ps", "-aq")
    w("ps", "-l", "--format", "{{.Names}}")
    w("ps", "-n", "2", "--format", "{{.Names}}")
    w("ps", "-n", "x")
    for f in ("name=alp", "name=^/alpha$", "name=^alpha$", "name=a", "name=l.*a", "label=k", "label=k=v", "label=x", "label=none", "status=running",
              "status=exited", "status=created", "status=paused", "status=frob", "exited=3", "exited=0", "ancestor=" + IMAGE, "ancestor=none:1",
              "id=@ID", "network=none", "frob=1", "frob", "before=beta", "since=beta"):
        w("ps", "-a", "--filter", f, "--format", "{{.Names}}")
    w("ps", "-a", "-f", "label=k", "-f", "status=running", "--format", "{{.Names}}")
    w("ps", "-a", "-f", "name=alpha", "-f", "name=beta", "--format", "{{.Names}}")
    w("ps", "-f", "status=exited", "--format", "{{.Names}}")
    for t in ("{{.ID}} {{.Names}} {{.Image}} {{.Command}} {{.Status}} {{.State}} {{.Ports}}", '{{.Label "k"}}', "{{.CreatedAt}}",
              "{{.RunningFor}}", "{{.Mounts}}", "{{.Networks}}", "{{.LocalVolumes}}", "table {{.Names}}\t{{.Status}}",
              "table {{.Names}}\\t{{.State}}\\t{{.Ports}}", "{{.Nope}}", "{{", "{{.Names}}\\t{{.State}}", "table", "{{json .Names}}",
     "{{upper .Names}}"):
        w("ps", "-a", "--format", t)
    for what, rows in zip(("docker", "ours"), w.ask("ps", "-a", "--format", "{{json .}}")):
        for row in map(json.loads, rows.out.splitlines()):
            row["Labels"] = ",".join(sorted(row["Labels"].split(",")))  # docker's come in any order
            w.row(what, row["Names"], row)
    w("ps", "extra")
    w("ps", "--frob")
    w("container", "ls", "-a", "--format", "{{.Names}}")


# ---- from start to end ----

@test("start, stop, kill, restart, pause and unpause, once and twice")
def _(w):
    state = "{{.State.Status}} {{.State.Running}} {{.State.Paused}} {{.State.ExitCode}}"
    w.box("--init", start=False)
    for words in (["pause"], ["unpause"], ["stop"], ["kill"], ["start"], ["start"], ["pause"], ["pause"], ["start"], ["unpause"], ["unpause"],
                  ["stop", "-t", "5"], ["stop"], ["pause"], ["kill"], ["restart", "-t", "5"], ["restart", "-t", "0"], ["kill", "-s", "FROB"],
                  ["kill", "-s", "0"], ["kill", "-s", "SIGUSR1x"], ["kill"], ["kill"], ["start"], ["kill", "--signal=TERM"], ["wait"],
                  ["start"], ["kill", "-s", "2"], ["wait"], ["start"], ["kill", "-s", "sighup"], ["wait"], ["start"], ["kill", "-s", "WINCH"]):
        w(*words, "box")
        if words[-1] not in ("--signal=TERM", "2", "sighup"):  # the one or the other may have ended already
            w("inspect", "-f", state, "box")
    w.setup("start", "box")
    w.setup("pause", "box")
    for verb in ("stop", "restart"):
        w(verb, "-t", "1", "box")
        w("inspect", "-f", state, "box")
    w("stop", "-t", "x", "box")
    for verb in ("start", "stop", "kill", "restart", "pause", "unpause", "wait", "logs", "top", "port", "rm"):
        w(verb, "missing")
        w(verb)
    w("start", "box", "missing")
    w("stop", "-t", "1", "missing", "box")
    w("start", "-a", "missing")


@test("start -a and -i follow the main command, and end with its status")
def _(w):
    w.setup("create", "--name", "told", *NONE, IMAGE, "sh", "-c", "echo out; echo err >&2; exit 7")
    for flags in (["-a"], ["--attach"], ["-i"], ["-ai"]):
        w("start", *flags, "told")
        w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "told")
    w.setup("create", "-i", "--name", "fed", *NONE, IMAGE, "cat")
    w("start", "-ai", "fed", given=b"hello\n")
    w("start", "-a", "fed", "told")
    w.setup("create", "--name", "none", *NONE, IMAGE, "/no/such")
    w("start", "-a", "none")
    w("start", "none")
    w.setup("create", "--rm", "--name", "once", *NONE, IMAGE, "echo", "once")
    w("start", "-a", "once")
    w("inspect", "-f", "{{.Name}}", "once")


@test("rm: missing, running, paused, several")
def _(w):
    w.box("--init")
    w.box(name="still", start=False)
    w("rm", "box")
    w("rm", "missing")
    w("rm", "-f", "missing")
    w("rm", "still", "missing", "box")
    w("pause", "box")
    w("rm", "box")
    w("rm", "-f", "box")
    w("rm", "-f", "box", "missing")
    w("ps", "-aq")
    w.box(name="again")
    w.setup("kill", "again")
    w("rm", "-v", "again")
    w("container", "rm", "missing")
    w("rm", "--frob", "x")


@test("names: taken, free again, bad; ids by their beginning")
def _(w):
    w.box(start=False)
    w("create", "--name", "box", *SLEEP)
    w("run", "--name", "box", *SLEEP)
    w("rm", "box")
    w("create", "--name", "box", *SLEEP)
    for name in ("-bad", "b@d", "", "/slash", "sl/ash", "x", "with.dot_and-dash"):
        w("create", "--name", name, *SLEEP)
    w("inspect", "-f", "{{.Name}}", "@ID")
    w("inspect", "-f", "{{.Name}}", "/box")
    w("ps", "-a", "--format", "{{.Names}}")


# ---- create and run ----

@test("create and run: bad flags, bad sizes, missing images")
def _(w):
    for flags in (["--frob"], ["-Z"], ["--memory", "x"], ["--memory", "4m"], ["--memory", "-1"], ["--memory", "1.5g"], ["--memory", ""], ["--cpus", "x"],
                  ["--cpus", "-1"], ["--cpus", "10000"], ["--pids-limit", "x"], ["--memory-swap", "1g"], ["--memory", "512m", "--memory-swap",
     "256m"],
                  ["--ulimit", "frob=1"], ["--ulimit", "nofile"], ["--ulimit", "nofile=2:1"], ["-e", "=x"], ["-e", ""], ["--env-file", "@WS/missing"],
                  ["--label", "=x"], ["-w", "relative"], ["-v", "relative/path:/x"], ["-v", "/etc"], ["-v", "/a:/b:/c:/d"], ["-v", "@WS:relative"],
                  ["-v", "@WS:/x:frob"], ["-v", "@WS:/x", "-v", "@WS:/x"], ["--tmpfs", "relative"], ["--tmpfs", "/x:frob"], ["--mount",
     "type=frob,dst=/x"],
                  ["--mount", "type=bind,src=@WS/missing,dst=/x"], ["--mount", "frob"], ["--add-host", "bad"], ["--dns", "bad"], ["-p", "bad"],
                  ["-p", "99999"], ["--restart", "frob"], ["--user", "nouser"], ["--pull", "frob"], ["--read-only=maybe"], ["--memory"]):
        w("create", *flags, *NONE, IMAGE, "true")
    w("run", "--frob", IMAGE)
    w("run", "--memory", "x", IMAGE)
    w("create")
    w("run")
    w("create", "--pull", "never", *NONE, "no-such-image", "true")
    w("run", "--pull", "never", *NONE, "no-such-image:tag", "true")
    w("create", *NONE, "UPPER", "true")


@test("run: status, streams, what cannot be run, --rm, -d")
def _(w):
    rm = ("run", "--rm", *NONE)
    for n in (0, 1, 125, 126, 127, 255):
        w(*rm, IMAGE, "sh", "-c", f"exit {n}")
    w(*rm, IMAGE, "sh", "-c", "kill -9 $$")
    w(*rm, IMAGE, "sh", "-c", "kill -TERM $$; sleep 1")
    w(*rm, "--init", IMAGE, "sh", "-c", "kill -TERM $$; sleep 1")
    w(*rm, IMAGE, "sh", "-c", "echo out; echo err >&2; exit 5")
    w(*rm, "-i", IMAGE, "cat", given=b"through\n")
    w(*rm, IMAGE, "cat", given=b"not through\n")
    w(*rm, IMAGE)
    w(*rm, "--entrypoint", "echo", IMAGE, "word", "two")
    w(*rm, "--entrypoint", "", IMAGE)
    w(*rm, "-e", "A=1", "-w", "/etc", "-u", "agent", IMAGE, "sh", "-c", 'pwd; id -u; echo "$A $KIND $HOME"')
    w.file("env", "B=file\nC=file\n")
    w(*rm, "--env-file", "@WS/env", "-e", "C=flag", "-e", "FROM_HERE", "-e", "NOT_HERE", IMAGE, "sh", "-c", 'echo "$B $C $FROM_HERE ${NOT_HERE-unset}"')
    w("run", "--name", "eater", *NONE, "--memory", "32m", "--memory-swap", "32m", IMAGE, "tail", "/dev/zero")
    w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}", "eater")
    w("rm", "eater")
    w(*rm, "-w", "/made", IMAGE, "pwd")
    w(*rm, "-v", "@WS:/host:ro", IMAGE, "sh", "-c", "touch /host/x")
    w(*rm, "-v", "@WS/new/deep:/host", IMAGE, "ls", "/host")
    w(*rm, "--tmpfs", "/scratch", IMAGE, "sh", "-c", "touch /scratch/x && ls /scratch; touch /etc/x && ls /etc/x")
    w(*rm, "--read-only", IMAGE, "sh", "-c", "touch /etc/x")
    w(*rm, "--hostname", "named", IMAGE, "hostname")
    for image in (IMAGE, BARE):
        for flags in ([], ["--read-only"]):
            w(*rm, *flags, "--add-host", "other:10.0.0.5", image, "grep", "other", "/etc/hosts")
    w(*rm, IMAGE, "wget", "-q", "-O-", "http://localhost:1/")
    w(*rm, IMAGE, "sh", "-c", "echo $$")
    w(*rm, IMAGE, "ls", "/sys/class/net")
    w(*rm, "--init", IMAGE, "sh", "-c", "[ $$ -ne 1 ] && echo not one")
    w(*rm, "--ulimit", "nofile=100:200", IMAGE, "sh", "-c", "ulimit -n; ulimit -Hn")
    for words in (["nope"], ["/nope"], ["/etc/text"], ["/etc"]):
        w(*rm, IMAGE, *words)
    w(*rm, "-u", "nouser", IMAGE, "true")
    w("ps", "-aq")
    w("run", "--name", "bad", *NONE, IMAGE, "nope")
    w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}} {{.State.Error}}", "bad")
    w("start", "bad")
    w("run", "-d", "--name", "badtoo", *NONE, IMAGE, "nope")
    w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "badtoo")
    w("run", "-d", "--name", "bg", *NONE, IMAGE, "sh", "-c", "sleep 0.3; exit 4")
    w("wait", "bg")
    w("wait", "bg")
    w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "bg")
    w("run", "-d", "--rm", "--name", "gone", *NONE, IMAGE, "true")
    need(all(wait_for(lambda: side("inspect", "gone").status == 1) for side in (REAL, OURS)), "--rm left it")
    w("run", "-dit", "--name", "tty", *NONE, IMAGE)
    w("inspect", "-f", "{{.Config.Tty}} {{.Config.OpenStdin}} {{.State.Running}}", "tty")
    w("run", "-it", *NONE, IMAGE)


# ---- files ----

def tree(side, folder):
    """What stands in a folder of a side: names, kinds, modes, contents."""
    found = []
    top = os.path.join(side.ws, folder)
    for at, dirs, files in os.walk(top):
        for name in sorted(dirs + files):
            path = os.path.join(at, name)
            st = os.lstat(path)
            what = os.readlink(path) if os.path.islink(path) else "folder" if os.path.isdir(path) else read(path).decode()
            found.append((os.path.relpath(path, top), oct(st.st_mode), what))
    return sorted(found)


@test("cp: into a box: files, folders, what is there and what is not")
def _(w):
    w.box()
    w.file("src/a", "A\n", 0o640)
    w.file("src/sub/b", "B\n", 0o755)
    for side in (REAL, OURS):
        os.symlink("a", os.path.join(side.ws, "src/link"))
    show = "cd /work && find . | sort && find . -type f | sort | xargs tail -n 3"
    for words in (["@WS/src/a", "box:/work"], ["@WS/src/a", "box:/work/"], ["@WS/src/a", "box:/work/new"], ["@WS/src/a", "box:/work/missing/new"],
                  ["@WS/src/a", "box:/work/missing/"], ["@WS/src", "box:/work"], ["@WS/src", "box:/work/copy"], ["@WS/src/.", "box:/work/contents"],
                  ["@WS/src/", "box:/work/slash"], ["@WS/src", "box:/work/a"], ["@WS/src/.", "box:/work/copy"], ["@WS/missing", "box:/work"],
                  ["@WS/src/a/", "box:/work/x"], ["@WS/src/link", "box:/work/linked"], ["-L", "@WS/src/link", "box:/work/followed"],
                  ["src/a", "box:relative"], ["@WS/src/a", "missing:/x"], ["@WS/src/a", "box:"], ["@WS/src/a", "@WS/b"], ["box:/etc/text", "box:/x"],
                  ["box:/etc/text"], ["box:/etc/text", "-"], ["@WS/src/a", "box:/etc/text/x"], ["@WS/src", "box:/work/deep/er"]):
        w("cp", *words)
    w("exec", "box", "sh", "-c", show)
    w("exec", "box", "sh", "-c", "stat -c '%n %a %u:%g' /work/new /work/copy/sub/b /work/copy; readlink /work/linked")


@test("cp: out of a box: files, folders, what is there and what is not")
def _(w):
    w.box()
    w.setup("exec", "box", "sh", "-c", "mkdir -p d/sub; echo A >d/a; chmod 640 d/a; echo B >d/sub/b; chmod 700 d/sub; ln -s a d/link; ln -s /etc/text abs")
    for side in (REAL, OURS):
        os.mkdir(os.path.join(side.ws, "there"))
    w.file("file", "old\n")
    for words in (["box:/work/d/a", "@WS/there"], ["box:/work/d/a", "@WS/there/new"], ["box:/work/d/a", "@WS/file"], ["box:/work/d/a", "@WS/no/such"],
                  ["box:/work/d/a", "@WS/no/"], ["box:/work/d", "@WS/there"], ["box:/work/d", "@WS/copy"], ["box:/work/d/.", "@WS/contents"],
                  ["box:/work/d/", "@WS/slash"], ["box:/work/d", "@WS/file"], ["box:/work/missing", "@WS/there"], ["box:/work/d/a/", "@WS/x"],
                  ["box:/work/d/link", "@WS/link"], ["-L", "box:/work/d/link", "@WS/followed"], ["box:/work/abs", "@WS/abs"], ["box:work/d/a",
     "@WS/relative"],
                  ["missing:/x", "@WS/x"], ["box:/no/such/thing", "@WS/x"], ["-L", "box:/work/abs", "@WS/absfollowed"]):
        w("cp", *words)
    real, ours = tree(REAL, "."), tree(OURS, ".")
    if real != ours:
        w.note("cp tree", "stdout", repr([x for x in real if x not in ours]), repr([x for x in ours if x not in real]))


@test("cp: of a box that is made, paused or stopped")
def _(w):
    w.box(start=False)
    w.file("a", "A\n")
    w("cp", "@WS/a", "box:/work/a")
    w("cp", "box:/etc/passwd", "@WS/passwd")
    w("cp", "box:/no/such", "@WS/x")
    w("cp", "@WS/missing", "box:/work/x")
    w("inspect", "-f", "{{.State.Status}} {{.State.Running}} {{.State.StartedAt}}", "box")
    w.setup("start", "box")
    w("exec", "box", "cat", "/work/a")
    w("exec", "box", "sh", "-c", "echo kept >/work/b")
    w.setup("pause", "box")
    w("cp", "box:/etc/text", "@WS/text")
    w.setup("unpause", "box")
    w.setup("kill", "box")
    w("cp", "box:/work/b", "@WS/b")
    w("cp", "@WS/b", "box:/work/c")
    w("cp", "@WS/a", "box:/made/on/the/way")
    w("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "box")
    w.setup("start", "box")
    w("exec", "box", "sh", "-c", "cat /work/b /work/c; stat -c '%u:%g %a' /work/a /work/c")
    real, ours = tree(REAL, "."), tree(OURS, ".")
    same(real, ours, "what came out")


# ---- logs, top, port, networks, others ----

@test("logs: order, both streams, --tail, -f, of a box that ended or never ran")
def _(w):
    w.setup("create", "--name", "talk", *NONE, IMAGE, "sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done; printf end")
    w("logs", "talk")
    w.setup("start", "talk")
    w("wait", "talk")
    w("logs", "talk")
    for n in ("0", "1", "2", "10", "all", "-1", "x", ""):
        w("logs", "--tail", n, "talk")
    w("logs", "-n", "1", "talk")
    w("logs", "-f", "talk")
    w.setup("start", "talk")
    w("wait", "talk")
    w("logs", "talk")
    w("logs", "--since", "1h", "talk")
    w("logs", "talk", "extra")
    w.setup("run", "-d", "--name", "both", *NONE, IMAGE, "sh", "-c", "echo out; echo err >&2; sleep 0.3; echo out2; exit 3")
    w("logs", "-f", "both")
    w("logs", "both")
    w("run", "--name", "seen", *NONE, IMAGE, "echo", "seen")
    w("logs", "seen")
    w.setup("start", "seen")
    w("wait", "seen")
    w("logs", "seen")


@test("top, port, images, networks")
def _(w):
    w.box("--init")
    w.setup("exec", "-d", "box", "sleep", "77")
    need(wait_for(lambda: "sleep 77" in OURS("top", "box").out), "it does not run")
    real, ours = (side("top", "box") for side in (REAL, OURS))
    for a in (real, ours):
        same(a.status, 0, a.err)
        need("sleep 77" in a.out and "sleep 1000" in a.out, a.out)
    columns = [(a.out.split("\n")[0].split()) for a in (real, ours)]
    if columns[0] != columns[1]:
        w.note("top box", "columns", " ".join(columns[0]), " ".join(columns[1]))
    w("top", "box", "-o", "pid,comm")
    w("port", "box")
    w("port", "box", "80")
    w("port", "box", "80/udp")
    w("port", "box", "frob")
    w.setup("kill", "box")
    w("top", "box")
    w("port", "box")
    w("images", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}", "tiny")
    w("images", "-q", "tiny")
    w("images", "tiny")
    w("images", "missing")
    w("images", "--format", "{{")
    w("image", "ls", "--format", "{{.Repository}}", "tiny")
    w("rmi", "missing")
    w("rmi", IMAGE)
    w("network", "inspect", "missing")
    w("network", "inspect", "-f", "{{.Name}}", "missing")
    w("network", "inspect", "-f", "{{.Name}} {{.Driver}} {{.Scope}}", "none")
    w("network", "create", "none")
    w("network", "create")
    w("network", "rm", "missing")
    w("network", "rm", "none")
    w("network", "create", "--driver", "bridge", "mine")
    w("network", "inspect", "-f", "{{.Name}} {{.Driver}}", "mine")
    w("network", "create", "mine")
    w("network", "rm", "mine")
    w("network", "ls", "--format", "{{.Name}}")


@test("verbs and flags that are none")
def _(w):
    w("frob")
    w("container", "frob")
    w("image", "frob")
    w("network", "frob")
    w("--frob", "ps")
    w("version", "--format", "{{.Server.Os}}")
    w("version", "--format", "{{.Nope}}")
    w("info", "--format", "{{.OSType}} {{.Containers}}")
    w("container", "ls", "-q")
    w("wait", "--frob", "x")
    for words in (["rename", "a", "b"], ["update", "a"], ["diff", "a"], ["commit", "a"], ["attach", "a"], ["export", "a"], ["tag", "a", "b"], ["history", "a"]):
        w(*words)


@test("what the table calls different still is")
def _(w):
    stale = [d for d in DIFFERENT if d not in USED]
    need(ARGS.only or not stale, "no longer different:\n" + "\n".join(f"{d[0]} {d[1]}" for d in stale))


# ---- both engines, for as long as this runs ----

# It ends the engine and removes what is left when we are gone, however that came about.
KEEPER = """
"$1" "$2" & engine=$!
while read -r _; do :; done
kill $engine; wait $engine
CLAWDEN_DATA_DIR=$2/data CLAWDEN_RUNTIME_DIR=$2/run; export CLAWDEN_DATA_DIR CLAWDEN_RUNTIME_DIR
boxes=$("$3" ps -aq --no-trunc); [ -z "$boxes" ] || "$3" rm -f $boxes >/dev/null
rm -rf "$2"
"""


def programs():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "clawden-dockerd")


def begin(top):
    global REAL, OURS
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "FROM_HERE": "here"}
    for name in ("real", "ours", "home"):
        os.mkdir(os.path.join(top, name))
    os.chmod(top, 0o755)
    home = os.path.join(top, "home")
    REAL = Side("real", os.path.join(programs(), "docker"), top, dict(base, HOME=home, DOCKER_HOST=f"unix://{top}/docker.sock"))
    OURS = Side("ours", os.path.abspath(ARGS.docker), top, dict(
        base, HOME=home, CLAWDEN_DATA_DIR=os.path.join(top, "data"), CLAWDEN_RUNTIME_DIR=os.path.join(top, "run"),
        CLAWDEN_EGRESS_IDLE="1", CLAWDEN_NO_SPAWNER="1"))
    need(wait_for(lambda: REAL("version").status == 0, 60), "the engine did not come up")
    for name in (IMAGE, BARE):
        image = os.path.join(top, "image.tar")
        make_image(image, name, name == IMAGE)
        r = subprocess.run([os.path.join(ARGS.bin, "clawden"), "image", "import", image], env=OURS.env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
        same(r.returncode, 0, r.stdout)
        a = REAL("load", "-i", image)
        same(a.status, 0, a.err)


def skip(reason):
    print(f"1..1\nok 1 - REAL our docker answers as docker does ({ARGS.label}) # SKIP {reason}")
    return 0


def main():
    global ARGS
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--docker", default=os.path.join(HERE, "../../build/libexec/clawden/bin/docker"))
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--dockerd", default=os.path.join(HERE, "../dockerd"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    ARGS = a.parse_args()
    if os.getuid() != 0:
        return skip("a Docker engine needs root")
    if not os.path.exists(os.path.join(programs(), "dockerd")):
        return skip("there is no Docker engine: scripts/deps dockerd")
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, lambda number, _: sys.exit(128 + number))
    begun = time.monotonic()
    top = tempfile.mkdtemp(prefix="clawden-docker-real-")
    keeper = subprocess.Popen(["/bin/sh", "-c", KEEPER, "keeper", os.path.abspath(ARGS.dockerd), top, os.path.abspath(ARGS.docker)],
                              stdin=subprocess.PIPE, stdout=2, start_new_session=True)
    try:
        begin(top)
        print(f"# ready after {time.monotonic() - begun:.1f} s")
        status = run("REAL", World, ARGS.only, ARGS.label)
    finally:
        keeper.stdin.close()
        keeper.wait()
    print(f"# {COUNT['lines']} command lines and {COUNT['fields']} fields compared, {len(USED)} entries of differences, "
          f"{time.monotonic() - begun:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
