"""The Loci that a command speaks to over REST."""

from __future__ import annotations

from collections.abc import Mapping

from cli.errors import CliError
from services.common.settings import Env, SettingsError

DEFAULT = "default: LOCI_BASE_URL, LETTA_BASE_URL, else http://localhost with the port of LOCI_PORT (8283)"


def base_url(url: str | None, environment: Mapping[str, str]) -> str:
    """Returns the server's address. Raises CliError."""
    env = Env(environment)
    if address := url or env.text("LOCI_BASE_URL", "LETTA_BASE_URL", default=""):
        return address
    try:
        return f"http://localhost:{env.integer('LOCI_PORT', default=8283, least=1, most=65535)}"
    except SettingsError as error:
        raise CliError(str(error), code=2) from None


def password(environment: Mapping[str, str]) -> str:
    """Returns the password or key; empty where there is none."""
    return Env(environment).text("LETTA_SERVER_PASSWORD", "LETTA_API_KEY", default="")
