"""Source that is run without being in the catalogue: a tool of one call."""

import json
from typing import Protocol
from uuid import UUID, uuid5

from services.common.core.refusals import Refused
from services.tool_runner.core.model import Tool, ToolChanges

# Whatever arguments there are: the function itself says which it takes.
_ANY = {"type": "object", "properties": {}, "additionalProperties": True}


class Maker(Protocol):
    """Makes tools from drafts; see `tools.service.Catalogue`."""

    async def draft_tool(self, tool_id: UUID, draft: ToolChanges, function: str) -> Tool: ...


async def tool_of(maker: Maker, organization_id: UUID, draft: ToolChanges, function: str) -> Tool:
    """Returns the tool that the source is; `function`: the one to call, else the one that would be the tool.

    A function that is named needs no docstring and no types: its arguments are then as they come. Raises Refused as
    `Catalogue.create`.
    """
    tool_id = source_id(organization_id, draft, function)
    try:
        return await maker.draft_tool(tool_id, draft, function)
    except Refused:
        if not function:
            raise
    schema = json.dumps({"name": function, "description": "", "parameters": _ANY})
    return await maker.draft_tool(tool_id, {**draft, "json_schema": schema}, function)


def source_id(organization_id: UUID, draft: ToolChanges, function: str) -> UUID:
    """Returns the same for the same source."""
    language, source = draft.get("source_type", ""), draft.get("source_code", "")
    return uuid5(organization_id, f"{language}\n{function}\n{source}")
