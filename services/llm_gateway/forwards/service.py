"""Forwarding of one request: its provider, its budget, the way there and back, its account.

Nothing is tried again: the caller reads the refusal. With a key of the caller's own nothing is accounted.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
from opentelemetry.trace import SpanKind

from services.common import telemetry
from services.common.lazy_imports import import_lazily
from services.llm_gateway.budgets.service import Ledger
from services.llm_gateway.calls.endpoints import Attempt, EndpointCall, Endpoints
from services.llm_gateway.calls.metering import Account, Meter
from services.llm_gateway.calls.retry import Clock
from services.llm_gateway.calls.spans import attributes_of
from services.llm_gateway.core.breaker import Outcome
from services.llm_gateway.core.errors import ProviderNotFound
from services.llm_gateway.core.model_figures import chat_model
from services.llm_gateway.core.models import ChatModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.token_estimates import estimate
from services.llm_gateway.forwards.addresses import TYPES, Forward, check_account, in_dialect, validate, visible_headers
from services.llm_gateway.forwards.answers import AnswerReader
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.providers.entries import ProviderEntry
from services.llm_gateway.recordings.settings import Recordings

if TYPE_CHECKING:
    from services.llm_gateway.forwards.clients import Clients

_CLIENTS = "services.llm_gateway.forwards.clients"
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of an answer."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class End:
    """The end of a complete answer; `text` is the model's."""

    text: str


class Forwards:
    """Forwards requests. It is closed at the end."""

    def __init__(self, catalogue: Catalogue, endpoints: Endpoints, ledger: Ledger, recordings: Recordings) -> None:
        self._catalogue = catalogue
        self._endpoints = endpoints
        self._ledger = ledger
        self._recordings = recordings
        self._clients: Clients | None = None

    async def forward(
        self, request: Forward, account: Account, remaining: float | None
    ) -> AsyncGenerator[Head | bytes | End, None]:
        """Yields the vendor's answer: a Head, pieces of the body, an End. Closing it closes the connection. Raises
        LlmError.

        An answer to a message that breaks off is accounted with what was counted by then.
        """
        one = await self._catalogue.provider_of(account.organization_id, TYPES[validate(request).provider_type])
        if one is None:
            raise _no_provider(request.provider_type)
        config, body = in_dialect(one.config), _object(request.body)
        check_account(request, config)
        model = _model(one, config, body.get("model"))
        meter = None if request.own_key else Meter(self._ledger, account, model, "chat")
        errand = EndpointCall(account.organization_id, model, Clock(remaining))
        patience = config.stall_seconds if body.get("stream") else config.reply_seconds
        reader: AnswerReader | None = None
        try:
            if meter is not None and request.method == "POST":
                await meter.reserve(lambda: estimate(len(request.body)))
            attributes = attributes_of("chat", model.provider_type, model.name)
            async with AsyncExitStack() as stack:
                stack.enter_context(telemetry.span(f"forward {request.path}", kind=SpanKind.CLIENT, **attributes))
                attempt = await stack.enter_async_context(self._endpoints.of(config).attempt(errand))
                clients = await self._load()
                response = await stack.enter_async_context(clients.answer(request, config, patience))
                _report(attempt, response.status)
                head = Head(response.status, visible_headers(response.headers))
                if request.is_message and response.status == 200:
                    reader = AnswerReader(head.headers.get("content-type", ""))
                yield head
                async with aclosing(response.chunks) as chunks:
                    async for chunk in chunks:
                        if reader is not None:
                            reader.feed(chunk)
                        yield chunk
            if reader is not None:
                reader.close()
            yield End(reader.text if reader is not None else "")
        finally:
            if meter is not None:
                _charge(meter, reader)
                meter.close()

    async def close(self) -> None:
        """Closes the connections."""
        if self._clients is not None:
            await self._clients.close()

    async def _load(self) -> "Clients":
        if self._clients is None:
            # Who never hands anything on has no HTTP client in memory; in a thread, because it takes long to import.
            module = await import_lazily(_CLIENTS)
            self._clients = self._clients or module.Clients(self._recordings)
        return self._clients


def _charge(meter: Meter, reader: AnswerReader | None) -> None:
    usage = None if reader is None else reader.usage
    if reader is not None and usage is not None:
        meter.charge(replace(usage, estimated=usage.estimated or not reader.ended), reader.model[:_LONGEST_NAME])


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        # Whatever it is, the vendor says what it thinks of it.
        return {}
    return value if isinstance(value, dict) else {}


def _model(one: ProviderEntry, config: ProviderConfig, name: Any) -> ChatModel:
    """Returns the model that the request is counted as; without a name it is of no model."""
    name = name[:_LONGEST_NAME].replace("\0", "") if isinstance(name, str) else ""
    return chat_model(config, one.listing.by_name.get(name) or ListedModel(name), one.overrides.of(name))


def _report(attempt: Attempt, status: int) -> None:
    attempt.report(Outcome.FAILED if status >= 500 else Outcome.REFUSED if status >= 400 else Outcome.ANSWERED)


def _no_provider(provider_type: str) -> ProviderNotFound:
    setting = f"{provider_type.upper()}_API_KEY"
    return ProviderNotFound(
        f"There is no provider of type {provider_type} to hand this on to: {setting} in the environment of the server "
        "adds one, POST /v1/providers one of your own."
    )
