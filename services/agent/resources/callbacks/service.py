"""Callbacks: who asked for one is told by a POST when a run has ended, at least once.

The body is JSON, the same for each attempt. The header X-Loci-Signature is `t=<seconds since 1970>,v1=<hexadecimal
HMAC-SHA256 over "<t>.<body>">` with the tenant's secret; X-Loci-Run-Id names the run, by which a receiver notices a
second delivery. Any 2xx counts as received; a redirect does not, and is not followed.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from services.agent.resources.callbacks.ports import CallbackLog, Poster, PostFailed
from services.agent.resources.outbox.ports import OutboxEntry
from services.common.errors import Unavailable
from services.common.ids import to_public
from services.common.purge import DEFAULT_ORGANIZATION

KIND = "callback"
MOST_ATTEMPTS = 8
SIGNATURE_HEADER = "X-Loci-Signature"
RUN_HEADER = "X-Loci-Run-Id"


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Delivers orders of callbacks."""

    poster: Poster
    log: CallbackLog
    # The server's; see `secret_of`.
    secret: bytes
    now: Callable[[], float] = time.time

    async def deliver(self, order: OutboxEntry) -> bool:
        """Posts once. True when it was received, or given up. Raises Unavailable: try again."""
        body = body_of(order.subject_id, order.payload)
        status_code, problem = await self._post(order, body)
        await self.log.note(order.organization_id, order.subject_id, status_code, problem)
        if problem is not None and order.attempts < MOST_ATTEMPTS:
            raise Unavailable(problem)
        return True

    async def _post(self, order: OutboxEntry, body: bytes) -> tuple[int | None, str | None]:
        """Returns the status of the answer, and what is wrong."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "loci",
            SIGNATURE_HEADER: signature(secret_of(self.secret, order.organization_id), body, int(self.now())),
            RUN_HEADER: to_public("run", order.subject_id),
        }
        try:
            status_code = await self.poster.post(order.payload["url"], body, headers)
        except PostFailed as problem:
            return None, str(problem)
        return status_code, None if 200 <= status_code < 300 else f"the callback was answered with {status_code}"


def body_of(run_id: UUID, payload: Mapping[str, Any]) -> bytes:
    """Returns the body of a callback; `payload` is as migration 0005 writes it."""
    agent_id, conversation_id, error = payload["agent_id"], payload["conversation_id"], payload["error"]
    body = {
        "run_id": to_public("run", run_id),
        "agent_id": f"agent-{agent_id}",
        "conversation_id": None if conversation_id == agent_id else f"conv-{conversation_id}",
        "status": payload["status"],
        "stop_reason": payload["stop_reason"],
        "completed_at": _time(payload["completed_at"]),
        "usage": _usage(payload["usage"]),
        "metadata": None if error is None else {"error": error_of(error)},
    }
    return orjson.dumps(body if error is None else body | {"error": error_of(error)})


def _time(stored: str | None) -> str | None:
    """Returns a time of SQL's JSON in the form of REST. SQL leaves out zeros at the end and uses the session's zone."""
    return None if stored is None else datetime.fromisoformat(stored).astimezone(UTC).isoformat()


def error_of(failure: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a stored failure as clients are told it."""
    return {name: failure.get(name) or None for name in ("error_type", "message", "detail", "reason")}


def secret_of(secret: bytes, organization_id: UUID) -> bytes:
    """Returns the secret of one tenant, from the server's.

    The default tenant, whose admins are the operator, has the server's own. Nobody else knows it: who does could sign
    for every tenant.
    """
    if organization_id == DEFAULT_ORGANIZATION:
        return secret
    derived = hmac.new(secret, b"loci callbacks of " + organization_id.bytes, hashlib.sha256).digest()
    return b"whsec_" + base64.urlsafe_b64encode(derived).rstrip(b"=")


def signature(secret: bytes, body: bytes, seconds: int) -> str:
    """Returns the value of the header X-Loci-Signature."""
    digest = hmac.new(secret, b"%d." % seconds + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def _usage(stored: Mapping[str, int]) -> dict[str, int | None]:
    prompt, completion = stored.get("prompt_tokens", 0), stored.get("completion_tokens", 0)
    details = ("cached_input_tokens", "cache_write_tokens", "reasoning_tokens", "context_tokens")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "step_count": stored.get("step_count", 0),
    } | {name: stored.get(name) for name in details}
