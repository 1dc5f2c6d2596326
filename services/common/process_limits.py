"""Limits that a process sets itself before it reads hostile data. Standard library alone."""

import contextlib
import resource

from services.common.process_cage import enter_cage


def limit_process(*, memory_bytes: int, cpu_seconds: int | None = None, open_files: int | None = None) -> None:
    """Limits this process for good: these resources, no files written, no core, and a cage. None: as it was."""
    limits = (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, open_files),
    )
    for what, value in limits:
        if value is not None:
            with contextlib.suppress(ValueError, OSError):  # not every system has every limit
                resource.setrlimit(what, (value, value))
    enter_cage()
