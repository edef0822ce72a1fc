#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images: import, pull, list, inspect, rm, and every way in which an image may lie. Prints TAP.

  image.py [--bin DIR] [--only WORD]

Runs as whoever starts it, with a data folder of its own for every test. Registries are Debian's docker-registry and
small ones of Python, all on this machine's loopback. TA-nn are the attacks that the project's list of probes names.
"""
import argparse
import base64
import bz2
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import lzma
import os
import platform
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

from tap import Skip, default_label, need, run, same, test

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.getuid() == 0
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."


class World:
    """A caller with an image store of its own, and a canary outside of it."""

    def __init__(self, bindir):
        self.bin = bindir
        self.top = tempfile.mkdtemp(prefix="clawden-image-")
        self.data = os.path.join(self.top, "data")
        self.images = os.path.join(self.data, "images")
        self.canary = os.path.join(self.top, "canary")
        os.mkdir(self.canary)
        with open(os.path.join(self.canary, "file"), "w") as f:
            f.write("untouched")
        self.env = {"HOME": os.path.join(self.top, "home"), "PATH": "/usr/bin:/bin", "LANG": "C",
                    "CLAWDEN_DATA_DIR": self.data}
        os.mkdir(self.env["HOME"])
        self.n = 0

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.top, name)

    def call(self, *args, prog="clawden", **kw):
        kw.setdefault("timeout", 120)
        env = dict(self.env, **kw.pop("env", {}))
        return subprocess.run([os.path.join(self.bin, prog), *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.top, **kw)

    def start(self, *args, **kw):
        return subprocess.Popen([os.path.join(self.bin, "clawden"), *args], env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.top, **kw)

    def image(self, *args, **kw):
        return self.call("image", *args, **kw)

    def take(self, *args, verb="import", **kw):
        """An import that must work; the id."""
        r = self.image(verb, "--progress=none", *args, **kw)
        same(r.returncode, 0, f"{verb} {args}: {r.stderr.strip()}")
        return r.stdout.strip()

    def inspect(self, ref):
        r = self.image("inspect", ref, "--json")
        same(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def root(self, ref):
        return self.inspect(ref)["root"]

    def names(self):
        r = self.image("list", "--json")
        same(r.returncode, 0, r.stderr)
        return sorted(n for i in json.loads(r.stdout) for n in i["names"] if "@" not in n)

    def file(self, data, name=None):
        self.n += 1
        path = self.path(name or f"source-{self.n}")
        with open(path, "wb") as f:
            f.write(data)
        return path

    def left(self):
        """What a failed import left: nothing but locks and empty folders may be."""
        out = []
        for top, _, files in os.walk(self.images):
            out += [os.path.relpath(os.path.join(top, f), self.images) for f in files]
        for d in os.listdir(self.images) if os.path.isdir(self.images) else []:
            if d.startswith("tmp-") or len(d) == 64:
                out.append(d)
        roots = os.path.join(self.images, "roots")
        out += os.listdir(roots) if os.path.isdir(roots) else []
        return sorted(f for f in out if f != "lock")

    def safe(self):
        with open(os.path.join(self.canary, "file")) as f:
            same((os.listdir(self.canary), f.read()), (["file"], "untouched"), "the canary")


def refused(w, source, *words, args=(), **kw):
    """One line on stderr that names these words; the canary is well and nothing of the image is visible."""
    r = w.image("import", "--progress=none", source, *args, **kw)
    same(r.returncode, 1, f"exit status ({r.stderr.strip()})")
    lines = r.stderr.strip().split("\n")
    same(len(lines), 1, f"lines on stderr {lines}")
    for word in words:
        need(word in lines[0], f"{word!r} not in {lines[0]!r}")
    w.safe()
    same(w.left(), [], f"left behind after {lines[0]!r}")
    same(json.loads(w.image("list", "--json").stdout), [], "images")
    return lines[0]


# ---- making images ----

def entry(name, data=b"", kind=tarfile.REGTYPE, target="", mode=None, **kw):
    t = tarfile.TarInfo(name)
    t.type, t.linkname = kind, target
    t.mode = mode if mode is not None else 0o755 if kind == tarfile.DIRTYPE else 0o644
    t.mtime = 1700000000
    data = data.encode() if isinstance(data, str) else data
    t.size = len(data)
    for k, v in kw.items():
        setattr(t, k, v)
    return t, data


def folder(name, **kw):
    return entry(name, kind=tarfile.DIRTYPE, **kw)


def link(name, target):
    return entry(name, kind=tarfile.SYMTYPE, target=target)


def hard(name, target):
    return entry(name, kind=tarfile.LNKTYPE, target=target)


def tar(*entries, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def squeeze(data, how="gz"):
    if how == "zst":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return {"gz": lambda d: gzip.compress(d, 6, mtime=0), "xz": lzma.compress, "bz2": bz2.compress, "": bytes}[how](data)


class Layout:
    """An OCI image; what is said about the parts can be changed before it is written."""

    def __init__(self, *layers, how="gz", config=None, diff_ids=None, **top):
        self.blobs = {}
        self.config = {"architecture": ARCH, "os": "linux", "config": config or {},
                       "rootfs": {"type": "layers", "diff_ids": diff_ids or [digest(d) for d in layers]}}
        self.config.update(top)
        kind = {"gz": "+gzip", "zst": "+zstd"}.get(how, "")
        self.manifest = {"schemaVersion": 2, "config": self.add(json.dumps(self.config).encode(), "config.v1+json"),
                         "layers": [self.add(squeeze(d, how), "layer.v1.tar" + kind) for d in layers]}
        self.seal()

    def add(self, data, kind):
        self.blobs[digest(data)] = data
        return {"mediaType": OCI + kind, "digest": digest(data), "size": len(data)}

    def seal(self, **said):
        """Writes manifest and index anew after a change."""
        self.text = json.dumps(self.manifest).encode()
        self.index = {"schemaVersion": 2, "manifests": [dict(self.add(self.text, "manifest.v1+json"), **said)]}
        return self

    def files(self):
        out = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(self.index, separators=(",", ":")).encode()}
        for d, data in self.blobs.items():
            out["blobs/sha256/" + d[7:]] = data
        return out

    def write(self, w):
        w.n += 1
        top = w.path(f"layout-{w.n}")
        for name, data in self.files().items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "wb") as f:
                f.write(data)
        return top

    def tar(self):
        return tar(*(entry(n, d) for n, d in sorted(self.files().items())))


def saved(*layers, config=None, tags=("saved:1",), links=False):
    """What "docker save" writes."""
    conf = json.dumps({"architecture": ARCH, "os": "linux", "config": config or {},
                       "rootfs": {"type": "layers", "diff_ids": [digest(d) for d in layers]}}).encode()
    name = digest(conf)[7:] + ".json"
    out, paths = [entry(name, conf)], []
    for i, d in enumerate(layers):
        paths.append(f"{digest(d)[7:]}/layer.tar")
        if links:  # as old versions did for equal layers
            other = f"{'%064x' % i}/layer.tar"
            out += [entry(other, d), link(paths[-1], "../" + other)]
        else:
            out += [entry(paths[-1], d)]
    out.append(entry("manifest.json", json.dumps([{"Config": name, "RepoTags": list(tags), "Layers": paths}])))
    return tar(*out)


BASE = tar(folder("bin"), folder("etc"), entry("etc/passwd", "root:x:0:0::/root:/bin/sh\nnode:x:1000:1001::/:/bin/sh\n"),
           entry("etc/group", "root:x:0:\nnode:x:1001:\nwheel:x:10:\n"), folder("usr"), folder("usr/lib"),
           entry("usr/lib/a.so", "a"), entry("bin/sh", "#!", mode=0o755), hard("bin/ash", "bin/sh"), link("lib", "usr/lib"))


def read(*parts, how="utf-8"):
    with open(os.path.join(*parts), encoding=how, newline="") as f:
        return f.read()


def tree(top):
    """Everything about a tree but access times and link counts: another image may share its files."""
    out = {}
    for d, dirs, files in os.walk(top):
        for n in dirs + files:
            p = os.path.join(d, n)
            st = os.lstat(p)
            body = os.readlink(p) if stat.S_ISLNK(st.st_mode) else read(p, how="latin-1") if stat.S_ISREG(st.st_mode) else ""
            out[os.path.relpath(p, top)] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, body)
    return out


# ---- the four kinds of sources ----

@test("a folder becomes an image: files, links, hard links, modes, times, without set-id bits and pipes")
def _(w):
    top = w.path("rootfs")
    os.makedirs(top + "/etc/sub")
    os.makedirs(top + "/usr/bin")
    w.file(b"hello", "rootfs/etc/motd")
    os.utime(top + "/etc/motd", (1600000000, 1600000000))
    os.link(top + "/etc/motd", top + "/etc/sub/motd2")
    os.symlink("/etc/motd", top + "/absolute")
    os.symlink("../../../../etc/passwd", top + "/upwards")
    w.file(b"x", "rootfs/usr/bin/su")
    os.chmod(top + "/usr/bin/su", 0o6755)
    os.mkfifo(top + "/etc/pipe")
    w.file(b"w", "rootfs/etc/.wh.kept")
    os.chmod(top + "/etc/sub", 0o500)
    r = w.image("import", top, "--name", "tools")
    same(r.returncode, 0, r.stderr)
    need("1 devices, pipes" in r.stderr and "1 set-id bits" in r.stderr, r.stderr)
    root = w.root("tools")
    same(read(root, "etc/motd"), "hello")
    same(int(os.stat(root + "/etc/motd").st_mtime), 1600000000, "time")
    same(os.stat(root + "/etc/motd").st_ino, os.stat(root + "/etc/sub/motd2").st_ino, "hard link")
    same((os.readlink(root + "/absolute"), os.readlink(root + "/upwards")), ("/etc/motd", "../../../../etc/passwd"))
    same(oct(os.stat(root + "/usr/bin/su").st_mode & 0o7777), "0o755")
    same(oct(os.stat(root + "/etc/sub").st_mode & 0o7777), "0o700", "a folder that we could not remove")
    need(not os.path.exists(root + "/etc/pipe") and os.path.exists(root + "/etc/.wh.kept"), os.listdir(root + "/etc"))
    os.chmod(top + "/etc/sub", 0o700)
    a = w.take(w.path("rootfs"), "--name", "again")
    b = w.take(w.path("rootfs"), "--name", "again:2")
    same(a, b, "equal folders are one image")


@test("a folder that holds the store itself is not copied into itself")
def _(w):
    w.file(b"x", "some")
    w.take(w.top, "--name", "all")
    need(not os.listdir(os.path.join(w.root("all"), "data/images")), "the store was copied")


@test("a tar of a root file system is taken plain and as gz, xz, zst and bz2, and is one image")
def _(w):
    ids = {w.take(w.file(squeeze(BASE, how)), "--name", "t:" + (how or "plain")) for how in ("", "gz", "xz", "zst", "bz2")}
    same(len(ids), 1, "ids")
    root = w.root("t:xz")
    same(read(root, "lib/a.so"), "a")
    same(os.stat(root + "/bin/sh").st_ino, os.stat(root + "/bin/ash").st_ino)
    same(w.names(), ["t:bz2", "t:gz", "t:plain", "t:xz", "t:zst"])
    for fmt in (tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        w.take(w.file(tar(entry("./a" * 45, "long"), fmt=fmt)))
    with open(w.path("sparse"), "wb") as f:
        f.truncate(5 << 20)
        f.seek(3 << 20)
        f.write(b"middle")
    subprocess.run(["tar", "-C", w.top, "-cSf", w.path("sparse.tar"), "sparse"], check=True)
    t = w.root(w.take(w.path("sparse.tar")))
    same(read(t, "sparse"), read(w.path("sparse")), "a sparse file")
    t = w.take(w.file(tar(entry("caf\u00e9/\u65e5", "names in UTF-8"))))
    same(read(w.root(t), "caf\u00e9/\u65e5"), "names in UTF-8")


LAYERED = (BASE, tar(entry("etc/.wh.group"), entry("usr/lib/b.so", "b"), folder("opt"), entry("opt/x", "1"), entry("opt/y", "1")),
           tar(folder("opt"), entry("opt/z", "new"), entry("opt/.wh..wh..opq")))
CONFIG = {"User": "node", "Env": ["PATH=/bin", "EMPTY=", "LD_PRELOAD=/x.so"], "WorkingDir": "/work//dir/.", "Cmd": ["-c", "true"],
          "Entrypoint": ["/bin/sh"], "Labels": {"b": "2", "a": "1\u001b[31m"}, "ExposedPorts": {"80/tcp": {}, "53/udp": {}}}


def check_layered(w, ref):
    i = w.inspect(ref)
    same((i["user"], i["uid"], i["gid"], i["workdir"]), ("node", 1000, 1001, "/work/dir"))
    same((i["env"], i["cmd"], i["entrypoint"]), (CONFIG["Env"], ["-c", "true"], ["/bin/sh"]))
    same((i["labels"], i["ports"]), ({"a": "1\u001b[31m", "b": "2"}, ["53/udp", "80/tcp"]))
    same(len(i["layers"]), 3)
    same(sorted(os.listdir(i["root"] + "/opt")), ["z"], "opaque, whatever the order")
    need(not os.path.exists(i["root"] + "/etc/group") and os.path.exists(i["root"] + "/etc/passwd"), "whiteout")
    same(read(i["root"], "lib/b.so"), "b")
    r = w.image("inspect", ref)
    need("\x1b" not in r.stdout and "node (1000:1001)" in r.stdout, r.stdout)
    return i


@test("an OCI layout as a folder and as a tar: layers, whiteouts, config")
def _(w):
    for how in ("gz", "zst", ""):
        l = Layout(*LAYERED, how=how, config=CONFIG, created="2024-05-01T10:20:30Z")
        w.take(l.write(w), "--name", "l")
        i = check_layered(w, "l")
        same(i["created_usec"], 1714558830000000)
        same(i["id"], digest(json.dumps(l.config).encode())[7:], "the id is the config's digest")
        same(i["manifest"], digest(l.text))
        same(w.inspect("l@" + digest(l.text))["id"], i["id"], "by digest")
        w.take(w.file(l.tar()), "--name", "l:tar")
        same(w.inspect("l:tar")["root"], i["root"])
        w.take(w.file(squeeze(l.tar(), "xz")), "--name", "l:xz")


@test("an image saved by docker save, old and new, and by skopeo")
def _(w):
    for links in (False, True):
        w.take(w.file(saved(*LAYERED, config=CONFIG, links=links)))
        check_layered(w, "saved:1")
    l = Layout(*LAYERED, config=CONFIG).write(w)
    env = dict(w.env, TMPDIR=w.top, XDG_RUNTIME_DIR=w.top)
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "oci:" + l, "docker-archive:" + w.path("s.tar") + ":from/skopeo:2"],
                   check=True, env=env, stdout=subprocess.DEVNULL)
    w.take(w.path("s.tar"))
    check_layered(w, "docker.io/from/skopeo:2")


@test("a name that a source brings does not take another image's name")
def _(w):
    a = w.take(w.file(tar(entry("mine", "1"))), "--name", "saved:1")
    r = w.image("import", w.file(saved(BASE)))
    same(r.returncode, 0, r.stderr)
    need("a name that another image has here" in r.stderr, r.stderr)
    same(w.inspect("saved:1")["id"], a)
    same(w.inspect(r.stdout.strip()[:12])["names"], [])


@test("a layout of several images is imported by tag, one for several machines by this machine's")
def _(w):
    one, two = Layout(tar(entry("one", "1"))), Layout(tar(entry("two", "2")))
    ann = "org.opencontainers.image.ref.name"
    one.blobs.update(two.blobs)
    one.index["manifests"] = [dict(one.index["manifests"][0], annotations={ann: "a"}), dict(two.index["manifests"][0], annotations={ann: "b"})]
    path = one.write(w)
    refused(w, path, "holds 2 images", "--name")
    w.take(path, "--name", "x:b")
    need(os.path.exists(w.root("x:b") + "/two"), "the wrong one")
    both = Layout(tar(entry("here", "1")))
    other = Layout(tar(entry("there", "1")), architecture="s390x")
    both.blobs.update(other.blobs)
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [
        dict(other.index["manifests"][0], platform={"os": "linux", "architecture": "s390x"}),
        dict(both.index["manifests"][0], platform={"os": "linux", "architecture": ARCH})]}
    both.index["manifests"] = [both.add(json.dumps(index).encode(), "index.v1+json")]
    w.take(both.write(w), "--name", "multi")
    need(os.path.exists(w.root("multi") + "/here"), "the wrong machine's")
    r = w.image("import", "--progress=none", other.write(w))
    need(r.returncode == 1 and "linux/s390x" in r.stderr, r.stderr)


# ---- the store ----

@test("names: default tag, retagging, ids and their beginnings, what is not there")
def _(w):
    a = w.take(w.file(tar(entry("a", "1"))), "--name", "tool")
    b = w.take(w.file(tar(entry("b", "1"))), "--name", "reg.example.org:5000/team/tool:2")
    for ref, i in (("tool", a), ("tool:latest", a), (a, a), (a[:12], a), ("sha256:" + a, a), (b[:20], b),
                   ("reg.example.org:5000/team/tool:2", b)):
        same(w.inspect(ref)["id"], i, ref)
    w.take(w.file(tar(entry("b", "1"))), "--name", "tool")
    same(w.inspect("tool")["id"], b, "retagged")
    same(w.inspect(a)["names"], [], "the old one lost its name")
    for ref in ("nothing", "tool:3", "0" * 64, "0" * 12, "tool@sha256:" + "0" * 64):
        r = w.image("inspect", ref)
        need(r.returncode == 3 and len(r.stderr.strip().split("\n")) == 1 and "there is no image" in r.stderr, r)
    for ref in ("../../etc", "Tool", "a:b:c", "tool@sha256:" + "A" * 64, "tool@md5:" + "0" * 32, "a" * 300, "-x", ""):
        r = w.image("inspect", ref)
        need(r.returncode in (1, 2) and len(r.stderr.strip().split("\n")) == 1, (ref, r))
    for name in ("UP", "a/../b", "a b", "x@sha256:" + "0" * 64, ".hidden", "a//b"):
        same(w.image("import", w.file(BASE), "--name", name).returncode, 2, name)


@test("rm takes names first, then the image with roots and blobs that nobody needs")
def _(w):
    l = Layout(*LAYERED, config=CONFIG).write(w)
    w.take(l, "--name", "one")
    w.take(l, "--name", "two:2")
    other = w.take(w.file(BASE), "--name", "other")
    r = w.image("rm", "one")
    same((r.returncode, r.stdout), (0, "took away the name one\n"), r.stderr)
    check_layered(w, "two:2")
    r = w.image("rm", "two:2")
    same((r.returncode, r.stdout), (0, "removed two:2\n"), r.stderr)
    same(w.names(), ["other:latest"])
    same(os.listdir(w.images + "/roots"), [w.inspect("other")["root"].split("/")[-1]])
    same(os.listdir(w.images + "/blobs/sha256"), [other])
    same(w.image("rm", "two:2").returncode, 3)
    w.take(l, "--name", "a")
    w.take(l, "--name", "b")
    os.symlink("0" * 64, w.images + "/names/dangling%3A1")  # what kills leave
    os.symlink(other, w.images + "/names/.tmp-1")
    os.mkdir(w.images + "/" + "0" * 64)
    same(w.image("rm", w.inspect("a")["id"], "other").returncode, 0)
    same(os.listdir(w.images + "/names"), [])
    same(w.left(), [], "left in the store")


@test("an image in use is not removed, one with a damaged record can be")
def _(w):
    import fcntl
    i = w.take(w.file(BASE), "--name", "busy")
    fd = os.open(os.path.join(w.images, i), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)  # what image_find() holds
    r = w.image("rm", "busy")
    need(r.returncode == 1 and "in use by a running box" in r.stderr, r)
    os.close(fd)
    same(w.image("inspect", "busy").returncode, 0)
    record = os.path.join(w.images, i, "image.json")
    text = read(record)
    for bad in (text[:-20], text.replace('"uid":0', '"uid":-1'), text.replace('"uid":0', '"uid":65536'),
                text.replace(i, "0" * 64), "{}", ""):
        with open(record, "w") as f:
            f.write(bad)
        r = w.image("inspect", "busy")
        need(r.returncode != 0 and len(r.stderr.strip().split("\n")) == 1, (bad[:50], r))
    same(w.image("list").returncode, 0)
    same(w.image("rm", "busy").returncode, 0)


@test("a store that others can write is not used")
def _(w):
    w.take(w.file(BASE), "--name", "x")
    os.chmod(w.images, 0o777)
    r = w.image("inspect", "x")
    need(r.returncode == 1 and "writable by nobody else" in r.stderr, r)
    os.chmod(w.images, 0o700)


@test("an image on top of another shares its files and never changes it")
def _(w):
    w.take(Layout(BASE).write(w), "--name", "base")
    root = w.root("base")
    before = tree(root)
    top = tar(entry("bin/sh", "changed", mode=0o700), entry("usr/lib/.wh.a.so"), hard("etc/hard", "etc/passwd"),
              folder("etc", mode=0o700), entry("usr/lib/c.so", "c"), entry("bin/.wh..wh..opq"))
    more = tar(entry("etc/hard", "written through?"), link("etc/group", "/etc/passwd"))
    w.take(Layout(BASE, top, more).write(w), "--name", "top")
    child = w.root("top")
    same(tree(root), before, "the image below")
    same(os.stat(root + "/etc/passwd").st_ino, os.stat(child + "/etc/passwd").st_ino, "shared")
    same(sorted(os.listdir(child + "/bin")), ["sh"])
    same((read(child, "bin/sh"), read(child, "etc/hard")), ("changed", "written through?"))
    same(sorted(os.listdir(child + "/usr/lib")), ["c.so"])
    same(w.image("rm", "base").returncode, 0)
    same(read(child, "etc/passwd"), before["etc/passwd"][4])


@test("--drop-layers keeps no layer, and the image is the same")
def _(w):
    l = Layout(*LAYERED, config=CONFIG)
    w.take(l.write(w), "--name", "l", "--drop-layers")
    i = check_layered(w, "l")
    same([x["stored"] for x in i["layers"]], [False] * 3)
    same(sorted(os.listdir(w.images + "/blobs/sha256")), sorted([i["id"], digest(l.text)[7:]]))


@test("words: help teaches, wrong words are exit 2")
def _(w):
    for args in (("image", "--help"), ("image", "import", "--help"), ("image", "rm", "--help")):
        r = w.call(*args)
        need(r.returncode == 0 and "import SOURCE" in r.stdout and not r.stderr, r)
    for args in (("image",), ("image", "fly"), ("image", "import"), ("image", "import", "a", "b"), ("image", "rm"),
                 ("image", "import", "a", "--name"), ("image", "import", "a", "--progress=loud"), ("image", "inspect"),
                 ("image", "import", "a", "--json=1"), ("image", "list", "x"), ("image", "pull", "a", "--max-size", "1000t")):
        same(w.call(*args).returncode, 2, args)
    r = w.image("import", w.path("nowhere"))
    need(r.returncode == 1 and "open" in r.stderr and "nowhere" in r.stderr, r)
    r = w.image("import", "--json", "--name", "j", w.file(BASE))
    same(json.loads(r.stdout)["name"], "j")


# ---- attacks (TA) ----

def attack(w, *entries, words=(), fmt=tarfile.PAX_FORMAT):
    """As a root file system and as the second layer of an image: refused, canary well, nothing left."""
    refused(w, w.file(tar(*entries, fmt=fmt)), *words)
    refused(w, Layout(BASE, tar(*entries, fmt=fmt)).write(w), *words)


@test("TA-01 names with .. are refused")
def _(w):
    for name in ("../x", "a/../../x", "a/..", "..", "./../x", "usr/lib/../../../x", "a/b/../c"):
        attack(w, entry(name, "x"), words=("..", "refused"))


@test("TA-02 absolute names are refused")
def _(w):
    for name in (w.canary + "/x", "//x"):
        attack(w, entry(name, "x"), words=("absolute",), fmt=tarfile.GNU_FORMAT)
    attack(w, entry("/", "x"), fmt=tarfile.GNU_FORMAT)


@test("TA-03 a link that leads out, and a file behind it")
def _(w):
    attack(w, link("d", w.canary), entry("d/file", "broken"), words=("leads nowhere",))
    attack(w, link("d", "../" * 30 + w.canary[1:]), entry("d/file", "broken"), words=("leads nowhere",))
    attack(w, link("a", "b"), link("b", w.canary), entry("a/sub/file", "broken"))
    attack(w, link("d", "/proc/self/cwd"), entry("d/file", "broken"))
    attack(w, link("d", "d"), entry("d/file", "broken"))
    w.take(w.file(tar(link("file", w.canary + "/file"), entry("file", "mine"))), "--name", "last")
    w.safe()
    same(read(w.root("last"), "file"), "mine", "the name itself is replaced, not followed")


@test("TA-04 a chain of links past PATH_MAX stays in the image or is refused")
def _(w):
    part = "d" * 247
    out, path = [], ""
    for step in "abcdefghijklmnop":
        out += [folder(os.path.join(path, part)), link(os.path.join(path, step), part)]
        path = os.path.join(path, part)
    chain = "/".join("abcdefghijklmnop")
    out.append(link(chain + "/" + "l" * 254, "../" * 16))
    out += [link("escape", chain + "/" + "l" * 254 + "/../../../../.." + w.canary), hard("flag", "escape/file"), entry("flag", "broken")]
    attack(w, *out)
    out = out[:-3] + [link("escape", chain + "/" + "l" * 254 + "/../../../../.." + w.canary), entry("escape/file", "broken")]
    attack(w, *out)


@test("TA-05 hard links to what is outside, a link, a folder, a later entry, themselves")
def _(w):
    for target in ("/etc/shadow", "../../../../etc/passwd", w.canary + "/file", "etc/shadow"):
        attack(w, hard("x", target), words=("hard link",))
    attack(w, link("s", w.canary + "/file"), hard("x", "s"), entry("x", "broken"), words=("no file",))
    attack(w, link("s", w.canary), hard("x", "s/file"), entry("x", "broken"), words=("not in the image",))
    attack(w, hard("x", "later"), entry("later", "1"), words=("(yet)",))
    attack(w, entry("x", "1"), hard("x", "x"), words=("itself",))
    attack(w, entry("x", "1"), hard("./x", ".//x"), words=("itself",))
    attack(w, hard("x", ""), words=())
    attack(w, folder("d"), hard("x", "d"), words=("no file",))


@test("TA-06 devices, pipes and sockets are left out and counted")
def _(w):
    dev = [entry("c", kind=tarfile.CHRTYPE, devmajor=1, devminor=3), entry("b", kind=tarfile.BLKTYPE, devmajor=8),
           entry("p", kind=tarfile.FIFOTYPE), entry("etc/passwd", kind=tarfile.CHRTYPE, devmajor=1, devminor=3)]
    r = w.image("import", Layout(BASE, tar(*dev)).write(w), "--name", "d", "--json")
    same((r.returncode, json.loads(r.stdout)["devices_dropped"]), (0, 4), r.stderr)
    same(sorted(os.listdir(w.root("d"))), ["bin", "etc", "lib", "usr"])
    need(not os.path.exists(w.root("d") + "/etc/passwd"), "the last of a name wins, also if it is left out")


@test("TA-07 set-id bits and security attributes are left out")
def _(w):
    x = entry("su", "x", mode=0o6755, pax_headers={"SCHILY.xattr.security.capability": "\x01\x00\x00\x02", "SCHILY.xattr.user.mine": "1",
                                                   "SCHILY.xattr.trusted.overlay.opaque": "y"})
    r = w.image("import", w.file(tar(folder("d", mode=0o7777), x)), "--name", "s", "--json")
    got = json.loads(r.stdout)
    same(got["set_ids_dropped"], 2, r.stderr)
    need(got["xattrs_dropped"] >= 2, got)
    su = w.root("s") + "/su"
    same(oct(os.stat(su).st_mode & 0o7777), "0o755")
    same(oct(os.stat(w.root("s") + "/d").st_mode & 0o7777), "0o1777")
    need(not [a for a in os.listxattr(su) if not a.startswith("user.")], os.listxattr(su))


@test("TA-07 owners: an ordinary user owns all, root keeps ids below 65536")
def _(w):
    t = tar(entry("a", "1", uid=1234, gid=0), entry("b", "1", uid=65536, gid=65535), entry("c", "1", uid=2 ** 32, gid=2 ** 31),
            entry("d", "1", uid=-1 % 2 ** 20, gid=7))
    w.take(w.file(t), "--name", "o")
    got = [(s.st_uid, s.st_gid) for s in (os.lstat(os.path.join(w.root("o"), n)) for n in "abcd")]
    if ROOT:
        same(got, [(1234, 0), (65534, 65535), (65534, 65534), (65534, 7)])
    else:
        same(got, [(os.getuid(), os.getgid())] * 4)


@test("TA-08 whiteouts stay in the image")
def _(w):
    for name in (".wh.", ".wh..", ".wh...", "usr/.wh...", ".wh.x/y", "a/.wh.b/c/d"):
        attack(w, entry(name), words=("whiteout", "refused"))
    attack(w, link("out", w.canary), entry("out/.wh.file", ""), entry("../x", ""), words=("..",))
    same(sorted(os.listdir(w.canary)), ["file"])
    shutil.rmtree(w.images)
    one = tar(link("etc", w.canary), link("top", "/"), folder("keep"), entry("keep/x", "1"), link("up", "../../.."))
    two = tar(entry("etc/.wh.file"), entry("top/.wh.keep"), entry("up/.wh..wh..opq"), entry("nowhere/.wh.x"), entry("late", "1"))
    w.take(Layout(one, two).write(w), "--name", "w")
    w.safe()
    same(sorted(os.listdir(w.root("w"))), ["late"], "what lower layers had")
    w.take(Layout(BASE, tar(entry(".wh..wh..opq"), entry("only", "1"))).write(w), "--name", "o")
    same(sorted(os.listdir(w.root("o"))), ["only"])
    w.take(Layout(BASE, tar(entry("etc/new", "1"), entry("etc/.wh.new"), entry("etc/.wh.none"), entry(".wh..wh.plnk"))).write(w), "--name", "n")
    same(read(w.root("n"), "etc/new"), "1", "a whiteout takes away what is below, not what came with it")


def header(name, size=0, kind=b"0"):
    t = tarfile.TarInfo(name)
    t.size, t.type, t.mode = size, kind, 0o644
    return t.tobuf(tarfile.GNU_FORMAT)


@test("TA-10 bombs: compressed zeros, twice compressed, a small window")
def _(w):
    body = bytes(1 << 20) * 400
    for how in ("gz", "zst", "xz", "bz2"):
        bomb = squeeze(header("zeros", len(body)) + body + bytes(1024), how)
        need(len(bomb) < 2 << 20, len(bomb))
        refused(w, w.file(bomb), "refused as a bomb")
    inner = squeeze(header("zeros", 10) + bytes(502) + bytes(1024))
    refused(w, w.file(squeeze(inner)), "more than once")
    refused(w, Layout(inner, how="gz", diff_ids=[digest(inner)]).write(w), "more than once")


@test("TA-10 bombs: too many entries, too many bytes, a file of holes, too deep, too long")
def _(w):
    t = w.file(tar(*(entry(f"f{i}") for i in range(2001))))
    refused(w, t, "more than 2000 entries", args=("--max-entries", "2000"))
    big = squeeze(tar(entry("a", bytes(700000)), entry("b", bytes(700000))))
    refused(w, w.file(big), "more than 1048576 bytes", args=("--max-size", "1m"))
    refused(w, Layout(tar(entry("a", bytes(700000))), tar(entry("a", bytes(700000)))).write(w), "more than 1048576",
            args=("--max-size", "1m"))
    hole = entry("hole", b"x", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole",
                                            "GNU.sparse.realsize": str(1 << 50)})
    hole = (hole[0], b"1\n0\n1\n".ljust(512, b"\0") + b"x")
    hole[0].size = len(hole[1])
    refused(w, w.file(tar(hole)), "--max-size")
    attack(w, entry("d/" * 300 + "x", "1"), words=("deeper than 256",))
    attack(w, entry("n" * 300, "1"), words=("refused",))
    attack(w, entry(("n" * 200 + "/") * 25 + "x", "1"), words=("refused",))


@test("TA-10 folders that links make deeper than names can say are refused")
def _(w):
    out, last = [], ""
    for i in range(12):
        out += [entry(f"{last}{'d/' * 200}x", "1"), link(f"l{i}", f"{last}{'d/' * 200}".rstrip("/"))]
        last = f"l{i}/"
    attack(w, *out, words=("deeper than 256",))


@test("TA-10 a layer of ten million entries ends early and leaves nothing")
def _(w):
    chunk = b"".join(header(f"f{i:05}") for i in range(20000))
    path = w.path("many.tar.gz")
    with gzip.open(path, "wb", 1) as f:
        for _ in range(20):
            f.write(chunk)
        f.write(bytes(1024))
    begun = time.monotonic()
    refused(w, path, "more than 100000 entries", args=("--max-entries", "100000"))
    need(time.monotonic() - begun < 60, "too slow")


def flips(w, data, n, write, words=(), seed=1, **kw):
    rnd = random.Random(seed)
    for _ in range(n):
        bad = bytearray(data)
        bit = rnd.randrange(len(bad) * 8)
        bad[bit // 8] ^= 1 << bit % 8
        refused(w, write(bytes(bad)), *words, **kw)


@test("TA-11 a flipped bit in layer, config, manifest or index is refused, 100 of 100 each")
def _(w):
    l = Layout(*LAYERED, config=CONFIG)
    top = l.write(w)
    for name, d in (("layer", l.manifest["layers"][1]["digest"]), ("config", l.manifest["config"]["digest"]), ("manifest", digest(l.text))):
        path = os.path.join(top, "blobs/sha256", d[7:])

        def write(bad):
            with open(path, "wb") as f:
                f.write(bad)
            return top
        flips(w, l.blobs[d], 100, write, words=("digest",))
        write(l.blobs[d])
        shutil.rmtree(w.images)

    def index(bad):
        with open(os.path.join(top, "index.json"), "wb") as f:
            f.write(bad)
        return top
    flips(w, l.files()["index.json"], 100, index)
    index(l.files()["index.json"])
    w.take(top, "--name", "whole")
    check_layered(w, "whole")


@test("TA-11 a flipped bit in a saved image's config or layers is refused")
def _(w):
    data = saved(BASE, config=CONFIG)
    at = data.index(b"root:x:0:0")
    for i in range(40):
        bad = bytearray(data)
        bad[at + i] ^= 1 << i % 8
        refused(w, w.file(bytes(bad), "s.tar"), "refused")
    at = data.index(b"LD_PRELOAD")
    bad = bytearray(data)
    bad[at + 3] ^= 1
    refused(w, w.file(bytes(bad), "s.tar"), "digest")


@test("TA-12 cut off, longer, or of another size than said")
def _(w):
    l = Layout(*LAYERED)
    d = l.manifest["layers"][2]
    whole = l.blobs[d["digest"]]
    for bad in (whole[:-1], whole[: len(whole) // 2], b"", whole + b"x", whole + bytes(1 << 20)):
        l.blobs[d["digest"]] = bad
        refused(w, l.write(w), "blob")
    l.blobs[d["digest"]] = whole
    for size in (0, len(whole) - 1, len(whole) + 1, 1 << 40, -1, 1 << 62, "5", 1.5, None):
        d["size"] = size
        refused(w, l.seal().write(w))
    for n in (1, 511, 512, 1000, len(BASE) // 2, len(BASE) - 9000):
        refused(w, w.file(BASE[:n]))
        refused(w, w.file(squeeze(BASE)[: len(squeeze(BASE)) * n // len(BASE)]))
    refused(w, w.file(b""))
    refused(w, w.file(os.urandom(100000)))
    refused(w, w.file(b"hello world\n" * 1000))
    t = l.tar()
    refused(w, w.file(t[: len(t) // 2]))


@test("TA-12 a layer whose content is not the config's diff id")
def _(w):
    refused(w, Layout(BASE, diff_ids=[digest(b"other")]).write(w), "the config says")
    refused(w, Layout(BASE, BASE, diff_ids=[digest(BASE)]).write(w), "2 layers and the config 1")
    refused(w, Layout(BASE, diff_ids=["sha256:x"]).write(w), "no digest")


@test("TA-13 a document that is two things, or not what it says")
def _(w):
    l = Layout(BASE)
    l.manifest["manifests"] = []
    refused(w, l.seal().write(w), "at once")
    l = Layout(BASE)
    l.manifest["mediaType"] = OCI + "index.v1+json"
    refused(w, l.seal().write(w), "something else")
    l = Layout(BASE)
    l.index["manifests"][0]["mediaType"] = OCI + "index.v1+json"
    refused(w, l.write(w), "something else")
    l = Layout(BASE)
    l.manifest["schemaVersion"] = 1
    refused(w, l.seal().write(w), "schema version")
    for kind in ("layer.nondistributable.v1.tar+gzip", "config.v1+json", "layer.v2.tar"):
        l = Layout(BASE)
        l.manifest["layers"][0]["mediaType"] = OCI + kind
        refused(w, l.seal().write(w), "not supported")
    l = Layout(BASE)
    l.manifest["layers"] *= 300
    refused(w, l.seal().write(w), "300 layers")
    l = Layout(BASE)
    l.text = l.text[:-1] + b',"config":{}}'
    l.index["manifests"] = [l.add(l.text, "manifest.v1+json")]
    refused(w, l.write(w), "JSON")
    for bad in (b"[" * 100000, b"{", b"null", b'{"a":"\\u0000"}', b"{}" + b" " * (5 << 20), b'{"schemaVersion":2}', b"\xff{}"):
        l.index["manifests"] = [l.add(bad, "manifest.v1+json")]
        refused(w, l.write(w))


@test("TA-14 digests that are paths, upper case, of another length or kind are refused before they are used")
def _(w):
    hexa = digest(BASE)[7:]
    for bad in ("sha256:../../x", "sha256:" + "/" * 64, "sha256:" + hexa.upper(), "sha256:" + hexa[:63], "sha256:" + hexa + "0",
                "md5:" + "0" * 32, "sha512:" + "0" * 128, hexa, "SHA256:" + hexa, "sha256:" + hexa + "\n", " sha256:" + hexa, "", None, 7):
        for where in ("layer", "config", "index"):
            l = Layout(BASE)
            if where == "index":
                l.index["manifests"][0]["digest"] = bad
            else:
                (l.manifest["layers"][0] if where == "layer" else l.manifest["config"])["digest"] = bad
                l.seal()
            refused(w, l.write(w), "digest")


@test("TA-15 the config is checked: user, environment, work folder, ports")
def _(w):
    bad = [{"User": u} for u in ("4294967296", "-1", "65536", "nosuch", "2147483648", "1:70000", "node:nosuch", "node:-1", " 0", "0x1",
                                 "99999999999999999999", "a" * 300)]
    bad += [{"WorkingDir": d} for d in ("/proc/self/fd/7", "/sys", "/dev/shm", "relative", "/a/../proc", "//proc/1", "/./dev", "/a/..")]
    bad += [{"Env": e} for e in (["NOEQUALS"], ["=x"], ["A=1", 7], "A=1", {"A": "1"}, ["A=\0b"], ["A=1"] * 2000)]
    bad += [{"Cmd": "sh"}, {"Entrypoint": [None]}, {"Labels": ["a"]}, {"Labels": {"a": 1}}, {"ExposedPorts": {"99999/tcp": {}}},
            {"ExposedPorts": {"../x": {}}}, {"ExposedPorts": {"80/icmp": {}}}]
    for c in bad:
        refused(w, Layout(BASE, config=c).write(w))
        shutil.rmtree(w.images)
    good = [("", 0, 0), ("0", 0, 0), ("root", 0, 0), ("node", 1000, 1001), ("1000", 1000, 1001), ("65535", 65535, 0), ("node:wheel", 1000, 10),
            ("7:8", 7, 8), ("node:65535", 1000, 65535)]
    for user, uid, gid in good:
        w.take(Layout(BASE, config={"User": user}).write(w), "--name", "u")
        i = w.inspect("u")
        same((i["user"], i["uid"], i["gid"]), (user, uid, gid))
    i = w.inspect("u")
    same((i["workdir"], i["cmd"], i["entrypoint"]), ("/", [], []), "nothing said")


@test("TA-15 a work folder or a password file that is a link stays in the image")
def _(w):
    t = tar(folder("proc"), link("w", "/proc/self/fd"), link("v", "proc"), folder("real"), link("ok", "/real"), link("etc", w.canary),
            link("out", w.canary))
    for d in ("/w", "/v", "/out", "/w/7"):
        refused(w, Layout(t, config={"WorkingDir": d}).write(w), "WorkingDir")
    refused(w, Layout(t, config={"User": "root"}).write(w), "/etc/passwd")
    shutil.rmtree(w.images)
    w.take(Layout(t, config={"WorkingDir": "/ok"}).write(w), "--name", "ok")


@test("TA-16 files, folders and links that become each other: the last wins, inside the root only")
def _(w):
    one = tar(entry("a", "file"), folder("b"), entry("b/x", "1"), link("c", w.canary), link("d", "b"), entry("e", "1"), entry("e", "2"))
    two = tar(folder("a"), entry("a/x", "1"), entry("b", "file"), folder("c"), entry("c/file", "1"), entry("d", "file"), link("e", "a"))
    three = tar(link("a", "/b"), folder("b"), entry("b/y", "1"), entry("c", "file"), folder("d"), folder("e"))
    w.take(Layout(one, two, three).write(w), "--name", "t")
    w.safe()
    r = w.root("t")
    same((os.readlink(r + "/a"), os.listdir(r + "/b"), read(r, "c"), os.path.isdir(r + "/d"), os.path.islink(r + "/e")),
         ("/b", ["y"], "file", True, False))
    w.take(w.file(tar(entry("x", "1"), entry("x", "2"), entry("./x", "3"))), "--name", "dup")
    same(read(w.root("dup"), "x"), "3")
    shutil.rmtree(w.images)
    attack(w, entry("f", "file"), entry("f/x", "1"), words=("refused",))


@test("TA-21 a link in one layer, a file behind it in the next")
def _(w):
    os.makedirs(w.path("outside"))
    out = w.path("outside")
    one = tar(link("etc", "/"), link("abs", out), folder("usr"), folder("usr/lib"), link("lib", "/usr/lib"), link("lib64", "usr/lib"))
    two = tar(entry("etc/cron.d/x", "1"), entry("lib/a", "1"), entry("lib64/b", "1"))
    w.take(Layout(one, two).write(w), "--name", "c")
    r = w.root("c")
    same((read(r, "cron.d/x"), sorted(os.listdir(r + "/usr/lib"))), ("1", ["a", "b"]), "merged /usr, absolute and relative")
    need(not os.path.exists("/cron.d"), "it came out")
    shutil.rmtree(w.images)
    refused(w, Layout(one, tar(entry("abs/x", "1"))).write(w), "leads nowhere")
    refused(w, Layout(one, tar(entry("etc/abs/x", "1"))).write(w), "leads nowhere")
    same(os.listdir(out), [])


# ---- trouble ----

@test("a full disk: one line with the remedy, nothing left, and it works when there is room")
def _(w):
    body = os.urandom(1 << 20)
    source = w.file(tar(*(entry(f"f{i}", body) for i in range(12))), "big.tar")
    layout = Layout(tar(*(entry(f"f{i}", body) for i in range(12))), how="").write(w)
    if ROOT:
        os.makedirs(w.data, 0o700)
        for s in (source, layout, w.path("")):
            script = ('mount -t tmpfs -o size=8m,mode=0700 none "$1"; "$2" image import --progress=none "$3"; echo "exit $?"; '
                      'find "$1/images" -name "tmp-*"; ls "$1/images/roots"; "$2" image list')
            r = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", w.data, os.path.join(w.bin, "clawden"), s], env=w.env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            need(r.stdout == "exit 1\nno images yet: 'clawden image import' and 'clawden image pull' get some\n", (s, r))
            need("No space left on device" in r.stderr and "free space" in r.stderr and len(r.stderr.strip().split("\n")) == 1, r.stderr)
    else:
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))  # what a user can have of a full disk
        for s in (source, layout):
            refused(w, s, "File too large", "free space", preexec_fn=small)
    w.take(source, "--name", "big")


@test("killed at 40 random moments: the next command cleans up, and the image is whole or not there")
def _(w):
    body = os.urandom(100000)
    dirs = [folder(f"d{i}") for i in range(7)]
    l = Layout(tar(*dirs, *(entry(f"d{i % 7}/f{i}", body) for i in range(150))),
               tar(*dirs, *(entry(f"d{i % 7}/g{i}", body) for i in range(100)), entry("d1/.wh.f1")), how="").write(w)
    w.take(l, "--name", "k")
    want = tree(w.root("k"))
    begun = time.monotonic()
    same(w.image("rm", "k").returncode, 0)
    w.take(l, "--name", "k")
    whole = time.monotonic() - begun
    rnd = random.Random(3)
    seen = set()
    for i in range(40):
        if w.names():
            w.image("rm", "k")
        p = w.start("image", "import", "--progress=none", l, "--name", "k")
        time.sleep(rnd.random() * whole)
        p.kill()
        p.communicate()
        here = w.names()
        seen.add((bool(here), any(f.startswith("tmp-") for f in os.listdir(w.images))))
        if here:
            same(tree(w.root("k")), want, "the image")
    need((False, True) in seen, f"no kill came in the middle: {seen}")
    r = w.image("rm", "nothing")
    same([f for f in os.listdir(w.images) if f.startswith("tmp-")], [], "rm")
    w.take(l, "--name", "k")
    same(tree(w.root("k")), want, "the image")
    same(w.image("rm", "k").returncode, 0)
    same(w.left(), [], "after all")


@test("an import that is interrupted says so and leaves nothing")
def _(w):
    body = os.urandom(1 << 20)
    source = w.file(tar(*(entry(f"f{i}", body) for i in range(60))))
    for sig in (signal.SIGINT, signal.SIGTERM):
        p = w.start("image", "import", "--progress=none", source)
        end = time.monotonic() + 20
        while time.monotonic() < end and not os.path.isdir(w.images + "/roots"):
            time.sleep(0.005)
        time.sleep(0.05)
        p.send_signal(sig)
        out, err = p.communicate(timeout=20)
        need(p.returncode == 1 and "interrupted" in err, (p.returncode, out, err))
        same(w.left(), [])


@test("a live import's folder is not swept away by another, a dead one's is")
def _(w):
    w.take(w.file(BASE), "--name", "a")
    dead = w.images + "/tmp-1-dead"
    os.makedirs(dead + "/root/closed")
    os.chmod(dead + "/root/closed", 0)
    body = os.urandom(1 << 20)
    p = w.start("image", "import", "--progress=none", w.file(tar(*(entry(f"f{i}", body) for i in range(60)))), "--name", "slow")
    for i in range(8):
        w.take(w.file(BASE), "--name", f"a:{i}")
    p.communicate(timeout=60)
    same(p.returncode, 0)
    same([f for f in os.listdir(w.images) if f.startswith("tmp-")], [])
    same(len(os.listdir(w.root("slow"))), 60)


@test("imports that race for one name: all are whole, the name is one of them")
def _(w):
    body = os.urandom(50000)
    sources = [w.file(tar(*(entry(f"f{i}-{k % 4}", body) for i in range(40)))) for k in range(8)]
    ps = [w.start("image", "import", "--progress=none", s, "--name", "race") for s in sources]
    ids = set()
    for p in ps:
        out, err = p.communicate(timeout=60)
        same(p.returncode, 0, err)
        ids.add(out.strip())
    same(len(ids), 4, "equal sources are one image")
    need(w.inspect("race")["id"] in ids, "the name")
    for i in ids:
        same(len(os.listdir(w.root(i))), 40)
    same(w.left() and [f for f in w.left() if f.startswith("tmp-")], [])


@test("the program writes below its store only, even if a folder of the store leads elsewhere")
def _(w):
    import ctypes
    if ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1) < 2:
        raise Skip("this kernel has no Landlock that knows renames")
    w.take(w.file(BASE), "--name", "x")
    same(w.image("rm", "x").returncode, 0)
    for name in ("roots", "names", "blobs/sha256"):
        os.rename(os.path.join(w.images, name), w.path("aside"))
        os.symlink(w.canary, os.path.join(w.images, name))
        r = w.image("import", "--progress=none", w.file(BASE), "--name", "x")
        need(r.returncode == 1 and ("Permission denied" in r.stderr or "cross-device" in r.stderr), r)
        w.safe()
        os.unlink(os.path.join(w.images, name))
        os.rename(w.path("aside"), os.path.join(w.images, name))
    w.take(w.file(BASE), "--name", "x")


@test("progress: a line of JSON per step, nothing with none")
def _(w):
    l = Layout(BASE).write(w)
    r = w.image("import", "--progress=json", l)
    need([json.loads(x)["event"] for x in r.stderr.splitlines()][0] == "copy", r.stderr)
    r = w.image("import", "--progress=none", w.file(LAYERED[2]))
    same(r.stderr, "")


# ---- registries ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def registry(w):
    """Debian's docker-registry on the loopback."""
    if not shutil.which("docker-registry") or not shutil.which("skopeo"):
        raise Skip("docker-registry or skopeo is not installed")
    port = free_port()
    conf = w.file(json.dumps({"version": 0.1, "log": {"level": "error", "accesslog": {"disabled": True}},
                              "storage": {"filesystem": {"rootdirectory": w.path("registry")}},
                              "http": {"addr": f"127.0.0.1:{port}"}}).encode(), "registry.yml")
    p = subprocess.Popen(["docker-registry", "serve", conf], env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        p.kill()
        p.wait()


def push(w, layout, where, *args):
    env = dict(w.env, TMPDIR=w.top, XDG_RUNTIME_DIR=w.top)
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", *args, "--dest-tls-verify=false", "oci:" + layout, "docker://" + where],
                   check=True, env=env, stdout=subprocess.DEVNULL)


@test("pull from a real registry: by tag, by digest, layers shared, what is not there")
def _(w):
    with registry(w) as reg:
        l = Layout(*LAYERED, config=CONFIG)
        push(w, l.write(w), f"{reg}/team/tool:1")
        i = w.take(f"{reg}/team/tool:1", verb="pull")
        same(check_layered(w, f"{reg}/team/tool:1")["id"], i)
        d = w.inspect(f"{reg}/team/tool:1")["manifest"]
        same(w.image("rm", i).returncode, 0)
        same(w.take(f"{reg}/team/tool@{d}", verb="pull"), i)
        same(w.inspect(f"{reg}/team/tool@{d}")["id"], i)
        w.take(f"{reg}/team/tool:1", "--name", "short", verb="pull")
        same(w.inspect("short")["id"], i)
        for ref, word in ((f"{reg}/team/tool:none", "check the name"), (f"{reg}/nobody/none", "check the name"),
                          (f"{reg}/team/tool@sha256:" + "0" * 64, "check the name"), ("plain-name", "names no registry")):
            r = w.image("pull", "--progress=none", ref)
            need(r.returncode == 1 and word in r.stderr and len(r.stderr.strip().split("\n")) == 1, r)
        push(w, Layout(*LAYERED, tar(entry("more", "1"))).write(w), f"{reg}/team/tool:2")
        r = w.image("pull", "--progress=json", f"{reg}/team/tool:2")
        got = {json.loads(x)["what"] for x in r.stderr.splitlines() if json.loads(x)["event"] == "download"}
        same((r.returncode, len(got)), (0, 1), "layers that were downloaded")


@test("pull of an image for several machines takes this machine's")
def _(w):
    with registry(w) as reg:
        mine, other = Layout(tar(entry("here", "1"))), Layout(tar(entry("there", "1")), architecture="s390x")
        mine.blobs.update(other.blobs)
        index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [
            dict(other.index["manifests"][0], platform={"os": "linux", "architecture": "s390x"}),
            dict(mine.index["manifests"][0], platform={"os": "linux", "architecture": ARCH})]}
        text = json.dumps(index).encode()
        mine.index["manifests"] = [mine.add(text, "index.v1+json")]
        push(w, mine.write(w), f"{reg}/m:1", "--all")
        w.take(f"{reg}/m:1", verb="pull")
        need(os.path.exists(w.root(f"{reg}/m:1") + "/here"), "another machine's")
        w.take(f"{reg}/m@{digest(text)}", verb="pull")
        need(os.path.exists(w.root(f"{reg}/m@{digest(text)}") + "/here"), "by the index's digest")


class Fake:
    """A registry of one image that can lie, hang, break off and ask for tokens."""

    def __init__(self, layout, **how):
        self.layout, self.how, self.log = layout, how, []
        self.lock = threading.Lock()
        self.broken = how.get("break_off", 0)
        self.fail = how.get("fail", 0)
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def do_GET(self):
                with contextlib.suppress(ConnectionError, BrokenPipeError):
                    fake.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *a: None  # clients that go away are what is tested
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *a):
        self.server.shutdown()
        self.server.server_close()

    def send(self, h, status, body=b"", **headers):
        h.send_response(status)
        headers.setdefault("Content_Length", str(len(body)))
        for k, v in headers.items():
            h.send_header(k.replace("_", "-"), v)
        h.end_headers()
        h.wfile.write(body)

    def answer(self, h):
        how = self.how
        self.log.append((h.path, dict(h.headers)))
        auth = h.headers.get("Authorization", "")
        if how.get("hang") and how["hang"] in h.path:
            time.sleep(60)
        if h.path.startswith("/token"):
            if how.get("user") and auth != "Basic " + base64.b64encode(how["user"]).decode():
                return self.send(h, 401)
            return self.send(h, 200, json.dumps({"token": "secret-token"}).encode())
        if h.path.startswith("/elsewhere/"):
            return self.send(h, 200, self.layout.blobs[h.path[11:]])
        if how.get("bearer") and auth != "Bearer secret-token":
            realm = how.get("realm", f"http://{self.host}/token")
            return self.send(h, 401, WWW_Authenticate=f'Bearer realm="{realm}",service="s v",scope="x"')
        if how.get("basic") and auth != "Basic " + base64.b64encode(how["basic"]).decode():
            return self.send(h, 401, WWW_Authenticate='Basic realm="x"')
        with self.lock:
            if self.fail and "blobs" in h.path:
                self.fail -= 1
                return self.send(h, 503)
        if "/manifests/" in h.path:
            text = how.get("manifest", self.layout.text)
            return self.send(h, 200, text, Content_Type=how.get("type", OCI + "manifest.v1+json"),
                             Docker_Content_Digest=how.get("digest", digest(text)))
        self.blob(h, h.path.split("/")[-1])

    def blob(self, h, d):
        how = self.how
        data = self.layout.blobs.get(d)
        layer = d in [x["digest"] for x in self.layout.manifest["layers"]]
        if data is None:
            return self.send(h, 404)
        if layer and how.get("redirect"):
            return self.send(h, 307, Location=how["redirect"].format(port=self.port) + d)
        if layer and how.get("lie"):
            data = how["lie"](data)
        at = 0
        if "Range" in h.headers and not how.get("no_range"):
            at = int(h.headers["Range"].split("=")[1].rstrip("-"))
        with self.lock:
            stop = layer and self.broken > 0
            self.broken -= 1 if stop else 0
        head = {"Content_Range": f"bytes {at + how.get('shift', 0)}-{len(data) - 1}/{len(data)}"} if at else {}
        h.send_response(206 if at else 200)
        for k, v in dict(head, Content_Length=str(len(data) - at)).items():
            h.send_header(k.replace("_", "-"), v)
        h.end_headers()
        rest = data[at:]
        if stop:
            h.wfile.write(rest[: len(rest) // 2])
            h.wfile.flush()
            h.close_connection = True
            h.connection.shutdown(socket.SHUT_RDWR)
        else:
            h.wfile.write(rest)


def pull_refused(w, f, *words, args=(), **kw):
    r = w.image("pull", "--progress=none", *args, f"{f.host}/x:1", **kw)
    same(r.returncode, 1, f"{f.how} {words} {r.stderr}")
    lines = r.stderr.strip().split("\n")
    same(len(lines), 1, lines)
    for word in words:
        need(word in lines[0], f"{word!r} not in {lines[0]!r}")
    same(json.loads(w.image("list", "--json").stdout), [], "images")
    same([x for x in w.left() if not x.startswith("blobs/")], [], "left")
    return lines[0]


RANDOM = Layout(tar(entry("data", random.Random(9).randbytes(600000))), how="")


@test("a registry that lies about a digest, a size or a type is not believed")
def _(w):
    for lie, word in ((lambda d: d[:-1] + b"X", "digest"), (lambda d: d + b"more", "more bytes"), (lambda d: d[:-5], "bytes")):
        with Fake(RANDOM, lie=lie) as f:
            pull_refused(w, f, word)
    with Fake(RANDOM, digest="sha256:" + "0" * 64) as f:
        pull_refused(w, f, "the registry says")
    with Fake(RANDOM, digest="sha256:../../x") as f:
        pull_refused(w, f, "the registry says")
    with Fake(RANDOM, type=OCI + "index.v1+json") as f:
        pull_refused(w, f, "something else")
    with Fake(RANDOM, manifest=b"<html>") as f:
        pull_refused(w, f, "JSON")
    with Fake(RANDOM, manifest=b"{" + b" " * (5 << 20)) as f:
        pull_refused(w, f, "more than")
    other = Layout(BASE)
    with Fake(RANDOM, manifest=other.text) as f:  # says nothing wrong, but has not what it names
        pull_refused(w, f, "has no")
        r = w.image("pull", "--progress=none", f"{f.host}/x@{digest(RANDOM.text)}")
        need(r.returncode == 1 and "the digest" in r.stderr, r)
    same(os.listdir(w.images + "/blobs/partial"), [], "partial blobs that are known to be wrong")


@test("a pull that breaks off goes on where it was, within one command and in the next")
def _(w):
    with Fake(RANDOM, break_off=2) as f:
        w.take(f"{f.host}/x:1", verb="pull")
        ranges = [x[1].get("Range") for x in f.log if "blobs" in x[0] and x[1].get("Range")]
        same(len(ranges), 2, "resumed")
    same(w.image("rm", f"{f.host}/x:1").returncode, 0)
    with Fake(RANDOM, break_off=100) as f:
        pull_refused(w, f)
        part = os.listdir(w.images + "/blobs/partial")
        same(part, [RANDOM.manifest["layers"][0]["digest"][7:]])
        size = os.path.getsize(w.images + "/blobs/partial/" + part[0])
        need(size > 300000, size)
    with Fake(RANDOM) as f:
        w.take(f"{f.host}/x:1", verb="pull")
        same([x[1].get("Range") for x in f.log if x[0].endswith(part[0])], [f"bytes={size}-"])
    same(os.listdir(w.images + "/blobs/partial"), [])


@test("a damaged partial blob, a server without ranges and one with wrong ranges")
def _(w):
    hexa = RANDOM.manifest["layers"][0]["digest"][7:]
    data = RANDOM.blobs["sha256:" + hexa]
    for left in (b"x" * 1000, data[:1000], data, data + b"more", b"y" * len(data)):
        for how in ({}, {"no_range": True}):
            shutil.rmtree(w.images, ignore_errors=True)
            os.makedirs(w.images + "/blobs/partial", mode=0o700)
            os.chmod(w.data, 0o700)
            os.chmod(w.images, 0o700)
            with open(w.images + "/blobs/partial/" + hexa, "wb") as p:
                p.write(left)
            with Fake(RANDOM, **how) as f:
                w.take(f"{f.host}/x:1", verb="pull")
    shutil.rmtree(w.images)
    with Fake(RANDOM, break_off=1, shift=7) as f:
        pull_refused(w, f, "another part")


@test("a registry that hangs is given up in time, one that fails is asked again, a bounded number of times")
def _(w):
    for where in ("manifests", RANDOM.manifest["config"]["digest"], RANDOM.manifest["layers"][0]["digest"]):
        with Fake(RANDOM, hang=where) as f:
            begun = time.monotonic()
            pull_refused(w, f, "sent nothing for 1 seconds", args=("--timeout", "1s"))
            need(time.monotonic() - begun < 25, "too long")
            need(len(f.log) <= 8, f.log)
    with Fake(RANDOM, fail=2) as f:
        w.take(f"{f.host}/x:1", verb="pull")
    same(w.image("rm", f"{f.host}/x:1").returncode, 0)
    with Fake(RANDOM, fail=1000) as f:
        pull_refused(w, f, "HTTP 503")
        need(len(f.log) <= 6, len(f.log))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        r = w.image("pull", "--progress=none", f"127.0.0.1:{s.getsockname()[1]}/x")
        need(r.returncode == 1 and "ask '127.0.0.1" in r.stderr, r)


@test("tokens and passwords: from the file, to the registry only, never printed")
def _(w):
    user = b"me:s3cr3t-pass"
    auth = base64.b64encode(user).decode()
    with Fake(RANDOM, bearer=True) as f:
        w.take(f"{f.host}/x:1", verb="pull")
        token = [x for x in f.log if x[0].startswith("/token")]
        same(len(token), 1)
        need("service=s%20v" in token[0][0] and "scope=repository%3Ax%3Apull" in token[0][0], token)
    same(w.image("rm", f"{f.host}/x:1").returncode, 0)
    for how in ({"bearer": True, "user": user}, {"basic": user}):
        with Fake(RANDOM, **how) as f:
            line = pull_refused(w, f, "password", env={"CLAWDEN_DEBUG": "1"})
            os.makedirs(w.env["HOME"] + "/.docker", exist_ok=True)
            path = w.file(json.dumps({"auths": {f"https://{f.host}/v2/": {"auth": auth}, "other.example.org": {"auth": "b3RoZXI="}}}).encode(),
                          "home/.docker/config.json")
            r = w.image("pull", f"{f.host}/x:1", env={"CLAWDEN_DEBUG": "1"})
            same(r.returncode, 0, r.stderr)
            for secret in ("s3cr3t", auth, "secret-token"):
                need(secret not in r.stdout + r.stderr + line, "a secret was printed")
            need(not any("b3RoZXI" in str(x) for x in f.log), "another registry's password was sent")
            same(w.image("rm", f"{f.host}/x:1").returncode, 0)
            os.rename(path, w.path("auth.json"))
            w.take(f"{f.host}/x:1", verb="pull", env={"CLAWDEN_REGISTRY_AUTH_FILE": w.path("auth.json")})
            same(w.image("rm", f"{f.host}/x:1").returncode, 0)
    with Fake(RANDOM, bearer=True, realm="http://registry.example.org/token") as f:
        pull_refused(w, f, "not https")
    with Fake(RANDOM, bearer=True, realm="file:///etc/passwd") as f:
        pull_refused(w, f, "not https")
    r = w.image("pull", "127.0.0.1:1/x", env={"CLAWDEN_REGISTRY_AUTH_FILE": w.path("none")})
    same(r.returncode, 1)


@test("a redirect to another host is followed without our token, one to another protocol is not")
def _(w):
    with Fake(RANDOM, bearer=True, redirect="http://localhost:{port}/elsewhere/") as f:
        w.take(f"{f.host}/x:1", verb="pull")
        sent = [x[1].get("Authorization") for x in f.log if x[0].startswith("/elsewhere")]
        same(sent, [None], "the token went along")
    same(w.image("rm", f"{f.host}/x:1").returncode, 0)
    for where in ("file:///etc/passwd?", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/"):
        with Fake(RANDOM, redirect=where) as f:
            pull_refused(w, f)


@test("plain HTTP only to this machine, or when asked for")
def _(w):
    with Fake(RANDOM) as f:
        name = f"registry.localhost:{f.port}/x:1"  # resolves to the loopback, but is not named so
        r = w.image("pull", "--progress=none", "--timeout", "2s", name)
        need(r.returncode == 1 and "registry.localhost" in r.stderr, r)
        same([x for x in f.log if x[0].startswith("/v2")], [], "asked in plain text")
        w.take("--plain-http", name, verb="pull")
        w.take(f"localhost:{f.port}/x:1", verb="pull")


@test("a pull that is killed is resumed by the next, two pulls of one image share the download")
def _(w):
    slow = Layout(tar(entry("data", random.Random(5).randbytes(4 << 20))), how="")
    with Fake(slow, hang="nothing") as f:
        ps = [w.start("image", "pull", "--progress=none", f"{f.host}/x:1") for _ in range(3)]
        for p in ps:
            out, err = p.communicate(timeout=60)
            same(p.returncode, 0, err)
        layer = slow.manifest["layers"][0]["digest"]
        same(len([x for x in f.log if x[0].endswith(layer)]), 1, "downloads")
        same(w.image("rm", f"{f.host}/x:1").returncode, 0)
        rnd = random.Random(4)
        for _ in range(15):
            p = w.start("image", "pull", "--progress=none", f"{f.host}/x:1")
            time.sleep(rnd.random() * 0.15)
            p.kill()
            p.communicate()
        w.take(f"{f.host}/x:1", verb="pull")
        same(os.path.getsize(w.root(f"{f.host}/x:1") + "/data"), 4 << 20)
        same([x for x in os.listdir(w.images) if x.startswith("tmp-")], [])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    a.add_argument("--only", default="")
    a.add_argument("--label", default=default_label())
    args = a.parse_args()
    return run("IMAGE", lambda: World(os.path.abspath(args.bin)), args.only, args.label)


if __name__ == "__main__":
    sys.exit(main())
