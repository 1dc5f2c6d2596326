"""The database as calls need it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from services.common.core.paging import PageOf
from services.tool_runner.core.job import Output
from services.tool_runner.core.model import Ending, KeptFile, NewFile, Receipt, State
from services.tool_runner.executions.model import FileFilter, ReceiptFilter

# A call: the tenant and the key that the caller minted.
CallId = tuple[UUID, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The first values of a receipt."""

    tool_id: UUID
    tool_version: int
    agent_id: UUID | None
    arguments_hash: str
    owner_id: UUID
    limits: Mapping[str, Any]
    tool_name: str = ""
    run_id: UUID | None = None
    step_id: UUID | None = None
    settings: str = ""  # CallEnvironment.fingerprint


@dataclass(frozen=True, slots=True)
class OpenReceipt:
    """A receipt that is reserved or started, and whether somebody asked to cancel its call."""

    call: CallId
    state: State
    cancel_requested: bool


class ReceiptStore(Protocol):
    """Receipts and the leases of their owners. What expects to own a receipt says so, and fails where it does not.

    What is asked for by a run whose later owner has fenced it is refused, too; see `is_fenced`.
    """

    async def reserve(self, call: CallId, reservation: Reservation) -> bool:
        """Makes the receipt, reserved; False where there is one, or the caller's run is fenced."""
        ...

    async def forestall(self, call: CallId, run_id: UUID, ending: Ending) -> bool:
        """Makes the receipt of a run's call that was cancelled before it came; False where there is one."""
        ...

    async def fence(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """Refuses what owners of the run before this fence ask for, from now on."""
        ...

    async def is_fenced(self, organization_id: UUID) -> bool:
        """Returns whether a later owner has the caller's run."""
        ...

    async def read(self, call: CallId) -> Receipt | None:
        """Returns the receipt, with whether its owner lives."""
        ...

    async def take_over(self, call: CallId, receipt: Receipt, owner_id: UUID) -> bool:
        """Reserves it again for another owner, if it is still as it was found. What it printed before is gone."""
        ...

    async def start(self, call: CallId, owner_id: UUID, sandbox: str, image: str) -> bool:
        """Turns reserved into started; False where it is no longer this owner's."""
        ...

    async def release(self, call: CallId, owner_id: UUID) -> None:
        """Forgets the call: nothing of it ran."""
        ...

    async def end(self, call: CallId, owner_id: UUID, ending: Ending) -> Receipt | None:
        """Writes how it ended, with the files it made; None where it is no longer this owner's."""
        ...

    async def request_cancel(self, call: CallId) -> None:
        """Asks whoever runs it to kill it."""
        ...

    async def open(self, owner_id: UUID) -> list[OpenReceipt]:
        """Returns the owner's receipts that are reserved or started."""
        ...

    async def purge(self, organization_id: UUID, agent_id: UUID) -> int:
        """Erases an agent's receipts, and the files and output of its calls; how many receipts there were."""
        ...

    async def beat(self, owner_id: UUID) -> None:
        """Renews the owner's lease, or begins it."""
        ...

    async def retire(self, owner_id: UUID) -> None:
        """Ends the owner's lease, and removes leases long forgotten."""
        ...


class OutputStore(Protocol):
    """The output of calls that take long. Rows go when their receipt ends."""

    async def add(self, call: CallId, owner_id: UUID, pieces: Sequence[Output]) -> None:
        """Keeps these pieces, while the call is started and this owner's."""
        ...

    async def after(self, call: CallId, sequence: int) -> list[Output]:
        """Returns the pieces after this one, in order."""
        ...


class FileStore(Protocol):
    """Files given to calls, and made by them."""

    async def add(self, organization_id: UUID, file: NewFile) -> KeptFile:
        """Keeps it."""
        ...

    async def find(self, organization_id: UUID, ids: Sequence[UUID]) -> list[KeptFile]:
        """Returns those that exist, in no order."""
        ...

    async def contents(self, organization_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        """Returns the contents of those that exist."""
        ...

    async def list(self, organization_id: UUID, filters: FileFilter) -> PageOf[KeptFile]:
        """Returns one page, newest first; raises Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def delete(self, organization_id: UUID, file_id: UUID) -> bool:
        """Erases it; False where there was none."""
        ...


class ReceiptLists(Protocol):
    """Pages of receipts."""

    async def receipts(self, organization_id: UUID, filters: ReceiptFilter) -> PageOf[Receipt]:
        """Returns one page, newest first, without output and results; raises Refused (PAGE_TOKEN_INVALID)."""
        ...


class Retention(Protocol):
    """Erases what is older than it is kept."""

    async def sweep(self, age: timedelta, most: int) -> int:
        """Erases at most so many receipts of calls that do not run, with their files, and as many uploaded files.

        How many went. Replicas that sweep at the same time leave each other's rows alone.
        """
        ...

    async def tidy(self) -> None:
        """Erases what was printed by calls that do not run any more, where their owner could not."""
        ...
