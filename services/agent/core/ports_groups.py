"""The port of groups in the loop. Pure."""

from typing import Protocol

from services.agent.core.facts import MemberSpoke, Speak
from services.agent.core.ports import CallSite
from services.agent.core.turn import Turn


class Speakers(Protocol):
    """The members of groups."""

    async def speak(self, turn: Turn, action: Speak, site: CallSite) -> MemberSpoke:
        """Lets a member have its turn, once whoever asks, and returns what came of it; `site`: of the group's run."""
        ...

    async def cancel(self, turn: Turn, action: Speak, site: CallSite) -> None:
        """Cancels the turn of a member."""
        ...
