"""Rows of the database: texts that may be left there, and values that came as JSON."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from services.common.errors import ResourceExhausted

# What one answer may have of texts: not much more passes through gRPC, and thousands of long ones fill the memory of
# the service. Where a page has more, its texts stay in the database. Their sizes are known without reading them.
MOST_BYTES = 32 * 1024 * 1024
Row = Mapping[str, Any]


def whole(text: str | None) -> str:
    """Returns the text. Raises ResourceExhausted where it was left in the database."""
    if text is None:
        raise ResourceExhausted(f"the texts have more than {MOST_BYTES} bytes together; ask for fewer at a time")
    return text


def from_json(value: Row, *, ids: Sequence[str], times: Sequence[str]) -> Row:
    """Returns a row that came as JSON, where ids and times are texts."""
    changed = {name: UUID(value[name]) for name in ids} | {name: datetime.fromisoformat(value[name]) for name in times}
    return {**value, **changed}
