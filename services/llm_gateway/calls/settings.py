"""The operator's limits of calls: concurrency, fallbacks, budgets of tenants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from services.common.settings import Env, SettingsError
from services.llm_gateway.budgets.model import Budget, Period, validate
from services.llm_gateway.core.errors import BudgetInvalid

_MOST_FALLBACKS = 4
_LIMITS = frozenset({"usd", "tokens", "requests"})


@dataclass(frozen=True, slots=True)
class Limits:
    """concurrency: calls of one provider at once; queue: most that wait for it; fallbacks: handles to ask next, by
    handle; budgets: for every tenant; usage_days: how long single calls are kept.
    """

    concurrency: int = 2_000
    queue: int = 4_000
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    budgets: Sequence[Budget] = ()
    usage_days: int = 400

    @classmethod
    def read(cls, env: Env) -> "Limits":
        """Raises SettingsError."""
        return cls(
            concurrency=env.integer("LOCI_LLM_CONCURRENCY", default=2_000, least=1, most=100_000, example="2000"),
            queue=env.integer("LOCI_LLM_QUEUE", default=4_000, most=1_000_000, example="4000"),
            fallbacks=_fallbacks(env),
            budgets=_budgets(env),
            usage_days=env.integer("LOCI_USAGE_DAYS", default=400, least=1, most=36_500, example="400"),
        )


def _fallbacks(env: Env) -> Mapping[str, Sequence[str]]:
    text, value = _object(env, "LOCI_FALLBACKS")
    if value is None or not all(map(_is_chain, value.items())):
        raise SettingsError(
            f"LOCI_FALLBACKS is {text!r}; expected a JSON object of model handles and at most {_MOST_FALLBACKS} others "
            "to ask where they cannot answer, for example "
            'LOCI_FALLBACKS=\'{"openai/gpt-5": ["anthropic/claude-sonnet-5"]}\''
        )
    return value


def _is_chain(item: tuple[str, Any]) -> bool:
    handle, others = item
    return (
        "/" in handle
        and isinstance(others, list)
        and 0 < len(others) <= _MOST_FALLBACKS
        and all(isinstance(other, str) and "/" in other for other in others)
    )


def _budgets(env: Env) -> Sequence[Budget]:
    text, value = _object(env, "LOCI_BUDGETS")
    try:
        return [_budget(name, limits) for name, limits in (value if value is not None else {"": None}).items()]
    except (ValueError, BudgetInvalid):
        periods = ", ".join(period.value for period in Period)
        raise SettingsError(
            f"LOCI_BUDGETS is {text!r}; expected a JSON object of periods ({periods}) and what each tenant may spend "
            'in one: "usd", "tokens", "requests", each above zero, for example LOCI_BUDGETS=\'{"day": {"usd": 5}}\''
        ) from None


def _budget(name: str, limits: Any) -> Budget:
    """Raises ValueError, BudgetInvalid."""
    if not isinstance(limits, dict) or limits.keys() - _LIMITS:
        raise ValueError(name)
    usd = limits.get("usd")
    if usd is not None and (isinstance(usd, bool) or not isinstance(usd, int | float)):
        raise ValueError(name)
    cost = None if usd is None else round(usd * 1_000_000_000)
    return validate(Budget(Period(name), _count(limits, "requests"), _count(limits, "tokens"), cost, operators=True))


def _count(limits: Mapping[str, Any], name: str) -> int | None:
    count = limits.get(name)
    if count is not None and type(count) is not int:
        raise ValueError(name)
    return count


def _object(env: Env, name: str) -> tuple[str, dict[str, Any] | None]:
    """Returns the setting's text, and the object in it; None where it is none."""
    text = env.text(name, default="{}")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return text, value if isinstance(value, dict) else None
