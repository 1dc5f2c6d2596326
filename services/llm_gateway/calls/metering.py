"""The account of one call: what it reserves, what it used, what it costs.

A call is accounted once, when it is complete. One that breaks off or is left after its first delta is accounted by
estimate, because the provider charges for it; one that failed before costs nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from services.common.ids import uuid7
from services.llm_gateway.budgets.service import Hold, Ledger
from services.llm_gateway.core.chat import ChatRequest, Delta, FailedTry, Generation, ToolCallDelta, Usage
from services.llm_gateway.core.costs import cost_of
from services.llm_gateway.core.models import ChatModel, EmbeddingModel
from services.llm_gateway.core.token_estimates import estimate, estimate_request
from services.llm_gateway.usage.model import UsageRow


@dataclass(frozen=True, slots=True)
class Account:
    """The payer of a call."""

    organization_id: UUID
    run_id: UUID | None = None
    step_id: UUID | None = None
    agent_id: UUID | None = None


class Meter:
    """One call of a model; `close` it when the call is over."""

    def __init__(self, ledger: Ledger, account: Account, model: ChatModel | EmbeddingModel, kind: str) -> None:
        self._ledger = ledger
        self._account = account
        self._model = model
        self._kind = kind
        self._started = time.monotonic()
        self._hold = Hold()

    async def reserve(self, tokens: Callable[[], int]) -> None:
        """Reserves room in the budgets for so many input tokens; `tokens` is called where there is one. Raises
        LlmBudgetExhausted.
        """
        model = self._model
        self._hold = await self._ledger.reserve(self._account.organization_id, model.price, model.handle, tokens)

    def charge(self, usage: Usage, provider_model: str = "") -> int | None:
        """Accounts for the call; returns its cost in billionths of a US dollar."""
        model, account = self._model, self._account
        cost = cost_of(model.price, usage)
        self._hold.release()
        self._ledger.add(
            UsageRow(
                organization_id=account.organization_id,
                id=uuid7(),
                kind=self._kind,
                handle=model.handle,
                run_id=account.run_id,
                step_id=account.step_id,
                agent_id=account.agent_id,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_input_tokens=usage.cached_input_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                estimated=usage.estimated,
                provider_model=provider_model or model.name,
                milliseconds=round((time.monotonic() - self._started) * 1000),
                created_at=datetime.now(UTC),
                cost_nanos_usd=cost,
            )
        )
        return cost

    def close(self) -> None:
        """Gives back what is still reserved."""
        self._hold.release()


class ReplyMeter(Meter):
    """The meter of a chat. It is told of every delta and of the end."""

    def __init__(self, ledger: Ledger, account: Account, model: ChatModel, request: ChatRequest) -> None:
        super().__init__(ledger, account, model, "chat")
        self._request = request
        self._written = 0
        self._is_owed = False

    def hear(self, delta: Delta) -> None:
        """Counts more of the reply."""
        self._is_owed = True
        self._written += len(delta.arguments if isinstance(delta, ToolCallDelta) else delta.text)

    def completed(self, generation: Generation, failed: Sequence[FailedTry]) -> Generation:
        """Returns the reply with its handle, its cost and the handles that failed before."""
        self._is_owed = False
        cost = self.charge(generation.usage, generation.provider_model)
        return replace(generation, handle=self._model.handle, cost=cost, failed_tries=tuple(failed))

    def close(self) -> None:
        """See Meter.close; what came of a reply without its end is charged by estimate."""
        if self._is_owed:
            self._is_owed = False
            self.charge(Usage(estimate_request(self._request), estimate(self._written), estimated=True))
        super().close()
