"""Every RPC of the services' descriptors, and where its request has room for ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from google.protobuf import message_factory

import loci.agent.v1
import loci.llm.v1
import loci.memory.v1
import loci.tool.v1
from loci.common.v1.field_pb2 import field as RULE
from tests.e2e.tenants.places import LABELS

# Which service has a package.
SERVICES = {"agent": "agent", "llm": "llm_gateway", "memory": "memory", "tool": "tool_runner"}
_PACKAGES = (loci.agent.v1, loci.llm.v1, loci.memory.v1, loci.tool.v1)
_ID = re.compile(r"(?:^|_)ids?$")
_DEPTH = 3
# Requests that name their template.
_NAMING = ("TemplateRequest", "TemplateVersionRequest")


@dataclass(frozen=True)
class Rpc:
    """A method of a service."""

    service: str
    path: str
    method: Any

    @property
    def name(self) -> str:
        """Returns "MemoryService.Method"."""
        return f"{self.method.containing_service.name}.{self.method.name}"

    def request(self) -> Any:
        """Returns an empty request."""
        return message_factory.GetMessageClass(self.method.input_type)()

    @property
    def response_class(self) -> Any:
        """The class of its answers."""
        return message_factory.GetMessageClass(self.method.output_type)


def rpcs() -> list[Rpc]:
    """Returns all of them."""
    return list(_found())


def _found() -> Iterator[Rpc]:
    for package in _PACKAGES:
        for module in iter_modules(package.__path__):
            if not module.name.endswith("_service_pb2"):
                continue
            file = import_module(f"{package.__name__}.{module.name}").DESCRIPTOR
            for service in file.services_by_name.values():
                owner = SERVICES[file.package.split(".")[1]]
                yield from (Rpc(owner, f"/{service.full_name}/{each.name}", each) for each in service.methods)


def ways(message: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the ways to fields that hold ids, through messages and the first of lists."""
    for field in message.fields:
        if not _may_be_set(field):
            continue
        if field.message_type is not None:
            inside = not field.message_type.full_name.startswith("google.") and len(way) < _DEPTH
            if inside and not field.message_type.GetOptions().map_entry:
                yield from ways(field.message_type, (*way, field.name))
        elif field.type == field.TYPE_STRING and _is_id(field):
            yield (*way, field.name)


def _is_id(field: Any) -> bool:
    if field.name in LABELS:
        return False
    is_name = field.name == "name" and field.containing_type.name.endswith(_NAMING)
    return is_name or field.name == "call_key" or bool(_ID.search(field.name))


def _may_be_set(field: Any) -> bool:
    """Returns whether a client sets it: of resources what their rules say, of requests all."""
    rules = [each.GetOptions().Extensions[RULE].settable for each in field.containing_type.fields]
    return not any(rules) or bool(field.GetOptions().Extensions[RULE].settable) or field.name == "id"


def put(message: Any, way: tuple[str, ...], value: str) -> None:
    """Sets a field of a request; lists get one value."""
    head, *rest = way
    field = message.DESCRIPTOR.fields_by_name[head]
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    if rest:
        inner = getattr(message, head)
        if repeated:
            inner = inner[0] if inner else inner.add()
        put(inner, tuple(rest), value)
    elif repeated:
        del getattr(message, head)[:]
        getattr(message, head).append(value)
    else:
        setattr(message, head, value)
