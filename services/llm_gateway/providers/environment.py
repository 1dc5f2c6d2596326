"""The operator's providers and overrides of models, from the environment."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import orjson

from services.common.settings import Env, SettingsError
from services.llm_gateway.core.errors import ProviderInvalid
from services.llm_gateway.core.overrides import (
    MODELS_SETTING,
    WINDOWS_SETTING,
    InvalidOverride,
    OperatorOverrides,
    Override,
    handles,
    model,
    price,
    window,
)
from services.llm_gateway.core.provider_config import NO_KEY, ProviderConfig
from services.llm_gateway.core.provider_types import TYPES, Option, ProviderType, base_url
from services.llm_gateway.providers.model import ProviderSettings
from services.llm_gateway.providers.validation import is_vendors, validate
from services.llm_gateway.recordings.settings import Recordings

T = TypeVar("T")

PROVIDERS_SETTING, PRICES_SETTING = "LOCI_PROVIDERS", "LOCI_PRICES"
_FIELDS = tuple(one.name for one in fields(ProviderSettings))
_EXAMPLE = (
    '[{"name": "mine", "provider_type": "openai", "api_key": "sk-...", "base_url": "https://llm.example.com/v1"}]'
)
_PRICE_EXAMPLE = '{"openai/my-model": {"input": 0.15, "output": 0.6}, "groq/*": {"input": 0, "output": 0}}'


def read_providers(env: Env) -> list[ProviderConfig]:
    """Returns the operator's providers: `loci` always, another type when one of the settings it is present by is set,
    those of LOCI_PROVIDERS, and those of a recording that is replayed. Raises SettingsError.
    """
    types = (row for row in TYPES.values() if row.name == "loci" or any(map(_is_set(env), row.present_by)))
    configs = [_of_type(env, row) for row in types]
    for config in _provider_list(env):
        if any(config.name == other.name for other in configs):
            raise SettingsError(
                f"{PROVIDERS_SETTING} has a provider {config.name!r}, as other settings do; give it another name"
            )
        configs.append(config)
    return list(Recordings.read(env).merge(configs))


def read_overrides(env: Env) -> OperatorOverrides:
    """Returns the operator's overrides of models. Raises SettingsError."""
    example = '{"openai/my-model": 32768}'
    windows = _by_handle(env, WINDOWS_SETTING, window, "model handles and their context windows in tokens", example)
    example = '{"openai/my-model": {"context_window": 32768, "tools": true}}'
    overrides = _by_handle(env, MODELS_SETTING, model, "model handles and what is known of them", example)
    prices = _by_handle(env, PRICES_SETTING, price, "model handles, or provider/*, and their prices", _PRICE_EXAMPLE)
    for handle, one in windows.items():
        overrides[handle] = _with_window(overrides.get(handle), one)
    return OperatorOverrides(overrides, prices)


def _with_window(override: Override | None, window: Override) -> Override:
    if override is None or override.context_window is not None:
        return override or window
    return replace(override, context_window=window.context_window)


def _by_handle(env: Env, name: str, read: Callable[[Any], T], what: str, example: str) -> dict[str, T]:
    """Returns the setting's JSON object by handle; the setting may be the path of a file with it."""
    expected = f"a JSON object of {what}"
    text = env.content(name, default="", secret=False, expected=expected, example=f"'{example}'")
    if not text:
        return {}
    try:
        return handles(orjson.loads(text), read)
    except orjson.JSONDecodeError:
        problem = "is not JSON"
    except InvalidOverride as wrong:
        problem = f"is wrong: {wrong}"
    raise SettingsError(f"{name} {problem}; expected {expected}, for example {name}='{example}'")


def _is_set(env: Env) -> Callable[[str], bool]:
    return lambda name: bool(env.text(name, default=""))


def _of_type(env: Env, row: ProviderType) -> ProviderConfig:
    url = _first(env, row.url_settings)
    url_setting = _set_name(env, row.url_settings)
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(
            f"{url_setting} is {url!r}; expected an http or https address, for example "
            f"{url_setting}=http://localhost:8000/v1"
        )
    is_vendor = row.name == "loci" or is_vendors(row.name, base_url(row.name, url))
    return ProviderConfig(
        name=row.name,
        type=row.name,
        base_url=base_url(row.name, url),
        api_key=_key(env, row),
        key_setting=_set_name(env, row.key_settings),
        url_setting=url_setting,
        is_vendor=is_vendor,
        access_key=_access_key(env, row),
        region=_first(env, row.region_settings),
        api_version=_first(env, row.api_version_settings),
        options={option.name: value for option in row.options if (value := _option(env, option)) is not None},
        **_seconds(env),
    )


def _key(env: Env, row: ProviderType) -> str:
    if row.key_is_file:
        # Where it is not set, the machine's own identity vouches.
        return env.content(row.key_settings[0], default="", secret=False, expected="the path of a JSON file with a key")
    return _first(env, row.key_settings) or NO_KEY


def _access_key(env: Env, row: ProviderType) -> str:
    """Returns the access key. It belongs to the last of the keys; those before stand alone."""
    if any(env.text(name, default="") for name in row.key_settings[:-1]):
        return ""
    return _first(env, row.access_key_settings)


def _seconds(env: Env) -> dict[str, Any]:
    return {
        "stall_seconds": env.seconds("LOCI_LLM_STALL_SECONDS", default=300.0, example="300"),
        "reply_seconds": env.seconds("LOCI_LLM_REPLY_SECONDS", default=600.0, example="600"),
    }


def _first(env: Env, names: Sequence[str]) -> str:
    return env.text(*names, default="") if names else ""


def _set_name(env: Env, names: Sequence[str]) -> str:
    """Returns the name that is set, or else the first."""
    return next((name for name in names if env.text(name, default="")), names[0] if names else "")


def _option(env: Env, option: Option) -> Any:
    if not option.setting or not (text := env.text(option.setting, default="")):
        return None
    if option.kind == "flag":
        return env.flag(option.setting)
    if option.kind == "integer":
        return env.integer(option.setting, least=1)
    return env.choice(option.setting, option.choices) if option.choices else text


def _provider_list(env: Env) -> Iterator[ProviderConfig]:
    """Yields the providers of LOCI_PROVIDERS."""
    text = env.content(PROVIDERS_SETTING, default="", expected="a JSON list of providers", example=f"'{_EXAMPLE}'")
    try:
        items = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        items = None
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise _wrong_list("it is not a JSON list of objects")
    names: set[str] = set()
    for one in items:
        config = _config(one, _seconds(env))
        if config.name in names:
            raise _wrong_list(f"two are called {config.name!r}")
        names.add(config.name)
        yield config


def _config(item: Mapping[str, Any], seconds: Mapping[str, Any]) -> ProviderConfig:
    texts = {name: item[name] for name in _FIELDS if name != "options" and item.get(name) is not None}
    if unknown := sorted(item.keys() - {*_FIELDS}):
        raise _wrong_list(f"{', '.join(unknown)} is none of {', '.join(_FIELDS)}")
    if wrong := [name for name, value in texts.items() if not isinstance(value, str)]:
        raise _wrong_list(f"{wrong[0]} is not a text")
    options = item.get("options") or {}
    if not isinstance(options, dict):
        raise _wrong_list("options is not an object")
    settings = ProviderSettings(**texts, options=options)
    name = settings.name
    try:
        settings = validate(settings, allow_private=True, is_tenants=False)
    except ProviderInvalid as error:
        raise _wrong_list(f"{name!r}: {error.message.rstrip('.')}") from None
    where = f"of {name} in {PROVIDERS_SETTING}"
    return ProviderConfig(
        name=name,
        type=settings.provider_type,
        base_url=settings.base_url,
        api_key=settings.api_key or ("" if TYPES[settings.provider_type].key_is_file else NO_KEY),
        key_setting=f"api_key {where}",
        url_setting=f"base_url {where}",
        is_vendor=is_vendors(settings.provider_type, settings.base_url),
        access_key=settings.access_key,
        region=settings.region,
        api_version=settings.api_version,
        options=settings.options,
        **seconds,
    )


def _wrong_list(problem: str) -> SettingsError:
    return SettingsError(f"{PROVIDERS_SETTING} is wrong: {problem}; for example {PROVIDERS_SETTING}='{_EXAMPLE}'")
