"""Profiles of the vendors that speak Chat Completions, a row for each. Pure.

Sources, read in November 2026: developers.openai.com/api, api-docs.deepseek.com, inference-docs.cerebras.ai,
console.groq.com/docs, docs.together.ai, docs.x.ai, openrouter.ai/docs, docs.mistral.ai, docs.z.ai, docs.baseten.co,
docs.fireworks.ai, platform.kimi.ai/docs, huggingface.co/docs/inference-providers. Fields that a vendor does not
document are not sent to it. Nobody needs the role `developer`: all take `system`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from services.llm_gateway.vendors.shared import call_ids
from services.llm_gateway.vendors.shared.call_ids import IdShape


class Thoughts(Enum):
    """The way in which a model's thoughts of earlier turns go back to it."""

    # Not at all.
    LEFT_OUT = auto()
    # As text in the message's field `Vendor.thoughts_field`.
    FIELD = auto()
    # As content parts of type thinking.
    PARTS = auto()
    # As `reasoning_details`, unchanged; only those that came from this dialect.
    DETAILS = auto()


class Strict(Enum):
    """The extent to which a tool's schema can be enforced."""

    NO = auto()
    # For each tool alone.
    EACH = auto()
    # For all tools of a request or none.
    ALL = auto()


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """One row.

    `limit` and `thinking_limit` name the field of the output limit, for models that think the second. `placeholder`
    stands where the vendor demands thoughts with a call and there are none (None: it demands none). `required` is its
    word for "call any tool" ("" for none), `names_tools` whether one can be named, `forces_thinkers` whether a model
    that thinks can be made to call. `refuses` are settings it takes from no model, `refuses_of_thinkers` from none
    that thinks, `renames` what it calls others. `switches_thinking`: thinking goes on and off by a field `thinking`.
    `cache_key` is its field for requests that begin alike, `cache_marks` the names of models for which a prompt's end
    is marked. `extra` are fields for models whose names match. `speaks_after_results`: after tool results it wants the
    model to speak before the user does. `embeds`: it has
    embeddings, `most_texts` is the longest batch of embeddings, None for no limit of its own.
    """

    limit: str = "max_tokens"
    thinking_limit: str = "max_tokens"
    thoughts: Thoughts = Thoughts.LEFT_OUT
    thoughts_field: str = "reasoning_content"
    placeholder: str | None = None
    stream_options: bool = True
    parallel: bool = True
    required: str = "required"
    names_tools: bool = True
    none: bool = True
    forces_thinkers: bool = True
    strict: Strict = Strict.NO
    reply_schemas: bool = True
    logprobs: bool = False
    token_ids: bool = False
    refuses: frozenset[str] = frozenset()
    refuses_of_thinkers: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    switches_thinking: bool = False
    ids: IdShape = call_ids.ANY
    cache_key: str = ""
    cache_marks: re.Pattern[str] | None = None
    extra: tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...] = ()
    result_pictures: bool = False
    speaks_after_results: bool = False
    embeds: bool = True
    most_texts: int | None = None
    # Names of models that think, where neither the endpoint nor a table says it.
    thinkers: re.Pattern[str] | None = None
    # Windows of all its models by the option `tier`.
    tier_windows: Mapping[str, int] = field(default_factory=dict)


_OPENAIS = frozenset({"service_tier", "verbosity"})
_PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})

# Any server: what vLLM, SGLang, llama.cpp and LM Studio take.
PLAIN = VendorProfile(
    thinking_limit="max_completion_tokens",
    strict=Strict.EACH,
    logprobs=True,
    token_ids=True,
    ids=call_ids.OPENAI,
)
_OPENAI = replace(PLAIN, token_ids=False, cache_key="prompt_cache_key", most_texts=2_048)
_MOONSHOT = VendorProfile(
    limit="max_completion_tokens",
    thinking_limit="max_completion_tokens",
    thoughts=Thoughts.FIELD,
    # An empty text counts as none there.
    placeholder=" ",
    parallel=False,
    forces_thinkers=False,
    reply_schemas=False,
    refuses=_OPENAIS | {"seed"},
    refuses_of_thinkers=_PENALTIES | {"top_p"},
    switches_thinking=True,
    cache_key="prompt_cache_key",
    embeds=False,
)
_ZAI = VendorProfile(
    thoughts=Thoughts.FIELD,
    # Usage is in the last chunk anyway.
    stream_options=False,
    parallel=False,
    required="",
    names_tools=False,
    none=False,
    reply_schemas=False,
    refuses=_OPENAIS | _PENALTIES | {"seed"},
    switches_thinking=True,
    embeds=False,
)

_VENDORS: Mapping[str, VendorProfile] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "baseten": VendorProfile(refuses=_OPENAIS),
    "cerebras": VendorProfile(
        limit="max_completion_tokens",
        thinking_limit="max_completion_tokens",
        thoughts=Thoughts.FIELD,
        thoughts_field="reasoning",
        strict=Strict.ALL,
        logprobs=True,
        refuses=_PENALTIES | {"verbosity"},
        embeds=False,
        thinkers=re.compile(r"gpt-oss|qwen-3\.|zai-glm"),
        tier_windows={"free": 8_192, "paid": 131_072},
    ),
    "deepseek": VendorProfile(
        embeds=False,
        thoughts=Thoughts.FIELD,
        placeholder="",
        parallel=False,
        forces_thinkers=False,
        reply_schemas=False,
        logprobs=True,
        refuses=_OPENAIS | {"seed"},
        refuses_of_thinkers=_PENALTIES | {"top_p"},
        switches_thinking=True,
    ),
    "fireworks": VendorProfile(thoughts=Thoughts.FIELD, logprobs=True, refuses=_OPENAIS, most_texts=8),
    "groq": VendorProfile(
        limit="max_completion_tokens",
        thinking_limit="max_completion_tokens",
        refuses=_PENALTIES | {"verbosity"},
        # Else their thoughts come inside the text.
        extra=((re.compile(r"qwen"), {"reasoning_format": "parsed"}),),
        embeds=False,
    ),
    "hugging-face": VendorProfile(refuses=_OPENAIS),
    # lmstudio.ai/docs/developer/openai-compat names neither log probabilities nor a newer name of the limit.
    "lmstudio_openai": replace(PLAIN, thinking_limit="max_tokens", logprobs=False, token_ids=False),
    "mistral": VendorProfile(
        thoughts=Thoughts.PARTS,
        stream_options=False,
        required="any",
        strict=Strict.EACH,
        refuses=_OPENAIS,
        renames={"seed": "random_seed"},
        ids=call_ids.MISTRAL,
        cache_key="prompt_cache_key",
        result_pictures=True,
        speaks_after_results=True,
        most_texts=128,
    ),
    "moonshot": _MOONSHOT,
    "moonshot_coding": _MOONSHOT,
    "openrouter": VendorProfile(
        thoughts=Thoughts.DETAILS,
        strict=Strict.EACH,
        logprobs=True,
        ids=call_ids.ANTHROPIC,
        cache_marks=re.compile(r"~?(anthropic/|google/gemini)"),
    ),
    # Its log probabilities have a form of their own.
    "together": VendorProfile(parallel=False, refuses=_OPENAIS),
    "xai": VendorProfile(
        limit="max_completion_tokens",
        thinking_limit="max_completion_tokens",
        logprobs=True,
        refuses=_OPENAIS,
        refuses_of_thinkers=_PENALTIES | {"stop"},
        embeds=False,
    ),
    "zai": _ZAI,
    "zai_coding": _ZAI,
}


def profile_of(provider_type: str, *, is_vendor: bool) -> VendorProfile:
    """Returns the profile of a provider. `is_vendor`: its base URL is the vendor's own; behind another base URL,
    OpenAI's type stands for any server.
    """
    if provider_type == "openai" and not is_vendor:
        return PLAIN
    return _VENDORS.get(provider_type, PLAIN)
