"""The catalogue: from what a client sends to a tool, without ever running its source."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.errors import Aborted, AlreadyExists, FailedPrecondition, NotFound
from services.tool_runner.builtin import BUILTIN_TOOLS
from services.tool_runner.child_processes.source_parser import SourceParser
from services.tool_runner.core import network_policy, requirements
from services.tool_runner.core.model import JsonObject, Tool, ToolChanges, ToolType
from services.tool_runner.core.schemas.derive import SCRIPTS
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.storable import storable
from services.tool_runner.tools import rules
from services.tool_runner.tools.imports import import_tool
from services.tool_runner.tools.ports import ToolStore

_ATTEMPTS = 10
# "json" is what clients of the reference say of Python tools to which they give a schema.
_SOURCE_TYPES = frozenset({"python", "json"}) | SCRIPTS
_ABOUT_SCHEMA = frozenset({"BAD_NAME", "BAD_SCHEMA", "TOO_DEEP"})
_DERIVING = frozenset({"source_type", "source_code", "json_schema", "args_json_schema"})
# What follows from the source, or is derived with the schema.
_SPECIAL = frozenset({"json_schema", "args_json_schema", "description"})
_CHECKS = {
    "network": network_policy.parse,
    "pip_requirements": requirements.parse_pip,
    "npm_requirements": requirements.parse_npm,
}
# What a tool of that name was before, built-in or a server's, it is no longer.
_DERIVED = (*_SPECIAL, "name", "source_type", "tool_type", "takes_agent_state", "mcp_server_id", "mcp_tool_name")


class ToolCatalogue:
    """The tools of all tenants. Every method takes the tenant and the user from the verified call context."""

    def __init__(self, store: ToolStore, limited: SourceParser) -> None:
        self._store = store
        self._limited = limited
        self._ensured: set[UUID] = set()

    async def ensure(self, organization_id: UUID, user_id: UUID) -> None:
        """Makes sure of the built-in tools; once per tenant and process."""
        if organization_id not in self._ensured:
            await self._ensure(organization_id, user_id)
            self._ensured.add(organization_id)

    async def restore(self, organization_id: UUID, user_id: UUID) -> None:
        """Makes built-in tools that somebody deleted anew."""
        await self._ensure(organization_id, user_id)
        self._ensured.add(organization_id)

    async def ensure_base(self, organization_id: UUID, user_id: UUID) -> list[Tool]:
        """Returns the built-in tools, brought up to date; a tenant's own tool of such a name stays its own."""
        await self._ensure(organization_id, user_id)
        stored = await self._store.batch(organization_id, (), [tool.name for tool in BUILTIN_TOOLS])
        return sorted((tool for tool in stored if not rules.is_own(tool)), key=lambda tool: tool.name)

    async def _ensure(self, organization_id: UUID, user_id: UUID) -> None:
        tools = [tool.of_tenant(organization_id) for tool in BUILTIN_TOOLS]
        await self._store.ensure(organization_id, user_id, tools)

    async def get(self, organization_id: UUID, tool_id: UUID) -> Tool:
        """Raises NotFound (TOOL_NOT_FOUND)."""
        if tool := await self._store.find(organization_id, tool_id):
            return tool
        raise NotFound(f"Tool tool-{tool_id} not found", reason="TOOL_NOT_FOUND")

    async def batch(
        self, organization_id: UUID, ids: Sequence[UUID], names: Sequence[str]
    ) -> tuple[list[Tool], list[UUID], list[str]]:
        """Returns the tools in the order asked, ids first, each once; then the ids and the names that do not exist."""
        stored = await self._store.batch(organization_id, ids, names)
        by_id, by_name = {tool.id: tool for tool in stored}, {tool.name: tool for tool in stored}
        requested = [by_id.get(tool_id) for tool_id in ids] + [by_name.get(name) for name in names]
        tools = list({tool.id: tool for tool in requested if tool}.values())
        return (
            tools,
            [tool_id for tool_id in ids if tool_id not in by_id],
            [n for n in names if n not in by_name],
        )

    async def create(self, organization_id: UUID, user_id: UUID, tool_id: UUID, draft: ToolChanges) -> Tool:
        """Raises Refused (TOOL_SOURCE_INVALID, TOOL_SCHEMA_INVALID), AlreadyExists (TOOL_NAME_TAKEN)."""
        return await self._store.insert(organization_id, user_id, await self._new_tool(tool_id, draft))

    async def upsert(
        self,
        organization_id: UUID,
        user_id: UUID,
        tool_id: UUID,
        draft: ToolChanges,
        tool_type: ToolType = ToolType.CUSTOM,
    ) -> Tool:
        """Creates it, or replaces the one of that name, a built-in one too; raises as create."""
        derived = await self._new_tool(tool_id, draft, tool_type)
        for _ in range(_ATTEMPTS):
            present = await self._store.find_by_name(organization_id, derived.name)
            if present is None:
                with suppress(AlreadyExists):  # since we looked: it is there now
                    return await self._store.insert(organization_id, user_id, derived)
                continue
            if updated := await self._store.update(organization_id, user_id, _merge(present, derived, draft)):
                return updated
        raise _busy(derived.name)

    async def update(self, organization_id: UUID, user_id: UUID, tool_id: UUID, changes: ToolChanges) -> Tool:
        """Raises NotFound, FailedPrecondition (TOOL_READ_ONLY) and as create."""
        for _ in range(_ATTEMPTS):
            present = await self.get(organization_id, tool_id)
            if refused := rules.read_only(present, changes):
                raise _read_only(present, refused)
            changed = await self._with_changes(present, changes)
            if updated := await self._store.update(organization_id, user_id, changed):
                return updated
        raise _busy(f"tool-{tool_id}")

    async def delete(self, organization_id: UUID, tool_id: UUID) -> None:
        """Deletes it; a built-in one is back with the next `restore`. Raises NotFound."""
        await self._store.delete(organization_id, tool_id)

    async def import_tool(
        self, organization_id: UUID, user_id: UUID, tool_id: UUID, library: str, definition: str, draft: ToolChanges
    ) -> Tool:
        """Returns a tool of another library, by its own description (JSON); raises as upsert."""
        derived = import_tool(library, _object(definition, "definition"))
        return await self.upsert(organization_id, user_id, tool_id, derived.draft(draft), derived.tool_type)

    async def schema_of(self, source: str, source_type: str, args_json_schema: str) -> tuple[str, bool]:
        """Returns the schema that `create` would derive, and whether it takes `agent_state`; raises Refused."""
        draft = ToolChanges(source_code=source, source_type=source_type, args_json_schema=args_json_schema)
        tool = await self._new_tool(UUID(int=0), draft)
        return tool.json_schema, tool.takes_agent_state

    async def draft_tool(self, tool_id: UUID, draft: ToolChanges, function: str = "") -> Tool:
        """Returns the tool that `create` would store; nothing is. `function`: the name it must have. Raises Refused."""
        return await self._new_tool(tool_id, draft, name=function)

    async def _new_tool(
        self, tool_id: UUID, draft: ToolChanges, tool_type: ToolType = ToolType.CUSTOM, name: str = ""
    ) -> Tool:
        empty = Tool(id=tool_id, name=name, tool_type=tool_type)
        return await self._with_changes(empty, {"source_code": "", **draft})

    async def _with_changes(self, present: Tool, changes: ToolChanges) -> Tool:
        """Returns the tool with its changes, and with the schema that follows from them."""
        plain: dict[str, Any] = {name: value for name, value in changes.items() if name not in _SPECIAL}
        plain["args_json_schema"] = changes.get("args_json_schema", present.args_json_schema) or ""
        tool = replace(present, **plain)
        if not rules.is_own(tool):
            return _with_description(tool, changes)
        _check(tool, changes)
        description = changes.get("description")
        if not _DERIVING & changes.keys():
            return tool if description is None else replace(tool, description=description)
        # New source is to have the function by which the tool goes, or the schema's; a schema alone may rename it.
        schema_text, named = changes.get("json_schema"), present.name if "source_code" in changes else ""
        schema, takes_state = await self._derive(tool, schema_text, named, description or tool.description)
        if not schema_text and present.name:
            schema["name"] = present.name
        # A schema alone changes what the model reads, not what people do.
        first = not present.name or "source_code" in changes
        derived = str(schema.get("description", "")) if first else present.description
        return replace(
            tool,
            name=schema["name"],
            description=derived if description is None else description,
            json_schema=schema_text or _text_of(schema),
            takes_agent_state=takes_state,
        )

    async def _derive(self, tool: Tool, schema_text: str | None, named: str, text: str) -> tuple[JsonObject, bool]:
        """Returns the schema, and whether the function takes `agent_state`. `named`: the name that a tool has."""
        schema = _object(schema_text, "json_schema") if schema_text else None
        args_schema = _object(tool.args_json_schema, "args_json_schema") if tool.args_json_schema else None
        try:
            derived = await self._limited.derive(
                tool.source_code,
                source_type=tool.source_type,
                schema=schema,
                args_schema=args_schema,
                description=text,
                name=str(schema["name"]) if named and schema and "name" in schema else named,
            )
        except SchemaError as error:
            about_schema = schema_text is not None or error.reason in _ABOUT_SCHEMA
            reason = "TOOL_SCHEMA_INVALID" if about_schema else "TOOL_SOURCE_INVALID"
            raise Refused(reason, error.message) from None
        return storable(derived.schema), derived.takes_agent_state


def _with_description(tool: Tool, changes: ToolChanges) -> Tool:
    """Returns a tool of somebody else with the client's description, in its schema too: it has no other way there."""
    if (description := changes.get("description")) is None or description == tool.description:
        return tool
    schema = {**json.loads(tool.json_schema), "description": description}
    return replace(tool, description=description, json_schema=_text_of(schema))


def _merge(present: Tool, derived: Tool, draft: ToolChanges) -> Tool:
    """Returns what an upsert makes of a present tool: the new source and schema, and the settings that were given."""
    schema_text = {name: getattr(derived, name) for name in draft if name not in _SPECIAL}
    return replace(present, **schema_text | {name: getattr(derived, name) for name in _DERIVED})


def _check(tool: Tool, changes: ToolChanges) -> None:
    if tool.source_type not in _SOURCE_TYPES:
        known = "'python', 'typescript' or 'javascript'"
        raise Refused("TOOL_SOURCE_INVALID", f"Unknown tool source type: {tool.source_type!r}; tools are in {known}")
    if not tool.source_code.strip():
        raise Refused("TOOL_SOURCE_INVALID", "source_code is empty; it must define the tool's function")
    for name, check in _CHECKS.items():
        if name in changes:
            check(getattr(tool, name))


def _read_only(tool: Tool, names: list[str]) -> FailedPrecondition:
    return FailedPrecondition(rules.refusal(tool, names), reason="TOOL_READ_ONLY")


def _busy(what: str) -> Aborted:
    return Aborted(f"{what} is being changed by others; try again", reason="TOOL_CHANGED")


def _object(text: str, name: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("TOOL_SCHEMA_INVALID", f"{name} is not valid JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise Refused("TOOL_SCHEMA_INVALID", f"{name} must be a JSON object")
    return value


def _text_of(schema: JsonObject) -> str:
    return json.dumps(schema, ensure_ascii=False)
