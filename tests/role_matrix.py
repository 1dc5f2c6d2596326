"""The table of docs/access.md: every route, and who may use it. `python -m tests.role_matrix` writes it anew."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from starlette.routing import Mount, WebSocketRoute

from gateway.access.handshakes import METHOD
from gateway.access.roles import ACCESS, ADMIN, CLIENT, MAY, Right, right_of
from gateway.access.run_tokens import check_route
from gateway.bootstrap import build
from gateway.settings import Settings
from services.common.context import Signer
from services.common.errors import PermissionDenied
from services.common.keys import load_private_key, new_private_key

PAGE = Path(__file__).parents[1] / "docs" / "access.md"
BEGIN, END = "<!-- routes: python -m tests.role_matrix -->", "<!-- end of routes -->"
ROLES = tuple(role for role in MAY if role not in (ADMIN, CLIENT))
_NAMES = {right: name for name, right in ACCESS.items()} | dict.fromkeys((Right.OPEN, Right.ANYBODY), "anything")


class Row(NamedTuple):
    """Who may use a route. `roles`: beside admins; `access`: of a page's token, empty for none; `tool`: tools may."""

    roles: frozenset[str]
    access: str
    tool: bool


def row_of(method: str, path: str) -> Row:
    """Returns the row of a route. Raises LookupError where nobody decided about it."""
    right = right_of(method, path)
    if right is None:
        raise LookupError(f"gateway/access/roles.py says nothing about {method} {path}")
    roles = frozenset(role for role in ROLES if right in MAY[role])
    return Row(roles, _NAMES.get(right, "") if right in MAY[CLIENT] else "", _is_open_to_tools(method, path))


def _is_open_to_tools(method: str, path: str) -> bool:
    try:
        check_route(method, path)
    except PermissionDenied:
        return False
    return True


def walk(found: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields method and path of every route, the hidden ones and sockets included."""
    for route in found:
        if hasattr(route, "original_router"):
            yield from walk(route.original_router.routes, prefix + (route.include_context.prefix or ""))
        elif isinstance(route, Mount):
            yield "GET", f"{route.path}/some.js"
        else:
            # One that takes all methods names none.
            methods = (METHOD,) if isinstance(route, WebSocketRoute) else route.methods or ("DELETE", "GET", "POST")
            yield from ((method, (prefix + route.path).rstrip("/") or "/") for method in methods)


async def _routes() -> set[tuple[str, str]]:
    nowhere = "unix:///x"
    settings = Settings(
        agent_address=nowhere, memory_address=nowhere, llm_gateway_address=nowhere, tool_runner_address=nowhere
    )
    gateway = build(settings, Signer(load_private_key(new_private_key()), "test"))
    found = set(walk(gateway.fastapi.routes))
    await gateway.close()
    return found


def routes() -> set[tuple[str, str]]:
    """Returns method and path of every route that the gateway has."""
    return {(method, path) for method, path in asyncio.run(_routes()) if method not in ("HEAD", "OPTIONS")}


def lines(found: set[tuple[str, str]]) -> list[str]:
    """Returns the table, one line for the routes of a path that the same callers may use."""
    by_row: dict[tuple[str, Row], list[str]] = defaultdict(list)
    for method, path in sorted(found, key=lambda route: (route[1], route[0])):
        by_row[path, row_of(method, path)].append(method)
    head = f"| route | {' | '.join(ROLES)} | a page's token | a tool |"
    table = [head, "|---" * head.count(" | ") + "|---|"]
    for (path, row), methods in by_row.items():
        cells = ["yes" if role in row.roles else "" for role in ROLES] + [row.access, "yes" if row.tool else ""]
        table.append(
            f"| {' '.join(methods)} `{path}` |" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
        )
    return table


def read(text: str) -> dict[tuple[str, str], Row]:
    """Returns the rows of a page by method and path."""
    found: dict[tuple[str, str], Row] = {}
    for line in text.split(BEGIN, 1)[1].split(END, 1)[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != len(ROLES) + 3 or "`" not in cells[0]:
            continue
        methods, path = cells[0].rstrip("`").split("`")
        roles = frozenset(role for role, cell in zip(ROLES, cells[1:], strict=False) if cell == "yes")
        found |= {(method, path): Row(roles, cells[-2], cells[-1] == "yes") for method in methods.split()}
    return found


def main() -> None:
    """Writes the table into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n".join([before + BEGIN, *lines(routes()), END]) + after)


if __name__ == "__main__":
    main()
