"""The program of a sandbox host: serves one call after the other, of one tenant in its whole life.

Standard library only, Python 3.11 or newer; process 1 of a pod that has no token, no network and no file of anybody's.
Who connects shows a certificate of our authority whose common name is that of the runner (mutual TLS). Then, in order:

    runner  4 bytes of length (big endian), JSON: tenant, language, seccomp {machine: base64}, layer (bytes to
            follow); or {"retire": true, "layer": 0}: serve nobody any more, because the pod is about to be deleted
    runner  the layer, a tar
    host    4 bytes of length, JSON: {} once a worker is started, or it retired; else {"refused": "busy" or "leased",
            "tenant": whose it is, "busy": whether it is at work}
    both    what the worker and the runner say to one another (see ../protocol/wire.py), to the end of the connection

When the connection ends, everything in the pod but this process is killed and its folders are emptied. The first tenant
to be served holds the lease; another is refused until the runner deletes the pod. The key of the certificate is read
from SANDBOX_HOST_TLS and removed from there before anything is served, so that no tool can read it.
"""

import asyncio
import base64
import contextlib
import ctypes
import io
import json
import os
import platform
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLIENT_NAME = "loci-tool-runner"
MOST_GREETING, MOST_LAYER = 1 << 20, 1 << 30
_GREETING_SECONDS = 60.0
_CHUNK = 1 << 16
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 4, 38, 22, 2
_LIBC = ctypes.CDLL(None, use_errno=True)
_FILES = ("ca.crt", "tls.crt", "tls.key")


class Refusal(Exception):
    """The connection gets no worker; the text is the reason on the wire."""


class Host:
    """`worker`: its command line; `folders`: what a call may write to, emptied after it; `layer`: for its packages."""

    def __init__(self, worker: list[str], folders: list[Path], layer: Path) -> None:
        self._worker = worker
        self._folders = folders
        self._layer = layer
        self._tenant = ""
        self._busy = False
        self._retired = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection to its end."""
        try:
            if _common_name(writer) != CLIENT_NAME:
                return
            async with asyncio.timeout(_GREETING_SECONDS):
                greeting = await _read_greeting(reader)
                await self._take(greeting, reader, writer)
        except (OSError, ssl.SSLError, asyncio.IncompleteReadError, ValueError, KeyError, TimeoutError) as error:
            print(f"a connection ended before its call: {type(error).__name__}", file=sys.stderr)
        finally:
            writer.close()

    async def _take(self, greeting: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        layer = await reader.readexactly(int(greeting["layer"]))
        try:
            if greeting.get("retire"):
                self._retire()
                await _answer(writer, {})
                return
            self._begin(str(greeting["tenant"]))
        except Refusal as refusal:
            await _answer(writer, {"refused": str(refusal), "tenant": self._tenant, "busy": self._busy})
            return
        try:
            self._unpack(layer)
            with _start_worker(self._worker, greeting) as (process, theirs):
                await _answer(writer, {})
                await _relayed(reader, writer, theirs)
                _kill_all(process.pid)
        finally:
            self._clean()
            self._busy = False

    def _retire(self) -> None:
        if self._busy:
            raise Refusal("busy")
        self._retired = True

    def _begin(self, tenant: str) -> None:
        if self._retired or not tenant or self._tenant not in ("", tenant):
            raise Refusal("leased")
        if self._busy:
            raise Refusal("busy")
        self._tenant, self._busy = tenant, True

    def _unpack(self, layer: bytes) -> None:
        _empty(self._layer)
        if layer:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                archive.extractall(self._layer, filter="data")

    def _clean(self) -> None:
        try:
            for folder in (*self._folders, self._layer):
                _empty(folder)
        except OSError as error:
            # Something of a call is left: a pod that began again serves nobody, and is replaced.
            print(f"a folder cannot be emptied: {error}", file=sys.stderr, flush=True)
            os._exit(1)


async def _read_greeting(reader: asyncio.StreamReader) -> dict[str, Any]:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MOST_GREETING:
        raise ValueError(f"a greeting of {size} bytes")
    greeting: dict[str, Any] = json.loads(await reader.readexactly(size))
    if not 0 <= int(greeting["layer"]) <= MOST_LAYER:
        raise ValueError("a layer that is too large")
    return greeting


async def _answer(writer: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    writer.write(len(body).to_bytes(4, "big") + body)
    await writer.drain()


@contextlib.contextmanager
def _start_worker(
    worker: list[str], greeting: dict[str, Any]
) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """Starts a worker under the runner's filter; returns its process, and our end of its streams."""
    filters = greeting["seccomp"]
    if greeting["language"] not in ("python", "node"):
        raise ValueError("an unknown language")
    ours, theirs = socket.socketpair()
    confine = [sys.executable, "-I", __file__, "--confine", filters[platform.machine()]]
    language = ["--language", "node"] if greeting["language"] == "node" else []
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": "/work", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
    with ours, theirs:
        process = subprocess.Popen(
            [*confine, *worker, *language],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        try:
            yield process, ours
        finally:
            _kill_all(process.pid)
            process.wait()
            _reap()


async def _relayed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, theirs: socket.socket) -> None:
    """Bytes both ways, until either side ends."""
    from_worker, to_worker = await asyncio.open_connection(sock=theirs.dup())
    pumps = {
        asyncio.create_task(_pump(reader, to_worker)),
        asyncio.create_task(_pump(from_worker, writer)),
    }
    _, waiting = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    for pump in waiting:
        pump.cancel()
    await asyncio.gather(*pumps, return_exceptions=True)
    to_worker.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()


def _kill_all(worker: int) -> None:
    """Kills every other process in the pod as its process 1; outside one (in a test) the worker's session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL) if os.getpid() == 1 else os.killpg(worker, signal.SIGKILL)


def _reap() -> None:
    """Reaps dead processes that tools left behind, which became children of process 1."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0)[0]:
            pass


def _empty(folder: Path) -> None:
    """Removes what is in it, whatever its rights and however deep: folders are moved up before they are removed."""
    moved = 0
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry)
                continue
            os.chmod(entry, 0o700)
            for below in list(os.scandir(entry)):
                if below.is_dir(follow_symlinks=False):
                    os.chmod(below, 0o700)
                    os.rename(below, folder / f".{os.getpid()}-{(moved := moved + 1)}")
                else:
                    os.unlink(below)
            os.rmdir(entry)


def _common_name(writer: asyncio.StreamWriter) -> str:
    certificate = writer.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if names else ""


def _confine(program: str, argv: list[str]) -> None:
    """Takes the filter (a BPF program), which every process from here on keeps, and becomes the worker."""
    code = base64.b64decode(program)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    wanted = Filter(len(code) // 8, code)
    if _LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(wanted), 0, 0):
        sys.exit(f"seccomp is not to be had here: {os.strerror(ctypes.get_errno())}")
    os.execv(argv[0], argv)


def _tls(folder: Path) -> ssl.SSLContext:
    """Returns the context of ca.crt, tls.crt and tls.key, which are gone afterwards."""
    authority, certificate, key = (folder / name for name in _FILES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority)
    context.load_cert_chain(certificate, key)
    key.unlink()
    return context


async def _serve(host: Host, context: ssl.SSLContext, address: str, port: int) -> None:
    server = await asyncio.start_server(host.serve, address, port, ssl=context, ssl_handshake_timeout=5, backlog=16)
    print(f"listening on {address}:{port}", file=sys.stderr, flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serves, as the variables SANDBOX_HOST_TLS, _LISTEN (address:port), _FOLDERS, _LAYER and _WORKER say."""
    if sys.argv[1:2] == ["--confine"]:
        _confine(sys.argv[2], sys.argv[3:])
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    read = os.environ.get
    address, _, port = read("SANDBOX_HOST_LISTEN", "0.0.0.0:8443").rpartition(":")
    folders = [Path(folder) for folder in read("SANDBOX_HOST_FOLDERS", "/work:/tmp:/inputs:/dev/shm").split(":")]
    worker = [sys.executable, "-I", read("SANDBOX_HOST_WORKER", "/opt/loci/worker")]
    # Process 1 is deaf to every signal it has no handler for, and Python gave it one: tools have our user.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    host = Host(worker, folders, Path(read("SANDBOX_HOST_LAYER", "/opt/loci/layer")))
    asyncio.run(_serve(host, _tls(Path(read("SANDBOX_HOST_TLS", "/run/loci/tls"))), address, int(port)))


if __name__ == "__main__":
    main()
