"""The settings of the llm gateway, read from the environment by `__main__.py` alone."""

from dataclasses import dataclass, field

from services.common.context import Verifier
from services.common.database_settings import DatabaseSettings
from services.common.encryption import Sealer, sealer_from
from services.common.keys import verifier_from
from services.common.settings import Env
from services.llm_gateway.calls.settings import Limits
from services.llm_gateway.core.overrides import OperatorOverrides
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.providers.entries import Patience
from services.llm_gateway.providers.environment import read_overrides, read_providers
from services.llm_gateway.providers.validation import ALLOW_PRIVATE
from services.llm_gateway.recordings.settings import Recordings


@dataclass(frozen=True, slots=True)
class CallSettings:
    """overrides: what the operator says of models; retries: further tries of a failed call; patience: with the
    providers of tenants; allow_private: whether those may have private addresses; flush_seconds: how long deltas are
    gathered."""

    overrides: OperatorOverrides
    retries: int
    patience: Patience
    allow_private: bool
    flush_seconds: float
    recordings: Recordings = field(default_factory=Recordings)
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def read(cls, env: Env) -> "CallSettings":
        """Raises SettingsError."""
        return cls(
            overrides=read_overrides(env),
            retries=env.integer("LOCI_LLM_RETRIES", default=2, most=10, example="2"),
            patience=Patience(
                stall=env.seconds("LOCI_LLM_STALL_SECONDS", default=300.0, example="300"),
                reply=env.seconds("LOCI_LLM_REPLY_SECONDS", default=600.0, example="600"),
                listing=env.seconds("LOCI_LLM_MODELS_SECONDS", default=2.0, example="2"),
            ),
            allow_private=env.flag(ALLOW_PRIVATE),
            flush_seconds=env.seconds("LOCI_LLM_FLUSH_SECONDS", default=0.025, example="0.025"),
            recordings=Recordings.read(env),
            limits=Limits.read(env),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """listen: the address to serve on."""

    listen: str
    database: DatabaseSettings
    verifier: Verifier
    sealer: Sealer
    providers: tuple[ProviderConfig, ...]
    calls: CallSettings

    @classmethod
    def read(cls, env: Env) -> "Settings":
        """Raises SettingsError."""
        return cls(
            listen=env.text(
                "LOCI_LISTEN", expected="an address to serve on", example="unix:///run/loci/llm_gateway.sock"
            ),
            database=read_database(env),
            verifier=verifier_from(env),
            sealer=sealer_from(env),
            providers=tuple(read_providers(env)),
            calls=CallSettings.read(env),
        )


def read_database(env: Env) -> DatabaseSettings:
    """Raises SettingsError."""
    return DatabaseSettings.read(env, "llm_gateway")
