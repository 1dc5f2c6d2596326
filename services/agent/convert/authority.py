"""Talking, steering and deciding: what of a turn only those may ask for who could also change the agent.

Whoever may talk says things as a user. To speak as the system or as the agent, to replace its instructions or its
model, to bring tools and skills, to be called back, and to answer calls that wait, takes the right to change the agent:
with it one could change its instructions or lift its approvals as well.
"""

from collections.abc import Iterator

from loci.agent.v1 import conversation_service_pb2, message_pb2, message_service_pb2
from services.common.context import CallContext
from services.common.errors import PermissionDenied

# Roles that change things by talking alone, unless their credential has the right over the agent.
_TALKERS = frozenset({"agent-only", "client", "read-only"})
_RIGHT = "write_agent"
# Of message_service.TurnOptions.
_STEERING = ("override_model", "override_system", "client_tools", "client_skills", "instructions", "callback_url")
# Of Conversation.
_MODEL = frozenset({"model", "model_settings_json", "context_window_limit"})


def check_authority(turn: message_service_pb2.TurnRequest, context: CallContext) -> None:
    """Raises PermissionDenied (ROLE_NOT_PERMITTED) where the caller, or who began its chain, asks for too much."""
    _check(turn.agent_id, _steering(turn), context)


def check_conversation(request: conversation_service_pb2.CreateConversationRequest, context: CallContext) -> None:
    """Raises the same where a conversation shall have another model than its agent."""
    names = (field.name for field, _ in request.conversation.ListFields())
    _check(request.agent_id, (name for name in names if name in _MODEL), context)


def _check(agent_id: str, steering: Iterator[str], context: CallContext) -> None:
    role = context.role if context.ceiling is None else context.ceiling.role
    rights = None if context.ceiling is None else context.ceiling.rights(agent_id.lower())
    if role not in _TALKERS or _RIGHT in (rights or ()):
        return
    for name in steering:
        raise PermissionDenied(
            f"the role {role} may talk to the agent, not steer it or decide for it: {name} takes its {_RIGHT}; "
            "ask an admin or a developer for a key or a token that has it.",
            reason="ROLE_NOT_PERMITTED",
        )


def _steering(turn: message_service_pb2.TurnRequest) -> Iterator[str]:
    for message in turn.messages:
        if message.answers:
            yield "an answer to a call that waits"
        if message.role in (message_pb2.MESSAGE_ROLE_SYSTEM, message_pb2.MESSAGE_ROLE_ASSISTANT):
            yield f"the role {message_pb2.MessageRole.Name(message.role).removeprefix('MESSAGE_ROLE_').lower()}"
    yield from (name for name in _STEERING if getattr(turn.options, name))
