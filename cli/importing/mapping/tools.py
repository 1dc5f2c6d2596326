"""Tools, and where they run: MCP servers, sandboxes. No I/O."""

import json
import re
from collections.abc import Mapping

from cli.importing.values import Json, Row, Skip, as_list, as_object, as_text, dump, public_id, storable
from loci.tool.v1 import mcp_pb2, mcp_service_pb2, sandbox_config_service_pb2, tool_pb2, tool_service_pb2

OWN, CUSTOM = "letta_", "custom"
MCP = "external_mcp"
_MOST_CHARS = 1_000_000
_PYTHON = re.compile(r"^\s*(async\s+)?def\s+\w+\s*\(", re.MULTILINE)
_SCRIPT = re.compile(r"^\s*(export\s+)?(default\s+)?(async\s+)?function\b|=>|^\s*export\s", re.MULTILINE)


def is_builtin(row: Row) -> bool:
    """Returns whether the old server made the tool: this one has its own of that name."""
    return as_text(row["tool_type"]).startswith(OWN)


def is_mcp_tool(row: Row) -> bool:
    """Returns whether the tool is of an MCP server: those are read anew from it."""
    return row["tool_type"] == MCP or "mcp" in as_object(row["metadata_"])


def server_of(row: Row) -> str:
    """Returns the name of the MCP server of a tool."""
    return as_text(as_object(as_object(row["metadata_"]).get("mcp")).get("server_name"))


def tool(row: Row) -> tuple[tool_service_pb2.CreateToolRequest, list[str]] | Skip:
    """Returns a tool of the tenant's own source, and the changes it had to take."""
    source = storable(as_text(row["source_code"]))
    language = source_type(source, as_text(row["source_type"]))
    if not source.strip():
        return Skip("it has no source code")
    if not language:
        return Skip(f"its source code is neither Python nor TypeScript, and it says {row['source_type']!r}")
    schema, arguments = as_object(row["json_schema"]), as_object(row["args_json_schema"])
    draft = tool_pb2.Tool(
        source_type=language,
        source_code=source,
        json_schema_json=dump(schema) if schema else "",
        args_json_schema_json=dump(arguments) if arguments else "",
        description=row["description"] or None,
        tags=[tag for tag in as_list(row["tags"]) if isinstance(tag, str)],
        default_requires_approval=bool(row["default_requires_approval"]),
        enable_parallel_execution=bool(row["enable_parallel_execution"]),
        metadata_json=dump(as_object(row["metadata_"])),
        project_id=row["project_id"],
    )
    changes = list[str]()
    if type(chars := row["return_char_limit"]) is int:
        draft.return_char_limit = min(max(chars, 1), _MOST_CHARS)
        if draft.return_char_limit != chars:
            changes.append(f"its returns may have 1 to {_MOST_CHARS:,} characters, not {chars:,}")
    if row["tool_type"] != CUSTOM:
        changes.append(f"it was of type {row['tool_type']!r}; it is a custom tool now")
    if pip := packages(row["pip_requirements"]):
        draft.pip_requirements_json = dump(pip)
    if npm := packages(row["npm_requirements"]):
        draft.npm_requirements_json = dump(npm)
    return tool_service_pb2.CreateToolRequest(tool_id=public_id("tool", row["id"]), tool=draft), changes


def source_type(source: str, declared: str) -> str:
    """Returns the language by the text, because rows declare much Python as "json"; empty where neither tells."""
    if _PYTHON.search(source):
        return "python"
    if _SCRIPT.search(source):
        return "typescript"
    return declared if declared in ("python", "typescript") else ""


def packages(requirements: object) -> list[Json]:
    """Returns requirements with a name each."""
    entries = map(as_object, as_list(requirements))
    return [
        {"name": entry["name"], **({"version": entry["version"]} if entry.get("version") else {})}
        for entry in entries
        if as_text(entry.get("name"))
    ]


def mcp_server(row: Row, token: str, headers: Mapping[str, str]) -> mcp_service_pb2.CreateMcpServerRequest | Skip:
    """Returns an MCP server with its secrets in the clear; empty ones are left out."""
    transport = mcp_pb2.McpTransport()
    match row["server_type"]:
        case "streamable_http" | "sse" as kind:
            http = transport.streamable_http if kind == "streamable_http" else transport.sse
            http.server_url = as_text(row["server_url"])
            if token:
                http.auth_header = "Authorization"
                http.auth_token = token if token.startswith("Bearer ") else f"Bearer {token}"
            http.custom_headers.update(headers)
        case "stdio":
            config = as_object(row["stdio_config"])
            transport.stdio.command = as_text(config.get("command"))
            transport.stdio.args.extend(str(one) for one in as_list(config.get("args")))
            transport.stdio.env.update({name: str(value) for name, value in as_object(config.get("env")).items()})
        case kind:
            return Skip(f"there is no way to reach an MCP server that is called {kind!r}")
    return mcp_service_pb2.CreateMcpServerRequest(
        id=public_id("mcp_server", row["id"]),
        name=as_text(row["server_name"]),
        transport=transport,
        metadata_json=dump(as_object(row["metadata_"])),
    )


def headers_of(text: str) -> dict[str, str] | None:
    """Returns headers from their JSON object; None where it is none."""
    try:
        value = json.loads(text) if text else {}
    except json.JSONDecodeError:
        return None
    return {name: str(one) for name, one in value.items()} if isinstance(value, dict) else None


def sandbox_config(row: Row) -> sandbox_config_service_pb2.CreateSandboxConfigRequest:
    """Returns the settings of a kind of sandbox."""
    return sandbox_config_service_pb2.CreateSandboxConfigRequest(
        type=as_text(row["type"]).lower(), config_json=dump(as_object(row["config"]))
    )
