"""Ceilings as they travel."""

from loci.common.v1 import context_pb2
from services.common.core.ceiling import Ceiling


def ceiling_to_proto(value: Ceiling) -> context_pb2.Ceiling:
    """Returns it as it travels."""
    resources = [context_pb2.ResourceAccess(id=name, rights=rights) for name, rights in value.resources or ()]
    return context_pb2.Ceiling(role=value.role, limited=value.resources is not None, resources=resources)


def ceiling_from_proto(wire: context_pb2.Ceiling) -> Ceiling:
    """Returns it as it was sent."""
    resources = tuple((each.id, tuple(each.rights)) for each in wire.resources)
    return Ceiling(wire.role, resources if wire.limited else None)
