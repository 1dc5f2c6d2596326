"""A turn as a stream of OpenAI's, and as that of chat.completion.chunk. Pure: events in, bytes out.

The first chunk has the role, then come pieces of text, thoughts and calls, one chunk with the reason why it ended, the
usage where it was asked for, and `data: [DONE]`. A failed turn ends with {"error"} and `data: [DONE]`.
"""

import time

from gateway.errors.problems import problem_of_turn
from gateway.openai_api import errors as openai_errors
from gateway.openai_api.chat import ChunkDeltas, finish, usage
from gateway.rest.convert import Rest
from gateway.rest.event_frames import DONE, PING, frame
from gateway.turns.deltas import Deltas
from gateway.turns.speech import SpeechRenderer
from gateway.turns.sse import SseRenderer
from loci.agent.v1 import message_service_pb2
from services.common.errors import LociError

_CHANGED = "the provider failed in the middle and said something else when it was asked again; what came is void"


class AnswerRenderer(SseRenderer):
    """The answer of one turn as it grows; each dialect says in its own frames how it begins, grows and ends.

    An attempt of the provider may be abandoned and made again, and nobody can take back what was told. So of the new
    one is told what goes on from there; where it says something else, the stream ends with an error. Thoughts are told
    again.
    """

    def __init__(self, agent_id: str, run_id: str) -> None:
        super().__init__(deltas=Deltas(), speech=SpeechRenderer(), run_id=run_id)
        self._agent_id = agent_id
        self._teller = ChunkDeltas()
        # What was told and is not yet stored: text, and whether there were calls.
        self._text, self._called = "", False
        # What an abandoned attempt had told, as far as the new one has not told it again.
        self._owed = ""
        self._broken = False

    def _begun(self) -> list[bytes]:
        raise NotImplementedError

    def _grown(self, delta: Rest) -> list[bytes]:
        raise NotImplementedError

    def _finished(self, end: message_service_pb2.TurnEnd) -> list[bytes]:
        raise NotImplementedError

    def _failed(self, content: Rest) -> list[bytes]:
        """Returns the end of a stream that fails; `content`: the error's body."""
        raise NotImplementedError

    def frames(self, event: message_service_pb2.TurnEvent) -> list[bytes]:
        """Returns the frames of one event; may be none."""
        if self._broken:
            return []
        match event.WhichOneof("event"):
            case "attached":
                self.run_id = event.attached.run_id
                return self._begun()
            case "delta":
                return self._tell(self.pieces(event.delta))
            case "message":
                frames = self._tell(self.whole(event.message))
                self._teller.keep()
                self._text, self._called = "", False
                return frames
            case "attempt_abandoned":
                return self._given_up(event.attempt_abandoned)
            case "end":
                return self._ended(event.end)
            case _:
                return []

    def ping(self) -> bytes:
        """Returns a comment, which clients pass over."""
        return PING

    def broken(self, failure: LociError | None) -> list[bytes]:
        """Returns the end of a stream whose source was lost for good, or (None) that met a bug."""
        if failure is None:
            return self._break(openai_errors.content("An unknown error occurred", "server_error", None))
        message = f"the stream broke off; the run goes on: POST /v1/runs/{self.run_id}/stream attaches to it"
        return self._break(openai_errors.content(message, "server_error", "stream_incomplete"))

    def _tell(self, contents: list[Rest]) -> list[bytes]:
        frames = []
        for delta in (delta for content in contents for delta in self._teller.deltas(content)):
            if "content" in delta:
                delta["content"] = self._news(delta["content"])
                if not delta["content"]:
                    continue
            self._called = self._called or "tool_calls" in delta
            frames += self._grown(delta)
        return self._break(self._changed()) if self._broken else frames

    def _news(self, text: str) -> str:
        """Of a text what was not told before."""
        same = min(len(text), len(self._owed))
        self._broken = text[:same] != self._owed[:same]
        self._owed = self._owed[same:]
        self._text += text
        return text[same:]

    def _given_up(self, abandoned: message_service_pb2.AttemptAbandoned) -> list[bytes]:
        assert self._deltas is not None
        self._deltas.abandon(abandoned.message_id, abandoned.step_id)
        self._teller.forget()
        self._owed, self._text = self._text + self._owed, ""
        # Names and arguments of calls cannot be followed as texts can.
        self._broken = self._called
        return self._break(self._changed()) if self._broken else []

    def _ended(self, end: message_service_pb2.TurnEnd) -> list[bytes]:
        if end.HasField("error"):
            return self._break(dict(openai_errors.render(problem_of_turn(end.error)).body))
        if self._owed:
            return self._break(self._changed())
        return self._finished(end)

    def _break(self, content: Rest) -> list[bytes]:
        self._broken = True
        return self._failed(content)

    def _changed(self) -> Rest:
        return openai_errors.content(_CHANGED, "server_error", "attempt_abandoned")


class ChunkRenderer(AnswerRenderer):
    """The chunks of a chat completion."""

    def __init__(self, agent_id: str, run_id: str, *, with_usage: bool) -> None:
        super().__init__(agent_id, run_id)
        self._with_usage = with_usage
        self._created = int(time.time())

    def _begun(self) -> list[bytes]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def _grown(self, delta: Rest) -> list[bytes]:
        return [self._chunk(delta)]

    def _finished(self, end: message_service_pb2.TurnEnd) -> list[bytes]:
        last = [self._chunk({}, **finish(end))]
        if self._with_usage:
            last.append(frame(self._head() | {"choices": [], "usage": usage(end.usage)}))
        return [*last, DONE]

    def _failed(self, content: Rest) -> list[bytes]:
        return [frame(content), DONE]

    def _chunk(self, delta: Rest, **finished: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None} | finished
        chunk = self._head() | {"choices": [choice]}
        return frame(chunk | {"usage": None} if self._with_usage else chunk)

    def _head(self) -> Rest:
        return {
            "id": self.run_id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._agent_id,
        }
