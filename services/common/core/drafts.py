"""The fields that a client sets of a resource. Pure."""

from dataclasses import dataclass
from typing import Generic, TypeVar

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Draft(Generic[D]):
    """The fields that a client sets: those of `values` that `names` lists; the others have their defaults."""

    values: D
    names: frozenset[str]
