"""What happens around every request, outside of FastAPI: one path form, a trace, the caller, a limit on bodies.

Plain ASGI, so that it costs microseconds and leaves the call context in the task that runs the handler.
"""

import logging
import re
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.auth import Authenticator
from gateway.errors import UNKNOWN_ERROR, InvalidRequest, Problem, problem_of
from gateway.openai_errors import failed, refused, speaks_openai
from services.common import telemetry
from services.common.context import Signer, use_context
from services.common.errors import LociError

logger = logging.getLogger(__name__)

# Bodies that are streamed on, and held by nobody here.
_UPLOAD = re.compile(r"/v1/(folders|sources)/[^/]+/upload")
# What stands around a file in a multipart body.
_WRAPPING = 64 * 1024
_MEBIBYTE = 1024 * 1024
# How much of a body that is too large is read and dropped, so that its client gets to read the answer.
_DRAINED_TIMES = 4


class Edge:
    """The gateway as an ASGI application around the FastAPI one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        signer: Signer,
        max_body_bytes: int,
        max_upload_bytes: int,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._signer = signer
        self._bodies = _Limit(
            max_body_bytes,
            f"the request body is larger than {max_body_bytes // _MEBIBYTE} MiB (LOCI_MAX_BODY_MIB)",
        )
        self._uploads = _Limit(
            max_upload_bytes + _WRAPPING,
            f"the file is larger than {max_upload_bytes // _MEBIBYTE} MB (LOCI_MAX_UPLOAD_MB)",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. WebSockets and lifespan events go straight on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        scope["path"] = canonical_path(scope["path"])
        span = telemetry.begin_served(f"HTTP {scope['method']}", _text(headers.get(b"traceparent")))
        answer = _Answer(send)
        try:
            await self._serve(scope, headers, receive, answer)
        except Exception:  # the outermost frame: whatever it is becomes a log line, and a 500 if it still can
            logger.exception("unexpected error in %s %s", scope["method"], scope["path"])
            telemetry.mark_failed(span, "unexpected")
            if not answer.status:
                await refused(Problem(500, {"detail": UNKNOWN_ERROR}), scope).response()(scope, receive, answer)
        finally:
            span.set_attribute("http.response.status_code", answer.status)
            if route := scope.get("route"):
                span.update_name(f"{scope['method']} {route.path}")
            span.end()

    async def _serve(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        try:
            _refuse_nul(scope.get("raw_path") or b"", scope["query_string"])
            caller = self._authenticator.caller(scope["path"], headers)
        except LociError as error:
            problem = failed(error) if speaks_openai(scope) else problem_of(error)
            await problem.response()(scope, receive, send)
            return
        scope["loci.caller"] = caller
        limit = self._uploads if _UPLOAD.fullmatch(scope["path"]) else self._bodies
        body = _LimitedBody(receive, limit.bytes)
        if _length(headers) > limit.bytes:
            await body.drain()
            await limit.refuse(scope, receive, send)
            return
        with use_context(caller.context, signer=self._signer):
            try:
                await self._app(scope, body.receive, send)
            except BodyTooLarge:
                await body.drain()
                await limit.refuse(scope, receive, send)


@dataclass(frozen=True)
class _Limit:
    bytes: int
    sentence: str

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        await refused(Problem(413, {"detail": self.sentence}), scope).response()(scope, receive, send)


def canonical_path(path: str) -> str:
    """Without a trailing slash, which every route also has, and under /v1, of which /latest is another name."""
    path = path.rstrip("/") or "/"
    return f"/v1{path.removeprefix('/latest')}" if path.startswith("/latest/") else path


class BodyTooLarge(BaseException):
    """A body went over the limit while it was read. Not an Exception: frameworks must let it through."""


class _LimitedBody:
    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._read = 0
        self._ended = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._ended = not message.get("more_body", False)
            if self._read > self._limit:
                raise BodyTooLarge
        return message

    async def drain(self) -> None:
        while not self._ended and self._read < self._limit * _DRAINED_TIMES:
            message = await self._receive()
            self._read += len(message.get("body", b""))
            self._ended = not message.get("more_body", False)


class _Answer:
    """`send`, remembering the status of the answer once it began."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _refuse_nul(*parts: bytes) -> None:
    if any(b"%00" in part for part in parts):
        raise InvalidRequest("the address contains a NUL character (%00), which no name or id can hold", "path")


def _length(headers: dict[bytes, bytes]) -> int:
    value = headers.get(b"content-length", b"")
    return int(value) if value.isdigit() else 0


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
