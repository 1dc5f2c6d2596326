"""Vectors of texts: the part of a text that is embedded, and vectors at length 1. Pure."""

from collections.abc import Sequence
from math import hypot, isfinite

# Embedding models read about 8,000 tokens; this many UTF-8 bytes are fewer in every language.
_EMBEDDED_BYTES = 20_000


def to_embed(text: str) -> str:
    """Returns the part of a text that is embedded: its first 20,000 bytes. The whole of it is found by its words."""
    encoded = text.encode()
    return text if len(encoded) <= _EMBEDDED_BYTES else encoded[:_EMBEDDED_BYTES].decode(errors="ignore")


def unit_vector(values: Sequence[float]) -> list[float] | None:
    """Returns the vector at length 1, which fits 16-bit floats; None for a zero vector, which has no direction.

    Raises ValueError when a component is not a finite number.
    """
    length = hypot(*values)
    if not isfinite(length):
        raise ValueError("a component is not a finite number")
    return [value / length for value in values] if length else None
