"""Where passages are looked for. Pure."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class OfAgent:
    """The archives attached to an agent."""

    agent_id: UUID


@dataclass(frozen=True, slots=True)
class InArchive:
    """One archive."""

    archive_id: UUID


@dataclass(frozen=True, slots=True)
class InFolder:
    """The files of one folder."""

    folder_id: UUID


@dataclass(frozen=True, slots=True)
class FoldersOfAgent:
    """The files of all folders attached to an agent."""

    agent_id: UUID


@dataclass(frozen=True, slots=True)
class OfTenant:
    """All archives of the tenant; no folders."""


Place = OfAgent | InArchive | InFolder | FoldersOfAgent | OfTenant
