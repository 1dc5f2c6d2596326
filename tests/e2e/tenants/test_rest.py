"""Attacks of another tenant on everything there is: each route, with a foreign id in each place that takes one.

Both are made of the OpenAPI document, so that a new route is in it by itself; the routes that are not in the document
are in a table, and a route that is in neither fails. The same request with ids of the caller's
own works; with a foreign id it is refused as with one that nobody has, shows nothing and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx

from tests.e2e.stack import Stack
from tests.e2e.tenants import hidden_routes
from tests.e2e.tenants.party import UUIDS, Party, changes, contents
from tests.e2e.tenants.places import Place, places
from tests.e2e.tenants.refusals import WHOLES, as_of_nothing, refusals
from tests.gateway_document import openapi

ROUTES = [f"{method.upper()} {path}" for path, found in openapi()["paths"].items() for method in found]
_TIME = re.compile(r'\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)|"trace_id":"\w+"')


def problems(label: str, place: Place, attacker: Party, victim: Party) -> Iterator[str]:
    """Puts an id of the victim's into one place of a request; yields what is wrong with the answer."""
    foreign, nobodys = str(victim.has[place.thing]), victim.nobodys(place.thing)
    answer, other = (attacker.ask(label, place, value) for value in (foreign, nobodys))
    said = f"{label}, {place}: {answer.status_code} {answer.text[:200]!r}"
    if _plain(answer, foreign) != _plain(other, nobodys):
        yield f"{said}, but of an id that is nobody's {other.status_code} {other.text[:200]!r}"
    if not _says_that_it_is_not_there(answer) and not as_of_nothing(label, place):
        yield f"{said} is no 404"
    yield from (f"{said} shows {each}" for each in victim.shown_in(answer.text, foreign))


def _says_that_it_is_not_there(answer: httpx.Response) -> bool:
    """Returns whether an id is unknown, which the reference says with a 400 now and then."""
    return answer.status_code == 404 or (answer.status_code == 400 and "not found" in answer.text)


def _plain(answer: httpx.Response, value: str) -> tuple[int, str]:
    """Returns status and body without ids, and without what is never the same twice."""
    if answer.is_success and answer.request.method != "GET":
        return answer.status_code, ""
    return answer.status_code, _TIME.sub("", UUIDS.sub("", answer.text.replace(value.partition(":")[0], "")))


def test_a_foreign_id_is_as_good_as_none(open_stack: Stack, parties: tuple[Party, Party]) -> None:
    attacker, victim = parties
    before = contents(open_stack, victim)
    attacks = [(label, place) for label in ROUTES for place in places(label)]
    assert len(before) > 40
    assert len(attacks) > 470
    wrong = [problem for label, place in attacks for problem in problems(label, place, attacker, victim)]
    wrong += [problem for label in hidden_routes.ASKED for problem in hidden_routes.problems(label, attacker, victim)]
    after = contents(open_stack, victim)
    assert not wrong, f"{len(wrong)} of {len(attacks)}:\n" + "\n".join(wrong)
    assert changes(before, after) == []


def test_each_hidden_route_is_asked() -> None:
    assert hidden_routes.unasked() == set()


def test_with_ids_of_its_own_it_works(parties: tuple[Party, Party]) -> None:
    attacker, _ = parties
    wrong = []
    for label in sorted(ROUTES, key=_destruction):
        tried: list[Place | None] = [place for place in places(label) if place.kind != "path"]
        for place in tried or [None]:
            answer = attacker.ask(label, place, str(attacker.has[place.thing])) if place else attacker.ask(label)
            expected = refusals(label, place)
            if not any(answer.status_code == status and text in answer.text for status, text in expected) and (
                expected or not answer.is_success
            ):
                wrong.append(f"{label}, {place}: {answer.status_code} {answer.text[:200]!r}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong)


def _destruction(label: str) -> int:
    """Orders routes: what others build on comes first, then what reads, and last what takes from others, the parts
    before the whole.
    """
    method, _, path = label.partition(" ")
    if label.startswith("POST") and path.endswith("/embedding-change"):
        return 0
    if method == "GET" or "archival-memory" in path:
        return 1
    if method != "DELETE":
        return 3 if re.search(r"detach|reset-messages|PATCH /v1/(agents|groups)/{\w+}$", label) else 2
    return WHOLES.index(label) + 5 if label in WHOLES else 4
