"""Rules for a tenant's sandbox settings, and their effect on calls. Pure."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from services.common.core.refusals import Refused
from services.tool_runner.core.requirements import parse_npm, parse_pip

TYPES = ("local", "e2b", "modal")
_LONGEST = 64 * 1024
_MOST_SECONDS = 86_400
_LANGUAGES = ("python", "typescript")


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """Requirements are JSON arrays, "" for none; `fingerprint` is of all settings, defaults included."""

    pip_requirements: str
    npm_requirements: str
    fingerprint: str


def type_of(kind: str) -> str:
    """Returns whose settings hold where sandboxes of this kind (LOCI_SANDBOX) serve."""
    return kind if kind in TYPES else "local"


def check_type(text: str) -> str:
    """Returns one of TYPES. Raises Refused (SANDBOX_CONFIG_INVALID)."""
    if text not in TYPES:
        raise _invalid(f"type {text[:80]!r} is not one of {', '.join(TYPES)}")
    return text


def check_config(text: str) -> str:
    """Returns the text once its known members are checked. Raises Refused (SANDBOX_CONFIG_INVALID)."""
    if len(text.encode()) > _LONGEST or "\x00" in text:
        raise _invalid(f"config may have {_LONGEST} bytes, none of them NUL")
    try:
        config = json.loads(text or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"config is not JSON: {str(error)[:200]}") from None
    if not isinstance(config, dict):
        raise _invalid("config must be a JSON object")
    for name, problem in _MEMBERS.items():
        if config.get(name) is not None and (problem_text := problem(config[name])):
            raise _invalid(f"config.{name} {problem_text}")
    _check_requirements(config)
    return text or "{}"


def effective(kind: str, text: str) -> EffectiveConfig:
    """Returns what the stored settings of a kind mean; "" where there are none."""
    config = {name: value for name, value in json.loads(text or "{}").items() if value is not None}
    whole = json.dumps({"type": kind, "config": config}, sort_keys=True, separators=(",", ":"))
    return EffectiveConfig(
        pip_requirements=_array(config.get("pip_requirements")),
        npm_requirements=_array(config.get("npm_requirements")),
        fingerprint=sha256(whole.encode()).hexdigest(),
    )


def _array(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")) if value else ""


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and len(value) <= 4_096 else "must be a text of at most 4096 characters"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _seconds(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return "" if whole and 1 <= value <= _MOST_SECONDS else f"must be 1 to {_MOST_SECONDS} seconds"


def _language(value: Any) -> str:
    return "" if value in _LANGUAGES else f"must be one of {', '.join(_LANGUAGES)}"


def _check_requirements(config: Mapping[str, Any]) -> None:
    for name, parse in (("pip_requirements", parse_pip), ("npm_requirements", parse_npm)):
        try:
            parse(json.dumps(config.get(name)))
        except Refused as refused:
            raise _invalid(f"config.{refused.message}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _invalid(sentence: str) -> Refused:
    return Refused("SANDBOX_CONFIG_INVALID", sentence)


# Members whose value is looked at; others are kept and mean nothing.
_MEMBERS: Mapping[str, Callable[[Any], str]] = {
    "sandbox_dir": _text,
    "use_venv": _flag,
    "venv_name": _text,
    "template": _text,
    "timeout": _seconds,
    "language": _language,
}
