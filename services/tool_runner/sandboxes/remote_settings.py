"""The operator's settings of sandboxes elsewhere: of Kubernetes, E2B and Modal."""

from dataclasses import dataclass, field
from pathlib import Path

from services.common.settings import Env, SettingsError

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """server: https://host:port of the API. token and authority: paths, of files that are replaced while we run."""

    server: str
    namespace: str
    selector: str = "app.kubernetes.io/name=sandbox-host"
    token: Path = _ACCOUNT / "token"
    authority: Path = _ACCOUNT / "ca.crt"


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


def read_kubernetes(env: Env) -> KubernetesSettings:
    """Returns the settings of Kubernetes. Raises SettingsError."""
    host, port = env.text("KUBERNETES_SERVICE_HOST", default=""), env.text("KUBERNETES_SERVICE_PORT", default="443")
    inside = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    server = env.text("LOCI_KUBERNETES_URL", default=inside if host else "")
    if not server:
        raise SettingsError(
            "LOCI_SANDBOX is kubernetes, but this is no pod: set LOCI_KUBERNETES_URL, as https://host:6443"
        )
    cluster = ClusterSettings(
        server=server,
        namespace=env.text("LOCI_SANDBOX_NAMESPACE", default="loci-sandboxes"),
        token=env.path("LOCI_KUBERNETES_TOKEN", default=_ACCOUNT / "token"),
        authority=env.path("LOCI_KUBERNETES_CA", default=_ACCOUNT / "ca.crt"),
    )
    return KubernetesSettings(
        cluster=cluster,
        tls=env.path("LOCI_SANDBOX_TLS", example="/run/loci/sandbox-tls"),
        patience=env.seconds("LOCI_SANDBOX_PATIENCE", default=60.0),
        shared_kernel=env.flag("LOCI_SANDBOX_SHARED_KERNEL"),
    )


def read_e2b(env: Env) -> E2bSettings:
    """Returns the settings of E2B. Raises SettingsError."""
    usual = E2bSettings("")
    return E2bSettings(
        api_key=env.text("E2B_API_KEY", expected="a key of E2B", example="e2b_..."),
        template=env.text("LOCI_E2B_TEMPLATE", default=usual.template),
        domain=env.text("E2B_DOMAIN", default=usual.domain),
        api_url=env.text("E2B_API_URL", default=""),
        sandbox_url=env.text("E2B_SANDBOX_URL", default=""),
    )


def read_modal(env: Env) -> ModalSettings:
    """Returns the settings of Modal. Raises SettingsError."""
    usual = ModalSettings("", "")
    return ModalSettings(
        token_id=env.text("MODAL_TOKEN_ID", expected="the id of a token of Modal", example="ak-..."),
        token_secret=env.text("MODAL_TOKEN_SECRET", expected="the secret of that token", example="as-..."),
        app=env.text("LOCI_MODAL_APP", default=usual.app),
        image=env.text("LOCI_MODAL_IMAGE", default=usual.image),
        lifetime=env.integer("LOCI_MODAL_LIFETIME", default=usual.lifetime, least=60, most=86_400, example="1800"),
    )
