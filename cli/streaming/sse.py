"""Server-sent events, as far as streams of Loci use them. Pure: lines in, frames out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """One event: its name ("" for most), its data, and its own id, None where it has none."""

    name: str
    data: str
    id: int | None = None


def frames(lines: Iterable[str]) -> Iterator[Frame]:
    """The frames of a stream, its `[DONE]` included; one that was cut off is none."""
    name, number, data = "", None, list[str]()
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "data":
                data.append(value)
            case "event":
                name = value
            case "id" if value.isascii() and value.isdigit():
                number = int(value)
            case "" if not line:
                if data:
                    yield Frame(name, "\n".join(data), number)
                name, number, data = "", None, []
