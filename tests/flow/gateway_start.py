# SPDX-License-Identifier: Apache-2.0
"""How a gateway starts, is told things, and ends."""
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time

import gateway_client as client
from gateway_client import Closed, Conn, request
from tap import Skip, need, same, test, wait_for


def refused(w, *words, **kw):
    """What it says before it ends; it must not listen."""
    p = w.spawn(*words, **kw)
    need(wait_for(lambda: p.poll() is not None or "listens on" in w.output(p)), "it does nothing")
    need("listens on" not in w.output(p), f"{words}: it started: {w.output(p)}")
    return p.wait(10), w.output(p)


@test("words that are none are refused with 2, help and version are answered")
def _(w):
    for words in (["--nothing"], ["--listen"], ["extra"], ["--tls-cert", "x"], ["--host", ""], ["--agent", "main"], ["--session", "x"],
                  ["--stdio", "--listen", "127.0.0.1:0"]):
        same(refused(w, *words)[0], 2, words)
    for path, why in ((os.path.join(w.top, "nowhere"), "No such file"), ("/etc/passwd", "certificate")):
        code, text = refused(w, "--listen", "127.0.0.1:0", "--tls-cert", path, "--tls-key", path)
        need(code == 1 and len(text.splitlines()) == 1 and f"--tls-cert '{path}'" in text and why in text, text)
    for words in ("--help", "--version"):
        r = subprocess.run([os.path.join(w.bin, "clawden-gateway"), words], capture_output=True, text=True, env=w.env)
        need(r.returncode == 0 and "clawden-gateway" in r.stdout, r)
    for bad in ("127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x", "nowhere:1", ":1", "[::1", "127.0.0.1:-1", "unix:" + "x" * 200):
        code, text = refused(w, "--listen", bad)
        need(code == 1 and "listen" in text and len(text.splitlines()) == 1, text)


@test("the standard port is taken: it takes the next one and says so; a port that was asked for and is taken is refused")
def _(w):
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", 18789))
        taken.listen()
    except OSError:
        pass  # somebody else has it: all the same
    w.start(listen=None).token()
    need(18789 < w.port <= 18789 + 31 and "port 18789 is taken, this is the next one that is free" in w.output(), w.output())
    same(w.get("/v1/me").status, 200)
    w.term()
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    port = other.getsockname()[1]
    code, text = refused(w, "--listen", f"127.0.0.1:{port}")
    need(code == 1 and str(port) in text and "in use" in text, text)
    taken.close()
    other.close()


@test("a second gateway of the same user is refused and says what to do; the first goes on; after it another starts")
def _(w):
    w.start().token()
    code, text = refused(w, "--listen", "127.0.0.1:0")
    need(code == 1 and "runs already" in text and "CLAWDEN_DATA_DIR" in text, text)
    w.alive()
    w.kill()
    w.start()
    same(w.get("/v1/me").status, 200)


@test("HT-38 an address that others can reach, without TLS, is refused")
def _(w):
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        code, text = refused(w, "--listen", address)
        need(code == 1 and "--tls-cert" in text, text)
    s = socket.socket()
    s.bind(("0.0.0.0", 0))
    s.listen()
    code, text = refused_activated(w, s)
    need(code == 1 and "LISTEN_FDS" in text, text)
    s.close()


def activated(w, s, *words):
    """With a socket of ours as descriptor 3."""
    def place():
        client.die_with_parent()
        os.dup2(s.fileno(), 3)
        os.set_inheritable(3, True)
    log = open(os.path.join(w.top, "activated.log"), "w+b")
    p = subprocess.Popen(["/bin/sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"', os.path.join(w.bin, "clawden-gateway"), "--no-link", *words], env=w.env, stdin=subprocess.DEVNULL,
                         stdout=log, stderr=log, cwd=w.top, preexec_fn=place, close_fds=False)
    p.log = log
    w.others.append(p)
    return p


def refused_activated(w, s):
    p = activated(w, s)
    return p.wait(10), w.output(p)


@test("a socket that is handed over (LISTEN_FDS) is used, TCP or unix, and no other is opened")
def _(w):
    w.token()
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", 0))
    tcp.listen()
    path = os.path.join(w.top, "given.sock")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(path)
    unix.listen()
    for s, where in ((tcp, tcp.getsockname()[1]), (unix, path)):
        w.p = activated(w, s)
        need(wait_for(lambda: "listens on" in w.output()), w.output())
        with Conn(where) as c:
            c.send(request("GET", "/v1/me", w.auth()))
            same(c.reply().status, 200)
        if where != path:
            need(f":{where}" in w.output(), w.output())
        same(w.term(), 0)
        s.close()


@test("NOTIFY_SOCKET hears READY, RELOADING and STOPPING")
def _(w):
    path = os.path.join(w.top, "notify")
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path)
    s.settimeout(5)
    w.env = dict(w.env, NOTIFY_SOCKET=path)
    w.start()
    need(b"READY=1" in s.recv(4096), "READY")
    w.p.send_signal(signal.SIGHUP)
    need(b"RELOADING=1" in s.recv(4096), "RELOADING")
    need(b"READY=1" in s.recv(4096), "READY again")
    w.p.terminate()
    need(b"STOPPING=1" in s.recv(4096), "STOPPING")
    same(w.p.wait(10), 0)
    s.close()


@test("SIGTERM: what runs comes to its end and is answered, new calls are not taken; a second one ends it at once")
def _(w):
    w.start().token()
    w.exec("true")
    got = []
    t = threading.Thread(target=lambda: got.append(w.exec("sleep 1; echo done; exit 3")))
    t.start()
    idle = Conn(w.port)
    idle.send(request("GET", "/healthz"))
    idle.reply()
    need(wait_for(lambda: client.running("sleep\0001")), "it does not run")
    time.sleep(0.2)
    w.p.terminate()
    time.sleep(0.2)
    try:
        idle.send(request("POST", "/v1/call", [("Content-Type", "application/json"), *w.auth()], b'{"tool":"exec","arguments":{"command":"touch late"}}'))
        same(idle.reply().status, 503)
    except (Closed, OSError):
        pass
    try:
        Conn(w.port, 2)
        need(False, "it still accepts")
    except OSError:
        pass
    t.join(10)
    need(got and (got[0]["stdout"], got[0]["exitCode"]) == ("done\n", 3), got)
    same((w.p.wait(10), os.path.exists(w.path("late"))), (0, False))
    same([r["state"] for r in w.audit(event="call.end")], ["done", "done"])
    w.start()
    m = "7611223"
    c = w.stream_call(f"sleep {m}")
    need(wait_for(lambda: client.running(m)), "it does not run")
    w.p.terminate()
    time.sleep(0.3)
    need(w.p.poll() is None, "it did not wait")
    begin = time.monotonic()
    w.p.terminate()
    w.p.wait(5)
    need(time.monotonic() - begin < 9 and client.ends(m), "it did not end at once")


@test("a unix socket: 0600, replaced if it was left behind, refused if somebody answers or it is no socket")
def _(w):
    path = os.path.join(w.top, "g.sock")
    w.start(listen=f"unix:{path}").token()
    same(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    go = lambda: Conn(path)
    with go() as c:
        c.send(request("GET", "/v1/me", w.auth(), host="localhost"))
        same(c.reply().status, 200)
    with go() as c:
        c.send(request("GET", "/v1/me", host="localhost"))
        same(c.reply().status, 401, "the file's mode is no credential")
    env = dict(w.env, CLAWDEN_DATA_DIR=w.data + "2", CLAWDEN_RUNTIME_DIR=w.run + "2")
    os.mkdir(w.run + "2", 0o700)
    code, text = refused(w, "--listen", f"unix:{path}", env=env)
    need(code == 1 and "in use" in text, text)
    w.kill()
    need(os.path.exists(path), "it is left")
    w.start(listen=f"unix:{path}")
    with go() as c:
        c.send(request("GET", "/v1/me", w.auth(), host="localhost"))
        same(c.reply().status, 200, "after a kill")
    w.term()
    plain = os.path.join(w.top, "plain")
    with open(plain, "w") as f:
        f.write("x")
    code, text = refused(w, "--listen", f"unix:{plain}")
    need(code == 1 and open(plain).read() == "x", text)


def certificate(w, name):
    key, cert = (os.path.join(w.top, f"{name}.{x}") for x in ("key", "pem"))
    r = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], capture_output=True, text=True)
    same(r.returncode, 0, r.stderr)
    return cert, key


def trusting(cert):
    return ssl.create_default_context(cafile=cert)


@test("TLS: works with a certificate of one's own, 1.2 at least; SIGHUP brings a new one, a broken one changes nothing")
def _(w):
    if not os.path.exists("/usr/bin/openssl"):
        raise Skip("no openssl here to make a certificate with")
    cert, key = certificate(w, "first")
    use = [os.path.join(w.top, x) for x in ("cert", "key")]
    place = lambda c, k: [open(u, "wb").write(open(f, "rb").read()) for u, f in zip(use, (c, k))]
    place(cert, key)
    os.chmod(use[1], 0o600)
    w.start("--tls-cert", use[0], "--tls-key", use[1]).token()
    need("https://127.0.0.1" in w.output(), w.output())

    def ask(ca):
        with Conn(w.port, tls=trusting(ca)) as c:
            c.send(request("GET", "/v1/me", w.auth(), host="localhost"))
            return c.reply().status, c.s.version()
    status, version = ask(cert)
    same(status, 200)
    need(version in ("TLSv1.2", "TLSv1.3"), version)
    with Conn(w.port, 5) as c:
        try:
            c.send(request("GET", "/v1/me", w.auth()))
            need(c.reply().status != 200, "plain text was answered")
        except (Closed, OSError):
            pass
    old = trusting(cert)
    try:
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        Conn(w.port, tls=old)
        need(False, "TLS 1.1 was taken")
    except (ssl.SSLError, OSError):
        pass
    stay = Conn(w.port, tls=trusting(cert))
    second, key2 = certificate(w, "second")
    place(second, key2)
    w.p.send_signal(signal.SIGHUP)

    def works(ca):
        try:
            return ask(ca)[0] == 200
        except ssl.SSLError:
            return False
    need(wait_for(lambda: works(second)), f"the new one is not used: {w.output()}")
    need(not works(cert), "the old one is")
    stay.send(request("GET", "/v1/me", w.auth(), host="localhost"))
    same(stay.reply().status, 200, "a connection that was open")
    for text in (b"nothing", b"", open(second, "rb").read()[:200]):
        with open(use[0], "wb") as f:
            f.write(text)
        said = len(w.output())
        w.p.send_signal(signal.SIGHUP)
        need(wait_for(lambda: len(w.output()) > said), "nothing is said")
        need(works(second), f"{text[:20]}: the good one is gone: {w.output()}")
    same(w.term(), 0)
    place(second, key)  # the key is another one's
    p = w.spawn("--listen", "127.0.0.1:0", "--tls-cert", use[0], "--tls-key", use[1])
    need(p.wait(10) == 1 and "key" in w.output(p) and "listens" not in w.output(p), w.output(p))
    place(second, key2)
    w.start("--tls-cert", use[0], "--tls-key", use[1], listen="0.0.0.0:0")
    need(works(second), "control: every address, with TLS")


@test("SIGHUP reads the configuration; a broken one keeps the last good one and readyz tells")
def _(w):
    w.start().token()
    deny = {"agents": {"defaults": {"workspace": w.ws, "sandbox": {}}}, "tools": {"sandbox": {"tools": {"deny": ["write"]}}}}
    write = lambda: w.post("/v1/call", {"tool": "write", "arguments": {"path": "f", "content": "x"}}).status
    same(write(), 200)

    def reload():
        said = len(w.output())
        w.p.send_signal(signal.SIGHUP)
        need(wait_for(lambda: len(w.output()) > said), "nothing is said")
        time.sleep(0.05)
    w.configure(json.dumps(deny))
    same(write(), 200, "before SIGHUP")
    reload()
    same(write(), 403, "after SIGHUP")
    for bad in ("{", '{"agents": 5}', '{"agents": {"defaults": {"sandbox": {"scope": "nothing"}}}}'):
        w.configure(bad)
        reload()
        same(write(), 403, f"{bad}: {w.output()}")
        r = w.get("/readyz")
        need(r.status == 200 and isinstance(r.json["reasons"], list), r)
    w.configure()
    reload()
    same(write(), 200, "a good one again")
    same(w.get("/readyz").json["ready"], True)


@test("a one-use link is printed, unless it is not wanted; the link has its code behind a #")
def _(w):
    p = w.spawn("--listen", "127.0.0.1:0")
    need(wait_for(lambda: "this link works once" in w.output(p)), w.output(p))
    need(re.search(r"http://127\.0\.0\.1:\d+/#code=[0-9a-f]{32}", w.output(p)), w.output(p))
    p.terminate()
    p.wait(10)
    w.start()
    need("code=" not in w.output(), w.output())


@test("tokens that are made, and a session's boxes, are found again after a restart")
def _(w):
    w.start().token()
    w.exec("echo kept > /tmp/in-the-box")
    boxes = [b["id"] for b in w.get("/v1/boxes").json["boxes"]]
    w.term()
    w.start()
    same(w.exec("cat /tmp/in-the-box")["stdout"], "kept\n")
    same([b["id"] for b in w.get("/v1/boxes").json["boxes"]], boxes)
    same(w.get("/v1/sessions").json["sessions"][0]["calls"], 2)
