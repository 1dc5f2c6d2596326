"""The machine of the fakes of hosted sandboxes: bubblewrap with a root of its own, as root in there.

It stands for a vendor's machine, so that what it runs finds /opt, /work and processes of its own; it is no sandbox.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.tool_runner.sandboxes.bubblewrap.python_runtime import PythonRuntime, find_runtimes

_FOLDERS = ("tmp", "proc", "dev", "opt", "usr/local/bin")


class Place:
    """A root folder and the processes that run in it."""

    def __init__(self, mounts: Sequence[str]) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="loci-hosted-"))
        self.root.chmod(0o755)
        self.processes: list[asyncio.subprocess.Process] = []
        self._mounts = mounts

    @classmethod
    async def make(cls) -> "Place":
        """One with Python (and Node, where there is one) of this machine; read-only."""
        return cls._with((await find_runtimes())[0])

    @classmethod
    def _with(cls, runtime: PythonRuntime) -> "Place":
        place = cls([argument for path in runtime.mounts for argument in ("--ro-bind", path, path)])
        above = [str(Path(path).parent).lstrip("/") for path in runtime.mounts]
        for folder in (*_FOLDERS, *above):  # else bwrap makes them for root alone
            (place.root / folder).mkdir(parents=True, exist_ok=True)
        (place.root / "tmp").chmod(0o1777)
        for target, path in runtime.links:
            (place.root / path.lstrip("/")).symlink_to(target)
        for name, program in {"python3": runtime.executable, "node": shutil.which("node")}.items():
            if program:
                (place.root / "usr/local/bin" / name).symlink_to(os.path.realpath(program))
        return place

    def write(self, path: str, content: bytes) -> None:
        """Writes a file as root of that machine."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    async def run(self, argv: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
        """A process of that machine, its three streams piped."""
        binds = ["--bind", str(self.root), "/", *self._mounts, *self._programs()]
        namespaces = ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent", "--as-pid-1"]
        process = await asyncio.create_subprocess_exec(
            *("bwrap", *namespaces, *binds, "--proc", "/proc", "--dev", "/dev", "--cap-add", "ALL", "--", *argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", **environment},
        )
        self.processes.append(process)
        return process

    def _programs(self) -> list[str]:
        """The usual folders of programs and libraries, as far as Python's do not bring them."""
        binds = []
        for path in ("/usr/bin", "/bin", "/lib", "/lib64"):
            if os.path.islink(path):
                binds += [] if (self.root / path[1:]).is_symlink() else ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path) and path not in self._mounts:
                binds += ["--ro-bind", path, path]
        return binds

    async def end(self) -> None:
        """Switch it off."""
        for process in self.processes:
            # Kills it, and closes its pipes: asyncio waits for those, too.
            process._transport.close()  # type: ignore[attr-defined]
            await process.wait()
        await asyncio.to_thread(shutil.rmtree, self.root, ignore_errors=True)
