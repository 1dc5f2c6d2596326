"""Vendors' own APIs: Anthropic's own SDK against a whole Loci."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.script import Reply

MODEL = "claude-haiku-4-5"
NOBODY = "agent-00000000-0000-4000-8000-000000000000"


@pytest.fixture
def sdk(stack: Stack) -> Iterator[Anthropic]:
    """The SDK as a client sets it up that can be given a base URL only."""
    with Anthropic(base_url=f"{stack.url}/v1/anthropic", api_key="none", max_retries=0, timeout=30) as client:
        yield client


def said(text: str, **fields: Any) -> dict[str, Any]:
    """A user's message."""
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **fields}


def of_agent(agent_id: str) -> dict[str, Any]:
    return {"extra_headers": {"X-Letta-Agent-Id": agent_id}}


def stored(stack: Stack, agent_id: str) -> list[tuple[str, Any]]:
    found = stack.client().agents.messages.list(agent_id).items
    return [(one.message_type, one.content) for one in found if one.message_type != "system_message"]


def test_without_an_agent_nothing_is_added(stack: Stack, sdk: Anthropic, anthropic_fake: AnthropicServer) -> None:
    anthropic_fake.reply(Reply(text="Hello."))
    wanted = said("Hello?", system="Be brief.")
    answer: Any = sdk.messages.create(**wanted)
    assert (answer.content[0].text, answer.model, answer.usage.output_tokens > 0) == ("Hello.", MODEL, True)
    assert anthropic_fake.bodies("/v1/messages") == [wanted]
    assert anthropic_fake.requests[-1].headers["authorization"] == "Bearer sk-ant-test"
    assert MODEL in [model.id for model in sdk.models.list()]
    assert sdk.messages.count_tokens(model=MODEL, messages=wanted["messages"]).input_tokens > 0


def test_an_agent_remembers(stack: Stack, sdk: Anthropic, anthropic_fake: AnthropicServer) -> None:
    blocks = [{"label": "human", "value": "Her name is Ada."}]
    agent_id = stack.client().agents.create(memory_blocks=blocks, model="loci/demo").id
    anthropic_fake.reply(Reply(text="Ada."), Reply(text="one two three", delta_delay=0.02))
    assert sdk.messages.create(**said("Who am I?", system="Be brief."), **of_agent(agent_id)).content
    system = [{"type": "text", "text": "Count.", "cache_control": {"type": "ephemeral"}}]
    with sdk.messages.stream(**said("Count!", system=system), **of_agent(agent_id)) as stream:
        pieces = list(stream.text_stream)
    assert (len(pieces) > 1, "".join(pieces)) == (True, "one two three")
    text, parts = (body["system"] for body in anthropic_fake.bodies("/v1/messages"))
    assert text.startswith("Be brief.\n\n<memory_blocks>")
    assert "Her name is Ada." in text
    assert parts[0] == system[0]
    assert "Her name is Ada." in parts[1]["text"]
    assert stored(stack, agent_id) == [
        ("user_message", "Who am I?"),
        ("assistant_message", "Ada."),
        ("user_message", "Count!"),
        ("assistant_message", "one two three"),
    ]


def test_the_vendor_refuses(stack: Stack, sdk: Anthropic, anthropic_fake: AnthropicServer) -> None:
    agent_id = create(stack.client(), "loci/demo")
    for stream in (False, True):
        anthropic_fake.reply(Reply(error="rate_limit", message="slow down", retry_after=7))
        with pytest.raises(anthropic.RateLimitError, match="slow down") as refused:
            sdk.messages.create(**said("Hello"), stream=stream, **of_agent(agent_id))
        assert refused.value.response.headers["retry-after"] == "7"
    with pytest.raises(anthropic.NotFoundError):
        sdk.messages.create(**{**said("Hello"), "model": "claude-none"})
    assert stored(stack, agent_id) == []


def test_a_key_of_ones_own(sdk: Anthropic, anthropic_fake: AnthropicServer) -> None:
    sdk.with_options(api_key="sk-ant-mine").messages.create(**said("Hello"))
    assert anthropic_fake.requests[-1].headers["authorization"] == "Bearer sk-ant-mine"
    sdk.messages.create(**said("Hello"), extra_headers={"x-api-key": "sk-ant-also-mine"})
    assert anthropic_fake.requests[-1].headers["authorization"] == "Bearer sk-ant-also-mine"


def test_what_is_not_passed_on(stack: Stack, sdk: Anthropic, anthropic_fake: AnthropicServer) -> None:
    for agent_id, expected in ((NOBODY, anthropic.NotFoundError), ("agent-1", anthropic.BadRequestError)):
        with pytest.raises(expected):
            sdk.messages.create(**said("Hello"), **of_agent(agent_id))
    for path, status, kind in (
        ("anthropic/v1/../../admin", 400, "invalid_request_error"),
        ("anthropic/v1/%2e%2e/admin", 400, "invalid_request_error"),
        ("anthropic/v1/http://127.0.0.1/x", 400, "invalid_request_error"),
        ("anthropic/v1/a%2f%2e%2e%2f%2e%2e/x", 400, "invalid_request_error"),
        ("anthropic/v1/messages/batches", 403, "permission_error"),
        ("zai/v1/models", 404, "not_found_error"),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{stack.url}/v1/{path}", timeout=30)
        body = json.loads(refused.value.read())
        assert (refused.value.code, body["type"], body["error"]["type"]) == (status, "error", kind), path
    assert anthropic_fake.requests == []
