"""Requests that are wrong: a 4xx with the reference's body, never a 500, and nothing reaches a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from loci.agent.v1 import agent_service_pb2
from services.common.errors import AlreadyExists, Internal, InvalidArgument, LociError, NotFound, ResourceExhausted
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID, BLOCK_ID
from tests.integration.gateway.scripted import Backend

# One gateway serves all of these: nothing that they send is stored anywhere.
MESSAGES = f"/v1/agents/{AGENT_ID}/messages"
UUID = AGENT_ID.removeprefix("agent-")
JSON = {"content-type": "application/json"}
DEEP = b'{"name":"a","metadata":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}"
DEEPISH = b'{"name":"a","metadata":{"a":' + b"[" * 150 + b"]" * 150 + b"}}"


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", "/v1/agents", b"{not json", "JSON"),
        ("POST", "/v1/agents", b"[]", "dict"),
        ("POST", "/v1/agents", b'"text"', "dict"),
        ("POST", "/v1/agents", b"", "body"),
        ("POST", "/v1/agents", b'{"name": "\\u0000"}', "NUL"),
        ("POST", "/v1/agents", b'{"name": "\xff"}', "UTF-8"),
        ("POST", "/v1/agents", b'{"metadata": {"a": NaN}}', "JSON"),
        ("POST", "/v1/agents", b'{"metadata": {"a\\u0000": 1}}', "NUL"),
        ("POST", "/v1/agents", DEEP, "depth"),
        ("POST", "/v1/agents", DEEPISH, "nested"),
        ("POST", "/v1/agents", b'{"name": 5}', "name"),
        ("POST", "/v1/agents", b'{"context_window_limit": 99999999999}', "context_window_limit"),
        ("POST", "/v1/agents", b'{"context_window_limit": 123456789012345678901234567890}', "context_window_limit"),
        ("POST", "/v1/agents", b'{"block_ids": ["block-1"]}', "block_ids"),
        ("POST", "/v1/agents", b'{"response_format": {"type": "xml"}}', "union_tag_invalid"),
        ("POST", "/v1/agents", b'{"compaction_settings": {"mode": "magic"}}', "compaction_settings"),
        ("POST", f"/v1/agents/{AGENT_ID}/summarize", b'{"compaction_settings": {"mode": "magic"}}', "mode"),
        ("POST", f"/v1/agents/{AGENT_ID}/generate", b'{"prompt": "   "}', "prompt"),
        ("POST", "/v1/agents", b'{"agent_type": "unheard_of"}', "agent_type"),
        ("POST", "/v1/agents", b'{"tool_rules": {"type": "run_first", "tool_name": "a"}}', "tool_rules"),
        ("POST", "/v1/agents", b'{"recall_passages": 51}', "recall_passages"),
        ("POST", "/v1/agents", b'{"initial_message_sequence": [{"role": "tool", "content": "a"}]}', "role"),
        ("PATCH", f"/v1/agents/{AGENT_ID}/tools/approval/roll", None, "requires_approval"),
        ("PATCH", f"/v1/agents/{AGENT_ID}/tools/approval/roll", b'{"requires_approval": "often"}', "requires_approval"),
        ("POST", "/v1/agents", b'{"response_format": "json_object"}', "response_format"),
        ("POST", "/v1/agents", b'{"enable_sleeptime": 5}', "enable_sleeptime"),
        ("POST", "/v1/agents", b'{"identity_ids": "identity-1"}', "identity_ids"),
        ("PATCH", f"/v1/agents/{AGENT_ID}", b'{"message_ids": ["message-1"]}', "message_ids"),
        ("POST", "/v1/blocks", b'{"value": "a"}', "label"),
        ("POST", "/v1/blocks", b'{"label": "a", "value": "b", "limit": 0}', "limit"),
        ("POST", "/v1/tools", b"{}", "source_code"),
        ("GET", "/v1/tools?tool_types=nonsense", None, "nonsense"),
        ("GET", "/v1/agents?order=sideways", None, "order"),
        ("GET", "/v1/agents?created_by_id=user-1", None, "created_by_id"),
        ("GET", "/v1/agents?identity_id=ada", None, "identity_id"),
        ("GET", "/v1/agents?last_stop_reason=bored", None, "last_stop_reason"),
        ("GET", "/v1/blocks?identity_id=identity-1", None, "identity_id"),
        ("POST", "/v1/identities", b'{"identifier_key": "a", "name": "A"}', "identity_type"),
        ("POST", "/v1/identities", b'{"identifier_key": "a", "name": "A", "identity_type": "robot"}', "identity_type"),
        ("PUT", "/v1/identities", b'{"identifier_key": 5, "name": "A", "identity_type": "user"}', "identifier_key"),
        ("PUT", f"/v1/identities/identity-{UUID}/properties", b'[{"key": "a", "type": "number"}]', "value"),
        ("PUT", f"/v1/identities/identity-{UUID}/properties", b'{"a": 1}', "list"),
        ("PATCH", "/v1/identities/ada", b"{}", "identity-"),
        ("GET", "/v1/identities?identity_type=robot", None, "identity_type"),
        ("POST", "/v1/groups", b'{"description": "a"}', "agent_ids"),
        ("POST", "/v1/groups", b'{"agent_ids": [], "description": "a", "manager_config": {}}', "manager_type"),
        (
            "POST",
            "/v1/groups",
            b'{"agent_ids": [], "description": "a", "manager_config": {"manager_type": "dynamic"}}',
            "manager_agent_id",
        ),
        ("PATCH", f"/v1/groups/group-{UUID}", b'{"manager_config": {"manager_type": "hive"}}', "hive"),
        ("GET", "/v1/groups/group-1/messages", None, "group-"),
        ("PATCH", f"/v1/groups/group-{UUID}/messages/message-1", b"{}", "message-"),
        ("GET", "/v1/agents/%00", None, "NUL"),
        ("GET", "/v1/agents?name=a%00b", None, "NUL"),
        ("POST", MESSAGES, b"{}", "exactly one"),
        ("POST", MESSAGES, b'{"messages": [], "input": null}', "empty"),
        ("POST", MESSAGES, b'{"messages": [{"role": "user", "content": "a"}], "input": "b"}', "exactly one"),
        ("POST", MESSAGES, b'{"input": "a", "stream_tokens": true}', "stream_tokens"),
        ("POST", MESSAGES, b'{"input": "a", "background": true}', "background"),
        ("POST", MESSAGES, b'{"input": "a", "include_pings": false}', "include_pings"),
        ("POST", MESSAGES, b'{"input": "a", "max_steps": 0}', "max_steps"),
        ("POST", MESSAGES, b'{"input": "a", "override_system": 5}', "override_system"),
        ("POST", MESSAGES, b'{"input": "a", "client_tools": [{}]}', "client_tools"),
        ("POST", MESSAGES, b'{"input": "a", "on_busy": "panic"}', "on_busy"),
        ("POST", MESSAGES, b'{"messages": [{"type": "tool_return", "tool_returns": []}]}', "tool_returns"),
        ("POST", f"/v1/agents/{AGENT_ID}/summarize", b'{"compaction_settings": "all"}', "compaction_settings"),
        ("POST", MESSAGES, b'{"input": [{"type": "reasoning", "reasoning": "a"}]}', "reasoning"),
        ("POST", MESSAGES, b'{"messages": [{"role": "user"}]}', "content"),
        ("POST", MESSAGES, b'{"messages": ["a"]}', "messages"),
        ("POST", MESSAGES, b'{"input": [{"type": "image", "source": {"type": "url", "url": "file:///a"}}]}', "https"),
        (
            "POST",
            MESSAGES,
            b'{"input": [{"type": "image", "source": {"media_type": "image/png", "data": "!"}}]}',
            "base64",
        ),
        ("POST", f"/v1/agents/{AGENT_ID}/archival-memory", b'{"text": "a", "created_at": "tomorrow"}', "created_at"),
    ],
)
async def test_a_request_that_is_wrong_in_itself(
    edge: Edge, backend: Backend, method: str, path: str, body: bytes | None, says: str
) -> None:
    answer = await edge.http.request(method, path, content=body, headers={} if body is None else JSON)
    assert answer.status_code == 422, answer.text
    assert isinstance(answer.json()["detail"], str)
    assert says in answer.json()["detail"]
    assert len(answer.json()["trace_id"]) == 32
    assert answer.headers["x-trace-id"] == answer.json()["trace_id"]
    assert backend.asked == []


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("GET", "/v1/runs?statuses=nonsense", None, "nonsense"),
        ("POST", MESSAGES, b'{"messages": [{"type": "approval", "approvals": []}]}', "at least one answer"),
    ],
)
async def test_a_request_that_is_wrong_and_not_in_its_schema(
    edge: Edge, backend: Backend, method: str, path: str, body: bytes | None, says: str
) -> None:
    answer = await edge.http.request(method, path, content=body, headers={} if body is None else JSON)
    assert answer.status_code == 400, answer.text
    assert says in answer.json()["detail"]
    assert backend.asked == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/agents/agent-1",
        f"/v1/agents/{AGENT_ID[6:]}",
        f"/v1/agents/{BLOCK_ID}",
        "/v1/agents/agent-00000000-0000-4000-8000-00000000000g",
        "/v1/agents/counts",
    ],
)
async def test_a_malformed_id_is_answered_with_an_example(edge: Edge, path: str) -> None:
    answer = await edge.http.get(path)
    assert (answer.status_code, answer.json()["examples"]) == (422, ["agent-123e4567-e89b-42d3-8456-426614174000"])


async def test_a_body_that_is_not_sent_as_json_says_so(edge: Edge) -> None:
    """A page in a browser could send such a body to this address without being asked; JSON it cannot."""
    answer = await edge.http.post(
        "/v1/blocks", content=b'{"label":"a","value":"b"}', headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 422
    assert "content-type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit(edge: Edge, backend: Backend, chunked: bool) -> None:
    body = b'{"name": "' + b"a" * (50 * 1024 * 1024) + b'"}'

    async def pieces() -> Any:
        for start in range(0, len(body), 1 << 20):
            yield body[start : start + (1 << 20)]

    answer = await edge.http.post("/v1/agents", content=pieces() if chunked else body, headers=JSON)
    assert (answer.status_code, backend.asked) == (413, [])
    assert "32 MiB" in answer.json()["detail"]
    assert (await edge.http.get("/v1/health")).status_code == 200


async def test_a_large_body_that_is_wrong_is_not_sent_back_whole(edge: Edge) -> None:
    answer = await edge.http.post("/v1/blocks", json={"label": ["a" * 5_000_000], "value": "b"})
    assert answer.status_code == 422
    assert len(answer.content) < 2_000


@pytest.mark.parametrize("path", ["/v1/nonsense", "/nonsense", "/v1", f"/v1/agents/{AGENT_ID}/nonsense"])
async def test_an_unknown_route(edge: Edge, path: str) -> None:
    answer = await edge.http.get(path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


async def test_a_method_that_a_route_does_not_have(edge: Edge) -> None:
    answer = await edge.http.put(f"/v1/agents/{AGENT_ID}")
    assert (answer.status_code, answer.json()) == (405, {"detail": "Method Not Allowed"})


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (NotFound("agent-x is not there", reason="AGENT_NOT_FOUND"), 404, {"detail": "Agent not found"}),
        (
            NotFound("there is no model a/b", reason="MODEL_NOT_FOUND"),
            404,
            {"detail": "not found: there is no model a/b"},
        ),
        (NotFound("no model a/b", reason="EMBEDDING_NOT_FOUND"), 400, {"detail": "no model a/b"}),
        (InvalidArgument("no handle", reason="MODEL_HANDLE_INVALID"), 400, {"detail": "no handle"}),
        (NotFound("Tools not found: x", reason="TOOL_NOT_FOUND"), 400, {"detail": "Tools not found: x"}),
        (AlreadyExists("label taken", reason="BLOCK_LABEL_TAKEN"), 409, {"detail": "label taken"}),
        (ResourceExhausted("32 wait", reason="CONVERSATION_LINE_FULL"), 429, {"detail": "32 wait"}),
        (Internal("internal error; trace 1"), 500, {"detail": "An unknown error occurred"}),
    ],
)
async def test_what_a_service_refuses(
    edge: Edge, backend: Backend, error: LociError, status: int, body: dict[str, Any]
) -> None:
    backend.on("CreateAgent", _raiser(error))
    answer = await edge.http.post("/v1/agents", json={"name": "a"})
    assert (answer.status_code, answer.json()) == (status, body)
    assert len(answer.headers["x-trace-id"]) == 32
    assert answer.headers.get("x-should-retry") == ("false" if status == 409 else None)


async def test_an_invalid_id_that_only_a_service_sees(edge: Edge, backend: Backend) -> None:
    error = InvalidArgument("'x' is not a valid id", reason="INVALID_ID", metadata={"prefix": "agent"})
    backend.on("ListAgents", _raiser(error))
    answer = await edge.http.get(f"/v1/agents?after={BLOCK_ID}")
    assert (answer.status_code, answer.json()["examples"][0][:6]) == (422, "agent-")


async def test_a_bug_of_the_gateway_is_a_500_that_tells_nothing(edge: Edge, backend: Backend) -> None:
    broken = samples.agent(metadata_json="{not json")
    backend.on("CreateAgent", lambda _: agent_service_pb2.CreateAgentResponse(agent=broken))
    answer = await edge.http.post("/v1/agents", json={})
    assert (answer.status_code, answer.json()) == (500, {"detail": "An unknown error occurred"})
    assert len(answer.headers["x-trace-id"]) == 32


async def test_a_service_that_is_away(start_gateway: StartGateway, backend: Backend) -> None:
    await backend.stop("memory")
    edge = await start_gateway(call_timeout=0.5)
    answer = await edge.http.get(f"/v1/blocks/{BLOCK_ID}")
    assert answer.status_code in (503, 504)
    assert orjson.loads(answer.content)["detail"]


def _raiser(error: LociError) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        raise error

    return answer
