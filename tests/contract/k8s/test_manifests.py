"""The manifests render, fit the schemas of the oldest and the newest Kubernetes, and keep our rules."""

import json
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import kubernetes_validate
import pytest
import yaml

from k8s.make_secrets import manifests
from services.common.context import CallContext
from services.common.keys import signer_from, verifier_from
from services.common.settings import Env

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ["k8s/base", "k8s/overlays/dev"]
OLDEST = "1.30.0"
SERVICES = {"agent", "memory", "llm-gateway", "tool-runner"}
EDGES = {"agent", "gateway"}

Document = dict[str, Any]


def kubectl() -> str:
    """The path of a kubectl that is recent enough, else the test is skipped."""
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is not installed")
    version = json.loads(subprocess.check_output([found, "version", "--client", "-o", "json"], text=True))
    client = version["clientVersion"]
    if (int(client["major"]), int(client["minor"].rstrip("+"))) < (1, 30):
        pytest.skip("kubectl is older than 1.30")
    return found


@pytest.fixture(scope="module", params=FOLDERS)
def documents(request: pytest.FixtureRequest) -> list[Document]:
    """The rendered documents of one folder."""
    text = subprocess.check_output([kubectl(), "kustomize", str(ROOT / request.param)], text=True)
    return [document for document in yaml.safe_load_all(text) if document]


def workloads(documents: list[Document]) -> Iterator[tuple[Document, Document]]:
    """(workload, its pod's spec)."""
    for document in documents:
        if document["kind"] in {"Deployment", "StatefulSet", "Job"}:
            yield document, document["spec"]["template"]["spec"]


def containers(documents: list[Document]) -> Iterator[tuple[Document, Document]]:
    """(workload, container)."""
    for workload, pod in workloads(documents):
        for container in pod.get("initContainers", []) + pod["containers"]:
            yield workload, container


def named(documents: list[Document], kind: str) -> dict[str, Document]:
    """name -> document of that kind."""
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_every_document_fits_the_schema(documents: list[Document], version: str) -> None:
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schema_check_is_strict() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "livenessProb": {}}]}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, OLDEST, strict=True)


def test_a_container_that_serves_has_all_three_probes(documents: list[Document]) -> None:
    for workload, container in containers(documents):
        if workload["kind"] != "Job":
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys(), container["name"]


def test_services_are_probed_by_grpc(documents: list[Document]) -> None:
    for name in SERVICES:
        (container,) = named(documents, "Deployment")[name]["spec"]["template"]["spec"]["containers"]
        assert container["livenessProbe"]["grpc"] == {"port": 50051}


def test_every_container_has_requests_and_limits(documents: list[Document]) -> None:
    for _, container in containers(documents):
        for bound in ("requests", "limits"):
            assert {"cpu", "memory"} <= container["resources"][bound].keys(), container["name"]


def test_every_container_is_hardened(documents: list[Document]) -> None:
    for _, container in containers(documents):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, container["name"]


def test_every_pod_is_hardened_and_has_no_token(documents: list[Document]) -> None:
    accounts = named(documents, "ServiceAccount")
    for workload, pod in workloads(documents):
        name = workload["metadata"]["name"]
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["runAsUser"] > 0, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["automountServiceAccountToken"] is False, name
        assert accounts[pod["serviceAccountName"]]["automountServiceAccountToken"] is False, name
        assert pod["serviceAccountName"] == name, "each has an account of its own"
        assert pod["terminationGracePeriodSeconds"] >= 10, name
        assert not any("hostPath" in volume for volume in pod.get("volumes", [])), name


def test_images_have_the_version_of_the_project(documents: list[Document]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for _, container in containers(documents):
        assert container["image"] == f"loci-{container['name']}:{version}"


def test_grpc_services_are_headless_and_select_their_pods(documents: list[Document]) -> None:
    services, deployments = named(documents, "Service"), named(documents, "Deployment")
    for name in SERVICES:
        spec = services[name]["spec"]
        labels = deployments[name]["spec"]["template"]["metadata"]["labels"]
        assert spec["clusterIP"] == "None"
        assert spec["selector"].items() <= labels.items()


def test_peers_are_services_of_the_same_namespace(documents: list[Document]) -> None:
    services = named(documents, "Service")
    (settings,) = (data for name, data in named(documents, "ConfigMap").items() if name.startswith("loci-"))
    for service in SERVICES:
        address = settings["data"][f"LOCI_{service.upper().replace('-', '_')}_ADDR"]
        host, _, port = address.removeprefix("dns:///").partition(":")
        assert int(port) in [entry["port"] for entry in services[host]["spec"]["ports"]]


def test_every_service_port_is_a_port_of_its_pod(documents: list[Document]) -> None:
    ports: dict[str, set[str]] = {}
    for workload, container in containers(documents):
        ports.setdefault(workload["metadata"]["name"], set()).update(
            port["name"] for port in container.get("ports", [])
        )
    for service in named(documents, "Service").values():
        pod = service["spec"]["selector"]["app.kubernetes.io/name"]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports[pod]


def references(container: Document, *, optional: bool = False) -> Iterator[tuple[str, str, str]]:
    """(kind, name, key) of what the container takes from objects that must exist, or that may."""
    for variable in container.get("env", []):
        for source, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
            reference = variable.get("valueFrom", {}).get(source)
            if reference and reference.get("optional", False) is optional:
                yield kind, reference["name"], reference["key"]


def test_what_pods_refer_to_is_made_by_make_secrets(documents: list[Document]) -> None:
    made = {
        (entry["kind"], entry["metadata"]["name"], key)
        for entry in manifests("postgresql://loci:pw@postgres/loci", postgres_password="pw")
        for key in entry.get("stringData", entry.get("data", {}))
    }
    for _, container in containers(documents):
        assert set(references(container)) <= made, container["name"]


def test_only_edges_know_the_password_and_sign_for_tenants(documents: list[Document]) -> None:
    holders: dict[str, set[str]] = {}
    for workload, container in containers(documents):
        for _, name, _ in references(container):
            holders.setdefault(name, set()).add(workload["metadata"]["name"])
    assert holders["loci-signing-key"] == EDGES
    assert holders["loci-memory-signing-key"] == {"memory"}
    assert holders["loci-password"] == EDGES
    assert holders["loci-encryption-key"] == {"llm-gateway", "tool-runner"}
    assert holders["loci-public-keys"] == SERVICES | {"gateway"}
    assert holders["loci-database"] == SERVICES | {"migrations"}


def test_optional_secrets_are_for_whom_they_concern(documents: list[Document]) -> None:
    holders: dict[str, set[str]] = {}
    for _, container in containers(documents):
        for _, name, key in references(container, optional=True):
            holders.setdefault(f"{name}/{key}", set()).add(container["name"])
    direct = {f"loci-database/{name}-direct": {name} for name in SERVICES}
    assert holders == direct | {"loci-webhooks/LOCI_WEBHOOK_SECRET": {"agent"}}


def test_each_service_gets_its_own_database_url(documents: list[Document]) -> None:
    for workload, container in containers(documents):
        keys = {key for _, name, key in references(container) if name == "loci-database"}
        assert keys <= {container["name"]}, workload["metadata"]["name"]


def test_made_keys_fit_together() -> None:
    objects = {entry["metadata"]["name"]: entry for entry in manifests("postgresql://loci:pw@host/loci")}
    verifier = verifier_from(Env(objects["loci-public-keys"]["data"]))
    for name, role, audience in (("signing-key", "admin", "agent"), ("memory-signing-key", "memory", "llm_gateway")):
        signer = signer_from(Env(objects[f"loci-{name}"]["stringData"]))
        context = CallContext(UUID(int=1), UUID(int=2), role, (audience,))
        assert verifier.verify(signer.sign(context), audience) == context


def test_made_secrets_are_valid_and_fresh() -> None:
    first, second = manifests("postgresql://x"), manifests("postgresql://x")
    for entry in first:
        kubernetes_validate.validate(entry, OLDEST, strict=True)
    assert first != second
