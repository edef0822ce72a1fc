#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call through the gateway costs, beside the same thing done without it.

  gateway.py --bin DIR --load PROGRAM --dir DIR [--rounds N] [--seconds N] [--sessions-seconds N] [--docker-image NAME] [--json FILE] [--markdown FILE]

Started by tests/bench/run, in whose environment (home, data, runtime folders) the gateway runs. In a round each load is run once, in a shuffled order;
what is compared are medians of the same run. Nothing fails because of a number, only because ours did not run or an answer was wrong.
"""
import argparse
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

from egress import Failed, end_with_us, last_line, load_now, number, stop, version, write

SESSIONS, PER_SECOND = 500, 2
READ = '{"tool":"read","arguments":{"path":"bench.txt"}}'
EXEC = '{"tool":"exec","arguments":{"argv":["true"]}}'
LINE = '{"tool":"exec","arguments":{"command":"true"}}'
OF_SESSION = ',"session":"agent:main:bench-@"}'
# Of ten calls of a session nine work on files, one runs a command.
MIXED = [READ[:-1] + OF_SESSION] * 6 + ['{"tool":"ls"' + OF_SESSION] * 2 + \
        ['{"tool":"write","arguments":{"path":"s@.txt","content":"@"}' + OF_SESSION] + [EXEC[:-1] + OF_SESSION]


class World:
    """The gateway, its token and its boxes."""

    def __init__(self, args):
        self.args, self.p, self.spent = args, None, {}
        self.clawden = os.path.join(args.bin, "clawden")

    def run(self, *words, env=None, timeout=120):
        try:
            p = subprocess.run(words, capture_output=True, text=True, timeout=timeout, preexec_fn=end_with_us, stdin=subprocess.DEVNULL, cwd=self.args.dir,
                               env=dict(os.environ, **(env or {})))
        except subprocess.TimeoutExpired:
            raise Failed(f"{os.path.basename(words[0])}: not done after {timeout} s") from None
        except OSError as e:
            raise Failed(f"{words[0]}: {e.strerror}") from None
        if p.returncode:
            raise Failed(f"{os.path.basename(words[0])}: {last_line(p.stderr or p.stdout)}")
        return p.stdout

    def start(self):
        self.ws = os.path.join(self.args.dir, "gateway-ws")
        os.makedirs(os.path.join(os.environ["HOME"], ".openclaw"), exist_ok=True)
        os.makedirs(self.ws, exist_ok=True)
        with open(os.path.join(os.environ["HOME"], ".openclaw/openclaw.json"), "w") as f:
            json.dump({"agents": {"defaults": {"workspace": self.ws, "sandbox": {}}}}, f)
        with open(os.path.join(self.ws, "bench.txt"), "w") as f:
            f.write(("x" * 63 + "\n") * 64)
        if os.getuid() == 0:
            os.chown(self.ws, 1000, 1000)
        self.p = subprocess.Popen([os.path.join(self.args.bin, "clawden-gateway"), "--listen", "127.0.0.1:0", "--no-link"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=open(os.path.join(self.args.dir, "gateway.log"), "w"), text=True, preexec_fn=end_with_us)
        m = re.search(r"http://127\.0\.0\.1:(\d+)", self.p.stdout.readline())
        if not m:
            raise Failed("clawden-gateway: " + last_line(open(os.path.join(self.args.dir, "gateway.log")).read()))
        self.port = m[1]
        self.pids = [self.p.pid] + [int(x) for x in self.run("pgrep", "-P", str(self.p.pid)).split()]  # back and front, before it has workers
        self.token = self.run(self.clawden, "token", "create", "--agent", "main", "--session", "agent:main:*").strip()

    def rss(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/status") as f:
                total += int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
        return total

    def cpu(self):
        """Microseconds of back and front so far."""
        return [int(open(f"/proc/{pid}/schedstat").read().split()[0]) / 1e3 for pid in self.pids]

    def pin(self, cores):
        for pid in self.pids:
            os.sched_setaffinity(pid, cores)

    def count(self, what, before, n):
        """What both processes spent on one of n."""
        self.spent.setdefault(what, []).append([(b - a) / n for a, b in zip(before, self.cpu())])

    def ask(self, conns, seconds, want, *bodies, rate=0):
        before = self.cpu()
        said = json.loads(self.run(self.args.load, "ask", self.port, str(conns), str(seconds), str(rate), want, *bodies, env={"TOKEN": self.token},
                                   timeout=seconds + 90))
        if said["errors"]:
            raise Failed(f"{said['errors']} of {said['n']} answers were wrong: {said['error']}")
        if conns == 1 and seconds >= 1:
            self.count({READ: "read 4 KiB", EXEC: "exec true", LINE: "exec, the line 'true'"}[bodies[0]], before, said["n"])
        return said

    def spawn(self, n, *words, pause_ms=0):
        said = json.loads(self.run(self.args.load, "spawn", str(n), str(pause_ms), *words))
        if said["errors"]:
            raise Failed(f"{words[0]}: {said['errors']} of {n} failed")
        return said["p50"]

    def close(self):
        if self.p:
            self.p.terminate()
            try:
                self.p.wait(20)
            except subprocess.TimeoutExpired:
                self.p.kill()
                self.p.wait()
            self.p.stdout.close()
        try:
            self.run(self.clawden, "sandbox", "recreate", "--all", "--force", timeout=300)
        except Failed as e:
            print(f"gateway: its boxes were not removed: {e}", file=sys.stderr)


# ---- what is measured ----

def health(w):
    """Requests per second while both processes have one processor."""
    cores = sorted(os.sched_getaffinity(0))
    w.pin({cores[0]})
    before = w.cpu()
    try:
        said = w.run("taskset", "-c", str(cores[-1]), "wrk", "-t1", "-c32", f"-d{w.args.seconds}s", f"http://127.0.0.1:{w.port}/healthz")
    finally:
        w.pin(set(cores))
    if re.search(r"Non-2xx|Socket errors", said):
        raise Failed(last_line(said))
    w.count("healthz", before, int(re.search(r"(\d+) requests in", said)[1]))
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


def sandbox_words(w, *words):
    return [os.path.join(w.args.bin, "clawden-sandbox"), "exec", "--workspace", w.ws, "--", *words]


# name: (unit, how)
LOADS = {
    "healthz, 32 connections": ("/s", health),
    "read 4 KiB, one connection": ("us", lambda w: w.ask(1, w.args.seconds, '"size":4096', READ)["p50"]),
    "read 4 KiB, 16 connections": ("/s", lambda w: rate_of(w.ask(16, w.args.seconds, '"size":4096', READ))),
    "bare vfork+exec: true": ("us", lambda w: w.spawn(w.args.spawns, "true")),
    # with a pause, in which the spawner makes the next slot: what is asked for is the time of one, not how many in a row
    "clawden-sandbox exec: true": ("us", lambda w: w.spawn(w.args.spawns // 5, *sandbox_words(w, "true"), pause_ms=20)),
    "gateway exec: true": ("us", lambda w: w.ask(1, w.args.seconds, '"exitCode":0', EXEC)["p50"]),
    "gateway exec: true, 8 connections": ("/s", lambda w: rate_of(w.ask(8, w.args.seconds, '"exitCode":0', EXEC))),
    "bare vfork+exec: sh -c true": ("us", lambda w: w.spawn(w.args.spawns, "sh", "-c", "true")),
    "gateway exec: the line 'true'": ("us", lambda w: w.ask(1, w.args.seconds, '"exitCode":0', LINE)["p50"]),
}


def rate_of(said):
    return said["n"] / said["seconds"]


class Docker:
    """docker exec by the Engine API: three requests over its socket."""

    def __init__(self, args):
        self.box = None
        if not args.docker_image:
            raise Failed(args.no_docker)
        self.path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        self.box = self.ask("POST", "/containers/create", {"Image": args.docker_image, "Cmd": ["/t0", "sleep"],
                                                           "HostConfig": {"NetworkMode": "none"}})["Id"]
        self.ask("POST", f"/containers/{self.box}/start")

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection("docker")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.settimeout(20)
        try:
            c.sock.connect(self.path)
            c.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            r = c.getresponse()
            text = r.read()
        finally:
            c.close()
        if r.status >= 400:
            raise Failed(f"docker: {path}: {text[:200]!r}")
        return json.loads(text) if text[:1] in b"{[" and text else None

    def measure(self, n=30):
        times = []
        for _ in range(n):
            begun = time.monotonic()
            one = self.ask("POST", f"/containers/{self.box}/exec", {"AttachStdout": True, "Cmd": ["/bin/true"]})["Id"]
            self.ask("POST", f"/exec/{one}/start", {"Detach": False})
            if self.ask("GET", f"/exec/{one}/json")["ExitCode"] != 0:
                raise Failed("docker exec failed")
            times.append((time.monotonic() - begun) * 1e6)
        return statistics.median(times)

    def close(self):
        if self.box:
            self.ask("DELETE", f"/containers/{self.box}?force=1")


class Results:
    def __init__(self):
        self.values, self.notes, self.failed, self.facts, self.many, self.spent = {}, [], False, "", None, {}

    def median(self, name):
        v = self.values.get(name)
        return statistics.median(v) if v else None

    def drop(self, what, why, ours=True):
        self.failed = self.failed or ours
        self.notes.append(f"{'FAILED' if ours else 'skipped'} gateway, {what}: {why}")


def measure_all(w, results):
    names = list(LOADS)
    if not shutil.which("wrk"):
        names.remove("healthz, 32 connections")
        results.drop("healthz", "wrk is not installed", ours=False)
    docker = None
    try:
        docker = Docker(w.args)
    except (Failed, OSError) as e:
        results.drop("docker exec by the Engine API", e, ours=False)
    try:
        w.ask(1, 0.2, '"exitCode":0', EXEC)  # the box is there, the caches are warm
        for _ in range(w.args.rounds):
            random.shuffle(names)
            for name in list(names):
                try:
                    results.values.setdefault(name, []).append(LOADS[name][1](w))
                except Failed as e:
                    results.drop(name, e)
                    results.values.pop(name, None)
                    names.remove(name)
            if docker:
                results.values.setdefault("docker exec by the Engine API: true", []).append(docker.measure())
    finally:
        if docker:
            docker.close()


def measure_sessions(w, results):
    """Many sessions, each with a box of its own, each asking at its own pace."""
    begun = time.monotonic()
    try:
        warm = w.ask(SESSIONS, 1.5, '"exitCode":0', EXEC[:-1] + OF_SESSION, rate=1)
        made, before = time.monotonic() - begun, w.rss()
        said = w.ask(SESSIONS, w.args.sessions_seconds, '"result"', *MIXED, rate=PER_SECOND)
        results.many = dict(said, made=made, first_p50=warm["p50"], rss_before=before, rss_after=w.rss())
    except Failed as e:
        results.drop(f"{SESSIONS} sessions", e)


# ---- judging and reporting ----

def judge(results):
    """Rows as budgets.c has them: budget, limit, verdict, measured."""
    rows = []

    def row(what, limit, x, reached, text):
        rows.append((f"gateway: {what}", limit, "not measured" if x is None else "reached" if reached(x) else "missed",
                     "it did not run; see the notes" if x is None else text(x)))

    row("/healthz, one processor", ">= 30,000/s", results.median("healthz, 32 connections"), lambda x: x >= 30000, lambda x: f"{x:,.0f}/s")
    row("read 4 KiB", "<= 150 us", results.median("read 4 KiB, one connection"), lambda x: x <= 150, lambda x: f"{x:.0f} us")
    row("read 4 KiB, requests", ">= 5,000/s", results.median("read 4 KiB, 16 connections"), lambda x: x >= 5000, lambda x: f"{x:,.0f}/s")
    mine, bare = results.median("gateway exec: true"), results.median("bare vfork+exec: true")
    row("exec true", "<= 2.0 x bare", mine / bare if mine and bare else None, lambda x: x <= 2, lambda x: f"{x:.2f} x bare ({mine:.0f} us)")
    m = results.many
    row(f"{SESSIONS} sessions, {PER_SECOND} calls/s each", "no error, memory flat", m and m["rss_after"] / m["rss_before"], lambda x: x <= 1.1,
        lambda x: f"{m['n']} calls, 0 errors, p50 {m['p50'] / 1e3:.2f} ms, p99 {m['p99'] / 1e3:.1f} ms, "
                  f"memory {m['rss_before'] // 1024} to {m['rss_after'] // 1024} MiB")
    return rows


def tables(results):
    bare, box, docker = (results.median(x) for x in ("bare vfork+exec: true", "clawden-sandbox exec: true", "docker exec by the Engine API: true"))
    rows = []
    for name, v in results.values.items():
        p50 = statistics.median(v)
        is_time = LOADS.get(name, ("us",))[0] == "us"
        rows.append([name, str(len(v)), number(min(v), 0), number(p50, 0), number(max(v), 0), LOADS.get(name, ("us",))[0]] +
                    [number(p50 / x if is_time and x else None, 2) for x in (bare, box, docker)])
    rows.sort(key=lambda r: list(LOADS).index(r[0]) if r[0] in LOADS else 99)
    yield "Calls through the gateway", ["case", "rounds", "lowest", "median", "highest", "", "x bare", "x sandbox", "x docker"], rows
    rows = [[what] + [number(statistics.median(x), 1) for x in zip(*v)] for what, v in sorted(results.spent.items())]
    yield "Processor time of the gateway for one call, us", ["call", "back", "front"], rows
    m = results.many
    if m:
        yield (f"{SESSIONS} sessions at once, {PER_SECOND} calls/s each, {m['seconds']:.0f} s", ["what", "value"],
               [["calls", str(m["n"])], ["errors", str(m["errors"])], ["p50, ms", number(m["p50"] / 1e3, 2)], ["p99, ms", number(m["p99"] / 1e3, 2)],
                ["highest, ms", number(m["max"] / 1e3, 2)], [f"{SESSIONS} boxes made, s", number(m["made"], 1)],
                ["memory before, MiB", number(m["rss_before"] / 1024, 1)], ["memory after, MiB", number(m["rss_after"] / 1024, 1)]])


def print_text(results, budgets, out):
    for title, header, rows in tables(results):
        print(f"\n{title}", file=out)
        for r in [header] + rows:
            print(f"{r[0]:<40}" + "".join(f" {c:>10}" for c in r[1:]), file=out)
    print(results.facts, file=out)
    print("\nBudgets of the gateway", file=out)
    for b in budgets:
        print("{:<42} {:<24} {:<13} {}".format(*b), file=out)
    for note in results.notes:
        print(note, file=out)


def add_markdown(path, results, budgets):
    """Into the file that the others wrote: tables before the budgets, budgets among them, notes at the end."""
    old = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else ["# Benchmark"]
    if "## Budgets" not in old:
        old += ["", "## Budgets", "", "| budget | limit | | measured |", "|---|---|---|---|"]
    at = old.index("## Budgets")
    head, tail = old[:at], [line for line in old[at:] if not line.startswith("| gateway:")]
    for title, header, rows in tables(results):
        head += [f"## {title}", "", "| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
        head += ["| " + " | ".join(r) + " |" for r in rows] + [""]
    end = max(i for i, line in enumerate(tail) if line.startswith("|"))
    tail[end + 1:end + 1] = ["| " + " | ".join(b) + " |" for b in budgets]
    if results.notes and "## Notes" not in tail:
        tail += ["", "## Notes", ""]
    write(path, "\n".join(head + [results.facts, ""] + tail + [f"- {n}" for n in results.notes]) + "\n")


def add_json(path, results, budgets):
    old = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}
    old["gateway"] = [{"case": name, "unit": LOADS.get(name, ("us",))[0], "median": round(statistics.median(v), 1), "rounds": [round(x, 1) for x in v]}
                      for name, v in results.values.items()]
    old["gateway_sessions"], old["gateway_cpu_usec"] = results.many, results.spent
    old["budgets"] = [b for b in old.get("budgets", []) if not b["budget"].startswith("gateway:")]
    old["budgets"] += [dict(zip(("budget", "limit", "verdict", "measured"), b)) for b in budgets]
    old["notes"] = old.get("notes", []) + results.notes
    old["gateway_facts"] = results.facts
    old["failed"] = old.get("failed", False) or results.failed
    write(path, json.dumps(old, indent=1) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("--load", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=int, default=1)
    p.add_argument("--sessions-seconds", type=int, default=10)
    p.add_argument("--docker-image", help="an image with /t0 and /bin/true in the engine at DOCKER_HOST")
    p.add_argument("--no-docker", help="why there is none")
    p.add_argument("--spawns", type=int, default=300)
    p.add_argument("--json")
    p.add_argument("--markdown")
    args = p.parse_args()
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, stop)
    results, world, load = Results(), World(args), load_now()
    try:
        world.start()
        measure_all(world, results)
        results.spent = world.spent
        measure_sessions(world, results)
    except Failed as e:
        results.drop("all", e)
    finally:
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        world.close()
    results.facts = f"{version('wrk', '-v')}; {os.cpu_count()} processors; load {load} at the start, {load_now()} at the end"
    budgets = judge(results)
    print_text(results, budgets, sys.stdout)
    if args.markdown:
        add_markdown(args.markdown, results, budgets)
    if args.json:
        add_json(args.json, results, budgets)
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
