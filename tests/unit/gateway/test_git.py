"""The parts of memory as a git repository that decide without I/O: paths, files, commits, packs."""

from __future__ import annotations

import hashlib
import struct
import time
import zlib

import pytest
from dulwich.objects import Blob
from hypothesis import given
from hypothesis import strategies as st

from gateway.git import packs
from gateway.git.files import BadFile, Memory, read, write
from gateway.git.history import History, Timeline, Version, build
from gateway.git.packs import BadPack
from gateway.git.paths import label_of, path_of
from gateway.git.requests import with_bearer

AGENT = "agent-00000000-0000-4000-8000-00000000000a"
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(TEXTS.filter(bool), TEXTS.filter(bool))
def test_labels_have_paths_of_their_own(one: str, other: str) -> None:
    assert label_of(path_of(one)) == one
    assert (path_of(one) == path_of(other)) == (one == other)
    # No file is another's folder.
    assert not path_of(one).startswith(f"{path_of(other)}/")


@pytest.mark.parametrize(
    ("label", "path"),
    [
        ("human", "system/human.md"),
        ("notes/to day", "system/notes/to day.md"),
        ("../.git", "system/%2E%2E/%2Egit.md"),
        ("a.md/b", "system/a%2Emd/b.md"),
        ("a//b/", "system/a/%/b/%.md"),
        ("\u200c.git", "system/%E2%80%8C.git.md"),
    ],
)
def test_paths(label: str, path: str) -> None:
    assert path_of(label) == path


@pytest.mark.parametrize("path", ["human.md", "system/human", "system/.git/x.md", "system/%41.md", "system/%FF.md"])
def test_no_paths_of_blocks(path: str) -> None:
    assert label_of(path) is None


@given(TEXTS, st.none() | TEXTS.filter(bool), st.none() | st.integers(1, 99_999), st.none() | st.just(True))
def test_files_say_what_blocks_are(
    value: str, description: str | None, limit: int | None, read_only: bool | None
) -> None:
    memory = Memory(value, description, limit, read_only)
    assert read(write(memory)) == memory


@pytest.mark.parametrize(
    ("content", "memory"),
    [
        (b"plain", Memory("plain")),
        (b"---\r\ndescription: a: b\r\n---\r\nx\r\n", Memory("x\r", "a: b")),
        (b"---\nlimit: 5\nread_only: false\n---", Memory("", limit=5, read_only=False)),
        (b'---\ndescription: "a" b\n---\n', Memory("", '"a" b')),
        (b"---\nnot closed\n", Memory("---\nnot closed")),
    ],
)
def test_files_by_hand(content: bytes, memory: Memory) -> None:
    assert read(content) == memory


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"a\0",
        b"---\nowner: x\n---\n",
        b"---\nlimit: many\n---\n",
        b"---\nread_only: yes\n---\n",
        b'---\ndescription: "\\u0000"\n---\n',
    ],
)
def test_no_files_of_blocks(content: bytes) -> None:
    with pytest.raises(BadFile):
        read(content)


def version(number: int, time: int, value: str, label: str = "human") -> Version:
    return Version(number, time, label, Memory(value), AGENT, "set")


def grown(*timelines: Timeline) -> History:
    return build(AGENT, 1_000, timelines)


def test_commits_are_the_same_everywhere_and_follow_each_other() -> None:
    one = Timeline("block-1", [version(1, 1_001, "a"), version(2, 1_005, "b")])
    two = Timeline("block-2", [version(7, 1_002, "x", "notes"), version(8, 1_003, "y", "notes/a")])
    made = grown(one, two)
    assert made.commits == grown(two, one).commits
    # What was before version 7, then three changes.
    assert len(made.commits) == 4
    later = Timeline("block-1", [*one.versions, version(3, 1_006, "b"), version(4, 1_004, "c")])
    assert grown(later, two).commits[:4] == made.commits
    # Version 3 changes no file.
    assert len(grown(later, two).commits) == 5
    assert len(grown().commits) == 1


def test_what_comes_later_in_the_same_second_follows() -> None:
    made = Timeline("block-1", [version(1, 5_000_001, "a")]), Timeline("block-2", [version(1, 5_000_002, "b", "notes")])
    later = Timeline("block-1", [*made[0].versions, version(2, 5_900_000, "c")])
    before = grown(*made).commits
    assert grown(later, made[1]).commits[: len(before)] == before


def head(kind: int, size: int) -> bytes:
    """How an object of a pack begins."""
    made, size = [kind << 4 | size & 15], size >> 4
    while size:
        made[-1] |= 0x80
        made, size = [*made, size & 0x7F], size >> 7
    return bytes(made)


def packed(*entries: tuple[int, bytes, bytes], count: int | None = None) -> bytes:
    """A pack of (type, what stands before the content, content)."""
    body = struct.pack(">4sLL", b"PACK", 2, len(entries) if count is None else count)
    for kind, base, content in entries:
        body += head(kind, len(content)) + base + zlib.compress(content)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def test_packs_with_deltas() -> None:
    known = Blob.from_string(b"hello world")
    base = bytes.fromhex(known.id.decode())
    copied = b"\x0b\x06\x90\x05\x01!"
    read_back = packs.read(packed((7, base, copied)), {known.id: known})
    assert [one.as_raw_string() for one in read_back.values()] == [b"hello!"]
    written = packs.read(packs.write([known, Blob.from_string(b"x" * 5_000)]), {})
    assert known.id in written


@pytest.mark.parametrize(
    "pack",
    [
        b"",
        bytes(40),
        packed((3, b"", b"x"))[:-1] + b"\0",
        packed((3, b"", b"x"), count=2),
        packed((3, b"", b"x"), (3, b"", b"y"), count=1),
        packed(count=20_000),
        packed((5, b"", b"x")),
        packed((2, b"", b"no tree")),
        packed((6, b"\x05", b"\x01\x01\x01x")),
        packed((7, bytes(20), b"\x01\x01\x01x")),
        # Deltas that make more than they say, copy what is not there, or make more than there may be.
        packed((3, b"", b"x"), (6, b"\x0a", b"\x01\x01\x90\x01\x90\x01")),
        packed((3, b"", b"x"), (6, b"\x0a", b"\x01\x02\x90\x02")),
        packed((3, b"", b"x"), (6, b"\x0a", b"\x01\xff\xff\xff\xff\x0f")),
    ],
)
def test_bad_packs(pack: bytes) -> None:
    with pytest.raises(BadPack):
        packs.read(pack, {})


def test_trees_are_smaller_than_files() -> None:
    tree = b"".join(b"100644 %06x\x00" % number + b"\1" * 20 for number in range(500_000))
    with pytest.raises(BadPack, match="push in parts"):
        packs.read(packed((2, b"", tree)), {})
    assert packs.read(packed((3, b"", tree)), {})


_LONG = b"\xff" * 2**20


@pytest.mark.parametrize("entry", [b"\xbf" + _LONG, b"\x61" + _LONG], ids=["a size", "a distance"])
def test_numbers_without_end_cost_nothing(entry: bytes) -> None:
    """Read to their end, they cost the square of their length: hours of CPU for 17 KB on the wire."""
    body = struct.pack(">4sLL", b"PACK", 2, 1) + entry
    began = time.process_time()
    with pytest.raises(BadPack):
        packs.read(body + hashlib.sha1(body, usedforsecurity=False).digest(), {})
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "delta",
    # A number without end, and a step for each of a million bytes, of 64 million that there may be.
    [b"\x01" + _LONG, b"\x01\x80\x80\x40" + b"\x01y" * 2**20],
    ids=["a number", "steps"],
)
def test_a_delta_costs_little(delta: bytes) -> None:
    pack = packed((3, b"", b"x"), (6, b"\x0a", delta))
    began = time.process_time()
    with pytest.raises(BadPack):
        packs.read(pack, {})
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("path", "shown", "bearer"),
    [
        ("/v1/git/x/state.git/info/refs", b"Basic bGV0dGE6a2V5OjE=", b"Bearer key:1"),
        ("/v1/git/x/state.git/info/refs", b"Basic !", b"Bearer "),
        ("/v1/git/x/state.git/info/refs", b"Bearer key", b"Bearer key"),
        ("/v1/agents", b"Basic bGV0dGE6a2V5OjE=", b"Basic bGV0dGE6a2V5OjE="),
    ],
)
def test_passwords_are_keys_for_git_alone(path: str, shown: bytes, bearer: bytes) -> None:
    assert with_bearer(path, {b"authorization": shown})[b"authorization"] == bearer
