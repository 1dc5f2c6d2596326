"""The operator's settings of sandboxes elsewhere: of Kubernetes, E2B and Modal."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """server: https://host:port of the API. token and authority: paths, of files that are replaced while we run."""

    server: str
    namespace: str
    selector: str = "app.kubernetes.io/name=sandbox-host"
    token: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    authority: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """tls: folder with ca.crt, tls.crt and tls.key of the runner. patience: how long to wait for a host, seconds."""

    cluster: ClusterSettings
    tls: Path
    port: int = 8443
    patience: float = 60.0
    shared_kernel: bool = False


@dataclass(frozen=True, slots=True)
class E2bSettings:
    """`api_url` and `sandbox_url` are of one's own installation; "": those of `domain`."""

    api_key: str = field(repr=False)
    template: str = "base"
    domain: str = "e2b.app"
    api_url: str = ""
    sandbox_url: str = ""


@dataclass(frozen=True, slots=True)
class ModalSettings:
    """`image`: of a registry, or the id (im-...) of one of Modal's. `lifetime`: of any sandbox, seconds."""

    token_id: str
    token_secret: str = field(repr=False)
    app: str = "loci-tools"
    image: str = "python:3.12-slim"
    lifetime: int = 1800


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """Those of each kind; None where it is not the one that is set. `warm`: workers that wait, where nobody's may."""

    kubernetes: KubernetesSettings | None = None
    e2b: E2bSettings | None = None
    modal: ModalSettings | None = None
    warm: int = 0
