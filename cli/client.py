"""The few REST calls that `loci chat` makes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import httpx

from cli.errors import CliError

Event = dict[str, Any]
BLOCKS = [
    {"label": "human", "value": ""},
    {"label": "persona", "value": "I am a helpful assistant who remembers what I am told."},
]


class Client:
    """A Loci server at `base_url`; `password` is sent as a bearer token when there is one."""

    def __init__(self, base_url: str, password: str = "", transport: httpx.BaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {password}"} if password else {}
        timeout = httpx.Timeout(10, read=120)  # the server sends a ping every 20 s
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def agent(self, wanted: str | None) -> Event:
        """The agent with that id or name, without one the newest; a new one where there is none."""
        if wanted and wanted.startswith("agent-"):
            return self._object("GET", f"/v1/agents/{wanted}")
        found: list[Event] = self._call(
            "GET", "/v1/agents/", params={"limit": 1} | ({"name": wanted} if wanted else {})
        )
        if found:
            return found[0]
        return self._object("POST", "/v1/agents/", json={"name": wanted or "loci", "memory_blocks": BLOCKS})

    def send(self, agent_id: str, text: str) -> Iterator[Event]:
        """One user message; yields the events of the turn, tokens as they come. Raises CliError."""
        body = {"messages": [{"role": "user", "content": text}], "stream_tokens": True}
        try:
            with self._http.stream("POST", f"/v1/agents/{agent_id}/messages/stream", json=body) as reply:
                if reply.is_error:
                    reply.read()
                    raise CliError(_refusal(reply))
                yield from events(reply.iter_lines())
        except httpx.HTTPError as error:
            raise CliError(_unreachable(self._http.base_url, error)) from None

    def _object(self, method: str, path: str, **arguments: Any) -> Event:
        found: Event = self._call(method, path, **arguments)
        return found

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            reply = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise CliError(_unreachable(self._http.base_url, error)) from None
        if reply.is_error:
            raise CliError(_refusal(reply))
        return reply.json()


def events(lines: Iterable[str]) -> Iterator[Event]:
    """The JSON objects of an SSE stream, until its `[DONE]`."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            text, data = "\n".join(data), []
            if text == "[DONE]":
                return
            yield json.loads(text)


def _refusal(reply: httpx.Response) -> str:
    try:
        detail = reply.json()["detail"]
        if isinstance(detail, list):
            detail = "; ".join(str(entry["msg"]) for entry in detail)
    except (ValueError, KeyError, TypeError):
        detail = reply.text[:500]
    return f"the server answered {reply.status_code}: {detail}"


def _unreachable(base_url: httpx.URL, error: httpx.HTTPError) -> str:
    return f"no answer from {base_url} ({error or type(error).__name__}); is `loci run` running there?"
