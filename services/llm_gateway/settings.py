"""The settings of the llm gateway, read from the environment by `__main__.py` alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from services.common.context import Verifier
from services.common.database_settings import DatabaseSettings
from services.common.keys import verifier_from
from services.common.settings import Env, SettingsError
from services.llm_gateway.catalogue import WINDOWS_SETTING
from services.llm_gateway.providers.config import ProviderConfig
from services.llm_gateway.registry import TYPES, base_url

_LONGEST_WINDOW = 100_000_000


@dataclass(frozen=True, slots=True)
class CallSettings:
    """windows: the operator's context windows by handle; retries: further tries of a failed call;
    models_seconds: how long an endpoint gets to list its models; flush_seconds: how long deltas are
    gathered."""

    windows: Mapping[str, int]
    retries: int
    models_seconds: float
    flush_seconds: float

    @classmethod
    def read(cls, env: Env) -> "CallSettings":
        """Raises SettingsError."""
        return cls(
            windows=_windows(env),
            retries=env.integer("LOCI_LLM_RETRIES", default=2, most=10, example="2"),
            models_seconds=env.seconds("LOCI_LLM_MODELS_SECONDS", default=2.0, example="2"),
            flush_seconds=env.seconds("LOCI_LLM_FLUSH_SECONDS", default=0.025, example="0.025"),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """listen: the address to serve on."""

    listen: str
    database: DatabaseSettings
    verifier: Verifier
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
            providers=tuple(read_providers(env)),
            calls=CallSettings.read(env),
        )


def read_database(env: Env) -> DatabaseSettings:
    """Raises SettingsError."""
    return DatabaseSettings.read(env, "llm_gateway")


def read_providers(env: Env) -> Iterator[ProviderConfig]:
    """`loci` always; another type when its key or its base URL is set. Raises SettingsError."""
    for provider_type in TYPES:
        prefix = provider_type.upper()
        key_setting, url_setting = f"{prefix}_API_KEY", f"{prefix}_BASE_URL"
        key = "" if provider_type == "loci" else env.text(key_setting, default="")
        url = "" if provider_type == "loci" else env.text(url_setting, default="")
        if provider_type != "loci" and not (key or url):
            continue
        if url and not url.startswith(("http://", "https://")):
            raise SettingsError(
                f"{url_setting} is {url!r}; expected an http or https address, for example "
                f"{url_setting}=http://localhost:8000/v1"
            )
        yield ProviderConfig(
            name=provider_type,
            type=provider_type,
            base_url=base_url(provider_type, url),
            # Servers on one's own machine want none, but the SDKs insist on one.
            api_key=key or "none",
            key_setting=key_setting,
            url_setting=url_setting,
            is_vendor=base_url(provider_type, url) == base_url(provider_type, ""),
            stall_seconds=env.seconds("LOCI_LLM_STALL_SECONDS", default=300.0, example="300"),
            reply_seconds=env.seconds("LOCI_LLM_REPLY_SECONDS", default=600.0, example="600"),
        )


def _windows(env: Env) -> Mapping[str, int]:
    text = env.text(WINDOWS_SETTING, default="{}")
    try:
        windows = orjson.loads(text)
    except orjson.JSONDecodeError:
        windows = None
    if not isinstance(windows, dict) or not all(_is_window(item) for item in windows.items()):
        raise SettingsError(
            f"{WINDOWS_SETTING} is {text!r}; expected a JSON object of model handles and their context windows in "
            f"tokens, for example {WINDOWS_SETTING}='{{\"openai/my-model\": 32768}}'"
        )
    return windows


def _is_window(item: tuple[str, object]) -> bool:
    handle, tokens = item
    return "/" in handle and type(tokens) is int and 0 < tokens <= _LONGEST_WINDOW
