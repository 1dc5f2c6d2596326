"""gRPC servers: alike for every service, with health and reflection, and stopped without dropping calls."""

import asyncio
import logging
import random
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from services.common import grpc_limits, telemetry
from services.common.call_reauth import REAUTH_SECONDS
from services.common.context import Verifier
from services.common.interceptors import EdgeAuthenticate, Guard
from services.common.method_table import MethodTable
from services.common.settings import SettingsError

logger = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
# Longer than the grace, which a hook may itself be giving to others.
HOOK_SECONDS = 10.0
_CONNECTION_AGE_MS = 300_000
_LONGEST_SOCKET_PATH = 107
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

# The name that health knows beside the services: whether calls should come here. "" is whether the process lives.
READY = "ready"

# (add_XServicer_to_server, servicer)
Registration = tuple[Callable[[Any, Any], None], object]
Hook = Callable[[], Awaitable[object]]


class Server:
    """A grpc.aio server with its health service. `address` is as given, with the port that was bound."""

    def __init__(
        self,
        grpc_server: grpc.aio.Server,
        health_servicer: health.HealthServicer,
        address: str,
        service_names: Sequence[str],
    ) -> None:
        self.grpc_server = grpc_server
        self.health = health_servicer
        self.address = address
        self.service_names = service_names

    async def start(self) -> None:
        """Accepts calls from now on; health says SERVING for the process (""), for READY and for each service."""
        for name in self.service_names:
            await self.health.set(name, health_pb2.HealthCheckResponse.SERVING)
        await self.grpc_server.start()

    async def tell_ready(self, ready: bool) -> None:
        """Makes health say whether calls should come here; the process is alive either way."""
        status = health_pb2.HealthCheckResponse
        for name in self.service_names:
            await self.health.set(name, status.SERVING if ready else status.NOT_SERVING)

    async def announce_stop(self) -> None:
        """Makes health say NOT_SERVING for every service, for good."""
        await self.health.enter_graceful_shutdown()

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Refuses new calls, gives those in flight `grace` seconds, then cancels them."""
        await self.announce_stop()
        await self.grpc_server.stop(grace)


def make_server(
    address: str,
    *,
    servicers: Iterable[Registration],
    service_names: Sequence[str],
    audience: str,
    verifier: Verifier | None = None,
    edge_authenticate: EdgeAuthenticate | None = None,
    reauth_seconds: float = REAUTH_SECONDS,
    setting: str = "LOCI_LISTEN",
) -> Server:
    """Returns a server on `address` (`unix:///path.sock`, `host:port`; port 0 picks one), bound but not started.

    servicers: pairs of generated add-function and servicer; service_names: their full names, for health and
    reflection. Callers are known by `verifier` (internal ones; the token must name `audience`) or by
    `edge_authenticate` (external ones: gets the call's metadata, method and peer, returns the context with its token,
    raises Unauthenticated, PermissionDenied, ResourceExhausted), which is asked again every `reauth_seconds` of a
    call. Raises SettingsError, naming `setting`, where the address cannot be used. Call it inside a running event
    loop.
    """
    methods = MethodTable()
    registrar = Guard(audience, verifier, edge_authenticate, reauth_seconds).registrar(methods)
    for add, servicer in servicers:
        add(servicer, registrar)
    health_servicer = health.HealthServicer()
    names = (
        *service_names,
        health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
        reflection.SERVICE_NAME,
    )
    unguarded: tuple[Registration, ...] = (
        (health_pb2_grpc.add_HealthServicer_to_server, health_servicer),
        (reflection_pb2_grpc.add_ServerReflectionServicer_to_server, reflection.aio.ReflectionServicer(names)),
    )
    for add, servicer in unguarded:
        add(servicer, methods)
    grpc_server = grpc.aio.server(handlers=(methods,), options=_options(address))
    return Server(grpc_server, health_servicer, _bind(grpc_server, address, setting), (*service_names, READY))


def _options(address: str) -> list[tuple[str, Any]]:
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", grpc_limits.MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", grpc_limits.MAX_MESSAGE_BYTES),
        ("grpc.max_metadata_size", grpc_limits.MAX_METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", grpc_limits.MAX_METADATA_BYTES),
        ("grpc.keepalive_time_ms", grpc_limits.KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", grpc_limits.KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", grpc_limits.LEAST_PING_INTERVAL_MS),
        # A port in use is an error, never shared with whoever holds it.
        ("grpc.so_reuseport", 0),
    ]
    if not address.startswith("unix:"):
        # Callers reconnect now and then, and so find new replicas. Calls in flight are not cut.
        age = int(_CONNECTION_AGE_MS * random.uniform(0.9, 1.1))
        options.append(("grpc.max_connection_age_ms", age))
    return options


def _bind(grpc_server: grpc.aio.Server, address: str, setting: str) -> str:
    if address.startswith("unix:") and len(address.removeprefix("unix://").encode()) > _LONGEST_SOCKET_PATH:
        raise SettingsError(f"{setting} is {address!r}; a socket's path has at most {_LONGEST_SOCKET_PATH} bytes")
    try:
        port = grpc_server.add_insecure_port(address)
    except RuntimeError:
        raise SettingsError(
            f"{setting} is {address!r}, where nothing can listen (in use, or not this machine's address); "
            f"expected unix:///path.sock or host:port, for example {setting}=0.0.0.0:50051"
        ) from None
    return address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"


async def serve_until_signal(
    servers: Server | Sequence[Server],
    *,
    background: Iterable[Callable[[], Coroutine[Any, Any, object]]] = (),
    on_drain: Iterable[Hook] = (),
    on_stop: Iterable[Hook] = (),
    grace: float = GRACE_SECONDS,
) -> None:
    """Starts `servers` and `background` tasks and returns when SIGTERM or SIGINT came and all is stopped.

    In order: health NOT_SERVING; `on_drain` hooks (take no new work); calls in flight get `grace` seconds;
    background tasks are cancelled; `on_stop` hooks (close pools and channels); spans are sent. Each hook is
    run whatever the others did, and has 10 s. A second signal cuts the grace. A background task that ends with
    an exception stops the process the same way, and its exception is raised here.
    """
    servers = [servers] if isinstance(servers, Server) else list(servers)
    stopping, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if stopping.is_set() else stopping).set()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    tasks = [loop.create_task(_watch(make(), stopping)) for make in background]
    try:
        for server in servers:
            await server.start()
            logger.info("serving", extra={"address": server.address})
        await stopping.wait()
    finally:
        stopping.set()
        await asyncio.gather(*(server.announce_stop() for server in servers))
        await _run_hooks(on_drain)
        await _stop(servers, grace, hurry)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await _run_hooks(on_stop)
        await telemetry.shutdown()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def _watch(work: Coroutine[Any, Any, object], stopping: asyncio.Event) -> None:
    try:
        await work
    except Exception:
        logger.exception("a background task failed; stopping")
        stopping.set()
        raise


async def _stop(servers: Sequence[Server], grace: float, hurry: asyncio.Event) -> None:
    calm = asyncio.gather(*(server.stop(grace) for server in servers))
    impatient = asyncio.create_task(hurry.wait())
    await asyncio.wait((calm, impatient), return_when=asyncio.FIRST_COMPLETED)
    impatient.cancel()
    if not calm.done():
        await asyncio.gather(*(server.stop(0) for server in servers))
    await calm


async def _run_hooks(hooks: Iterable[Hook]) -> None:
    for hook in hooks:
        try:
            async with asyncio.timeout(HOOK_SECONDS):
                await hook()
        except Exception:  # a supervisor: one part that fails to stop must not keep the others up
            logger.exception("a part failed to stop")
