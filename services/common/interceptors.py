"""The layers around every handler of a Loci service, from the outside in: telemetry, errors, call context.

Handlers are wrapped once, when their servicer is registered, which costs less per call than grpc.aio's
interceptors. What is not registered through `Guard.registrar` (health, reflection) is not guarded.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import Any, NoReturn, TypeAlias

import grpc
from opentelemetry.trace import Span

from services.common import context as call_context
from services.common import grpc_limits, telemetry
from services.common.call_reauth import REAUTH_SECONDS, reauthenticating
from services.common.context import CallContext, Verifier
from services.common.core.refusals import Refused
from services.common.errors import (
    STATUS_METADATA_KEY,
    Cancelled,
    Internal,
    InvalidArgument,
    LociError,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    from_rpc,
    to_status,
)
from services.common.method_table import Handler, MethodTable

logger = logging.getLogger(__name__)

Metadata = Sequence[tuple[str, str | bytes]]
# Of a call's metadata, method ("package.Service/Method") and peer ("ipv4:192.0.2.1:50000").
EdgeAuthenticate = Callable[[Metadata, str, str], Awaitable[CallContext]]
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
# The statuses that OpenTelemetry's conventions count as the server's failure: UNKNOWN, DEADLINE_EXCEEDED,
# UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS.
_SERVER_FAULTS = frozenset({2, 4, 12, 13, 14, 15})


class Guard:
    """Wraps handlers so that none runs without a verified context and every failure becomes a status."""

    def __init__(
        self,
        audience: str,
        verifier: Verifier | None = None,
        edge_authenticate: EdgeAuthenticate | None = None,
        reauth_seconds: float = REAUTH_SECONDS,
    ) -> None:
        if (verifier is None) == (edge_authenticate is None):
            raise ValueError("give either a verifier (internal callers) or edge_authenticate (external ones)")
        self._audience = audience
        self._verifier = verifier
        self._edge_authenticate = edge_authenticate
        self._reauth_seconds = reauth_seconds

    def registrar(self, methods: MethodTable) -> "Registrar":
        """Returns the server for a generated `add_XServicer_to_server`, whose handlers come to `methods` guarded."""
        return Registrar(self, methods)

    def wrap(self, handler: Handler, method: str) -> Handler:
        """Returns `handler` with everything around it; `method` is "package.Service/Method"."""
        behaviour: Any = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
        make = _MAKERS[handler.request_streaming, handler.response_streaming]
        read, write = handler.request_deserializer, handler.response_serializer
        wrapped: Handler
        if handler.response_streaming:
            wrapped = make(self._stream(behaviour, method), read, write)
        else:
            wrapped = make(self._single(behaviour, write, method), read, None)
        return wrapped

    def _single(
        self,
        behaviour: Callable[[Any, _Context], Awaitable[Any]],
        write: Callable[[Any], bytes] | None,
        method: str,
    ) -> Any:
        async def handle(request: Any, context: _Context) -> Any:
            metadata: Any = context.invocation_metadata()
            span = telemetry.begin_served(method, _first(metadata, telemetry.METADATA_KEY))
            try:
                await self._enter(metadata, context, method)
                async with self._reauthenticating(metadata, context, method):
                    answer = await behaviour(request, context)
                return _serialize(answer, write)
            except grpc.aio.BaseError:
                raise  # gRPC's own: aborted already, or the caller has gone
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is becomes a status
                await _abort(context, error, span, method)
            finally:
                span.end()

        return handle

    def _stream(self, behaviour: Callable[[Any, _Context], AsyncGenerator[Any, None]], method: str) -> Any:
        # A coroutine that writes, not a generator: when the caller goes away during a write, `aclosing` ends
        # the handler at once and in this task; a generator would wait for the garbage collector.
        async def handle(request: Any, context: _Context) -> None:
            metadata: Any = context.invocation_metadata()
            span = telemetry.begin_served(method, _first(metadata, telemetry.METADATA_KEY))
            try:
                await self._enter(metadata, context, method)
                async with (
                    self._reauthenticating(metadata, context, method),
                    aclosing(behaviour(request, context)) as messages,
                ):
                    async for message in messages:
                        await context.write(message)
            except grpc.aio.BaseError:
                raise
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
                await _abort(context, error, span, method)
            finally:
                span.end()

        return handle

    def _reauthenticating(
        self, metadata: Metadata, context: _Context, method: str
    ) -> AbstractAsyncContextManager[None]:
        if self._edge_authenticate is None:
            return nullcontext()
        return reauthenticating(
            partial(self._edge_authenticate, metadata, method, context.peer()), self._reauth_seconds
        )

    async def _enter(self, metadata: Metadata, context: _Context, method: str) -> None:
        if self._edge_authenticate is not None:
            caller = await self._edge_authenticate(metadata, method, context.peer())
        else:
            assert self._verifier is not None
            token = _first(metadata, call_context.METADATA_KEY)
            if not token:
                raise Unauthenticated("the call carries no call context", reason="CONTEXT_MISSING")
            caller = self._verifier.verify(token, self._audience)
        call_context.enter_call(caller, context.time_remaining())


_MAKERS: Mapping[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class Registrar:
    """The two methods of a server that generated `add_XServicer_to_server` functions call."""

    def __init__(self, guard: Guard, methods: MethodTable) -> None:
        self._guard = guard
        self._methods = methods

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Adds the handlers of a service, guarded."""
        guarded = {name: self._guard.wrap(handler, f"{service}/{name}") for name, handler in handlers.items()}
        self._methods.add_registered_method_handlers(service, guarded)

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Does nothing: these are the same handlers once more, unguarded."""


def _serialize(answer: Any, write: Callable[[Any], bytes] | None) -> bytes:
    """Returns the answer's bytes; an answer that is too large is an error of its own.

    gRPC would treat it as a bug of the service, with a stack trace in the log.
    """
    data: bytes = answer if write is None else write(answer)
    if len(data) > grpc_limits.MAX_MESSAGE_BYTES:
        raise ResourceExhausted(
            f"the answer has {len(data)} bytes, more than {grpc_limits.MAX_MESSAGE_BYTES}; ask for less"
        )
    return data


async def _abort(context: _Context, error: BaseException, span: Span, method: str) -> NoReturn:
    if isinstance(error, asyncio.CancelledError) and _cancelled_from_outside():
        raise error
    known = _as_loci_error(error, method)
    number = known.code.value[0]
    span.set_attribute("rpc.grpc.status_code", number)
    if number in _SERVER_FAULTS:
        telemetry.mark_failed(span, known.code.name)
    status = to_status(known)
    await context.abort(known.code, status.message, ((STATUS_METADATA_KEY, status.SerializeToString()),))


def _as_loci_error(error: BaseException, method: str) -> LociError:
    if isinstance(error, LociError):
        return error
    if isinstance(error, Refused):
        return InvalidArgument(error.message, reason=error.reason)
    if isinstance(error, grpc.RpcError):
        return from_rpc(error)
    if isinstance(error, NotImplementedError):
        return Unimplemented(f"{method} is not implemented")
    if isinstance(error, asyncio.CancelledError):
        return Cancelled(f"what {method} waited for was cancelled")
    from services.common.database import is_lost  # noqa: PLC0415 - who has no database does not load its driver

    if is_lost(error):
        logger.warning("no database in %s: %s", method, error)
        return Unavailable("the database cannot be reached now; try again")
    trace_id = telemetry.current_trace_id()
    logger.error("unexpected error in %s", method, exc_info=error)
    return Internal(f"internal error; trace {trace_id}", reason="INTERNAL", metadata={"trace_id": trace_id})


def _cancelled_from_outside() -> bool:
    # gRPC cancels the handler's task when its caller has gone. A CancelledError that came out of something
    # awaited instead must be answered, or the caller would wait for ever.
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _first(metadata: Metadata, key: str) -> Any:
    for name, value in metadata:
        if name == key:
            return value
    return None
