"""Templates: what may be stored."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from services.agent.resources.agents.model.names import random_name
from services.common.core.refusals import Refused
from services.common.core.storable import parse_storable, storable

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
MOST_CHARACTERS = 10_000
# The one that is worked on.
WORKING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """See loci.agent.v1.Template."""

    id: UUID
    name: str
    description: str | None
    project_id: str | None
    latest_version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTemplate:
    """A template to store."""

    id: UUID
    name: str
    description: str | None
    project_id: str | None
    agent_file: Mapping[str, Any]


class TemplateStore(Protocol):
    """Templates of a tenant. Everything but `create` raises NotFound (TEMPLATE_NOT_FOUND)."""

    async def create(self, organization_id: UUID, user_id: UUID, new: NewTemplate) -> Template:
        """Stores it with its first version. Raises AlreadyExists (TEMPLATE_NAME_TAKEN)."""
        ...

    async def version(
        self, organization_id: UUID, name: str, version: int | None
    ) -> tuple[Template, int, Mapping[str, Any]]:
        """Returns a version and its number; None: the newest saved one."""
        ...

    async def update(
        self, organization_id: UUID, user_id: UUID, name: str, agent_file: Mapping[str, Any], *, save: bool
    ) -> Template:
        """Replaces what is worked on; with `save` that becomes a version before."""
        ...

    async def save(self, organization_id: UUID, user_id: UUID, name: str, message: str | None) -> Template:
        """Makes a version of what is worked on."""
        ...

    async def roll_back(self, organization_id: UUID, user_id: UUID, name: str, version: int | None) -> Template:
        """Works on a copy of a version from now on."""
        ...

    async def delete(self, organization_id: UUID, name: str) -> None:
        """With all versions."""
        ...


def check_name(name: str) -> str:
    """Returns a name, a random one for none. Raises Refused (TEMPLATE_INVALID)."""
    if not name:
        return f"{random_name().lower()}-{random.randrange(16**6):06x}"
    if not _NAME.fullmatch(name):
        raise Refused("TEMPLATE_INVALID", "name must have 1 to 128 characters: letters, digits, '-' and '_'")
    return name


def agent_file(text: str) -> Mapping[str, Any]:
    """Returns the JSON object in a client's text. Raises Refused (TEMPLATE_INVALID)."""
    try:
        value = parse_storable(text)
    except ValueError as error:
        raise Refused("TEMPLATE_INVALID", f"agent_file must be a JSON object; {error}") from None
    if not isinstance(value, dict):
        raise Refused("TEMPLATE_INVALID", "agent_file must be a JSON object")
    return value


def words(text: str | None) -> str | None:
    """Returns a text for people. Raises Refused (TEMPLATE_INVALID)."""
    if text is not None and len(text) > MOST_CHARACTERS:
        raise Refused("TEMPLATE_INVALID", f"a text has {len(text)} characters; at most {MOST_CHARACTERS} are kept")
    return None if text is None else storable(text)
