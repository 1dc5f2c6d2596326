"""What OpenAI's dialects ask of an agent."""

from typing import Any

import pytest

from gateway.errors.invalid import InvalidRequest
from gateway.openai_api.chat import turn_body
from gateway.openai_api.requests import ChatCompletion, ChatMessage
from gateway.openai_api.side_prompts import is_side_prompt
from loci.agent.v1 import message_service_pb2

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("ls", "cat")]
LS: Any = {"type": "function", "function": {"name": "ls"}}


def chat(text: Any = "hi", **fields: Any) -> ChatCompletion:
    return ChatCompletion(model="agent", messages=[ChatMessage(role="user", content=text)], **fields)


def options(**fields: Any) -> message_service_pb2.TurnOptions:
    return turn_body(chat(**fields)).options()


@pytest.mark.parametrize(
    ("choice", "offered", "first"),
    [
        (None, "ls cat", None),
        ("auto", "ls cat", None),
        ("none", "", None),
        ("required", "ls cat", ""),
        (LS, "ls cat", "ls"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [LS]}}, "ls", None),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [LS]}}, "ls", ""),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "cat"}]}, "cat", ""),
    ],
)
def test_the_choice_of_tools(choice: Any, offered: str, first: str | None) -> None:
    wanted = options(tools=TOOLS, tool_choice=choice)
    assert " ".join(tool.name for tool in wanted.client_tools) == offered
    call = wanted.first_call
    assert (call.tool_name or ("" if call.any_tool else None)) == first


@pytest.mark.parametrize(
    "choice",
    [
        "maybe",
        {"type": "function", "function": {"name": "rm"}},
        {"type": "function", "function": "ls"},
        {"type": "custom"},
        {"type": "allowed_tools"},
        {"type": "allowed_tools", "allowed_tools": "ls"},
        {"type": "allowed_tools", "tools": {"ls": 1}},
        {"type": "allowed_tools", "tools": ["ls"]},
        {"type": "allowed_tools", "tools": [{"function": 5}]},
    ],
)
def test_a_choice_that_cannot_be(choice: Any) -> None:
    with pytest.raises(InvalidRequest, match="tool_choice"):
        options(tools=TOOLS, tool_choice=choice)


def test_the_form_of_an_answer() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    wanted = options(response_format=schema, stop="END", parallel_tool_calls=False, tools=TOOLS)
    assert wanted.response_format_json == '{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}'
    assert (list(wanted.stop), wanted.parallel_tool_calls) == (["END"], False)
    assert list(options(stop=["a", "b"]).stop) == ["a", "b"]
    assert not options().HasField("parallel_tool_calls")


@pytest.mark.parametrize(
    "text",
    [
        "### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>",
        "### Task:\nGenerate 1-3 broad tags.\n<chat_history>\nUSER: hi\n</chat_history>",
        "Create a concise, 3-5 word title with an emoji as a title for the chat history, in its language.",
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
        "Please generate a concise, 5-word-or-less title for the conversation, using its same language.",
        "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title",
        [{"type": "text", "text": "### Task:\nSuggest 3-5 follow-ups.\n<chat_history>\n</chat_history>"}],
    ],
)
def test_prompts_of_chat_pages(text: Any) -> None:
    assert is_side_prompt(chat(text))


@pytest.mark.parametrize(
    "text",
    [
        "Give me a title for my poem.",
        "### Task:\nRespond to the user query using the provided context.\n<context>\n</context>\nWhat is it?",
        "What does <chat_history> mean?",
        "Create a concise title for our conversation.",
    ],
)
def test_what_is_said_to_the_agent(text: str) -> None:
    assert not is_side_prompt(chat(text))


def test_a_page_that_says_so() -> None:
    assert is_side_prompt(chat("Anything", metadata={"task": "title_generation"}))
    assert not is_side_prompt(chat("Anything", metadata={"conversation_id": "conv-1"}))
