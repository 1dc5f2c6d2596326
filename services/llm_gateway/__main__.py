"""`python -m services.llm_gateway` serves; `python -m services.llm_gateway migrate` brings the schema up to
date.
"""

from services.common import telemetry
from services.common.database import open_pool, wait_for_database
from services.common.migrate import migrate
from services.common.own_places import OWN, places_of
from services.common.server import serve_until_signal
from services.common.settings import Env, run_service
from services.llm_gateway.bootstrap import AUDIENCE, build
from services.llm_gateway.settings import Settings, read_database

# Writing usage and reading budgets do not wait for somebody's report.
_POOL_SIZE = 4


async def serve(env: Env) -> None:
    """Serves until a signal comes."""
    settings = Settings.read(env)
    OWN.learn(places_of(env))
    telemetry.setup(AUDIENCE, env)
    database = settings.database
    await wait_for_database(database.url)
    pool = await open_pool(database.url, size=_POOL_SIZE, pgbouncer=database.pgbouncer)
    built = build(
        listen=settings.listen,
        verifier=settings.verifier,
        pool=pool,
        sealer=settings.sealer,
        configs=settings.providers,
        settings=settings.calls,
    )
    await serve_until_signal(
        built.server,
        background=(built.usage.write_forever, built.retention.run_forever, built.tenants.check_forever),
        on_stop=(built.ledger.close, built.usage.flush, built.providers.close, built.forwards.close, pool.close),
    )


async def migrate_schema(env: Env) -> None:
    """Applies what is missing of this service's history."""
    database = read_database(env)
    telemetry.setup(AUDIENCE, env)
    await wait_for_database(database.direct_url)
    await migrate(database.direct_url, "services.llm_gateway")


if __name__ == "__main__":
    run_service(serve, migrate=migrate_schema)
