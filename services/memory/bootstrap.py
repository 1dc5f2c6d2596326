"""Puts the memory service together. Tests do it with this, too."""

from collections.abc import Callable
from dataclasses import dataclass

import asyncpg
import grpc
from sqlalchemy.ext.asyncio import AsyncEngine

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import block_service_pb2 as block_pb
from loci.memory.v1 import folder_service_pb2 as folder_pb
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1.agent_memory_service_pb2_grpc import add_AgentMemoryServiceServicer_to_server
from loci.memory.v1.archive_service_pb2_grpc import add_ArchiveServiceServicer_to_server
from loci.memory.v1.block_service_pb2_grpc import add_BlockServiceServicer_to_server
from loci.memory.v1.folder_service_pb2_grpc import add_FolderServiceServicer_to_server
from loci.memory.v1.passage_service_pb2_grpc import add_PassageServiceServicer_to_server
from services.common import vectors
from services.common.context import Signer, Verifier
from services.common.database import open_pool
from services.common.ids import uuid7
from services.common.search_settings import STANDARD, SearchSettings
from services.common.server import Server, make_server
from services.common.statement_counter import StatementCounter
from services.memory.adapters.embedder import RepeatingEmbedder
from services.memory.adapters.parser import ChildParser
from services.memory.agent_files.store.agent_files import PostgresAgentFiles
from services.memory.agent_tools.edit_queues import EditQueues
from services.memory.agent_tools.file_tools import FileTools
from services.memory.agent_tools.service import ToolService
from services.memory.agent_tools.store import PostgresCalls
from services.memory.agents.service import VersionService
from services.memory.agents.servicer import AgentMemoryServicer
from services.memory.agents.store.agents import PostgresAgents
from services.memory.agents.store.copies import PostgresCopies
from services.memory.archives.job import ArchiveEraser
from services.memory.archives.servicer import ArchiveServicer
from services.memory.archives.store import ERASE_JOB, PostgresArchives
from services.memory.blocks.conflicts import EditRetries
from services.memory.blocks.service import BlockService
from services.memory.blocks.servicer import BlockServicer
from services.memory.blocks.store.blocks import PostgresBlocks
from services.memory.blocks.store.history import PostgresHistory
from services.memory.blocks.store.identities import PostgresIdentities
from services.memory.blocks.store.lists import PostgresBlockLists
from services.memory.core.ports.agents import AgentStore, CallStore, CopyStore
from services.memory.core.ports.blocks import BlockLists, BlockStore, HistoryStore, IdentityStore
from services.memory.core.ports.embedding_changes import ChangeStore
from services.memory.core.ports.files import AgentFileStore, FileStore, FolderStore, IngestionStore, UploadStore
from services.memory.core.ports.jobs import JobStore
from services.memory.core.ports.passages import ArchiveStore, PassageLists, PassageStore
from services.memory.core.ports.search import Embedder, Rankings, SampleStore, SearchModels
from services.memory.core.ranking.word_samples import WORD_SAMPLE
from services.memory.embedding_changes.job import EmbeddingChangeJob
from services.memory.embedding_changes.service import EmbeddingChangeService
from services.memory.embedding_changes.store.changes import JOB_KIND as EMBEDDING_CHANGE
from services.memory.embedding_changes.store.changes import PostgresEmbeddingChanges
from services.memory.files.job import Ingestion
from services.memory.files.model import FILE_JOB, FOLDER_JOB, UPLOAD_JOB
from services.memory.files.service import MEBIBYTE, UploadService
from services.memory.files.store.files import PostgresFiles
from services.memory.files.store.ingestion import PostgresIngestion
from services.memory.files.store.uploads import PostgresUploads
from services.memory.folders.servicer import FolderServicer
from services.memory.folders.store import PostgresFolders
from services.memory.jobs.model import Handler
from services.memory.jobs.store import PostgresJobs
from services.memory.jobs.worker import Worker
from services.memory.passages.embedding import TextEmbedder
from services.memory.passages.service import PassageService
from services.memory.passages.servicer import PassageServicer
from services.memory.passages.store.lists import PostgresPassageLists
from services.memory.passages.store.passages import PostgresPassages
from services.memory.search.job import WordSampler
from services.memory.search.service import PassageSearch
from services.memory.search.store.rankings import PostgresRankings
from services.memory.search.store.vector_indexes import INDEX_JOB, VectorIndexing
from services.memory.search.store.word_samples import PostgresSamples

AUDIENCE = "memory"
# The llm gateway restarts in less; a search that waited longer would have been answered by words meanwhile.
SEARCH_SECONDS = 8.0
MOST_UPLOAD_BYTES = 100 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of the service."""

    blocks: BlockStore
    agents: AgentStore
    calls: CallStore
    passages: PassageStore
    archives: ArchiveStore
    archival_lists: PassageLists
    lists: BlockLists
    copies: CopyStore
    history: HistoryStore
    identities: IdentityStore
    rankings: Rankings
    samples: SampleStore
    jobs: JobStore
    agent_files: AgentFileStore
    changes: ChangeStore
    folders: FolderStore
    files: FileStore
    uploads: UploadStore
    ingestion: IngestionStore


async def open_memory_pool(
    url: str, *, size: int = 10, pgbouncer: bool = False, counter: StatementCounter | None = None
) -> asyncpg.Pool:
    """Returns the pool of the turn path, which knows vectors. The schema must have been migrated."""
    return await open_pool(url, size=size, pgbouncer=pgbouncer, counter=counter, init=vectors.register)


def postgres_stores(pool: asyncpg.Pool, engine: AsyncEngine) -> Stores:
    """Stores on a pool of `open_memory_pool`, with lists on an engine."""
    return Stores(
        blocks=PostgresBlocks(pool),
        agents=PostgresAgents(pool),
        calls=PostgresCalls(pool),
        passages=PostgresPassages(pool),
        archives=PostgresArchives(pool),
        archival_lists=PostgresPassageLists(engine),
        lists=PostgresBlockLists(engine),
        copies=PostgresCopies(pool),
        history=PostgresHistory(pool),
        identities=PostgresIdentities(pool),
        rankings=PostgresRankings(pool),
        samples=PostgresSamples(pool),
        jobs=PostgresJobs(pool),
        agent_files=PostgresAgentFiles(pool, engine),
        changes=PostgresEmbeddingChanges(pool),
        folders=PostgresFolders(pool, engine),
        files=PostgresFiles(pool, engine),
        uploads=PostgresUploads(pool),
        ingestion=PostgresIngestion(pool),
    )


def gateway_embedder(channel: grpc.aio.Channel) -> SearchModels:
    """Returns the llm gateway as the peer that embeds texts."""
    return RepeatingEmbedder(channel)


def vector_indexing(pool: asyncpg.Pool, direct_url: str, *, memory_mib: int) -> VectorIndexing:
    """Returns the handler of jobs that build indexes of vectors, with so much of the database's memory."""
    return VectorIndexing(pool, direct_url, memory_mib=memory_mib)


def build(
    *,
    listen: str,
    verifier: Verifier,
    stores: Stores,
    embedder: SearchModels,
    search_seconds: float = SEARCH_SECONDS,
    search_settings: SearchSettings = STANDARD,
    most_upload_bytes: int = MOST_UPLOAD_BYTES,
    wake: Callable[[], None] = lambda: None,
) -> Server:
    """Returns the server, bound to `listen`, not started. Raises SettingsError.

    wake: the worker's, if there is one.
    """
    retries = EditRetries()
    passages = PassageService(stores.passages, stores.archives, embedder)
    search = PassageSearch(
        stores.passages,
        stores.rankings,
        embedder,
        stores.changes,
        search_seconds=search_seconds,
        settings=search_settings,
    )
    files = FileTools(stores.agent_files, stores.calls, search)
    tools = ToolService(
        EditQueues(stores.blocks, stores.calls),
        stores.agents,
        stores.copies,
        stores.calls,
        passages,
        search,
        retries,
        files,
    )
    changes = EmbeddingChangeService(stores.changes, TextEmbedder(embedder, stores.passages), wake)
    versions = VersionService(stores.copies, stores.calls, stores.agents)
    uploads = UploadService(stores.uploads, stores.files, most_bytes=most_upload_bytes)
    blocks = BlockService(stores.blocks, stores.history, retries)
    return make_server(
        listen,
        servicers=[
            (
                add_BlockServiceServicer_to_server,
                BlockServicer(stores.blocks, stores.lists, blocks, stores.identities),
            ),
            (
                add_AgentMemoryServiceServicer_to_server,
                AgentMemoryServicer(stores.agents, tools, stores.copies, versions, stores.agent_files),
            ),
            (
                add_PassageServiceServicer_to_server,
                PassageServicer(stores.passages, passages, search, stores.archival_lists),
            ),
            (
                add_ArchiveServiceServicer_to_server,
                ArchiveServicer(stores.archives, stores.archival_lists, embedder, changes),
            ),
            (
                add_FolderServiceServicer_to_server,
                FolderServicer(
                    stores.folders, stores.files, stores.agent_files, stores.ingestion, uploads, embedder, wake
                ),
            ),
        ],
        service_names=[
            folder_pb.DESCRIPTOR.services_by_name["FolderService"].full_name,
            block_pb.DESCRIPTOR.services_by_name["BlockService"].full_name,
            agent_pb.DESCRIPTOR.services_by_name["AgentMemoryService"].full_name,
            passage_pb.DESCRIPTOR.services_by_name["PassageService"].full_name,
            archive_pb.DESCRIPTOR.services_by_name["ArchiveService"].full_name,
        ],
        audience=AUDIENCE,
        verifier=verifier,
    )


def make_worker(stores: Stores, embedder: Embedder, signer: Signer, indexing: VectorIndexing) -> Worker:
    """Returns the worker of background jobs of a replica; see jobs/worker.py."""
    models = TextEmbedder(embedder, stores.passages)
    ingestion = Ingestion(stores.ingestion, stores.uploads, stores.folders, ChildParser(), models)
    handlers: dict[str, Handler] = {
        EMBEDDING_CHANGE: EmbeddingChangeJob(stores.changes, models),
        INDEX_JOB: indexing.handle,
        ERASE_JOB: ArchiveEraser(stores.archives).erase,
        FILE_JOB: ingestion.go_on,
        FOLDER_JOB: ingestion.remove_folder,
        UPLOAD_JOB: ingestion.forget_upload,
        WORD_SAMPLE: WordSampler(stores.samples).sample,
    }
    return Worker(stores.jobs, handlers, signer, uuid7())
