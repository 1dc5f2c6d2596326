"""Vectors of messages, made in the background.

A turn does nothing for them. How far each log has been read is a mark in the database; a replica hears of the turns
that it drove itself, and a sweep over all logs finds everything else: what a lost replica left, what was there before
there were vectors, and what an agent's new embedding model has to see again. A log is taken by one replica at a time,
and vectors and mark are stored together, so a crash repeats at most one batch and skips none.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.ports_recall import Embedder, LogClaim, LogKey, LogProgress, VectorStore
from services.agent.core.recall.texts import embedding_text
from services.common.context import CallContext, Signer, use_context
from services.common.core.vectors import unit_vector
from services.common.errors import InvalidArgument, LociError

AUDIENCE = ("llm_gateway",)
EMBED_SECONDS = 20.0
# A conversation is read when it has been quiet for so long, or has not been read for so much longer.
_QUIET_SECONDS, _LONGEST_SECONDS = 2.0, 10.0
_POLL_SECONDS = 1.0
# Most messages a second: what was there before there were vectors is not all paid for at once.
_MOST_PER_SECOND = 100
# While turns are driven here, and not many conversations wait, so long between two rounds.
_STEP_BACK_SECONDS, _MANY = 2.0, 256
# Logs of one round, and messages of each; and what is embedded of one model's by one call.
_LOGS, _MESSAGES = 32, 32
_TEXTS, _CHARACTERS = 128, 200_000
# Calls by which it is found out what a model refuses. Logs of which it refuses all so often are passed over; another
# failure is tried again for ever.
_MOST_CALLS, _PATIENCE = 40, 5
# Conversations that were heard of and not read yet; the sweep finds the others.
_MOST_HEARD = 10_000
# Work that no user waits for.
_NOBODY = UUID(int=0)

_log = logging.getLogger(__name__)


class VectorFiller:
    """Makes what vectors are missing. `load` tells how many turns this replica drives: they go first."""

    def __init__(
        self, store: VectorStore, embedder: Embedder, signer: Signer, load: Callable[[], int] = lambda: 0
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._signer = signer
        self._load = load
        # Conversations with something new: since when, and when they were heard of last.
        self._unread: dict[tuple[UUID, UUID], tuple[float, float]] = {}
        self._heard_at = 0.0
        self._waiting: dict[LogKey, None] = {}

    def note(self, organization_id: UUID, conversation_id: UUID) -> None:
        """Takes note that a conversation has a new message. Costs nothing, and may be forgotten."""
        key, now = (organization_id, conversation_id), time.monotonic()
        self._heard_at = now
        if key in self._unread or len(self._unread) < _MOST_HEARD:
            self._unread[key] = (self._unread.get(key, (now, now))[0], now)

    async def run(self) -> None:
        """Works until cancelled, less the more turns are driven."""
        while True:
            begun, read = time.monotonic(), 0
            try:
                read = await self.round()
            except Exception:  # noqa: BLE001
                # The supervisor of vectors: a database that is away comes back, and marks wait there.
                _log.exception("messages could not be read for vectors")
            took = time.monotonic() - begun
            await asyncio.sleep(self._pause(read, took))

    def _pause(self, read: int, took: float) -> float:
        """Returns seconds until the next round, after one that read so many messages."""
        if not read:
            return _POLL_SECONDS * random.uniform(0.5, 1.5)
        pause = max(took * (1 + self._load()), read / _MOST_PER_SECOND - took)
        is_busy = self._load() > 0 or time.monotonic() - self._heard_at < _POLL_SECONDS
        return max(pause, _STEP_BACK_SECONDS) if is_busy and len(self._waiting) < _MANY else pause

    async def round(self) -> int:
        """Reads some logs further; how many messages that were."""
        quiet = self._quiet(time.monotonic())
        for conversation in quiet:
            del self._unread[conversation]
        logs_of_unread = await self._store.logs_of(quiet) if quiet else ()
        if len(self._waiting) < _LOGS and (page := await self._store.sweep()) is not None:
            self._waiting |= dict.fromkeys(page.due)
        logs = list(dict.fromkeys([*logs_of_unread, *self._waiting]))
        self._waiting = dict.fromkeys(logs[_LOGS:])
        return await self.read(logs[:_LOGS]) if logs else 0

    def _quiet(self, now: float) -> list[tuple[UUID, UUID]]:
        return [
            key
            for key, (first, last) in self._unread.items()
            if now - last >= _QUIET_SECONDS or now - first >= _LONGEST_SECONDS
        ]

    async def read(self, logs: Sequence[LogKey]) -> int:
        """Takes logs and makes vectors of what comes next in them; how many messages that were.

        What fails stops no other model or tenant.
        """
        taken = await self._store.take(logs)
        messages = await self._store.messages(taken, _MESSAGES) if taken else {}
        groups = [self._fill(*group, messages) for group in _by_model(taken)]
        done = await asyncio.gather(*groups, return_exceptions=True)
        for failure in done:
            if isinstance(failure, BaseException):
                raise failure
        return sum(each for each in done if isinstance(each, int))

    async def _fill(
        self, organization_id: UUID, handle: str, logs: Sequence[LogClaim], messages: Mapping[LogKey, Sequence[Message]]
    ) -> int:
        context = CallContext(organization_id, _NOBODY, "agent", AUDIENCE)
        some = _some(logs, messages)
        try:
            with use_context(context, signer=self._signer):
                texts = {message.id: text for read in some.values() for message, text in read if text}
                vectors = await self._embed(handle, texts, give_up=all(log.failures >= _PATIENCE for log in logs))
            await self._store.store(handle, [_done(log, some[log.key], vectors) for log in logs])
        except LociError as error:
            _log.warning("%s made no vectors: %s", handle, error.message)
            await self._store.fail(logs)
            return 0
        for log in logs:
            # More may come: it is looked at once more.
            if len(some[log.key]) == _MESSAGES or len(some[log.key]) < len(messages.get(log.key, ())):
                self._waiting[log.key] = None
        return sum(map(len, some.values()))

    async def _embed(self, handle: str, texts: Mapping[UUID, str], *, give_up: bool) -> dict[UUID, list[float]]:
        """Returns vectors by message; of what the model alone refuses there is none, it is found by its words.

        Raises InvalidArgument when it refuses everything, unless it is time to `give_up`.
        """
        vectors: dict[UUID, list[float]] = {}
        refusal: InvalidArgument | None = None
        parts, calls = [list(texts)] if texts else [], 0
        while parts and calls < _MOST_CALLS:
            part, calls = parts.pop(), calls + 1
            try:
                vectors_of_part = await self._embedder.embed(
                    handle, [texts[message_id] for message_id in part], EMBED_SECONDS
                )
            except InvalidArgument as error:
                refusal, half = error, len(part) // 2
                parts += [part[half:], part[:half]] if half else []
            else:
                vectors |= _unit(zip(part, vectors_of_part, strict=True))
        if refusal is not None and not give_up and (parts or not vectors):
            raise refusal
        for message_id in texts.keys() - vectors.keys():
            _log.warning("%s has no vector for message-%s", handle, message_id)
        return vectors


def _some(
    logs: Sequence[LogClaim], messages: Mapping[LogKey, Sequence[Message]]
) -> dict[LogKey, list[tuple[Message, str]]]:
    """Returns the messages that are embedded now, with their texts, in order: at least one of the first log."""
    some: dict[LogKey, list[tuple[Message, str]]] = {}
    texts, characters = 0, 0
    for log in logs:
        some[log.key] = []
        for message in messages.get(log.key, ()):
            text = embedding_text(message)
            texts, characters = texts + bool(text), characters + len(text)
            if texts > _TEXTS or (characters > _CHARACTERS and texts > 1):
                break
            some[log.key].append((message, text))
    return some


def _by_model(taken: Sequence[LogClaim]) -> list[tuple[UUID, str, list[LogClaim]]]:
    def model(log: LogClaim) -> tuple[UUID, str]:
        return log.key.organization_id, log.embedding

    return [(*key, list(logs)) for key, logs in groupby(sorted(taken, key=model), key=model)]


def _done(log: LogClaim, read: Sequence[tuple[Message, str]], vectors: Mapping[UUID, Sequence[float]]) -> LogProgress:
    mine = {message.id: vectors[message.id] for message, _ in read if message.id in vectors}
    return LogProgress(log, read[-1][0].seq if read else log.seq, mine)


def _unit(vectors: Iterable[tuple[UUID, Sequence[float]]]) -> dict[UUID, list[float]]:
    units = {}
    for message_id, vector in vectors:
        with suppress(ValueError):
            if (unit := unit_vector(vector)) is not None:
                units[message_id] = unit
    return units
