"""The demo model's memory: it reads its system prompt, and edits memory with the tools it has.
Pure.
"""

import re
from collections.abc import Mapping, Sequence

from services.llm_gateway.core.chat import ToolSpec
from services.llm_gateway.vendors.demo.directives import PlannedCall

HUMAN = "human"
_SECTION = re.compile(r"<memory_blocks>(.*?)</memory_blocks>", re.DOTALL)
_BLOCK = re.compile(r"<([\w.-]+)>\s*(?:<description>.*?)?<value>\n?(.*?)\n?</value>\s*</\1>", re.DOTALL)
_NAME = re.compile(r"\bname(?: is|:)\s*([A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*)", re.IGNORECASE)


def blocks_in(system: str) -> dict[str, str]:
    """Label -> value of the memory blocks that a compiled system prompt shows."""
    section = _SECTION.search(system)
    return {match[1]: match[2] for match in _BLOCK.finditer(section[1])} if section else {}


def name_in(blocks: Mapping[str, str]) -> str:
    """The user's name as the human block, or else any other but the persona's, has it; empty if none."""
    others = [value for label, value in blocks.items() if label not in (HUMAN, "persona")]
    for value in (blocks.get(HUMAN, ""), *others):
        if match := _NAME.search(value):
            return match[1]
    return ""


def lines_about(topic: str, blocks: Mapping[str, str]) -> list[str]:
    """The lines of the blocks that contain a word of the topic (of three letters or more)."""
    words = [word for word in re.findall(r"\w{3,}", topic.lower()) if word not in ("about", "the", "and")]
    lines = (line.strip() for value in blocks.values() for line in value.splitlines())
    return [line for line in lines if line and any(word in line.lower() for word in words)]


class Pen:
    """Edits the human block with whichever memory tool there is."""

    def __init__(self, tools: Sequence[ToolSpec], blocks: Mapping[str, str], has_section: bool) -> None:
        self._names = {tool.name for tool in tools}
        self._value = blocks.get(HUMAN, "")
        self._has_block = HUMAN in blocks or not has_section

    @property
    def can_write(self) -> bool:
        """Whether there is a tool and a block."""
        return self._has_block and bool(self._names & {"memory_insert", "core_memory_append"})

    def knows(self, line: str) -> bool:
        """Whether the block has that line already."""
        return line.lower() in (known.strip().lower() for known in self._value.splitlines())

    def add(self, text: str) -> PlannedCall:
        """Append lines to the block."""
        if "memory_insert" in self._names:
            return PlannedCall("memory_insert", {"label": HUMAN, "new_string": text})
        return PlannedCall("core_memory_append", {"label": HUMAN, "content": text})

    def change(self, old: str, new: str) -> PlannedCall:
        """Put `new` where `old` stands, or append it where that is not possible."""
        if self._value.count(old) == 1:
            if "memory_replace" in self._names:
                arguments = {"label": HUMAN, "old_string": old, "new_string": new}
                return PlannedCall("memory_replace", arguments)
            if "core_memory_replace" in self._names:
                arguments = {"label": HUMAN, "old_content": old, "new_content": new}
                return PlannedCall("core_memory_replace", arguments)
        return self.add(new)

    def name_line(self) -> str:
        """The line `Name: ...` as the block has it, empty without one."""
        match = re.search(r"^Name: .*$", self._value, re.MULTILINE)
        return match[0] if match else ""
