"""Files that are opened by themselves: those of a folder when it is attached, and new ones when their text is out."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

# Two who open files of one agent at once shall not open too many. $3: one agent, or null for all that have the folder;
# in one order, so that two who open for many do not wait for each other.
_LOCK = """
SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text || one.agent_id::text, 0))
FROM (
    SELECT m.agent_id FROM memory.agent_folders m
    WHERE m.organization_id = $1 AND m.folder_id = $2 AND ($3::uuid IS NULL OR m.agent_id = $3)
    ORDER BY m.agent_id) one
"""
# As views.files_to_close has it: those opened longest ago give way.
_CLOSE = """
UPDATE memory.agent_files a SET is_open = false
FROM (
    SELECT o.agent_id, o.file_id, m.most_open,
        row_number() OVER (PARTITION BY o.agent_id ORDER BY o.accessed_at DESC, o.file_id DESC) AS place
    FROM memory.agent_folders m
    JOIN memory.agent_files o ON o.organization_id = m.organization_id AND o.agent_id = m.agent_id
    WHERE m.organization_id = $1 AND m.folder_id = $2 AND ($3::uuid IS NULL OR m.agent_id = $3)
        AND o.is_open AND o.file_id <> ALL($4::uuid[])) one
WHERE a.organization_id = $1 AND a.agent_id = one.agent_id AND a.file_id = one.file_id
    AND one.place > one.most_open - cardinality($4::uuid[])
"""
# Those opened together count as opened one after the other.
_OPEN = """
INSERT INTO memory.agent_files (
    organization_id, agent_id, file_id, is_open, first_line, last_line, char_limit, accessed_at)
SELECT $1, m.agent_id, w.id, true, 1, NULL, m.view_chars, clock_timestamp() + w.place * interval '1 microsecond'
FROM memory.agent_folders m, unnest($4::uuid[]) WITH ORDINALITY AS w (id, place)
WHERE m.organization_id = $1 AND m.folder_id = $2 AND ($3::uuid IS NULL OR m.agent_id = $3) AND w.place <= m.most_open
ON CONFLICT (organization_id, agent_id, file_id) DO UPDATE SET
    is_open = true, first_line = 1, last_line = NULL, char_limit = excluded.char_limit,
    accessed_at = excluded.accessed_at
"""


async def open_files(
    connection: Any, organization_id: UUID, folder_id: UUID, file_ids: Sequence[UUID], agent_id: UUID | None = None
) -> None:
    """Opens files of a folder, whole, for one agent or for all that have it; in a transaction.

    They win over those that were open before, within what the agent may have open.
    """
    to = (organization_id, folder_id, agent_id)
    await connection.execute(_LOCK, *to)
    await connection.execute(_CLOSE, *to, file_ids)
    await connection.execute(_OPEN, *to, file_ids)
