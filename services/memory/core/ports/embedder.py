"""The peer that embeds texts."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Turns texts into vectors."""

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Returns one vector per text, all of one length, by that model. Raises LociError, also after `seconds`."""

    async def check(self, handle: str, seconds: float) -> None:
        """Raises NotFound (MODEL_NOT_FOUND) for a handle that is not configured."""
