"""The database settings of a service."""

from dataclasses import dataclass

from services.common.settings import Env


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """url: for the service's own use, perhaps through PgBouncer; direct_url: past it, for migrations
    and notices between replicas."""

    url: str
    direct_url: str
    pgbouncer: bool

    @classmethod
    def read(cls, env: Env, service: str, *, kind: str = "a Postgres database") -> "DatabaseSettings":
        """Reads LOCI_<SERVICE>_DATABASE_URL, else LOCI_DATABASE_URL; `kind` is for the error. Raises SettingsError."""
        words = {
            "expected": f"the URL of {kind}",
            "example": f"postgresql://loci_{service}:password@/loci?host=/run/postgresql",
        }
        url = env.text(f"LOCI_{service.upper()}_DATABASE_URL", "LOCI_DATABASE_URL", **words)
        return cls(
            url=url,
            direct_url=env.text("LOCI_DATABASE_DIRECT_URL", default=url, **words),
            pgbouncer=env.flag("LOCI_DATABASE_PGBOUNCER"),
        )
