"""JSON schemas of what is sent. Most of it is protobuf by the rule of `rest/convert.py`, so its schema is, too."""

from collections.abc import Collection, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from loci.common.v1 import field_pb2
from services.common.fields import Field, enum_names, fields_of

Schema = dict[str, Any]

# Objects by their names, filled by the modules that describe them.
COMPONENTS: dict[str, Schema] = {}
_MESSAGES: dict[str, str] = {}

ANY: Schema = {}
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
OBJECT: Schema = {"type": "object", "additionalProperties": True}
BINARY: Schema = {"type": "string", "format": "binary"}
_INTEGERS = {
    FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_UINT64,
}

_JSON: Mapping[int, Schema] = {
    field_pb2.JSON_KIND_UNSPECIFIED: ANY,
    field_pb2.JSON_KIND_OBJECT: OBJECT,
    field_pb2.JSON_KIND_ARRAY: {"type": "array", "items": OBJECT},
    field_pb2.JSON_KIND_OPTIONAL_OBJECT: {"anyOf": [OBJECT, NULL]},
}


def maybe(schema: Schema) -> Schema:
    """Returns the schema of a value that may be null."""
    return {"anyOf": [schema, NULL]}


def some(*schemas: Schema) -> Schema:
    """Returns the schema of a value that has one of these."""
    return {"anyOf": list(schemas)}


def array(items: Schema) -> Schema:
    """Returns a list of them."""
    return {"type": "array", "items": items}


def by_name(values: Schema) -> Schema:
    """Returns an object whose names are anybody's."""
    return {"type": "object", "additionalProperties": values}


def choice(*values: Any) -> Schema:
    """Returns the schema of one of these values."""
    return {"enum": list(values)}


def names_of(descriptor: EnumDescriptor, *, null: bool = False) -> Schema:
    """Returns the values of an enum as REST names them."""
    names = [name for name in enum_names(descriptor).values() if name is not None]
    return choice(*names, None) if null else {"type": "string", "enum": names}


def named(name: str, schema: Schema) -> Schema:
    """Puts a schema among the components and refers to it."""
    assert COMPONENTS.get(name, schema) == schema, f"two objects are named {name}"
    COMPONENTS[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}


def record(
    name: str, members: Mapping[str, Schema], *, optional: Collection[str] = (), deprecated: Collection[str] = ()
) -> Schema:
    """Returns an object with these members, all of which are there but the optional ones."""
    properties = {
        key: schema | {"deprecated": True} if key in deprecated else schema for key, schema in members.items()
    }
    required = [key for key in members if key not in optional]
    return named(name, {"type": "object", "properties": properties, "required": required})


def context_of(name: str, items: Schema) -> Schema:
    """Returns what stands before and after something found."""
    return record(name, {"before": array(items), "after": array(items)})


# What was done, in words.
MESSAGE = record("MessageOfSuccess", {"message": TEXT})


def of(
    name: str,
    descriptor: Descriptor,
    /,
    *,
    leave: Collection[str] = (),
    deprecated: Collection[str] = (),
    optional: Collection[str] = (),
    **others: Schema,
) -> Schema:
    """Returns the schema of a message after `convert.to_rest`; without those in `leave`, with `others` beside them or
    instead.
    """
    members = {key: schema for key, schema in members_of(descriptor).items() if key not in leave}
    return record(name, members | others, deprecated=deprecated, optional=optional)


def members_of(descriptor: Descriptor) -> dict[str, Schema]:
    """Returns the members of `convert.to_rest` of a message."""
    return {field.rest_name: _member(field) for field in fields_of(descriptor).values() if not field.rule.hidden}


def _member(declared: Field) -> Schema:
    field = declared.descriptor
    if declared.is_map and field.message_type is not None:
        return by_name(_scalar(field.message_type.fields_by_name["value"]))
    schema = _value(declared)
    return schema | {"deprecated": True} if declared.rule.deprecated else schema


def _value(declared: Field) -> Schema:
    field = declared.descriptor
    if declared.is_json:
        return _JSON[declared.rule.json]
    one = choice(*declared.rule.values) if declared.rule.values else _scalar(field)
    if field.is_repeated:
        return array(one)
    if field.has_presence:
        return maybe(one)
    if field.enum_type is not None:
        return names_of(field.enum_type, null=True)
    return maybe(TEXT) if field.name.endswith("_id") else one


def _scalar(field: FieldDescriptor) -> Schema:
    if field.enum_type is not None:
        return names_of(field.enum_type)
    if field.message_type is not None:
        return _message(field.message_type)
    if field.type in _INTEGERS:
        return WHOLE
    if field.type == FieldDescriptor.TYPE_BOOL:
        return FLAG
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return NUMBER
    return TEXT | {"format": "byte"} if field.type == FieldDescriptor.TYPE_BYTES else TEXT


def _message(descriptor: Descriptor) -> Schema:
    match descriptor.full_name:
        case "google.protobuf.Timestamp":
            return MOMENT
        case "google.protobuf.Duration":
            return NUMBER
    name = f"{descriptor.name}Data"
    if _MESSAGES.setdefault(name, descriptor.full_name) != descriptor.full_name:
        name = "".join(part.title() for part in descriptor.full_name.split("."))
    return record(name, members_of(descriptor))
