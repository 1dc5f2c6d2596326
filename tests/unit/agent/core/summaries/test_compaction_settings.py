"""Compaction settings as clients write and read them."""

from typing import Any

import pytest

from services.agent.core.summaries.compaction_settings import (
    light_model,
    prompt_for,
    settings_from_json,
    settings_to_json,
)
from services.agent.core.window.compaction import CompactionSettings, Mode

ALL_SET = {
    "model": "letta/auto",
    "model_settings": {"temperature": 0.1},
    "prompt": "Be brief.",
    "prompt_acknowledgement": True,
    "clip_chars": None,
    "mode": "self_compact_all",
    "sliding_window_percentage": 0.5,
}


def test_nothing_said_is_the_defaults() -> None:
    assert settings_from_json({}) == CompactionSettings()
    assert settings_from_json(dict.fromkeys(ALL_SET) | {"clip_chars": 50_000, "of_tomorrow": 1}) == CompactionSettings()


def test_what_is_written_is_read() -> None:
    settings = settings_from_json(ALL_SET)
    assert settings_to_json(settings, agent_model="openai/gpt-4o") == ALL_SET
    assert settings_from_json(settings_to_json(settings, agent_model="x/y")) == settings


def test_defaults_are_shown() -> None:
    shown = settings_to_json(CompactionSettings(), agent_model="openai/gpt-4o")
    assert shown["prompt"] == prompt_for(CompactionSettings(), Mode.SLIDING_WINDOW)
    assert {name: shown[name] for name in shown if name != "prompt"} == {
        "model": "openai/gpt-5-mini",
        "model_settings": None,
        "prompt_acknowledgement": False,
        "clip_chars": 50_000,
        "mode": "sliding_window",
        "sliding_window_percentage": 0.3,
    }


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("model", 3, "a text or null"),
        ("model_settings", [], "an object or null"),
        ("model_settings", {"temperature": 9}, "temperature must be a number"),
        ("prompt", {}, "a text or null"),
        ("prompt_acknowledgement", "yes", "true or false"),
        ("clip_chars", 1.5, "a whole number or null"),
        ("clip_chars", True, "a whole number or null"),
        ("mode", "partial_evict", "one of: sliding_window, all, self_compact_all, self_compact_sliding_window"),
        ("mode", ["all"], "one of"),
        ("sliding_window_percentage", 1.1, "a number from 0 to 1"),
        ("sliding_window_percentage", float("nan"), "a number from 0 to 1"),
        ("sliding_window_percentage", True, "a number from 0 to 1"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=name) as raised:
        settings_from_json({name: value})
    assert expected in str(raised.value)


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_has_a_prompt(mode: Mode) -> None:
    prompt = prompt_for(CompactionSettings(), mode)
    assert "summar" in prompt
    assert "at most 600 words" in prompt
    assert ("Do not answer the conversation" in prompt) is mode.by_itself
    assert prompt_for(CompactionSettings(prompt="Mine."), mode) == "Mine."


@pytest.mark.parametrize(
    ("of_agent", "light"),
    [
        ("openai/gpt-4o", "openai/gpt-5-mini"),
        ("anthropic/claude-opus-4-5", "anthropic/claude-haiku-4-5"),
        ("loci/demo", "loci/demo"),
    ],
)
def test_who_summarises(of_agent: str, light: str) -> None:
    assert light_model(of_agent) == light
