"""When something is sent: once, or by a cron expression in a time zone. Pure.

Expressions have five fields: minute, hour, day of the month, month, day of the week. Where clocks are changed they do
what Debian's cron does. Those with a fixed hour run once a day: what falls into the hour that is left out runs right
after it, and what falls into the hour that comes twice runs in the first of both. Those whose minute or hour begins
with `*` run by the clock, whatever it shows.
"""

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from services.agent.core.zones import zone
from services.common.core.refusals import Refused

LONGEST_EXPRESSION = 256
# Further away than anybody plans.
FURTHEST = timedelta(days=3660)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
_FIELDS = 5


def check_time(at: datetime, now: datetime) -> datetime:
    """Returns a time at which something can be sent once. Raises Refused (SCHEDULE_INVALID)."""
    if at <= now:
        raise _refused(f"scheduled_at must be in the future; {_shown(at)} is over, now is {_shown(now)}")
    if at - now > FURTHEST:
        raise _refused(f"scheduled_at must be within ten years; {_shown(at)} is not")
    return at


def check_cron(expression: str, timezone: str, now: datetime) -> datetime:
    """Returns when an expression comes first. Raises Refused (SCHEDULE_INVALID) where it is none, or never comes."""
    beginning = expression[:LONGEST_EXPRESSION]
    if len(expression) > LONGEST_EXPRESSION:
        raise _refused(f"cron_expression has {len(expression)} characters; at most {LONGEST_EXPRESSION}")
    if len(expression.split()) != _FIELDS:
        sentence = "minute, hour, day of the month, month and day of the week, for example '0 9 * * MON'"
        raise _refused(f"cron_expression {beginning!r} must have five fields: {sentence}")
    try:
        first = next_time(expression, timezone, now)
    except CronSimError as error:
        raise _refused(f"cron_expression {beginning!r} cannot be used: {str(error).lower()}") from None
    if first is None:
        raise _refused(f"cron_expression {beginning!r} never comes")
    return first


def next_time(expression: str, timezone: str, after: datetime) -> datetime | None:
    """Returns the first time after `after`, in UTC; None where there is none in 50 years. Raises CronSimError."""
    times = CronSim(expression, after.astimezone(zone(timezone)))
    for time in times:
        # In the hour that comes twice, times of its first pass are over in its second.
        if (moment := time.astimezone(UTC)) > after:
            return moment
    return None


def pause(attempts: int) -> timedelta:
    """Returns how long to wait after so many attempts that began no run, from 1."""
    return timedelta(seconds=min(FIRST_PAUSE * 2.0 ** min(attempts - 1, 16), LONGEST_PAUSE))


def _shown(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _refused(sentence: str) -> Refused:
    return Refused("SCHEDULE_INVALID", sentence)
