"""The one container that a tool ever gets. Pure: the engine's JSON, readable line by line."""

import json
from typing import Any

from services.tool_runner.job import MIB, Limits
from services.tool_runner.sandboxes.seccomp import container_profile

SANDBOX_LABEL = "loci.sandbox"
OWNER_LABEL = "loci.owner"
_UNPRIVILEGED = "65534:65534"
_COMMAND = ["python3", "-I", "/opt/loci/worker.py"]
_ENVIRONMENT = ["HOME=/work", "TMPDIR=/tmp", "LANG=C.UTF-8", "USER=nobody"]
# No request gets more, whatever it asks for.
_CEILING = Limits(seconds=3600, memory=4096 * MIB, processes=512, cpus=4.0, disk=1024 * MIB)


def clip(limits: Limits) -> Limits:
    """The limits, none above the ceiling of this process."""
    asked, most = vars(limits), vars(_CEILING)
    return Limits(**{name: min(value, most[name]) if name in _CLIPPED else value for name, value in asked.items()})


_CLIPPED = ("seconds", "memory", "processes", "cpus", "disk")


def shape(limits: Limits) -> tuple[int, int, float, int]:
    """What is fixed when a container is made; a warm one serves only calls of its own shape."""
    return limits.memory, limits.processes, limits.cpus, limits.disk


def container_config(image: str, machine: str, limits: Limits, owner: str) -> dict[str, Any]:
    """Body of `POST /containers/create` (Docker Engine API 1.41). `machine`: `uname -m` of its host."""
    tmpfs = f"rw,nosuid,nodev,noexec,uid=65534,gid=65534,mode=1777,size={limits.disk}"
    return {
        "Image": image,
        "Entrypoint": _COMMAND,
        "Cmd": [],
        "Env": _ENVIRONMENT,
        "User": _UNPRIVILEGED,
        "WorkingDir": "/work",
        "Hostname": "sandbox",
        "Labels": {SANDBOX_LABEL: "1", OWNER_LABEL: owner},
        "Healthcheck": {"Test": ["NONE"]},
        "NetworkDisabled": True,
        # The worker ends when its stdin does, and its stdin ends with the connection of this process.
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "HostConfig": {
            "NetworkMode": "none",
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", "seccomp=" + json.dumps(container_profile(machine))],
            "Tmpfs": {"/work": tmpfs, "/tmp": tmpfs},
            "ShmSize": limits.disk,
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "PidsLimit": limits.processes,
            "NanoCpus": int(limits.cpus * 1e9),
            "OomScoreAdj": 500,
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
            "AutoRemove": False,
        },
    }
