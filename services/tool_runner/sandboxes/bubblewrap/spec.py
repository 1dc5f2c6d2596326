"""The one command line that a worker in bubblewrap ever gets. Pure, but for asking who we are."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.tool_runner.core.job import Language, SandboxUnavailable
from services.tool_runner.sandboxes.bubblewrap.node_runtime import NodeRuntime
from services.tool_runner.sandboxes.bubblewrap.packages import Packages
from services.tool_runner.sandboxes.bubblewrap.python_runtime import PythonRuntime
from services.tool_runner.sandboxes.ports import Shape

# Where the runner is root, tools are not: one user per sandbox, from a range that systemd's
# allocation table (UIDS-GIDS.md) leaves free.
FIRST_UID, SANDBOXES = 60_720, 256

_INSIDE_UID = "65534"
_HOME = "/opt/loci"
_LAYER = f"{_HOME}/layer"
_PACKAGES = f"{_HOME}/packages"
_BIN = "/usr/local/bin"
_STAGED = "/mnt"
_ENVIRONMENT = {
    "PATH": f"{_BIN}:/usr/bin:/bin",
    "HOME": "/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",
}
# Certificates are not the host's secret, and tools that reach a host need them.
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def command(
    bwrap: str,
    shape: Shape,
    uid: int,
    *,
    python: PythonRuntime,
    packages: Packages,
    node: NodeRuntime | None,
    layer: Path | None,
    files: Mapping[str, int],
    seccomp: int,
    info: int,
    block: int,
    mark: str,
) -> list[str]:
    """Returns argv. `files` (content by path below /opt/loci), `seccomp` (both read to their end), `info` (written) and
    `block` (a byte from there lets the worker start) are descriptors that bwrap inherits.
    `mark` says whose process it is, and does nothing."""
    namespaces = ["--unshare-all", "--unshare-user", "--hostname", "sandbox"]
    user = ["--uid", _INSIDE_UID, "--gid", _INSIDE_UID, "--cap-drop", "ALL"]
    life = ["--die-with-parent", "--new-session", "--as-pid-1", "--seccomp", str(seccomp)]
    life += ["--info-fd", str(info), "--block-fd", str(block), "--unsetenv", mark]
    options = ["--language", shape.language.value]
    if shape.language is Language.NODE:
        options += ["--memory", str(shape.memory)]
    return [
        *_stage(bwrap, shape.host_folders),
        *_drop_root(uid),
        *(bwrap, *namespaces, *user, *life),
        *_environment(),
        *_programs(python, node),
        *_own_files(files, packages, layer),
        *_folders(str(shape.disk), shape.host_folders),
        # Without site: what the host's packages do when Python starts is not for sandboxes; see `worker`.
        *(python.executable, "-I", "-S", f"{_HOME}/worker", *options),
    ]


def _drop_root(uid: int) -> list[str]:
    """Becomes `uid` first where this process is root: to /proc/sys, host root is root in any namespace."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise SandboxUnavailable("the program setpriv (package util-linux) is needed to run tools without root")
    return [setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--"]


def _environment() -> list[str]:
    arguments = ["--clearenv"]
    for name, value in _ENVIRONMENT.items():
        arguments += ["--setenv", name, value]
    return arguments


def _programs(python: PythonRuntime, node: NodeRuntime | None) -> list[str]:
    """Returns Python and Node with what they need, read-only, under their usual names; nothing else of the host."""
    arguments: list[str] = []
    mounts = {path: path for path in python.mounts}
    if node:
        mounts |= {node.executable: node.executable, node.entry: f"{_HOME}/node"}
    for path, inside in mounts.items():
        arguments += ["--ro-bind", path, inside]
    for target, path in python.links:
        arguments += ["--symlink", target, path]
    names = {"python3": python.executable, "python": python.executable} | ({"node": node.executable} if node else {})
    for name, executable in names.items():
        arguments += ["--symlink", executable, f"{_BIN}/{name}"]
    return [*arguments, "--ro-bind-try", _CERTIFICATES, _CERTIFICATES, "--proc", "/proc", "--dev", "/dev"]


def _own_files(files: Mapping[str, int], packages: Packages, layer: Path | None) -> list[str]:
    arguments: list[str] = []
    for name, path in packages.paths:
        arguments += ["--ro-bind", path, f"{_PACKAGES}/{name}"]
    for path, descriptor in files.items():
        arguments += ["--ro-bind-data", str(descriptor), f"{_HOME}/{path}"]
    return [*arguments, *(("--ro-bind", str(layer), _LAYER) if layer else ())]


def _stage(bwrap: str, host_folders: Sequence[str]) -> list[str]:
    """Has folders of the host below _STAGED, for a user who may not go through root's home on the way to them."""
    if not host_folders or os.geteuid() != 0:
        return []
    arguments = [bwrap, "--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", _STAGED]
    for number, folder in enumerate(host_folders):
        arguments += ["--ro-bind", folder, f"{_STAGED}/{number}"]
    return [*arguments, "--"]


def _folders(size: str, host_folders: Sequence[str]) -> list[str]:
    """Folders in memory, then those of the host, which may be below; everything else is read-only from here on."""
    arguments: list[str] = []
    for folder in ("/work", "/inputs", "/tmp", "/dev/shm"):
        arguments += ["--size", size, "--tmpfs", folder]
    for number, folder in enumerate(host_folders):
        arguments += ["--ro-bind", f"{_STAGED}/{number}" if os.geteuid() == 0 else folder, folder]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/work"]
