"""Texts, JSON and tags as Postgres can store them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from services.memory.core.errors import Refused

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

JsonObject = dict[str, Any]
D = TypeVar("D", bound="DataclassInstance")
LONGEST_TAG = 500


def without_nul(text: str) -> str:
    """Drops NUL, which Postgres does not store; the reference does the same."""
    return text.replace("\x00", "")


def json_without_nul(value: JsonObject) -> JsonObject:
    """Returns the same for the keys and texts of a JSON object."""
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
    """Returns tags without NUL and duplicates, sorted. Raises Refused for an empty or overlong one."""
    cleaned = sorted({without_nul(tag) for tag in tags})
    for tag in cleaned:
        if not 1 <= len(tag) <= LONGEST_TAG:
            raise Refused(reason, f"a tag has 1 to {LONGEST_TAG} characters; {tag[:40]!r} has {len(tag)}")
    return tuple(cleaned)


def apply_rules(rules: Mapping[str, Callable[[Any], Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of fields as they will be stored, by the rule of each. Raises what the rules raise."""
    return {name: rules[name](value) if name in rules else value for name, value in values.items()}


def apply_rules_to(rules: Mapping[str, Callable[[Any], Any]], value: D) -> D:
    """Returns the dataclass with the fields of the rules as they will be stored. Raises what the rules raise."""
    return replace(value, **apply_rules(rules, {name: getattr(value, name) for name in rules}))
