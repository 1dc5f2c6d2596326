"""`reasoning_details` of OpenRouter: thoughts in blocks that have to go back as they came. Pure.

A block is text, a summary or encrypted data, with an id, a signature, a format and an index. Streamed, a block comes in
pieces of one index; the fields of pieces beside the text are kept as lines of JSON, sealed as a signature or as
encrypted thoughts, and merged when they go back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta, Part, Reasoning, RedactedReasoning
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.shared.origins import own_value, with_origin

ORIGIN = "openrouter"
_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}
# What pieces of one block say again and again.
_REPEATED = frozenset({"type", "index", "format"})
# What comes in pieces, beside the text.
_GROWING = ("data", "signature")


def take_details(builder: ReplyBuilder, details: Iterable[Any]) -> Iterator[Delta]:
    """Reads the blocks of a message, or the pieces in a delta."""
    for position, detail in enumerate(details):
        if not isinstance(detail, Mapping):
            continue
        kind, index = str(detail.get("type")), detail.get("index")
        key = ("detail", kind, position if index is None else index)
        name = _TEXTS.get(kind, "")
        rest = {field: value for field, value in detail.items() if field != name and value is not None}
        begun = builder.began(key)
        if begun:
            rest = {field: value for field, value in rest.items() if field not in _REPEATED}
        if not name:
            _redact(builder, key, rest)
            continue
        yield builder.add_reasoning(key, str(detail.get(name) or ""))
        if rest:
            line = orjson.dumps(rest).decode()
            builder.sign(key, f"\n{line}" if begun else with_origin(ORIGIN, line))


def _redact(builder: ReplyBuilder, key: tuple[str, str, Any], rest: Mapping[str, Any]) -> None:
    line = orjson.dumps(rest).decode()
    builder.add_redacted(key, f"\n{line}" if builder.began(key) else with_origin(ORIGIN, line))


def settle(part: Part) -> Part:
    """Returns a part with its fields in one line, however it came."""
    if isinstance(part, Reasoning) and (lines := own_value(ORIGIN, part.signature)):
        return replace(part, signature=with_origin(ORIGIN, _line(lines)))
    if isinstance(part, RedactedReasoning) and (lines := own_value(ORIGIN, part.data)):
        return replace(part, data=with_origin(ORIGIN, _line(lines)))
    return part


def _line(lines: str) -> str:
    return orjson.dumps(_merge(lines), option=orjson.OPT_SORT_KEYS).decode()


def details_of(parts: Iterable[Part], ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns the blocks among the parts of a message, in order; `ids` are the new ids of its calls by the old, since a
    block may name the call that it belongs to.
    """
    details = []
    for part in parts:
        if isinstance(part, Reasoning) and (lines := own_value(ORIGIN, part.signature)):
            detail = _merge(lines)
            detail[_TEXTS.get(detail.get("type", ""), "text")] = part.text
        elif isinstance(part, RedactedReasoning) and (lines := own_value(ORIGIN, part.data)):
            detail = _merge(lines)
        else:
            continue
        if detail.get("id") in ids:
            detail["id"] = ids[detail["id"]]
        details.append(detail)
    return details


def _merge(lines: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for line in lines.split("\n"):
        for name, value in orjson.loads(line).items():
            grows = name in _GROWING and isinstance(merged.get(name), str)
            merged[name] = merged[name] + value if grows else value
    return merged
