"""Packs of git objects, read with limits and written. Pure.

Whoever sends a pack is not trusted: nothing is unpacked beyond the limits, whatever the pack says of its sizes.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping

from dulwich.errors import ObjectFormatException
from dulwich.objects import ShaFile

MOST_BYTES = 16 * 1024 * 1024
MOST_OBJECTS = 10_000
# Of all objects, unpacked.
MOST_UNPACKED = 64 * 1024 * 1024
# Of these, of all that is no file: each line of a tree or a commit costs as much as a whole file.
MOST_STRUCTURE = 16 * 1024 * 1024
# Of all deltas: a step may make one byte, and costs as much as one that makes many.
MOST_STEPS = 500_000
_COMMIT, _BLOB, _TAG, _OFFSET_DELTA, _ID_DELTA = 1, 3, 4, 6, 7
_TRAILER = 20
# In which a pack is unpacked.
_PIECE = 4_096
# Bytes of a number after its first. Longer ones exceed any size here, and cost the square of their length to read.
_LONGEST_NUMBER = 6


class BadPack(Exception):
    """A pack that is not accepted; its text says why."""


def read(pack: bytes, stored: Mapping[bytes, ShaFile]) -> dict[bytes, ShaFile]:
    """Returns the objects in a pack by their ids; `stored`: those that it may build on. Raises BadPack."""
    if len(pack) > MOST_BYTES:
        raise BadPack(f"the pack is larger than {MOST_BYTES // 2**20} MiB")
    if len(pack) < 12 + _TRAILER or not pack.startswith(b"PACK"):
        raise BadPack("what was sent is no pack")
    if hashlib.sha1(pack[:-_TRAILER], usedforsecurity=False).digest() != pack[-_TRAILER:]:
        raise BadPack("the pack is damaged: its checksum does not fit")
    version, count = struct.unpack(">LL", pack[4:12])
    if version not in (2, 3) or count > MOST_OBJECTS:
        raise BadPack(f"a pack has version 2 or 3, and at most {MOST_OBJECTS:,} objects")
    return _Reader(pack[:-_TRAILER], stored).objects(count)


class _Reader:
    def __init__(self, pack: bytes, stored: Mapping[bytes, ShaFile]) -> None:
        self._pack = pack
        self._known = stored
        self._at = 12
        self._left = MOST_UNPACKED
        self._structure_left = MOST_STRUCTURE
        self._steps_left = MOST_STEPS
        self._by_offset: dict[int, ShaFile] = {}
        self._by_id: dict[bytes, ShaFile] = {}

    def objects(self, count: int) -> dict[bytes, ShaFile]:
        for _ in range(count):
            offset = self._at
            try:
                entry = self._object(offset)
                self._check_structure(entry)
                entry.check()
            except (AssertionError, LookupError, ObjectFormatException, ValueError, zlib.error):
                raise BadPack(f"the pack is damaged: its object at {offset} makes no sense") from None
            self._by_offset[offset] = self._by_id[entry.id] = entry
        if self._at != len(self._pack):
            raise BadPack("the pack has more in it than it says")
        return self._by_id

    def _check_structure(self, entry: ShaFile) -> None:
        self._structure_left -= 0 if entry.type_num == _BLOB else entry.raw_length()
        if self._structure_left < 0:
            raise BadPack(f"the pack's trees and commits are larger than {MOST_STRUCTURE // 2**20} MiB; push in parts")

    def _object(self, offset: int) -> ShaFile:
        byte = self._byte()
        kind, size = byte >> 4 & 7, byte & 15
        if byte & 0x80:
            size |= _number(self._byte) << 4
        if kind == _OFFSET_DELTA:
            base = self._by_offset.get(offset - self._distance())
        elif kind == _ID_DELTA:
            id = self._pack[self._at : self._at + 20].hex().encode()
            self._at += 20
            base = self._by_id.get(id) or self._known.get(id)
        elif _COMMIT <= kind <= _TAG:
            return ShaFile.from_raw_string(kind, self._unpacked(size))
        else:
            raise ValueError(kind)
        if base is None:
            raise BadPack("the pack builds on an object that is not there")
        delta = _Delta(self._unpacked(size))
        self._take(delta.size)
        content = delta.applied(base.as_raw_string(), self._steps_left)
        self._steps_left -= delta.steps
        return ShaFile.from_raw_string(base.type_num, content)

    def _byte(self) -> int:
        self._at += 1
        return self._pack[self._at - 1]

    def _distance(self) -> int:
        byte = self._byte()
        distance = byte & 0x7F
        for _ in range(_LONGEST_NUMBER):
            if not byte & 0x80:
                return distance
            byte = self._byte()
            distance = (distance + 1) << 7 | byte & 0x7F
        raise ValueError(distance)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise BadPack(f"the pack is larger than {MOST_UNPACKED // 2**20} MiB, unpacked")

    def _unpacked(self, size: int) -> bytes:
        self._take(size)
        unpacking, data = zlib.decompressobj(), bytearray()
        while not unpacking.eof:
            piece = self._pack[self._at : self._at + _PIECE]
            self._at += len(piece)
            # One more than there may be, so that there is more shows.
            data += unpacking.decompress(piece, size + 1 - len(data))
            if not piece or len(data) > size:
                raise ValueError(size)
        if len(data) != size:
            raise ValueError(size)
        self._at -= len(unpacking.unused_data)
        return bytes(data)


class _Delta:
    """One object told by another: pieces to copy and pieces that are new. Raises LookupError, ValueError."""

    def __init__(self, delta: bytes) -> None:
        self._delta = delta
        self._at = 0
        self._base_size = _number(self._byte)
        # Of what it makes, in bytes.
        self.size = _number(self._byte)
        self.steps = 0

    def applied(self, base: bytes, most_steps: int) -> bytes:
        if len(base) != self._base_size:
            raise ValueError(self._base_size)
        content = bytearray()
        while self._at < len(self._delta) and len(content) <= self.size:
            self.steps += 1
            if self.steps > most_steps:
                advice = "push without any: git -c pack.window=0 push"
                raise BadPack(f"the pack's deltas have more than {MOST_STEPS:,} steps; {advice}")
            command = self._byte()
            if command & 0x80:
                start = self._parts(command, 4)
                length = self._parts(command >> 4, 3) or 0x10000
                piece = base[start : start + length]
            else:
                length = command
                piece = self._delta[self._at : self._at + length]
                self._at += length
            if not length or len(piece) != length:
                raise ValueError(length)
            content += piece
        if len(content) != self.size:
            raise ValueError(self.size)
        return bytes(content)

    def _byte(self) -> int:
        self._at += 1
        return self._delta[self._at - 1]

    def _parts(self, present: int, count: int) -> int:
        return sum(self._byte() << 8 * place for place in range(count) if present >> place & 1)


def _number(next_byte: Callable[[], int]) -> int:
    """Reads a number of seven bits a byte, the lowest first. Raises ValueError for one that is too long."""
    number = 0
    for place in range(_LONGEST_NUMBER + 1):
        byte = next_byte()
        number |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return number
    raise ValueError(number)


def write(objects: Iterable[ShaFile]) -> bytes:
    """Returns a pack of whole objects."""
    items = list(objects)
    parts = [struct.pack(">4sLL", b"PACK", 2, len(items))]
    for one in items:
        raw = one.as_raw_string()
        size, rest = len(raw) & 15, len(raw) >> 4
        head = bytearray()
        byte = one.type_num << 4 | size
        while rest:
            head.append(byte | 0x80)
            byte, rest = rest & 0x7F, rest >> 7
        head.append(byte)
        parts += (bytes(head), zlib.compress(raw, 1))
    body = b"".join(parts)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
