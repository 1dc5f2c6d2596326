"""The settings of the llm gateway, read from the environment by `__main__.py` alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from services.common.context import Verifier
from services.common.database_settings import DatabaseSettings
from services.common.keys import verifier_from
from services.common.settings import Env, SettingsError
from services.llm_gateway.catalogue import WINDOWS_SETTING
from services.llm_gateway.provider_types import TYPES, Option, ProviderType, base_url
from services.llm_gateway.providers.config import ProviderConfig
from services.llm_gateway.recordings import Recordings

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
    recordings: Recordings = field(default_factory=Recordings)

    @classmethod
    def read(cls, env: Env) -> "CallSettings":
        """Raises SettingsError."""
        return cls(
            windows=_windows(env),
            retries=env.integer("LOCI_LLM_RETRIES", default=2, most=10, example="2"),
            models_seconds=env.seconds("LOCI_LLM_MODELS_SECONDS", default=2.0, example="2"),
            flush_seconds=env.seconds("LOCI_LLM_FLUSH_SECONDS", default=0.025, example="0.025"),
            recordings=Recordings.read(env),
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
    """The operator's providers: `loci` always, another type when one of the settings it is present by is set, and those
    of a recording that is replayed. Raises SettingsError.
    """
    present = (
        row for row in TYPES.values() if row.name == "loci" or any(env.text(n, default="") for n in row.present_by)
    )
    yield from Recordings.read(env).joined(_provider(env, row) for row in present)


def _provider(env: Env, row: ProviderType) -> ProviderConfig:
    url = _first(env, row.url_settings)
    url_setting = next((name for name in row.url_settings if env.text(name, default="")), _named(row.url_settings))
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(
            f"{url_setting} is {url!r}; expected an http or https address, for example "
            f"{url_setting}=http://localhost:8000/v1"
        )
    return ProviderConfig(
        name=row.name,
        type=row.name,
        base_url=base_url(row.name, url),
        # Servers on one's own machine want none, but the SDKs insist on one.
        api_key=_first(env, row.key_settings) or "none",
        key_setting=_named(row.key_settings),
        url_setting=url_setting,
        is_vendor=row.name == "loci" or (row.needs_key and base_url(row.name, url) == base_url(row.name, "")),
        stall_seconds=env.seconds("LOCI_LLM_STALL_SECONDS", default=300.0, example="300"),
        reply_seconds=env.seconds("LOCI_LLM_REPLY_SECONDS", default=600.0, example="600"),
        access_key=_first(env, row.access_key_settings),
        region=_first(env, row.region_settings),
        api_version=_first(env, row.api_version_settings),
        options={option.name: value for option in row.options if (value := _option(env, option)) is not None},
    )


def _first(env: Env, names: Sequence[str]) -> str:
    return env.text(*names, default="") if names else ""


def _named(names: Sequence[str]) -> str:
    return names[0] if names else ""


def _option(env: Env, option: Option) -> Any:
    if not option.setting or not (text := env.text(option.setting, default="")):
        return None
    if option.kind == "flag":
        return env.flag(option.setting)
    if option.choices and text not in option.choices:
        raise SettingsError(f"{option.setting} is {text!r}; expected one of {', '.join(option.choices)}")
    return text


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
