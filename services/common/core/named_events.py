"""Events that a question counts from: "before the trip to Rome", "after my birthday". Pure.

When it happened is known by what was stored of it, so whoever searches asks for the event first.
"""

import re
from dataclasses import dataclass
from datetime import datetime

_EVENT = re.compile(
    r"\b(?P<side>before|after|since)\s+(?P<event>(?:the|a|an|my|our|your|his|her|their)\s+[^\s?.!,;][^?.!,;]{1,80})",
    re.I,
)


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """The event that a text names, whether what it asks for was before it, and the other words."""

    text: str
    before: bool
    rest: str

    def bounds(self, moment: datetime) -> tuple[datetime | None, datetime | None]:
        """Returns where the time that is asked for begins and ends, of an event that was told of at a moment."""
        return (None, moment) if self.before else (moment, None)


def named_event(text: str) -> NamedEvent | None:
    """Returns the event from which a text counts; None where there is none."""
    match = _EVENT.search(text)
    if match is None:
        return None
    rest = " ".join(f"{text[: match.start()]} {text[match.end() :]}".split())
    return NamedEvent(match["event"].strip(), match["side"].lower() == "before", rest)
