"""The declaration of a resource: its proto message and the rules of its fields (loci.common.v1.FieldRule)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from loci.common.v1 import field_pb2

_EMPTY_JSON = {field_pb2.JSON_KIND_OBJECT: "{}", field_pb2.JSON_KIND_ARRAY: "[]"}


class When(Enum):
    """The two occasions on which a client sets fields."""

    CREATION = field_pb2.SETTABLE_AT_CREATION
    CHANGE = field_pb2.SETTABLE_AT_CHANGE


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    name: as values have it, without `_json`. wire: as the message has it.
    """

    name: str
    wire: str
    descriptor: FieldDescriptor
    rule: field_pb2.FieldRule

    def is_settable(self, when: When) -> bool:
        """Returns whether a client may set it then."""
        return self.rule.settable in (when.value, field_pb2.SETTABLE_ALWAYS)

    @property
    def rest_name(self) -> str:
        """Its name in REST."""
        return self.rule.rest_name or self.name

    @property
    def is_json(self) -> bool:
        """Returns whether it is a text that holds JSON."""
        return self.wire.endswith("_json")

    @property
    def empty_json(self) -> str:
        """Returns the JSON that an empty text of a `*_json` field stands for."""
        return _EMPTY_JSON.get(self.rule.json, "null")

    @property
    def is_map(self) -> bool:
        """Returns whether it is a map."""
        message = self.descriptor.message_type
        return message is not None and bool(message.GetOptions().map_entry)

    @property
    def type_name(self) -> str:
        """Returns the full name of its message; empty where it is none."""
        message = self.descriptor.message_type
        return message.full_name if message is not None else ""


@cache
def fields_of(descriptor: Descriptor) -> Mapping[str, Field]:
    """Returns the fields of a message by name, in the order of the declaration."""
    fields = (_field(each) for each in descriptor.fields)
    return {each.name: each for each in fields}


def settable_fields(descriptor: Descriptor, when: When) -> Mapping[str, Field]:
    """Returns those that a client may set on this occasion."""
    return {name: each for name, each in fields_of(descriptor).items() if each.is_settable(when)}


def names_in(paths: Iterable[str]) -> frozenset[str]:
    """Returns the names of the fields that an update mask lists."""
    return frozenset(path.removesuffix("_json") for path in paths)


@cache
def enum_names(descriptor: EnumDescriptor) -> Mapping[int, str | None]:
    """Returns number -> REST name of each value of an enum; None for the unspecified one."""
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {
        value.number: value.name.removeprefix(prefix).lower() if value.number else None for value in descriptor.values
    }


@cache
def enum_numbers(descriptor: EnumDescriptor) -> Mapping[str, int]:
    """Returns REST name -> number, without the unspecified one."""
    return {name: number for number, name in enum_names(descriptor).items() if name is not None}


def _field(descriptor: FieldDescriptor) -> Field:
    rule = descriptor.GetOptions().Extensions[field_pb2.field]
    return Field(descriptor.name.removesuffix("_json"), descriptor.name, descriptor, rule)
