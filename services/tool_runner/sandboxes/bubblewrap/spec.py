"""The one command line that a worker in bubblewrap ever gets. Pure, but for asking who we are."""

import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path

from services.tool_runner.core.job import HostFolder, HostView, Language, SandboxUnavailable
from services.tool_runner.sandboxes.bubblewrap.node_runtime import NodeRuntime
from services.tool_runner.sandboxes.bubblewrap.packages import Packages
from services.tool_runner.sandboxes.bubblewrap.python_runtime import PythonRuntime
from services.tool_runner.sandboxes.ports import Shape

# Where the runner is root, tools are not: one user per sandbox, from a range that systemd's
# allocation table (UIDS-GIDS.md) leaves free.
FIRST_UID, SANDBOXES = 60_720, 256
# And one per home that stays, always the same: its files are that user's.
_FIRST_HOME_UID, _HOMES = 60_976, 208

_INSIDE_UID = "65534"
_HOME = "/opt/loci"
_LAYER = f"{_HOME}/layer"
_PACKAGES = f"{_HOME}/packages"
_BIN = "/usr/local/bin"
_STAGED, _STAGED_HOME = "/mnt", "/mnt/home"
_WORK = "/work"
# Folders in which a system has its programs and libraries; on many, the short ones are links into /usr.
_OF_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_ENVIRONMENT = {
    "PATH": f"{_BIN}:/usr/bin:/bin",
    "HOME": "/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",
}
# Of the machine: its programs behind ours. Git is to read repositories whoever owns them; they are shown on purpose.
_WITH_HOST = {
    "PATH": f"{_HOME}/bin:{_BIN}:/usr/bin:/bin",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
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
    etc: Mapping[str, int],
    seccomp: int,
    info: int,
    block: int,
    mark: str,
) -> list[str]:
    """Returns argv. `files` (content by path below /opt/loci), `etc` (below /etc), `seccomp` (all read to their end),
    `info` (written) and `block` (a byte from there lets the worker start) are descriptors that bwrap inherits.
    `mark` says whose process it is, and does nothing."""
    namespaces = ["--unshare-all", "--unshare-user", "--hostname", "sandbox"]
    user = ["--uid", _INSIDE_UID, "--gid", _INSIDE_UID, "--cap-drop", "ALL"]
    life = ["--die-with-parent", "--new-session", "--as-pid-1", "--seccomp", str(seccomp)]
    life += ["--info-fd", str(info), "--block-fd", str(block), "--unsetenv", mark]
    options = ["--language", shape.language.value]
    if shape.language is Language.NODE:
        options += ["--memory", str(shape.memory)]
    return [
        *_stage(bwrap, shape.host),
        *_drop_root(uid),
        *(bwrap, *namespaces, *user, *life),
        *_environment(shape.host),
        *_programs(python, node, shape.host),
        *_own_files(files, etc, packages),
        *_layer(shape, layer),
        *_folders(str(shape.disk), shape.host),
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


def home_uid(home: str) -> int:
    """Returns the user of a home, where this process is root."""
    return _FIRST_HOME_UID + zlib.crc32(home.encode()) % _HOMES


def _environment(host: HostView) -> list[str]:
    arguments = ["--clearenv"]
    for name, value in (_ENVIRONMENT | (_WITH_HOST if host.folders or host.programs else {})).items():
        arguments += ["--setenv", name, value]
    return arguments


def _programs(python: PythonRuntime, node: NodeRuntime | None, host: HostView) -> list[str]:
    """Returns Python and Node with what they need, read-only, under their usual names; `host` may show all others."""
    arguments, linked = _all_programs() if host.programs else ([], set())
    mounts = {path: path for path in python.mounts}
    if node:
        mounts |= {node.executable: node.executable, node.entry: f"{_HOME}/node"}
    for path, inside in mounts.items():
        arguments += ["--ro-bind", path, inside]
    for target, path in python.links:
        if path not in linked:
            arguments += ["--symlink", target, path]
    names_in = f"{_HOME}/bin" if host.programs else _BIN
    names = {"python3": python.executable, "python": python.executable} | ({"node": node.executable} if node else {})
    for name, executable in names.items():
        arguments += ["--symlink", executable, f"{names_in}/{name}"]
    return [*arguments, "--ro-bind-try", _CERTIFICATES, _CERTIFICATES, "--proc", "/proc", "--dev", "/dev"]


def _all_programs() -> tuple[list[str], set[str]]:
    """Returns the folders with programs and libraries, and which of them are links."""
    arguments: list[str] = []
    linked = {folder for folder in _OF_PROGRAMS if os.path.islink(folder)}
    for folder in _OF_PROGRAMS:
        if folder in linked:
            arguments += ["--symlink", os.readlink(folder), folder]
        else:
            arguments += ["--ro-bind-try", folder, folder]
    return [*arguments, "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"], linked


def _own_files(files: Mapping[str, int], etc: Mapping[str, int], packages: Packages) -> list[str]:
    arguments: list[str] = []
    for name, path in packages.paths:
        arguments += ["--ro-bind", path, f"{_PACKAGES}/{name}"]
    for folder, descriptors in ((_HOME, files), ("/etc", etc)):
        for path, descriptor in descriptors.items():
            arguments += ["--ro-bind-data", str(descriptor), f"{folder}/{path}"]
    return arguments


def _layer(shape: Shape, layer: Path | None) -> list[str]:
    """Returns the layer; programs with a home may write beside it, as some do with their logs, until they end."""
    if layer is None or not shape.host.home:
        return ["--ro-bind", str(layer), _LAYER] if layer else []
    arguments = ["--size", str(shape.disk), "--tmpfs", _LAYER]
    for name in ("python", "node_modules"):
        arguments += ["--ro-bind-try", f"{layer}/{name}", f"{_LAYER}/{name}"]
    return arguments


def _stage(bwrap: str, host: HostView) -> list[str]:
    """Has folders of the host below _STAGED, for a user who may not go through root's home on the way to them."""
    if not (host.folders or host.home) or os.geteuid() != 0:
        return []
    arguments = [bwrap, "--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", _STAGED]
    for number, folder in enumerate(host.folders):
        arguments += [_binding(folder), folder.path, f"{_STAGED}/{number}"]
    if host.home:
        arguments += ["--bind", host.home, _STAGED_HOME]
    return [*arguments, "--"]


def _folders(size: str, host: HostView) -> list[str]:
    """Folders in memory, then those of the host, which may be below; everything else is read-only from here on."""
    arguments: list[str] = []
    staged = os.geteuid() == 0
    for folder in ("/inputs", "/tmp", "/dev/shm", *(() if host.home else (_WORK,))):
        arguments += ["--size", size, "--tmpfs", folder]
    if host.home:
        arguments += ["--bind", _STAGED_HOME if staged else host.home, _WORK]
    for number, shown in enumerate(host.folders):
        arguments += [_binding(shown), f"{_STAGED}/{number}" if staged else shown.path, shown.path]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", _WORK]


def _binding(folder: HostFolder) -> str:
    return "--bind" if folder.writable else "--ro-bind"
