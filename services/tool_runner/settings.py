"""The settings of the tool runner, read from the environment by `__main__.py` alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.context import Verifier
from services.common.database_settings import DatabaseSettings
from services.common.keys import verifier_from
from services.common.settings import Env
from services.tool_runner.job import MIB, Limits
from services.tool_runner.sandboxes.choose import LOCAL_IMAGE, Kind, SandboxSettings
from services.tool_runner.sandboxes.docker import DockerSettings

_KINDS: tuple[Kind, ...] = ("auto", "docker", "bubblewrap")
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
    """listen: the address to serve on; at_once: how many calls run at the same time, the others wait."""

    listen: str
    database: DatabaseSettings
    verifier: Verifier
    sandbox: SandboxSettings
    limits: Limits
    at_once: int

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
            sandbox=_sandbox(env),
            limits=Limits(
                seconds=env.seconds("LOCI_TOOL_TIMEOUT", default=default.seconds, example="180"),
                memory=MIB
                * env.integer(
                    "LOCI_TOOL_MEMORY_MIB", default=default.memory // MIB, least=64, most=4096, example="512"
                ),
            ),
            at_once=env.integer("LOCI_TOOL_CONCURRENCY", default=8, least=1, most=256, example="8"),
        )


def read_database(env: Env) -> DatabaseSettings:
    """Raises SettingsError."""
    return DatabaseSettings.read(env, "tool_runner")


def _sandbox(env: Env) -> SandboxSettings:
    kind = env.choice("LOCI_SANDBOX", _KINDS, default="auto")
    docker = DockerSettings(
        image=env.text("LOCI_SANDBOX_IMAGE", default=LOCAL_IMAGE, expected="the name of an image"),
        warm=env.integer("LOCI_SANDBOX_WARM", default=1, most=64, example="1"),
        environment=_launcher_environment(env),
    )
    return SandboxSettings(kind=next(known for known in _KINDS if known == kind), docker=docker)


def _launcher_environment(env: Env) -> Mapping[str, str]:
    values = {name: env.text(name, default="") for name in _LAUNCHER_VARIABLES}
    return {name: value for name, value in values.items() if value}
