"""Providers, MCP servers and sandboxes, with their secrets."""

from cli.importing.mapping import providers as mapping
from cli.importing.mapping import tools
from cli.importing.schema import MCP_SERVERS, PROVIDERS, SANDBOX_CONFIGS, SANDBOX_VARIABLES
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_text, public_id
from loci.common.v1.page_pb2 import PageRequest
from loci.llm.v1 import provider_service_pb2
from loci.tool.v1 import mcp_service_pb2, sandbox_config_service_pb2
from services.common.errors import AlreadyExists

_MOST_CONFIGS = 1_000
_CONFIGS, _VARIABLES = SANDBOX_CONFIGS.name, SANDBOX_VARIABLES.name


async def providers(job: Import) -> None:
    """Imports the providers that users brought. Each is asked for its models once it is stored."""
    loci, report, table = job.loci, job.report, PROVIDERS.name
    async for row in job.source.rows(PROVIDERS):
        old_id, name = row["id"], as_text(row["name"])
        if not mapping.is_byok(row):
            report.leave(table, old_id, "it came of the old server's settings; set the same ones here", name)
            continue
        query = provider_service_pb2.GetProviderRequest(id=public_id("provider", old_id))
        if await loci.exists(loci.providers.GetProvider, query):
            report.keep(table, old_id)
            continue
        (api_key, first), (access_key, second) = (_secret(job, row, one) for one in ("api_key", "access_key"))
        request = mapping.provider(row, api_key, access_key)
        if isinstance(request, Skip):
            report.leave(table, old_id, request.reason, name)
            continue
        answer = await job.create(table, loci.providers.CreateProvider, request, id=old_id, name=name)
        if answer is not None or job.dry_run:
            for problem in (*first, *second):
                report.change(table, old_id, problem, name)


async def mcp_servers(job: Import) -> None:
    """Imports MCP servers, whose tools are read anew."""
    loci, report, table = job.loci, job.report, MCP_SERVERS.name
    async for row in job.source.rows(MCP_SERVERS):
        old_id, name = row["id"], as_text(row["server_name"])
        query = mcp_service_pb2.GetMcpServerRequest(id=public_id("mcp_server", old_id))
        if await loci.exists(loci.servers.GetMcpServer, query):
            report.keep(table, old_id)
            continue
        (token, problems), (text, more) = (_secret(job, row, one) for one in ("token", "custom_headers"))
        headers = tools.headers_of(text)
        changes = [*problems, *more, *(["custom_headers: they are no JSON object"] if headers is None else [])]
        request = tools.mcp_server(row, token, headers or {})
        if isinstance(request, Skip):
            report.leave(table, old_id, request.reason, name)
            continue
        answer = await job.create(table, loci.servers.CreateMcpServer, request, id=old_id, name=name)
        if answer is not None and answer.server.problem:
            changes.append(f"it does not answer: {answer.server.problem}")
        if answer is not None or job.dry_run:
            for change in changes:
                report.change(table, old_id, change, name)


async def sandboxes(job: Import) -> None:
    """Imports the settings of each kind of sandbox with their variables, under new ids."""
    async for row in job.source.rows(SANDBOX_CONFIGS):
        request = tools.sandbox_config(row)
        config_id = await _sandbox(job, request, row["id"])
        if config_id is None and not job.dry_run:
            continue
        async for variable in job.source.rows(SANDBOX_VARIABLES, sandbox_config_id=row["id"]):
            await _variable(job, config_id or "", variable)


async def _sandbox(
    job: Import, request: sandbox_config_service_pb2.CreateSandboxConfigRequest, old_id: str
) -> str | None:
    loci = job.loci
    query = sandbox_config_service_pb2.ListSandboxConfigsRequest(
        page=PageRequest(page_size=_MOST_CONFIGS), type=request.type
    )
    try:
        configs = (await loci.call(loci.sandbox_configs.ListSandboxConfigs, query)).sandbox_configs
    except REFUSALS as error:
        job.report.leave(_CONFIGS, old_id, describe(error), request.type)
        return None
    if configs:
        job.report.keep(_CONFIGS, old_id)
        config_id: str = configs[0].id
        return config_id
    create = loci.sandbox_configs.CreateSandboxConfig
    answer = await job.create(_CONFIGS, create, request, id=old_id, name=request.type)
    return None if answer is None else answer.sandbox_config.id


async def _variable(job: Import, config_id: str, row: Row) -> None:
    old_id, name = row["id"], as_text(row["key"])
    value = job.keyring.read(row["value_enc"], row["value"])
    if value.problem:
        job.report.leave(_VARIABLES, old_id, value.problem, name)
        return
    draft = sandbox_config_service_pb2.Variable(
        key=as_text(row["key"]), value=value.value, description=as_text(row["description"])
    )
    request = sandbox_config_service_pb2.CreateVariableRequest(sandbox_config_id=config_id, variable=draft)
    try:
        if not job.dry_run:
            await job.loci.call(job.loci.sandbox_configs.CreateVariable, request)
        job.report.take(_VARIABLES, old_id)
    except AlreadyExists:
        job.report.keep(_VARIABLES, old_id)
    except REFUSALS as error:
        job.report.leave(_VARIABLES, old_id, describe(error), name)


def _secret(job: Import, row: Row, column: str) -> tuple[str, list[str]]:
    """Returns a secret of a row, and why it cannot be read; then it is empty."""
    secret = job.keyring.read(row[f"{column}_enc"], row[column])
    return secret.value, [f"{column}: {secret.problem}"] if secret.problem else []
