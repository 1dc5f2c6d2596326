"""The demo model's one command: `use TOOL with name=value, ...`, and how its values become JSON. Pure.

Several tools in one message: joined by "then" they are called in one step after another, joined by "and" at
once. A value is what follows `=` up to the next `, name=`; quotes around it are taken off. It is read as the
type that the tool's JSON Schema gives the argument; where it does not fit it is passed on as text, for the
tool to refuse.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from services.llm_gateway.core.chat import ToolSpec

_USE = re.compile(r"\buse\s+(?=(?:the\s+(?:tool\s+)?)?([\w-]+))(?:the\s+(?:tool\s+)?)?", re.IGNORECASE)
_ARGUMENT = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)\s*=\s*")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”"}


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make."""

    name: str
    arguments: Mapping[str, Any]


Step = Sequence[PlannedCall]


def read_directive(text: str, tools: Sequence[ToolSpec]) -> tuple[Sequence[Step], str]:
    """The steps that a message commands, and the name of a tool that it names but that is not offered."""
    match = _USE.search(text)
    if match is None:
        return (), ""
    offered = {tool.name: tool for tool in tools}
    if match[1] not in offered:
        # "use" is also an everyday word: only what looks like a tool's name or has arguments is a command.
        rest = text[match.end() :]
        meant = "_" in match[1] or re.match(r"[\w-]+\s+with\s+\w+\s*=", rest)
        return (), match[1] if meant else ""
    steps: list[list[PlannedCall]] = []
    for joint, name, arguments in _clauses(text[match.end() :], offered):
        call = PlannedCall(name, _arguments(arguments, offered[name]))
        if joint == "and" and steps:
            steps[-1].append(call)
        else:
            steps.append([call])
    return steps, ""


def _clauses(text: str, offered: Mapping[str, ToolSpec]) -> list[tuple[str, str, str]]:
    """(how it is joined to the one before, tool, arguments). A joint counts only before an offered tool's
    name.
    """
    names = "|".join(re.escape(name) for name in sorted(offered, key=len, reverse=True))
    joint = re.compile(rf"(?:^|[\s,;.]+(then|and)\s+(?:use\s+)?)({names})(?![\w-])", re.IGNORECASE)
    return [((match[1] or "then").lower(), match[2], rest) for match, rest in _cut(joint, text)]


def _cut(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Each match with the text up to the next."""
    matches = list(pattern.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    return [(match, text[match.end() : end]) for match, end in zip(matches, ends, strict=False)]


def _arguments(text: str, tool: ToolSpec) -> dict[str, Any]:
    text = re.sub(r"^\s*with\s+", "", text).strip()
    if not text.endswith(('"', "'", "`", "”")):
        text = text.rstrip(".!?;").strip()
    types = _types(tool)
    cut = _cut(_ARGUMENT, text)
    return {match[1]: parse_value(value.strip(), types.get(match[1], "string")) for match, value in cut}


def _types(tool: ToolSpec) -> dict[str, str]:
    """The JSON type of each argument; of several types the first that is not null."""
    properties: dict[str, Any] = orjson.loads(tool.parameters_json or "{}").get("properties") or {}
    return {name: _type(schema) for name, schema in properties.items()}


def _type(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", [option.get("type") for option in schema.get("anyOf", ())])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return next((kind for kind in kinds if kind and kind != "null"), "string")


def parse_value(text: str, kind: str) -> Any:
    """`text` as a value of a JSON type, or `text` itself where it is none."""
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1]
    if kind == "string":
        return text
    if kind == "array" and not text.startswith("["):
        return [item.strip() for item in text.split(";") if item.strip()]
    try:
        return orjson.loads(text.lower() if kind == "boolean" else text)
    except orjson.JSONDecodeError:
        return text
