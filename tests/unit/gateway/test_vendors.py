"""Vendors' own APIs: whose key is which, and what an agent adds and keeps."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from gateway.access.roles import Right, right_of
from gateway.access.run_tokens import check_route
from gateway.errors.invalid import InvalidRequest
from gateway.vendors.keys import for_loci, own_key
from gateway.vendors.memory import exchange, request_of, with_memory
from services.common.errors import PermissionDenied

PATH, MINE = "/v1/anthropic/v1/messages", "sk-ant-api03-x_Y-z"
ZAI = "0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp"


def shown(bearer: str = "", key: str = "") -> dict[bytes, bytes]:
    headers = {b"authorization": b"Bearer " + bearer.encode()} if bearer else {}
    return headers | ({b"x-api-key": key.encode()} if key else {})


@pytest.mark.parametrize(
    ("bearer", "key", "locis", "own"),
    [
        ("", "", None, ""),
        ("loci-key-1", "", b"Bearer loci-key-1", ""),
        ("", "loci-key-1", b"Bearer loci-key-1", ""),
        ("", "loci-run-1", b"Bearer loci-run-1", ""),
        ("secret", MINE, b"Bearer secret", MINE),
        (MINE, "secret", b"Bearer secret", MINE),
        (MINE, "", None, MINE),
        ("", MINE, None, MINE),
        ("none", "", b"Bearer none", ""),
        # Another vendor's is not clearly a key of this one.
        (ZAI, "", f"Bearer {ZAI}".encode(), ""),
        ("sk-ant-password", "", None, ""),
    ],
)
def test_whose_key_is_which(bearer: str, key: str, locis: bytes | None, own: str) -> None:
    headers = shown(bearer, key)
    assert for_loci(PATH, headers).get(b"authorization") == locis
    assert own_key("anthropic", headers, "sk-ant-password") == own


def test_elsewhere_nothing_changes() -> None:
    headers = shown(MINE, "loci-key-1")
    for path in ("/v1/agents", "/v1/anthropics", "/openai/v1/models"):
        assert for_loci(path, headers) is headers
    assert own_key("zai", shown(ZAI), "") == ZAI
    assert for_loci("/v1/zai/v1/messages", shown(ZAI)) == {}


def test_who_may_pass_on_what() -> None:
    for vendor in ("anthropic", "zai"):
        place = f"/v1/{vendor}/v1"
        assert right_of("POST", f"{place}/messages") is right_of("POST", f"{place}/messages/count_tokens")
        assert right_of("POST", f"{place}/messages") is Right.WRITE_MESSAGES
        assert right_of("GET", f"{place}/models") is Right.READ_AGENT
        for method, path in (
            ("GET", "files"),
            ("POST", "messages/batches"),
            ("DELETE", "models/x"),
            ("POST", "a/../b"),
        ):
            assert right_of(method, f"{place}/{path}") is Right.WRITE
        with pytest.raises(PermissionDenied):
            check_route("POST", f"{place}/messages")


@pytest.mark.parametrize(
    ("system", "sent"),
    [
        (None, "M"),
        ("", "M"),
        ("Be brief.", "Be brief.\n\nM"),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a"}, {"type": "text", "text": "M"}]),
    ],
)
def test_memory_comes_last(system: Any, sent: Any) -> None:
    request = {"model": "m", "messages": []} | ({} if system is None else {"system": system})
    assert orjson.loads(with_memory(request, "M")) == {"model": "m", "messages": [], "system": sent}
    assert orjson.loads(with_memory(request, "")) == request


def test_what_is_refused() -> None:
    for body in (b"", b"[]", b'{"a": "\\u0000"}', b'{"a": 1, "a": 2}'):
        with pytest.raises(InvalidRequest):
            request_of(body)
    with pytest.raises(InvalidRequest, match="system"):
        with_memory({"system": 1}, "M")


def test_what_is_kept_of_an_exchange() -> None:
    blocks = [{"type": "text", "text": "and you?"}, {"type": "image", "source": {}}]
    said = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "x"}]
    kept = exchange({"messages": [*said, {"role": "user", "content": blocks}]}, "Fine.")
    assert [part.text for one in kept for part in one.content] == ["and you?", "Fine."]
    returns = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
    assert [one.content[0].text for one in exchange({"messages": [*said, returns]}, "Done.")] == ["Done."]
    for odd in ({}, {"messages": 1}, {"messages": [1]}, {"messages": [{"role": "user", "content": 1}]}):
        assert exchange(odd, "") == []
