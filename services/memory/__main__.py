"""`python -m services.memory` serves; `python -m services.memory migrate` brings the schema up to date."""

from functools import partial

from services.common import telemetry
from services.common.channel import make_channel
from services.common.database import wait_for_database
from services.common.engine import make_engine
from services.common.migrate import migrate
from services.common.server import serve_until_signal
from services.common.settings import Env, run_service
from services.memory.agent_tools.retention import forget_forever
from services.memory.bootstrap import (
    AUDIENCE,
    build,
    gateway_embedder,
    make_worker,
    open_memory_pool,
    postgres_stores,
    vector_indexing,
)
from services.memory.settings import Settings, read_database


async def serve(env: Env) -> None:
    """Serves until a signal comes."""
    settings = Settings.read(env)
    telemetry.setup(AUDIENCE, env)
    database = settings.database
    await wait_for_database(database.url)
    pool = await open_memory_pool(database.url, pgbouncer=database.pgbouncer)
    engine = make_engine(database.url, pgbouncer=database.pgbouncer)
    channel = make_channel(settings.llm_gateway_address)
    stores = postgres_stores(pool, engine)
    embedder = gateway_embedder(channel)
    indexing = vector_indexing(pool, database.direct_url, memory_mib=settings.index_mib)
    worker = make_worker(stores, embedder, settings.signer, indexing)
    server = build(
        listen=settings.listen,
        verifier=settings.verifier,
        stores=stores,
        embedder=embedder,
        most_upload_bytes=settings.most_upload_bytes,
        search_settings=settings.search,
        wake=worker.wake,
    )
    await serve_until_signal(
        server,
        background=(partial(forget_forever, stores.calls), worker.run_forever),
        on_stop=(channel.close, engine.dispose, pool.close),
    )


async def migrate_schema(env: Env) -> None:
    """Applies what is missing of this service's history."""
    database = read_database(env)
    telemetry.setup(AUDIENCE, env)
    await wait_for_database(database.direct_url)
    await migrate(database.direct_url, "services.memory")


if __name__ == "__main__":
    run_service(serve, migrate=migrate_schema)
