"""A turn as server-sent events, framed as clients of the reference expect it. Pure: events in, bytes out.

`data: <json>` and a blank line per chunk, without event names. A stream ends with stop_reason, usage_statistics and
`data: [DONE]`; a failed one with stop_reason, `event: error` with an error_message, and `data: [DONE]`.
"""

from datetime import UTC, datetime
from uuid import uuid4

import orjson

from gateway.convert import Rest
from gateway.deltas import Deltas
from gateway.errors import in_stream
from gateway.messages import COMMON, answer_types, message, stop_reason, usage_statistics
from gateway.spoken import Spoken
from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2
from services.common.errors import LociError

DONE = b"data: [DONE]\n\n"


def frame(content: Rest) -> bytes:
    """One chunk."""
    return b"data: " + orjson.dumps(content) + b"\n\n"


def error_frame(content: Rest) -> bytes:
    """The chunk that makes the SDKs raise."""
    return b"event: error\n" + frame(content)


class Frames:
    """The frames of one stream.

    deltas: None where whole messages were asked for. types: the message_types to pass on, see `answer_types`.
    spoken: shows the calls by which older agents speak as messages; None: as calls.
    numbered: chunks carry their event's sequence as `seq_id`, by which a reader may resume; else it is null.
    after: what is told up to this sequence the reader knows: it decides what else there is to tell.
    """

    def __init__(
        self,
        *,
        deltas: Deltas | None = None,
        types: frozenset[str] | None = None,
        spoken: Spoken | None = None,
        pings: bool = True,
        numbered: bool = False,
        after: int = 0,
        run_id: str = "",
    ) -> None:
        self._deltas = deltas
        self._types = answer_types() if types is None else types
        self._spoken = spoken
        self._pings = pings
        self._numbered = numbered
        self._after = after
        self.run_id = run_id

    def frames(self, event: message_service_pb2.TurnEvent) -> list[bytes]:
        """What one event is told as; may be nothing."""
        told = self._told(event)
        return [] if 0 < event.sequence <= self._after and event.WhichOneof("event") != "end" else told

    def _told(self, event: message_service_pb2.TurnEvent) -> list[bytes]:
        match event.WhichOneof("event"):
            case "attached":
                self.run_id = event.attached.run_id
                return [self.ping()] if self._pings else []
            case "message":
                return self._chunks(self.whole(event.message), event.sequence)
            case "delta":
                return self._chunks(self.pieces(event.delta), event.sequence)
            case "notice":
                return self._chunks([message(event.notice)], event.sequence)
            case "attempt_abandoned":
                return self._abandoned(event)
            case "end":
                return self._end(event)
            case _:
                return []

    def rejoined(self) -> None:
        """The source was interrupted and goes on now."""
        if self._deltas:
            self._deltas.rejoined()

    def ping(self) -> bytes:
        """A keepalive, which names the run."""
        return frame(self._ping())

    def broken(self, failure: LociError | None) -> list[bytes]:
        """The end of a stream whose source was lost for good, or (None) that met a bug. The run itself may go on."""
        if failure is None:
            error_type, text, detail = "internal_error", "An unknown error occurred", ""
        else:
            text = f"the stream broke off; the run goes on: POST /v1/runs/{self.run_id}/stream attaches to it"
            error_type, detail = "stream_incomplete", failure.message
        return self._failure("error", error_type, text, detail, None)

    def whole(self, source: message_pb2.Message) -> list[Rest]:
        """What is told of a message that is stored."""
        shown = self._spoken.whole(source) if self._spoken else [source]
        if self._deltas is None:
            return [message(one) for one in shown]
        return [chunk for one in shown for chunk in self._deltas.whole(one)]

    def pieces(self, source: message_pb2.Message) -> list[Rest]:
        """What is told of a piece of one."""
        if self._deltas is None:
            return []
        shown = self._spoken.piece(source) if self._spoken else [source]
        return [chunk for one in shown for chunk in self._deltas.piece(one)]

    def _chunks(self, contents: list[Rest], sequence: int) -> list[bytes]:
        kept = [content for content in contents if content["message_type"] in self._types]
        if self._numbered:
            for content in kept:
                content["seq_id"] = sequence
        return [frame(content) for content in kept]

    def _abandoned(self, event: message_service_pb2.TurnEvent) -> list[bytes]:
        """A ping with an extra field: clients that do not know of it lose nothing."""
        abandoned = event.attempt_abandoned
        if self._deltas:
            self._deltas.abandon(abandoned.message_id, abandoned.step_id)
        told = {
            "step_id": abandoned.step_id,
            "message_id": abandoned.message_id or None,
            "attempt": abandoned.attempt,
        }
        seq_id = event.sequence if self._numbered else None
        return [frame(self._ping() | {"attempt_abandoned": told, "seq_id": seq_id})]

    def _end(self, event: message_service_pb2.TurnEvent) -> list[bytes]:
        end = event.end
        last = stop_reason(end)
        if end.HasField("error"):
            error = end.error
            seq_id = event.sequence if self._numbered else None
            text, detail = in_stream(error)
            return self._failure(last["stop_reason"], error.error_type, text, detail, seq_id)
        if end.stop_reason == agent_pb2.STOP_REASON_CANCELLED:
            return [frame(last), DONE]
        return [frame(last), frame(usage_statistics(end.usage)), DONE]

    def _failure(self, reason: str, error_type: str, text: str, detail: str, seq_id: int | None) -> list[bytes]:
        content = {
            "message_type": "error_message",
            "run_id": self.run_id,
            "error_type": error_type or "internal_error",
            "message": text,
            "detail": detail or None,
            "seq_id": seq_id,
        }
        stopped = {"message_type": "stop_reason", "stop_reason": reason}
        return [frame(stopped), error_frame(content), DONE]

    def _ping(self) -> Rest:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        nulls = dict.fromkeys((*COMMON, "is_err", "seq_id"))
        ids = {"id": f"ping-{uuid4()}", "date": now, "message_type": "ping", "run_id": self.run_id or None}
        return nulls | ids
