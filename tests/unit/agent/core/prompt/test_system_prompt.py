"""The compiled prompt: its format, and that it stays the same while nothing changed."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.facts import ClientSkill, Settings
from services.agent.core.messages import Decision, Message, Return, Role, Text
from services.agent.core.policy import POLICIES
from services.agent.core.ports import BlockView, DirectoryView, FileView, MemoryView
from services.agent.core.ports_journal import Prompt
from services.agent.core.prompt.cuts import with_short_files
from services.agent.core.prompt.system_prompt import (
    compile_prompt,
    overriding_prompt,
    recall_query,
    with_passages,
    with_skills,
)
from services.agent.core.rules.tool_rules import ContinueLoop, ExitLoop, RequiredBeforeExit, RequiresApproval, RunFirst
from services.agent.core.turn import begin_turn

AGENT = UUID("01890000-0000-7000-8000-000000000001")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HUMAN = BlockView(UUID(int=1), 1, "human", "Name: Ada", 100, "What is known of the person.")
MEMORY = MemoryView((HUMAN,), 3, ("history", "work"))


def compiled(
    memory: MemoryView = MEMORY,
    last: Prompt | None = None,
    now: datetime = NOW,
    recalled: int = 7,
    **changes: Any,
) -> Prompt:
    settings = replace(Settings(1, "loci/demo", "loci/hash", "Be kind.", 32_000, timezone="Europe/Berlin"), **changes)
    versions = None if last is None else last.versions
    return compile_prompt(
        settings, memory, agent_id=AGENT, conversation_id=AGENT, recalled=recalled, now=now, last=versions
    )


def test_the_format() -> None:
    text = compiled().text
    assert text.startswith("Be kind.\n\n<memory_blocks>\n")
    block = (
        "<human>\n<description>\nWhat is known of the person.\n</description>\n<metadata>\n- chars_current=9\n"
        "- chars_limit=100\n</metadata>\n<value>\nName: Ada\n</value>\n</human>"
    )
    assert block in text
    assert f"- AGENT_ID: agent-{AGENT}\n- CONVERSATION_ID: default\n" in text
    assert "2026-01-02 04:04:05 AM CET+0100" in text
    assert "- 7 previous messages" in text
    assert "- 3 total memories" in text
    assert "- Available archival memory tags: history, work" in text


def test_the_marker_places_the_memory() -> None:
    text = compiled(system="Before. {CORE_MEMORY} After.").text
    assert text.startswith("Before. <memory_blocks>")
    assert text.endswith("</memory_metadata> After.")


def test_braces_in_blocks_are_left_alone() -> None:
    odd = BlockView(UUID(int=2), 1, "odd", "{CORE_MEMORY} {x}", 100)
    assert compiled(MemoryView((odd,)), system="A {CORE_MEMORY} B").text.count("{CORE_MEMORY}") == 1


def test_nothing_changed_nothing_moves() -> None:
    first = compiled()
    again = compiled(last=first, now=NOW + timedelta(days=1), recalled=99)
    assert (again.text, again.hash, again.versions) == (first.text, first.hash, first.versions)


def test_an_edit_compiles_anew() -> None:
    first = compiled()
    edited = MemoryView((BlockView(HUMAN.id, 2, "human", "Name: Grace", 100),), 3, MEMORY.passage_tags)
    second = compiled(edited, last=first, now=NOW + timedelta(days=1), recalled=99)
    assert second.hash != first.hash
    assert "- 99 previous messages" in second.text
    assert second.block_versions == {str(HUMAN.id): 2}


def test_an_agent_without_blocks() -> None:
    assert "<memory_blocks>" not in compiled(MemoryView()).text


# Sections ---------------------------------------------------------------------------------------------------

SECTIONS = ("<memory_blocks>", "<tool_usage_rules>", "<memory_metadata>")
RULES = (ContinueLoop("a"), ExitLoop("b"))


def test_the_order_of_the_sections() -> None:
    text = compiled(tool_rules=RULES).text
    places = [text.index(section) for section in SECTIONS]
    assert places == sorted(places)
    for section in SECTIONS:
        assert text.count(section) == text.count(section.replace("<", "</")) == 1
    # One blank line between them.
    assert "</memory_blocks>\n\n<tool_usage_rules>" in text
    assert "</tool_usage_rules>\n\n<memory_metadata>" in text


@pytest.mark.parametrize(
    "rules", [(), (RunFirst("a"),), (RequiresApproval("a"),), (RequiredBeforeExit("a"), RunFirst("b"))]
)
def test_rules_that_say_nothing_have_no_section(rules: Any) -> None:
    assert compiled(tool_rules=rules).text == compiled().text


def test_each_rule_has_its_element() -> None:
    assert compiled(tool_rules=(*RULES, RunFirst("c"))).text.count("<tool_rule>") == 2


@pytest.mark.parametrize(
    ("memory", "absent"),
    [
        (replace(MEMORY, passage_count=0), "total memories"),
        (replace(MEMORY, passage_tags=()), "Available archival memory tags"),
        (replace(MEMORY, blocks=()), "<memory_blocks>"),
    ],
)
def test_what_there_is_none_of_is_not_told(memory: MemoryView, absent: str) -> None:
    assert absent in compiled().text
    assert absent not in compiled(memory).text


def test_a_block_that_may_only_be_read_says_so() -> None:
    text = compiled(MemoryView((replace(HUMAN, read_only=True),))).text
    assert "<metadata>\n- read_only=true\n- chars_current=9\n- chars_limit=100\n</metadata>" in text


def test_a_conversation_has_its_id() -> None:
    settings = Settings(1, "loci/demo", "loci/hash", "Be kind.", 32_000)
    text = compile_prompt(
        settings, MEMORY, agent_id=AGENT, conversation_id=UUID(int=5), recalled=0, now=NOW, last=None
    ).text
    assert f"- AGENT_ID: agent-{AGENT}\n- CONVERSATION_ID: conv-{UUID(int=5)}\n" in text


# Line numbers and types -------------------------------------------------------------------------------------

LINES = MemoryView((replace(HUMAN, value="one\n\nthree"),))
CLAUDE = "anthropic/claude-haiku-4-5"


@pytest.mark.parametrize("agent_type", POLICIES)
def test_who_sees_lines_with_numbers(agent_type: str) -> None:
    numbered = agent_type in ("letta_v1_agent", "memgpt_v2_agent", "sleeptime_agent")
    text = compiled(LINES, model=CLAUDE, agent_type=agent_type).text
    assert ("1→ one\n2→ \n3→ three\n</value>" in text) is numbered
    assert ("<warning>" in text) is numbered
    assert "1→" not in compiled(LINES, agent_type=agent_type).text


def test_numbers_are_not_part_of_the_length() -> None:
    assert "- chars_current=10\n" in compiled(LINES, model=CLAUDE).text


@pytest.mark.parametrize("agent_type", POLICIES)
def test_who_sees_blocks(agent_type: str) -> None:
    text = compiled(agent_type=agent_type, tool_rules=RULES).text
    assert ("<memory_blocks>" in text) is (agent_type not in ("react_agent", "workflow_agent"))
    assert "<memory_metadata>" in text
    assert "<tool_usage_rules>" in text


# The prefix stays ---------------------------------------------------------------------------------------------

# Folders --------------------------------------------------------------------------------------------------------

PLAN = FileView(UUID(int=3), "docs/plan.md", True, "[Viewing file start (out of 1 lines)]\n1: Rest.")
NOTES = FileView(UUID(int=4), 'docs/my "R&D"></file>.md')
DOCS = DirectoryView("docs", "What is planned.", "Look here first.", (PLAN, NOTES), 12)
FILED = replace(MEMORY, directories=(DOCS, DirectoryView("empty")))


def test_folders_are_shown_between_rules_and_metadata() -> None:
    text = compiled(FILED, tool_rules=(ContinueLoop("roll"),)).text
    section = (
        "</tool_usage_rules>\n\n<directories>\n"
        "<file_limits>\n- current_files_open=1\n- max_files_open=5\n</file_limits>\n"
        '<directory name="docs">\n'
        "<description>What is planned.</description>\n"
        "<instructions>Look here first.</instructions>\n"
        '<file status="open" name="docs/plan.md">\n'
        "<metadata>\n- read_only=true\n- chars_current=46\n- chars_limit=15000\n</metadata>\n"
        "<value>\n[Viewing file start (out of 1 lines)]\n1: Rest.\n</value>\n"
        "</file>\n"
        '<file status="closed" name="docs/my &quot;R&D&quot;&gt;&lt;/file&gt;.md">\n'
        "<metadata>\n- read_only=true\n- chars_current=0\n- chars_limit=15000\n</metadata>\n"
        "</file>\n"
        "(10 more files are not listed; grep_files and semantic_search_files look through all.)\n"
        "</directory>\n"
        '<directory name="empty">\n</directory>\n'
        "</directories>\n\n<memory_metadata>"
    )
    assert section in text
    assert "<directories>" in compiled(FILED, agent_type="react_agent").text
    assert "<directories>" not in compiled().text


@pytest.mark.parametrize(
    ("window", "chosen", "limit"), [(8_000, None, 3), (200_000, None, 10), (8_000, 0, 0), (8_000, 99, 99)]
)
def test_how_many_files_may_be_open_is_told(window: int, chosen: int | None, limit: int) -> None:
    text = compiled(FILED, context_window_limit=window, max_files_open=chosen).text
    assert f"- max_files_open={limit}\n" in text


def test_prompts_compiled_before_there_were_folders_hold() -> None:
    first = compiled()
    older = replace(first, versions={name: value for name, value in first.versions.items() if name != "files"})
    assert compiled(last=older, now=NOW + timedelta(days=1)).hash == first.hash


# What makes it anew -------------------------------------------------------------------------------------------

CHANGES: list[tuple[str, MemoryView, dict[str, Any]]] = [
    ("an edit", replace(MEMORY, blocks=(replace(HUMAN, version=2, value="Name: Grace"),)), {}),
    ("another block", replace(MEMORY, blocks=(HUMAN, replace(HUMAN, id=UUID(int=2), label="work"))), {}),
    ("a block less", replace(MEMORY, blocks=()), {}),
    ("a passage more", replace(MEMORY, passage_count=4), {}),
    ("a tag more", replace(MEMORY, passage_tags=("history", "play", "work")), {}),
    ("the agent", MEMORY, {"agent_version": 2}),
    ("folders", FILED, {}),
]
# Of the folders in FILED.
FOLDER_CHANGES = [
    ("a file opened", replace(DOCS, files=(PLAN, replace(NOTES, is_open=True, content="x")))),
    ("a file closed", replace(DOCS, files=(replace(PLAN, is_open=False, content=""), NOTES))),
    ("other lines in view", replace(DOCS, files=(replace(PLAN, content="x"), NOTES))),
    ("a file renamed", replace(DOCS, files=(PLAN, replace(NOTES, name="docs/x.md")))),
    ("a file more", replace(DOCS, file_count=13)),
    ("instructions", replace(DOCS, instructions="")),
]


@pytest.mark.parametrize("docs", [row[1] for row in FOLDER_CHANGES], ids=[row[0] for row in FOLDER_CHANGES])
def test_what_is_shown_of_folders_makes_a_prompt_anew(docs: DirectoryView) -> None:
    first, later = compiled(FILED), NOW + timedelta(days=1)
    assert compiled(FILED, last=first, now=later).hash == first.hash
    assert compiled(replace(FILED, directories=(docs, FILED.directories[1])), last=first, now=later).hash != first.hash
    gone = compiled(last=first, now=later)
    assert gone.versions["compiled_at"] == later.isoformat()


def test_cutting_files_for_the_window_is_no_new_version() -> None:
    first, later = compiled(FILED), NOW + timedelta(days=1)
    short = compiled(with_short_files(FILED, 5), last=first, now=later)
    assert short.versions == first.versions
    assert short.hash != first.hash


@pytest.mark.parametrize(("memory", "changes"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_what_makes_a_prompt_anew(memory: MemoryView, changes: dict[str, Any]) -> None:
    first, later = compiled(), NOW + timedelta(days=1)
    second = compiled(memory, last=first, now=later, recalled=99, **changes)
    assert second.versions["compiled_at"] == later.isoformat()
    assert compiled(memory, last=second, now=later + timedelta(days=1), **changes).hash == second.hash


def test_versions_are_as_json_has_them() -> None:
    """They come back from the database as JSON."""
    first = compiled()
    again = replace(first, versions=json.loads(json.dumps(first.versions)))
    assert compiled(last=again, now=NOW + timedelta(days=1), recalled=99).hash == first.hash


# What a request says -----------------------------------------------------------------------------------------


def test_an_overriding_prompt_is_all_there_is() -> None:
    prompt = overriding_prompt("Be {CORE_MEMORY} brief.")
    assert (prompt.text, prompt.versions, prompt.block_versions) == ("Be {CORE_MEMORY} brief.", {}, {})
    assert prompt.hash == overriding_prompt("Be {CORE_MEMORY} brief.").hash != overriding_prompt("").hash


def test_skills_come_after_the_prefix() -> None:
    assert with_skills("prompt", ()) == "prompt"
    skills = (ClientSkill("sail", "How to sail.", "/skills/sail"), ClientSkill("row", "How to row."))
    assert with_skills("prompt", skills) == (
        "prompt\n\n<available_skills>\n"
        "<skill>\n<name>sail</name>\n<description>How to sail.</description>\n<location>/skills/sail</location>\n"
        "</skill>\n<skill>\n<name>row</name>\n<description>How to row.</description>\n</skill>\n</available_skills>"
    )


RUN = UUID(int=9)


def said(number: int, role: Role, *parts: Any, run: UUID = RUN) -> Message:
    return Message(UUID(int=number << 64), role, parts, NOW, run)


EARLIER = said(1, "user", Text("before"), run=UUID(int=8))
SUMMARY, NOW_SAID, REPLIED = said(2, "summary", Text("{}")), said(3, "user", Text("now")), said(4, "assistant")


@pytest.mark.parametrize(
    ("history", "place"),
    [
        ([EARLIER, NOW_SAID, REPLIED], 1),
        ([NOW_SAID], 0),
        # A summary that the run itself wrote stands for what was before.
        ([SUMMARY, NOW_SAID, REPLIED], 1),
        ([SUMMARY, REPLIED], 1),
        ([EARLIER], None),
        ([SUMMARY], None),
        ([], None),
    ],
)
def test_recalled_passages_stand_before_what_was_said(history: list[Message], place: int | None) -> None:
    shown = with_passages(history, ["one", "two"], RUN)
    if place is None:
        assert shown == history
        return
    assert [*shown[:place], *shown[place + 1 :]] == history
    (text,) = shown[place].parts
    assert (shown[place].role, isinstance(text, Text)) == ("user", True)
    assert text.text.startswith("<archival_memory>\n")  # type: ignore[union-attr]
    assert text.text.endswith("\n- one\n- two\n</archival_memory>")  # type: ignore[union-attr]


def test_nothing_recalled_nothing_said() -> None:
    assert with_passages([NOW_SAID], [], RUN) == [NOW_SAID]


def test_what_is_asked_is_what_people_said() -> None:
    settings = Settings(1, "loci/demo", "loci/hash", "", 32_000)
    answer = said(5, "approval", Decision("a", reason="too late"), Return("b", "b", "4"))
    turn = begin_turn(RUN, settings, (EARLIER,), (answer, NOW_SAID, said(6, "user", Text("and then"))))
    assert recall_query(turn) == "now\nand then"
    assert recall_query(begin_turn(RUN, settings, (EARLIER,), (answer,))) == ""
