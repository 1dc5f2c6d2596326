"""The port of learned windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedWindow:
    """The window of a model, as a call showed it."""

    model: str
    tokens: int
    learned_at: datetime


class LearnedWindowStore(Protocol):
    """Learned windows of tenants."""

    async def list(self, organization_id: UUID) -> Sequence[LearnedWindow]:
        """Returns all that hold now, by model."""
        ...

    async def forget(self, organization_id: UUID, model: str) -> None:
        """Forgets one; nothing happens when it is not there."""
        ...
