"""Request bodies from the declaration of a resource: its proto message with the rules of its fields.

    class CreateIdentity(RequestModel, of=identity_pb2.Identity, when=When.CREATION):
        properties: list[IdentityProperty] | None = None      only what differs from the rule

    request = wire.UpdateIdentityRequest(identity_id=..., identity=body.message(), update_mask=body.mask())

The model has the fields that a client may set then, under REST's names, but for those in `leave`. A field that a class
declares itself takes the place of the derived one.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Optional

import orjson
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel
from pydantic import Field as ModelField

from gateway.rest.body import ENUM, Body, Json, sent_fields
from gateway.rest.params import Moment
from loci.common.v1 import field_pb2
from services.common.fields import Field, When, enum_names, enum_numbers, fields_of, settable_fields
from services.common.timestamps import timestamp

_TIME = Timestamp.DESCRIPTOR.full_name
_INT32 = (-(2**31), 2**31 - 1)
_TYPES: Mapping[int, Any] = {
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_DOUBLE: float,
    FieldDescriptor.CPPTYPE_FLOAT: float,
    FieldDescriptor.CPPTYPE_STRING: str,
}
_INTEGERS = (
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
)
_JSON_TYPES: Mapping[int, Any] = {
    field_pb2.JSON_KIND_OBJECT: Json,
    field_pb2.JSON_KIND_OPTIONAL_OBJECT: Json,
    field_pb2.JSON_KIND_ARRAY: list[Json],
}


class RequestModel(Body):
    """A body derived from a message; see the module."""

    resource: ClassVar[type[Message]]

    def __init_subclass__(
        cls, of: type[Message] | None = None, when: When | None = None, leave: Collection[str] = (), **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if of is None:
            return
        assert when is not None, "a body is derived for a creation or a change"
        cls.resource = of
        descriptor: Any = of.DESCRIPTOR
        own = dict(cls.__annotations__)
        for each in settable_fields(descriptor, when).values():
            name = each.rest_name
            if name in own or name in leave:
                continue
            required = each.rule.required and when is When.CREATION
            own[name] = type_of(each) if required else Optional[type_of(each)]  # noqa: UP045 - made at run time
            setattr(cls, name, _model_field(each, required=required))
        cls.__annotations__ = own

    def message(self, **others: Any) -> Any:
        """Returns the resource with what the client sent; `others`: fields of the message instead of or beside it.

        What the message does not have is passed over.
        """
        fields = self._fields()
        items = ((fields[name], value) for name, value in sent_fields(self).items() if name in fields)
        return self.resource(**{field.wire: to_wire(field, value) for field, value in items} | others)

    def mask(self, leave: Collection[str] = (), nulls: Collection[str] = ()) -> FieldMask:
        """Returns the names of the fields that the client sent, but for those in `leave`.

        Of `nulls` also those that it sent as null, which clears them.
        """
        fields = self._fields()
        sent = sent_fields(self).keys() | self.model_fields_set & set(nulls)
        names = sent & fields.keys() - set(leave)
        return FieldMask(paths=sorted(fields[name].wire for name in names))

    def _fields(self) -> Mapping[str, Field]:
        return {each.rest_name: each for each in fields_of(self.resource.DESCRIPTOR).values()}


def type_of(field: Field) -> Any:
    """Returns the type of a field in a body."""
    if field.is_json:
        return _JSON_TYPES.get(field.rule.json, Any)
    if field.is_map:
        return dict[str, str]
    one = _type_of_one(field)
    return list.__class_getitem__(one) if field.descriptor.is_repeated else one


def to_wire(field: Field, value: Any) -> Any:
    """Returns a value of a body as the message takes it."""
    if field.is_json:
        return orjson.dumps(_plain(value)).decode()
    if field.descriptor.enum_type is not None:
        return enum_numbers(field.descriptor.enum_type)[value]
    if field.type_name == _TIME:
        return timestamp(value)
    return value


def _type_of_one(field: Field) -> Any:
    if field.descriptor.enum_type is not None:
        return _enumeration(tuple(name for name in enum_names(field.descriptor.enum_type).values() if name is not None))
    if field.rule.values:
        return _enumeration(tuple(field.rule.values))
    if field.type_name == _TIME:
        return Moment
    if field.descriptor.cpp_type in _INTEGERS:
        least = field.rule.minimum if field.rule.HasField("minimum") else _INT32[0]
        most = field.rule.maximum if field.rule.HasField("maximum") else _INT32[1]
        return Annotated[int, ModelField(ge=least, le=most)]
    return _TYPES[field.descriptor.cpp_type]


def _enumeration(names: tuple[str, ...]) -> Any:
    return Annotated[Literal[names], ENUM]


def _model_field(field: Field, *, required: bool) -> Any:
    options: Json = {"json_schema_extra": {"deprecated": True}} if field.rule.deprecated else {}
    if field.rule.secret:
        options["repr"] = False
    return ModelField(... if required else None, **options)


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump()
        case list():
            return [_plain(each) for each in value]
        case _:
            return value
