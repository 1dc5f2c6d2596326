"""The ports of administration over gRPC: memory, tool runner and model gateway. Every call may be repeated."""

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import grpc

from loci.llm.v1 import model_service_pb2, model_service_pb2_grpc
from loci.memory.v1 import (
    agent_memory_service_pb2,
    agent_memory_service_pb2_grpc,
    folder_service_pb2,
    folder_service_pb2_grpc,
)
from loci.tool.v1 import (
    execution_service_pb2,
    execution_service_pb2_grpc,
    sandbox_config_service_pb2,
    sandbox_config_service_pb2_grpc,
    tool_pb2,
    tool_service_pb2,
    tool_service_pb2_grpc,
)
from services.agent.adapters.tools import ShippedTools
from services.agent.resources.agents.ports import Attachments, CatalogueTool
from services.common.channel import call_idempotent
from services.common.ids import from_public, to_public

# A service that is being restarted is back by then.
PATIENCE_SECONDS = 15.0
# A model that was there is not asked for again so soon.
KNOWN_SECONDS = 30.0
_MOST_KNOWN = 10_000
# Limits of BatchGetTools and BatchGetAgentMemory.
_TOOLS_AT_ONCE = 10_000
_AGENTS_AT_ONCE = 1_000


class GrpcAgentMemories:
    """`resources.agents.ports.AgentMemories` behind the memory service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)
        self._folders = folder_service_pb2_grpc.FolderServiceStub(channel)

    async def create(self, agent_id: UUID, drafts: Sequence[Any], block_ids: Sequence[UUID]) -> tuple[Any, ...]:
        request = agent_memory_service_pb2.CreateAgentMemoryRequest(
            agent_id=to_public("agent", agent_id),
            blocks=drafts,
            block_ids=[to_public("block", block_id) for block_id in block_ids],
        )
        response = await call_idempotent(self._memory.CreateAgentMemory, request, timeout=PATIENCE_SECONDS)
        return tuple(response.memory.blocks)

    async def attachments(self, agent_ids: Sequence[UUID]) -> Mapping[UUID, Attachments]:
        attachments: dict[UUID, Attachments] = {}
        for start in range(0, len(agent_ids), _AGENTS_AT_ONCE):
            some = agent_ids[start : start + _AGENTS_AT_ONCE]
            request = agent_memory_service_pb2.BatchGetAgentMemoryRequest(
                agent_ids=[to_public("agent", agent_id) for agent_id in some], include_files=True
            )
            response = await call_idempotent(self._memory.BatchGetAgentMemory, request, timeout=PATIENCE_SECONDS)
            attachments |= {
                from_public("agent", memory.agent_id): Attachments(memory.blocks, memory.folders, memory.files)
                for memory in response.memories
            }
        return attachments

    async def attach_folder(self, agent_id: UUID, folder_id: UUID, limits: tuple[int, int]) -> None:
        most_open, characters = limits
        request = folder_service_pb2.AttachFolderRequest(
            agent_id=to_public("agent", agent_id),
            folder_id=to_public("source", folder_id),
            limits=folder_service_pb2.FileLimits(max_files_open=most_open, per_file_view_chars=characters),
        )
        await call_idempotent(self._folders.AttachFolder, request, timeout=PATIENCE_SECONDS)

    async def detach_folder(self, agent_id: UUID, folder_id: UUID) -> int:
        request = folder_service_pb2.DetachFolderRequest(
            agent_id=to_public("agent", agent_id), folder_id=to_public("source", folder_id)
        )
        response = await call_idempotent(self._folders.DetachFolder, request, timeout=PATIENCE_SECONDS)
        left: int = response.folders_left
        return left

    async def purge(self, agent_id: UUID, *, erase_blocks: bool) -> None:
        request = agent_memory_service_pb2.PurgeAgentRequest(
            agent_id=to_public("agent", agent_id), erase_blocks=erase_blocks
        )
        await call_idempotent(self._memory.PurgeAgent, request, timeout=PATIENCE_SECONDS)


class GrpcToolCatalogue:
    """`resources.agents.ports.ToolCatalogue` behind the tool runner. `shipped`: see ShippedTools."""

    def __init__(self, channel: grpc.aio.Channel, shipped: ShippedTools) -> None:
        self._shipped = shipped
        self._tools = tool_service_pb2_grpc.ToolServiceStub(channel)
        self._executions = execution_service_pb2_grpc.ExecutionServiceStub(channel)
        self._environments = sandbox_config_service_pb2_grpc.SandboxConfigServiceStub(channel)

    async def find(self, tool_ids: Sequence[UUID] = (), names: Sequence[str] = ()) -> tuple[CatalogueTool, ...]:
        tools: list[CatalogueTool] = []
        ids = [to_public("tool", tool_id) for tool_id in tool_ids]
        while ids or names:
            request = tool_service_pb2.BatchGetToolsRequest(tool_ids=ids[:_TOOLS_AT_ONCE], names=names)
            response = await call_idempotent(self._tools.BatchGetTools, request, timeout=PATIENCE_SECONDS)
            self._shipped.forget_replaced(response.tools)
            tools += map(_tool, response.tools)
            ids, names = ids[_TOOLS_AT_ONCE:], ()
        return tuple({tool.id: tool for tool in tools}.values())

    async def purge_receipts(self, agent_id: UUID) -> None:
        request = execution_service_pb2.PurgeReceiptsRequest(agent_id=to_public("agent", agent_id))
        await call_idempotent(self._executions.PurgeReceipts, request, timeout=PATIENCE_SECONDS)

    async def set_secrets(self, agent_id: UUID, secrets: Mapping[str, str]) -> None:
        request = sandbox_config_service_pb2.SetEnvironmentRequest(
            owner=_owner(agent_id),
            variables=[
                sandbox_config_service_pb2.Variable(key=key, value=value) for key, value in sorted(secrets.items())
            ],
        )
        await call_idempotent(self._environments.SetEnvironment, request, timeout=PATIENCE_SECONDS)

    async def purge_secrets(self, agent_id: UUID) -> None:
        request = sandbox_config_service_pb2.PurgeEnvironmentRequest(owner=_owner(agent_id))
        await call_idempotent(self._environments.PurgeEnvironment, request, timeout=PATIENCE_SECONDS)


class GrpcModelCatalogue:
    """`resources.agents.ports.ModelCatalogue` of the model gateway. What was there is kept for KNOWN_SECONDS."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._models = model_service_pb2_grpc.ModelServiceStub(channel)
        # Until when it is remembered, the window, and whether it reasons.
        self._cache: dict[tuple[UUID, str], tuple[float, int, bool]] = {}

    async def window(self, organization_id: UUID, handle: str) -> int:
        return (await self._model(organization_id, handle))[1]

    async def reasons(self, organization_id: UUID, handle: str) -> bool:
        return (await self._model(organization_id, handle))[2]

    async def _model(self, organization_id: UUID, handle: str) -> tuple[float, int, bool]:
        key = organization_id, handle
        entry = self._cache.get(key)
        if entry is None or entry[0] < time.monotonic():
            request = model_service_pb2.GetModelRequest(handle=handle)
            response = await call_idempotent(self._models.GetModel, request, timeout=PATIENCE_SECONDS)
            model = response.model
            if len(self._cache) >= _MOST_KNOWN:
                self._cache.clear()
            entry = time.monotonic() + KNOWN_SECONDS, model.context_window, model.capabilities.reasoning
            self._cache[key] = entry
        return entry

    async def check_embedding(self, organization_id: UUID, handle: str) -> None:
        request = model_service_pb2.GetEmbeddingModelRequest(handle=handle)
        await call_idempotent(self._models.GetEmbeddingModel, request, timeout=PATIENCE_SECONDS)


def _owner(agent_id: UUID) -> sandbox_config_service_pb2.Owner:
    return sandbox_config_service_pb2.Owner(agent_id=to_public("agent", agent_id))


def _tool(tool: tool_pb2.Tool) -> CatalogueTool:
    return CatalogueTool(from_public("tool", tool.id), tool.name, tool, tool.default_requires_approval)
