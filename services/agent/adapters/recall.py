"""The port Recall: conversation_search over the agent's stored messages, by Postgres full text."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

import asyncpg
import orjson

from services.agent.adapters.rows import message_from_row
from services.agent.messages import Call, Message, Return, Role, text_of
from services.agent.ports import CallSite
from services.agent.storable import storable
from services.agent.window.excerpts import excerpt
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

# $1 organization, $2 agent, $3 query, $4 roles, $5 from, $6 to, $7 limit, $8 messages that the model sees, $9 its step
# Any word counts: models ask in phrases, and ranking puts the messages with most of them first. What the model asked
# with is left out, and what it sees of this run: the question would be its own best answer. A client's answers are
# found where they are: in the returns that came of them, or where nothing came of them, as they were given.
_SEARCH = """
WITH wanted AS (
    SELECT nullif(replace(plainto_tsquery('english', $3)::text, '&', '|'), '')::tsquery AS stems,
           nullif(replace(plainto_tsquery('simple', $3)::text, '&', '|'), '')::tsquery AS words,
           tsvector_to_array(to_tsvector('english', $3)) AS stem_list,
           tsvector_to_array(to_tsvector('simple', $3)) AS word_list
)
SELECT m.id, m.role, m.content, m.name, m.otid, m.sender_id, m.run_id, m.step_id, m.seq, m.created_at,
       wanted.stem_list, wanted.word_list
FROM wanted, LATERAL (
    SELECT * FROM agent.messages WHERE organization_id = $1 AND agent_id = $2
    UNION ALL
    -- What it inherited from the agent that it was made from.
    SELECT i.* FROM agent.inherited_segments s
    JOIN agent.messages i ON i.organization_id = $1 AND i.log_id = s.log_id AND i.seq BETWEEN s.from_seq AND s.to_seq
    WHERE s.organization_id = $1 AND s.agent_id = $2 AND i.agent_id <> $2
) m
WHERE m.role = ANY($4)
    AND m.id <> ALL($8::uuid[]) AND NOT (m.role = 'assistant' AND m.step_id IS NOT DISTINCT FROM $9)
    AND NOT (m.role = 'approval' AND EXISTS (
        SELECT FROM agent.messages t WHERE t.organization_id = $1 AND t.run_id = m.run_id AND t.role = 'tool'))
    AND ($5::timestamptz IS NULL OR m.created_at >= $5) AND ($6::timestamptz IS NULL OR m.created_at <= $6)
    AND ($3 = '' OR m.search @@ wanted.stems OR m.search @@ wanted.words
         OR m.search_more IS NOT NULL AND EXISTS (
            SELECT FROM unnest(m.search_more) piece WHERE piece @@ wanted.stems OR piece @@ wanted.words))
ORDER BY CASE WHEN $3 = '' THEN 0 ELSE (
            SELECT max(coalesce(ts_rank_cd(piece, wanted.stems), 0) + coalesce(ts_rank_cd(piece, wanted.words), 0))
            FROM unnest(array_append(m.search_more, m.search)) piece) END DESC,
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
            ids = (site.organization_id, site.agent_id)
            rows = await self._pool.fetch(_SEARCH, *ids, *arguments, site.seen, site.step_id)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            _log.warning("a search failed: %s", type(error).__name__)
            return Return(call.id, call.name, "The search failed; try it with fewer words.", is_error=True)
        found = [_shown(message_from_row(row), timezone, _beginnings(row)) for row in rows]
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
        storable(query)[:QUERY_CHARACTERS],
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


def _beginnings(row: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """What the words that were found begin with: their stems (that of "happy" is "happi"), then the words as asked for,
    among them those that say nothing in English."""
    return [stem.removesuffix("i") for stem in row["stem_list"]], row["word_list"]


def _shown(message: Message, timezone: tzinfo, words: Sequence[Sequence[str]]) -> dict[str, str]:
    time = message.created_at.astimezone(timezone).isoformat(timespec="seconds")
    return {"timestamp": time, "role": message.role, "content": excerpt(text_of(message), words, _SHOWN_CHARACTERS)}
