"""Templates: what may be stored."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.resources.agents.model.names import random_name
from services.common.core.refusals import Refused
from services.common.core.storable import parse_storable, storable

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LONGEST_MESSAGE = 10_000
# The one that is worked on.
WORKING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSettings:
    """All that a client sets; see loci.agent.v1.Template."""

    name: str = ""
    description: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(TemplateSettings):
    """A template as stored."""

    id: UUID
    latest_version: int
    created_at: datetime
    updated_at: datetime


def check_name(name: str) -> str:
    """Returns a name, a random one for none. Raises Refused (TEMPLATE_INVALID)."""
    if not name:
        return f"{random_name().lower()}-{random.randrange(16**6):06x}"
    if not _NAME.fullmatch(name):
        raise invalid("name", "must have 1 to 128 characters: letters, digits, '-' and '_'")
    return name


def agent_file(text: str) -> Mapping[str, Any]:
    """Returns the JSON object in a client's text. Raises Refused (TEMPLATE_INVALID)."""
    try:
        value = parse_storable(text)
    except ValueError as error:
        raise invalid("agent_file", f"must be a JSON object; {error}") from None
    if not isinstance(value, dict):
        raise invalid("agent_file", "must be a JSON object")
    return value


def check_message(text: str) -> str:
    """Returns what changed, for people. Raises Refused (TEMPLATE_INVALID)."""
    if len(text) > _LONGEST_MESSAGE:
        raise invalid("message", f"must have at most {_LONGEST_MESSAGE:,} characters, not {len(text):,}")
    return storable(text)


def invalid(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field."""
    return Refused("TEMPLATE_INVALID", f"{name} {problem}")
