"""Blocks and their versions: plain values, and what may be stored."""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import IntEnum
from typing import TypeVar
from uuid import UUID

from services.common.core.paging import PageBy, invalid_token
from services.common.core.refusals import Refused
from services.common.core.storable import storable_json, storable_name
from services.memory.core.rules import JsonObject, unique_tags

DEFAULT_LIMIT = 100_000
LONGEST_LABEL = 100
LARGEST_LIMIT = 10_000_000


class Operation(IntEnum):
    """The origin of a version of a block; the numbers are those of BlockOperation in the proto, and stored."""

    CREATE = 1
    SET = 2
    APPEND = 3
    INSERT = 4
    REPLACE = 5
    RESTORE = 6
    REWRITE = 7
    PATCH = 8
    UNDO = 9
    REDO = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSettings:
    """The fields of a block that a client may set; see loci.memory.v1.Block."""

    label: str = ""
    value: str = ""
    limit: int = DEFAULT_LIMIT
    description: str | None = None
    read_only: bool = False
    hidden: bool | None = None
    metadata: JsonObject = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    template_name: str | None = None
    is_template: bool = False
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    entity_id: str | None = None
    preserve_on_migration: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDraft(BlockSettings):
    """A block to create. `id` is None where the service mints it."""

    id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(BlockSettings):
    """A block as stored."""

    id: UUID
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockVersion:
    """One row of a block's history; the ids of agent, run, step and call are None for a change by the API.

    restored_version: whose value this one brought back, None for all but RESTORE, UNDO and REDO.
    redo_version: see core/editing/undo.py.
    """

    block_id: UUID
    version: int
    label: str
    value: str
    limit: int
    description: str | None
    metadata: JsonObject
    operation: Operation
    actor_id: UUID
    agent_id: UUID | None
    run_id: UUID | None
    step_id: UUID | None
    call_key: str | None
    created_at: datetime
    restored_version: int | None = None
    redo_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """The part of history's row that says which earlier value came back; see BlockVersion."""

    version: int
    redo_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The author of a change, for history."""

    actor_id: UUID
    agent_id: UUID | None = None
    run_id: UUID | None = None
    step_id: UUID | None = None
    call_key: str | None = None


@dataclass(frozen=True, slots=True)
class BlockById:
    """A block by its id."""

    block_id: UUID


@dataclass(frozen=True, slots=True)
class BlockByLabel:
    """The block that an agent knows by this label."""

    agent_id: UUID
    label: str


BlockKey = BlockById | BlockByLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockList:
    """Filters of a list of blocks; see loci.memory.v1.ListBlocksRequest."""

    label: str | None = None
    agent_id: UUID | None = None
    label_search: str | None = None
    value_search: str | None = None
    description_search: str | None = None
    tags: tuple[str, ...] = ()
    match_any_tag: bool = False
    show_hidden: bool = False
    is_template: bool | None = None
    template_name: str | None = None
    project_id: str | None = None
    deployment_id: str | None = None
    more_agents_than: int | None = None
    fewer_agents_than: int | None = None
    agent_counts: tuple[int, ...] = ()
    identity_ids: tuple[UUID, ...] = ()
    identity_id: UUID | None = None

    @property
    def counts_agents(self) -> bool:
        """Returns whether it matters how many agents a block is attached to."""
        return self.more_agents_than is not None or self.fewer_agents_than is not None or bool(self.agent_counts)


B = TypeVar("B", Block, BlockDraft)


def validate(block: B) -> B:
    """Returns the block as it will be stored. Raises Refused (BLOCK_INVALID, BLOCK_OVER_LIMIT)."""
    values = ((each.name, getattr(block, each.name)) for each in fields(BlockSettings))
    stored = {name: storable_json(value) for name, value in values if isinstance(value, str | dict)}
    block = replace(
        block, **stored | {"label": storable_name(block.label)}, tags=unique_tags(block.tags, "BLOCK_INVALID")
    )
    _check(block.label, block.value, block.limit)
    return block


def _check(label: str, value: str, limit: int) -> None:
    if not 1 <= len(label) <= LONGEST_LABEL:
        raise Refused("BLOCK_INVALID", f"a block's label has 1 to {LONGEST_LABEL} characters, this one {len(label)}")
    if not 1 <= limit <= LARGEST_LIMIT:
        raise Refused("BLOCK_INVALID", f"a block's limit is 1 to {LARGEST_LIMIT}, not {limit}")
    if len(value) > limit:
        raise Refused(
            "BLOCK_OVER_LIMIT",
            f"the value of block {label!r} is {len(value)} characters long, its limit is {limit}; "
            "shorten the value or raise the limit",
        )


def version_bounds(page: PageBy[int]) -> tuple[int | None, int | None]:
    """Returns where a scan of versions begins and ends, neither included. Raises Refused (PAGE_TOKEN_INVALID)."""
    start, end = (page.before, None) if page.backwards else (page.after, page.before)
    return version_of(page.token) if page.token else start, end


def version_of(token: str) -> int:
    """Returns the version that a token or a cursor names. Raises Refused (PAGE_TOKEN_INVALID)."""
    if not (token.isascii() and token.isdigit() and len(token) < 20 and int(token) < 2**63):
        raise invalid_token()
    return int(token)
