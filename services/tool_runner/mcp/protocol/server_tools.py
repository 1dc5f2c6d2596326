"""From what a server lists to tools that agents can be given: names, descriptions, schemas. Pure.

A server is somebody else's program: each tool that cannot be offered is a problem with a reason, and the others are.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from services.common.core.schema_forms import unresolved_reference
from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.core.storable import storable
from services.tool_runner.mcp.protocol.input_schemas import modern

JsonObject = dict[str, Any]

MOST_TOOLS = 500
MOST_NAME = 48
MOST_DESCRIPTION = 4_000
_MOST_SCHEMA = 64 * 1024
_MOST_DEPTH = 24
_MOST_NODES = 5_000
_MOST_PROBLEM = 300
_MOST_SUFFIX = 20
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_IDS = UUID("6f0c5b0e-6b0a-5f5c-9d5e-6d6370746f6f")


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server, as it can be offered but for its name."""

    name: str  # as the server calls it
    description: str
    parameters: JsonObject
    parallel: bool  # whether it says that it changes nothing

    @property
    def as_listed(self) -> str:
        """Returns the server's own words: kept with the tool, to see later what changed there."""
        return json.dumps({**self.parameters, "description": self.description}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The tools a server lists. `problems`: (name, why) of those that cannot be offered."""

    offers: tuple[ServerTool, ...]
    problems: tuple[tuple[str, str], ...] = ()


def read(listed: Iterable[Any]) -> ServerTools:
    """Returns what is in a list of tools, as the server sent it; schemas are yet to be checked in the limited child."""
    offers: dict[str, ServerTool] = {}
    problems: list[tuple[str, str]] = []
    for number, item in enumerate(listed, start=1):
        name = _name_of(item, number)
        problem = _problem_of(item, name, offers)
        if problem:
            problems.append((name[:_MOST_PROBLEM], problem))
        elif len(offers) == MOST_TOOLS:
            problems.append((name[:_MOST_PROBLEM], f"it is left out: the server has more than {MOST_TOOLS} tools"))
        else:
            offers[name] = _offer(item, name)
    return ServerTools(tuple(offers.values()), tuple(problems[:MOST_TOOLS]))


def _name_of(item: Any, number: int) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return storable(name) if isinstance(name, str) and name else f"(tool {number})"


def _problem_of(item: Any, name: str, offers: Mapping[str, ServerTool]) -> str:
    """Returns why it cannot be offered; "" where it can."""
    if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
        return "it has no name"
    if len(name) > _MOST_PROBLEM:
        return f"its name is longer than {_MOST_PROBLEM} characters"
    if name in offers:
        return "the server lists another tool of this name"
    if problem := _unwieldy(item.get("inputSchema")):
        return problem
    execution = item.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        return "it runs as a task only (execution.taskSupport), and Loci calls tools without tasks"
    schema = modern(item.get("inputSchema"))
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "its inputSchema is not a JSON Schema of type object"
    if not isinstance(schema.get("properties") or {}, dict):
        return "the properties of its inputSchema are not an object"
    if reference := unresolved_reference(schema):
        return f"its inputSchema refers to {reference[:100]}, which it does not define"
    return ""


def _unwieldy(schema: Any) -> str:
    """Returns what makes a schema one that nobody can use; looked at without recursion."""
    left: list[tuple[Any, int]] = [(schema, 1)]
    nodes = 0
    while left:
        value, depth = left.pop()
        nodes += 1
        if depth > _MOST_DEPTH:
            return f"its inputSchema is nested deeper than {_MOST_DEPTH} levels"
        if nodes > _MOST_NODES:
            return f"its inputSchema has more than {_MOST_NODES} parts"
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                return f"its inputSchema refers to another document: {reference[:100]}"
            left += [(part, depth + 1) for part in value.values()]
        elif isinstance(value, list):
            left += [(part, depth + 1) for part in value]
    if len(json.dumps(schema)) > _MOST_SCHEMA:
        return f"its inputSchema has more than {_MOST_SCHEMA // 1024} KiB"
    return ""


def _offer(item: JsonObject, name: str) -> ServerTool:
    parameters = {"type": "object", "properties": {}, **modern(item.get("inputSchema"))}
    described = item.get("description") or item.get("title") or ""
    annotations = item.get("annotations")
    read_only = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
    return ServerTool(name, _description(described), storable(parameters), read_only)


def _description(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    clean: str = storable(_CONTROL.sub(" ", text)).strip()
    return clean if len(clean) <= MOST_DESCRIPTION else clean[: MOST_DESCRIPTION - 4].rstrip() + " ..."


def valid_name(name: str) -> str:
    """Returns a name that every provider takes: letters, digits, `_` and `-`, beginning with no digit or dash."""
    valid = _FOREIGN.sub("_", name).strip("_") or "tool"
    return (valid if valid[0].isalpha() or valid[0] == "_" else f"_{valid}")[:MOST_NAME]


def names(offers: Sequence[ServerTool], server: str, taken: Collection[str]) -> dict[str, str]:
    """Returns the tenant's name of each offer by the server's own; where it is taken, the server's name follows it."""
    used, chosen = set(taken), {}
    for offer in offers:
        chosen[offer.name] = _free(valid_name(offer.name), valid_name(server), used)
        used.add(chosen[offer.name])
    return chosen


def _free(name: str, server: str, used: Collection[str]) -> str:
    if name not in used:
        return name
    suffix = f"_{server[:_MOST_SUFFIX]}"
    number = 1
    while (named := name[: MOST_NAME - len(suffix)] + suffix) in used:
        number += 1
        suffix = f"_{server[:_MOST_SUFFIX]}_{number}"
    return named


def id_of(organization_id: UUID, server_id: UUID, name: str) -> UUID:
    """Returns the same for the same tool of the same server, always: agents that have it keep it when it comes back."""
    return uuid5(_IDS, f"{organization_id}/{server_id}/{name}")


def tag(server: str) -> str:
    """Returns the tag by which a server's tools are found."""
    return f"mcp:{server}"


def tool_of(offer: ServerTool, *, tool_id: UUID, name: str, server_id: UUID | None, server: str) -> Tool:
    """Returns a new row of the catalogue."""
    origin = {"server_id": f"mcp_server-{server_id}", "server_name": server}
    if name != offer.name:
        origin["tool_name"] = offer.name
    return Tool(
        id=tool_id,
        name=name,
        description=offer.description,
        tool_type=ToolType.EXTERNAL_MCP,
        # As the reference says it of every tool without a source of its own.
        source_type="python",
        source_code="",
        json_schema=schema_text(name, offer.description, offer.parameters),
        args_json_schema=offer.as_listed,
        tags=(tag(server),),
        enable_parallel_execution=offer.parallel,
        metadata=json.dumps({"mcp": origin}),
        mcp_server_id=server_id,
        mcp_tool_name=offer.name,
    )


def schema_text(name: str, description: str, parameters: JsonObject) -> str:
    """Returns `Tool.json_schema`."""
    return json.dumps({"name": name, "description": description, "parameters": parameters}, ensure_ascii=False)


def parsed(text: str) -> JsonObject:
    """Returns the server's own schema of a tool, from `ServerTool.as_listed`; {} for none."""
    schema: JsonObject = json.loads(text or "{}")
    return schema


def server_named_in(metadata: str) -> str:
    """Returns the name that the tool's server had when it was made; "" where the client wrote something else there."""
    origin = parsed(metadata).get("mcp")
    name = origin.get("server_name") if isinstance(origin, dict) else None
    return name if isinstance(name, str) else ""


def with_server_name(metadata: str, name: str) -> str:
    """Returns it with the server's new name, where its name was there."""
    if not server_named_in(metadata):
        return metadata
    value = parsed(metadata)
    return json.dumps({**value, "mcp": {**value["mcp"], "server_name": name}})
