"""The system prompt: the agent's instructions with its memory rendered into them. Pure.

Compiled at the start of a turn when the versions it was made from have changed, so that providers can cache
the prefix. The format is that of the reference API (memory blocks, then memory metadata), in Loci's own words.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.ports import BlockView, MemoryView, Prompt
from services.agent.turn import Settings
from services.agent.zones import zone

MARKER = "{CORE_MEMORY}"
_BLOCKS_PREAMBLE = (
    "These blocks are your core memory. They are always in view, and you change them with your memory tools."
)


def versions_of(settings: Settings, memory: MemoryView) -> dict[str, Any]:
    """What a prompt depends on: while these are the same, it is not compiled anew."""
    return {
        "agent": settings.agent_version,
        "blocks": {str(block.id): block.version for block in memory.blocks},
        "passages": memory.passage_count,
        "tags": list(memory.passage_tags),
    }


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
    """The prompt for a turn that begins at `now`.

    `last` is the `versions` of the conversation's latest prompt: when it was made from the same versions, its time
    and count of earlier messages are used again, and the text comes out equal to the byte.
    """
    versions = versions_of(settings, memory)
    stamp = {"compiled_at": now.isoformat(timespec="seconds"), "recalled": recalled}
    if last is not None and all(last.get(name) == value for name, value in versions.items()):
        stamp = {name: last[name] for name in stamp}
    metadata = _metadata(settings, memory, agent_id, conversation_id, stamp)
    section = "\n\n".join(filter(None, (_blocks(memory.blocks), metadata)))
    system = settings.system if MARKER in settings.system else f"{settings.system}\n\n{MARKER}"
    text = system.replace(MARKER, section)
    return Prompt(hashlib.sha256(text.encode()).digest(), text, versions | stamp, versions["blocks"])


def _blocks(blocks: tuple[BlockView, ...]) -> str:
    if not blocks:
        return ""
    rendered = "\n\n".join(map(_block, blocks))
    return f"<memory_blocks>\n{_BLOCKS_PREAMBLE}\n\n{rendered}\n</memory_blocks>"


def _block(block: BlockView) -> str:
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
        "<value>",
        block.value,
        "</value>",
        f"</{block.label}>",
    ]
    return "\n".join(lines)


def _metadata(
    settings: Settings, memory: MemoryView, agent_id: UUID, conversation_id: UUID, stamp: Mapping[str, Any]
) -> str:
    compiled_at = datetime.fromisoformat(stamp["compiled_at"]).astimezone(zone(settings.timezone))
    conversation = "default" if conversation_id == agent_id else f"conv-{conversation_id}"
    lines = [
        "<memory_metadata>",
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
    return "\n".join([*lines, "</memory_metadata>"])
