"""How long migrations wait for locks.

A statement that waits for a lock makes all wait who come after it, so it soon lets them pass, and is tried again.
"""

LOCK_SECONDS = 2.0


def limit_waiting() -> str:
    """Returns the statement that limits it for a session."""
    return f"SET lock_timeout = '{LOCK_SECONDS * 1_000:.0f}ms'"
