"""The rows of the tables. Pure."""

from dataclasses import dataclass

from services.llm_gateway.core.models import Capabilities, Price


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Window and most output of one reply, in tokens, what the model can do, and what it costs. None: nobody says."""

    context_window: int
    max_output_tokens: int | None
    capabilities: Capabilities
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class KnownEmbedding:
    """Dimensions of the vectors, most texts of one call, and what it costs."""

    dimensions: int
    batch_size: int
    price: Price | None = None


def usd(input: float, output: float = 0.0, *, cached: float | None = None, write: float | None = None) -> Price:
    """A price as vendors print it: US dollars for a million tokens."""
    return Price(_nanos(input), _nanos(output), _optional(cached), _optional(write))


def _nanos(dollars: float) -> int:
    return round(dollars * 1_000)


def _optional(dollars: float | None) -> int | None:
    return None if dollars is None else _nanos(dollars)
