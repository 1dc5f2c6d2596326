"""Costs of calls."""

import pytest

from services.llm_gateway.core.chat import Usage
from services.llm_gateway.core.costs import cost_of
from services.llm_gateway.core.models import Price
from services.llm_gateway.core.tables.rows import usd

# Claude-like: $3 and $15 for a million, cached 0.3, written 3.75.
APART = usd(3, 15, cached=0.3, write=3.75)
PLAIN = usd(3, 15)


@pytest.mark.parametrize(
    ("price", "usage", "nanos"),
    [
        (None, Usage(1_000, 1_000), None),
        (PLAIN, Usage(1_000, 100), 1_000 * 3_000 + 100 * 15_000),
        (PLAIN, Usage(0, 0), 0),
        # Reasoning is among the output already.
        (PLAIN, Usage(1_000, 100, reasoning_tokens=90), 1_000 * 3_000 + 100 * 15_000),
        (APART, Usage(1_000, 100, 800, 100), 100 * 3_000 + 800 * 300 + 100 * 3_750 + 100 * 15_000),
        (APART, Usage(1_000, 0, 1_000), 1_000 * 300),
        # Without a price of their own they are input like other.
        (PLAIN, Usage(1_000, 0, 800, 100), 1_000 * 3_000),
        # Figures that do not fit together.
        (APART, Usage(100, 0, 500), 100 * 300),
        (APART, Usage(100, 0, 60, 90), 60 * 300 + 40 * 3_750),
        # Free is not unpriced.
        (Price(0, 0), Usage(1_000, 1_000), 0),
    ],
)
def test_costs(price: Price | None, usage: Usage, nanos: int | None) -> None:
    assert cost_of(price, usage) == nanos
