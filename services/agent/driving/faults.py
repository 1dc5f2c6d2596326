"""The errors of a run that pass, and those that come again with the same work."""

import asyncpg

from services.agent.core.ports import PeerLost
from services.agent.core.releases import NewerRelease
from services.common.errors import Aborted, Cancelled, DeadlineExceeded, ResourceExhausted, Unavailable

# What is away or busy now: a database, a connection, a peer; and what another replica may be able to read.
_PASSING = (
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    PeerLost,
    NewerRelease,
    Unavailable,
    DeadlineExceeded,
    Aborted,
    ResourceExhausted,
    Cancelled,
)
# Classes of SQLSTATE that are the fault of what was to be stored, not of the database: wrong values, violated
# constraints, limits of a row.
_OF_VALUES = ("22", "23", "54")


def is_transient(error: Exception) -> bool:
    """Returns whether the same work may succeed another time; what does not pass is a fault of ours."""
    if isinstance(error, asyncpg.PostgresError):
        return not str(error.sqlstate).startswith(_OF_VALUES)
    return isinstance(error, _PASSING)
