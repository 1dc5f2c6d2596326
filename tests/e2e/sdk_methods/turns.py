"""Turns: what agents are sent, conversations, runs, steps and stored messages."""

from typing import Any

import pytest

from tests.e2e.sdk_methods.world import MODEL, UNKNOWN, Cases, World, ids, refused

cases = Cases()
HELLO: list[Any] = [{"role": "user", "content": "Hello."}]
CLIENT_TOOL = {
    "name": "look_outside",
    "description": "Look out of the window.",
    "parameters": {"type": "object", "properties": {}},
}
ENDINGS = ["stop_reason", "usage_statistics"]


def _types(chunks: Any) -> list[str]:
    return [chunk.message_type for chunk in chunks]


@cases("agents.messages.create")
def send(world: World) -> None:
    agent, client = world.new_agent(), world.client.agents.messages
    reply = client.create(agent.id, input="Hello.")
    assert (reply.stop_reason.stop_reason, reply.usage.step_count) == ("end_turn", 1)
    options: dict[str, Any] = {
        "max_steps": 5,
        "override_model": MODEL,
        "override_system": "Be brief.",
        "client_skills": [{"name": "s", "description": "d", "location": "/s"}],
        "include_return_message_types": ["assistant_message"],
        "include_compaction_messages": True,
    }
    assert _types(client.create(agent.id, messages=HELLO, **options).messages) == ["assistant_message"]
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hello."}], "otid": UNKNOWN}]
    assert client.create(agent.id, messages=parts).messages

    # A tool of the client's: a request that waits, its answer, and what else is then refused.
    asked = client.create(agent.id, input="use look_outside", client_tools=[CLIENT_TOOL])
    assert asked.stop_reason.stop_reason == "requires_approval"
    waiting = refused(409, lambda: client.create(agent.id, input="And?"), "PENDING_APPROVAL")
    assert waiting.response.headers["x-should-retry"] == "false"
    call_id = asked.messages[-1].tool_calls[0].tool_call_id
    wrong = {"type": "tool", "tool_call_id": "call_no", "tool_return": "?", "status": "success"}
    refused(400, lambda: client.create(agent.id, messages=[{"type": "approval", "approvals": [wrong]}]), "Invalid tool")
    given = wrong | {"tool_call_id": call_id, "tool_return": "It rains."}
    answered = client.create(
        agent.id, messages=[{"type": "approval", "approvals": [given]}], client_tools=[CLIENT_TOOL]
    )
    assert answered.stop_reason.stop_reason == "end_turn"

    steps = _types(client.create(agent.id, messages=HELLO, streaming=True, include_pings=True))
    assert (steps[0], steps[-2:]) == ("ping", ENDINGS)
    tokens = list(client.create(agent.id, messages=HELLO, streaming=True, stream_tokens=True, include_pings=False))
    assert "ping" not in _types(tokens)
    background = list(client.create(agent.id, messages=HELLO, streaming=True, background=True))
    assert all(one.seq_id is not None for one in background if one.message_type == "assistant_message")

    refused(422, lambda: client.create(agent.id, messages=[]), "messages")
    refused(422, lambda: client.create(agent.id, messages=HELLO, input="Hello."), "input")
    refused(422, lambda: client.create(agent.id))
    refused(422, lambda: client.create(agent.id, messages=HELLO, background=True), "background")
    refused(422, lambda: client.create(agent.id, messages=HELLO, stream_tokens=True), "stream_tokens")
    refused(422, lambda: client.create(agent.id, messages=HELLO, include_pings=False), "include_pings")
    refused(422, lambda: client.create(agent.id, messages=[{"role": "ghost", "content": "Boo."}]), "role")
    refused(404, lambda: client.create(agent.id, messages=HELLO, override_model="loci/none"), "none")
    nothing_waits = [{"type": "approval", "approvals": [given | {"tool_call_id": "call_never"}]}]
    refused(400, lambda: client.create(agent.id, messages=nothing_waits))


@cases("agents.messages.stream")
def stream(world: World) -> None:
    agent = world.new_agent()
    with pytest.warns(DeprecationWarning, match="deprecated"):
        chunks = _types(world.client.agents.messages.stream(agent.id, messages=HELLO, stream_tokens=True))
    assert chunks[-2:] == ENDINGS


@cases("agents.messages.create_async")
def send_in_background(world: World) -> None:
    agent = world.new_agent()
    run = world.client.agents.messages.create_async(agent.id, input="Hello.", max_steps=3)
    assert (run.agent_id, run.background) == (agent.id, True)
    assert _types(world.client.runs.messages.stream(run.id))[-2:] == ENDINGS
    bad = "file:///etc/passwd"
    refused(422, lambda: world.client.agents.messages.create_async(agent.id, input="Hi", callback_url=bad), "callback")


@cases("agents.messages.list")
def list_messages(world: World) -> None:
    agent, client = world.new_agent(), world.client.agents.messages
    for text in ("One.", "Two."):
        client.create(agent.id, input=text)
    newest = [one.id for one in client.list(agent.id)]
    oldest = [one.id for one in client.list(agent.id, order="asc", limit=2)]
    assert newest == oldest
    first = client.list(agent.id, order="asc", limit=3).items
    assert client.list(agent.id, order="asc", after=first[-1].id).items[0].id not in ids(first)
    only = client.list(agent.id, include_return_message_types=["user_message"], include_err=True)
    assert {one.message_type for one in only} == {"user_message"}
    assert client.list(agent.id, conversation_id="default").items
    assert client.list(agent.id, limit=0).items == []
    refused(404, lambda: client.list(agent.id, after="message-1"), "message-")


@cases("agents.messages.cancel")
def cancel(world: World) -> None:
    agent = world.new_agent()
    refused(409, lambda: world.client.agents.messages.cancel(agent.id))
    with world.silent_model() as model:
        run = world.client.agents.messages.create_async(agent.id, input="Hello.", override_model=model)
        assert world.client.agents.messages.cancel(agent.id, run_ids=[run.id]) == {run.id: "cancelled"}
        ended = [one for one in world.client.runs.messages.stream(run.id) if one.message_type == "stop_reason"]
        assert [one.stop_reason for one in ended] == ["cancelled"]
    assert world.client.runs.retrieve(run.id).status == "cancelled"


@cases("agents.messages.compact", "agents.messages.reset")
def compact(world: World) -> None:
    agent, client = world.new_agent(), world.client.agents.messages
    for text in ("One.", "Two.", "Three."):
        client.create(agent.id, input=text)
    done = client.compact(agent.id, compaction_settings={"model": MODEL, "mode": "all"})
    assert done.num_messages_after <= done.num_messages_before
    assert done.summary
    emptied = client.reset(agent.id, add_default_initial_messages=True)
    assert emptied.id == agent.id


@cases("conversations.create", "conversations.retrieve", "conversations.update", "conversations.delete")
def conversations(world: World) -> None:
    client = world.client.conversations
    made = world.new_conversation(summary="About Ada", description="long", model=MODEL, hidden=True)
    found = client.retrieve(made.id)
    assert (found.agent_id, found.summary, found.description) == (world.agent.id, "About Ada", "long")
    changed = client.update(made.id, summary="Hers", archived=True, context_window_limit=9_000)
    assert (changed.summary, changed.archived, changed.context_window_limit) == ("Hers", True, 9_000)
    client.delete(made.id)
    refused(404, lambda: client.retrieve(made.id))
    refused(404, lambda: client.create(agent_id=f"agent-{UNKNOWN}"), "Agent not found")
    refused(404, lambda: client.create(agent_id="agent-42"), "Agent not found")


@cases("conversations.list")
def list_conversations(world: World) -> None:
    agent, client = world.new_agent(), world.client.conversations
    made = [client.create(agent_id=agent.id, summary=f"number {number}").id for number in range(3)]
    assert ids(client.list(agent_id=agent.id)) == made[::-1]
    assert ids(client.list(agent_id=agent.id, order="asc", limit=1)) == made[:1]
    assert ids(client.list(agent_id=agent.id, summary_search="number 1")) == made[1:2]
    assert ids(client.list(agent_id=agent.id, order="asc", after=made[0])) == made[1:]
    client.update(made[0], archived=True)
    assert ids(client.list(agent_id=agent.id, archive_status="archived")) == made[:1]
    assert ids(client.list(agent_id=agent.id, order_by="last_message_at", archive_status="all"))


@cases("conversations.messages.create", "conversations.messages.list")
def talk(world: World) -> None:
    made, client = world.new_conversation(), world.client.conversations.messages
    assert _types(client.create(made.id, messages=HELLO))[-2:] == ENDINGS
    reply = client.create(made.id, messages=HELLO, streaming=False)
    assert reply
    assert client.list(made.id, limit=2, order="asc").items[0].message_type
    direct = client.create("default", agent_id=world.agent.id, messages=HELLO)
    assert _types(direct)[-2:] == ENDINGS
    assert client.list("default", agent_id=world.agent.id).items
    refused(404, lambda: client.create("default", messages=HELLO), "agent_id")
    refused(422, lambda: client.create(made.id, messages=[]), "messages")


@cases("conversations.messages.stream")
def attach(world: World) -> None:
    made, client = world.new_conversation(), world.client.conversations
    said = list(client.messages.create(made.id, messages=HELLO, background=True))
    run_id = next(one.run_id for one in said if one.message_type == "ping")
    again = list(client.messages.stream(made.id, run_id=run_id))
    assert _types(again)[-2:] == ENDINGS
    shown = [one for one in again if one.message_type != "ping"]
    later = list(client.messages.stream(made.id, run_id=run_id, starting_after=shown[0].seq_id, include_pings=False))
    assert len(later) < len(shown)
    refused(400, lambda: client.messages.stream(made.id))


@cases("conversations.cancel")
def cancel_conversation(world: World) -> None:
    made, client = world.new_conversation(), world.client.conversations
    refused(409, lambda: client.cancel(made.id))
    with world.silent_model() as model:
        waiting = client.messages.create(made.id, messages=HELLO, override_model=model, background=True)
        run_id = next(iter(waiting)).run_id
        assert client.cancel(made.id) == {run_id: "cancelled"}
        assert [one.stop_reason for one in waiting if one.message_type == "stop_reason"] == ["cancelled"]


@cases("conversations.fork", "conversations.recompile", "conversations.messages.compact")
def fork(world: World) -> None:
    made, client = world.new_conversation(), world.client.conversations
    for _ in range(2):
        list(client.messages.create(made.id, messages=HELLO))
    copy = client.fork(made.id)
    assert len(list(client.messages.list(copy.id))) == len(list(client.messages.list(made.id)))
    assert isinstance(client.recompile(made.id, dry_run=True), str)
    done = client.messages.compact(made.id, compaction_settings={"model": MODEL, "mode": "all"})
    assert done.num_messages_before >= done.num_messages_after


@cases("runs.list", "runs.retrieve", "runs.usage.retrieve", "runs.trace.retrieve")
def runs(world: World) -> None:
    client, run = world.client.runs, world.run
    found = client.retrieve(run.id)
    assert (found.agent_id, found.status, found.stop_reason) == (world.agent.id, "completed", "end_turn")
    listed = client.list
    assert run.id in ids(listed(agent_id=world.agent.id, statuses=["completed"], order="asc", limit=1))
    assert run.id in ids(listed(agent_ids=[world.agent.id], stop_reason="end_turn", background=False))
    assert ids(listed(agent_id=world.agent.id, active=True)) == []
    assert ids(listed(agent_id=world.agent.id, conversation_id=world.new_conversation().id)) == []
    assert client.usage.retrieve(run.id).total_tokens > 0
    assert client.trace.retrieve(run.id, limit=10)
    refused(400, lambda: listed(statuses=["idle"]), "RunStatus")


@cases("runs.messages.list", "runs.steps.list")
def parts_of_a_run(world: World) -> None:
    client, run = world.client.runs, world.run
    assert client.messages.list(run.id, limit=1).items[0].message_type == "user_message"
    assert client.messages.list(run.id, order="desc").items[-1].message_type == "user_message"
    assert {one.run_id for one in client.steps.list(run.id, order="asc", limit=5)} == {run.id}


@cases("runs.messages.stream")
def attach_to_a_run(world: World) -> None:
    agent = world.new_agent()
    run = world.client.agents.messages.create_async(agent.id, input="Hello.")
    assert _types(world.client.runs.messages.stream(run.id, include_pings=False))[-2:] == ENDINGS


@cases("steps.list", "steps.retrieve", "steps.messages.list", "steps.metrics.retrieve", "steps.trace.retrieve")
def steps(world: World) -> None:
    client, step = world.client.steps, world.step
    assert client.retrieve(step.id).run_id == world.run.id
    assert step.id in ids(client.list(agent_id=world.agent.id, order="asc", limit=2))
    assert ids(client.list(agent_id=world.agent.id, model="other", has_feedback=False)) == []
    assert ids(client.list(agent_id=world.agent.id, end_date="2020-01-01T00:00:00Z")) == []
    assert client.messages.list(step.id).items
    assert client.metrics.retrieve(step.id).id == step.id
    assert client.trace.retrieve(step.id) is None
    agent = world.new_agent()
    world.client.agents.messages.create(agent.id, input="Hello.", extra_headers={"x-loci-include-trace": "1"})
    assert client.trace.retrieve(next(iter(client.list(agent_id=agent.id))).id)


@cases("steps.feedback.create")
def feedback(world: World) -> None:
    agent = world.new_agent()
    world.client.agents.messages.create(agent.id, input="Hello.")
    step = next(iter(world.client.steps.list(agent_id=agent.id)))
    given = world.client.steps.feedback.create(step.id, feedback="positive", tags=["good"])
    assert (given.feedback, given.tags) == ("positive", ["good"])
    assert ids(world.client.steps.list(agent_id=agent.id, feedback="positive")) == [step.id]
    refused(422, lambda: world.client.steps.feedback.create(step.id, feedback="meh"), "feedback")


@cases("messages.list", "messages.retrieve")
def stored_messages(world: World) -> None:
    agent, client = world.new_agent(), world.client.messages
    world.client.agents.messages.create(agent.id, input="Something to find again.")
    mine = world.client.agents.messages.list(agent.id, include_return_message_types=["user_message"]).items[0]
    everywhere = client.list(limit=20, order="desc", include_return_message_types=["user_message"])
    assert mine.id in {_id(one) for one in everywhere}
    assert [one.content for one in client.retrieve(mine.id)] == ["Something to find again."]
    talked = world.new_conversation()
    list(world.client.conversations.messages.create(talked.id, messages=HELLO))
    assert client.list(conversation_id=talked.id, order="asc", limit=5)


def _id(message: Any) -> str:
    """The client takes what the list holds for results of a search, which name it otherwise."""
    return str(getattr(message, "message_id", None) or message.id)


@cases("messages.search")
def search(world: World) -> None:
    assert world.agent
    found = world.client.messages.search(query="name is Ada", agent_id=world.agent.id, search_mode="fts", limit=3)
    assert any("Ada" in str(one.content) for one in found)
    late = world.client.messages.search(query="Ada", agent_id=world.agent.id, start_date="2999-01-01T00:00:00Z")
    assert late == []
    refused(422, lambda: world.client.messages.search(query="x", search_mode="magic"), "search_mode")
