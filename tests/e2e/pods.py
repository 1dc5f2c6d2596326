"""Runs the pods of k8s/ as containers on a Docker network, with the manifests' settings, secrets and hardening.

So the manifests are tried for real where no Kubernetes can run: what a pod gets there, its container gets here.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from k8s.make_secrets import manifests

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "k8s" / "base"
POSTGRES = ROOT / "k8s" / "overlays" / "dev" / "postgres.yaml"

Document = dict[str, Any]


def docker(*arguments: str, timeout: float = 120, check: bool = True) -> str:
    """Output of one docker command; what it said on stderr is part of the error."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=timeout, check=False)
    if check and done.returncode:
        raise RuntimeError(f"docker {' '.join(arguments[:3])} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout.strip()


def documents(path: Path) -> list[Document]:
    """The documents of one manifest."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


@dataclass
class Network:
    """Containers that reach each other by the names of their Services."""

    tag: str
    name: str = field(default_factory=lambda: f"loci-test-{uuid.uuid4().hex[:12]}")
    password: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        url = f"postgresql://loci:{self.password}@postgres/loci"
        made = {
            entry["metadata"]["name"]: entry.get("stringData") or entry["data"]
            for entry in manifests(url, self.password)
        }
        (base,) = documents(BASE / "kustomization.yaml")
        literals = (literal.split("=", 1) for literal in base["configMapGenerator"][0]["literals"])
        self.objects: dict[str, dict[str, str]] = {**made, "loci": dict(literals)}

    def container(self, pod: str) -> str:
        """The container's name."""
        return f"{self.name}-{pod}"

    def start(self, path: Path, *extra: str) -> None:
        """Starts the Deployment or StatefulSet of a manifest; `extra` are more arguments of `docker run`."""
        (workload,) = (entry for entry in documents(path) if "template" in entry.get("spec", {}))
        spec = workload["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        ports = [f"--publish=127.0.0.1::{port['containerPort']}" for port in container["ports"]]
        name = workload["metadata"]["name"]
        docker(
            "run",
            "--detach",
            *self._named(name),
            *ports,
            *self._settings(spec, container),
            *extra,
            self._image(container),
        )

    def run_job(self, path: Path) -> None:
        """Runs each container of a Job, all at once, to its end."""
        (job,) = (entry for entry in documents(path) if entry["kind"] == "Job")
        spec = job["spec"]["template"]["spec"]
        names = []
        for container in spec["containers"]:
            names.append(f"migrate-{container['name']}")
            arguments = [*self._settings(spec, container), self._image(container), *container["args"]]
            docker("run", "--detach", *self._named(names[-1]), *arguments)
        for name in names:
            if docker("wait", self.container(name)) != "0":
                raise RuntimeError(f"{name} failed: {self.logs(name)}")

    def port(self, pod: str, port: int) -> int:
        """The port of 127.0.0.1 where the pod's `port` is published; another one after each start."""
        return int(docker("port", self.container(pod), f"{port}/tcp").splitlines()[0].rpartition(":")[2])

    def restart(self, pod: str) -> None:
        """Stops the pod as Kubernetes would (SIGTERM, 30 seconds) and starts it again."""
        docker("restart", "--time", "30", self.container(pod))

    def remove(self, pod: str) -> None:
        """Ends the pod at once."""
        docker("rm", "--force", "--volumes", self.container(pod))

    def exit_code(self, pod: str) -> int:
        """Returns the exit code of a stopped pod."""
        docker("stop", "--time", "30", self.container(pod))
        return int(docker("inspect", "--format", "{{.State.ExitCode}}", self.container(pod)))

    def logs(self, pod: str) -> str:
        """The last lines of both streams."""
        done = subprocess.run(
            ["docker", "logs", "--tail", "30", self.container(pod)], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def _named(self, name: str) -> list[str]:
        network = ["--network", self.name, "--network-alias", name]
        return ["--name", self.container(name), "--label", f"loci.test={self.name}", *network]

    def _image(self, container: Document) -> str:
        return f"{container['image']}:{self.tag}"

    def _settings(self, pod: Document, container: Document) -> list[str]:
        environment: dict[str, str] = {}
        for source in container.get("envFrom", []):
            reference = source.get("configMapRef") or source["secretRef"]
            if reference["name"] in self.objects or not reference.get("optional"):
                environment |= self.objects[reference["name"]]
        for variable in container.get("env", []):
            value = variable.get("value") or self._referred(variable["valueFrom"])
            if value is not None:
                environment[variable["name"]] = value
        user = pod["securityContext"]
        hardened = container["securityContext"]
        assert hardened["readOnlyRootFilesystem"]
        assert not hardened["allowPrivilegeEscalation"]
        return [
            f"--user={user['runAsUser']}:{user['runAsGroup']}",
            "--read-only",
            "--security-opt=no-new-privileges",
            *(f"--cap-drop={name}" for name in hardened["capabilities"]["drop"]),
            *(
                f"--tmpfs={mount['mountPath']}:mode=1777"
                for mount in container["volumeMounts"]
                if mount["name"] == "tmp"
            ),
            *(f"--env={name}={value}" for name, value in environment.items()),
        ]

    def _referred(self, source: Document) -> str | None:
        reference = source.get("secretKeyRef") or source["configMapKeyRef"]
        if reference.get("optional"):
            return self.objects.get(reference["name"], {}).get(reference["key"])
        return self.objects[reference["name"]][reference["key"]]


@contextmanager
def network(tag: str) -> Iterator[Network]:
    """A network for images of `tag`; at the end it is gone, with its containers and their volumes."""
    made = Network(tag)
    docker("network", "create", made.name)
    try:
        yield made
    finally:
        ours = docker("ps", "--all", "--quiet", "--filter", f"label=loci.test={made.name}", check=False).split()
        if ours:
            docker("rm", "--force", "--volumes", *ours, check=False)
        docker("network", "rm", made.name, check=False)
