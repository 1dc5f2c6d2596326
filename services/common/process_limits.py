"""What a process that reads hostile data may use, taken by itself before it reads any. Standard library alone."""

import contextlib
import resource


def limit_self(*, memory_bytes: int, cpu_seconds: int | None = None, open_files: int | None = None) -> None:
    """From now on, without a way back: these, no files written, no core. None: as it was."""
    wanted = (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, open_files),
    )
    for what, value in wanted:
        if value is not None:
            with contextlib.suppress(ValueError, OSError):  # not every system has every limit
                resource.setrlimit(what, (value, value))
