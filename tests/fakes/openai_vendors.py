"""The differences of other vendors from OpenAI's Chat Completions, a row for each, as data for their fake."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_ALWAYS = frozenset({"model", "messages", "stream", "tools", "tool_choice", "response_format", "temperature", "top_p"})
_ANY_CHOICE = frozenset({"auto", "none", "required", "named"})
Usage = Callable[[dict[str, Any]], dict[str, Any]]
Body = Callable[[str, str | None, str, int], dict[str, Any]]


def _nested(message: str, code: str | None, kind: str, status: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _flat(message: str, code: str | None, kind: str, status: int) -> dict[str, Any]:
    return {"message": message, "type": kind, "param": None, "code": code}


def _mistral_error(message: str, code: str | None, kind: str, status: int) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": None, "raw_status_code": status}


def _router_error(message: str, code: str | None, kind: str, status: int) -> dict[str, Any]:
    if code == "context_length_exceeded":
        raw = f'{{"error":{{"message":"{message}","type":"{kind}"}}}}'
        return {"error": {"message": "Provider returned error", "code": status, "metadata": {"raw": raw}}}
    return {"error": {"message": message, "code": status}, "user_id": "user_fake"}


def _xai_error(message: str, code: str | None, kind: str, status: int) -> dict[str, Any]:
    return {"code": "Client specified an invalid argument", "error": message}


def _zai_error(message: str, code: str | None, kind: str, status: int) -> dict[str, Any]:
    numbers = {"insufficient_quota": "1113", "rate_limit_exceeded": "1302", "context_length_exceeded": "1261"}
    return {"error": {"code": numbers.get(code or "", "1210"), "message": message}}


def _plain_usage(usage: dict[str, Any]) -> dict[str, Any]:
    return usage


def _without_details(usage: dict[str, Any]) -> dict[str, Any]:
    return {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}


def _deepseek_usage(usage: dict[str, Any]) -> dict[str, Any]:
    hit = usage["prompt_tokens_details"]["cached_tokens"]
    miss = usage["prompt_tokens"] - hit
    return {**_without_details(usage), "prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": miss}


def _moonshot_usage(usage: dict[str, Any]) -> dict[str, Any]:
    return {**_without_details(usage), "cached_tokens": usage["prompt_tokens_details"]["cached_tokens"]}


def _cached_only(usage: dict[str, Any]) -> dict[str, Any]:
    return {**_without_details(usage), "prompt_tokens_details": usage["prompt_tokens_details"]}


def _router_usage(usage: dict[str, Any]) -> dict[str, Any]:
    details = {**usage["prompt_tokens_details"], "cache_write_tokens": 0}
    return {**usage, "prompt_tokens_details": details, "cost": 0.0001}


def _xai_usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Reasoning is counted beside the completion."""
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    return {**usage, "completion_tokens": usage["completion_tokens"] - reasoning}


@dataclass(frozen=True)
class Flavour:
    """One vendor, with models that think.

    `fields` are the request fields that it takes beside those that all take (None: any, ignored), `choices` the
    forms of tool_choice (`choices_of_thinkers`: those that a model takes while it thinks), `formats` those of
    response_format, `assistant` what an assistant message may carry beside content and calls. `demands` is the
    field that it wants with each call. `thoughts` is how its models' thoughts come: a field's name, "details" or
    "parts". `usage_in` is where a stream tells usage: own (a chunk of its own, if it is asked for), last (the last
    chunk, always) or choice. `texts` are its words for kinds of errors, with status and code.
    """

    name: str
    models: tuple[Mapping[str, Any], ...]
    fields: frozenset[str] | None = None
    choices: frozenset[str] = _ANY_CHOICE
    choices_of_thinkers: frozenset[str] | None = None
    formats: frozenset[str] = frozenset({"json_object", "json_schema"})
    assistant: frozenset[str] = frozenset()
    demands: str = ""
    ids: re.Pattern[str] = re.compile(r".+")
    user_after_tool: bool = True
    strict: bool = False
    thoughts: str = "reasoning_content"
    usage: Usage = _plain_usage
    usage_in: str = "own"
    error: Body = _nested
    texts: Mapping[str, tuple[int, str | None, str]] = field(default_factory=dict)
    embeddings: Mapping[str, int] = field(default_factory=dict)
    lists_plainly: bool = False


_PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
_LOGPROBS = frozenset({"logprobs", "top_logprobs"})
_OPTIONS = frozenset({"stream_options"})


def _item(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "vendor", **fields}


FLAVOURS: Mapping[str, Flavour] = {
    flavour.name: flavour
    for flavour in (
        Flavour(
            "deepseek",
            (_item("deepseek-chat"), _item("deepseek-reasoner"), _item("deepseek-flash")),
            _OPTIONS | _LOGPROBS | _PENALTIES | {"max_tokens", "stop", "reasoning_effort", "thinking", "user_id"},
            choices_of_thinkers=frozenset({"auto", "none"}),
            formats=frozenset({"json_object"}),
            assistant=frozenset({"reasoning_content", "prefix"}),
            demands="reasoning_content",
            usage=_deepseek_usage,
            texts={"quota": (402, None, "Insufficient Balance")},
        ),
        Flavour(
            "mistral",
            (
                _item(
                    "mistral-small-latest",
                    max_context_length=262_144,
                    capabilities={"completion_chat": True, "function_calling": True, "vision": True},
                ),
                _item("mistral-embed", max_context_length=8_192, capabilities={"completion_chat": False}),
                _item("mistral-ocr-latest", max_context_length=16_384, capabilities={"completion_chat": False}),
            ),
            _PENALTIES
            | {"max_tokens", "stop", "random_seed", "parallel_tool_calls", "reasoning_effort", "prompt_cache_key"},
            choices=_ANY_CHOICE | {"any"},
            assistant=frozenset({"prefix"}),
            ids=re.compile(r"[a-zA-Z0-9]{9}"),
            user_after_tool=False,
            strict=True,
            thoughts="parts",
            usage=_cached_only,
            usage_in="last",
            error=_mistral_error,
            texts={
                "quota": (402, None, "Insufficient credits."),
                "context_overflow": (
                    400,
                    None,
                    "Prompt contains 130001 tokens and 0 draft tokens, too large for model with 128000 maximum context "
                    "length",
                ),
            },
            embeddings={"mistral-embed": 1_024},
        ),
        Flavour(
            "openrouter",
            (
                _item(
                    "anthropic/claude-sonnet-4.5",
                    name="Claude",
                    context_length=1_000_000,
                    top_provider={"context_length": 200_000, "max_completion_tokens": 64_000, "is_moderated": True},
                    architecture={"input_modalities": ["text", "image"], "output_modalities": ["text"]},
                    pricing={
                        "prompt": "0.000003",
                        "completion": "0.000015",
                        "input_cache_read": "0.0000003",
                        "input_cache_write": "0.00000375",
                    },
                    supported_parameters=["tools", "tool_choice", "reasoning", "max_tokens", "structured_outputs"],
                ),
                _item("some/painter", architecture={"output_modalities": ["image"]}),
                _item("openai/text-embedding-3-small", architecture={"output_modalities": ["embeddings"]}),
            ),
            assistant=frozenset({"reasoning", "reasoning_details"}),
            ids=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
            strict=True,
            thoughts="details",
            usage=_router_usage,
            error=_router_error,
            texts={"quota": (402, None, "Insufficient credits")},
            embeddings={"openai/text-embedding-3-small": 1_536},
        ),
        Flavour(
            "groq",
            (
                _item("openai/gpt-oss-120b", active=True, context_window=131_072, max_completion_tokens=65_536),
                _item("whisper-large-v3", active=True, context_window=448),
                _item("gone", active=False, context_window=8_192),
            ),
            _OPTIONS
            | {"max_completion_tokens", "max_tokens", "stop", "seed", "parallel_tool_calls", "reasoning_effort"}
            | {"reasoning_format", "include_reasoning", "service_tier", "user"},
            thoughts="reasoning",
        ),
        Flavour(
            "together",
            (
                _item(
                    "zai-org/GLM-5.3",
                    type="chat",
                    context_length=1_048_576,
                    pricing={"input": 1.4, "output": 4.4, "cached_input": 0.26, "hourly": 0, "base": 0, "finetune": 0},
                ),
                _item("black-forest/flux", type="image"),
                _item("intfloat/multilingual-e5-large-instruct", type="embedding", context_length=514),
            ),
            _OPTIONS | _PENALTIES | {"max_tokens", "stop", "seed", "reasoning_effort"},
            assistant=frozenset({"reasoning_content", "reasoning"}),
            thoughts="reasoning",
            embeddings={"intfloat/multilingual-e5-large-instruct": 1_024},
            lists_plainly=True,
        ),
        Flavour(
            "xai",
            (_item("grok-4.3"), _item("grok-imagine-image")),
            _OPTIONS
            | _LOGPROBS
            | {"max_completion_tokens", "max_tokens", "seed", "parallel_tool_calls", "reasoning_effort", "user"},
            usage=_xai_usage,
            error=_xai_error,
            texts={
                "quota": (403, None, "Your team doesn't have any credits yet."),
                "context_overflow": (
                    400,
                    None,
                    "This model's maximum prompt length is 128000 but the request contains 130001 tokens.",
                ),
            },
        ),
        Flavour(
            "cerebras",
            (_item("gpt-oss-120b"),),
            _OPTIONS
            | _LOGPROBS
            | {
                "max_completion_tokens",
                "stop",
                "seed",
                "parallel_tool_calls",
                "reasoning_effort",
                "service_tier",
                "user",
            },
            assistant=frozenset({"reasoning"}),
            strict=True,
            thoughts="reasoning",
            error=_flat,
            texts={
                "context_overflow": (
                    400,
                    "context_length_exceeded",
                    "Please reduce the length of the messages or completion. Current length is 130001 while limit is "
                    "128000",
                )
            },
        ),
        Flavour(
            "zai",
            (_item("glm-5"), _item("glm-4.7")),
            frozenset({"max_tokens", "stop", "thinking", "do_sample", "tool_stream", "request_id", "reasoning_effort"}),
            choices=frozenset({"auto"}),
            formats=frozenset({"json_object"}),
            assistant=frozenset({"reasoning_content"}),
            usage=_cached_only,
            usage_in="last",
            error=_zai_error,
            texts={"context_overflow": (400, "context_length_exceeded", "Prompt exceeds max length")},
        ),
        Flavour(
            "moonshot",
            (_item("kimi-k2.6", context_length=262_144, supports_image_in=True, supports_reasoning=True),),
            _OPTIONS
            | {"max_completion_tokens", "max_tokens", "stop", "thinking", "prompt_cache_key", "reasoning_effort"},
            choices=frozenset({"auto", "none"}),
            formats=frozenset({"json_object"}),
            assistant=frozenset({"reasoning_content", "partial"}),
            demands="reasoning_content",
            usage=_moonshot_usage,
            usage_in="choice",
            texts={"quota": (429, "exceeded_current_quota_error", "suspended due to insufficient balance")},
        ),
    )
}
ALWAYS = _ALWAYS
