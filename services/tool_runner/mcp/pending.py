"""Requests that wait for an answer of a server, and their failure where none can come. asyncio alone.

The SDK's transports drop a session, or wait for ever, where a request fails below the protocol; here each request has
its own failure, and the others go on.
"""

import asyncio
import json
from typing import NoReturn

from services.tool_runner.mcp.protocol.errors import McpProblem

RequestId = int | str


class PendingRequests:
    """The waiting requests of one session. `lost`: what ended it, or kept it from beginning.

    noise: the first that it said which is no message of the protocol.
    """

    def __init__(self) -> None:
        self._waiting: dict[RequestId, asyncio.Future[NoReturn]] = {}
        self._greeting: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        self.lost: McpProblem | None = None
        self.noise = ""

    def silence(self, seconds: float) -> str:
        """Returns the sentence about a server that did not answer in time."""
        sentence = f"the MCP server did not answer within {seconds:g} s"
        if not self.noise:
            return sentence
        return f"{sentence}. It printed to stdout, where messages of the protocol belong: {self.noise!r}"

    def expect(self, request_id: RequestId) -> asyncio.Future[NoReturn]:
        """Fails when no answer can come; call `forget` in the end."""
        self._waiting[request_id] = asyncio.get_running_loop().create_future()
        return self._waiting[request_id]

    def forget(self, request_id: RequestId) -> None:
        """Forgets a request: nobody waits any more."""
        self._waiting.pop(request_id).cancel()

    def greeting(self) -> asyncio.Future[NoReturn]:
        """Fails when the session cannot begin."""
        return self._greeting

    def fail(self, content: bytes, problem: McpProblem) -> None:
        """Fails the message `content`, which was not answered and will not be."""
        request_id = id_in(content)
        if request_id is None:
            return
        if request_id not in self._waiting:
            self.lost = self.lost or problem
        future = self._waiting.get(request_id, self._greeting)
        _tell(future, problem)

    def end(self, problem: McpProblem) -> None:
        """Fails all requests: the session is over."""
        self.lost = self.lost or problem
        for future in (self._greeting, *self._waiting.values()):
            _tell(future, self.lost)

    def close(self) -> None:
        """Closes it: nobody asks any more."""
        for future in (self._greeting, *self._waiting.values()):
            future.cancel()


def id_in(content: bytes) -> RequestId | None:
    """Returns the id of a request; None for a notification or an answer."""
    message = json.loads(content)
    return message.get("id") if "method" in message else None


def _tell(future: "asyncio.Future[NoReturn]", problem: McpProblem) -> None:
    if not future.done():
        future.set_exception(problem)
        future.exception()  # whoever waits gets it; where nobody does, asyncio has nothing to complain of
