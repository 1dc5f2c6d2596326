"""Tags and fields as they will be stored."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from services.common.core.refusals import Refused
from services.common.core.storable import storable_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

JsonObject = dict[str, Any]
D = TypeVar("D", bound="DataclassInstance")
LONGEST_TAG = 500


def unique_tags(tags: Iterable[str], reason: str) -> tuple[str, ...]:
    """Returns tags without NUL and duplicates, sorted. Raises Refused for an empty or overlong one."""
    cleaned = sorted({storable_name(tag) for tag in tags})
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
