"""Agents over HTTP, and their turns as events that go on where a connection was lost."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx

from cli.streaming.cursor import Cursor
from cli.streaming.errors import AmbiguousName, NotFound, Unreachable, refusal
from cli.streaming.events import ErrorMessage, Event, Json, StopReason, event
from cli.streaming.sse import frames

_AGENT_ID = re.compile(r"agent-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# As many agents of one name as an error lists.
_MOST_LISTED = 10
# Nobody there, or not for long: the run goes on meanwhile.
_PASSING = frozenset({502, 503, 504})


class _ConnectionLost(Exception):
    """The connection of a stream was lost, or (`refused`) not made; the run may go on."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Client:
    """A Loci server at `base_url`; `password` (or a key) is sent as a bearer token when there is one.

    patience: seconds without anything read after which a lost server is given up.
    """

    def __init__(
        self,
        base_url: str,
        password: str = "",
        transport: httpx.BaseTransport | None = None,
        *,
        patience: float = 60.0,
    ) -> None:
        headers = {"Authorization": f"Bearer {password}"} if password else {}
        timeout = httpx.Timeout(10, read=120)  # the server sends a ping every 20 s
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=timeout, transport=transport)
        self._patience = patience

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def get_agent(self, id_or_name: str) -> Json:
        """Returns the agent of that id, else of that name. Raises NotFound, AmbiguousName, Unreachable."""
        if _AGENT_ID.fullmatch(id_or_name):
            return self._object("GET", f"/v1/agents/{id_or_name}")
        agents = self._call("GET", "/v1/agents/", params={"name": id_or_name, "limit": _MOST_LISTED})
        if not agents:
            raise NotFound(404, f"no agent is called {id_or_name!r}", None)
        if len(agents) > 1:
            raise AmbiguousName(id_or_name, [(one["id"], str(one.get("created_at"))) for one in agents])
        agent: Json = agents[0]
        return agent

    def newest_agent(self) -> Json | None:
        """Returns the agent that was created last; None where there is none."""
        agents = self._call("GET", "/v1/agents/", params={"limit": 1})
        return agents[0] if agents else None

    def create_agent(self, **settings: Any) -> Json:
        """Creates an agent."""
        return self._object("POST", "/v1/agents/", json=settings)

    def export_agent(self, agent_id: str, *, scrub_messages: bool = False) -> Json:
        """Returns the agent as an agent file. Raises CliError."""
        return self._object("GET", f"/v1/agents/{agent_id}/export", params={"scrub_messages": scrub_messages})

    def import_agents(self, data: bytes, **fields: str | None) -> Json:
        """Creates the agents of an agent file; fields as in the form of the route, None: not sent. Raises CliError."""
        sent = {name: value for name, value in fields.items() if value is not None}
        return self._object("POST", "/v1/agents/import", files={"file": ("agents.af", data)}, data=sent, timeout=600)

    def stream(
        self, agent_id: str, said: str | list[Json], *, conversation_id: str | None = None, **options: Any
    ) -> Iterator[Event]:
        """Takes a turn and yields its events, each once, whatever happens to the connection.

        said: a user's text, or messages. options: of a POST of messages. The turn runs in the background, so leaving
        does not end it: `resume` goes on with it. Raises ApiError, Unreachable.
        """
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        # By these the server knows a repeated request.
        messages = [{"otid": str(uuid4())} | message for message in messages]
        body = {"stream_tokens": True} | options | {"messages": messages, "streaming": True, "background": True}
        cursor = Cursor()
        path = f"/v1/agents/{agent_id}/messages"
        if conversation_id:
            path, body["agent_id"] = f"/v1/conversations/{conversation_id}/messages", agent_id
        return self._events(cursor, lambda: self._start_request(path, body, cursor))

    def resume(self, run_id: str, *, starting_after: int = 0) -> Iterator[Event]:
        """Yields the events of a run after a `seq_id`, until it ends. Raises ApiError, Unreachable."""
        cursor = Cursor(run_id, starting_after)
        return self._events(cursor, lambda: self._resume_request(cursor))

    def _start_request(self, path: str, body: Json, cursor: Cursor) -> tuple[str, Json]:
        return (path, body) if not cursor.run_id else self._resume_request(cursor)

    def _resume_request(self, cursor: Cursor) -> tuple[str, Json]:
        return f"/v1/runs/{cursor.run_id}/stream", {"starting_after": cursor.after}

    def _events(self, cursor: Cursor, request: Callable[[], tuple[str, Json]]) -> Iterator[Event]:
        pause, until, reached = 0.1, time.monotonic() + self._patience, False
        while True:
            try:
                for one in self._read(cursor, *request()):
                    pause, until = 0.1, time.monotonic() + self._patience
                    yield one
                return
            except _ConnectionLost as lost:
                # A server that was never there is not waited for.
                if (lost.refused and not reached) or time.monotonic() + pause > until:
                    raise Unreachable(str(lost)) from None
            reached = True
            cursor.reconnect()
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _read(self, cursor: Cursor, path: str, body: Json) -> Iterator[Event]:
        """Yields one connection's events. Raises _ConnectionLost before the end, ApiError."""
        last_stop: Event | None = None
        try:
            with self._http.stream("POST", path, json=body) as reply:
                self._check(reply)
                for frame in frames(reply.iter_lines()):
                    if frame.data == "[DONE]":
                        if last_stop is not None:
                            yield last_stop
                        return
                    one = event(json.loads(frame.data))
                    if isinstance(one, ErrorMessage) and one.kind == "stream_incomplete":
                        raise _ConnectionLost(one.message)
                    cursor.run_id = one.run_id or cursor.run_id
                    if isinstance(one, StopReason):
                        # Whether it is the turn that has ended, or the stream alone, the next event says.
                        last_stop = one
                        continue
                    if last_stop is not None:
                        yield last_stop
                        last_stop = None
                    if cursor.is_new(frame, one.seq_id):
                        yield one
        except httpx.HTTPError as error:
            raise _ConnectionLost(self._unreachable(error), refused=isinstance(error, httpx.ConnectError)) from None
        raise _ConnectionLost("the stream ended before the turn did")

    def _check(self, reply: httpx.Response) -> None:
        if not reply.is_error:
            return
        reply.read()
        if reply.status_code in _PASSING and not _has_member(reply, "error"):
            raise _ConnectionLost(f"the server answered {reply.status_code}: {reply.text[:500]}")
        raise refusal(reply.status_code, _json(reply), reply.text)

    def _object(self, method: str, path: str, **arguments: Any) -> Json:
        answer: Json = self._call(method, path, **arguments)
        return answer

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            reply = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise Unreachable(self._unreachable(error)) from None
        if reply.is_error:
            raise refusal(reply.status_code, _json(reply), reply.text)
        return reply.json()

    def _unreachable(self, error: httpx.HTTPError) -> str:
        return f"no answer from {self._http.base_url} ({error or type(error).__name__}); is `loci run` running there?"


def _json(reply: httpx.Response) -> Any:
    try:
        return reply.json()
    except ValueError:
        return None


def _has_member(reply: httpx.Response, member: str) -> bool:
    body = _json(reply)
    return isinstance(body, dict) and member in body
