"""Streams send the events that the OpenAPI document describes."""

from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Providers
from tests.e2e.openapi_strict import Document
from tests.e2e.sdk_methods.world import World
from tests.fakes.script import Reply, Rule

HELLO: Any = {"messages": [{"role": "user", "content": "use double with number=21"}], "streaming": True}
WAITS = {"client_tools": [{"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}]}
ASKS: Any = {"messages": [{"role": "user", "content": "use look"}], "streaming": True}


@pytest.fixture(scope="module")
def document(world: World) -> Document:
    """The stack's document."""
    return Document(world.url)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/agents/{agent_id}/messages", HELLO),
        ("/v1/agents/{agent_id}/messages", HELLO | {"stream_tokens": True, "include_compaction_messages": True}),
        ("/v1/agents/{agent_id}/messages", HELLO | {"background": True}),
        ("/v1/agents/{agent_id}/messages", HELLO | {"override_model": "openai/gpt-4o-mini"}),
        ("/v1/agents/{agent_id}/messages/stream", HELLO),
        ("/v1/conversations/{conversation_id}/messages", HELLO | {"stream_tokens": True}),
        ("/v1/conversations/{conversation_id}/messages", ASKS | WAITS),
        ("/v1/conversations/{conversation_id}/messages", HELLO),
    ],
)
def test_events(world: World, document: Document, providers: Providers, path: str, body: Any) -> None:
    agent = world.new_agent(tool_ids=[world.double.id])
    conversation = world.client.conversations.create(agent_id=agent.id)
    url = path.format(agent_id=agent.id, conversation_id=conversation.id)
    # The only turn that goes there, and it fails.
    providers.openai.rules(Rule(Reply(error="authentication")))
    try:
        with httpx.stream("POST", f"{world.url}{url}", json=body, timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert document.check_events("POST", url, answer.iter_lines()) > 2
    finally:
        providers.openai.reset()
