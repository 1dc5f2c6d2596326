"""What strangers' clients, pages and proxies do."""

from __future__ import annotations

from typing import Any

import pytest

from loci.agent.v1 import message_service_pb2
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_turns import streams

MESSAGES = f"/v1/agents/{AGENT_ID}/messages"
PAGE = "https://app.test"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


def answers(backend: Backend) -> None:
    backend.on("SendMessages", lambda _: message_service_pb2.SendMessagesResponse(messages=[], end=samples.turn_end()))


async def test_a_page_may_call_a_server_in_a_private_network(start_gateway: StartGateway) -> None:
    edge = await start_gateway(cors_origins=(PAGE,))
    asked = {"access-control-request-method": "POST", "access-control-request-private-network": "true"}
    allowed = await edge.http.request("OPTIONS", MESSAGES, headers=asked | {"origin": PAGE})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-private-network"] == "true"
    other = await edge.http.request("OPTIONS", MESSAGES, headers=asked | {"origin": "https://evil.test"})
    assert other.status_code == 400
    assert "access-control-allow-origin" not in other.headers
    read = await edge.http.get("/v1/health/", headers={"origin": PAGE})
    exposed = set(read.headers["access-control-expose-headers"].lower().split(", "))
    assert {"etag", "location", "x-trace-id", "x-upload-result", "x-search-mode", "retry-after"} <= exposed


async def test_no_line_of_a_stream_is_cut_and_no_proxy_changes_it(edge: Edge, backend: Backend) -> None:
    said = samples.said("a\u2028b\u2029c\x85d")
    streams(backend, samples.attached(), samples.event(1, message=said), samples.ended())
    answer = await edge.http.post(MESSAGES, json={**HELLO, "streaming": True})
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert all(line.startswith(("data: ", "id: ", "event: ")) for line in answer.text.splitlines() if line)
    assert "a\\u2028b\\u2029c\\u0085d" in answer.text


@pytest.mark.parametrize(
    "nulls",
    [
        {"max_steps": None},
        {"max_steps": None, "return_logprobs": None, "include_trace": None, "use_assistant_message": None},
    ],
)
async def test_null_is_the_default(edge: Edge, backend: Backend, nulls: dict[str, None]) -> None:
    answers(backend)
    answer = await edge.http.post(MESSAGES, json={**HELLO, **nulls})
    assert answer.status_code == 200, answer.text
    (asked,) = backend.requests("SendMessages")
    assert asked.turn.max_steps == 50


async def test_half_a_character_in_a_tool_s_return_is_no_reason_to_refuse_it(edge: Edge, backend: Backend) -> None:
    answers(backend)
    returned = rb'{"messages":[{"type":"tool_return","tool_returns":[{"type":"tool","tool_call_id":"c","status":"success","tool_return":"Hi \ud83d"}]}]}'  # noqa: E501
    answer = await edge.http.post(MESSAGES, content=returned, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    (asked,) = backend.requests("SendMessages")
    assert "Hi \ufffd" in str(asked) or "Hi \ufffd".encode() in asked.SerializeToString()


async def test_an_agent_file_that_is_not_utf_8_says_so(edge: Edge) -> None:
    for text, encoding in (("{}", "utf-16"), ("{}", "utf-16-le"), ('{"a": "\u00e9"}', "latin-1")):
        files = {"file": ("agent.af", text.encode(encoding), "application/json")}
        answer = await edge.http.post("/v1/agents/import", files=files)
        assert answer.status_code == 400
        assert "save it as UTF-8" in answer.text
