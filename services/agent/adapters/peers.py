"""The services behind the agent service, for turns and for administration."""

from dataclasses import dataclass

import grpc

from services.agent.adapters.catalogues import GrpcAgentMemories, GrpcModelCatalogue, GrpcToolCatalogue
from services.agent.adapters.conversation_memories import GrpcConversationMemories
from services.agent.adapters.memory import GrpcMemory
from services.agent.adapters.models import GrpcModels
from services.agent.adapters.shared_memories import GrpcIdentityMemories, GrpcSharedBlocks
from services.agent.adapters.tenant_peers import GrpcTenantPeers
from services.agent.adapters.tools import GrpcTools, ShippedTools
from services.agent.adapters.transfer_memories import GrpcTransferMemories
from services.agent.adapters.versioned_memories import GrpcVersionedMemories
from services.agent.core.ports import Memory, Models, Tools
from services.agent.core.ports_recall import Embedder
from services.agent.resources.access.ports import TenantPeers
from services.agent.resources.agents.ports import AgentMemories, ModelCatalogue, ToolCatalogue
from services.agent.resources.checkpoints.ports import VersionedMemories
from services.agent.resources.conversations.ports import ConversationMemories
from services.agent.resources.groups.ports import SharedBlocks
from services.agent.resources.identities.ports import IdentityMemories
from services.agent.resources.model_calls.ports import Renderer
from services.agent.resources.transfers.ports import TransferMemories
from services.common.context import Signer
from services.common.embedder import GatewayEmbedder


@dataclass(frozen=True, slots=True)
class Peers:
    """The services behind this one, for turns and for administration."""

    models: Models
    renderer: Renderer
    memory: Memory
    tools: Tools
    memories: AgentMemories
    conversation_memories: ConversationMemories
    versioned_memories: VersionedMemories
    identity_memories: IdentityMemories
    shared_blocks: SharedBlocks
    transfer_memories: TransferMemories
    tool_catalogue: ToolCatalogue
    model_catalogue: ModelCatalogue
    embedder: Embedder
    tenant_peers: TenantPeers


def grpc_peers(
    memory: grpc.aio.Channel, llm_gateway: grpc.aio.Channel, tool_runner: grpc.aio.Channel, *, signer: Signer
) -> Peers:
    """Peers behind channels. `signer`: of the tokens that tools call Loci with."""
    catalogue = GrpcModelCatalogue(llm_gateway)
    models = GrpcModels(llm_gateway, catalogue)
    shipped = ShippedTools()
    return Peers(
        models=models,
        renderer=models,
        memory=GrpcMemory(memory),
        tools=GrpcTools(tool_runner, signer, shipped),
        memories=GrpcAgentMemories(memory),
        conversation_memories=GrpcConversationMemories(memory),
        versioned_memories=GrpcVersionedMemories(memory),
        identity_memories=GrpcIdentityMemories(memory),
        shared_blocks=GrpcSharedBlocks(memory),
        transfer_memories=GrpcTransferMemories(memory),
        tool_catalogue=GrpcToolCatalogue(tool_runner, shipped),
        model_catalogue=catalogue,
        embedder=GatewayEmbedder(llm_gateway),
        tenant_peers=GrpcTenantPeers(memory, llm_gateway, tool_runner),
    )
