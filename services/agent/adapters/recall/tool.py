"""The port Recall: conversation_search over all that the agent ever said and heard."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

import orjson

from services.agent.core.messages import Call, Message, Return, Role, text_of
from services.agent.core.ports import CallSite
from services.agent.core.recall.query import MessageFilter, MessageQuery
from services.agent.core.window.excerpts import excerpt
from services.agent.core.zones import zone
from services.agent.recall.searching import Search
from services.common.core.storable import storable
from services.common.database import DRIVER_ERRORS
from services.common.errors import NotFound

DEFAULT_LIMIT = 5
MOST = 50
# What a query has beyond this is not looked for.
QUERY_CHARACTERS = 1_000
# What a model may ask for, and what is searched when it does not. Summaries only repeat what they stand for.
_ROLES: tuple[Role, ...] = ("assistant", "user", "tool")
_SEARCHED: tuple[Role, ...] = (*_ROLES, "system", "approval")
_SHOWN_CHARACTERS = 2_000

_log = logging.getLogger(__name__)


class PostgresRecall:
    """Search over messages, by words, and where there is an embedder by meaning."""

    def __init__(self, search: Search) -> None:
        self._search = search

    async def search(self, call: Call, site: CallSite) -> Return:
        """See ports.Recall.search. Arguments: query, roles, limit, start_date, end_date; all optional.

        What the model asked with is left out, and what it sees of this run: the question would be its own best answer.
        """
        timezone = zone(site.settings.timezone)
        try:
            query = _query(orjson.loads(call.arguments), timezone, site)
        except ValueError as error:
            return Return(call.id, call.name, f"Nothing was searched: {error}", is_error=True)
        try:
            scope = await self._search.scope(site.organization_id, site.agent_id)
            messages, _ = await self._search.find(scope, query)
            words = await self._search.beginnings(query.text) if messages else ()
        except NotFound:
            # It is being deleted.
            messages, words = [], ()
        except DRIVER_ERRORS as error:
            _log.warning("a search failed: %s", type(error).__name__)
            return Return(call.id, call.name, "The search failed; try it with fewer words.", is_error=True)
        if not messages:
            return Return(call.id, call.name, "No messages were found.")
        entries = [_result_entry(found.message, timezone, words) for found in messages]
        return Return(call.id, call.name, orjson.dumps(entries).decode())


def _query(arguments: Mapping[str, Any], timezone: tzinfo, site: CallSite) -> MessageQuery:
    query, roles, limit = (
        arguments.get("query") or "",
        arguments.get("roles") or [],
        arguments.get("limit") or DEFAULT_LIMIT,
    )
    if not isinstance(query, str):
        raise ValueError("query must be a text")  # noqa: TRY004 - the model's fault, not a programmer's
    # As the memory's tools read them: digits in a text count, and one text stands for a list of one.
    limit = int(limit) if isinstance(limit, str) and limit.strip().isdecimal() and len(limit) < 12 else limit
    roles = [roles] if isinstance(roles, str) else roles
    if not isinstance(roles, list) or not all(role in _ROLES for role in roles):
        raise ValueError(f"roles must be a list of {', '.join(_ROLES)}")
    if not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise ValueError(f"limit must be a whole number from 1 to {MOST}")
    start = _time(arguments.get("start_date"), "start_date", timezone, end=False)
    end = _time(arguments.get("end_date"), "end_date", timezone, end=True)
    if start is not None and end is not None and start > end:
        raise ValueError("start_date is after end_date")
    filters = MessageFilter(tuple(roles or _SEARCHED), start, end, tuple(site.seen), site.step_id)
    return MessageQuery(storable(query)[:QUERY_CHARACTERS], limit, filter=filters)


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


def _result_entry(message: Message, timezone: tzinfo, words: Sequence[Sequence[str]]) -> dict[str, str]:
    time = message.created_at.astimezone(timezone).isoformat(timespec="seconds")
    return {"timestamp": time, "role": message.role, "content": excerpt(text_of(message), words, _SHOWN_CHARACTERS)}
