"""Background runs with the official client, through every service: begun, left, gone on with, found again, polled."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from letta_client import BadRequestError, NotFoundError

from tests.e2e.helpers import create, finished_run, types
from tests.e2e.stack import Stack
from tests.fakes.gate import Gate
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step

WORDS = "".join(f"word{number} " for number in range(60))
INPUT: list[Any] = [{"role": "user", "content": "Talk."}]
TOKENS: dict[str, Any] = {"streaming": True, "stream_tokens": True, "background": True}


@pytest.fixture
def agent_id(client: Any) -> str:
    """An agent of the fake provider."""
    return create(client, "openai/gpt-4o-mini")


def text(chunks: Iterable[Any]) -> str:
    """All that was said, arguments of calls and returns of tools included, joined as a client does."""
    joined = []
    for chunk in chunks:
        match chunk.message_type:
            case "assistant_message":
                joined.append(chunk.content)
            case "reasoning_message":
                joined.append(chunk.reasoning)
            case "tool_call_message":
                calls = chunk.tool_calls if isinstance(chunk.tool_calls, list) else [chunk.tool_calls]
                joined += [call.arguments or "" for call in calls]
            case "tool_return_message":
                joined.append(chunk.tool_return)
    return "".join(joined)


def numbers(chunks: Iterable[Any]) -> list[int]:
    """The sequence numbers of what was said."""
    return [chunk.seq_id for chunk in chunks if getattr(chunk, "seq_id", None) is not None]


def talks(openai_fake: OpenAIServer, *, pause: float = 0.0, gate: Gate | None = None) -> None:
    """The model notes something, then says many words; with a gate half of them, and the rest when it is open."""
    note = ToolCall("memory_insert", {"label": "human", "new_string": "They want talk."})
    words = Reply(text=WORDS, delta_delay=pause, gate=gate, gate_after=30)
    openai_fake.rules(*by_step(Reply(text="I note that.", calls=(note,)), words))


def first_words(chunks: Any) -> list[Any]:
    """A stream up to the first of the many words; then it is left."""
    seen = []
    for chunk in chunks:
        seen.append(chunk)
        if "word" in text([chunk]):
            break
    chunks.response.close()
    return seen


def first_of(chunks: Any, count: int) -> list[Any]:
    """So many chunks of a stream, which is then left."""
    seen = []
    for chunk in chunks:
        seen.append(chunk)
        if len(seen) == count:
            break
    chunks.response.close()
    return seen


@pytest.mark.parametrize("by", ["run", "conversation", "otid"])
def test_left_and_gone_on_with(client: Any, agent_id: str, openai_fake: OpenAIServer, by: str) -> None:
    model = openai_fake.gate()
    talks(openai_fake, pause=0.01, gate=model)
    conversation_id, otid = client.conversations.create(agent_id=agent_id).id, str(uuid4())
    said: list[Any] = [{"role": "user", "content": "Talk.", "otid": otid}]
    begun = client.conversations.messages.create(conversation_id, messages=said, **TOKENS)
    head = first_words(begun)
    run_id, after = head[0].run_id, numbers(head)[-1]
    match by:
        case "run":
            stream = client.runs.messages.stream(run_id, starting_after=after)
        case "conversation":
            stream = client.conversations.messages.stream(conversation_id, starting_after=after)
        case _:
            stream = client.conversations.messages.stream(conversation_id, otid=otid, starting_after=after)
    # It is joined while it goes on.
    model.open()
    rest = list(stream)
    assert rest[0].run_id == run_id
    assert types(rest)[-2:] == ["stop_reason", "usage_statistics"]
    whole = text(head) + text(rest)
    assert whole.startswith("I note that.")
    assert whole.endswith(WORDS)
    seen = numbers(head) + numbers(rest)
    assert all(one < other for one, other in pairwise(seen))
    assert finished_run(client, run_id).status == "completed"


def test_gone_on_with_after_every_chunk(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    talks(openai_fake)
    chunks = [
        chunk
        for chunk in client.agents.messages.create(agent_id, messages=INPUT, **TOKENS)
        if getattr(chunk, "seq_id", None) is not None
    ]
    run_id, whole = chunks[0].run_id, text(chunks)
    assert whole.endswith(WORDS)
    for place in range(len(chunks)):
        after = chunks[place].seq_id
        rest = list(client.runs.messages.stream(run_id, starting_after=after))
        assert text(chunks[: place + 1]) + text(rest) == whole, after
        assert all(number > after for number in numbers(rest))
    assert text(client.runs.messages.stream(run_id)) == whole


def test_gone_on_with_by_steps(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    talks(openai_fake, pause=0.01)
    begun = client.agents.messages.create(agent_id, messages=INPUT, streaming=True, background=True)
    head = first_of(begun, 2)
    rest = list(client.runs.messages.stream(head[0].run_id, starting_after=numbers(head)[-1]))
    assert [chunk.content for chunk in rest if chunk.message_type == "assistant_message"] == [WORDS]


def test_begun_without_waiting(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    model = openai_fake.gate()
    openai_fake.reply(Reply(text=WORDS, gate=model))
    run = client.agents.messages.create_async(agent_id, messages=INPUT)
    # Nothing has been said yet.
    model.wait_reached()
    model.open()
    assert (run.status in ("created", "running"), run.background, run.agent_id) == (True, True, agent_id)
    assert finished_run(client, run.id).status == "completed"
    said = [message for message in client.runs.messages.list(run.id) if message.message_type == "assistant_message"]
    assert said[-1].content == WORDS


def test_the_same_otids_are_the_same_request(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    talks(openai_fake, pause=0.02)
    conversation_id = client.conversations.create(agent_id=agent_id).id
    said: list[Any] = [{"role": "user", "content": "Talk.", "otid": str(uuid4())}]
    first = first_of(client.conversations.messages.create(conversation_id, messages=said, **TOKENS), 5)
    again = list(client.conversations.messages.create(conversation_id, messages=said, **TOKENS))
    assert again[0].run_id == first[0].run_id
    assert text(again).endswith(WORDS)
    history = client.conversations.messages.list(conversation_id, order="asc", limit=50)
    assert types(history).count("user_message") == 1
    # Elsewhere, or in the foreground, it is another turn.
    anew = list(client.conversations.messages.create(conversation_id, messages=said))
    assert anew[0].run_id != first[0].run_id
    one, other = (client.agents.messages.create_async(agent_id, messages=said).id for _ in range(2))
    assert one != other
    assert finished_run(client, other).status == "completed"


def test_what_cannot_be_joined(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.rules(*by_step(Reply(text="Hello.")))
    conversation_id = client.conversations.create(agent_id=agent_id).id
    foreground = list(client.conversations.messages.create(conversation_id, messages=INPUT))
    with pytest.raises(BadRequestError, match="No active runs found"):
        list(client.conversations.messages.stream(conversation_id))
    with pytest.raises(NotFoundError, match="otid"):
        list(client.conversations.messages.stream(conversation_id, otid="never-sent"))
    with pytest.raises(BadRequestError, match="not created in background mode"):
        list(client.conversations.messages.stream(conversation_id, run_id=foreground[0].run_id))
    with pytest.raises(BadRequestError, match="No active runs found"):
        list(client.conversations.messages.stream(f"conv-{uuid4()}"))
    # A run can be joined by its own route whatever it is.
    assert text(client.runs.messages.stream(foreground[0].run_id)) == "Hello."


def test_several_at_once_each_have_their_own(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda request: Reply(text=f"You said {request.question}."))
    conversations = [client.conversations.create(agent_id=agent_id).id for _ in range(3)]
    streams = [
        client.conversations.messages.create(each, input=f"number {number}", **TOKENS)
        for number, each in enumerate(conversations)
    ]
    assert [text(each) for each in streams] == [f"You said number {number}." for number in range(3)]


@pytest.mark.parametrize("service", ["agent", "gateway"])
def test_killed_in_the_middle(own_stack: Stack, openai_fake: OpenAIServer, service: str) -> None:
    client = own_stack.client(timeout=60, max_retries=2)
    agent_id = create(client, "openai/gpt-4o-mini")
    model = openai_fake.gate()
    talks(openai_fake, pause=0.01, gate=model)
    run = client.agents.messages.create_async(agent_id, messages=INPUT)
    head = first_words(client.runs.messages.stream(run.id))
    own_stack.kill(service)
    model.open()
    own_stack.wait_healthy()
    rest = list(client.runs.messages.stream(run.id, starting_after=numbers(head)[-1]))
    seen = numbers(head) + numbers(rest)
    assert all(one < other for one, other in pairwise(seen))
    void = [chunk for chunk in rest if chunk.message_type == "ping" and getattr(chunk, "attempt_abandoned", None)]
    if service == "agent":
        # The second reply was under way; its pieces are void, and it is made again.
        assert len(void) == 1
        assert text(rest).endswith(WORDS)
    else:
        assert not void
        assert (text(head) + text(rest)).endswith(WORDS)
    assert finished_run(client, run.id).status == "completed"
    assert client.agents.blocks.retrieve("human", agent_id=agent_id).value.count("They want talk.") == 1
