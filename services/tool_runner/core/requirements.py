"""The packages of a tool, checked: names and versions of packages in an index, and nothing else. Pure.

A list is JSON: `[{"name": "requests", "version": "2.32.3"}, {"name": "httpx[http2]", "version": ">=0.28,<1"},
{"name": "lodash", "version": null}]`. Addresses, paths, options of the installer and version control are no names and
no versions, so none of them gets through.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from services.common.core.refusals import Refused
from services.tool_runner.core.job import Language
from services.tool_runner.core.model import Tool

REASON = "REQUIREMENTS_INVALID"
MOST = 100
_MOST_CHARS = 64 * 1024
# PEP 508 and 440, without markers and addresses.
_PIP_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_PIP_EXTRAS = re.compile(r"\[[A-Za-z0-9._-]{1,60}(?:,[A-Za-z0-9._-]{1,60}){0,9}\]")
_PIP_VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+!_-]{0,60}(?:\.\*)?")
_PIP_RANGE = re.compile(rf"(?:~=|===?|!=|<=|>=|<|>)(?:{_PIP_VERSION.pattern})")
# What npm takes as a package's name; versions, ranges without spaces, and tags.
_NPM_NAME = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]{0,60}/)?[A-Za-z0-9~][A-Za-z0-9._~-]{0,120}")
_NPM_VERSION = re.compile(r"(?:[\^~]|[<>]=?|=)?[A-Za-z0-9*][A-Za-z0-9.+*-]{0,60}")


def of_tool(tool: Tool, language: Language) -> tuple[str, ...]:
    """Returns the requirements that concern the tool's language; raises Refused (REQUIREMENTS_INVALID)."""
    if language is Language.NODE:
        return parse_npm(tool.npm_requirements)
    return parse_pip(tool.pip_requirements)


def parse_pip(text: str) -> tuple[str, ...]:
    """Returns them as pip takes them on its command line, sorted; raises Refused (REQUIREMENTS_INVALID)."""
    return _parse(text, "pip_requirements", _pip)


def parse_npm(text: str) -> tuple[str, ...]:
    """Returns them as npm takes them on its command line, sorted; raises Refused (REQUIREMENTS_INVALID)."""
    return _parse(text, "npm_requirements", _npm)


def key_of(requirements: Sequence[str], *place: str) -> str:
    """Returns the name of what they come to in one place: language, image, versions of what is there."""
    return hashlib.sha256(json.dumps([list(place), list(requirements)]).encode()).hexdigest()


def _parse(text: str, member: str, one: Any) -> tuple[str, ...]:
    if not text.strip() or text.strip() == "null":
        return ()
    try:
        entries = json.loads(text) if len(text) <= _MOST_CHARS else None
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list) or len(entries) > MOST:
        raise Refused(REASON, f'{member} is to be a list of at most {MOST} objects {{"name": ..., "version": ...}}')
    versions: dict[str, str] = {}  # the last one of a name holds
    for index, entry in enumerate(entries):
        try:
            name, requirement = one(*_parts(entry))
        except ValueError as problem:
            raise Refused(REASON, f"{member}[{index}]: {problem}") from None
        versions[name] = requirement
    return tuple(sorted(versions.values()))


def _parts(entry: Any) -> tuple[str, str]:
    match entry:
        case {"name": str(name)} if isinstance(version := entry.get("version") or "", str):
            return name.strip(), version.strip()
    raise ValueError('it is to be an object {"name": ..., "version": ...}, the version a text or null')


def _pip(name: str, version: str) -> tuple[str, str]:
    bare, bracket, extras = name.partition("[")
    bare, extras = bare.strip(), extras.replace(", ", ",")
    if not _PIP_NAME.fullmatch(bare) or (bracket and not _PIP_EXTRAS.fullmatch(bracket + extras)):
        raise ValueError(f"{name!r} is not the name of a package")
    if _PIP_VERSION.fullmatch(version):
        version = f"=={version}"
    elif version:
        ranges = [re.sub("^([~=!<>]+) +", r"\1", part.strip()) for part in version.split(",")]
        if not all(map(_PIP_RANGE.fullmatch, ranges)):
            raise ValueError(f"{version!r} is not a version, nor a range of them such as '>=1.2,<2'")
        version = ",".join(ranges)
    return re.sub(r"[-_.]+", "-", bare).lower(), f"{bare}{bracket}{extras}{version}"


def _npm(name: str, version: str) -> tuple[str, str]:
    if not _NPM_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a package")
    if version and not _NPM_VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is not a version, nor a range such as '^1.2' or '2.x'")
    return name, f"{name}@{version}" if version else name
