"""Pages of messages: of a conversation, of a tenant, of a run, of a step."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from fastapi import Query

from gateway.peers import Peers
from gateway.resources.messages.responses import message, message_type
from gateway.rest.convert import Rest
from gateway.rest.paging import MOST_PER_PAGE, descending
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import message_service_pb2, run_service_pb2, step_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public

Listing = (
    message_service_pb2.ListMessagesRequest
    | message_service_pb2.ListAllMessagesRequest
    | run_service_pb2.ListRunMessagesRequest
    | step_service_pb2.ListStepMessagesRequest
)
CURSORS: tuple[Literal["after"], Literal["before"]] = ("after", "before")
# Any text: one that names no message is answered by the list.
MessageCursor = Annotated[str | None, Query(description="An id: only messages said after, or before, this one.")]
# Pages that are read to fill one of filtered messages: 10,000 stored messages at most.
_PAGES_READ = 10


def check_cursors(page: PageRequest) -> None:
    """Raises NotFound (MESSAGE_NOT_FOUND) for a cursor that is no id of a message."""
    for name in _strange_cursors(page):
        raise NotFound(f"No message found with id {getattr(page, name)[:80]}", reason="MESSAGE_NOT_FOUND")


def drop_strange_cursors(page: PageRequest) -> None:
    """Leaves out cursors that are no ids of messages."""
    for name in _strange_cursors(page):
        page.ClearField(name)


def _strange_cursors(page: PageRequest) -> list[Literal["after", "before"]]:
    names: list[Literal["after", "before"]] = []
    for name in CURSORS:
        try:
            if page.HasField(name):
                from_public("message", getattr(page, name))
        except InvalidArgument:
            names.append(name)
    return names


async def filtered_page(
    peers: Peers,
    rpc: Any,
    request: Listing,
    *,
    types: Collection[str] | None = None,
    speech: SpeechRenderer | None = None,
) -> list[Rest]:
    """Returns a page of stored messages as clients are shown it, those of `types` alone, None: all. `speech`: how calls
    by which older agents speak are shown; None: as calls.

    A client takes an empty page for the end, so the next pages are read: with a filter until this one is full.
    """
    most, backwards = request.page.page_size, _grows_backwards(request)
    if types is not None:
        request.page.page_size = MOST_PER_PAGE
    enough = 1 if types is None else most
    contents: list[Rest] = []
    for _ in range(_PAGES_READ):
        page = await peers.call(rpc, request)
        parts = [part for whole in page.messages for part in (speech.whole(whole) if speech else [whole])]
        selected = [message(one) for one in parts if types is None or message_type(one) in types]
        contents = selected + contents if backwards else contents + selected
        request.page.page_token = page.next_page_token
        if not page.next_page_token or len(contents) >= enough:
            break
    return contents if types is None else _whole(contents, most, backwards=backwards)


def _whole(contents: list[Rest], most: int, *, backwards: bool) -> list[Rest]:
    """Returns so many of the first or last, and those that are of the same stored message as the last taken."""
    ordered = contents[::-1] if backwards else contents
    end = most
    while 0 < end < len(ordered) and ordered[end]["id"] == ordered[end - 1]["id"]:
        end += 1
    taken = ordered[:end]
    return taken[::-1] if backwards else taken


def _grows_backwards(request: Listing) -> bool:
    match request:
        case message_service_pb2.ListMessagesRequest() | message_service_pb2.ListAllMessagesRequest():
            return request.oldest_first and descending(request.page)
        case _:
            return False
