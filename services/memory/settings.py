"""The settings of the memory service, read from the environment by `__main__.py` alone."""

from dataclasses import dataclass

from services.common.context import Signer, Verifier
from services.common.database_settings import DatabaseSettings
from services.common.keys import signer_from, verifier_from
from services.common.search_settings import SearchSettings
from services.common.settings import Env


@dataclass(frozen=True, slots=True)
class Settings:
    """listen: the address to serve on; llm_gateway_address: who embeds texts; signer: vouches for jobs there.

    most_upload_bytes: of one file. index_mib: what building an index of vectors may take of the database's memory.
    """

    listen: str
    database: DatabaseSettings
    llm_gateway_address: str
    verifier: Verifier
    signer: Signer
    most_upload_bytes: int
    index_mib: int
    search: SearchSettings

    @classmethod
    def read(cls, env: Env) -> "Settings":
        """Raises SettingsError."""
        return cls(
            listen=env.text("LOCI_LISTEN", expected="an address to serve on", example="unix:///run/loci/memory.sock"),
            database=read_database(env),
            llm_gateway_address=env.text(
                "LOCI_LLM_GATEWAY_ADDR",
                expected="the llm gateway's address",
                example="unix:///run/loci/llm_gateway.sock",
            ),
            verifier=verifier_from(env),
            signer=signer_from(env),
            most_upload_bytes=env.integer("LOCI_MAX_UPLOAD_MB", default=100, least=1, most=1024, example="100")
            * 1024
            * 1024,
            index_mib=env.integer("LOCI_VECTOR_INDEX_MIB", default=2048, least=64, example="2048"),
            search=SearchSettings.read(env),
        )


def read_database(env: Env) -> DatabaseSettings:
    """Raises SettingsError."""
    return DatabaseSettings.read(env, "memory", kind="a Postgres database with pgvector")
