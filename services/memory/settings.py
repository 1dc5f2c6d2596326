"""The settings of the memory service, read from the environment by `__main__.py` alone."""

from dataclasses import dataclass

from services.common.context import Verifier
from services.common.keys import verifier_from
from services.common.settings import Env

_DATABASE = {
    "expected": "the URL of a Postgres database with pgvector",
    "example": "postgresql://loci_memory:password@/loci?host=/run/postgresql",
}


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """url: for the service's own use, perhaps through PgBouncer; direct_url: for migrations."""

    url: str
    direct_url: str
    pgbouncer: bool

    @classmethod
    def read(cls, env: Env) -> "DatabaseSettings":
        """Raises SettingsError."""
        url = env.text("LOCI_MEMORY_DATABASE_URL", "LOCI_DATABASE_URL", **_DATABASE)
        return cls(
            url=url,
            direct_url=env.text("LOCI_DATABASE_DIRECT_URL", default=url, **_DATABASE),
            pgbouncer=env.flag("LOCI_DATABASE_PGBOUNCER"),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """listen: the address to serve on; llm_gateway_address: who embeds texts."""

    listen: str
    database: DatabaseSettings
    llm_gateway_address: str
    verifier: Verifier

    @classmethod
    def read(cls, env: Env) -> "Settings":
        """Raises SettingsError."""
        return cls(
            listen=env.text("LOCI_LISTEN", expected="an address to serve on", example="unix:///run/loci/memory.sock"),
            database=DatabaseSettings.read(env),
            llm_gateway_address=env.text(
                "LOCI_LLM_GATEWAY_ADDR",
                expected="the llm gateway's address",
                example="unix:///run/loci/llm_gateway.sock",
            ),
            verifier=verifier_from(env),
        )
