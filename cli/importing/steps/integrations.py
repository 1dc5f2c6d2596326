"""Providers, MCP servers and sandboxes, with their secrets."""

from cli.importing.mapping import providers as mapping
from cli.importing.mapping import tools
from cli.importing.schema import MCP_SERVERS, PROVIDERS, SANDBOX_CONFIGS, SANDBOX_VARIABLES
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_text, public_id
from loci.common.v1.page_pb2 import PageRequest
from loci.llm.v1 import provider_service_pb2
from loci.tool.v1 import environment_service_pb2, mcp_service_pb2
from services.common.errors import AlreadyExists

_SECRETS = "secrets"
_MOST_CONFIGS = 1_000


async def providers(job: Import) -> None:
    """Imports the providers that users brought. Each is asked for its models once it is stored."""
    loci, report = job.loci, job.report
    async for row in job.source.rows(PROVIDERS):
        where = {"id": row["id"], "name": as_text(row["name"])}
        if not mapping.is_byok(row):
            report.skip("providers", "it came of the old server's settings; set the same ones here", **where)
            continue
        wanted = provider_service_pb2.GetProviderRequest(id=public_id("provider", row["id"]))
        if await loci.exists(loci.providers.GetProvider, wanted):
            report.count_present("providers")
            continue
        keys = [_secret(job, row, name, "providers") for name in ("api_key", "access_key")]
        request = mapping.provider(row, keys[0], keys[1])
        if isinstance(request, Skip):
            report.skip("providers", request.reason, **where)
        else:
            await job.create("providers", loci.providers.CreateProvider, request, **where)


async def mcp_servers(job: Import) -> None:
    """Imports MCP servers, whose tools are read anew."""
    loci, report = job.loci, job.report
    async for row in job.source.rows(MCP_SERVERS):
        where = {"id": row["id"], "name": as_text(row["server_name"])}
        wanted = mcp_service_pb2.GetMcpServerRequest(id=public_id("mcp_server", row["id"]))
        if await loci.exists(loci.servers.GetMcpServer, wanted):
            report.count_present("mcp servers")
            continue
        token = _secret(job, row, "token", "mcp servers")
        headers = tools.headers_of(_secret(job, row, "custom_headers", "mcp servers"))
        if headers is None:
            report.skip(_SECRETS, "custom_headers of an mcp server: they are no JSON object", **where)
        request = tools.mcp_server(row, token, headers or {})
        if isinstance(request, Skip):
            report.skip("mcp servers", request.reason, **where)
            continue
        made = await job.create("mcp servers", loci.servers.CreateMcpServer, request, **where)
        if made is not None and made.server.problem:
            report.note_change("mcp servers", f"it does not answer: {made.server.problem}", **where)


async def sandboxes(job: Import) -> None:
    """Imports the settings of each kind of sandbox with their variables, under new ids."""
    async for row in job.source.rows(SANDBOX_CONFIGS):
        request = tools.sandbox_config(row)
        config_id = await _sandbox(job, request, row["id"])
        if config_id is None and not job.dry_run:
            continue
        async for variable in job.source.rows(SANDBOX_VARIABLES, sandbox_config_id=row["id"]):
            await _variable(job, config_id or "", variable)


async def _sandbox(job: Import, request: environment_service_pb2.CreateSandboxConfigRequest, old_id: str) -> str | None:
    loci = job.loci
    asked = environment_service_pb2.ListSandboxConfigsRequest(
        page=PageRequest(page_size=_MOST_CONFIGS), type=request.type
    )
    try:
        there = (await loci.call(loci.environments.ListSandboxConfigs, asked)).sandbox_configs
    except REFUSALS as error:
        job.report.skip("sandbox configs", describe(error), id=old_id, name=request.type)
        return None
    if there:
        job.report.count_present("sandbox configs")
        config_id: str = there[0].id
        return config_id
    rpc = loci.environments.CreateSandboxConfig
    made = await job.create("sandbox configs", rpc, request, id=old_id, name=request.type)
    return None if made is None else made.sandbox_config.id


async def _variable(job: Import, config_id: str, row: Row) -> None:
    where = {"id": row["id"], "name": as_text(row["key"])}
    value = job.keyring.read(row["value_enc"], row["value"])
    if value.problem:
        job.report.skip("sandbox variables", value.problem, **where)
        return
    draft = environment_service_pb2.VariableDraft(
        key=as_text(row["key"]), value=value.value, description=as_text(row["description"])
    )
    request = environment_service_pb2.CreateVariableRequest(sandbox_config_id=config_id, variable=draft)
    if job.dry_run:
        job.report.count_taken("sandbox variables")
        return
    try:
        await job.loci.call(job.loci.environments.CreateVariable, request)
        job.report.count_taken("sandbox variables")
    except AlreadyExists:
        job.report.count_present("sandbox variables")
    except REFUSALS as error:
        job.report.skip("sandbox variables", describe(error), **where)


def _secret(job: Import, row: Row, column: str, of: str) -> str:
    """Returns a secret of a row; reports one that cannot be read, and returns ""."""
    found = job.keyring.read(row[f"{column}_enc"], row[column])
    if found.problem:
        name = as_text(row.get("name") or row.get("server_name"))
        job.report.skip(_SECRETS, f"{column} of {of}: {found.problem}", id=row["id"], name=name)
    return found.value
