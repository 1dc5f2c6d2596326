"""Calls that wait for a person."""

from gateway.openapi.schemas import MOMENT, TEXT, maybe, record
from gateway.resources.messages.schemas import APPROVAL_REQUEST

APPROVAL = record(
    "OpenApproval", {"conversation_id": maybe(TEXT), "due_at": maybe(MOMENT), "request": APPROVAL_REQUEST}
)
