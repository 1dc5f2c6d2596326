"""One call as a sandbox gets it, and how it ended there. Plain values, also inside the launcher."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MIB = 1024 * 1024


class ExitReason(StrEnum):
    """How a call in a sandbox ended. Everything but OK comes with an error."""

    OK = "ok"
    RAISED = "raised"  # the tool's code raised
    TIMEOUT = "timeout"
    MEMORY = "memory"
    KILLED = "killed"  # the tool's process died of something that is not one of these limits
    OUTPUT_TOO_LARGE = "output_too_large"
    BAD_RESULT = "bad_result"  # what it returned is not JSON


@dataclass(frozen=True)
class Limits:
    """What one call may use. Sizes in bytes, times in seconds."""

    seconds: float = 180.0
    memory: int = 512 * MIB  # of all processes together, files in the work directory included
    processes: int = 64  # threads count as processes
    cpus: float = 1.0
    disk: int = 64 * MIB  # of the work directory, and of any one file
    capture: int = 64 * 1024  # kept of stdout, and of stderr
    flood: int = 16 * MIB  # printed, before the tool is stopped
    result: int = MIB  # of the result's JSON


@dataclass(frozen=True)
class Job:
    """One call. Arguments and environment travel as data; neither becomes part of the source."""

    source: str
    function: str
    arguments: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class ToolError:
    """What went wrong in the tool: the exception's type name, its message, frames in the tool's own code."""

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


class SandboxUnavailable(Exception):
    """Nothing ran, and nothing will until someone acts; the text says what to do."""
