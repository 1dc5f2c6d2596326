"""Filters of lists, and the tokens of lists of versions. Pure."""

from dataclasses import dataclass, field
from uuid import UUID

from services.common.paging import PageBy, invalid_token
from services.memory.archival.passages import PassageFilter
from services.memory.archival.places import Place


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


def version_bounds(page: PageBy[int]) -> tuple[int | None, int | None]:
    """Returns where a scan of versions begins and ends, neither included. Raises Refused (PAGE_TOKEN_INVALID)."""
    start, end = (page.before, None) if page.backwards else (page.after, page.before)
    return version_of(page.token) if page.token else start, end


def version_of(token: str) -> int:
    """Returns the version that a token or a cursor names. Raises Refused (PAGE_TOKEN_INVALID)."""
    if not (token.isascii() and token.isdigit() and int(token) < 2**63):
        raise invalid_token()
    return int(token)
