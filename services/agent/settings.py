"""The settings of the agent service, read from the environment by `__main__.py` alone."""

import base64
import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from services.agent.core.tending import TendingLimits
from services.agent.resources.agents.model.settings import Defaults
from services.agent.resources.runs.retention import KeptDays
from services.common.context import Signer, Verifier
from services.common.core.addresses import ALLOW
from services.common.database_settings import DatabaseSettings
from services.common.default_embedding import default_embedding
from services.common.keys import SIGNING_KEY, load_private_key, signer_from, verifier_from
from services.common.search_settings import SearchSettings
from services.common.settings import Env, SettingsError

EXTERNAL_LISTEN = "LOCI_AGENT_EXTERNAL_LISTEN"
PASSWORD = "LETTA_SERVER_PASSWORD"
REQUIRE_KEY = "LOCI_REQUIRE_API_KEY"
WEBHOOK_SECRET = "LOCI_WEBHOOK_SECRET"
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Addresses of the services behind this one."""

    memory: str
    llm_gateway: str
    tool_runner: str

    @classmethod
    def read(cls, env: Env) -> "PeerSettings":
        """Raises SettingsError."""
        return cls(*(_peer(env, name) for name in ("memory", "llm_gateway", "tool_runner")))


@dataclass(frozen=True, slots=True)
class ExternalSettings:
    """listen: the address for callers from outside, None for none; password: what they must show, empty: nothing;
    require_key: whether they need an API key."""

    listen: str | None
    password: str
    require_key: bool = False

    @classmethod
    def read(cls, env: Env) -> "ExternalSettings":
        """Raises SettingsError, also for a public address where nobody is asked for a password or key."""
        listen, password = env.text(EXTERNAL_LISTEN, default=None), env.text(PASSWORD, default="")
        require_key = env.flag(REQUIRE_KEY)
        guarded = password or require_key or env.flag("LOCI_ALLOW_UNAUTHENTICATED")
        if listen and not guarded and not is_private(listen):
            raise SettingsError(
                f"{EXTERNAL_LISTEN} is {listen!r}, which other machines can reach, and {PASSWORD} is not set; "
                f"set a password, or {REQUIRE_KEY}=true with keys made before, or LOCI_ALLOW_UNAUTHENTICATED=true if "
                "something in front of Loci checks its callers"
            )
        return cls(listen, password, require_key)


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """secret: what callbacks are signed with; allow_private: whether they may go to addresses that are not public."""

    secret: bytes
    allow_private: bool

    @classmethod
    def read(cls, env: Env) -> "CallbackSettings":
        """Raises SettingsError."""
        return cls(webhook_secret(env).encode(), env.flag(ALLOW))


@dataclass(frozen=True, slots=True)
class Settings:
    """listen: the address for other services; on_busy: what becomes of a request for a busy conversation; run_timeout:
    longest run, seconds; stream_keep: how long the deltas of background runs are stored; message_vectors: whether
    messages are found by their meaning, too; index_mib: memory that building an index of their vectors may take;
    tending: bounds of sleep-time; kept_days: how long what came of runs is stored."""

    listen: str
    external: ExternalSettings
    database: DatabaseSettings
    peers: PeerSettings
    signer: Signer
    verifier: Verifier
    defaults: Defaults
    callbacks: CallbackSettings
    on_busy: Literal["wait", "reject", "interrupt"] | None
    run_timeout: float
    stream_keep: timedelta
    message_vectors: bool
    index_mib: int
    search: SearchSettings
    tending: TendingLimits
    kept_days: KeptDays

    @classmethod
    def read(cls, env: Env) -> "Settings":
        """Raises SettingsError."""
        return cls(
            listen=env.text("LOCI_LISTEN", expected="an address to serve on", example="unix:///run/loci/agent.sock"),
            external=ExternalSettings.read(env),
            database=read_database(env),
            peers=PeerSettings.read(env),
            signer=signer_from(env),
            verifier=verifier_from(env),
            defaults=Defaults(
                model=_handle("LOCI_DEFAULT_MODEL", env.text("LOCI_DEFAULT_MODEL", default="loci/demo"), "loci/demo"),
                embedding=_handle("LOCI_DEFAULT_EMBEDDING", default_embedding(env), "loci/hash"),
            ),
            callbacks=CallbackSettings.read(env),
            on_busy=_on_busy(env),
            run_timeout=env.seconds("LOCI_RUN_TIMEOUT", default=_DAY, example="86400"),
            stream_keep=timedelta(seconds=env.seconds("LOCI_STREAM_KEEP", default=_DAY, example="86400")),
            message_vectors=env.flag("LOCI_MESSAGE_VECTORS", default=True),
            index_mib=env.integer("LOCI_VECTOR_INDEX_MIB", default=2048, least=64, example="2048"),
            search=SearchSettings.read(env),
            tending=TendingLimits(
                seconds=env.seconds("LOCI_RUN_TIMEOUT", default=_DAY, example="86400"),
                tokens_per_day=env.integer(
                    "LOCI_SLEEPTIME_TOKENS_PER_DAY", default=1_000_000, least=0, example="1000000"
                ),
            ),
            kept_days=KeptDays(
                runs=_days(env, "LOCI_RUN_DAYS", default=400),
                traces=_days(env, "LOCI_TRACE_DAYS", default=30),
                prompts=_days(env, "LOCI_PROMPT_DAYS", default=30),
            ),
        )


def _days(env: Env, name: str, *, default: int) -> int:
    return env.integer(name, default=default, least=0, most=36_500, example=str(default))


def _on_busy(env: Env) -> Literal["wait", "reject", "interrupt"] | None:
    match env.choice("LOCI_BUSY", ("wait", "reject", "interrupt"), default=None):
        case "wait":
            return "wait"
        case "reject":
            return "reject"
        case "interrupt":
            return "interrupt"
        case _:
            return None


def webhook_secret(env: Env) -> str:
    """Returns what receivers of callbacks check signatures with: LOCI_WEBHOOK_SECRET, or one that follows from the
    signing key.

    Raises SettingsError.
    """
    if secret := env.content(WEBHOOK_SECRET, default=""):
        return secret
    signer_from(env)
    signing_key = load_private_key(env.content(SIGNING_KEY)).private_bytes_raw()
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"loci callbacks").derive(signing_key)
    return "whsec_" + base64.urlsafe_b64encode(derived).decode().rstrip("=")


def read_database(env: Env) -> DatabaseSettings:
    """Raises SettingsError."""
    return DatabaseSettings.read(env, "agent")


def is_private(listen: str) -> bool:
    """Returns whether only this machine can reach an address to listen on."""
    if listen.startswith("unix:"):
        return True
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _peer(env: Env, name: str) -> str:
    return env.text(
        f"LOCI_{name.upper()}_ADDR",
        expected=f"the address of the service {name}",
        example=f"unix:///run/loci/{name}.sock",
    )


def _handle(name: str, handle: str, example: str) -> str:
    provider, slash, model = handle.partition("/")
    if not (provider and slash and model):
        raise SettingsError(f"{name} is {handle!r}; expected provider/model, for example {name}={example}")
    return handle
