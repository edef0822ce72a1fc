# SPDX-License-Identifier: Apache-2.0
"""What the suites of the gateway share: a person with a gateway of his own, and clients that can misbehave.

    w.start(); t = w.token(); w.call("exec", {"command": "true"}, token=t)
"""
import base64
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from tap import need, same, wait_for

ARGS = None  # set by gateway.py


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def get(self, name):
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Closed(Exception):
    """The other side closed before an answer was whole."""


class Conn:
    """One connection, byte by byte; `where` is a port or a socket's path."""

    def __init__(self, where, timeout=20, tls=None, rcvbuf=0):
        self.s = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        if rcvbuf:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.s.settimeout(timeout)
        self.s.connect(where if isinstance(where, str) else ("127.0.0.1", where))
        if tls:
            self.s = tls.wrap_socket(self.s, server_hostname="localhost")
        self.buf = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.s.close()

    def send(self, data):
        self.s.sendall(data)

    def more(self):
        try:
            data = self.s.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(f"after {self.buf[:200]!r}")
        self.buf += data

    def line(self):
        while b"\n" not in self.buf:
            self.more()
        line, self.buf = self.buf.split(b"\n", 1)
        return line.rstrip(b"\r")

    def take(self, n):
        while len(self.buf) < n:
            self.more()
        data, self.buf = self.buf[:n], self.buf[n:]
        return data

    def head(self):
        """(status, headers) of the next answer; 100 is left out."""
        while True:
            m = re.match(rb"HTTP/1\.[01] (\d{3})", self.line())
            need(m, "no status line")
            headers = []
            while True:
                line = self.line()
                if not line:
                    break
                k, v = line.split(b":", 1)
                headers.append((k.decode(), v.strip().decode("latin-1")))
            if m[1] != b"100":
                return int(m[1]), headers

    def pieces(self, headers):
        """The body as it comes."""
        h = {k.lower(): v for k, v in headers}
        if "chunked" in h.get("transfer-encoding", ""):
            while True:
                n = int(self.line().split(b";")[0], 16)
                if n == 0:
                    while self.line():
                        pass
                    return
                yield self.take(n)
                same(self.take(2), b"\r\n", "chunk")
        elif "content-length" in h:
            if int(h["content-length"]):
                yield self.take(int(h["content-length"]))
        else:
            try:
                while True:
                    if self.buf:
                        yield self.take(len(self.buf))
                    self.more()
            except Closed:
                return

    def reply(self, head_only=False):
        status, headers = self.head()
        empty = head_only or status in (101, 204, 304)
        return Reply(status, headers, b"" if empty else b"".join(self.pieces(headers)))

    def ends(self, seconds=5):
        """The other side closes."""
        self.s.settimeout(seconds)
        try:
            while True:
                self.more()
        except Closed:
            return True
        except TimeoutError:
            return False


def request(method, path, headers=(), body=None, host="127.0.0.1"):
    lines = [f"{method} {path} HTTP/1.1"]
    if host:
        lines.append(f"Host: {host}")
    lines += [f"{k}: {v}" for k, v in headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


class Stream:
    """Server-sent events of one answer."""

    def __init__(self, conn, raw):
        self.c = conn
        conn.send(raw)
        self.status, self.headers = conn.head()
        self.text = b""
        self.left = conn.pieces(self.headers)

    def __iter__(self):
        """(id, name, data) of each; ends with the answer."""
        for piece in self.left:
            self.text += piece
            while b"\n\n" in self.text:
                one, self.text = self.text.split(b"\n\n", 1)
                e = {}
                for line in one.split(b"\n"):
                    k, _, v = line.partition(b": ")
                    e[k] = e[k] + b"\n" + v if k in e else v
                if b"data" in e:
                    yield int(e[b"id"]) if b"id" in e else None, e.get(b"event", b"").decode(), json.loads(e[b"data"])


class WebSocket:
    def __init__(self, where, headers=(), path="/v1/ws", timeout=20):
        self.c = Conn(where, timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.c.send(request("GET", path, [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
                                          ("Sec-WebSocket-Key", key), *headers]))
        self.status, self.headers = self.c.head()
        if self.status != 101:
            self.reply = Reply(self.status, self.headers, b"".join(self.c.pieces(self.headers)))

    def frame(self, data, op=1, first=0x80, masked=True):
        if isinstance(data, str):
            data = data.encode()
        n, bit = len(data), 0x80 if masked else 0
        size = bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 else bytes([bit | 127]) + struct.pack(">Q", n)
        mask = os.urandom(4)
        if masked:
            data = mask + (int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
        return bytes([first | op]) + size + data

    def send(self, value):
        self.c.send(self.frame(json.dumps(value)))

    def recv(self):
        """(op, bytes) of the next frame."""
        a, b = self.c.take(2)
        n = b & 0x7f
        if n == 126:
            n = struct.unpack(">H", self.c.take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.c.take(8))[0]
        return a & 15, self.c.take(n)

    def message(self):
        """The next message as a value; a close frame is its code."""
        while True:
            op, data = self.recv()
            if op == 8:
                return struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
            if op in (1, 2):
                return json.loads(data)
            if op == 9:
                self.c.send(self.frame(data, op=10))

    def close_code(self, seconds=5):
        self.c.s.settimeout(seconds)
        try:
            while True:
                m = self.message()
                if isinstance(m, int):
                    return m
        except Closed:
            return 1006


class World:
    """A person with a workspace and a gateway."""

    def __init__(self):
        self.bin = os.path.abspath(ARGS.bin)
        self.top = tempfile.mkdtemp(prefix="clawden-gateway-")
        os.chmod(self.top, 0o755)
        self.home, self.ws, self.data, self.run = (os.path.join(self.top, d) for d in ("home", "ws", "data", "run"))
        for d in (self.home, self.ws, self.data, self.run):
            os.mkdir(d, 0o700)
        os.mkdir(os.path.join(self.home, ".openclaw"))
        if os.getuid() == 0:
            os.chown(self.ws, 1000, 1000)
        self.env = {"HOME": self.home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "CLAWDEN_DATA_DIR": self.data, "CLAWDEN_EGRESS_IDLE": "1",
                    "CLAWDEN_RUNTIME_DIR": self.run, "CLAWDEN_NO_SPAWNER": "1"}
        self.p, self.front, self.port = None, 0, 0
        self.others = []
        self.configure()

    def configure(self, text=None, **sandbox):
        if text is None:
            text = json.dumps({"agents": {"defaults": {"workspace": self.ws, "sandbox": sandbox}}})
        with open(os.path.join(self.home, ".openclaw/openclaw.json"), "w") as f:
            f.write(text)

    # ---- the gateway ----

    def spawn(self, *words, **kw):
        """A gateway; its output so far is told by `output`."""
        kw.setdefault("env", self.env)
        kw.setdefault("preexec_fn", die_with_parent)
        log = tempfile.TemporaryFile(dir=self.top)
        p = subprocess.Popen([os.path.join(self.bin, "clawden-gateway"), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.top, **kw)
        p.log = log
        self.others.append(p)
        return p

    def output(self, p=None):
        log = (p or self.p).log
        return os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")

    def start(self, *words, listen="127.0.0.1:0", **kw):
        self.p = self.spawn(*(("--listen", listen) if listen else ()), "--no-link", *words, **kw)
        need(wait_for(lambda: "listens on" in self.output() or self.p.poll() is not None, 20), f"it does not start: {self.output()}")
        m = re.search(r"listens on https?://[^ ]*:(\d+)", self.output())
        self.port = int(m[1]) if m else 0
        need(self.p.poll() is None, f"it ended: {self.output()}")
        self.front = min(int(x) for x in self.children())
        return self

    def children(self):
        with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children") as f:
            return f.read().split()

    def pids(self):
        return [self.p.pid, self.front]

    def kill(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.p.wait(10)

    def term(self, seconds=15):
        self.p.terminate()
        return self.p.wait(seconds)

    def rss(self):
        """KiB of both processes."""
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/status") as f:
                total += int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
        return total

    def sanitized(self):
        """A build whose memory says nothing."""
        with open(f"/proc/{self.front}/status") as f:
            return int(re.search(r"VmSize:\s+(\d+)", f.read())[1]) > 1 << 30

    def grew(self, before, most_mib=32):
        """The gateway's memory is bounded."""
        need(self.sanitized() or self.rss() - before < most_mib << 10, f"it grew by {self.rss() - before} KiB")

    def alive(self):
        """It runs, and has said nothing that it should not."""
        need(self.p.poll() is None, f"the gateway ended with {self.p.returncode}: {self.output()[-800:]}")
        need("Sanitizer" not in self.output(), self.output()[-3000:])
        same(self.get("/healthz").status, 200, "healthz")

    def left(self):
        """Processes of this world's gateways, as far as they can be told."""
        found = []
        for pid, line in cmdlines():
            try:
                if b"clawden-gateway" in line and os.readlink(f"/proc/{pid}/cwd") == self.top:
                    found.append(pid)
            except OSError:
                pass
        return found

    def close(self):
        for p in self.others:
            if p.poll() is None:
                p.terminate()
                try:
                    p.wait(3)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
            p.log.close()
        self.clawden("sandbox", "recreate", "--all", "--force")
        boxes = os.path.join(self.data, "boxes")
        for name in os.listdir(boxes) if os.path.isdir(boxes) else []:
            subprocess.run([os.path.join(self.bin, "../libexec/clawden/bin/docker"), "rm", "-f", name], env=self.env, cwd=self.top,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        shutil.rmtree(self.top, ignore_errors=True)

    # ---- other programs ----

    def clawden(self, *words):
        return subprocess.run([os.path.join(self.bin, "clawden"), *words], env=self.env, cwd=self.top, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def token(self, agent="main", session="agent:main:*", *words):
        r = self.clawden("token", "create", "--agent", agent, "--session", session, "--json", *words)
        same(r.returncode, 0, r.stderr)
        text = re.search(r"cdn_[0-9a-f]{12}_[0-9a-f]{64}", r.stdout)[0]
        if not hasattr(self, "t"):
            self.t = text
        return text

    # ---- requests ----

    def auth(self, token=None):
        return [("Authorization", f"Bearer {token or self.t}")]

    def raw(self, data, timeout=20):
        """What a connection that sends these bytes gets as its first answer."""
        with Conn(self.port, timeout) as c:
            try:
                c.send(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return c.reply()

    def ask(self, method, path, headers=(), body=None, token=None, timeout=60, host="127.0.0.1"):
        """With a token, if there is one: token=False for none."""
        h = list(headers)
        if token is not False:
            h += self.auth(token)
        with Conn(self.port, timeout) as c:
            try:
                c.send(request(method, path, h, body, host))
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was refused before all of it was sent
            return c.reply(head_only=method == "HEAD")

    def get(self, path, **kw):
        return self.ask("GET", path, **(kw if hasattr(self, "t") else dict(kw, token=False)))

    def post(self, path, value, headers=(), **kw):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask("POST", path, [("Content-Type", "application/json"), *headers], body, **kw)

    def call(self, tool, arguments=None, status=200, token=None, timeout=60, **more):
        """The answer's body."""
        r = self.post("/v1/call", dict({"tool": tool, "arguments": arguments or {}}, **more), token=token, timeout=timeout)
        same(r.status, status, f"{tool}: {r!r}")
        return r.json

    def exec(self, line, **more):
        """The result of a command line."""
        return self.call("exec", dict({"command": line}, **more))["result"]

    def begin(self, line, **more):
        """A command in the background: its id."""
        return self.exec(line, background=True, **more)["process"]

    def process(self, action, pid=None, **more):
        return self.call("process", dict({"action": action}, **({"process": pid} if pid else {}), **more))["result"]

    def stream_call(self, line, headers=(), more=None, conn=None, **arguments):
        body = json.dumps(dict({"tool": "exec", "arguments": dict({"command": line}, **arguments), "stream": True}, **(more or {}))).encode()
        return Stream(conn or Conn(self.port), request("POST", "/v1/call", [("Content-Type", "application/json"), *self.auth(), *headers], body))

    def stream_events(self, call, after=None, token=None, conn=None):
        last = [("Last-Event-ID", str(after))] if after is not None else []
        return Stream(conn or Conn(self.port), request("GET", f"/v1/calls/{call}/events", self.auth(token) + last))

    def socket(self, headers=None, **kw):
        return WebSocket(self.port, self.auth() if headers is None else headers, **kw)

    def audit(self, **filters):
        """Records as in the files, oldest first."""
        found = []
        for path in sorted(glob.glob(os.path.join(self.data, "logs", "audit*.jsonl*"))):
            with open(path) as f:
                found += [json.loads(line) for line in f if line.strip()]
        return [r for r in found if all(r.get(k) == v for k, v in filters.items())]

    def path(self, *names):
        return os.path.join(self.ws, *names)

    def text(self, name):
        with open(self.path(name)) as f:
            return f.read()


def cmdlines():
    """Every command line of the machine that can be seen."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                yield int(path.split("/")[2]), f.read()
        except OSError:
            pass


def running(marker):
    """Processes whose words hold the marker; who only asks about it is not among them."""
    return [pid for pid, line in cmdlines() if marker.encode() in line and pid != os.getpid() and b"gateway.py" not in line]


def ends(marker, seconds=5):
    return wait_for(lambda: not running(marker), seconds)
