"""The errors that say what a rule forbids or what changed meanwhile."""

from uuid import UUID


class VersionConflict(Exception):
    """Somebody changed the block since it was read; read again. Never leaves the service."""

    def __init__(self, block_id: UUID) -> None:
        super().__init__(f"block {block_id} changed meanwhile")
        self.block_id = block_id


class DuplicateCall(Exception):
    """There is a result under the call's key. Never leaves the service."""


class ArchiveConflict(Exception):
    """The archive is not what the vectors were made for; begin again. Stays in the service."""


class Unparsable(Exception):
    """The file has no text to take out. `message` is a sentence for whoever uploaded it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class FileConflict(Exception):
    """The file is not in the state that was read: deleted, retried, or taken on by another worker. Stays inside."""


class ModelConflict(Exception):
    """The folder has another embedding model than the vectors were made by; read again. Stays inside."""
