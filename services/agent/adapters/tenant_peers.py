"""The end of tenants in the services behind this one."""

import grpc

from loci.llm.v1 import provider_service_pb2, provider_service_pb2_grpc
from loci.memory.v1 import agent_memory_service_pb2, agent_memory_service_pb2_grpc
from loci.tool.v1 import sandbox_config_service_pb2, sandbox_config_service_pb2_grpc
from services.agent.adapters.catalogues import PATIENCE_SECONDS
from services.common.channel import call_idempotent


class GrpcTenantPeers:
    """`resources.access.ports.TenantPeers`."""

    def __init__(self, memory: grpc.aio.Channel, llm_gateway: grpc.aio.Channel, tool_runner: grpc.aio.Channel) -> None:
        self._purges = (
            (
                agent_memory_service_pb2_grpc.AgentMemoryServiceStub(memory).PurgeOrganization,
                agent_memory_service_pb2.PurgeOrganizationRequest(),
            ),
            (
                sandbox_config_service_pb2_grpc.SandboxConfigServiceStub(tool_runner).PurgeOrganization,
                sandbox_config_service_pb2.PurgeOrganizationRequest(),
            ),
            (
                provider_service_pb2_grpc.ProviderServiceStub(llm_gateway).PurgeOrganization,
                provider_service_pb2.PurgeOrganizationRequest(),
            ),
        )

    async def purge(self) -> bool:
        for rpc, request in self._purges:
            if not (await call_idempotent(rpc, request, timeout=PATIENCE_SECONDS)).done:
                return False
        return True
