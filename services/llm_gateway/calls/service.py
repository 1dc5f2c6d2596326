"""The calls to models: find the model, check what is asked, reserve, call with retries, trace, account.

The path of every turn, so it stays short: no catalogue query where memory or the table knows the model, no wait for the
account to be written, no statement for a tenant whose budgets were read before. A chat goes, from the caller inwards,
through `coalesce` (deltas put together), `_answer` (fallbacks), `_ask` (account and span), `retry_events`,
`Endpoint.events` (breaker and gate), the provider.
"""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import UUID

from opentelemetry.trace import SpanKind

from services.common import telemetry
from services.llm_gateway.budgets.service import Ledger
from services.llm_gateway.calls.coalesce import coalesce
from services.llm_gateway.calls.endpoints import EndpointCall, Endpoints
from services.llm_gateway.calls.metering import Account, Meter, ReplyMeter
from services.llm_gateway.calls.retry import Clock, RetryPolicy, retry, retry_events
from services.llm_gateway.calls.spans import attributes_of, chat_attributes, describe, describe_excess
from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event, Generation, Usage
from services.llm_gateway.core.default_settings import with_defaults
from services.llm_gateway.core.errors import LlmBadRequest, LlmError
from services.llm_gateway.core.fallbacks import FallbackChain
from services.llm_gateway.core.models import ChatModel, EmbeddingModel
from services.llm_gateway.core.parallel_calls import FirstCallOnly
from services.llm_gateway.core.ports import Reranker
from services.llm_gateway.core.request_check import check
from services.llm_gateway.core.stops import StopFilter
from services.llm_gateway.core.token_estimates import RELATIVE_ERROR, estimate, estimate_request
from services.llm_gateway.core.tool_fitting import ToolFitting, with_problems
from services.llm_gateway.core.trace import RequestPreview
from services.llm_gateway.models.embeddings import Batches, embed_batch
from services.llm_gateway.models.service import Catalogue, Target
from services.llm_gateway.providers.registry import ProviderRegistry

logger = logging.getLogger(__name__)

# Where another handle is ready to be asked, nobody waits longer than this for the first.
_WAIT_BEFORE_FALLBACK = 2.0
# No request has more tokens.
_MOST_COUNTED = 100_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules by which calls are made. `flush_seconds`: how long deltas are gathered. `fallbacks`: the operator's, by
    handle.
    """

    retries: RetryPolicy = field(default_factory=RetryPolicy)
    flush_seconds: float = 0.025
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Input tokens; by how much the count may be off, as a share of it: 0 for the provider's own."""

    tokens: int
    relative_error: float = 0.0

    @property
    def estimated(self) -> bool:
        """Returns whether the count is ours."""
        return self.relative_error > 0


class Calls:
    """The calls to models. Each takes the seconds its caller still waits, or None."""

    def __init__(
        self, catalogue: Catalogue, providers: ProviderRegistry, endpoints: Endpoints, ledger: Ledger, policy: Policy
    ) -> None:
        self._catalogue = catalogue
        self._providers = providers
        self._endpoints = endpoints
        self._ledger = ledger
        self._policy = policy
        self._fitting = ToolFitting()

    async def generate(self, request: ChatRequest, account: Account, remaining: float | None) -> Generation:
        """Makes one blocking call. Raises LlmError."""
        async with aclosing(self._answer(request, account, Clock(remaining), stream=False)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    return event.generation
        raise AssertionError("a provider ended without Completed")

    def stream(self, request: ChatRequest, account: Account, remaining: float | None) -> AsyncGenerator[Event, None]:
        """Yields the deltas, coalesced, and the end. Closing it closes the provider call. Raises LlmError."""
        events = self._answer(request, account, Clock(remaining), stream=True)
        return coalesce(events, self._policy.flush_seconds)

    async def _answer(
        self, request: ChatRequest, account: Account, clock: Clock, *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        """Yields the reply of the first handle that begins one. After its first event its errors are the caller's."""
        route = FallbackChain(request, self._policy.fallbacks)
        model: ChatModel | None = None
        begun = False
        while True:
            try:
                model = None
                target = await self._catalogue.callable_model(account.organization_id, route.handle)
                model = target.model
                attempt = with_defaults(route.request_to(model), model)
                check(attempt, model)
                async with aclosing(self._ask_fitted(attempt, target, account, clock, route, stream=stream)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except LlmError as error:
                if begun:
                    raise
                if not route.goes_on(error, model, clock.remaining()):
                    raise route.failure() from error.__cause__

    async def _ask_fitted(
        self,
        request: ChatRequest,
        target: Target,
        account: Account,
        clock: Clock,
        route: FallbackChain,
        *,
        stream: bool,
    ) -> AsyncGenerator[Event, None]:
        """Yields the reply of one handle to the tools that it takes: one that its vendor refuses is left out."""
        model = target.model
        while True:
            fitted, begun = self._fitting.fit(request, model), False
            try:
                async with aclosing(self._ask(fitted.request, target, account, clock, route, stream=stream)) as events:
                    async for event in events:
                        begun = True
                        yield with_problems(fitted.restored(event), fitted.problems)
                return
            except LlmError as error:
                if begun or not self._fitting.leave_out(error, fitted, model):
                    raise
                logger.warning("%s refuses a tool, which is left out from now on: %s", model.handle, error.message)

    async def _ask(
        self,
        request: ChatRequest,
        target: Target,
        account: Account,
        clock: Clock,
        route: FallbackChain,
        *,
        stream: bool,
    ) -> AsyncGenerator[Event, None]:
        """Yields the reply of one handle, and accounts for it."""
        model = target.model
        provider = await self._providers.get(target.config)
        endpoint = self._endpoints.of(target.config)
        call = EndpointCall(account.organization_id, model, clock, own_patience=request.stall_timeout is not None)
        retries = self._policy.retries
        if not route.is_last:
            retries = replace(retries, longest_wait=min(retries.longest_wait, _WAIT_BEFORE_FALLBACK))
        filtered = FirstCallOnly() if request.parallel_tool_calls is False and request.tools else None
        stopped = StopFilter(request.stop) if request.stop else None
        meter = ReplyMeter(self._ledger, account, model, request)
        await meter.reserve(lambda: estimate_request(request))
        try:
            with telemetry.span(f"chat {model.name}", kind=SpanKind.CLIENT, **chat_attributes(request, model)) as span:
                try:
                    once = endpoint.calling(call, lambda: provider.generate(request, model, stream=stream))
                    async with aclosing(retry_events(once, retries, clock)) as events:
                        async for event in events:
                            if isinstance(event, Completed):
                                generation = meter.completed(event.generation, route.failed)
                                describe(span, generation)
                                event = Completed(generation)
                            else:
                                meter.hear(event)
                            passed = event if filtered is None else filtered.passed(event)
                            if passed is None:
                                continue
                            if filtered is not None and filtered.excess:
                                describe_excess(span, model, filtered.excess)
                            for going_on in (passed,) if stopped is None else stopped.passed(passed):
                                yield going_on
                except LlmError as error:
                    span.set_attribute("error.type", error.reason)
                    raise
                finally:
                    endpoint.describe(span)
        finally:
            meter.close()

    async def count_tokens(self, request: ChatRequest, account: Account, remaining: float | None) -> TokenCount:
        """Returns the input tokens of a request. Raises LlmError."""
        target = await self._catalogue.callable_model(account.organization_id, request.handle)
        model = target.model
        request = with_defaults(request, model)
        check(request, model)
        fitted = self._fitting.fit(request, model).request
        provider = await self._providers.get(target.config)
        call = EndpointCall(account.organization_id, model, Clock(remaining))
        once = self._endpoints.of(target.config).asking(call, lambda: provider.count_tokens(fitted, model))
        counted = await retry(once, self._policy.retries, call.clock)
        if counted is None or not 0 <= counted <= _MOST_COUNTED:
            return TokenCount(estimate_request(request), RELATIVE_ERROR)
        return TokenCount(counted)

    async def preview(self, request: ChatRequest, account: Account, *, stream: bool) -> bytes:
        """Returns the body that the provider would be sent for a request; it is not sent. Raises LlmError.

        Where a provider writes prompts itself, its endpoint may be asked how.
        """
        target = await self._catalogue.callable_model(account.organization_id, request.handle)
        request = with_defaults(request, target.model)
        check(request, target.model)
        provider = await self._providers.get(target.config)
        # Nobody opens a connection for it.
        fitted = self._fitting.fit(request, target.model).request
        unsent = replace(fitted, preview=True, websocket=False, run_key="")
        try:
            async with aclosing(provider.generate(unsent, target.model, stream=stream)) as events:
                async for _ in events:
                    break
        except RequestPreview as rendered:
            return rendered.body
        raise AssertionError("a provider was asked that should only have been shown")

    async def embed(
        self, handle: str, texts: Sequence[str], account: Account, remaining: float | None
    ) -> tuple[EmbeddingModel, Embeddings, int | None]:
        """Returns vectors for texts of any number, all or none, and their cost. Raises LlmError."""
        target = await self._catalogue.embedding_model(account.organization_id, handle)
        model = target.model
        provider = await self._providers.get(target.config)
        endpoint = self._endpoints.of(target.config)
        call = EndpointCall(account.organization_id, model, Clock(remaining))
        batches, meter = Batches(texts, model.batch_size), Meter(self._ledger, account, model, "embedding")

        async def one(batch: Sequence[str]) -> Embeddings:
            once = endpoint.asking(call, lambda: embed_batch(provider, model, batch))
            return await retry(once, self._policy.retries, call.clock)

        await meter.reserve(lambda: sum(estimate(len(text)) for text in texts))
        attributes = attributes_of("embeddings", model.provider_type, model.name)
        try:
            with telemetry.span(f"embeddings {model.name}", kind=SpanKind.CLIENT, **attributes) as span:
                embeddings = await batches.embed(one)
                span.set_attribute("gen_ai.usage.input_tokens", batches.tokens)
        finally:
            cost = meter.charge(Usage(batches.tokens, 0)) if batches.answered else None
            meter.close()
        return model, embeddings, cost

    async def rerank(self, organization_id: UUID, handle: str, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Returns how well each text answers the query, 0 to 1. Raises LlmError."""
        config, name = await self._catalogue.reranker(organization_id, handle)
        provider = await self._providers.get(config)
        if not isinstance(provider, Reranker):
            sentence = f"{handle} cannot rerank: providers of type {config.type} do not; those of type local do."
            raise LlmBadRequest(sentence, provider=config.name, handle=handle)
        return await provider.rerank(name, query, texts)
