"""The memory service on a real Postgres behind real gRPC, and a llm gateway that embeds by concepts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import asyncpg
import grpc
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loci.common.v1.page_pb2 import PageRequest
from loci.llm.v1 import model_service_pb2 as llm_pb
from loci.llm.v1.model_service_pb2_grpc import ModelServiceServicer, add_ModelServiceServicer_to_server
from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1.agent_memory_service_pb2_grpc import AgentMemoryServiceStub
from loci.memory.v1.archive_service_pb2_grpc import ArchiveServiceStub
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from loci.memory.v1.folder_service_pb2_grpc import FolderServiceStub
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, Signer, Verifier, current, use_context
from services.common.engine import make_engine
from services.common.errors import InvalidArgument, LociError, NotFound, Unavailable, from_rpc
from services.common.ids import uuid7
from services.common.search_settings import STANDARD, SearchSettings
from services.common.server import make_server
from services.common.statement_counter import StatementCounter
from services.memory.adapters.embedder import RepeatingEmbedder
from services.memory.bootstrap import Stores, build, make_worker, open_memory_pool, postgres_stores
from services.memory.jobs.worker import Worker
from services.memory.search.store.vector_indexes import VectorIndexing

if TYPE_CHECKING:
    from loci.memory.v1.agent_memory_service_pb2_grpc import AgentMemoryServiceAsyncStub
    from loci.memory.v1.archive_service_pb2_grpc import ArchiveServiceAsyncStub
    from loci.memory.v1.block_service_pb2_grpc import BlockServiceAsyncStub
    from loci.memory.v1.folder_service_pb2_grpc import FolderServiceAsyncStub
    from loci.memory.v1.passage_service_pb2_grpc import PassageServiceAsyncStub

KEY = Ed25519PrivateKey.generate()
SIGNER = Signer(KEY, "test")
VERIFIER = Verifier({"test": KEY.public_key()})
CONCEPTS = (
    {"cat", "kitten", "feline"},
    {"dog", "puppy", "hound"},
    {"car", "automobile", "vehicle"},
    {"code", "programming", "haskell", "python"},
    {"tea", "coffee", "drink"},
)
EMBEDDING = "test/concepts"

_numbers = itertools.count()


def concept_vector(text: str) -> list[float]:
    """How often each concept is named; the last component is a little of nothing in particular."""
    words = text.lower().split()
    return [sum(word.strip(".,?!s") in concept for word in words) for concept in CONCEPTS] + [0.1]


def sized(vector: list[float], size: int) -> list[float]:
    """Cut, or filled with zeros."""
    return (vector + [0.0] * size)[:size]


@dataclass
class ConceptModels(ModelServiceServicer):
    """`failure` is raised instead of answering; `callers` are the contexts of the calls, `texts` how many each had.

    sizes: dimensions of handles that differ; five leave a text without any concept a zero vector. failures: of single
    handles. refused: texts that contain this are.
    """

    failure: LociError | None = None
    dimensions: int = len(CONCEPTS) + 1
    callers: list[CallContext] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, LociError] = field(default_factory=dict)
    refused: str = ""
    texts: list[int] = field(default_factory=list)

    async def GetEmbeddingModel(
        self, request: llm_pb.GetEmbeddingModelRequest, context: Any
    ) -> llm_pb.GetEmbeddingModelResponse:
        """Every handle of `test` is configured."""
        if not request.handle.startswith("test/"):
            raise NotFound(f"there is no embedding model {request.handle}", reason="MODEL_NOT_FOUND")
        return llm_pb.GetEmbeddingModelResponse()

    async def Embed(self, request: llm_pb.EmbedRequest, context: Any) -> llm_pb.EmbedResponse:
        """One vector per text."""
        self.callers.append(current())
        if (failure := self.failure or self.failures.get(request.handle)) is not None:
            raise failure
        if self.refused and any(self.refused in text for text in request.texts):
            raise InvalidArgument("the provider refuses a text", reason="LLM_BAD_REQUEST")
        self.texts.append(len(request.texts))
        size = self.sizes.get(request.handle, self.dimensions)
        vectors = [sized(concept_vector(text), size) for text in request.texts]
        return llm_pb.EmbedResponse(vectors=[llm_pb.Vector(values=vector) for vector in vectors], dimensions=size)


@dataclass
class Memory:
    """A running memory service and its stubs. Calls are made within `memory.of(organization)`."""

    blocks: BlockServiceAsyncStub
    agents: AgentMemoryServiceAsyncStub
    passages: PassageServiceAsyncStub
    counter: StatementCounter
    pool: asyncpg.Pool
    models: ConceptModels
    caller: CallContext
    archives: ArchiveServiceAsyncStub
    stores: Stores
    embedder: RepeatingEmbedder
    folders: FolderServiceAsyncStub
    url: str

    @contextmanager
    def of(self, organization_id: UUID) -> Iterator[None]:
        """Calls in this block are made for another tenant."""
        with use_context(SIGNER.signed(replace(self.caller, organization_id=organization_id))):
            yield

    async def apply(
        self,
        agent_id: str,
        tool_name: str,
        *,
        call_key: str = "",
        embedding: str = EMBEDDING,
        timezone: str = "",
        conversation_id: str = "",
        create_missing_block: bool = False,
        **arguments: Any,
    ) -> agent_pb.ApplyToolResponse:
        """One tool call; the key is fresh unless given."""
        return await self.agents.ApplyTool(
            agent_pb.ApplyToolRequest(
                call_key=call_key or f"call-{uuid4()}",
                agent_id=agent_id,
                run_id=f"run-{UUID(int=3)}",
                step_id=f"step-{UUID(int=4)}",
                tool_name=tool_name,
                arguments_json=orjson.dumps(arguments).decode(),
                embedding=embedding,
                timezone=timezone,
                conversation_id=conversation_id,
                create_missing_block=create_missing_block,
            )
        )

    async def agent_with(self, **values: str) -> str:
        """A new agent with a block per label; returns its id."""
        agent_id = f"agent-{uuid4()}"
        drafts = [block_pb2.Block(id=f"block-{uuid7()}", label=label, value=value) for label, value in values.items()]
        request = agent_pb.CreateAgentMemoryRequest(agent_id=agent_id, blocks=drafts)
        await self.agents.CreateAgentMemory(request)
        return agent_id

    async def read(self, agent_id: str, conversation_id: str = "") -> dict[str, block_pb2.Block]:
        """An agent's blocks by label, in order, as one of its conversations sees them."""
        request = agent_pb.GetAgentMemoryRequest(agent_id=agent_id, conversation_id=conversation_id)
        return {block.label: block for block in (await self.agents.GetAgentMemory(request)).memory.blocks}

    async def isolate(
        self, agent_id: str, conversation_id: str, *labels: str, source: str = ""
    ) -> list[block_pb2.Block]:
        """A conversation's own copies of blocks."""
        request = agent_pb.IsolateBlocksRequest(
            agent_id=agent_id, conversation_id=conversation_id, labels=labels, source_conversation_id=source
        )
        return list((await self.agents.IsolateBlocks(request)).blocks)

    async def history(self, block_id: str) -> list[block_pb2.BlockVersion]:
        """A block's versions, newest first."""
        request = block_pb.ListBlockVersionsRequest(block_id=block_id, page=PageRequest(page_size=1_000))
        return list((await self.blocks.ListBlockVersions(request)).versions)

    async def value(self, agent_id: str, label: str) -> str:
        """Of an agent's block."""
        key = block_pb.BlockKey(agent_label=block_pb.AgentLabel(agent_id=agent_id, label=label))
        response = await self.blocks.GetBlock(block_pb.GetBlockRequest(key=key))
        return str(response.block.value)

    async def store(self, agent_id: str, *texts: str, embedding: str = EMBEDDING) -> list[Any]:
        """Passages by the API."""
        drafts = [passage_pb.PassageDraft(text=text) for text in texts]
        response = await self.passages.CreatePassages(
            passage_pb.CreatePassagesRequest(agent_id=agent_id, passages=drafts, embedding=embedding)
        )
        return list(response.passages)

    async def search(self, agent_id: str, query: str, **options: Any) -> list[Any]:
        """Hits of the API's search."""
        request = passage_pb.SearchPassagesRequest(agent_id=agent_id, query=query, **options)
        return list((await self.passages.SearchPassages(request)).hits)

    def worker(self) -> Worker:
        """A replica's worker, with its own id; not running."""
        indexing = VectorIndexing(self.pool, self.url, memory_mib=512)
        return make_worker(self.stores, self.embedder, SIGNER, indexing)

    async def statement_counts(self) -> tuple[int, int]:
        """Statements and transactions since the last reset, once the loop has delivered them."""
        await asyncio.sleep(0.01)
        return self.counter.statements, self.counter.transactions


@contextmanager
def fails(kind: type[LociError], reason: str = "") -> Iterator[list[LociError]]:
    """The RPC within fails with this class and reason."""
    caught: list[LociError] = []
    with pytest.raises(grpc.aio.AioRpcError) as error:
        yield caught
    caught.append(from_rpc(error.value))
    assert type(caught[0]) is kind
    assert reason in ("", caught[0].reason)


def unavailable() -> Unavailable:
    """What a llm gateway says whose provider is down."""
    return Unavailable("the provider is down", reason="LLM_UNAVAILABLE")


@asynccontextmanager
async def embeddings(folder: Path, models: ConceptModels) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a llm gateway that only embeds."""
    address = f"unix://{folder}/l{next(_numbers)}.sock"
    server = make_server(
        address,
        servicers=[(add_ModelServiceServicer_to_server, models)],
        service_names=["loci.llm.v1.ModelService"],
        audience="llm_gateway",
        verifier=VERIFIER,
    )
    await server.start()
    async with make_channel(address) as channel:
        yield channel
    await server.stop(0)


@asynccontextmanager
async def memory_service(
    url: str,
    folder: Path,
    *,
    llm_channel: grpc.aio.Channel,
    models: ConceptModels,
    search_seconds: float = 30.0,
    search_settings: SearchSettings = STANDARD,
) -> AsyncIterator[Memory]:
    """A memory service on a migrated database, and a caller of a tenant of its own."""
    counter = StatementCounter(keep_texts=True)
    engine = make_engine(url, counter=counter)
    address = f"unix://{folder}/m{next(_numbers)}.sock"
    async with await open_memory_pool(url, counter=counter) as pool:
        stores, embedder = postgres_stores(pool, engine), RepeatingEmbedder(llm_channel)
        server = build(
            listen=address,
            verifier=VERIFIER,
            stores=stores,
            embedder=embedder,
            search_seconds=search_seconds,
            search_settings=search_settings,
        )
        await server.start()
        caller = SIGNER.signed(CallContext(uuid4(), UUID(int=2), "user", ("memory", "llm_gateway")))
        async with make_channel(address) as channel:
            stubs = BlockServiceStub(channel), AgentMemoryServiceStub(channel), PassageServiceStub(channel)
            with use_context(caller):
                archives, folders = ArchiveServiceStub(channel), FolderServiceStub(channel)
                yield Memory(*stubs, counter, pool, models, caller, archives, stores, embedder, folders, url)
        await server.stop(0)
    await engine.dispose()
