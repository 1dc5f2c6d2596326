"""Dataclass <-> proto message, field by field, by the declaration of the message (fields.py).

    codec = Codec(Identity, identity_pb2.Identity, refuse=invalid)
    codec.encode(identity)                  the message
    codec.decode(message)                   the dataclass

    drafts = Codec(IdentitySettings, identity_pb2.Identity, refuse=invalid)
    drafts.draft(request.identity)                                  for a creation: all that a client may set
    drafts.draft(request.identity, request.update_mask.paths)       for a change: what the mask names

A field of the dataclass has the name of the message's field (without `_json`). Types on either side decide the rest:
UUID <-> "<prefix>-<uuid>", datetime <-> Timestamp, timedelta <-> Duration, value <-> JSON in a `*_json` field,
tuple <-> repeated, text or IntEnum <-> enum, dataclass <-> message. JSON stays text where the dataclass has a text.
None is an unset field, an empty text or the zero of an enum.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import orjson
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from loci.common.v1 import field_pb2
from services.common.core.drafts import Draft
from services.common.core.storable import parse_storable, storable
from services.common.errors import InvalidArgument
from services.common.fields import Field, When, enum_names, enum_numbers, fields_of, names_in
from services.common.ids import from_public, to_public
from services.common.timestamps import timestamp

D = TypeVar("D")
M = TypeVar("M", bound=Message)
# From the name of a field and what is wrong with it.
Refuse = Callable[[str, str], Exception]
Parser = Callable[[str], Any]

# A field without a value has the default of the dataclass.
_UNSET = ("", (), None)


class _Conversion(NamedTuple):
    to_wire: Callable[[Any], Any]
    to_value: Callable[[Any], Any]


class _Member(NamedTuple):
    field: Field
    to_wire: Callable[[Any], Any]
    # From the whole message.
    read: Callable[[Any], Any]


class Codec(Generic[D, M]):
    """Converts between a dataclass and a message.

    leave: fields of the dataclass that the message does not have. refuse: makes the error for a field that is wrong.
    parsers: by field, the value from the text of a `*_json` field; they raise errors of their own.
    """

    def __init__(
        self,
        of: type[D],
        message: type[M],
        *,
        leave: Iterable[str] = (),
        refuse: Refuse | None = None,
        parsers: Mapping[str, Parser] | None = None,
    ) -> None:
        self._of = of
        self._message = message
        self._refuse = refuse or _invalid_field
        declared, hints, left = fields_of(message.DESCRIPTOR), get_type_hints(of), set(leave)
        self._members = {
            each.name: _member(declared[each.name], hints[each.name], (parsers or {}).get(each.name), self._refuse)
            for each in fields(of)  # type: ignore[arg-type]
            if each.name not in left
        }

    def encode(self, value: D, /, **others: Any) -> M:
        """Returns the message; `others`: further fields of it."""
        items = ((member, getattr(value, name)) for name, member in self._members.items())
        wire = {member.field.wire: member.to_wire(item) for member, item in items if item is not None}
        return self._message(**wire, **others)

    def decode(self, message: M, /, **others: Any) -> D:
        """Returns the dataclass; `others`: fields that the message does not have.

        Raises what `refuse` makes, InvalidArgument (INVALID_ID).
        """
        return self._of(**{name: member.read(message) for name, member in self._members.items()}, **others)

    def draft(self, message: M, paths: Iterable[str] | None = None) -> Draft[D]:
        """Returns what a client sets: at creation all that it may, in a change what the paths of the mask name.

        Every value is within the bounds of its declaration; what is empty has the default of the dataclass. Raises what
        `refuse` makes, InvalidArgument (INVALID_ID, UPDATE_MASK_INVALID).
        """
        names = self._settable(When.CREATION) if paths is None else self.mask(paths)
        sent = {name: value for name in names if (value := self._members[name].read(message)) not in _UNSET}
        return Draft(self.check(self._of(**sent), names), names)

    def check(self, value: D, names: Iterable[str]) -> D:
        """Returns the dataclass whose fields are within the bounds of their declaration. Raises what `refuse` makes."""
        for name in names:
            if problem := problem_of(self._members[name].field, getattr(value, name)):
                raise self._refuse(name, problem)
        return value

    def create(self, message: M, /, **others: Any) -> D:
        """Returns the dataclass of what a client creates, `others` beside it, within the bounds of the declaration.

        For a dataclass that cannot be made without those others; raises as `draft`.
        """
        return self.check(self.decode(message, **others), self._settable(When.CREATION) - others.keys())

    def values(self, message: M, paths: Iterable[str] | None = None) -> dict[str, Any]:
        """Returns what a client sets, by field: at creation what the message has of it, in a change what the paths of
        the mask name, None for what the message does not have. For settings whose defaults depend on others.

        Raises as `draft`.
        """
        present = names_in(field.name for field, _ in message.ListFields())
        names = self._settable(When.CREATION) & present if paths is None else self.mask(paths)
        values = {name: self._members[name].read(message) if name in present else None for name in names}
        for name, value in values.items():
            if problem := problem_of(self._members[name].field, value):
                raise self._refuse(name, problem)
        return values

    def mask(self, paths: Iterable[str]) -> frozenset[str]:
        """Returns the names of the fields that a change names. Raises InvalidArgument (UPDATE_MASK_INVALID)."""
        names = names_in(paths)
        if unknown := sorted(names - self._settable(When.CHANGE)):
            noun = self._message.DESCRIPTOR.name.lower()
            article = "an" if noun[0] in "aeiou" else "a"
            sentence = f"update_mask names what cannot be changed on {article} {noun}: {', '.join(unknown)[:200]}"
            raise InvalidArgument(sentence, reason="UPDATE_MASK_INVALID")
        return names

    def _settable(self, when: When) -> frozenset[str]:
        return frozenset(name for name, member in self._members.items() if member.field.is_settable(when))


def problem_of(field: Field, value: Any) -> str:
    """Returns what is wrong with a value by the rule of its field; empty where nothing is."""
    rule = field.rule
    if value is None:
        return ""
    if rule.values and value not in rule.values:
        return f"must be one of: {', '.join(rule.values)}"
    if not (rule.HasField("minimum") or rule.HasField("maximum")):
        return ""
    size, unit = _size(value)
    if size >= (rule.minimum if rule.HasField("minimum") else size) and (
        not rule.HasField("maximum") or size <= rule.maximum
    ):
        return ""
    return f"must {'have' if unit else 'be'} {_bounds(rule)}{unit}, not {size:,}"


def _size(value: Any) -> tuple[int | float, str]:
    match value:
        case str():
            return len(value), " characters"
        case int() | float():
            return value, ""
        case _:
            return len(value), " items"


def _bounds(rule: field_pb2.FieldRule) -> str:
    if not rule.HasField("maximum"):
        return f"at least {rule.minimum:,}"
    if not rule.HasField("minimum"):
        return f"at most {rule.maximum:,}"
    return f"{rule.minimum:,} to {rule.maximum:,}"


def _invalid_field(name: str, problem: str) -> Exception:
    return InvalidArgument(f"{name} {problem}", reason="FIELD_INVALID")


def _member(field: Field, hint: Any, parser: Parser | None, refuse: Refuse) -> _Member:
    wire, optional = field.wire, NoneType in get_args(hint)
    if field.is_map:
        return _Member(field, dict, lambda message: dict(getattr(message, wire)))
    if field.is_json and (parser or hint is not str):
        parse = parser or _json_parser(field, hint, refuse)
        if hint is str:
            to_text: Callable[[Any], Any] = _same
        else:
            to_text = _json_text if field.empty_json == "null" else _json_text_or_empty
        return _Member(field, to_text, lambda message: parse(getattr(message, wire)))
    if field.descriptor.is_repeated:
        one = _conversion(field, _item_of(hint), refuse)
        # An id that is sent twice counts once.
        once: Callable[[Iterable[Any]], Iterable[Any]] = dict.fromkeys if field.rule.id else list
        return _Member(
            field,
            lambda values: [one.to_wire(each) for each in values],
            lambda message: tuple(once(map(one.to_value, getattr(message, wire)))),
        )
    one = _conversion(field, hint, refuse)
    if field.descriptor.has_presence:
        return _Member(
            field, one.to_wire, lambda message: one.to_value(getattr(message, wire)) if message.HasField(wire) else None
        )
    if optional:
        return _Member(field, one.to_wire, lambda message: one.to_value(getattr(message, wire) or None))
    return _Member(field, one.to_wire, lambda message: one.to_value(getattr(message, wire)))


def _conversion(field: Field, hint: Any, refuse: Refuse) -> _Conversion:
    """Returns how one value of a field is converted."""
    if prefix := field.rule.id:
        return _Conversion(
            lambda value: to_public(prefix, value),
            lambda text: None if text is None else from_public(prefix, text),
        )
    if field.descriptor.enum_type is not None:
        if isinstance(hint, type) and issubclass(hint, IntEnum):
            return _Conversion(int, hint)
        numbers, names = enum_numbers(field.descriptor.enum_type), enum_names(field.descriptor.enum_type)
        return _Conversion(
            numbers.__getitem__, lambda number: None if number is None else names.get(number, str(number))
        )
    match field.type_name:
        case "":
            # A secret stays as it is: it is stored encrypted.
            return _Conversion(_same, _same if field.rule.secret else _storable_text)
        case Timestamp.DESCRIPTOR.full_name:
            return _Conversion(timestamp, lambda value: _moment(field.name, value, refuse))
        case Duration.DESCRIPTOR.full_name:
            return _Conversion(_duration, lambda value: value.ToTimedelta())
    assert field.descriptor.message_type is not None
    nested = Codec(_dataclass_in(hint), GetMessageClass(field.descriptor.message_type), refuse=refuse)
    return _Conversion(nested.encode, nested.decode)


def _same(value: Any) -> Any:
    return value


def _storable_text(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def _item_of(hint: Any) -> Any:
    """Returns X of tuple[X, ...] and its like."""
    arguments = get_args(hint)
    if get_origin(hint) is None and arguments == ():
        return hint
    return _item_of(next(each for each in arguments if each is not NoneType)) if NoneType in arguments else arguments[0]


def _dataclass_in(hint: Any) -> type[Any]:
    """Returns the dataclass of X or X | None."""
    return next(each for each in (hint, *get_args(hint)) if isinstance(each, type) and is_dataclass(each))


def _moment(name: str, value: Timestamp, refuse: Refuse) -> datetime:
    try:
        return value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise refuse(name, "is not a time between the years 1 and 9999") from None


def _duration(value: timedelta) -> Duration:
    duration = Duration()
    duration.FromTimedelta(value)
    return duration


def _json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _json_text_or_empty(value: Any) -> str:
    return _json_text(value) if value else ""


def _json_parser(field: Field, hint: Any, refuse: Refuse) -> Parser:
    kind = field.rule.json
    expected: tuple[type, str] | None = {
        field_pb2.JSON_KIND_OBJECT: (dict, "object"),
        field_pb2.JSON_KIND_ARRAY: (list, "array"),
        field_pb2.JSON_KIND_OPTIONAL_OBJECT: (dict, "object"),
    }.get(kind)
    noun = f"a JSON {expected[1]}" if expected else "JSON"

    def parse(text: str) -> Any:
        try:
            value = parse_storable(text or field.empty_json)
        except ValueError as error:
            raise refuse(field.name, f"must be {noun}; {error}") from None
        if expected and not isinstance(value, expected[0]) and not (value is None and not text):
            raise refuse(field.name, f"must be {noun}, not a {type(value).__name__}")
        return tuple(value) if isinstance(value, list) and get_origin(hint) is tuple else value

    return parse
