"""The ports of agents: their store, and memory, tools and models behind other services.

Every method of a store takes the tenant first; servicers take it from the verified call context. Blocks and tools of
other services are handed through as they came (`Any`): this service adds nothing to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.resources.agents.model.settings import Agent, AgentSettings
from services.agent.resources.agents.model.sleeptime import Partner
from services.common.core.paging import Page, PageBy, PageOf

AgentOrder = Literal["created_at", "updated_at", "last_run_completion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """A filter of agents; see loci.agent.v1.ListAgentsRequest."""

    page: Page
    order_by: AgentOrder = "created_at"
    name: str | None = None
    query_text: str | None = None
    tags: tuple[str, ...] = ()
    match_all_tags: bool = False
    show_hidden: bool = False
    identity_id: UUID | None = None
    identifier_keys: tuple[str, ...] = ()
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    project_id: str | None = None
    created_by_id: UUID | None = None
    last_stop_reason: str | None = None


class AgentStore(Protocol):
    """Agents of a tenant. Deleted ones are not there."""

    async def reserve(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> bool:
        """Notes that parts of a new agent will be made, to be swept when no agent follows. False: the id is taken."""
        ...

    async def release(self, organization_id: UUID, agent_id: UUID) -> None:
        """Takes a reservation back: no parts were made."""
        ...

    async def insert(
        self,
        organization_id: UUID,
        agent_id: UUID,
        user_id: UUID,
        settings: AgentSettings,
        messages: Sequence[Message] = (),
        identity_ids: Sequence[UUID] = (),
        partner: Partner | None = None,
    ) -> Agent | None:
        """Stores a reserved agent with its default conversation, which begins with `messages`.

        It serves those of `identity_ids` that are there, and a reserved partner is stored with it. None when a
        reservation is gone.
        """
        ...

    async def insert_partner(self, organization_id: UUID, user_id: UUID, agent_id: UUID, partner: Partner) -> bool:
        """Stores the reserved partner of an agent; False when that one manages a group or the reservation is gone.

        Raises NotFound (AGENT_NOT_FOUND).
        """
        ...

    async def get(self, organization_id: UUID, agent_id: UUID) -> Agent:
        """Raises NotFound (AGENT_NOT_FOUND)."""
        ...

    async def list(self, organization_id: UUID, filters: AgentList) -> PageOf[Agent]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def count(self, organization_id: UUID, filters: AgentList) -> int:
        """Returns how many the list would have on all its pages."""
        ...

    async def tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        """Returns the tags of the tenant's agents that hold a text, each once, in the order of the page."""
        ...

    async def with_rules_of(self, organization_id: UUID, tool_id: UUID, name: str) -> Sequence[UUID]:
        """Returns the agents that have a tool attached and a rule that holds its name."""
        ...

    async def rules_of_runs(self, organization_id: UUID, run_ids: Sequence[UUID]) -> Sequence[ToolRule]:
        """Returns the tool rules that the agents of these runs have now."""
        ...

    async def update(
        self, organization_id: UUID, user_id: UUID, before: Agent, settings: AgentSettings
    ) -> Agent | None:
        """Stores new settings as the next version; None when `before` is not the present one any more."""
        ...

    async def reset_messages(self, organization_id: UUID, agent_id: UUID) -> Agent:
        """Begins the default conversation anew. Raises NotFound (AGENT_NOT_FOUND), Aborted (CONVERSATION_BUSY)."""
        ...

    async def delete(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> None:
        """Marks it deleted, cancels its runs and orders the rest. Raises NotFound (AGENT_NOT_FOUND)."""
        ...


@dataclass(frozen=True, slots=True)
class Attachments:
    """Blocks and folders that are attached to an agent, and their files, as the memory service gave them."""

    blocks: Sequence[Any] = ()
    folders: Sequence[Any] = ()
    files: Sequence[Any] = ()


class AgentMemories(Protocol):
    """Blocks and folders of agents, in the memory service."""

    async def create(self, agent_id: UUID, drafts: Sequence[Any], block_ids: Sequence[UUID]) -> tuple[Any, ...]:
        """Creates and attaches the blocks of a new agent; all its blocks. May be repeated."""
        ...

    async def attachments(self, agent_ids: Sequence[UUID]) -> Mapping[UUID, Attachments]:
        """Returns blocks, folders and files of each agent, in one call."""
        ...

    async def attach_folder(self, agent_id: UUID, folder_id: UUID, limits: tuple[int, int]) -> None:
        """`limits`: see AgentSettings.file_limits; they hold for all folders of the agent. May be repeated.

        Raises NotFound (FOLDER_NOT_FOUND).
        """
        ...

    async def detach_folder(self, agent_id: UUID, folder_id: UUID) -> int:
        """Returns how many folders are left. May be repeated. Raises NotFound (FOLDER_NOT_FOUND)."""
        ...

    async def purge(self, agent_id: UUID, *, erase_blocks: bool) -> None:
        """Removes what hangs on an agent; with `erase_blocks` also blocks made with it. May be repeated."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogueTool:
    """A tool and, in `tool`, all of it as it came. `needs_approval`: it brings an approval rule to its agents."""

    id: UUID
    name: str
    tool: Any
    needs_approval: bool = False


class ToolCatalogue(Protocol):
    """Tools, receipts and secrets, in the tool runner."""

    async def find(self, tool_ids: Sequence[UUID] = (), names: Sequence[str] = ()) -> tuple[CatalogueTool, ...]:
        """Returns those that exist, each once; no call when nothing is asked for."""
        ...

    async def purge_receipts(self, agent_id: UUID) -> None:
        """Erases the receipts of an agent. May be repeated."""
        ...

    async def set_secrets(self, agent_id: UUID, secrets: Mapping[str, str]) -> None:
        """Makes these all of an agent's. May be repeated. Raises InvalidArgument (ENVIRONMENT_INVALID)."""
        ...

    async def purge_secrets(self, agent_id: UUID) -> None:
        """Erases the secrets of an agent. May be repeated."""
        ...


class ModelCatalogue(Protocol):
    """Models, in the model gateway."""

    async def window(self, organization_id: UUID, handle: str) -> int:
        """Returns tokens of a chat model's window. Raises NotFound (MODEL_NOT_FOUND)."""
        ...

    async def reasons(self, organization_id: UUID, handle: str) -> bool:
        """Returns whether a chat model thinks by itself. Raises NotFound (MODEL_NOT_FOUND)."""
        ...

    async def check_embedding(self, organization_id: UUID, handle: str) -> None:
        """Raises NotFound (EMBEDDING_NOT_FOUND) for an unknown embedding model."""
        ...


class Eraser(Protocol):
    """Removes what is left of deleted agents."""

    async def exists(self, organization_id: UUID, agent_id: UUID) -> bool:
        """Returns whether there is such an agent, deleted or not."""
        ...

    async def stop(self, organization_id: UUID, agent_id: UUID) -> bool:
        """Asks its runs to stop; whether none is running any more."""
        ...

    async def erase(self, organization_id: UUID, agent_id: UUID) -> bool:
        """Erases a deleted agent and all it said; False while one of its runs has not stopped. May be repeated."""
        ...
