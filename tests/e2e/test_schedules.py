"""Scheduled messages with the official client: they come at their time, once each, whoever is killed meanwhile."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from letta_client import APIStatusError

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.polling import wait_until

HELLO: list[Any] = [{"role": "user", "content": "Good morning."}]
DAILY: Any = {"type": "recurring", "cron_expression": "30 2 * * *"}


def soon(seconds: float = 2.0) -> Any:
    """A time that is still to come when the request is read, in milliseconds as JavaScript has it."""
    return {"type": "one-time", "scheduled_at": (time.time() + seconds) * 1_000}


def said(client: Any, agent_id: str) -> list[str]:
    """Returns the user's messages to an agent, oldest first."""
    messages = client.agents.messages.list(agent_id, order="asc", limit=1000)
    return [each.content for each in messages if each.message_type == "user_message"]


def test_a_message_comes_at_its_time_and_can_be_read_afterwards(stack: Stack) -> None:
    client = stack.client()
    agent_id = create(client, "loci/demo")
    made = client.agents.schedule.create(agent_id, messages=HELLO, schedule=soon(), max_steps=2)
    assert made.next_scheduled_at is not None
    done = wait_until(lambda: (one := client.agents.schedule.retrieve(made.id, agent_id=agent_id)).last_run_id and one)
    assert (done.next_scheduled_time, done.last_error) == (None, None)
    wait_until(lambda: client.runs.retrieve(done.last_run_id).status == "completed")
    run = client.runs.retrieve(done.last_run_id)
    assert (run.background, run.agent_id) == (True, agent_id)
    assert said(client, agent_id) == ["Good morning."]
    assert client.agents.schedule.delete(made.id, agent_id=agent_id).success
    assert client.agents.schedule.list(agent_id).scheduled_messages == []


def test_seconds_are_told_from_milliseconds(stack: Stack) -> None:
    client = stack.client()
    agent_id = create(client, "loci/demo")
    in_seconds: Any = {"scheduled_at": round(time.time()) + 86_400}
    made = client.agents.schedule.create(agent_id, messages=HELLO, schedule=in_seconds)
    found = client.agents.schedule.retrieve(made.id, agent_id=agent_id)
    assert found.schedule.scheduled_at == in_seconds["scheduled_at"] * 1_000
    assert found.next_scheduled_time == made.next_scheduled_at


def test_what_is_shown_is_what_was_given(stack: Stack) -> None:
    client = stack.client()
    agent_id = create(client, "loci/demo")
    client.agents.update(agent_id, timezone="Europe/Berlin")
    messages: list[Any] = [
        {"role": "system", "content": "Be short.", "otid": "mine", "name": "ada"},
        {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
        {"role": "assistant", "content": "Three."},
    ]
    types: Any = ["assistant_message", "reasoning_message"]
    made = client.agents.schedule.create(
        agent_id,
        messages=messages,
        schedule=DAILY,
        max_steps=7,
        callback_url="https://example.com/told",
        include_return_message_types=types,
    )
    found = client.agents.schedule.retrieve(made.id, agent_id=agent_id)
    first, second, third = found.message.messages
    assert (first.role, first.content, first.otid, first.name) == ("system", "Be short.", "mine", "ada")
    assert [part.text for part in second.content] == ["One.", "Two."]
    assert (third.role, third.content) == ("assistant", "Three.")
    assert (found.message.max_steps, found.message.include_return_message_types) == (7, types)
    assert found.message.callback_url == "https://example.com/told"
    assert (found.schedule.type, found.schedule.cron_expression) == ("recurring", "30 2 * * *")
    assert found.timezone == "Europe/Berlin"


def test_pages(stack: Stack) -> None:
    client = stack.client()
    agent_id = create(client, "loci/demo")
    made = [client.agents.schedule.create(agent_id, messages=HELLO, schedule=DAILY).id for _ in range(5)]
    first = client.agents.schedule.list(agent_id, limit="2")
    assert ([each.id for each in first.scheduled_messages], first.has_next_page) == (made[:2], True)
    rest = client.agents.schedule.list(agent_id, limit="3", after=made[1])
    assert ([each.id for each in rest.scheduled_messages], rest.has_next_page) == (made[2:], False)
    # As in every list but those of messages, a cursor that names nothing is ignored.
    unknown = client.agents.schedule.list(agent_id, after="schedule-00000000-0000-4000-8000-0000000000aa")
    assert [each.id for each in unknown.scheduled_messages] == made


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schedule": {"type": "one-time", "scheduled_at": 1_700_000_000_000}}, "in the future"),
        ({"schedule": {"type": "one-time", "scheduled_at": 250_000_000_000_000}}, "within ten years"),
        ({"schedule": {"type": "one-time", "scheduled_at": 1e300}}, "scheduled_at"),
        ({"schedule": {"type": "one-time", "scheduled_at": -1}}, "scheduled_at"),
        ({"schedule": {"type": "one-time"}}, "scheduled_at"),
        ({"schedule": {"type": "recurring", "cron_expression": "61 * * * *"}}, "bad minute"),
        ({"schedule": {"type": "recurring", "cron_expression": "0 0 30 2 *"}}, "cron_expression"),
        ({"schedule": {"type": "recurring", "cron_expression": "* * * * * *"}}, "five fields"),
        ({"schedule": None}, "schedule"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "content"),
        ({"messages": [{"role": "tool", "content": "I"}]}, "role"),
        ({"messages": [{"type": "approval", "approve": True}]}, "messages"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": 1.5}, "max_steps"),
        ({"max_steps": 5_000}, "max_steps"),
        ({"include_return_message_types": ["nonsense"]}, "include_return_message_types"),
        ({"callback_url": "ftp://example.com"}, "callback_url"),
    ],
)
def test_what_is_refused(stack: Stack, agent_id: str, change: dict[str, Any], says: str) -> None:
    body = {"messages": HELLO, "schedule": DAILY} | change
    answer = httpx.post(f"{stack.url}/v1/agents/{agent_id}/schedule", json=body, timeout=30)
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["detail"]
    assert httpx.get(f"{stack.url}/v1/agents/{agent_id}/schedule", timeout=30).json()["scheduled_messages"] == []


@pytest.fixture(scope="module")
def agent_id(stack: Stack) -> str:
    """An agent for whom nothing is planned."""
    return create(stack.client(), "loci/demo")


def test_agents_and_schedules_that_are_not_there(stack: Stack, agent_id: str) -> None:
    client, nobody = stack.client(), "agent-00000000-0000-4000-8000-0000000000aa"
    nothing = "schedule-00000000-0000-4000-8000-0000000000aa"
    calls: list[Callable[[], Any]] = [
        lambda: client.agents.schedule.create(nobody, messages=HELLO, schedule=DAILY),
        lambda: client.agents.schedule.list(nobody),
        lambda: client.agents.schedule.retrieve(nothing, agent_id=agent_id),
        lambda: client.agents.schedule.delete(nothing, agent_id=agent_id),
    ]
    for call in calls:
        with pytest.raises(APIStatusError) as raised:
            call()
        assert raised.value.status_code == 404


def test_a_repeated_request_plans_once(stack: Stack) -> None:
    client = stack.client()
    agent_id = create(client, "loci/demo")
    key = {"Idempotency-Key": "once"}
    ids = {client.agents.schedule.create(agent_id, messages=HELLO, schedule=DAILY, extra_headers=key).id for _ in "12"}
    assert len(ids) == len(client.agents.schedule.list(agent_id).scheduled_messages) == 1
