"""The compiled prompt: its format, and that it stays the same while nothing changed."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from services.agent.facts import Settings
from services.agent.ports import BlockView, MemoryView, Prompt
from services.agent.prompt import compile_prompt

AGENT = UUID("01890000-0000-7000-8000-000000000001")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HUMAN = BlockView(UUID(int=1), 1, "human", "Name: Ada", 100, "What is known of the person.")
MEMORY = MemoryView((HUMAN,), 3, ("history", "work"))


def compiled(
    memory: MemoryView = MEMORY,
    last: Prompt | None = None,
    now: datetime = NOW,
    system: str = "Be kind.",
    recalled: int = 7,
) -> Prompt:
    settings = Settings(1, "loci/demo", "loci/hash", system, 32_000, timezone="Europe/Berlin")
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
