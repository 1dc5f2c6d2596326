"""The manifests of sandbox hosts: hardened, without a token or a way out; the runner may do two things with them."""

import os
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from k8s.make_certificates import manifests
from tests.contract.k8s.test_manifests import OLDEST, ROOT, kubectl

Document = dict[str, Any]


def rendered(folder: Path) -> list[Document]:
    text = subprocess.check_output([kubectl(), "kustomize", str(folder)], text=True)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(documents: list[Document], kind: str) -> dict[str, Document]:
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


@pytest.fixture(scope="module")
def hosts() -> list[Document]:
    return rendered(ROOT / "k8s" / "sandbox-hosts")


@pytest.fixture
def with_component(tmp_path: Path) -> list[Document]:
    """The base with the component, as an overlay says it."""
    up = os.path.relpath(ROOT / "k8s", tmp_path)
    text = f"resources: [{up}/base]\ncomponents: [{up}/components/sandbox-hosts]\n"
    (tmp_path / "kustomization.yaml").write_text(text)
    return rendered(tmp_path)


@pytest.fixture(scope="module")
def pod(hosts: list[Document]) -> Document:
    found: Document = of_kind(hosts, "Deployment")["sandbox-host"]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_every_document_fits_the_schema(hosts: list[Document], with_component: list[Document], version: str) -> None:
    for document in [*hosts, *with_component]:
        kubernetes_validate.validate(document, version, strict=True)


def test_all_is_in_a_namespace_of_its_own_which_enforces_the_restricted_standard(hosts: list[Document]) -> None:
    [namespace] = of_kind(hosts, "Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    names = {document["metadata"]["namespace"] for document in hosts if document["kind"] != "Namespace"}
    assert names == {"loci-sandboxes"}


def test_a_host_is_hardened(pod: Document) -> None:
    assert pod["runtimeClassName"] == "gvisor"
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
        assert "env" not in container
        assert "envFrom" not in container


def test_the_key_is_in_no_volume_that_tool_code_sees(pod: Document) -> None:
    [host] = pod["containers"]
    assert "secret" not in {mount["name"] for mount in host["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["tls"]["emptyDir"]["medium"] == "Memory"
    assert all("emptyDir" in volumes[mount["name"]] for mount in host["volumeMounts"])


def test_nothing_goes_out_and_only_the_runner_comes_in(hosts: list[Document]) -> None:
    policies = of_kind(hosts, "NetworkPolicy")
    assert policies["deny-all"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert not any("egress" in policy["spec"] for policy in policies.values())
    [rule] = policies["tool-runner-to-hosts"]["spec"]["ingress"]
    [peer] = rule["from"]
    assert peer["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "tool-runner"}
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "loci"}


def test_the_runner_may_list_and_delete_hosts_and_nothing_else(hosts: list[Document]) -> None:
    assert of_kind(hosts, "Role")["sandbox-hosts"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]}
    ]
    assert not of_kind(hosts, "ClusterRole")
    [binding] = of_kind(hosts, "RoleBinding").values()
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "tool-runner", "namespace": "loci"}]


def test_the_component_tells_the_runner_of_them(with_component: list[Document]) -> None:
    spec = of_kind(with_component, "Deployment")["tool-runner"]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    given = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert given["LOCI_SANDBOX"] == "kubernetes"
    assert given["LOCI_SANDBOX_NAMESPACE"] == "loci-sandboxes"
    [mount] = [mount for mount in container["volumeMounts"] if mount["name"] == "sandbox-tls"]
    assert given["LOCI_SANDBOX_TLS"] == mount["mountPath"]
    assert spec["automountServiceAccountToken"] is True
    assert spec["securityContext"]["runAsNonRoot"] is True, "the rest of it stays"


def test_certificates_are_made_under_the_names_that_are_mounted(pod: Document, with_component: list[Document]) -> None:
    made = {
        (secret["metadata"]["namespace"], secret["metadata"]["name"]): secret["stringData"] for secret in manifests()
    }
    mounted = {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    runner = of_kind(with_component, "Deployment")["tool-runner"]["spec"]["template"]["spec"]["volumes"]
    mounted |= {volume["secret"]["secretName"] for volume in runner if "secret" in volume}
    assert {name for _, name in made} == mounted
    assert all(files.keys() == {"ca.crt", "tls.crt", "tls.key"} for files in made.values())
