"""Who a request is made for: passwords, users, signed contexts, traces."""

from __future__ import annotations

import asyncio
import base64
import time
from uuid import UUID

import letta_client
import pytest
from letta_client import AsyncLetta

from loci.agent.v1 import agent_service_pb2
from services.common.context import RUN_TOKEN_PREFIX, CallContext
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend

DEFAULT = UUID("00000000-0000-4000-8000-000000000000")
TRACE = "0af7651916cd43dd8448eb211c80319c"


async def test_without_keys_everybody_is_the_default_user(edge: Edge, backend: Backend) -> None:
    await edge.sdk.agents.retrieve(AGENT_ID)
    caller = backend.callers[0]
    assert (caller.organization_id, caller.user_id, caller.role) == (DEFAULT, DEFAULT, "admin")
    assert caller.audience == ("agent", "memory", "llm_gateway", "tool_runner")
    assert 240 <= caller.expires_at - time.time() <= 300


async def test_a_header_names_another_user(edge: Edge, backend: Backend) -> None:
    user = "11111111-1111-4111-8111-111111111111"
    await edge.http.get(f"/v1/agents/{AGENT_ID}", headers={"user_id": f"user-{user}"})
    assert backend.callers[0].user_id == UUID(user)
    answer = await edge.http.get(f"/v1/agents/{AGENT_ID}", headers={"user_id": "nonsense"})
    assert (answer.status_code, answer.json()["examples"][0][:5]) == (422, "user-")


async def test_a_password(start_gateway: StartGateway, backend: Backend) -> None:
    edge = await start_gateway(password="geheim")
    assert (await edge.sdk.agents.retrieve(AGENT_ID)).id == AGENT_ID
    async with AsyncLetta(base_url=edge.url, api_key="other", max_retries=0) as stranger:
        with pytest.raises(letta_client.AuthenticationError):
            await stranger.agents.retrieve(AGENT_ID)
    path = f"/v1/agents/{AGENT_ID}"
    for headers, status in (
        ({}, 401),
        ({"authorization": "geheim"}, 401),
        ({"authorization": "bearer geheim"}, 200),
        ({"x-bare-password": "password geheim"}, 200),
        ({"x-bare-password": "geheim"}, 401),
    ):
        answer = await edge.http.get(path, headers=headers)
        assert answer.status_code == status, headers
        if status == 401:
            assert answer.json() == {"detail": "Unauthorized"}
    assert (await edge.http.get("/v1/health/")).status_code == 200
    assert (await edge.http.get("/v1/nonsense")).status_code == 401


async def test_a_tool_acts_within_its_run(start_gateway: StartGateway, backend: Backend) -> None:
    edge = await start_gateway(password="geheim")
    run = CallContext(UUID(int=7), UUID(int=8), "run", ("gateway",), UUID(int=9), (UUID(int=10),), 2e9)
    token = RUN_TOKEN_PREFIX + base64.urlsafe_b64encode(backend.signer.sign(run)).decode()
    async with AsyncLetta(base_url=edge.url, api_key=token, max_retries=0) as tool:
        shown = await tool.agents.retrieve(AGENT_ID)
        assert (shown.id, shown.secrets) == (AGENT_ID, [])
        caller = backend.callers[0]
        assert (caller.organization_id, caller.user_id, caller.role) == (UUID(int=7), UUID(int=8), "run")
        assert (caller.run_id, caller.ancestors, caller.deadline) == (run.run_id, run.ancestors, run.deadline)
        for refused in (
            tool.agents.update(AGENT_ID, secrets={"KEY": "value"}),
            tool.agents.create(from_template="clerk:1"),
            tool.post("/v1/_internal_templates/blocks", body={}, cast_to=object),
            tool.tools.create(source_code="def f(): pass"),
            tool.agents.messages.create_async(
                AGENT_ID, messages=[{"role": "user", "content": "hi"}], callback_url="https://example.com"
            ),
            tool.post("/v1/tools/run", body={"source_code": "x", "network": {"allow": ["*"]}}, cast_to=object),
        ):
            with pytest.raises(letta_client.PermissionDeniedError, match="a tool may not"):
                await refused
    assert {name for name, _ in backend.asked} <= {"GetAgent", "ListModels", "ListEmbeddingModels"}


async def test_one_trace_goes_through(edge: Edge, backend: Backend) -> None:
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    await edge.http.get(f"/v1/agents/{AGENT_ID}", headers=headers)
    assert set(backend.traces) == {TRACE}
    answer = await edge.http.get("/v1/agents/nonsense", headers=headers)
    assert answer.headers["x-trace-id"] == TRACE


async def test_requests_at_once_do_not_mix_their_callers(edge: Edge, backend: Backend) -> None:
    users = [f"{number:08x}-1111-4111-8111-111111111111" for number in range(20)]

    everybody = asyncio.Barrier(len(users))

    async def get(request: agent_service_pb2.GetAgentRequest) -> agent_service_pb2.GetAgentResponse:
        await everybody.wait()
        return agent_service_pb2.GetAgentResponse(agent=samples.agent(id=request.agent_id))

    backend.on("GetAgent", get)
    await asyncio.gather(
        *(edge.http.get(f"/v1/agents/agent-{user}", headers={"user_id": f"user-{user}"}) for user in users)
    )
    seen = {
        request.agent_id: str(caller.user_id)
        for (name, request), caller in zip(backend.asked, backend.callers, strict=True)
        if name == "GetAgent"
    }
    assert seen == {f"agent-{user}": user for user in users}
