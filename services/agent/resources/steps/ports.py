"""The port of steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from services.agent.core.facts import Failure, Usage
from services.agent.core.messages import Message
from services.agent.core.page_tokens import MessagePage
from services.common.core.paging import Page, PageOf


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step as its readers see it; see loci.agent.v1.Step. `metrics` are nanoseconds by name, and
    `tool_problems`: [name, why] of tools that the model was not offered."""

    id: UUID
    run_id: UUID
    agent_id: UUID
    number: int
    status: str
    stop_reason: str | None
    model_handle: str
    attempts: int
    context_window_limit: int
    usage: Usage
    failure: Failure | None
    prompt_hash: str
    trace_id: str
    created_at: datetime
    completed_at: datetime | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    feedback: str | None = None
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    tid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepList:
    """A filter of steps; see loci.agent.v1.ListStepsRequest."""

    page: Page
    agent_id: UUID | None = None
    run_id: UUID | None = None
    model: str | None = None
    feedback: str | None = None
    has_feedback: bool | None = None
    tags: tuple[str, ...] = ()
    trace_ids: tuple[str, ...] = ()
    start_time: datetime | None = None
    end_time: datetime | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A person's opinion of a step. `changes`: whether `value` is to be stored; None takes back what was said."""

    changes: bool
    value: str | None
    add_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepTrace:
    """A provider's request for a step and its answer, as JSON: {"request", "response"}."""

    step: StepView
    trace: str
    created_at: datetime


class StepStore(Protocol):
    """Steps of a tenant. All but `list` raise NotFound (STEP_NOT_FOUND)."""

    async def get(self, organization_id: UUID, step_id: UUID) -> StepView: ...

    async def list(self, organization_id: UUID, filters: StepList) -> PageOf[StepView]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def messages(self, organization_id: UUID, step_id: UUID, page: MessagePage) -> PageOf[Message]:
        """Returns a page of its messages. Raises also NotFound (MESSAGE_NOT_FOUND), Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def set_feedback(self, organization_id: UUID, step_id: UUID, feedback: Feedback) -> StepView:
        """Stores it; returns the step. Raises also Refused (FEEDBACK_INVALID)."""
        ...

    async def set_transaction(self, organization_id: UUID, step_id: UUID, transaction: str) -> StepView:
        """Stores the caller's own transaction; returns the step."""
        ...

    async def trace(self, organization_id: UUID, step_id: UUID) -> StepTrace:
        """Raises also NotFound (STEP_TRACE_NOT_FOUND)."""
        ...
