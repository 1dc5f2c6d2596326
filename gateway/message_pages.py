"""Pages of the messages of a run or of a step."""

from typing import Any

from gateway.convert import Rest
from gateway.messages import message
from gateway.peers import Peers
from gateway.spoken import Spoken
from loci.agent.v1 import run_service_pb2, step_service_pb2

Request = run_service_pb2.ListRunMessagesRequest | step_service_pb2.ListStepMessagesRequest


async def shown_page(peers: Peers, rpc: Any, request: Request) -> list[Rest]:
    """The page that `rpc` gives for `request`, as clients are shown it.

    A client takes an empty page for the end, so one of which nothing is shown is followed by the next.
    """
    spoken = Spoken()
    while True:
        page = await peers.call(rpc, request)
        shown = [message(part) for whole in page.messages for part in spoken.whole(whole)]
        if shown or not page.next_page_token:
            return shown
        request.page_token = page.next_page_token
