"""One call as a sandbox gets it, and how it ended there. Plain values, also inside the launcher."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

MIB = 1024 * 1024


class ExitReason(StrEnum):
    """The way a call in a sandbox ended. Everything but OK comes with an error."""

    OK = "ok"
    RAISED = "raised"  # the tool's code raised
    TIMEOUT = "timeout"
    MEMORY = "memory"
    KILLED = "killed"  # the tool's process died of something that is not one of these limits
    OUTPUT_TOO_LARGE = "output_too_large"
    BAD_RESULT = "bad_result"  # what it returned is not JSON


class Language(StrEnum):
    """The language a worker runs. NODE takes JavaScript and TypeScript, whose types it strips."""

    PYTHON = "python"
    NODE = "node"


class Mode(StrEnum):
    """The use that is made of the source."""

    CALL = "call"  # its function is called with the arguments; the result is what it returns
    SCRIPT = "script"  # it is run as a program; the result is the value of its last expression, null without one
    PROCESS = "process"  # `argv` is run, and spoken to on its stdin and stdout


@dataclass(frozen=True)
class Limits:
    """The limits of one call. Sizes in bytes, times in seconds."""

    seconds: float = 180.0
    memory: int = 512 * MIB  # of all processes together, files in the work directory included
    processes: int = 64  # threads count as processes
    cpus: float = 1.0
    disk: int = 64 * MIB  # of the work directory, and of any one file
    capture: int = 64 * 1024  # kept of stdout, and of stderr
    flood: int = 16 * MIB  # printed, before the tool is stopped
    result: int = MIB  # of the result's JSON
    files: int = 64  # produced files that are kept
    file_bytes: int = 16 * MIB  # of all of them together


@dataclass(frozen=True)
class File:
    """A file given to a call or made by one. `name` is a relative path, `/` between folders."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Layer:
    """Packages that a call finds installed: the tar `archive`, unpacked at /opt/loci/layer. `key` is its content."""

    key: str
    archive: Path


@dataclass(frozen=True)
class HostFolder:
    """A folder of the machine, which a program sees at the same path."""

    path: str
    writable: bool = False


@dataclass(frozen=True)
class HostView:
    """The parts of the machine that a program of mode PROCESS sees: none, unless the operator opens them.

    programs: those of the machine, with their libraries, read-only. home: a folder that is its /work, and stays.
    names: (name, address) of hosts that the sandbox itself answers for.
    """

    folders: tuple[HostFolder, ...] = ()
    programs: bool = False
    home: str = ""
    names: tuple[tuple[str, str], ...] = ()


NOTHING_SHOWN = HostView()


@dataclass(frozen=True)
class Job:
    """One call. Arguments, environment and state travel as data; none of them becomes part of the source."""

    source: str
    function: str
    arguments: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Limits = field(default_factory=Limits)
    language: Language = Language.PYTHON
    mode: Mode = Mode.CALL
    argv: tuple[str, ...] = ()
    inputs: tuple[File, ...] = ()  # read-only, below /inputs
    agent_state: str = ""  # JSON text; given as the parameter `agent_state`
    client: bool = False  # whether `client`, the Letta SDK's, is put into the tool's module
    layer: Layer | None = None
    # Calls of one session may share a worker and its work directory; processes never survive. Never of two tenants.
    session: str = ""
    tenant: str = ""  # opaque; places that are bound to tenants go by it
    host: HostView = NOTHING_SHOWN
    # What the schema calls the arguments, in its order: JavaScript takes them by position. Empty: as they came.
    parameters: tuple[str, ...] = ()
    # What the client said the arguments are, where it did: in Python their objects have attributes then.
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """A piece of what a call printed; `sequence` rises by one with each, from 1."""

    sequence: int
    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True)
class ToolError:
    """The error of a tool: the exception's type name, its message, frames in the tool's own code."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True)
class Result:
    """`result` is JSON text, and present only with OK; `error` is present with everything else."""

    reason: ExitReason
    result: str | None = None
    error: ToolError | None = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False  # more was printed than was kept
    files: tuple[File, ...] = ()  # what it left in its work directory
    files_dropped: int = 0  # how many were over a limit, or no regular files
    block_edits: tuple[tuple[str, str], ...] = ()  # (label, value) of blocks it changed in `agent_state`


class SandboxUnavailable(Exception):
    """Nothing ran, and nothing will until someone acts; the text says what to do."""
