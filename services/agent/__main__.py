"""`python -m services.agent` serves; `python -m services.agent migrate` brings the schema up to date;
`python -m services.agent webhook-secret` prints what receivers of callbacks check signatures with; `isolate` is what it
begins itself, see driving/isolation.py."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

import asyncpg

from services.agent.adapters.peers import grpc_peers
from services.agent.adapters.recall.indexes import VectorIndexing
from services.agent.adapters.stores import Stores, open_agent_pool, postgres_stores
from services.agent.adapters.streams.notices import NoPeers, PostgresNotices, notices_of
from services.agent.bootstrap import AUDIENCE, AgentProcess, build
from services.agent.driving.isolation import ChildProcesses, Isolation, run_from_line
from services.agent.driving.lease_keeper import BEAT_PATIENCE, CAPACITY
from services.agent.resources.runs.retention import RunRetention
from services.agent.settings import ExternalSettings, Settings, read_database, webhook_secret
from services.common import telemetry
from services.common.channel import make_channel
from services.common.database import wait_for_database
from services.common.engine import make_engine
from services.common.migrate import migrate
from services.common.own_connection import OwnConnection
from services.common.own_places import OWN, places_of
from services.common.server import Hook, serve_until_signal
from services.common.settings import Env, run_service


@dataclass(frozen=True, slots=True)
class _Parts:
    """A process with what it stands on."""

    settings: Settings
    built: AgentProcess
    stores: Stores
    pool: asyncpg.Pool
    notices: PostgresNotices | NoPeers
    close: Sequence[Hook]


async def _assemble(env: Env, settings: Settings, *, capacity: int, isolation: Isolation | None) -> _Parts:
    """Makes a process that has its lease and does not beat it yet."""
    OWN.learn(places_of(env))
    telemetry.setup(AUDIENCE, env)
    database, addresses = settings.database, settings.peers
    await wait_for_database(database.url)
    pool = await open_agent_pool(database.url, pgbouncer=database.pgbouncer)
    engine = make_engine(database.url, pgbouncer=database.pgbouncer)
    channels = [make_channel(address) for address in (addresses.memory, addresses.llm_gateway, addresses.tool_runner)]
    peers = grpc_peers(*channels, signer=settings.signer)
    embedder = peers.embedder if settings.message_vectors else None
    beats = OwnConnection(database.url, patience=BEAT_PATIENCE, pgbouncer=database.pgbouncer)
    stores = postgres_stores(
        pool,
        engine,
        peers.memory,
        embedder,
        on_busy=settings.on_busy,
        search_settings=settings.search,
        tending=settings.tending,
        beats=beats,
    )
    notices = notices_of(database)
    # Before anything is bound: nobody shall connect to a socket that is not served yet.
    await stores.leases.register()
    built = build(
        listen=settings.listen,
        external=settings.external,
        verifier=settings.verifier,
        signer=settings.signer,
        defaults=settings.defaults,
        callbacks=settings.callbacks,
        stores=stores,
        peers=peers,
        run_timeout=settings.run_timeout,
        notifier=notices,
        stream_keep=settings.stream_keep,
        message_vectors=settings.message_vectors,
        capacity=capacity,
        isolation=isolation,
    )
    closing = (*(channel.close for channel in channels), engine.dispose, beats.close, pool.close)
    return _Parts(settings, built, stores, pool, notices, closing)


async def serve(env: Env) -> None:
    """Serves until a signal comes."""
    settings = Settings.read(env)
    parts = await _assemble(env, settings, capacity=CAPACITY, isolation=ChildProcesses())
    built, pool = parts.built, parts.pool
    indexing = VectorIndexing(pool, settings.database.direct_url, memory_mib=settings.index_mib)
    built.lease_keeper.begin()
    await serve_until_signal(
        built.servers,
        background=(
            built.deliveries.run,
            built.callbacks.run,
            built.recorder.run,
            built.recorder.keep_hours,
            RunRetention(pool, settings.kept_days).run,
            parts.notices.run,
            built.scheduler.run,
            built.devices.run,
            *([] if built.filler is None else [built.filler.run, indexing.run]),
        ),
        on_drain=(built.devices.drain,),
        on_stop=(built.lease_keeper.stop, built.recorder.stop, *parts.close),
    )


async def isolate(env: Env) -> None:
    """Drives the run that a line on stdin names, and nothing else, until it ends or stdin does."""
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline)
    with tempfile.TemporaryDirectory() as folder:
        # Nobody is served: the servers are bound and never started.
        settings = replace(
            Settings.read(env), listen=f"unix://{folder}/nobody.sock", external=ExternalSettings(None, "", False)
        )
        parts = await _assemble(env, settings, capacity=0, isolation=None)
    built = parts.built
    built.lease_keeper.begin()
    beside = [asyncio.create_task(work()) for work in (built.recorder.run, parts.notices.run)]
    driving = asyncio.create_task(built.lease_keeper.drive_one(*run_from_line(line)))
    alone = loop.run_in_executor(None, sys.stdin.buffer.read)
    try:
        await asyncio.wait((driving, alone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await built.lease_keeper.stop()
        await built.recorder.stop()
        for task in (*beside, driving):
            task.cancel()
        await asyncio.gather(*beside, driving, return_exceptions=True)
        for close in parts.close:
            await close()
    # The reader of stdin would hold the process until that ends.
    os._exit(0)


async def migrate_schema(env: Env) -> None:
    """Applies what is missing of this service's history."""
    database = read_database(env)
    telemetry.setup(AUDIENCE, env)
    await wait_for_database(database.direct_url)
    await migrate(database.direct_url, "services.agent")


async def print_webhook_secret(env: Env) -> None:
    """Prints one line."""
    print(webhook_secret(env))


if __name__ == "__main__":
    run_service(serve, migrate=migrate_schema, isolate=isolate, **{"webhook-secret": print_webhook_secret})
