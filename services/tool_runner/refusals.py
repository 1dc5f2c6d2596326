"""What breaks a rule, as a status."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.common.errors import InvalidArgument
from services.tool_runner.core.model import Refused


@contextmanager
def refusals() -> Iterator[None]:
    """What breaks a rule is the caller's fault."""
    try:
        yield
    except Refused as refused:
        raise InvalidArgument(refused.message, reason=refused.reason) from None
