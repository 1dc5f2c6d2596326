"""The stores of agents, their messages and runs: the ports of every room, and Postgres behind them."""

from dataclasses import dataclass

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.adapters.agent_directory import PostgresAgentDirectory
from services.agent.adapters.due_schedules import PostgresDue
from services.agent.adapters.group_logs import PostgresGroupLogs
from services.agent.adapters.journal import PostgresJournal
from services.agent.adapters.leases import PostgresLeases
from services.agent.adapters.peeks import PostgresPeeks
from services.agent.adapters.recall.marks import PostgresVectors
from services.agent.adapters.recall.rankings import PostgresRankings
from services.agent.adapters.recall.tool import PostgresRecall
from services.agent.adapters.streams.attaching import PostgresAttaching
from services.agent.adapters.streams.frames import PostgresFrames
from services.agent.core.ports import Memory, Recall
from services.agent.core.ports_agents import AgentDirectory
from services.agent.core.ports_journal import Journal, Leases, OnBusy
from services.agent.core.ports_recall import Embedder, VectorStore
from services.agent.core.ports_streams import BackgroundRuns, FrameStore
from services.agent.core.tending import TendingLimits
from services.agent.recall.searching import Search
from services.agent.resources.access.ports import CredentialStore, TenantEraser, TenantStore
from services.agent.resources.access.store import PostgresCredentials
from services.agent.resources.access.tenants import PostgresTenantEraser, PostgresTenants
from services.agent.resources.agents.eraser import PostgresEraser
from services.agent.resources.agents.ports import AgentStore, Eraser
from services.agent.resources.agents.store import PostgresAgents
from services.agent.resources.callbacks.ports import CallbackLog
from services.agent.resources.callbacks.store import PostgresCallbackLog
from services.agent.resources.checkpoints.ports import CheckpointStore, RewindStore
from services.agent.resources.checkpoints.rewind_store import PostgresRewinds
from services.agent.resources.checkpoints.store import PostgresCheckpoints
from services.agent.resources.conversations.eraser import PostgresConversationEraser
from services.agent.resources.conversations.ports import ConversationEraser, ConversationStore
from services.agent.resources.conversations.prompts import PostgresPrompts
from services.agent.resources.conversations.store import PostgresConversations
from services.agent.resources.devices.ports import DeviceStore
from services.agent.resources.devices.store import PostgresDevices
from services.agent.resources.groups.ports import GroupStore
from services.agent.resources.groups.store import PostgresGroups
from services.agent.resources.groups.turns import GroupLogs
from services.agent.resources.identities.ports import IdentityStore
from services.agent.resources.identities.store import PostgresIdentities
from services.agent.resources.learned_windows.ports import LearnedWindowStore
from services.agent.resources.learned_windows.store import PostgresLearnedWindows
from services.agent.resources.messages.embedding import MessageVectorStore
from services.agent.resources.messages.history import PostgresHistory
from services.agent.resources.messages.ports import History, MessageStore, Prompts
from services.agent.resources.messages.store import PostgresMessages
from services.agent.resources.model_calls.ports import Peeks
from services.agent.resources.outbox.ports import Outbox
from services.agent.resources.outbox.store import PostgresOutbox
from services.agent.resources.runs.ports import RunStore
from services.agent.resources.runs.store import PostgresRuns
from services.agent.resources.schedules.ports import DueSchedules, ScheduleStore
from services.agent.resources.schedules.store import PostgresSchedules
from services.agent.resources.steps.ports import StepStore
from services.agent.resources.steps.store import PostgresSteps
from services.agent.resources.templates.ports import TemplateStore
from services.agent.resources.templates.store import PostgresTemplates
from services.agent.resources.transfers.ports import TransferStore
from services.agent.resources.transfers.store import PostgresTransfers
from services.common import vectors
from services.common.database import open_pool
from services.common.ids import uuid7
from services.common.own_connection import OwnConnection
from services.common.search_settings import STANDARD, SearchSettings


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of agents, their messages and runs."""

    journal: Journal
    peeks: Peeks
    leases: Leases
    directory: AgentDirectory
    frames: FrameStore
    attaching: BackgroundRuns
    recall: Recall
    search: Search
    vectors: VectorStore
    revised: MessageVectorStore
    prompts: Prompts
    agents: AgentStore
    conversations: ConversationStore
    identities: IdentityStore
    groups: GroupStore
    group_logs: GroupLogs
    learned_windows: LearnedWindowStore
    checkpoints: CheckpointStore
    rewinds: RewindStore
    templates: TemplateStore
    transfers: TransferStore
    history: History
    messages: MessageStore
    runs: RunStore
    steps: StepStore
    callbacks: CallbackLog
    outbox: Outbox
    eraser: Eraser
    conversation_eraser: ConversationEraser
    schedules: ScheduleStore
    due: DueSchedules
    devices: DeviceStore
    credentials: CredentialStore
    tenants: TenantStore
    tenant_eraser: TenantEraser


async def open_agent_pool(url: str, *, size: int = 10, pgbouncer: bool = False) -> asyncpg.Pool:
    """Returns a pool whose connections know vectors."""
    return await open_pool(url, size=size, pgbouncer=pgbouncer, init=vectors.register)


def postgres_stores(
    pool: asyncpg.Pool,
    engine: AsyncEngine,
    memory: Memory,
    embedder: Embedder | None,
    *,
    on_busy: OnBusy | None = None,
    beats: OwnConnection | None = None,
    search_settings: SearchSettings = STANDARD,
    tending: TendingLimits | None = None,
) -> Stores:
    """Stores for a new replica: the turn path on the pool, of `open_agent_pool`, all else on the engine.

    beats: what its lease is beaten by; embedder: for searches; None: messages are found by their words alone.
    search_settings: for hybrid ones.
    """
    worker_id = uuid7()
    search = Search(PostgresRankings(pool), embedder, search_settings)
    journal = PostgresJournal(pool, worker_id, on_busy=on_busy, tending=tending)
    return Stores(
        journal=journal,
        peeks=PostgresPeeks(pool),
        leases=PostgresLeases(pool, worker_id, beats),
        directory=PostgresAgentDirectory(pool),
        frames=PostgresFrames(pool),
        attaching=PostgresAttaching(pool),
        recall=PostgresRecall(search),
        search=search,
        vectors=PostgresVectors(pool),
        revised=PostgresVectors(pool),
        prompts=PostgresPrompts(pool, memory),
        agents=PostgresAgents(engine),
        conversations=PostgresConversations(pool, engine),
        identities=PostgresIdentities(engine),
        groups=PostgresGroups(engine),
        group_logs=PostgresGroupLogs(pool),
        learned_windows=PostgresLearnedWindows(pool),
        checkpoints=PostgresCheckpoints(pool),
        rewinds=PostgresRewinds(pool),
        templates=PostgresTemplates(pool, engine),
        transfers=PostgresTransfers(pool),
        history=PostgresHistory(engine),
        messages=PostgresMessages(pool),
        runs=PostgresRuns(engine),
        steps=PostgresSteps(engine),
        callbacks=PostgresCallbackLog(pool),
        outbox=PostgresOutbox(pool),
        eraser=PostgresEraser(engine),
        conversation_eraser=PostgresConversationEraser(pool),
        schedules=PostgresSchedules(pool, engine),
        due=PostgresDue(pool, journal),
        devices=PostgresDevices(pool, engine),
        credentials=PostgresCredentials(pool, engine),
        tenants=PostgresTenants(pool, engine),
        tenant_eraser=PostgresTenantEraser(pool),
    )
