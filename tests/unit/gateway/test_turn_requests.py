"""Requests for turns: input, answers to calls that wait, and what one request alone wants."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from gateway.errors.invalid import InvalidRequest
from gateway.resources.messages.requests import SendMessages
from loci.agent.v1 import message_pb2, message_service_pb2
from loci.agent.v1.message_pb2 import Answer, Decision, ToolReturn
from services.common.errors import InvalidArgument

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}}


def body(**fields: Any) -> SendMessages:
    """A request that says hi, and `fields`."""
    return SendMessages.model_validate({"input": "hi"} | fields)


def inputs(*messages: dict[str, Any]) -> list[message_pb2.InputMessage]:
    """What `messages` become."""
    return SendMessages.model_validate({"messages": list(messages)}).input_messages()


def decided(**fields: Any) -> Answer:
    """An approval or a refusal."""
    return Answer(decision=Decision(**fields))


def returned(text: str = "4", **fields: Any) -> Answer:
    """A client's return for c1."""
    return Answer(tool_return=ToolReturn(**{"tool_call_id": "c1", "status": "success", "tool_return": text} | fields))


def test_input_is_one_user_message() -> None:
    [message] = body().input_messages()
    assert message.role == message_pb2.MESSAGE_ROLE_USER
    assert message.content[0].text == "hi"
    assert not message.HasField("otid")


RETURN = {"type": "tool", "tool_call_id": "c1", "tool_return": "4", "status": "success"}


@pytest.mark.parametrize(
    ("message", "answers"),
    [
        (
            {"type": "approval", "approvals": [{"type": "approval", "tool_call_id": "c1", "approve": True}]},
            [decided(tool_call_id="c1", approve=True)],
        ),
        (
            {"approvals": [{"tool_call_id": "c1", "approve": False, "reason": "too dear"}]},
            [decided(tool_call_id="c1", approve=False, reason="too dear")],
        ),
        # The older form: one answer for all calls.
        (
            {"type": "approval", "approve": True, "approval_request_id": "message-1"},
            [decided(approve=True, request_id="message-1")],
        ),
        ({"approve": False, "reason": "no"}, [decided(approve=False, reason="no")]),
        ({"type": "approval", "approvals": [], "approve": True}, [decided(approve=True)]),
        # The list wins over it.
        (
            {"type": "approval", "approve": True, "approvals": [{"tool_call_id": "c1", "approve": False}]},
            [decided(tool_call_id="c1", approve=False)],
        ),
        ({"type": "approval", "approvals": [RETURN]}, [returned()]),
        (
            {"type": "approval", "approvals": [RETURN, {"tool_call_id": "c2", "approve": True}]},
            [returned(), decided(tool_call_id="c2", approve=True)],
        ),
        ({"type": "tool_return", "tool_returns": [RETURN]}, [returned()]),
        (
            {"tool_returns": [{"tool_call_id": "c1", "tool_return": "x", "status": "error", "stdout": ["a"]}]},
            [returned("x", status="error", stdout=["a"], captures=True)],
        ),
        (
            {"tool_returns": [RETURN | {"stderr": ["b"], "stdout": None}]},
            [returned(stderr=["b"], captures=True)],
        ),
        (
            {"tool_returns": [RETURN | {"tool_return": [{"type": "text", "text": "a"}, {"text": "b"}]}]},
            [returned("a\nb")],
        ),
        (
            {"tool_returns": [RETURN | {"tool_return": [{"type": "text", "text": "a"}, PICTURE]}]},
            [
                returned(
                    "a",
                    content=[
                        message_pb2.ContentPart(text="a"),
                        message_pb2.ContentPart(
                            image=message_pb2.ImageContent(data_base64="AAEC", media_type="image/png")
                        ),
                    ],
                )
            ],
        ),
        ({"tool_returns": [RETURN | {"tool_return": ""}]}, [returned("")]),
    ],
)
def test_answers_to_calls_that_wait(message: dict[str, Any], answers: list[Answer]) -> None:
    [found] = inputs(message | {"otid": "o-1", "group_id": None})
    assert (found.role, found.otid, list(found.content)) == (message_pb2.MESSAGE_ROLE_APPROVAL, "o-1", [])
    assert list(found.answers) == answers


@pytest.mark.parametrize(
    "fields", [{}, {"approvals": []}, {"approvals": None, "reason": "no"}, {"approval_request_id": "message-1"}]
)
def test_an_answer_that_says_nothing(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="Invalid approval response") as refused:
        inputs({"type": "approval", **fields})
    assert refused.value.reason == "APPROVAL_INVALID"


def test_an_answer_and_what_is_said_after_it() -> None:
    found = inputs({"type": "approval", "approve": True}, {"role": "user", "content": "go on"})
    roles = [message_pb2.MESSAGE_ROLE_APPROVAL, message_pb2.MESSAGE_ROLE_USER]
    assert [message.role for message in found] == roles


@pytest.mark.parametrize(
    "fields",
    [
        {"input": None},
        {"input": []},
        {"messages": [{"role": "user", "content": "a"}]},
        {"top_logprobs": 21},
        {"max_steps": 0},
        {"include_return_message_types": ["ping"]},
        {"input": [{"type": "nonsense"}]},
        {"on_busy": "panic"},
        {"client_tools": [{"description": "a tool without a name"}]},
        {"client_tools": [{"name": ""}]},
        {"client_tools": [{"name": "a" * 65}]},
        {"client_tools": [{"name": "a", "parameters": "{}"}]},
        {"client_skills": [{"name": "a"}]},
        *(
            {"input": None, "messages": messages}
            for messages in (
                [],
                [{"role": "tool", "content": "a"}],
                [{"type": "approval", "approvals": [{"type": "approval", "approve": True}]}],
                [{"type": "approval", "approvals": [{"tool_call_id": "", "approve": True}]}],
                [{"type": "approval", "approvals": [{"tool_call_id": "c1"}]}],
                [{"type": "tool_return", "tool_returns": []}],
                [{"type": "tool_return"}],
                [{"type": "tool_return", "tool_returns": [{"tool_call_id": "c1", "tool_return": "a"}]}],
                [{"type": "tool_return", "tool_returns": [RETURN | {"status": "fine"}]}],
                [{"type": "tool_return", "tool_returns": [RETURN | {"tool_return": {"a": 1}}]}],
            )
        ),
    ],
)
def test_bodies_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        body(**fields)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "reasoning", "reasoning": "a"}]},
        {"tool_returns": [RETURN | {"tool_return": [{"type": "image", "source": {"data": "!", "media_type": "a"}}]}]},
    ],
)
def test_input_that_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        inputs(message)


def test_any_speaker_may_be_sent() -> None:
    roles = {role: inputs({"role": role, "content": "a"})[0].role for role in ("user", "system", "assistant")}
    assert roles == {
        "user": message_pb2.MESSAGE_ROLE_USER,
        "system": message_pb2.MESSAGE_ROLE_SYSTEM,
        "assistant": message_pb2.MESSAGE_ROLE_ASSISTANT,
    }


def test_the_form_of_this_answer_alone() -> None:
    assert body(response_format={"type": "json_object"}).options().response_format_json == '{"type":"json_object"}'


def test_nothing_is_asked_for_beyond_the_turn() -> None:
    assert body().options() == message_service_pb2.TurnOptions()
    assert body().busy() == message_service_pb2.ON_BUSY_UNSPECIFIED
    nothing = body(override_model="", override_system=None, client_tools=[], client_skills=None, on_busy=None)
    assert nothing.options() == message_service_pb2.TurnOptions()


def test_what_one_request_alone_wants() -> None:
    options = body(
        override_model="openai/gpt",
        override_system="Be brief.",
        client_tools=[
            {"name": "ls"},
            {"name": "cat", "description": "Shows a file.", "parameters": {"type": "object", "properties": {}}},
        ],
        client_skills=[{"name": "pdf", "description": "Reads PDFs.", "location": "skills/pdf/SKILL.md"}],
        return_logprobs=True,
        top_logprobs=0,
        return_token_ids=True,
        include_trace=True,
    ).options()
    assert (options.override_model, options.override_system) == ("openai/gpt", "Be brief.")
    assert [(tool.name, tool.description) for tool in options.client_tools] == [("ls", ""), ("cat", "Shows a file.")]
    assert options.client_tools[0].parameters_json == ""
    assert orjson.loads(options.client_tools[1].parameters_json) == {"type": "object", "properties": {}}
    [skill] = options.client_skills
    assert (skill.name, skill.description, skill.location) == ("pdf", "Reads PDFs.", "skills/pdf/SKILL.md")
    assert (options.return_logprobs, options.HasField("top_logprobs"), options.top_logprobs) == (True, True, 0)
    assert (options.return_token_ids, options.include_trace, options.HasField("callback_url")) == (True, True, False)


def test_the_servers_name_for_a_prompt_of_ones_own() -> None:
    assert body(system="Be brief.").options().override_system == "Be brief."
    assert body(system="a", override_system="b").options().override_system == "b"


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("wait", message_service_pb2.ON_BUSY_WAIT),
        ("reject", message_service_pb2.ON_BUSY_REJECT),
        ("interrupt", message_service_pb2.ON_BUSY_INTERRUPT),
    ],
)
def test_what_to_do_when_the_conversation_is_busy(word: str, meaning: int) -> None:
    assert body(on_busy=word).busy() == meaning
