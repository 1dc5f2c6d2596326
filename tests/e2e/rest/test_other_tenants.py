"""Attacks of another tenant on everything there is: requests made out of the OpenAPI document, with foreign ids.

A new route is in it by itself. Nothing may be shown, nothing changed, and an id of another tenant is as good as none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.generation import GenerationMode

from tests.e2e.database import rows
from tests.e2e.rest.test_generated_requests import OPERATIONS, SECONDS
from tests.e2e.sdk_methods.world import World
from tests.e2e.stack import Stack
from tests.e2e.test_access import DEFAULT, Tenant
from tests.gateway_document import openapi

EXAMPLES = 3
BOUNDED = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
_TABLES = """
SELECT table_schema || '.' || table_name AS name FROM information_schema.columns
WHERE column_name = 'organization_id' AND table_schema IN ('agent', 'memory', 'tool_runner', 'llm_gateway') ORDER BY 1
"""
# Of those, what changes by itself: indexes that are filled, and what is under way.
_MOVING = ("outbox", "embedding", "vectors", "jobs", "workers")


@dataclass
class Stranger:
    """An admin of another tenant, and what the first one has."""

    url: str
    key: str
    there: Mapping[str, str]
    # In every name of the first one.
    mark: str

    def problems(self, case: Any) -> Iterator[str]:
        """Asks; yields what is wrong with the answer."""
        ids = self.aim(case)
        answer = case.call(base_url=self.url, headers={"authorization": f"Bearer {self.key}"}, timeout=SECONDS)
        said = f"{case.method} {answer.request.url} -> {answer.status_code}"
        if answer.status_code >= 500 and answer.status_code != 501:
            yield f"{said}: {answer.content[:200]!r}"
        if ids and answer.status_code < 400:
            yield f"{said}: it takes a foreign id"
        request = f"{answer.request.url} {answer.request.body!r}"
        shown = [each for each in (self.mark, *self.there.values()) if len(each) > 5 and each not in request]
        yield from (f"{said}: it shows {each}" for each in shown if each.encode() in answer.content)

    def aim(self, case: Any) -> bool:
        """Puts foreign ids wherever the document has a place for them; returns whether the path has one."""
        for name in case.path_parameters or {}:
            if name in self.there:
                case.path_parameters[name] = self.there[name]
        details = openapi()["paths"][case.path][case.method.lower()]
        for parameter in details.get("parameters", ()):
            if parameter["in"] == "query" and (value := self.foreign(parameter["name"])):
                case.query = {**(case.query or {}), parameter["name"]: value}
        if isinstance(case.body, dict):
            properties = _properties(details)
            case.body = {**case.body, **{name: value for name in properties if (value := self.foreign(name))}}
        return any(name.endswith("_id") and name in self.there for name in case.path_parameters or {})

    def foreign(self, name: str) -> str | list[str] | None:
        """Returns what a field of this name holds of the first tenant."""
        alias = name.replace("source", "folder")
        if alias.endswith("_id") and alias in self.there:
            return self.there[alias]
        if alias.endswith("_ids") and alias.removesuffix("s") in self.there:
            return [self.there[alias.removesuffix("s")]]
        return None


def _properties(details: Mapping[str, Any]) -> Mapping[str, Any]:
    content = details.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    while "$ref" in schema:
        schema = openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    found: Mapping[str, Any] = schema.get("properties", {})
    return found


def contents(stack: Stack) -> dict[str, str]:
    """What each table has of the first tenant."""
    names = [row["name"] for row in rows(stack, _TABLES)]
    query = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) || md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) AS content"
        f" FROM {name} t WHERE organization_id = $1::uuid"
        for name in names
        if not any(word in name for word in _MOVING)
    )
    return {row["name"]: row["content"] for row in rows(stack, query, DEFAULT.removeprefix("org-"))}


@pytest.fixture(scope="module")
def stranger(open_stack: Stack, world: World, there: Mapping[str, str]) -> Iterator[Stranger]:
    """With an agent of its own, for routes that need one."""
    tenant = Tenant(open_stack, "Stranger")
    yield Stranger(open_stack.url, tenant.key, there, world._own)
    tenant.http.close()


def test_a_foreign_id_is_as_good_as_none(open_stack: Stack, stranger: Stranger) -> None:
    before, wrong, asked = contents(open_stack), list[str](), list[str]()
    assert len(before) > 40

    def ask(operation: Any) -> None:
        @seed(1)
        @BOUNDED
        @given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        def attack(case: Any) -> None:
            asked.append(operation.label)
            wrong.extend(stranger.problems(case))

        attack()

    for operation in OPERATIONS.values():
        ask(operation)
    assert len(set(asked)) > 200
    assert wrong == [], f"{len(wrong)} of {len(asked)}"
    after = contents(open_stack)
    assert {name: (before[name], content) for name, content in after.items() if before[name] != content} == {}
