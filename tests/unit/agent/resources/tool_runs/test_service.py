"""A tool that is run outside of a turn: whose it must be, who may run it, and where it acts."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID, uuid4

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.agent.core.messages import Return
from services.agent.core.ports import BlockView, MemoryView, ToolInfo, ToolResult
from services.agent.core.rules.tool_rules import RequiresApproval
from services.agent.resources.agents.model.settings import Agent, AgentSettings
from services.agent.resources.agents.tool_state import state_of
from services.agent.resources.tool_runs.service import LONGEST_CHAIN, ToolRuns
from services.common.context import CallContext, Signer, current
from services.common.errors import FailedPrecondition, LociError, NotFound, PermissionDenied

ORGANIZATION, USER, AGENT_ID, RUN, CONVERSATION = uuid4(), uuid4(), uuid4(), uuid4(), uuid4()
SETTINGS = AgentSettings(
    name="Ada", system="You are Ada.", model="loci/demo", embedding="loci/hash", context_window_limit=32_000
)
NOW = datetime(2026, 1, 31, tzinfo=UTC)
AGENT = Agent(
    id=AGENT_ID,
    version=3,
    settings=SETTINGS,
    created_by_id=USER,
    last_updated_by_id=USER,
    created_at=NOW,
    updated_at=NOW,
)
ROLL = ToolInfo(UUID(int=1), "roll", "custom", "", {})
INSERT = ToolInfo(UUID(int=2), "memory_insert", "letta_memory_core", "", {})
USER_CALLS = CallContext(ORGANIZATION, USER, "admin", ("agent", "memory", "tool_runner"))
TOOL_CALLS = replace(USER_CALLS, role="run", run_id=RUN)


class World:
    """An agent with two tools; `sites` and `contexts` are those of its calls."""

    def __init__(self, agent: Agent = AGENT) -> None:
        self.sites: list[Any] = []
        self.contexts: list[CallContext] = []
        tools = AsyncMock(**{"describe.return_value": (ROLL, INSERT)})
        tools.execute = self._execute
        memory = AsyncMock(**{"apply.side_effect": lambda call, site: Return(call.id, call.name, call.key)})
        runners = SimpleNamespace(tools=tools, memory=memory, recall=AsyncMock(), states=AsyncMock())
        agents = AsyncMock(**{"get.return_value": agent})
        run = SimpleNamespace(agent_id=AGENT_ID, conversation_id=CONVERSATION)
        runs = AsyncMock(**{"get.return_value": run})
        self.tool_runs = ToolRuns(agents, runs, runners, Signer(Ed25519PrivateKey.generate(), "test"))

    async def _execute(self, tool: ToolInfo, call: Any, site: Any) -> ToolResult:
        self.sites.append(site)
        self.contexts.append(current())
        return ToolResult(Return(call.id, call.name, call.key), result="7")

    async def run(self, caller: CallContext = USER_CALLS, name: str = "roll", arguments: str = "{}") -> ToolResult:
        return await self.tool_runs.run(caller, AGENT_ID, name, arguments, "key")


async def test_it_runs_by_who_runs_tools_of_its_type_and_under_a_key_that_no_turn_has() -> None:
    world = World()
    executed = await world.run()
    assert (executed.returned.text, executed.result) == ("direct/key", "7")
    assert (world.sites[0].run_id, world.sites[0].step_id, world.sites[0].conversation_id) == (None, None, AGENT_ID)
    assert (await world.run(name="memory_insert")).returned.text == "direct/key"
    assert len(world.sites) == 1


async def test_a_tool_that_calls_a_tool_acts_in_its_run_and_makes_the_chain_longer() -> None:
    world = World()
    await world.run(replace(TOOL_CALLS, ancestors=(USER,)))
    assert (world.sites[0].run_id, world.sites[0].conversation_id) == (RUN, CONVERSATION)
    assert (world.contexts[0].role, world.contexts[0].ancestors) == ("run", (USER, RUN))


@pytest.mark.parametrize(
    ("caller", "name", "kind", "reason"),
    [
        (USER_CALLS, "fly", NotFound, "TOOL_NOT_FOUND"),
        (TOOL_CALLS, "roll", PermissionDenied, "TOOL_APPROVAL_REQUIRED"),
        (
            replace(TOOL_CALLS, ancestors=(RUN,) * LONGEST_CHAIN),
            "memory_insert",
            FailedPrecondition,
            "CHAIN_TOO_LONG",
        ),
    ],
)
async def test_what_is_refused(caller: CallContext, name: str, kind: type[LociError], reason: str) -> None:
    rules = (RequiresApproval("roll"),)
    world = World(replace(AGENT, settings=replace(SETTINGS, tool_rules=rules)))
    with pytest.raises(kind) as caught:
        await world.run(caller, name)
    assert caught.value.reason == reason
    assert world.sites == []
    # Who may approve it may run it.
    assert (await world.run()).result == "7"


async def test_arguments_that_are_none_run_nothing() -> None:
    world = World()
    executed = await world.run(arguments="[1]")
    assert executed.returned.is_error
    assert "must be a JSON object" in executed.returned.text
    assert world.sites == []


def test_an_agent_as_tools_see_it() -> None:
    block = BlockView(UUID(int=3), 1, "human", "Ada", 5_000, "who", read_only=True)
    state = orjson.loads(orjson.dumps(state_of(AGENT, MemoryView((block,)), (ROLL,))))
    assert (state["id"], state["name"], state["created_at"]) == (
        f"agent-{AGENT_ID}",
        "Ada",
        "2026-01-31T00:00:00+00:00",
    )
    assert state["memory"]["blocks"] == state["blocks"]
    assert state["blocks"][0] == {
        "id": f"block-{UUID(int=3)}",
        "label": "human",
        "value": "Ada",
        "limit": 5_000,
        "description": "who",
        "read_only": True,
    }
    assert state["tools"][0]["name"] == "roll"
