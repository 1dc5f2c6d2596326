"""Surrounds every request: one form of paths, a trace, the caller, limits on bodies, failures as answers.

Plain ASGI, so that it costs microseconds and leaves the call context in the task that runs the handler.
"""

import logging
import re
from collections.abc import Mapping
from functools import partial

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.access import handshakes
from gateway.access.auth import Authenticator, Caller
from gateway.access.credentials import shown
from gateway.access.rate_limits import RateLimits
from gateway.access.request_reauth import RequestReauth
from gateway.access.socket_reauth import SocketReauth
from gateway.errors.dialects import answer
from gateway.errors.invalid import InvalidRequest
from gateway.errors.problems import Problem, problem_of
from gateway.git.requests import CHALLENGE
from gateway.git.requests import PREFIX as GIT
from gateway.server.body_limits import BodyLimit, BodyTooLarge, BodyTooSlow, LimitedBody
from services.common import telemetry
from services.common.context import Signer, use_context
from services.common.errors import LociError, Unauthenticated
from services.common.guesses import Guesses, network_of

logger = logging.getLogger(__name__)

# Bodies that are streamed on, and held by nobody here.
_UPLOAD = re.compile(r"/v1/(folders|sources)/[^/]+/upload|/v1/executions/files|/v1/agents/import")
# What stands around a file in a multipart body.
_WRAPPING = 64 * 1024
_MEBIBYTE = 1024 * 1024


class RequestMiddleware:
    """The gateway as an ASGI application around the one that calls its handlers."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        signer: Signer,
        max_body_bytes: int,
        max_upload_bytes: int,
        body_seconds: float,
        limits: RateLimits | None = None,
        key_cache: float = 5.0,
        base_path: str = "",
    ) -> None:
        """`body_seconds`: for a body, of uploads for each piece. `key_cache`: after so many seconds the key of a socket
        is looked at again. `base_path`: stands before our paths where the proxy in front leaves it there.
        """
        self._app = app
        self._limits = limits
        self._guesses = Guesses()
        self._authenticator = authenticator
        self._signer = signer
        self._key_cache = key_cache
        self._base_path = base_path
        self._bodies = BodyLimit(
            max_body_bytes,
            body_seconds,
            f"the request body is larger than {max_body_bytes // _MEBIBYTE} MiB (LOCI_MAX_BODY_MIB)",
        )
        self._uploads = BodyLimit(
            max_upload_bytes + _WRAPPING,
            body_seconds,
            f"the file is larger than {max_upload_bytes // _MEBIBYTE} MB (LOCI_MAX_UPLOAD_MB)",
            by_piece=True,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or one WebSocket from its handshake to its end. Lifespan events go straight on."""
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        scope["path"] = canonical_path(scope["path"], self._base_path)
        span = telemetry.begin_served(f"HTTP {scope['method']}", _text(headers.get(b"traceparent")))
        sender = _Sender(send)
        try:
            await self._serve(scope, headers, receive, sender)
        except Exception as error:  # the outermost frame: whatever it is becomes a log line, and a 500 if it still can
            logger.exception("unexpected error in %s %s", scope["method"], scope["path"])
            telemetry.mark_failed(span, "unexpected")
            if not sender.status:
                await answer(error, scope).response()(scope, receive, sender)
        finally:
            span.set_attribute("http.response.status_code", sender.status)
            if route := scope.get("route"):
                span.update_name(f"{scope['method']} {route.path}")
            span.end()

    async def _serve(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: "_Sender") -> None:
        try:
            caller = await self._authenticate(scope["method"], scope, headers)
            send.headers = self._count(caller)
        except LociError as error:
            problem = answer(error, scope)
            if problem.status == 401 and scope["path"].startswith(GIT):
                problem = Problem(401, problem.body, {**problem.headers, "www-authenticate": CHALLENGE})
            await problem.response()(scope, receive, send)
            return
        limit = self._uploads if _UPLOAD.fullmatch(scope["path"]) else self._bodies
        body = LimitedBody(receive, limit)
        if _length(headers) > limit.bytes:
            await limit.refuse(scope, body, send)
            return
        with use_context(caller.context, signer=self._signer):
            try:
                if caller.counted_as:  # a key or a token, which can be revoked
                    again = partial(self._authenticate, scope["method"], scope, headers)
                    await RequestReauth(again, self._key_cache, scope, send).serve(self._app, body.receive)
                else:
                    await self._app(scope, body.receive, send)
            except BodyTooLarge:
                await limit.refuse(scope, body, send)
            except BodyTooSlow:
                await limit.give_up(scope, receive, send)
            except (LociError, RequestValidationError, HTTPException) as error:
                if send.status:
                    raise  # the answer has begun
                await answer(error, scope).response()(scope, body.receive, send)

    async def _authenticate(self, method: str, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        _refuse_nul(scope.get("raw_path") or b"", scope["query_string"])
        host, _ = scope.get("client") or ("", 0)
        address, guess = network_of(host), shown(headers)
        self._guesses.check(address, guess)
        try:
            caller = await self._authenticator.caller(method, scope["path"], headers, scope["query_string"])
        except Unauthenticated:
            self._guesses.wrong(address, guess)
            raise
        if caller.credential:
            self._guesses.right(address, guess)
        scope["loci.caller"] = caller
        return caller

    def _count(self, caller: Caller) -> Mapping[str, str]:
        """Counts a request. Returns the headers that say how many are left. Raises ResourceExhausted."""
        if self._limits is None or caller.counted_as is None:
            return {}
        return self._limits.take(caller.counted_as, caller.requests_per_minute)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["path"] = canonical_path(scope["path"], self._base_path)
        headers = handshakes.credential_headers(scope)
        span = telemetry.begin_served("WEBSOCKET", _text(headers.get(b"traceparent")))
        try:
            try:
                caller = await self._authenticate(handshakes.METHOD, scope, headers)
                self._count(caller)
                # What is asked over the socket is counted there.
                scope["loci.count"] = partial(self._count, caller)
            except LociError as error:
                await handshakes.refuse(problem_of(error), scope, receive, send)
                return
            if caller.counted_as:  # a key or a token, which can be revoked
                again = partial(self._authenticate, handshakes.METHOD, scope, headers)
                socket = SocketReauth(again, self._key_cache, receive, send)
                receive, send = socket.receive, socket.send
            with use_context(caller.context, signer=self._signer):
                await self._app(scope, receive, send)
        except Exception:  # the outermost frame; the server closes the socket with 1011
            logger.exception("unexpected error in the socket %s", scope["path"])
            telemetry.mark_failed(span, "unexpected")
            raise
        finally:
            if route := scope.get("route"):
                span.update_name(f"WEBSOCKET {route.path}")
            span.end()


def canonical_path(path: str, base: str = "") -> str:
    """Returns a path without `base` and a trailing slash, and under /v1, of which /latest is another name."""
    if base and (path == base or path.startswith(f"{base}/")):
        path = path.removeprefix(base)
    path = path.rstrip("/") or "/"
    return f"/v1{path.removeprefix('/latest')}" if path.startswith("/latest/") else path


class _Sender:
    """`send`, with `headers` beside those of the answer, and remembering its status once it began."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.headers: Mapping[str, str] = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.headers:
                more = [(name.encode(), value.encode()) for name, value in self.headers.items()]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
        await self._send(message)


def _refuse_nul(*parts: bytes) -> None:
    if any(b"%00" in part for part in parts):
        raise InvalidRequest("the address contains a NUL character (%00), which no name or id can hold", "path")


def _length(headers: dict[bytes, bytes]) -> int:
    value = headers.get(b"content-length", b"")
    return int(value) if value.isdigit() else 0


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
