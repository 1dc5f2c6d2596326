"""Folders of this machine that programs of MCP servers see at their own paths (LOCI_MCP_STDIO_PATHS)."""

import os
from collections.abc import Iterable, Sequence

from services.common.core.refusals import Refused
from services.tool_runner.core.job import HostFolder

# What a sandbox has of its own: a folder of the host with one of these in it would hide it.
_OF_SANDBOXES = ("/proc", "/dev", "/sys", "/opt/loci", "/work", "/inputs", "/tmp")
_NOT_SHOWN = "MCP_FOLDER_NOT_SHOWN"
_NEVER = ("/proc", "/dev", "/sys")


def parse_host_folders(text: str, own: Iterable[str]) -> tuple[HostFolder, ...]:
    """Returns the folders of a list with colons: `/srv/mcp:/data:rw`, where `rw` makes the one before it writable.

    `own`: Loci's folders and keys, which nobody is shown. Raises ValueError, whose text says what to change.
    """
    kept = tuple(os.path.realpath(path) for path in own if path)
    found: dict[str, bool] = {}
    last = ""
    for part in filter(None, map(str.strip, text.split(":"))):
        if part not in ("ro", "rw"):
            last = _checked(part, kept)
        elif not last:
            raise ValueError(f"{part} stands behind the folder that it is about: /data:{part}")
        found[last] = found.get(last, False) or part == "rw"
    return tuple(HostFolder(path, writable) for path, writable in sorted(found.items()))


def chosen_folders(shown: Sequence[HostFolder], paths: Sequence[str]) -> tuple[HostFolder, ...]:
    """Returns those of the operator's folders that a program is to see; all of them where it names none.

    Only whole ones: a folder within one that a program may write to can be made a link to anywhere. Raises Refused.
    """
    if not paths:
        return tuple(shown)
    by_path = {folder.path: folder for folder in shown}
    chosen = {}
    for path in paths:
        name = os.path.normpath(path.removesuffix(":ro"))
        if name not in by_path:
            there = ", ".join(by_path) or "none"
            raise Refused(_NOT_SHOWN, f"{name} is not shown: LOCI_MCP_STDIO_PATHS has to name it (it names {there})")
        chosen[name] = HostFolder(name, by_path[name].writable and not path.endswith(":ro"))
    return tuple(chosen.values())


def _checked(path: str, own: tuple[str, ...]) -> str:
    if not os.path.isabs(path) or not os.path.isdir(path):
        raise ValueError(f"{path} is not a folder of this machine by its whole path")
    folder, real = os.path.normpath(path), os.path.realpath(path)
    if any(_holds(each, _OF_SANDBOXES) or any(_is_in(each, place) for place in _NEVER) for each in (folder, real)):
        raise ValueError(f"{path} cannot be shown: name the folders in it that programs need")
    if _holds(real, own) or any(_is_in(real, place) for place in own):
        raise ValueError(f"{path} cannot be shown: Loci keeps its data or its keys there")
    return folder


def _holds(folder: str, places: Iterable[str]) -> bool:
    return any(_is_in(place, folder) for place in places)


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder
