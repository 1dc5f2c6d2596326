"""The answers to git. This is imported with git's first request, and dulwich with it."""

import asyncio

from gateway.errors.invalid import InvalidRequest
from gateway.git.lines import answer_fetch, offer, read_fetch, read_push, report
from gateway.git.memory import Repository, apply, load
from gateway.git.packs import BadPack
from gateway.git.pushing import PushRefused, changes
from gateway.git.requests import RECEIVE, UPLOAD, BadRequest, unpacked
from gateway.rest.services import Services
from loci.agent.v1 import agent_pb2


async def advertise(loci: Services, agent: agent_pb2.Agent, service: str) -> bytes:
    """Returns the refs that there are, before a clone, fetch or push."""
    return offer(service, (await load(loci, agent)).history.head)


async def respond(loci: Services, agent: agent_pb2.Agent, service: str, body: bytes, encoding: str) -> bytes:
    """Returns the answer to a fetch (UPLOAD) or a push (RECEIVE).

    `encoding`: how the body is packed. Raises InvalidRequest.
    """
    try:
        plain = await asyncio.to_thread(unpacked, body, encoding)
        if service == RECEIVE:
            return await _push(loci, await load(loci, agent), plain)
        assert service == UPLOAD
        fetch = await asyncio.to_thread(read_fetch, plain)
        return await asyncio.to_thread(answer_fetch, (await load(loci, agent)).history, fetch)
    except (BadRequest, BadPack) as error:
        raise InvalidRequest(str(error), "body") from None


async def _push(loci: Services, repository: Repository, body: bytes) -> bytes:
    """Takes a push as a whole, or not. Raises BadRequest, BadPack."""
    pushes = read_push(body)
    if not pushes:
        # Git asks whether it is let in before it sends what is large.
        return b""
    try:
        if len(pushes) > 1:
            raise PushRefused("one branch at a time")
        await apply(loci, repository, await asyncio.to_thread(changes, repository.history, pushes[0]))
        why = ""
    except PushRefused as refusal:
        why = str(refusal)
    return report([(push.ref, why) for push in pushes])
