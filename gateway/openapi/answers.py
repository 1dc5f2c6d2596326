"""Says beside a route what it answers with when all is well. A route that does not say it fails a test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from gateway.openapi.schemas import TEXT, Schema, choice, some

JSON_TYPE = "application/json"
SSE_TYPE = "text/event-stream"
Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True)
class Answer:
    """A body as JSON, as a stream of events (`event`: what is in their data), either, or another type; or none."""

    body: Schema | None = None
    event: Schema | None = None
    media_type: str = JSON_TYPE
    status: int = 200
    # Statuses that are answered with the same type.
    also: tuple[int, ...] = ()

    def content(self) -> dict[str, Any]:
        """Returns as OpenAPI has it. A stream's schema is that of one event."""
        content = {} if self.body is None else {self.media_type: {"schema": self.body}}
        if self.event is not None:
            data = TEXT | {"contentMediaType": JSON_TYPE, "contentSchema": self.event}
            parts = {"data": some(data, choice("[DONE]")), "event": TEXT, "id": TEXT}
            content[SSE_TYPE] = {"schema": {"type": "object", "properties": parts}}
        return content


def returns(
    body: Schema | None = None,
    *,
    event: Schema | None = None,
    media_type: str = JSON_TYPE,
    status: int = 200,
    also: tuple[int, ...] = (),
) -> Callable[[Handler], Handler]:
    """Marks a route's handler with its Answer, which the OpenAPI document shows."""

    def mark(handler: Handler) -> Handler:
        handler.answer = Answer(body, event, media_type, status, also)  # type: ignore[attr-defined]
        return handler

    return mark


def answer_of(handler: Callable[..., Any]) -> Answer | None:
    """Returns what `returns` said of a handler; None where nothing was said."""
    answer: Answer | None = getattr(handler, "answer", None)
    return answer
