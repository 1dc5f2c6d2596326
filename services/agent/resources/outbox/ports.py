"""The port of the outbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """Something that must be done at least once, for the `attempts`th time."""

    organization_id: UUID
    id: UUID
    kind: str
    subject_id: UUID
    attempts: int
    payload: Mapping[str, Any] = field(default_factory=dict)


class Outbox(Protocol):
    """Orders of all tenants."""

    async def claim(self, kinds: Sequence[str], most: int, lease: float) -> Sequence[OutboxEntry]:
        """Orders of these kinds that are due; nobody else gets them for `lease` seconds."""
        ...

    async def done(self, order: OutboxEntry) -> None:
        """Removes it."""
        ...

    async def retry(self, order: OutboxEntry, seconds: float, error: str | None) -> None:
        """Makes it due again after `seconds`; `error` is kept for operators, None leaves the last one."""
        ...
