"""Files that clients keep for calls, and fetch from them."""

from collections.abc import AsyncIterator
from uuid import UUID

from services.common.core.paging import PageOf
from services.common.core.refusals import Refused
from services.common.errors import NotFound
from services.common.ids import uuid7
from services.tool_runner.core.job import MIB
from services.tool_runner.core.model import KeptFile, NewFile
from services.tool_runner.executions.files.rules.names import check_name
from services.tool_runner.executions.model import FileFilter
from services.tool_runner.executions.ports import FileStore

MOST_BYTES = 16 * MIB


class Files:
    """The files of ExecutionService."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    async def keep(self, organization_id: UUID, user_id: UUID, name: str, chunks: AsyncIterator[bytes]) -> KeptFile:
        """Raises Refused (EXECUTION_FILE_INVALID)."""
        content = bytearray()
        check_name(name)
        async for chunk in chunks:
            content += chunk
            if len(content) > MOST_BYTES:
                raise Refused("EXECUTION_FILE_INVALID", f"{name!r} is larger than {MOST_BYTES} bytes")
        file = NewFile(id=uuid7(), name=name, content=bytes(content), created_by_id=user_id)
        return await self._store.add(organization_id, file)

    async def list(self, organization_id: UUID, filters: FileFilter) -> PageOf[KeptFile]:
        """Raises Refused (PAGE_TOKEN_INVALID)."""
        return await self._store.list(organization_id, filters)

    async def fetch(self, organization_id: UUID, file_id: UUID) -> tuple[KeptFile, bytes]:
        """Raises NotFound (EXECUTION_FILE_NOT_FOUND)."""
        files = await self._store.find(organization_id, [file_id])
        content = (await self._store.contents(organization_id, [file_id])).get(file_id)
        if not files or content is None:
            raise _no_such(file_id)
        return files[0], content

    async def delete(self, organization_id: UUID, file_id: UUID) -> None:
        """Raises NotFound (EXECUTION_FILE_NOT_FOUND)."""
        if not await self._store.delete(organization_id, file_id):
            raise _no_such(file_id)


def _no_such(file_id: UUID) -> NotFound:
    return NotFound(f"File execfile-{file_id} not found", reason="EXECUTION_FILE_NOT_FOUND")
