"""Secrets in what a call says, hidden: as they are, and as JSON, URLs, Python and base64 write them. Pure.

All secrets are looked for at once, in one pass over the text (Aho and Corasick, 1975), so that neither their number nor
what a hostile tool prints makes it slow. Wherever one stands is hidden, also where two overlap; a place gets one mask.

Values of fewer than 6 characters are not hidden: they stand in texts by chance. One of more than 128 is known by its
first 128 (by fewer, at least 16, where there are very many), and what follows those is hidden as far as it goes on like
the value.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from services.tool_runner.sandbox_configs.model import MASK

LEAST_CHARACTERS = 6
_HEAD, _LEAST_HEAD = 128, 16
# Any character, in what a long value may go on with; no value holds it.
_ANY = "\x00"
# Of the automaton; each takes 250 bytes, and 2 microseconds once.
_MOST_NODES = 100_000
# With more beginnings than this, looking for each costs more than the one pass.
_MOST_BEGINNINGS = 64


class Mask:
    """Hides these values in texts."""

    def __init__(self, values: Iterable[str]) -> None:
        self.patterns = frozenset(form for value in values for form in _forms(value))
        self._beginnings = frozenset(pattern[:LEAST_CHARACTERS] for pattern in self.patterns)
        self._tree: _Tree | None = None

    def text(self, text: str) -> str:
        """Returns the text without them."""
        if self._has_none(text):
            return text
        stream = self.stream()
        return stream.feed(text) + stream.finish()

    def stream(self) -> "MaskedStream":
        """Returns a masker for a text that comes in pieces."""
        return MaskedStream(self)

    @classmethod
    def whole(cls, values: Iterable[str]) -> "Mask":
        """Returns itself with all that texts need, which takes a while for many values: for a thread."""
        mask = cls(values)
        mask._tree = _Tree(mask.patterns)
        return mask

    @property
    def tree(self) -> "_Tree":
        """Returns the automaton, made when a text first needs it."""
        self._tree = self._tree or _Tree(self.patterns)
        return self._tree

    def _has_none(self, text: str) -> bool:
        """Returns whether a whole text is seen at once to have none; a result may be of very many short ones."""
        if len(text) < LEAST_CHARACTERS:
            return True
        few = len(self._beginnings) <= _MOST_BEGINNINGS
        return few and not any(beginning in text for beginning in self._beginnings)

    def may_begin(self, text: str) -> int:
        """Returns the place in `text` before which every secret that began has ended."""
        if len(self._beginnings) > _MOST_BEGINNINGS or any(beginning in text for beginning in self._beginnings):
            return 0
        return max(0, len(text) - LEAST_CHARACTERS + 1) if self.patterns else len(text)


class MaskedStream:
    """Masks a text piece by piece; only what may be the beginning of a secret is held back."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = ""
        self._node = 0
        # What goes on after the first characters of a long secret, and how much of it was there.
        self._rest, self._place = "", 0
        # Places to be hidden, from the beginning of what is held; one that began before has its mask already.
        self._hidden: list[tuple[int, int]] = []

    def feed(self, text: str) -> str:
        """Returns what can be told now."""
        start = 0 if self._node or self._rest else self._mask.may_begin(text)
        if start < len(text):
            self._find(text, start, len(self._held))
        text = self._held + text
        pending = self._mask.tree.depth[self._node] if self._node else 0
        return self._tell(text, len(text) - pending)

    def finish(self) -> str:
        """Returns what was held back. The stream may be used anew."""
        masked = self._tell(self._held, len(self._held))
        self._node, self._rest, self._hidden = 0, "", []
        return masked

    def _find(self, text: str, start: int, pending: int) -> None:
        """Goes through the text from `start` on; places count from the beginning of the buffer."""
        tree, node = self._mask.tree, self._node
        steps, back, length = tree.steps, tree.back, tree.length
        for end, character in enumerate(text[start:], pending + start + 1):
            while node and (node, character) not in steps:
                node = back[node]
            node = steps.get((node, character), 0)
            if self._rest:
                self._follow(character, end)
            if found := length[node]:
                self._hide(end - found, end)
                if not self._rest and (rest := tree.rest[node]):
                    self._rest, self._place = rest, 0
        self._node = node

    def _follow(self, character: str, end: int) -> None:
        """Returns whether a long secret goes on."""
        if self._rest[self._place] not in (character, _ANY):
            self._rest = ""
            return
        begin, _ = self._hidden[-1]
        self._hidden[-1] = (begin, end)
        self._place += 1
        if self._place == len(self._rest):
            self._rest = ""

    def _hide(self, begin: int, end: int) -> None:
        while self._hidden and self._hidden[-1][1] > begin:
            begin = min(begin, self._hidden.pop()[0])
        self._hidden.append((begin, end))

    def _tell(self, text: str, settled: int) -> str:
        """Returns the first `settled` characters, masked; the others are held from now on."""
        masked, at = [], 0
        for begin, end in self._hidden:
            if begin >= settled:
                break
            if begin >= 0:
                masked += [text[at:begin], MASK]
            at = min(max(end, 0), settled)
        masked.append(text[at:settled])
        # The last one may yet go on.
        self._hidden = [(begin - settled, end - settled) for begin, end in self._hidden if end >= settled]
        self._held = text[settled:]
        return "".join(masked)


class _Tree:
    """The patterns as an automaton, node 0 being its beginning.

    steps: where a character leads; back: the node of the longest ending that is a beginning, too; depth: characters
    that lead there; length: of the longest pattern that ends there, 0 for none; rest: see the module.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.steps: dict[tuple[int, str], int] = {}
        self.depth, self.length, self.rest = [0], [0], [""]
        known = sorted(patterns)
        head = max(_LEAST_HEAD, min(_HEAD, _MOST_NODES // max(1, len(known))))
        for pattern in known:
            self._add(pattern[:head], pattern[head:])
        self.back = [0] * len(self.depth)
        # Nodes nearer to the beginning come first.
        for (node, character), child in sorted(self.steps.items(), key=lambda step: self.depth[step[1]]):
            if node:
                self._link(child, self.back[node], character)

    def _add(self, head: str, rest: str) -> None:
        node = 0
        for character in head:
            child = self.steps.setdefault((node, character), len(self.depth))
            if child == len(self.depth):
                self.depth.append(self.depth[node] + 1)
                self.length.append(0)
                self.rest.append("")
            node = child
        self.length[node] = len(head)
        self.rest[node] = _either(self.rest[node], rest)

    def _link(self, child: int, node: int, character: str) -> None:
        while node and (node, character) not in self.steps:
            node = self.back[node]
        self.back[child] = back = self.steps.get((node, character), 0)
        if not self.length[child]:
            self.length[child] = self.length[back]
            self.rest[child] = self.rest[back]


def _either(one: str, other: str) -> str:
    """Joins several that begin alike, as far as the longest; where they differ, any character is hidden."""
    if not one or not other or one == other:
        return one or other
    begun = "".join(mine if mine == its else _ANY for mine, its in zip(one, other, strict=False))
    return begun + max(one, other, key=len)[len(begun) :]


def _forms(value: str) -> Iterator[str]:
    """Yields the value as texts may hold it."""
    if len(value) < LEAST_CHARACTERS:
        return
    # Values are often read from files, with a last line break that is not used.
    if (bare := value.strip()) != value:
        yield from _forms(bare)
    yield value
    for escaped in (json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value)):
        yield escaped[1:-1]
    yield from (quote(value, safe=""), quote(value), quote_plus(value))
    for encoded in _base64(value.encode()):
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


def _base64(value: bytes) -> Iterator[str]:
    """Yields the value in base64: alone, and as a part of a longer text, at each of three places of its first byte."""
    whole = base64.b64encode(value).decode()
    yield whole
    yield whole.rstrip("=")
    for before, begin in enumerate((0, 2, 3)):
        inner = base64.b64encode(bytes(before) + value).decode().rstrip("=")
        inner = inner[begin : -1 if (before + len(value)) % 3 else None]
        if len(inner) >= LEAST_CHARACTERS:
            yield inner
