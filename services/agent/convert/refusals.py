"""What breaks a rule is the caller's fault."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.agent.core.refusals import Refused
from services.common.errors import InvalidArgument


@contextmanager
def refusals() -> Iterator[None]:
    """Turns Refused into InvalidArgument."""
    try:
        yield
    except Refused as refused:
        raise InvalidArgument(refused.message, reason=refused.reason) from None
