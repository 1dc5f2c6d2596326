"""Searches of messages <-> protobuf."""

from collections.abc import Iterator
from datetime import UTC
from typing import Any
from uuid import UUID

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.convert.messages import messages_to_proto
from services.agent.core.recall.query import DEFAULT_RESULTS, ROLES, MessageFilter, MessageHit, MessageQuery, Mode
from services.common.core.refusals import Refused
from services.common.ids import from_public, to_public

_MODES = {
    wire.MESSAGE_SEARCH_MODE_UNSPECIFIED: Mode.HYBRID,
    wire.MESSAGE_SEARCH_MODE_HYBRID: Mode.HYBRID,
    wire.MESSAGE_SEARCH_MODE_VECTOR: Mode.VECTOR,
    wire.MESSAGE_SEARCH_MODE_TEXT: Mode.TEXT,
}
# What is never looked at: thoughts, and what only the provider can read.
_NOT_SEARCHED = frozenset({"reasoning_message", "hidden_reasoning_message"})


def search_target(request: wire.SearchMessagesRequest) -> tuple[UUID | None, UUID | None]:
    """Returns the agent and the conversation that are searched, None for all.

    Raises InvalidArgument (INVALID_ID), Refused.
    """
    agent_id = from_public("agent", request.agent_id) if request.agent_id else None
    named = request.conversation_id
    if not named:
        return agent_id, None
    # The default conversation has its agent's id.
    conversation_id = from_public("agent" if named.startswith("agent-") else "conv", named)
    return agent_id, conversation_id


def message_query(request: wire.SearchMessagesRequest) -> MessageQuery:
    """Returns what to look for. Raises Refused (MESSAGE_QUERY_INVALID)."""
    if request.mode not in _MODES:
        raise Refused("MESSAGE_QUERY_INVALID", f"{request.mode} is no search mode")
    for role in request.roles:
        if role not in ROLES:
            raise Refused("MESSAGE_QUERY_INVALID", f"{role[:40]!r} is no role; there are {', '.join(ROLES)}")
    start = request.start_time if request.HasField("start_time") else None
    end = request.end_time if request.HasField("end_time") else None
    wanted = MessageFilter(tuple(dict.fromkeys(request.roles)) or ROLES, _time(start), _time(end))
    return MessageQuery(request.query, request.limit or DEFAULT_RESULTS, _MODES[request.mode], wanted)


def _time(given: Any) -> Any:
    if given is None:
        return None
    try:
        return given.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise Refused("MESSAGE_QUERY_INVALID", "a time of the search is out of range; use years 1 to 9999") from None


def hits_to_proto(hit: MessageHit) -> Iterator[wire.MessageHit]:
    """Yields a stored message as clients see it: a hit for each of its pieces that can be found."""
    for piece in messages_to_proto(hit.message):
        if piece.WhichOneof("message") not in _NOT_SEARCHED:
            yield _hit(hit, piece)


def _hit(hit: MessageHit, piece: message_pb2.Message) -> wire.MessageHit:
    is_default = hit.conversation_id == hit.agent_id
    return wire.MessageHit(
        message=piece,
        agent_id=to_public("agent", hit.agent_id),
        conversation_id="" if is_default else to_public("conv", hit.conversation_id),
        score=hit.ranked.score,
        vector_score=hit.ranked.vector,
        text_score=hit.ranked.text,
    )
