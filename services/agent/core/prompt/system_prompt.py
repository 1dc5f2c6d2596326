"""The system prompt: the agent's instructions with its memory rendered into them. Pure.

Compiled at the start of a turn when the versions it was made from have changed, so that providers can cache
the prefix. The format is that of the reference API (memory blocks, folders, memory metadata), in Loci's own words.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.facts import ClientSkill, Settings
from services.agent.core.messages import Message, Text, text_of
from services.agent.core.policy import POLICIES
from services.agent.core.ports import BlockView, MemoryView
from services.agent.core.ports_journal import Prompt
from services.agent.core.prompt.directories import render_directories, version_of
from services.agent.core.rules.rule_words import describe
from services.agent.core.turn import Turn
from services.agent.core.zones import zone

MARKER = "{CORE_MEMORY}"
_BLOCKS_PREAMBLE = (
    "These blocks are your core memory. They are always in view, and you change them with your memory tools."
)
_NUMBERS_WARNING = (
    "The line numbers before the arrows are not part of the value. Never write them when you edit the block."
)
_OUTSIDE, _OUTSIDE_END = "<memory_metadata>", "</memory_metadata>"
_RECALLED = "Found in your archival memory for the message that follows; it may or may not matter:"
_NUMBERED_TYPES = ("letta_v1_agent", "memgpt_v2_agent", "sleeptime_agent")


def versions_of(settings: Settings, memory: MemoryView) -> dict[str, Any]:
    """Returns what a prompt depends on: while these are the same, it is not compiled anew."""
    return {
        "agent": settings.agent_version,
        "blocks": {str(block.id): block.version for block in memory.blocks},
        "passages": memory.passage_count,
        "tags": list(memory.passage_tags),
        "files": version_of(memory.directories) if memory.files_version is None else memory.files_version,
    }


def edited_since(versions: Mapping[str, Any] | None, memory: MemoryView) -> bool:
    """Returns whether a block that a prompt was made from has another version now; new blocks do not count."""
    before = (versions or {}).get("blocks") or {}
    return any(before.get(str(block.id), block.version) != block.version for block in memory.blocks)


def compile_prompt(
    settings: Settings,
    memory: MemoryView,
    *,
    agent_id: UUID,
    conversation_id: UUID,
    recalled: int,
    now: datetime,
    last: Mapping[str, Any] | None,
) -> Prompt:
    """Returns the prompt for a turn that begins at `now`.

    `last` is the `versions` of the conversation's latest prompt: when it was made from the same versions, its time
    and count of earlier messages are used again, and the text comes out equal to the byte.
    """
    versions = versions_of(settings, memory)
    stamp = {"compiled_at": now.isoformat(timespec="seconds"), "recalled": recalled}
    if last is not None and all(last.get(name) == value for name, value in versions.items()):
        stamp = {name: last[name] for name in stamp}
    core = core_memory(settings, memory)
    outside = _metadata(settings, memory, agent_id, conversation_id, stamp)
    system = settings.system if MARKER in settings.system else f"{settings.system}\n\n{MARKER}"
    text = system.replace(MARKER, "\n\n".join(filter(None, (core, outside))))
    return Prompt(_hash(text), text, versions | stamp, versions["blocks"])


def core_memory(settings: Settings, memory: MemoryView) -> str:
    """Returns what a prompt shows of memory itself: blocks, tool rules and files."""
    blocks = memory.blocks if POLICIES[settings.agent_type].shows_memory else ()
    sections = (
        _blocks(blocks, numbered=_numbers_lines(settings)),
        describe(settings.tool_rules),
        render_directories(memory.directories, settings.file_limits),
    )
    return "\n\n".join(filter(None, sections))


def outside_memory(prompt: str) -> str:
    """Returns what a prompt says of memory outside of the window; empty where it says nothing, as one that a client
    wrote.
    """
    first, last = prompt.rfind(_OUTSIDE), prompt.rfind(_OUTSIDE_END)
    return prompt[first : last + len(_OUTSIDE_END)] if 0 <= first < last else ""


def overriding_prompt(text: str) -> Prompt:
    """Returns what a request said instead of the agent's prompt; it is made from no version of anything."""
    return Prompt(_hash(text), text, {})


def with_skills(prompt: str, skills: Sequence[ClientSkill]) -> str:
    """Returns the prompt of one request, with what its client's agent can look up."""
    if not skills:
        return prompt
    section = "\n".join(map(_skill, skills))
    return f"{prompt}\n\n<available_skills>\n{section}\n</available_skills>"


def with_instructions(prompt: str, instructions: str) -> str:
    """Returns the prompt of one request, with the client's instructions for it."""
    return "\n\n".join(filter(None, (prompt, instructions)))


def with_passages(history: Sequence[Message], passages: Sequence[str], run_id: UUID) -> Sequence[Message]:
    """Returns the history with passages of the agent's archives before what this run was sent; the prefix stays as it
    was.
    """
    of_run = (place for place, each in enumerate(history) if each.run_id == run_id and each.role != "summary")
    place = next(of_run, None)
    if not passages or place is None:
        return history
    text = "\n".join(f"- {passage}" for passage in passages)
    text_part = Text(f"<archival_memory>\n{_RECALLED}\n{text}\n</archival_memory>")
    message = Message(UUID(int=run_id.int ^ 1), "user", (text_part,), history[place].created_at)
    return [*history[:place], message, *history[place:]]


def recall_query(turn: Turn) -> str:
    """Returns what the run was sent, as words to look for."""
    return "\n".join(
        text_of(message) for message in turn.history if message.run_id == turn.run_id and message.role == "user"
    )


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _numbers_lines(settings: Settings) -> bool:
    """Returns whether lines have numbers: Claude edits better when it sees them; LETTA V1 API, system prompt."""
    return settings.model.startswith("anthropic/") and settings.agent_type in _NUMBERED_TYPES


def _skill(skill: ClientSkill) -> str:
    lines = (f"<name>{skill.name}</name>", f"<description>{skill.description}</description>")
    location = (f"<location>{skill.location}</location>",) if skill.location else ()
    return "\n".join(("<skill>", *lines, *location, "</skill>"))


def _blocks(blocks: tuple[BlockView, ...], *, numbered: bool) -> str:
    if not blocks:
        return ""
    section = "\n\n".join(_block(block, numbered=numbered) for block in blocks)
    return f"<memory_blocks>\n{_BLOCKS_PREAMBLE}\n\n{section}\n</memory_blocks>"


def _block(block: BlockView, *, numbered: bool) -> str:
    metadata = ["- read_only=true"] if block.read_only else []
    metadata += [f"- chars_current={len(block.value)}", f"- chars_limit={block.limit}"]
    lines = [
        f"<{block.label}>",
        "<description>",
        block.description,
        "</description>",
        "<metadata>",
        *metadata,
        "</metadata>",
        *([f"<warning>\n{_NUMBERS_WARNING}\n</warning>"] if numbered else []),
        "<value>",
        _with_numbers(block.value) if numbered else block.value,
        "</value>",
        f"</{block.label}>",
    ]
    return "\n".join(lines)


def _with_numbers(value: str) -> str:
    return "\n".join(f"{number}→ {line}" for number, line in enumerate(value.split("\n"), start=1))


def _metadata(
    settings: Settings, memory: MemoryView, agent_id: UUID, conversation_id: UUID, stamp: Mapping[str, Any]
) -> str:
    compiled_at = datetime.fromisoformat(stamp["compiled_at"]).astimezone(zone(settings.timezone))
    conversation = "default" if conversation_id == agent_id else f"conv-{conversation_id}"
    lines = [
        _OUTSIDE,
        f"- AGENT_ID: agent-{agent_id}",
        f"- CONVERSATION_ID: {conversation}",
        f"- System prompt last recompiled: {compiled_at:%Y-%m-%d %I:%M:%S %p %Z%z}",
        f"- {stamp['recalled']} previous messages between you and the user are stored in recall memory"
        " (use tools to access them)",
    ]
    if memory.passage_count:
        lines.append(
            f"- {memory.passage_count} total memories you created are stored in archival memory"
            " (use tools to access them)"
        )
    if memory.passage_tags:
        lines.append(f"- Available archival memory tags: {', '.join(memory.passage_tags)}")
    return "\n".join([*lines, _OUTSIDE_END])
