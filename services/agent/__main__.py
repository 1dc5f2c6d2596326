"""`python -m services.agent` serves; `python -m services.agent migrate` brings the schema up to date;
`python -m services.agent webhook-secret` prints what receivers of callbacks check signatures with."""

from services.agent.adapters.peers import grpc_peers
from services.agent.adapters.recall.indexes import VectorIndexing
from services.agent.adapters.stores import open_agent_pool, postgres_stores
from services.agent.adapters.streams.notices import notices_of
from services.agent.bootstrap import AUDIENCE, build
from services.agent.driving.lease_keeper import BEAT_PATIENCE
from services.agent.settings import Settings, read_database, webhook_secret
from services.common import telemetry
from services.common.channel import make_channel
from services.common.database import wait_for_database
from services.common.engine import make_engine
from services.common.migrate import migrate
from services.common.own_connection import OwnConnection
from services.common.own_places import OWN, places_of
from services.common.server import serve_until_signal
from services.common.settings import Env, run_service


async def serve(env: Env) -> None:
    """Serves until a signal comes."""
    settings = Settings.read(env)
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
        beats=beats,
    )
    indexing = VectorIndexing(pool, database.direct_url, memory_mib=settings.index_mib)
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
    )
    built.lease_keeper.begin()
    await serve_until_signal(
        built.servers,
        background=(
            built.deliveries.run,
            built.callbacks.run,
            built.recorder.run,
            built.recorder.keep_hours,
            notices.run,
            built.scheduler.run,
            built.devices.run,
            *([] if built.filler is None else [built.filler.run, indexing.run]),
        ),
        on_drain=(built.devices.drain,),
        on_stop=(
            built.lease_keeper.stop,
            built.recorder.stop,
            *(channel.close for channel in channels),
            engine.dispose,
            beats.close,
            pool.close,
        ),
    )


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
    run_service(serve, migrate=migrate_schema, **{"webhook-secret": print_webhook_secret})
