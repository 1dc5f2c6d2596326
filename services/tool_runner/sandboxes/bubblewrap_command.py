"""The one command line that a tool in bubblewrap ever gets. Pure, but for asking who we are."""

import os
import shutil

from services.tool_runner.job import Limits, SandboxUnavailable
from services.tool_runner.sandboxes.python_runtime import PythonRuntime

# Where the runner is root, tools are not: one user per sandbox at work, from a range that systemd's
# allocation table (UIDS-GIDS.md) leaves free.
FIRST_UID, SANDBOXES = 60_720, 256

_INSIDE_UID = "65534"
_WORKER = "/loci/worker.py"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",
}


def command(
    bwrap: str, runtime: PythonRuntime, limits: Limits, uid: int, *, seccomp: int, worker: int, info: int
) -> list[str]:
    """argv; `seccomp`, `worker` (both read to their end) and `info` (written) are descriptors that bwrap inherits."""
    namespaces = ["--unshare-all", "--unshare-user", "--hostname", "sandbox"]
    user = ["--uid", _INSIDE_UID, "--gid", _INSIDE_UID, "--cap-drop", "ALL"]
    life = ["--die-with-parent", "--new-session", "--as-pid-1", "--info-fd", str(info), "--seccomp", str(seccomp)]
    return [
        *_drop_root(uid),
        *(bwrap, *namespaces, *user, *life),
        *_environment(),
        *_files(runtime, str(limits.disk), str(worker)),
        *(runtime.executable, "-I", _WORKER),
    ]


def _drop_root(uid: int) -> list[str]:
    """Become `uid` first where this process is root: to /proc/sys, host root is root in any namespace."""
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


def _files(runtime: PythonRuntime, size: str, worker: str) -> list[str]:
    """Python, read-only; work directories in memory; nothing else of the host."""
    arguments: list[str] = []
    for path in runtime.mounts:
        arguments += ["--ro-bind", path, path]
    for target, path in runtime.links:
        arguments += ["--symlink", target, path]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--ro-bind-data", worker, _WORKER]
    for folder in ("/work", "/tmp", "/dev/shm"):
        arguments += ["--size", size, "--tmpfs", folder]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/work"]
