"""The settings of an operator, read once, in `__main__.py`."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.common.default_embedding import default_embedding
from services.common.settings import Env, SettingsError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MEBIBYTE = 1024 * 1024
ADE_FOLDER = Path(__file__).resolve().parents[1] / "ade" / "dist"
_LONGEST_KEY_CACHE = 10.0
_HOST = re.compile(r"[A-Za-z0-9._-]+")
# First parts of our own paths.
_OUR_PATHS = frozenset({"v1", "latest", "openai", "mcp", "docs", "redoc", "openapi.json", "assets"})


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
    # Whether nobody is let in without an API key.
    require_api_key: bool = False
    # How long a key is taken for what it was.
    key_cache: float = 5.0
    # Requests a minute of each key; None: as many as it likes.
    rate_limit: int | None = None
    # Origins of pages that may read our answers; "*": all, where everybody is asked for a credential.
    cors_origins: tuple[str, ...] = ()
    # Names by which we may be reached where nobody is asked for a credential.
    allowed_hosts: tuple[str, ...] = ()
    # Whether a client that leaves a turn ends it.
    cancel_on_disconnect: bool = False
    # Between keepalive pings of a stream.
    ping_interval: float = 20.0
    # How long a client of a WebSocket may take nothing before it is cut off.
    socket_stall: float = 20.0
    # How long a lost agent replica is looked for before a turn's client is told.
    reattach_window: float = 60.0
    # Longest wait for an RPC that is not a turn.
    call_timeout: float = 30.0
    max_body_bytes: int = 32 * MEBIBYTE
    # For a body to come; of an upload for each piece.
    body_seconds: float = 60.0
    max_upload_bytes: int = 100 * MEBIBYTE
    # Of folders that name none.
    default_embedding: str = "loci/hash"
    # Of tools that a model is asked to write.
    default_model: str = "loci/demo"
    # Proxies whose word on their clients is taken.
    trusted_proxies: tuple[Network, ...] = ()
    # Where browsers reach us; empty: where the request that asks says.
    public_url: str = ""
    # With the built page that is served at /.
    ade_folder: Path = ADE_FOLDER

    @property
    def base_path(self) -> str:
        """The path under which a proxy in front serves us, without a slash at its end; empty for none."""
        return urlsplit(self.public_url).path

    @property
    def known_hosts(self) -> tuple[str, ...]:
        """Names by which we are reached, as far as the operator said."""
        public = urlsplit(self.public_url).hostname
        return (self.host, *self.allowed_hosts, *((public,) if public else ()))

    @property
    def known_origins(self) -> tuple[str, ...]:
        """Origins whose pages are let in, as far as the operator said."""
        public = urlsplit(self.public_url)
        return (*self.cors_origins, *((f"{public.scheme}://{public.netloc}",) if public.netloc else ()))


def settings_from(env: Env) -> Settings:
    """Reads LOCI_HOST, LOCI_PORT and the rest.

    Raises SettingsError; also for a public address where nobody is asked for a password or key.
    """
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
        require_api_key=env.flag("LOCI_REQUIRE_API_KEY"),
        key_cache=_key_cache(env),
        rate_limit=env.integer("LOCI_RATE_LIMIT", default=None, least=1, most=1_000_000, example="600"),
        cors_origins=_cors_origins(env),
        allowed_hosts=_allowed_hosts(env),
        cancel_on_disconnect=env.choice("LOCI_ON_DISCONNECT", ("detach", "cancel"), default="detach") == "cancel",
        ping_interval=env.seconds("LOCI_PING_SECONDS", default=20.0),
        socket_stall=env.seconds("LOCI_SOCKET_STALL_SECONDS", default=20.0),
        reattach_window=env.seconds("LOCI_REATTACH_SECONDS", default=60.0),
        call_timeout=env.seconds("LOCI_CALL_SECONDS", default=30.0),
        max_body_bytes=env.integer("LOCI_MAX_BODY_MIB", default=32, least=1, most=1024) * MEBIBYTE,
        body_seconds=env.seconds("LOCI_BODY_SECONDS", default=60.0),
        max_upload_bytes=env.integer("LOCI_MAX_UPLOAD_MB", default=100, least=1, most=1024) * MEBIBYTE,
        default_embedding=default_embedding(env),
        default_model=env.text("LOCI_DEFAULT_MODEL", default="loci/demo"),
        trusted_proxies=_trusted_proxies(env),
        public_url=_public_url(env),
        ade_folder=env.path("LOCI_ADE_FOLDER", default=ADE_FOLDER),
        **peers,
    )
    _check_doors(settings, env)
    return settings


def _check_doors(settings: Settings, env: Env) -> None:
    if settings.password and settings.require_api_key:
        raise SettingsError(
            "LETTA_SERVER_PASSWORD and LOCI_REQUIRE_API_KEY are both set, and where keys are required a password opens "
            "nothing; unset the one that you do not mean"
        )
    if env.flag("LETTA_SERVER_SECURE") and not settings.password and not settings.require_api_key:
        raise SettingsError(
            "LETTA_SERVER_SECURE is true, and there is nothing to ask callers for; set LETTA_SERVER_PASSWORD, or "
            "LOCI_REQUIRE_API_KEY=true"
        )
    asks = settings.password or settings.require_api_key
    for name, values in (("LOCI_CORS_ORIGINS", settings.cors_origins), ("LOCI_ALLOWED_HOSTS", settings.allowed_hosts)):
        if "*" in values and not asks:
            raise SettingsError(
                f"{name} is *, and nobody is asked for a credential, so that every website could use Loci through its "
                "visitors' browsers; name those that may, or set LETTA_SERVER_PASSWORD or LOCI_REQUIRE_API_KEY=true"
            )
    guarded = asks or env.flag("LOCI_ALLOW_UNAUTHENTICATED")
    if not guarded and not is_loopback(settings.host):
        raise SettingsError(
            f"LOCI_HOST is {settings.host!r}, which other machines can reach, and LETTA_SERVER_PASSWORD is not set; "
            "set a password, or LOCI_REQUIRE_API_KEY=true with keys made before, or LOCI_ALLOW_UNAUTHENTICATED=true if "
            "something in front of Loci checks its callers"
        )


def _key_cache(env: Env) -> float:
    seconds = env.seconds("LOCI_KEY_CACHE_SECONDS", default=5.0, example="5")
    if seconds > _LONGEST_KEY_CACHE:
        raise SettingsError(
            f"LOCI_KEY_CACHE_SECONDS is {seconds:g}; expected at most {_LONGEST_KEY_CACHE:g}, within which a revoked "
            "key is refused, for example LOCI_KEY_CACHE_SECONDS=5"
        )
    return seconds


def _cors_origins(env: Env) -> tuple[str, ...]:
    origins = tuple(each.strip().rstrip("/") for each in env.text("LOCI_CORS_ORIGINS", default="").split(","))
    for origin in filter(None, origins):
        parts = urlsplit(origin)
        if origin != "*" and (parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query):
            raise SettingsError(
                f"LOCI_CORS_ORIGINS names {origin!r}; expected origins and commas between them, or *, for example "
                "LOCI_CORS_ORIGINS=https://app.example.com,http://localhost:3000"
            )
    return tuple(filter(None, origins))


def _allowed_hosts(env: Env) -> tuple[str, ...]:
    hosts = tuple(each.strip() for each in env.text("LOCI_ALLOWED_HOSTS", default="").split(","))
    for host in filter(None, hosts):
        if host != "*" and not _HOST.fullmatch(host):
            raise SettingsError(
                f"LOCI_ALLOWED_HOSTS names {host!r}; expected names without scheme and port, and commas between them, "
                "or *, for example LOCI_ALLOWED_HOSTS=loci.example.com,loci.internal"
            )
    return tuple(filter(None, hosts))


def _trusted_proxies(env: Env) -> tuple[Network, ...]:
    named = filter(None, (each.strip() for each in env.text("LOCI_TRUSTED_PROXIES", default="").split(",")))
    return tuple(map(_network, named))


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise SettingsError(
            f"LOCI_TRUSTED_PROXIES names {text!r}; expected addresses and networks of proxies, and commas between "
            "them, for example LOCI_TRUSTED_PROXIES=127.0.0.1,10.1.0.0/16"
        ) from None


def _public_url(env: Env) -> str:
    url = env.text("LOCI_PUBLIC_URL", default="").rstrip("/")
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
        raise SettingsError(
            f"LOCI_PUBLIC_URL is {url!r}; expected an address without a query, for example https://loci.example.com or "
            "https://example.com/loci"
        )
    first = parts.path.removeprefix("/").partition("/")[0]
    if first in _OUR_PATHS:
        raise SettingsError(f"LOCI_PUBLIC_URL is {url!r}; choose a path that does not begin with /{first}, as ours do")
    return url


def is_loopback(host: str) -> bool:
    """Returns whether every address that `host` stands for is one of this machine only. False for unknown names."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in addresses)
