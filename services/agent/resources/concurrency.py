"""Changes of one object that meet."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.common.errors import Aborted

T = TypeVar("T")
_ATTEMPTS = 10


async def until_stored(attempt: Callable[[], Awaitable[T | None]], *, name: str, reason: str = "ABORTED") -> T:
    """Returns what `attempt` stored; it is called again while it returns None, as others changed the object meanwhile.

    `name`: the object's id. Raises Aborted (`reason`) when that happens again and again.
    """
    for _ in range(_ATTEMPTS):
        if (stored := await attempt()) is not None:
            return stored
    raise Aborted(f"{name} is being changed by others all the time; try again.", reason=reason)
