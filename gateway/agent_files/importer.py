"""Makes what an agent file tells of: parts first, then the agents with all that was said, in one transaction.

Where something fails, what was made before is removed again. What could not be taken along without harm (a built-in
tool that Loci does not have, a server that does not answer) is told as a warning.
"""

import logging
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.agent_files import drafts
from gateway.agent_files.checks import invalid_file
from gateway.agent_files.drafts import Options
from gateway.agent_files.messages import prompt_of, stored_messages
from gateway.agent_files.schema import AgentFile, FileAgent, FileFile, FileFolder, FileServer, FileTool
from gateway.resources.folders.uploads import store
from gateway.rest.client_streams import call_with_stream
from gateway.rest.services import Services
from loci.agent.v1 import transfer_service_pb2 as wire
from loci.llm.v1 import model_service_pb2
from loci.memory.v1 import block_service_pb2, folder_service_pb2
from loci.tool.v1 import mcp_service_pb2, tool_pb2, tool_service_pb2
from services.common.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    LociError,
    NotFound,
)
from services.common.ids import to_public, uuid7

logger = logging.getLogger(__name__)

_SECONDS = 3_600.0
_PIECE_BYTES = 512 * 1024
# Of one frame of messages; the service takes 1,000 and 16 MiB.
_FRAME_MESSAGES, _FRAME_BYTES = 500, 8 * 1024 * 1024
# Of a tool, what an import replaces and, where a later part fails, puts back.
_REPLACED = (
    "source_code", "json_schema_json", "args_json_schema_json", "description", "tags", "return_char_limit",
    "default_requires_approval", "enable_parallel_execution", "metadata_json", "pip_requirements_json",
    "npm_requirements_json", "network_json",
)  # fmt: skip


@dataclass
class ImportResult:
    """The agents and groups that came of a file, groups in its order."""

    agent_ids: list[str] = field(default_factory=list)
    group_ids: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def import_file(loci: Services, file: AgentFile, options: Options) -> ImportResult:
    """Returns all of it or nothing. Raises LociError."""
    async with AsyncExitStack() as undo:
        importing = _Import(loci, file, options, undo)
        await importing.run()
        # It stays.
        undo.pop_all()
    return importing.done


async def import_tools(loci: Services, file: AgentFile) -> None:
    """Makes the tools of a file, and replaces those that are there. Raises LociError."""
    async with AsyncExitStack() as undo:
        await _Import(loci, file, Options(), undo).tools()
        undo.pop_all()


class _Import:
    def __init__(self, loci: Services, file: AgentFile, options: Options, undo: AsyncExitStack) -> None:
        self._loci = loci
        self._peers = loci.peers
        self._file = file
        self._options = options
        self._undo = undo
        self._ids: dict[str, str] = {}
        self._tool_names: dict[str, str] = {}
        self.done = ImportResult()

    async def run(self) -> None:
        await self._check_models()
        await self._servers()
        await self.tools()
        for folder in self._file.sources:
            await self._folder(folder)
        for file in self._file.files:
            await self._file_of(file)
        for block in self._file.blocks:
            block_id = self._mint("block", block.id)
            draft = drafts.block_draft(block, block_id, self._options)
            with _named(f"{block.id} ({block.label[:60]})"):
                await self._peers.call(
                    self._peers.blocks.CreateBlock, block_service_pb2.CreateBlockRequest(block=draft)
                )
            self._later(
                self._peers.blocks.DeleteBlock,
                block_service_pb2.DeleteBlockRequest(block_id=block_id),
            )
        await self._agents()

    async def _check_models(self) -> None:
        """Checks the models that the request names; the file's own are taken as they are."""
        if self._options.model:
            request = model_service_pb2.GetModelRequest(handle=self._options.model)
            await self._peers.call(self._peers.models.GetModel, request)
        if self._options.embedding:
            rpc_request = model_service_pb2.GetEmbeddingModelRequest(handle=self._options.embedding)
            await self._peers.call(self._peers.models.GetEmbeddingModel, rpc_request)

    # Servers and tools ----------------------------------------------------------------------------------------------

    async def _servers(self) -> None:
        if not self._file.mcp_servers:
            return
        listed = await self._peers.call(self._peers.mcp_servers.ListMcpServers, mcp_service_pb2.ListMcpServersRequest())
        names = {server.name for server in listed.servers}
        for server in self._file.mcp_servers:
            # One that is there stays as it is: its address decides where its stored secrets are sent.
            if server.server_name not in names:
                await self._server(server)

    async def _server(self, server: FileServer) -> None:
        request = mcp_service_pb2.CreateMcpServerRequest(
            id=to_public("mcp_server", uuid7()),
            name=server.server_name,
            transport=drafts.transport(server),
            metadata_json=drafts.dump(server.metadata) if server.metadata else "",
        )
        try:
            await self._peers.call(self._peers.mcp_servers.CreateMcpServer, request, timeout=60.0)
        except (InvalidArgument, FailedPrecondition) as error:
            self._warn(f"the MCP server {server.server_name[:100]} was not made: {error.message}")
            return
        self._later(self._peers.mcp_servers.DeleteMcpServer, mcp_service_pb2.DeleteMcpServerRequest(id=request.id))

    async def tools(self) -> None:
        """Those of the file, by name."""
        tools = {drafts.tool_name(tool): tool for tool in self._file.tools}
        names = list(tools)
        stored: dict[str, tool_pb2.Tool] = {}
        for start in range(0, len(names), 1_000):
            request = tool_service_pb2.BatchGetToolsRequest(names=names[start : start + 1_000])
            response = await self._peers.call(self._peers.tools.BatchGetTools, request)
            stored |= {tool.name: tool for tool in response.tools}
        for name, tool in tools.items():
            tool_id = await self._tool(name, tool, stored.get(name))
            if tool_id is not None:
                self._tool_names[tool_id] = name
                for each in self._file.tools:
                    if drafts.tool_name(each) == name:
                        self._ids[each.id] = tool_id

    async def _tool(self, name: str, tool: FileTool, stored: tool_pb2.Tool | None) -> str | None:
        """Returns the id of the tool; None where there is none and none could be made."""
        own = not (drafts.is_builtin(tool) or drafts.is_mcp(tool))
        if stored is not None:
            of_tenant = stored.tool_type == tool_pb2.TOOL_TYPE_CUSTOM
            if own and of_tenant and tool.source_code and self._options.override_existing_tools:
                await self._replace(tool, stored)
            return stored.id
        if not own or not tool.source_code:
            kind = tool.tool_type or "custom"
            self._warn(f"the tool {name[:100]} ({kind[:40]}) is not here and was left out")
            return None
        tool_id = to_public("tool", uuid7())
        request = tool_service_pb2.CreateToolRequest(tool_id=tool_id, tool=drafts.tool_draft(tool))
        with _named(f"{tool.id} ({name[:60]})"):
            created = await self._peers.call(self._peers.tools.CreateTool, request)
        for warning in created.warnings:
            self._warn(f"the tool {name[:100]}: {warning}")
        self._later(self._peers.tools.DeleteTool, tool_service_pb2.DeleteToolRequest(tool_id=tool_id))
        return created.tool.id

    async def _replace(self, tool: FileTool, stored: tool_pb2.Tool) -> None:
        before = tool_pb2.Tool(
            **{name: getattr(stored, name) for name in _REPLACED if name != "tags"}, tags=stored.tags
        )
        draft = drafts.tool_draft(tool)
        if draft.source_type != drafts.language_of(stored.source_type):
            self._warn(f"the tool {stored.name} is written in {stored.source_type} here and was left as it is")
            return
        if drafts.same_code(draft, stored):
            draft.network_json = stored.network_json
        elif stored.network_json:
            # Hosts, and secrets for them, were given to the code that somebody had read.
            self._warn(f"the tool {stored.name} reaches nothing any more: its code came from a file; set its network")
        draft.default_requires_approval |= stored.default_requires_approval
        mask = FieldMask(paths=_REPLACED)
        changed = tool_service_pb2.UpdateToolRequest(tool_id=stored.id, tool=draft, update_mask=mask)
        with _named(f"{tool.id} ({stored.name})"):
            updated = await self._peers.call(self._peers.tools.UpdateTool, changed)
        for warning in updated.warnings:
            self._warn(f"the tool {stored.name}: {warning}")
        back = tool_service_pb2.UpdateToolRequest(tool_id=stored.id, tool=before, update_mask=mask)
        self._later(self._peers.tools.UpdateTool, back)

    # Folders --------------------------------------------------------------------------------------------------------

    async def _folder(self, folder: FileFolder) -> None:
        embedding = self._options.embedding or drafts.handle_of(folder.embedding_config, "embedding")
        default = self._loci.settings.default_embedding
        folder_id = self._mint("source", folder.id)
        names = (folder.name, f"{folder.name}_{uuid.uuid4().hex[:8]}")
        for name, last in zip(names, (False, True), strict=True):
            try:
                await self._create_folder(folder, folder_id, name, embedding, default)
            except AlreadyExists:
                if last:
                    raise
            else:
                break
        self._later(self._peers.folders.DeleteFolder, folder_service_pb2.DeleteFolderRequest(folder_id=folder_id))

    async def _create_folder(
        self, folder: FileFolder, folder_id: str, name: str, embedding: str | None, default: str
    ) -> None:
        draft = drafts.folder_draft(folder, folder_id, name, default if embedding is None else embedding)
        request = folder_service_pb2.CreateFolderRequest(folder=draft)
        with _named(folder.id):
            try:
                await self._peers.call(self._peers.folders.CreateFolder, request)
            except NotFound:
                if embedding in (None, default):
                    raise
                self._warn(f"the folder {name[:100]} is embedded by {default}: nobody here serves {embedding}")
                request.folder.embedding = default
                await self._peers.call(self._peers.folders.CreateFolder, request)

    async def _file_of(self, file: FileFile) -> None:
        if not file.content:
            self._warn(f"the file {file.name[:100]} has no text and was left out")
            return
        header = folder_service_pb2.UploadHeader(
            file_id=self._mint("file", file.id),
            folder_id=self._ids[file.source_id],
            name=file.name,
            media_type=file.file_type or "",
            is_text=True,
        )
        with _named(file.id):
            # It goes with its folder where a later part fails.
            await store(self._peers, header, _pieces(file.content.encode()))

    # Agents ---------------------------------------------------------------------------------------------------------

    async def _agents(self) -> None:
        agent_ids = [self._mint("agent", agent.id) for agent in self._file.agents]
        group_ids = [self._mint("group", group.id) for group in self._file.groups]
        requests = list(self._requests())
        # A refusal that comes while its request is still being sent may be lost. All or nothing, so it may be repeated.
        if not await self._are_imported(requests, agent_ids, last=False):
            await self._are_imported(requests, agent_ids, last=True)
        self.done.agent_ids, self.done.group_ids = agent_ids, group_ids

    async def _are_imported(
        self, requests: Sequence[wire.ImportAgentsRequest], agent_ids: Sequence[str], *, last: bool
    ) -> bool:
        """Returns whether they are there now, whatever the answer was; in doubt, raises LociError at the last try."""
        call = self._peers.transfers.ImportAgents(timeout=_SECONDS, wait_for_ready=True)
        try:
            await call_with_stream(call, requests, _nothing())
        except LociError as error:
            if isinstance(error, InvalidArgument | NotFound | FailedPrecondition):
                raise invalid_file(error.message) from None
            if await self._are_there(agent_ids):
                return True
            if isinstance(error, AlreadyExists):
                raise invalid_file(error.message) from None
            if last or isinstance(error, DeadlineExceeded):
                raise
            return False
        return True

    async def _are_there(self, agent_ids: Sequence[str]) -> bool:
        """Returns whether an import whose answer was lost was made after all."""
        request = wire.BatchFindAgentsRequest(agent_ids=agent_ids)
        response = await self._peers.call(self._peers.transfers.BatchFindAgents, request)
        return len(response.agent_ids) == len(agent_ids)

    def _requests(self) -> Iterator[wire.ImportAgentsRequest]:
        for agent in self._file.agents:
            yield wire.ImportAgentsRequest(agent=self._agent(agent))
        if not self._options.strip_messages:
            begun = self._file.created_at or datetime.now(UTC)
            for agent in self._file.agents:
                names = frozenset(self._tool_names[each] for each in self._tool_ids(agent))
                yield from _frames(self._ids[agent.id], stored_messages(agent, names, begun))
        for group in self._file.groups:
            config = dict(group.manager_config or {})
            if isinstance(manager := config.get("manager_agent_id"), str):
                config["manager_agent_id"] = self._ids[manager]
            shared = [self._ids[each] for each in group.shared_block_ids or () if each in self._ids]
            yield wire.ImportAgentsRequest(
                group=wire.ImportedGroup(
                    group_id=self._ids[group.id],
                    description=group.description or "",
                    agent_ids=[self._ids[each] for each in group.agent_ids],
                    manager_config_json=drafts.dump(config),
                    shared_block_ids=shared,
                    template_id=self._options.template_id or "",
                    base_template_id=self._options.base_template_id or "",
                    deployment_id=self._options.deployment_id or "",
                )
            )

    def _agent(self, agent: FileAgent) -> wire.ImportedAgent:
        of_template = self._options.template_id is not None
        return wire.ImportedAgent(
            include_base_tools=agent.include_base_tools is not False and not of_template,
            # Made out of a template it has texts of its own.
            prompt="" if of_template else prompt_of(agent),
            agent_id=self._ids[agent.id],
            agent=drafts.agent_draft(agent, self._options, self._tool_ids(agent)),
            block_ids=[self._ids[each] for each in dict.fromkeys(agent.block_ids or ())],
            # A folder without files is an id without an entity.
            folder_ids=[self._ids[each] for each in dict.fromkeys(agent.source_ids or ()) if each in self._ids],
        )

    def _tool_ids(self, agent: FileAgent) -> list[str]:
        return [self._ids[each] for each in dict.fromkeys(agent.tool_ids or ()) if each in self._ids]

    # ----------------------------------------------------------------------------------------------------------------

    def _mint(self, prefix: str, file_id: str) -> str:
        self._ids[file_id] = to_public(prefix, uuid7())
        return self._ids[file_id]

    def _warn(self, sentence: str) -> None:
        self.done.warnings.append(sentence)

    def _later(self, rpc: Any, request: Any) -> None:
        """Remembers how the last step is taken back, should a later one fail."""

        async def take_back() -> None:
            try:
                await self._peers.call(rpc, request)
            except LociError as error:
                logger.warning("an import that failed left something behind: %r", error)

        self._undo.push_async_callback(take_back)


class _named:
    """Says of which entity a service complains."""

    def __init__(self, entity: str) -> None:
        self._entity = entity

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, InvalidArgument | FailedPrecondition):
            raise invalid_file(f"{self._entity}: {error.message}") from None


def _frames(conversation_id: str, messages: Iterable[wire.StoredMessage]) -> Iterator[wire.ImportAgentsRequest]:
    frame: list[wire.StoredMessage] = []
    size = 0
    for message in messages:
        if frame and (len(frame) == _FRAME_MESSAGES or size + message.ByteSize() > _FRAME_BYTES):
            yield _said(conversation_id, frame)
            frame, size = [], 0
        frame.append(message)
        size += message.ByteSize()
    if frame:
        yield _said(conversation_id, frame)


def _said(conversation_id: str, messages: Sequence[wire.StoredMessage]) -> wire.ImportAgentsRequest:
    imported = wire.ImportedMessages(conversation_id=conversation_id, messages=messages)
    return wire.ImportAgentsRequest(messages=imported)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE_BYTES):
        yield data[start : start + _PIECE_BYTES]


async def _nothing() -> AsyncIterator[Any]:
    return
    yield
