"""The parts of layers that decide: what a requirement may say, and what of an installed tree is kept."""

import io
import json
import os
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.refusals import Refused
from services.tool_runner.core import requirements as needs
from services.tool_runner.layers.archives import BadArchive, TruncatedArchive, rewrite, unpack
from services.tool_runner.layers.cache import LayerCache, unpack_layer
from services.tool_runner.layers.causes import failure_text

MOST = 10_000


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"name": "requests"}], ("requests",)),
        ([{"name": "b", "version": "1.2.3"}, {"name": "a", "version": None}], ("a", "b==1.2.3")),
        ([{"name": "httpx[http2, socks]", "version": ">= 0.28, <1"}], ("httpx[http2,socks]>=0.28,<1",)),
        ([{"name": "Py_YAML", "version": "5"}, {"name": "py-yaml", "version": "6.*"}], ("py-yaml==6.*",)),
        ([], ()),
    ],
)
def test_requirements_of_pip(entries: object, expected: tuple[str, ...]) -> None:
    assert needs.parse_pip(json.dumps(entries)) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"name": "lodash"}], ("lodash",)),
        ([{"name": "@scope/some.name", "version": "^1.2.3-beta.1"}], ("@scope/some.name@^1.2.3-beta.1",)),
        ([{"name": "b", "version": "2.x"}, {"name": "a", "version": "latest"}], ("a@latest", "b@2.x")),
    ],
)
def test_requirements_of_npm(entries: object, expected: tuple[str, ...]) -> None:
    assert needs.parse_npm(json.dumps(entries)) == expected


NAMES = ["", "-r x", "--index-url=http://evil", "../x", "/etc/passwd", "git+https://x/y", "x @ http://evil/x.whl",
         "a b", "https://evil/x.tgz", "a;os_name", "x\n--pre", "file:x", ".", "npm:x", "a/b", "@/x", "x#y"]  # fmt: skip
VERSIONS = ["http://evil/x.tgz", "file:..", "git+ssh://x", "1.0 --pre", "1;python_version", "npm:x@1", "../x", "a/b",
            "github:x/y", "1.0\n-r x", "@http://x", "workspace:*"]  # fmt: skip


@pytest.mark.parametrize("entry", [{"name": n} for n in NAMES] + [{"name": "x", "version": v} for v in VERSIONS])
def test_what_is_no_package_of_the_index_is_refused(entry: dict[str, str]) -> None:
    for parse in (needs.parse_pip, needs.parse_npm):
        with pytest.raises(Refused) as caught:
            parse(json.dumps([entry]))
        assert caught.value.reason == "REQUIREMENTS_INVALID"


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '["requests"]', '[{"name": 1}]', '[{"name":"x","version":1}]', "7"])
def test_what_is_no_list_of_packages_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        needs.parse_pip(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_becomes_an_option(name: str, version: str) -> None:
    for parse in (needs.parse_pip, needs.parse_npm):
        try:
            (requirement,) = parse(json.dumps([{"name": name, "version": version}]))
        except Refused:
            continue
        assert not requirement.startswith("-")
        assert "://" not in requirement
        assert not set(requirement) & set(" \t\n;\\:")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("ERROR: No matching distribution found for old-mcp==1", "no wheel of old-mcp==1 for this Python"),
        (
            "ERROR: Ignored the following versions: 0.9 Requires-Python >=3.12; 1.0 Requires-Python >=3.12\n"
            "ERROR: No matching distribution found for basic-memory",
            "it wants another Python (>=3.12)",
        ),
        ("WARNING: Retrying: Connection refused\nERROR: No matching distribution found for x", "LOCI_PIP_INDEX_URL"),
        ("npm warn EBADENGINE\nnpm error code ETARGET\nnpm error notarget No matching version", "not in that version"),
        ("npm error code ENOSPC", "LOCI_LAYER_MIB"),
    ],
)
def test_the_cause_of_a_failure_comes_first(words: str, says: str) -> None:
    told = failure_text(words)
    assert says in told.splitlines()[0]
    assert told.endswith(f"; its words: {words}")
    assert failure_text("no such luck\n\n") == "no such luck"


def test_the_key_is_of_place_and_requirements() -> None:
    keys = {
        needs.key_of(r, *p) for r in (("a",), ("a", "b"), ("ab",)) for p in (("python", "i"), ("node", "i"), ("py",))
    }
    assert len(keys) == 9


def entry(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.size = len(content)
    for key, value in fields.items():
        setattr(made, key, value)
    return made, content


DONE = entry(".done")


def archive(tmp_path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    path = tmp_path / "came.tar"
    with tarfile.open(path, "w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return path


def test_what_is_kept_has_no_owner_no_time_and_no_privilege(tmp_path: Path) -> None:
    came = archive(
        tmp_path,
        entry("python", type=tarfile.DIRTYPE, mode=0o700),
        entry("python/tool.sh", b"#!", mode=0o4755, uid=7, uname="x", mtime=9),
        entry("python/data", b"1", mode=0o600),
        entry("node_modules/.bin/x", type=tarfile.SYMTYPE, linkname="../x/cli.js"),
        DONE,
    )
    rewrite(came, tmp_path / "kept.tar", MOST)
    with tarfile.open(tmp_path / "kept.tar") as tar:
        kept = {info.name: (info.mode, info.uid, info.uname, info.mtime) for info in tar}
    plain = (0, "", 0)
    assert kept["python/tool.sh"] == (0o755, *plain)
    assert kept["python/data"] == (0o644, *plain)
    assert ".done" not in kept
    unpack(tmp_path / "kept.tar", tmp_path / "tree")
    assert (tmp_path / "tree/python/tool.sh").read_bytes() == b"#!"
    assert os.readlink(tmp_path / "tree/node_modules/.bin/x") == "../x/cli.js"


@pytest.mark.parametrize(
    "entries",
    [
        [entry("/etc/passwd", b"x")],
        [entry("python/../../x", b"x")],
        [entry("other/x", b"x")],
        [entry("python//x", b"x")],
        [entry("python/link", type=tarfile.SYMTYPE, linkname="/etc/shadow")],
        [entry("python/link", type=tarfile.SYMTYPE, linkname="../../etc")],
        [entry("python/a", type=tarfile.SYMTYPE, linkname="b"), entry("python/a/x", b"x")],
        [entry("python/a", type=tarfile.SYMTYPE, linkname="b"), entry("python/a", b"x")],
        [entry("python/hard", type=tarfile.LNKTYPE, linkname="python/x")],
        [entry("python/device", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
        [entry("python/pipe", type=tarfile.FIFOTYPE)],
        [entry("python/big", b"x" * (MOST + 1))],
        [entry("python/" + "x" * 2000, b"x")],
    ],
)
def test_a_hostile_tree_is_refused_whole(tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with pytest.raises(BadArchive):
        rewrite(archive(tmp_path, *entries, DONE), tmp_path / "kept.tar", MOST)


def test_a_tree_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    for came in (archive(tmp_path, entry("python/x", b"x")), tmp_path / "empty"):
        came.touch()
        with pytest.raises(TruncatedArchive):
            rewrite(came, tmp_path / "kept.tar", MOST)


def test_the_store_keeps_those_used_last(tmp_path: Path) -> None:
    store = LayerCache(tmp_path / "layers", most=3, most_bytes=MOST)
    for number, key in enumerate(("a", "b", "c")):
        received = store.new_file()
        archive(tmp_path, entry("python/x", key.encode()), DONE).rename(received)
        layer = store.keep(key, received)
        assert (unpack_layer(layer) / "python/x").read_text() == key
        long_ago = time.time() - 90_000 + number
        os.utime(layer.archive, (long_ago, long_ago))
        received.unlink()
    assert store.find("a") is not None  # used now
    received = store.new_file()
    archive(tmp_path, entry("python/x", b"d"), DONE).rename(received)
    store.keep("d", received)
    received.unlink()
    assert sorted(path.name for path in (tmp_path / "layers").iterdir()) == ["a", "a.tar", "c", "c.tar", "d.tar"]
    assert store.find("b") is None


def test_the_store_wants_a_folder_of_its_own(tmp_path: Path) -> None:
    open_to_all = tmp_path / "layers"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(Exception, match="LOCI_LAYER_DIR"):
        LayerCache(open_to_all, most=2, most_bytes=MOST).new_file()


def test_a_layer_is_for_everybody_to_read_whatever_the_umask_is(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "layers"
    before = os.umask(0o077)
    try:
        store = LayerCache(folder, most=2, most_bytes=MOST)
        received = store.new_file()
        archive(tmp_path, entry("python", type=tarfile.DIRTYPE), entry("python/p/x", b"1"), DONE).rename(received)
        tree = unpack_layer(store.keep("a", received))
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (folder.parent, folder, tree, tree / "python" / "p")}
    assert [oct(mode) for mode in modes.values()] == ["0o711", "0o711", "0o755", "0o755"]
    assert (tree / "python/p/x").stat().st_mode & 0o777 == 0o644
