"""The port of groups in the loop. Pure."""

from collections.abc import AsyncGenerator
from typing import Protocol

from services.agent.core.events import Abandoned, Delta
from services.agent.core.facts import MemberSpoke, Speak
from services.agent.core.ports import CallSite
from services.agent.core.turn import Turn


class Speakers(Protocol):
    """The members of groups."""

    def speak(
        self, turn: Turn, action: Speak, site: CallSite, *, stream: bool
    ) -> AsyncGenerator[Delta | Abandoned | MemberSpoke]:
        """Lets a member have its turn, once whoever asks. Yields what it says as it says it, if that is to `stream`,
        without positions, and last what came of it. `site`: of the group's run.
        """
        ...

    async def cancel(self, turn: Turn, action: Speak, site: CallSite) -> None:
        """Cancels the turn of a member."""
        ...
