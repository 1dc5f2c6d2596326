"""What becomes of calls to a peer that is lost."""

import pytest

from gateway.peers import Patience
from services.common.errors import Cancelled, Internal, LociError, Unavailable

LOST = [Unavailable("gone", reason="PEER_UNAVAILABLE"), Cancelled("it shuts down")]


@pytest.mark.parametrize("failure", LOST)
async def test_a_lost_peer_is_tried_again_and_then_unavailable(failure: LociError) -> None:
    await Patience(60.0).wait(failure)
    with pytest.raises(Unavailable) as caught:
        await Patience(0.0).wait(failure)
    # Not that the client had left, which is what a cancelled call says.
    assert caught.value.reason == "PEER_UNAVAILABLE"


async def test_what_a_peer_says_is_not_asked_again() -> None:
    with pytest.raises(Internal):
        await Patience(60.0).wait(Internal("a fault"))
