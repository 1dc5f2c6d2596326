"""The running services of this Loci, and for whom the import acts.

Addresses and the signing key are taken from the environment, as a service takes them; what is not there, from
LOCI_HOME, where `loci run` keeps its sockets and keys.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import grpc

from cli.errors import CliError
from cli.home import Home
from cli.names import SERVICES
from cli.secrets import SIGNING_KEY
from cli.settings import default_home
from loci.agent.v1.access_service_pb2_grpc import AccessServiceStub
from loci.agent.v1.group_service_pb2_grpc import GroupServiceStub
from loci.agent.v1.identity_service_pb2_grpc import IdentityServiceStub
from loci.agent.v1.transfer_service_pb2_grpc import TransferServiceStub
from loci.llm.v1.provider_service_pb2_grpc import ProviderServiceStub
from loci.memory.v1.archive_service_pb2_grpc import ArchiveServiceStub
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from loci.memory.v1.folder_service_pb2_grpc import FolderServiceStub
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from loci.tool.v1.mcp_service_pb2_grpc import McpServiceStub
from loci.tool.v1.sandbox_config_service_pb2_grpc import SandboxConfigServiceStub
from loci.tool.v1.tool_service_pb2_grpc import ToolServiceStub
from services.common import keys
from services.common.channel import call_idempotent, make_channel
from services.common.context import CallContext, use_context
from services.common.errors import LociError, NotFound, Unavailable, from_rpc
from services.common.settings import Env, SettingsError

# The tenant of a server without keys. Each tenant has a user of its own UUID.
DEFAULT = UUID("00000000-0000-4000-8000-000000000000")
# Asking a provider or an MCP server for what it has takes a while where it does not answer.
_SECONDS = 120.0
_STREAM_SECONDS = 3_600.0
_ATTEMPTS, _PAUSE_SECONDS = 4, 1.0


class Loci:
    """Stubs. Every request carries ids, so that it may be repeated."""

    def __init__(self, channels: Mapping[str, Any]) -> None:
        agent, memory, tools = channels["agent"], channels["memory"], channels["tool_runner"]
        # Any: the stubs of grpcio are typed for synchronous channels.
        self.access: Any = AccessServiceStub(agent)
        self.transfers: Any = TransferServiceStub(agent)
        self.identities: Any = IdentityServiceStub(agent)
        self.groups: Any = GroupServiceStub(agent)
        self.blocks: Any = BlockServiceStub(memory)
        self.archives: Any = ArchiveServiceStub(memory)
        self.passages: Any = PassageServiceStub(memory)
        self.folders: Any = FolderServiceStub(memory)
        self.tools: Any = ToolServiceStub(tools)
        self.servers: Any = McpServiceStub(tools)
        self.sandbox_configs: Any = SandboxConfigServiceStub(tools)
        self.providers: Any = ProviderServiceStub(channels["llm_gateway"])

    async def call(self, rpc: Any, request: Any) -> Any:
        """Returns the answer; waits for a service that restarts. Raises LociError."""
        return await call_idempotent(rpc, request, timeout=_SECONDS)

    async def send(self, rpc: Any, parts: Callable[[], AsyncIterator[Any]]) -> Any:
        """Returns the answer to a stream, and sends it again where the service restarts. Raises LociError."""
        for attempt in range(_ATTEMPTS):
            try:
                return await rpc(parts(), timeout=_STREAM_SECONDS, wait_for_ready=True)
            except grpc.RpcError as failed:
                error = from_rpc(failed)
            if not isinstance(error, Unavailable) or attempt == _ATTEMPTS - 1:
                raise error
            await asyncio.sleep(_PAUSE_SECONDS)
        raise AssertionError("unreachable")

    async def exists(self, rpc: Any, request: Any) -> bool:
        """Returns whether the request finds something. Raises LociError for other errors than its absence."""
        try:
            await self.call(rpc, request)
        except NotFound:
            return False
        return True


@asynccontextmanager
async def connect(environment: Mapping[str, str], organization_id: UUID) -> AsyncIterator[Loci]:
    """Connects to the services on behalf of this tenant. Raises CliError where an address or the key is missing."""
    env = Env(environment)
    home = Home(env.path("LOCI_HOME", default=default_home()).absolute())
    variables = dict(environment)
    variables.setdefault(keys.SIGNING_KEY, str(home.secrets / SIGNING_KEY))
    try:
        signer = keys.signer_from(Env(variables))
    except SettingsError as error:
        raise CliError(f"{error}; is LOCI_HOME that of a Loci that runs?", code=2) from None
    channels = {
        name: make_channel(env.text(f"LOCI_{name.upper()}_ADDR", default=f"unix://{home.socket(name)}"))
        for name in SERVICES
    }
    try:
        with use_context(CallContext(organization_id, organization_id, "admin", SERVICES), signer=signer):
            yield Loci(channels)
    finally:
        for channel in channels.values():
            await channel.close()


def describe(error: LociError) -> str:
    """Returns the reason of a refusal, for the report."""
    return f"{error.message} ({error.reason})"
