"""A built-in tool: a name, a type that says who runs it, and what the model reads."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from services.tool_runner.core.model import Tool, ToolType


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinTool:
    """`properties` are JSON Schemas by argument. The runner only lists it; it refuses to run it."""

    name: str
    tool_type: ToolType
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    parallel: bool = False

    def of_tenant(self, organization_id: UUID) -> Tool:
        """Returns the tool as this tenant has it. Its id is the same on every machine."""
        parameters = {"type": "object", "properties": self.properties, "required": list(self.required)}
        schema = {"name": self.name, "description": self.description, "parameters": parameters}
        return Tool(
            id=uuid5(organization_id, self.name),
            name=self.name,
            description=self.description,
            tool_type=self.tool_type,
            source_type="python",  # as the reference says it, though there is no source
            source_code="",
            json_schema=json.dumps(schema, ensure_ascii=False),
            tags=(self.tool_type.value,),
            enable_parallel_execution=self.parallel,
        )


def texts(description: str, *, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the schema of a list of strings."""
    item: dict[str, Any] = {"type": "string"} | ({"enum": list(choices)} if choices else {})
    return {"type": "array", "items": item, "description": description}
