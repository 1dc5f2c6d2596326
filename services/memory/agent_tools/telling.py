"""What a model is told of the passages that were found."""

import json
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from services.memory.search.service import Found


def zone_of(name: str) -> tzinfo:
    """The timezone of that IANA name; UTC where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _local(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:  # at the ends of the calendar
        return moment


def told_of(found: Found, zone: tzinfo) -> str:
    """What the model reads: a JSON object of count, results (id, timestamp, content, tags), perhaps a note."""
    results = [
        {
            "id": f"passage-{hit.passage.id}",
            "timestamp": _local(hit.passage.created_at, zone).isoformat(timespec="seconds"),
            "content": hit.passage.text,
            "tags": list(hit.passage.tags),
        }
        for hit in found.hits
    ]
    told: dict[str, object] = {"count": len(results), "results": results}
    if found.without_vectors:
        models = " and ".join(found.without_vectors)
        told["note"] = f"{models} could not be reached, so this was found by words alone; other words may find more."
    return json.dumps(told, ensure_ascii=False)
