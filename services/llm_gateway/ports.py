"""What this service needs from outside, beside the providers (provider.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one call to a provider cost. `kind` is chat or embedding; `milliseconds` is how long it took."""

    organization_id: UUID
    id: UUID
    kind: str
    handle: str
    run_id: UUID | None
    step_id: UUID | None
    agent_id: UUID | None
    prompt_tokens: int
    completion_tokens: int
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    estimated: bool
    provider_model: str
    milliseconds: int
    created_at: datetime


class UsageStore(Protocol):
    """Where usage is kept."""

    async def write(self, rows: Sequence[UsageRow]) -> None:
        """Store rows; writing one twice is as writing it once. Raises StoreUnavailable, StoreRefused."""
        ...


class StoreUnavailable(Exception):
    """The store cannot be written now; the same rows may be offered again."""


class StoreRefused(Exception):
    """The store will never take these rows."""
