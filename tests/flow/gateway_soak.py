# SPDX-License-Identifier: Apache-2.0
"""Many calls of several clients while the gateway is killed and started again: none lost, none doubled, none wrong."""
import random
import socket
import threading
import time

import gateway_client
from gateway_client import Closed
from tap import need, same, test

CLIENTS = 4


class Client(threading.Thread):
    """Makes its calls one after the other, each with an id, again and again until it is answered."""

    def __init__(self, w, number, calls):
        super().__init__(daemon=True)
        self.w, self.number, self.n = w, number, calls
        self.random = random.Random(number)
        self.ran, self.unsure, self.content = {}, set(), set()
        self.answers = {}  # id → call, for the same question again
        self.retries = self.interrupted = 0
        self.written = False
        self.fault = None

    def ask(self, tool, arguments, key):
        """(status, body); what has no answer is asked again, as any client would."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                r = self.w.post("/v1/call", {"tool": tool, "arguments": arguments, "id": key,
                                             "session": f"agent:main:soak-{self.number}"}, timeout=60)
            except (OSError, Closed, socket.timeout, ValueError):
                self.retries += 1
                time.sleep(0.02)
                continue
            if r.status in (429, 502, 503):
                self.retries += 1
                time.sleep(0.02)
                continue
            return r.status, r.json
        raise AssertionError(f"no answer to {tool} {key} within two minutes")

    def one(self, i):
        key, kind = f"c{self.number}-{i}", self.random.choice("eeewrdl")
        folder = f"soak{self.number}"
        if kind == "e":
            status, body = self.ask("exec", {"command": f"mkdir -p {folder}; echo {i} >> {folder}/lines"}, key)
        elif kind == "w":
            text = f"{key}\n" * self.random.randrange(1, 50)
            status, body = self.ask("write", {"path": f"{folder}/text", "content": text}, key)
        elif kind == "r":
            status, body = self.ask("read", {"path": f"{folder}/text"}, key)
        elif kind == "d":
            status, body = self.ask("grep", {"pattern": f"^c{self.number}-", "path": folder, "limit": 1}, key)
        else:
            status, body = self.ask("ls", {"path": "."}, key)
        self.answers[key] = body["call"]
        if body.get("state") == "interrupted":  # it may have come so far, or not
            self.interrupted += 1
            if kind == "e":
                self.unsure.add(i)
            elif kind == "w":
                self.content = self.content | {text}
        elif kind == "e":
            need(status == 200 and body["result"].get("exitCode") == 0, f"{key}: {status} {body}")
            self.ran[i] = body["call"]
        elif kind == "w":
            same(status, 200, f"{key}: {body}")
            self.content, self.written = {text}, True
        elif kind == "r":
            need(status == 404 and not self.written or body["result"]["content"] in self.content, f"{key}: {status} {body}")
        else:
            need(status == 200 or kind == "d" and status == 404, f"{key}: {status} {body}")

    def run(self):
        try:
            for i in range(self.n):
                self.one(i)
        except Exception as e:  # told by the main thread
            self.fault = e


def disturb(w, clients, total, times):
    """Kills it or ends it in order, and starts it again, each time that so many more calls were answered."""
    for i in range(times):
        while any(c.is_alive() for c in clients) and sum(len(c.answers) for c in clients) < total * (i + 1) / (times + 1):
            time.sleep(0.01)
        w.kill() if i % 3 else w.term()
        w.start(listen=f"127.0.0.1:{w.port}")


def check_lines(w, c):
    """What ran is there once, what was cut short at most once."""
    try:
        lines = [int(x) for x in w.text(f"soak{c.number}/lines").split()]
    except FileNotFoundError:
        lines = []
    need(len(lines) == len(set(lines)), f"client {c.number}: something ran twice")
    need(set(c.ran) <= set(lines), f"client {c.number}: lost {sorted(set(c.ran) - set(lines))[:5]}")
    need(set(lines) <= set(c.ran) | c.unsure, f"client {c.number}: nobody was told of {sorted(set(lines) - set(c.ran) - c.unsure)[:5]}")


@test("SOAK mixed calls with the gateway killed and started again in between: none lost, none doubled, none wrong")
def _(w):
    total = 10000 if gateway_client.ARGS.full else 2000
    w.start()
    w.token()
    clients = [Client(w, i, total // CLIENTS) for i in range(CLIENTS)]
    for c in clients:
        c.start()
    times = 20 if gateway_client.ARGS.full else 6
    disturb(w, clients, total, times)
    for c in clients:
        c.join()
        if c.fault:
            raise c.fault
        check_lines(w, c)
        for key in random.Random(c.number).sample(sorted(c.answers), 5):
            found = w.get(f"/v1/calls/{c.answers[key]}")
            need(found.status in (200, 404, 410, 500), f"{key}: {found!r}")
    begun = {r["call"] for r in w.audit(event="call.begin")}
    ended = [r["call"] for r in w.audit(event="call.end")]
    same(len(ended), len(set(ended)), "ends")
    need(set(ended) <= begun, "an end without a beginning")
    for c in clients:
        need(set(c.ran.values()) <= set(ended), f"client {c.number}: a call that ran has no end in the audit")
    r = w.clawden("audit", "verify")
    same(r.returncode, 0, r.stdout + r.stderr)
    print(f"# {total} calls, ended {times} times, {sum(c.retries for c in clients)} asked again, "
          f"{sum(c.interrupted for c in clients)} were interrupted", flush=True)
