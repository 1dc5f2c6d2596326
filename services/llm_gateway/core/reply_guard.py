"""Replies whose shape is not what the vendor's protocol says: a number for a text, a field that is missing.

Readers read as if shapes were right, because checking every field costs and says nothing more; what they stumble over
becomes an error of the provider here, in one place.
"""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from services.llm_gateway.core.errors import LlmStreamMalformed

logger = logging.getLogger(__name__)

_STUMBLES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def reply_guard(provider: str, handle: str) -> Iterator[None]:
    """Inside, a reply is read. Raises LlmStreamMalformed where that fails because of its shape."""
    try:
        yield
    except _STUMBLES as error:
        # Where, for whoever has to see whether it is the reply or the reader; not what, which may be a prompt's text.
        place = traceback.extract_tb(error.__traceback__)[-1]
        logger.warning(
            "a reply of %s cannot be read: %s at %s:%s", provider, type(error).__name__, place.name, place.lineno
        )
        raise LlmStreamMalformed(
            f"{provider} sent a reply that breaks its protocol ({type(error).__name__}). Try again.",
            provider=provider,
            handle=handle,
        ) from error
