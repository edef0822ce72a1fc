# SPDX-License-Identifier: Apache-2.0
"""What the flow tests share: claims, checks, and the loop that prints TAP.

    from tap import test, need, same, Skip, run
    @test("a claim")
    def _(w): ...
    sys.exit(run("LIVE", World, a.only, a.label))
"""
import os
import signal
import subprocess
import sys
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


class Spawner:
    """A spawner of this world's own, so that live boxes come from its berths; `without` says that none shall be used."""
    without = {"CLAWDEN_NO_SPAWNER": "1"}

    def __init__(self, program, env):
        self.program, self.env = program, env
        self.p = subprocess.Popen([program], env=dict(env, CLAWDEN_SPAWN_IDLE="600"), stdin=subprocess.DEVNULL)
        self.wait_ready()

    def wait_ready(self):
        """Until a berth waits: they are made one after the other, and taken by the first who asks."""
        run = self.env["CLAWDEN_RUNTIME_DIR"]
        need(wait_for(lambda: os.path.exists(os.path.join(run, "berth.sock")) and self.berths()), "no berth is ready")

    def berths(self):
        """Its children that are still called clawden-berth: after that they are an init."""
        found = []
        for pid in subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.p.pid)], stdout=subprocess.PIPE, text=True).stdout.split():
            try:
                with open(f"/proc/{pid}/comm") as f:
                    if f.read() == "clawden-berth\n":
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def stop(self):
        subprocess.run([self.program, "--stop"], env=self.env, timeout=20)
        self.p.wait(20)


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
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the world is closed then, too
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
