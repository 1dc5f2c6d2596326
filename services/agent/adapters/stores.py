"""Where agents, their messages and runs are kept: the ports of every room, and Postgres behind them."""

from dataclasses import dataclass

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.access.ports import Credentials, TenantEraser, Tenants
from services.agent.adapters.access.credentials import PostgresCredentials
from services.agent.adapters.access.tenants import PostgresTenantEraser, PostgresTenants
from services.agent.adapters.admin.agents import PostgresAgents
from services.agent.adapters.admin.callback_log import PostgresCallbackLog
from services.agent.adapters.admin.checkpoints import PostgresCheckpoints
from services.agent.adapters.admin.conversation_erasing import PostgresConversationEraser
from services.agent.adapters.admin.conversation_store import PostgresConversations
from services.agent.adapters.admin.erasing import PostgresEraser
from services.agent.adapters.admin.groups import PostgresGroups
from services.agent.adapters.admin.history import PostgresHistory
from services.agent.adapters.admin.identities import PostgresIdentities
from services.agent.adapters.admin.learned_windows import PostgresLearnedWindows
from services.agent.adapters.admin.outbox import PostgresOutbox
from services.agent.adapters.admin.prompts import PromptsNow
from services.agent.adapters.admin.runs import PostgresRuns
from services.agent.adapters.admin.steps import PostgresSteps
from services.agent.adapters.admin.stored_messages import PostgresStoredMessages
from services.agent.adapters.admin.templates import PostgresTemplates
from services.agent.adapters.admin.transfers import PostgresTransfers
from services.agent.adapters.devices.store import PostgresDevices
from services.agent.adapters.journal import OnBusy, PostgresJournal
from services.agent.adapters.leases import PostgresLeases
from services.agent.adapters.peeks import PostgresPeeks
from services.agent.adapters.recall.marks import PostgresVectors
from services.agent.adapters.recall.rankings import PostgresRankings
from services.agent.adapters.recall.tool import PostgresRecall
from services.agent.adapters.schedules.due import PostgresDue
from services.agent.adapters.schedules.store import PostgresSchedules
from services.agent.adapters.streams.attaching import PostgresAttaching
from services.agent.adapters.streams.frames import PostgresFrames
from services.agent.admin.ports_admin import (
    AgentStore,
    CompiledPrompts,
    Eraser,
    History,
    Outbox,
)
from services.agent.admin.ports_checkpoints import CheckpointStore
from services.agent.admin.ports_conversations import ConversationEraser, ConversationStore
from services.agent.admin.ports_identities import GroupStore, IdentityStore
from services.agent.admin.ports_messages import StoredMessages
from services.agent.admin.ports_model_calls import Peeks
from services.agent.admin.ports_runs import CallbackLog, Runs, Steps
from services.agent.admin.ports_transfers import TransferStore
from services.agent.admin.templates import TemplateStore
from services.agent.devices.ports import DeviceStore
from services.agent.ports import Memory, Recall
from services.agent.recall.ports import Embedder, VectorStore
from services.agent.recall.revised import RevisedStore
from services.agent.recall.searching import Search
from services.agent.schedules.ports import DueSchedules, ScheduleStore
from services.agent.streams.ports_streams import Attaching, FrameStore
from services.common import vectors
from services.common.database import open_pool
from services.common.ids import uuid7


@dataclass(frozen=True, slots=True)
class Stores:
    """Where agents, their messages and runs are kept."""

    journal: PostgresJournal
    peeks: Peeks
    leases: PostgresLeases
    frames: FrameStore
    attaching: Attaching
    recall: Recall
    search: Search
    vectors: VectorStore
    revised: RevisedStore
    prompts: CompiledPrompts
    agents: AgentStore
    conversations: ConversationStore
    identities: IdentityStore
    groups: GroupStore
    learned_windows: PostgresLearnedWindows
    checkpoints: CheckpointStore
    templates: TemplateStore
    transfers: TransferStore
    history: History
    messages: StoredMessages
    runs: Runs
    steps: Steps
    callbacks: CallbackLog
    outbox: Outbox
    eraser: Eraser
    conversation_eraser: ConversationEraser
    schedules: ScheduleStore
    due: DueSchedules
    devices: DeviceStore
    credentials: Credentials
    tenants: Tenants
    tenant_eraser: TenantEraser


async def open_agent_pool(url: str, *, size: int = 10, pgbouncer: bool = False) -> asyncpg.Pool:
    """A pool whose connections know vectors."""
    return await open_pool(url, size=size, pgbouncer=pgbouncer, init=vectors.register)


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
    journal = PostgresJournal(pool, worker_id, on_busy=on_busy)
    return Stores(
        journal=journal,
        peeks=PostgresPeeks(pool),
        leases=PostgresLeases(pool, worker_id),
        frames=PostgresFrames(pool),
        attaching=PostgresAttaching(pool),
        recall=PostgresRecall(search),
        search=search,
        vectors=PostgresVectors(pool),
        revised=PostgresVectors(pool),
        prompts=PromptsNow(pool, memory),
        agents=PostgresAgents(engine),
        conversations=PostgresConversations(pool, engine),
        identities=PostgresIdentities(engine),
        groups=PostgresGroups(engine),
        learned_windows=PostgresLearnedWindows(pool),
        checkpoints=PostgresCheckpoints(pool),
        templates=PostgresTemplates(pool),
        transfers=PostgresTransfers(pool),
        history=PostgresHistory(engine),
        messages=PostgresStoredMessages(pool),
        runs=PostgresRuns(engine),
        steps=PostgresSteps(engine),
        callbacks=PostgresCallbackLog(pool),
        outbox=PostgresOutbox(pool),
        eraser=PostgresEraser(engine),
        conversation_eraser=PostgresConversationEraser(pool),
        schedules=PostgresSchedules(pool, engine),
        due=PostgresDue(pool, journal),
        devices=PostgresDevices(pool, engine),
        credentials=PostgresCredentials(pool),
        tenants=PostgresTenants(pool),
        tenant_eraser=PostgresTenantEraser(pool),
    )
