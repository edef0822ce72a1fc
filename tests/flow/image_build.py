#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clawden image build: OpenClaw's images made from Debian packages, by whoever starts this. Prints TAP.

  image_build.py [--bin DIR] [--only WORD]

One data folder serves all tests, so that packages are downloaded once. sandbox-common and sandbox-browser are built only
with CLAWDEN_TEST_FULL=1.
"""
import argparse
import glob
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from tap import Skip, default_label, need, run, same, test, wait_for  # noqa: E402

IMAGE = "openclaw-sandbox:bookworm-slim"
STEPS = 8


class World:
    """A caller with a data folder of its own, whose name has a blank and other traps for shells."""

    def __init__(self, bindir):
        self.bin = os.path.abspath(bindir)
        self.docker = os.path.join(self.bin, "../libexec/clawden/bin/docker")
        self.top = tempfile.mkdtemp(prefix="clawden-build-test-")
        self.data = os.path.join(self.top, "da ta&$|x")
        self.home = os.path.join(self.top, "home")
        self.tmp = os.path.join(self.top, "tmp")
        os.mkdir(self.home)
        os.mkdir(self.tmp)
        self.env = {"HOME": self.home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": self.tmp, "CLAWDEN_DATA_DIR": self.data,
                    "CLAWDEN_EGRESS_IDLE": "1", "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"), "CLAWDEN_NO_SPAWNER": "1"}

    def close(self):
        pass  # the next test goes on with it

    def finish(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.top], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)

    def call(self, prog, *args, **kw):
        kw.setdefault("timeout", 600)
        env = dict(self.env, **kw.pop("env", {}))
        return subprocess.run([prog, *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", cwd=self.home, **kw)

    def clawden(self, *args, **kw):
        return self.call(os.path.join(self.bin, "clawden"), *args, **kw)

    def build(self, *args, **kw):
        return self.clawden("image", "build", *args, **kw)

    def start(self, *args):
        return subprocess.Popen([os.path.join(self.bin, "clawden"), "image", "build", *args], env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.home)

    def made(self):
        """The image must be there: an earlier test made it, or it is made now."""
        if self.clawden("image", "inspect", IMAGE).returncode:
            mirrors(self)
            r = self.build("sandbox")
            same(r.returncode, 0, r.stderr)

    def image(self, *command, image=IMAGE, **kw):
        return self.call(self.docker, "run", "--rm", "--network", "none", image, *command, **kw)

    def leftovers(self):
        return [p for p in glob.glob(glob.escape(self.data) + "/tmp/*") if os.path.basename(p) != "lock"] + os.listdir(self.tmp) + \
            [p for p in glob.glob(glob.escape(self.data) + "/images/tmp-*")]

    def sources(self, text):
        path = os.path.join(self.top, "image.sources")
        with open(path, "w") as f:
            f.write(text)
        return path


def mirrors(w):
    """Skips if the places that apt knows do not answer; asks with apt's own program."""
    r = w.call("apt-get", "--print-uris", "-o", f"Dir::State::lists={w.tmp}", "update")
    uris = re.findall(r"^'(\S+/InRelease)'", r.stdout, re.M)
    if not uris:
        raise Skip(f"apt has no repositories here: {r.stderr.strip()[-100:]}")
    shutil.rmtree(os.path.join(w.tmp, "partial"), ignore_errors=True)
    out = os.path.join(w.top, "InRelease")
    r = w.call("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=" + ("root" if os.getuid() == 0 else ""), "download-file", uris[0], out)
    for name in os.listdir(w.tmp):
        os.unlink(os.path.join(w.tmp, name))
    if r.returncode:
        raise Skip(f"apt's repositories cannot be reached: {r.stderr.strip()[-150:]}")
    os.unlink(out)


def processes(w):
    """Live processes that work on this data folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().decode(errors="replace")
        except OSError:
            continue
        if w.data in words and int(pid) != os.getpid():
            found.append(words.replace("\0", " ")[:120])
    return found


# ---- words ----

@test("--help tells recipes and options, usage errors are one line and make nothing")
def _(w):
    r = w.build("--help")
    same((r.returncode, r.stderr), (0, ""))
    for word in ("sandbox", "sandbox-common", "sandbox-browser", IMAGE, "--name", "--keep", "--verbose", "--sources"):
        need(word in r.stdout, f"{word} not in the help")
    need("image build" in w.clawden("image", "--help").stdout, "image --help does not name build")
    for args, word in ((("nothing",), "nothing"), ((), "which recipe"), (("sandbox", "--name", "A B"), "A B"), (("sandbox", "more"), "more"),
                       (("sandbox", "--frob"), "--frob"), (("sandbox", "--sources", "/nowhere"), "/nowhere"), (("sandbox", "--name"), "--name")):
        r = w.build(*args)
        same(r.returncode, 2, f"{args}: {r.stderr}")
        same(len(r.stderr.strip().split("\n")), 1, r.stderr)
        need(word in r.stderr, f"{word!r} not in {r.stderr!r}")
    need(not os.path.exists(w.data), "the data folder was made")


@test("repositories that cannot be reached: the step, the place and a remedy are said, nothing is left")
def _(w):
    path = w.sources("Types: deb\nURIs: http://127.0.0.1:9/debian\nSuites: bookworm\nComponents: main\n")
    r = w.build("sandbox", "--sources", path)
    same(r.returncode, 1, r.stderr)
    last = r.stderr.strip().split("\n")[-1]
    for word in ("lists of packages", "http://127.0.0.1:9/debian", "check the network"):
        need(word in last, f"{word!r} not in {last!r}")
    same(w.leftovers(), [], "left")


@test("import --config: what a plain root says of itself; what is no such config is refused and leaves no image")
def _(w):
    root = os.path.join(w.top, "plain")
    os.makedirs(root + "/etc")
    with open(root + "/etc/passwd", "w") as f:
        f.write("me:x:1234:5678::/:/bin/sh\n")
    path = os.path.join(w.top, "config.json")

    def take(text, source=root):
        with open(path, "w") as f:
            f.write(text)
        return w.clawden("image", "import", source, "--name", "plain:1", "--config", path, "--progress=none")

    for text, words in (("{", path), ("[1]", "not a JSON object"), ('{"User": "nobody-here"}', "nobody-here"), ('{"Cmd": "sh"}', "Cmd"),
                        ('{"User": "me", "User": "you"}', path), ('{"WorkingDir": "a"} {"x": 1}', path)):
        r = take(text)
        need(r.returncode == 1 and words in r.stderr, f"{text}: {r.returncode} {r.stderr}")
        same(json.loads(w.clawden("image", "list", "--json").stdout), [], f"images after {text}")
    r = take('{"User": "me", "Cmd": ["a", "b"], "Labels": {"k": "v"}, "ExposedPorts": {"80/tcp": {}}, "Env": ["A=1"], "WorkingDir": "/w"}')
    same(r.returncode, 0, r.stderr)
    i = json.loads(w.clawden("image", "inspect", "plain:1", "--json").stdout)
    same((i["uid"], i["gid"], i["cmd"], i["labels"], i["ports"], i["env"], i["workdir"]),
         (1234, 5678, ["a", "b"], {"k": "v"}, ["80/tcp"], ["A=1"], "/w"))
    with open(root + "/oci-layout", "w") as f:
        f.write("{}")
    r = take("{}")
    need(r.returncode == 1 and "config of its own" in r.stderr, r.stderr)


# ---- sandbox ----

@test("sandbox is made: one line per step, no terminal control, nothing left but the cache")
def _(w):
    mirrors(w)
    r = w.build("sandbox")
    same(r.returncode, 0, r.stderr)
    for n in range(1, STEPS + 1):
        need(f"[{n}/{STEPS}]" in r.stderr, f"step {n} not in {r.stderr}")
    need("\r" not in r.stderr and "\x1b" not in r.stderr, "terminal control")
    need(f"made '{IMAGE}'" in r.stderr.strip().split("\n")[-1], r.stderr)
    same(w.leftovers(), [], "left")


@test("the image runs: python3 with ctypes, gh, git, rg, jq, curl, gpg, as sandbox in /workspace")
def _(w):
    w.made()
    r = w.image("python3", "-c", "import ctypes, ssl; print(1)")
    same((r.stdout, r.returncode), ("1\n", 0), r.stderr)
    for word in ("bash", "gh", "git", "rg", "jq", "curl", "gpg", "apt-get"):
        r = w.image(word, "--version")
        same(r.returncode, 0, f"{word}: {r.stderr}")
    r = w.image("bash", "-c", 'echo "$(id -u):$(id -g):$(id -un):$HOME:$PWD"; getent passwd sandbox')
    need(r.stdout.startswith("1000:1000:sandbox:/home/sandbox:/workspace\n"), r.stdout)
    need("sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash" in r.stdout, r.stdout)


@test("what the image says of itself, and what is not in it")
def _(w):
    w.made()
    i = json.loads(w.clawden("image", "inspect", IMAGE, "--json").stdout)
    same((i["user"], i["uid"], i["gid"], i["workdir"]), ("sandbox", 1000, 1000, "/workspace"))
    same(i["cmd"], ["sleep", "infinity"])
    root = i["root"]
    with open(root + "/etc/os-release") as f:
        need("VERSION_CODENAME=bookworm" in f.read(), "not Debian 12")
    same(os.path.getsize(root + "/etc/machine-id"), 0, "machine-id")
    for name in (".build", "usr/sbin/policy-rc.d", "etc/resolv.conf", "usr/share/doc/bash/changelog.gz"):
        need(not os.path.lexists(os.path.join(root, name)), f"{name} was left in the image")
    same(os.listdir(root + "/var/lib/apt/lists"), [], "lists")
    need(os.path.exists(root + "/usr/share/doc/bash/copyright"), "licences are gone")
    bad = [os.path.join(d, n) for d, _, files in os.walk(root) for n in files
           if os.lstat(os.path.join(d, n)).st_mode & 0o6000]
    same(bad, [], "set-id files")
    r = w.image("dpkg", "--audit")
    same((r.returncode, r.stdout), (0, ""), r.stderr)
    r = w.image("dpkg-query", "-W", "-f", "${db:Status-Status}\n")
    same(set(r.stdout.split()), {"installed"}, "states of packages")
    with open(root + "/etc/shadow") as f:
        need(not re.search(r"^[^:]*:[^*!:]", f.read(), re.M), "somebody has a password")
    size = i["size"] >> 20
    need(150 < size < 350, f"{size} MB")


@test("a second build takes everything from the cache, even without network, and may have another name")
def _(w):
    w.made()
    r = w.build("sandbox", "--name", "own:2", env={"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"})
    same(r.returncode, 0, r.stderr)
    need("the lists of the last build are used" in r.stderr, r.stderr)
    m = re.search(r"(\d+) packages, (\d+) of them from the cache", r.stderr)
    need(m and m.group(1) == m.group(2) and int(m.group(1)) > 100, r.stderr)
    same(w.image("git", "--version", image="own:2").returncode, 0)
    same(w.leftovers(), [], "left")


# ---- interruptions ----

def until(p, step):
    for line in p.stderr:
        if f"[{step}/{STEPS}]" in line:
            return
    raise AssertionError(f"step {step} was not reached")


@test("interrupted by SIGINT or SIGTERM in any step, a build ends at once and leaves nothing")
def _(w):
    w.made()
    for signo, step, wait in ((signal.SIGINT, 1, 0), (signal.SIGTERM, 3, 0.5), (signal.SIGINT, 4, 2)):
        with w.start("sandbox", "--name", "cut:1") as p:
            until(p, step)
            time.sleep(wait)
            begun = time.monotonic()
            p.send_signal(signo)
            rest = p.stderr.read()
            same(p.wait(30), 128 + signo, f"status in step {step} ({rest})")
        need(time.monotonic() - begun < 8, f"it took {time.monotonic() - begun:.1f} s to end in step {step}")
        need("interrupted" in rest, rest)
        same(w.leftovers(), [], f"left after step {step}")
        need(wait_for(lambda: not processes(w)), f"still running: {processes(w)}")
    need("cut:1" not in w.clawden("image", "list").stdout, "an image was made")


@test("killed by SIGKILL, its processes end and the next build removes what it left")
def _(w):
    w.made()
    bad = w.sources("Types: deb\nURIs: http://127.0.0.1:9/debian\nSuites: bookworm\nComponents: main\n")
    for step, wait in ((3, 0.3), (4, 3)):
        with w.start("sandbox", "--name", "cut:2") as p:
            until(p, step)
            time.sleep(wait)
            p.kill()
            p.wait(10)
            need(wait_for(lambda: not processes(w), 20), f"still running: {processes(w)}")
        need(w.leftovers(), "it left nothing: this test does not show anything")
        w.build("sandbox", "--sources", bad)  # fails, but sweeps first
        same(w.leftovers(), [], f"left after step {step}")
    need("cut:2" not in w.clawden("image", "list").stdout, "an image was made")


@test("a build does not touch the folder of another that runs; the image that had its name before goes")
def _(w):
    w.made()
    images = lambda: json.loads(w.clawden("image", "list", "--json").stdout)  # noqa: E731
    known = images()
    bad = w.sources("Types: deb\nURIs: http://127.0.0.1:9/debian\nSuites: bookworm\nComponents: main\n")
    with w.start("sandbox") as p:
        until(p, 4)
        before = w.leftovers()
        w.build("sandbox", "--sources", bad)
        same(w.leftovers(), before, "folders")
        rest = p.stderr.read()
        same(p.wait(400), 0, rest)
    same(w.leftovers(), [], "left")
    now = images()
    same((len(now), [i["id"] for i in now if not i["names"]]), (len(known), []), "images")
    need({i["id"] for i in now} != {i["id"] for i in known}, "the same image")


@test("on a terminal one line is drawn over, and --keep keeps the folder of a failed build")
def _(w):
    bad = w.sources("Types: deb\nURIs: http://127.0.0.1:9/debian\nSuites: bookworm\nComponents: main\n")
    main, side = pty.openpty()
    env = dict(w.env, TERM="xterm")
    p = subprocess.Popen([os.path.join(w.bin, "clawden"), "image", "build", "sandbox", "--keep", "--sources", bad], env=env,
                         stdin=subprocess.DEVNULL, stdout=side, stderr=side, cwd=w.home)
    os.close(side)
    out = b""
    while True:
        try:
            data = os.read(main, 4096)
        except OSError:
            break
        if not data:
            break
        out += data
    os.close(main)
    same(p.wait(60), 1, out)
    need(b"\r\x1b[K[1/8]" in out, out)
    kept = glob.glob(glob.escape(w.data) + "/tmp/kept-*")
    same(len(kept), 1, "kept folders")
    need(kept[0] in out.decode() and os.path.exists(kept[0] + "/log"), out)
    shutil.rmtree(kept[0])
    same(w.leftovers(), [], "left")


# ---- the large ones ----

def large(claim):
    """Minutes and a GB of packages: only when asked for."""
    return test(claim) if os.environ.get("CLAWDEN_TEST_FULL") == "1" else lambda fn: fn


@large("sandbox-common compiles C, Go and Rust, runs Node; pnpm and Bun run or are said to be skipped")
def _(w):
    mirrors(w)
    name = "openclaw-sandbox-common:bookworm-slim"
    r = w.build("sandbox-common", timeout=1500)
    same(r.returncode, 0, r.stderr)
    need("Homebrew: skipped" in r.stderr, r.stderr)
    for tool in ("pnpm", "bun"):
        there = w.image(tool, "--version", image=name).returncode == 0
        need(there or f"{tool}: " in r.stderr, f"{tool} is neither there nor skipped: {r.stderr}")
    code = "package main; func main() { println(\"go\") }"
    r = w.image("bash", "-c", f"cd /tmp; echo '{code}' > a.go; HOME=/tmp go run a.go; node -p 1+1; npm --version; cargo --version; gh --version; make --version",
                image=name)
    same(r.returncode, 0, r.stderr)
    need("go" in r.stderr and "2\n" in r.stdout, r)


@large("sandbox-browser: label, ports and command; Chromium answers to the token only, VNC and noVNC are up")
def _(w):
    mirrors(w)
    name = "openclaw-sandbox-browser:bookworm-slim"
    r = w.build("sandbox-browser", timeout=1500)
    same(r.returncode, 0, r.stderr)
    i = json.loads(w.clawden("image", "inspect", name, "--json").stdout)
    same(i["labels"], {"org.openclaw.sandbox-browser.contract": "2026-05-12-cdp-relay-auth"})
    same((sorted(i["ports"]), i["cmd"], i["user"]), (["5900/tcp", "6080/tcp", "9222/tcp"], ["openclaw-sandbox-browser"], "sandbox"))
    r = w.call(w.docker, "run", "-d", "--name", "browser", "--network", "none", "--memory", "2g", "--pids-limit", "1024", "--tmpfs", "/tmp",
               "-e", "OPENCLAW_BROWSER_CDP_AUTH_TOKEN=t0ken", "-e", "OPENCLAW_BROWSER_NO_SANDBOX=1",
               "-e", "OPENCLAW_BROWSER_NOVNC_PASSWORD=abcd1234", "-e", "OPENCLAW_BROWSER_AUTO_START_TIMEOUT_MS=60000", name)
    same(r.returncode, 0, r.stderr)
    try:
        ask = lambda *a: w.call(w.docker, "exec", "browser", "curl", "-s", "-m", "5", *a).stdout  # noqa: E731
        up = wait_for(lambda: "webSocketDebuggerUrl" in ask("-u", "openclaw:t0ken", "http://127.0.0.1:9222/json/version"), 90)
        need(up, w.call(w.docker, "logs", "browser").stderr[-1500:])
        status = ("-o", "/dev/null", "-w", "%{http_code}")
        url = "http://127.0.0.1:9222/json/version"
        same([ask(*status, url), ask(*status, "-u", "openclaw:wrong", url), ask(*status, "-H", "Authorization: Bearer t0ken", url),
              ask(*status, "-H", "X: " + "y" * 70000, url)], ["401", "401", "200", "431"], "answers")
        need(wait_for(lambda: "noVNC" in ask("http://127.0.0.1:6080/vnc.html"), 20), "no noVNC")
        r = w.call(w.docker, "exec", "browser", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/5900; head -c 4 <&3")
        same(r.stdout, "RFB ", "VNC")
    finally:
        w.call(w.docker, "rm", "-f", "browser")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    args = a.parse_args()
    w = World(args.bin)
    try:
        return run("IMAGE-BUILD", lambda: w, args.only, args.label)
    finally:
        w.finish()


if __name__ == "__main__":
    sys.exit(main())
