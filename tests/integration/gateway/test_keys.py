"""Keys, roles, client-side tokens, other origins and limits, at the gateway's edge."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import letta_client
import orjson
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from letta_client import AsyncLetta
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close
from websockets.typing import Data

from loci.agent.v1 import access_service_pb2 as wire
from loci.agent.v1 import (
    agent_service_pb2,
    conversation_pb2,
    conversation_service_pb2,
    message_service_pb2,
    run_pb2,
    run_service_pb2,
)
from services.common.errors import InvalidArgument, NotFound, Unauthenticated
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend

OTHER_AGENT = "agent-99999999-0000-4000-8000-000000000000"
MINE, THEIRS = "conv-00000000-0000-4000-8000-000000000001", "conv-00000000-0000-4000-8000-000000000002"
RUN, THEIR_RUN = "run-00000000-0000-4000-8000-000000000001", "run-00000000-0000-4000-8000-000000000002"
SENTENCE = "this key or token is not known, or its time is over"
TENANT, USER = UUID(int=7), UUID(int=8)


@dataclass
class Keys:
    """Credentials that the agent service knows, by what they say."""

    backend: Backend
    known: dict[str, wire.AuthenticateResponse] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.backend.on("Authenticate", self._answer)

    def _answer(self, request: wire.AuthenticateRequest) -> wire.AuthenticateResponse:
        for secret, known in self.known.items():
            if hashlib.sha256(secret.encode()).digest() == request.credential_hash:
                return known
        raise Unauthenticated("unknown", reason="CREDENTIAL_INVALID")

    def add(self, role: str, **fields: Any) -> dict[str, str]:
        """A key with a role; the header that shows it."""
        secret = f"loci-key-{role}-{len(self.known)}"
        self.known[secret] = wire.AuthenticateResponse(
            organization_id=f"org-{TENANT}", user_id=f"user-{USER}", role=role, credential_id=f"key-{USER}", **fields
        )
        return shown(secret)

    def token(self, *access: str, agent_id: str = AGENT_ID, seconds: float = 60) -> dict[str, str]:
        """A client-side token for one agent; the header that shows it."""
        secret = f"loci-ct-{USER}-{len(self.known)}"
        token = wire.ClientToken(
            id=f"ct-{USER}",
            hostname="https://app.test/chat",
            policy=[wire.AgentAccess(agent_id=agent_id, access=access)],
        )
        ends_at = Timestamp()
        ends_at.FromDatetime(datetime.now(UTC) + timedelta(seconds=seconds))
        self.known[secret] = wire.AuthenticateResponse(
            organization_id=f"org-{TENANT}",
            user_id=f"user-{USER}",
            role="client",
            credential_id=f"ct-{USER}",
            client_token=token,
            expires_at=ends_at,
        )
        return shown(secret)


def shown(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def keys(backend: Backend) -> Keys:
    """None yet; and an agent service with two agents' conversations and runs."""

    def conversation(request: Any) -> Any:
        agent_id = AGENT_ID if request.conversation_id == MINE else OTHER_AGENT
        found = conversation_pb2.Conversation(id=request.conversation_id, agent_id=agent_id)
        return conversation_service_pb2.GetConversationResponse(conversation=found)

    def run(request: Any) -> Any:
        agent_id = AGENT_ID if request.run_id == RUN else OTHER_AGENT
        return run_service_pb2.GetRunResponse(run=run_pb2.Run(id=request.run_id, agent_id=agent_id))

    backend.on("GetConversation", conversation)
    backend.on("GetRun", run)
    backend.on("ListAgents", lambda _: agent_service_pb2.ListAgentsResponse(agents=[samples.agent(id=AGENT_ID)]))
    backend.on("ListRuns", lambda _: run_service_pb2.ListRunsResponse())
    backend.on("DeleteAgent", lambda _: agent_service_pb2.DeleteAgentResponse())
    return Keys(backend)


async def status(http: httpx.AsyncClient, method: str, path: str, headers: dict[str, str], **options: Any) -> int:
    return (await http.request(method, path, headers=headers, **options)).status_code


@pytest.mark.parametrize("settings", [{}, {"password": "geheim"}, {"require_api_key": True}])
async def test_a_key_stands_for_its_tenant(
    start_gateway: StartGateway, backend: Backend, keys: Keys, settings: dict[str, Any]
) -> None:
    edge = await start_gateway(**settings)
    header = keys.add("developer") | {"user_id": f"user-{UUID(int=99)}"}
    assert await status(edge.http, "GET", f"/v1/agents/{AGENT_ID}", header) == 200
    asked = {name: caller for (name, _), caller in zip(backend.asked, backend.callers, strict=True)}
    assert (asked["Authenticate"].role, asked["Authenticate"].organization_id) == ("edge", UUID(int=0))
    assert asked["Authenticate"].audience == ("agent",)
    caller = asked["GetAgent"]
    assert (caller.organization_id, caller.user_id, caller.role) == (TENANT, USER, "developer")
    # A key that is none opens nothing, also where nobody is asked for one.
    answer = await edge.http.get("/v1/agents/", headers=shown("loci-key-unknown"))
    assert (answer.status_code, answer.json()) == (401, {"detail": "Unauthorized"})


async def test_where_keys_are_required_nothing_else_opens(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway(require_api_key=True)
    for headers in ({}, shown("x"), {"x-bare-password": "password x"}, {"user_id": f"user-{USER}"}):
        assert await status(edge.http, "GET", "/v1/agents/", headers) == 401
    assert await status(edge.http, "GET", "/v1/health/", {}) == 200
    assert await status(edge.http, "GET", "/openapi.json", {}) == 200
    assert await status(edge.http, "GET", "/v1/agents/", keys.add("read-only")) == 200


async def test_answers_are_remembered_for_a_while(start_gateway: StartGateway, backend: Backend, keys: Keys) -> None:
    edge = await start_gateway()
    header = keys.add("developer")
    for _ in range(3):
        assert await status(edge.http, "GET", "/v1/agents/", header) == 200
        assert await status(edge.http, "GET", "/v1/agents/", shown("loci-key-unknown")) == 401
    assert len(backend.requests("Authenticate")) == 2


async def test_a_revoked_key_is_refused_soon(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway(key_cache=0.2)
    header = keys.add("developer")
    assert await status(edge.http, "GET", "/v1/agents/", header) == 200
    keys.known.clear()
    async with asyncio.timeout(20):
        while await status(edge.http, "GET", "/v1/agents/", header) != 401:
            await asyncio.sleep(0.02)


async def test_roles(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway()
    agent = f"/v1/agents/{AGENT_ID}"
    table: list[tuple[str, str, set[str]]] = [
        ("GET", agent, {"admin", "developer", "agent-only", "read-only"}),
        ("DELETE", agent, {"admin", "developer"}),
        ("POST", f"{agent}/messages", {"admin", "developer", "agent-only"}),
        ("GET", "/v1/api-keys/", {"admin"}),
        ("GET", "/v1/blocks/", {"admin", "developer", "read-only"}),
        ("POST", "/mcp", {"admin", "developer", "agent-only"}),
        ("GET", "/v1/nonsense", {"admin"}),
    ]
    rights = {
        ("DELETE", agent): "write; ask an admin for a key with the role admin or developer",
        ("GET", "/v1/api-keys/"): "own; ask an admin for a key with the role admin",
        ("GET", "/v1/blocks/"): "read; ask an admin for a key with the role admin or developer or read-only",
    }
    for role in ("admin", "developer", "agent-only", "read-only"):
        header = keys.add(role)
        for method, path, permitted in table:
            answer = await edge.http.request(method, path, headers=header, json={} if method == "POST" else None)
            assert (answer.status_code != 403) == (role in permitted), (role, method, path)
            if role not in permitted:
                assert f"the role {role} may not" in answer.json()["detail"]
                assert rights.get((method, path), "") in answer.json()["detail"]


async def test_a_key_limited_to_agents_reaches_no_other(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway()
    header = keys.add("agent-only", agent_ids=[AGENT_ID])
    for path, expected in (
        (f"/v1/agents/{AGENT_ID}", 200),
        (f"/v1/agents/{OTHER_AGENT}", 403),
        ("/v1/agents/", 403),
        (f"/v1/conversations/{MINE}", 200),
        (f"/v1/conversations/{THEIRS}", 404),
        (f"/v1/runs/{RUN}", 200),
        (f"/v1/runs/{THEIR_RUN}", 404),
        ("/v1/runs/", 403),
        (f"/v1/runs/?agent_ids={AGENT_ID}", 200),
        (f"/v1/runs/?agent_ids={AGENT_ID}&agent_ids={OTHER_AGENT}", 403),
        ("/v1/models/?format=openai", 403),
    ):
        assert await status(edge.http, "GET", path, header) == expected, path
    body = {"model": OTHER_AGENT, "messages": [{"role": "user", "content": "hi"}]}
    assert await status(edge.http, "POST", "/v1/chat/completions", header, json=body) == 403


async def test_an_unknown_conversation_is_a_404(start_gateway: StartGateway, backend: Backend, keys: Keys) -> None:
    def missing(_: Any) -> Any:
        raise NotFound("no such conversation", reason="CONVERSATION_NOT_FOUND")

    backend.on("GetConversation", missing)
    edge = await start_gateway()
    header = keys.add("agent-only", agent_ids=[AGENT_ID])
    assert await status(edge.http, "GET", f"/v1/conversations/{THEIRS}", header) == 404


async def test_client_tokens_do_what_their_policy_says(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway()
    agent = f"/v1/agents/{AGENT_ID}"
    reads, writes = keys.token("read_agent"), keys.token("write_messages")
    assert await status(edge.http, "GET", agent, reads) == 200
    assert await status(edge.http, "GET", agent, writes) == 403
    assert await status(edge.http, "PATCH", agent, reads, json={"name": "x"}) == 403
    assert await status(edge.http, "POST", f"{agent}/messages", reads, json={}) == 403
    assert await status(edge.http, "POST", f"{agent}/messages", writes, json={}) == 422
    assert await status(edge.http, "GET", f"/v1/agents/{OTHER_AGENT}", reads) == 403
    assert await status(edge.http, "DELETE", agent, keys.token("write_agent")) == 403
    for path in ("/v1/agents/", "/v1/tools/", "/v1/client-side-access-tokens", "/v1/api-keys/"):
        assert await status(edge.http, "GET", path, reads) == 403
    # Pages of elsewhere; what is no page shows no origin.
    assert await status(edge.http, "GET", agent, reads | {"origin": "https://app.test"}) == 200
    answer = await edge.http.get(agent, headers=reads | {"origin": "https://evil.test"})
    assert (answer.status_code, "is for pages of" in answer.json()["detail"]) == (403, True)
    assert await status(edge.http, "GET", agent, keys.token("read_agent", seconds=-1)) == 401


async def test_who_sees_secrets(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway()
    for role, asks in (("developer", 1), ("agent-only", 0), ("read-only", 0)):
        before = len(keys.backend.requests("BatchGetEnvironments"))
        path = f"/v1/agents/{AGENT_ID}?include=agent.secrets"
        assert await status(edge.http, "GET", path, keys.add(role)) == 200
        assert len(keys.backend.requests("BatchGetEnvironments")) - before == asks


async def test_what_is_asked_over_a_socket_is_counted(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway(rate_limit=2)
    url = f"{edge.url.replace('http', 'ws')}/v1/agents/{AGENT_ID}/ws"
    async with connect(url, additional_headers=keys.add("developer")) as socket:
        heard = []
        for kind in ("cancel", "cancel", "ping"):
            await socket.send(f'{{"type": "{kind}", "id": "{kind}"}}')
            heard.append(orjson.loads(await socket.recv()))
    # The handshake was the first.
    assert [frame.get("status") for frame in heard] == [heard[0].get("status"), 429, None]
    assert heard[0].get("status") != 429
    assert (heard[1]["id"], heard[2]["type"]) == ("cancel", "pong")


async def test_limits(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway(rate_limit=2, cors_origins=("https://app.test",))
    header = keys.add("developer") | {"origin": "https://app.test"}
    first = await edge.http.get("/v1/agents/", headers=header)
    assert (first.headers["x-ratelimit-limit"], first.headers["x-ratelimit-remaining"]) == ("2", "1")
    await edge.http.get("/v1/agents/", headers=header)
    refused = await edge.http.get("/v1/agents/", headers=header)
    assert refused.status_code == 429
    assert "more than 2 requests" in refused.json()["detail"]
    assert 1 <= int(refused.headers["retry-after"]) <= 30
    assert refused.headers["x-ratelimit-remaining"] == "0"
    # A page reads all that.
    assert refused.headers["access-control-allow-origin"] == "https://app.test"
    assert "retry-after" in refused.headers["access-control-expose-headers"]
    assert await status(edge.http, "GET", "/v1/health/", header) == 200
    async with AsyncLetta(base_url=edge.url, api_key="loci-key-developer-0", max_retries=0) as sdk:
        with pytest.raises(letta_client.RateLimitError):
            await sdk.agents.retrieve(AGENT_ID)
    # With a limit of its own; keys are counted by their ids.
    own = keys.known["loci-key-developer-0"]
    keys.known["loci-key-fast"] = wire.AuthenticateResponse()
    keys.known["loci-key-fast"].CopyFrom(own)
    keys.known["loci-key-fast"].credential_id = f"key-{UUID(int=3)}"
    keys.known["loci-key-fast"].requests_per_minute = 100
    answer = await edge.http.get("/v1/agents/", headers=shown("loci-key-fast"))
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (200, "99")


async def test_pages_of_other_origins(start_gateway: StartGateway, keys: Keys) -> None:
    asks = {"origin": "https://app.test", "access-control-request-method": "POST"}
    asks |= {"access-control-request-headers": "authorization,content-type,x-stainless-os"}
    edge = await start_gateway(require_api_key=True, cors_origins=("https://app.test",))
    answer = await edge.http.options("/v1/agents/", headers=asks)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.test"
    assert "authorization" in answer.headers["access-control-allow-headers"]
    refused = await edge.http.get("/v1/agents/", headers={"origin": "https://app.test"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://app.test")
    stranger = await edge.http.options("/v1/agents/", headers=asks | {"origin": "https://evil.test"})
    assert stranger.status_code == 400
    assert "access-control-allow-origin" not in stranger.headers


async def test_other_origins_are_strangers_by_default(edge: Edge) -> None:
    answer = await edge.http.get("/v1/agents/", headers={"origin": "https://app.test"})
    assert "access-control-allow-origin" not in answer.headers


async def test_tokens_over_rest(edge: Edge, backend: Backend) -> None:
    ends_at = Timestamp(seconds=1_800_000_000)
    token = wire.ClientToken(
        id=f"ct-{USER}",
        hostname="https://app.test",
        policy=[wire.AgentAccess(agent_id=AGENT_ID, access=["read_agent"])],
        expires_at=ends_at,
    )
    secret = f"loci-ct-{USER}-secret"
    backend.on("CreateClientToken", lambda _: wire.CreateClientTokenResponse(secret=secret, token=token))
    backend.on("ListClientTokens", lambda _: wire.ListClientTokensResponse(tokens=[token], has_next_page=True))
    backend.on("DeleteClientToken", lambda _: wire.DeleteClientTokenResponse())
    policy: Any = [{"type": "agent", "id": AGENT_ID, "access": ["read_agent"]}]
    made = await edge.sdk.access_tokens.create(
        hostname="https://app.test", policy=policy, expires_at="2027-01-15T08:00:00Z"
    )
    assert (made.token, made.hostname, made.expires_at) == (secret, "https://app.test", "2027-01-15T08:00:00+00:00")
    assert (made.policy.version, made.policy.data[0].id) == ("1", AGENT_ID)
    assert backend.requests("CreateClientToken")[0].token.expires_at == ends_at
    listed = await edge.sdk.access_tokens.list(agent_id=AGENT_ID, limit=5, offset=2)
    assert (listed.has_next_page, listed.tokens[0].token) == (True, f"loci-ct-{USER}")
    asked = backend.requests("ListClientTokens")[0]
    assert (asked.agent_id, asked.page.page_size, asked.offset) == (AGENT_ID, 5, 2)
    for form in (listed.tokens[0].token, made.token):
        await edge.sdk.access_tokens.delete(form)
    assert {request.token_id for request in backend.requests("DeleteClientToken")} == {f"ct-{USER}"}
    for bad in ("x", "loci-ct-x", f"ct-{USER}", f"loci-ct-{USER}x"):
        assert (await edge.http.delete(f"/v1/client-side-access-tokens/{bad}")).status_code == 422
    for body in ({}, {"hostname": "x", "policy": []}, {"hostname": "x", "policy": [{**policy[0], "access": ["own"]}]}):
        assert (await edge.http.post("/v1/client-side-access-tokens", json=body)).status_code == 422


@pytest.mark.parametrize("prefix", ["/v1", "/v1/admin"])
async def test_organizations_and_users_over_rest(edge: Edge, backend: Backend, prefix: str) -> None:
    made = Timestamp(seconds=1_700_000_000)
    organization = wire.Organization(id=f"org-{TENANT}", name="Acme", created_at=made)
    user = wire.User(id=f"user-{USER}", organization_id=f"org-{TENANT}", name="Ada", created_at=made)
    for verb in ("Create", "Update", "Delete"):
        backend.on(f"{verb}Organization", answering(f"{verb}Organization", organization=organization))
        backend.on(f"{verb}User", answering(f"{verb}User", user=user))
    backend.on("ListOrganizations", lambda _: wire.ListOrganizationsResponse(organizations=[organization]))
    backend.on("ListUsers", lambda _: wire.ListUsersResponse(users=[user]))
    time = "2023-11-14T22:13:20+00:00"
    acme = {"id": f"org-{TENANT}", "name": "Acme", "created_at": time, "privileged_tools": False}
    ada = {
        "id": f"user-{USER}",
        "name": "Ada",
        "organization_id": f"org-{TENANT}",
        "created_at": time,
        "updated_at": time,
        "is_deleted": False,
    }
    http = edge.http
    assert (await http.get(f"{prefix}/orgs/?limit=2")).json() == [acme]
    assert (await http.post(f"{prefix}/orgs/", json={"name": "Acme"})).json() == acme
    assert (await http.patch(f"{prefix}/orgs/?org_id=org-{TENANT}", json={"name": "Acme"})).json() == acme
    assert (await http.delete(f"{prefix}/orgs/?org_id=org-{TENANT}")).json() == acme
    assert (await http.get(f"{prefix}/users/?after=user-{USER}")).json() == [ada]
    assert (await http.post(f"{prefix}/users/", json={"name": "Ada"})).json() == ada
    assert (await http.put(f"{prefix}/users/", json={"id": f"user-{USER}", "name": "Ada"})).json() == ada
    assert (await http.delete(f"{prefix}/users/?user_id=user-{USER}")).json() == ada | {"is_deleted": True}
    assert backend.requests("ListUsers")[0].page.after == f"user-{USER}"
    assert backend.requests("DeleteOrganization")[0].organization_id == f"org-{TENANT}"
    for method, path in (("DELETE", "orgs/"), ("DELETE", "users/?user_id=x"), ("PATCH", "orgs/?org_id=org-1")):
        assert (await http.request(method, f"{prefix}/{path}", json={"name": "x"})).status_code == 422


def answering(method: str, **fields: Any) -> Any:
    return lambda _: getattr(wire, f"{method}Response")(**fields)


@asynccontextmanager
async def talking(edge: Edge, headers: dict[str, str]) -> AsyncIterator[ClientConnection]:
    """A socket of a caller."""
    address = f"{edge.url.replace('http', 'ws')}/v1/agents/{AGENT_ID}/ws"
    async with connect(address, additional_headers=headers) as socket, asyncio.timeout(30):
        yield socket


async def heard_until_closed(socket: ClientConnection, saying: str = "") -> tuple[list[Data], Close]:
    """What came, and how the gateway closed."""
    heard: list[Data] = []
    try:
        while True:
            if saying:
                await socket.send(saying)
            heard.append(await socket.recv())
            await asyncio.sleep(0.01)
    except ConnectionClosedError as error:
        closed = error.rcvd
    assert closed is not None
    return heard, closed


async def test_a_socket_closes_with_what_comes_after_its_key_was_revoked(
    start_gateway: StartGateway, backend: Backend, keys: Keys
) -> None:
    edge = await start_gateway(key_cache=0.2)
    async with talking(edge, keys.add("developer")) as socket:
        # While it holds the socket goes on, also once the key was looked at again.
        while len(backend.requests("Authenticate")) < 2:
            await socket.send('{"type": "ping"}')
            assert orjson.loads(await socket.recv())["type"] == "pong"
            await asyncio.sleep(0.02)
        keys.known.clear()
        _, closed = await heard_until_closed(socket, saying='{"type": "ping"}')
    assert (closed.code, closed.reason) == (1008, SENTENCE)


async def test_a_socket_that_only_listens_hears_no_more_after_its_token_has_ended(
    start_gateway: StartGateway, backend: Backend, keys: Keys
) -> None:
    left = asyncio.Event()

    async def answer(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=samples.attached())
        try:
            for number in itertools.count(1):
                delta = samples.event(number, delta=samples.said(str(number)))
                yield message_service_pb2.StreamMessagesResponse(event=delta)
                await asyncio.sleep(0.02)
        finally:
            left.set()

    backend.on("StreamMessages", answer)
    edge = await start_gateway(key_cache=0.2)
    header = keys.token("write_messages") | {"origin": "https://app.test"}
    async with talking(edge, header) as socket:
        await socket.send('{"type": "send", "input": "hello", "stream_tokens": true}')
        for _ in range(3):
            await socket.recv()
        # From here on its time is over.
        [token] = keys.known.values()
        token.expires_at.FromDatetime(datetime.now(UTC))
        _, closed = await heard_until_closed(socket)
        await left.wait()
    assert closed.code == 1008


async def test_a_socket_goes_on_while_nobody_can_be_asked(
    start_gateway: StartGateway, backend: Backend, keys: Keys
) -> None:
    edge = await start_gateway(key_cache=0.1)
    async with talking(edge, keys.add("developer")) as socket:

        def nobody(_: Any) -> Any:
            raise InvalidArgument("of no use", reason="BROKEN")

        backend.on("Authenticate", nobody)
        # Twice it was asked, in vain.
        while len(backend.requests("Authenticate")) < 3:
            await socket.send('{"type": "ping"}')
            assert orjson.loads(await socket.recv())["type"] == "pong"
            await asyncio.sleep(0.02)
