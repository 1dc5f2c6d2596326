"""The meaning of a receipt: whether a call may run, and the text the model reads of its end. Pure.

    reserved -> started -> done
                      `--> unknown    its owner died while it ran

A tool acts at most once. `reserved` with a dead owner may run; `started` with a live owner is waited for;
`started` with a dead owner becomes `unknown`, is told as such, and is run again only where the tool is
idempotent. The same key with other arguments is refused.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.tool_runner.core.job import ExitReason, File, Limits, Result, ToolError
from services.tool_runner.core.model import NO_TOOL, Ending, NewFile, Outcome, Receipt, State, Tool, ToolType
from services.tool_runner.core.storable import storable, storable_json
from services.tool_runner.executions.files.rules.names import is_name

_STDERR = 2  # in `output_order`
_OUTCOMES = {
    ExitReason.OK: Outcome.SUCCESS,
    ExitReason.RAISED: Outcome.RAISED,
    ExitReason.TIMEOUT: Outcome.TIMEOUT,
    ExitReason.MEMORY: Outcome.OUT_OF_MEMORY,
    ExitReason.KILLED: Outcome.KILLED,
    ExitReason.OUTPUT_TOO_LARGE: Outcome.BAD_OUTPUT,
    ExitReason.BAD_RESULT: Outcome.BAD_OUTPUT,
}


@dataclass(frozen=True, slots=True)
class Settled:
    """It ended: the receipt is the answer."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Another replica runs it, or is about to."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Its owner is dead and it may run: make it ours."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Its owner died while it ran: it becomes unknown."""


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key belongs to another call."""


Claim = Settled | Wait | TakeOver | Abandon | KeyReused


def claim_of(receipt: Receipt, tool_id: object, arguments_hash: str, *, idempotent: bool) -> Claim:
    """Returns what a second request does about the receipt that it found."""
    if receipt.tool_id == NO_TOOL:
        return Settled()
    if (receipt.tool_id, receipt.arguments_hash) != (tool_id, arguments_hash):
        return KeyReused()
    match receipt.state:
        case State.DONE:
            return Settled()
        case State.UNKNOWN:
            return TakeOver() if idempotent else Settled()
        case State.RESERVED:
            return Wait() if receipt.owner_alive else TakeOver()
        case State.STARTED:
            return Wait() if receipt.owner_alive else Abandon()


def lost_ending(name: str) -> Ending:
    """Returns the end of a call whose runner died while it ran."""
    return Ending(
        state=State.UNKNOWN,
        outcome=Outcome.NONE,
        tool_return=f"{name} was interrupted: the tool runner stopped while it ran. Whether it acted, or how far "
        "it got, is not known, and it was not run again. Check before you repeat it.",
    )


def cancelled_ending(name: str) -> Ending:
    """Returns the end of a call that CancelExecution ended."""
    text = f"{name} was cancelled. What it did until then stands."
    return Ending(state=State.DONE, outcome=Outcome.CANCELLED, tool_return=text)


def forestalled_ending() -> Ending:
    """Returns the end of a call that CancelExecution ended before it came."""
    return Ending(
        state=State.DONE,
        outcome=Outcome.CANCELLED,
        tool_return="The call was cancelled before it began. Nothing was run.",
    )


def refused_ending(name: str, problems: list[str]) -> Ending:
    """Returns the end of a call whose arguments break the tool's schema."""
    lines = [f"Nothing was run: the arguments of {name} do not fit its schema.", *problems]
    text: str = storable("\n".join(lines))
    return Ending(
        state=State.DONE,
        outcome=Outcome.INVALID_ARGUMENTS,
        tool_return=text,
        stderr=text,
        output_order=((_STDERR, len(text)),),
    )


def failed_ending(problem: str) -> Result:
    """Returns the end of a call whose runner failed, and not its tool."""
    message = f"{problem}; what it did until then stands"
    return Result(ExitReason.KILLED, error=ToolError("RunnerFailed", message))


def with_error_output(tool: Tool, result: Result) -> Result:
    """Returns the result with its error at the end of stderr, as the reference has it, and as Python itself prints one.

    An MCP server has no stderr: its error is the answer.
    """
    error = result.error
    if error is None or tool.tool_type is ToolType.EXTERNAL_MCP:
        return result
    if result.reason is ExitReason.RAISED:
        head = f"Traceback (most recent call last):\n{error.traceback.rstrip()}\n" if error.traceback else ""
        text = f"{head}{error.type}: {error.message}\n"
    else:
        text = f"{_failure(tool, result)}\n"
    return replace(result, stderr=result.stderr + text)


def ending_of(tool: Tool, result: Result) -> Ending:
    """Returns the end of a call that its runner ended, in whatever way; `output.py` adds its output."""
    json_text = storable_json(result.result) if result.result else ""
    text = _return_text(json_text) if json_text else _failure(tool, result)
    return Ending(
        state=State.DONE,
        outcome=_OUTCOMES[result.reason],
        tool_return=_cut(storable(text), tool.return_char_limit),
        result=json_text,
        block_edits=tuple((storable(label), storable(value)) for label, value in result.block_edits),
    )


def files_within(result: Result, limits: Limits) -> list[File]:
    """Returns the call's files that fit its limits; the sandbox is not trusted with that."""
    files: list[File] = []
    room = limits.file_bytes
    for file in result.files:
        if len(files) < limits.files and len(file.content) <= room and is_name(file.name):
            files.append(file)
            room -= len(file.content)
    return files


def with_files(ending: Ending, files: Sequence[NewFile], dropped: int) -> Ending:
    """Returns it with these files and a line for the model that names them; `dropped`: how many more there were."""
    if not files and not dropped:
        return ending
    names = ", ".join(f"{file.name} (execfile-{file.id}, {len(file.content)} bytes)" for file in files)
    lost = f"{dropped} not kept: over a limit, or no regular files" if dropped else ""
    line = "Files made: " + "; ".join(filter(None, (names, lost)))
    return replace(ending, tool_return=f"{ending.tool_return}\n{line}", files=tuple(files))


def _return_text(result: str) -> str:
    """Returns the result for the model: text as it is, all else as Python writes it (the reference)."""
    return str(json.loads(result))


def _failure(tool: Tool, result: Result) -> str:
    error = result.error
    assert error is not None
    match result.reason:
        case ExitReason.RAISED if tool.tool_type is ToolType.EXTERNAL_MCP:
            return error.message
        case ExitReason.RAISED:
            # The frames of a program that the model wrote are its own to mend; those of a tool are in stderr.
            its_own = tool.tool_type is ToolType.LETTA_BUILTIN and error.traceback
            frames = f"\n{error.traceback.rstrip()}" if its_own else ""
            return f"Error executing function {tool.name}: {error.type}: {error.message}{frames}"
        case ExitReason.TIMEOUT:
            return f"{tool.name} was stopped: {error.message}. What it did until then stands."
    return f"{tool.name} was stopped: {error.message}."


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... [function output was truncated: it has {len(text)} characters, {limit} are shown]"
