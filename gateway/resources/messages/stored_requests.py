"""Stored messages: another text for one, and exchanges that happened elsewhere."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gateway.errors.invalid import InvalidRequest
from gateway.resources.messages.content import Content, parts
from gateway.rest.body import Body, Json
from gateway.rest.params import AgentInBody, Moment, conversation_ref
from loci.agent.v1 import message_pb2, message_service_pb2
from services.common.core.neighbours import MOST_CONTEXT
from services.common.timestamps import timestamp

Kind = Literal["system_message", "user_message", "assistant_message", "reasoning_message"]
_ROLES = {"user": message_pb2.MESSAGE_ROLE_USER, "assistant": message_pb2.MESSAGE_ROLE_ASSISTANT}
_TEXTS = frozenset({"text", "input_text", "output_text"})
# The reference's clients send whole histories of others; what is older than this is not an exchange any more.
_MOST_CAPTURED = 100


class UpdateMessage(Body):
    """Body of PATCH .../messages/{message_id}: the new text, by the kind that the message is shown as.

    Without `message_type` it is of the kind that the message has.
    """

    message_type: Kind | None = None
    content: Content | None = None
    reasoning: str | None = None

    def request(self, agent_id: str, message_id: str, kind: str) -> message_service_pb2.UpdateMessageRequest:
        """Returns the change of a message that is shown as `kind`. Raises InvalidRequest."""
        wire = message_service_pb2.UpdateMessageRequest(agent_id=agent_id, message_id=message_id)
        match kind:
            case "reasoning_message" if self.reasoning is not None:
                wire.reasoning_message.reasoning = self.reasoning
            case "user_message" if self.content is not None:
                wire.user_message.content.extend(parts(self.content))
            case "system_message" if self.content is not None:
                wire.system_message.content = self._text()
            case "assistant_message" if self.content is not None:
                wire.assistant_message.content = self._text()
            case "reasoning_message":
                raise InvalidRequest("`reasoning` is missing", "body", "reasoning")
            case "user_message" | "system_message" | "assistant_message":
                raise InvalidRequest("`content` is missing", "body", "content")
            case _:
                sentence = f"a message of type {kind} does not change: only what was said and thought does"
                raise InvalidRequest(sentence, "body", "message_type")
        return wire

    def _text(self) -> str:
        content = parts(self.content or "")
        if any(part.WhichOneof("part") != "text" for part in content):
            raise InvalidRequest("`content`: only a user's message has pictures", "body", "content")
        return "".join(part.text for part in content)


class CaptureMessages(Body):
    """Body of POST .../messages/capture: what was sent to a model elsewhere, and what it answered, in the form of
    whoever it was sent to. `provider` and `model` say who that was; nothing is made of them.
    """

    request_messages: list[Json]
    response_dict: Json | None = None
    provider: str | None = None
    model: str | None = None
    conversation_id: str | None = None

    def messages(self) -> list[message_pb2.InputMessage]:
        """Returns the messages of people and of the model, oldest first; instructions and tools are left out.

        Raises InvalidRequest where that is nothing.
        """
        converted = [_said(each.get("role"), each.get("content")) for each in self.request_messages]
        answer = self.response_dict or {}
        converted.append(_said("assistant", _answered(answer)))
        messages = [each for each in converted if each is not None]
        if not messages:
            raise InvalidRequest("there is no text of a user or of an assistant in it", "body", "request_messages")
        return messages[-_MOST_CAPTURED:]


def _answered(answer: Json) -> Any:
    """Returns the content of an answer: a message, or OpenAI's or Anthropic's whole reply."""
    match answer:
        case {"choices": [{"message": {"content": content}}, *_]}:
            return content
        case {"message": {"content": content}} | {"content": content}:
            return content
        case {"output": list(items)}:
            return [part for item in items if isinstance(item, dict) for part in item.get("content") or ()]
        case _:
            return None


def _said(role: Any, content: Any) -> message_pb2.InputMessage | None:
    if role not in _ROLES:
        return None
    texts = [content] if isinstance(content, str) else list(_texts(content))
    parts = [message_pb2.ContentPart(text=text) for text in texts if text]
    return message_pb2.InputMessage(role=_ROLES[role], content=parts) if parts else None


def _texts(content: Any) -> Iterable[str]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str):
            yield part["text"]


_MODES = {
    "hybrid": message_service_pb2.MESSAGE_SEARCH_MODE_HYBRID,
    "vector": message_service_pb2.MESSAGE_SEARCH_MODE_VECTOR,
    "fts": message_service_pb2.MESSAGE_SEARCH_MODE_TEXT,
}
Role = Literal["user", "assistant", "system", "tool"]
# What the four shapes of results can show.
_SHOWN: tuple[Role, ...] = ("user", "assistant", "system")


class SearchMessages(Body):
    """Body of messages.search.

    Loci's own are `roles`: with `tool`, returns of tools are results, too; and `context`: neighbours of each result.
    """

    query: Annotated[str, Field(max_length=10_000)]
    search_mode: Literal["vector", "fts", "hybrid"] = "hybrid"
    agent_id: AgentInBody = None
    conversation_id: Annotated[str | None, AfterValidator(lambda value: value and conversation_ref(value))] = None
    start_date: Moment | None = None
    end_date: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    roles: list[Role] | None = None
    context: Annotated[int, Field(ge=0, le=MOST_CONTEXT)] = 0

    def request(self) -> message_service_pb2.SearchMessagesRequest:
        """For the agent service. More than the limit: calls are found, and not shown."""
        conversation_id = self.conversation_id or ""
        if conversation_id == "default":
            # Of an agent that is named beside it; of all agents it is no one conversation.
            conversation_id = self.agent_id or ""
        return message_service_pb2.SearchMessagesRequest(
            agent_id=self.agent_id or "",
            conversation_id=conversation_id,
            query=self.query,
            mode=_MODES[self.search_mode],
            roles=self.roles or _SHOWN,
            limit=min(2 * self.limit + 10, 1_000),
            start_time=timestamp(self.start_date),
            end_time=timestamp(self.end_date),
            context=self.context,
        )


class WarmCache(Body):
    """Body of _internal_search/cache-warm."""

    collection: str = "messages"
