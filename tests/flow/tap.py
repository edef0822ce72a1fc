# SPDX-License-Identifier: Apache-2.0
"""What the flow tests share: claims, checks, and the loop that prints TAP.

    from tap import test, need, same, Skip, run
    @test("a claim")
    def _(w): ...
    sys.exit(run("LIVE", World, a.only, a.label))
"""
import os
import subprocess
import time

TESTS = []


def test(claim):
    def add(fn):
        TESTS.append((claim, fn))
        return fn
    return add


class Skip(Exception):
    """Not to be tested here; its text is the reason."""


def need(cond, msg):
    if not cond:
        raise AssertionError(msg)


def same(got, want, what=""):
    need(got == want, f"{what}: got {got!r}, want {want!r}")


def wait_for(fn, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fn():
            return True
        time.sleep(0.02)
    return False


def processes(pattern):
    """Host pids whose command line holds this text."""
    r = subprocess.run(["pgrep", "-f", "--", pattern], capture_output=True, text=True)
    return [int(p) for p in r.stdout.split() if int(p) != os.getpid()]


def gone(pattern, seconds=5):
    return wait_for(lambda: not processes(pattern), seconds)


def run(area, make_world, only="", label=""):
    todo = [(c, f) for c, f in TESTS if only in c]
    print(f"1..{len(todo)}", flush=True)
    bad = 0
    for n, (claim, fn) in enumerate(todo, 1):
        w = make_world()
        os.umask(0o022)
        try:
            fn(w)
            print(f"ok {n} - {area} {claim} ({label})", flush=True)
        except Skip as e:
            print(f"ok {n} - {area} {claim} ({label}) # SKIP {e}", flush=True)
        except Exception as e:  # a failing test must not hide the others
            bad += 1
            text = f"{type(e).__name__}: {e}"[:1500].replace("\n", "\n#   ")
            print(f"not ok {n} - {area} {claim} ({label})\n#   {text}", flush=True)
        finally:
            w.close()
    return 1 if bad else 0


def default_label():
    return "root" if os.getuid() == 0 else "user"
