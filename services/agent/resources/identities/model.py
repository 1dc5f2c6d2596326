"""Identities: whom agents serve and blocks are about. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from services.common.core.paging import Page
from services.common.core.refusals import Refused
from services.common.core.storable import parse_storable

LONGEST = 256
MOST_PROPERTIES = 1_000

Property = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    """All that a client sets; see loci.agent.v1.Identity. Ids are in the order of attachment."""

    identifier_key: str = ""
    name: str = ""
    identity_type: str = ""
    properties: tuple[Property, ...] = ()
    project_id: str | None = None
    agent_ids: tuple[UUID, ...] = ()
    block_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(IdentitySettings):
    """An identity as stored."""

    id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityList:
    """A filter of identities; see loci.agent.v1.ListIdentitiesRequest."""

    page: Page
    name: str | None = None
    identity_type: str | None = None
    identifier_keys: tuple[str, ...] = ()
    project_id: str | None = None


def properties(text: str) -> tuple[Property, ...]:
    """Returns the properties in a client's text; an empty text is none. Raises Refused (IDENTITY_INVALID)."""
    try:
        items = parse_storable(text or "[]")
    except ValueError as error:
        raise invalid("properties", f"must be a JSON array; {error}") from None
    if not isinstance(items, list):
        raise invalid("properties", f"must be a JSON array, not a {type(items).__name__}")
    checked = tuple(_property(item, f"properties[{place}]") for place, item in enumerate(items))
    if len({each["key"] for each in checked}) < len(checked):
        raise invalid("properties", "has a key twice")
    return checked


def merge_properties(before: Sequence[Property], new: Sequence[Property]) -> tuple[Property, ...]:
    """Returns `before` with `new` set by their keys; new keys come last. Raises Refused (IDENTITY_INVALID)."""
    by_key = {each["key"]: each for each in (*before, *new)}
    if len(by_key) > MOST_PROPERTIES:
        raise invalid("properties", f"must have at most {MOST_PROPERTIES:,} items, not {len(by_key):,}")
    return tuple(by_key.values())


def invalid(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field."""
    return Refused("IDENTITY_INVALID", f"{name} {problem}")


def _property(item: Any, name: str) -> Property:
    if not isinstance(item, dict) or not isinstance(item.get("key"), str) or "value" not in item:
        raise invalid(name, 'must be an object {"key": text, "value": ..., "type": ...}')
    key, value, of_type = item["key"], item["value"], item.get("type")
    if not 1 <= len(key) <= LONGEST:
        raise invalid(f"{name}.key", f"must have 1 to {LONGEST} characters")
    if not _is_of(value, of_type):
        raise invalid(
            name, f"must have a type of string, number, boolean or json, and a value of it, not {of_type!r:.40}"
        )
    return {"key": key, "value": value, "type": of_type}


def _is_of(value: Any, of_type: Any) -> bool:
    match of_type:
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "json":
            return isinstance(value, dict)
    return False
