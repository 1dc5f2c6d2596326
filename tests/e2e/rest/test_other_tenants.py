"""Attacks of another tenant on everything there is: requests made out of the OpenAPI document, with foreign ids.

A new route is in it by itself. Nothing may be shown, nothing changed, and an id of another tenant is as good as none.
"""

from __future__ import annotations

import re
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
UNKNOWN = "99999999-0000-4000-8000-000000000000"
_PUBLIC_ID = re.compile(r"\b([a-z_]+-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r'\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)|"trace_id":"\w+"')
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
        ids = self.aim(case, self.there)
        answer = self.ask(case)
        said = f"{case.method} {answer.request.url} -> {answer.status_code}"
        if answer.status_code >= 500 and answer.status_code != 501:
            yield f"{said}: {answer.content[:200]!r}"
        if ids:
            self.aim(case, self.nowhere)
            other = self.ask(case)
            if (answer.status_code, self.plain(answer)) != (other.status_code, self.plain(other)):
                yield f"{said}: of an id that is nobody's it says {other.status_code} {other.content[:200]!r}"
        request = f"{answer.request.url} {answer.request.body!r}"
        shown = [each for each in (self.mark, *self.there.values()) if len(each) > 5 and each not in request]
        yield from (f"{said}: it shows {each}" for each in shown if each.encode() in answer.content)

    @property
    def nowhere(self) -> Mapping[str, str]:
        """As `there`, with ids that nobody has."""
        return {name: _PUBLIC_ID.sub(rf"\g<1>{UNKNOWN}", value) for name, value in self.there.items()}

    def ask(self, case: Any) -> Any:
        """Returns the answer to the stranger."""
        return case.call(base_url=self.url, headers={"authorization": f"Bearer {self.key}"}, timeout=SECONDS)

    def plain(self, answer: Any) -> str:
        """Returns the body without ids, and without what is never the same twice."""
        return _TIME.sub("", _PUBLIC_ID.sub(r"\1", answer.content.decode(errors="replace")))

    def aim(self, case: Any, there: Mapping[str, str]) -> bool:
        """Puts these ids wherever the document has a place for them; returns whether the path has one."""
        for name in case.path_parameters or {}:
            if name in there:
                case.path_parameters[name] = there[name]
        details = openapi()["paths"][case.path][case.method.lower()]
        for parameter in details.get("parameters", ()):
            if parameter["in"] == "query" and (value := _held(parameter["name"], there)):
                case.query = {**(case.query or {}), parameter["name"]: value}
        if isinstance(case.body, dict):
            properties = _properties(details)
            case.body = {**case.body, **{name: value for name in properties if (value := _held(name, there))}}
        return any(name.endswith("_id") and name in there for name in case.path_parameters or {})


def _held(name: str, there: Mapping[str, str]) -> str | list[str] | None:
    """Returns what a field of this name holds."""
    alias = name.replace("source", "folder")
    if alias.endswith("_id") and alias in there:
        return there[alias]
    if alias.endswith("_ids") and alias.removesuffix("s") in there:
        return [there[alias.removesuffix("s")]]
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
    assert not wrong, f"{len(wrong)} of {len(asked)}:\n" + "\n".join(wrong[:40])
    after = contents(open_stack)
    assert {name: (before[name], content) for name, content in after.items() if before[name] != content} == {}
