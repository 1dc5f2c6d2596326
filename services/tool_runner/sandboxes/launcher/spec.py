"""The one container that a tool ever gets. Pure: the engine's JSON, readable line by line."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.tool_runner.core.job import MIB, HostFolder
from services.tool_runner.sandboxes.seccomp import container_profile

SANDBOX_LABEL = "loci.sandbox"
OWNER_LABEL = "loci.owner"
LAYER_LABEL = "loci.layer"
_UNPRIVILEGED = "65534:65534"
_COMMAND = ["python3", "-I", "/opt/loci/worker", "--language"]
_LANGUAGES = ("python", "node")
_ENVIRONMENT = ["HOME=/work", "TMPDIR=/tmp", "LANG=C.UTF-8", "USER=nobody"]
_KEY = re.compile("[0-9a-f]{16,64}")


@dataclass(frozen=True)
class ContainerRequest:
    """The limits of a container; nobody gets more than `MOST`. `layer`: the key of one, "" for none."""

    language: str
    layer: str

    memory: int
    processes: int
    cpus: float
    disk: int
    host_folders: tuple[HostFolder, ...] = ()


MOST: Mapping[str, Any] = {"memory": 4096 * MIB, "processes": 512, "cpus": 4.0, "disk": 2048 * MIB}


def read_request(fields: Mapping[str, Any]) -> ContainerRequest:
    """Returns what OPEN brought, nothing above the ceiling of this process; raises KeyError or TypeError."""
    if fields["language"] not in _LANGUAGES:
        raise KeyError(f"no language {fields['language']}")
    return ContainerRequest(
        fields["language"],
        str(fields["layer"]),
        **{name: min(fields[name], MOST[name]) for name in MOST},
        host_folders=tuple(HostFolder(str(path), bool(writable)) for path, writable in fields.get("host_folders", ())),
    )


def layer_image(key: str, base: str) -> str:
    """Returns the name of the image with that layer on the image of id `base`; raises ValueError."""
    if not _KEY.fullmatch(key):
        raise ValueError("a layer's key is hexadecimal")
    return f"loci-layer:{key[:40]}-{base.removeprefix('sha256:')[:12]}"


def container_config(
    image: str, machine: str, request: ContainerRequest, owner: str, runtime: str = ""
) -> dict[str, Any]:
    """Returns the body of `POST /containers/create` (Docker Engine API 1.41). `machine`: `uname -m` of its host."""
    tmpfs = f"rw,nosuid,nodev,noexec,uid=65534,gid=65534,mode=1777,size={request.disk}"
    return {
        "Image": image,
        "Entrypoint": [*_COMMAND, request.language, "--memory", str(request.memory)],
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
            "Tmpfs": dict.fromkeys(("/work", "/tmp", "/inputs"), tmpfs),
            "Mounts": [
                {"Type": "bind", "Source": folder.path, "Target": folder.path, "ReadOnly": not folder.writable}
                for folder in request.host_folders
            ],
            "ShmSize": request.disk,
            "Memory": request.memory,
            "MemorySwap": request.memory,
            "PidsLimit": request.processes,
            "NanoCpus": int(request.cpus * 1e9),
            "OomScoreAdj": 500,
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
            "AutoRemove": False,
            **({"Runtime": runtime} if runtime else {}),
        },
    }
