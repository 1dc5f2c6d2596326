"""docs/api-coverage.md says what is so."""

import tomllib
from pathlib import Path

from gateway.openapi.answers import answer_of
from gateway.openapi.document import routes as described
from tests.coverage.table import FACTS, keys_of, page, routes, shape, shape_of
from tests.e2e.sdk_methods.walking import methods
from tests.gateway_document import application

PAGE = Path(__file__).parents[3] / "docs/api-coverage.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "docs/api-coverage.md is stale: run `make api-coverage`"


def test_the_page_has_every_route() -> None:
    text = PAGE.read_text()
    facts = tomllib.loads(FACTS.read_text())
    known = {key for part in facts.values() for fact in part for key in keys_of(fact)}
    missing = [one for one in routes() if (one.method, shape(one.path)) not in known and f"`{one.path}`" not in text]
    assert not missing


def test_the_facts_are_those_of_the_client() -> None:
    facts = tomllib.loads(FACTS.read_text())["sdk"]
    assert {key for fact in facts for key in keys_of(fact)} == {shape_of(method) for method in methods().values()}
    by_name = methods()
    for fact, told in facts.items():
        assert keys_of(fact) == [shape_of(by_name[told["call"]])]


def test_every_route_says_what_it_answers() -> None:
    silent = [f"{method} {path}" for method, path, route in described(application()) if not answer_of(route.endpoint)]
    assert not silent, "these handlers lack @returns"
