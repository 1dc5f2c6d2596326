"""Which sandbox serves."""

from pathlib import Path

import pytest

from services.tool_runner.core.job import Job, Result, SandboxUnavailable
from services.tool_runner.core.ports import NO_ENDS, Ends, Process, Sandbox
from services.tool_runner.sandboxes.choose import LOCAL_IMAGE, SandboxChoice, SandboxSettings
from services.tool_runner.sandboxes.docker import DockerSettings, Probe


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

    async def run(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        raise NotImplementedError

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        raise NotImplementedError

    async def end_session(self, session: str) -> None:
        """There are none."""

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
    settings = SandboxSettings(kind, docker=DockerSettings(environment=environment))
    choice = SandboxChoice(settings, bubblewrap=_nowhere)
    with pytest.raises(SandboxUnavailable) as caught:
        await choice.get()
    await choice.close()
    assert ("no container engine" in str(caught.value)) == (kind != "bubblewrap")
    assert ("install it" in str(caught.value)) == (kind != "docker")
