"""The publisher of a run that is driven here: to readers in this process, and stored for those who read elsewhere."""

from collections.abc import Sequence
from uuid import UUID

from services.agent.core.events import Ended, Event, MessagePiece
from services.agent.core.ports_journal import OwnedRun
from services.agent.core.ports_streams import Notifier
from services.agent.streams.broadcast import EventHub
from services.agent.streams.recorder import Recorder


class EventPublisher:
    """Background runs are recorded from their beginning, others from when somebody elsewhere asks to see them."""

    def __init__(self, hub: EventHub, recorder: Recorder, notifier: Notifier) -> None:
        self.hub = hub
        self.notifier = notifier
        self._recorder = recorder
        self._driven: dict[UUID, OwnedRun] = {}
        # Those of them that are read elsewhere.
        self._watched: set[UUID] = set()
        recorder.on_flush = self._tell

    def open(self, owned: OwnedRun, *, is_taken_over: bool = False) -> None:
        """Begins to publish a run that is driven here; `is_taken_over`: readers elsewhere did not know where."""
        self._driven[owned.run_id] = owned
        self.hub.open(owned.run_id)
        if owned.background:
            self._recorder.begin(owned)
        if is_taken_over:
            self.notifier.tell("shown", owned.run_id)

    def show(self, run_id: UUID, event: Event) -> None:
        """Shows an event."""
        self.hub.publish(run_id, event)
        self._recorder.put(run_id, event)
        if isinstance(event, MessagePiece | Ended):
            self._tell((run_id,))

    def close(self, run_id: UUID) -> None:
        """Ends what `open` began: the run is driven here no longer."""
        self._driven.pop(run_id, None)
        self._watched.discard(run_id)
        self._recorder.end(run_id)
        self.hub.close(run_id)

    def watch(self, run_id: UUID) -> None:
        """Records a run from now on: somebody reads it elsewhere."""
        owned = self._driven.get(run_id)
        if owned is None:
            return
        self._watched.add(run_id)
        if not self._recorder.records(run_id):
            self._recorder.begin(owned, self.hub.tail(run_id))
        self._tell((run_id,))

    def _tell(self, run_ids: Sequence[UUID]) -> None:
        for run_id in run_ids:
            if run_id in self._watched:
                self.notifier.tell("shown", run_id)
