"""The images, built on a base made here, and a walk through every service on a Docker network, over TCP."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from letta_client import APIStatusError, Letta, NotFoundError

from tests.contract.tool_runner.engine import copy_image
from tests.e2e.pods import BASE, POSTGRES, ROOT, Network, docker, network
from tests.polling import wait_until

TARGETS = ["agent", "memory", "llm_gateway", "tool_runner", "gateway", "postgres"]
SERVICES = ["agent", "memory", "llm-gateway", "tool-runner"]

pytestmark = pytest.mark.timeout(600)

DICE = '''
def roll_dice(num_sides: int = 6) -> str:
    """Rolls a dice.

    Args:
        num_sides (int): How many sides it has.
    """
    return f"rolled below {num_sides + 1}"
'''


def need_engine() -> None:
    """Skips where images cannot be built."""
    for command in ("docker", "apt-get", "dpkg-deb", "npm"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    if subprocess.run(["docker", "version"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker engine answers")


def script(*command: str, **environment: str) -> None:
    """Runs one of scripts/; its output is part of the failure."""
    settings = {**os.environ, "DOCKER_BUILDKIT": "0", **environment}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def tag() -> Iterator[str]:
    """The images of all targets under a tag of their own; nothing of them stays."""
    need_engine()
    made = f"test-{uuid.uuid4().hex[:12]}"
    base = f"loci-base:{made}"
    sandbox = f"loci-sandbox:{made}"
    images = [sandbox, *(f"loci-{target.replace('_', '-')}:{made}" for target in TARGETS)]
    try:
        # CI has made these two already.
        if ready := os.environ.get("LOCI_TEST_BASE"):
            docker("tag", ready, base)
        else:
            script("scripts/local-base", base)
        script("scripts/images", BASE=base, TAG=made, WHEELHOUSE="1")
        if ready := os.environ.get("LOCI_TEST_SANDBOX"):
            copy_image(ready, sandbox, os.environ)
        else:
            script("scripts/sandbox-image", base, sandbox)
        yield made
    finally:
        docker("rmi", "--force", *images, check=False)
        docker("image", "prune", "--force", f"--filter=label=org.opencontainers.image.version={made}", check=False)
        docker("rmi", "--force", base, check=False)


@pytest.fixture(scope="module")
def pods(tag: str) -> Iterator[Network]:
    """Every pod of the dev overlay, migrated and answering; tool-runner has an engine, which no pod would have."""
    with network(tag) as made:
        made.start(POSTGRES)
        wait_for_pod(lambda: "listening on IPv4" in made.logs("postgres"), made, "postgres")
        made.run_job(BASE / "migrations.yaml")
        for pod in [*SERVICES, "gateway"]:
            made.start(BASE / f"{pod}.yaml", *(engine(tag) if pod == "tool-runner" else ()))
        wait_for_pod(lambda: healthy(made), made, "gateway")
        yield made


def wait_for_pod(condition: Callable[[], bool], pods: Network, pod: str) -> None:
    """Waits for `condition()`; the pod's log is part of the failure."""
    wait_until(condition, 60, pause=0.2, problem=lambda: f"{pod} is not ready: {pods.logs(pod)}")


def address(pods: Network) -> str:
    """The gateway's, on this machine."""
    return f"http://127.0.0.1:{pods.port('gateway', 8283)}"


def healthy(pods: Network) -> bool:
    """Asks as the gateway's probe does."""
    try:
        return httpx.get(f"{address(pods)}/v1/health/", timeout=2).is_success
    except httpx.TransportError:
        return False


def probe(pods: Network, pod: str) -> bool:
    """Asks as the pod's gRPC probe does."""
    with grpc.insecure_channel(f"127.0.0.1:{pods.port(pod, 50051)}") as channel:
        try:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            reply = stub.Check(health_pb2.HealthCheckRequest(), timeout=3)
        except grpc.RpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)


def letta(pods: Network) -> Letta:
    """The official client with the password of the manifests."""
    password = pods.objects["loci-password"]["LETTA_SERVER_PASSWORD"]
    return Letta(base_url=address(pods), api_key=password, timeout=30, max_retries=0)


def engine(tag: str) -> list[str]:
    """Arguments of `docker run` that hand a container this machine's engine, and the image of its sandboxes."""
    socket = Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
    if not socket.is_socket():
        pytest.skip("the Docker engine is not on this machine")
    return [
        f"--volume={socket}:/run/engine.sock",
        f"--group-add={socket.stat().st_gid}",
        "--env=DOCKER_HOST=unix:///run/engine.sock",
        f"--env=LOCI_SANDBOX_IMAGE=loci-sandbox:{tag}",
    ]


def returned_by_dice(client: Letta, agent_id: str) -> tuple[str, str]:
    """(status, text) of the tool that the agent is told to use."""
    reply = client.agents.messages.create(agent_id, input="use roll_dice with num_sides=6")
    (returned,) = [message for message in reply.messages if message.message_type == "tool_return_message"]
    return returned.status, str(returned.tool_return)


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_unprivileged_and_installs_nothing(tag: str, target: str) -> None:
    image = f"loci-{target.replace('_', '-')}:{tag}"
    assert docker("inspect", "--format", "{{.Config.User}}", image) == "10001:10001"
    shell = ["run", "--rm", "--network=none", "--entrypoint=/bin/sh", image, "-c"]
    assert docker(*shell, "id -u; command -v pip || echo none").split() == ["10001", "none"]


def test_an_image_holds_its_own_service_alone(tag: str) -> None:
    listing = docker("run", "--rm", "--network=none", "--entrypoint=/bin/ls", f"loci-memory:{tag}", "services")
    assert listing.split() == ["__init__.py", "common", "memory"]
    lookup = "import importlib.util as u; print(u.find_spec('pgvector') and 1, u.find_spec('openai'))"
    found = docker("run", "--rm", "--network=none", "--entrypoint=python", f"loci-memory:{tag}", "-c", lookup)
    assert found.split() == ["1", "None"]


def test_a_missing_setting_is_one_line(tag: str) -> None:
    done = subprocess.run(
        ["docker", "run", "--rm", "--network=none", f"loci-memory:{tag}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "LOCI_" in done.stderr


def test_every_service_answers_its_probe(pods: Network) -> None:
    for pod in SERVICES:
        wait_for_pod(partial(probe, pods, pod), pods, pod)


def test_without_the_password_nobody_is_served(pods: Network) -> None:
    stranger = Letta(base_url=address(pods), api_key="wrong", timeout=30, max_retries=0)
    with pytest.raises(APIStatusError) as caught:
        stranger.agents.list()
    assert caught.value.status_code == 401


def test_the_walk(pods: Network) -> None:
    client = letta(pods)
    agent = client.agents.create(
        name="walker",
        model="loci/demo",
        memory_blocks=[
            {"label": "human", "value": "Nothing is known yet."},
            {"label": "persona", "value": "I am helpful."},
        ],
        tools=["archival_memory_insert", "archival_memory_search"],
    )
    client.agents.messages.create(agent.id, input="My name is Ada and I like Haskell.")
    assert "Ada" in client.agents.blocks.retrieve("human", agent_id=agent.id).value

    hello: list[Any] = [{"role": "user", "content": "Hello there"}]
    stream = client.agents.messages.create(agent.id, messages=hello, streaming=True, stream_tokens=True)
    kinds = [chunk.message_type for chunk in stream]
    assert kinds.count("assistant_message") > 1, kinds
    assert kinds[-2:] == ["stop_reason", "usage_statistics"], kinds

    client.agents.passages.create(agent.id, text="The harbour of Rhodes had a bronze giant.")
    found = client.agents.passages.search(agent.id, query="bronze giant")
    assert "Rhodes" in found.results[0].content

    tool = client.tools.upsert(source_code=DICE)
    client.agents.tools.attach(tool.id, agent_id=agent.id)
    assert returned_by_dice(client, agent.id) == ("success", "rolled below 7")

    for pod in ("memory", "agent"):
        pods.restart(pod)
        wait_for_pod(partial(probe, pods, pod), pods, pod)
    reply = client.agents.messages.create(agent.id, input="What is my name?")
    answers = [message.content for message in reply.messages if message.message_type == "assistant_message"]
    assert "Ada" in str(answers[-1]), answers

    client.agents.delete(agent.id)
    with pytest.raises(NotFoundError):
        client.agents.retrieve(agent.id)


def test_without_an_engine_a_custom_tool_is_refused_and_the_agent_goes_on(pods: Network) -> None:
    pods.remove("tool-runner")
    pods.start(BASE / "tool-runner.yaml")
    wait_for_pod(lambda: probe(pods, "tool-runner"), pods, "tool-runner")
    client = letta(pods)
    tool = client.tools.upsert(source_code=DICE)
    agent = client.agents.create(name="dicer", model="loci/demo", tool_ids=[tool.id])
    status, said = returned_by_dice(client, agent.id)
    assert status == "error"
    assert "no container engine" in said
    assert "bubblewrap" in said
    reply = client.agents.messages.create(agent.id, input="Hello")
    assert reply.stop_reason.stop_reason == "end_turn"
    client.agents.delete(agent.id)


def test_every_pod_stops_by_itself_when_told_to(pods: Network) -> None:
    for pod in [*SERVICES, "gateway"]:
        assert pods.exit_code(pod) == 0, pods.logs(pod)
