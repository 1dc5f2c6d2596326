"""Tools of an agent that are run outside of a turn: by a client, or by the code of another tool."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from services.agent.calls import dispatch
from services.agent.core.calls.arguments import Problem, parse
from services.agent.core.messages import Call, Return
from services.agent.core.ports import CallSite, ToolInfo, ToolResult
from services.agent.core.rules.tool_rules import needs_approval
from services.agent.resources.agents.model.settings import Agent, settings_of
from services.agent.resources.agents.ports import AgentStore
from services.agent.resources.runs.ports import RunStore
from services.common.context import RUN_ROLE, CallContext, Signer, use_context
from services.common.errors import FailedPrecondition, NotFound, PermissionDenied

# Runs and calls that wait for one another.
LONGEST_CHAIN = 8


class ToolRuns:
    """Runs an agent's tools outside of turns. `signer`: for a tool that calls a tool, whose chain is one longer."""

    def __init__(self, agents: AgentStore, runs: RunStore, runners: dispatch.ToolRunners, signer: Signer) -> None:
        self._agents = agents
        self._runs = runs
        self._runners = runners
        self._signer = signer

    async def run(self, caller: CallContext, agent_id: UUID, tool_name: str, arguments: str, key: str) -> ToolResult:
        """Returns the outcome; an error of the tool is in its return.

        Raises NotFound (AGENT_NOT_FOUND, TOOL_NOT_FOUND), PermissionDenied (TOOL_APPROVAL_REQUIRED),
        FailedPrecondition (CHAIN_TOO_LONG).
        """
        agent = await self._agents.get(caller.organization_id, agent_id)
        tool = _named(tool_name, await self._runners.tools.describe(agent.settings.tool_ids))
        context = caller
        if caller.role == RUN_ROLE:
            _check_tool_as_caller(caller, agent, tool)
            context = _longer(caller)
        call = Call(f"direct/{key}", key, tool.name, arguments)
        if isinstance(problem := parse(arguments), Problem):
            return ToolResult(Return(call.id, call.name, problem.message(call.name), is_error=True, refused=True))
        site = await self._site(caller, agent)
        with use_context(context, signer=self._signer):
            return await dispatch.execute(call, site, tool, self._runners)

    async def _site(self, caller: CallContext, agent: Agent) -> CallSite:
        """Returns the conversation of the caller's run, where that is a run of this agent."""
        conversation_id = agent.id
        if caller.run_id is not None:
            with suppress(NotFound):
                run = await self._runs.get(caller.organization_id, caller.run_id)
                conversation_id = run.conversation_id if run.agent_id == agent.id else agent.id
        return CallSite(
            caller.organization_id,
            agent.id,
            conversation_id,
            caller.run_id,
            None,
            settings_of(agent),
            deadline=caller.deadline,
        )


def _named(name: str, tools: Sequence[ToolInfo]) -> ToolInfo:
    for tool in tools:
        if tool.name == name:
            return tool
    raise NotFound(f"The agent has no tool {name[:80]}", reason="TOOL_NOT_FOUND")


def _check_tool_as_caller(caller: CallContext, agent: Agent, tool: ToolInfo) -> None:
    if needs_approval(agent.settings.tool_rules, tool.name):
        sentence = f"Calls of {tool.name} wait for a person's approval: the agent may call it, a tool may not."
        raise PermissionDenied(sentence, reason="TOOL_APPROVAL_REQUIRED")
    if len(caller.ancestors) >= LONGEST_CHAIN:
        sentence = f"{LONGEST_CHAIN} runs and calls wait for one another already; {tool.name} was not called."
        raise FailedPrecondition(sentence, reason="CHAIN_TOO_LONG")


def _longer(caller: CallContext) -> CallContext:
    """Returns the context for what the call calls in turn."""
    waiting = (*caller.ancestors, caller.run_id) if caller.run_id is not None else caller.ancestors
    return replace(caller, ancestors=waiting, expires_at=0.0, token=b"")
