"""Runs that are there already: their events from some place on, as whoever goes on with them knows the rest."""

from dataclasses import dataclass

from starlette.requests import Request

from gateway.errors.invalid import InvalidRequest
from gateway.resources.messages.requests import AttachRun
from gateway.rest.services import Services
from gateway.turns.event_stream import Events
from gateway.turns.events import Interruption, TurnEvents
from gateway.turns.renderer import FIRST_NUMBER
from gateway.turns.views import View
from loci.agent.v1 import message_service_pb2, run_pb2, run_service_pb2

LAST_EVENT_ID = "last-event-id"
# A sequence is 64 bits wide.
_MOST_DIGITS = 19
_ENDED = frozenset({run_pb2.RUN_STATUS_COMPLETED, run_pb2.RUN_STATUS_FAILED, run_pb2.RUN_STATUS_CANCELLED})


@dataclass(frozen=True)
class ReattachedRun:
    """A run that was joined: its first event, the rest, and how it is to be shown."""

    first: message_service_pb2.TurnEvent | Interruption
    events: Events
    view: View
    # What is told up to this sequence the reader knows.
    after: int
    # Whether it knows that the run has begun.
    knows_run: bool

    @property
    def resumed(self) -> bool:
        """Returns whether the stream begins in the middle."""
        return self.after > 0


def last_event_id(request: Request) -> int:
    """Returns the number of the last event that a browser has got; 0 for all others. Raises InvalidRequest."""
    value = request.headers.get(LAST_EVENT_ID, "")
    if not value:
        return 0
    if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS and int(value) < 2**63):
        raise InvalidRequest("`Last-Event-ID` must be the `id` of an event of this stream", "header", LAST_EVENT_ID)
    return int(value)


def resumed_from(request: Request, body: AttachRun) -> AttachRun:
    """Returns `body`; where it does not say from where on, with the place of the browser's header."""
    if "starting_after" in body.model_fields_set:
        return body
    return body.model_copy(update={"starting_after": last_event_id(request)})


async def reattach(loci: Services, target: run_service_pb2.StreamRunRequest, body: AttachRun) -> ReattachedRun:
    """Returns the run that `target` names, from where `body` says. Raises LociError."""
    after = _sequence(body.starting_after)
    target.after_sequence, target.stream_tokens = after, body.stream_tokens is not False
    target.with_context = after > 0
    turn = TurnEvents(loci.peers, joined=target, tokens=target.stream_tokens, window=loci.settings.reattach_window)
    events = turn.events()
    first = await anext(events)
    view = View.joined("" if isinstance(first, Interruption) else first.attached.view_json, body)
    return ReattachedRun(first, events, view, after, knows_run=body.starting_after >= FIRST_NUMBER)


def _sequence(number: int) -> int:
    """Returns the sequence of the event that has a number in its stream; 0 for the ping that begins it."""
    return max(number - FIRST_NUMBER, 0)


async def is_read_to_end(loci: Services, run_id: str, number: int) -> bool:
    """Returns whether a reader that knows what was told up to a number knows the run's end. Raises LociError."""
    after = _sequence(number)
    if not after:
        return False
    response = await loci.peers.call(loci.peers.runs.GetRun, run_service_pb2.GetRunRequest(run_id=run_id))
    if response.run.status not in _ENDED:
        return False
    # The end is told to whoever asks, and is all that is left.
    request = run_service_pb2.StreamRunRequest(run_id=run_id, after_sequence=after)
    turn = TurnEvents(loci.peers, joined=request, tokens=False, window=loci.settings.reattach_window)
    events = turn.events()
    try:
        async for event in events:
            if not isinstance(event, Interruption) and event.sequence:
                return event.WhichOneof("event") == "end" and event.sequence <= after
    finally:
        await events.aclose()
    return False
