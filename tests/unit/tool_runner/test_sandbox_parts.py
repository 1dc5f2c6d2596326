"""The pure parts of sandboxes: seccomp rules, the container, the conversation with a worker, control groups."""

import json
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool_runner.job import ExitReason, Job, Limits, Result, SandboxUnavailable
from services.tool_runner.ports import Sandbox
from services.tool_runner.sandboxes import exchange, seccomp
from services.tool_runner.sandboxes.bubblewrap_command import command
from services.tool_runner.sandboxes.cgroups import find_cgroups
from services.tool_runner.sandboxes.choose import LOCAL_IMAGE, SandboxChoice, SandboxSettings
from services.tool_runner.sandboxes.docker import DockerSettings, Probe
from services.tool_runner.sandboxes.exchange import AnswerReader, BadWorker
from services.tool_runner.sandboxes.launcher import owner, spec, wire
from services.tool_runner.sandboxes.python_runtime import PythonRuntime
from services.tool_runner.sandboxes.syscalls import ALLOWED, CONDITIONAL

ALLOW, KILL, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 38
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NEVER = {"io_uring_setup", "ptrace", "bpf", "unshare", "setns", "mount", "keyctl", "memfd_create", "userfaultfd"}


def decide(program: bytes, arch: int, number: int, argument: int = 0) -> int:
    """What the kernel would: a small interpreter of classic BPF."""
    data = struct.pack("=IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    lines = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = lines[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_is_listed_and_nothing_else(machine: str) -> None:
    program, arch = seccomp.bpf_filter(machine), ARCHES[machine]
    column = list(ARCHES).index(machine)
    assert len(program) // 8 < 4096  # the kernel's limit
    allowed = {numbers[column] for numbers in ALLOWED.values() if numbers[column] is not None}
    conditional = {numbers[column]: name for name, numbers in CONDITIONAL.items()}
    for number in range(600):
        expected = ALLOW if number in allowed or conditional.get(number) in ("clone", "personality") else ENOSYS
        assert decide(program, arch, number) == expected, number
        assert decide(program, arch, number | 0x40000000) == ENOSYS
    assert decide(program, 0x40000003, 1) == KILL  # i386


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_reads_arguments(machine: str) -> None:
    program, arch, column = seccomp.bpf_filter(machine), ARCHES[machine], list(ARCHES).index(machine)
    clone, socket, personality = (CONDITIONAL[name][column] for name in ("clone", "socket", "personality"))
    assert clone is not None
    assert socket is not None
    assert personality is not None
    assert decide(program, arch, clone, 0x01200011) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(program, arch, clone, flag | 17) == ENOSYS
    assert [family for family in range(64) if decide(program, arch, socket, family) == ALLOW] == [1, 2, 10]
    assert decide(program, arch, personality, 0xFFFFFFFF) == ALLOW
    assert decide(program, arch, personality, 0x0040000) == ENOSYS  # ADDR_NO_RANDOMIZE


def test_both_forms_of_the_rules_agree() -> None:
    profile = seccomp.container_profile("x86_64")
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    named = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert named == ALLOWED.keys() | CONDITIONAL.keys()
    assert not NEVER & named
    with pytest.raises(seccomp.UnsupportedMachine, match="riscv"):
        seccomp.container_profile("riscv64")


def test_the_container_is_what_the_design_says() -> None:
    limits = Limits(memory=10, processes=3, cpus=0.5, disk=7)
    config = spec.container_config("image:1", "x86_64", limits, "me")
    host = config["HostConfig"]
    assert (config["User"], config["NetworkDisabled"], config["StdinOnce"]) == ("65534:65534", True, True)
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]) == ("none", True, False)
    assert (host["CapDrop"], host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (["ALL"], 10, 10, 3)
    assert host["NanoCpus"] == 500_000_000
    assert host["SecurityOpt"][0] == "no-new-privileges"
    assert json.loads(host["SecurityOpt"][1].removeprefix("seccomp=")) == seccomp.container_profile("x86_64")
    assert not {"Binds", "Mounts", "Devices", "CapAdd", "VolumesFrom"} & host.keys()


def test_no_request_gets_more_than_the_ceiling() -> None:
    huge = Limits(seconds=10**6, memory=2**50, processes=10**6, cpus=64.0, disk=2**40)
    clipped = spec.clip(huge)
    assert (clipped.seconds, clipped.processes, clipped.cpus) == (3600, 512, 4.0)
    assert clipped.memory < 2**33
    assert clipped.disk < 2**31
    assert spec.clip(Limits()) == Limits()


def test_jobs_survive_the_wire() -> None:
    job = Job("def f(): pass", "f", {"x": [1, None]}, {"A": "b"}, Limits(seconds=3))
    assert wire.job_from_fields(json.loads(json.dumps(wire.job_to_fields(job)))) == job
    with pytest.raises(ValueError, match="frame"):
        wire.length(b"\xff\xff\xff\xff")


def test_owners_are_told_apart() -> None:
    me = owner.own_name()
    assert owner.is_dead(me) is False
    world, _, _ = me.rpartition("/")
    assert owner.is_dead(f"{world}/1") is True  # the same pid, another start
    assert owner.is_dead("elsewhere/1/2/3") is None
    assert owner.is_dead("") is None


def answered(reader: AnswerReader, body: object, *, nonce: bytes | None = None) -> bytes:
    frame = reader.expect(Job("", "f", {}))
    sent = json.loads(frame[4:])
    data = json.dumps(body).encode()
    return (nonce or sent["nonce"].encode()) + len(data).to_bytes(4, "big") + data


OK = {"reason": "ok", "result": "1", "stdout": "a\x00b", "stderr": "\ud800", "truncated": False}


def test_an_answer_counts_however_it_is_cut_into_pieces() -> None:
    for size in (1, 7, 10_000):
        reader = AnswerReader()
        stream = exchange.HELLO + answered(reader, OK)
        for start in range(0, len(stream), size):
            reader.feed(stream[start : start + size])
        assert reader.ready
        assert reader.result is not None
        assert (reader.result.reason, reader.result.result) == (ExitReason.OK, "1")
        assert (reader.result.stdout, reader.result.stderr) == ("a\ufffdb", "?")


@pytest.mark.parametrize(
    "body",
    [[], "x", {}, {"reason": "fine"}, {"reason": "ok"}, {"reason": "raised", "error": 1}, OK | {"reason": "raised"},
     {**OK, "reason": "raised", "error": {"type": "E", "message": "m", "more": 1}}],
)  # fmt: skip
def test_what_is_no_answer_is_refused(body: object) -> None:
    reader = AnswerReader()
    stream = answered(reader, body)
    with pytest.raises(BadWorker):
        reader.feed(exchange.HELLO + stream)


def test_answers_need_hello_job_nonce_and_a_size() -> None:
    with pytest.raises(BadWorker, match="another release"):
        AnswerReader().feed(b"Welcome to")
    with pytest.raises(BadWorker, match="before it had a job"):
        AnswerReader().feed(exchange.HELLO + b"x")
    reader = AnswerReader()
    forged = answered(reader, OK, nonce=b"0" * 32)
    with pytest.raises(BadWorker, match="nonce"):
        reader.feed(exchange.HELLO + forged)
    reader = AnswerReader()
    frame = answered(reader, OK)
    with pytest.raises(BadWorker, match="at most"):
        reader.feed(exchange.HELLO + frame[:32] + b"\x7f\xff\xff\xff")


@given(st.binary(max_size=300))
def test_no_bytes_of_a_worker_break_the_reader(data: bytes) -> None:
    reader = AnswerReader()
    reader.expect(Job("", "f", {}))
    try:
        reader.feed(exchange.HELLO + data)
    except BadWorker:
        return
    assert reader.result is None


def test_the_command_line_of_bubblewrap() -> None:
    runtime = PythonRuntime("/usr/bin/python3.11", ("/usr/lib/python3.11",), (("usr/lib", "/lib"),))
    argv = command("/usr/bin/bwrap", runtime, Limits(disk=7), 60_721, seccomp=5, worker=6, info=7)
    text = " ".join(argv)
    assert "--unshare-all --unshare-user" in text
    assert "--ro-bind /usr/lib/python3.11 /usr/lib/python3.11 --symlink usr/lib /lib" in text
    assert "--size 7 --tmpfs /work" in text
    assert "--bind" not in argv
    assert "--share-net" not in argv
    assert argv[-3:] == ["/usr/bin/python3.11", "-I", "/loci/worker.py"]


def test_control_groups_of_version_2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory pids")
    cgroups = find_cgroups(tmp_path)
    assert cgroups is not None
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    group = cgroups.create(Limits(memory=99, processes=5, cpus=0.5))
    (folder,) = set(group.folders.values())
    assert folder.parent == tmp_path / "loci.sandboxes"
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {"memory.max": "99", "pids.max": "5", "cpu.max": "50000 100000"}
    assert not group.ran_out_of_memory()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.ran_out_of_memory()


def test_no_control_groups_where_they_cannot_be_made(tmp_path: Path) -> None:
    assert find_cgroups(tmp_path) is None
    (tmp_path / "cgroup.controllers").write_text("cpu")
    assert find_cgroups(tmp_path) is None


class FakeSandbox:
    """Answers nothing; as an engine it has what `found` says."""

    image = ""

    def __init__(self, name: str, found: Probe | None = None) -> None:
        self.name = name
        self._found = found
        self.pulled: list[float] = []

    async def probe(self, pull_seconds: float = 0.0) -> Probe:
        self.pulled.append(pull_seconds)
        assert self._found
        return self._found

    async def run(self, job: Job) -> Result:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""


async def _nowhere() -> Sandbox:
    raise SandboxUnavailable("no bubblewrap: install it")


async def _bubblewrap() -> Sandbox:
    return FakeSandbox("bubblewrap")


NAMED = DockerSettings(environment={"DOCKER_HOST": "unix:///somewhere"})
WORKS = Probe(engine=True, image=True, problem="")


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        (WORKS, "docker"),
        (Probe(engine=True, image=False, problem=""), "bubblewrap"),
        (Probe(engine=False, image=False, problem="no container engine answers"), "bubblewrap"),
    ],
)
async def test_docker_where_it_works_else_bubblewrap(found: Probe, chosen: str) -> None:
    choice = SandboxChoice(SandboxSettings(docker=NAMED), docker=FakeSandbox("docker", found), bubblewrap=_bubblewrap)
    assert (await choice.get()).name == chosen
    assert await choice.prepare() == f"tools run in {chosen}"


async def test_an_engine_that_fails_is_passed_over() -> None:
    docker = FakeSandbox("docker", WORKS)
    choice = SandboxChoice(SandboxSettings(docker=NAMED), docker=docker, bubblewrap=_bubblewrap)
    choice.forget(await choice.get())
    assert (await choice.get()).name == "bubblewrap"
    alone = SandboxChoice(SandboxSettings(docker=NAMED), docker=docker, bubblewrap=_nowhere)
    alone.forget(await alone.get())
    assert (await alone.get()).name == "docker"


async def test_a_missing_image_names_the_command() -> None:
    missing = FakeSandbox("docker", Probe(engine=True, image=False, problem=""))
    for image, advice in ((LOCAL_IMAGE, "make sandbox-image"), ("mine:2", "docker pull mine:2")):
        docker = DockerSettings(image=image, environment=NAMED.environment)
        choice = SandboxChoice(SandboxSettings("docker", docker), docker=missing)
        assert advice in await choice.prepare()
    assert max(missing.pulled) == SandboxSettings().pull_seconds  # only for an image that a registry may have
    assert missing.pulled[0] == 0


@pytest.mark.parametrize("kind", ["auto", "docker", "bubblewrap"])
async def test_without_any_sandbox_the_refusal_says_what_to_do(kind: str) -> None:
    environment = {"DOCKER_HOST": "unix:///nowhere", "PATH": "/usr/bin", "PYTHONPATH": str(Path.cwd())}
    settings = SandboxSettings(kind, docker=DockerSettings(environment=environment))  # type: ignore[arg-type]
    choice = SandboxChoice(settings, bubblewrap=_nowhere)
    with pytest.raises(SandboxUnavailable) as caught:
        await choice.get()
    await choice.close()
    assert ("no container engine" in str(caught.value)) == (kind != "bubblewrap")
    assert ("install it" in str(caught.value)) == (kind != "docker")


def test_the_worker_needs_nothing_but_the_standard_library() -> None:
    text = (Path(exchange.__file__).parent / "worker.py").read_text()
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= set(sys.stdlib_module_names)
