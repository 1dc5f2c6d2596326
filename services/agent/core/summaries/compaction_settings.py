"""An agent's compaction settings as clients write and read them, with the defaults filled in. Pure.

Source: LETTA V1 API, compaction; the prompts are Loci's own.
"""

import math
from collections.abc import Mapping
from typing import Any

from services.agent.core import model_settings
from services.agent.core.window.compaction import CompactionSettings, Mode

# The light model of a provider, which summarises for agents of all its models.
_LIGHT_MODELS = {
    "anthropic": "anthropic/claude-haiku-4-5",
    "openai": "openai/gpt-5-mini",
    "google_ai": "google_ai/gemini-2.5-flash",
    "letta": "letta/auto",
}
_MODES = tuple(mode for mode in Mode if mode not in (Mode.PARTIAL_EVICT, Mode.STATIC_BUFFER))
_DEFAULTS = CompactionSettings()

_WHAT = """\
Write down, in this order and only where there is something to say:
1. Goals: what each person wants in the end, and why.
2. Facts: who is who, preferences, circumstances, and every exact value that may be needed again (names, dates, \
numbers, identifiers, file paths, commands, addresses, quotations), copied without a change.
3. Decisions: what was agreed or ruled out, and the reason.
4. Work: what was done, with which tools and results, what failed and how it was solved.
5. Open threads: promises, questions without an answer, next steps.
6. The last request: what was asked last, in the words of who asked, and how far the answer got.

Rules:
- An earlier summary holds what no message shows any more: carry over all of it that still matters.
- When something was corrected, keep only what holds now.
- Leave out greetings, repetition and whatever can be looked up again at once. Invent nothing.
- Write in the language of the conversation, as notes for the one who goes on with it.
- Use at most 600 words; fewer where little happened. Answer with the summary alone, without heading or remark."""
_PROMPTS = {
    Mode.ALL: "You keep the record of conversations between an assistant and the people it works for. You are given "
    "the transcript of one, which the assistant will not see again: it goes on from your summary alone.",
    Mode.SLIDING_WINDOW: "You keep the record of conversations between an assistant and the people it works for. You "
    "are given the transcript of the older part of one. The assistant will not see that part again: it goes on from "
    "your summary and from the newer messages, which follow upon the transcript and which you are not shown.",
    Mode.SELF_COMPACT_ALL: "The conversation has grown too long to be shown to you again. Before it is taken out of "
    "your view, summarise all of it, up to this request, for yourself: you will go on from this summary alone. Do not "
    "answer the conversation and do not call a tool now.",
    Mode.SELF_COMPACT_SLIDING_WINDOW: "The conversation has grown too long to be shown to you in full. Before the "
    "messages above are taken out of your view, summarise them for yourself: you will go on from this summary and from "
    "newer messages, which you do not see now. Do not answer the conversation and do not call a tool now.",
}


def settings_from_json(document: Mapping[str, Any]) -> CompactionSettings:
    """Returns settings from what a client wrote; fields that are missing or unknown to this release say nothing.

    Raises ValueError, naming the field and what is expected.
    """
    return CompactionSettings(
        model=_text(document, "model"),
        model_settings=_model_settings(document),
        prompt=_text(document, "prompt"),
        prompt_acknowledgement=_flag(document, "prompt_acknowledgement"),
        clip_chars=_clip_chars(document),
        mode=_mode(document),
        sliding_window_percentage=_percentage(document),
    )


def settings_to_json(settings: CompactionSettings, *, agent_model: str) -> dict[str, Any]:
    """Returns the settings as clients read them: with the model and the prompt that will be used."""
    return {
        "model": settings.model or light_model(agent_model),
        "model_settings": settings.model_settings or None,
        "prompt": prompt_for(settings, settings.mode),
        "prompt_acknowledgement": settings.prompt_acknowledgement,
        "clip_chars": settings.clip_chars,
        "mode": settings.mode.value,
        "sliding_window_percentage": settings.sliding_window_percentage,
    }


def prompt_for(settings: CompactionSettings, mode: Mode) -> str:
    """Returns the instructions for a summariser in `mode`. A prompt of the agent's own holds for every mode."""
    if settings.prompt:
        return settings.prompt
    older = {Mode.PARTIAL_EVICT: Mode.SLIDING_WINDOW, Mode.STATIC_BUFFER: Mode.SLIDING_WINDOW}
    return f"{_PROMPTS[older.get(mode, mode)]}\n\n{_WHAT}"


def light_model(handle: str) -> str:
    """Returns the model that summarises for agents of the model `handle` when they name none."""
    return _LIGHT_MODELS.get(handle.partition("/")[0], handle)


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} must be a text or null, not {_quote(value)}")
    return value or None


def _flag(document: Mapping[str, Any], name: str) -> bool:
    value = document.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {_quote(value)}")
    return bool(value)


def _model_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    value = document.get("model_settings")
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"model_settings must be an object or null, not {_quote(value)}")
    if wrong := model_settings.problem(value or {}):
        raise ValueError(f"model_settings: {wrong}")
    return value or {}


def _clip_chars(document: Mapping[str, Any]) -> int | None:
    value = document.get("clip_chars", _DEFAULTS.clip_chars)
    if value is not None and type(value) is not int:
        raise ValueError(f"clip_chars must be a whole number or null, not {_quote(value)}")
    return value


def _mode(document: Mapping[str, Any]) -> Mode:
    value = document.get("mode")
    if value is None:
        return _DEFAULTS.mode
    if value not in _MODES:
        raise ValueError(f"mode must be one of: {', '.join(_MODES)}; not {_quote(value)}")
    return Mode(value)


def _percentage(document: Mapping[str, Any]) -> float:
    value = document.get("sliding_window_percentage")
    if value is None:
        return _DEFAULTS.sliding_window_percentage
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"sliding_window_percentage must be a number from 0 to 1, not {_quote(value)}")
    return float(value)


def _quote(value: Any) -> str:
    return repr(value)[:80]
