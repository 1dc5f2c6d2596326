"""The tools by which agents speak to agents: `core.ports_agents.AgentCalls` over nested turns.

What the other agent does it does as a run of its own, in its default conversation, for the same user. Its time is a
part of the time that is left to the caller, so that the caller can still say that there was no reply. A chain of runs
that wait for one another, or of messages that nobody waits for, has at most MOST_ANCESTORS agents; a call into its own
chain is refused before anybody waits (adapters/chains.py).
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from services.agent.core.calls.agent_words import addressed, replies_to_json
from services.agent.core.calls.arguments import Problem, parse
from services.agent.core.calls.reach import reaches
from services.agent.core.facts import Options
from services.agent.core.groups.policy import ASK_MEMBERS, CHOOSE, HAND_OVER
from services.agent.core.messages import Call, Message, Return, Text
from services.agent.core.ports import CallSite
from services.agent.core.ports_agents import ASK, TELL, AgentDirectory, AgentName
from services.agent.core.ports_journal import TurnRequest
from services.agent.driving.nested_turns import NestedTurns
from services.common.context import current
from services.common.core.storable import storable, storable_name
from services.common.errors import FailedPrecondition, InvalidArgument, LociError
from services.common.ids import from_public, to_public, uuid7

# Agents that write to one another in a chain, and agents that one call reaches.
MOST_HOPS = 8
MOST_AGENTS, AT_ONCE = 100, 8
# Of the time that is left to the caller, for who is asked.
SHARE = 0.9
_RUNS = UUID("5f2c7f0e-6f3b-4c52-9d3e-0f6f0a7b9d11")
_TOLD = "The message was sent; {agent} reads it in a turn of its own (run-{run})."


class AgentTools:
    """Runs the tools. `longest_seconds`: of a run that nobody waits for."""

    def __init__(self, directory: AgentDirectory, turns: NestedTurns, *, longest_seconds: float) -> None:
        self._directory = directory
        self._turns = turns
        self._longest_seconds = longest_seconds

    async def call(self, call: Call, site: CallSite) -> Return:
        """See ports_agents.AgentCalls.call."""
        values = _arguments(call)
        if call.name in (CHOOSE, HAND_OVER):
            # The loop of the group reads the call itself.
            _text(values, "name")
            (chosen,) = self._members(site, values)
            return Return(call.id, call.name, f"{chosen.name} goes on.")
        message = _text(values, "message")
        if call.name == ASK_MEMBERS:
            return Return(call.id, call.name, await self._ask_each(call, site, self._members(site, values), message))
        if call.name == TELL:
            return Return(call.id, call.name, await self._tell(call, site, _agent(values), message))
        if call.name != ASK:
            agents = await self._tagged(site, values)
            return Return(call.id, call.name, await self._ask_each(call, site, agents, message))
        agent_id = _agent(values)
        reply = await self._ask(call, site, agent_id, message)
        if isinstance(reply, Problem):
            text = f"agent-{agent_id} did not reply. {' '.join(reply.sentences)}"
            return Return(call.id, call.name, text, is_error=True)
        return Return(call.id, call.name, reply)

    async def cancel(self, call: Call, site: CallSite) -> None:
        """See ports_agents.AgentCalls.cancel. What nobody waits for goes on."""
        if call.name == TELL:
            return
        values = _arguments(call)
        if call.name == ASK:
            agents = [_agent(values)]
        elif call.name == ASK_MEMBERS:
            agents = [each.id for each in self._members(site, values)]
        else:
            agents = [each.id for each in await self._tagged(site, values)]
        await self._turns.cancel(site.organization_id, [(run_of(call, agent_id), agent_id) for agent_id in agents])

    async def _ask(self, call: Call, site: CallSite, agent_id: UUID, message: str) -> str | Problem:
        request = self._request(call, site, agent_id, message, waits=True)
        answer = await self._turns.ask(request, site.run_id)
        return Problem((answer.problem,)) if answer.problem else answer.text

    async def _tell(self, call: Call, site: CallSite, agent_id: UUID, message: str) -> str:
        request = self._request(call, site, agent_id, message, waits=False)
        await self._turns.begin(request)
        return _TOLD.format(agent=to_public("agent", agent_id), run=request.run_id)

    async def _ask_each(self, call: Call, site: CallSite, agents: Sequence[AgentName], message: str) -> str:
        places = asyncio.Semaphore(AT_ONCE)

        async def ask(agent_id: UUID) -> str | Problem:
            try:
                async with places:
                    return await self._ask(call, site, agent_id, message)
            except LociError as error:
                # The others have been asked, or will be.
                return Problem((error.message,))

        replies = await asyncio.gather(*(ask(agent.id) for agent in agents))
        return replies_to_json(agents, replies)

    def _members(self, site: CallSite, values: dict[str, Any]) -> Sequence[AgentName]:
        """Returns the member of the group that is named, or all but the caller."""
        members = {name: AgentName(UUID(each), name) for name, each in site.settings.options.group_members.items()}
        if (name := values.get("name")) is None:
            others = [each for each in members.values() if each.id != site.agent_id]
            if len(others) > MOST_AGENTS:
                sentence = (
                    f"the group has {len(others)} members, and one call asks at most {MOST_AGENTS}; name one of them"
                )
                raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
            return others
        if name not in members:
            known = ", ".join(members)[:1_000]
            raise InvalidArgument(f"no member of the group has this name; there are: {known}", reason="MESSAGE_INVALID")
        return [members[name]]

    async def _tagged(self, site: CallSite, values: dict[str, Any]) -> Sequence[AgentName]:
        match_all, match_some = _tags(values, "match_all"), _tags(values, "match_some")
        if not match_all and not match_some:
            raise InvalidArgument("give at least one tag in match_all or match_some", reason="MESSAGE_INVALID")
        found = await self._directory.tagged(site.organization_id, match_all, match_some, MOST_AGENTS + 2)
        limit = current().ceiling
        agents = [each for each in found if each.id != site.agent_id and reaches(limit, each.id)]
        if len(agents) > MOST_AGENTS:
            sentence = f"more than {MOST_AGENTS} agents have these tags; nobody was asked. Name tags that fewer have"
            raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
        return agents

    def _request(self, call: Call, site: CallSite, agent_id: UUID, message: str, *, waits: bool) -> TurnRequest:
        """Returns the turn that a call asks for. Raises FailedPrecondition, InvalidArgument."""
        caller, options = current(), site.settings.options
        if agent_id == site.agent_id:
            raise InvalidArgument("an agent does not write to itself: say it here", reason="MESSAGE_INVALID")
        if options.hops >= MOST_HOPS:
            sentence = f"{MOST_HOPS} agents wrote to one another until this came here, and it goes no further"
            raise FailedPrecondition(sentence, reason="CHAIN_TOO_LONG")
        run_id = run_of(call, agent_id)
        text = addressed(message, AgentName(site.agent_id, site.settings.agent_name), waits=waits)
        waiting = (*caller.ancestors, caller.run_id) if caller.run_id is not None else caller.ancestors
        return TurnRequest(
            organization_id=site.organization_id,
            user_id=caller.user_id,
            ceiling=caller.ceiling,
            agent_id=agent_id,
            conversation_id=agent_id,
            run_id=run_id,
            messages=(
                Message(
                    uuid7(),
                    "user",
                    (Text(text),),
                    datetime.now(UTC),
                    run_id,
                    sender_id=to_public("agent", site.agent_id),
                ),
            ),
            seconds=self._seconds(site) if waits else self._longest_seconds,
            options=Options(hops=options.hops + 1),
            # What nobody waits for can wait for anybody.
            ancestors=waiting if waits else (),
            on_busy="wait",
        )

    def _seconds(self, site: CallSite) -> float:
        left = self._longest_seconds if site.deadline is None else site.deadline - time.time()
        return max(1.0, SHARE * left)


def run_of(call: Call, agent_id: UUID) -> UUID:
    """Returns the run that a call begins with an agent; the same whoever makes the call."""
    return uuid5(_RUNS, f"{call.key}/{agent_id}")


def _arguments(call: Call) -> dict[str, Any]:
    values = parse(call.arguments)
    if isinstance(values, Problem):
        raise InvalidArgument(" ".join(values.sentences), reason="MESSAGE_INVALID")
    return values


def _text(values: dict[str, Any], name: str) -> str:
    text = values.get(name)
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument(f"`{name}` must be a text that is not empty", reason="MESSAGE_INVALID")
    return storable(text)


def _agent(values: dict[str, Any]) -> UUID:
    return from_public("agent", _text(values, "other_agent_id").strip())


def _tags(values: dict[str, Any], name: str) -> list[str]:
    tags = values.get(name) or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidArgument(f"`{name}` must be a list of texts", reason="MESSAGE_INVALID")
    return [storable_name(tag) for tag in tags]
