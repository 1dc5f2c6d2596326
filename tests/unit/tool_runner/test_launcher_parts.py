"""The pure parts of the launcher: the container, the frames, what the engine joined, who owns what."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool_runner.core.job import MIB
from services.tool_runner.sandboxes import seccomp
from services.tool_runner.sandboxes.launcher import owner, spec, wire
from services.tool_runner.sandboxes.launcher.attached import Streams

FIELDS = {"language": "python", "memory": 10, "processes": 3, "cpus": 0.5, "disk": 7, "layer": ""}


def test_the_container_is_what_the_design_says() -> None:
    config = spec.container_config("image:1", "x86_64", spec.read_request(FIELDS), "me")
    host = config["HostConfig"]
    assert (config["User"], config["NetworkDisabled"], config["StdinOnce"]) == ("65534:65534", True, True)
    assert " ".join(config["Entrypoint"]) == "python3 -I /opt/loci/worker --language python --memory 10"
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]) == ("none", True, False)
    assert (host["CapDrop"], host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (["ALL"], 10, 10, 3)
    assert host["NanoCpus"] == 500_000_000
    assert set(host["Tmpfs"]) == {"/work", "/tmp", "/inputs"}
    assert all("size=7" in options and "nosuid,nodev,noexec" in options for options in host["Tmpfs"].values())
    assert host["SecurityOpt"][0] == "no-new-privileges"
    assert json.loads(host["SecurityOpt"][1].removeprefix("seccomp=")) == seccomp.container_profile("x86_64")
    # Folders of the machine are there for programs of MCP servers alone.
    assert host["Mounts"] == []
    assert not {"Binds", "Devices", "CapAdd", "VolumesFrom", "Runtime"} & host.keys()


def test_another_runtime_and_another_language() -> None:
    config = spec.container_config(
        "image:1", "x86_64", spec.read_request({**FIELDS, "language": "node"}), "me", "runsc"
    )
    assert config["HostConfig"]["Runtime"] == "runsc"
    assert "--language node" in " ".join(config["Entrypoint"])


def test_no_request_gets_more_than_the_ceiling() -> None:
    asked = spec.read_request({**FIELDS, "memory": 2**50, "processes": 10**6, "cpus": 64.0, "disk": 2**40})
    assert (asked.memory, asked.processes, asked.cpus, asked.disk) == (4096 * MIB, 512, 4.0, 2048 * MIB)


@pytest.mark.parametrize("change", [{"language": "sh"}, {"memory": "1"}, {"layer": None, "disk": None}])
def test_a_request_is_of_one_shape(change: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        spec.read_request({**FIELDS, **change})


def test_a_layer_names_an_image_of_ours_alone() -> None:
    assert spec.layer_image("a" * 64, "sha256:" + "0123456789abcdef") == f"loci-layer:{'a' * 40}-0123456789ab"
    for key in ("", "latest", "../x", "A" * 64, "a" * 15, "a" * 65, "a" * 20 + "\n"):
        with pytest.raises(ValueError, match="hexadecimal"):
            spec.layer_image(key, "sha256:0")


def test_frames_of_the_launcher() -> None:
    frame = wire.encode(wire.Frame.DATA, 7, b"\x00\xff")
    assert wire.header(frame[: wire.HEADER_BYTES]) == (wire.Frame.DATA, 7, 2)
    assert frame[wire.HEADER_BYTES :] == b"\x00\xff"
    with pytest.raises(ValueError, match="frame"):
        wire.header(b"\x03" + b"\xff" * 8)
    with pytest.raises(ValueError, match="Frame"):
        wire.header(b"\x63" + b"\x00" * 8)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50))), st.integers(1, 20))
def test_what_the_engine_joined_is_told_apart_however_it_is_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    joined = b"".join(bytes((stream, 0, 0, 0)) + len(data).to_bytes(4, "big") + data for stream, data in frames)
    streams, out, err = Streams(), b"", b""
    for start in range(0, len(joined), size):
        more_out, more_err = streams.split(joined[start : start + size])
        out, err = out + more_out, err + more_err
    assert out == b"".join(data for stream, data in frames if stream == 1)
    assert err == b"".join(data for stream, data in frames if stream == 2)


def test_owners_are_told_apart() -> None:
    me = owner.own_name()
    assert owner.is_dead(me) is False
    world, _, _ = me.rpartition("/")
    assert owner.is_dead(f"{world}/1") is True  # the same pid, another start
    assert owner.is_dead("elsewhere/1/2/3") is None
    assert owner.is_dead("") is None
