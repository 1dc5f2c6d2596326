"""Trees of packages as tars: what a sandbox sent is hostile, and only what is harmless is kept of it.

Kept are regular files, folders and links that stay inside, owned by nobody in particular, without times and without
special bits; anything else refuses the whole. So what is kept may be unpacked anywhere, by anything.
"""

import os
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path

_DONE = ".done"
_ROOTS = ("python", "node_modules")
_MOST_ENTRIES = 200_000
_MOST_NAME = 1024


class BadArchive(Exception):
    """It holds what no package needs."""


class TruncatedArchive(BadArchive):
    """Whoever wrote it ended before it was done."""


def rewrite(source: Path, target: Path, most_bytes: int) -> None:
    """Writes to `target` what is harmless of the tar `source`; raises BadArchive and OSError."""
    try:
        with tarfile.open(source, "r:") as archive, tarfile.open(target, "w:") as kept:
            for entry in _check(archive, most_bytes):
                kept.addfile(entry, archive.extractfile(entry) if entry.isreg() else None)
    except (tarfile.TarError, UnicodeError, ValueError) as error:
        raise TruncatedArchive(f"what the installer left is no archive: {error}") from error


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks what `rewrite` wrote into a new folder; raises OSError."""
    folder.mkdir()
    with tarfile.open(archive, "r:") as tar:
        # Checked when it was written; where Python can, checked again.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)  # noqa: S202 - see above
    # The filter leaves the modes of folders to the umask; tools are run as other users.
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o755)  # noqa: S103 - packages, which sandboxes read


def _check(archive: tarfile.TarFile, most_bytes: int) -> Iterator[tarfile.TarInfo]:
    links: set[str] = set()
    total = count = 0
    for entry in archive:
        if entry.name == _DONE:
            return
        count, total = count + 1, total + entry.size
        if count > _MOST_ENTRIES or total > most_bytes:
            raise BadArchive(f"the packages have more than {_MOST_ENTRIES} files, or more than {most_bytes} bytes")
        _check_name(entry.name, links)
        if entry.issym():
            _check_link(entry)
            links.add(entry.name)
        yield _plain(entry)
    raise TruncatedArchive("the installer ended before it had sent everything")


def _check_name(name: str, links: set[str]) -> None:
    parts = name.split("/")
    if parts[0] not in _ROOTS or {"", ".", ".."} & set(parts) or "\0" in name or len(name) > _MOST_NAME:
        raise BadArchive(f"the installer left a file of the name {name[:100]!r}")
    if any("/".join(parts[:length]) in links for length in range(1, len(parts) + 1)):
        raise BadArchive(f"the installer left a file behind a link: {name[:100]!r}")


def _check_link(entry: tarfile.TarInfo) -> None:
    leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(entry.name), entry.linkname))
    if posixpath.isabs(entry.linkname) or leads_to.split("/")[0] not in _ROOTS:
        raise BadArchive(f"the installer left a link that leads out: {entry.name[:100]!r}")


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Returns the entry without what is of its maker."""
    if not (entry.isreg() or entry.isdir() or entry.issym()):
        raise BadArchive(f"the installer left what is neither a file, nor a folder, nor a link: {entry.name[:100]!r}")
    executable = entry.isdir() or entry.mode & 0o100
    return entry.replace(mtime=0, mode=0o755 if executable else 0o644, uid=0, gid=0, uname="", gname="", deep=False)
