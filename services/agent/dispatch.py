"""Tool calls to who runs them: memory tools to memory, recall to ourselves, all else to the tool runner."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Protocol

import orjson

from services.agent.messages import Call, Return
from services.agent.ports import CallSite, Memory, Recall, ToolInfo, Tools
from services.common.errors import Cancelled, DeadlineExceeded, LociError, Unavailable

RECALL_TOOLS = frozenset({"conversation_search"})
MEMORY_TYPES = frozenset({"letta_core", "letta_memory_core", "letta_sleeptime_core", "letta_voice_sleeptime_core"})
_UNKNOWN = "It may or may not have taken effect."

_log = logging.getLogger(__name__)


class Runners(Protocol):
    """Who can run tools."""

    @property
    def memory(self) -> Memory: ...

    @property
    def tools(self) -> Tools: ...

    @property
    def recall(self) -> Recall: ...


async def run_calls(calls: Sequence[Call], site: CallSite, tools: Sequence[ToolInfo], runners: Runners) -> list[Return]:
    """The returns of the calls, in their order. Neighbours that may run in parallel do."""
    by_name = {tool.name: tool for tool in tools}
    returns: list[Return] = []
    for parallel, group in groupby(calls, key=lambda call: call.name in by_name and by_name[call.name].parallel):
        pending = [run_call(call, site, by_name, runners) for call in group]
        if parallel:
            returns += await asyncio.gather(*pending)
        else:
            returns += [await one for one in pending]
    return returns


async def run_call(call: Call, site: CallSite, tools: dict[str, ToolInfo], runners: Runners) -> Return:
    """The return of one call; what goes wrong is said to the model, never raised."""
    tool = tools.get(call.name)
    if tool is None:
        offered = ", ".join(sorted(tools)) or "none"
        return _refusal(call, f"Tool not found: {call.name}. The tools you can call: {offered}.")
    if (problem := _not_an_object(call.arguments)) is not None:
        return _refusal(call, f"Nothing was run: the arguments of {call.name} are not a JSON object ({problem}).")
    try:
        returned = await _runner(tool, runners)(call, site)
    except (Unavailable, DeadlineExceeded, Cancelled) as error:
        return _refusal(call, f"{call.name} did not answer: {error.message.rstrip('.')}. {_UNKNOWN}")
    except LociError as error:
        return _refusal(call, f"{call.name} could not be run: {error.message}")
    # The supervisor of calls: whatever the model made go wrong, its run must not be taken up and fail again.
    except Exception:  # noqa: BLE001
        _log.exception("call %s failed", call.key)
        return _refusal(call, f"{call.name} failed. {_UNKNOWN}")
    return _cut(returned, tool.return_char_limit)


def _runner(tool: ToolInfo, runners: Runners) -> Callable[[Call, CallSite], Awaitable[Return]]:
    if tool.name in RECALL_TOOLS and tool.tool_type in MEMORY_TYPES:
        return runners.recall.search
    if tool.tool_type in MEMORY_TYPES:
        return runners.memory.apply
    return lambda call, site: runners.tools.execute(tool, call, site)


def _not_an_object(arguments: str) -> str | None:
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError as error:
        return str(error)
    return None if isinstance(value, dict) else f"it is a {type(value).__name__}"


def _refusal(call: Call, sentence: str) -> Return:
    return Return(call.id, call.name, sentence, is_error=True)


def _cut(returned: Return, limit: int) -> Return:
    if len(returned.text) <= limit:
        return returned
    marker = f"... [cut: {len(returned.text) - limit} of {len(returned.text)} characters are not shown]"
    return Return(
        returned.call_id,
        returned.name,
        returned.text[:limit] + marker,
        returned.is_error,
        returned.stdout,
        returned.stderr,
    )
