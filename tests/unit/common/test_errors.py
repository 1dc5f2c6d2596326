"""Errors to google.rpc.Status and back."""

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from services.common import errors
from services.common.errors import (
    STATUS_METADATA_KEY,
    Aborted,
    LociError,
    NotFound,
    Unavailable,
    Unknown,
    from_rpc,
    from_status,
    to_status,
)

CLASSES = sorted(errors._CLASSES.values(), key=lambda cls: cls.__name__)


def test_there_is_one_class_for_every_status_but_ok() -> None:
    assert {cls.code for cls in CLASSES} == set(grpc.StatusCode) - {grpc.StatusCode.OK}


@given(
    cls=st.sampled_from(CLASSES),
    message=st.text(max_size=500),
    reason=st.from_regex(r"[A-Z][A-Z_]{0,60}", fullmatch=True),
    metadata=st.dictionaries(st.text(max_size=20), st.text(max_size=100), max_size=4),
)
def test_round_trip(cls: type[LociError], message: str, reason: str, metadata: dict[str, str]) -> None:
    back = from_status(to_status(cls(message, reason=reason, metadata=metadata)))
    assert type(back) is cls
    assert (back.message, back.reason, back.metadata, back.details) == (message, reason, metadata, ())


def test_the_wire_holds_error_info_of_our_domain() -> None:
    status = to_status(NotFound("no such block", reason="BLOCK_NOT_FOUND", metadata={"block_id": "block-1"}))
    assert status.code == 5
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == (
        "BLOCK_NOT_FOUND",
        "loci",
        {"block_id": "block-1"},
    )


def test_details_travel_along() -> None:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromSeconds(7)
    once = from_status(to_status(Aborted("try again", details=[retry])))
    twice = from_status(to_status(once))
    for error in (once, twice):
        (detail,) = error.details
        assert isinstance(detail, AnyMessage)
        unpacked = error_details_pb2.RetryInfo()
        assert detail.Unpack(unpacked)
        assert unpacked == retry


def test_long_texts_are_cut_with_a_marker() -> None:
    status = to_status(NotFound("x" * 5_000, metadata={"path": "y" * 900}))
    assert status.message == "x" * 2_000 + "... (3000 more characters)"
    assert from_status(status).metadata["path"].endswith("... (400 more characters)")
    assert len(status.SerializeToString()) < 4_096


def test_without_a_reason_it_is_the_name_of_the_status() -> None:
    assert NotFound("gone").reason == "NOT_FOUND"
    assert from_status(status_pb2.Status(code=5, message="gone")).reason == "NOT_FOUND"


def test_a_status_that_nobody_knows_is_unknown() -> None:
    assert type(from_status(status_pb2.Status(code=99))) is Unknown


def rpc_error(code: grpc.StatusCode, details: str | None, *trailing: tuple[str, bytes]) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


def test_from_rpc_reads_the_status_in_the_metadata() -> None:
    sent = Aborted("changed meanwhile", reason="BLOCK_VERSION_CONFLICT")
    trailing = (STATUS_METADATA_KEY, to_status(sent).SerializeToString())
    back = from_rpc(rpc_error(grpc.StatusCode.ABORTED, "changed meanwhile", trailing))
    assert isinstance(back, Aborted)
    assert (back.message, back.reason) == (sent.message, sent.reason)


@pytest.mark.parametrize("trailing", [(), ((STATUS_METADATA_KEY, b"\xff\xff"),)])
def test_from_rpc_without_a_readable_status_keeps_what_grpc_says(
    trailing: tuple[tuple[str, bytes], ...],
) -> None:
    back = from_rpc(rpc_error(grpc.StatusCode.UNAVAILABLE, "failed to connect", *trailing))
    assert isinstance(back, Unavailable)
    assert (back.message, back.reason) == ("failed to connect", "PEER_UNAVAILABLE")
    assert from_rpc(rpc_error(grpc.StatusCode.INTERNAL, None)).message == "INTERNAL"


def test_from_rpc_takes_any_rpc_error() -> None:
    assert isinstance(from_rpc(grpc.RpcError("odd")), Unknown)
