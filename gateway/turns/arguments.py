"""One text among the arguments of a call, read while the JSON is still being written. Pure.

The reader follows strings and brackets only. What is not JSON ends it silently: whoever shows the text as it grows
compares it with the whole arguments afterwards.
"""

import json
import re

from services.common.core.json_text import well_formed

# Outside of texts: brackets and signs one by one; numbers, literals and blanks in a run.
_SIGN = re.compile(r'[{}\[\]:,"]|[^{}\[\]:,"]+')
# Inside of one: its end, plain characters, an escape; a high surrogate with the low one that belongs to it, or alone
# where it is certain that none follows.
_PIECE = re.compile(
    r'"|[^"\\\x00-\x1f]+|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?=[^\\]|\\[^u]|\\u(?:[^dD]|[dD][^c-fC-F]))"
)
# What can still become an escape when more comes.
_UNFINISHED = re.compile(r"\\(u[0-9a-fA-F]{0,4}(\\(u[0-9a-fA-F]{0,3})?)?)?")


class TextArgument:
    """Reads the text that `name` has in a JSON object given piece by piece."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pending = ""
        self._depth = 0
        # The last text at the object's own level: a key, once a colon follows.
        self._last = ""
        self._after_colon = False
        self._in_text = False
        self._wanted = False
        self._over = False

    def feed(self, piece: str) -> str:
        """Returns the addition of `piece` to the text; empty before it began and after it ended."""
        self._pending += piece
        texts: list[str] = []
        start = 0
        while not self._over and start < len(self._pending):
            match = (_PIECE if self._in_text else _SIGN).match(self._pending, start)
            if match is None:
                self._over = not _UNFINISHED.fullmatch(self._pending, start)
                break
            start = match.end()
            if self._in_text:
                texts.append(self._read(match[0]))
            else:
                self._step(match[0])
        self._pending = "" if self._over else self._pending[start:]
        return "".join(texts)

    def _read(self, piece: str) -> str:
        if piece == '"':
            self._in_text, self._over = False, self._wanted
            return ""
        if piece[0] == "\\":
            piece = well_formed(json.loads(f'"{piece}"'))
        if self._wanted:
            return piece
        if self._depth == 1 and not self._after_colon:
            self._last += piece
        return ""

    def _step(self, sign: str) -> None:
        match sign[0]:
            case '"':
                self._in_text = True
                self._wanted = self._after_colon and self._depth == 1 and self._last == self._name
                if not self._after_colon:
                    self._last = ""
            case "{" | "[":
                self._depth += 1
            case "}" | "]":
                self._depth -= 1
            case ":" if self._depth == 1:
                self._after_colon = True
            case "," if self._depth == 1:
                self._after_colon = False
