"""The differences of two answers. No I/O."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from cli.importing.values import Json, as_text

_MOST_CHARS = 60
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
# The old server's name for OpenAI behind another address; docs/moving-in.md.
_PROXY, _OPENAI = "openai-proxy/", "openai/"


def differences(old: Any, new: Any, ignored: frozenset[str] = frozenset(), path: str = "") -> Iterator[str]:
    """Yields a sentence for each place where the answers differ.

    ignored: names of fields. Null is no field; lists of ids and of tags have no order.
    """
    match old, new:
        case Mapping(), Mapping():
            for name in dict.fromkeys((*old, *new)):
                if name not in ignored:
                    where = f"{path}.{name}" if path else str(name)
                    one, other = (_sorted(name, value.get(name)) for value in (old, new))
                    yield from differences(one, other, ignored, where)
        case list(), list() if len(old) == len(new):
            for place, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from differences(one, other, ignored, f"{path}[{place}]")
        case list(), list():
            yield f"{path}: {len(old)} entries, now {len(new)}"
        case _ if not _same(old, new):
            yield f"{path}: {_short(old)}, now {_short(new)}"


def by_key(items: Sequence[Json], key: str, secondary: str = "") -> dict[str, Json]:
    """Returns the items by their keys; those with the same key, in their order, by a number behind it."""
    counter = Counter[str]()
    entries: dict[str, Json] = {}
    for item in items:
        name = " ".join(filter(None, (as_text(item.get(key)), as_text(item.get(secondary)))))
        counter[name] += 1
        entries[name if counter[name] == 1 else f"{name} ({counter[name]})"] = item
    return entries


def _sorted(name: str, value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, list) and (name == "tags" or name.endswith("_ids")) else value


def _same(old: Any, new: Any) -> bool:
    if not isinstance(old, str) or not isinstance(new, str):
        return bool(old == new)
    return new in (old, old.replace(_PROXY, _OPENAI, 1)) or _moment(old) == _moment(new)


def _moment(text: str) -> str | datetime:
    """Returns a time, however it is written; the text itself where it is none."""
    try:
        return datetime.fromisoformat(text) if _TIME.match(text) else text
    except ValueError:
        return text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."
