"""Requests that are wrong in themselves (422): the exception, and what is echoed of what a client sent. Pure."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from services.common.errors import InvalidArgument

EXAMPLE_UUID = "123e4567-e89b-42d3-8456-426614174000"
# Fields that are not shown back.
_SECRETS = {"api_key", "access_key", "secrets", "tool_exec_environment_variables", "environment", "value"}
_SECRETS |= {"auth_token", "custom_headers", "env", "env_vars", "config", "stdio_config"}
_MASK = "***"
# What clients sent is shown back in outline: a body may be 30 MB.
_ECHO = reprlib.Repr()
_ECHO.maxlevel, _ECHO.maxstring = 2, 200
_MOST_ERRORS = 100


class InvalidRequest(InvalidArgument):
    """A body or parameter that the schema allows and the route does not: 422, naming the field.

    `kind`: the type of the error, as pydantic has them.
    """

    def __init__(self, message: str, *loc: str, kind: str = "value_error") -> None:
        super().__init__(message, reason="INVALID_REQUEST")
        self.loc = loc
        self.kind = kind


def outline(errors: Sequence[Mapping[str, Any]]) -> str:
    """Returns the repr of pydantic's first errors, with what the client sent shortened and its secrets masked."""
    first = errors[:_MOST_ERRORS]
    return repr([{key: _short(key, value) for key, value in _masked(error).items()} for error in first])


def _masked(error: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an error without the secrets of the body and the link to pydantic's pages."""
    given, loc = error.get("input"), error.get("loc") or ()
    masked = {key: value for key, value in error.items() if key != "url"}
    if _SECRETS.intersection(map(str, loc)):
        masked["input"] = _MASK
    elif isinstance(given, dict | list):
        masked["input"] = _hidden(given, _ECHO.maxlevel)
    return masked


def _hidden(value: Any, levels: int) -> Any:
    """Returns as far down as it is shown."""
    if levels < 0:
        return value
    if isinstance(value, dict):
        return {key: _MASK if key in _SECRETS else _hidden(part, levels - 1) for key, part in value.items()}
    if isinstance(value, list):
        # One more than is shown, so that the cut is.
        return [_hidden(part, levels - 1) for part in value[: _ECHO.maxlist + 1]]
    return value


def _short(key: str, value: Any) -> Any:
    if key in {"type", "loc", "msg"} or value is None or isinstance(value, bool | int | float):
        return value
    return value if isinstance(value, str) and len(value) <= _ECHO.maxstring else _ECHO.repr(value)
