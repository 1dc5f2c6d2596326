"""The port of runs.

Every method takes the tenant first. Runs and steps of deleted agents are not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.agent.core.events import RunView
from services.agent.core.facts import Failure, Usage
from services.agent.core.messages import Message
from services.agent.core.page_tokens import MessagePage
from services.agent.resources.steps.ports import StepView
from services.common.core.paging import Page, PageOf


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """Which runs to list; see loci.agent.v1.ListRunsRequest."""

    page: Page
    agent_ids: tuple[UUID, ...] = ()
    statuses: tuple[str, ...] = ()
    stop_reason: str | None = None
    conversation_id: UUID | None = None
    background: bool | None = None
    by_duration: bool = False


@dataclass(frozen=True, slots=True)
class Callback:
    """Where a run is reported to when it has ended, and what became of the last try."""

    url: str
    sent_at: datetime | None = None
    status_code: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun(RunView):
    """A run with all that is stored of it. `view`: how its request wanted to see it, in the caller's words."""

    callback: Callback | None = None
    failure: Failure | None = None
    view: str = ""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """The tokens of a run so far; tokens in the window are None before its first step."""

    usage: Usage
    steps: int
    context_tokens: int | None
    run_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSteps:
    """A run, its steps in their order, and the names of the tools that each of them called."""

    run: StoredRun
    steps: tuple[StepView, ...]
    called: Mapping[UUID, tuple[str, ...]]
    project_id: str | None = None


class RunStore(Protocol):
    """Runs of a tenant. All but `list` raise NotFound (RUN_NOT_FOUND)."""

    async def get(self, organization_id: UUID, run_id: UUID) -> StoredRun: ...

    async def list(self, organization_id: UUID, filters: RunList) -> PageOf[StoredRun]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def messages(self, organization_id: UUID, run_id: UUID, page: MessagePage) -> PageOf[Message]:
        """Returns a page of its messages, the input included. Raises also NotFound (MESSAGE_NOT_FOUND), Refused."""
        ...

    async def steps(self, organization_id: UUID, run_id: UUID, page: Page) -> PageOf[StepView]:
        """Returns a page of its steps. Raises also NotFound (STEP_NOT_FOUND), Refused."""
        ...

    async def usage(self, organization_id: UUID, run_id: UUID) -> RunUsage: ...

    async def whole(self, organization_id: UUID, run_id: UUID) -> RunSteps:
        """Returns the run with all its steps."""
        ...

    async def delete(self, organization_id: UUID, run_id: UUID) -> None:
        """Erases it with its facts and steps. Raises FailedPrecondition (RUN_ACTIVE)."""
        ...
