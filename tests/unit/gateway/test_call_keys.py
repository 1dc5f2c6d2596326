"""Keys of calls over REST: what is repeated attaches, what is asked anew is a call of its own."""

from gateway.resources.executions.call_keys import CallKeys
from loci.agent.v1.message_service_pb2 import Retry

PATH = "/v1/tools/run"


def test_what_is_repeated_gets_its_first_key() -> None:
    keys = CallKeys()
    first = keys.of(Retry(request_hash=b"a"), PATH)
    again = keys.of(Retry(request_hash=b"a"), PATH)
    assert first != again
    assert keys.of(Retry(request_hash=b"a", is_retry=True), PATH) == again
    assert keys.of(Retry(request_hash=b"b", is_retry=True), PATH) not in (first, again)


def test_an_idempotency_key_holds_for_its_route() -> None:
    keys = CallKeys()
    one = keys.of(Retry(idempotency_key="mine", request_hash=b"a"), PATH)
    assert one == CallKeys().of(Retry(idempotency_key="mine", request_hash=b"b"), PATH)
    assert one != keys.of(Retry(idempotency_key="mine", request_hash=b"a"), "/v1/other")
    assert len(one) <= 64


def test_not_more_is_remembered_than_there_is_room_for() -> None:
    keys = CallKeys()
    first = keys.of(Retry(request_hash=b"first"), PATH)
    for number in range(5_000):
        keys.of(Retry(request_hash=number.to_bytes(4, "big")), PATH)
    assert keys.of(Retry(request_hash=b"first", is_retry=True), PATH) != first
    assert len(keys._kept) <= 4_096
