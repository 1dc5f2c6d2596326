"""What a list asks for, and its page tokens. Pure."""

import base64
import binascii
from dataclasses import dataclass, field
from uuid import UUID

from services.common.paging import MOST, Moment, PageBy, moment_from
from services.memory.archival.passages import PassageFilter
from services.memory.archival.places import Place
from services.memory.model import Refused


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
        """Whether it matters how many agents a block is attached to."""
        return self.more_agents_than is not None or self.fewer_agents_than is not None or bool(self.agent_counts)


@dataclass(frozen=True, slots=True)
class VersionPage(PageBy[int]):
    """Which versions of a block, by their numbers."""

    def bounds(self) -> tuple[int | None, int | None]:
        """Where the scan begins and where it ends, neither included. Raises Refused (PAGE_TOKEN_INVALID)."""
        start, end = (self.before, None) if self.backwards else (self.after, self.before)
        return version_of(self.token) if self.token else start, end


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageList:
    """Filters of a list of passages; see loci.memory.v1.ListPassagesRequest."""

    place: Place
    search: str | None = None
    filter: PassageFilter = field(default_factory=PassageFilter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveList:
    """Filters of a list of archives."""

    name: str | None = None
    agent_id: UUID | None = None


def checked_size(size: int, default: int) -> int:
    """The page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} objects, not {size}")
    return size or default


def moment_of(token: str) -> Moment:
    """The inverse of `moment_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        microseconds, _, hexadecimal = base64.urlsafe_b64decode(token).decode().partition(".")
        return moment_from(microseconds, hexadecimal)
    except (binascii.Error, ValueError, OverflowError):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received") from None


def version_of(token: str) -> int:
    """The version that a token of a list of versions names. Raises Refused (PAGE_TOKEN_INVALID)."""
    if not (token.isascii() and token.isdigit() and len(token) < 19):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received")
    return int(token)
