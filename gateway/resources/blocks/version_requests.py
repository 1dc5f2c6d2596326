"""Journeys through the history of blocks."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from gateway.rest.body import Body

Version = Annotated[int, Field(ge=1, le=2**63 - 1)]


class Journey(Body):
    """Body of undo and redo. expected_version: the version that the client has seen; another one is left alone."""

    expected_version: Version | None = None


class Restore(Journey):
    """Body of restore: a version by its number, or the one that stood at a time (in UTC unless it has an offset)."""

    version: Version | None = None
    as_of: datetime | None = None

    @model_validator(mode="after")
    def _one_is_given(self) -> Self:
        if (self.version is None) == (self.as_of is None):
            raise ValueError("give either `version` or `as_of`")
        return self
