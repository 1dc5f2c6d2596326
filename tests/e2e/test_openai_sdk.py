"""Agents as models: OpenAI's own SDK against a whole Loci."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai import DefaultHttpxClient, OpenAI

from tests.e2e.helpers import create, types
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.polling import wait_until

MODEL = "openai/gpt-4o-mini"
PIXEL = base64.b64encode(b"\x89PNG not much of a picture").decode()
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "ls",
            "description": "Lists a folder.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]


@pytest.fixture
def sdk(stack: Stack) -> Iterator[OpenAI]:
    """The SDK as a client sets it up that can be given a base URL only."""
    with OpenAI(base_url=f"{stack.url}/openai/v1", api_key="none", max_retries=0, timeout=30) as client:
        yield client


def said(text: str) -> Any:
    """A user's message."""
    return [{"role": "user", "content": text}]


def test_two_turns_of_an_agent_that_remembers(stack: Stack, sdk: OpenAI) -> None:
    agent_id = create(stack.client(), "loci/demo")
    first = sdk.chat.completions.create(model=agent_id, messages=said("My name is Ada."))
    assert (first.choices[0].finish_reason, first.model) == ("stop", agent_id)
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    # Nothing of the first turn is sent: the agent knows it.
    second = sdk.chat.completions.create(model=agent_id, messages=said("What is my name?"))
    assert "Ada" in (second.choices[0].message.content or "")
    assert stack.client().runs.retrieve(second.id).agent_id == agent_id


def test_a_stream_is_the_text_in_pieces(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="one two three four", reasoning="count up", delta_delay=0.05))
    chunks = list(
        sdk.chat.completions.create(
            model=agent_id, messages=said("Count!"), stream=True, stream_options={"include_usage": True}
        )
    )
    *told, last, usage = chunks
    deltas: list[Any] = [chunk.choices[0].delta for chunk in told]
    assert deltas[0].role == "assistant"
    pieces = [delta.content for delta in deltas if delta.content]
    assert len(pieces) > 1
    assert "".join(pieces) == "one two three four"
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "count up"
    assert (last.choices[0].finish_reason, usage.choices) == ("stop", [])
    assert usage.usage is not None
    assert usage.usage.completion_tokens > 0
    stored = stack.client().agents.messages.list(agent_id).items
    assert [one.content for one in stored if one.message_type == "assistant_message"] == ["one two three four"]


def test_history_is_not_told_twice_and_pictures_arrive(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="Hello."), Reply(text="A pixel."))
    messages = said("Hello?")
    answer = sdk.chat.completions.create(model=agent_id, messages=messages).choices[0].message
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    question = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}
    history: Any = [*messages, answer.model_dump(exclude_none=True), question]
    assert sdk.chat.completions.create(model=agent_id, messages=history).choices[0].message.content == "A pixel."
    told = openai_fake.bodies("/chat/completions")[-1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    assert told[-1]["content"][-1]["image_url"]["url"] == picture["image_url"]["url"]  # type: ignore[index]


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_of_the_client(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer, stream: bool) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(calls=(ToolCall("ls", {"path": "/"}),)), Reply(text="There is a.txt."))
    messages: list[Any] = said("What is there?")
    if stream:
        with sdk.chat.completions.stream(model=agent_id, messages=messages, tools=TOOLS) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = sdk.chat.completions.create(model=agent_id, messages=messages, tools=TOOLS).choices[0]
    [call] = choice.message.tool_calls
    assert (choice.finish_reason, call.function.name, call.function.arguments) == ("tool_calls", "ls", '{"path":"/"}')
    assistant = {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": {}}]}
    messages += [assistant, {"role": "tool", "tool_call_id": call.id, "content": "a.txt"}]
    done = sdk.chat.completions.create(model=agent_id, messages=messages, tools=TOOLS)
    assert done.choices[0].message.content == "There is a.txt."


def test_the_form_of_one_answer(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    form: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": {"type": "object"}}}
    openai_fake.reply(Reply(text='{"name": "Ada"} END and more'), Reply(text="Hello."))
    answer = sdk.chat.completions.create(
        model=agent_id, messages=said("Who am I?"), response_format=form, stop=["END"], parallel_tool_calls=False,
        tools=TOOLS,
    )  # fmt: skip
    assert answer.choices[0].message.content == '{"name": "Ada"} '
    sdk.chat.completions.create(model=agent_id, messages=said("Hello"))
    first, second = openai_fake.bodies("/chat/completions")
    assert (first["response_format"], first["stop"], first["parallel_tool_calls"]) == (form, ["END"], False)
    assert not {"response_format", "stop"} & second.keys()
    stored = stack.client().agents.messages.list(agent_id).items
    assert [one.content for one in stored if one.message_type == "assistant_message"].count('{"name": "Ada"} ') == 1


def test_a_call_that_is_the_answer(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    """Structured output by a call: nobody returns it, and the chat goes on."""
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(*(Reply(calls=(ToolCall("ls", {"path": path}),)) for path in "ab"), Reply(text="Gladly."))
    choice: Any = {"type": "function", "function": {"name": "ls"}}
    for path in "ab":
        answer: Any = sdk.chat.completions.create(
            model=agent_id, messages=said(f"List {path}."), tools=TOOLS, tool_choice=choice
        )
        [call] = answer.choices[0].message.tool_calls
        assert call.function.arguments == f'{{"path":"{path}"}}'
    assert openai_fake.bodies("/chat/completions")[0]["tool_choice"] == choice
    stream = sdk.chat.completions.create(model=agent_id, messages=said("Thank you."), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Gladly."


@pytest.mark.parametrize("stream", [False, True])
def test_a_title_is_no_memory(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer, stream: bool) -> None:
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="Sailing"))
    prompt = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: I sail.\n</chat_history>"
    answer: Any = sdk.chat.completions.create(model=agent_id, messages=said(prompt), stream=stream)
    if stream:
        title = "".join(chunk.choices[0].delta.content or "" for chunk in answer)
    else:
        title = answer.choices[0].message.content
    assert title == "Sailing"
    assert types(stack.client().agents.messages.list(agent_id).items) == ["system_message"]
    assert [message["content"] for message in openai_fake.bodies("/chat/completions")[0]["messages"]] == [prompt]


def test_an_older_agent_speaks(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL, agent_type="memgpt_v2_agent")
    speech = Reply(calls=(ToolCall("send_message", {"message": 'Hello "Ada"'}),))
    openai_fake.reply(speech, speech)
    whole = sdk.chat.completions.create(model=agent_id, messages=said("I am Ada."))
    assert whole.choices[0].message.content == 'Hello "Ada"'
    chunks = sdk.chat.completions.create(model=agent_id, messages=said("I am Ada."), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == 'Hello "Ada"'


def test_a_retry_attaches(stack: Stack, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    model, tries = openai_fake.gate(), list[object]()
    openai_fake.reply(Reply(text="Slowly.", gate=model))
    with (
        DefaultHttpxClient(event_hooks={"request": [tries.append]}) as http,
        OpenAI(base_url=f"{stack.url}/v1", api_key="none", max_retries=10, timeout=1.5, http_client=http) as impatient,
        ThreadPoolExecutor() as threads,
    ):
        call = threads.submit(impatient.chat.completions.create, model=agent_id, messages=said("Take your time."))
        model.wait_reached()
        wait_until(lambda: len(tries) >= 2, 60)
        model.open()
        done: Any = call.result()
    assert done.choices[0].message.content == "Slowly."
    assert len(openai_fake.bodies("/chat/completions")) == 1
    listed = types(stack.client().agents.messages.list(agent_id).items)
    assert (listed.count("user_message"), listed.count("assistant_message")) == (1, 1)


def test_failures(stack: Stack, sdk: OpenAI, openai_fake: OpenAIServer) -> None:
    agent_id = create(stack.client(), MODEL)
    for missing in ("agent-00000000-0000-4000-8000-000000000000", "gpt-4o"):
        for stream in (False, True):
            with pytest.raises(openai.NotFoundError) as unknown:
                sdk.chat.completions.create(model=missing, messages=said("Hello"), stream=stream)
            assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    openai_fake.reply(Reply(error="quota"))
    with pytest.raises(openai.APIStatusError) as refused:
        sdk.chat.completions.create(model=agent_id, messages=said("Hello"))
    assert (refused.value.status_code, refused.value.code) == (402, "insufficient_quota")
    openai_fake.reply(Reply(error="bad_request", message="too blue"))
    with pytest.raises(openai.APIError, match="too blue") as told:
        list(sdk.chat.completions.create(model=agent_id, messages=said("Hello"), stream=True))
    assert told.value.code == "llm_bad_request"


def test_agents_are_the_models(stack: Stack, sdk: OpenAI) -> None:
    agent_id = create(stack.client(), "loci/demo", name="the only one of this name")
    assert agent_id in [model.id for model in sdk.models.list()]
    assert sdk.models.retrieve(agent_id).object == "model"
    by_name = sdk.chat.completions.create(model="the only one of this name", messages=said("Hello"))
    assert by_name.model == agent_id
    with OpenAI(base_url=f"{stack.url}/v1", api_key="none", max_retries=0) as same:
        assert agent_id in [model.id for model in same.models.list()]
    assert "loci/demo" in [model.handle for model in stack.client().models.list()]
