"""Ceilings: the most that a chain of calls may do, whoever makes them. It is what its starter's credential may.

An edge makes it from the credential. It travels in the signed context, is stored with every run and schedule, and is
handed on to all that a tool begins, so that an agent's code never does more than whoever talked the agent into it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A role, and what it may do with each resource. Hashable; `resources` None: all that the role reaches."""

    role: str
    # Prefixed ids with names of rights, both sorted.
    resources: tuple[tuple[str, tuple[str, ...]], ...] | None = None

    def rights(self, resource_id: str) -> frozenset[str] | None:
        """Returns the rights over one resource; None where the role alone decides."""
        return None if self.resources is None else frozenset(dict(self.resources).get(resource_id, ()))


def ceiling(role: str, resources: Mapping[str, frozenset[str]] | None = None) -> Ceiling:
    """Returns the ceiling in its one form, so that equal ones are equal."""
    if resources is None:
        return Ceiling(role)
    return Ceiling(role, tuple(sorted((name, tuple(sorted(rights))) for name, rights in resources.items())))


def ceiling_to_json(value: Ceiling | None) -> dict[str, Any] | None:
    """Returns it as it is stored."""
    if value is None:
        return None
    return {"role": value.role, "resources": None if value.resources is None else dict(value.resources)}


def ceiling_from_json(stored: Mapping[str, Any] | None) -> Ceiling | None:
    """Returns it as it was stored. Raises KeyError."""
    if stored is None:
        return None
    resources = stored["resources"]
    if resources is None:
        return Ceiling(stored["role"])
    return ceiling(stored["role"], {name: frozenset(rights) for name, rights in resources.items()})
