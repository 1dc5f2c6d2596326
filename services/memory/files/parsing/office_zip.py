"""Office files are zip files: looked at before anything is unpacked."""

import io
import zipfile

from services.memory.files.parsing.unreadable import Unreadable

_MOST_BYTES = 256 * 1024 * 1024
_MOST_RATIO = 200
# Small ones may shrink as they like.
_HARMLESS_BYTES = 16 * 1024 * 1024
_MOST_ENTRIES = 20_000
_LEGACY = b"\xd0\xcf\x11\xe0"


def open_checked(data: bytes, part: str, noun: str) -> io.BytesIO:
    """Returns the file, ready to be opened. part: what a `noun` has in it. Raises Unreadable."""
    if data.startswith(_LEGACY):
        raise Unreadable(f"it is protected by a password or of the format before 2007; save it as a {noun} file")
    stream = io.BytesIO(data)
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, EOFError, OSError):
        raise Unreadable(f"it is not a {noun} file, or it is damaged") from None
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MOST_BYTES or len(entries) > _MOST_ENTRIES:
        raise Unreadable(f"unpacked it would have {unpacked // 2**20} MiB in {len(entries)} parts, which is too much")
    if unpacked > max(_HARMLESS_BYTES, _MOST_RATIO * len(data)):
        raise Unreadable(f"unpacked it would be {unpacked // max(1, len(data))} times as large, like a zip bomb")
    if all(entry.filename != part for entry in entries):
        raise Unreadable(f"it is a zip file, but not a {noun} file")
    stream.seek(0)
    return stream
