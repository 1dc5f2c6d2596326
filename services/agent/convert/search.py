"""Searches of messages <-> protobuf."""

from collections.abc import Iterable, Iterator
from itertools import chain
from uuid import UUID

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.convert.messages import messages_to_proto
from services.agent.core.messages import Message
from services.agent.core.recall.query import DEFAULT_RESULTS, ROLES, MessageFilter, MessageHit, MessageQuery, Mode
from services.common.core.refusals import Refused
from services.common.ids import from_public, optional_id, to_public
from services.common.timestamps import moment_in

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
    agent_id = optional_id("agent", request.agent_id)
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
    start, end = (moment_in(request, name, _invalid) for name in ("start_time", "end_time"))
    filters = MessageFilter(tuple(dict.fromkeys(request.roles)) or ROLES, start, end)
    limit = request.limit or DEFAULT_RESULTS
    return MessageQuery(request.query, limit, _MODES[request.mode], filters, request.context)


def _invalid(name: str, problem: str) -> Refused:
    return Refused("MESSAGE_QUERY_INVALID", f"{name} {problem}")


def hits_to_proto(hit: MessageHit) -> Iterator[wire.MessageHit]:
    """Yields a stored message as clients see it: a hit for each of its pieces that can be found."""
    for piece in _pieces([hit.message]):
        yield _hit(hit, piece)


def _pieces(messages: Iterable[Message]) -> Iterator[message_pb2.Message]:
    for piece in chain.from_iterable(map(messages_to_proto, messages)):
        if piece.WhichOneof("message") not in _NOT_SEARCHED:
            yield piece


def _hit(hit: MessageHit, piece: message_pb2.Message) -> wire.MessageHit:
    is_default = hit.conversation_id == hit.agent_id
    return wire.MessageHit(
        message=piece,
        agent_id=to_public("agent", hit.agent_id),
        conversation_id="" if is_default else to_public("conv", hit.conversation_id),
        score=hit.ranked.score,
        vector_score=hit.ranked.vector,
        text_score=hit.ranked.text,
        before=_pieces(hit.before),
        after=_pieces(hit.after),
    )
