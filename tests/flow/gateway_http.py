# SPDX-License-Identifier: Apache-2.0
"""PROBES 2.12 against a whole gateway: what a hostile client sends, and the exact answer."""
import json
import os
import random
import re
import resource
import select
import shutil
import socket
import ssl
import struct
import subprocess
import time

import gateway_client as client
from gateway_client import Closed, Conn, WebSocket, request
from tap import Skip, need, same, test, wait_for

OPEN = {("GET", "/"), ("GET", "/app.js"), ("GET", "/app.css"), ("GET", "/healthz")}
ROUTES = [("GET", p) for p in ("/", "/app.js", "/app.css", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/me", "/v1/tools", "/v1/calls",
                               "/v1/calls/" + "0" * 32, "/v1/calls/" + "0" * 32 + "/events", "/v1/sessions", "/v1/boxes", "/v1/audit", "/v1/approvals",
                               "/v1/ws")] + \
         [("POST", p) for p in ("/v1/call", "/v1/approvals/" + "0" * 16, "/v1/login", "/v1/logout", "/mcp")] + \
         [("DELETE", p) for p in ("/v1/calls/" + "0" * 32, "/v1/sessions/agent:main:main")]
JSON = ("Content-Type", "application/json")


def is_error(r, status, code=None):
    """A JSON error of our form, and the fields that every answer has."""
    same(r.status, status, repr(r))
    e = r.json["error"]
    need(isinstance(e["code"], str) and isinstance(e.get("message", ""), str) and (code is None or e["code"] == code), r)
    same((r.get("Content-Type"), r.get("X-Content-Type-Options"), r.get("Cache-Control")), ("application/json", "nosniff", "no-store"))


def body_call(command="true", **more):
    return json.dumps(dict({"tool": "exec", "arguments": {"command": command}}, **more)).encode()


def guess(n=0):
    return f"cdn_{n:012x}_{'0' * 64}"


# ---- who asks ----

@test("HT-01 every route and method without a credential is 401, but for liveness and the page; upgrades too")
def _(w):
    w.start().token()
    for _, path in ROUTES:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"):
            r = w.ask(method, path, token=False, headers=[JSON], body=b"{}" if method in ("POST", "PUT", "PATCH") else None)
            if (method, path) in OPEN or (method == "HEAD" and ("GET", path) in OPEN):
                same(r.status, 200, f"{method} {path}")
                continue
            if path == "/v1/login" and method == "POST":
                same(r.status, 400, "a login without a code")
                continue
            same(r.status, 401, f"{method} {path}")
            same(r.get("WWW-Authenticate"), "Bearer", f"{method} {path}")
        if path not in ("/", "/app.js", "/app.css", "/healthz"):
            s = WebSocket(w.port, [], path=path)
            same(s.status, 401, f"upgrade of {path}")
    same(w.get("/nowhere", token=False).status, 401, "an unknown path")
    is_error(w.get("/nowhere"), 404, "not_found")
    same(json.loads(w.get("/healthz", token=False).body), {"ok": True})
    # the list above is the router's
    doc = w.get("/openapi.json").json
    told = {(m.upper(), re.sub(r"\{.*?\}", "{}", p)) for p, ms in doc["paths"].items() for m in ms}
    mine = {(m, p.replace("0" * 32, "{}").replace("0" * 16, "{}").replace("agent:main:main", "{}")) for m, p in ROUTES}
    need(told <= mine, f"routes that are not tested: {told - mine}")


@test("HT-01 methods that a route does not have are 405 with Allow, after the credential")
def _(w):
    w.start().token()
    for path, method, allow in (("/v1/call", "GET", "POST"), ("/v1/me", "POST", "GET"), ("/mcp", "DELETE", "POST"), ("/mcp", "GET", "POST"),
                                ("/v1/calls/" + "0" * 32, "PUT", "GET, DELETE"), ("/v1/me", "OPTIONS", "GET"), ("/v1/me", "PATCH", "GET")):
        r = w.ask(method, path, body=b"" if method in ("POST", "PUT", "PATCH") else None)
        is_error(r, 405)
        same(r.get("Allow"), allow, path)
    need(w.raw(request("BREW", "/v1/me", w.auth())).status in (405, 501), "an unknown method")


@test("HT-02 forms of a token: only Bearer and exactly one of ours, in no other place")
def _(w):
    w.start().token()
    t = w.t
    go = lambda *headers, path="/v1/me": w.raw(request("GET", path, headers)).status
    A = "Authorization"
    same(go((A, f"Bearer {t}")), 200, "control")
    for value in ("", "Bearer", "Bearer ", "bearer x", f"Basic {t}", t, f"Bearer  {t}", f"Bearer {t}x", f"Bearer {t[:-1]}", f"Bearer {t.upper()}",
                  f"Bearer {t},{t}", f"Bearer \"{t}\"", f"Token {t}", f"Bearer {t[:-1]}\xe9", f"Bearer {t} {t}"):
        same(go((A, value)), 401, value)
    same(go((A, f"Bearer {t}"), (A, f"Bearer {t}")), 400, "two fields")
    same(go((A, f"Bearer {t}"), ("authorization", f"Bearer {t}")), 400, "two spellings")
    same(go((A, f"Bearer {t}"), ("Cookie", "clawden=x")), 400, "two kinds")
    same(go((A, f"Bearer {t[:40]}\0{t[41:]}")), 400, "NUL")
    for path in (f"/v1/me?token={t}", f"/v1/me?access_token={t}", f"/v1/me?authorization=Bearer%20{t}"):
        same(go(path=path), 401, path)
    same(go(("Cookie", f"clawden={t}")), 401, "as a cookie")
    same(go(("X-Authorization", f"Bearer {t}"), ("Proxy-Authorization", f"Bearer {t}"), ("X-Api-Key", t)), 401, "other fields")
    same(w.post("/v1/call", {"tool": "session_status", "token": t}, token=False).status, 401, "in the body")
    same(w.raw(request("GET", "/v1/me", [(A, "Bearer " + "a" * (1 << 20))])).status, 431, "1 MiB")
    w.alive()


@test("HT-03 a wrong token with a right beginning is told no other thing than any other (smoke test)")
def _(w):
    w.start().token()
    wrong = [w.t[:17] + "0" * 64, w.t[:-1] + ("0" if w.t[-1] != "0" else "1"), guess(), w.t[:60] + "0" * 21]
    got = [w.get("/v1/me", token=t) for t in wrong]
    for r in got:
        is_error(r, 401, "unauthorized")
    same(len({r.body for r in got}), 1, [r.body for r in got])


def revoked(w, change):
    """Streams, WebSockets and keep-alive of one token, while it is changed."""
    token, m = w.token("main", "agent:main:*"), f"76{random.randrange(10**6):06d}"
    idle, sock = Conn(w.port), WebSocket(w.port, w.auth(token))
    idle.send(request("GET", "/v1/me", w.auth(token)))
    same(idle.reply().status, 200)
    call = w.call("exec", {"command": "while :; do echo x; sleep 0.05; done", "background": True}, token=token)["result"]["process"]
    follow = w.stream_events(call, token=token)
    next(iter(follow))
    own = client.Stream(Conn(w.port), request("POST", "/v1/call", [JSON, *w.auth(token), ("Accept", "text/event-stream")], body_call(f"sleep {m}")))
    next(iter(own))
    control = w.stream_events(call)
    next(iter(control))
    waits = Conn(w.port)
    waits.send(request("POST", "/v1/call", [JSON, *w.auth(token)], body_call(f"sleep {m}")))
    need(wait_for(lambda: len(client.running("sleep\0" + m)) == 2), "they do not run")
    same(w.clawden("token", change, token[4:16]).returncode, 0)
    begin = time.monotonic()
    same(sock.close_code(3), 1008, "the WebSocket")
    for s in (follow, own):
        try:
            for _ in s:
                need(time.monotonic() - begin < 20, "the stream goes on")
        except Closed:
            pass
    same(waits.reply().status, 401, "a call that waits")
    took = time.monotonic() - begin
    need(took < 10, f"it took {took:.2f} s")
    idle.send(request("GET", "/v1/me", w.auth(token)))
    same(idle.reply().status, 401, "keep-alive")
    same(w.get("/v1/me", token=token).status, 401)
    next(iter(control))  # another token's stream goes on
    need(client.ends("sleep\0" + m), "the revoked token's command runs on")


@test("HT-05 a token that is revoked or rotated: streams and WebSockets end within a second, then 401")
def _(w):
    w.start().token()
    for change in ("revoke", "rotate"):
        revoked(w, change)
    w.alive()


@test("HT-05 a token that expires is worth nothing after that")
def _(w):
    w.start().token()
    token = w.token("main", "agent:main:*", "--expires", "1s")
    s = WebSocket(w.port, w.auth(token))
    same((w.get("/v1/me", token=token).status, s.status), (200, 101), "control")
    time.sleep(1.2)
    same(wait_for(lambda: w.get("/v1/me", token=token).status == 401, 3), True)


@test("HT-05 tokens that are taken away as a file are gone, and come again with it; a broken file changes nothing")
def _(w):
    w.start().token()
    path = os.path.join(w.data, "tokens.json")
    os.rename(path, path + ".away")
    need(wait_for(lambda: w.get("/v1/me").status == 401, 2), "no file, and still good")
    os.rename(path + ".away", path)
    need(wait_for(lambda: w.get("/v1/me").status == 200, 2), "not good again")
    with open(path) as f:
        text = f.read()
    for bad in ("{", text[:-20], ""):
        with open(path, "w") as f:
            f.write(bad)
        time.sleep(0.1)
        same(w.get("/v1/me").status, 200, f"{bad[:20]}: {w.output()[-300:]}")
    need("tokens" in w.output(), "nothing is said")
    w.alive()


@test("HT-07 guessing: 429 after some wrong tokens, a client with a right one is not held up, memory is bounded")
def _(w):
    w.start().token()
    before = w.rss()
    seen, slow = {}, 0
    with Conn(w.port) as c:
        for n in range(4000):
            c.send(request("GET", "/v1/me", w.auth(guess(n))))
            r = c.reply()
            seen[r.status] = seen.get(r.status, 0) + 1
            if r.status == 429 and seen[429] == 1:
                is_error(r, 429)
                need(int(r.get("Retry-After")) >= 1, "Retry-After")
            if n % 500 == 0:
                begin = time.monotonic()
                same(w.get("/v1/me").status, 200, "the right token from the same address")
                slow = max(slow, time.monotonic() - begin)
    need(set(seen) == {401, 429} and 20 <= seen[401] <= 40, seen)
    need(slow < 1, slow)
    w.grew(before, 8)


# ---- pages ----

@test("HT-08 Host must be one of ours: 421 for others, on every kind of route")
def _(w):
    w.start().token()
    for host in ("127.0.0.1", "localhost", f"127.0.0.1:{w.port}", f"LOCALHOST:{w.port}", "[::1]"):
        same(w.get("/v1/me", host=host).status, 200, host)
    for host in ("evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "0.0.0.0", "127.0.0.2", "clawden"):
        for path in ("/v1/me", "/healthz", "/"):
            is_error(w.get(path, host=host), 421)
    for bad in (b"GET /v1/me HTTP/1.1\r\n\r\n", b"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /v1/me HTTP/1.1\r\nHost: a b\r\n\r\n",
                b"GET /v1/me HTTP/1.1\r\nHost: user@127.0.0.1\r\n\r\n"):
        is_error(w.raw(bad), 400)


@test("HT-09 HT-11 a foreign Origin is 403 on requests, streams and WebSockets; nothing is reflected")
def _(w):
    w.start().token()
    own = f"http://127.0.0.1:{w.port}"
    host = f"127.0.0.1:{w.port}"
    same(w.post("/v1/call", {"tool": "session_status"}, headers=[("Origin", own)], host=host).status, 200, "control")
    for origin in ("https://evil.test", "null", "http://localhost.evil.test", "http://127.0.0.1:1", f"{own}.evil.test", f"{own}/", f"{own}, {own}", "", own.upper() + "x"):
        for method, path in (("POST", "/v1/call"), ("GET", "/v1/me"), ("GET", "/v1/calls/" + "0" * 32 + "/events"), ("POST", "/mcp"), ("GET", "/healthz")):
            r = w.ask(method, path, [("Origin", origin), JSON], body_call() if method == "POST" else None, host=host)
            is_error(r, 403)
            need(not r.get("Access-Control-Allow-Origin") and "evil" not in r.body.decode(), r)
        same(w.socket(headers=w.auth() + [("Origin", origin)]).status, 403, origin)
    same(WebSocket(w.port, w.auth() + [("Origin", "http://127.0.0.1")]).status, 101, "control")
    r = w.ask("OPTIONS", "/v1/call", [("Origin", own), ("Access-Control-Request-Method", "POST")], host=host, token=False)
    need(r.status == 401 and not r.get("Access-Control-Allow-Origin"), r)


@test("HT-10 HT-11 a cookie from a one-use code: strict, not from foreign pages, once, gone after logout")
def _(w):
    p = w.p = w.spawn("--listen", "127.0.0.1:0")
    need(wait_for(lambda: "#code=" in w.output(p)), w.output(p))
    w.port = int(re.search(r"listens on http://127.0.0.1:(\d+)", w.output(p))[1])
    w.front = min(int(x) for x in w.children())
    code = re.search(r"#code=([0-9a-f]{32})", w.output(p))[1]
    login = lambda c: w.post("/v1/login", {"code": c}, token=False)
    for bad in ("", "0" * 32, code[:-1], code + "0"):
        same(login(bad).status, 401 if bad else 400, bad)
    r = login(code)
    same(r.status, 200, "the code")
    m = re.fullmatch(r"clawden=([0-9a-f]{64}); Path=/; HttpOnly; SameSite=Strict", r.get("Set-Cookie"))
    need(m and m[1] not in r.body.decode(), r.headers)
    same(login(code).status, 401, "a second time")
    host, own = f"127.0.0.1:{w.port}", ("Origin", f"http://127.0.0.1:{w.port}")
    cookie = ("Cookie", f"clawden={m[1]}")
    go = lambda method, path, *h: w.ask(method, path, [cookie, JSON, *h], body_call() if method == "POST" else None, token=False, host=host).status
    same(go("GET", "/v1/me"), 200, "the cookie")
    same(go("POST", "/v1/call", own), 200, "from the own page")
    same(go("POST", "/v1/call"), 403, "no Origin")
    same(go("POST", "/v1/call", ("Origin", "https://evil.test")), 403)
    for headers, want in (([own], 101), ([], 403), ([("Origin", "https://evil.test")], 403)):
        s = WebSocket(w.port, [cookie, ("X-No", "1")] + [(k, v.replace(host, "127.0.0.1")) for k, v in headers])
        same(s.status, want, headers)
    same(go("POST", "/v1/logout", own), 200)
    same(go("GET", "/v1/me"), 401, "after logout")


@test("HT-10 a form, text or multipart body is 415 and runs nothing")
def _(w):
    w.start().token()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "text/json", "application/json/x", ""):
        is_error(w.ask("POST", "/v1/call", [("Content-Type", kind)], body_call("touch ran")), 415)
    is_error(w.ask("POST", "/v1/call", [], body_call("touch ran")), 415)
    need(not os.path.exists(w.path("ran")), "it ran")
    same(w.ask("POST", "/v1/call", [("Content-Type", "Application/JSON; charset=utf-8")], body_call()).status, 200, "control")


# ---- slow clients ----

@test("HT-13 slow heads: 2,000 connections that send a byte now and then are closed within 12 s; others are served meanwhile")
def _(w):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = 2000 if hard >= 2400 else 400
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    w.start().token()
    before, conns, begin = w.rss(), [], time.monotonic()
    try:
        for _ in range(want):
            s = socket.create_connection(("127.0.0.1", w.port))
            s.setblocking(False)
            s.send(b"GET /v1/me HTTP/1.1\r\nX: ")
            conns.append(s)
        slow, left = 0, {s.fileno(): s for s in conns}
        while left and time.monotonic() - begin < 40:
            poll = select.poll()
            for fd in left:
                poll.register(fd, select.POLLIN)
            for fd, _ in poll.poll(100):
                try:
                    if not left[fd].recv(4096):
                        del left[fd]
                except OSError:
                    left.pop(fd, None)
            if int((time.monotonic() - begin) * 10) % 30 == 0:
                for s in left.values():
                    try:
                        s.send(b"x")
                    except OSError:
                        pass
            t = time.monotonic()
            same(w.get("/v1/me").status, 200)
            slow = max(slow, time.monotonic() - t)
        took = time.monotonic() - begin
        need(not left, f"{len(left)} are left after {took:.1f} s")
        need(8 < took < 40 and slow < 10, f"closed after {took:.1f} s; a good request took {slow:.2f} s")
    finally:
        for s in conns:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    w.grew(before)


@test("HT-14 a slow body ends in 408 or a close, a slow reader of a large answer grows nothing")
def _(w):
    w.start().token()
    w.call("write", {"path": "big", "content": "x" * 250000})
    before = w.rss()
    slow = Conn(w.port)
    slow.send(b"POST /v1/call HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n" +
              f"Authorization: Bearer {w.t}\r\n\r\n{{".encode())
    readers = [Conn(w.port, rcvbuf=4096) for _ in range(50)]
    body = json.dumps({"tool": "read", "arguments": {"path": "big", "bytes": True}}).encode()
    for c in readers:
        c.send(request("POST", "/v1/call", [JSON, *w.auth()], body) * 4)
    begin = time.monotonic()
    same(w.exec("echo not stalled")["stdout"], "not stalled\n")
    need(time.monotonic() - begin < 20, "another client waits for them")
    w.grew(before, 64)
    try:
        r = slow.reply()
        same(r.status, 408)
    except Closed:
        pass
    need(time.monotonic() - begin < 60, f"the slow body took {time.monotonic() - begin:.0f} s")
    for c in readers:
        c.close()
    w.alive()


# ---- heads, bodies, framing ----

@test("HT-15 limits of a head: 101 fields, a line of 9 KiB, 65 KiB in all are 431, a target of 9 KiB is 414")
def _(w):
    w.start().token()
    before = w.rss()
    same(w.get("/v1/me", headers=[(f"X-{i}", "1") for i in range(90)]).status, 200, "control")
    same(w.raw(request("GET", "/v1/me", [(f"X-{i}", "1") for i in range(101)])).status, 431)
    same(w.raw(request("GET", "/v1/me", [("X", "a" * 9216)])).status, 431)
    same(w.raw(request("GET", "/v1/me", [(f"X-{i}", "a" * 4000) for i in range(17)])).status, 431)
    same(w.raw(request("GET", "/" + "a" * 9216)).status, 414)
    same(w.raw(request("GET", "/v1/me?" + "a" * 9216)).status, 414)
    need(w.raw(request("A" * 40, "/v1/me")).status in (400, 501), "a long method")
    for _ in range(50):
        w.raw(b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * (1 << 20))
    w.grew(before, 8)


CHUNKED = b"POST /v1/call HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


def chunk_head(w):
    return CHUNKED + f"Authorization: Bearer {w.t}\r\n\r\n".encode()


@test("HT-17 chunks: every bad spelling of a size, an end or a trailer is 400 and the connection is closed")
def _(w):
    w.start().token()
    b = body_call()
    good = b"%x\r\n%s\r\n0\r\n\r\n" % (len(b), b)
    same(w.raw(chunk_head(w) + good).status, 200, "control")
    same(w.raw(chunk_head(w) + b"".join(b"1\r\n%c\r\n" % c for c in b) + b"0\r\nX: y\r\n\r\n").status, 200, "control: byte by byte, with a trailer")
    for name, bad in {"too large": b"F" * 17 + b"\r\nx", "negative": b"-1\r\nx", "0x": b"0x10\r\nx", "blank": b" 5\r\nhello\r\n", "empty": b"\r\nx", "plus": b"+5\r\nhello\r\n",
                      "LF only": b"5\nhello\n0\n\n", "no CRLF behind data": b"5\r\nhelloX", "extension of 1 MiB": b"5;" + b"a" * (1 << 20) + b"\r\nhello\r\n0\r\n\r\n",
                      "forbidden trailer": b"%x\r\n%s\r\n0\r\nContent-Length: 5\r\n\r\n" % (len(b), b), "no digit": b"g\r\n", "NUL": b"5\0\r\nhello\r\n",
                      "folded trailer": b"%x\r\n%s\r\n0\r\nX: a\r\n b\r\n\r\n" % (len(b), b)}.items():
        with Conn(w.port) as c:
            try:
                c.send(chunk_head(w) + bad)
            except OSError:
                pass
            is_error(c.reply(), 400)
            need(c.ends(), f"{name}: it stays open")
    with Conn(w.port, 3) as c:  # no last CRLF: it waits for it, and runs nothing
        c.send(chunk_head(w) + b"%x\r\n%s\r\n0\r\n" % (len(body_call("touch ran")), body_call("touch ran")))
        time.sleep(0.3)
        need(not os.path.exists(w.path("ran")), "it did not wait for the end")
    w.alive()


@test("HT-18 smuggling: any doubt about where a message ends is 400 and a close; what follows is never a request")
def _(w):
    w.start().token()
    b = body_call("touch smuggled")
    inner = request("POST", "/v1/call", [JSON, *w.auth()], b)
    lines = {"CL and TE": ["Content-Length: 4", "Transfer-Encoding: chunked"], "TE and CL": ["Transfer-Encoding: chunked", "Content-Length: 4"],
             "two CL": ["Content-Length: 4", "Content-Length: 5"], "CL list": ["Content-Length: 4, 5"], "CL signs": ["Content-Length: +4"], "CL hex": ["Content-Length: 0x4"],
             "CL blank": ["Content-Length : 4"], "CL empty": ["Content-Length:"], "CL huge": ["Content-Length: 99999999999999999999"],
             "TE twice": ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "TE list": ["Transfer-Encoding: chunked, identity"],
             "TE other": ["Transfer-Encoding: gzip, chunked"], "TE identity": ["Transfer-Encoding: identity"], "TE x": ["Transfer-Encoding: xchunked"],
             "TE blank": ["Transfer-Encoding : chunked"], "TE VT": ["Transfer-Encoding: \x0bchunked"], "TE fold": ["Transfer-Encoding:\r\n chunked"],
             "TE LF": ["X: y\nTransfer-Encoding: chunked"], "CR": ["X: y\rTransfer-Encoding: chunked"], "NUL": ["X: a\0b"], "no colon": ["Transfer-Encoding"],
             "blank first": [" Transfer-Encoding: chunked"]}
    for name, some in lines.items():
        head = "\r\n".join(["POST /v1/call HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", f"Authorization: Bearer {w.t}", *some]) + "\r\n\r\n"
        for rest in (b"0\r\n\r\n" + inner, b"1\r\n{\r\n0\r\n\r\n" + inner, inner):
            with Conn(w.port) as c:
                c.send(head.encode("latin-1") + rest)
                r = c.reply()
                need(r.status in (400, 501), f"{name}: {r}")
                need(c.ends(), f"{name}: it stays open")
                need(b"HTTP/1.1" not in c.buf, f"{name}: a second answer: {c.buf[:200]}")
    for head in (b"POST /v1/call HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"GET /v1/me HTTP/1.1\nHost: 127.0.0.1\n\n",
                 b"GET /v1/me\tHTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET  /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        same(w.raw(head + inner).status, 400, head)
    need(not os.path.exists(w.path("smuggled")), "a body was taken for a request")
    w.raw(inner)
    need(os.path.exists(w.path("smuggled")), "control")


@test("HT-18 pairs of requests on one connection, made at random: as many answers as whole requests, or a close")
def _(w):
    w.start().token()
    rng = random.Random(18)
    rounds = 10000 if client.ARGS.full else 400
    for n in range(rounds):
        parts, good = [], 0
        for _ in range(2):
            kind = rng.choice(["get", "post", "chunk", "bad"])
            if kind == "get":
                parts.append(request("GET", "/v1/me", w.auth()))
            elif kind == "post":
                parts.append(request("POST", "/v1/call", [JSON, *w.auth()], b'{"tool":"nothing"}'))
            elif kind == "chunk":
                parts.append(chunk_head(w) + b"12\r\n" + b'{"tool":"nothing"}' + b"\r\n0\r\n\r\n")
            else:
                parts.append(request("POST", "/v1/call", [JSON, *w.auth(), ("Transfer-Encoding", rng.choice(["chunked", " chunked", "x", "identity"]))], b"5\r\nhello\r\n0\r\n\r\n"))
            if kind == "bad":
                break
            good += 1
        data, cut = b"".join(parts), rng.randrange(1, 60)
        with Conn(w.port) as c:
            for i in range(0, len(data), cut * 20):
                try:
                    c.send(data[i:i + cut * 20])
                except OSError:
                    break
            got = [c.reply().status for _ in range(good)]
            need(all(s in (200, 404) for s in got), got)
            if good < len(parts):
                need(c.reply().status in (400, 501), "the bad one")
                need(c.ends() and b"HTTP/" not in c.buf, "desync")
    w.alive()


@test("HT-19 Expect: 100 only for whom is let in; another expectation is 417")
def _(w):
    w.start().token()
    head = lambda auth, what="100-continue": request("POST", "/v1/call", [JSON, ("Expect", what), ("Content-Length", "17"), *auth])
    with Conn(w.port) as c:
        c.send(head(w.auth(guess())))
        same(c.line()[:12], b"HTTP/1.1 401", "a wrong token")
    with Conn(w.port) as c:
        c.send(head([]))
        same(c.line()[:12], b"HTTP/1.1 401", "none")
    with Conn(w.port) as c:
        c.send(head(w.auth()))
        same(c.line(), b"HTTP/1.1 100 Continue")
        c.line()
        c.send(b'{"tool":"missing"')
        same(c.reply().status, 400)
    same(w.raw(head(w.auth(), "x")).status, 417)
    same(w.raw(request("POST", "/v1/call", [JSON, ("Expect", "100-continue"), ("Content-Length", str(25 << 20)), *w.auth()])).status, 413, "too large, before it is sent")


@test("HT-21 other protocols get 400 or a close, and nothing breaks")
def _(w):
    w.start().token()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    hello = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="x").do_handshake()
    except ssl.SSLWantReadError:
        pass
    for name, data in {"0.9": b"GET /healthz\r\n", "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "TLS": hello.read(), "SSH": b"SSH-2.0-OpenSSH_9.2\r\n", "random": random.Random(21).randbytes(1 << 20),
                       "HTTP/2": b"GET / HTTP/2.0\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.2": b"GET / HTTP/1.2\r\nHost: 127.0.0.1\r\n\r\n", "lower": b"get /healthz http/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                       "SOCKS": b"\x05\x01\x00", "zeros": b"\0" * 4096}.items():
        with Conn(w.port, 15) as c:
            try:
                c.send(data)
                c.s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            try:
                need(c.reply().status in (400, 405, 414, 431, 501, 505), name)
            except Closed:
                pass
            need(c.ends(), name)
    w.alive()


# ---- JSON ----

@test("HT-22 HT-23 HT-25 JSON: depth, double keys, encodings are 400, and nothing runs")
def _(w):
    w.start().token()
    before = w.rss()
    run = lambda text: w.ask("POST", "/v1/call", [JSON], text if isinstance(text, bytes) else text.encode())
    call = '{"tool":"exec","arguments":{"command":"touch ran"}%s}'
    for name, text in {"10^6 [": "[" * 10**6, "deep objects": '{"a":' * 10**5, "65 levels": call % (',"x":' + "[" * 65 + "]" * 65), "closed": "[" * 10**5 + "]" * 10**5,
                       "double": '{"tool":"exec","tool":"exec","arguments":{"command":"touch ran"}}', "double inside": '{"tool":"exec","arguments":{"command":"true","command":"touch ran"}}',
                       "double, escaped": '{"tool":"exec","arguments":{"command":"true","c\\u006fmmand":"touch ran"}}',
                       "two values": call % "" + call % "", "trailing": call % "" + "x", "comment": "/* */" + call % "", "single quotes": "{'tool':'exec'}", "NaN": call % ',"x":NaN',
                       "empty": "", "blank": " ", "array": "[]", "text": '"exec"', "number": "1", "null": "null", "trailing comma": '{"tool":"exec",}'}.items():
        is_error(run(text), 400)
    for name, text in {"invalid": b'"touch \xff ran"', "overlong": b'"touch \xc0\xaf ran"', "surrogate": b'"touch \\ud800 ran"', "raw surrogate": b'"\xed\xa0\x80"', "beyond": b'"\xf5\x80\x80\x80"',
                       "raw NUL": b'"touch ran\0"', "raw newline": b'"touch\nran"'}.items():
        is_error(run(b'{"tool":"exec","arguments":{"command":%s}}' % text), 400)
    is_error(run('{"tool":"exec","arguments":{"command":"touch ran\\u0000x"}}'), 400)
    is_error(run('{"tool":"read","arguments":{"path":"a\\u0000b"}}'), 400)  # FS-15
    is_error(run('{"to\\u0000ol":"exec"}'), 400)
    is_error(run(b"\xef\xbb\xbf" + (call % "").encode()), 400)
    is_error(run((call % "").encode("utf-16")), 400)
    need(not os.path.exists(w.path("ran")), "something ran")
    same(run(call % "").status, 200, "control")
    w.grew(before)


@test("HT-26 EX-17 unknown fields, wrong types and null are 400 and name the field")
def _(w):
    w.start().token()
    for body, word in (({"tool": "exec", "argumnets": {}}, "argumnets"), ({"tool": 1}, "tool"), ({"tool": None}, "tool"), ({"tool": "exec", "arguments": []}, "arguments"),
                       ({"tool": "exec", "arguments": None}, "arguments"), ({"tool": "exec", "arguments": {"command": "true"}, "stream": 1}, "stream"),
                       ({"tool": "exec", "arguments": {"command": "true"}, "session": 5}, "session"), ({"arguments": {}}, "tool"),
                       ({"tool": "exec", "arguments": {"command": "true", "timout": 1}}, "timout"), ({"tool": "exec", "arguments": {"command": ["true"]}}, "command"),
                       ({"tool": "exec", "arguments": {"command": "true", "timeout": "1"}}, "timeout"), ({"tool": "exec", "arguments": {"command": "true", "timeout": -1}}, "timeout"),
                       ({"tool": "exec", "arguments": {"command": "true", "background": None}}, "background"), ({"tool": "exec", "arguments": {"command": "true", "env": {"A": 1}}}, "A"),
                       ({"tool": "exec", "arguments": {"command": "true", "argv": ["true"]}}, "argv"), ({"tool": "exec", "arguments": {"argv": ["true", 1]}}, "argv"),
                       ({"tool": "exec", "arguments": {"argv": []}}, "argv"), ({"tool": "exec", "arguments": {"argv": [""]}}, "argv"), ({"tool": "exec", "arguments": {}}, "command"),
                       ({"tool": "exec", "arguments": {"command": ""}}, "command"), ({"tool": "exec", "arguments": {"argv": ["true", None]}}, "argv"),
                       ({"tool": "read", "arguments": {"path": "x", "offset": -1}}, "offset"), ({"tool": "read", "arguments": {"path": "x", "offset": 1.5}}, "offset"),
                       ({"tool": "read", "arguments": {"path": "x", "limit": 0}}, "limit"), ({"tool": "read", "arguments": {"path": "x", "offset": 2**63}}, ""),
                       ({"tool": "write", "arguments": {"path": "x"}}, "content"), ({"tool": "process", "arguments": {"action": "dance"}}, "action")):
        r = w.post("/v1/call", body)
        is_error(r, 400)
        need(word in r.json["error"]["message"], f"{body}: {r}")
    is_error(w.post("/v1/call", {"tool": "nothing"}), 404)
    for path, word in (("/v1/calls?limt=1", "limt"), ("/v1/calls?limit=x", "limit"), ("/v1/calls?limit=-1", "limit"), ("/v1/me?x=1", "x"), ("/v1/audit?limit=1&limit=2", "limit"),
                       ("/v1/audit?session=%ff", "session"), ("/v1/calls?limit=%", "")):
        r = w.get(path)
        is_error(r, 400)
        need(word in r.json["error"]["message"], f"{path}: {r}")
    same(w.audit(event="call.begin"), [], "something was admitted")


@test("HT-27 big values: 413 or 400, and memory stays bounded")
def _(w):
    w.start().token()
    w.exec("true")
    before = w.rss()
    big = b'{"tool":"exec","arguments":{"command":"' + b"\\u0041" * (64 << 20 >> 3) + b'"}}'
    is_error(w.ask("POST", "/v1/call", [JSON], big), 413)
    with Conn(w.port) as c:  # chunked: the size is not announced
        c.send(chunk_head(w))
        piece = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        try:
            for _ in range(1024):
                c.send(piece)
        except OSError:
            pass
        is_error(c.reply(), 413)
    is_error(w.ask("POST", "/v1/call", [JSON], b'{"tool":"exec","arguments":{"argv":[' + b"1," * 10**6 + b"1]}}"), 400)
    is_error(w.ask("POST", "/v1/call", [JSON], b'{"tool":"exec","arguments":{"env":{' + b",".join(b'"A%d":"x"' % i for i in range(20000)) + b"}}}"), 400)
    is_error(w.ask("POST", "/v1/call", [JSON], json.dumps({"tool": "exec", "arguments": {"command": "true " * 100000}}).encode()), 400)
    same(w.call("write", {"path": "large", "content": "y" * (15 << 20)})["result"]["created"], True, "control: a file of 15 MiB")
    same(os.stat(w.path("large")).st_size, 15 << 20)
    w.alive()
    need(wait_for(lambda: w.sanitized() or w.rss() - before < 96 << 10, 3), f"{w.rss() - before} KiB more than before")


@test("HT-29 ranges and conditions are not looked at")
def _(w):
    w.start().token()
    plain = w.get("/").body
    for h in ([("Range", "bytes=0-1")], [("Range", "bytes=" + ",".join(f"{i}-{i}" for i in range(1000)))], [("If-None-Match", "*")], [("If-Modified-Since", "Sun, 15 Nov 2099 00:00:00 GMT")],
              [("If-Match", '"x"')], [("If-Range", '"x"'), ("Range", "bytes=0-")]):
        r = w.get("/", headers=h)
        same((r.status, r.body == plain), (200, True), h)


# ---- WebSocket ----

@test("HT-30 frames that break the rules close the WebSocket with 1002, 1007 or 1009; floods are bounded")
def _(w):
    w.start().token()
    before = w.rss()

    def code(*frames):
        s = w.socket()
        same(s.status, 101)
        for f in frames:
            try:
                s.c.send(f(s) if callable(f) else f)
            except OSError:
                break
        try:
            return s.close_code()
        except TimeoutError:
            return "it stays open"
    f = lambda *a, **k: (lambda s: s.frame(*a, **k))
    for name, want, frames in (("unmasked", 1002, [f("{}", masked=False)]), ("RSV1", 1002, [f("{}", first=0xc0)]), ("RSV2", 1002, [f("{}", first=0xa0)]), ("op 3", 1002, [f("{}", op=3)]),
                               ("op 11", 1002, [f("", op=11)]), ("2^63", 1002, [b"\x81\xff" + b"\xff" * 8 + b"maskx"]), ("2^62", 1009, [b"\x81\xff" + struct.pack(">Q", 1 << 62) + b"maskx"]),
                               ("17 MiB", 1009, [b"\x81\xff" + struct.pack(">Q", 17 << 20) + b"maskx"]), ("long ping", 1002, [f("x" * 126, op=9)]), ("ping in pieces", 1002, [f("x", op=9, first=0)]),
                               ("continues nothing", 1002, [f("x", op=0)]), ("new within a message", 1002, [f("{", first=0), f("}")]), ("bad UTF-8", 1007, [f(b"\xff\xfe")]),
                               ("close of 1 byte", 1002, [f(b"x", op=8)]), ("close 999", 1002, [f(struct.pack(">H", 999), op=8)]), ("close 1005", 1002, [f(struct.pack(">H", 1005), op=8)])):
        same(code(*frames), want, name)
    same(code(f(struct.pack(">H", 1000), op=8)), 1000, "control: a good close")
    got = code(lambda s: s.frame("{", first=0) + s.frame("", op=0, first=0) * 20000)
    need(got in (1002, 1008, 1009), f"20,000 empty fragments: {got}")
    s = w.socket()
    for _ in range(200):
        s.c.send(s.frame("x" * 100, op=9) * 100)
    w.grew(before)
    for value, word in (("[]", ""), ('{"id":1}', "op"), ('{"id":1,"op":"nothing"}', "op"), ('{"id":1,"op":"look","params":{}}', "call"), ('{"id":"1","op":"me"}', "id"), ("x", ""),
                        ('{"id":1,"op":"me","token":"x"}', "token"), ('{"id":1,"op":"login","params":{"code":"x"}}', "op"), ("[" * 100000, "")):
        s = w.socket()
        s.c.send(s.frame(value))
        m = s.message()
        need(m["status"] == 400 and word in m["body"]["error"]["message"], (value[:60], m))
    s = w.socket()
    for n in range(70):
        s.send({"id": n, "op": "call", "params": {"tool": "exec", "arguments": {"command": "sleep 1"}}})
    same(s.message()["status"], 429, "65 questions at once")
    s.send({"id": 3, "op": "me"})
    seen = s.message()["status"]
    while seen == 429:
        seen = s.message()["status"]
    same(seen, 409, "an id that is in use")
    w.alive()


@test("HT-30 a handshake that is none is refused")
def _(w):
    w.start().token()
    up = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
    go = lambda h: w.raw(request("GET", "/v1/ws", h + w.auth())).status
    same(go(up), 101, "control")
    for i in range(4):
        need(go(up[:i] + up[i + 1:]) in (400, 426), f"without {up[i][0]}")
    need(go([up[0], up[1], ("Sec-WebSocket-Version", "8"), up[3]]) in (400, 426), "version 8")
    need(go(up[:3] + [("Sec-WebSocket-Key", "short")]) == 400, "a short key")
    need(w.raw(request("POST", "/v1/ws", up + w.auth(), b"")).status == 405, "POST")
    r = w.raw(request("GET", "/v1/me", up + w.auth()))
    same(r.status, 200, "an upgrade where there is none is not looked at")


# ---- what is said ----

@test("HT-33 nothing that a client says comes back as a page; every answer forbids sniffing, framing and keeping; no banner")
def _(w):
    w.start().token()
    evil = "<script>alert(1)</script>"
    for r in (w.get("/%3Cscript%3Ealert(1)%3C/script%3E"), w.get("/v1/calls?x=%3Cscript%3E"), w.post("/v1/call", {"tool": evil}), w.post("/v1/call", {evil: 1}), w.get("/", host="evil.test"),
              w.raw(b"GET /<script> HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), w.get("/"), w.get("/v1/me"), w.call and w.get("/healthz"), w.get("/metrics"), w.get("/v1/tools"), w.get("/app.js")):
        same(r.get("X-Content-Type-Options"), "nosniff", r)
        need("default-src 'none'" in r.get("Content-Security-Policy") and r.get("Cache-Control"), r.headers)
        need(not r.get("Server") and not r.get("X-Powered-By"), r.headers)
        need(r.get("Content-Type") != "text/html; charset=utf-8" or evil not in r.body.decode(), r)
        need(r.status < 400 or r.get("Content-Type") == "application/json", r.headers)
    need(re.fullmatch(r"[0-9a-f]{16}", w.get("/v1/me").get("X-Request-Id")), "X-Request-Id")
    need(evil not in w.get("/").body.decode(), "")


@test("HT-35 HT-37 FS-18 a path has one spelling, and ids have their grammar")
def _(w):
    w.start().token()
    same(w.get("/v1/me").status, 200, "control")
    for path in ("//v1/me", "/v1//me", "/v1/./me", "/v1/%6de", "/v1/me/", "/v1/me;x", "/v1/x/../me", "/V1/me", "/v1/ME", "/v1/me%00", "/v1/me%2f", "/v1\\me", "/v1/%2e%2e/v1/me", "/%76%31/me",
                 "/v1/..%2fme", "/v1/%252e%252e/me", "/v1/%c0%ae/me", "/v1/me%20", "/.//v1/me", "/v1/me/.", "http://evil.test/v1/me", "v1/me", "*"):
        for token in (None, False):
            r = w.get(path, token=token)
            need(r.status in (400, 401, 404, 421) and (token is None or r.status != 404), f"{path}: {r}")
    for path in ("/files/%2e%2e/%2e%2e/etc/passwd", "/v1/files/..%2f..%2fetc/passwd", "/v1/../../etc/passwd"):
        need(w.get(path).status in (400, 404), path)
    for call in ("../x", "a/b", "%00", "a" * 300, "-x", "0" * 31, "0" * 33, "0" * 31 + "G", "0" * 31 + "A", "%30" * 32, "..", "%2e%2e"):
        for path in (f"/v1/calls/{call}", f"/v1/calls/{call}/events"):
            need(w.get(path).status in (400, 404), path)
    is_error(w.get("/v1/calls/" + "0" * 31), 400)
    is_error(w.get("/v1/calls/" + "0" * 32), 404)
    for session in ("..", "a%2fb", "%00", "x" * 1100, "agent:other:x", "%ff"):
        need(w.ask("DELETE", f"/v1/sessions/{session}").status in (400, 404), session)
    for session in ("", "..", "a/b", "agent:main:" + "x" * 500, "agent:main:a\nb", "agent:main:../x", "agent:../x:y"):
        r = w.post("/v1/call", {"tool": "exec", "arguments": {"command": "true"}, "session": session})
        need(r.status in (200, 400, 403), f"{session!r}: {r}")
    w.alive()


@test("keep-alive and pipelined requests are answered in order; HEAD has no body; HTTP/1.0 is closed")
def _(w):
    w.start().token()
    with Conn(w.port) as c:
        c.send(b"".join(request("GET", f"/v1/calls?limit={n}", w.auth()) if n % 2 else request("GET", "/healthz") for n in range(1, 101)))
        for n in range(1, 101):
            r = c.reply()
            same((r.status, "calls" in r.json), (200, bool(n % 2)), n)
    with Conn(w.port) as c:
        c.send(b"".join(request("POST", "/v1/call", [JSON, *w.auth()], body_call(f"echo {n} >> order")) for n in range(30)))
        same([c.reply().json["result"]["exitCode"] for _ in range(30)], [0] * 30)
        same(w.text("order").split(), [str(n) for n in range(30)], "one after the other")
    with Conn(w.port) as c:
        c.send(request("HEAD", "/healthz") + request("GET", "/healthz"))
        same((c.reply(head_only=True).status, c.reply().body), (200, b'{"ok":true}\n'))
    with Conn(w.port) as c:
        c.send(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        same(c.reply().status, 200)
        need(c.ends(), "it stays open")


def promtool():
    """scripts/deps promtool has put it there."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for path in (os.environ.get("CLAWDEN_PROMTOOL"), shutil.which("promtool"), os.path.join(cache, "clawden-promtool/promtool")):
        if path and os.access(path, os.X_OK):
            return path
    raise Skip("promtool is not there: scripts/deps promtool")


@test("promtool has nothing to say about the metrics")
def _(w):
    tool = promtool()
    w.start().token()
    w.call("read", {"path": "none"}, status=404)
    w.exec("true")
    for text, good in ((w.get("/metrics").body.decode(), True), ("# TYPE made gauge\nmade_total 1\n", False)):
        r = subprocess.run([tool, "check", "metrics"], input=text, text=True, capture_output=True)
        same((r.returncode == 0, r.stdout + r.stderr == ""), (good, good), f"{r.stdout}{r.stderr}")


@test("metrics are Prometheus text; the log has request ids and no token; open metrics are for loopback alone")
def _(w):
    w.start("--log").token()
    w.call("read", {"path": "none"}, status=404)
    text = w.get("/metrics").body.decode()
    need(re.search(r'^clawden_calls_total\{[^}]*outcome="failed"[^}]*tool="read"[^}]*\} 1$|^clawden_calls_total\{[^}]*tool="read"[^}]*outcome="failed"[^}]*\} 1$', text, re.M), text[:600])
    for line in text.splitlines():
        need(re.fullmatch(r"# (HELP|TYPE) \S+ .*|[a-z_]+(\{([a-z_]+=\"[^\"]*\",?)*\})? [0-9.e+-]+", line), line)
    w.get(f"/v1/me?token={w.t}")
    w.get("/v1/me")
    need(wait_for(lambda: w.output().count('"request"') >= 4), w.output())
    need(w.t not in w.output() and w.t[17:] not in w.output(), "a token is in the log")
    for line in w.output().splitlines():
        if line.startswith("{"):
            need(re.fullmatch(r"[0-9a-f]{16}", json.loads(line)["request"]), line)
    same(w.get("/metrics", token=False).status, 401)
    w.term()
    w.start("--open-metrics")
    same((w.get("/metrics", token=False).status, w.get("/v1/me", token=False).status), (200, 401))
    same(w.get("/metrics", token=guess()).status, 401, "a wrong token is not better than none")
