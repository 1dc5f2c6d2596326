"""What Postgres can store of texts, JSON and tags."""

from collections.abc import Iterable
from typing import Any

from services.common.refusals import Refused

JsonObject = dict[str, Any]
LONGEST_TAG = 500


def without_nul(text: str) -> str:
    """Postgres stores no NUL; like the reference, it is dropped, not refused."""
    return text.replace("\x00", "")


def json_without_nul(value: JsonObject) -> JsonObject:
    """The same for the keys and texts of a JSON object."""
    cleaned: JsonObject = _clean(value)
    return cleaned


def _clean(value: Any) -> Any:
    match value:
        case str():
            return without_nul(value)
        case dict():
            return {without_nul(key): _clean(item) for key, item in value.items()}
        case list():
            return [_clean(item) for item in value]
        case _:
            return value


def unique_tags(tags: Iterable[str], reason: str) -> tuple[str, ...]:
    """Tags without NUL and duplicates, sorted. Raises Refused for an empty or overlong one."""
    cleaned = sorted({without_nul(tag) for tag in tags})
    for tag in cleaned:
        if not 1 <= len(tag) <= LONGEST_TAG:
            raise Refused(reason, f"a tag has 1 to {LONGEST_TAG} characters; {tag[:40]!r} has {len(tag)}")
    return tuple(cleaned)
