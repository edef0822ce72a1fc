#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a connection through clawden-egress costs, beside the other ways out of a box.

  egress.py --bin DIR --load PROGRAM --dir DIR [--rounds N] [--seconds N] [--json FILE] [--markdown FILE]

Started by tests/bench/run. Four ways lead to one server, all in network namespaces that this run makes:

  direct        H --veth-- S                      a program of the host: the base line
  veth+NAT      C1 --veth-- H (masquerade) --- S  as docker's bridge does it
  clawden       a box of H ~~ relay in H --- S    caught: the program knows of no proxy
  slirp4netns   C3 ~~ slirp4netns in H --- S      as rootless containers do it

In a round each load is run once by each way, in a shuffled order; what is compared are medians of the same run. Nothing
fails because of a number, only because ours did not run; a way that this machine does not have is skipped and says why.

The namespaces hang on processes that end with this one, even if it is killed; with them go devices, addresses and rules.
The relay leaves by itself when it has no box. Nothing is written to the machine's own settings: each /proc/sys/net that is
written to is that of a namespace of ours.
"""
import argparse
import ctypes
import json
import os
import random
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

SERVER = "93.184.216.34"
HOST = "93.184.216.1"
NAT_HOST, NAT_CLIENT = "10.200.0.1", "10.200.0.2"
# Ports of its own for each way: the server remembers closed connections by address and port, and would take a packet of
# C1 behind the NAT for an old one of H.
PORTS = {"direct": 5000, "veth+NAT": 5010, "clawden": 5020, "slirp4netns": 5030}
WAYS = list(PORTS)
LOADS = ["up", "down", "round", "open"]
ROUND_TRIPS, OPEN_SECONDS, OPEN_WORKERS = 5000, 2, 4
RATE, NEW = "64g", "100000"  # of clawden-sandbox: what is measured is the relay, not its limits
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1

NAT_RULES = f"""
table ip bench {{
    chain post {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {NAT_CLIENT} masquerade
    }}
}}
"""


class Failed(Exception):
    """A part could not be made or run; the text says why."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def end_with_us():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class World:
    """The namespaces, and everything that runs in them."""

    def __init__(self, args):
        self.args = args
        self.children = []
        self.ns = {}
        self.relay = False

    # ---- programs ----

    def inside(self, where):
        return ["nsenter", f"--net=/proc/{self.ns[where]}/ns/net", "--"] if where else []

    def run(self, where, *words, text=None, timeout=20):
        try:
            p = subprocess.run(self.inside(where) + list(words), input=text or "", capture_output=True, text=True,
                               timeout=timeout, preexec_fn=end_with_us, cwd=self.args.dir)
        except subprocess.TimeoutExpired:
            raise Failed(f"{os.path.basename(words[0])}: not done after {timeout} s") from None
        except OSError as e:
            raise Failed(f"{words[0]}: {e.strerror}") from None
        if p.returncode:
            raise Failed(f"{os.path.basename(words[0])}: {last_line(p.stderr or p.stdout)}")
        return p.stdout

    def start(self, where, *words):
        """A program that stays; when it is ready it says something on its stdout."""
        p = subprocess.Popen(self.inside(where) + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, preexec_fn=end_with_us, cwd=self.args.dir)
        self.children.append(p)
        ready, _, _ = select.select([p.stdout], [], [], 20)
        if not ready or not p.stdout.readline():
            p.kill()
            raise Failed(f"{os.path.basename(words[0])}: {last_line(p.communicate()[1]) if ready else 'not ready after 20 s'}")
        return p

    # ---- making ----

    def make_ns(self, name):
        self.ns[name] = self.start(None, self.args.load, "hold").pid
        self.run(name, "ip", "link", "set", "lo", "up")

    def set(self, where, **values):
        for key, value in values.items():
            self.run(where, "sh", "-c", f"echo {value} >/proc/sys/net/{key.replace('__', '/')}")

    def connect(self, left, left_dev, left_address, right, right_dev, right_address):
        self.run(left, "ip", "link", "add", left_dev, "type", "veth", "peer", "name", right_dev, "netns",
                 str(self.ns[right]))
        for where, dev, address in ((left, left_dev, left_address), (right, right_dev, right_address)):
            self.run(where, "ip", "address", "add", f"{address}/24", "dev", dev)
            self.run(where, "ip", "link", "set", dev, "up")

    def make(self):
        """The host and the server; the direct way is then there."""
        self.make_ns("S")
        self.make_ns("H")
        self.connect("H", "to-s", HOST, "S", "to-h", SERVER)
        # The server is the first to close: what it remembers of closed connections must not be cut short.
        self.set("S", ipv4__tcp_max_tw_buckets=1000000, core__somaxconn=4096)
        for port in PORTS.values():
            self.start("S", self.args.load, "serve", SERVER, str(port))

    def make_nat(self):
        if not shutil.which("nft"):
            raise Failed("nft is not installed")
        self.make_ns("C1")
        self.connect("H", "to-c1", NAT_HOST, "C1", "to-h", NAT_CLIENT)
        self.run("C1", "ip", "route", "add", "default", "via", NAT_HOST)
        self.run("H", "nft", "-f", "-", text=NAT_RULES)
        self.set("H", ipv4__ip_forward=1, netfilter__nf_conntrack_tcp_timeout_time_wait=5)

    def make_slirp(self):
        if not shutil.which("slirp4netns"):
            raise Failed("it is not installed")
        if not os.path.exists("/dev/net/tun"):
            raise Failed("there is no /dev/net/tun")
        self.make_ns("C3")
        self.start("H", "sh", "-c", 'exec slirp4netns --configure --mtu=65520 --disable-host-loopback --ready-fd=3 "$1" tap0 3>&1 >&2',
                   "sh", str(self.ns["C3"]))

    def prepare(self, way):
        if way == "veth+NAT":
            self.make_nat()
        elif way == "slirp4netns":
            self.make_slirp()
        elif way == "clawden":
            self.relay = True

    # ---- loads ----

    def measure(self, way, load):
        words = [self.args.load, load, SERVER, str(PORTS[way])]
        if load == "round":
            words.append(str(ROUND_TRIPS))
        elif load == "open":
            words += [str(OPEN_SECONDS), str(OPEN_WORKERS)]
        else:
            words.append(str(self.args.seconds))
        if way == "clawden":
            words = [os.path.join(self.args.bin, "clawden-sandbox"), "exec", "--no-spawner", f"--allow-network={SERVER}:*",
                     "--network-rate", RATE, "--network-new", NEW, "--workspace", os.path.dirname(self.args.load), "--"] + words
        where = {"direct": "H", "veth+NAT": "C1", "clawden": "H", "slirp4netns": "C3"}[way]
        said = self.run(where, *words, timeout=self.args.seconds + 60)
        try:
            return value(load, json.loads(said))
        except ValueError:
            raise Failed(f"it said '{last_line(said)}'") from None

    # ---- the end ----

    def close(self):
        if self.relay and "H" in self.ns:
            try:
                self.run("H", os.path.join(self.args.bin, "clawden-egress"), "--stop")
            except Failed:
                pass  # it leaves by itself, a few seconds after its last box
        for p in reversed(self.children):
            p.kill()
        for p in self.children:
            p.communicate()


def value(load, said):
    """MB/s, microseconds, or connections per second."""
    if load == "round":
        return said["p50"]
    if load == "open":
        if said["errors"] > said["n"] / 100:
            raise Failed(f"{said['errors']} of {said['n'] + said['errors']} connections failed: {said['error']}")
        return said["n"] / said["seconds"]
    return said["bytes"] / said["seconds"] / 1e6


# ---- measuring ----

class Results:
    def __init__(self):
        self.values = {}  # (way, load): list
        self.notes, self.failed, self.facts = [], False, ""

    def add(self, way, load, x):
        self.values.setdefault((way, load), []).append(x)

    def median(self, way, load):
        v = self.values.get((way, load))
        return statistics.median(v) if v else None

    def spread(self, way, load):
        v = self.values.get((way, load))
        return (min(v), max(v)) if v else (None, None)

    def drop(self, way, what, why):
        is_peer = way in ("veth+NAT", "slirp4netns")
        self.failed = self.failed or not is_peer
        word = "skipped" if is_peer else "FAILED"
        self.notes.append(f"{word} {way}, {what}: {why}")


def progress(done, total, began):
    if time.monotonic() - began > 2 and sys.stderr.isatty():
        print(f"\regress {100 * done // total}%", end="" if done < total else "\r          \r", file=sys.stderr, flush=True)


def measure_all(world, results, rounds):
    live = []
    for way in WAYS:
        try:
            world.prepare(way)
            live.append(way)
        except Failed as e:
            results.drop(way, "all", e)
    pairs = [(way, load) for way in live for load in LOADS]
    began, done, total = time.monotonic(), 0, rounds * len(pairs)
    for _ in range(rounds):
        for load in LOADS:
            ways = [way for way in live if (way, load) in pairs]
            random.shuffle(ways)
            for way in ways:
                try:
                    results.add(way, load, world.measure(way, load))
                except Failed as e:  # it is not tried again: what it says would be the same each time
                    results.drop(way, load, e)
                    results.values.pop((way, load), None)
                    pairs.remove((way, load))
                done += 1
                progress(done, total, began)
    progress(total, total, began)


# ---- judging ----

def ratio(results, load, way, base):
    a, b = results.median(way, load), results.median(base, load)
    return a / b if a and b else None


def judge(results):
    """Rows as budgets.c has them: budget, limit, verdict, measured."""
    rows = []

    def row(what, limit, known, reached, text):
        rows.append((what, limit, ("reached" if reached else "missed") if known else "not measured",
                     text if known else "it did not run; see the notes"))

    def both(*loads):
        return all((way, load) in results.values for way in ("clawden", "veth+NAT") for load in loads)

    def best(load, end):  # of the rounds that other work on the machine disturbed least
        return results.spread("clawden", load)[end], results.spread("veth+NAT", load)[end]

    known, text, reached = both("up", "down"), [], []
    for load in ("up", "down") if known else ():
        x, (a, b) = ratio(results, load, "clawden", "veth+NAT"), best(load, 1)
        text.append(f"{x:.2f} x {load} (highest: {a / b:.2f})")
        reached.append(x >= 0.7)
    row("egress relay: bytes", ">= 0.7 x veth+NAT", known, all(reached), ", ".join(text))
    known, text, over = both("round"), "", 0
    if known:
        over, (a, b) = results.median("clawden", "round") - results.median("veth+NAT", "round"), best("round", 0)
        text = f"{over:+.0f} us (lowest: {a - b:+.0f})"
    row("egress relay: round trip", "<= 60 us over veth+NAT", known, over <= 60, text)
    rate = results.median("clawden", "open")
    row("egress relay: new connections", ">= 1,000/s", rate is not None, rate is not None and rate >= 1000,
        rate is not None and f"{rate:.0f}/s, {OPEN_WORKERS} at a time")
    return rows


# ---- reporting ----

TITLES = {"up": ("Bytes out of a box through one connection, MB/s", 0), "down": ("Bytes into a box through one connection, MB/s", 0),
          "round": ("One byte there and back, us", 1), "open": (f"New connections per second, {OPEN_WORKERS} at a time", 0)}
NAMES = {"direct": "direct: no box, no NAT", "veth+NAT": "veth+NAT", "clawden": "clawden-sandbox, caught by clawden-egress",
         "slirp4netns": "slirp4netns, MTU 65520"}


def number(x, digits):
    return "-" if x is None else f"{x:.{digits}f}"


def tables(results):
    """(title, header, rows) per load."""
    for load in LOADS:
        title, digits = TITLES[load]
        last = "over NAT" if load == "round" else "x slirp"
        rows = []
        for way in WAYS:
            if (way, load) not in results.values:
                continue
            low, high = results.spread(way, load)
            p50, nat = results.median(way, load), results.median("veth+NAT", load)
            over = number(p50 - nat if nat else None, digits) if load == "round" else number(ratio(results, load, way, "slirp4netns"), 2)
            rows.append([NAMES[way], str(len(results.values[way, load])), number(low, digits), number(p50, digits),
                         number(high, digits), number(ratio(results, load, way, "direct"), 2),
                         number(ratio(results, load, way, "veth+NAT"), 2), over])
        if rows:
            yield title, ["way", "rounds", "lowest", "median", "highest", "x direct", "x NAT", last], rows


def version(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=5).stdout.splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return f"no {words[0]}"


def load_now():
    return " ".join(f"{x:.2f}" for x in os.getloadavg())


def facts(load_before):
    """One line for under the tables: what was compared with, and how busy the machine was meanwhile."""
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as f:
        tcp = f.read().strip()
    return (f"{version('nft', '--version')}, {version('slirp4netns', '--version')}; TCP {tcp}; {os.cpu_count()} processors; "
            f"load {load_before} at the start, {load_now()} at the end")


def print_text(results, budgets, out):
    for title, header, rows in tables(results):
        print(f"\n{title}", file=out)
        for r in [header] + rows:
            print(f"{r[0]:<50}" + "".join(f" {c:>11}" for c in r[1:]), file=out)
    print(results.facts, file=out)
    print("\nBudgets of the egress relay", file=out)
    for b in budgets:
        print("{:<38} {:<31} {:<13} {}".format(*b), file=out)
    for note in results.notes:
        print(note, file=out)


def markdown_tables(results):
    lines = []
    for title, header, rows in tables(results):
        lines += ["", f"## {title}", "", "| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
        lines += ["| " + " | ".join(r) + " |" for r in rows]
    return lines + ["", results.facts]


def add_markdown(path, results, budgets):
    """Into the file that bench wrote: tables before its budgets, budgets among them, notes at the end."""
    old = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else ["# Benchmark"]
    if "## Budgets" not in old:
        old += ["", "## Budgets", "", "| budget | limit | | measured |", "|---|---|---|---|"]
    at = old.index("## Budgets")
    head, tail = old[:at], [line for line in old[at:] if not line.startswith("| egress relay")]
    end = max(i for i, line in enumerate(tail) if line.startswith("|"))
    tail[end + 1:end + 1] = ["| " + " | ".join(b) + " |" for b in budgets]
    if results.notes and "## Notes" not in tail:
        tail += ["", "## Notes", ""]
    while head and not head[-1]:
        head.pop()
    text = head + markdown_tables(results) + [""] + tail + [f"- {n}" for n in results.notes]
    write(path, "\n".join(text) + "\n")


def add_json(path, results, budgets):
    old = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}
    old["egress"] = [{"way": way, "load": load, "unit": {"round": "usec", "open": "per_second"}.get(load, "MB_per_second"),
                      "median": round(results.median(way, load), 2), "rounds": [round(x, 2) for x in v]}
                     for (way, load), v in results.values.items()]
    old["budgets"] = [b for b in old.get("budgets", []) if not b["budget"].startswith("egress relay")]
    old["budgets"] += [dict(zip(("budget", "limit", "verdict", "measured"), b)) for b in budgets]
    old["notes"] = old.get("notes", []) + results.notes
    old["egress_facts"] = results.facts
    old["failed"] = old.get("failed", False) or results.failed
    write(path, json.dumps(old, indent=1) + "\n")


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


# ---- all ----

def stop(number_, _frame):
    sys.exit(128 + number_)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("--load", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=int, default=1)
    p.add_argument("--json")
    p.add_argument("--markdown")
    args = p.parse_args()
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, stop)
    os.environ["CLAWDEN_EGRESS_IDLE"] = "5"
    results, world, load = Results(), World(args), load_now()
    try:
        if os.getuid():
            raise Failed("only root can make namespaces with a NAT between them")
        world.make()
        measure_all(world, results, args.rounds)
    except Failed as e:
        results.notes.append(f"skipped egress: {e}")
    finally:
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        world.close()
    results.facts = facts(load)
    budgets = judge(results)
    print_text(results, budgets, sys.stdout)
    if args.markdown:
        add_markdown(args.markdown, results, budgets)
    if args.json:
        add_json(args.json, results, budgets)
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
