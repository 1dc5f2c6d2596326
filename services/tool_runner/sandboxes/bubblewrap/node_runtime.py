"""Finds the Node that runs JavaScript and TypeScript tools in bubblewrap, and our entry for it."""

import asyncio
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from services.common.processes import Child
from services.tool_runner.core.job import SandboxUnavailable

_LEAST = 20
_ENTRY = Path(__file__).parents[1] / "node"
_COPY = "loci-node-"


@dataclass(frozen=True)
class NodeRuntime:
    """`executable` is a real path of the host, the same inside; `entry` is the folder for /opt/loci/node."""

    executable: str
    entry: str
    copied: bool = False

    def discard(self) -> None:
        """Removes the copy that was made, if one was."""
        if self.copied:
            shutil.rmtree(self.entry, ignore_errors=True)


async def find_node() -> NodeRuntime:
    """Raises SandboxUnavailable with what is missing."""
    node = shutil.which("node")
    if node is None:
        raise SandboxUnavailable(f"JavaScript and TypeScript tools need Node {_LEAST} or newer, which is not installed")
    version = await _version(node)
    if version < _LEAST:
        raise SandboxUnavailable(f"JavaScript and TypeScript tools need Node {_LEAST} or newer; {node} is {version}")
    if not (_ENTRY / "node_modules").is_dir():
        raise SandboxUnavailable(f"the compiler of TypeScript is not installed: run 'npm ci --prefix {_ENTRY}'")
    executable = os.path.realpath(node)  # noqa: ASYNC240 - a few links
    if not everybody_reads(executable):
        raise SandboxUnavailable(f"sandboxes, which are not run as root, cannot read {executable}: move it, or open it")
    if everybody_reads(str(_ENTRY)):
        return NodeRuntime(executable, str(_ENTRY))
    copy = NodeRuntime(executable, await asyncio.to_thread(_copy), copied=True)
    if not everybody_reads(copy.entry):
        copy.discard()
        raise SandboxUnavailable(f"sandboxes, which are not run as root, cannot read {_ENTRY}: move it, or open it")
    return copy


def _copy() -> str:
    """Copies the entry to where everybody may read it: a checkout may be below a closed folder, such as root's home."""
    for left in Path(tempfile.gettempdir()).glob(_COPY + "*"):
        pid = left.name.removeprefix(_COPY).partition("-")[0]
        if left.stat().st_uid == os.geteuid() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"{_COPY}{os.getpid()}-")
    shutil.copytree(_ENTRY, folder, dirs_exist_ok=True)
    for path, _, names in os.walk(folder):
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)
    return folder


async def _version(executable: str) -> int:
    child = await Child.start(executable, "--version", environment={}, errors=subprocess.DEVNULL)
    try:
        text = (await child.reader.read(100)).decode("ascii", "replace")
        return int(text.removeprefix("v").partition(".")[0])
    except ValueError:
        return 0
    finally:
        await child.end()


def everybody_reads(path: str) -> bool:
    """Returns whether sandboxes can read it: where this process is root, they are not."""
    if os.geteuid() != 0:
        return True
    if not os.stat(path).st_mode & stat.S_IROTH:
        return False
    return all(os.stat(folder).st_mode & stat.S_IXOTH for folder in Path(path).parents)
