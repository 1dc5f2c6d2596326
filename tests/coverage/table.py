"""The page docs/api-coverage.md: the facts of routes.toml beside what the gateway, its document and the tables of cases
say. Nothing in it is claimed by hand."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

from gateway.server.dispatcher import api_routes
from gateway.server.middleware import canonical_path
from tests.e2e.sdk_methods.tables import CASES
from tests.e2e.sdk_methods.walking import Method, methods
from tests.gateway_document import application, openapi

FACTS = Path(__file__).with_name("routes.toml")
NODE_TABLE = Path(__file__).parents[1] / "e2e/npm/methods.mjs"
_ANY = ("GET", "POST", "PUT", "PATCH", "DELETE")

_HEAD = """# Coverage of the API

Written by `make api-coverage`; a test fails when it is stale. The routes are those of `letta-client` 1.12.1 and of
Letta V1 server 0.16.8 (retired). *Implemented*: `yes`; `501` with the sentence that it answers, where it waits for a
later capability; `no`. *Tested by the SDK*: the official client in Python and in TypeScript, by a case for each of its
methods (`tests/e2e/sdk_methods`, `tests/e2e/npm/methods.mjs`). Every route is in the OpenAPI document at
`/openapi.json` but the hidden ones, and is sent generated requests by schemathesis in `make test-all`.
All routes are served below `/latest`, too, and with or without a slash at their end.

"""


@dataclass(frozen=True)
class Served:
    """A route of the gateway. `not_yet`: what it answers instead of working."""

    method: str
    path: str
    hidden: bool
    deprecated: bool
    not_yet: str = ""


def page() -> str:
    """The page."""
    facts = tomllib.loads(FACTS.read_text())
    served = {(one.method, shape(one.path)): one for one in routes()}
    tested = {shape_of(method): method for method in methods().values()}
    python, typescript = set(CASES), node_methods()
    sdk = [_row(key, told, served, tested, python, typescript) for key, told in facts["sdk"].items()]
    other = [_row(key, told, served, {}, python, typescript) for key, told in facts["reference"].items()]
    known = {key for part in ("sdk", "reference") for fact in facts[part] for key in keys_of(fact)}
    own = sorted((one for key, one in served.items() if key not in known), key=lambda one: (one.path, one.method))
    return _HEAD + "".join(
        [
            f"Of {len(sdk)} routes that the client calls and {len(other)} others of the reference: ",
            _counts([*sdk, *other]),
            "\n\n## Routes that the official client calls\n\n",
            _table(("Method", "Route", "Call", "Implemented", "Tested by the SDK", "Notes"), sdk),
            "\n## Further routes of the reference\n\n",
            _table(("Method", "Route", "Implemented", "Notes"), [(row[0], row[1], row[3], row[5]) for row in other]),
            "\n## Loci's own\n\n",
            _table(("Method", "Route", "What it does"), [(one.method, _code(one.path), _said(one)) for one in own]),
        ]
    )


def routes() -> Iterator[Served]:
    """Every route that the gateway serves below /v1, each once."""
    seen = set()
    # Of two forms of one, that which is shown.
    for path, route, hidden in sorted(api_routes(application()), key=lambda found: found[2]):
        for method in sorted(route.methods or ()):
            key = (method, shape(path))
            if path.startswith("/v1/") and key not in seen:
                seen.add(key)
                yield Served(method, path, hidden, bool(route.deprecated) or _is_old(method, path), _not_yet(route))


def keys_of(fact: str) -> list[tuple[str, str]]:
    """Method and shape of the routes that a key of routes.toml stands for."""
    method, path = fact.split(" ")
    return [(one, shape(path)) for one in (_ANY if method == "ANY" else (method,))]


def shape(path: str) -> str:
    """The path without the names of its parameters, which differ, and without a slash at its end."""
    return re.sub(r"{\w+(:\w+)?}", "{}", canonical_path(path))


def shape_of(method: Method) -> tuple[str, str]:
    """Returns the shape of the request that a method of the client makes."""
    return method.verb, shape(method.path)


def node_methods() -> set[str]:
    """The methods that the TypeScript table has cases for, by their Python names."""
    if not NODE_TABLE.exists():
        return set()
    names = re.findall(r'^  "([\w.]+)":', NODE_TABLE.read_text(), re.MULTILINE)
    return {re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name) for name in names}


def _row(
    key: str,
    told: Mapping[str, Any],
    served: Mapping[tuple[str, str], Served],
    tested: Mapping[tuple[str, str], Method],
    python: set[str],
    typescript: set[str],
) -> tuple[str, ...]:
    method, path = key.split(" ")
    found = [served.get(one) for one in keys_of(key)]
    one = next((one for one in found if one), None)
    implemented = "no" if one is None else f"501: {one.not_yet}" if one.not_yet else "yes"
    by = tested.get((method, shape(path)))
    languages = [name for name, table in (("Python", python), ("TypeScript", typescript)) if by and by.name in table]
    notes = [word for word in ("deprecated", "hidden") if told.get(word)]
    notes += ["in the reference's cloud only"] if told.get("cloud") else []
    notes += [told["note"]] if "note" in told else []
    call = _code(by.name) if by else ""
    return method, _code(path), call, implemented, ", ".join(languages), "; ".join(notes)


def _counts(rows: list[tuple[str, ...]]) -> str:
    kinds = [row[3].partition(":")[0] for row in rows]
    return f"{kinds.count('yes')} work, {kinds.count('501')} answer 501, {kinds.count('no')} are missing."


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`"


def _said(one: Served) -> str:
    """The first sentence of its description."""
    operation = openapi()["paths"].get(re.sub(r":\w+}", "}", one.path), {}).get(one.method.lower(), {})
    first = " ".join(operation.get("description", "").split("\n\n")[0].split())
    notes = [first, *(["(deprecated)"] if one.deprecated else []), *(["(hidden)"] if one.hidden else [])]
    return " ".join(filter(None, notes))


def _is_old(method: str, path: str) -> bool:
    operation = openapi()["paths"].get(re.sub(r":\w+}", "}", path), {}).get(method.lower(), {})
    return bool(operation.get("deprecated"))


def _not_yet(route: APIRoute) -> str:
    endpoint: Callable[..., Any] = route.endpoint
    return str(getattr(endpoint, "not_yet", ""))
