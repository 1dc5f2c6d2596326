"""A fake OpenAI with Responses, over HTTP and over a WebSocket, beside all that openai_server.py has.

A WebSocket keeps the last response of its connection, which `previous_response_id` may name, and no other; errors come
as events there. `lifetime` is how many responses a connection gives before it says that its time is over.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from tests.fakes import openai_wire
from tests.fakes import responses_rules as rules
from tests.fakes import responses_wire as wire
from tests.fakes.http import ClientGone, Exchange, Request
from tests.fakes.openai_server import CHAT_MODELS, OpenAIServer, fault
from tests.fakes.script import DEFAULT_REPLY, Reply
from tests.fakes.server import JSON_HEADERS, HttpReply, RequestRecord, serve_forever
from tests.fakes.websocket import WebSocket, is_upgrade

Kept = tuple[str, list[dict[str, Any]]]


class ResponsesServer(OpenAIServer):
    """A fake OpenAI server with Responses."""

    responses_paths: tuple[str, ...] = ("/v1/responses",)

    def __init__(
        self, port: int = 0, *, models: Sequence[str] = CHAT_MODELS, record: bool = True, websockets: bool = True
    ) -> None:
        super().__init__(port, models=models, record=record)
        self.websockets = websockets
        self.lifetime: int | None = None
        # How many WebSockets were opened.
        self.opened = 0

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        if request.headers.get("authorization", "").startswith("Bearer "):
            if (request.method, request.path) == ("POST", "/v1/responses"):
                return self.create(body)
            if (request.method, request.path) == ("POST", "/v1/responses/input_tokens"):
                return self._count_tokens(body)
        return super().respond(request, body)

    def create(
        self, body: Any, before: Sequence[dict[str, Any]] = (), *, stream: bool | None = None
    ) -> tuple[Reply, HttpReply]:
        """The answer to a request whose conversation began with `before`."""
        if not isinstance(body, dict) or not isinstance(body.get("model"), str):
            return DEFAULT_REPLY, openai_wire.error("bad_request", "Missing required parameter: 'model'.")
        items = [*before, *rules.items_of(body)]
        if complaint := rules.refusal(body, items):
            return DEFAULT_REPLY, refused(*complaint)
        if body.get("previous_response_id") and stream is None:
            return DEFAULT_REPLY, refused(*_not_found(body["previous_response_id"]))
        if body["model"] not in self.chat_models:
            return DEFAULT_REPLY, openai_wire.error("model_not_found", f"The model `{body['model']}` does not exist.")
        seen = rules.request_view(body, items, stream=bool(body.get("stream")) if stream is None else stream)
        reply = self.script.choose(seen)
        self._count += 1
        return reply, fault(reply) or wire.response(reply, seen, self._count)

    def _count_tokens(self, body: Any) -> tuple[Reply, HttpReply]:
        reply = self.script.choose(replace(rules.request_view(body, rules.items_of(body), stream=False), route="count"))
        if planned := fault(reply):
            return reply, planned
        if complaint := rules.refusal(body, rules.items_of(body), rules.COUNTED):
            return DEFAULT_REPLY, refused(*complaint)
        answer = {"object": "response.input_tokens", "input_tokens": len(orjson.dumps(body["input"])) // 4}
        return DEFAULT_REPLY, HttpReply(200, JSON_HEADERS, orjson.dumps(answer))

    async def _serve(self, request: Request, exchange: Exchange) -> None:
        if not is_upgrade(request) or request.path not in self.responses_paths:
            await super()._serve(request, exchange)
            return
        if (planned := self._refused_upgrade(request)) is not None:
            await exchange.send(planned.status, planned.headers, planned.body)
            return
        self.opened += 1
        await self._converse(request, await WebSocket.accept(request, exchange))

    def authorized(self, request: Request) -> HttpReply | None:
        """The refusal of an upgrade without a key."""
        if request.headers.get("authorization", "").startswith("Bearer "):
            return None
        return openai_wire.error("authentication", "You didn't provide an API key.")

    def _refused_upgrade(self, request: Request) -> HttpReply | None:
        if not self.websockets:
            return openai_wire.error("bad_request", "Invalid URL (GET /v1/responses)", 404)
        # What is no API answers an upgrade as it answers everything; the page stays for the call that follows.
        if self.script.queue and (page := fault(self.script.queue[0])) and "html" in page.headers["content-type"]:
            return page
        return self.authorized(request)

    async def _converse(self, request: Request, socket: WebSocket) -> None:
        kept: Kept | None = None
        given = 0
        while (message := await socket.receive()) is not None:
            try:
                body = orjson.loads(message)
            except orjson.JSONDecodeError:
                body = None
            received = RequestRecord("WEBSOCKET", request.path, request.headers, body)
            if self._record:
                self.requests.append(received)
            if self.lifetime is not None and given >= self.lifetime:
                text = "Responses websocket connection limit reached (60 minutes)."
                await socket.send(orjson.dumps(wire.error_event(refused(text, "websocket_connection_limit_reached"))))
                received.end("done")
                continue
            try:
                outcome, kept = await self._answer(socket, body, kept)
            except (ClientGone, asyncio.CancelledError):
                received.end("gone")
                raise
            received.end(outcome)
            given += 1
            if outcome != "done":
                return

    async def _answer(self, socket: WebSocket, body: Any, kept: Kept | None) -> tuple[str, Kept | None]:
        """Play the reply to one message; returns how it ended, and what the connection keeps then."""
        if (
            not isinstance(body, dict)
            or body.get("type") != "response.create"
            or {"stream", "background"} & body.keys()
        ):
            await socket.send(orjson.dumps(wire.error_event(refused("Invalid event.", "invalid_value", "type"))))
            return "done", None
        asked = {name: value for name, value in body.items() if name != "type"}
        previous = asked.get("previous_response_id")
        if previous and (kept is None or kept[0] != previous):
            await socket.send(orjson.dumps(wire.error_event(refused(*_not_found(previous)))))
            return "done", None
        before = kept[1] if previous and kept else []
        reply, planned = self.create(self.named(asked), before, stream=True)
        if reply.hang:
            await socket.wait_gone()
            return "gone", None
        await asyncio.sleep(reply.first_delay)
        if planned.frames is None:
            await socket.send(orjson.dumps(wire.error_event(planned)) if reply.raw_body is None else planned.body)
            return "done", None
        outcome = await _play(socket, reply, [_data(frame) for frame in planned.frames])
        last = orjson.loads(_data(planned.frames[-1]))["response"]
        return outcome, (last["id"], [*before, *rules.items_of(asked), *last["output"]])

    def named(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the vendor's name of its model."""
        return body


def refused(message: str, code: str | None = None, param: str | None = None) -> HttpReply:
    """A refusal of a request."""
    return openai_wire.error("bad_request", message, None, param, code)


def _not_found(id: str) -> rules.Complaint:
    return f"Previous response with id '{id}' not found.", "previous_response_not_found", "previous_response_id"


def _data(frame: bytes) -> bytes:
    return next((line[6:] for line in frame.splitlines() if line.startswith(b"data: ")), b"")


async def _play(socket: WebSocket, reply: Reply, events: Sequence[bytes]) -> str:
    stops = (reply.stall_after, reply.truncate_after, reply.end_after, reply.error_after)
    stop = min((stop for stop in stops if stop is not None), default=None)
    for event in filter(None, events[:stop]):
        if reply.keepalives:
            await socket.ping()
        await socket.send(event)
        await asyncio.sleep(reply.delta_delay)
    if reply.stall_after is not None:
        await socket.wait_gone()
        return "gone"
    if reply.truncate_after is not None:
        socket.cut()
        return "cut"
    if reply.end_after is not None:
        await socket.close()
        return "cut"
    if reply.error_after is not None:
        planned = openai_wire.error("server", reply.message)
        await socket.send(orjson.dumps(wire.error_event(planned)))
    return "done"


if __name__ == "__main__":
    serve_forever(ResponsesServer)
