#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be known of arm64 on another machine: everything compiles, and init's own start, system calls and clone work. TAP.

  arm64.py [--build DIR] [--qemu PROGRAM] [--only WORD]

qemu's emulation of a process has no memory that two processes share, so init is tried with one command, not as a live box's.
"""
import argparse
import glob
import os
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile

from tap import Skip, default_label, need, run, same, test

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "../..")
CC = "aarch64-linux-gnu-gcc"
WIRE_EXEC, WIRE_EXITED, WIRE_ONE_SHOT = 1, 6, 2
ARGS = None


class World:
    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="clawden-arm64-")

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def compile(self, *words):
        if not shutil.which(CC):
            raise Skip(f"{CC} is not installed: 'scripts/deps arm64' brings it")
        # Other people's headers are the same on every architecture, but for the folder of a few.
        return subprocess.run([CC, "-std=gnu17", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                               "-Wno-format-truncation", f"-I{TOP}/src", f"-I{ARGS.build}", f"-I{ARGS.build}/src",
                               "-idirafter", "/usr/include", "-idirafter", "/usr/include/" + sysconfig.get_config_var("MULTIARCH"), *words],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def init(self):
        program = os.path.join(self.top, "init")
        r = self.compile("-Os", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-fno-asynchronous-unwind-tables", "-nostdlib", "-static", "-no-pie",
                         "-Wl,-z,max-page-size=4096", "-o", program, f"{TOP}/src/init/init.c", f"{TOP}/src/base/landlock.c")
        same(r.returncode, 0, r.stdout)
        return program


@test("every source compiles for arm64, without a warning")
def _(w):
    sources = glob.glob(f"{TOP}/src/**/*.c", recursive=True)
    need(len(sources) > 300, f"{len(sources)} sources")
    bad = []
    for source in sources:
        flags = ["-ffreestanding"] if source.endswith("src/init/init.c") else ["-include", f"{TOP}/src/base/banned.h"]
        r = w.compile("-O1", "-fsyntax-only", *flags, source)
        if r.returncode:
            bad.append(r.stdout)
    need(not bad, "\n".join(bad)[:4000])


@test("init for arm64 starts a command and tells its end")
def _(w):
    if not os.path.exists(ARGS.qemu):
        raise Skip(f"{ARGS.qemu} is missing: 'scripts/deps arm64' brings it")
    program = w.init()
    for script, status in (("echo $0 $1 $WORD; pwd", 0), ("exit 3", 3 << 8), ("kill -9 $$", 9)):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(30)
        out = tempfile.TemporaryFile(dir=w.top)
        fd = theirs.fileno()
        p = subprocess.Popen(["sh", "-c", f"exec 3<&{fd}; exec {ARGS.qemu} {program}"], pass_fds=[fd], stdin=subprocess.DEVNULL)
        theirs.close()
        argv, env = [b"sh", b"-c", script.encode(), b"zero", b"one"], [b"PATH=/usr/bin:/bin", b"WORD=two"]
        words = b"".join(x + b"\0" for x in argv + env + [b"/", b""])
        with open(os.memfd_create("words"), "wb", buffering=0) as f:
            f.write(words)
            message = struct.pack("=IIIIQHHIII4x", WIRE_EXEC, WIRE_ONE_SHOT, len(argv), len(env), len(words), 0, 0, 0, 0, 0)
            socket.send_fds(ours, [message], [f.fileno(), 0, out.fileno(), 2])
        kind, _, end = struct.unpack("=Iii28x", ours.recv(100))
        same((kind, end), (WIRE_EXITED, status), script)
        same(p.wait(30), 0)
        ours.close()
        out.seek(0)
        same(out.read(), b"zero one two\n/\n" if script.startswith("echo") else b"")


def main():
    global ARGS
    p = argparse.ArgumentParser(description=__doc__)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--qemu", default=os.path.join(cache, "clawden-arm64/qemu-aarch64-static"))
    p.add_argument("--only", default="")
    p.add_argument("--label", default=default_label())
    ARGS = p.parse_args()
    return run("ARM64", World, ARGS.only, ARGS.label)


if __name__ == "__main__":
    sys.exit(main())
