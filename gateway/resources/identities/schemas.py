"""Identities."""

from gateway.openapi.schemas import FLAG, NUMBER, OBJECT, TEXT, array, choice, maybe, of, record, some
from loci.agent.v1 import identity_pb2

_TIMES = ("created_at", "updated_at")
IDENTITY = of(
    "Identity",
    identity_pb2.Identity.DESCRIPTOR,
    leave=_TIMES,
    identity_type=choice("org", "user", "other"),
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
IDENTITIES = record("Identities", {"data": array(IDENTITY), "next_cursor": maybe(TEXT), "has_more": FLAG})
