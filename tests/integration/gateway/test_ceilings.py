"""Attacks of tools: what the code of an agent asks for in the name of somebody who may only talk to that agent."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1 import access_service_pb2 as access
from loci.agent.v1 import agent_service_pb2, conversation_pb2, conversation_service_pb2, run_pb2, run_service_pb2
from services.common.context import RUN_TOKEN_PREFIX, CallContext
from services.common.core.ceiling import Ceiling, ceiling
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import StartGateway
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend

OTHER = "agent-99999999-0000-4000-8000-000000000000"
MINE, THEIRS = "conv-00000000-0000-4000-8000-000000000001", "conv-00000000-0000-4000-8000-000000000002"
RUN, THEIR_RUN = "run-00000000-0000-4000-8000-000000000001", "run-00000000-0000-4000-8000-000000000002"
TALKS = frozenset({"read_messages", "write_messages"})
PAGE = ceiling("client", {AGENT_ID: TALKS})
KEY = ceiling("agent-only", {AGENT_ID: TALKS | {"open", "anybody", "read_agent"}})
EVERY_AGENT = Ceiling("agent-only")

# What a tool asks for, and which ceilings let it.
ATTACKS: list[tuple[str, str, list[Ceiling]]] = [
    ("GET", "/v1/agents/", [EVERY_AGENT]),
    ("GET", f"/v1/agents/{OTHER}", [EVERY_AGENT]),
    ("GET", f"/v1/agents/{AGENT_ID}", [EVERY_AGENT, KEY]),
    ("DELETE", f"/v1/agents/{OTHER}", []),
    ("DELETE", f"/v1/agents/{AGENT_ID}", []),
    ("PATCH", f"/v1/agents/{AGENT_ID}", []),
    ("POST", "/v1/agents/", []),
    ("POST", f"/v1/agents/{OTHER}/messages", [EVERY_AGENT]),
    ("POST", f"/v1/agents/{AGENT_ID}/messages", [EVERY_AGENT, KEY, PAGE]),
    ("POST", f"/v1/agents/{OTHER}/tools/roll/run", [EVERY_AGENT]),
    ("POST", f"/v1/agents/{AGENT_ID}/tools/roll/run", [EVERY_AGENT, KEY, PAGE]),
    ("PATCH", f"/v1/agents/{AGENT_ID}/core-memory/blocks/human", []),
    ("POST", "/v1/blocks/", []),
    ("GET", "/v1/blocks/", []),
    ("GET", "/v1/tools/", []),
    ("POST", "/v1/tools/run", []),
    ("GET", "/v1/archives/", []),
    ("GET", "/v1/folders/", []),
    ("POST", "/v1/messages/search", [EVERY_AGENT]),
    ("GET", f"/v1/conversations/{MINE}", [EVERY_AGENT, KEY, PAGE]),
    ("GET", f"/v1/conversations/{THEIRS}", [EVERY_AGENT]),
    ("GET", f"/v1/runs/{RUN}", [EVERY_AGENT, KEY, PAGE]),
    ("GET", f"/v1/runs/{THEIR_RUN}", [EVERY_AGENT]),
    ("POST", "/v1/chat/completions", [EVERY_AGENT]),
]


def tool_of(backend: Backend, limit: Ceiling | None) -> dict[str, str]:
    """The header of a tool in a run that was begun below `limit`."""
    run = CallContext(UUID(int=7), UUID(int=8), "run", ("gateway",), UUID(int=9), (UUID(int=10),), 2e9, limit)
    token = RUN_TOKEN_PREFIX + base64.urlsafe_b64encode(backend.signer.sign(run)).decode()
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def agents(backend: Backend) -> Backend:
    """Two agents, each with a conversation and a run."""

    def conversation(request: Any) -> Any:
        agent_id = AGENT_ID if request.conversation_id == MINE else OTHER
        found = conversation_pb2.Conversation(id=request.conversation_id, agent_id=agent_id)
        return conversation_service_pb2.GetConversationResponse(conversation=found)

    def run(request: Any) -> Any:
        agent_id = AGENT_ID if request.run_id == RUN else OTHER
        return run_service_pb2.GetRunResponse(run=run_pb2.Run(id=request.run_id, agent_id=agent_id))

    backend.on("GetConversation", conversation)
    backend.on("GetRun", run)
    backend.on("ListAgents", lambda _: agent_service_pb2.ListAgentsResponse(agents=[samples.agent(id=AGENT_ID)]))
    backend.on("DeleteAgent", lambda _: agent_service_pb2.DeleteAgentResponse())
    return backend


@pytest.mark.parametrize("limit", [PAGE, KEY, EVERY_AGENT])
async def test_a_tool_goes_no_further_than_who_began_its_run(
    start_gateway: StartGateway, agents: Backend, limit: Ceiling
) -> None:
    edge = await start_gateway()
    headers = tool_of(agents, limit)
    for method, path, permitted in ATTACKS:
        answer = await edge.http.request(method, path, headers=headers, json={} if method != "GET" else None)
        # What belongs to another agent is as if it were not there.
        assert (answer.status_code not in (403, 404)) == (limit in permitted), (method, path, answer.text)
    assert agents.requests("DeleteAgent") == []


async def test_without_a_ceiling_a_tool_acts_for_its_tenant(start_gateway: StartGateway, agents: Backend) -> None:
    edge = await start_gateway()
    for limit in (None, Ceiling("developer")):
        answer = await edge.http.delete(f"/v1/agents/{OTHER}", headers=tool_of(agents, limit))
        assert answer.status_code == 200, answer.text
    assert len(agents.requests("DeleteAgent")) == 2


async def test_what_a_tool_begins_stays_below(start_gateway: StartGateway, agents: Backend) -> None:
    edge = await start_gateway()
    await edge.http.get(f"/v1/agents/{AGENT_ID}", headers=tool_of(agents, KEY))
    assert {caller.ceiling for caller in agents.callers} == {KEY}


@pytest.mark.parametrize(
    ("known", "limit"),
    [
        ({"role": "admin"}, None),
        ({"role": "developer"}, Ceiling("developer")),
        ({"role": "agent-only"}, EVERY_AGENT),
        ({"role": "agent-only", "agent_ids": [AGENT_ID]}, KEY),
        (
            {
                "role": "client",
                "client_token": access.ClientToken(
                    hostname="https://app.test",
                    policy=[access.AgentAccess(agent_id=AGENT_ID, access=["read_agent", *TALKS])],
                ),
            },
            ceiling("client", {AGENT_ID: TALKS | {"read_agent"}}),
        ),
    ],
)
async def test_a_credential_is_the_ceiling_of_what_it_begins(
    start_gateway: StartGateway, agents: Backend, known: dict[str, Any], limit: Ceiling | None
) -> None:
    ids: dict[str, Any] = {"organization_id": f"org-{UUID(int=7)}", "user_id": f"user-{UUID(int=8)}"}
    answer = access.AuthenticateResponse(**ids, credential_id=f"key-{UUID(int=8)}", **known)
    agents.on("Authenticate", lambda _: answer)
    edge = await start_gateway()
    shown = await edge.http.get(f"/v1/agents/{AGENT_ID}", headers={"authorization": "Bearer loci-key-x"})
    assert shown.status_code == 200, shown.text
    callers = [caller for (name, _), caller in zip(agents.asked, agents.callers, strict=True) if name == "GetAgent"]
    assert [caller.ceiling for caller in callers] == [limit]
