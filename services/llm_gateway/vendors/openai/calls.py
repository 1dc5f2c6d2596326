"""Tool calls in the replies of Chat Completions, put together from what servers send. Pure.

OpenAI sends a call's id and name first, then pieces of its arguments, all under one index. Compatible servers leave the
index out, give every call the same or every piece another; send the name late, in pieces or with each piece; repeat an
id, or make a new one for each piece; send a call once more when it is whole. Two rules decide: a call whose arguments
are a whole JSON object takes no more, so that two are never glued; and what says the same of the same call again is
passed over, so that one never runs twice. A call is given on when its name is certain.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta
from services.llm_gateway.core.reply_builder import MOST_CHARACTERS, ReplyBuilder

# What some servers send as arguments before the arguments.
_PLACEHOLDER = "{}"


@dataclass(slots=True, eq=False)
class _Call:
    """A call in the making. `begun`: it was given on; `held`: how many of its pieces were not."""

    id: str
    name: str
    place: object
    pieces: list[str] = field(default_factory=list)
    begun: bool = False
    held: int = 0

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(orjson.loads(self.arguments), dict)
        except orjson.JSONDecodeError:
            return False


@dataclass(frozen=True, slots=True)
class _Piece:
    """One entry of `tool_calls`; `place` is None where nothing tells which call it is of."""

    id: str
    name: str
    arguments: str
    place: object

    def says_the_same(self, call: _Call) -> bool:
        same_name = not call.name or self.name in ("", call.name)
        return same_name and self.arguments.strip() in ("", call.arguments.strip())


class CallReader:
    """The reader of one reply's calls. `names`: of the tools that were offered, by which a whole name is told from a
    piece of one."""

    def __init__(self, builder: ReplyBuilder, names: Collection[str] = ()) -> None:
        self._builder = builder
        self._names = frozenset(names)
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._at: dict[object, _Call] = {}
        # The first call that was not given on.
        self._next = 0
        self._size = 0

    def take(self, entries: Sequence[Mapping[str, Any]], *, whole: bool = False) -> Iterator[Delta]:
        """Reads the entries of a delta, or of a `whole` message, where each is a call."""
        for position, entry in enumerate(entries):
            piece = _piece_of(entry, position if len(entries) > 1 else None)
            call = self._whole(piece, position) if whole else self._of(piece)
            if call is not None:
                self._add(call, piece)
                yield from self._give(call)

    def close(self) -> Iterator[Delta]:
        """Yields what is left at the end. A call without name and arguments is none."""
        for call in self._calls[self._next :]:
            if call.name or call.pieces:
                yield self._begin(call)
        for call in self._calls:
            if call.held and call.begun:
                yield self._arguments(call)
        self._next = len(self._calls)

    def _whole(self, piece: _Piece, position: int) -> _Call | None:
        known = self._by_id.get(piece.id) if piece.id else None
        return None if known is not None and piece.says_the_same(known) else self._open(piece, position)

    def _of(self, piece: _Piece) -> _Call:
        """Returns the call that a piece is of."""
        call = self._by_id.get(piece.id) if piece.id else None
        if call is not None:
            if self._is_next(piece, call):
                return self._open(piece)
            self._at.setdefault(piece.place, call)
            return call
        call = self._at.get(piece.place) if piece.place is not None else self._last()
        if piece.id:
            return self._of_new_id(piece, call)
        if call is None and (last := self._last()) is not None and self._counts_on(piece, last):
            return last
        if call is None or self._is_next(piece, call):
            return self._open(piece)
        return call

    def _counts_on(self, piece: _Piece, last: _Call) -> bool:
        """Returns whether a piece under a new index is of the last call: some count the pieces, not the calls."""
        if piece.name and last.name:
            joined = last.name + piece.name
            return not last.pieces and (joined in self._names or self._may_grow(joined))
        return not piece.name and not last.is_whole

    def _of_new_id(self, piece: _Piece, call: _Call | None) -> _Call:
        """Some give each piece an id of its own, or the id after the name."""
        if call is None and piece.arguments and (last := self._last()) is not None and self._counts_on(piece, last):
            return last
        if call is None or (call.is_whole and (call.id or not piece.says_the_same(call))):
            return self._open(piece)
        continues = not piece.name or not call.name or (not call.id and self._joined(call.name, piece.name) is not None)
        goes_on = piece.name == call.name and call.pieces and not piece.arguments.lstrip().startswith("{")
        if not continues and not goes_on:
            return self._open(piece)
        if not call.id and not call.begun:
            call.id = piece.id
            self._by_id[piece.id] = call
        return call

    def _is_next(self, piece: _Piece, call: _Call) -> bool:
        """Returns whether a piece that could be of this call begins another."""
        begins = bool(piece.name) or piece.arguments.lstrip().startswith("{")
        if begins and call.is_whole:
            fills = call.arguments.strip() == _PLACEHOLDER and (not piece.name or piece.id == call.id != "")
            return not fills and not piece.says_the_same(call)
        return bool(piece.name and call.name) and self._joined(call.name, piece.name, begun=bool(call.pieces)) is None

    def _joined(self, name: str, more: str, *, begun: bool = False) -> str | None:
        """Returns the name that a piece makes of one: the piece repeats it, begins with it or goes on with it. None: it
        is another's."""
        if more == name:
            return name
        joined = name + more
        if not begun and (joined in self._names or self._may_grow(joined)):
            return joined
        if more.startswith(name):
            return more
        known = name in self._names or more in self._names
        return None if begun or known else joined

    def _may_grow(self, name: str) -> bool:
        return any(one.startswith(name) and one != name for one in self._names)

    def _open(self, piece: _Piece, place: object = None) -> _Call:
        name = piece.name
        before = self._last() if piece.place is None else self._at.get(piece.place)
        if before is not None and not name and piece.id in ("", before.id):
            # A second object under the head of the first.
            name = before.name
        call = _Call(piece.id, name, piece.place if place is None else place)
        self._calls.append(call)
        if piece.id:
            self._by_id[piece.id] = call
        self._at[call.place] = call
        return call

    def _last(self) -> _Call | None:
        return self._calls[-1] if self._calls else None

    def _add(self, call: _Call, piece: _Piece) -> None:
        if piece.name and not call.begun:
            call.name = (self._joined(call.name, piece.name) or call.name) if call.name else piece.name
        if not piece.arguments:
            return
        if call.pieces and piece.arguments.lstrip().startswith("{") and call.is_whole:
            if call.arguments.strip() != _PLACEHOLDER or call.held < len(call.pieces):
                return
            call.pieces, call.held = [], 0
        self._size += len(piece.arguments)
        if self._size > MOST_CHARACTERS:
            raise ValueError(f"calls of more than {MOST_CHARACTERS:,} characters")
        call.pieces.append(piece.arguments)
        call.held += 1

    def _give(self, call: _Call) -> Iterator[Delta]:
        """Yields what has become certain: calls in their order, then the arguments of this one."""
        while self._next < len(self._calls):
            first = self._calls[self._next]
            if not first.name or (first is self._calls[-1] and not self._is_settled(first)):
                break
            self._next += 1
            yield self._begin(first)
            if first.held and first is not call:
                yield self._arguments(first)
        is_placeholder = len(call.pieces) == 1 and call.arguments.strip() == _PLACEHOLDER
        if call.begun and call.held and not is_placeholder:
            yield self._arguments(call)

    def _is_settled(self, call: _Call) -> bool:
        """Returns whether no more of the name can come."""
        return bool(call.pieces) and (call.name in self._names or not self._may_grow(call.name))

    def _begin(self, call: _Call) -> Delta:
        call.begun = True
        return self._builder.begin_call(("call", id(call)), call.id, call.name)

    def _arguments(self, call: _Call) -> Delta:
        text, call.held = "".join(call.pieces[-call.held :]), 0
        return self._builder.add_arguments(("call", id(call)), text)


def _piece_of(entry: Mapping[str, Any], position: int | None) -> _Piece:
    function = entry.get("function") or entry
    place, arguments = entry.get("index"), function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    place = position if place is None else place
    return _Piece(_text(entry.get("id")), _text(function.get("name")), arguments or "", place)


def _text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} where a name is expected")
    return value or ""
