"""Filters of a list of tools. Pure."""

from dataclasses import dataclass
from uuid import UUID

from services.tool_runner.core.model import ToolType

DEFAULT_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFilter:
    """Filters of a list; empty ones let everything through. `search` is a part of name or description."""

    name: str | None = None
    names: tuple[str, ...] = ()
    ids: tuple[UUID, ...] = ()
    types: tuple[ToolType, ...] = ()
    excluded_types: tuple[ToolType, ...] = ()
    search: str | None = None
