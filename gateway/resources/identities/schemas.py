"""Identities."""

from gateway.openapi.schemas import FLAG, NUMBER, OBJECT, TEXT, array, choice, of, record, some
from loci.agent.v1 import identity_pb2

IDENTITY = of(
    "Identity",
    identity_pb2.Identity.DESCRIPTOR,
    properties=array(
        record(
            "PropertyOfIdentity",
            {
                "key": TEXT,
                "value": some(TEXT, FLAG, NUMBER, OBJECT),
                "type": choice("string", "number", "boolean", "json"),
            },
        )
    ),
)
