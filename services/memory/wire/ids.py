"""Public ids to UUIDs and back. Every reader raises InvalidArgument (INVALID_ID)."""

from collections.abc import Iterable
from uuid import UUID

from services.common.ids import from_public, to_public


def agent_id(text: str) -> UUID:
    """Of `agent-<uuid>`."""
    return from_public("agent", text)


def block_id(text: str) -> UUID:
    """Of `block-<uuid>`."""
    return from_public("block", text)


def archive_id(text: str) -> UUID:
    """Of `archive-<uuid>`."""
    return from_public("archive", text)


def passage_id(text: str) -> UUID:
    """Of `passage-<uuid>`."""
    return from_public("passage", text)


def identity_id(text: str) -> UUID:
    """Of `identity-<uuid>`."""
    return from_public("identity", text)


def identity_ids(texts: Iterable[str]) -> tuple[UUID, ...]:
    """Of `identity-<uuid>` each."""
    return tuple(map(identity_id, texts))


def conversation_id(text: str) -> UUID | None:
    """Of `conv-<uuid>`; None where none is given."""
    return needed_conversation_id(text) if text else None


def needed_conversation_id(text: str) -> UUID:
    """Of `conv-<uuid>`."""
    return from_public("conv", text)


def run_id(text: str) -> UUID | None:
    return from_public("run", text) if text else None


def optional_id(prefix: str, value: UUID | None) -> str:
    return "" if value is None else to_public(prefix, value)
