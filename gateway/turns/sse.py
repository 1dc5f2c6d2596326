"""A turn as server-sent events, framed as clients of the reference expect it. Pure: events in, bytes out.

`data: <json>` and a blank line per chunk, without event names. A stream ends with stop_reason, usage_statistics and
`data: [DONE]`; a failed one with stop_reason, `event: error` with an error_message, and `data: [DONE]`; a cancelled one
with stop_reason alone.

Where chunks are numbered, `id:` is the number too: browsers send the last one back as Last-Event-ID. Of several chunks
of one event the last has it, so that who was cut off between them is told the event again.
"""

from gateway.rest.convert import Rest
from gateway.rest.event_frames import DONE, frame
from gateway.turns.renderer import EventRenderer
from loci.agent.v1 import agent_pb2, message_service_pb2
from services.common.errors import LociError


def error_frame(content: Rest) -> bytes:
    """Returns the chunk that makes the SDKs raise."""
    return frame(content, "error")


class SseRenderer(EventRenderer):
    """The frames of one stream."""

    def frames(self, event: message_service_pb2.TurnEvent) -> list[bytes]:
        """Returns the frames of one event; may be none."""
        frames = [_framed(content) for content in self.render(event)]
        if event.WhichOneof("event") == "end" and event.end.stop_reason != agent_pb2.STOP_REASON_CANCELLED:
            frames.append(DONE)
        if frames and (number := self.number(event)) is not None:
            frames[-1] = b"id: %d\n" % number + frames[-1]
        return frames

    def ping(self) -> bytes:
        """Returns a keepalive, which names the run."""
        return frame(self.ping_content())

    def broken(self, failure: LociError | None) -> list[bytes]:
        """Returns the end of a stream whose source was lost for good, or (None) that met a bug.

        The run itself may go on.
        """
        return [*map(_framed, self.broken_contents(failure)), DONE]


def _framed(content: Rest) -> bytes:
    return error_frame(content) if content["message_type"] == "error_message" else frame(content)
