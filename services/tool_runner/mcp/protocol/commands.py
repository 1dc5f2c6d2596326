"""Commands of npx or uvx: packages to install beforehand, and the program to run of them. Pure.

    npx -y @modelcontextprotocol/server-everything stdio  ->  that package, its one program, the argument `stdio`
    uv --directory /srv/mine run server.py                ->  that script, with the Python of the folder's .venv
    uvx --from mcp-server-git==2025.1 mcp-server-git      ->  that package, the program named

Nothing is installed when the program runs: its sandbox has no network but what the server's `network` allows.
A package's program is run as `node FILE`, as npx comes to: programs look at `argv` and at `require.main`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from services.common.core.refusals import Refused
from services.tool_runner.core.job import Language
from services.tool_runner.mcp_servers.model import INVALID

# By what people write: the words of the command, and whose packages they are.
_NPM: tuple[tuple[str, ...], ...] = (("npx",), ("npm", "exec"), ("npm", "x"))
_PIP: tuple[tuple[str, ...], ...] = (("uvx",), ("uv", "tool", "run"), ("pipx", "run"))
_PYTHONS = frozenset({"python", "python3"})
_NODES = frozenset({"node", "nodejs"})
# How to install is Loci's affair: these change nothing here.
_FLAGS = frozenset(
    {
        "-y",
        "--yes",
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "--no-install",
        "--no-audit",
        "--no-fund",
        "--no-progress",
        "--",
    }
    | {"--prefer-offline", "--prefer-online", "--offline", "--no-cache", "-n", "--isolated", "--ignore-existing"}
    | {"--refresh", "--reinstall", "--upgrade", "-U", "--no-config", "--native-tls", "--legacy-peer-deps", "--force"}
)
_UV_FLAGS = frozenset({"--no-project", "--frozen", "--locked", "--no-sync", "--offline", "--script", "-s", "--no-dev"})
_UV_VALUES = ("--directory", "--project", "--with")
_PIP_SPEC = re.compile(r"(?P<name>[A-Za-z0-9._-]+(\[[A-Za-z0-9._,-]+\])?)(?P<version>[@=<>~!].*)?")

_RUN_NODE = Path(__file__).with_name("npm_program.py").read_text()
_RUN_UV = Path(__file__).with_name("uv_program.py").read_text()
_RUN_PYTHON = """
import sys
from importlib.metadata import entry_points
name, sys.argv = sys.argv[1], sys.argv[1:]
found = [entry for entry in entry_points(group="console_scripts") if entry.name == name]
if not found:
    sys.exit(f"{name} is no program of the packages")
sys.exit(found[0].load()())
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run. `requirements` as a tool's pip_requirements or npm_requirements, by `language`."""

    argv: tuple[str, ...]
    language: Language = Language.PYTHON
    requirements: str = ""


def program_of(command: str, args: Sequence[str]) -> Program:
    """Returns what a command comes to. Raises Refused."""
    words = (PurePosixPath(command).name, *args)
    for beginning in _NPM:
        if words[: len(beginning)] == beginning:
            return _npm(words[len(beginning) :])
    for beginning in _PIP:
        if words[: len(beginning)] == beginning:
            return _pip(words[len(beginning) :])
    if words[0] == "uv" and (run := _uv_run_words(words[1:])) is not None:
        return _uv_run(run)
    # Sandboxes hold the one or the other.
    return Program((command, *args), Language.NODE if words[0] in _NODES else Language.PYTHON)


def _npm(words: Sequence[str]) -> Program:
    packages, rest = _options(words, ("-p", "--package"))
    if not rest and not packages:
        raise _refusal("npx: it names no package")
    spec, program = (packages[0], rest[0] if rest else "") if packages else (rest[0], "")
    name, version = _npm_parts(spec)
    needed = [{"name": name, "version": version}, *(_package_name(*_npm_parts(other)) for other in packages[1:])]
    argv = ("python3", "-I", "-S", "-c", _RUN_NODE, name, program, *rest[1:])
    return Program(argv, Language.NODE, json.dumps(needed))


def _pip(words: Sequence[str]) -> Program:
    packages, rest = _options(words, ("--from", "--spec", "--with"))
    if not rest:
        raise _refusal("uvx: it names no program")
    specs = packages or [rest[0]]
    needed = [_package_name(*_pip_parts(spec)) for spec in specs]
    named = any(word in ("--from", "--spec") for word in words)
    if not named and packages:
        needed.insert(0, _package_name(*_pip_parts(rest[0])))
    program = rest[0] if named else _pip_parts(rest[0])[0].partition("[")[0]
    if named and program in _PYTHONS:
        return Program(("python3", "-P", *rest[1:]), Language.PYTHON, json.dumps(needed))
    # -P: what lies in the working folder is no module of the program's.
    return Program(("python3", "-P", "-c", _RUN_PYTHON, program, *rest[1:]), Language.PYTHON, json.dumps(needed))


def _uv_run_words(words: Sequence[str]) -> list[str] | None:
    """Returns the words of `uv run`, with the options of uv itself before them; None where it is another command."""
    options, left = list[str](), list(words)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        options.append(option)
        if option in _UV_VALUES and left:
            options.append(left.pop(0))
    return [*options, *left[1:]] if left[:1] == ["run"] else None


def _uv_run(words: Sequence[str]) -> Program:
    """Own code: in its project's environment, or in the packages that `--with` names."""
    folder, packages, rest = "", list[str](), list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "--module", "-"):
        option, _, value = rest.pop(0).partition("=")
        if option in _UV_VALUES and not value and not rest:
            raise _refusal(f"{option} names nothing")
        value = value or (rest.pop(0) if option in _UV_VALUES else "")
        if option in ("--directory", "--project"):
            folder = value
        elif option == "--with":
            packages += value.split(",")
        elif option not in (*_FLAGS, *_UV_FLAGS):
            raise _refusal(f"the option {option[:50]} of uv run is not known here; leave it out")
    if not rest:
        raise _refusal("uv run: it names no program")
    needed = [_package_name(*_pip_parts(spec)) for spec in packages]
    argv = ("python3", "-P", "-c", _RUN_UV, folder, *rest)
    return Program(argv, Language.PYTHON, json.dumps(needed) if needed else "")


def _options(words: Sequence[str], named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the packages that options name, and what begins with the first word that is no option."""
    packages: list[str] = []
    left = list(words)
    while left and left[0].startswith("-"):
        option, _, value = left.pop(0).partition("=")
        if option in named:
            if not value and not left:
                raise _refusal(f"{option} names no package")
            packages.append(value or left.pop(0))
        elif option in ("--python", "-p"):
            raise _refusal(
                f"{option}: the Python of the sandbox runs it; leave it out, or choose another image or machine"
            )
        elif option not in _FLAGS:
            raise _refusal(f"the option {option[:50]} of npx or uvx is not known here; leave it out")
    return packages, left


def _npm_parts(spec: str) -> tuple[str, str]:
    if ":" in spec or spec.startswith(("/", ".")) or spec.count("/") > spec.startswith("@"):
        raise _no_package(spec)
    at = spec.find("@", 1)
    return (spec, "") if at < 0 else (spec[:at], spec[at + 1 :])


def _pip_parts(spec: str) -> tuple[str, str]:
    match = _PIP_SPEC.fullmatch(spec)
    if match is None:
        raise _no_package(spec)
    version = (match["version"] or "").removeprefix("@")
    return match["name"], "" if version == "latest" else version


def _no_package(spec: str) -> Refused:
    return _refusal(
        f"{spec[:100]!r} is not a package of the index. What lies in git or in a folder, install on this machine, show "
        "its folder (LOCI_MCP_STDIO_PATHS) and name its program; or run programs as yourself (LOCI_MCP_STDIO=host)"
    )


def _package_name(name: str, version: str) -> dict[str, str]:
    return {"name": name, "version": version}


def _refusal(problem: str) -> Refused:
    return Refused(INVALID, f"args: {problem}")
