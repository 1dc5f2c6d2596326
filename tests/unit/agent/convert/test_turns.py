"""Requests for turns as clients send them."""

from typing import Any
from uuid import UUID

import pytest
from google.protobuf.duration_pb2 import Duration

from loci.agent.v1 import message_pb2, message_service_pb2
from services.agent.convert.inputs import MOST_MESSAGES
from services.agent.convert.turns import turn_request
from services.agent.core.facts import ClientTool
from services.agent.core.messages import Image, Text
from services.agent.core.ports_journal import TurnRequest
from services.common.context import CallContext
from services.common.errors import InvalidArgument

AGENT = UUID("00000000-0000-4000-8000-000000000001")
CONTEXT = CallContext(AGENT, AGENT, "user", ("agent",))
PIXEL = message_pb2.ContentPart(image=message_pb2.ImageContent(data_base64="AHBuZw==", media_type="image/\0png"))
LINK = message_pb2.ContentPart(image=message_pb2.ImageContent(url="https://example.org/\0a.png"))


def said(*content: message_pb2.ContentPart, **fields: Any) -> message_pb2.InputMessage:
    content = content or (message_pb2.ContentPart(text="hi"),)
    return message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_USER, content=content, **fields)


def read(*messages: message_pb2.InputMessage, key: str = "", agent: UUID = AGENT, **fields: Any) -> TurnRequest:
    wire = message_service_pb2.TurnRequest(agent_id=f"agent-{agent}", messages=messages or [said()], **fields)
    wire.retry.idempotency_key = key
    return turn_request(wire, CONTEXT, longest_seconds=600)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(None, 600), (Duration(seconds=5), 5), (Duration(nanos=500_000_000), 0.5), (Duration(seconds=10**9), 600)],
)
def test_time_limits(timeout: Duration | None, seconds: float) -> None:
    assert read(timeout=timeout).seconds == seconds


@pytest.mark.parametrize(
    "timeout",
    [Duration(), Duration(seconds=-1), Duration(nanos=-1), Duration(seconds=2**62), Duration(seconds=-(2**62))],
)
def test_time_limits_that_cannot_be(timeout: Duration) -> None:
    with pytest.raises(InvalidArgument, match="timeout must be") as caught:
        read(timeout=timeout)
    assert caught.value.reason == "MESSAGE_INVALID"


def test_any_speaker_may_be_sent() -> None:
    roles = (message_pb2.MESSAGE_ROLE_ASSISTANT, message_pb2.MESSAGE_ROLE_SYSTEM, message_pb2.MESSAGE_ROLE_USER)
    sent = [message_pb2.InputMessage(role=role, content=[message_pb2.ContentPart(text="hi")]) for role in roles]
    assert [message.role for message in read(*sent).messages] == ["assistant", "system", "user"]
    with pytest.raises(InvalidArgument, match="picture in role assistant"):
        read(message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_ASSISTANT, content=[PIXEL]))


def test_what_one_request_wants_of_the_model() -> None:
    options = message_service_pb2.TurnOptions(
        response_format_json='{"type":"json_object"}',
        stop=["END"],
        parallel_tool_calls=False,
        instructions="In French.",
    )
    options.first_call.any_tool = True
    given = read(options=options).options
    assert (given.response_format, given.stop, given.parallel_tool_calls) == ({"type": "json_object"}, ("END",), False)
    assert (given.first_call, given.instructions) == ("", "In French.")
    usual = read().options
    assert (usual.response_format, usual.stop, usual.parallel_tool_calls) == (None, (), None)
    assert (usual.first_call, usual.instructions) == (None, "")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"response_format_json": "{"}, "response_format is not JSON"),
        ({"response_format_json": '{"type":"xml"}'}, "response_format must be"),
        ({"response_format_json": "[]"}, "response_format must be"),
        ({"stop": [""]}, "none that is empty"),
        ({"stop": ["x"] * 17}, "at most 16 texts"),
        ({"first_call": {"tool_name": ""}}, "needs the name of a tool"),
    ],
)
def test_wishes_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        read(options=message_service_pb2.TurnOptions(**options))


def test_a_request_has_so_many_messages() -> None:
    assert len(read(*[said()] * MOST_MESSAGES).messages) == MOST_MESSAGES
    with pytest.raises(InvalidArgument, match=f"at most {MOST_MESSAGES}") as caught:
        read(*[said()] * (MOST_MESSAGES + 1))
    assert caught.value.reason == "MESSAGE_INVALID"


def test_nul_is_taken_out_of_all_that_is_stored() -> None:
    text = message_pb2.ContentPart(text="h\0i")
    message = read(said(text, PIXEL, LINK, name="A\0da", otid="o\x001", sender_id="s\x001")).messages[0]
    assert message.parts == (
        Text("hi"),
        Image(data="AHBuZw==", media_type="image/png"),
        Image(url="https://example.org/a.png"),
    )
    assert (message.name, message.otid, message.sender_id) == ("Ada", "o1", "s1")


def client_tool(parameters: str) -> message_service_pb2.TurnOptions:
    tool = message_service_pb2.ClientTool(name="mine", description="d\0o", parameters_json=parameters)
    return message_service_pb2.TurnOptions(client_tools=[tool])


def test_nul_is_taken_out_of_client_tools() -> None:
    tools = read(options=client_tool('{"type": "object", "title": "\\u0000t", "\\u0000": null}')).options.client_tools
    assert tools == (ClientTool("mine", "do", {"type": "object", "title": "t", "": None}),)


@pytest.mark.parametrize("parameters", ["{", "[]", '{"a": ' * 600 + "1" + "}" * 600])
def test_client_tools_that_cannot_be(parameters: str) -> None:
    with pytest.raises(InvalidArgument, match="the parameters of mine") as caught:
        read(options=client_tool(parameters))
    assert caught.value.reason == "MESSAGE_INVALID"


def test_what_is_not_said_stays_unsaid() -> None:
    message = read().messages[0]
    assert (message.name, message.otid, message.sender_id) == (None, None, None)


def test_equal_requests_have_equal_keys_and_others_do_not() -> None:
    alone: dict[str, Any] = {"locks": True, "background": True}
    requests = [
        read(said(otid="a|b"), said(otid="c"), **alone),
        read(said(otid="a"), said(otid="b|c"), **alone),
        read(said(otid="a"), said(otid="b"), said(otid="c"), **alone),
        read(key="k"),
        read(key="k", agent=UUID(int=AGENT.int + 1)),
        read(key="l"),
    ]
    assert len({request.keys for request in requests}) == len(requests)
    assert read(key="k").keys == read(key="k").keys
    # Not every message has an otid.
    assert read(said(otid="a"), said(), **alone).keys == ()


@pytest.mark.parametrize("fields", [{}, {"locks": True}, {"background": True}])
def test_a_repeated_otid_is_another_turn_where_nothing_says_that_it_is_not(fields: dict[str, Any]) -> None:
    request = read(said(otid="a"), **fields)
    assert request.keys == ()
    # A run in the background is found by it all the same.
    assert len(request.labels) == bool(fields.get("background"))
