#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our reader of JSON5 against npm's `json5`, and our canonical text against JavaScript's. Prints TAP.

  json5.py --readers PROGRAM [--modules DIR] [--only WORD] [--docs N] [--seed N]

PROGRAM is tests/flow/readers.c, built. DIR is a node_modules with json5; without it, it is installed into
~/.cache/clawden-clients. Documents are made from a seed: by the grammar, and then half of them damaged. The two readers
must agree on every one of them, in acceptance and in value, but for what is in KNOWN.
"""
import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

from tap import Skip, default_label, need, run, same, test

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.expanduser("~/.cache/clawden-clients")
ARGS = None

# What ours refuses and npm's reads, by the flag that the harness below finds in npm's value, with the words of ours.
KNOWN = {"duplicate": "is already given", "nul": r"U\+0000", "lone surrogate": "half a surrogate pair",
         "not finite": "finite number|too large|expected a digit, found '(Infinity|NaN)'", "deep": "in each other"}

# One process for all documents: records of "<format> <length>\n<bytes>" in, one JSON object in a line out.
HARNESS = r"""
const JSON5 = require(process.argv[2] + "/json5");
console.warn = () => {}; // U+2028 in a string
const define = Object.defineProperty, has = Object.prototype.hasOwnProperty;
let flags;
Object.defineProperty = (o, k, d) => { if (has.call(o, k)) flags.add("duplicate"); return define(o, k, d); };
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
function text(v, depth) { // JSON that keeps -0
  if (typeof v === "number") {
    if (!Number.isFinite(v)) flags.add("not finite");
    return Object.is(v, -0) ? "-0.0" : String(v);
  }
  if (typeof v === "string") {
    if (v.includes("\0")) flags.add("nul");
    if (LONE.test(v)) flags.add("lone surrogate");
    return JSON.stringify(v);
  }
  if (v === null || typeof v !== "object") return String(v);
  if (depth === 64) flags.add("deep");
  if (Array.isArray(v)) return "[" + v.map((x) => text(x, depth + 1)).join(",") + "]";
  return "{" + Object.entries(v).map(([k, x]) => text(k, depth) + ":" + text(x, depth + 1)).join(",") + "}";
}
function sorted(v) { // keys that compare equal hold controls only; any fixed order will do for them
  if (Array.isArray(v)) return v.map(sorted);
  if (v === null || typeof v !== "object") return v;
  const out = {};
  for (const [k, x] of Object.entries(v).sort(([a], [b]) => a.localeCompare(b) || (a < b ? -1 : 1)))
    define(out, k, { value: sorted(x), writable: true, enumerable: true, configurable: true });
  return out;
}
const input = require("fs").readFileSync(0), out = [];
for (let at = 0; at < input.length;) {
  const nl = input.indexOf(10, at), [format, n] = input.toString("latin1", at, nl).split(" ");
  const doc = input.toString("utf8", nl + 1, at = nl + 1 + Number(n));
  flags = new Set();
  try {
    const v = JSON5.parse(doc);
    out.push(JSON.stringify({ text: format === "canonical" ? JSON.stringify(sorted(v)) : text(v, 0), flags: [...flags] }));
  } catch (e) {
    out.push(JSON.stringify({ error: e.message, flags: [...flags] }));
  }
}
process.stdout.write(out.join("\n") + "\n");
"""


# ---- running ----

def modules():
    """The folder with json5 in it; Skip says why it is not to be had."""
    if not shutil.which("node"):
        raise Skip("node is not installed")
    where = ARGS.modules
    if os.path.isdir(os.path.join(where, "json5")):
        return where
    if os.path.basename(where) != "node_modules" or not shutil.which("npm"):
        raise Skip(f"there is no json5 in {where}")
    os.makedirs(os.path.dirname(where), exist_ok=True)
    try:
        r = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", os.path.dirname(where), "json5"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        raise Skip("npm does not answer") from None
    if r.returncode:
        raise Skip("npm cannot install json5: " + next((t for t in r.stderr.split("\n") if "npm err" in t.lower()), f"it exits with {r.returncode}"))
    return where


class World:
    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="clawden-json5-")

    def close(self):
        shutil.rmtree(self.top)

    def ours(self, docs, kind="json5"):
        r = subprocess.run([ARGS.readers], input=records(docs, kind), capture_output=True, timeout=300)
        same(r.returncode, 0, r.stderr[-2000:])
        return lines(r.stdout, len(docs))

    def theirs(self, docs, kind="json5"):
        where = modules()
        path = os.path.join(self.top, "harness.cjs")
        with open(path, "w") as f:
            f.write(HARNESS)
        r = subprocess.run(["node", path, os.path.abspath(where)], input=records(docs, kind), capture_output=True, timeout=300,
                           env=dict(os.environ, LC_ALL="en_US.UTF-8"))
        same(r.returncode, 0, r.stderr[-2000:])
        return [json.loads(t) for t in lines(r.stdout, len(docs))]


def records(docs, kind):
    return b"".join(b"%s %d\n%s" % (kind.encode(), len(d), d) for d in docs)


def lines(out, n):
    rows = out.decode().split("\n")
    same((len(rows), rows[-1]), (n + 1, ""), "lines")
    return rows[:-1]


# ---- documents ----

SPACES = [" ", "\n", "\t", "\r\n", "\r", "\v", "\f", "\xa0", "\ufeff", "\u1680", "\u2003", "\u202f", "\u205f", "\u3000", "\u2028", "\u2029",
          "// c\n", "//\r", "// '\u2028", "//\u2029", "/**/", "/***/", "/* \n * / // */", "/*\u2028'\"*/"]
PIECES = ["a", "b ", "é", "ß", "日本", "😀", "\t", "\x01", "\x7f", "\u2028", "\u2029", "\ufeff", "/", "//", "/*", "{", "]", ",", r"\n", r"\b\f\r\t\v", r"\\", r"\'", r"\"",
          r"\/", r"\a", r"\q", r"\é", r"\😀", r"\x41", r"\xe9", r"\xFf", r"\u00e9", r"\u4F60", r"\ud83d\ude00", r"\uD83D\uDE00", "\\\n", "\\\r\n", "\\\r", "\\\u2028",
          "\\\u2029", r"\u2028", r"\u0001", r"\x7F", r"\uffff", r"\ufeff", r"\$"]
RARE = [r"\0", r"\x00", r"\u0000", r"\ud800", r"\udc00x", r"\ude00\ud83d", "\x00"]
WORDS = ["a", "b", "c", "mode", "$", "_", "$x1", "_y", "ünï", "日本", "ʰ", "ªº", r"\u0061b", r"a\u0062", r"\u00fc", "a\u200cb", "a\u200d", r"a\u200c", "a\u0301", "Ⅷ", "a_\u203f",
         "null", "true", "Infinity", "NaN", "__proto__", "toString", "constructor", "x10", "if", "𝒳", "𠀀"]
NUMBERS = ["0", "-0", "+0", "1", "-1", "+1", "42", "0.5", ".5", "5.", "-.5", "+5.", "5.e3", ".5E-2", "0e5", "-0e5", "-0.0", "1e3", "1E+3", "1e-3", "1.5e300", "1e21", "1e-7", "0x0", "-0x0",
           "0xAf", "0XaF", "+0x10", "-0x10", "0xffffffffffffffffff", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
           "123456789012345678901234567890", "0.1", "3.141592653589793", "5e-324", "2e-324", "1e-400", "-1e-400", "1.7976931348623157e308", "4.35", "0.000001", "100000000000000000000.0",
           "9223372036854775807.5", "-5e18", "9.2e18", "1" * 400 + "e-399"]
NOT_FINITE = ["Infinity", "-Infinity", "+Infinity", "NaN", "-NaN", "1e999", "-1e999", "1" * 400, "0x" + "f" * 300]
TOKENS = ["{", "}", "[", "]", ",", ":", "'", '"', "\\", "/", "*", "-", "+", ".", "0", "1", "9", "e", "E", "x", "X", "I", "N", "n", "t", "u", "_", "$", "a", "\n", "\r", "\t", " ",
          "\x00", "\x01", "\x1f", "\x7f", "\x85", "é", "日", "ʰ", "«", "\u200b", "\u200c", "\u180e", "\u2028", "\ufeff", "\u0301", "😀", "\ue000", "€", "٣", "0x", "Infinity", "NaN", "null", "true",
          "//", "/*", "*/", r"\u", r"\x", r"\0", r"\1", r"\u0061", r"\u0030", r"\u00a0", r"\u{61}", "1e999", "a:1,", "[,]", "undefined", "00", "08", "1_0", "0b1", "1n", "`"]


class Maker:
    def __init__(self, seed, rare=0.004):
        self.rnd = random.Random(seed)
        self.rare = rare

    def some(self, p):
        return self.rnd.random() < p

    def space(self):
        return "".join(self.rnd.choice(SPACES) for _ in range(self.rnd.choice([0, 0, 0, 1, 1, 2])))

    def string(self):
        q, parts = self.rnd.choice("'\""), []
        for _ in range(self.rnd.choice([0, 1, 2, 4, 9])):
            if self.some(self.rare):
                parts.append(self.rnd.choice(RARE))
            parts.append("\"" if q == "'" and self.some(0.1) else "'" if q == '"' and self.some(0.1) else self.rnd.choice(PIECES))
        return q + "".join(parts) + q

    def number(self):
        rnd = self.rnd
        kind = rnd.randrange(6)
        if self.some(self.rare):
            return rnd.choice(NOT_FINITE)
        if kind < 3:
            return rnd.choice(NUMBERS)
        if kind == 3:
            return "%s%s%s" % (rnd.choice(["", "-", "+"]), rnd.randrange(10**rnd.randint(1, 25)), rnd.choice(["", ".", ".0", f".{rnd.randrange(10**9)}", f"e{rnd.randint(-330, 250)}"]))
        if kind == 4:
            return rnd.choice(["", "-", "+"]) + hex(rnd.getrandbits(rnd.choice([4, 16, 53, 54, 63, 64, 65, 130])))
        return text_of(any_double(rnd), rnd)

    def value(self, depth=0):
        kind = self.rnd.randrange(10 if depth < 5 else 6)
        if kind < 2:
            return self.string()
        if kind < 4:
            return self.number()
        if kind < 6:
            return self.rnd.choice(["null", "true", "false"])
        n = self.rnd.choice([0, 1, 2, 3, 6])
        parts = [self.member(depth, kind < 8) for _ in range(n)]
        if kind < 8:
            seen = {}
            for key, p in parts:
                seen.setdefault(key, p)
            parts = list(seen.values()) if not self.some(0.05) else [p for _, p in parts]
        body = ",".join(parts) + ("," + self.space() if parts and self.some(0.3) else "")
        return "{%s%s}" % (self.space(), body) if kind < 8 else "[%s%s]" % (self.space(), body)

    def member(self, depth, in_object):
        v = self.space() + self.value(depth + 1) + self.space()
        if not in_object:
            return v
        key = self.rnd.choice(WORDS) if self.some(0.6) else self.string()
        return key, self.space() + key + self.space() + ":" + v

    def document(self):
        if self.some(0.01):
            n = self.rnd.choice([63, 64, 65, 66])
            return "[" * n + "{a:1}" * (n % 2) + "]" * n
        return self.space() + self.value() + self.space()

    def damaged(self, text):
        rnd = self.rnd
        for _ in range(rnd.choice([1, 1, 2, 3])):
            i = rnd.randrange(len(text) + 1)
            j = min(len(text), i + rnd.choice([1, 1, 1, 2, 5]))
            text = rnd.choice([text[:i] + text[j:], text[:i] + rnd.choice(TOKENS) + text[i:], text[:i] + rnd.choice(TOKENS) + text[j:], text[:j] + text[i:], text[:i] + rnd.choice(TOKENS) + text[i:],
                               text[:i] if self.some(0.3) else text[:i] + text[j:]])
        return text

    def bytes(self):
        text = self.document()
        if self.some(0.5):
            text = self.damaged(text)
        raw = text.encode()
        if self.some(0.02):
            i = self.rnd.randrange(len(raw) + 1)
            raw = raw[:i] + self.rnd.choice([b"\xff", b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]) + raw[i:]
        return raw


def any_double(rnd):
    while True:
        kind = rnd.randrange(5)
        if kind == 0:
            d = struct.unpack("d", struct.pack("Q", rnd.getrandbits(64)))[0]
        elif kind == 1:
            d = rnd.randrange(10**rnd.randint(1, 18)) / 10**rnd.randint(0, 24)
        elif kind == 2:
            d = 2.0**rnd.randint(-1074, 1023)
        elif kind == 3:
            d = float(f"{rnd.randrange(1, 1000)}e{rnd.randint(-12, 25)}")
        else:
            d = float(rnd.getrandbits(rnd.randint(1, 70)))
        if d == d and abs(d) != float("inf"):
            return d


def text_of(d, rnd):
    return rnd.choice([repr(d), "%.17g" % d, "%.20e" % d])


# ---- comparing ----

def is_utf8(raw):
    try:
        raw.decode()
        return True
    except UnicodeDecodeError:
        return False


def plain(text):
    """One spelling of a value in which 1 is 1.0 and -0 is not 0."""
    return json.dumps(json.loads(text, parse_int=float), sort_keys=True)


def check_kinds(text):
    """Ours: what is whole and fits is printed as an integer."""
    def real(t):
        d = float(t)
        need(not d.is_integer() or abs(d) >= 2.0**63 or t == "-0.0", f"{t} is not an integer")
    json.loads(text, parse_float=real)


def check_place(raw, line, column):
    if not is_utf8(raw):
        raw = raw[:next(i for i in range(len(raw), -1, -1) if is_utf8(raw[:i]))]
    rows = re.split("\r\n|[\r\n\u2028\u2029]", raw.decode())
    need(1 <= line <= len(rows) and 1 <= column <= len(rows[line - 1]) + 1, f"no such place: {line}:{column} in {raw!r}")


def is_lax_key(doc, message):
    """Ours takes every letter-like character in a bare key; npm's those that Unicode 10 calls letters, and marks and digits later."""
    found = re.search(r"invalid character '(.+)' at \d+:\d+$", message)
    if found and len(found[1]) == 1 and ord(found[1]) >= 0x80:
        return unicodedata.category(found[1])[0] in "LMNC"
    return "invalid identifier character" in message and re.search(r"\\u(?!00[0-7])", doc) is not None


def judge(raw, ours, theirs):
    """How the two relate; AssertionError if they may not relate so."""
    what = f"ours {ours[:300]!r}, npm {str(theirs)[:300]}, of {raw!r}"
    mine = ours.split(" ", 3)
    if mine[0] == "error":
        check_place(raw, int(mine[1]), int(mine[2]))
        need(mine[3] and all(unicodedata.category(c) not in ("Cc", "Cf", "Co", "Zl", "Zp") for c in mine[3]), what)
    if not is_utf8(raw):
        need(mine[0] == "error" and "is not UTF-8" in ours, what)
        return "not UTF-8"
    if "error" in theirs:
        if mine[0] == "ok":
            need(is_lax_key(raw.decode(), theirs["error"]), what)
            return "bare key"
        return "refused alike"
    # The value of a key that comes again is gone from npm's, with whatever was in it.
    for flag in KNOWN if "duplicate" in theirs["flags"] else theirs["flags"]:
        need(mine[0] == "error", what)
        if re.search(KNOWN[flag], mine[3]):
            return flag
    if mine[0] == "error" and re.search(r"\\u[dD][89abAB]..\\[\r\n\u2028\u2029]", raw.decode()):
        return "a pair over two lines"
    need(mine[0] == "ok" and not theirs["flags"], what)
    check_kinds(ours[3:])
    same(plain(ours[3:]), plain(theirs["text"]), what)
    return "read alike"


def compare(w, docs):
    seen = {}
    for raw, ours, theirs in zip(docs, w.ours(docs), w.theirs(docs)):
        kind = judge(raw, ours, theirs)
        seen[kind] = seen.get(kind, 0) + 1
    print(f"# {len(docs)} documents: {seen}", flush=True)
    return seen


# ---- claims ----

@test("what npm's json5 reads is read to the same value, what it refuses is refused, but for what is known")
def _(w):
    make = Maker(ARGS.seed)
    seen = compare(w, [make.bytes() for _ in range(ARGS.docs)])
    if ARGS.docs >= 1000:
        for kind in ("read alike", "refused alike", "not UTF-8", *KNOWN):
            need(seen.get(kind), f"no document was '{kind}': {seen}")


@test("every piece of the grammar by itself, and every two tokens in a row")
def _(w):
    docs = [*NUMBERS, *NOT_FINITE, *TOKENS, *SPACES, ""]
    docs += [f"{q}{p}{q}" for p in PIECES + RARE for q in "'\""] + [f"{{{k}:1}}" for k in WORDS + NUMBERS + TOKENS] + [f"{s}1{s}" for s in SPACES]
    docs += [f"[{a}{z}]" for a in TOKENS for z in TOKENS] + [f"{{a{a}{z}1}}" for a in TOKENS for z in TOKENS] + [f"'{a}{z}'" for a in TOKENS for z in TOKENS]
    compare(w, [d.encode() for d in docs])


@test("every bare key that npm's json5 takes is taken, over all of Unicode")
def _(w):
    points = [c for c in [*range(0x80, 0x10000), *range(0x10000, 0x110000, 5)] if not 0xd800 <= c < 0xe000]
    docs = [form % chr(c) for c in points for form in ("{%s:0}", "{a%s:0}")] + [form % c for c in range(0x10000) for form in (r"{\u%04x:0}", r"{a\u%04x:0}")]
    docs = [d.encode() for d in docs]
    more = 0
    for raw, ours, theirs in zip(docs, w.ours(docs), w.theirs(docs)):
        if "text" in theirs:
            same(ours, "ok " + ours[3:], f"{raw!r}, npm {theirs}")
            same(plain(ours[3:]), plain(theirs["text"]), raw)
        elif ours.startswith("ok "):
            more += 1
    print(f"# {len(docs)} keys, {more} taken by ours only", flush=True)


@test("the canonical text is JSON.stringify's, with the keys as localeCompare has them")
def _(w):
    rnd = random.Random(ARGS.seed)
    alphabets = ["aAbB", "abAB_-. 1", "".join(map(chr, range(32, 127))), "".join(map(chr, range(1, 128))), "aA\x01\x7f\t-", "0123456789", "01aA"]
    plain_strings = ["", "é", "日本😀", "\x7f\x80\u2028\ufeff", "\b\f\n\r\t\v\"\\/", "".join(map(chr, range(1, 32)))]

    def key():
        alphabet = rnd.choice(alphabets)
        return "".join(rnd.choice(alphabet) for _ in range(rnd.randint(0, 5)))

    def keys(n):
        return list(dict.fromkeys(key() for _ in range(n)))

    def value(depth):
        kind = rnd.randrange(6 if depth < 3 else 3)
        if kind == 0:
            return json.dumps(rnd.choice([key(), rnd.choice(plain_strings)]), ensure_ascii=rnd.random() < 0.5)
        if kind == 1:
            return text_of(any_double(rnd), rnd) if rnd.random() < 0.8 else rnd.choice(NUMBERS)
        if kind == 2:
            return rnd.choice(["null", "true", "false"])
        if kind == 3:
            return "[" + ",".join(value(depth + 1) for _ in range(rnd.randint(0, 4))) + "]"
        return "{" + ",".join(json.dumps(k) + ":" + value(depth + 1) for k in keys(rnd.randint(0, 12))) + "}"

    docs = [("{%s}" % ",".join(f"{json.dumps(k)}:{value(0)}" for k in keys(12))).encode() for _ in range(ARGS.docs)]
    docs += [("[%s]" % ",".join(["%.17g" % 2.0**e, repr(-10.0**(e // 4)), "%.17g" % (2.0**e * (1 - 2**-53))])).encode() for e in range(-1074, 1024)]
    docs += [b"[%s]" % b",".join(repr(any_double(rnd)).encode() for _ in range(100)) for _ in range(ARGS.docs // 10)]
    for raw, ours, theirs in zip(docs, w.ours(docs, "canonical"), w.theirs(docs, "canonical")):
        want = "ok " + theirs.get("text", theirs.get("error", ""))
        at = next((i for i, (x, y) in enumerate(zip(ours, want)) if x != y), 0)
        near = slice(max(0, at - 60), at + 60)
        need(ours == want, f"got {ours[near]!r}, want {want[near]!r}, of {raw!r}")
    print(f"# {len(docs)} values", flush=True)


MOST = 2 << 20


def large():
    pad = "x" * 25
    yield "settings", "ok", "{" + ",".join(f"key{i}:{{mode: '{pad}', // why\n}}" for i in range(30000)) + "}"
    yield "numbers", "ok", "[" + "0," * (MOST // 2 - 1) + "]"
    yield "objects", "ok", "[" + "{}," * (MOST // 3 - 2) + "]"
    yield "one string", "ok", "'" + "\\u00e9" * (MOST // 6 - 2) + "'"
    yield "one number", "ok", "1." + "7" * (MOST - 2)
    yield "one comment", "ok", "1/*" + "*" * (MOST - 10) + "*/"
    yield "one bare key", "ok", "{" + "é" * (MOST // 2 - 8) + ":1}"
    yield "the last key twice", "is already given in line 1", "{" + ",".join(f"k{i:025}:1" for i in range(60000)) + f",k{59999:025}:2}}"
    yield "too many keys", "more than 65536 keys", "{" + ",".join(f"k{i}:1" for i in range(65537)) + "}"
    yield "arrays", "in each other", "[" * MOST
    yield "members", "in each other", '{"a":' * (MOST // 5)
    yield "too much", "more than 2097152 bytes", " " * (MOST + 1)
    yield "an open comment", "not closed", "/*" + "*" * (MOST - 2)
    yield "a digit too many", "too large", "1" * MOST


@test("two megabytes of anything take less than a second")
def _(w):
    took = {}
    for name, want, doc in large():
        raw = doc.encode()
        need(len(raw) <= MOST + 1, name)
        best = 9.0
        for _ in range(2):
            start = time.monotonic()
            (line,) = w.ours([raw])
            best = min(best, time.monotonic() - start)
        need(want in line[:600], f"{name}: {line[:600]}")
        took[name] = round(best * 1000)
    print(f"# milliseconds, with starting the program: {took}", flush=True)
    with open(ARGS.readers, "rb") as f:
        slow = 5 if b"__asan_init" in f.read() else 1  # a sanitizer's allocator is not what is measured
    need(max(took.values()) < 1000 * slow, took)


def main():
    global ARGS
    a = argparse.ArgumentParser()
    a.add_argument("--readers", default=os.path.join(HERE, "../../build/tests/readers"))
    a.add_argument("--modules", default=os.path.join(CACHE, "node_modules"))
    a.add_argument("--only", default="")
    a.add_argument("--docs", type=int, default=3000)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--label", default=default_label())
    ARGS = a.parse_args()
    ARGS.readers = os.path.abspath(ARGS.readers)
    return run("JSON5", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
