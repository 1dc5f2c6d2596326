"""Entities as an agent file has them, in its current form: ids are of the file, secrets are blank. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.tools.responses import tool_to_rest
from gateway.rest.convert import from_json, moment, to_rest
from loci.agent.v1 import agent_pb2, group_pb2
from loci.memory.v1 import block_pb2, folder_pb2
from loci.tool.v1 import mcp_pb2, tool_pb2
from services.common.core.file_limits import file_limits
from services.common.fields import enum_names

Json = dict[str, Any]
# The database revision of the form that is written, as readers know it.
REVISION = "1c28e167b74f"
_NULLS = (
    "model", "embedding", "context_window_limit", "embedding_chunk_size", "max_tokens", "max_reasoning_tokens",
    "reasoning", "from_template", "project", "memory_variables", "project_id", "template_id", "base_template_id",
    "identity_ids", "parallel_tool_calls",
)  # fmt: skip
# Members of an agent that the form has and that are never filled.
_BLANK: Json = {
    "memory_blocks": [],
    "tools": [],
    "folder_ids": None,
    "initial_message_sequence": None,
    "include_base_tools": False,
    "include_multi_agent_tools": False,
    "include_base_tool_rules": False,
    "include_default_source": False,
    **dict.fromkeys(_NULLS),
    "enable_reasoner": False,
    "template": False,
}
_BLOCK_BLANK = ("project_id", "template_id", "base_template_id", "deployment_id", "entity_id")


class FileIds:
    """Ids of the file, by ids of the services: in the order in which they are first mentioned."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._next: dict[str, int] = {}

    def of(self, entity_id: str) -> str:
        """Returns the id of an entity."""
        if entity_id not in self._given:
            prefix = entity_id.partition("-")[0]
            number = self._next.get(prefix, 0)
            self._next[prefix] = number + 1
            self._given[entity_id] = f"{prefix}-{number}"
        return self._given[entity_id]


def agent(
    one: agent_pb2.Agent,
    file_ids: FileIds,
    *,
    agent_type: str,
    llm_config: Json,
    embedding_config: Json | None,
    secrets: Sequence[str],
    messages: Sequence[Json],
    opened: Sequence[Json],
) -> Json:
    """Returns an agent. Beyond the form's own, its model settings and settings of compaction are told."""
    variables = dict.fromkeys(secrets, "")
    rest = to_rest(one, leave=frozenset(("blocks", "tools", "folders", "pending_approval")))
    same = (
        "name", "description", "system", "tags", "timezone", "response_format", "message_buffer_autoclear", "hidden",
    )  # fmt: skip
    files_open, file_chars = file_limits(
        one.context_window_limit, rest["max_files_open"], rest["per_file_view_window_char_limit"]
    )
    return {
        **_BLANK,
        **{name: rest[name] for name in same},
        "id": file_ids.of(one.id),
        "agent_type": agent_type,
        "enable_sleeptime": one.enable_sleeptime,
        "metadata": rest["metadata"] or None,
        "max_files_open": files_open,
        "per_file_view_window_char_limit": file_chars,
        "llm_config": llm_config,
        "embedding_config": embedding_config,
        "model_settings": rest["model_settings"] or None,
        "compaction_settings": _compaction(rest["compaction_settings"], one.model),
        "tool_ids": [file_ids.of(tool.id) for tool in one.tools],
        "source_ids": [file_ids.of(folder.id) for folder in one.folders],
        "block_ids": [file_ids.of(block.id) for block in one.blocks],
        "tool_rules": rest["tool_rules"] or [],
        "tool_exec_environment_variables": variables or None,
        "secrets": variables or None,
        "in_context_message_ids": [message["id"] for message in messages],
        "messages": list(messages),
        "files_agents": list(opened),
        "group_ids": [file_ids.of(one.managed_group.id)] if one.HasField("managed_group") else [],
    }


def _compaction(settings: Json | None, model: str) -> Json | None:
    """Without the agent's own model: who imports it with another has that one summarise."""
    if settings and settings.get("model") == model:
        return {name: value for name, value in settings.items() if name != "model"}
    return settings


def group(one: group_pb2.Group, file_ids: FileIds) -> Json:
    """Returns a group."""
    config: Json = {"manager_type": one.manager_type}
    if one.manager_agent_id:
        config["manager_agent_id"] = file_ids.of(one.manager_agent_id)
    return {
        "agent_ids": [file_ids.of(each) for each in one.agent_ids],
        "description": one.description,
        "manager_config": config | (from_json(one.manager_settings_json) or {}),
        "project_id": None,
        "shared_block_ids": [file_ids.of(each) for each in one.shared_block_ids],
        "hidden": one.hidden or None,
        "id": file_ids.of(one.id),
    }


def block(one: block_pb2.Block, file_ids: FileIds) -> Json:
    """Returns a block."""
    rest = block_to_rest(one)
    same = ("value", "limit", "template_name", "is_template", "preserve_on_migration", "label", "read_only")
    return {
        **{name: rest[name] for name in same},
        **dict.fromkeys(_BLOCK_BLANK),
        "description": rest["description"],
        "metadata": rest["metadata"],
        "hidden": rest["hidden"] or None,
        "tags": None,
        "id": file_ids.of(one.id),
    }


def tool(one: tool_pb2.Tool, file_ids: FileIds, servers: Mapping[str, mcp_pb2.McpServer]) -> Json:
    """Returns a tool."""
    rest = tool_to_rest(one)
    if one.mcp_server_id in servers:
        named = {"server_name": servers[one.mcp_server_id].name, "server_id": one.mcp_server_id}
        rest["metadata_"] = rest["metadata_"] | {"mcp": named}
    return rest | {"id": file_ids.of(one.id)}


def server(one: mcp_pb2.McpServer, file_ids: FileIds) -> Json:
    """Returns a server, without what it is let in by."""
    transport = one.transport
    kind = str(transport.WhichOneof("transport"))
    stdio = None
    if kind == "stdio":
        program = transport.stdio
        stdio = {"server_name": one.name, "type": "stdio", "command": program.command, "args": list(program.args)}
    return {
        "id": file_ids.of(one.id),
        "server_type": kind,
        "server_name": one.name,
        "server_url": None if stdio else getattr(transport, kind).server_url,
        "stdio_config": stdio,
        "metadata_": from_json(one.metadata_json) or {},
    }


def folder(one: folder_pb2.Folder, file_ids: FileIds, embedding_config: Json | None) -> Json:
    """Returns a folder."""
    return {
        "name": one.name,
        "description": one.description if one.HasField("description") else None,
        "instructions": one.instructions if one.HasField("instructions") else None,
        "metadata": from_json(one.metadata_json) or None,
        "embedding": None,
        "embedding_chunk_size": None,
        "embedding_config": embedding_config,
        "id": file_ids.of(one.id),
    }


def file(one: folder_pb2.File, file_ids: FileIds) -> Json:
    """Returns a file with its whole text."""
    status = enum_names(folder_pb2.FileStatus.DESCRIPTOR)[one.status]
    return {
        "source_id": file_ids.of(one.folder_id),
        "file_name": one.path,
        "original_file_name": one.original_name,
        "file_path": None,
        "file_type": one.media_type,
        "file_size": one.size,
        "file_creation_date": None,
        "file_last_modified_date": None,
        "processing_status": status,
        "error_message": one.error or None,
        "total_chunks": one.total_chunks,
        "chunks_embedded": one.chunks_embedded,
        "content": one.content if one.HasField("content") else None,
        "id": file_ids.of(one.id),
    }


def opened(one: folder_pb2.AgentFile, agent_id: str, file_ids: FileIds) -> Json:
    """Returns the state of a file in an agent."""
    return {
        "agent_id": file_ids.of(agent_id),
        "file_id": file_ids.of(one.file_id),
        "source_id": file_ids.of(one.folder_id),
        "file_name": one.file_name,
        "is_open": one.is_open,
        "visible_content": one.visible_content if one.HasField("visible_content") else None,
        "last_accessed_at": moment(one.last_accessed_at) if one.HasField("last_accessed_at") else None,
        "start_line": one.start_line or None,
        "end_line": one.end_line or None,
        "id": one.id,
    }
