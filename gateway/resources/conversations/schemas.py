"""Conversations."""

from gateway.openapi.schemas import FLAG, TEXT, array, maybe, of
from loci.agent.v1 import conversation_pb2

CONVERSATION = of(
    "Conversation",
    conversation_pb2.Conversation.DESCRIPTOR,
    leave=("isolated_block_labels", "hidden"),
    archived=FLAG,
    in_context_message_ids=maybe(array(TEXT)),
    isolated_block_ids=maybe(array(TEXT)),
)
