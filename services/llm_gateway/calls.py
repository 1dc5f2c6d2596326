"""The calls to models: find the model, check what is asked, call with retries, trace, account.

The path of every turn, so it stays short: no catalogue query where memory or the table knows the model, no
wait for the account to be written.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from opentelemetry.trace import Span, SpanKind

from services.common import telemetry
from services.common.ids import uuid7
from services.llm_gateway.catalogue import Catalogue
from services.llm_gateway.chat import ChatRequest, Completed, Embeddings, Event, Generation, Image, ToolResult, Usage
from services.llm_gateway.coalesce import coalesced
from services.llm_gateway.errors import LlmBadRequest, LlmError, LlmImagesUnsupported, LlmToolsUnsupported
from services.llm_gateway.ports import UsageRow
from services.llm_gateway.provider import ChatModel, EmbeddingModel
from services.llm_gateway.registry import Providers
from services.llm_gateway.retry import Clock, RetryPolicy, retried, retried_events
from services.llm_gateway.tokens import estimate_request
from services.llm_gateway.usage import UsageLog

_EMBEDDING_CALLS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Account:
    """Who pays for a call."""

    organization_id: UUID
    run_id: UUID | None = None
    step_id: UUID | None = None
    agent_id: UUID | None = None


class Calls:
    """`flush_seconds`: how long deltas are gathered. Each call takes the seconds its caller still waits, or
    None.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        providers: Providers,
        usage: UsageLog,
        *,
        policy: RetryPolicy,
        flush_seconds: float = 0.025,
    ) -> None:
        self._catalogue = catalogue
        self._providers = providers
        self._usage = usage
        self._policy = policy
        self._flush_seconds = flush_seconds

    async def generate(self, request: ChatRequest, account: Account, remaining: float | None) -> Generation:
        """One blocking call. Raises LlmError."""
        async with aclosing(self._events(request, account, remaining, stream=False)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    return event.generation
        raise AssertionError("a provider ended without Completed")

    def stream(self, request: ChatRequest, account: Account, remaining: float | None) -> AsyncGenerator[Event, None]:
        """The same with deltas, coalesced. Closing it closes the provider call. Raises LlmError."""
        return self._events(request, account, remaining, stream=True)

    async def count_tokens(self, request: ChatRequest, account: Account, remaining: float | None) -> tuple[int, bool]:
        """Input tokens of a request, and whether they are our estimate. Raises LlmError."""
        target = await self._catalogue.callable_model(account.organization_id, request.handle)
        model = target.model
        check(request, model)
        provider = await self._providers.get(target.config)
        counted = await retried(lambda: provider.count_tokens(request, model), self._policy, Clock(remaining))
        return (estimate_request(request), True) if counted is None else (counted, False)

    async def embed(
        self, handle: str, texts: Sequence[str], account: Account, remaining: float | None
    ) -> tuple[EmbeddingModel, Embeddings]:
        """Vectors for texts of any number, all or none. Raises LlmError."""
        target = await self._catalogue.embedding_model(account.organization_id, handle)
        model = target.model
        provider = await self._providers.get(target.config)
        clock, started = Clock(remaining), time.monotonic()
        places = asyncio.Semaphore(_EMBEDDING_CALLS_AT_ONCE)

        async def one(batch: Sequence[str]) -> Embeddings:
            async with places:
                return await retried(lambda: provider.embed(model, batch), self._policy, clock)

        attributes = _attributes("embeddings", model.provider_type, model.name)
        with telemetry.span(f"embeddings {model.name}", kind=SpanKind.CLIENT, **attributes) as span:
            parts = await _all(
                one(texts[start : start + model.batch_size]) for start in range(0, len(texts), model.batch_size)
            )
            tokens = sum(part.prompt_tokens for part in parts)
            span.set_attribute("gen_ai.usage.input_tokens", tokens)
        self._account(account, "embedding", handle, Usage(tokens, 0), model.name, started)
        return model, Embeddings([vector for part in parts for vector in part.vectors], tokens)

    async def _events(
        self, request: ChatRequest, account: Account, remaining: float | None, *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        target = await self._catalogue.callable_model(account.organization_id, request.handle)
        model = target.model
        check(request, model)
        provider = await self._providers.get(target.config)
        clock, started = Clock(remaining), time.monotonic()
        with telemetry.span(f"chat {model.name}", kind=SpanKind.CLIENT, **_chat_attributes(request, model)) as span:
            events = retried_events(lambda: provider.generate(request, model, stream=stream), self._policy, clock)
            if stream:
                events = coalesced(events, self._flush_seconds)
            try:
                async with aclosing(events):
                    async for event in events:
                        if isinstance(event, Completed):
                            _describe(span, event.generation)
                            used = event.generation
                            name = used.provider_model or model.name
                            self._account(account, "chat", request.handle, used.usage, name, started)
                        yield event
            except LlmError as error:
                span.set_attribute("error.type", error.reason)
                raise

    def _account(
        self, account: Account, kind: str, handle: str, usage: Usage, provider_model: str, started: float
    ) -> None:
        self._usage.add(
            UsageRow(
                organization_id=account.organization_id,
                id=uuid7(),
                kind=kind,
                handle=handle,
                run_id=account.run_id,
                step_id=account.step_id,
                agent_id=account.agent_id,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_input_tokens=usage.cached_input_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                estimated=usage.estimated,
                provider_model=provider_model,
                milliseconds=round((time.monotonic() - started) * 1000),
                created_at=datetime.now(UTC),
            )
        )


async def _all(work: Iterable[Coroutine[Any, Any, Embeddings]]) -> list[Embeddings]:
    """The results in order; the first failure cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def check(request: ChatRequest, model: ChatModel) -> None:
    """Raises LlmBadRequest for a choice that is none, LlmToolsUnsupported and LlmImagesUnsupported for what the model
    is known not to take.
    """
    can, problem = model.capabilities, ""
    kind: type[LlmError] = LlmBadRequest
    choice = request.tool_choice
    if isinstance(choice, str) and all(tool.name != choice for tool in request.tools):
        problem = f"cannot be made to call {choice}, which is not among the tools offered"
    elif request.tools and not can.tools:
        kind, problem = LlmToolsUnsupported, "takes no tools; detach the agent's tools or choose another model"
    elif not can.vision and any(_has_image(part) for message in request.messages for part in message.parts):
        kind, problem = LlmImagesUnsupported, "takes no images; leave them out or choose another model"
    if problem:
        raise kind(f"{model.handle} {problem}.", provider=model.provider_name, handle=model.handle)


def _has_image(part: object) -> bool:
    return isinstance(part, Image) or (isinstance(part, ToolResult) and any(map(_has_image, part.content)))


def _attributes(operation: str, provider_type: str, name: str) -> dict[str, str]:
    """OpenTelemetry's GenAI conventions; never the prompt."""
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider_type,
        "gen_ai.request.model": name,
    }


def _chat_attributes(request: ChatRequest, model: ChatModel) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {**_attributes("chat", model.provider_type, model.name)}
    if request.max_output_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        attributes["gen_ai.request.temperature"] = request.temperature
    if model.endpoint:
        attributes["server.address"] = model.endpoint
    return attributes


def _describe(span: Span, generation: Generation) -> None:
    if not span.is_recording():
        return
    span.set_attributes(
        {
            "gen_ai.response.model": generation.provider_model,
            "gen_ai.response.id": generation.provider_response_id,
            "gen_ai.response.finish_reasons": [generation.finish_reason.name.lower()],
            "gen_ai.usage.input_tokens": generation.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": generation.usage.completion_tokens,
        }
    )
