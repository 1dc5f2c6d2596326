"""The errors of requests to Loci: their JSON bodies as exceptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.errors import CliError


class StreamError(CliError):
    """The base of the errors below."""


class Unreachable(StreamError):
    """The server does not answer, or no longer."""


class AmbiguousName(StreamError):
    """A name that several agents have; `agents`: (id, when it was made) of each."""

    def __init__(self, name: str, agents: Sequence[tuple[str, str]]) -> None:
        listed = ", ".join(f"{agent_id} (made {made})" for agent_id, made in agents)
        super().__init__(f"{len(agents)} agents are called {name!r}: {listed}; say which by its id")
        self.agents = tuple(agents)


class ApiError(StreamError):
    """The server refused. status: of HTTP. detail: its sentence. body: as it came."""

    def __init__(self, status: int, detail: str, body: Any) -> None:
        super().__init__(f"the server answered {status}: {detail}")
        self.status = status
        self.detail = detail
        self.body = body


class Unauthorized(ApiError):
    """401 or 403."""


class NotFound(ApiError):
    """404."""


class InvalidRequest(ApiError):
    """400 or 422."""


class RateLimited(ApiError):
    """429."""


class ConversationBusy(ApiError):
    """409: another request is being answered; `run_id` is its run, where that is known."""

    @property
    def run_id(self) -> str | None:
        """The run under way."""
        return self.body.get("run_id") if isinstance(self.body, dict) else None


class PendingApproval(ApiError):
    """409: a call waits for an answer; `request_id` is the message that asks."""

    @property
    def request_id(self) -> str | None:
        """The message that asks for the answer."""
        request_id: str | None = self.body["detail"].get("pending_request_id")
        return request_id


class ModelFailed(ApiError):
    """The model's provider failed; `kind` as `llm_rate_limit`."""

    @property
    def kind(self) -> str:
        """The kind of the failure."""
        return str(self.body["error"].get("type"))


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    422: InvalidRequest,
    429: RateLimited,
}


def refusal(status: int, body: Any, text: str) -> ApiError:
    """Returns the exception for an answer; `body`: its JSON, None where it has none; `text`: its text."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return ModelFailed(status, str(body["error"].get("message")), body)
    detail = body.get("detail") if isinstance(body, dict) else None
    if isinstance(detail, dict) and detail.get("code") == "PENDING_APPROVAL":
        return PendingApproval(status, str(detail.get("message")), body)
    if isinstance(detail, list):
        detail = "; ".join(str(entry.get("msg")) if isinstance(entry, dict) else str(entry) for entry in detail)
    sentence = detail if isinstance(detail, str) else text[:500]
    busy = status == 409 and ("run_id" in (body or ()) or "currently being processed" in sentence)
    kind = ConversationBusy if busy else _BY_STATUS.get(status, ApiError)
    return kind(status, sentence, body)
