"""Protobuf to REST by one general rule, `to_rest`; what differs from it is in the responses.py of each noun.

The rule: field names stay; a `*_json` text becomes the JSON in it, under the name without `_json`; an enum becomes its
value's name in lower case without the prefix, UNSPECIFIED null; a timestamp becomes ISO 8601 with offset; what is
unset and knows it is null, and so is an empty id. The rules of the fields (loci.common.v1.FieldRule) say which have
another name, which are hidden, and what an empty JSON text is.
"""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from services.common.fields import Field, enum_names, fields_of

Rest = dict[str, Any]
_Read = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_rest(message: Message, *, leave: frozenset[str] = frozenset()) -> Rest:
    """Returns `message` by the general rule, without the fields named in `leave`."""
    return {name: read(message) for name, read in _plan(message.DESCRIPTOR) if name not in leave}


@cache
def _plan(descriptor: Descriptor) -> Sequence[tuple[str, _Read]]:
    return [(each.rest_name, _reader(each)) for each in fields_of(descriptor).values() if not each.rule.hidden]


def _reader(field: Field) -> _Read:
    name = field.wire
    if field.is_map:
        return lambda message: dict(getattr(message, name))
    if field.is_json:
        empty = field.empty_json
        return lambda message: from_json(getattr(message, name) or empty)
    convert = _scalar(field.descriptor) or _as_it_is
    if field.descriptor.is_repeated:
        return lambda message: [convert(value) for value in getattr(message, name)]
    if field.descriptor.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    if name.endswith("_id"):
        return lambda message: getattr(message, name) or None
    return lambda message: convert(getattr(message, name))


def _as_it_is(value: Any) -> Any:
    return value


def _scalar(field: FieldDescriptor) -> _Read | None:
    """Returns the converter of one value of `field`; None: it stays as it is."""
    if field.enum_type is not None:
        names = enum_names(field.enum_type)
        return lambda number: names.get(number, str(number))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    if field.message_type is None:
        return None
    match field.message_type.full_name:
        case "google.protobuf.Timestamp":
            return moment
        case "google.protobuf.Duration":
            return lambda value: value.ToNanoseconds() / 1e9
        case _:
            return to_rest


def from_json(text: str) -> Any:
    """Returns the JSON in a `*_json` field; None when it is empty."""
    return orjson.loads(text) if text else None


def moment(timestamp: Any) -> str:
    """Returns a Timestamp in UTC: 2026-01-31T09:30:00.123456+00:00."""
    # Twice as fast as its own ToDatetime, and lists are full of times.
    return (_EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)).isoformat()


def whole_second(timestamp: Any) -> str:
    """Returns a Timestamp without its fraction, as messages show it."""
    text: str = timestamp.ToDatetime(tzinfo=UTC).isoformat(timespec="seconds")
    return text
