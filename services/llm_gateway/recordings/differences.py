"""Differences between a request and the recorded ones. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from services.llm_gateway.recordings.recording import RecordedRequest

_LONGEST_QUOTE = 60


def nearest(request: RecordedRequest, recorded: Sequence[RecordedRequest]) -> str:
    """Returns how the recorded request that is most like `request` differs from it, in a few words."""
    if not recorded:
        return "nothing was recorded"
    alike = [one for one in recorded if one.place == request.place]
    if not alike:
        places = sorted({" ".join(one.place) for one in recorded})
        return f"nothing was recorded for {' '.join(request.place)}, only for {', '.join(places)}"
    closest = min((list(_differences(_content(one), _content(request), "")) for one in alike), key=len)
    # Everything may be equal but the query, which is part of what is said.
    where, before, now = closest[0]
    more = f", and {len(closest) - 1} more differences" if len(closest) > 1 else ""
    return f"the nearest recorded request differs at {where or 'its body'}: {before} there, {now} now{more}"


def differing(request: RecordedRequest, other: RecordedRequest) -> list[str]:
    """Returns the places in their bodies where two requests differ."""
    return [where or "the body" for where, _, _ in _differences(_content(request), _content(other), "")]


def _content(request: RecordedRequest) -> Any:
    return {"query": dict(request.query), "body": request.value} if request.query else request.value


def _differences(before: Any, now: Any, where: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            place = f"{where}.{name}" if where else str(name)
            if name in before and name in now:
                yield from _differences(before[name], now[name], place)
            else:
                yield place, _quote(before, name), _quote(now, name)
    elif isinstance(before, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip(before, now, strict=False)):
            yield from _differences(one, other, f"{where}[{index}]")
        if len(before) != len(now):
            yield where, f"{len(before)} items", f"{len(now)} items"
    elif type(before) is not type(now) or before != now:
        yield where, *_excerpts(before, now)


def _quote(value: Mapping[str, Any], name: str) -> str:
    return _short(value[name], 0) if name in value else "nothing"


def _excerpts(before: Any, now: Any) -> tuple[str, str]:
    """Returns both, from a little before the place where they part."""
    if not (isinstance(before, str) and isinstance(now, str)):
        return _short(before, 0), _short(now, 0)
    same = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    begin = max(0, same - _LONGEST_QUOTE // 3)
    return _short(before, begin), _short(now, begin)


def _short(value: Any, begin: int) -> str:
    text = value[begin:] if isinstance(value, str) else orjson.dumps(value).decode()
    cut = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    return repr(f"...{cut}" if begin else cut) if isinstance(value, str) else cut
