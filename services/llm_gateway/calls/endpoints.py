"""The endpoints of providers as this process finds them: how busy, whether alive, which models must rest.

A call asks its endpoint before it goes and says what became of it. State is kept for each provider and base URL, and by
each process for itself.
"""

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from opentelemetry.trace import Span

from services.llm_gateway.calls.gate import Gate
from services.llm_gateway.calls.retry import Clock
from services.llm_gateway.core.breaker import Breaker, Outcome
from services.llm_gateway.core.chat import Event
from services.llm_gateway.core.errors import (
    LlmCircuitOpen,
    LlmConnection,
    LlmError,
    LlmRateLimit,
    LlmServerError,
    LlmStreamIncomplete,
    LlmTimeout,
)
from services.llm_gateway.core.models import ChatModel, EmbeddingModel
from services.llm_gateway.core.provider_config import ProviderConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Faults of the endpoint; all else is an answer to one request.
_FAULTS = (LlmConnection, LlmServerError, LlmStreamIncomplete, LlmTimeout)
# A provider that wants a longer rest is asked again after this, lest one wrong header silences a model for hours.
_LONGEST_REST = 60.0
_MOST_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class EndpointCall:
    """A call on its way: its tenant, its model, the time left. `own_patience`: its caller set the longest wait
    for a byte, so that a time-out says nothing of the endpoint.
    """

    organization_id: UUID
    model: ChatModel | EmbeddingModel
    clock: Clock
    own_patience: bool = False


class Attempt:
    """One call at the endpoint. Its outcome is reported once; a stream that breaks later says nothing more."""

    def __init__(self, end: Callable[[Outcome], None]) -> None:
        self._end: Callable[[Outcome], None] | None = end

    def report(self, outcome: Outcome) -> None:
        """Says how the call ended; only the first report counts."""
        if self._end is not None:
            end, self._end = self._end, None
            end(outcome)


class Endpoint:
    """One provider at one base URL."""

    def __init__(
        self, provider: str, address: str, *, concurrency: int, queue: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.gate = Gate(provider, concurrency, queue)
        self.breaker = Breaker()
        self._provider = provider
        self._address = address
        self._now = now
        self._rests: dict[str, float] = {}
        self._last_fault = ""

    @property
    def is_idle(self) -> bool:
        """Returns whether nothing would be lost with it."""
        rests = any(until > self._now() for until in self._rests.values())
        return not (self.gate.running or self.breaker.is_open or self.breaker.in_a_row or rests)

    @asynccontextmanager
    async def attempt(self, call: EndpointCall) -> AsyncGenerator[Attempt, None]:
        """Waits for a place among the calls that run, and keeps it. Raises LlmCircuitOpen, LlmRateLimit, LlmQueueFull,
        LlmTimeout.
        """
        self._check(call)
        await self.gate.enter(call.organization_id, call.model.handle, call.clock.remaining())
        try:
            # It may have opened while the call waited.
            self._check(call)
            probe = self.breaker.begin()
            attempt = Attempt(lambda outcome: self._ended(outcome, probe))
            try:
                yield attempt
            except LlmError as error:
                attempt.report(self._outcome(error, call))
                raise
            finally:
                attempt.report(Outcome.LEFT)
        finally:
            self.gate.leave()

    def calling(
        self, call: EndpointCall, start: Callable[[], AsyncGenerator[Event, None]]
    ) -> Callable[[], AsyncGenerator[Event, None]]:
        """Returns what makes one try: the events of `start()`. Raises what `attempt` does, and the provider's
        LlmError.
        """

        async def events() -> AsyncGenerator[Event, None]:
            async with self.attempt(call) as attempt, aclosing(start()) as events:
                answered = False
                async for event in events:
                    if not answered:
                        answered = True
                        attempt.report(Outcome.ANSWERED)
                    yield event

        return events

    def asking(self, call: EndpointCall, ask: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Returns the same for a call with one result. None: the provider was not asked."""

        async def result() -> T:
            async with self.attempt(call) as attempt:
                reply = await ask()
                if reply is not None:
                    attempt.report(Outcome.ANSWERED)
                return reply

        return result

    def describe(self, span: Span) -> None:
        """Puts its state on a call's span, where it is not at its best."""
        if span.is_recording() and (self.breaker.opened or self.breaker.in_a_row):
            span.set_attribute("loci.endpoint.failures_in_a_row", self.breaker.in_a_row)
            span.set_attribute("loci.endpoint.times_opened", self.breaker.opened)

    def _check(self, call: EndpointCall) -> None:
        now = self._now()
        if (wait := self.breaker.blocked(now)) is not None:
            error = LlmCircuitOpen(
                f"{self._provider} failed again and again ({self._last_fault}) and is left alone for {wait:.1f} s "
                "more. Try again later.",
                provider=self._provider,
                handle=call.model.handle,
                retry_after=wait,
            )
            error.metadata["retry_after"] = f"{wait:.1f}"
            raise error
        if (rest := self._rests.get(call.model.name, 0.0) - now) > 0:
            raise LlmRateLimit(
                f"{self._provider} asked for a rest of {call.model.handle}, of which {rest:.1f} s are left. "
                "Try again later.",
                provider=self._provider,
                handle=call.model.handle,
                retry_after=rest,
            )

    def _outcome(self, error: LlmError, call: EndpointCall) -> Outcome:
        if isinstance(error, LlmRateLimit) and error.retry_after:
            self._rests[call.model.name] = self._now() + min(error.retry_after, _LONGEST_REST)
        if not isinstance(error, _FAULTS):
            return Outcome.REFUSED
        if isinstance(error, LlmTimeout) and call.own_patience:
            return Outcome.LEFT
        # Of the error its reason alone: its text quotes what another tenant was answered.
        self._last_fault = f"last {error.reason} {error.metadata.get('status', '')}".rstrip()
        return Outcome.FAILED

    def _ended(self, outcome: Outcome, probe: bool) -> None:
        was_open, opened = self.breaker.is_open, self.breaker.opened
        self.breaker.end(outcome, self._now(), probe=probe)
        details = {"provider": self._provider, "endpoint": self._address}
        if self.breaker.opened > opened:
            wait = self.breaker.blocked(self._now()) or 0.0
            sentence = "circuit of %s opened for %.0f s (%s)"
            logger.warning(sentence, self._provider, wait, self._last_fault, extra=details)
        elif was_open and not self.breaker.is_open:
            logger.warning("circuit of %s closed", self._provider, extra=details)


class Endpoints:
    """All endpoints that were called. `concurrency`: calls at once of a provider whose options do not say."""

    def __init__(self, *, concurrency: int, queue: int) -> None:
        self._concurrency = concurrency
        self._queue = queue
        self._known: dict[tuple[object, str], tuple[ProviderConfig, Endpoint]] = {}

    def of(self, config: ProviderConfig) -> Endpoint:
        """Returns the endpoint of a provider."""
        key = config.key, config.base_url
        known = self._known.get(key)
        if known is not None and known[0] is config:
            return known[1]
        limit = config.options.get("max_concurrency") or self._concurrency
        if known is None:
            self._forget_idle()
            endpoint = Endpoint(config.name, config.base_url, concurrency=limit, queue=self._queue)
        else:
            endpoint = known[1]
            endpoint.gate.widen(limit)
        self._known[key] = config, endpoint
        return endpoint

    def _forget_idle(self) -> None:
        if len(self._known) >= _MOST_KEPT:
            self._known = {key: known for key, known in self._known.items() if not known[1].is_idle}
