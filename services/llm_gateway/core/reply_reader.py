"""The reader of a vendor's replies into the neutral chat; each vendor has its own. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.llm_gateway.core.chat import Delta, FinishReason, Generation
from services.llm_gateway.core.reply_builder import ReplyBuilder


class ReplyReader:
    """Reads the reply to one call into `builder`.

    `ended`: nothing of interest follows in the stream. `failure`: the HTTP status and the body of an error that came as
    a reply or an event, None without one. `began`: a reply of OpenAI's dialect began, `is_broken`: its vendor
    said that it broke off.
    """

    def __init__(self, builder: ReplyBuilder) -> None:
        self.builder = builder
        self.ended = False
        self.failure: tuple[int, Any] | None = None
        self.began = self.is_broken = False

    @property
    def is_complete(self) -> bool:
        """Whether the model had finished."""
        return self.builder.finish is not None

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Reads the headers of a response."""

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """Reads a blocking reply; returns what a stream of it would have added. Without a word about its end it counts
        as complete."""
        deltas = list(self.take_event(reply))
        if self.builder.finish is None:
            self.builder.finish = FinishReason.UNKNOWN
        return deltas

    def take_event(self, event: Mapping[str, Any]) -> Iterable[Delta]:
        """Reads one event of a stream; returns what it adds."""
        raise NotImplementedError

    def take_done(self) -> None:
        """Reads the mark that ends streams of OpenAI's dialect. Most servers say before why a reply ended; one that
        began is complete with the mark alone, too."""
        if self.began and self.builder.finish is None and not self.is_broken:
            self.builder.finish = FinishReason.UNKNOWN

    def next_body(self) -> bytes:
        """Returns the body of the request that goes on with a reply; empty where the reply needs no other."""
        return b""

    def close(self) -> Iterable[Delta]:
        """Returns what is left once everything has come. Raises LlmError for a reply that is none."""
        return ()

    def complete(self, generation: Generation) -> Generation:
        """Returns the reply as it goes to the caller."""
        return generation
