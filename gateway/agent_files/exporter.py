"""Reads what an agent is made of, and puts it into the current form of an agent file."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from gateway.agent_files import writer
from gateway.agent_files.messages import MessageWriter
from gateway.peers import stream
from gateway.resources.agents import responses as agent_state
from gateway.resources.agents.responses import Models
from gateway.rest.services import Services
from loci.agent.v1 import agent_pb2, agent_service_pb2, message_pb2, message_service_pb2
from loci.agent.v1 import transfer_service_pb2 as wire
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.memory.v1 import folder_pb2, folder_service_pb2
from loci.tool.v1 import mcp_pb2, mcp_service_pb2, sandbox_config_service_pb2, tool_pb2
from services.common.fields import enum_names

Json = dict[str, Any]
_SECONDS = 600.0
_FILES_PER_PAGE = 20


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export. `conversation_id`: whose messages, instead of the default conversation's."""

    conversation_id: str | None = None
    scrub_messages: bool = False
    skills: Sequence[Json] = ()


@dataclass
class _Whole:
    """An agent and its parts, as the services gave them."""

    agent: agent_pb2.Agent
    messages: list[wire.StoredMessage] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    opened: list[folder_pb2.AgentFile] = field(default_factory=list)


async def export(loci: Services, agent_id: str, options: ExportOptions) -> Json:
    """Returns the document. Raises LociError."""
    first = await _agent(loci, agent_id)
    agents = [await _whole(loci, first, options)]
    group = first.managed_group if first.HasField("managed_group") else None
    of_member = ExportOptions(scrub_messages=options.scrub_messages)
    for member_id in () if group is None else group.agent_ids:
        if member_id != agent_id:
            agents.append(await _whole(loci, await _agent(loci, member_id), of_member))
    models = await loci.catalogue.models()
    folders = {folder.id: folder for each in agents for folder in each.agent.folders}
    files = {folder_id: await _files(loci, folder_id) for folder_id in folders}
    tools = {tool.id: tool for each in agents for tool in each.agent.tools}
    servers = await _servers(loci, tools.values())
    file_ids = writer.FileIds()
    return {
        "agents": [_agent_json(each, file_ids, models) for each in agents],
        "groups": [] if group is None else [writer.group(group, file_ids)],
        "blocks": _each(agents, "blocks", lambda block: writer.block(block, file_ids)),
        "files": [writer.file(file, file_ids) for of_folder in files.values() for file in of_folder],
        "sources": [
            writer.folder(folder, file_ids, agent_state.embedding_config(folder.embedding, models))
            for folder in folders.values()
            if files[folder.id]
        ],
        "tools": [writer.tool(tool, file_ids, servers) for tool in tools.values()],
        "mcp_servers": [writer.server(server, file_ids) for server in servers.values()],
        "skills": list(options.skills),
        "metadata": {"revision_id": writer.REVISION},
        "created_at": datetime.now(UTC).isoformat(),
    }


def _each(agents: Iterable[_Whole], relation: str, to_json: Any) -> list[Json]:
    """Returns the entities of a relation, each once."""
    entities = {entity.id: entity for each in agents for entity in getattr(each.agent, relation)}
    return [to_json(entity) for entity in entities.values()]


def _agent_json(each: _Whole, file_ids: writer.FileIds, models: Models) -> Json:
    agent = each.agent
    llm_config = agent_state.llm_config(agent, models.chat.get(agent.model))
    agent_type = str(enum_names(agent_pb2.AgentType.DESCRIPTOR)[agent.agent_type])
    history = MessageWriter(file_ids.of(agent.id), agent_type, llm_config["model"], ZoneInfo(agent.timezone or "UTC"))
    messages = [history.message(message, file_ids.of(message.id)) for message in each.messages]
    return writer.agent(
        agent,
        file_ids,
        agent_type=agent_type,
        llm_config=llm_config,
        embedding_config=agent_state.embedding_config(agent.embedding, models),
        secrets=each.secrets,
        messages=messages,
        opened=[writer.opened(one, agent.id, file_ids) for one in each.opened],
    )


# What the services have ---------------------------------------------------------------------------------------------


async def _agent(loci: Services, agent_id: str) -> agent_pb2.Agent:
    request = agent_service_pb2.GetAgentRequest(agent_id=agent_id)
    return (await loci.peers.call(loci.peers.agents.GetAgent, request)).agent


async def _whole(loci: Services, agent: agent_pb2.Agent, options: ExportOptions) -> _Whole:
    messages, secrets, opened = await asyncio.gather(
        _messages(loci, agent.id, options), _secrets(loci, agent.id), _opened(loci, agent)
    )
    return _Whole(agent, messages, secrets, opened)


async def _messages(loci: Services, agent_id: str, options: ExportOptions) -> list[wire.StoredMessage]:
    if options.scrub_messages:
        return []
    request = wire.StreamStoredMessagesRequest(agent_id=agent_id, conversation_id=options.conversation_id or "")
    call = loci.peers.transfers.StreamStoredMessages(request, timeout=_SECONDS, wait_for_ready=True)
    async with stream(call) as frames:
        messages = [message async for frame in frames for message in frame.messages]
    return [await _system_message(loci, request), *messages]


async def _system_message(loci: Services, of: wire.StreamStoredMessagesRequest) -> wire.StoredMessage:
    """Returns the compiled prompt: it is stored nowhere, and stands first in the form."""
    request = message_service_pb2.ListMessagesRequest(
        agent_id=of.agent_id,
        conversation_id=of.conversation_id or of.agent_id,
        page=PageRequest(page_size=1, order=ORDER_ASCENDING),
    )
    first = (await loci.peers.call(loci.peers.messages.ListMessages, request)).messages[0]
    return wire.StoredMessage(
        id=first.id,
        role=message_pb2.MESSAGE_ROLE_SYSTEM,
        parts=[wire.StoredPart(text=wire.StoredText(text=first.system_message.content))],
        created_at=first.date,
        in_context=True,
    )


async def _secrets(loci: Services, agent_id: str) -> list[str]:
    """Their names: no value leaves."""
    owners = [sandbox_config_service_pb2.Owner(agent_id=agent_id)]
    request = sandbox_config_service_pb2.BatchGetEnvironmentsRequest(owners=owners)
    response = await loci.peers.call(loci.peers.sandbox_configs.BatchGetEnvironments, request)
    return [variable.key for variable in response.variables]


async def _opened(loci: Services, agent: agent_pb2.Agent) -> list[folder_pb2.AgentFile]:
    files: list[folder_pb2.AgentFile] = []
    request = folder_service_pb2.ListAgentFilesRequest(agent_id=agent.id, page=PageRequest(page_size=1_000))
    while agent.folders:
        page = await loci.peers.call(loci.peers.folders.ListAgentFiles, request)
        files += page.files
        request.page.page_token = page.next_page_token
        if not page.next_page_token:
            break
    return files


async def _files(loci: Services, folder_id: str) -> list[folder_pb2.File]:
    files: list[folder_pb2.File] = []
    page = PageRequest(page_size=_FILES_PER_PAGE)
    request = folder_service_pb2.ListFilesRequest(folder_id=folder_id, page=page, include_content=True)
    while True:
        response = await loci.peers.call(loci.peers.folders.ListFiles, request)
        files += response.files
        request.page.page_token = response.next_page_token
        if not response.next_page_token:
            return files


async def _servers(loci: Services, tools: Iterable[tool_pb2.Tool]) -> dict[str, mcp_pb2.McpServer]:
    """Returns the servers that the tools come from, by id."""
    server_ids = {tool.mcp_server_id for tool in tools if tool.mcp_server_id}
    if not server_ids:
        return {}
    request = mcp_service_pb2.ListMcpServersRequest()
    listed = await loci.peers.call(loci.peers.mcp_servers.ListMcpServers, request)
    return {server.id: server for server in listed.servers if server.id in server_ids}
