"""The rules of a provider's configuration, by a tenant over the API or by the operator in LOCI_PROVIDERS."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson

from services.common.core.addresses import Address, is_metadata, is_public, literal_address
from services.llm_gateway.core.errors import ProviderInvalid
from services.llm_gateway.core.overrides import InvalidOverride, names
from services.llm_gateway.core.provider_types import COMMON_OPTIONS, TYPES, Option, ProviderType, base_url
from services.llm_gateway.providers.model import ProviderSettings

ALLOW_PRIVATE = "LOCI_ALLOW_PRIVATE_PROVIDERS"
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
# They become part of a host's name or of a path.
_REGION = re.compile(r"[a-z0-9-]{0,64}")
_API_VERSION = re.compile(r"[A-Za-z0-9.-]{0,64}")
# What can stand in a header.
_KEY = re.compile(r"[\x21-\x7e]*")
_LONGEST_URL = 2_048
_LONGEST_KEY = 16_384
_LONGEST_OPTIONS = 262_144
_MOST_AT_ONCE = 10_000
_NOT_OFFERED = {
    "loci": "loci is there without being made",
    "letta": "letta is the hosted service of another vendor; use that vendor's own API, or another provider",
    "chatgpt_oauth": "chatgpt_oauth is a person's subscription, not for programs; use openai with an API key",
}
_OPERATORS = {row.name for row in TYPES.values() if row.operators_alone}
_GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"


def validate(settings: ProviderSettings, *, allow_private: bool, is_tenants: bool = True) -> ProviderSettings:
    """Returns the settings with the base URL in the form that the type keeps. Raises ProviderInvalid."""
    if not _NAME.fullmatch(settings.name):
        raise _invalid(
            "name", f"{settings.name[:80]!r} is not 1 to 64 letters, digits, dots, dashes and underscores", settings
        )
    row = _row(settings, is_tenants=is_tenants)
    if not _REGION.fullmatch(settings.region):
        raise _invalid("region", f"{settings.region[:80]!r} is no region, for example us-east-1", settings)
    if not _API_VERSION.fullmatch(settings.api_version):
        raise _invalid("api_version", f"{settings.api_version[:80]!r} is no version, for example 2024-10-21", settings)
    url = _base_url(settings, row, allow_private=allow_private)
    _check_keys(settings, row, url, is_tenants=is_tenants)
    _check_options(settings, row, allow_private=allow_private, is_tenants=is_tenants)
    return replace(settings, base_url=url)


def addresses(base: str, options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns all addresses that a key is sent to."""
    return base, *(options.get(name) for name in sorted(options) if name.endswith("_url"))


def is_vendors(provider_type: str, url: str) -> bool:
    """Returns whether a base URL is the vendor's own: then its models are those of the table."""
    row = TYPES[provider_type]
    return row.needs_key and url == base_url(provider_type, "")


def _row(settings: ProviderSettings, *, is_tenants: bool) -> ProviderType:
    if reason := _NOT_OFFERED.get(settings.provider_type):
        raise _invalid("provider_type", reason, settings)
    row = TYPES.get(settings.provider_type)
    if row is None:
        offered = ", ".join(sorted(TYPES.keys() - _NOT_OFFERED.keys() - (_OPERATORS if is_tenants else set())))
        raise _invalid("provider_type", f"{settings.provider_type[:80]!r} is none of {offered}", settings)
    if is_tenants and row.name in _OPERATORS:
        sentence = f"{row.name} uses the server's own files; only its operator sets it up, in LOCI_PROVIDERS"
        raise _invalid("provider_type", sentence, settings)
    return row


def _base_url(settings: ProviderSettings, row: ProviderType, *, allow_private: bool) -> str:
    text = settings.base_url.strip()
    # Those without one of their own make it from the region, but for Azure, where it names the account.
    if not text and not row.base_url:
        if row.is_present_by and set(row.is_present_by) <= set(row.url_settings):
            raise _invalid("base_url", f"providers of type {row.name} need one", settings)
        return ""
    if text:
        _check_url("base_url", text, settings, allow_private=allow_private)
    url = base_url(row.name, text)
    if not text and not allow_private and not row.base_url.startswith("https://"):
        example = f"https://{row.name.partition('_')[0]}.example.com"
        raise _invalid("base_url", f"providers of type {row.name} need one, for example {example}", settings)
    return url


def _check_url(what: str, url: str, settings: ProviderSettings, *, allow_private: bool) -> None:
    if len(url) > _LONGEST_URL:
        raise _invalid(what, f"it is longer than {_LONGEST_URL} characters", settings)
    try:
        parsed = urlsplit(url)
        host, _ = parsed.hostname or "", parsed.port
    except ValueError:
        parsed, host = SplitResult("", "", "", "", ""), ""
    if parsed.scheme not in ("http", "https") or not host or not _KEY.fullmatch(url):
        raise _invalid(
            what, f"{url[:80]!r} is no http or https address, for example https://llm.example.com/v1", settings
        )
    if parsed.username is not None or parsed.query or parsed.fragment:
        raise _invalid(what, "it must not hold a user, a password, a query or a fragment", settings)
    literal = literal_address(host)
    if literal is not None and is_metadata(literal):
        raise _invalid(what, f"{host} is at {literal}, which nobody may call", settings)
    if not allow_private and _is_private(host, literal):
        sentence = (
            f"{host} is an address of the server's own network; the operator allows those with {ALLOW_PRIVATE}=true"
        )
        raise _invalid(what, sentence, settings)


def _is_private(host: str, literal: Address | None) -> bool:
    """Returns whether the text is of a private address; names are resolved when they are called."""
    if literal is not None:
        return not is_public(literal)
    return host.rstrip(".").lower().rpartition(".")[2] == "localhost"


def _check_keys(settings: ProviderSettings, row: ProviderType, url: str, *, is_tenants: bool) -> None:
    needed = row.needs_key and (not row.base_url or url == base_url(row.name, ""))
    # Without one the server's own identity in the cloud would be used.
    if not settings.api_key and (needed or (is_tenants and row.key_is_file)):
        raise _invalid("api_key", f"providers of type {row.name} need one", settings)
    if settings.access_key and not row.access_key_settings:
        raise _invalid("access_key", f"providers of type {row.name} have none; the key goes into api_key", settings)
    if row.key_is_file:
        _check_account(settings, is_tenants=is_tenants)
        return
    for what, key in (("api_key", settings.api_key), ("access_key", settings.access_key)):
        if len(key) > _LONGEST_KEY or not _KEY.fullmatch(key):
            raise _invalid(what, "a key is printable ASCII without spaces; was it copied whole?", settings)


def _check_account(settings: ProviderSettings, *, is_tenants: bool) -> None:
    """Raises ProviderInvalid unless the key is a service account's JSON: other kinds name files, commands or
    addresses.
    """
    if not settings.api_key:
        return
    try:
        account = orjson.loads(settings.api_key)
    except orjson.JSONDecodeError:
        account = None
    if not isinstance(account, dict) or len(settings.api_key) > _LONGEST_KEY:
        raise _invalid("api_key", "expected the JSON of a Google service account", settings)
    tokens = account.get("token_uri", _GOOGLE_TOKENS)
    if is_tenants and (account.get("type") != "service_account" or tokens != _GOOGLE_TOKENS):
        sentence = (
            f'expected the JSON of a Google service account ("type": "service_account", tokens of {_GOOGLE_TOKENS})'
        )
        raise _invalid("api_key", sentence, settings)


def _check_options(settings: ProviderSettings, row: ProviderType, *, allow_private: bool, is_tenants: bool) -> None:
    known = {option.name: option for option in (*row.options, *COMMON_OPTIONS) if not (is_tenants and option.secret)}
    if unknown := sorted(settings.options.keys() - known.keys()):
        sentence = f"{', '.join(unknown)[:80]} is none of {', '.join(sorted(known))}, which type {row.name} has"
        raise _invalid("options", sentence, settings)
    if len(orjson.dumps(settings.options)) > _LONGEST_OPTIONS:
        raise _invalid("options", f"they are longer than {_LONGEST_OPTIONS} bytes", settings)
    for name, value in settings.options.items():
        _check_option(known[name], value, settings)
        if name.endswith("_url"):
            _check_url(f"options.{name}", value, settings, allow_private=allow_private)


def _check_option(option: Option, value: Any, settings: ProviderSettings) -> None:
    what = f"options.{option.name}"
    if option.kind == "object":
        try:
            names(value)
        except InvalidOverride as wrong:
            raise _invalid(what, str(wrong), settings) from None
    elif option.kind == "flag":
        if not isinstance(value, bool):
            raise _invalid(what, "it is neither true nor false", settings)
    elif option.kind == "integer":
        if type(value) is not int or not 0 < value <= _MOST_AT_ONCE:
            raise _invalid(what, f"it is not a whole number from 1 to {_MOST_AT_ONCE}", settings)
    elif not isinstance(value, str) or (option.choices and value not in option.choices):
        raise _invalid(what, f"it is not {' or '.join(option.choices) or 'a text'}", settings)


def _invalid(what: str, problem: str, settings: ProviderSettings) -> ProviderInvalid:
    return ProviderInvalid(f"{what}: {problem}.", provider=settings.name[:80])
