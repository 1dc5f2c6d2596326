"""Attacks with a key that was revoked: what began while it held."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from gateway.access.request_reauth import ENDED, RequestReauth
from services.common.errors import LociError, Unauthenticated, Unavailable
from tests import virtual_time

REVOKED = Unauthenticated("revoked", reason="CREDENTIAL_INVALID")
DOWN = Unavailable("nobody can be asked", reason="UNAVAILABLE")
START: Message = {"type": "http.response.start", "status": 200, "headers": []}


async def never(_: Any = None) -> Message:
    """Waits for what does not come."""
    await asyncio.sleep(1e9)
    raise AssertionError


async def nothing(message: Message) -> None:
    """Sends nothing."""
    raise AssertionError(message)


async def served(answers: list[LociError | None], *, lasts: float = 1e6) -> tuple[float, Scope, int]:
    """How long a stream went on with a key that was looked at with these results, and then held; its scope."""
    asked: list[None] = []

    async def ask() -> None:
        asked.append(None)
        if answers and (error := answers.pop(0)):
            raise error

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await asyncio.sleep(lasts)

    scope: Scope = {"type": "http"}
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await RequestReauth(ask, 5, scope, send).serve(stream, never)
    assert sent == [START]
    return asyncio.get_running_loop().time(), scope, len(asked)


@pytest.mark.parametrize(("answers", "seconds"), [([REVOKED], 5), ([None, None, REVOKED], 15), ([DOWN, REVOKED], 10)])
def test_a_stream_ends_soon_after_its_key(answers: list[LociError | None], seconds: float) -> None:
    ended_after, scope, _ = virtual_time.run(served(answers))
    assert (ended_after, scope[ENDED]) == (seconds, REVOKED)


def test_a_stream_whose_key_holds_goes_on_to_its_end() -> None:
    ended_after, scope, asked = virtual_time.run(served([DOWN], lasts=62))
    assert (ended_after, ENDED in scope, asked) == (62, False, 12)


def test_what_has_not_begun_to_answer_is_refused() -> None:
    async def revoked() -> None:
        raise REVOKED

    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        await never()

    async def serve() -> float:
        with pytest.raises(Unauthenticated, match="revoked"):
            await RequestReauth(revoked, 5, {"type": "http"}, nothing).serve(silent, never)
        return asyncio.get_running_loop().time()

    assert virtual_time.run(serve()) == 5


def test_what_answers_at_once_asks_nothing() -> None:
    assert virtual_time.run(served([REVOKED], lasts=1)) == (1, {"type": "http"}, 0)


def test_failures_of_the_application_are_its_own() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise TimeoutError("its own")

    async def serve() -> None:
        await RequestReauth(never, 5, {"type": "http"}, nothing).serve(failing, never)

    with pytest.raises(TimeoutError, match="its own"):
        virtual_time.run(serve())
