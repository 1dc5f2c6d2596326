"""Tool calls to who runs them: memory and file tools to memory, recall to ourselves, all else to the tool runner."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol

from services.agent.calls.block_edits import apply_edits
from services.agent.core.calls.offers import SENT
from services.agent.core.groups.words import GROUP_TOOL
from services.agent.core.messages import Call, Return
from services.agent.core.ports import AgentStates, CallSite, Memory, Recall, ToolInfo, ToolResult, Tools
from services.agent.core.ports_agents import AgentCalls
from services.agent.core.window.sizes import storable_return
from services.common.errors import Cancelled, DeadlineExceeded, LociError, Unavailable

RECALL_TOOLS = frozenset({"conversation_search"})
SPEAKING_TOOLS = frozenset({"send_message"})
MEMORY_TYPES = frozenset(
    {"letta_core", "letta_memory_core", "letta_sleeptime_core", "letta_voice_sleeptime_core", "letta_files_core"}
)
AGENT_TYPE = "letta_multi_agent_core"
# Its error is its answer.
_REMOTE = "external_mcp"
_UNKNOWN = "It may or may not have taken effect."

_log = logging.getLogger(__name__)


class ToolRunners(Protocol):
    """The runners of tools."""

    @property
    def memory(self) -> Memory: ...

    @property
    def tools(self) -> Tools: ...

    @property
    def recall(self) -> Recall: ...

    @property
    def states(self) -> AgentStates: ...

    @property
    def agents(self) -> AgentCalls: ...


async def run_calls(
    calls: Sequence[Call | Return],
    site: CallSite,
    tools: Sequence[ToolInfo],
    runners: ToolRunners,
    returned: dict[int, Return] | None = None,
) -> list[Return]:
    """Runs calls and gives their returns in order; a return among them stays.

    Neighbours that may run in parallel do. `returned` gets each return under its place as soon as it is there: that is
    what is left when all this is cancelled.
    """
    returns: dict[int, Return] = {} if returned is None else returned
    by_name = {tool.name: tool for tool in tools}

    def together(place: int) -> bool:
        call = calls[place]
        return isinstance(call, Return) or (call.name in by_name and by_name[call.name].parallel)

    async def answer(place: int) -> None:
        call = calls[place]
        returns[place] = call if isinstance(call, Return) else await run_call(call, site, by_name, runners)

    for parallel, places in groupby(range(len(calls)), key=together):
        if parallel:
            await asyncio.gather(*map(answer, places))
        else:
            for place in places:
                await answer(place)
    return [returns[place] for place in range(len(calls))]


async def run_call(call: Call, site: CallSite, tools: dict[str, ToolInfo], runners: ToolRunners) -> Return:
    """Returns the return of one call; what goes wrong is said to the model, never raised."""
    tool = tools.get(call.name)
    if tool is None:
        # It was there when the call was made.
        return _refusal(call, f"Tool not found: {call.name}.")
    return (await execute(call, site, tool, runners)).returned


async def execute(call: Call, site: CallSite, tool: ToolInfo, runners: ToolRunners) -> ToolResult:
    """Returns what came of a call, by whoever runs tools of its type; what goes wrong is said in the return, never
    raised.
    """
    try:
        executed = await _execute_by_type(call, site, tool, runners)
    except (Unavailable, DeadlineExceeded, Cancelled) as error:
        return ToolResult(no_answer(call, error))
    except LociError as error:
        return ToolResult(_refusal(call, f"{call.name} could not be run: {error.message}"))
    # The supervisor of calls: whatever the model made go wrong, its run must not be taken up and fail again.
    except Exception:  # noqa: BLE001
        _log.exception("call %s failed", call.key)
        return ToolResult(_refusal(call, f"{call.name} failed. {_UNKNOWN}"))
    returned = executed.returned
    stderr = returned.stderr
    if returned.is_error and not stderr and tool.tool_type != _REMOTE:
        # Clients look for errors there.
        stderr = (returned.text,)
    return replace(executed, returned=replace(returned, text=storable_return(returned.text), stderr=stderr))


def no_answer(call: Call, error: LociError) -> Return:
    """Returns what is said of a call that nobody answered."""
    return _refusal(call, f"{call.name} did not answer: {error.message.rstrip('.')}. {_UNKNOWN}")


async def _execute_by_type(call: Call, site: CallSite, tool: ToolInfo, runners: ToolRunners) -> ToolResult:
    if tool.tool_type in MEMORY_TYPES:
        return _cut(ToolResult(await _run_own_tool(call, site, runners)), tool)
    if tool.tool_type in (AGENT_TYPE, GROUP_TOOL):
        return _cut(ToolResult(await runners.agents.call(call, site)), tool)
    if not tool.takes_agent_state:
        return _cut(await runners.tools.execute(tool, call, site), tool)
    state = await runners.states.of(site)
    executed = _cut(await runners.tools.execute(tool, call, site, agent_state=state), tool)
    return await apply_edits(executed, call, site, runners.memory)


async def _run_own_tool(call: Call, site: CallSite, runners: ToolRunners) -> Return:
    if call.name in RECALL_TOOLS:
        return await runners.recall.search(call, site)
    if call.name in SPEAKING_TOOLS:
        return await _speak(call, site)
    return await runners.memory.apply(call, site)


async def _speak(call: Call, site: CallSite) -> Return:
    """Answers a call whose message is the call itself; clients are shown it."""
    return Return(call.id, call.name, SENT)


def _refusal(call: Call, sentence: str) -> Return:
    return Return(call.id, call.name, sentence, is_error=True)


def _cut(executed: ToolResult, tool: ToolInfo) -> ToolResult:
    text, limit = executed.returned.text, tool.return_char_limit
    if executed.is_cut or len(text) <= limit:
        return executed
    excerpt = f"{text[:limit]}... [function output was truncated: it has {len(text)} characters, {limit} are shown]"
    return replace(executed, returned=replace(executed.returned, text=excerpt))
