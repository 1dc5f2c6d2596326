"""Names of files: which are taken, and where each file of a call is found. Pure."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from uuid import UUID

from services.common.core.refusals import Refused
from services.tool_runner.core.model import KeptFile

INPUTS = "/inputs"
LONGEST_NAME = 255
_SEGMENT = re.compile(r"[^\x00-\x1f\x7f-\x9f\\/]+")


def is_name(name: str) -> bool:
    """Returns whether it is a relative path that means the same everywhere."""
    segments = name.split("/")
    plain = all(_SEGMENT.fullmatch(segment) and segment not in (".", "..") for segment in segments)
    return plain and len(name) <= LONGEST_NAME and name.encode("utf-8", "replace").decode() == name


def check_name(name: str) -> str:
    """Raises Refused (EXECUTION_FILE_INVALID)."""
    if not is_name(name):
        rule = f"a relative path of 1 to {LONGEST_NAME} characters, without '..', control characters and backslashes"
        raise Refused("EXECUTION_FILE_INVALID", f"{name[:80]!r} cannot be the name of a file: it must be {rule}")
    return name


def input_paths(files: Iterable[KeptFile]) -> dict[UUID, str]:
    """Returns a name below /inputs for each file: its own, or with a number where that is taken."""
    names: dict[UUID, str] = {}
    for file in files:
        if file.id not in names:
            names[file.id] = _free(file.name, set(names.values()))
    return names


def _free(name: str, taken: set[str]) -> str:
    path, number, candidate = PurePosixPath(name), 1, name
    while _clashes(candidate, taken):
        number += 1
        candidate = f"{number}/{path.name}"
    return candidate


def _clashes(name: str, taken: set[str]) -> bool:
    return name in taken or any(one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in taken)
