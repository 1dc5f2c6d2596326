"""Entities of an agent file -> what the services take. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.agent_files.checks import invalid_file
from gateway.agent_files.schema import FileAgent, FileBlock, FileFolder, FileServer, FileTool
from gateway.rest.convert import from_json
from loci.agent.v1 import agent_pb2
from loci.memory.v1 import block_pb2, folder_pb2
from loci.tool.v1 import mcp_pb2, tool_pb2
from services.common.fields import enum_numbers

Json = dict[str, Any]
LANGUAGES = ("python", "typescript", "javascript")
# What other servers put into the schemas of the older agent types; here the loop does.
_HEARTBEAT = "request_heartbeat"
_SCHEMA_MEMBERS = ("name", "description", "parameters", "strict")
_LONGEST_NAME = 256


@dataclass(frozen=True)
class Options:
    """How a file is imported. `secrets`: by name, for names that the file has.

    The rest is of templates: what the agents are made from, and what they get besides.
    """

    name: str | None = None
    append_copy_suffix: bool = True
    override_existing_tools: bool = True
    strip_messages: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str | None = None
    embedding: str | None = None
    project_id: str | None = None
    tags: tuple[str, ...] = ()
    identity_ids: tuple[str, ...] = ()
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None


def agent_draft(agent: FileAgent, options: Options, tool_ids: Iterable[str]) -> agent_pb2.Agent:
    """Returns the settings of an agent."""
    fields: Json = {
        "name": _name(agent.name, options),
        "description": agent.description,
        "system": agent.system,
        "agent_type": enum_numbers(agent_pb2.AgentType.DESCRIPTOR)[agent.agent_type or "memgpt_agent"],
        "timezone": agent.timezone,
        "hidden": agent.hidden,
        "message_buffer_autoclear": agent.message_buffer_autoclear,
        "max_files_open": agent.max_files_open,
        "per_file_view_window_char_limit": agent.per_file_view_window_char_limit,
        "enable_sleeptime": agent.enable_sleeptime,
        "project_id": options.project_id,
        "template_id": options.template_id,
        "base_template_id": options.base_template_id,
        "deployment_id": options.deployment_id,
        "entity_id": agent.id if options.deployment_id else None,
        "embedding": options.embedding or agent.embedding or handle_of(agent.embedding_config, "embedding"),
        **_model(agent, options),
    }
    for name in ("metadata", "response_format", "compaction_settings"):
        if value := getattr(agent, name):
            fields[f"{name}_json"] = dump(value)
    if agent.tool_rules:
        fields["tool_rules_json"] = dump(agent.tool_rules)
    return agent_pb2.Agent(
        tool_ids=tool_ids,
        tags=[*(agent.tags or ()), *options.tags],
        identity_ids=options.identity_ids,
        secrets={name: options.secrets.get(name, "") for name in agent.secret_names},
        **{name: value for name, value in fields.items() if value is not None},
    )


def _name(given: str | None, options: Options) -> str | None:
    if options.name:
        return options.name
    if not given:
        return None
    suffix = "_copy" if options.append_copy_suffix else ""
    return given[: _LONGEST_NAME - len(suffix)] + suffix


def _model(agent: FileAgent, options: Options) -> Json:
    """Returns the model and what goes with it; another model than the file's brings its own window and settings."""
    if options.model:
        return {"model": options.model}
    config = agent.llm_config or {}
    fields: Json = {"model": agent.model or handle_of(config, "model")}
    window = config.get("context_window")
    if isinstance(window, int) and not isinstance(window, bool) and 0 < window < 2**31:
        fields["context_window_limit"] = window
    settings = agent.model_settings
    if settings is None:
        sampling = {"temperature": config.get("temperature"), "max_output_tokens": config.get("max_tokens")}
        settings = {name: value for name, value in sampling.items() if value is not None}
    if settings:
        fields["model_settings_json"] = dump(settings)
    return fields


def handle_of(config: Json | None, kind: str) -> str | None:
    """Returns the handle in an llm_config or embedding_config; None without one."""
    if not config:
        return None
    if isinstance(handle := config.get("handle"), str) and "/" in handle:
        return handle
    prefix = "model" if kind == "model" else "embedding"
    provider = config.get("provider_name") or config.get(f"{prefix}_endpoint_type")
    name = config.get("model" if kind == "model" else "embedding_model")
    return f"{provider}/{name}" if isinstance(provider, str) and isinstance(name, str) and name else None


def block_draft(block: FileBlock, block_id: str, options: Options) -> block_pb2.Block:
    """Returns a block. Other servers do not enforce its limit: a longer value brings its own."""
    limit = None if block.limit is None else max(block.limit, len(block.value))
    fields: Json = {
        "limit": limit,
        "description": block.description,
        "read_only": block.read_only,
        "hidden": block.hidden,
        "template_name": block.template_name,
        "is_template": block.is_template,
        "preserve_on_migration": block.preserve_on_migration,
        "metadata_json": dump(block.metadata) if block.metadata else None,
        "project_id": options.project_id,
        "template_id": options.template_id,
        "base_template_id": options.base_template_id,
        "deployment_id": options.deployment_id,
        "entity_id": block.id if options.deployment_id else None,
    }
    return block_pb2.Block(
        id=block_id,
        label=block.label,
        value=block.value,
        tags=block.tags or (),
        **{name: value for name, value in fields.items() if value is not None},
    )


def folder_draft(folder: FileFolder, folder_id: str, name: str, embedding: str) -> folder_pb2.Folder:
    """Returns a folder."""
    return folder_pb2.Folder(
        id=folder_id,
        name=name,
        description=folder.description,
        instructions=folder.instructions,
        metadata_json=dump(folder.metadata) if folder.metadata else "",
        embedding=embedding,
    )


def tool_name(tool: FileTool) -> str:
    """Returns its name. Raises InvalidArgument (AGENT_FILE_INVALID)."""
    name = tool.name or (tool.json_schema or {}).get("name")
    if not isinstance(name, str) or not name:
        raise invalid_file(f"{tool.id} has no name")
    return name


def is_builtin(tool: FileTool) -> bool:
    """Returns whether the server brings it: it is found by its name."""
    return (tool.tool_type or "").startswith("letta_")


def is_mcp(tool: FileTool) -> bool:
    """Returns whether a server of the Model Context Protocol brings it."""
    return tool.tool_type == "external_mcp"


def server_name(tool: FileTool) -> str:
    """Returns the server that brings it; empty where the file does not say."""
    named = ((tool.metadata or {}).get("mcp") or {}) if tool.metadata else {}
    if isinstance(named, dict) and isinstance(named.get("server_name"), str):
        return str(named["server_name"])
    return next((tag.removeprefix("mcp:") for tag in tool.tags or () if tag.startswith("mcp:")), "")


def language_of(source_type: str | None) -> str:
    """Returns the language of a tool's source; Python is also found under "json"."""
    return source_type if source_type in LANGUAGES else "python"


def tool_draft(tool: FileTool) -> tool_pb2.Tool:
    """Returns a tool with source of its own."""
    source = tool.source_code or ""
    language = language_of(tool.source_type)
    fields: Json = {
        "json_schema_json": dump(_schema(tool, source)) if tool.json_schema else None,
        "args_json_schema_json": dump(tool.args_json_schema) if tool.args_json_schema else None,
        "description": tool.description or None,
        "return_char_limit": tool.return_char_limit,
        "default_requires_approval": tool.default_requires_approval,
        "enable_parallel_execution": tool.enable_parallel_execution,
        "metadata_json": dump(tool.metadata) if tool.metadata else None,
        "pip_requirements_json": dump(tool.pip_requirements) if tool.pip_requirements else None,
        "npm_requirements_json": dump(tool.npm_requirements) if tool.npm_requirements else None,
    }
    return tool_pb2.Tool(
        source_type=language,
        source_code=source,
        tags=tool.tags or (),
        **{name: value for name, value in fields.items() if value is not None},
    )


def same_code(one: tool_pb2.Tool, other: tool_pb2.Tool) -> bool:
    """Returns whether two tools run the same code, packages included."""
    packages = ("pip_requirements_json", "npm_requirements_json")
    return one.source_code == other.source_code and all(
        (from_json(getattr(one, name)) or []) == (from_json(getattr(other, name)) or []) for name in packages
    )


def _schema(tool: FileTool, source: str) -> Json:
    """Without what other servers put into it for the model."""
    schema = {name: value for name, value in (tool.json_schema or {}).items() if name in _SCHEMA_MEMBERS}
    parameters = schema.get("parameters")
    if _HEARTBEAT in source or not isinstance(parameters, dict):
        return schema
    properties, required = parameters.get("properties"), parameters.get("required")
    if isinstance(properties, dict):
        properties = {name: value for name, value in properties.items() if name != _HEARTBEAT}
        parameters = parameters | {"properties": properties}
    if isinstance(required, list):
        parameters = parameters | {"required": [name for name in required if name != _HEARTBEAT]}
    return schema | {"parameters": parameters}


def transport(server: FileServer) -> mcp_pb2.McpTransport:
    """Returns how a server is reached; the file has no secrets. Raises InvalidArgument (AGENT_FILE_INVALID)."""
    if server.server_type == "stdio":
        config = server.stdio_config or {}
        arguments = config.get("args") or []
        if not isinstance(config.get("command"), str) or not isinstance(arguments, list):
            raise invalid_file(f"{server.id}.stdio_config has no command")
        program = mcp_pb2.StdioMcpTransport(command=config["command"], args=map(str, arguments))
        return mcp_pb2.McpTransport(stdio=program)
    http = mcp_pb2.HttpMcpTransport(server_url=server.server_url or "")
    if server.server_type == "sse":
        return mcp_pb2.McpTransport(sse=http)
    if server.server_type == "streamable_http":
        return mcp_pb2.McpTransport(streamable_http=http)
    raise invalid_file(
        f"{server.id}.server_type is {server.server_type[:40]!r}; it must be stdio, sse or streamable_http"
    )


def dump(value: Any) -> str:
    """JSON text."""
    return orjson.dumps(value).decode()
