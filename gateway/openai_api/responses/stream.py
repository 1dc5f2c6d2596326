"""A response as a stream of events, framed as OpenAI's clients expect it. Pure: events in, bytes out."""

import time

from gateway.openai_api.responses.items import OutputItems
from gateway.openai_api.responses.objects import ended, response_object
from gateway.openai_api.responses.requests import CreateResponse, bare_id
from gateway.openai_api.stream import AnswerRenderer
from gateway.rest.convert import Rest
from gateway.rest.event_frames import frame
from loci.agent.v1 import message_service_pb2, run_pb2


class ResponseRenderer(AnswerRenderer):
    """The events of one response."""

    def __init__(self, turn: message_service_pb2.TurnRequest, body: CreateResponse) -> None:
        super().__init__(turn.agent_id, turn.run_id)
        self._conversation_id = turn.conversation_id
        self._body = body
        self._items = OutputItems(bare_id(turn.run_id))
        self._sequence = -1

    def _begun(self) -> list[bytes]:
        self._items = OutputItems(bare_id(self.run_id))
        response = self._response("in_progress")
        return [self._event({"type": f"response.{name}", "response": response}) for name in ("created", "in_progress")]

    def _grown(self, delta: Rest) -> list[bytes]:
        return [self._event(event) for event in self._items.add(delta)]

    def _finished(self, end: message_service_pb2.TurnEnd) -> list[bytes]:
        closing = [self._event(event) for event in self._items.close()]
        response = ended(end, self._items.items, self._body)
        name = response["status"] if response["status"] in ("completed", "incomplete") else "incomplete"
        return [*closing, self._event({"type": f"response.{name}", "response": response})]

    def _failed(self, content: Rest) -> list[bytes]:
        error = content["error"]
        told = {"code": error["code"] or error["type"], "message": error["message"]}
        response = self._response("failed") | {"error": told, "output": self._items.items}
        events: list[Rest] = [
            {"type": "error", **told, "param": error["param"]},
            {"type": "response.failed", "response": response},
        ]
        return [self._event(event) for event in events]

    def _response(self, status: str) -> Rest:
        run = run_pb2.Run(id=self.run_id, agent_id=self._agent_id, conversation_id=self._conversation_id)
        run.created_at.FromSeconds(int(time.time()))
        return response_object(run, status=status, output=[], body=self._body)

    def _event(self, event: Rest) -> bytes:
        self._sequence += 1
        name: str = event["type"]
        return b"event: " + name.encode() + b"\n" + frame(event | {"sequence_number": self._sequence})
