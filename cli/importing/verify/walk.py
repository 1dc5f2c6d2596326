"""Makes the calls on both servers, page by page, and tells what differs."""

from collections.abc import Callable, Iterator
from typing import Any

from cli.importing.values import Json, as_list, as_object
from cli.importing.verify.calls import Call
from cli.importing.verify.comparison import by_key, differences
from cli.streaming.client import Client
from cli.streaming.errors import ApiError

_PAGE = 100


class Server(Client):
    """A server of the reference's API, as it is read. Every method raises ApiError, Unreachable."""

    def entries(self, call: Call, parent: str) -> list[Json]:
        """Returns the whole list of a call; `parent`: the id of the entry above it. Ids alone become entries."""
        path = call.path.replace("{id}", parent)
        parameters = {name: value.replace("{id}", parent) for name, value in call.parameters.items()}
        entries, cursor = list[Json](), ""
        while True:
            query = {"limit": _PAGE, "order": "asc", **parameters, **({call.cursor: cursor} if cursor else {})}
            answer = self._call("GET", path, params=query)
            page = _entries_of(call, answer)
            # A list that knows no pages answers with the same one again.
            fresh = [entry for entry in page if entry not in entries[-_PAGE:]]
            entries += fresh
            following = _next_cursor(call, answer, page)
            if not fresh or not following or following == cursor:
                return entries
            cursor = following


def _entries_of(call: Call, answer: Any) -> list[Json]:
    entries = as_list(as_object(answer).get(call.inner) if call.inner else answer)
    return [entry if isinstance(entry, dict) else {call.key: entry} for entry in entries]


def _next_cursor(call: Call, answer: Any, page: list[Json]) -> str:
    if call.inner:
        return str(as_object(answer).get("next_cursor") or "")
    return str(page[-1].get("id", "")) if page else ""


class Walk:
    """A comparison under way. lists: how many were compared; differences: how many places differ."""

    def __init__(self, old: Server, new: Server, print_line: Callable[[str], None]) -> None:
        self._old, self._new = old, new
        self._print = print_line
        self.lists = 0
        self.differences = 0

    def compare(self, call: Call, parent: str = "") -> None:
        """Compares a list, and the lists below each of its entries. Raises Unreachable."""
        where = call.path.replace("{id}", parent)
        old, new = self._ask(self._old, call, parent), self._ask(self._new, call, parent)
        if isinstance(new, ApiError) or (isinstance(old, list) and any(_pairs(call, old, new))):
            # Something may have been under way on one of them: it counts if it still is so.
            old, new = self._ask(self._old, call, parent), self._ask(self._new, call, parent)
        self.lists += 1
        if isinstance(old, ApiError):
            if not isinstance(new, ApiError):
                self._print(f"note: {where}: the old server answers {old.status}, so it is not compared")
            return
        if isinstance(new, ApiError):
            self._report(f"{where}: this server answers {new.status}")
            return
        for line in _pairs(call, old, new):
            self._report(f"{where} {line}")
        here = {entry.get(call.key) for entry in new}
        for entry in old:
            if entry.get(call.key) in here and not call.skip(entry):
                for child in call.children:
                    self.compare(child, str(entry["id"]))

    def _ask(self, server: Server, call: Call, parent: str) -> list[Json] | ApiError:
        try:
            return server.entries(call, parent)
        except ApiError as error:
            return error

    def _report(self, line: str) -> None:
        self.differences += 1
        self._print(line)


def _pairs(call: Call, old: list[Json], new: list[Json]) -> Iterator[str]:
    """Yields the differences of two lists, entry by entry."""
    before = by_key([entry for entry in old if not call.skip(entry)], call.key, call.secondary)
    after = by_key([entry for entry in new if not call.skip(entry)], call.key, call.secondary)
    for key, entry in before.items():
        if key not in after:
            yield f"{key}: is not here"
        elif not call.presence:
            yield from (f"{key}: {line}" for line in differences(entry, after[key], call.ignored))
    if not call.own:
        yield from (f"{key}: is here alone" for key in after if key not in before)
