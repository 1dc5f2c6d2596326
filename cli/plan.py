"""The processes of one machine: their addresses and environments, each with no more secrets than concern it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.home import Home
from cli.names import SERVICES
from cli.postgres import Cluster, Launch, wrap
from cli.process import Program
from cli.secrets import ENCRYPTION_KEY, MEMORY_KEY, PUBLIC_KEYS, SIGNING_KEY
from cli.settings import RunSettings, is_loopback
from services.llm_gateway.core.provider_types import TYPES

ROOT = Path(__file__).resolve().parent.parent
# Secrets in the user's environment, and the processes that may know them.
PRIVATE = {
    "LETTA_SERVER_PASSWORD": {"gateway", "agent"},
    "LOCI_CONTEXT_SIGNING_KEY": {"gateway", "agent", "memory"},
    "LOCI_ENCRYPTION_KEY": {"agent", "llm_gateway", "tool_runner"},
    "LOCI_PROVIDERS": {"llm_gateway"},
    # Of the hub from which local models come.
    "HF_TOKEN": {"llm_gateway"},
    **{name: {"tool_runner"} for name in ("EXA_API_KEY", "TAVILY_API_KEY", "BRAVE_API_KEY")},
    **{name: {"tool_runner"} for name in ("E2B_API_KEY", "MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET")},
    "LOCI_WEBHOOK_SECRET": {"agent"},
    # An old server's; `loci import` alone reads it.
    "LETTA_ENCRYPTION_KEY": set(),
    **{name: {"llm_gateway"} for row in TYPES.values() for name in row.secret_settings},
}


def python(*arguments: str) -> list[str]:
    """A command line for this interpreter; -P keeps the working directory off its path."""
    return [sys.executable, "-P", *arguments]


# Where one of these is set, others than who sits at this machine use Loci.
_OTHERS_COME = ("LETTA_SERVER_PASSWORD", "LOCI_REQUIRE_API_KEY", "LOCI_PUBLIC_URL", "LOCI_ALLOW_UNAUTHENTICATED")


def environment(settings: RunSettings, home: Home, name: str, database_url: str = "") -> dict[str, str]:
    """The environment of the service or gateway `name`; `agent` still lacks its external address."""
    secrets = home.secrets
    defaults = {
        # Parsers of strangers' files run beside the memory service: its key opens next to nothing.
        "LOCI_CONTEXT_SIGNING_KEY": str(secrets / (MEMORY_KEY if name == "memory" else SIGNING_KEY)),
        "LOCI_CONTEXT_PUBLIC_KEYS": str(secrets / PUBLIC_KEYS),
        "LOCI_ENCRYPTION_KEY": str(secrets / ENCRYPTION_KEY),
        "LOCI_GATEWAY_URL": gateway_url(settings.host, settings.port),
        "GRPC_ENABLE_FORK_SUPPORT": "false",  # ours start programs by exec alone
    }
    alone = is_loopback(settings.host) and not any(settings.environment.get(name) for name in _OTHERS_COME)
    if alone:
        # Whoever adds a provider sits at this machine, and its models often do, too.
        defaults["LOCI_ALLOW_PRIVATE_PROVIDERS"] = "true"
        if not settings.asks_callers:
            # Nobody is kept out anyway, and clients of the reference read the values back.
            defaults["LOCI_SHOW_SECRETS"] = "true"
    ours = {
        "LOCI_HOME": str(home.root),
        "LOCI_HOST": settings.host,
        "LOCI_PORT": str(settings.port),
        # What programs on this machine itself are for; see LOCI_MCP_STDIO.
        "LOCI_SINGLE_USER": "true" if alone and not settings.asks_callers else "false",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}",
        **{f"LOCI_{service.upper()}_ADDR": f"unix://{home.socket(service)}" for service in SERVICES},
    }
    merged = defaults | dict(settings.environment) | ours
    for variable in [variable for variable in merged if variable.endswith("DATABASE_URL")]:
        del merged[variable]
    if name in SERVICES:
        merged["LOCI_LISTEN"] = f"unix://{home.socket(name)}"
        merged["LOCI_DATABASE_URL"] = database_url
    if name not in settings.databases:  # it belongs to the external one
        merged.pop("LOCI_DATABASE_DIRECT_URL", None)
    return {key: value for key, value in merged.items() if name in PRIVATE.get(key, {name})}


def gateway_url(host: str, port: int) -> str:
    """Returns the URL at which this machine reaches a gateway that listens on `host`."""
    name = "127.0.0.1" if host in {"0.0.0.0", "::", ""} else host  # noqa: S104 - compared, not bound
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def postgres_program(cluster: Cluster) -> Program:
    """The embedded Postgres. SIGINT is its fast shutdown; cut short, the next start would recover."""
    plain = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    advice = f"; if {cluster.data} is damaged, restore it from a backup, or move it away to begin anew"
    return Program("postgres", cluster.launch, plain, stop_signal=signal.SIGINT, grace=30.0, advice=advice)


def python_program(name: str, module: str, variables: dict[str, str], descriptors: tuple[int, ...] = ()) -> Program:
    """A service or the gateway, which inherits `descriptors`."""

    @contextmanager
    def launch() -> Iterator[Launch]:
        yield Launch(wrap(python("-m", module), signal.SIGKILL), descriptors)

    return Program(name, launch, variables)
