"""The cost of a call by the price of its model. Pure.

Cached and written input is priced apart where the price says so. Figures of a provider that do not fit together (more
cached than sent) never make a cost negative.
"""

from services.llm_gateway.core.chat import Usage
from services.llm_gateway.core.models import Price

# Ten thousand dollars for one call: prices and tokens are what an endpoint says, and sums of costs must fit a bigint.
MOST_OF_CALL = 10_000 * 1_000_000_000


def cost_of(price: Price | None, usage: Usage) -> int | None:
    """Returns billionths of a US dollar; None where no price is known."""
    if price is None:
        return None
    cached = min(usage.cached_input_tokens or 0, usage.prompt_tokens)
    written = min(usage.cache_write_tokens or 0, usage.prompt_tokens - cached)
    plain = usage.prompt_tokens - cached - written
    cost = (
        plain * price.input
        + cached * _or_input(price.cached_input, price)
        + written * _or_input(price.cache_write, price)
        + usage.completion_tokens * price.output
    )
    return min(cost, MOST_OF_CALL)


def _or_input(price: int | None, otherwise: Price) -> int:
    return otherwise.input if price is None else price
