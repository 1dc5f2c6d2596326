"""Routes of the reference that wait for a part which Loci does not have yet: they answer 501 with a sentence."""

from collections.abc import Callable
from typing import Any, TypeVar

from services.common.errors import Unimplemented

Handler = TypeVar("Handler", bound=Callable[..., Any])


class NotYet(Unimplemented):
    """Raise it where everything about the request was right; `sentence` says what is missing and what to use instead.

    501 `{"detail": sentence}`, and the SDK is told that repeating is of no use.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, reason="NOT_YET")


def not_yet(sentence: str) -> Callable[[Handler], Handler]:
    """Marks a route's handler as one that ends in `NotYet(sentence)`, for docs/api-coverage.md."""

    def mark(handler: Handler) -> Handler:
        handler.not_yet = sentence  # type: ignore[attr-defined]
        return handler

    return mark
