"""The base of request bodies, and what they share."""

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gateway.errors.invalid import InvalidRequest


def _as_enum(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError as error:
        context = error.errors()[0].get("ctx") or {}
        raise PydanticCustomError("enum", "Input should be {expected}", context) from None


# Beside a Literal that is an enumeration of the reference: its errors have that kind.
ENUM = WrapValidator(_as_enum)
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Json = dict[str, Any]


class Body(BaseModel):
    """A request body. Fields it does not know are ignored, as in the reference."""

    model_config = ConfigDict(extra="ignore")


class LenientBody(Body):
    """A body of requests that chat clients make: some send null for every setting that they leave alone."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, body: Any) -> Any:
        if not isinstance(body, dict) or None not in body.values():
            return body
        return {name: value for name, value in body.items() if value is not None or not _has_default(cls, name)}


def _has_default(body: type[BaseModel], name: str) -> bool:
    field = body.model_fields.get(name)
    return field is not None and not field.is_required() and field.get_default(call_default_factory=True) is not None


def deprecated(default: Any = None) -> Any:
    """Returns a field that the API documents as deprecated. (pydantic's own mark would warn whenever we read it.)"""
    return Field(default, json_schema_extra={"deprecated": True})


def sent_fields(body: Body) -> Json:
    """Returns the fields that the client sent with a value; a null counts as not sent, as in the reference."""
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    return {name: value for name, value in sent.items() if value is not None}


def refuse(body: Body, reasons: Mapping[str, str]) -> None:
    """Raises InvalidRequest when a field of `reasons` asks for something; null, false and empty ask for nothing.

    reasons: field -> why it cannot be had. Silence would be worse: the client would believe that it was done.
    """
    for name, reason in reasons.items():
        if getattr(body, name):
            raise InvalidRequest(f"`{name}`: {reason}", "body", name)


def dump(value: Any) -> str:
    """Returns `value` as a `*_json` field holds it."""
    return orjson.dumps(value).decode()
