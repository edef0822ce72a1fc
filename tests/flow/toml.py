#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our TOML reader against Python's tomllib, which decides, and npm's smol-toml. Prints TAP.

  toml.py --readers PROGRAM [--modules DIR] [--docs N] [--seed N] [--only WORD]

PROGRAM is tests/flow/readers.c. smol-toml is looked for in DIR (~/.cache/clawden-clients/node_modules) and installed
there when it is missing; without npm only its claim is skipped.

Where we differ from tomllib on purpose, each checked for and listed in DIFFERENCES:
  inf, nan, and what overflows to them   refused: a jansson value cannot hold them
  NUL in a string or key                 refused: a C string cannot hold it
  integers beyond 64 bits                refused: the specification wants an error, Python has no limit
  the year 0000                          read: RFC 3339 has it, Python's datetime begins with 0001
  more than 64 levels, 65536 keys, 2 MiB refused: limits of ours
  date-times                             strings, as written but for the 'T'; compared by letting tomllib read them
No case is known in which tomllib is laxer than TOML 1.0; one that is found belongs into LAXER.

Where smol-toml (1.9) differs from tomllib, which is only counted: it reads the year 0000, as we do; it skips a byte order
mark; it keeps CRLF in multi-line strings; it refuses dotted keys into a table that a header only passed ("[a.b.c]",
"[a]", "b.d = 1"), which the specification does not call defined.
"""
import argparse
import base64
import datetime
import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

from tap import Skip, default_label, need, run, test

ARGS = None
MAX_DEPTH, MAX_KEYS, MAX_BYTES = 64, 65536, 2 << 20
DATES = (datetime.datetime, datetime.date, datetime.time)
LAXER = set()  # documents (bytes) that tomllib reads and TOML 1.0 does not allow


class World:
    def close(self):
        pass


# ---- the readers ----

def ours(docs):
    """Per document ("ok", tree) or ("error", line, column, message)."""
    data = b"".join(b"toml %d\n%s" % (len(d), d) for d in docs)
    r = subprocess.run([ARGS.readers], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    need(r.returncode == 0, f"the readers ended with {r.returncode}: {r.stderr[-1000:].decode(errors='replace')}")
    lines = r.stdout.split(b"\n")[:-1]
    need(len(lines) == len(docs), f"{len(lines)} answers to {len(docs)} documents")
    return [answer(line) for line in lines]


def answer(line):
    verdict, rest = line.split(b" ", 1)
    if verdict == b"ok":
        return ("ok", json.loads(rest.decode()))
    row, column, message = rest.split(b" ", 2)
    return ("error", int(row), int(column), message.decode())


def tomllib_reads(doc):
    """A tree, or None."""
    try:
        return tomllib.loads(doc.decode())
    except (ValueError, RecursionError):  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        return None


def beyond_us(value, depth=1):
    """Does tomllib's tree hold what ours cannot?"""
    if isinstance(value, dict):
        return depth > MAX_DEPTH or any("\0" in k or beyond_us(v, depth + 1) for k, v in value.items())
    if isinstance(value, list):
        return depth > MAX_DEPTH or any(beyond_us(v, depth + 1) for v in value)
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str):
        return "\0" in value
    return isinstance(value, int) and not -2**63 <= value < 2**63


def expected(doc):
    """What tomllib makes of it, as far as we read it: (tree or None, is it about the year 0000)."""
    tree, zero = tomllib_reads(doc), False
    if tree is None and b"0000-" in doc:  # both are leap years
        tree, zero = tomllib_reads(doc.replace(b"0000-", b"0004-")), True
    return (None if tree is None or doc in LAXER or beyond_us(tree) else tree), zero


def alike(mine, theirs, zero):
    if isinstance(theirs, DATES):
        if not isinstance(mine, str) or " " in mine or "t" in mine:
            return False
        again = tomllib_reads(b"x = " + (mine.replace("0000-", "0004-") if zero else mine).encode())
        return again is not None and type(again["x"]) is type(theirs) and again["x"] == theirs
    if zero and isinstance(mine, str):
        mine = mine.replace("0000-", "0004-")
    if type(mine) is not type(theirs):
        return False
    if isinstance(theirs, dict):
        mine = {k.replace("0000-", "0004-") if zero else k: v for k, v in mine.items()}
        return mine.keys() == theirs.keys() and all(alike(mine[k], theirs[k], zero) for k in theirs)
    if isinstance(theirs, list):
        return len(mine) == len(theirs) and all(alike(m, t, zero) for m, t in zip(mine, theirs))
    return repr(mine) == repr(theirs)  # -0.0 is not 0.0


def check_place(doc, got):
    """The place is one of the text, and the message is fit for a terminal."""
    _, row, column, message = got
    lines = doc.decode("utf-8", "surrogateescape").split("\n")
    need(1 <= row <= len(lines) and 1 <= column <= len(lines[row - 1]) + 1, f"{doc[:200]!r}: place {row}:{column} is not in it")
    need(0 < len(message) < 400 and message.isprintable(), f"{doc[:200]!r}: message {message!r}")


def compare(docs):
    """All of them as tomllib has them; returns (read, refused)."""
    count = [0, 0]
    for doc, got in zip(docs, ours(docs)):
        want, zero = expected(doc)
        if got[0] == "error":
            need(want is None, f"{doc[:600]!r}: refused ({got[1]}:{got[2]} {got[3]}), tomllib has {want!r}")
            check_place(doc, got)
        else:
            need(want is not None, f"{doc[:600]!r}: read as {got[1]!r}, tomllib refuses it")
            need(alike(got[1], want, zero), f"{doc[:600]!r}: read as {got[1]!r}, tomllib has {want!r}")
        count[got[0] == "error"] += 1
    return count


def compare_many(docs, what):
    docs = list(docs)
    read, refused = compare(docs)
    need(read and refused, f"only one verdict: {read} read, {refused} refused")
    print(f"# {what}: {len(docs)} documents, {read} read, {refused} refused", flush=True)


# ---- everything that is small ----

STATEMENTS = ["[a]", "[a.b]", "[a.b.c]", "[[a]]", "[[a.b]]", "[[a.b.c]]", "a = 1", "a = {}", "a = []", "a = [{}]", "a.b = 1", "a.b.c = 1", "a.b = {}",
              "a.b = [{}]", "b = 1", "b = {c.d = 1}", "b = [{}]", "b.c = 1", "b.d = 1", "b.c.d = 1", "c = 1", "x.y = 1"]
INLINE = ["a = 1", "a = {}", "a = {b = 1}", "a = [{}]", "a.b = 1", "a.c = 1", "a.b = {}", "a.b.c = 1", "b = {a.b = 1, a.c = 2}"]


@test("tables are defined and redefined as tomllib has it, for every sequence of three statements")
def _(w):
    docs = ("\n".join(s).encode() for n in (1, 2, 3) for s in itertools.product(STATEMENTS, repeat=n))
    compare_many(docs, "statements")
    after = ["", "[x.a]", "[x.c]", "[[x]]", "[[x.a]]", "x.a.d = 1", "x.d = 1"]
    docs = (f"x = {{{', '.join(s)}}}\n{a}".encode() for n in (0, 1, 2, 3) for s in itertools.product(INLINE, repeat=n) for a in after)
    compare_many(docs, "inline tables")


@test("redefinition in and below lists of tables is as tomllib has it")
def _(w):
    some = ["[[a]]", "[a.b]", "[a.b.c]", "[[a.b]]", "[a]", "b.c = 1", "b.d = 1", "b = 1", "c.d = 1", "[a.c]"]
    compare_many(("\n".join(s).encode() for n in (4, 5) for s in itertools.product(some[:8 if n == 5 else 10], repeat=n)), "lists")


@test("whatever looks like a number is one exactly when tomllib says so")
def _(w):
    words = ["".join(s) for n in range(1, 6) for s in itertools.product("01_.e+-", repeat=n)]
    words += [a + p + "".join(s) for a in ("", "+", "-") for p in ("0x", "0o", "0b", "0X", "0B", "0O") for n in range(4)
              for s in itertools.product("0178_afG", repeat=n)]
    edges = [2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64 - 1, 2**64]
    words += [f(e) for e in edges for f in (str, hex, oct, bin) if e >= 0 or f is str]
    words += ["1e308", "1.8e308", "-1e309", "1e-400", "4.9e-324", "2e-324", "0.1", "1" + "0" * 400, "1" + "0" * 400 + ".0", "9007199254740993.0",
              "inf", "+inf", "-inf", "nan", "+nan", "-nan", "Inf", "infinity", "NaN", "1e5_0", "1E+0_1", "1_0.0_1e1_0", "0e0", "-0", "-0.0", "+0.0e-0"]
    compare_many((f"x = {s}".encode() for s in words), "numbers")


@test("dates and times are read, with the days of their months, exactly when tomllib reads them")
def _(w):
    dates = [f"{y}-{m}-{d}" for y in ("0000", "0001", "1900", "2000", "2023", "2200", "2024", "9999", "999", "10000")
             for m in ("00", "01", "02", "04", "12", "13", "2") for d in ("00", "01", "28", "29", "30", "31", "32", "1")]
    times = [f"{h}:{m}:{s}" for h in ("00", "23", "24", "7") for m in ("00", "59", "60", "3") for s in ("00", "59", "60", "61", "5")]
    times += ["07:32", "07:32:", "07:32:00.", "07:32:00.1", "07:32:00.123456", "07:32:00.1234567890123", "07:32:00,5", "07:32:00.5.5", "073200"]
    offsets = ["", "Z", "z", "+00:00", "-00:00", "+23:59", "-23:59", "+24:00", "+10:60", "+1:00", "+0100", "+01", "Z+01:00", "ZZ", " Z", "+", "-"]
    docs = dates + times + [t + o for t in times[-9:] for o in offsets]
    docs += [f"2024-02-29{sep}{t}{o}" for sep in ("T", "t", " ", "  ", "", "_", "\t") for t in times for o in ("", "Z", "+01:30")]
    docs += [f"2024-02-29{sep}07:32:00{f}{o}" for sep in "Tt " for f in ("", ".5", ".123456789") for o in offsets]
    compare_many((f"x = {d}{end}".encode() for d in docs for end in ("", " # c", "x", " 1")), "date-times")
    compare_many((f"x = [{d} , {d}]".encode() for d in docs), "date-times in arrays")


@test("quotes, escapes and line ends make the strings that tomllib makes")
def _(w):
    pieces = ['"', "'", "\\", "\n", "\r\n", " ", "a", "u0041"]
    opens = ['"', "'", '"""', "'''"]
    short = ["".join(s) for n in range(5) for s in itertools.product(pieces, repeat=n)]
    compare_many((f"x = {o}{s}{o}".encode() for o in opens for s in short), "strings")
    escapes = [f"\\{chr(c)}" for c in range(32, 127)] + [f"\\{u}{h}" for u in "uU" for h in (
        "", "41", "0041", "00000041", "0000", "00000000", "d7ff", "d800", "dfff", "e000", "0000d800", "0010ffff", "00110000", "ffffffff", "00e9", "00E9",
        "004g", "+041", " 041", "0x41", "0001f600")]
    compare_many((f"{k}x = {o}a{e}b{o}".encode() for e in escapes for o in opens for k in ("", "['k']\n", f'"{e}" = 1\n')), "escapes")


@test("any one character, anywhere, is accepted exactly when tomllib accepts it")
def _(w):
    forms = [b"%s", b"x = 1 %s", b"# %s", b"x = \"%s\"", b"x = '%s'", b"x = \"\"\"%s\"\"\"", b"x = '''%s'''", b"%sx = 1", b"x%s = 1", b"x.%sy = 1",
             b"x =%s1", b"x = [1%s2]", b"x = {%s}", b"x = {y = 1%s}", b"[x%s]", b"[[x%s]]", b"[%sx]", b"[x]%s", b"\"%s\" = 1", b"x = 1\n%s\ny = 2"]
    chars = [bytes([c]) for c in range(256)] + [c.encode("utf-8", "surrogatepass") for c in (
        "\x80", "\x9f", "\xa0", "é", "\u2028", "\ud7ff", "\ud800", "\udfff", "\ue000", "\ufeff", "\ufffe", "\U0001f600", "\U0010ffff")]
    chars += [b"\r\n", b"\n\r", b"\r\r\n", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xc3"]
    compare_many((f % c for f in forms for c in chars), "characters")


# ---- random documents ----

BARE = ["a", "b", "c", "key", "a-b", "_", "1", "1979", "true", "inf", "0x1", "-"]
QUOTED = ['"a"', "'a'", '"b c"', "''", '""', '"é"', "'日本'", '"a.b"', '"\\u0061"', '"\\n"', "'\\n'", '"\U0001f600"', '"#"', '"]"']
SCALARS = ["1", "-7", "+99", "0", "1_000", "0xDEAD_beef", "0o755", "0b1101", "9223372036854775807", "-9223372036854775808", "3.14", "-0.01", "5e+22",
           "1e06", "6.626e-34", "224_617.445_991", "-0.0", "true", "false", '"text"', "'lit'", '""', "''", '"a\\tb\\u00e9\\\\"', "'C:\\x'", '"# no comment"',
           '"""\nline\nline"""', "'''\nline\n'''", '"""a\\\n   b"""', '"""\r\nq""q"""', "'''it''s'''", '"""""q"""', "''''q'''''", "1979-05-27",
           "07:32:00", "07:32:00.999999", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "1979-05-27t00:32:00.5-07:00", "2000-02-29"]
RARE = ["inf", "-nan", "9223372036854775808", '"\\u0000"', "1e999", "0000-01-01", "0000-02-29T00:00:00Z"]
EDITS = list("\n\r\t \"'#=.,[]{}\\_+-:eTZ01ax") + ['"""', "'''", "\r\n", "[[", "]]", "\x00", "\x7f", "\u0080", "é", "\ufeff", "\\u", "\\U0001F600", "true", "= 1", "{}"]


class Maker:
    """Documents by the grammar; names come from few, so that tables meet."""
    def __init__(self, rng):
        self.rng = rng

    def some(self, low, high, make, sep=""):
        return sep.join(make() for _ in range(self.rng.randint(low, high)))

    def blank(self):
        return self.rng.choice(["", "", "", " ", "  ", "\t"])

    def newline(self):
        return self.rng.choice(["\n", "\n", "\n", "\r\n"])

    def end(self):
        comment = self.rng.choice(["", "", "", "# note", "#", "# é \t'\""])
        return self.blank() + comment + self.newline()

    def name(self):
        return self.rng.choice(BARE if self.rng.random() < 0.8 else QUOTED)

    def key(self):
        parts = self.rng.choice([1, 1, 1, 2, 2, 3])
        return (self.blank() + "." + self.blank()).join(self.name() for _ in range(parts))

    def fresh(self, n):
        return self.key() if self.rng.random() < 0.5 else f"{self.key()}.k{n}"

    def gap(self):
        return self.rng.choice(["", " ", self.newline(), self.end(), self.newline() + "  "])

    def value(self, depth=0):
        kind = self.rng.random()
        if depth < 4 and kind < 0.15:
            items = [self.gap() + self.value(depth + 1) + self.gap() for _ in range(self.rng.randint(0, 4))]
            return "[" + ",".join(items) + ("," + self.gap() if items and self.rng.random() < 0.3 else "") + "]"
        if depth < 4 and kind < 0.3:
            pairs = [f"{self.blank()}{self.fresh(n)}{self.blank()}={self.blank()}{self.value(depth + 1)}{self.blank()}" for n in range(self.rng.randint(0, 3))]
            return "{" + ",".join(pairs) + "}"
        return self.rng.choice(RARE if kind > 0.99 else SCALARS)

    def statement(self, n):
        kind = self.rng.random()
        key = self.blank() + (self.fresh(n) if self.rng.random() < 0.8 else self.key()) + self.blank()
        if kind < 0.12:
            return f"{self.blank()}[{key}]{self.end()}"
        if kind < 0.22:
            return f"{self.blank()}[[{key}]]{self.end()}"
        if kind < 0.3:
            return self.end()
        return f"{self.blank()}{self.fresh(n)}{self.blank()}={self.blank()}{self.value()}{self.end()}"

    def document(self):
        text = "".join(self.statement(n) for n in range(self.rng.randint(0, self.rng.choice([3, 8, 20]))))
        return (text.rstrip("\r\n") if self.rng.random() < 0.2 else text).encode()

    def edited(self, doc):
        for _ in range(self.rng.randint(1, 3)):
            at = self.rng.randint(0, len(doc))
            to = min(len(doc), at + self.rng.choice([0, 0, 1, 1, 2, 5]))
            new = self.rng.choice(EDITS).encode() if self.rng.random() < 0.7 else b""
            if self.rng.random() < 0.05:
                new = bytes([self.rng.randrange(256)])
            doc = doc[:at] + new + doc[to:]
            lines = doc.splitlines(keepends=True)
            if lines and self.rng.random() < 0.15:  # a line again, somewhere else
                lines.insert(self.rng.randint(0, len(lines)), self.rng.choice(lines))
                doc = b"".join(lines)
        return doc


def random_documents():
    make = Maker(random.Random(ARGS.seed))
    docs = []
    while len(docs) < ARGS.docs:
        doc = make.document()
        docs += [doc, make.edited(doc)]
    return docs[:ARGS.docs]


@test("random documents, whole and edited, are read as tomllib reads them")
def _(w):
    compare_many(random_documents(), f"random documents of seed {ARGS.seed}")


# ---- smol-toml ----

NODE = r"""
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
const { parse, TomlDate } = await import(pathToFileURL(process.argv[2]));
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const plain = (v) => typeof v === "bigint" ? { i: String(v) } : typeof v === "number" ? { f: Object.is(v, -0) ? "-0" : String(v) }
  : v instanceof TomlDate ? { d: v.toISOString() } : Array.isArray(v) ? { a: v.map(plain) }
  : typeof v === "object" ? { t: Object.entries(v).map(([k, m]) => [k, plain(m)]) } : { v };
for await (const line of createInterface({ input: process.stdin })) {
  let answer = null;
  try { answer = plain(parse(decoder.decode(Buffer.from(line, "base64")), { integersAsBigInt: true })); } catch {}
  console.log(JSON.stringify(answer));
}
"""


def smol_toml():
    """Its entry file; Skip says why there is none."""
    path = os.path.join(ARGS.modules, "smol-toml/dist/index.js")
    if os.path.exists(path):
        return path
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("node and npm are needed to run smol-toml")
    if os.path.basename(ARGS.modules) != "node_modules":
        raise Skip(f"{ARGS.modules} holds no smol-toml, and npm installs into folders named node_modules only")
    try:
        r = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", os.path.dirname(ARGS.modules), "smol-toml"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    except subprocess.TimeoutExpired:
        raise Skip("npm does not answer")
    if r.returncode or not os.path.exists(path):
        raise Skip("npm does not install smol-toml: " + " ".join(r.stdout.decode(errors="replace").split())[-200:])
    return path


def smol_reads(docs):
    with tempfile.TemporaryDirectory(prefix="clawden-toml-") as d:
        script = os.path.join(d, "read.mjs")
        with open(script, "w") as f:
            f.write(NODE)
        data = b"".join(base64.b64encode(doc) + b"\n" for doc in docs)
        r = subprocess.run(["node", script, smol_toml()], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    need(r.returncode == 0, f"node: {r.stderr[-500:]!r}")
    answers = [json.loads(line) for line in r.stdout.decode().split("\n")[:-1]]
    need(len(answers) == len(docs), f"{len(answers)} answers to {len(docs)} documents")
    return answers


def smol_alike(theirs, value):
    """smol-toml's value against a tree of tomllib's; of date-times only that they are some."""
    kind, v = next(iter(theirs.items()))
    if kind == "t":
        return isinstance(value, dict) and dict(v).keys() == value.keys() and all(smol_alike(m, value[k]) for k, m in v)
    if kind == "a":
        return isinstance(value, list) and len(v) == len(value) and all(smol_alike(m, x) for m, x in zip(v, value))
    if kind == "d":
        return isinstance(value, DATES)
    if kind == "i":
        return type(value) is int and int(v) == value
    if kind == "f":
        return type(value) is float and repr(float(v)) == repr(value)
    return type(v) is type(value) and v == value


@test("where smol-toml and tomllib agree so do we, and they do so mostly")
def _(w):
    docs = random_documents() + ["\n".join(s).encode() for s in itertools.product(STATEMENTS, repeat=2)]
    theirs = smol_reads(docs)
    differ = {"reads more": 0, "reads less": 0, "reads other values": 0}
    for doc, smol, got in zip(docs, theirs, ours(docs)):
        tree = tomllib_reads(doc)
        if tree is None and smol is None:
            need(got[0] == "error", f"{doc!r}: only we read it")
        elif tree is None:
            differ["reads more"] += 1
        elif smol is None:
            differ["reads less"] += 1
        elif not smol_alike(smol, tree):
            differ["reads other values"] += 1
        elif not beyond_us(tree):
            need(got[0] == "ok" and alike(got[1], tree, False), f"{doc!r}: we have {got!r}, both others {tree!r}")
    print(f"# smol-toml: {len(docs)} documents; against tomllib it " + ", ".join(f"{k} {n} times" for k, n in differ.items()), flush=True)
    need(sum(differ.values()) < len(docs) / 5, "they disagree so often that this compares little")


# ---- on purpose ----

def nested(n):
    return b"x = " + b"[" * n + b"]" * n


DIFFERENCES = {
    b"x = inf": "finite", b"x = [-nan]": "finite", b"x = 1e999": "1.8e308", b'x = "\\u0000"': "NUL", b'"a\\U00000000" = 1': "NUL",
    b"x = 9223372036854775808": "64 bits", b"x = 0xffffffffffffffff": "64 bits", b"x = -9223372036854775809": "64 bits",
    nested(64): "64 tables and arrays", b".".join([b"a"] * 65) + b" = 1": "64 parts", b"[" + b".".join([b"a"] * 64) + b"]": "64 tables and arrays",
    b"\n".join(b"k%d = 1" % i for i in range(MAX_KEYS + 1)): "65536 keys", b"#" * (MAX_BYTES + 1): "2097152 bytes",
}


@test("what we refuse and tomllib reads is refused by name")
def _(w):
    for (doc, words), got in zip(DIFFERENCES.items(), ours(list(DIFFERENCES))):
        need(tomllib_reads(doc) is not None, f"{doc[:80]!r}: tomllib refuses it, too")
        need(got[0] == "error" and words in got[3], f"{doc[:80]!r}: {str(got)[:200]}, not {words!r}")
        check_place(doc, got)
    for doc in LAXER:
        need(tomllib_reads(doc) is not None, f"{doc!r}: tomllib refuses it, too")
    inside = [nested(63), b".".join([b"a"] * 64) + b" = 1", b"[" + b".".join([b"a"] * 63) + b"]", b"#" * MAX_BYTES,
              b"\n".join(b"k%d = 1" % i for i in range(MAX_KEYS)), b"x = 0000-02-29"]
    for doc, got in zip(inside, ours(inside)):
        need(got[0] == "ok", f"{doc[:80]!r}: {str(got)[:200]}")


SETTINGS = b"".join(b'[section.number%d]\nname = "%s"\nvalues = [1, 2.5, true, 1979-05-27]\ninline = {a.b = 1, c = """x"""}\n' % (i, b"some text " * 13)
                    for i in range(9000))
REPEATED = [b"[", b"a.", b"[[a]]\n", b"[[a.b]]\n[[a]]\n", b"[[a]]\n[a.b]\n", b"x=[{},{},", b"x={a={", b"\n", b"#", b" ", b"a", b"a=", b"'", b'"', b"{", b"\\u0041", b"\xc3\xa9"]
OPENED = [(b"x=[", b"1,", b"]"), (b"x=[", b"{},", b"]"), (b"x=[", b"[],", b"]"), (b"x=[", b"#\n", b"]"), (b"x=[", b"{a=1},", b"]"), (b"x=0.", b"1", b""),
          (b"x=1", b"0", b""), (b"x=1", b"0", b".0e-2000000"), (b"x=1", b"_1", b""), (b'x="""', b"\\\n", b'"""'), (b'x="', b"\\u00e9", b'"'), (b"x='''", b"''a", b"'''"), (b'"', b"\\u00e9", b'"=1')]


@test("two megabytes of anything are read or refused within a second")
def _(w):
    need(MAX_BYTES * 0.9 < len(SETTINGS) <= MAX_BYTES, f"{len(SETTINGS)} bytes of settings")
    docs = [SETTINGS] + [unit * (MAX_BYTES // len(unit)) for unit in REPEATED]
    docs += [head + unit * ((MAX_BYTES - len(head) - len(tail)) // len(unit)) + tail for head, unit, tail in OPENED]
    for doc in docs:
        start = time.monotonic()
        r = subprocess.run([ARGS.readers], input=b"toml %d\n%s" % (len(doc), doc), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        took = time.monotonic() - start
        need(r.returncode == 0, f"{doc[:20]!r}: {r.stderr[-500:]!r}")
        if ARGS.verbose:
            print(f"# {took:.3f} s: {doc[:20]!r}: {r.stdout[:80]!r}", flush=True)
        need(took < ARGS.seconds, f"{doc[:20]!r}: {took:.2f} s")
        need(r.stdout.startswith(b"ok ") or doc is not SETTINGS, f"{r.stdout[:200]!r}")


def main():
    global ARGS
    ap = argparse.ArgumentParser()
    ap.add_argument("--readers", required=True)
    ap.add_argument("--modules", default=os.path.expanduser("~/.cache/clawden-clients/node_modules"))
    ap.add_argument("--docs", type=int, default=3000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--seconds", type=float, default=1.0, help="what two megabytes may take; more under a sanitizer")
    ap.add_argument("--verbose", action="store_true")
    ap.add_argument("--only", default="")
    ap.add_argument("--label", default=default_label())
    ARGS = ap.parse_args()
    ARGS.readers, ARGS.modules = os.path.abspath(ARGS.readers), os.path.abspath(ARGS.modules)
    sys.setrecursionlimit(20000)
    return run("TOML", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
