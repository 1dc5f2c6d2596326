"""Following a run from any replica: its stored facts first, then live events where it is driven here."""

from collections.abc import AsyncGenerator
from uuid import UUID

from services.agent.adapters.journal import PostgresJournal
from services.agent.broadcast import Hub, Subscription
from services.agent.events import Ended, Event

# How often a reader looks at a run that another replica drives, or nobody.
POLL_SECONDS = 0.5


class Reader:
    """Reads runs of one tenant."""

    def __init__(self, journal: PostgresJournal, hub: Hub) -> None:
        self._journal = journal
        self._hub = hub

    def leave(self, run_id: UUID, subscription: Subscription | None) -> None:
        """Gives up a subscription that was never followed."""
        if subscription is not None:
            self._hub.unsubscribe(run_id, subscription)

    async def follow(
        self, organization_id: UUID, run_id: UUID, *, after: int = 0, subscription: Subscription | None = None
    ) -> AsyncGenerator[Event]:
        """The events of a run after a position, until it ends.

        `subscription` is the first reader's, who missed nothing. Raises NotFound (RUN_NOT_FOUND), Unavailable
        (READER_LAGS).
        """
        seen = after
        with self._hub.present(run_id):
            while True:
                live = subscription or self._hub.subscribe(run_id)
                try:
                    if subscription is None:
                        for event in await self._journal.events(organization_id, run_id, seen):
                            seen = event.sequence
                            yield event
                            if isinstance(event, Ended):
                                return
                    if live is not None:
                        async for event in live:
                            if event.sequence > seen:
                                seen = event.sequence
                                yield event
                                if isinstance(event, Ended):
                                    return
                finally:
                    if live is not None:
                        self._hub.unsubscribe(run_id, live)
                subscription = None
                if live is None:
                    await self._hub.opened(run_id, POLL_SECONDS)
