"""Messages of the old server: every role and every part, and what waits for a client."""

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any
from uuid import UUID, uuid5

import pytest

from cli.importing.mapping import messages
from cli.importing.mapping.messages import AgentInfo, Conversion, Position
from cli.importing.schema import MESSAGES
from cli.importing.values import Row, Skip, uuid_of
from loci.agent.v1 import message_pb2
from loci.agent.v1 import transfer_service_pb2 as pb
from tests.letta_database import BEGIN, PIXEL, call, identifier, returned

ID, OTHER = identifier("message", 1), identifier("message", 2)
V1 = AgentInfo(system="You are a helpful assistant.", tools=frozenset({"known"}))
OLD = AgentInfo(agent_type="memgpt_v2_agent")
HERE = Position(True, 5)


def row(role: str, said: str | list[Any] | None = None, **given: Any) -> Row:
    content = [{"type": "text", "text": said}] if isinstance(said, str) else said
    plain = dict.fromkeys(("id", "created_at", *MESSAGES.columns))
    return {**plain, "id": ID, "role": role, "content": content, "created_at": BEGIN, **given}


def read(given: Row, agent_info: AgentInfo = V1, place: Position = HERE) -> pb.StoredMessage:
    message = messages.to_message(given, place, agent_info)
    assert isinstance(message, pb.StoredMessage)
    return message


def shown(message: pb.StoredMessage) -> list[Any]:
    """Each part as its kind and what it says."""
    return [_shown(part) for part in message.parts]


def _shown(part: pb.StoredPart) -> Any:
    match part.WhichOneof("part"):
        case "text":
            return "text", part.text.text
        case "reasoning":
            return "reasoning", part.reasoning.text, part.reasoning.prompted
        case "redacted_reasoning":
            return "redacted", part.redacted_reasoning
        case "call":
            return "call", part.call.id, part.call.name, json.loads(part.call.arguments), part.call.gate
        case "tool_return":
            one = part.tool_return
            return "return", one.tool_call_id, one.status, one.tool_return, one.name
        case "decision":
            decision = part.decision
            return "decision", decision.tool_call_id, decision.approve, decision.reason, decision.request_id
        case "image":
            return "image", part.image.url or (part.image.media_type, part.image.data_base64)
    return None


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


PACKED = '{"type": "user_message", "message": "hello", "time": "now"}'
BEAT = '{"type": "heartbeat", "reason": "go on", "time": "now"}'


@pytest.mark.parametrize(
    ("given", "agent_info", "expected"),
    [
        (row("user", "hello"), V1, [("text", "hello")]),
        (row("user", PACKED), V1, [("text", "hello")]),
        (row("user", BEAT), V1, [("text", BEAT)]),
        (row("user", '{"type": "user_message"}'), V1, [("text", '{"type": "user_message"}')]),
        (row("user", "{ not json"), V1, [("text", "{ not json")]),
        (row("user", None, text="older form"), V1, [("text", "older form")]),
        (
            row("user", [image(type="letta", file_id="f", media_type="image/png", data=PIXEL)]),
            V1,
            [("image", ("image/png", PIXEL))],
        ),
        (row("user", [image(type="url", url="https://a/b.png")]), V1, [("image", "https://a/b.png")]),
        (row("user", [image(type="base64", data="?")]), V1, [("text", "[an image that could not be read]")]),
        (row("system", "Mind the gap."), V1, [("text", "Mind the gap.")]),
        (row("assistant", "hi"), V1, [("text", "hi")]),
        (row("assistant", "hi"), OLD, [("text", "hi")]),
        (
            row("assistant", "I think", tool_calls=[call("c", "send_message", message="hi")]),
            OLD,
            [("reasoning", "I think", True), ("call", "c", "send_message", {"message": "hi"}, "")],
        ),
        (
            row("assistant", "I say", tool_calls=[call("c", "f")]),
            V1,
            [("text", "I say"), ("call", "c", "f", {}, "")],
        ),
        (
            row(
                "assistant",
                [
                    {"type": "reasoning", "is_native": True, "reasoning": "hm", "signature": "s"},
                    {"type": "reasoning", "is_native": False, "reasoning": "so"},
                    {"type": "redacted_reasoning", "data": "xyz"},
                    {"type": "omitted_reasoning"},
                    {"type": "summarized_reasoning", "id": "r", "summary": [{"index": 0, "text": "a"}, {"text": "b"}]},
                    {"type": "tool_call", "id": "c", "name": "f", "input": {"a": 1}},
                    {"type": "tool_return", "tool_call_id": "c", "content": "out", "is_error": True},
                ],
            ),
            V1,
            [
                ("reasoning", "hm", False),
                ("reasoning", "so", True),
                ("redacted", "xyz"),
                ("reasoning", "a\n\nb", False),
                ("call", "c", "f", {"a": 1}, ""),
                ("return", "c", "error", "out", ""),
            ],
        ),
        (row("tool", **returned("c", "done"), name="f"), V1, [("return", "c", "success", "done", "f")]),
        (row("tool", **returned("c", "no", "Failed")), V1, [("return", "c", "error", "no", "")]),
        (
            row("tool", '{"status": "Failed", "message": "older"}', tool_call_id="c", name="f"),
            V1,
            [("return", "c", "error", "older", "f")],
        ),
        (row("tool", "bare text", tool_call_id="c"), V1, [("return", "c", "success", "bare text", "")]),
        (
            row(
                "tool", [], tool_returns=[returned("a", "1")["tool_returns"][0], returned("b", "2")["tool_returns"][0]]
            ),
            V1,
            [("return", "a", "success", "1", ""), ("return", "b", "success", "2", "")],
        ),
        (
            row("summary", '{"type": "system_alert", "message": "m"}'),
            V1,
            [("text", '{"type": "system_alert", "message": "m"}')],
        ),
    ],
)
def test_parts(given: Row, agent_info: AgentInfo, expected: list[Any]) -> None:
    assert shown(read(given, agent_info)) == expected


def test_what_stands_beside_the_parts() -> None:
    message = read(row("user", "hi", name="Ada", otid="o", sender_id="agent-x"))
    assert (message.id, message.name, message.otid, message.sender_id) == (ID, "Ada", "o", "agent-x")
    assert (message.in_context, message.created_at.ToJsonString()) == (True, "2025-03-01T12:00:00Z")
    assert not read(row("assistant", "hi", name="gpt")).HasField("name")
    assert read(row("user", "hi", created_at=None)).HasField("created_at")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (row("assistant", []), "empty"),
        (row("user", None), "empty"),
        (row("assistant", [{"type": "omitted_reasoning"}]), "empty; a part of type 'omitted_reasoning' is left out"),
        (row("ghost", "boo"), "ghost"),
    ],
)
def test_what_is_left_out(given: Row, reason: str) -> None:
    mapped = messages.to_message(given, HERE, V1)
    assert isinstance(mapped, Skip)
    assert reason in mapped.reason


@pytest.mark.parametrize(
    ("call_id", "name", "gate"),
    [
        ("ran", "known", "client"),
        ("judged", "unknown", "approval"),
        ("open", "known", "approval"),
        ("open", "ls", "client"),
    ],
)
def test_calls_that_wait(call_id: str, name: str, gate: str) -> None:
    agent_info = AgentInfo(tools=frozenset({"known"}), returned=frozenset({"ran"}), decided=frozenset({"judged"}))
    message = read(row("approval", [], tool_calls=[call(call_id, name)], otid=ID), agent_info)
    assert shown(message) == [("call", call_id, name, {}, gate)]
    assert (message.role, message.HasField("otid")) == (message_pb2.MESSAGE_ROLE_ASSISTANT, False)
    assert message.id == f"message-{UUID(int=uuid_of(ID).int + 1)}", "so that it is shown under the old id"


def test_answers() -> None:
    denied = {"type": "approval", "tool_call_id": "a", "approve": False, "reason": "no"}
    ran = {"tool_call_id": "b", "status": "success", "stdout": None, "stderr": None, "func_response": "files"}
    given = row("approval", None, approvals=[denied, ran], approval_request_id=OTHER)
    message = read(given)
    assert shown(message) == [("decision", "a", False, "no", OTHER), ("return", "b", "success", "files", "")]
    assert message.role == message_pb2.MESSAGE_ROLE_APPROVAL
    assert messages.client_answers([given]) == (frozenset({"b"}), frozenset({"a"}))
    older = row("approval", None, approve=True, approval_request_id=OTHER)
    assert shown(read(older)) == [("decision", "", True, "", OTHER)]


def test_copies_have_ids_of_their_own() -> None:
    fork = UUID(int=7)
    place = Position(True, 3, fork)
    asked = read(row("approval", [], tool_calls=[call("c", "f")]), place=place)
    copied = uuid5(fork, str(uuid_of(ID)))
    assert asked.id == f"message-{UUID(int=copied.int + 1)}"
    denied = {"type": "approval", "tool_call_id": "c", "approve": False}
    answer = read(row("approval", [], id=OTHER, approvals=[denied], approval_request_id=ID), place=place)
    assert answer.parts[0].decision.request_id == f"message-{copied}"
    assert not read(row("user", "hi", otid="o"), place=place).HasField("otid")


@pytest.mark.parametrize(
    ("text", "place", "role"),
    [
        ('{"type": "system_alert", "message": "m"}', Position(True, 1), message_pb2.MESSAGE_ROLE_SUMMARY),
        ('{"type": "system_alert", "message": "m"}', Position(True, 2), message_pb2.MESSAGE_ROLE_USER),
        ('{"type": "system_alert", "message": "m"}', Position(False), message_pb2.MESSAGE_ROLE_USER),
        ("hello", Position(True, 1), message_pb2.MESSAGE_ROLE_USER),
    ],
)
def test_summaries_of_older_servers(text: str, place: Position, role: int) -> None:
    assert read(row("user", text), place=place).role == role


@pytest.mark.parametrize(
    ("given", "place", "expected"),
    [
        (row("system", "anything"), Position(True, 0), True),
        (row("system", "Mind the gap."), Position(True, 4), False),
        (row("system", "x <memory_blocks> y"), Position(False), True),
        (row("system", "You are a helpful assistant. And more."), Position(False), True),
        (row("user", "x <memory_blocks> y"), Position(True, 0), False),
    ],
)
def test_compiled_prompts(given: Row, place: Position, expected: bool) -> None:
    mapped = messages.to_message(given, place, V1)
    assert (isinstance(mapped, Skip) and "compiled system prompt" in mapped.reason) is expected


@pytest.mark.parametrize(
    ("given", "place", "expected"),
    [
        (row("user", "hi"), HERE, []),
        (row("tool", **returned("c", "done")), HERE, []),
        (row("user", [image(type="base64", data="?")]), HERE, ["an image in it could not be read"]),
        (
            row("user", [{"type": "hologram"}, {"type": "hologram"}, {"type": "text", "text": "hi"}]),
            HERE,
            ["a part of type 'hologram' is left out"],
        ),
        (row("user", '{"type": "system_alert"}'), Position(True, 1), ["it is a summary, and is kept as one"]),
        (row("function", "done", tool_call_id="c"), HERE, ["it has the role 'tool' now"]),
    ],
)
def test_changes_are_named(given: Row, place: Position, expected: list[str]) -> None:
    assert list(messages.changes(given, read(given, place=place))) == expected


async def _each(conversions: Iterable[Conversion]) -> AsyncIterator[Conversion]:
    for one in conversions:
        yield one


async def joined(*rows: Row) -> list[pb.StoredMessage]:
    conversions = _each((one, HERE, messages.to_message(one, HERE, V1)) for one in rows)
    return [
        message async for _, _, message in messages.merge_calls(conversions) if isinstance(message, pb.StoredMessage)
    ]


async def test_calls_of_one_reply_are_one_message() -> None:
    free = row("assistant", "Shall I?", id=OTHER, tool_calls=[call("a", "f")], step_id="step-1")
    gated = row("approval", [], tool_calls=[call("b", "known")], step_id="step-1")
    [message] = await joined(free, gated)
    assert shown(message) == [("text", "Shall I?"), ("call", "a", "f", {}, ""), ("call", "b", "known", {}, "approval")]
    assert message.id == f"message-{UUID(int=uuid_of(ID).int + 1)}"
    conversions = [(one, HERE, messages.to_message(one, HERE, V1)) for one in (free, gated)]
    [(absorbed, _, where), _] = [one async for one in messages.merge_calls(_each(conversions))]
    assert (absorbed["id"], where) == (OTHER, messages.Absorbed(f"its calls are in the message of {ID}"))
    assert len(await joined(free, {**gated, "step_id": "step-2"})) == 2
    assert len(await joined(free, row("tool", **returned("a", "done")), gated)) == 3
    assert [one.id for one in await joined(row("user", "a"), row("user", "b", id=OTHER))] == [ID, OTHER]
