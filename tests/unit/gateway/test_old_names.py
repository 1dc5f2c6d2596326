"""Bodies of SDKs before 1.0 are refused with today's name of what they say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gateway.resources.agents.requests import CreateAgent, UpdateAgent
from gateway.resources.conversations.requests import SendToConversation
from gateway.resources.messages.requests import MessageCreate, SendInBackground, SendMessages
from gateway.rest import old_names

HELLO = {"input": "hi"}


@pytest.mark.parametrize(
    ("model", "body", "old", "today"),
    [
        (CreateAgent, {"llm": "gpt-4", "name": "x"}, "llm", "model"),
        (CreateAgent, {"model": "openai/gpt-4o", "embedding_model": "a/b"}, "embedding_model", "embedding"),
        (CreateAgent, {"human": "Ada", "persona": "A helper"}, "human", "memory_blocks"),
        (UpdateAgent, {"llm": "gpt-4"}, "llm", "model"),
        (SendMessages, {"text": "hi"}, "text", "input"),
        (SendMessages, {"message": "hi", "role": "user"}, "message", "input"),
        (SendMessages, HELLO | {"stream": True}, "stream", "streaming"),
        (SendMessages, HELLO | {"stream_steps": True}, "stream_steps", "streaming"),
        (SendToConversation, {"text": "hi"}, "text", "input"),
        (SendInBackground, {"text": "hi"}, "text", "input"),
        (SendMessages, {"messages": [{"role": "user", "text": "hi"}]}, "text", "content"),
    ],
)
def test_the_name_of_today_is_told(model: type[BaseModel], body: dict[str, Any], old: str, today: str) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(body)
    [error] = refused.value.errors()
    assert (error["type"], f"`{old}`" in error["msg"], f"`{today}`" in error["msg"]) == ("renamed_field", True, True)


@pytest.mark.parametrize(
    ("model", "body"),
    [
        # It asks for nothing.
        (SendMessages, HELLO | {"stream": False, "text": None}),
        # Today's name is there, too.
        (SendMessages, HELLO | {"text": "hi", "streaming": True, "stream": True}),
        (SendMessages, {"messages": [{"role": "user", "content": "hi", "text": "hi"}], "message": "hi"}),
        (CreateAgent, {"model": "openai/gpt-4o", "llm": "gpt-4", "memory_blocks": [], "human": "Ada"}),
        (CreateAgent, {"unknown": 1}),
    ],
)
def test_others_are_taken(model: type[BaseModel], body: dict[str, Any]) -> None:
    assert model.model_validate(body)


@pytest.mark.parametrize(
    ("names", "model"),
    [(old_names.AGENT, CreateAgent), (old_names.TURN, SendMessages), (old_names.MESSAGE, MessageCreate)],
)
def test_no_name_of_today_is_among_the_old(names: dict[str, str], model: type[BaseModel]) -> None:
    assert not names.keys() & model.model_fields.keys()
    assert set(names.values()) <= model.model_fields.keys()
