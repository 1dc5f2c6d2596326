"""The events of a turn as JSON contents, whatever carries them to the client. Pure.

A turn ends with stop_reason and usage_statistics; a failed one with stop_reason and an error_message.
"""

from datetime import UTC, datetime
from uuid import NAMESPACE_OID, uuid4, uuid5

from gateway.errors.problems import in_stream
from gateway.resources.messages.responses import COMMON, answer_types, message, stop_reason, usage_statistics
from gateway.rest.convert import Rest
from gateway.turns.deltas import Deltas
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2
from services.common.errors import LociError

# Of the ping that begins a stream; events follow.
FIRST_NUMBER = 1


class EventRenderer:
    """Renders the events of one stream.

    deltas: None where whole messages were asked for. types: the message_types to pass on, see `answer_types`.
    speech: shows the calls by which older agents speak as messages; None: as calls.
    numbered: contents carry the number of their event as `seq_id`, by which a reader may resume; else it is null.
    after: what is told up to this sequence the reader knows: it decides what else there is to tell.
    """

    def __init__(
        self,
        *,
        deltas: Deltas | None = None,
        types: frozenset[str] | None = None,
        speech: SpeechRenderer | None = None,
        pings: bool = True,
        numbered: bool = False,
        after: int = 0,
        run_id: str = "",
    ) -> None:
        self._deltas = deltas
        self._types = answer_types() if types is None else types
        self._speech = speech
        self._pings = pings
        self.numbered = numbered
        self._after = after
        # The sequence of the last event after which a reader may go on.
        self._told = after
        self.run_id = run_id

    def render(self, event: message_service_pb2.TurnEvent) -> list[Rest]:
        """Returns the contents of one event; may be none."""
        contents = self._render(event)
        self._told = max(self._told, self._place(event))
        return [] if 0 < event.sequence <= self._after and event.WhichOneof("event") != "end" else contents

    def _render(self, event: message_service_pb2.TurnEvent) -> list[Rest]:
        match event.WhichOneof("event"):
            case "attached":
                self.run_id = event.attached.run_id
                return [self._first_ping()] if self._pings else []
            case "message":
                return self._selected(self.whole(event.message), event)
            case "delta":
                return self._selected(self.pieces(event.delta), event)
            case "notice":
                return self._selected([message(event.notice)], event)
            case "attempt_abandoned":
                return self._abandoned(event)
            case "end":
                return self._end(event)
            case _:
                return []

    def number(self, event: message_service_pb2.TurnEvent) -> int | None:
        """Returns the number of an event in its stream, or None; that of the ping that begins it is the first."""
        if not self.numbered or not (event.sequence or event.HasField("attached")):
            return None
        return self._place(event) + 1

    def _place(self, event: message_service_pb2.TurnEvent) -> int:
        """Returns the sequence after which a reader of what was rendered of an event goes on.

        Whoever goes on after a message knows nothing of those after it in the same reply. So a reader that was told
        pieces of them goes on after these, and is told once more what they lacked.
        """
        if self._deltas and event.WhichOneof("event") == "message" and self._deltas.are_ahead(event.message):
            return self._told
        return event.sequence

    def interrupted(self) -> None:
        """Notes that the source was interrupted and goes on now."""
        if self._deltas:
            self._deltas.interrupted()

    def ping_content(self) -> Rest:
        """Returns a ping, which names the run."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        nulls = dict.fromkeys((*COMMON, "is_err", "seq_id"))
        ids = {"id": f"ping-{uuid4()}", "date": now, "message_type": "ping", "run_id": self.run_id or None}
        return nulls | ids

    def _first_ping(self) -> Rest:
        """Returns the ping that begins the stream of a run; where that is kept it is the same for every reader."""
        if not self.numbered:
            return self.ping_content()
        return self.ping_content() | {"id": f"ping-{uuid5(NAMESPACE_OID, self.run_id)}", "seq_id": FIRST_NUMBER}

    def broken_contents(self, failure: LociError | None) -> list[Rest]:
        """Returns the end of a stream whose source was lost for good, or (None) that met a bug.

        The run itself may go on.
        """
        if failure is None:
            error_type, text, detail = "internal_error", "An unknown error occurred", ""
        else:
            text = f"the stream broke off; the run goes on: POST /v1/runs/{self.run_id}/stream attaches to it"
            error_type, detail = "stream_incomplete", failure.message
        return self._failure("error", error_type, text, detail, None)

    def whole(self, source: message_pb2.Message) -> list[Rest]:
        """Returns the contents of a message that is stored."""
        messages = self._speech.whole(source) if self._speech else [source]
        if self._deltas is None:
            return [message(one) for one in messages]
        return [chunk for one in messages for chunk in self._deltas.whole(one)]

    def pieces(self, source: message_pb2.Message) -> list[Rest]:
        """Returns the contents of a piece of a message."""
        if self._deltas is None:
            return []
        messages = self._speech.piece(source) if self._speech else [source]
        return [chunk for one in messages for chunk in self._deltas.piece(one)]

    def _selected(self, contents: list[Rest], event: message_service_pb2.TurnEvent) -> list[Rest]:
        selected = [content for content in contents if content["message_type"] in self._types]
        for content in selected:
            content["seq_id"] = self.number(event)
        return selected

    def _abandoned(self, event: message_service_pb2.TurnEvent) -> list[Rest]:
        """Returns a ping with an extra field: clients that do not know of it lose nothing."""
        abandoned = event.attempt_abandoned
        if self._deltas:
            self._deltas.abandon(abandoned.message_id, abandoned.step_id)
        attempt = {
            "step_id": abandoned.step_id,
            "message_id": abandoned.message_id or None,
            "attempt": abandoned.attempt,
        }
        return [self.ping_content() | {"attempt_abandoned": attempt, "seq_id": self.number(event)}]

    def _end(self, event: message_service_pb2.TurnEvent) -> list[Rest]:
        end = event.end
        last = stop_reason(end)
        if end.HasField("error"):
            error = end.error
            text, detail = in_stream(error)
            # A request that was refused before it began has no number.
            return self._failure(last["stop_reason"], error.error_type, text, detail, self.number(event))
        if end.stop_reason == agent_pb2.STOP_REASON_CANCELLED:
            return [last]
        return [last, usage_statistics(end.usage, by_tokens=self._deltas is not None)]

    def _failure(self, reason: str, error_type: str, text: str, detail: str, seq_id: int | None) -> list[Rest]:
        content = {
            "message_type": "error_message",
            "run_id": self.run_id,
            "error_type": error_type or "internal_error",
            "message": text,
            "detail": detail or None,
            "seq_id": seq_id,
        }
        return [{"message_type": "stop_reason", "stop_reason": reason}, content]
