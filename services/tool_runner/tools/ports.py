"""The database as the catalogue needs it."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.tool_runner.core.model import Tool
from services.tool_runner.tools.model import ToolFilter


class ToolStore(Protocol):
    """The catalogue. Every method takes the tenant first; servicers take it from the verified call context."""

    async def find(self, organization_id: UUID, tool_id: UUID) -> Tool | None:
        """Returns a tool by id."""
        ...

    async def find_by_name(self, organization_id: UUID, name: str) -> Tool | None:
        """Returns a tool by name."""
        ...

    async def batch(self, organization_id: UUID, ids: Sequence[UUID], names: Sequence[str]) -> list[Tool]:
        """Returns those that exist, each once, in no order."""
        ...

    async def insert(self, organization_id: UUID, user_id: UUID, tool: Tool) -> Tool:
        """Adds it; the tool that already has the id is returned as it is. Raises AlreadyExists (TOOL_NAME_TAKEN)."""
        ...

    async def update(self, organization_id: UUID, user_id: UUID, tool: Tool) -> Tool | None:
        """Replaces version `tool.version`; None where that is no longer the version. Raises AlreadyExists."""
        ...

    async def ensure(self, organization_id: UUID, user_id: UUID, tools: Sequence[Tool]) -> None:
        """Adds the built-in tools that are missing, brings those that changed up to date."""
        ...

    async def delete(self, organization_id: UUID, tool_id: UUID) -> None:
        """Removes it; raises NotFound (TOOL_NOT_FOUND)."""
        ...


class Lists(Protocol):
    """Pages of the catalogue."""

    async def tools(self, organization_id: UUID, filters: ToolFilter, page: Page) -> PageOf[Tool]:
        """Returns one page; raises NotFound for a cursor that names no tool, Refused for a bad token."""
        ...

    async def count(self, organization_id: UUID, filters: ToolFilter) -> int:
        """Returns how many the filter lets through."""
        ...
