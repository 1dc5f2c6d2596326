"""Folders that tools may read."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder readable for all: tools of root are run as another user.

    It is not pytest's own: each session that starts closes the folder above all sessions' ones.
    """
    with tempfile.TemporaryDirectory(prefix="loci-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
