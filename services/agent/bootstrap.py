"""Puts the agent service together. Tests do it with this, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import grpc
from sqlalchemy.ext.asyncio import AsyncEngine

from loci.agent.v1 import (
    agent_service_pb2,
    checkpoint_service_pb2,
    conversation_service_pb2,
    learned_window_service_pb2,
    message_service_pb2,
    run_service_pb2,
    step_service_pb2,
)
from loci.agent.v1.agent_service_pb2_grpc import add_AgentServiceServicer_to_server
from loci.agent.v1.checkpoint_service_pb2_grpc import add_CheckpointServiceServicer_to_server
from loci.agent.v1.conversation_service_pb2_grpc import add_ConversationServiceServicer_to_server
from loci.agent.v1.learned_window_service_pb2_grpc import add_LearnedWindowServiceServicer_to_server
from loci.agent.v1.message_service_pb2_grpc import add_MessageServiceServicer_to_server
from loci.agent.v1.run_service_pb2_grpc import add_RunServiceServicer_to_server
from loci.agent.v1.step_service_pb2_grpc import add_StepServiceServicer_to_server
from services.agent.adapters.admin.agents import PostgresAgents
from services.agent.adapters.admin.callbacks import HttpPoster, PostgresCallbackLog
from services.agent.adapters.admin.checkpoints import PostgresCheckpoints
from services.agent.adapters.admin.conversation_erasing import PostgresConversationEraser
from services.agent.adapters.admin.conversation_memories import GrpcConversationMemories
from services.agent.adapters.admin.conversation_store import PostgresConversations
from services.agent.adapters.admin.erasing import PostgresEraser
from services.agent.adapters.admin.history import PostgresHistory
from services.agent.adapters.admin.learned_windows import PostgresLearnedWindows
from services.agent.adapters.admin.outbox import PostgresOutbox
from services.agent.adapters.admin.peers import GrpcAgentMemories, GrpcModelCatalogue, GrpcToolCatalogue
from services.agent.adapters.admin.prompts import PromptsNow
from services.agent.adapters.admin.runs import PostgresRuns
from services.agent.adapters.admin.steps import PostgresSteps
from services.agent.adapters.admin.versioned_memories import GrpcVersionedMemories
from services.agent.adapters.journal import OnBusy, PostgresJournal
from services.agent.adapters.leases import PostgresLeases
from services.agent.adapters.memory import GrpcMemory
from services.agent.adapters.models import GrpcModels
from services.agent.adapters.recall.embedder import GrpcEmbedder
from services.agent.adapters.recall.marks import PostgresVectors
from services.agent.adapters.recall.rankings import PostgresRankings
from services.agent.adapters.recall.tool import PostgresRecall
from services.agent.adapters.streams.attaching import PostgresAttaching
from services.agent.adapters.streams.frames import PostgresFrames
from services.agent.adapters.tools import GrpcTools
from services.agent.admin import callbacks as run_callbacks
from services.agent.admin import conversation_administration, outbox
from services.agent.admin.administration import Administration
from services.agent.admin.agent_folders import AgentFolders
from services.agent.admin.agents import Defaults
from services.agent.admin.catalogues import Catalogues
from services.agent.admin.conversation_administration import ConversationAdministration
from services.agent.admin.outbox import Deliveries
from services.agent.admin.ports_admin import (
    AgentMemories,
    AgentStore,
    CompiledPrompts,
    Eraser,
    History,
    ModelCatalogue,
    Outbox,
    ToolCatalogue,
)
from services.agent.admin.ports_checkpoints import CheckpointStore, VersionedMemories
from services.agent.admin.ports_conversations import ConversationEraser, ConversationMemories, ConversationStore
from services.agent.admin.ports_runs import CallbackLog, Runs, Steps
from services.agent.admin.time_travel import TimeTravel
from services.agent.driving.tenure import Tenure
from services.agent.driving.worker import Worker
from services.agent.edge import Edge
from services.agent.effects import Ports
from services.agent.ports import Memory, Models, Recall, Tools
from services.agent.recall.filling import Filler
from services.agent.recall.ports import Embedder, VectorStore
from services.agent.recall.searching import Search
from services.agent.servicer.agents import AgentServicer
from services.agent.servicer.checkpoints import CheckpointServicer
from services.agent.servicer.conversations import ConversationServicer
from services.agent.servicer.learned_windows import LearnedWindowServicer
from services.agent.servicer.live_runs import RunServicer
from services.agent.servicer.messages import MessageServicer
from services.agent.servicer.steps import StepServicer
from services.agent.settings import EXTERNAL_LISTEN, CallbackSettings, ExternalSettings
from services.agent.streams.broadcast import Hub
from services.agent.streams.ports_streams import Attaching, FrameStore, Notifier
from services.agent.streams.reading import Reader
from services.agent.streams.recorder import Recorder
from services.agent.streams.stage import Stage
from services.common import vectors
from services.common.context import Signer, Verifier
from services.common.database import open_pool
from services.common.ids import uuid7
from services.common.server import Registration, Server, make_server

AUDIENCE = "agent"
_SERVICES = (
    agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,
    checkpoint_service_pb2.DESCRIPTOR.services_by_name["CheckpointService"].full_name,
    conversation_service_pb2.DESCRIPTOR.services_by_name["ConversationService"].full_name,
    learned_window_service_pb2.DESCRIPTOR.services_by_name["LearnedWindowService"].full_name,
    message_service_pb2.DESCRIPTOR.services_by_name["MessageService"].full_name,
    run_service_pb2.DESCRIPTOR.services_by_name["RunService"].full_name,
    step_service_pb2.DESCRIPTOR.services_by_name["StepService"].full_name,
)


@dataclass(frozen=True, slots=True)
class Peers:
    """The services behind this one, for turns and for administration."""

    models: Models
    memory: Memory
    tools: Tools
    memories: AgentMemories
    conversation_memories: ConversationMemories
    versioned_memories: VersionedMemories
    tool_catalogue: ToolCatalogue
    model_catalogue: ModelCatalogue
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Stores:
    """Where agents, their messages and runs are kept."""

    journal: PostgresJournal
    leases: PostgresLeases
    frames: FrameStore
    attaching: Attaching
    recall: Recall
    search: Search
    vectors: VectorStore
    prompts: CompiledPrompts
    agents: AgentStore
    conversations: ConversationStore
    learned_windows: PostgresLearnedWindows
    checkpoints: CheckpointStore
    history: History
    runs: Runs
    steps: Steps
    callbacks: CallbackLog
    outbox: Outbox
    eraser: Eraser
    conversation_eraser: ConversationEraser


@dataclass(frozen=True, slots=True)
class Built:
    """Servers, bound and not started, and what runs beside them. Start the tenure before, stop it after them."""

    servers: Sequence[Server]
    tenure: Tenure
    deliveries: Deliveries
    # Apart from the others: receivers may be slow.
    callbacks: Deliveries
    # Stopped after the tenure: runs that are let go have shown something.
    recorder: Recorder
    # None where messages get no vectors.
    filler: Filler | None


async def open_agent_pool(url: str, *, size: int = 10, pgbouncer: bool = False) -> asyncpg.Pool:
    """A pool whose connections know vectors."""
    return await open_pool(url, size=size, pgbouncer=pgbouncer, init=vectors.register)


def grpc_peers(memory: grpc.aio.Channel, llm_gateway: grpc.aio.Channel, tool_runner: grpc.aio.Channel) -> Peers:
    """Peers behind channels."""
    catalogue = GrpcModelCatalogue(llm_gateway)
    return Peers(
        models=GrpcModels(llm_gateway, catalogue),
        memory=GrpcMemory(memory),
        tools=GrpcTools(tool_runner),
        memories=GrpcAgentMemories(memory),
        conversation_memories=GrpcConversationMemories(memory),
        versioned_memories=GrpcVersionedMemories(memory),
        tool_catalogue=GrpcToolCatalogue(tool_runner),
        model_catalogue=catalogue,
        embedder=GrpcEmbedder(llm_gateway),
    )


def postgres_stores(
    pool: asyncpg.Pool,
    engine: AsyncEngine,
    memory: Memory,
    embedder: Embedder | None,
    *,
    on_busy: OnBusy = "wait",
) -> Stores:
    """Stores for a new replica: the turn path on the pool, of `open_agent_pool`, all else on the engine.

    embedder: for searches; None: messages are found by their words alone.
    """
    worker_id = uuid7()
    search = Search(PostgresRankings(pool), embedder)
    return Stores(
        journal=PostgresJournal(pool, worker_id, on_busy=on_busy),
        leases=PostgresLeases(pool, worker_id),
        frames=PostgresFrames(pool),
        attaching=PostgresAttaching(pool),
        recall=PostgresRecall(search),
        search=search,
        vectors=PostgresVectors(pool),
        prompts=PromptsNow(pool, memory),
        agents=PostgresAgents(engine),
        conversations=PostgresConversations(pool, engine),
        learned_windows=PostgresLearnedWindows(pool),
        checkpoints=PostgresCheckpoints(pool),
        history=PostgresHistory(engine),
        runs=PostgresRuns(engine),
        steps=PostgresSteps(engine),
        callbacks=PostgresCallbackLog(pool),
        outbox=PostgresOutbox(pool),
        eraser=PostgresEraser(engine),
        conversation_eraser=PostgresConversationEraser(pool),
    )


def build(
    *,
    listen: str,
    external: ExternalSettings,
    verifier: Verifier,
    signer: Signer,
    defaults: Defaults,
    callbacks: CallbackSettings,
    stores: Stores,
    peers: Peers,
    run_timeout: float,
    notifier: Notifier,
    stream_keep: timedelta,
    message_vectors: bool = True,
) -> Built:
    """Raises SettingsError where an address cannot be used."""
    ports = Ports(stores.journal, peers.models, peers.memory, peers.tools, stores.recall)
    hub, recorder = Hub(), Recorder(stores.frames, keep=stream_keep)
    worker = Worker(stores.journal, ports, Stage(hub, recorder, notifier), signer)
    filler = None
    if message_vectors:
        filler = Filler(stores.vectors, peers.embedder, signer, lambda: worker.load)
        worker.spoke = filler.hear
    reader = Reader(stores.journal, hub, stores.frames, notifier, keep=stream_keep)
    handlers = {
        **outbox.handlers(peers.memories, peers.tool_catalogue, stores.eraser),
        **conversation_administration.handlers(peers.conversation_memories, stores.conversation_eraser),
    }
    deliveries = Deliveries(stores.outbox, handlers, signer)
    poster = HttpPoster(allow_private=callbacks.allow_private)
    told = run_callbacks.Callbacks(poster, stores.callbacks, callbacks.secret)
    callback_deliveries = Deliveries(stores.outbox, {run_callbacks.KIND: told.deliver}, signer)
    administration = Administration(
        stores.agents, peers.memories, peers.tool_catalogue, peers.model_catalogue, defaults
    )
    catalogues = Catalogues(peers.tool_catalogue, peers.model_catalogue)
    folders = AgentFolders(stores.agents, peers.memories, catalogues, administration)
    conversations = ConversationAdministration(
        stores.conversations,
        peers.conversation_memories,
        stores.agents,
        peers.model_catalogue,
        stores.history,
        stores.prompts,
    )
    time_travel = TimeTravel(stores.checkpoints, peers.versioned_memories, stores.agents, administration, conversations)
    messages = MessageServicer(
        stores.history,
        stores.prompts,
        peers.model_catalogue,
        stores.search,
        worker,
        reader,
        longest_seconds=run_timeout,
        allow_private_urls=callbacks.allow_private,
    )
    servicers: list[Registration] = [
        (add_AgentServiceServicer_to_server, AgentServicer(administration, folders, deliveries.wake)),
        (add_CheckpointServiceServicer_to_server, CheckpointServicer(time_travel)),
        (add_ConversationServiceServicer_to_server, ConversationServicer(conversations, deliveries.wake)),
        (add_LearnedWindowServiceServicer_to_server, LearnedWindowServicer(stores.learned_windows)),
        (add_MessageServiceServicer_to_server, messages),
        (
            add_RunServiceServicer_to_server,
            RunServicer(stores.runs, peers.tool_catalogue, worker, reader, stores.attaching),
        ),
        (add_StepServiceServicer_to_server, StepServicer(stores.steps)),
    ]
    servers = [make_server(listen, servicers=servicers, service_names=_SERVICES, audience=AUDIENCE, verifier=verifier)]
    if external.listen is not None:
        servers.append(
            make_server(
                external.listen,
                servicers=servicers,
                service_names=_SERVICES,
                audience=AUDIENCE,
                edge_authenticate=Edge(external.password, signer).authenticate,
                setting=EXTERNAL_LISTEN,
            )
        )
    return Built(servers, Tenure(stores.leases, worker, notifier), deliveries, callback_deliveries, recorder, filler)
