"""A tenant that attacks or is attacked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from tests.e2e.database import rows
from tests.e2e.stack import Stack
from tests.e2e.tenants.places import EXCEPTIONS, WORDS, Place
from tests.e2e.tenants.samples import FORMS, QUERIES, body_of, filled, put, with_beside
from tests.polling import wait_until

UUIDS = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_TABLES = """
SELECT table_schema || '.' || table_name AS name FROM information_schema.columns
WHERE column_name = 'organization_id' AND table_schema IN ('agent', 'memory', 'tool_runner', 'llm_gateway') ORDER BY 1
"""
# Of those, what changes by itself: indexes that are filled, what that costs, and what is under way.
_MOVING = ("outbox", "embedding", "vector", "jobs", "workers", "usage")
_CHATS = """
SELECT 'llm_gateway.usage of chats' AS name, count(*)::text AS content FROM llm_gateway.usage
WHERE organization_id = $1::uuid AND kind = 'chat'
"""
_CONTENT = """
SELECT '{name}', count(*) || md5(coalesce(string_agg({text}, ' ' ORDER BY {text}), ''))
FROM {name} t WHERE organization_id = $1::uuid
"""
# And columns: a device that is connected says so again and again.
_BEATING = ["heartbeat_at", "last_seen_at"]


@dataclass
class Party:
    """A tenant, what it has, and a client with its admin's key."""

    organization_id: str
    mark: str
    has: Mapping[str, Any]
    http: httpx.Client
    mcp_url: str

    def __post_init__(self) -> None:
        self._numbers = count()
        self._nobodys: dict[str, str] = {}

    def ask(self, label: str, place: Place | None = None, value: str = "") -> httpx.Response:
        """Asks with what is its own in every place but one."""
        method, _, path = label.partition(" ")
        own = self.words()
        names = re.findall(r"{(\w+)}", path)
        ids = {name: str(own[EXCEPTIONS.get((label, name), name)]) for name in names}
        if place is not None and "conversation_id" in ids and place.kind != "path" and place.way[-1] == "agent_id":
            # It says whose default conversation is meant, and nothing of another.
            ids["conversation_id"] = "default"
            own["talk_checkpoint_id"] = own["checkpoint_id"]
        query: dict[str, Any] = dict(filled(QUERIES.get(label, {}), own, self.fresh))
        body = filled(body_of(label), own, self.fresh)
        if place is not None:
            given = list(dict.fromkeys((own[place.thing], value))) if place.many else value
            if place.kind == "path":
                ids[place.way[0]] = value
            elif place.kind == "query":
                query[place.way[0]] = given
            else:
                body = put(with_beside(body, place.way), place.way, given)
        url = re.sub(r"{(\w+)}", lambda found: quote(ids[found[1]], safe=""), path)
        if label in FORMS:
            name, content = FORMS[label]
            content = filled(content, own, self.fresh)
            text = content if isinstance(content, str) else json.dumps(content)
            return self.http.request(method, url, params=query, files={"file": (name, text.encode())})
        return self.http.request(method, url, params=query, json=body)

    def words(self) -> dict[str, Any]:
        """Returns what "%name" stands for in samples: its things, and "%new_name" for an id of its kind."""
        kinds = ("agent_id", "block_id", "conversation_id", "file_id", "group_id", "message_id")
        new = {f"new_{kind}": self.new(kind) for kind in kinds}
        return {**self.has, **WORDS, **new, "uuid": str(uuid4()), "mcp": self.mcp_url}

    def fresh(self) -> str:
        """Returns a name that nothing else has."""
        return f"new_{self.mark}_{next(self._numbers)}"

    def nobodys(self, thing: str) -> str:
        """Returns an id or name like that of one of its things, which nobody has. It is always the same, as that of
        the thing is: whatever an attacker makes under the one, it makes under the other.
        """
        return self._nobodys.setdefault(thing, self.new(thing).replace(self.mark, "nobody"))

    def new(self, thing: str) -> str:
        """Returns an id like that of one of its things."""
        return UUIDS.sub(_another, str(self.has[thing]))

    def shown_in(self, answer: str, asked: str) -> list[str]:
        """Returns what is its own in an answer, and was not asked with."""
        named = [
            each for each in self.has.values() if isinstance(each, str) and (self.mark in each or UUIDS.search(each))
        ]
        return [each for each in (self.mark, *named) if each in answer and each not in asked]


def _another(found: re.Match[str]) -> str:
    made = uuid4()
    return str(made) if "-" in found[0] else made.hex


def contents(stack: Stack, party: Party) -> dict[str, str]:
    """Returns what each table has of a tenant, once nothing is written behind its calls any more."""
    seen: list[dict[str, str]] = []

    def is_still() -> bool:
        # What calls cost is written later, or when somebody asks for it.
        party.http.get("/v1/usage").raise_for_status()
        seen.append(_contents(stack, party.organization_id))
        return len(seen) > 1 and seen[-1] == seen[-2]

    wait_until(is_still, 60, pause=1, problem=lambda: f"it does not come to rest: {changes(seen[-2], seen[-1])}")
    return seen[-1]


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Returns the names of tables in which something changed."""
    return [name for name, content in after.items() if before[name] != content]


def _contents(stack: Stack, organization_id: str) -> dict[str, str]:
    names = [row["name"] for row in rows(stack, _TABLES)]
    still = [name for name in names if not any(word in name for word in _MOVING)]
    text = "(to_jsonb(t) - $2::text[])::text"
    query = "UNION ALL".join((_CHATS, *(_CONTENT.format(name=name, text=text) for name in still)))
    found = rows(stack, query, organization_id.removeprefix("org-"), _BEATING)
    return {row["name"]: row["content"] for row in found}
