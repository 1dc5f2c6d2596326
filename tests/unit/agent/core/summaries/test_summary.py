"""The transcript for a summariser, and the fate of its summary."""

from dataclasses import asdict
from datetime import datetime
from zoneinfo import ZoneInfo

import orjson
import pytest

from services.agent.core.messages import Decision, Image, Reasoning, Return, Text
from services.agent.core.summaries.bare_summary import bare_summary
from services.agent.core.summaries.compaction_settings import prompt_for
from services.agent.core.summaries.summary import PREVIOUS, clip_summary, joined_block, pack, summary_of, unpack
from services.agent.core.summaries.transcript import request, request_to_itself, transcript
from services.agent.core.window.compaction import CompactionSettings, Mode
from services.agent.core.window.context import sendable
from services.agent.core.window.sizes import estimate_text
from tests.unit.agent.histories import STATS, answer, call, message, summary

SETTINGS = CompactionSettings()
HISTORY = [
    summary(0, "They met."),
    message(1, "user", Text("Roll a die."), Image("A", media_type="image/png")),
    message(2, "assistant", Reasoning("Let me see."), call("a", '{"sides":6}', gated=True)),
    message(3, "approval", Decision("a", approve=True, reason="go on")),
    message(4, "tool", answer("a")),
    message(5, "tool", Return("b", "look", "no light", is_error=True)),
    message(6, "user", Text("Thanks, roll again.")),
]
TRANSCRIPT = """\
[2026-01-01 00:00] earlier summary: They met.
[2026-01-01 00:01] user: Roll a die.
[a picture was here]
[2026-01-01 00:02] assistant: calls roll with {"sides":6}
[2026-01-01 00:03] approval: allows the call: go on
[2026-01-01 00:04] tool: roll returned: 4
[2026-01-01 00:05] tool: look failed: no light
[2026-01-01 00:06] user: Thanks, roll again."""


def test_a_transcript_is_readable() -> None:
    assert transcript(HISTORY, None, budget=1_000) == TRANSCRIPT


def test_a_long_message_is_cut_in_its_middle() -> None:
    long = message(0, "user", Text("a" * 5_000 + "z" * 5_000))
    for shown in (transcript([long], 400, budget=9_000), transcript([long], None, budget=140)):
        assert 300 < len(shown) <= 420
        assert shown.startswith("[2026-01-01 00:00] user: aaa")
        assert shown.endswith("zzz")
        assert "characters are left out here" in shown


def test_the_longest_messages_give_way_first() -> None:
    shown = transcript([message(0, "user", Text("x" * 9_000)), *HISTORY], None, budget=600)
    assert shown.endswith(TRANSCRIPT)


def test_many_messages_lose_their_middle() -> None:
    shown = transcript([message(n, "user", Text(f"number {n}")) for n in range(999)], None, budget=300)
    assert "number 0\n" in shown
    assert shown.endswith("number 998")
    assert estimate_text(shown) <= 300


def test_what_a_summariser_is_asked() -> None:
    asked = request(HISTORY, SETTINGS, Mode.ALL, window=8_000)
    assert asked.prompt == prompt_for(SETTINGS, Mode.ALL)
    (only,) = asked.history
    assert only.role == "user"
    assert f"<transcript>\n{TRANSCRIPT}\n</transcript>" in only.parts[0].text  # type: ignore[union-attr]


def test_a_summariser_may_be_made_to_agree_first() -> None:
    asked = request(HISTORY, CompactionSettings(prompt_acknowledgement=True), Mode.ALL, window=8_000)
    assert [each.role for each in asked.history] == ["user", "assistant", "user"]


def test_an_agent_that_summarises_sees_what_it_saw() -> None:
    asked = request_to_itself(HISTORY, SETTINGS, Mode.SELF_COMPACT_ALL, window=8_000, fixed=1_000)
    assert asked is not None
    assert asked.prompt is None
    assert list(asked.history[:-1]) == sendable(HISTORY)
    assert asked.history[-1].parts == (Text(prompt_for(SETTINGS, Mode.SELF_COMPACT_ALL)),)


def test_an_agent_does_not_summarise_what_it_cannot_see() -> None:
    long = [*HISTORY, message(7, "user", Text("x" * 30_000))]
    assert request_to_itself(long, SETTINGS, Mode.SELF_COMPACT_ALL, window=8_000, fixed=1_000) is None


def test_a_summary_without_a_model() -> None:
    assert bare_summary(HISTORY, budget=500).split("\n") == [
        "They met.",
        "6 messages (2 user, 1 assistant, 1 approval, 2 tool) from 2026-01-01 00:01 UTC to 2026-01-01 00:06 UTC. "
        "No summary of their content could be written; conversation_search finds each of them.",
        "The last request among them: Thanks, roll again.",
        "The first: Roll a die.",
        "[a picture was here]",
        "Tools called: roll (1).",
    ]


@pytest.mark.parametrize("budget", [1, 10, 60, 200])
def test_a_summary_without_a_model_keeps_to_its_budget(budget: int) -> None:
    huge = [summary(0, "你好" * 9_000), *(message(n, "user", Text("🎉" * 9_000)) for n in range(9))]
    assert estimate_text(bare_summary(huge, budget=budget)) <= budget


def test_a_packed_summary_has_the_form_of_the_reference() -> None:
    at = datetime(2026, 7, 1, 15, 4, 5, tzinfo=ZoneInfo("Europe/Berlin"))
    alert = orjson.loads(pack("in short", at=at, stats=STATS))
    assert set(alert) == {"type", "message", "time", "compaction_stats"}
    assert alert["type"] == "system_alert"
    assert alert["message"].endswith("\n\nin short")
    assert alert["time"] == "2026-07-01 03:04:05 PM CEST+0200"
    assert alert["compaction_stats"] == asdict(STATS)


@pytest.mark.parametrize("text", ["in short", "", '你好 🎉 \\ " \n'])
def test_what_is_packed_is_unpacked(text: str) -> None:
    assert unpack(pack(text, at=message(0, "user").created_at, stats=STATS)) == (text, STATS)


@pytest.mark.parametrize(
    ("text", "unpacked"),
    [
        ("in short", None),
        ("[]", None),
        ('{"type": "login"}', None),
        ('{"type": "system_alert", "message": 3}', None),
        ('{"type": "system_alert", "message": "Note: so it was.", "time": "now"}', ("Note: so it was.", None)),
        ('{"type": "system_alert", "message": "so", "compaction_stats": {"trigger": "odd"}}', ("so", None)),
    ],
)
def test_what_others_packed(text: str, unpacked: tuple[str, None] | None) -> None:
    assert unpack(text) == unpacked
    assert summary_of(message(0, "summary", Text(text))) == (text if unpacked is None else unpacked[0])


def test_a_summary_is_clipped_by_its_settings_and_its_window() -> None:
    long = "x" * 9_000
    assert len(clip_summary(long, 500, 100_000)) == 500
    assert clip_summary(f" {long}\n", None, 100_000) == clip_summary(long, 0, 100_000) == long
    assert estimate_text(clip_summary(long, None, 4_000)) <= 600


@pytest.mark.parametrize(
    ("old", "limit", "joined"),
    [
        ("", 99, "new"),
        ("", 2, "ne"),
        ("old", 99, f"new{PREVIOUS}old"),
        ("older", len(f"new{PREVIOUS}") + 3, f"new{PREVIOUS}old"),
        ("old", 3, "new"),
    ],
)
def test_summaries_in_a_block(old: str, limit: int, joined: str) -> None:
    assert joined_block(old, "new", limit) == joined
