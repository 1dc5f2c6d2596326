"""What calls need of the database beside their receipts: output, files, lists, and the sweep of old ones."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from services.common.paging import PageOf
from services.tool_runner.core.job import Output
from services.tool_runner.core.model import KeptFile, NewFile, Receipt
from services.tool_runner.core.ports import CallId
from services.tool_runner.executions.model import FileFilter, ReceiptFilter


class OutputStore(Protocol):
    """What calls that take long have printed so far. Rows go when their receipt ends."""

    async def add(self, call: CallId, owner_id: UUID, pieces: Sequence[Output]) -> None:
        """Keep these pieces, while the call is started and this owner's."""
        ...

    async def after(self, call: CallId, sequence: int) -> list[Output]:
        """The pieces after this one, in order."""
        ...


class FileStore(Protocol):
    """Files given to calls, and made by them."""

    async def add(self, organization_id: UUID, file: NewFile) -> KeptFile:
        """Keep it."""
        ...

    async def find(self, organization_id: UUID, ids: Sequence[UUID]) -> list[KeptFile]:
        """Those that exist, in no order."""
        ...

    async def contents(self, organization_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        """The contents of those that exist."""
        ...

    async def list(self, organization_id: UUID, wanted: FileFilter) -> PageOf[KeptFile]:
        """One page, newest first; raises Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def delete(self, organization_id: UUID, file_id: UUID) -> bool:
        """Erase it; False where there was none."""
        ...


class ReceiptLists(Protocol):
    """Pages of receipts."""

    async def receipts(self, organization_id: UUID, wanted: ReceiptFilter) -> PageOf[Receipt]:
        """One page, newest first, without what was printed and returned; raises Refused (PAGE_TOKEN_INVALID)."""
        ...


class Retention(Protocol):
    """Erases what is older than it is kept."""

    async def sweep(self, age: timedelta, most: int) -> int:
        """Erase at most so many receipts of calls that do not run, with their files, and as many uploaded files.

        How many went. Replicas that sweep at the same time leave each other's rows alone.
        """
        ...

    async def tidy(self) -> None:
        """Erase what was printed by calls that do not run any more, where their owner could not."""
        ...
