"""`python -m services.tool_runner` serves; `python -m services.tool_runner migrate` brings the schema up to date."""

import logging
from pathlib import Path

from services.common import telemetry
from services.common.channel import make_channel
from services.common.database import open_pool, wait_for_database
from services.common.migrate import migrate
from services.common.own_connection import OwnConnection
from services.common.own_places import OWN, places_of
from services.common.server import serve_until_signal
from services.common.settings import Env, run_service
from services.tool_runner.bootstrap import AUDIENCE, build, build_mcp, gateway_embedder, postgres_stores
from services.tool_runner.builtin.runner import BuiltinRunner
from services.tool_runner.core.model import ToolType
from services.tool_runner.egress.egress import Egress
from services.tool_runner.executions.lease import BEAT_PATIENCE
from services.tool_runner.layers.layers import Layers
from services.tool_runner.mcp.homes import Homes
from services.tool_runner.mcp.host_programs import HostPrograms
from services.tool_runner.mcp.stdio import SandboxPrograms
from services.tool_runner.mcp_servers.ports import Programs
from services.tool_runner.sandbox_configs.rules.configs import type_of
from services.tool_runner.sandboxes.choose import SandboxChoice
from services.tool_runner.settings import Settings, read_database
from services.tool_runner.web.lazy import Web

_log = logging.getLogger(__name__)


async def serve(env: Env) -> None:
    """Serves until a signal comes."""
    settings = Settings.read(env)
    OWN.learn(places_of(env))
    telemetry.setup(AUDIENCE, env)
    database = settings.database
    await wait_for_database(database.url)
    pool = await open_pool(database.url, pgbouncer=database.pgbouncer)
    sandboxes = SandboxChoice(settings.sandbox, remote=settings.remote_sandbox)
    models = make_channel(settings.llm_gateway_address) if settings.llm_gateway_address else None
    web = Web(settings.search, allow_private=settings.allow_private_urls)
    egress = Egress(settings.egress)
    layers = Layers(settings.layers, sandboxes, egress)
    beats = OwnConnection(database.url, patience=BEAT_PATIENCE, pgbouncer=database.pgbouncer)
    stores = postgres_stores(pool, settings.sealer, beats)
    homes = Homes(Path(settings.mcp.home_dir), settings.mcp.home_bytes) if settings.mcp.home_dir else None
    mcp_settings = settings.mcp
    programs: Programs = SandboxPrograms(
        sandboxes, egress, layers, settings.limits, mcp_settings.host, homes, mcp_settings.tcp
    )
    if settings.mcp.on_host is not None:
        programs = HostPrograms(settings.mcp.on_host, homes)
    mcp = build_mcp(settings.mcp, stores, programs, shows_secrets=settings.shows_secrets)
    runner = build(
        listen=settings.listen,
        verifier=settings.verifier,
        stores=stores,
        mcp=mcp,
        sealer=settings.sealer,
        sandboxes=sandboxes,
        sandbox_type=type_of(settings.sandbox.kind),
        embedder=gateway_embedder(models) if models is not None else None,
        embedding=settings.embedding,
        runners=lambda sandboxed: {ToolType.LETTA_BUILTIN: BuiltinRunner(sandboxed, web, mcp.resource_tools.by_name)},
        egress=egress,
        layers=layers,
        sessions=settings.sessions,
        limits=settings.limits,
        at_once=settings.at_once,
        receipt_days=settings.receipt_days,
        shows_secrets=settings.shows_secrets,
    )

    async def prepare() -> None:
        _log.info(await sandboxes.prepare())

    closing = [
        runner.executor.close,
        mcp.client.close,
        layers.close,
        sandboxes.close,
        web.close,
    ]
    closing += [runner.search.close, beats.close, pool.close]
    if models is not None:
        closing.append(models.close)
    await serve_until_signal(runner.server, background=(prepare, runner.sweeper.run), on_stop=closing)


async def migrate_schema(env: Env) -> None:
    """Applies what is missing of this service's history."""
    database = read_database(env)
    telemetry.setup(AUDIENCE, env)
    await wait_for_database(database.direct_url)
    await migrate(database.direct_url, "services.tool_runner")


if __name__ == "__main__":
    run_service(serve, migrate=migrate_schema)
