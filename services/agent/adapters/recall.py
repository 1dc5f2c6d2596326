"""The port Recall: conversation_search over the agent's stored messages, by Postgres full text."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

import asyncpg
import orjson

from services.agent.adapters.rows import message_from_row
from services.agent.messages import Call, Message, Return, Role, text_of
from services.agent.ports import CallSite
from services.agent.zones import zone

DEFAULT_LIMIT = 5
MOST = 50
# What a query has beyond this is not looked for.
QUERY_CHARACTERS = 1_000
# What a model may ask for, and what is searched when it does not. Summaries only repeat what they stand for.
_ROLES: tuple[Role, ...] = ("assistant", "user", "tool")
_SEARCHED: tuple[Role, ...] = (*_ROLES, "system", "approval")
_SHOWN_CHARACTERS = 2_000

_log = logging.getLogger(__name__)

# $1 organization, $2 agent, $3 query, $4 roles, $5 from, $6 to, $7 limit, $8 run that is going on
# Any word counts: models ask in phrases, and ranking puts the messages with most of them first. What the run itself
# said is left out as long as the model sees it: the question would be its own best answer. A client's answers are found
# where they are: in the returns that came of them, or where nothing came of them, as they were given.
_SEARCH = """
WITH wanted AS (
    SELECT nullif(replace(plainto_tsquery('english', $3)::text, '&', '|'), '')::tsquery AS stems,
           nullif(replace(plainto_tsquery('simple', $3)::text, '&', '|'), '')::tsquery AS words
)
SELECT m.id, m.role, m.content, m.name, m.otid, m.sender_id, m.run_id, m.step_id, m.seq, m.created_at
FROM wanted, LATERAL (
    SELECT * FROM agent.messages WHERE organization_id = $1 AND agent_id = $2
    UNION ALL
    -- What it inherited from the agent that it was made from.
    SELECT i.* FROM agent.inherited_segments s
    JOIN agent.messages i ON i.organization_id = $1 AND i.log_id = s.log_id AND i.seq BETWEEN s.from_seq AND s.to_seq
    WHERE s.organization_id = $1 AND s.agent_id = $2 AND i.agent_id <> $2
) m
WHERE m.role = ANY($4)
    AND NOT (m.run_id IS NOT DISTINCT FROM $8 AND EXISTS (
        SELECT FROM agent.conversation_heads h
        JOIN agent.conversation_segments s ON s.organization_id = $1 AND s.conversation_id = h.conversation_id
            AND s.log_id = m.log_id AND m.seq >= s.from_seq AND m.seq <= coalesce(s.to_seq, m.seq)
        WHERE h.organization_id = $1 AND h.conversation_id = m.conversation_id
            AND (s.ordinal, m.seq) >= (h.window_ordinal, h.window_seq)))
    AND NOT (m.role = 'approval' AND EXISTS (
        SELECT FROM agent.messages t WHERE t.organization_id = $1 AND t.run_id = m.run_id AND t.role = 'tool'))
    AND ($5::timestamptz IS NULL OR m.created_at >= $5) AND ($6::timestamptz IS NULL OR m.created_at <= $6)
    AND ($3 = '' OR m.search @@ wanted.stems OR m.search @@ wanted.words)
ORDER BY CASE WHEN $3 = '' THEN 0 ELSE
         coalesce(ts_rank_cd(m.search, wanted.stems), 0) + coalesce(ts_rank_cd(m.search, wanted.words), 0) END DESC,
         m.created_at DESC
LIMIT $7
"""


class PostgresRecall:
    """Search over messages."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def search(self, call: Call, site: CallSite) -> Return:
        """See ports.Recall.search. Arguments: query, roles, limit, start_date, end_date; all optional."""
        timezone = zone(site.settings.timezone)
        try:
            arguments = _arguments(orjson.loads(call.arguments), timezone)
        except ValueError as error:
            return Return(call.id, call.name, f"Nothing was searched: {error}", is_error=True)
        try:
            rows = await self._pool.fetch(_SEARCH, site.organization_id, site.agent_id, *arguments, site.run_id)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            _log.warning("a search failed: %s", type(error).__name__)
            return Return(call.id, call.name, "The search failed; try it with fewer words.", is_error=True)
        found = [_shown(message_from_row(row), timezone) for row in rows]
        if not found:
            return Return(call.id, call.name, "No messages were found.")
        return Return(call.id, call.name, orjson.dumps(found).decode())


def _arguments(given: Mapping[str, Any], timezone: tzinfo) -> tuple[Any, ...]:
    query, roles, limit = (
        given.get("query") or "",
        given.get("roles") or [],
        given.get("limit") or DEFAULT_LIMIT,
    )
    if not isinstance(query, str):
        raise ValueError("query must be a text")  # noqa: TRY004 - the model's fault, not a programmer's
    if not isinstance(roles, list) or not all(role in _ROLES for role in roles):
        raise ValueError(f"roles must be a list of {', '.join(_ROLES)}")
    if not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise ValueError(f"limit must be a whole number from 1 to {MOST}")
    return (
        query.replace("\0", "")[:QUERY_CHARACTERS],
        roles or list(_SEARCHED),
        _time(given.get("start_date"), "start_date", timezone, end=False),
        _time(given.get("end_date"), "end_date", timezone, end=True),
        limit,
    )


def _time(text: Any, name: str, timezone: tzinfo, *, end: bool) -> datetime | None:
    if text in (None, ""):
        return None
    try:
        time = datetime.fromisoformat(text)
        if end and len(text) == len("2026-01-31"):
            time = time.replace(hour=23, minute=59, second=59, microsecond=999_999)
        return (time if time.tzinfo else time.replace(tzinfo=timezone)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be an ISO 8601 date or time, for example 2026-01-31T09:00") from None


def _shown(message: Message, timezone: tzinfo) -> dict[str, str]:
    time = message.created_at.astimezone(timezone).isoformat(timespec="seconds")
    return {"timestamp": time, "role": message.role, "content": text_of(message)[:_SHOWN_CHARACTERS]}
