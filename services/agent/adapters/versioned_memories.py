"""The port VersionedMemories over gRPC to the memory service."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import grpc

from loci.memory.v1 import agent_memory_service_pb2, agent_memory_service_pb2_grpc
from services.agent.adapters.catalogues import PATIENCE_SECONDS
from services.agent.adapters.memory import own_id
from services.agent.resources.checkpoints.model import Edit
from services.agent.resources.checkpoints.ports import BlockSeen, RestoreResult
from services.common.channel import call_idempotent
from services.common.ids import from_public, optional_id, to_public

# Limit of ListBlockEdits.
_RUNS_AT_ONCE = 1_000


class GrpcVersionedMemories:
    """`resources.checkpoints.ports.VersionedMemories`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)

    async def edits(self, run_ids: Sequence[UUID]) -> Sequence[Edit]:
        edits: list[Edit] = []
        unique = list(dict.fromkeys(run_ids))
        for start in range(0, len(unique), _RUNS_AT_ONCE):
            request = agent_memory_service_pb2.ListBlockEditsRequest(
                run_ids=[to_public("run", run_id) for run_id in unique[start : start + _RUNS_AT_ONCE]]
            )
            response = await call_idempotent(self._memory.ListBlockEdits, request, timeout=PATIENCE_SECONDS)
            edits += map(_edit, response.edits)
        return edits

    async def blocks(self, agent_id: UUID, conversation_id: UUID) -> Sequence[BlockSeen]:
        request = agent_memory_service_pb2.GetAgentMemoryRequest(
            agent_id=to_public("agent", agent_id), conversation_id=own_id(agent_id, conversation_id)
        )
        response = await call_idempotent(self._memory.GetAgentMemory, request, timeout=PATIENCE_SECONDS)
        own = set(response.memory.isolated_block_ids)
        return [
            BlockSeen(from_public("block", block.id), block.label, block.id in own) for block in response.memory.blocks
        ]

    async def restore(
        self, agent_id: UUID, conversation_id: UUID, versions: Mapping[UUID, int], request_id: str
    ) -> RestoreResult:
        request = agent_memory_service_pb2.RestoreBlocksRequest(
            agent_id=to_public("agent", agent_id),
            conversation_id=own_id(agent_id, conversation_id),
            versions=_versions(versions),
            request_id=request_id,
        )
        response = await call_idempotent(self._memory.RestoreBlocks, request, timeout=PATIENCE_SECONDS)
        return RestoreResult(
            {from_public("block", block.id): block.label for block in response.blocks},
            frozenset(from_public("block", each) for each in response.shared_block_ids),
            frozenset(from_public("block", each) for each in response.missing_block_ids),
        )

    async def isolate(
        self,
        agent_id: UUID,
        conversation_id: UUID,
        labels: Sequence[str],
        source_id: UUID,
        versions: Mapping[UUID, int],
    ) -> tuple[UUID, ...]:
        request = agent_memory_service_pb2.IsolateBlocksRequest(
            agent_id=to_public("agent", agent_id),
            conversation_id=to_public("conv", conversation_id),
            labels=labels,
            source_conversation_id=own_id(agent_id, source_id),
            versions=_versions(versions),
        )
        response = await call_idempotent(self._memory.IsolateBlocks, request, timeout=PATIENCE_SECONDS)
        return tuple(from_public("block", block.id) for block in response.blocks)

    async def copy(
        self, agent_id: UUID, conversation_id: UUID, target_id: UUID, versions: Mapping[UUID, int], request_id: str
    ) -> tuple[UUID, ...]:
        request = agent_memory_service_pb2.CopyBlocksRequest(
            source_agent_id=to_public("agent", agent_id),
            source_conversation_id=own_id(agent_id, conversation_id),
            target_agent_id=to_public("agent", target_id),
            versions=_versions(versions),
            request_id=request_id,
        )
        response = await call_idempotent(self._memory.CopyBlocks, request, timeout=PATIENCE_SECONDS)
        return tuple(from_public("block", block.id) for block in response.blocks)

    async def share_archives(self, agent_id: UUID, target_id: UUID) -> tuple[UUID, ...]:
        request = agent_memory_service_pb2.ShareArchivesRequest(
            source_agent_id=to_public("agent", agent_id), target_agent_id=to_public("agent", target_id)
        )
        response = await call_idempotent(self._memory.ShareArchives, request, timeout=PATIENCE_SECONDS)
        return tuple(from_public("archive", each) for each in response.archive_ids)


def _versions(versions: Mapping[UUID, int]) -> dict[str, int]:
    return {to_public("block", block_id): version for block_id, version in versions.items()}


def _edit(edit: agent_memory_service_pb2.BlockEdit) -> Edit:
    step_id = optional_id("step", edit.step_id)
    return Edit(from_public("block", edit.block_id), edit.version, from_public("run", edit.run_id), step_id)
