"""What an operator can set. Read once, in `__main__.py`."""

import ipaddress
import socket
from dataclasses import dataclass

from services.common.settings import Env, SettingsError

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """Settings of the gateway; times are seconds."""

    host: str = "127.0.0.1"
    port: int = 8283
    # A listening socket inherited from a supervisor, which outlives this process; None: bind host and port.
    listen_fd: int | None = None
    agent_address: str = ""
    memory_address: str = ""
    llm_gateway_address: str = ""
    tool_runner_address: str = ""
    # Empty: nobody is asked for a password.
    password: str = ""
    # Whether a client that leaves a turn ends it.
    cancel_on_disconnect: bool = False
    # Between keepalive pings of a stream.
    ping_interval: float = 20.0
    # How long a lost agent replica is looked for before a turn's client is told.
    reattach_window: float = 60.0
    # Longest wait for an RPC that is not a turn.
    call_timeout: float = 30.0
    max_body_bytes: int = 32 * MEBIBYTE
    max_upload_bytes: int = 100 * MEBIBYTE
    # Of folders that name none.
    default_embedding: str = "loci/hash"


def settings_from(env: Env) -> Settings:
    """Reads LOCI_HOST, LOCI_PORT and the rest. Raises SettingsError; also for a public address without a password."""
    example = "unix:///run/loci/{0}.sock or dns:///{0}:50051"
    peers = {
        f"{name}_address": env.text(
            f"LOCI_{name.upper()}_ADDR",
            expected="the address of a service",
            example=example.format(name.replace("_", "-")),
        )
        for name in ("agent", "memory", "llm_gateway", "tool_runner")
    }
    settings = Settings(
        host=env.text("LOCI_HOST", default="127.0.0.1"),
        port=env.integer("LOCI_PORT", default=8283, most=65535, example="8283"),
        listen_fd=None if (fd := env.integer("LOCI_LISTEN_FD", default=0)) == 0 else fd,
        password=env.text("LETTA_SERVER_PASSWORD", default=""),
        cancel_on_disconnect=env.choice("LOCI_ON_DISCONNECT", ("detach", "cancel"), default="detach") == "cancel",
        ping_interval=env.seconds("LOCI_PING_SECONDS", default=20.0),
        reattach_window=env.seconds("LOCI_REATTACH_SECONDS", default=60.0),
        call_timeout=env.seconds("LOCI_CALL_SECONDS", default=30.0),
        max_body_bytes=env.integer("LOCI_MAX_BODY_MIB", default=32, least=1, most=1024) * MEBIBYTE,
        max_upload_bytes=env.integer("LOCI_MAX_UPLOAD_MB", default=100, least=1, most=1024) * MEBIBYTE,
        default_embedding=env.text("LOCI_DEFAULT_EMBEDDING", default="loci/hash"),
        **peers,
    )
    if not settings.password and not env.flag("LOCI_ALLOW_UNAUTHENTICATED") and not is_loopback(settings.host):
        raise SettingsError(
            f"LOCI_HOST is {settings.host!r}, which other machines can reach, and LETTA_SERVER_PASSWORD is not set; "
            "set a password, or LOCI_ALLOW_UNAUTHENTICATED=true if something in front of Loci checks its callers"
        )
    return settings


def is_loopback(host: str) -> bool:
    """Whether every address that `host` stands for is one of this machine only. False for unknown names."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)
