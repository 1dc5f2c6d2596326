"""The catalogue: from what a client sends to a tool, without ever running its source."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.common.errors import Aborted, AlreadyExists, FailedPrecondition, NotFound
from services.tool_runner.builtin import BUILTIN_TOOLS
from services.tool_runner.limited import Limited
from services.tool_runner.model import (
    DEFAULT_RETURN_CHARS,
    MOST_RETURN_CHARS,
    JsonObject,
    Refused,
    Tool,
    ToolChanges,
    ToolType,
)
from services.tool_runner.ports import ToolStore
from services.tool_runner.schema import SchemaError
from services.tool_runner.texts import storable

_ATTEMPTS = 10
# "json" is what clients of the reference say of Python tools to which they give a schema.
_PYTHON = frozenset({"python", "json"})
_ABOUT_SCHEMA = frozenset({"BAD_NAME", "BAD_SCHEMA", "TOO_DEEP"})
_DERIVING = frozenset({"source_code", "json_schema", "args_json_schema"})


class Catalogue:
    """The tools of all tenants. Every method takes the tenant and the user from the verified call context."""

    def __init__(self, store: ToolStore, limited: Limited) -> None:
        self._store = store
        self._limited = limited
        self._ensured: set[UUID] = set()

    async def ensure(self, organization_id: UUID, user_id: UUID) -> None:
        """The built-in tools are there; once per tenant and process."""
        if organization_id not in self._ensured:
            tools = [tool.of_tenant(organization_id) for tool in BUILTIN_TOOLS]
            await self._store.ensure(organization_id, user_id, tools)
            self._ensured.add(organization_id)

    async def get(self, organization_id: UUID, tool_id: UUID) -> Tool:
        """Raises NotFound (TOOL_NOT_FOUND)."""
        if tool := await self._store.find(organization_id, tool_id):
            return tool
        raise NotFound(f"Tool tool-{tool_id} not found", reason="TOOL_NOT_FOUND")

    async def batch(
        self, organization_id: UUID, ids: Sequence[UUID], names: Sequence[str]
    ) -> tuple[list[Tool], list[UUID], list[str]]:
        """The tools in the order asked, ids first, each once; then the ids and the names that do not exist."""
        found = await self._store.batch(organization_id, ids, names)
        by_id, by_name = {tool.id: tool for tool in found}, {tool.name: tool for tool in found}
        asked = [by_id.get(tool_id) for tool_id in ids] + [by_name.get(name) for name in names]
        tools = list({tool.id: tool for tool in asked if tool}.values())
        return (
            tools,
            [tool_id for tool_id in ids if tool_id not in by_id],
            [n for n in names if n not in by_name],
        )

    async def create(self, organization_id: UUID, user_id: UUID, tool_id: UUID, draft: ToolChanges) -> Tool:
        """Raises Refused (TOOL_SOURCE_INVALID, TOOL_SCHEMA_INVALID), AlreadyExists (TOOL_NAME_TAKEN)."""
        return await self._store.insert(organization_id, user_id, await self._made(tool_id, draft))

    async def upsert(self, organization_id: UUID, user_id: UUID, tool_id: UUID, draft: ToolChanges) -> Tool:
        """Create it, or replace the one of that name; raises as create, and FailedPrecondition."""
        made = await self._made(tool_id, draft)
        for _ in range(_ATTEMPTS):
            present = await self._store.named(organization_id, made.name)
            if present is None:
                with suppress(AlreadyExists):  # since we looked: it is there now
                    return await self._store.insert(organization_id, user_id, made)
                continue
            _check_writable(present)
            if updated := await self._store.update(organization_id, user_id, _merged(present, made, draft)):
                return updated
        raise _busy(made.name)

    async def update(self, organization_id: UUID, user_id: UUID, tool_id: UUID, changes: ToolChanges) -> Tool:
        """Raises NotFound, FailedPrecondition (TOOL_READ_ONLY) and as create."""
        for _ in range(_ATTEMPTS):
            present = await self.get(organization_id, tool_id)
            _check_writable(present)
            changed = await self._changed(present, changes)
            if updated := await self._store.update(organization_id, user_id, changed):
                return updated
        raise _busy(f"tool-{tool_id}")

    async def delete(self, organization_id: UUID, tool_id: UUID) -> None:
        """Raises NotFound, FailedPrecondition (TOOL_READ_ONLY)."""
        _check_writable(await self.get(organization_id, tool_id))
        await self._store.delete(organization_id, tool_id)

    async def _made(self, tool_id: UUID, draft: ToolChanges) -> Tool:
        empty = Tool(
            id=tool_id,
            name="",
            description="",
            tool_type=ToolType.CUSTOM,
            source_type="python",
            source_code="",
            json_schema="",
            return_char_limit=DEFAULT_RETURN_CHARS,
        )
        return await self._changed(empty, {"source_code": "", **draft})

    async def _changed(self, present: Tool, changes: ToolChanges) -> Tool:
        """The tool with its changes, and with the schema that follows from them."""
        plain: dict[str, Any] = {name: value for name, value in changes.items() if name not in _SPECIAL}
        plain["args_json_schema"] = changes.get("args_json_schema", present.args_json_schema) or ""
        tool = replace(present, **plain)
        _check(tool)
        if _DERIVING & changes.keys():
            given = changes.get("json_schema")
            schema = await self._derived(tool, given)
            described = str(schema.get("description", ""))
            tool = replace(tool, name=schema["name"], description=described, json_schema=given or _text_of(schema))
        if (description := changes.get("description")) is not None:
            schema = {**json.loads(tool.json_schema), "description": description}
            tool = replace(tool, description=description, json_schema=_text_of(schema))
        return tool

    async def _derived(self, tool: Tool, given: str | None) -> JsonObject:
        schema = _object(given, "json_schema") if given else None
        args_schema = _object(tool.args_json_schema, "args_json_schema") if tool.args_json_schema else None
        try:
            derived = await self._limited.derive(tool.source_code, schema=schema, args_schema=args_schema)
        except SchemaError as error:
            about_schema = given is not None or error.reason in _ABOUT_SCHEMA
            reason = "TOOL_SCHEMA_INVALID" if about_schema else "TOOL_SOURCE_INVALID"
            raise Refused(reason, error.message) from None
        clean: JsonObject = storable(derived)
        return clean


_SPECIAL = frozenset({"json_schema", "args_json_schema", "description"})


def _merged(present: Tool, made: Tool, draft: ToolChanges) -> Tool:
    """What an upsert makes of a present tool: the new source and schema, and the settings that were given."""
    given = {name: getattr(made, name) for name in draft if name not in _SPECIAL}
    schemas = {name: getattr(made, name) for name in ("json_schema", "args_json_schema", "description")}
    return replace(present, **given, **schemas)


def _check(tool: Tool) -> None:
    if tool.source_type not in _PYTHON:
        raise Refused(
            "TOOL_SOURCE_INVALID", f"source_type {tool.source_type!r} cannot be run; tools are written in 'python'"
        )
    if not tool.source_code.strip():
        raise Refused("TOOL_SOURCE_INVALID", "source_code is empty; it must define the tool's function")
    if not 1 <= tool.return_char_limit <= MOST_RETURN_CHARS:
        raise Refused(
            "TOOL_INVALID", f"return_char_limit is {tool.return_char_limit}; it must be 1 to {MOST_RETURN_CHARS}"
        )


def _check_writable(tool: Tool) -> None:
    if tool.tool_type is not ToolType.CUSTOM:
        raise FailedPrecondition(f"{tool.name} is a built-in tool and cannot be changed", reason="TOOL_READ_ONLY")


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
