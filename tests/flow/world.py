#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A made internet, and clients of it, for the tests of the way out. No packet of it can reach the real one.

    keep(script, args)     from the outside: makes the world, runs `script --inside DIR ARGS` in it, takes all away again
    world.py probe         in a box: does what a JSON list on stdin says, and prints what came of it
    world.py stay|flood    in a box: connections that last, and connections without end

Two network namespaces, joined by a pair of devices:

    host      10.9.0.1 fd09::1   the suite, the programs under test and their relay; everything is routed to ...
    internet  10.9.0.2 fd09::2   ... here, where every address is local: a wrong dial is answered by us, and written down

Around the suite stands its keeper: the root of both namespaces (of a user namespace for an ordinary user, and then the
suite runs in one more that gives it its own number back), parent of every orphan, and last to go. What was asked,
dialled, sent or only tried is in DIR/internet.log, one JSON object on a line; packets are seen before any program is.
"""
import base64
import ctypes
import errno
import itertools
import json
import os
import random
import resource
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

HOST4, HOST6, INTERNET4, INTERNET6, NAMESERVER = "10.9.0.1", "fd09::1", "10.9.0.2", "fd09::2", "10.9.0.53"
EXAMPLE, EXAMPLE6, EVIL, V4, V6, WILD, MIXED = ("93.184.216.34", "2606:2800:220:1::34", "93.184.216.66", "93.184.216.44",
                                                "2606:2800:220:1::66", "93.184.216.50", "93.184.216.40")
HOST_PUBLIC4, HOST_PUBLIC6 = "93.184.216.99", "2606:2800:220:1::99"  # a host has such addresses too, more often of the second kind
METADATA, PRIVATE, INTERNAL = "169.254.169.254", "10.0.0.5", "172.18.0.7"
HOST_OPEN, HOST_SHUT = 11434, 11435  # ports of the host's loopback: one may be reached if that is said, one never

NAMES = {
    "example.test": [EXAMPLE, EXAMPLE6], "www.example.test": [EXAMPLE], "a.b.example.test": [EXAMPLE],
    "notexample.test": [EVIL], "example-test": [EVIL], "other.test": ["93.184.216.35"], "evil.test": [EVIL],
    "v4.test": [V4], "v6.test": [V6], "mixed.test": [MIXED, "127.0.0.1", "fd00::1"], "private.test": [PRIVATE],
    "meta.test": [METADATA], "metadata.google.internal": [METADATA], "loop.test": ["127.0.0.1", "::1"], "unspecified.test": ["0.0.0.0",
            "::"],
    "mapped.test": ["::ffff:127.0.0.1"], "nat64.test": ["64:ff9b::7f00:1"], "sixto4.test": ["2002:7f00:1::"],
    "lan.test": [HOST4], "own.test": [HOST_PUBLIC4, HOST_PUBLIC6], "slow.test": [EXAMPLE], "internal.test": [INTERNAL], "empty.test": [],
}
CERTIFIED = ["example.test", "*.example.test", "other.test", "evil.test", "v4.test", "v6.test", "rebind.test", "*.wild.test",
             "internal.test"]
CERTIFIED_ADDRESSES = [EXAMPLE, EXAMPLE6, EVIL, V6, METADATA, INTERNAL]
CHAIN = 20

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def more_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def has_ipv6():
    return os.path.exists("/proc/net/if_inet6")


# ---- what was seen ----

class Log:
    """Lines of JSON, whole even when several processes write."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def __call__(self, kind, **about):
        os.write(self.fd, (json.dumps({"kind": kind, **about}) + "\n").encode())


def plain(address):
    return address[7:] if address.startswith("::ffff:") and "." in address else address


# ---- packets ----

def beginnings():
    """A filter of packets: everything that is not TCP, and of TCP what begins a connection (SYN without ACK)."""
    take, leave = 14, 15
    load16, load8, load8_behind, skip_head, mask, equal, end = 0x28, 0x30, 0x50, 0xb1, 0x54, 0x15, 0x06
    steps = [(load16, 12), (equal, 0x0800, 2, 8), (load8, 23), (equal, 6, 4, take), (skip_head, 14), (load8_behind, 27),
             (mask, 0x12), (equal, 2, take, leave), (equal, 0x86dd, 9, leave), (load8, 20), (equal, 6, 11, take), (load8, 67),
             (mask, 0x12), (equal, 2, take, leave), (end, 96), (end, 0)]
    return b"".join(struct.pack("=HBBI", code, *([x - at - 1 for x in to] or (0, 0)), k)
                    for at, (code, k, *to) in enumerate(steps)), len(steps)


def watch(device, where, log):
    """Writes down every packet that begins something, as it comes to the device; before anybody answers."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    code, n = beginnings()
    held = ctypes.create_string_buffer(code)
    s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", n, ctypes.addressof(held)))  # SO_ATTACH_FILTER
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.bind((device, 0))

    def go():
        while True:
            packet, (_, _, kind, _, _) = s.recvfrom(256)
            if kind == socket.PACKET_OUTGOING:
                continue
            if packet[12:14] == b"\x08\x00":
                proto, to, rest = packet[23], socket.inet_ntop(socket.AF_INET, packet[30:34]), packet[14 + 4 * (packet[14] & 15):]
            else:
                proto, to, rest = packet[20], socket.inet_ntop(socket.AF_INET6, packet[38:54]), packet[54:]
                if proto in (0, 58):  # neighbours and listeners of the link: the kernel's own
                    continue
            port = struct.unpack(">H", rest[2:4])[0] if proto in (6, 17) and len(rest) >= 4 else 0
            log("packet", where=where, proto={6: "tcp", 17: "udp", 1: "icmp"}.get(proto, str(proto)), address=to, port=port)
    threading.Thread(target=go, daemon=True).start()


# ---- servers ----

NUMBERS = itertools.count(1)


def serve(port, where, handler, log, address=""):
    """TCP at every address of this namespace, or at one. Each connection is written down before it is heard."""
    if address or not has_ipv6():
        s = socket.create_server((address, port), backlog=1024)
    else:
        s = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)

    def one(conn, told):
        raw = bytearray()
        try:
            conn.settimeout(60)
            handler(conn, told, raw, log)
        except (OSError, ValueError, IndexError, UnicodeError) as e:
            told["error"] = repr(e)
        finally:
            log("end", raw=bytes(raw[:20000]).decode("latin1"), **told)
            conn.close()

    def go():
        while True:
            conn, _ = s.accept()
            told = {"id": f"{os.getpid()}.{next(NUMBERS)}", "where": where, "address": plain(conn.getsockname()[0]), "port": port}
            log("dial", **told)
            threading.Thread(target=one, args=(conn, told), daemon=True).start()
    threading.Thread(target=go, daemon=True).start()


def receive(conn, raw, n=65536):
    data = conn.recv(n)
    if len(raw) < 20000:
        raw.extend(data)
    return data


def echo(conn, told, raw, log):
    while data := receive(conn, raw):
        conn.sendall(data)


def banner(conn, told, raw, log):
    conn.sendall(f"220 hello from {told['address']}\r\n".encode())
    echo(conn, told, raw, log)


class Web:
    """HTTP as far as clients need it: it says who it is, redirects, sends bytes, shows files, and tells what it was sent."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, conn, told, raw, log):
        held = b""
        while True:
            while b"\r\n\r\n" not in held:
                data = receive(conn, raw)
                if not data:
                    return
                held += data
            head, _, held = held.partition(b"\r\n\r\n")
            text = head.decode("latin1")
            method, target = text.split("\r\n")[0].split(" ")[:2]
            fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in text.split("\r\n")[1:])}
            log("http", method=method, target=target, head=text, **told)
            body, held = self.body(conn, fields, held, raw)
            self.answer(conn, told, method, target, fields, text, body)
            if fields.get("connection", "").lower() == "close" or "HTTP/1.0" in text.split("\r\n")[0]:
                return

    @staticmethod
    def body(conn, fields, held, raw):
        if "chunked" in fields.get("transfer-encoding", ""):
            while not held.endswith(b"0\r\n\r\n"):
                data = receive(conn, raw)
                if not data:
                    raise ValueError("a body without an end")
                held += data
            return held, b""
        n = int(fields.get("content-length", 0))
        body = bytearray(held)
        while len(body) < n:
            data = receive(conn, raw)
            if not data:
                raise ValueError("a body without an end")
            body += data
        return bytes(body[:n]), bytes(body[n:])

    def answer(self, conn, told, method, target, fields, text, body):
        url = urlsplit(target)
        query = parse_qs(url.query)
        status, more, content = "200 OK", "", f"I am {told['address']}, Host: {fields.get('host')}, SNI: {told.get('sni')}\n".encode()
        if url.path == "/redirect":
            status, more = "302 Found", f"Location: {query['to'][0]}\r\n"
        elif url.path == "/bytes":
            content = None
        elif url.path == "/head":
            content = text.encode("latin1")
        elif url.path == "/count":
            content = str(len(body)).encode()
        elif url.path.startswith("/git/"):
            path = os.path.realpath(self.folder + url.path)
            if path.startswith(self.folder + "/git/") and os.path.isfile(path):
                with open(path, "rb") as f:
                    content = f.read()
            else:
                status = "404 Not Found"
        n = int(query["n"][0]) if content is None else len(content)
        conn.sendall(f"HTTP/1.1 {status}\r\n{more}Content-Length: {n}\r\nServer: canary\r\n\r\n".encode())
        if method == "HEAD":
            return
        if content is not None:
            conn.sendall(content)
            return
        block = bytes(1 << 16)
        while n > 0:
            conn.sendall(block[:n])
            n -= len(block)


class Tls:
    """TLS in front of another server. The first byte is written down before it is looked at."""

    def __init__(self, folder, inner):
        self.inner = inner
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder + "/server.crt", folder + "/server.key")
        self.context.sni_callback = lambda s, name, _: setattr(s, "asked_for", name)

    def __call__(self, conn, told, raw, log):
        first = conn.recv(1, socket.MSG_PEEK)
        if not first:
            return
        log("first", **told)
        raw.extend(first)
        with self.context.wrap_socket(conn, server_side=True) as tls:
            told["sni"] = getattr(tls, "asked_for", None)
            self.inner(tls, told, bytearray(), log)


def serve_udp(port, answer):
    """UDP at every IPv4 address; the answer comes from the address that was asked."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
    s.bind(("", port))

    def one(data, to, peer):
        reply = answer(data, socket.inet_ntoa(to))
        if reply is not None:
            s.sendmsg([reply], [(socket.IPPROTO_IP, 8, struct.pack("=I4s4s", 0, to, bytes(4)))], 0, peer)

    def go():
        while True:
            data, control, _, peer = s.recvmsg(4096, 256)
            threading.Thread(target=one, args=(data, control[0][2][8:12], peer), daemon=True).start()
    threading.Thread(target=go, daemon=True).start()


# ---- names ----

def wire_name(name):
    return b"".join(bytes([len(x)]) + x.encode("latin1") for x in name.split(".") if x) + b"\0"


def read_name(msg, at):
    labels, end = [], None
    for _ in range(128):
        n = msg[at]
        if n >= 0xc0:
            end = end or at + 2
            at = (n & 63) << 8 | msg[at + 1]
        elif n:
            labels.append(msg[at + 1:at + 1 + n].decode("latin1"))
            at += 1 + n
        else:
            return ".".join(labels), end or at + 1
    raise ValueError("a name without an end")


class Zone:
    """All names there are. Names that change their mind with every question: rebind.test and those below it."""

    def __init__(self, log):
        self.log, self.turn = log, itertools.count()

    def addresses(self, name, qtype):
        if name == "rebind.test" or name.endswith(".rebind.test"):
            return [[EXAMPLE], ["127.0.0.1"], [EXAMPLE], [HOST4], [EXAMPLE], [PRIVATE]][next(self.turn) % 6] if qtype == 1 else []
        if name.endswith(".wild.test"):
            return [WILD]
        if name.endswith(".evil.test"):
            return [EVIL]
        return NAMES.get(name)

    def records(self, name, qtype):
        """(answers as (owner, type, data), rcode)."""
        if name.startswith("c") and name.endswith(".chain.test"):
            first = int(name[1:].split(".")[0])
            links = [(f"c{i}.chain.test", 5, wire_name(f"c{i + 1}.chain.test")) for i in range(first, CHAIN)]
            return links + self.final(f"c{CHAIN}.chain.test", [EXAMPLE], qtype), 0
        if name in ("a.loop.test", "b.loop.test"):
            return [("a.loop.test", 5, wire_name("b.loop.test")), ("b.loop.test", 5, wire_name("a.loop.test"))], 0
        if name in ("short.chain.test", "private.chain.test"):
            to, found = ("example.test", [EXAMPLE]) if name.startswith("short") else ("private.test", [PRIVATE])
            return [(name, 5, wire_name(to))] + self.final(to, found, qtype), 0
        found = self.addresses(name, qtype)
        return ([], 3) if found is None else (self.final(name, found, qtype), 0)

    @staticmethod
    def final(name, found, qtype):
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(qtype)
        return [(name, qtype, socket.inet_pton(family, a)) for a in found if family and (":" in a) == (qtype == 28)]

    def answer(self, msg, server, proto="udp"):
        name, at = read_name(msg, 12)
        qtype, = struct.unpack(">H", msg[at:at + 2])
        self.log("dns", name=name.lower(), type=qtype, proto=proto, server=server)
        if name.lower() == "silent.test":
            return None
        if name.lower() == "slow.test":
            time.sleep(1)
        records, rcode = self.records(name.lower(), qtype)
        ttl = 0 if name.lower().endswith("rebind.test") else 60
        body = b"".join(wire_name(owner) + struct.pack(">HHIH", t, 1, ttl, len(data)) + data for owner, t, data in records)
        if name.lower() == "big.test" or proto == "udp" and len(body) > 1200:
            if proto == "udp":
                return msg[:2] + struct.pack(">HHHHH", 0x8380, 1, 0, 0, 0) + msg[12:at + 4]
        return msg[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, len(records), 0, 0) + msg[12:at + 4] + body

    def stream(self, conn, told, raw, log):
        held = b""
        while data := receive(conn, raw):
            held += data
            while len(held) >= 2 and len(held) >= 2 + struct.unpack(">H", held[:2])[0]:
                n = struct.unpack(">H", held[:2])[0]
                reply = self.answer(held[2:2 + n], told["address"], "tcp")
                held = held[2 + n:]
                if reply is not None:
                    conn.sendall(struct.pack(">H", len(reply)) + reply)


def internet(folder, log):
    more_files()
    web = Web(folder)
    for port, handler in ((80, web), (8080, web), (443, Tls(folder, web)), (8443, Tls(folder, web)), (7000, echo), (7001, banner)):
        serve(port, "internet", handler, log)
    zone = Zone(log)
    serve(53, "internet", zone.stream, log)
    serve_udp(53, zone.answer)
    for port in (443, 7002):
        serve_udp(port, lambda data, to: data)
    watch("internet0", "internet", log)


def host(folder, log):
    """What a host has on its own: services on its loopback, and some at all of its addresses."""
    web = Web(folder)
    for port in (HOST_OPEN, HOST_SHUT):
        serve(port, "host", web, log, "127.0.0.1")
    for port in (22, 80, 443, 7000):
        serve(port, "host", web, log)
    watch("lo", "host", log)


# ---- the keeper ----

def unshare(flags):
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def map_ids(uid, gid, to_uid, to_gid):
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{to_uid} {uid} 1")
    write("/proc/self/gid_map", f"{to_gid} {gid} 1")


def quiet(*words, **kw):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    r = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       env=dict(os.environ, PATH=path, HOME="/", GIT_CONFIG_NOSYSTEM="1"), **kw)
    if r.returncode:
        raise RuntimeError(f"{' '.join(words)}: {r.stdout.strip()}")


def make_certificates(folder):
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    names = ",".join([f"DNS:{n}" for n in CERTIFIED] + [f"IP:{a}" for a in CERTIFIED_ADDRESSES])
    quiet("openssl", "req", "-x509", *key, "-keyout", folder + "/ca.key", "-out", folder + "/ca.crt", "-subj", "/CN=made internet",
          "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    quiet("openssl", "req", *key[:-2], "-keyout", folder + "/server.key", "-out", folder + "/server.csr", "-subj", "/CN=example.test")
    write(folder + "/server.ext", f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
    quiet("openssl", "x509", "-req", "-in", folder + "/server.csr", "-CA", folder + "/ca.crt", "-CAkey", folder + "/ca.key",
          "-days", "2", "-extfile", folder + "/server.ext", "-set_serial", "7", "-out", folder + "/server.crt")


def make_repository(folder):
    """A repository that any web server can hand out as files."""
    work, bare = folder + "/work", folder + "/git/repo.git"
    os.makedirs(work)
    os.makedirs(folder + "/git")
    write(work + "/README", "hello from the made internet\n")
    quiet("git", "init", "-q", "-b", "main", work)
    quiet("git", "-C", work, "add", "README")
    quiet("git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@example.test", "commit", "-q", "-m", "one")
    quiet("git", "clone", "-q", "--bare", work, bare)
    quiet("git", "-C", bare, "update-server-info")


def fork(work):
    """A child that does `work` and ends; it dies with its parent, and stays out of the way of signals to the group."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        work()
        status = 0
    except BaseException as e:
        print(f"# world: {e!r}", flush=True)
    os._exit(status)


def run_server(ready, go, start):
    """Namespace first, then wait for its devices, then serve for ever."""
    os.write(ready, b"n")
    os.read(go, 1)
    start()
    os.write(ready, b"s")
    while True:
        signal.pause()


def start_internet(top, log):
    ready, told = os.pipe()
    go, begin = os.pipe()

    def work():
        unshare(CLONE_NEWNET)
        run_server(told, go, lambda: [ip_internet(), internet(top, log)])
    pid = fork(work)
    os.close(told)
    expect(ready, "the internet's namespace")
    quiet("ip", "link", "add", "host0", "type", "veth", "peer", "name", "internet0", "netns", str(pid))
    os.write(begin, b"g")
    ip_host()
    expect(ready, "the internet's servers")
    return pid


def start_host(top, log):
    ready, told = os.pipe()
    go, begin = os.pipe()
    pid = fork(lambda: run_server(told, go, lambda: host(top, log)))
    os.close(told)
    expect(ready, "the host")
    os.write(begin, b"g")
    expect(ready, "the host's servers")
    return pid


def expect(fd, what):
    if not select.select([fd], [], [], 20)[0] or not os.read(fd, 1):
        raise RuntimeError(f"{what} did not come up")


def ip_host():
    quiet("ip", "link", "set", "lo", "up")
    quiet("ip", "addr", "add", HOST4 + "/24", "dev", "host0")
    quiet("ip", "addr", "add", HOST_PUBLIC4 + "/32", "dev", "host0")
    if has_ipv6():
        quiet("ip", "addr", "add", HOST6 + "/64", "dev", "host0", "nodad")
        quiet("ip", "addr", "add", HOST_PUBLIC6 + "/128", "dev", "host0", "nodad")
    quiet("ip", "link", "set", "host0", "up")
    quiet("ip", "route", "add", "default", "via", INTERNET4, "src", HOST4)
    if has_ipv6():
        quiet("ip", "-6", "route", "add", "default", "via", INTERNET6, "src", HOST6)


def ip_internet():
    """Every address is local here, but those of the link: that route is in the main table, behind theirs."""
    quiet("ip", "link", "set", "lo", "up")
    for a in (INTERNET4, NAMESERVER):
        quiet("ip", "addr", "add", a + "/24", "dev", "internet0")
    if has_ipv6():
        quiet("ip", "addr", "add", INTERNET6 + "/64", "dev", "internet0", "nodad")
    quiet("ip", "link", "set", "internet0", "up")
    quiet("ip", "route", "add", "local", "default", "dev", "lo", "table", "main")
    if has_ipv6():
        quiet("ip", "-6", "route", "add", "local", "default", "dev", "lo", "table", "main")


def start_suite(script, args, top, uid, gid):
    def work():
        if uid:
            unshare(CLONE_NEWUSER)
            map_ids(0, 0, uid, gid)
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-B", script, "--inside", top, *args])
    return fork(work)


def parents():
    """{pid: (parent, state, name)} of all there are."""
    found = {}
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(pid)}/stat") as f:
                name, _, rest = f.read().partition(" (")[2].rpartition(") ")
            found[int(pid)] = (int(rest.split()[1]), rest[0], name)
        except (OSError, ValueError, IndexError):
            pass
    return found


def descendants(top):
    """{pid: name} of everything below a process that is not a zombie."""
    table, below = parents(), {top}
    while True:
        more = {p for p, (up, _, _) in table.items() if up in below} - below
        if not more:
            return {p: table[p][2] for p in below if p != top and p in table and table[p][1] != "Z"}
        below |= more


def reap(wanted, timeout=None):
    """Buries orphans until `wanted` is dead; its status, or None when the time is over."""
    end = time.monotonic() + timeout if timeout is not None else None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == wanted:
            return os.waitstatus_to_exitcode(status)
        if not pid:
            if end and time.monotonic() > end:
                return None
            time.sleep(0.02)


def clear():
    """Nobody below is left."""
    for _ in range(500):
        left = descendants(os.getpid())
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        reap(-1, 0)
        if not left:
            return
        time.sleep(0.01)


def keep(script, args):
    """The suite's exit status."""
    uid, gid = os.getuid(), os.getgid()
    top = tempfile.mkdtemp(prefix="clawden-egress-")
    os.chmod(top, 0o755)
    suite = 0

    def stop(number, _):
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        if not suite:
            raise SystemExit(128 + number)
        os.kill(suite, signal.SIGTERM)
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, stop)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        make_certificates(top)
        make_repository(top)
        unshare(CLONE_NEWNET | (CLONE_NEWUSER if uid else 0))
        if uid:
            map_ids(uid, gid, 0, 0)
        log = Log(top + "/internet.log")
        start_internet(top, log)
        start_host(top, log)
        suite = start_suite(script, args, top, uid, gid)
        status = reap(suite)
        return status if status is not None and status >= 0 else 1
    finally:
        clear()
        shutil.rmtree(top, ignore_errors=True)


# ---- in the box: probes ----

def error_name(e):
    if isinstance(e, TimeoutError):
        return "timeout"
    return errno.errorcode.get(e.errno, repr(e)) if isinstance(e, OSError) and e.errno else repr(e)


class Talk:
    """One TCP connection, step by step, and everything that came back."""

    def __init__(self, probe, through):
        to = through if probe.get("relayed") else probe["to"]
        self.got, self.end, self.probe = b"", "", probe
        self.begun = time.monotonic()
        self.s = None
        try:
            self.s = socket.create_connection(tuple(to), timeout=probe.get("timeout", 3))
            all(self.step(x) for x in probe["steps"])
            self.finish()
        except OSError as e:
            self.end = error_name(e)

    def read(self):
        data = self.s.recv(65536)
        self.got += data
        if not data:
            self.end = "eof"
        return bool(data)

    def finish(self):
        while not self.end and len(self.got) < 1 << 20:
            self.read()

    def step(self, x):
        """False: nothing more is to be said."""
        kind, value = next(iter(x.items()))
        if kind == "send":
            self.s.sendall(value.encode("latin1"))
        elif kind == "bytewise":
            self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for b in value.encode("latin1"):
                self.s.sendall(bytes([b]))
        elif kind == "until":
            while value.encode("latin1") not in self.got:
                if not self.read():
                    return False
        elif kind == "size":
            while len(self.got) < value:
                if not self.read():
                    return False
        elif kind == "pause":
            time.sleep(value)
        elif kind == "shut":
            self.s.shutdown(socket.SHUT_WR)
        elif kind == "reset":
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif kind == "done":
            self.end = "done"
        return True

    def result(self):
        if self.s:
            self.s.close()
        return {"got": self.got[:65536].decode("latin1"), "size": len(self.got), "end": self.end,
                "seconds": round(time.monotonic() - self.begun, 3)}


def probe_tls(p):
    """A real TLS client, by a proxy or not, that asks for a page."""
    s = socket.create_connection(tuple(p["to"]), timeout=p.get("timeout", 5))
    with s:
        if p.get("before"):
            s.sendall(p["before"].encode("latin1"))
            got = b""
            while not got.endswith(b"\r\n\r\n"):
                data = s.recv(1)
                if not data:
                    return {"got": got.decode("latin1"), "end": "eof"}
                got += data
        context = ssl.create_default_context(cafile="ca.crt")
        context.check_hostname = bool(p.get("sni"))
        with context.wrap_socket(s, server_hostname=p.get("sni")) as tls:
            tls.sendall(f"GET {p.get('path', '/')} HTTP/1.1\r\nHost: {p.get('host', p.get('sni'))}\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while data := tls.recv(65536):
                got += data
            return {"got": got[:65536].decode("latin1"), "size": len(got), "end": "eof"}


def probe_udp(p):
    with socket.socket(socket.AF_INET6 if ":" in p["to"][0] else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(p.get("timeout", 1))
        s.connect(tuple(p["to"]))
        s.send(p.get("send", "x").encode("latin1"))
        return {"got": s.recv(4096).decode("latin1"), "end": "answer"}


def read_answer(msg):
    """What a box's program can learn from it."""
    flags, questions, n, _, more = struct.unpack(">HHHHH", msg[2:12])
    at, found, text = 12, [], ""
    for _ in range(questions):
        at = read_name(msg, at)[1] + 4
    for i in range(n + more):
        at = read_name(msg, at)[1]
        kind, _, _, size = struct.unpack(">HHIH", msg[at:at + 10])
        data = msg[at + 10:at + 10 + size]
        at += 10 + size
        if i < n:
            found.append(socket.inet_ntop({4: socket.AF_INET, 16: socket.AF_INET6}[size], data) if kind in (1, 28) else f"type {kind}")
        elif kind == 41 and data[:2] == b"\0\x0f":  # extended DNS error (RFC 8914)
            text = data[6:4 + struct.unpack(">H", data[2:4])[0]].decode("latin1")
    return {"rcode": flags & 15, "found": found, "text": text}


def probe_dns(p):
    name = base64.b64decode(p["wire"]) if "wire" in p else wire_name(p["name"])
    msg = struct.pack(">HHHHHH", random.randrange(65536), 0x0100, 1, 0, 0, 1) + name + struct.pack(">HH", p.get("type", 1), 1)
    msg += b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
    server = (p.get("server", "127.0.0.1"), 53)
    family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
    tcp = p.get("proto") == "tcp"
    with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(p.get("timeout", 2))
        s.connect(server)
        s.sendall((struct.pack(">H", len(msg)) if tcp else b"") + msg)
        reply = s.recv(4096)
        return dict(read_answer(reply[2:] if tcp else reply), end="answer")


def probe_socket(p):
    """May it be made, and does a message leave by it?"""
    with socket.socket(p["family"], p["type"], p.get("proto", 0)) as s:
        s.settimeout(0.5)
        s.connect(tuple(p["to"]))
        s.send(b"\x08\0\0\0\0\1\0\1" + bytes(8))
        s.recv(100)
        return {"end": "answer"}


def probe_hold(p):
    """Many connections, all held; how the relay took them, and whether they still stand at the end."""
    held, statuses = [], []
    more_files()
    for i in range(p["n"]):
        try:
            s = socket.create_connection(tuple(p["to"]), timeout=10)
            s.sendall(p["sends"][i % len(p["sends"])].encode("latin1"))
            got = s.recv(4096)
            statuses.append(got[9:12].decode("latin1"))
            held.append(s)
        except OSError as e:
            statuses.append(error_name(e))
        time.sleep(p.get("pause", 0))
    print(json.dumps(statuses), flush=True) if p.get("tell") else None
    time.sleep(p.get("seconds", 0))
    still = 0
    for s in held:
        s.setblocking(False)
        try:
            still += s.recv(1) != b""
        except BlockingIOError:
            still += 1
        except OSError:
            pass
        s.close()
    return {"statuses": statuses, "still": still}


def probe_resolve(p):
    try:
        return {"found": sorted({x[4][0] for x in socket.getaddrinfo(p["name"], 80, type=socket.SOCK_STREAM)}), "end": "answer"}
    except socket.gaierror as e:
        return {"found": [], "end": str(e)}


def probe_run(p):
    """A program of the box, with the variables that are named or those that it was given."""
    r = subprocess.run(p["argv"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=p.get("env"),
                       timeout=p.get("timeout", 20))
    return {"code": r.returncode, "out": r.stdout[:65536].decode("latin1"), "err": r.stderr[:4096].decode("latin1"), "end": "ran"}


def start_forwarder(to):
    """A program of the box that carries others' connections to the proxy, as a clever one might."""
    s = socket.create_server(("127.0.0.1", 0))

    def copy(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def go():
        while True:
            a, _ = s.accept()
            b = socket.create_connection(to)
            for x, y in ((a, b), (b, a)):
                threading.Thread(target=copy, args=(x, y), daemon=True).start()
    threading.Thread(target=go, daemon=True).start()
    return s.getsockname()


def probe_one(p, through):
    try:
        if p["op"] == "talk":
            return Talk(p, through).result()
        if p["op"] == "links":
            return {"found": [n for _, n in socket.if_nameindex()]}
        return {"tls": probe_tls, "udp": probe_udp, "dns": probe_dns, "socket": probe_socket, "hold": probe_hold,
                "resolve": probe_resolve, "run": probe_run}[p["op"]](p)
    except (OSError, ValueError, struct.error, subprocess.TimeoutExpired) as e:
        return {"end": error_name(e), "got": ""}


def probe():
    todo = json.load(sys.stdin)
    through = start_forwarder(("127.0.0.1", 3128)) if any(p.get("relayed") for p in todo["probes"]) else None
    with ThreadPoolExecutor(todo.get("parallel", 16)) as pool:
        results = list(pool.map(lambda p: probe_one(p, through), todo["probes"]))
    print(json.dumps(results), flush=True)
    os._exit(0)


def stay(targets):
    """Holds a connection to the echo of each HOST:PORT by CONNECT, and says when it is up and when it is down."""
    say = threading.Lock()

    def tell(target, state):
        with say:
            print(json.dumps({"target": target, "state": state, "at": time.monotonic()}), flush=True)

    def one(target):
        try:
            s = socket.create_connection(("127.0.0.1", 3128), timeout=5)
            s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            got = s.recv(4096)
            if b" 200 " not in got[:20]:
                return tell(target, got[9:12].decode())
            first = True
            while True:
                s.sendall(b"x")
                if not s.recv(10):
                    break
                if first:
                    tell(target, "up")
                first = False
                time.sleep(0.02)
        except OSError:
            pass
        tell(target, "down")
    for t in targets:
        threading.Thread(target=one, args=(t,), daemon=True).start()
    while select.select([0], [], [])[0] and os.read(0, 100):
        pass


def flood(target, seconds):
    """CONNECTs, one after the other, each with when it was begun and what was answered."""
    done, end = [], time.monotonic() + float(seconds)
    print("up", flush=True)
    while time.monotonic() < end:
        at = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", 3128), timeout=5) as s:
                s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
                status = s.recv(4096)[9:12].decode("latin1")
        except OSError as e:
            status = error_name(e)
        done.append([at, status])
        time.sleep(0.012)  # two of them stay below the cap of new connections
    print(json.dumps(done), flush=True)


if __name__ == "__main__":
    {"probe": probe, "stay": lambda: stay(sys.argv[2:]), "flood": lambda: flood(*sys.argv[2:])}[sys.argv[1]]()
