"""Bad input and bad luck: the reference's status, a sentence that helps, and the next message works."""

from typing import Any

import httpx
import pytest
from letta_client import APIStatusError

from tests.e2e.helpers import create, types
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule, ToolCall, by_step

MISSING = "agent-00000000-0000-4000-8000-0000000000aa"


def post(stack: Stack, path: str, body: Any) -> httpx.Response:
    return httpx.post(f"{stack.url}{path}", json=body, timeout=30)


def test_requests_that_cannot_be_right(stack: Stack) -> None:
    message = {"messages": [{"role": "user", "content": "hi"}]}
    cases = [
        (post(stack, f"/v1/agents/{MISSING}/messages", message), 404, "Agent not found"),
        (post(stack, "/v1/agents/agent-42/messages", message), 422, "agent-"),
        (post(stack, f"/v1/agents/{MISSING}/messages", {"messages": []}), 422, "messages"),
        (post(stack, f"/v1/agents/{MISSING}/messages", {}), 422, "messages"),
        (post(stack, "/v1/agents/", {"model": "openai/no-such-model"}), 404, "no-such-model"),
        (post(stack, "/v1/agents/", {"model": "gpt"}), 400, "provider"),
        (post(stack, "/v1/agents/", {"name": "<script>"}), 422, "name"),
        (post(stack, "/v1/tools/", {"source_code": "def broken(:\n  pass"}), 400, "line"),
        (post(stack, "/v1/tools/", {"source_code": "def silent():\n    return 1"}), 400, "docstring"),
        (httpx.post(f"{stack.url}/v1/agents/", content=b"{", timeout=30), 422, ""),
    ]
    for response, status, hint in cases:
        assert response.status_code == status, (str(response.request.url), response.text)
        assert hint in response.text


BODIES = {
    "raises": 'raise ValueError("no luck today")',
    "loops": "while True: pass",
    "eats": 'return len("x" * 8_000_000_000)',
    "floods": 'for _ in range(100): print("x" * 1_000_000)',
    "lies": "return object()",
}


def source(name: str) -> str:
    """A tool without arguments."""
    return f'def {name}():\n    """Misbehave."""\n    {BODIES[name]}\n'


ADD = '''
def add(a: int, b: int):
    """Add.

    Args:
        a (int): One.
        b (int): Two.
    """
    return a + b
'''


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("name", "said"),
    [("raises", "no luck today"), ("loops", "no result after 6 s"), ("eats", "emory"), ("floods", ""), ("lies", "")],
)
def test_tools_that_misbehave(short_stack: Stack, openai_fake: OpenAIServer, name: str, said: str) -> None:
    client = short_stack.client(timeout=60)
    tool = client.tools.upsert(source_code=source(name))
    agent_id = create(client, "openai/gpt-4o-mini", tool_ids=[tool.id])
    openai_fake.rules(*by_step(Reply(calls=(ToolCall(name),)), Reply(text="I see.")))
    reply = client.agents.messages.create(agent_id, input="Try it.")
    returned = next(message for message in reply.messages if message.message_type == "tool_return_message")
    assert said in returned.tool_return
    if name not in ("floods", "lies"):
        assert returned.status == "error"
    assert len(returned.tool_return) < 60_000
    assert reply.stop_reason.stop_reason == "end_turn"
    assert client.agents.messages.create(agent_id, input="And now?").stop_reason.stop_reason == "end_turn"
    client.agents.delete(agent_id)


def test_arguments_that_break_the_schema_go_to_the_model(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    tool = client.tools.upsert(source_code=ADD)
    agent_id = create(client, "openai/gpt-4o-mini", tool_ids=[tool.id], parallel_tool_calls=True)
    openai_fake.rules(
        *by_step(
            Reply(calls=(ToolCall("add", {"a": 1, "b": "two"}), ToolCall("add", raw_arguments='{"a": 1,'))),
            Reply(calls=(ToolCall("nothing"), ToolCall("add", {"a": 1, "b": 2}))),
            Reply(text="Three."),
        )
    )
    reply = client.agents.messages.create(agent_id, input="Add.")
    first, second = [
        [one.tool_return for one in message.tool_returns]
        for message in reply.messages
        if message.message_type == "tool_return_message"
    ]
    assert "b" in first[0]
    assert "integer" in first[0]
    assert "JSON" in first[1]
    assert "Tool not found" in second[0]
    assert second[1] == "3"
    client.agents.delete(agent_id)


FAILURES = [
    (Reply(error="authentication"), 401, "llm_authentication"),
    (Reply(error="rate_limit"), 429, "llm_rate_limit"),
    (Reply(error="server"), 502, "llm_error"),
    (Reply(error="context_overflow"), 400, "context window"),
    (Reply(hang=True), 504, "llm_timeout"),
    (Reply(text="I was about to say something long", truncate_after=2), 502, ""),
]


@pytest.mark.parametrize(("reply", "status", "error_type"), FAILURES)
def test_providers_that_fail(
    short_stack: Stack, openai_fake: OpenAIServer, reply: Reply, status: int, error_type: str
) -> None:
    client = short_stack.client(timeout=60)
    agent_id = create(client, "openai/gpt-4o-mini")
    openai_fake.rules(Rule(reply))
    with pytest.raises(APIStatusError) as failed:
        client.agents.messages.create(agent_id, input="Hello?")
    assert failed.value.status_code in (status, 500)
    assert error_type in str(failed.value.body)

    # The same in a stream: HTTP 200, stop_reason, then an error event, which the client raises.
    stream = client.agents.messages.create(
        agent_id, messages=[{"role": "user", "content": "Hello?"}], streaming=True, stream_tokens=True
    )
    seen: list[Any] = []
    with pytest.raises(APIStatusError):
        seen.extend(chunk for chunk in stream)
    openai_fake.reset()
    again = client.agents.messages.create(agent_id, input="Are you back?")
    assert again.stop_reason.stop_reason == "end_turn"
    # A window that a model refuses as too long is summarised, which takes nothing away.
    ours = ("system_message", "summary_message")
    kinds = [kind for kind in types(client.agents.messages.list(agent_id, order="asc")) if kind not in ours]
    assert kinds == ["user_message", "user_message", "user_message", "assistant_message"]
    statuses = sorted(run.status for run in client.runs.list(agent_id=agent_id))
    assert statuses == ["completed", "failed", "failed"]
    client.agents.delete(agent_id)
