"""The settings that `loci run` takes from the environment."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cli.names import SERVICES
from services.common.settings import Env, SettingsError


@dataclass(frozen=True)
class RunSettings:
    """Settings of the supervisor; the rest of `environment` is handed on to the processes it concerns."""

    home: Path
    host: str
    port: int
    grpc_port: int
    grpc_port_is_ours: bool
    """False when the user named the gRPC port: then a port in use is an error, else we go on without one."""
    databases: dict[str, str]
    """URL per service with an external Postgres; services without an entry use the embedded one."""
    environment: Mapping[str, str]

    @property
    def asks_callers(self) -> bool:
        """True where callers have to show a password or a key."""
        env = Env(self.environment)
        return bool(env.text("LETTA_SERVER_PASSWORD", default="")) or env.flag("LOCI_REQUIRE_API_KEY")

    @property
    def embedded(self) -> bool:
        """True where any service needs the embedded Postgres."""
        return len(self.databases) < len(SERVICES)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> RunSettings:
        """Raises SettingsError, naming the variable."""
        env = Env(environment)
        host, port = (
            env.text("LOCI_HOST", default="127.0.0.1"),
            env.integer("LOCI_PORT", default=8283, least=1, most=65535),
        )
        check_exposure(env, host)
        databases = {}
        for service in SERVICES:
            if url := env.text(f"LOCI_{service.upper()}_DATABASE_URL", "LOCI_DATABASE_URL", default=""):
                databases[service] = url
        return cls(
            home=env.path("LOCI_HOME", default=default_home()).absolute(),
            host=host,
            port=port,
            grpc_port=env.integer("LOCI_GRPC_PORT", default=port % 65535 + 1, least=1, most=65535),
            grpc_port_is_ours=not env.text("LOCI_GRPC_PORT", default=""),
            databases=databases,
            environment=environment,
        )


def default_home() -> Path:
    """Root's data lies outside its home, where the account that runs Postgres has no business."""
    return Path("/var/lib/loci") if os.geteuid() == 0 else Path.home() / ".loci"


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(env: Env, host: str) -> None:
    """Beyond loopback Loci needs a password, or the word that none is wanted. Raises SettingsError."""
    password = env.text("LETTA_SERVER_PASSWORD", default="")
    guarded = password or env.flag("LOCI_REQUIRE_API_KEY") or env.flag("LOCI_ALLOW_UNAUTHENTICATED")
    if not is_loopback(host) and not guarded:
        raise SettingsError(
            f"LOCI_HOST is {host}, which other machines can reach: set LETTA_SERVER_PASSWORD=<a password>, "
            "or LOCI_REQUIRE_API_KEY=true with keys made before, or LOCI_ALLOW_UNAUTHENTICATED=true to serve everybody"
        )
