"""Channels to other services: one per peer for the life of a process, made alike.

Every call carries the current call context and `traceparent`, and is bounded by the time that is left for the
call being served, unless it sets its own timeout. These are added by thin wrappers, not by grpc.aio's
interceptors, which cost a task per call.
"""

import asyncio
import time
from types import TracebackType
from typing import Any

import grpc
import orjson
from opentelemetry.trace import Span

from services.common import context as call_context
from services.common import grpc_limits, telemetry
from services.common.errors import LociError, Unavailable, from_rpc

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", grpc_limits.MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", grpc_limits.MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", grpc_limits.MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", grpc_limits.MAX_METADATA_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Also the time that one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.dns_min_time_between_resolutions_ms", 5_000),
    ("grpc.keepalive_time_ms", grpc_limits.KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", grpc_limits.KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Peers are our own; a proxy meant for the outside world must not come between.
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config", orjson.dumps({"loadBalancingConfig": [{"round_robin": {}}]}).decode()),
]


def make_channel(address: str) -> grpc.aio.Channel:
    """Returns a channel to `unix:///path.sock` or `dns:///host:port`. Connects on first use; never fails here."""
    return _Channel(grpc.aio.insecure_channel(address, options=_OPTIONS))


async def call_idempotent(rpc: Any, request: Any, *, timeout: float) -> Any:
    """Calls a unary RPC that may run twice: waits for a connection and repeats on UNAVAILABLE.

    timeout: seconds for all tries together; less where less is left for the call being served. Returns the
    response. Raises LociError.
    """
    left = call_context.time_remaining()
    end = time.monotonic() + (timeout if left is None else min(timeout, left))
    pause = 0.05
    while True:
        try:
            return await rpc(request, timeout=max(0.0, end - time.monotonic()), wait_for_ready=True)
        except grpc.RpcError as error:
            failure: LociError = from_rpc(error)
        if not isinstance(failure, Unavailable) or time.monotonic() + pause >= end:
            raise failure
        await asyncio.sleep(pause)
        pause = min(2 * pause, 1.0)


class _MultiCallable:
    def __init__(self, inner: Any, method: str) -> None:
        self._inner = inner
        self._name = method.lstrip("/")
        service, _, name = self._name.partition("/")
        self._attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": name}

    def __call__(
        self, request: Any = None, *, timeout: float | None = None, metadata: Any = None, **options: Any
    ) -> Any:
        span = telemetry.begin_call(self._name, self._attributes)
        if timeout is None:
            timeout = call_context.time_remaining()
        call = self._inner(request, timeout=timeout, metadata=_with_headers(metadata, span), **options)
        if span is not None:
            call.add_done_callback(_SpanEnd(span))
        return call


def _with_headers(metadata: Any, span: Span | None) -> list[tuple[str, Any]]:
    headers = list(metadata or ())
    if not any(key == call_context.METADATA_KEY for key, _ in headers):
        token = call_context.current_token()
        if token:
            headers.append((call_context.METADATA_KEY, token))
    traceparent = telemetry.traceparent(span)
    if traceparent is not None:
        headers.append((telemetry.METADATA_KEY, traceparent))
    return headers


class _SpanEnd:
    """Ends a CLIENT span when its call is done."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __call__(self, call: Any) -> None:
        # The call is done, so its code is there without waiting: one step runs the coroutine to its end.
        try:
            call.code().send(None)
        except StopIteration as ended:
            code: grpc.StatusCode = ended.value
            self._span.set_attribute("rpc.grpc.status_code", code.value[0])
            if code is not grpc.StatusCode.OK:
                telemetry.mark_failed(self._span, code.name)
        self._span.end()


# To register a method with a channel that was closed ends the process (grpcio 1.85.1); not to costs nothing.
_NOT_REGISTERED = {"_registered_method": False}


class _Channel(grpc.aio.Channel):
    def __init__(self, inner: grpc.aio.Channel) -> None:
        self._inner = inner

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        return _MultiCallable(self._inner.unary_unary(method, *args, **options | _NOT_REGISTERED), method)

    def unary_stream(self, method: str, *args: Any, **options: Any) -> Any:
        return _MultiCallable(self._inner.unary_stream(method, *args, **options | _NOT_REGISTERED), method)

    def stream_unary(self, method: str, *args: Any, **options: Any) -> Any:
        return _MultiCallable(self._inner.stream_unary(method, *args, **options | _NOT_REGISTERED), method)

    def stream_stream(self, method: str, *args: Any, **options: Any) -> Any:
        return _MultiCallable(self._inner.stream_stream(method, *args, **options | _NOT_REGISTERED), method)

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()

    async def __aenter__(self) -> "_Channel":
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self._inner.close()
