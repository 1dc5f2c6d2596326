"""Pages of messages: of a conversation, of a tenant, of a run, of a step."""

from collections.abc import Collection
from typing import Any

from gateway.peers import Peers
from gateway.resources.messages.responses import message, message_type, with_one_request
from gateway.rest.convert import Rest
from gateway.rest.paging import MOST_PER_PAGE, ends_before
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import message_service_pb2, run_service_pb2, step_service_pb2

Listing = message_service_pb2.ListMessagesRequest | message_service_pb2.ListAllMessagesRequest

Request = run_service_pb2.ListRunMessagesRequest | step_service_pb2.ListStepMessagesRequest
# Pages that are read to fill one of filtered messages: 10,000 stored messages at most.
_PAGES_READ = 10


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
    most, backwards = request.page.page_size, ends_before(request.page)
    if types is not None:
        request.page.page_size = MOST_PER_PAGE
    enough = 1 if types is None else most
    contents: list[Rest] = []
    for _ in range(_PAGES_READ):
        page = await peers.call(rpc, request)
        parts = [part for whole in page.messages for part in (speech.whole(whole) if speech else [whole])]
        with_one_request(parts)
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


async def page_of_messages(peers: Peers, rpc: Any, request: Request) -> list[Rest]:
    """Returns the page that `rpc` gives for `request`, as clients are shown it.

    A client takes an empty page for the end, so one of which nothing is shown is followed by the next.
    """
    speech = SpeechRenderer()
    while True:
        page = await peers.call(rpc, request)
        contents = [message(part) for whole in page.messages for part in speech.whole(whole)]
        if contents or not page.next_page_token:
            return contents
        request.page.page_token = page.next_page_token
