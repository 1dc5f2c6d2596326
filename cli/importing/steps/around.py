"""Providers, MCP servers, and where tools run, with their secrets."""

from cli.importing.mapping import providers as mapping
from cli.importing.mapping import tools
from cli.importing.schema import MCP_SERVERS, PROVIDERS, SANDBOX_CONFIGS, SANDBOX_VARIABLES
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.target import sentence
from cli.importing.values import LeftOut, Row, public, text_of
from loci.common.v1.page_pb2 import PageRequest
from loci.llm.v1 import provider_service_pb2
from loci.tool.v1 import environment_service_pb2, mcp_service_pb2
from services.common.errors import AlreadyExists

_SECRETS = "secrets"
_MOST_CONFIGS = 1_000


async def providers(moving: Import) -> None:
    """Those that users brought. Each is asked for its models once it is stored."""
    loci, report = moving.loci, moving.report
    async for row in moving.source.rows(PROVIDERS):
        where = {"id": row["id"], "name": text_of(row["name"])}
        if not mapping.is_users(row):
            report.left_out("providers", "it came of the old server's settings; set the same ones here", **where)
            continue
        wanted = provider_service_pb2.GetProviderRequest(id=public("provider", row["id"]))
        if await loci.has(loci.providers.GetProvider, wanted):
            report.found("providers")
            continue
        keys = [_secret(moving, row, name, "providers") for name in ("api_key", "access_key")]
        request = mapping.provider(row, keys[0], keys[1])
        if isinstance(request, LeftOut):
            report.left_out("providers", request.reason, **where)
        else:
            await moving.make("providers", loci.providers.CreateProvider, request, **where)


async def mcp_servers(moving: Import) -> None:
    """Their tools are read anew, from them."""
    loci, report = moving.loci, moving.report
    async for row in moving.source.rows(MCP_SERVERS):
        where = {"id": row["id"], "name": text_of(row["server_name"])}
        wanted = mcp_service_pb2.GetMcpServerRequest(id=public("mcp_server", row["id"]))
        if await loci.has(loci.servers.GetMcpServer, wanted):
            report.found("mcp servers")
            continue
        token = _secret(moving, row, "token", "mcp servers")
        headers = tools.headers_of(_secret(moving, row, "custom_headers", "mcp servers"))
        if headers is None:
            report.left_out(_SECRETS, "custom_headers of an mcp server: they are no JSON object", **where)
        request = tools.mcp_server(row, token, headers or {})
        if isinstance(request, LeftOut):
            report.left_out("mcp servers", request.reason, **where)
            continue
        made = await moving.make("mcp servers", loci.servers.CreateMcpServer, request, **where)
        if made is not None and made.server.problem:
            report.changed("mcp servers", f"it does not answer: {made.server.problem}", **where)


async def sandboxes(moving: Import) -> None:
    """The settings of each kind of sandbox with their variables. Their ids are new."""
    async for row in moving.source.rows(SANDBOX_CONFIGS):
        request = tools.sandbox_config(row)
        config_id = await _sandbox(moving, request, row["id"])
        if config_id is None and not moving.dry_run:
            continue
        async for variable in moving.source.rows(SANDBOX_VARIABLES, sandbox_config_id=row["id"]):
            await _variable(moving, config_id or "", variable)


async def _sandbox(
    moving: Import, request: environment_service_pb2.CreateSandboxConfigRequest, old_id: str
) -> str | None:
    loci = moving.loci
    asked = environment_service_pb2.ListSandboxConfigsRequest(
        page=PageRequest(page_size=_MOST_CONFIGS), type=request.type
    )
    try:
        there = (await loci.ask(loci.environments.ListSandboxConfigs, asked)).sandbox_configs
    except REFUSALS as error:
        moving.report.left_out("sandbox configs", sentence(error), id=old_id, name=request.type)
        return None
    if there:
        moving.report.found("sandbox configs")
        config_id: str = there[0].id
        return config_id
    rpc = loci.environments.CreateSandboxConfig
    made = await moving.make("sandbox configs", rpc, request, id=old_id, name=request.type)
    return None if made is None else made.sandbox_config.id


async def _variable(moving: Import, config_id: str, row: Row) -> None:
    where = {"id": row["id"], "name": text_of(row["key"])}
    value = moving.keyring.read(row["value_enc"], row["value"])
    if value.problem:
        moving.report.left_out("sandbox variables", value.problem, **where)
        return
    draft = environment_service_pb2.VariableDraft(
        key=text_of(row["key"]), value=value.value, description=text_of(row["description"])
    )
    request = environment_service_pb2.CreateVariableRequest(sandbox_config_id=config_id, variable=draft)
    if moving.dry_run:
        moving.report.took("sandbox variables")
        return
    try:
        await moving.loci.ask(moving.loci.environments.CreateVariable, request)
        moving.report.took("sandbox variables")
    except AlreadyExists:
        moving.report.found("sandbox variables")
    except REFUSALS as error:
        moving.report.left_out("sandbox variables", sentence(error), **where)


def _secret(moving: Import, row: Row, column: str, of: str) -> str:
    """A secret of a row, or nothing, which is reported."""
    found = moving.keyring.read(row[f"{column}_enc"], row[column])
    if found.problem:
        name = text_of(row.get("name") or row.get("server_name"))
        moving.report.left_out(_SECRETS, f"{column} of {of}: {found.problem}", id=row["id"], name=name)
    return found.value
