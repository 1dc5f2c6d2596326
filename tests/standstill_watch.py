"""Run beside the tests: prints begin and end (`time.monotonic()`) of each time at which the machine stood still.

Imports next to nothing, and ends when its standard input does.
"""

import os
import select
import sys
import tempfile
import time

# Seconds; the shortest wait that fails a test is longer.
_LONGEST = 1.0
_PAUSE = 0.25


def _watch() -> None:
    with tempfile.TemporaryFile(buffering=0) as file:
        while True:
            began = time.monotonic()
            if select.select([sys.stdin], [], [], _PAUSE)[0]:
                return
            os.pwrite(file.fileno(), b".", 0)
            os.fsync(file.fileno())
            ended = time.monotonic()
            if ended - began > _PAUSE + _LONGEST:
                print(began, ended, flush=True)


if __name__ == "__main__":
    _watch()
