"""Open files of agents, and folders as prompts show them: SQL, and its rows as values."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from services.memory.agent_files.model import Directory, DirectoryFile
from services.memory.core.file_text.views import View, Window, view_of
from services.memory.files.model import TextPage

# Names of files that a folder's listing has besides the open ones.
LISTED = 100

# Characters of all files in view together, whatever an agent's limits are: an answer with them stays sendable.
_MOST_CHARS = 4_000_000
# Of the rows `a` that are open.
CHAR_LIMIT = f"least(a.char_limit, {_MOST_CHARS} / count(*) OVER ())::integer AS char_limit"

# Of each row of a CTE `opened` (agent_id, id, first_line, last_line, char_limit) the pages with its lines, one after
# the other for as long as there is room: a long file is never read to its end. The tenant is $1.
PAGES = """page (agent_id, file_id, page, first_line, last_line, text, chars) AS (
    SELECT o.agent_id, o.id, p.page, p.first_line, p.last_line, p.text,
        CASE WHEN p.first_line < o.first_line THEN 0 ELSE char_length(p.text) END
    FROM opened o CROSS JOIN LATERAL (
        SELECT c.page, c.first_line, c.last_line, c.text FROM memory.file_pages c
        WHERE c.organization_id = $1 AND c.file_id = o.id AND c.last_line >= o.first_line
        ORDER BY c.page LIMIT 1) p
    UNION ALL
    SELECT o.agent_id, o.id, c.page, c.first_line, c.last_line, c.text, page.chars + char_length(c.text)
    FROM page JOIN opened o ON o.agent_id = page.agent_id AND o.id = page.file_id
    JOIN memory.file_pages c ON c.organization_id = $1 AND c.file_id = o.id AND c.page = page.page + 1
    WHERE page.chars < o.char_limit AND page.last_line < coalesce(o.last_line, page.last_line + 1)
)"""
# Of the row `o` of that CTE.
PAGES_AS_JSON = """(
    SELECT json_agg(json_build_array(page.page, page.first_line, page.last_line, page.text) ORDER BY page.page)
    FROM page WHERE page.agent_id = o.agent_id AND page.file_id = o.id)"""

# $1 tenant, $2 agent; null for an agent without folders, at the cost of one look into an index.
DIRECTORIES = f"""
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT a.agent_id, f.id, f.folder_id, f.name, f.status, f.line_count, a.first_line, a.last_line, {CHAR_LIMIT}
    FROM memory.agent_files a
    JOIN memory.files f ON f.organization_id = a.organization_id AND f.id = a.file_id
    WHERE a.organization_id = $1 AND a.agent_id = $2 AND a.is_open
), {PAGES}
SELECT json_agg(json_build_array(
    d.name, d.description, d.instructions,
    (SELECT count(*) FROM memory.files f WHERE f.organization_id = $1 AND f.folder_id = d.id),
    (SELECT json_agg(json_build_array(o.id, o.name, o.status, o.first_line, o.last_line, o.char_limit, o.line_count,
            {PAGES_AS_JSON}) ORDER BY o.name) FROM opened o WHERE o.folder_id = d.id),
    (SELECT json_agg(json_build_array(c.id, c.name, c.status) ORDER BY c.name) FROM (
        SELECT f.id, f.name, f.status FROM memory.files f
        WHERE f.organization_id = $1 AND f.folder_id = d.id AND NOT EXISTS (SELECT FROM opened o WHERE o.id = f.id)
        ORDER BY f.name LIMIT {LISTED}) c)
) ORDER BY m.attached_at, m.folder_id)
FROM memory.agent_folders m
JOIN memory.folders d ON d.organization_id = m.organization_id AND d.id = m.folder_id
WHERE m.organization_id = $1 AND m.agent_id = $2
"""


def directories_of(values: Sequence[Sequence[Any]] | None) -> tuple[Directory, ...]:
    """Returns the value of DIRECTORIES."""
    return tuple(map(_directory, values or ()))


def view_of_row(row: Mapping[str, Any], pages: Sequence[Sequence[Any]] | None) -> View:
    """Returns the view in a row with the columns of an agent's file and `line_count`, and in PAGES_AS_JSON."""
    window = Window(row["first_line"], row["last_line"], row["char_limit"], row["line_count"])
    return view_of(window, map(_page, pages or ()))


def _directory(values: Sequence[Any]) -> Directory:
    name, description, instructions, count, opened, others = values
    files = [_open_file(name, *one) for one in opened or ()]
    files += [DirectoryFile(UUID(one[0]), f"{name}/{one[1]}", one[2], False) for one in others or ()]
    return Directory(name, description or "", instructions or "", tuple(files), count)


def _open_file(
    folder: str,
    file_id: str,
    name: str,
    status: int,
    first_line: int,
    last_line: int | None,
    char_limit: int,
    line_count: int,
    pages: Sequence[Sequence[Any]] | None,
) -> DirectoryFile:
    view = view_of(Window(first_line, last_line, char_limit, line_count), map(_page, pages or ()))
    return DirectoryFile(UUID(file_id), f"{folder}/{name}", status, True, view.text)


def _page(values: Sequence[Any]) -> TextPage:
    page, first_line, last_line, text = values
    return TextPage(page=page, first_line=first_line, last_line=last_line, text=text)
