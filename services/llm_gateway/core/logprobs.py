"""Log probabilities and ids of a reply's tokens, as far as its provider gives them. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson


class ReplyTokens:
    """Gathers OpenAI's `logprobs` objects, whole or in the pieces of a stream, and token ids."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._logprobs: dict[str, Any] | None = None

    def add_logprobs(self, piece: Mapping[str, Any]) -> None:
        """Adds a piece: its lists are appended, other fields replace earlier ones."""
        if self._logprobs is None:
            self._logprobs = {}
        for name, value in piece.items():
            known = self._logprobs.get(name)
            if isinstance(known, list) and isinstance(value, list):
                known += value
            else:
                # A list of our own, which grows in place.
                self._logprobs[name] = [*value] if isinstance(value, list) else value

    def logprobs_json(self) -> str:
        """Returns the object as it came; empty without one."""
        return "" if self._logprobs is None else orjson.dumps(self._logprobs).decode()

    def token_logprobs_json(self) -> str:
        """Returns [[log probability, id or null, token], ...]; empty where no log probabilities came."""
        content = (self._logprobs or {}).get("content")
        if not content:
            return ""
        # Ids that do not stand beside the tokens one by one cannot be told to belong to them.
        ids: list[int | None] = [*self.ids] if len(self.ids) == len(content) else [None] * len(content)
        rows = [[item.get("logprob"), id, item.get("token")] for item, id in zip(content, ids, strict=True)]
        return orjson.dumps(rows).decode()
