"""Runs and steps through the official client: what is stored of a turn, and what people say of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from letta_client import ConflictError, NotFoundError

from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step

HANDLE = "openai/gpt-4o-mini"


@pytest.fixture
def turn(stack: Stack, openai_fake: OpenAIServer) -> Iterator[Any]:
    """A client, and the run of a turn with two steps, traced."""
    client = stack.client()
    search = ToolCall("conversation_search", {"query": "Ada"})
    openai_fake.rules(*by_step(Reply(text="Looking.", calls=(search,)), Reply(text="Nothing yet, Ada.")))
    agent_id = client.agents.create(model=HANDLE, memory_blocks=[{"label": "human", "value": "Ada"}]).id
    client.agents.messages.create(
        agent_id, input="Do you know me?", use_assistant_message=False, extra_body={"include_trace": True}
    )
    [run] = client.runs.list(agent_id=agent_id)
    yield client, run
    client.agents.delete(agent_id)


def test_a_run_and_what_came_of_it(turn: Any) -> None:
    client, run = turn
    assert client.runs.retrieve(run.id) == run
    assert (run.status, run.stop_reason, run.callback_url) == ("completed", "end_turn", None)
    assert run.total_duration_ns > 0
    assert run.request_config.use_assistant_message is False
    said = [message.message_type for message in client.runs.messages.list(run.id, limit=2)]
    assert said == [
        "user_message",
        "assistant_message",
        "tool_call_message",
        "tool_return_message",
        "assistant_message",
    ]
    second, first = client.runs.steps.list(run.id)
    assert [step.id for step in client.runs.steps.list(run.id, order="asc", limit=1)] == [first.id, second.id]
    assert (first.model, first.provider_name, first.api_model_handle) == ("gpt-4o-mini", "openai", HANDLE)
    usage = client.runs.usage.retrieve(run.id)
    assert usage.total_tokens == first.total_tokens + second.total_tokens > 0
    spans = client.runs.trace.retrieve(run.id)
    names = [span["span_name"] for span in spans]
    assert (names[0], names.count("agent_step"), names.count("tool_execution")) == ("run", 2, 1)
    assert run.id in {one.id for one in client.runs.list(agent_id=run.agent_id, statuses=["completed"], order="asc")}
    assert list(client.runs.list(agent_id=run.agent_id, active=True)) == []
    with pytest.raises(ConflictError, match="No active runs to cancel"):
        client.agents.messages.cancel(run.agent_id)
    assert client.agents.messages.cancel(run.agent_id, run_ids=[run.id]) == {run.id: "failed"}
    assert client.runs.retrieve(run.id) == run


def test_steps(turn: Any) -> None:
    client, run = turn
    second, first = client.steps.list(agent_id=run.agent_id)
    assert client.steps.retrieve(first.id) == first
    assert [step.id for step in client.steps.list(agent_id=run.agent_id, model="gpt-4o-mini", limit=1)] == [
        second.id,
        first.id,
    ]
    metrics = client.steps.metrics.retrieve(first.id)
    assert 0 < metrics.llm_request_ns <= metrics.step_ns
    assert metrics.tool_execution_ns > 0
    assert metrics.step_start_ns > 0
    said = [message.message_type for message in client.steps.messages.list(first.id)]
    assert said == ["user_message", "assistant_message", "tool_call_message", "tool_return_message"]
    trace = client.steps.trace.retrieve(first.id)
    assert trace.request_json["model"] == "gpt-4o-mini"
    assert trace.step_id == first.id

    client.steps.feedback.create(first.id, feedback="negative", tags=["slow"])
    client.steps.feedback.create(second.id, feedback="positive")
    assert [step.id for step in client.steps.list(agent_id=run.agent_id, feedback="negative")] == [first.id]
    assert [step.id for step in client.steps.list(agent_id=run.agent_id, tags=["slow", "rude"])] == [first.id]
    client.steps.feedback.create(first.id, feedback=None)
    assert [step.id for step in client.steps.list(agent_id=run.agent_id, has_feedback=True)] == [second.id]


def test_without_include_trace_nothing_is_kept(stack: Stack) -> None:
    client = stack.client()
    agent_id = client.agents.create(model="loci/demo").id
    client.agents.messages.create(agent_id, input="Hello")
    [step] = client.steps.list(agent_id=agent_id)
    assert client.steps.trace.retrieve(step.id) is None
    client.agents.delete(agent_id)
    with pytest.raises(NotFoundError):
        client.steps.retrieve(step.id)
