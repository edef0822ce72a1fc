#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/api.md against a gateway of its own, in the order in which they stand there. Prints TAP.

  api_examples.py --bin DIR [--docs FILE] [--only WORD]

Each ```sh block is run in one shell for the whole document, with $URL and $TOKEN set. What it prints is held against the block that follows: ```json by
shape ("…" stands for any value or part of a text, a key "…" for any further keys), ```text line by line. A ```ws block is a conversation.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gateway_client  # noqa: E402
from tap import Skip, default_label, need, run, same, test  # noqa: E402

ANY = "…"
SECONDS = 60  # for one block
ARGS = None


# ---- the document ----

class Section:
    def __init__(self, title):
        self.title, self.blocks, self.outcome = title, [], None


def read_sections(path):
    """Those that have something to run: (language, text) of each block."""
    sections, block = [], None
    for line in open(path, encoding="utf-8"):
        m = re.match(r"```(\w*)$", line)
        if block is not None and m:
            block = None
        elif block is not None:
            block[1] += line
        elif m:
            block = [m[1], ""]
            sections[-1].blocks.append(block)
        elif line.startswith("#"):
            sections.append(Section(line.lstrip("#").strip()))
    return [s for s in sections if any(lang in ("sh", "ws") for lang, _ in s.blocks)]


# ---- what was said, against what is printed ----

def matches_text(want, got):
    return re.fullmatch(".*".join(re.escape(part) for part in want.split(ANY)), got, re.S) is not None


def compare(want, got, where="it"):
    """Fails where the shapes differ."""
    if want == ANY:
        return
    if isinstance(want, str):
        need(isinstance(got, str) and matches_text(want, got), f"{where}: got {got!r}, the document says {want!r}")
    elif isinstance(want, dict):
        need(isinstance(got, dict), f"{where}: got {got!r}, the document has an object")
        missing, more = set(want) - set(got) - {ANY}, set(got) - set(want)
        need(not missing, f"{where}: lacks {sorted(missing)}: {got!r}")
        need(ANY in want or not more, f"{where}: has {sorted(more)}, which the document does not: {got!r}")
        for key in set(want) - {ANY}:
            compare(want[key], got[key], f"{where}.{key}")
    elif isinstance(want, list):
        need(isinstance(got, list), f"{where}: got {got!r}, the document has a list")
        same(len(got), len(want), f"{where}: length of {got!r}")
        for i, one in enumerate(want):
            compare(one, got[i], f"{where}[{i}]")
    else:
        same((type(got), got), (type(want), want), where)


def compare_block(lang, want, got):
    if lang == "json":
        try:
            value = json.loads(got)
        except ValueError:
            raise AssertionError(f"it printed no JSON: {got[:500]!r}") from None
        compare(json.loads(want), value)
        return
    want, got = want.rstrip("\n").split("\n"), got.rstrip("\n").split("\n")
    same(len(got), len(want), f"lines of {got!r}")
    for w, g in zip(want, got):
        need(matches_text(w, g), f"got {g!r}, the document says {w!r}")


# ---- running ----

class World(gateway_client.World):
    """One for the whole document."""

    def __init__(self):
        super().__init__()
        self.folder = os.path.join(self.top, "shell")
        os.mkdir(self.folder)
        careful = {"workspace": self.ws, "sandbox": {"approve": ["exec:git *push*"]}}  # as the document says
        self.configure(json.dumps({"agents": {"defaults": {"workspace": self.ws}, "entries": {"careful": careful}}}))
        self.start()
        env = dict(self.env, URL=f"http://127.0.0.1:{self.port}", TOKEN=self.token(), PATH=f"{self.bin}:/usr/bin:/bin")
        self.sh = subprocess.Popen(["sh"], env=env, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=gateway_client.die_with_parent)
        os.set_blocking(self.sh.stdout.fileno(), False)
        os.set_blocking(self.sh.stderr.fileno(), False)

    def run_sh(self, text):
        """What the block prints."""
        with open(os.path.join(self.folder, "block"), "w", encoding="utf-8") as f:
            f.write(text)
        self.sh.stdin.write(b". ./block </dev/null; printf '\\001%d\\001' $?\n")
        self.sh.stdin.flush()
        out, end = b"", time.monotonic() + SECONDS
        while not re.search(rb"\x01\d+\x01$", out):
            need(self.sh.poll() is None, "the shell has ended")
            if time.monotonic() > end:
                self.sh.kill()
                raise AssertionError(f"not done after {SECONDS} s: {out!r}")
            out += self.sh.stdout.read() or b""
            time.sleep(0.005)
        said, status = re.fullmatch(rb"(.*)\x01(\d+)\x01", out, re.S).groups()
        errors = (self.sh.stderr.read() or b"").decode(errors="replace")
        same(int(status), 0, f"status of {text!r}: {errors}{said!r}")
        return said.decode()

    def run_ws(self, text):
        ws = self.socket()
        same(ws.status, 101, "WebSocket")
        for line in text.strip().split("\n"):
            if line[0] == ">":
                ws.send(json.loads(line[2:]))
            else:
                compare(json.loads(line[2:]), ws.message(), line)
        ws.c.close()

    def run_section(self, s):
        if any("jq " in text for _, text in s.blocks) and not shutil.which("jq"):
            raise Skip("jq is not installed")
        for i, (lang, text) in enumerate(s.blocks):
            if lang == "ws":
                self.run_ws(text)
            elif lang == "sh":
                printed = self.run_sh(text)
                after = s.blocks[i + 1] if i + 1 < len(s.blocks) else ["", ""]
                need(after[0] in ("json", "text"), f"a block has nothing to be held against: {text!r}")
                compare_block(*after, printed)
        self.alive()

    def close(self):
        """After each claim; the end is `finish`."""

    def finish(self):
        self.sh.kill()
        self.sh.communicate()
        super().close()


WORLD = None


def the_world():
    global WORLD
    WORLD = WORLD or World()
    return WORLD


def run_until(w, sections, wanted):
    """Later sections build on earlier ones."""
    for s in sections:
        if s.outcome is None:
            try:
                w.run_section(s)
                s.outcome = True
            except Exception as e:
                s.outcome = e
        if s is wanted:
            break
    if s.outcome is not True:
        raise s.outcome


def add_claims(sections):
    for s in sections:
        test(s.title)(lambda w, s=s: run_until(w, sections, s))


@test("every tool and every path is in the document")
def _(w):
    text = open(ARGS.docs, encoding="utf-8").read()
    for tool in w.get("/v1/tools").json["tools"]:
        need(f"\n### {tool['name']}\n" in text and f'"tool": "{tool["name"]}"' in text, f"tool '{tool['name']}' has no example")
    for path in w.get("/openapi.json").json["paths"]:
        need(path in text or path in ("/app.js", "/app.css", "/v1/login", "/v1/logout"), f"'{path}' is not in it")


def main():
    global ARGS
    here = os.path.dirname(os.path.abspath(__file__))
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=os.path.join(here, "../../build/bin"))
    a.add_argument("--docs", default=os.path.join(here, "../../docs/api.md"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    ARGS = gateway_client.ARGS = a.parse_args()
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, lambda number, _: sys.exit(128 + number))  # worlds are taken away on the way out
    add_claims(read_sections(ARGS.docs))
    try:
        status = run("API", the_world, ARGS.only, ARGS.label)
    finally:
        if WORLD:
            WORLD.finish()
    sys.exit(status)


if __name__ == "__main__":
    main()
