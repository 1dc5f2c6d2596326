"""The settings of the tool runner, read from the environment by `__main__.py` alone."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.common.context import Verifier
from services.common.database_settings import DatabaseSettings
from services.common.default_embedding import default_embedding
from services.common.encryption import Sealer, sealer_from
from services.common.keys import verifier_from
from services.common.own_places import places_of
from services.common.settings import Env, SettingsError
from services.tool_runner import mcp_settings
from services.tool_runner.core.job import MIB, Limits
from services.tool_runner.core.network_policy import parse_hosts
from services.tool_runner.egress.egress import EgressSettings
from services.tool_runner.egress.proxy import Limits as NetworkLimits
from services.tool_runner.layers.cache import default_folder
from services.tool_runner.layers.install_job import NO_INDEX, LayerSettings
from services.tool_runner.mcp_servers.wiring import McpSettings
from services.tool_runner.sandboxes.choose import LOCAL_IMAGE, SandboxSettings
from services.tool_runner.sandboxes.docker import DockerSettings
from services.tool_runner.sandboxes.remote import REMOTE_KINDS, RemoteSandbox
from services.tool_runner.web.engines import ENGINES
from services.tool_runner.web.rules import SearchSettings

RECEIPT_DAYS = 30
_URL = re.compile(r"https?://[^/?#@\s]+(/[^?#\s]*)?")
_INDEX = re.compile(r"https?://([^/?#@\s]+@)?[^/?#@\s]+(/[^?#\s]*)?")
_KINDS = ("auto", "docker", "bubblewrap", *REMOTE_KINDS)
# All that the launcher's environment holds: how to reach the engine, and how to start Python there.
_LAUNCHER_VARIABLES = (
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "HOME",
    "LANG",
    "PATH",
    "PYTHONPATH",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """listen: the address to serve on; at_once: how many calls run at the same time, the others wait.

    sessions: whether calls of a run may share a worker. receipt_days: how long receipts are kept; 0: for ever.
    shows_secrets: whether values of variables are shown to whoever may read them.

    llm_gateway_address: who embeds texts, by `embedding`; empty: tools are found by words alone.
    """

    listen: str
    database: DatabaseSettings
    verifier: Verifier
    sealer: Sealer
    sandbox: SandboxSettings
    remote_sandbox: RemoteSandbox | None
    limits: Limits
    at_once: int
    sessions: bool
    receipt_days: int
    shows_secrets: bool
    mcp: McpSettings
    search: SearchSettings
    allow_private_urls: bool
    egress: EgressSettings
    layers: LayerSettings
    llm_gateway_address: str
    embedding: str

    @classmethod
    def read(cls, env: Env) -> "Settings":
        """Raises SettingsError."""
        default = Limits()
        return cls(
            listen=env.text(
                "LOCI_LISTEN", expected="an address to serve on", example="unix:///run/loci/tool_runner.sock"
            ),
            database=read_database(env),
            verifier=verifier_from(env),
            sealer=sealer_from(env),
            sandbox=_sandbox(env),
            remote_sandbox=_remote_sandbox(env),
            limits=Limits(
                seconds=env.seconds("LOCI_TOOL_TIMEOUT", default=default.seconds, example="180"),
                memory=MIB
                * env.integer(
                    "LOCI_TOOL_MEMORY_MIB", default=default.memory // MIB, least=64, most=4096, example="512"
                ),
            ),
            at_once=env.integer("LOCI_TOOL_CONCURRENCY", default=8, least=1, most=256, example="8"),
            sessions=env.flag("LOCI_TOOL_SESSIONS"),
            receipt_days=env.integer("LOCI_RECEIPT_DAYS", default=RECEIPT_DAYS, least=0, most=36_500, example="30"),
            shows_secrets=env.flag("LOCI_SHOW_SECRETS"),
            mcp=mcp_settings.read(env),
            search=_search(env),
            allow_private_urls=env.flag("LOCI_ALLOW_PRIVATE_URLS"),
            egress=_egress(env),
            layers=_layers(env),
            llm_gateway_address=env.text("LOCI_LLM_GATEWAY_ADDR", default=""),
            embedding=default_embedding(env),
        )


def read_database(env: Env) -> DatabaseSettings:
    """Raises SettingsError."""
    return DatabaseSettings.read(env, "tool_runner")


def _search(env: Env) -> SearchSettings:
    names = ("", *(engine.name for engine in ENGINES))
    return SearchSettings(
        engine=env.choice("LOCI_WEB_SEARCH", names, default=""),
        keys={engine.key: env.text(engine.key, default="") for engine in ENGINES if engine.key},
        addresses={engine.address_setting: env.text(engine.address_setting, default="") for engine in ENGINES},
    )


def _egress(env: Env) -> EgressSettings:
    try:
        hosts = parse_hosts(env.text("LOCI_TOOL_NETWORK", default=""))
    except ValueError as error:
        raise SettingsError(f"LOCI_TOOL_NETWORK: {error}") from None
    gateway_url = env.text("LOCI_GATEWAY_URL", default="", expected="a URL", example="http://gateway:8283")
    if gateway_url and not _URL.fullmatch(gateway_url):
        raise SettingsError("LOCI_GATEWAY_URL is not a URL like http://gateway:8283")
    mebibytes = env.integer("LOCI_TOOL_NETWORK_MIB", default=256, least=1, most=1_048_576, example="256")
    return EgressSettings(
        hosts=hosts,
        allow_private=mcp_settings.private_hosts_of(env),
        gateway_url=gateway_url,
        own=tuple(places_of(env)),
        limits=NetworkLimits(bytes_per_call=MIB * mebibytes),
    )


def _layers(env: Env) -> LayerSettings:
    default = LayerSettings(default_folder(env.text("LOCI_HOME", default="")))
    folder = env.text("LOCI_LAYER_DIR", default=str(default.folder), expected="a folder", example="/var/cache/layers")
    index = env.text("LOCI_PIP_INDEX_URL", default=default.pip_index_url)
    registry = env.text("LOCI_NPM_REGISTRY", default=default.npm_registry)
    links = tuple(env.text("LOCI_PIP_FIND_LINKS", default="").split())
    for name, url in (("LOCI_PIP_INDEX_URL", index), ("LOCI_NPM_REGISTRY", registry)):
        if not _INDEX.fullmatch(url) and (name, url) != ("LOCI_PIP_INDEX_URL", NO_INDEX):
            raise SettingsError(f"{name} is not a URL like https://packages.example.com/simple")
    for link in links:
        if not _INDEX.fullmatch(link) and not os.path.isdir(link):
            raise SettingsError(f"LOCI_PIP_FIND_LINKS: {link} is neither a URL nor a folder")
    mebibytes = env.integer("LOCI_LAYER_MIB", default=default.most_bytes // MIB, least=1, most=1536, example="512")
    return LayerSettings(
        folder=Path(folder),
        pip_index_url=index,
        pip_find_links=links,
        npm_registry=registry,
        from_source=env.flag("LOCI_PIP_FROM_SOURCE"),
        most_bytes=MIB * mebibytes,
        seconds=env.seconds("LOCI_LAYER_TIMEOUT", default=default.seconds, example="300"),
        most=env.integer("LOCI_LAYERS", default=default.most, least=1, most=10_000, example="50"),
    )


def _sandbox(env: Env) -> SandboxSettings:
    kind = env.choice("LOCI_SANDBOX", _KINDS, default="auto")
    docker = DockerSettings(
        image=env.text("LOCI_SANDBOX_IMAGE", default=LOCAL_IMAGE, expected="the name of an image"),
        warm=_warm(env),
        runtime=env.text("LOCI_SANDBOX_RUNTIME", default="", expected="a runtime of the engine", example="runsc"),
        environment=_launcher_environment(env),
    )
    return SandboxSettings(kind=kind, docker=docker)


def _warm(env: Env) -> int:
    return env.integer("LOCI_SANDBOX_WARM", default=1, most=64, example="1")


def _remote_sandbox(env: Env) -> RemoteSandbox | None:
    kind = REMOTE_KINDS.get(env.text("LOCI_SANDBOX", default="auto"))
    return RemoteSandbox(kind, kind.read(env), _warm(env) if kind.keeps_warm else 0) if kind else None


def _launcher_environment(env: Env) -> Mapping[str, str]:
    values = {name: env.text(name, default="") for name in _LAUNCHER_VARIABLES}
    return {name: value for name, value in values.items() if value}
