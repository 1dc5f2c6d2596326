"""OpenAI's Responses with an agent as the model: OpenAI's own SDK against a whole Loci."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.helpers import create, types
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

MODEL = "openai/gpt-4o-mini"
LS: Any = {"type": "function", "name": "ls", "parameters": {"type": "object", "properties": {"path": {}}}}


@pytest.fixture
def sdk(stack: Stack) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="none", max_retries=0, timeout=30) as client:
        yield client


def conversation_of(response: Any) -> str:
    named: str = response.conversation.id
    return named


def test_each_response_goes_on_where_the_one_before_ended(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="Hello, Ada."), Reply(text="You are Ada."), Reply(text="No idea."))
    first = sdk.responses.create(model=agent_id, input="I am Ada.", instructions="Be short.")
    assert (first.status, first.output_text, first.model) == ("completed", "Hello, Ada.", agent_id)
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    second = sdk.responses.create(model=agent_id, input="Who am I?", previous_response_id=first.id)
    assert (second.output_text, conversation_of(second)) == ("You are Ada.", conversation_of(first))
    other = sdk.responses.create(model=agent_id, input="Who am I?")
    assert conversation_of(other) != conversation_of(first)
    told = [body["messages"] for body in openai_fake.bodies("/chat/completions")]
    assert [message["role"] for message in told[1]] == ["system", "user", "assistant", "user"]
    assert [message["role"] for message in told[2]] == ["system", "user"]
    # Instructions are those of their request alone.
    assert told[0][0]["content"].endswith("\n\nBe short.")
    assert "Be short." not in told[1][0]["content"]
    found = sdk.responses.retrieve(second.id)
    assert (found.status, found.output_text, found.usage) == ("completed", "You are Ada.", second.usage)
    sdk.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(second.id)


def test_a_history_that_the_client_keeps(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="Hello."), Reply(text="Fine."), Reply(text="Good night."))
    first = sdk.responses.create(model=agent_id, input=[{"role": "user", "content": "Hello?"}])
    history: Any = [{"role": "user", "content": "Hello?"}, *(item.model_dump() for item in first.output)]
    second = sdk.responses.create(model=agent_id, input=[*history, {"role": "user", "content": "How are you?"}])
    assert conversation_of(second) == conversation_of(first)
    kept: Any = sdk.responses.create(model=agent_id, input="Good night", store=False)
    assert conversation_of(kept) == "default"
    told = openai_fake.bodies("/chat/completions")[1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]


def test_a_stream(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(
        Reply(text="one two three", reasoning="count up", calls=(ToolCall("ls", {"path": "/"}),), delta_delay=0.02),
        Reply(text="There is a.txt."),
    )
    with sdk.responses.stream(model=agent_id, input="Count!", tools=[LS]) as events:
        kinds = [event.type for event in events]
        response: Any = events.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") > 1
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert response.output[0].summary[0].text == "count up"
    assert response.output_text == "one two three"
    call = response.output[2]
    assert (call.name, call.arguments, call.status) == ("ls", '{"path":"/"}', "completed")
    returned: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "a.txt"}
    # As the AI SDK does it: the history, of which only the call has an id.
    called: Any = {"type": "function_call", "call_id": call.call_id, "name": "ls", "arguments": call.arguments}
    history: Any = [{"role": "user", "content": "Count!"}, called, returned]
    done = sdk.responses.create(model=agent_id, input=history, tools=[LS])
    assert (done.output_text, conversation_of(done)) == ("There is a.txt.", conversation_of(response))


def test_structured_output(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text='{"name": "Ada"}'))
    schema: Any = {"type": "object", "properties": {"name": {"type": "string"}}}
    text: Any = {"format": {"type": "json_schema", "name": "person", "schema": schema}}
    sdk.responses.create(model=agent_id, input="Who?", text=text, tools=[LS], tool_choice="required")
    body = openai_fake.bodies("/chat/completions")[0]
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    assert body["tool_choice"] == "required"


def test_one_in_the_background(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="At last.", first_delay=0.5))
    begun = sdk.responses.create(model=agent_id, input="Take your time.", background=True)
    assert begun.status in ("queued", "in_progress")
    for _ in stack.client().runs.messages.stream(f"run-{_dashed(begun.id)}"):
        pass
    done = sdk.responses.retrieve(begun.id)
    assert (done.status, done.output_text) == ("completed", "At last.")


def test_failures(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id, other = create(stack.client(), MODEL), create(stack.client(), MODEL)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="gpt-4o", input="Hello")
    with pytest.raises(openai.BadRequestError, match="no response has the id"):
        sdk.responses.create(model=agent_id, input="Hello", previous_response_id="resp_1")
    openai_fake.reply(Reply(text="Hello."), Reply(error="bad_request", message="too blue"))
    first = sdk.responses.create(model=agent_id, input="Hello")
    with pytest.raises(openai.BadRequestError, match="another agent"):
        sdk.responses.create(model=other, input="Hello", previous_response_id=first.id)
    events: Any = list(sdk.responses.create(model=agent_id, input="Hello", stream=True))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    assert "too blue" in events[-1].response.error.message
    openai_fake.reply(Reply(error="quota"))
    with pytest.raises(openai.APIStatusError) as refused:
        sdk.responses.create(model=agent_id, input="Hello")
    assert refused.value.status_code == 402
    assert "assistant_message" not in types(stack.client().agents.messages.list(other).items)


def _dashed(response_id: str) -> str:
    bare = response_id.removeprefix("resp_")
    return "-".join((bare[:8], bare[8:12], bare[12:16], bare[16:20], bare[20:]))
