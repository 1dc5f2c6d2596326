"""`python -m services.tool_runner` serves; `python -m services.tool_runner migrate` brings the schema up to date."""

import logging

from services.common import telemetry
from services.common.database import open_pool, wait_for_database
from services.common.migrate import migrate
from services.common.server import serve_until_signal
from services.common.settings import Env, run_service
from services.tool_runner.adapters.late_lists import LateLists
from services.tool_runner.adapters.receipts import PostgresReceipts
from services.tool_runner.adapters.tools import PostgresTools
from services.tool_runner.bootstrap import AUDIENCE, build
from services.tool_runner.sandboxes.choose import SandboxChoice
from services.tool_runner.settings import Settings, read_database

_log = logging.getLogger(__name__)


async def serve(env: Env) -> None:
    """Serves until a signal comes."""
    settings = Settings.read(env)
    telemetry.setup(AUDIENCE, env)
    database = settings.database
    await wait_for_database(database.url)
    pool = await open_pool(database.url, pgbouncer=database.pgbouncer)
    lists = LateLists(database.url, pgbouncer=database.pgbouncer)
    sandboxes = SandboxChoice(settings.sandbox)
    runner = build(
        listen=settings.listen,
        verifier=settings.verifier,
        tools=PostgresTools(pool),
        lists=lists,
        receipts=PostgresReceipts(pool),
        sandboxes=sandboxes,
        limits=settings.limits,
        at_once=settings.at_once,
    )

    async def prepare() -> None:
        _log.info(await sandboxes.prepare())

    await serve_until_signal(
        runner.server, background=(prepare,), on_stop=(runner.executor.close, lists.close, pool.close)
    )


async def migrate_schema(env: Env) -> None:
    """Applies what is missing of this service's history."""
    database = read_database(env)
    telemetry.setup(AUDIENCE, env)
    await wait_for_database(database.direct_url)
    await migrate(database.direct_url, "services.tool_runner")


if __name__ == "__main__":
    run_service(serve, migrate=migrate_schema)
