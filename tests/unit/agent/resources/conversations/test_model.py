"""Settings of conversations: what is refused, what is their own, what an update writes."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from loci.agent.v1 import conversation_pb2
from services.agent.resources.conversations.convert import setting_values
from services.agent.resources.conversations.model import (
    MOST_CHARACTERS,
    MOST_ISOLATED,
    ConversationSettings,
    begin,
    change,
    check,
    check_labels,
    window_model,
)
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
WINDOW = 200_000


def _change(before: ConversationSettings, window: int = WINDOW, **values: Any) -> Mapping[str, Any]:
    return change(before, check(values), window=window, now=NOW)


def test_without_settings_everything_is_the_agents() -> None:
    assert begin({}, window=0, now=NOW) == ConversationSettings()


def test_what_is_given_is_its_own() -> None:
    sent = conversation_pb2.Conversation(
        summary="On\0 travel",
        description="Where to go",
        model="openai/large",
        model_settings_json='{"temperature": 0.5}',
    )
    settings = begin(check(setting_values(sent)), window=64_000, now=NOW)
    assert settings.summary == "On travel"
    assert (settings.description, settings.hidden) == ("Where to go", False)
    assert (settings.model, settings.model_settings) == ("openai/large", {"temperature": 0.5})
    # The agent's limit may be beyond this model's window.
    assert settings.context_window_limit == 64_000


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("summary has 100001 characters", {"summary": "x" * (MOST_CHARACTERS + 1)}),
    ("description has 100001 characters", {"description": "x" * (MOST_CHARACTERS + 1)}),
    ("model must be a handle", {"model": "gpt"}),
    ("model must be a handle", {"model": ""}),
    ("model_settings cannot be used: temperature", {"model_settings": {"temperature": "hot"}}),
]


@pytest.mark.parametrize(("sentence", "values"), REFUSED)
def test_what_cannot_be(sentence: str, values: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=sentence) as caught:
        check(values)
    assert caught.value.reason == ("MODEL_HANDLE_INVALID" if "model" in values else "CONVERSATION_INVALID")


def test_a_limit_is_at_least_one_token() -> None:
    with pytest.raises(Refused, match="context_window_limit must be at least 1") as caught:
        setting_values(conversation_pb2.Conversation(context_window_limit=0))
    assert caught.value.reason == "CONVERSATION_INVALID"


def test_a_limit_is_within_the_models_window() -> None:
    with pytest.raises(Refused, match="is 200001; the model's window has 200000 tokens"):
        begin({"context_window_limit": 200_001}, window=WINDOW, now=NOW)
    assert begin({"context_window_limit": WINDOW}, window=WINDOW, now=NOW).context_window_limit == WINDOW


def test_only_what_the_mask_names_is_written() -> None:
    sent = conversation_pb2.Conversation(summary="new", description="new")
    assert _change(ConversationSettings(), **setting_values(sent, ["summary"])) == {"summary": "new"}
    assert _change(ConversationSettings(summary="old"), **setting_values(sent, [])) == {}


LARGE = ConversationSettings(model="openai/large", context_window_limit=5_000)
LIMITS: list[tuple[ConversationSettings, dict[str, Any], int | None]] = [
    # Another model brings its own default, the same keeps the limit.
    (LARGE, {"model": "openai/other"}, 128_000),
    (LARGE, {"model": "openai/large"}, 5_000),
    (LARGE, {"model": "openai/other", "context_window_limit": 9_000}, 9_000),
    # Taken away: with a model of its own that one's default, else the agent's.
    (LARGE, {"context_window_limit": None}, 128_000),
    (LARGE, {"model": None}, None),
    (LARGE, {"model": None, "context_window_limit": 7_000}, 7_000),
    (ConversationSettings(), {"context_window_limit": 7_000}, 7_000),
    (ConversationSettings(context_window_limit=7_000), {"context_window_limit": None}, None),
]


@pytest.mark.parametrize(("before", "values", "limit"), LIMITS)
def test_the_limit_follows_the_model(before: ConversationSettings, values: dict[str, Any], limit: int | None) -> None:
    assert _change(before, **values)["context_window_limit"] == limit


def test_archiving() -> None:
    earlier = NOW - timedelta(days=1)
    assert _change(ConversationSettings(), archived_at=LATER) == {"archived_at": NOW}
    assert _change(ConversationSettings(archived_at=earlier), archived_at=LATER) == {"archived_at": earlier}
    assert _change(ConversationSettings(archived_at=earlier), archived_at=None) == {"archived_at": None}


def test_hiding_and_the_time_of_the_last_message() -> None:
    assert _change(ConversationSettings(), hidden=True) == {"hidden": True}
    assert _change(ConversationSettings(hidden=True), hidden=None) == {"hidden": False}
    assert _change(ConversationSettings(), last_message_at=NOW) == {"last_message_at": NOW}


WINDOWS: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"summary": "x"}, "openai/own", None),
    ({"model": "openai/new"}, None, "openai/new"),
    ({"model": None}, "openai/own", None),
    ({"model": None, "context_window_limit": 5}, "openai/own", "loci/agents"),
    ({"context_window_limit": 5}, "openai/own", "openai/own"),
    ({"context_window_limit": 5}, None, "loci/agents"),
    ({"context_window_limit": None}, None, None),
    ({"context_window_limit": None}, "openai/own", "openai/own"),
]


@pytest.mark.parametrize(("values", "before", "model"), WINDOWS)
def test_whose_window_matters(values: dict[str, Any], before: str | None, model: str | None) -> None:
    assert window_model(values, before, "loci/agents") == model


def test_labels() -> None:
    assert check_labels(["human", "per\0sona", "human"]) == ("human", "persona")
    with pytest.raises(Refused, match="isolated_block_labels has 101 labels"):
        check_labels(str(number) for number in range(MOST_ISOLATED + 1))


def test_masks() -> None:
    sent = conversation_pb2.Conversation()
    assert setting_values(sent, ["summary", "summary"]) == {"summary": None}
    settable = [each.name for each in fields(ConversationSettings)]
    assert setting_values(sent, settable) == dict.fromkeys(settable)
    with pytest.raises(InvalidArgument, match="agent_id, id") as caught:
        setting_values(sent, ["summary", "id", "agent_id"])
    assert caught.value.reason == "UPDATE_MASK_INVALID"
