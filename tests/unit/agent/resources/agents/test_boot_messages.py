"""The messages that agents of a type begin with."""

import json
from datetime import UTC, datetime
from itertools import count
from uuid import UUID

import pytest

from services.agent.core.calls.replies import restore_thoughts
from services.agent.core.messages import Call, Message, Reasoning, Return, Text
from services.agent.core.policy import POLICIES
from services.agent.resources.agents.model.boot_messages import boot_messages

OLDER = {"memgpt_agent", "memgpt_v2_agent", "split_thread_agent", "react_agent", "workflow_agent"}
NOW = datetime(2026, 3, 1, 23, 5, 6, tzinfo=UTC)


def booted(agent_type: str, timezone: str = "UTC") -> tuple[Message, ...]:
    """Returns the messages of an agent made at NOW, with ids from 1."""
    ids = (UUID(int=number) for number in count(1))
    return boot_messages(agent_type, timezone, NOW, lambda: next(ids))


@pytest.mark.parametrize("agent_type", POLICIES)
def test_the_older_types_begin_with_a_greeting_and_a_login(agent_type: str) -> None:
    messages = booted(agent_type)
    assert [message.role for message in messages] == (["assistant", "tool", "user"] if agent_type in OLDER else [])
    assert all(message.run_id is None and message.created_at == NOW for message in messages)
    assert len({message.id for message in messages}) == len(messages)


def test_the_greeting_is_a_call_with_its_return_and_its_thought() -> None:
    greeting, returned, _ = booted("memgpt_agent")
    thought, call = greeting.parts
    [answer] = returned.parts
    assert isinstance(thought, Reasoning)
    assert isinstance(call, Call)
    assert isinstance(answer, Return)
    assert thought.prompted
    assert (call.name, answer.name, answer.call_id, answer.is_error) == ("send_message", "send_message", call.id, False)
    # The model reads both as it is to write them.
    [restored] = restore_thoughts([greeting])
    [shown] = restored.parts
    assert isinstance(shown, Call)
    assert list(json.loads(shown.arguments)) == ["thinking", "message"]
    assert json.loads(shown.arguments)["thinking"] == thought.text


@pytest.mark.parametrize(
    ("timezone", "time"),
    [("UTC", "2026-03-01 11:05:06 PM UTC+0000"), ("Asia/Tokyo", "2026-03-02 08:05:06 AM JST+0900"),
     ("No/Where", "2026-03-01 11:05:06 PM UTC+0000")],
)  # fmt: skip
def test_the_login_has_the_time_of_the_agent(timezone: str, time: str) -> None:
    [text] = booted("react_agent", timezone)[-1].parts
    assert isinstance(text, Text)
    assert json.loads(text.text) == {"type": "login", "last_login": "Never (first login)", "time": time}
