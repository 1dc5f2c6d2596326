"""The agent service over gRPC with a real memory service behind it, and a model that does what it is told."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loci.agent.v1 import checkpoint_service_pb2 as wire
from loci.agent.v1 import message_pb2, message_service_pb2
from loci.agent.v1.checkpoint_pb2 import Checkpoint, Rewind
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.llm.v1 import chat_pb2, chat_service_pb2
from loci.memory.v1 import agent_memory_service_pb2, passage_service_pb2
from loci.memory.v1.agent_memory_service_pb2_grpc import AgentMemoryServiceStub
from loci.memory.v1.folder_service_pb2_grpc import FolderServiceStub
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from loci.tool.v1 import tool_pb2
from services.common.channel import make_channel
from services.common.context import Verifier
from services.common.engine import make_engine
from services.common.ids import to_public, uuid7
from services.memory.adapters.embedder import RepeatingEmbedder
from services.memory.bootstrap import build, open_memory_pool, postgres_stores
from tests.integration.agent.admin_world import AdminWorld, ScriptedPeers, admin_world
from tests.page_requests import paged

_NOTE = re.compile(r"^note (.+)$")
_CALL = re.compile(r"^call (\S+)(?: (.+))?$")
_BLOCK = re.compile(r"<human>.*?<value>\n(.*?)\n</value>", re.DOTALL)
_MEMORY_TYPE = tool_pb2.TOOL_TYPE_LETTA_CORE


@dataclass
class ObedientPeers(ScriptedPeers):
    """Told "note X and Y" it appends X, then Y to the block `human`; told "call T Q" it calls a tool with a query, or
    with arguments as JSON, and repeats what that returned; to all else it answers what the block says.
    """

    # What users had said by each call, and the prompt.
    heard: list[list[str]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def add_tool(self, name: str) -> str:
        tool_id = to_public("tool", uuid7())
        of_memory = name.startswith("core_memory")
        self.tools[tool_id] = tool_pb2.Tool(
            id=tool_id,
            name=name,
            return_char_limit=10_000,
            json_schema_json=orjson.dumps({"name": name, "parameters": {"type": "object", "properties": {}}}).decode(),
            tool_type=_MEMORY_TYPE if of_memory or name == "conversation_search" else tool_pb2.TOOL_TYPE_CUSTOM,
        )
        if name.endswith("_files"):
            self.tools[tool_id].tool_type = tool_pb2.TOOL_TYPE_LETTA_FILES_CORE
        return tool_id

    async def Generate(
        self, request: chat_service_pb2.GenerateRequest, context: Any
    ) -> chat_service_pb2.GenerateResponse:
        self._note("Generate")
        await self.may_answer.wait()
        users = [each for each in request.request.messages if each.role == chat_pb2.CHAT_ROLE_USER]
        self.heard.append([each.parts[-1].text.text for each in users])
        self.prompts.append(request.request.messages[0].parts[0].text.text)
        part = _part(request.request)
        reason = chat_pb2.FINISH_REASON_TOOL_CALLS if part.HasField("tool_call") else chat_pb2.FINISH_REASON_STOP
        message = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, parts=[part])
        usage = chat_pb2.Usage(prompt_tokens=10, completion_tokens=2)
        generation = chat_pb2.Generation(message=message, usage=usage, finish_reason=reason)
        return chat_service_pb2.GenerateResponse(generation=generation)


def _part(request: chat_service_pb2.GenerationRequest) -> chat_pb2.ChatPart:
    """What the model says next; how far it got is seen by the returns since the user spoke."""
    messages = list(request.messages)
    asked = max(place for place, each in enumerate(messages) if each.role == chat_pb2.CHAT_ROLE_USER)
    text, done = messages[asked].parts[-1].text.text, 0
    for each in messages[asked + 1 :]:
        done += each.role == chat_pb2.CHAT_ROLE_TOOL
    if (note := _NOTE.match(text)) and done < len(notes := note[1].split(" and ")):
        return _call("core_memory_append", label="human", content=notes[done])
    if (call := _CALL.match(text)) and not done:
        if (call[2] or "").startswith("{"):
            return _call(call[1], **orjson.loads(call[2]))
        return _call(call[1], **({"query": call[2]} if call[2] else {}))
    if done and messages[-1].role == chat_pb2.CHAT_ROLE_TOOL and text.startswith("call"):
        return _said(messages[-1].parts[0].tool_result.content[0].text.text)
    block = _BLOCK.search(messages[0].parts[0].text.text)
    return _said(f"I know: {block[1] if block else ''}")


def _said(text: str) -> chat_pb2.ChatPart:
    return chat_pb2.ChatPart(text=chat_pb2.TextPart(text=text))


def _call(name: str, **arguments: Any) -> chat_pb2.ChatPart:
    call = chat_pb2.ToolCallPart(id=f"call_{uuid7()}", name=name, arguments_json=orjson.dumps(arguments).decode())
    return chat_pb2.ChatPart(tool_call=call)


class TravelWorld:
    """An admin world whose memory is real."""

    def __init__(
        self,
        world: AdminWorld,
        peers: ObedientPeers,
        memory: AgentMemoryServiceStub,
        passages: PassageServiceStub,
        folders: FolderServiceStub,
        memory_pool: asyncpg.Pool,
    ) -> None:
        self.world = world
        self.peers = peers
        self.memory = memory
        self.passages = passages
        self.folders = folders
        self.memory_pool = memory_pool

    async def say(self, agent_id: str, text: str, conversation_id: str = "") -> str:
        """A turn; what the agent said last."""
        response = await self.world.say(agent_id, text, conversation_id)
        texts = [m.assistant_message.content for m in response.messages if m.HasField("assistant_message")]
        return texts[-1] if texts else ""

    async def approve(self, agent_id: str) -> None:
        """A turn that approves all that waits."""
        answer = message_pb2.Answer(decision=message_pb2.Decision(approve=True))
        turn = message_service_pb2.TurnRequest(agent_id=agent_id, messages=[message_pb2.InputMessage(answers=[answer])])
        await self.world.call(self.world.messages.SendMessages, message_service_pb2.SendMessagesRequest(turn=turn))

    async def values(self, agent_id: str, conversation_id: str = "") -> dict[str, str]:
        """What the blocks say."""
        request = agent_memory_service_pb2.GetAgentMemoryRequest(agent_id=agent_id, conversation_id=conversation_id)
        response = await self.world.call(self.memory.GetAgentMemory, request)
        return {block.label: block.value for block in response.memory.blocks}

    async def said(self, agent_id: str, conversation_id: str = "") -> list[str]:
        """What users said, oldest first."""
        request = message_service_pb2.ListMessagesRequest(
            agent_id=agent_id,
            conversation_id=conversation_id or agent_id,
            page=PageRequest(order=ORDER_ASCENDING, page_size=1_000),
        )
        page = await self.world.call(self.world.messages.ListMessages, request)
        return [m.user_message.content[0].text for m in page.messages if m.HasField("user_message")]

    async def checkpoints(self, agent_id: str, conversation_id: str = "", **fields: Any) -> list[Checkpoint]:
        """A page of them, newest first."""
        request = wire.ListCheckpointsRequest(**paged(agent_id=agent_id, conversation_id=conversation_id, **fields))
        page = await self.world.call(self.world.checkpoints.ListCheckpoints, request)
        return list(page.checkpoints)

    async def run_of(self, agent_id: str, label: str, conversation_id: str = "") -> str:
        """The checkpoint after the run that was told so."""
        found = await self.checkpoints(agent_id, conversation_id, page_size=1_000)
        return next(each.id for each in found if each.id.startswith("run-") and each.label == label)

    async def rewind(self, agent_id: str, checkpoint_id: str, conversation_id: str = "", **fields: Any) -> Rewind:
        """Goes back."""
        request = wire.RewindConversationRequest(
            agent_id=agent_id, conversation_id=conversation_id, checkpoint_id=checkpoint_id, **fields
        )
        made: Rewind = (await self.world.call(self.world.checkpoints.RewindConversation, request)).rewind
        return made

    async def fork_agent(self, agent_id: str, checkpoint_id: str, **fields: Any) -> wire.ForkAgentResponse:
        """A new agent."""
        request = wire.ForkAgentRequest(agent_id=agent_id, checkpoint_id=checkpoint_id, **fields)
        made: wire.ForkAgentResponse = await self.world.call(self.world.checkpoints.ForkAgent, request)
        return made

    async def store(self, agent_id: str, text: str) -> None:
        """A passage in the agent's archive, found by words alone."""
        draft = passage_service_pb2.PassageDraft(text=text)
        request = passage_service_pb2.CreatePassagesRequest(agent_id=agent_id, passages=[draft])
        await self.world.call(self.passages.CreatePassages, request)

    async def found(self, agent_id: str, query: str) -> list[str]:
        """Passages by the API's search."""
        request = passage_service_pb2.SearchPassagesRequest(agent_id=agent_id, query=query)
        return [hit.passage.text for hit in (await self.world.call(self.passages.SearchPassages, request)).hits]


@asynccontextmanager
async def travel_world(agent_url: str, memory_url: str, folder: Path) -> AsyncGenerator[TravelWorld]:
    """Both services on migrated databases, their sockets in `folder`."""
    key = Ed25519PrivateKey.generate()
    address, nobody = f"unix://{folder}/memory", f"unix://{folder}/nobody"
    engine = make_engine(memory_url)
    peers = ObedientPeers()  # type: ignore[abstract]
    peers.add_tool("core_memory_append")
    async with (
        await open_memory_pool(memory_url) as pool,
        make_channel(nobody) as no_embeddings,
        make_channel(address) as channel,
    ):
        server = build(
            listen=address,
            verifier=Verifier({"test": key.public_key()}),
            stores=postgres_stores(pool, engine),
            embedder=RepeatingEmbedder(no_embeddings),
            search_seconds=0.1,
        )
        await server.start()
        async with admin_world(agent_url, folder, key=key, peers=peers, memory=channel) as world:
            stubs = AgentMemoryServiceStub(channel), PassageServiceStub(channel), FolderServiceStub(channel)
            yield TravelWorld(world, peers, *stubs, pool)
        await server.stop(0)
    await engine.dispose()
