#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The strict word reader against real shells: what it accepts, every shell splits into the same words. Prints TAP.

  words.py --words PROGRAM [--lines N] [--seed N] [--only WORD]

PROGRAM is tests/flow/words.c. It splits lines, and under the names of the lines' first words it is also what the shells
run: it prints the words it was given. Whatever would change a word in a shell is there to be met: files that patterns
match, variables, a home folder, a history. Shells that are not installed are skipped.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

from tap import Skip, default_label, need, run, same, test

ARGS = None

# ---- lines ----

REFUSED = [
    b"gh; curl x", b"gh$(id)", b"gh | sh", b"gh\nid", b"GH=1 gh", b"gh `id`", b"gh && id", b"gh & id", b"gh || id", b"gh >x", b"gh <x",
    b"gh 2>&1", b"gh $HOME", b"gh ${HOME}", b'gh "$HOME"', b'gh "`id`"', b'gh "!!"', b"gh !!", b"gh \\", b"gh a\\ b", b'gh "a\\nb"', b"gh *",
    b"gh ?", b"gh [a]", b"gh {a,b}", b"gh {1..3}", b"gh ~", b"gh ~root", b"gh a=~", b"gh a=b:~", b"gh ''~", b"gh # x", b"gh ''#", b"gh =ls",
    b"# gh", b"! gh", b"^a^b", b"(gh)", b"gh ()", b"gh() { id", b"{ gh", b"gh 'a", b'gh "a', b"gh \"a'", b"", b"  \t ", b"''", b'"" gh', b"' '=",
    b"gh\r", b"gh\x00x", b"gh \x01", b"gh \x7f", b"gh '\n'", b"gh \xff", b"gh \xc0\x80", b"gh \xed\xa0\x80", b"gh\xc2\xa0x", b"gh\xe3\x80\x80x",
    b"A=1", b"A=1 B=2 gh", b"A+=1 gh", b"'A'=1 gh", b"A'='1 gh", b"a[0]=1 gh", b"if gh", b"'if' gh", b"time gh", b"[[ a", b"cd x", b"'cd' x",
    b'c"d" x', b". x", b": x", b"eval gh", b"exec gh", b"command gh", b"builtin gh", b"source x", b"export A", b"%1", b"'%1'", b"- gh", b"-x", b"+x gh", b"'-x'", b"a: gh", b"[ a", b"'[' a",
    b"gh $'a'", b'gh $"a"', b"gh @(a)", b"gh +(a)", b"gh <(id)", b"gh >(id)", b"gh ^x", b"gh a^", b"gh <<x", b"gh ]", b"gh }", b"((1))",
    b"gh " + b"x " * 4096, b"gh " + b"x" * (128 << 10),
]
ACCEPTED = {
    b"gh": [b"gh"],
    b" \tgh\t pr  list ": [b"gh", b"pr", b"list"],
    b"env gh": [b"env", b"gh"],
    b"/tmp/gh": [b"/tmp/gh"],
    b"gh pr create --title 'a; b | c $(d) `e` !f *' --body \"it's (fine) & *\"":
        [b"gh", b"pr", b"create", b"--title", b"a; b | c $(d) `e` !f *", b"--body", b"it's (fine) & *"],
    b"gh '' \"\" ''\"\"": [b"gh", b"", b"", b""],
    b"'gh' a'b'\"c\"d": [b"gh", b"abcd"],
    b'gh "a\\"b\\\\c"': [b"gh", b'a"b\\c'],
    b"git show HEAD~1 a#b GH=1 --a=b:c,d@e%f+g":
        [b"git", b"show", b"HEAD~1", b"a#b", b"GH=1", b"--a=b:c,d@e%f+g"],
    b"gh %1 a~~": [b"gh", b"%1", b"a~~"],
    "gh é āĂ 日本 'a\u00a0b' \U0001f600".encode(): ["gh", "é", "āĂ", "日本", "a\u00a0b", "\U0001f600"],
    b"gh if then do 'cd' 2 @ % +": [b"gh", b"if", b"then", b"do", b"cd", b"2", b"@", b"%", b"+"],
    b"gh 'a\tb' \"a\tb\"": [b"gh", b"a\tb", b"a\tb"],
    b"gh \"it's\" '!x' \"it's\"": [b"gh", b"it's", b"!x", b"it's"],
}
ACCEPTED = {line: [w.encode() if isinstance(w, str) else w for w in words] for line, words in ACCEPTED.items()}

PROGRAMS = ["gh", "git", "curl-x", "g_h.2", "'gh'", '"gh"', "g'h'", 'g""h', "é", "āx", "a,b", "a:b", "a@b", "a+b", "+gh", "@gh", ",gh", "a~b",
            "a%b", "a#b", "x-", "7z", "'a b'", "'*'", "'$x'", "\"a'b\"", "'~'", "'#x'", "_", "-gh", "..."]
PLAIN = ["a", "b", "ab", "x", "Z", "0", "2", "12", "_", "-", "--", "+", ".", "..", ",", "/", ":", "@", "%", "=", "A=1", "a=b", "~", "#", "é", "ā", "Ă",
         "ă", "ą", "\u0105\u0106\u0107\u0108", "日本", "ß", "Ż", "\U0001f600", "if", "do", "in", "http://a/b", "-x", "--a=b", "a:b", "user@host"]
SPECIAL = [";", "&", "|", "<", ">", "(", ")", "`", "$", "$x", "\n", "\r", "\x01", "\x7f", "\x85", "\\", "*", "?", "[", "]", "{", "}", "{a,b}", "!", "!!", "^",
           "~", "~root", "#", "=", "\u00a0", "\u3000", "\u200b", "\ufeff", "$(id)", "\x0b", "\x0c", "%1", "\u2028", "\x00"]
BLANKS = [" ", " ", " ", "  ", "\t", " \t "]


def quoted(rnd, mark):
    """Text in these quotes; mostly without what ends the acceptance, so that enough lines are left to run."""
    bad = ["\n", "\r", "\x00", "\x01", "\x7f", "\x85", "\x0b", "\x0c"] + (["$", "$x", "$(id)", "`", "\\", "!", "!!"] if mark == '"' else [])
    out = ""
    for _ in range(rnd.randrange(5)):
        piece = rnd.choice(PLAIN + SPECIAL + BLANKS + (['"', "!!", "$x"] if mark == "'" else ["'", '\\"', "\\\\"]))
        if piece not in bad or rnd.random() < 0.03:
            out += piece
    return mark + out + (mark if rnd.random() < 0.99 else "")


def word(rnd):
    out = ""
    for _ in range(rnd.choice([1, 1, 1, 2, 2, 3, 4])):
        kind = rnd.random()
        if kind < 0.55:
            out += rnd.choice(PLAIN)
        elif kind < 0.75:
            out += quoted(rnd, "'")
        elif kind < 0.95:
            out += quoted(rnd, '"')
        else:
            out += rnd.choice(SPECIAL)
    return out


def line(rnd):
    start = rnd.random()
    out = rnd.choice(["", "", "", " ", "\t"])
    out += rnd.choice(PROGRAMS) if start < 0.85 else word(rnd) if start < 0.97 else rnd.choice(["A=1 ", "if ", "cd ", "'if' "]) + "gh"
    for _ in range(rnd.randrange(6)):
        out += rnd.choice(BLANKS) + word(rnd)
    data = (out + rnd.choice(["", "", "", " "])).encode()
    if rnd.random() < 0.02:  # not UTF-8
        i = rnd.randrange(len(data) + 1)
        data = data[:i] + bytes([rnd.randrange(128, 256)]) + data[i:]
    return data


def lines():
    rnd = random.Random(ARGS.seed)
    return REFUSED + list(ACCEPTED) + [line(rnd) for _ in range(ARGS.lines)]


# ---- both readers ----

def parse(data, i):
    """The words printed at data[i:], and where the next output starts."""
    end = data.index(b"\n", i)
    words = []
    for _ in range(int(data[i + 3:end])):
        stop = data.index(b"\0", end + 1)
        words.append(data[end + 1:stop])
        end = stop
    need(data[end + 1:end + 2] == b"\n", f"torn output at {i}")
    return words, end + 2


def ours(todo):
    """For each line its words, or the reason as text."""
    r = subprocess.run([ARGS.words], input=b"".join(b"%d\n%s" % (len(t), t) for t in todo), stdout=subprocess.PIPE, timeout=60)
    same(r.returncode, 0, "the reader")
    out, i = [], 0
    for _ in todo:
        if r.stdout.startswith(b"no ", i):
            end = r.stdout.index(b"\n", i)
            out.append(r.stdout[i + 3:end].decode())
            i = end + 1
        else:
            words, i = parse(r.stdout, i)
            out.append(words)
    same(i, len(r.stdout), "what the reader printed")
    return out


class World:
    """A folder full of names that patterns match, and a PATH with nothing but ourselves."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="clawden-words-")
        self.bin, self.cwd = os.path.join(self.top, "bin"), os.path.join(self.top, "cwd")
        for d in (self.bin, self.cwd):
            os.mkdir(d)
        for name in ("a", "b", "ab", "x", "0", "12", "aa", "é", "ā", "-x", "A=1"):
            open(os.path.join(self.cwd, name), "w").close()
        self.env = {"PATH": self.bin, "HOME": "/home/expanded", "WORDS_PRINT": "1", "x": "expanded", "a": "expanded *", "HISTFILE": "/dev/null"}

    def close(self):
        shutil.rmtree(self.top)

    def can_run(self, words, builtins):
        """A name that can be a file, and that the shell does not have itself."""
        name = words[0]
        return b"/" not in name and name not in (b".", b"..") and len(name) < 200 and name not in builtins

    def link(self, name):
        path = os.path.join(os.fsencode(self.bin), name)
        if not os.path.lexists(path):
            os.symlink(os.path.abspath(ARGS.words), path)

    def compare(self, shell, before, todo, locale):
        """Runs (line, words) pairs as one script of this shell; marks tell which line printed what."""
        script = os.path.join(self.top, "script")
        with open(script, "wb") as f:
            f.write(before)
            for n, (text, words) in enumerate(todo):
                self.link(words[0])
                f.write(b"echo mark %d\n%s\n" % (n, text))
            f.write(b"echo mark %d\n" % len(todo))
        r = subprocess.run([*shell, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                           cwd=self.cwd, env=dict(self.env, LC_ALL=locale))
        i = 0
        for n, (text, words) in enumerate(todo):
            mark = b"mark %d\n" % n
            need(r.stdout.startswith(mark, i), f"{text!r} (or the line before it): the shell went astray: {r.stdout[i:i + 200]!r} {r.stderr[-300:]!r}")
            i += len(mark)
            need(r.stdout.startswith(b"ok ", i), f"{text!r}: the shell did not run {words[0]!r}: {r.stdout[i:i + 200]!r} {r.stderr[-300:]!r}")
            got, i = parse(r.stdout, i)
            same(got, words, f"{text!r} in {shell[0]}")
        same(r.stdout[i:], b"mark %d\n" % len(todo), "the end")


# ---- claims ----

@test("what is not surely one simple command is refused, with a reason")
def _(w):
    for text, got in zip(REFUSED, ours(REFUSED)):
        need(isinstance(got, str) and len(got) > 5, f"{text[:80]!r} is accepted: {got!r}"[:300])


@test("usual commands are accepted, word by word")
def _(w):
    for text, got in zip(ACCEPTED, ours(list(ACCEPTED))):
        same(got, ACCEPTED[text], repr(text))


# Names above that a shell has itself (busybox: env); they never reach our program.
BUILTINS = {b"env", b"echo", b"test"}
SHELLS = {
    "dash": (["dash"], b""),
    "bash": (["bash", "--norc"], b""),
    "bash --posix": (["bash", "--norc", "--posix"], b""),
    "bash with a history": (["bash", "--norc"], b"set -o history -H\n"),
    "bash with extglob": (["bash", "--norc", "-O", "extglob"], b""),
    "busybox ash": (["busybox", "ash"], b""),
    "mksh": (["mksh"], b""),
    "ksh93": (["ksh93"], b""),
    "yash": (["yash"], b""),
    "zsh": (["zsh", "-f"], b""),
}


def split_as(name):
    def fn(w):
        argv, before = SHELLS[name]
        path = shutil.which(argv[0])
        if not path:
            raise Skip(f"{argv[0]} is not installed")
        shell = [path, *argv[1:]]
        todo = [(t, g) for t, g in zip(lines(), ours(lines())) if isinstance(g, list) and w.can_run(g, BUILTINS)]
        need(len(todo) >= min(ARGS.lines, 1000) // 5, f"only {len(todo)} lines of {ARGS.lines} were accepted")
        for locale in ("C.UTF-8", "C")[:1 if name == "yash" else 2]:  # yash ends its input at what the locale cannot read
            w.compare(shell, before, todo, locale)
        for text, words in todo[:40]:  # and as the one argument of -c
            r = subprocess.run([*shell, "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
                               cwd=w.cwd, env=dict(w.env, LC_ALL="C.UTF-8"))
            need(r.stdout.startswith(b"ok "), f"{text!r}: {r.stderr!r}")
            same(parse(r.stdout, 0)[0], words, f"-c {text!r}")
        print(f"# {name}: {len(todo)} lines of {len(lines())}", flush=True)
    return fn


for _name in SHELLS:
    test(f"{_name} splits every accepted line into the same words")(split_as(_name))


def main():
    global ARGS
    p = argparse.ArgumentParser()
    p.add_argument("--words", required=True)
    p.add_argument("--lines", type=int, default=2000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--label", default=default_label())
    ARGS = p.parse_args()
    ARGS.words = os.path.abspath(ARGS.words)
    return run("WORDS", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
