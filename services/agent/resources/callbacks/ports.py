"""The ports of callbacks."""

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID


class PostFailed(Exception):
    """No answer came; the text is a sentence."""


class Poster(Protocol):
    """Calls addresses that users supplied."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Returns the status of the answer. Raises PostFailed."""
        ...


class CallbackLog(Protocol):
    """The outcomes of callbacks."""

    async def note(self, organization_id: UUID, run_id: UUID, status_code: int | None, error: str | None) -> None:
        """Keeps it with the run, if that is still there."""
        ...
