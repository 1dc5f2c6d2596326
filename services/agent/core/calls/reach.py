"""Whom a run may write to: nobody but those whom the starter of its chain may write to. Pure."""

from uuid import UUID

from services.common.core.ceiling import Ceiling

_RIGHT = "write_messages"


def reaches(limit: Ceiling | None, agent_id: UUID) -> bool:
    """Returns whether a run below `limit` may write to an agent of its tenant."""
    rights = None if limit is None else limit.rights(f"agent-{agent_id}")
    return rights is None or _RIGHT in rights
