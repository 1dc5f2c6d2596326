"""Whom agents serve and blocks are about, and what may be set on them. Pure.

draft = check(draft)             what a client wants, as it can be stored
properties = merged(old, new)    properties of which some are set anew
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.refusals import Refused
from services.common.paging import Page
from services.common.storable import parsed, storable

TYPES = ("org", "user", "other")
LONGEST = 256
MOST_PROPERTIES = 1_000
MOST_LINKS = 1_000
# Fields that an update may name; the first four are columns.
COLUMNS = ("identifier_key", "name", "identity_type", "properties")
SETTABLE = frozenset((*COLUMNS, "agent_ids", "block_ids"))

Property = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """As stored; see loci.agent.v1.Identity. `agent_ids` and `block_ids`: in the order of attachment."""

    id: UUID
    identifier_key: str
    name: str
    identity_type: str
    properties: tuple[Property, ...] = ()
    project_id: str | None = None
    created_at: datetime
    updated_at: datetime
    agent_ids: tuple[UUID, ...] = ()
    block_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityDraft:
    """What a client sets; fields as in Identity."""

    identifier_key: str = ""
    name: str = ""
    identity_type: str = ""
    properties: tuple[Property, ...] = ()
    project_id: str | None = None
    agent_ids: tuple[UUID, ...] = ()
    block_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityList:
    """Which identities to list; see loci.agent.v1.ListIdentitiesRequest."""

    page: Page
    name: str | None = None
    identity_type: str | None = None
    identifier_keys: tuple[str, ...] = ()
    project_id: str | None = None


def check(draft: IdentityDraft, names: frozenset[str] = SETTABLE) -> IdentityDraft:
    """The draft as it can be stored, nothing twice; of its fields those in `names` count.

    Raises Refused (IDENTITY_INVALID), naming the field and what is expected.
    """
    draft = replace(
        draft,
        identifier_key=storable(draft.identifier_key),
        name=storable(draft.name),
        project_id=None if draft.project_id is None else storable(draft.project_id),
        agent_ids=tuple(dict.fromkeys(draft.agent_ids)),
        block_ids=tuple(dict.fromkeys(draft.block_ids)),
    )
    for name in names & {"identifier_key", "name"}:
        if not 1 <= len(getattr(draft, name)) <= LONGEST:
            raise invalid(name, f"must have 1 to {LONGEST} characters, not {len(getattr(draft, name))}")
    if "identity_type" in names and draft.identity_type not in TYPES:
        raise invalid("identity_type", f"must be one of: {', '.join(TYPES)}")
    for name in ("agent_ids", "block_ids"):
        if len(getattr(draft, name)) > MOST_LINKS:
            raise invalid(name, f"has {len(getattr(draft, name))} ids; an identity is given at most {MOST_LINKS}")
    return draft


def check_mask(names: Iterable[str]) -> frozenset[str]:
    """Names of fields that an update changes. Raises Refused (UPDATE_MASK_INVALID)."""
    mask = frozenset(names)
    if unknown := sorted(mask - SETTABLE):
        sentence = f"update_mask names what cannot be changed on an identity: {', '.join(unknown)[:200]}"
        raise Refused("UPDATE_MASK_INVALID", sentence)
    return mask


def properties(text: str) -> tuple[Property, ...]:
    """The properties in a client's text; an empty text is none. Raises Refused (IDENTITY_INVALID)."""
    try:
        items = parsed(text or "[]")
    except ValueError as error:
        raise invalid("properties", f"must be a JSON array; {error}") from None
    if not isinstance(items, list):
        raise invalid("properties", f"must be a JSON array, not a {type(items).__name__}")
    found = tuple(_property(item, f"properties[{place}]") for place, item in enumerate(items))
    if len({each["key"] for each in found}) < len(found):
        raise invalid("properties", "has a key twice")
    return checked_properties(found)


def merged(before: Sequence[Property], new: Sequence[Property]) -> tuple[Property, ...]:
    """`before` with `new` set by their keys; what is new comes last. Raises Refused (IDENTITY_INVALID)."""
    by_key = {each["key"]: each for each in (*before, *new)}
    return checked_properties(tuple(by_key.values()))


def checked_properties(found: tuple[Property, ...]) -> tuple[Property, ...]:
    """Raises Refused (IDENTITY_INVALID) for more than an identity may have."""
    if len(found) > MOST_PROPERTIES:
        raise invalid("properties", f"has {len(found)} of them; an identity has at most {MOST_PROPERTIES}")
    return found


def invalid(name: str, problem: str) -> Refused:
    """A refusal that names a field."""
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
