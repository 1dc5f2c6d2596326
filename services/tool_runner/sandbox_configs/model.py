"""Environment variables and sandbox settings, as plain values. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

# What is shown instead of a value, and what a client writes back to keep it.
MASK = "********"


class Scope(StrEnum):
    """The kind of a variable's owner; the values are stored."""

    SANDBOX = "sandbox"
    TOOL = "tool"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Owner:
    """An agent, a tool, or the settings of a kind of sandbox."""

    scope: Scope
    id: UUID


@dataclass(frozen=True, slots=True)
class VariableSettings:
    """All that a client sets; see loci.tool.v1.Variable. The MASK as `value` keeps the one that is there."""

    key: str = ""
    value: str = field(default="", repr=False)
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable as stored, without its value. `size`: bytes of the sealed value."""

    id: UUID
    owner: Owner
    key: str
    size: int
    description: str
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SealedValue:
    """A variable's value, sealed for its id."""

    id: UUID
    key: str
    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredVariable:
    """A variable as it is to be stored; `value` is sealed for the id, None keeps what is there."""

    id: UUID
    key: str
    value: bytes | None = field(repr=False)
    description: str = ""


# From the ids of an owner's variables, by key, to those it shall have.
Rewrite = Callable[[Mapping[str, UUID]], Sequence[StoredVariable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """A tenant's settings of one kind of sandbox. `config`: JSON text, as the client gave it."""

    id: UUID
    type: str
    config: str
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
