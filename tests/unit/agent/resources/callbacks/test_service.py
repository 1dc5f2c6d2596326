"""What is told when a run has ended, how it is signed, and when it is given up."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.agent.resources.callbacks.ports import PostFailed
from services.agent.resources.callbacks.service import MOST_ATTEMPTS, Callbacks, body_of, secret_of, signature
from services.agent.resources.outbox.ports import OutboxEntry
from services.agent.resources.outbox.service import pause
from services.agent.settings import CallbackSettings, webhook_secret
from services.common.errors import Unavailable
from services.common.keys import new_private_key
from services.common.purge import DEFAULT_ORGANIZATION
from services.common.settings import Env

TENANT, RUN, AGENT, CONVERSATION = (UUID(int=number) for number in range(1, 5))
PAYLOAD: dict[str, Any] = {
    "user_id": str(TENANT),
    "url": "https://example.com/hook",
    "agent_id": str(AGENT),
    "conversation_id": str(AGENT),
    "status": "completed",
    "stop_reason": "end_turn",
    "completed_at": "2026-11-21T09:30:00.5+00:00",
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cached_input_tokens": 8, "step_count": 1},
    "error": None,
}


@dataclass
class Receiver:
    """A poster and a log in one. `answers` are statuses, or None for none."""

    answers: list[int | None]
    posted: list[tuple[str, bytes, Mapping[str, str]]] = field(default_factory=list)
    noted: list[tuple[int | None, str | None]] = field(default_factory=list)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        self.posted.append((url, body, headers))
        answer = self.answers.pop(0)
        if answer is None:
            raise PostFailed("nobody is there")
        return answer

    async def note(self, organization_id: UUID, run_id: UUID, status_code: int | None, error: str | None) -> None:
        assert (organization_id, run_id) == (TENANT, RUN)
        self.noted.append((status_code, error))


def order(attempts: int = 1) -> OutboxEntry:
    """An order, tried for the `attempts`th time."""
    return OutboxEntry(TENANT, UUID(int=9), "callback", RUN, attempts, PAYLOAD)


def test_the_body() -> None:
    assert orjson.loads(body_of(RUN, PAYLOAD)) == {
        "run_id": f"run-{RUN}",
        "agent_id": f"agent-{AGENT}",
        "conversation_id": None,
        "status": "completed",
        "stop_reason": "end_turn",
        "completed_at": "2026-11-21T09:30:00.500000+00:00",
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 12,
            "step_count": 1,
            "cached_input_tokens": 8,
            "cache_write_tokens": None,
            "reasoning_tokens": None,
            "context_tokens": None,
        },
        "metadata": None,
    }


def test_the_body_of_a_failed_run_in_a_conversation() -> None:
    error = {"stop_reason": "llm_api_error", "error_type": "llm_error", "message": "Ask again.", "detail": ""}
    payload = PAYLOAD | {"conversation_id": str(CONVERSATION), "status": "failed", "usage": {}, "error": error}
    body = orjson.loads(body_of(RUN, payload))
    told = {"error_type": "llm_error", "message": "Ask again.", "detail": None, "reason": None}
    assert (body["conversation_id"], body["error"]) == (f"conv-{CONVERSATION}", told)
    assert (body["metadata"], body["usage"]["total_tokens"]) == ({"error": told}, 0)


def test_the_signature_is_an_hmac_over_time_and_body() -> None:
    digest = hmac.new(b"whsec_1", b'1764590400.{"a":1}', hashlib.sha256).hexdigest()
    assert signature(b"whsec_1", b'{"a":1}', 1_764_590_400) == f"t=1764590400,v1={digest}"


def test_who_knows_the_secret_of_one_tenant_signs_for_no_other() -> None:
    """Attack: until now all tenants checked callbacks with one secret, so that each could forge those of the others."""
    default, mine, theirs = (secret_of(b"whsec_1", tenant) for tenant in (DEFAULT_ORGANIZATION, TENANT, AGENT))
    assert len({default, mine, theirs}) == 3
    # That of the operator stays what it was.
    assert default == b"whsec_1"
    assert mine.startswith(b"whsec_")
    assert secret_of(b"whsec_2", TENANT) != mine
    assert secret_of(mine, AGENT) != theirs


async def test_a_callback_that_is_received() -> None:
    receiver = Receiver([204])
    assert await Callbacks(receiver, receiver, b"whsec_1", lambda: 12.9).deliver(order())
    ((url, body, headers),) = receiver.posted
    assert (url, body) == ("https://example.com/hook", body_of(RUN, PAYLOAD))
    assert headers["X-Loci-Run-Id"] == f"run-{RUN}"
    assert headers["X-Loci-Signature"] == signature(secret_of(b"whsec_1", TENANT), body, 12)
    assert receiver.noted == [(204, None)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (500, "the callback was answered with 500"),
        (302, "the callback was answered with 302"),
        (None, "nobody is there"),
    ],
)
async def test_a_callback_that_is_not_received_is_tried_again_until_it_is_given_up(
    answer: int | None, why: str
) -> None:
    receiver = Receiver([answer] * MOST_ATTEMPTS)
    callbacks = Callbacks(receiver, receiver, b"whsec_1")
    for attempt in range(1, MOST_ATTEMPTS):
        with pytest.raises(Unavailable, match=why):
            await callbacks.deliver(order(attempt))
    assert await callbacks.deliver(order(MOST_ATTEMPTS))
    assert receiver.noted == [(answer, why)] * MOST_ATTEMPTS


def test_pauses_between_attempts() -> None:
    assert [pause(attempt) for attempt in range(1, MOST_ATTEMPTS + 1)] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert pause(1_000) == 300


def test_the_secret_is_given_or_follows_from_the_signing_key() -> None:
    key = new_private_key()
    derived = webhook_secret(Env({"LOCI_CONTEXT_SIGNING_KEY": key}))
    assert derived.startswith("whsec_")
    assert len(derived) == 49
    assert webhook_secret(Env({"LOCI_CONTEXT_SIGNING_KEY": key})) == derived
    assert webhook_secret(Env({"LOCI_CONTEXT_SIGNING_KEY": new_private_key()})) != derived
    given = Env({"LOCI_WEBHOOK_SECRET": "hush", "LOCI_ALLOW_PRIVATE_URLS": "1"})
    assert CallbackSettings.read(given) == CallbackSettings(b"hush", allow_private=True)
