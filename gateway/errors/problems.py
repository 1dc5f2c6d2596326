"""Failures as answers: status, headers, and the body that the reference's clients read. Pure.

Bodies are of three kinds: `{"detail": text}`; for a model's failure `{"error": {"type", "message", "detail"}}`; and for
a request that is wrong in itself (422) `{"detail": repr of a list, as text, "trace_id", "examples"?}`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.responses import Response

from gateway.errors.invalid import EXAMPLE_UUID, InvalidRequest, outline
from gateway.errors.table import BY_CODE, BY_ERROR_TYPE, BY_REASON, TOLD_IN_STREAM, Rule
from gateway.rest.responses import json_response
from loci.agent.v1 import message_service_pb2
from services.common import telemetry
from services.common.errors import LociError

UNKNOWN_ERROR = "An unknown error occurred"


TRACE_HEADER = "x-trace-id"


_MESSAGE_ID = re.compile(r"message-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Problem:
    """An answer that is an error. What follows the headers is for the bodies of other dialects."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    # The service's own sentence; empty: the body's.
    message: str = ""
    # ErrorInfo.reason; empty for what was refused before a route saw it.
    reason: str = ""
    # Where in the request it is.
    loc: Sequence[Any] = ()
    # The agent that is not there, where the request names it.
    name: str = ""

    @property
    def sentence(self) -> str:
        """The failure in one sentence."""
        return self.message or str(self.body.get("detail", UNKNOWN_ERROR))

    def response(self) -> Response:
        """Returns the response, with the trace id in `x-trace-id`, by which the logs of every service are found."""
        trace_id = telemetry.current_trace_id()
        headers = {**self.headers, TRACE_HEADER: trace_id} if trace_id else dict(self.headers)
        return json_response(self.body, status=self.status, headers=headers)


def problem_of(error: LociError) -> Problem:
    """Returns the answer to a call that failed."""
    rule = BY_REASON.get(error.reason) or Rule(BY_CODE.get(error.code, 500))
    problem = Problem(rule.status, {}, message=error.message, reason=error.reason, name=error.metadata.get("name", ""))
    if rule.status == 422:
        loc, kind = (error.loc, error.kind) if isinstance(error, InvalidRequest) else ((), "value_error")
        prefix = error.metadata.get("prefix") if error.reason == "INVALID_ID" else None
        if error.reason == "INVALID_ID":
            kind = "string_pattern_mismatch"  # the reference's ids are patterns
        errors = [{"type": kind, "loc": loc, "msg": error.message}]
        return replace(problem, body=_invalid_body(errors, prefix), loc=loc)
    if rule.error_type:
        return replace(problem, body=_model_error(rule.error_type, error.message, error.metadata.get("detail", "")))
    if rule.status == 500:
        return replace(problem, body={"detail": UNKNOWN_ERROR}, message=UNKNOWN_ERROR)
    return replace(problem, body=_body(rule, error), headers=_headers(rule, error))


def _headers(rule: Rule, error: LociError) -> Mapping[str, str]:
    headers = {"x-should-retry": "false"} if rule.final else {}
    if error.reason in ("REQUESTS_RATE_LIMITED", "GUESSES_RATE_LIMITED"):
        # Where the client stands, in headers' names.
        headers |= error.metadata
    if rule.status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def _body(rule: Rule, error: LociError) -> Mapping[str, Any]:
    body: dict[str, Any] = {"detail": rule.detail or _sentence(rule, error.message)}
    if error.reason == "APPROVAL_PENDING":
        body = _pending(body["detail"], error.metadata.get("pending_request_id"))
    if "run_id" in error.metadata:
        body["run_id"] = error.metadata["run_id"]
    return body


def problem_of_turn(error: message_service_pb2.TurnError) -> Problem:
    """Returns the answer to a blocking request whose turn failed. What the turn had stored stays.

    A repeated request is answered with this stored result, so the SDK is told that repeating is of no use.
    """
    rule = BY_REASON.get(error.reason) or BY_ERROR_TYPE.get(error.error_type) or Rule(500)
    text = _sentence(rule, error.message) or UNKNOWN_ERROR
    if rule.error_type:
        body = _model_error(rule.error_type, error.message, error.detail)
    elif error.reason == "APPROVAL_PENDING":
        body = _pending(text, _message_id(error))
    else:
        body = {"detail": text}
    message, reason = error.message or UNKNOWN_ERROR, error.reason or error.error_type
    return Problem(rule.status, body, {"x-should-retry": "false"}, message, reason)


def turn_error(error: LociError) -> message_service_pb2.TurnError:
    """Returns a request that was refused, as the error of a turn: for those in TOLD_IN_STREAM, when the answer is a
    stream.
    """
    return message_service_pb2.TurnError(
        error_type="internal_error",
        message=error.message,
        detail=error.metadata.get("pending_request_id", ""),
        reason=error.reason,
    )


def in_stream(error: message_service_pb2.TurnError) -> tuple[str, str]:
    """Returns `message` and `detail` of the error_message that tells of `error`.

    Clients of the reference find the words they know a failure by in `detail`, and only where that is a text.
    """
    if error.reason not in TOLD_IN_STREAM:
        return error.message, error.detail
    text = _sentence(BY_REASON[error.reason], error.message)
    pending = _message_id(error)
    return text, text if pending is None or pending in text else f"{text} (pending_request_id={pending})"


def invalid(errors: Sequence[Mapping[str, Any]], prefix: str | None = None) -> Problem:
    """Returns the answer (422) to a request that pydantic refuses. What the client sent is echoed, shortened.

    `prefix`: that of the id which is malformed.
    """
    first = errors[0] if errors else {}
    loc = first.get("loc", ())
    message = str(first.get("msg", "the body is not valid"))
    param = param_of(loc)
    message = f"{param}: {message}" if param else message
    return Problem(422, _invalid_body(errors, prefix), message=message, reason="INVALID_REQUEST", loc=loc)


def param_of(loc: Sequence[Any]) -> str | None:
    """Returns the place in a request as a path with dots; None for the request as a whole."""
    return ".".join(str(step) for step in loc if step != "body") or None


def _invalid_body(errors: Sequence[Mapping[str, Any]], prefix: str | None) -> Mapping[str, Any]:
    body: dict[str, Any] = {"detail": outline(errors), "trace_id": telemetry.current_trace_id()}
    return body | {"examples": [f"{prefix}-{EXAMPLE_UUID}"]} if prefix else body


def _sentence(rule: Rule, message: str) -> str:
    if rule.says.lower() in message.lower():
        return message
    return f"{rule.says}: {message}"


def _pending(text: str, request_id: str | None) -> dict[str, Any]:
    detail = {"code": "PENDING_APPROVAL", "message": text, "pending_request_id": request_id or None}
    return {"detail": detail}


def _message_id(error: message_service_pb2.TurnError) -> str | None:
    """Returns the message that waits for an answer, which a turn's error names in its texts."""
    match = _MESSAGE_ID.search(error.detail) or _MESSAGE_ID.search(error.message)
    return match[0] if match else None


def _model_error(error_type: str, message: str, detail: str) -> dict[str, Any]:
    return {"error": {"type": error_type, "message": message, "detail": detail or None}}
