"""Times that a question names: "in May 2023", "last summer", "two weeks ago", "8.5.2023". Pure.

Rules instead of a model: dates in figures and names of months beside a year in several languages, the rest in English.
A word that is often something else ("may", "march", "fall") counts only where what stands beside it makes it a time.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = (
    "january jan januar janvier enero gennaio janeiro januari",
    "february feb februar février fevrier febrero febbraio fevereiro februari",
    "march mar märz maerz mars marzo março marco maart",
    "april apr avril abril aprile",
    "may mai mayo maggio maio mei",
    "june jun juni juin junio giugno junho",
    "july jul juli juillet julio luglio julho",
    "august aug août aout agosto augustus",
    "september sep sept septembre septiembre settembre setembro",
    "october oct oktober octobre octubre ottobre outubro",
    "november nov novembre noviembre novembro",
    "december dec dezember décembre decembre diciembre dicembre dezembro",
)
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# The first month of each season in the northern half of the world, where winter ends in the year after.
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASON = "|".join(_SEASONS)
_COUNTING = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: number for number, word in enumerate(_COUNTING, 1)}
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3}
_COUNTED = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_OF = r"(?:\s+(?:of|de|del|do))?\s*,?\s+"
# Where a month alone is meant to be one.
_AT = r"(?:in|since|during|until|early|late|mid|last|this|back in)"

# What happened is told of afterwards: so many days later at most it is still looked for.
_TOLD_DAYS = {"day": 3, "week": 7, "month": 7, "year": 14}


@dataclass(frozen=True, slots=True)
class NamedTime:
    """The time that a text names, from `start` to `last`; it is told of until `end`. `rest`: the other words."""

    start: datetime
    last: datetime
    end: datetime
    rest: str


def named_time(text: str, now: datetime) -> NamedTime | None:
    """Returns the times that a text names, as one span; None where it names none, or none that there is."""
    spans, rest = [], text
    for pattern, read in _RULES:
        for match in list(pattern.finditer(rest)):
            span = _valid(read, match, now)
            if span is not None:
                spans.append(span)
                rest = rest.replace(match.group(), " ", 1)
    if not spans:
        return None
    start, last, end = min(one[0] for one in spans), max(one[1] for one in spans), max(one[2] for one in spans)
    return NamedTime(start, last, end, " ".join(rest.split()))


# Whoever asks so asks for what is true no more.
_PAST = re.compile(
    r"\b(?:used to|previous(?:ly)?|former(?:ly)?|originally|back then|in the past|at first|before)\b", re.I
)


def asks_of_the_past(text: str) -> bool:
    """Returns whether a text asks for what was so once: "Where did Ada live before?"."""
    return _PAST.search(text) is not None


# Its beginning, its end, and until when it is told of.
_Span = tuple[datetime, datetime, datetime]
_Read = Callable[[Mapping[str, str | None], datetime], _Span]


def _valid(read: _Read, match: re.Match[str], now: datetime) -> _Span | None:
    try:
        return read(match.groupdict(), now)
    except (ValueError, OverflowError):
        return None  # the 31st of June, the year 0


def _span(start: datetime, days: int, told: str) -> _Span:
    last = start + timedelta(days=days) - timedelta(microseconds=1)
    return start, last, last + timedelta(days=_TOLD_DAYS[told])


def _day_of(year: int, month: int, day: int) -> _Span:
    return _span(datetime(year, month, day, tzinfo=UTC), 1, "day")


def _month_of(year: int, month: int) -> _Span:
    return _span(datetime(year, month, 1, tzinfo=UTC), monthrange(year, month)[1], "month")


def _year_of(year: int) -> _Span:
    return _span(datetime(year, 1, 1, tzinfo=UTC), 366, "year")


def _figures(found: Mapping[str, str | None], now: datetime) -> _Span:
    year, month = int(found["year"] or 0), int(found["number"] or 0)
    return _day_of(year, month, int(found["day"] or 0)) if found.get("day") else _month_of(year, month)


def _named_month(found: Mapping[str, str | None], now: datetime) -> _Span:
    month = _MONTH_NUMBERS[(found["month"] or "").lower()]
    day, year = found.get("day"), found.get("year")
    if year is None:
        # The last one that there was; this month, unless it is said to be the last.
        begun = month < now.month if (found.get("at") or "").lower() == "last" else month <= now.month
        year = str(now.year if begun else now.year - 1)
    return _month_of(int(year), month) if day is None else _day_of(int(year), month, int(day))


def _season(found: Mapping[str, str | None], now: datetime) -> _Span:
    first = _SEASONS[(found["season"] or "").lower()]
    year = int(found["year"] or (now.year if first + 2 < now.month else now.year - 1))
    return _span(datetime(year, first, 1, tzinfo=UTC), 92, "month")


def _ago(found: Mapping[str, str | None], now: datetime) -> _Span:
    number, unit = (found["number"] or "").lower(), (found["unit"] or "").lower()
    days = (int(number) if number.isdecimal() else _NUMBERS[number]) * _UNIT_DAYS[unit]
    # Who says "two months ago" does not mean the day.
    slack = _UNIT_DAYS[unit] // 2
    return _span(_midnight(now) - timedelta(days=days + slack), 1 + 2 * slack, unit)


def _last(found: Mapping[str, str | None], now: datetime) -> _Span:
    unit = (found["unit"] or "").lower()
    begin, last = _midnight(now), (found["which"] or "").lower() != "this"
    if unit == "week":
        begin -= timedelta(days=now.weekday() + 7 * last)
        return _span(begin, 7, unit)
    if unit == "weekend":
        begin -= timedelta(days=(now.weekday() - 5) % 7 + 7 * (now.weekday() >= 5))
        return _span(begin, 2, "day")
    if unit == "month":
        before = begin.replace(day=1) - timedelta(days=1)
        return _month_of(before.year, before.month) if last else _month_of(now.year, now.month)
    return _year_of(now.year - last)


def _weekday(found: Mapping[str, str | None], now: datetime) -> _Span:
    since = (now.weekday() - _DAYS.index((found["weekday"] or "").lower())) % 7 or 7
    return _span(_midnight(now) - timedelta(days=since), 1, "day")


def _near(found: Mapping[str, str | None], now: datetime) -> _Span:
    word = (found["word"] or "").lower()
    return _span(_midnight(now) - timedelta(days=0 if word == "today" else 1), 1, "day")


def _midnight(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _rules() -> Iterator[tuple[str, _Read]]:
    yield r"\b(?P<year>(?:19|20)\d\d)[-/](?P<number>[01]?\d)[-/](?P<day>[0-3]?\d)\b", _figures
    yield r"\b(?P<day>[0-3]?\d)\.\s?(?P<number>[01]?\d)\.\s?(?P<year>(?:19|20)\d\d)\b", _figures
    yield r"(?P<year>(?:19|20)\d\d)\s?[年년]\s?(?P<number>1?\d)\s?[月월](?:\s?(?P<day>[1-3]?\d)\s?[日일])?", _figures
    yield rf"\b(?:on\s+)?{_DAY}{_OF}{_MONTH}{_OF}{_YEAR}\b", _named_month
    yield rf"\b(?:on\s+)?{_MONTH}\s+{_DAY},?\s+{_YEAR}\b", _named_month
    yield rf"\b(?:in\s+)?{_MONTH}{_OF}{_YEAR}\b", _named_month
    yield rf"\bon\s+(?:the\s+)?{_DAY}(?:\s+of)?\s+{_MONTH}\b", _named_month
    yield rf"\bon\s+{_MONTH}\s+{_DAY}\b", _named_month
    yield rf"\b(?P<at>{_AT})\s+{_MONTH}(?!\w)", _named_month
    yield rf"\b(?:in|last|during)\s+(?:the\s+)?(?P<season>{_SEASON})(?:(?:\s+of)?\s+{_YEAR})?\b", _season
    yield rf"\b(?:in|since|during|of|en|im Jahr)\s+{_YEAR}\b", lambda found, now: _year_of(int(found["year"] or 0))
    yield rf"\b(?P<number>\d{{1,3}}|{_COUNTED})\s+(?P<unit>day|week|month|year)s?\s+ago\b", _ago
    yield r"\b(?P<which>last|previous|past|this)\s+(?P<unit>week|weekend|month|year)\b", _last
    yield rf"\b(?:last|on)\s+(?P<weekday>{'|'.join(_DAYS)})\b", _weekday
    yield r"\b(?P<word>yesterday|today|last night)\b", _near


_RULES = [(re.compile(pattern, re.IGNORECASE), read) for pattern, read in _rules()]
