"""The relations of an agent that an answer has: by the client, and by what it asks for."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query
from starlette.requests import Request

from gateway.resources.agents.responses import RELATIONS

Relation = Literal[
    "agent.blocks",
    "agent.identities",
    "agent.managed_group",
    "agent.pending_approval",
    "agent.secrets",
    "agent.sources",
    "agent.tags",
    "agent.tools",
]
Include = Annotated[
    list[Relation] | None,
    Query(description="Relations to show to an SDK of release 1.0 or later; other clients are shown all."),
]
# The older spelling of `include`.
_OLD_NAMES = {name.removeprefix("agent."): name for name in RELATIONS} | {"memory": "agent.blocks"}
_SDK = re.compile(r"letta-client/[1-9]")


def relations_of(
    request: Request, include: Sequence[str] | None, older: Sequence[str] | None = None
) -> frozenset[str] | None:
    """Returns the relations to show when an agent is read, by name; None: all."""
    if not _is_new_sdk(request):
        return None
    return frozenset((*(include or ()), *(_OLD_NAMES.get(name, name) for name in older or ())))


def _is_new_sdk(request: Request) -> bool:
    headers = request.headers
    return "x-stainless-package-version" in headers or bool(_SDK.search(headers.get("user-agent", "")))
