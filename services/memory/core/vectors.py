"""Bounds of this service's vectors."""

from collections.abc import Sequence

MOST_DIMENSIONS = 16_000
Vector = Sequence[float]
