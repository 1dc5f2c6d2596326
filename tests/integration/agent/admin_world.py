"""The agent service on the real Postgres, over real gRPC; memory, tools and models are scripted servicers."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.field_mask_pb2 import FieldMask

from loci.agent.v1 import agent_pb2, message_pb2
from loci.agent.v1 import agent_service_pb2 as agent_wire
from loci.agent.v1 import message_service_pb2 as message_wire
from loci.agent.v1.agent_pb2 import Agent
from loci.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from loci.agent.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from loci.agent.v1.conversation_service_pb2_grpc import ConversationServiceStub
from loci.agent.v1.message_service_pb2_grpc import MessageServiceStub
from loci.agent.v1.run_service_pb2_grpc import RunServiceStub
from loci.agent.v1.step_service_pb2_grpc import StepServiceStub
from loci.llm.v1 import chat_pb2, chat_service_pb2, model_pb2, model_service_pb2, provider_service_pb2
from loci.llm.v1.chat_service_pb2_grpc import ChatServiceServicer, add_ChatServiceServicer_to_server
from loci.llm.v1.model_service_pb2_grpc import ModelServiceServicer, add_ModelServiceServicer_to_server
from loci.llm.v1.provider_service_pb2_grpc import ProviderServiceServicer, add_ProviderServiceServicer_to_server
from loci.memory.v1 import agent_memory_service_pb2, block_pb2
from loci.memory.v1.agent_memory_service_pb2_grpc import (
    AgentMemoryServiceServicer,
    add_AgentMemoryServiceServicer_to_server,
)
from loci.tool.v1 import execution_service_pb2, sandbox_config_service_pb2, tool_pb2, tool_service_pb2
from loci.tool.v1.execution_service_pb2_grpc import (
    ExecutionServiceServicer,
    add_ExecutionServiceServicer_to_server,
)
from loci.tool.v1.sandbox_config_service_pb2_grpc import (
    SandboxConfigServiceServicer,
    add_SandboxConfigServiceServicer_to_server,
)
from loci.tool.v1.tool_service_pb2_grpc import ToolServiceServicer, add_ToolServiceServicer_to_server
from services.agent.adapters.peers import grpc_peers
from services.agent.adapters.stores import open_agent_pool, postgres_stores
from services.agent.adapters.streams.notices import NoPeers
from services.agent.bootstrap import AgentProcess, build
from services.agent.resources.agents.model.settings import Defaults
from services.agent.settings import CallbackSettings, ExternalSettings
from services.common.channel import make_channel
from services.common.context import CallContext, Signer, Verifier, current, use_context
from services.common.engine import make_engine
from services.common.errors import LociError, NotFound, from_rpc
from services.common.ids import to_public, uuid7
from services.common.server import make_server
from services.common.statement_counter import StatementCounter
from tests.page_requests import paged

ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
OTHER_ORGANIZATION = UUID("11111111-1111-4111-8111-111111111111")
USER = UUID("22222222-2222-4222-8222-222222222222")
SECRET = b"whsec_test"
AUDIENCE = ("agent", "memory", "llm_gateway", "tool_runner")
_PURGING: tuple[Any, ...] = (agent_memory_service_pb2, sandbox_config_service_pb2, provider_service_pb2)
_FENCING: tuple[Any, ...] = (agent_memory_service_pb2, execution_service_pb2)
BASE_TOOLS = ("memory_insert", "memory_replace", "conversation_search")
# What an agent that tends the memory of another has beside them.
TENDING_TOOLS = ("memory_rethink", "memory_finish_edits")


@dataclass
class ScriptedPeers(
    AgentMemoryServiceServicer,
    ToolServiceServicer,
    ExecutionServiceServicer,
    SandboxConfigServiceServicer,
    ModelServiceServicer,
    ChatServiceServicer,
    ProviderServiceServicer,
):
    """Memory, tool runner and model gateway in one. `asked` counts RPCs; `failures` are raised, one per call."""

    asked: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[LociError]] = field(default_factory=dict)
    tenants: set[UUID] = field(default_factory=set)
    blocks: dict[str, list[block_pb2.Block]] = field(default_factory=dict)
    tools: dict[str, tool_pb2.Tool] = field(default_factory=dict)
    windows: dict[str, int] = field(default_factory=lambda: {"loci/demo": 32_000, "openai/large": 1_000_000})
    purged: list[tuple[str, str]] = field(default_factory=list)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    # How many PurgeOrganization are not done yet.
    unfinished: int = 0
    # Copies of blocks by conversation and label.
    copies: dict[str, dict[str, block_pb2.Block]] = field(default_factory=dict)
    # A turn waits for this before the model answers.
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()
        for name in (*BASE_TOOLS, *TENDING_TOOLS):
            self.add_tool(name)

    def add_tool(self, name: str) -> str:
        """A tool in the catalogue; its id."""
        tool_id = to_public("tool", uuid7())
        schema = f'{{"name": "{name}", "parameters": {{"type": "object", "properties": {{}}}}}}'
        self.tools[tool_id] = tool_pb2.Tool(
            id=tool_id, name=name, json_schema_json=schema, tool_type=tool_pb2.TOOL_TYPE_CUSTOM
        )
        return tool_id

    def _note(self, name: str) -> None:
        self.asked[name] += 1
        self.tenants.add(current().organization_id)
        if self.failures.get(name):
            raise self.failures[name].pop(0)

    async def CreateAgentMemory(
        self, request: agent_memory_service_pb2.CreateAgentMemoryRequest, context: Any
    ) -> agent_memory_service_pb2.CreateAgentMemoryResponse:
        self._note("CreateAgentMemory")
        made = [
            block_pb2.Block(id=draft.id, label=draft.label, value=draft.value, description=draft.description)
            for draft in request.blocks
        ]
        made += [block_pb2.Block(id=block_id, label="shared") for block_id in request.block_ids]
        self.blocks[request.agent_id] = made
        memory = agent_memory_service_pb2.AgentMemory(agent_id=request.agent_id, blocks=made)
        return agent_memory_service_pb2.CreateAgentMemoryResponse(memory=memory)

    async def BatchGetAgentMemory(
        self, request: agent_memory_service_pb2.BatchGetAgentMemoryRequest, context: Any
    ) -> agent_memory_service_pb2.BatchGetAgentMemoryResponse:
        self._note("BatchGetAgentMemory")
        return agent_memory_service_pb2.BatchGetAgentMemoryResponse(memories=map(self._memory, request.agent_ids))

    async def GetAgentMemory(
        self, request: agent_memory_service_pb2.GetAgentMemoryRequest, context: Any
    ) -> agent_memory_service_pb2.GetAgentMemoryResponse:
        self._note("GetAgentMemory")
        memory = self._memory(request.agent_id)
        copies = self.copies.get(request.conversation_id, {})
        memory.isolated_block_ids.extend(copy.id for copy in copies.values())
        return agent_memory_service_pb2.GetAgentMemoryResponse(memory=memory)

    def _memory(self, agent_id: str) -> agent_memory_service_pb2.AgentMemory:
        return agent_memory_service_pb2.AgentMemory(agent_id=agent_id, blocks=self.blocks.get(agent_id, ()))

    async def IsolateBlocks(
        self, request: agent_memory_service_pb2.IsolateBlocksRequest, context: Any
    ) -> agent_memory_service_pb2.IsolateBlocksResponse:
        self._note("IsolateBlocks")
        sources = {block.label: block for block in self.blocks.get(request.agent_id, ())}
        sources |= self.copies.get(request.source_conversation_id, {})
        if missing := [label for label in request.labels if label not in sources]:
            raise NotFound(f"The agent has no block {missing[0]}", reason="BLOCK_NOT_FOUND")
        made = self.copies.setdefault(request.conversation_id, {})
        for label in request.labels:
            copy = block_pb2.Block(id=to_public("block", uuid7()), label=label, value=sources[label].value)
            made.setdefault(label, copy)
        blocks = [made[label] for label in request.labels]
        return agent_memory_service_pb2.IsolateBlocksResponse(blocks=blocks)

    async def PurgeConversation(
        self, request: agent_memory_service_pb2.PurgeConversationRequest, context: Any
    ) -> agent_memory_service_pb2.PurgeConversationResponse:
        self._note("PurgeConversation")
        self.copies.pop(request.conversation_id, None)
        self.purged.append(("copies", request.conversation_id))
        return agent_memory_service_pb2.PurgeConversationResponse()

    async def PurgeAgent(
        self, request: agent_memory_service_pb2.PurgeAgentRequest, context: Any
    ) -> agent_memory_service_pb2.PurgeAgentResponse:
        self._note("PurgeAgent")
        self.purged.append(("blocks" if request.erase_blocks else "memory", request.agent_id))
        return agent_memory_service_pb2.PurgeAgentResponse()

    async def BatchGetTools(
        self, request: tool_service_pb2.BatchGetToolsRequest, context: Any
    ) -> tool_service_pb2.BatchGetToolsResponse:
        self._note("BatchGetTools")
        by_name = {tool.name: tool for tool in self.tools.values()}
        found = [self.tools[each] for each in request.tool_ids if each in self.tools]
        found += [by_name[name] for name in request.names if name in by_name]
        return tool_service_pb2.BatchGetToolsResponse(tools={tool.id: tool for tool in found}.values())

    async def PurgeReceipts(
        self, request: execution_service_pb2.PurgeReceiptsRequest, context: Any
    ) -> execution_service_pb2.PurgeReceiptsResponse:
        self._note("PurgeReceipts")
        self.purged.append(("receipts", request.agent_id))
        return execution_service_pb2.PurgeReceiptsResponse()

    async def SetEnvironment(
        self, request: sandbox_config_service_pb2.SetEnvironmentRequest, context: Any
    ) -> sandbox_config_service_pb2.SetEnvironmentResponse:
        self._note("SetEnvironment")
        self.secrets[request.owner.agent_id] = {each.key: each.value for each in request.variables}
        return sandbox_config_service_pb2.SetEnvironmentResponse()

    async def PurgeEnvironment(
        self, request: sandbox_config_service_pb2.PurgeEnvironmentRequest, context: Any
    ) -> sandbox_config_service_pb2.PurgeEnvironmentResponse:
        self._note("PurgeEnvironment")
        self.secrets.pop(request.owner.agent_id, None)
        self.purged.append(("secrets", request.owner.agent_id))
        return sandbox_config_service_pb2.PurgeEnvironmentResponse()

    async def PurgeOrganization(self, request: Any, context: Any) -> Any:
        """Of all three services."""
        self._note("PurgeOrganization")
        self.unfinished -= 1
        [module] = (each for each in _PURGING if isinstance(request, each.PurgeOrganizationRequest))
        self.purged.append((module.DESCRIPTOR.package, str(current().organization_id)))
        return module.PurgeOrganizationResponse(done=self.unfinished < 0)

    async def FenceRun(self, request: Any, context: Any) -> Any:
        """Of memory and tool runner."""
        self._note("FenceRun")
        [module] = (each for each in _FENCING if isinstance(request, each.FenceRunRequest))
        return module.FenceRunResponse()

    async def GetModel(
        self, request: model_service_pb2.GetModelRequest, context: Any
    ) -> model_service_pb2.GetModelResponse:
        self._note("GetModel")
        if request.handle not in self.windows:
            raise NotFound(f"There is no model {request.handle}", reason="MODEL_NOT_FOUND")
        model = model_pb2.Model(handle=request.handle, context_window=self.windows[request.handle])
        return model_service_pb2.GetModelResponse(model=model)

    async def GetEmbeddingModel(
        self, request: model_service_pb2.GetEmbeddingModelRequest, context: Any
    ) -> model_service_pb2.GetEmbeddingModelResponse:
        self._note("GetEmbeddingModel")
        if request.handle != "loci/hash":
            raise NotFound(f"There is no model {request.handle}", reason="MODEL_NOT_FOUND")
        return model_service_pb2.GetEmbeddingModelResponse(model=model_pb2.EmbeddingModel(handle=request.handle))

    async def Embed(self, request: model_service_pb2.EmbedRequest, context: Any) -> model_service_pb2.EmbedResponse:
        """A direction for texts about cars, and one for all others."""
        self._note("Embed")
        about = [any(word in text for word in ("car", "automobile")) for text in request.texts]
        vectors = [model_service_pb2.Vector(values=[1.0, 0.1] if each else [0.1, 1.0]) for each in about]
        return model_service_pb2.EmbedResponse(vectors=vectors, dimensions=2)

    async def Generate(
        self, request: chat_service_pb2.GenerateRequest, context: Any
    ) -> chat_service_pb2.GenerateResponse:
        self._note("Generate")
        await self.may_answer.wait()
        part = chat_pb2.ChatPart(text=chat_pb2.TextPart(text="Noted."))
        message = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, parts=[part])
        usage = chat_pb2.Usage(prompt_tokens=10, completion_tokens=2)
        generation = chat_pb2.Generation(message=message, usage=usage, finish_reason=chat_pb2.FINISH_REASON_STOP)
        return chat_service_pb2.GenerateResponse(generation=generation)


@dataclass
class AdminWorld:
    """The service, its peers, and stubs to it. Calls act for `caller`."""

    peers: ScriptedPeers
    pool: asyncpg.Pool
    counter: StatementCounter
    built: AgentProcess
    signer: Signer
    agents: AgentServiceStub
    checkpoints: CheckpointServiceStub
    conversations: ConversationServiceStub
    messages: MessageServiceStub
    runs: RunServiceStub
    steps: StepServiceStub
    address: str

    async def call(self, rpc: Any, request: Any, organization_id: UUID = ORGANIZATION) -> Any:
        """Calls as a user of a tenant. Raises LociError."""
        context = CallContext(organization_id, USER, "admin", AUDIENCE)
        with use_context(context, signer=self.signer):
            try:
                return await rpc(request, timeout=10)
            except grpc.RpcError as error:
                raise from_rpc(error) from None

    async def create(self, organization_id: UUID = ORGANIZATION, **fields: Any) -> Agent:
        """An agent; what is no field of the request is one of the draft."""
        names = agent_wire.CreateAgentRequest.DESCRIPTOR.fields_by_name
        outer = {name: fields.pop(name) for name in list(fields) if name in names}
        request = agent_wire.CreateAgentRequest(agent=agent_pb2.Agent(**fields), **outer)
        response = await self.call(self.agents.CreateAgent, request, organization_id)
        created: Agent = response.agent
        return created

    async def get(self, agent_id: str, organization_id: UUID = ORGANIZATION) -> Agent:
        """The agent."""
        request = agent_wire.GetAgentRequest(agent_id=agent_id)
        found: Agent = (await self.call(self.agents.GetAgent, request, organization_id)).agent
        return found

    async def update(self, agent_id: str, *paths: str, **fields: Any) -> Agent:
        """The agent as changed. `paths`: the mask; without any, the names of `fields`."""
        mask = FieldMask(paths=paths or fields)
        request = agent_wire.UpdateAgentRequest(agent_id=agent_id, agent=Agent(**fields), update_mask=mask)
        updated: Agent = (await self.call(self.agents.UpdateAgent, request)).agent
        return updated

    async def list(self, organization_id: UUID = ORGANIZATION, **fields: Any) -> agent_wire.ListAgentsResponse:
        """A page of agents."""
        request = agent_wire.ListAgentsRequest(**paged(**fields))
        found: agent_wire.ListAgentsResponse = await self.call(self.agents.ListAgents, request, organization_id)
        return found

    async def delete(self, agent_id: str, organization_id: UUID = ORGANIZATION) -> None:
        """Deletes it."""
        await self.call(self.agents.DeleteAgent, agent_wire.DeleteAgentRequest(agent_id=agent_id), organization_id)

    async def say(
        self, agent_id: str, text: str = "Hello", conversation_id: str = ""
    ) -> message_wire.SendMessagesResponse:
        """A turn."""
        message = message_pb2.InputMessage(content=[message_pb2.ContentPart(text=text)])
        turn = message_wire.TurnRequest(agent_id=agent_id, conversation_id=conversation_id, messages=[message])
        response: message_wire.SendMessagesResponse = await self.call(
            self.messages.SendMessages, message_wire.SendMessagesRequest(turn=turn)
        )
        return response

    async def deliver(self) -> None:
        """Delivers all orders, also those of later."""
        for deliveries in (self.built.deliveries, self.built.callbacks):
            await self.pool.execute("UPDATE agent.outbox SET not_before = now()")
            while await deliveries.deliver_due():
                pass

    async def rows(self, table: str) -> int:
        """How many rows there are."""
        count: int = await self.pool.fetchval(f"SELECT count(*) FROM agent.{table}")
        return count


def block(label: str, value: str = "", description: str | None = None) -> block_pb2.Block:
    """A draft without an id."""
    return block_pb2.Block(label=label, value=value, description=description)


async def empty(url: str, tables: str) -> None:
    """Truncates tables and what refers to them. Before a service is there: its loops read tables in another order,
    which may be a deadlock."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"TRUNCATE {tables} CASCADE")
    finally:
        await connection.close()


@asynccontextmanager
async def admin_world(
    url: str,
    folder: Path,
    password: str = "",
    *,
    external: bool = False,
    key: Ed25519PrivateKey | None = None,
    peers: ScriptedPeers | None = None,
    memory: grpc.aio.Channel | None = None,
) -> AsyncGenerator[AdminWorld]:
    """A world on a migrated database, its sockets in `folder`. `memory`: a real memory service that trusts `key`."""
    key, counter = key or Ed25519PrivateKey.generate(), StatementCounter(keep_texts=True)
    # What it does not script answers UNIMPLEMENTED.
    peers = peers or ScriptedPeers()  # type: ignore[abstract]
    verifier, signer = Verifier({"test": key.public_key()}), Signer(key, "test")
    name = uuid.uuid4().hex[:8]
    peer_address, address = f"unix://{folder}/{name}-p", f"unix://{folder}/{name}-a"
    peer_server = make_server(
        peer_address,
        servicers=[
            (add_AgentMemoryServiceServicer_to_server, peers),
            (add_ToolServiceServicer_to_server, peers),
            (add_ExecutionServiceServicer_to_server, peers),
            (add_SandboxConfigServiceServicer_to_server, peers),
            (add_ModelServiceServicer_to_server, peers),
            (add_ChatServiceServicer_to_server, peers),
            (add_ProviderServiceServicer_to_server, peers),
        ],
        service_names=[],
        audience="memory",
        verifier=verifier,
    )
    pool = await open_agent_pool(url, size=6)
    engine = make_engine(url, counter=counter)
    peer_channel, channel = make_channel(peer_address), make_channel(address)
    grpc_side = grpc_peers(memory or peer_channel, peer_channel, peer_channel, signer=signer)
    built = build(
        listen=address,
        external=ExternalSettings(f"unix://{folder}/{name}-e" if external else None, password),
        verifier=verifier,
        signer=signer,
        defaults=Defaults("loci/demo", "loci/hash"),
        callbacks=CallbackSettings(SECRET, allow_private=True),
        stores=postgres_stores(pool, engine, grpc_side.memory, grpc_side.embedder),
        peers=grpc_side,
        run_timeout=60,
        notifier=NoPeers(),
        stream_keep=timedelta(hours=1),
    )
    await peer_server.start()
    await built.lease_keeper.start()
    for server in built.servers:
        await server.start()
    try:
        yield AdminWorld(
            peers, pool, counter, built, signer, AgentServiceStub(channel), CheckpointServiceStub(channel),
            ConversationServiceStub(channel),
            MessageServiceStub(channel), RunServiceStub(channel), StepServiceStub(channel), built.servers[-1].address,
        )  # fmt: skip
    finally:
        for server in built.servers:
            await server.stop(1)
        await built.lease_keeper.stop()
        await peer_server.stop(1)
        await channel.close()
        await peer_channel.close()
        await engine.dispose()
        await pool.close()
