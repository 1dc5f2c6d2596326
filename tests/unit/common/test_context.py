"""Call contexts: signing, verifying, caching, and what is current."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loci.common.v1 import context_pb2
from services.common import context as module
from services.common.context import (
    CallContext,
    Signer,
    Verifier,
    current,
    current_or_none,
    current_token,
    enter_call,
    run_independent,
    time_remaining,
    use_context,
)
from services.common.core.ceiling import ceiling
from services.common.errors import Unauthenticated
from services.common.keys import key_id

KEY = Ed25519PrivateKey.generate()
KEY_ID = key_id(KEY.public_key())
FULL = CallContext(
    organization_id=UUID(int=1),
    user_id=UUID(int=2),
    role="admin",
    audience=("agent", "memory"),
    run_id=UUID(int=3),
    ancestors=(UUID(int=4), UUID(int=5)),
    deadline=1_800_000_000.25,
    ceiling=ceiling("client", {"agent-b": frozenset({"write_messages", "read_messages"}), "agent-a": frozenset()}),
)
PLAIN = CallContext(UUID(int=1), UUID(int=2), "user", ("memory",))


def signer() -> Signer:
    return Signer(KEY, KEY_ID)


def verifier() -> Verifier:
    return Verifier({KEY_ID: KEY.public_key()})


def refused(token: bytes, audience: str = "memory", by: Verifier | None = None) -> str:
    with pytest.raises(Unauthenticated) as caught:
        (by or verifier()).verify(token, audience)
    return caught.value.reason


@pytest.mark.parametrize("context", [FULL, PLAIN])
def test_what_was_signed_is_what_is_verified(context: CallContext) -> None:
    signed = signer().signed(context)
    verified = verifier().verify(signed.token, "memory")
    assert verified == context
    assert verified.token == signed.token
    assert verified.expires_at == pytest.approx(time.time() + 300, abs=60)
    assert verified.expires_at == pytest.approx(signed.expires_at, abs=1e-3)


def test_a_token_serves_its_audience_only() -> None:
    token = signer().sign(PLAIN)
    with pytest.raises(Unauthenticated) as caught:
        verifier().verify(token, "tool_runner")
    assert caught.value.reason == "CONTEXT_WRONG_AUDIENCE"
    assert caught.value.metadata == {"audience": "tool_runner"}
    assert refused(signer().sign(replace(PLAIN, audience=()))) == "CONTEXT_WRONG_AUDIENCE"


def test_forgeries_are_refused() -> None:
    token = signer().sign(PLAIN)
    other = Ed25519PrivateKey.generate()
    signed = context_pb2.SignedCallContext.FromString(token)
    richer = context_pb2.CallContext.FromString(signed.context)
    richer.role = "admin"
    changed = context_pb2.SignedCallContext(
        context=richer.SerializeToString(), key_id=signed.key_id, signature=signed.signature
    )
    bad_body = context_pb2.SignedCallContext(context=b"\xff", key_id=KEY_ID, signature=KEY.sign(b"\xff"))
    empty_body = context_pb2.SignedCallContext(key_id=KEY_ID, signature=KEY.sign(b""))
    for forged in (
        b"",
        b"\xff\xff",
        token[:-1],
        changed.SerializeToString(),
        Signer(other, KEY_ID).sign(PLAIN),
        Signer(other, "unknown").sign(PLAIN),
        bad_body.SerializeToString(),
        empty_body.SerializeToString(),
    ):
        assert refused(forged) == "CONTEXT_INVALID"


def test_a_token_expires_also_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start)
    token, checker = signer().sign(PLAIN), verifier()
    checker.verify(token, "memory")
    monkeypatch.setattr(time, "time", lambda: start + 299)
    checker.verify(token, "memory")
    monkeypatch.setattr(time, "time", lambda: start + 301)
    assert refused(token, by=checker) == "CONTEXT_EXPIRED"
    assert refused(token, by=checker) == "CONTEXT_EXPIRED"
    assert refused(token) == "CONTEXT_EXPIRED"


def test_a_token_may_live_longer_and_is_not_shared_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    maker, checker, start = signer(), verifier(), time.time()
    short, long = maker.sign(PLAIN), maker.signed(PLAIN, lifetime=3_900).token
    monkeypatch.setattr(time, "time", lambda: start + 3_800)
    assert checker.verify(long, "memory") == PLAIN
    assert refused(short) == "CONTEXT_EXPIRED"


def test_a_short_lifetime_never_hands_out_an_expired_token(monkeypatch: pytest.MonkeyPatch) -> None:
    maker, start = signer(), time.time()
    first = maker.signed(PLAIN, lifetime=10).token
    monkeypatch.setattr(time, "time", lambda: start + 6)
    assert maker.signed(PLAIN, lifetime=10).token != first


def test_a_signature_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checker, token = verifier(), signer().sign(PLAIN)
    first = checker.verify(token, "memory")
    monkeypatch.setattr(checker, "_check", None)
    assert checker.verify(token, "memory") is first


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_TOKENS", 3)
    maker, checker = signer(), verifier()
    for number in range(6):
        checker.verify(maker.sign(replace(PLAIN, run_id=UUID(int=number))), "memory")
    assert len(checker._verified) == 3
    assert len(maker._recent) == 3


def test_equal_contexts_share_a_token_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    maker, start = signer(), time.time()
    token = maker.sign(PLAIN)
    assert maker.sign(replace(PLAIN, token=b"old", expires_at=1.0)) == token
    assert maker.sign(replace(PLAIN, role="admin")) != token
    monkeypatch.setattr(time, "time", lambda: start + 61)
    later = maker.signed(PLAIN)
    assert later.token != token
    assert later.expires_at == pytest.approx(start + 361)


def test_there_is_no_context_outside_of_a_call() -> None:
    assert current_or_none() is None
    assert current_token() == b""
    assert time_remaining() is None
    with pytest.raises(Unauthenticated) as caught:
        current()
    assert caught.value.reason == "CONTEXT_MISSING"


async def test_tasks_inherit_what_was_current_when_they_were_made() -> None:
    async def see() -> CallContext | None:
        await asyncio.sleep(0)
        return current_or_none()

    with use_context(PLAIN):
        inner = asyncio.create_task(see())
        with use_context(FULL):
            assert current() is FULL
        assert current() is PLAIN
    outer = asyncio.create_task(see())
    assert await inner is PLAIN
    assert await outer is None


async def test_a_call_is_bounded_by_its_deadline_and_its_chains() -> None:
    async def seen(context: CallContext, seconds: float | None) -> tuple[object, object]:
        enter_call(context, seconds)
        served = time_remaining()
        with use_context(context):
            return served, time_remaining()

    soon = replace(PLAIN, deadline=time.time() + 600)
    assert await asyncio.create_task(seen(PLAIN, None)) == (None, None)
    assert await asyncio.create_task(seen(PLAIN, 900)) == (pytest.approx(900, abs=60), None)
    assert await asyncio.create_task(seen(soon, 900)) == (pytest.approx(600, abs=60), pytest.approx(600, abs=60))
    assert await asyncio.create_task(seen(soon, 300)) == (pytest.approx(300, abs=60), pytest.approx(600, abs=60))
    assert await asyncio.create_task(seen(replace(PLAIN, deadline=1.0), 2)) == (0.0, 0.0)


async def test_a_generator_may_be_closed_by_another_task() -> None:
    async def numbers() -> AsyncGenerator[int]:
        with use_context(PLAIN):
            yield 1
            yield 2

    generator = numbers()

    async def begin() -> int:
        return await anext(generator)

    assert await asyncio.create_task(begin()) == 1
    await generator.aclose()
    assert current_or_none() is None


def test_with_a_signer_the_token_is_made_and_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.time()
    with use_context(PLAIN, signer=signer()):
        first = current_token()
        assert verifier().verify(first, "memory") == PLAIN
        assert current_token() == first
        monkeypatch.setattr(time, "time", lambda: start + 230)
        assert current_token() == first
        monkeypatch.setattr(time, "time", lambda: start + 241)
        second = current_token()
        assert second != first
        assert current().token == second
        assert verifier().verify(second, "memory") == PLAIN


def test_runs_of_one_caller_share_a_token_where_the_run_is_of_no_interest() -> None:
    signing, shared_tokens, own_tokens = signer(), set(), set()
    for number in (1, 2):
        run = replace(PLAIN, run_id=UUID(int=number), ancestors=(UUID(int=9),))
        with use_context(run, signer=signing):
            with run_independent():
                shared_tokens.add(current_token())
            own_tokens.add(current_token())
            assert current().run_id == run.run_id
    (token,) = shared_tokens
    assert verifier().verify(token, "memory") == PLAIN
    assert len(own_tokens) == 2


def test_a_token_that_came_with_a_call_is_passed_on_as_it_is() -> None:
    signed = signer().signed(FULL)
    with use_context(signed), run_independent():
        assert current() == signed
        assert current_token() == signed.token
    with run_independent():
        assert current_or_none() is None
