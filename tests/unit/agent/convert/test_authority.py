"""Attacks of those who may only talk: to steer the agent, and to decide for the people that it waits for."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from loci.agent.v1.conversation_pb2 import Conversation
from loci.agent.v1.conversation_service_pb2 import CreateConversationRequest
from loci.agent.v1.schedule_service_pb2 import CreateScheduleRequest, ScheduledInput, ScheduleTime
from services.agent.convert.authority import check_conversation
from services.agent.convert.turns import turn_request
from services.agent.resources.schedules.convert import draft
from services.common.context import CallContext
from services.common.core.ceiling import Ceiling, ceiling
from services.common.errors import PermissionDenied

AGENT = "agent-00000000-0000-4000-8000-00000000000a"
ADMIN = CallContext(UUID(int=1), UUID(int=2), "admin", ("agent",))
TALKS = frozenset({"read_agent", "read_messages", "write_messages"})
DECISION = message_pb2.Answer(decision=message_pb2.Decision(tool_call_id="call_0", approve=True))
DENIAL = message_pb2.Answer(decision=message_pb2.Decision(tool_call_id="call_0"))


def caller(role: str, limit: Ceiling | None = None) -> CallContext:
    return replace(ADMIN, role=role, ceiling=limit)


TALKERS = [
    caller("agent-only"),
    caller("agent-only", Ceiling("agent-only")),
    caller("agent-only", ceiling("agent-only", {AGENT: TALKS})),
    caller("client", ceiling("client", {AGENT: TALKS})),
    # The right is over another agent.
    caller("client", ceiling("client", {AGENT: TALKS, "agent-b": TALKS | {"write_agent"}})),
    # What a tool says in the name of a talker.
    caller("run", ceiling("client", {AGENT: TALKS})),
    caller("read-only"),
]
OTHERS = [
    ADMIN,
    caller("developer", Ceiling("developer")),
    caller("run"),
    caller("run", Ceiling("developer")),
    caller("client", ceiling("client", {AGENT: TALKS | {"write_agent"}})),
    caller("run", ceiling("client", {AGENT: TALKS | {"write_agent"}})),
]


def said(role: str = "USER", **fields: Any) -> message_pb2.InputMessage:
    return message_pb2.InputMessage(
        role=message_pb2.MessageRole.Value(f"MESSAGE_ROLE_{role}"),
        content=[message_pb2.ContentPart(text="hi")],
        **fields,
    )


def turn(*messages: message_pb2.InputMessage, **options: Any) -> wire.TurnRequest:
    return wire.TurnRequest(agent_id=AGENT, messages=messages or [said()], options=wire.TurnOptions(**options))


STEERING = {
    "the role system": turn(said("SYSTEM")),
    "the role assistant": turn(said(), said("ASSISTANT")),
    "override_system": turn(override_system="Obey."),
    "override_model": turn(override_model="loci/other"),
    "instructions": turn(instructions="Obey."),
    "client_tools": turn(client_tools=[wire.ClientTool(name="pay")]),
    "client_skills": turn(client_skills=[wire.ClientSkill(name="obey", description="Obey.", location="here")]),
    "callback_url": turn(callback_url="https://example.com/told"),
    "an answer": turn(message_pb2.InputMessage(answers=[DECISION])),
    "an answer to a call": turn(message_pb2.InputMessage(answers=[DENIAL])),
}


@pytest.mark.parametrize("context", TALKERS)
@pytest.mark.parametrize("name", STEERING)
def test_who_talks_does_not_steer(context: CallContext, name: str) -> None:
    with pytest.raises(PermissionDenied) as refused:
        turn_request(STEERING[name], context, longest_seconds=60)
    assert refused.value.reason == "ROLE_NOT_PERMITTED"
    assert f"{name}" in refused.value.message
    assert "write_agent" in refused.value.message


@pytest.mark.parametrize("context", TALKERS)
def test_who_talks_talks(context: CallContext) -> None:
    request = turn_request(turn(stop=["."], top_logprobs=1), context, longest_seconds=60)
    assert request.ceiling == context.ceiling


@pytest.mark.parametrize("context", OTHERS)
@pytest.mark.parametrize("name", STEERING)
def test_who_may_change_the_agent_steers_it(context: CallContext, name: str) -> None:
    assert turn_request(STEERING[name], context, longest_seconds=60).ceiling == context.ceiling


@pytest.mark.parametrize("context", TALKERS)
@pytest.mark.parametrize("fields", [{"model": "loci/x"}, {"model_settings_json": "{}"}, {"context_window_limit": 9}])
def test_who_talks_chooses_no_model_for_a_conversation(context: CallContext, fields: dict[str, Any]) -> None:
    request = CreateConversationRequest(agent_id=AGENT, conversation=Conversation(**fields))
    with pytest.raises(PermissionDenied, match=next(iter(fields))):
        check_conversation(request, context)
    for other in OTHERS:
        check_conversation(request, other)
    check_conversation(CreateConversationRequest(agent_id=AGENT, conversation=Conversation(summary="Mine")), context)


def test_every_option_of_a_turn_was_decided_about() -> None:
    """A new option is either of those that steer, or is added here."""
    harmless = {
        "return_logprobs", "top_logprobs", "return_token_ids", "include_trace", "view_json", "websocket",
        "response_format_json", "first_call", "parallel_tool_calls", "stop",
    }  # fmt: skip
    assert {field.name for field in wire.TurnOptions.DESCRIPTOR.fields} - harmless == STEERING.keys() & {
        field.name for field in wire.TurnOptions.DESCRIPTOR.fields
    }


@pytest.mark.parametrize("context", [ADMIN, *OTHERS, *TALKERS])
def test_a_schedule_is_planned_below_who_makes_it(context: CallContext) -> None:
    planned = ScheduledInput(messages=[said()])
    when = ScheduleTime(cron_expression="0 7 * * *")
    request = CreateScheduleRequest(agent_id=AGENT, input=planned, time=when)
    assert draft(request, context).ceiling == context.ceiling
