"""Failures as HTTP: one table from gRPC status and ErrorInfo.reason to status and body, in the reference's wordings.

Bodies are of three kinds: `{"detail": text}`; for a model's failure `{"error": {"type", "message", "detail"}}`; and for
a request that is wrong in itself (422) `{"detail": repr of a list, as text, "trace_id", "examples"?}`.
"""

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from starlette.responses import Response

from gateway.rest.responses import json_response
from loci.agent.v1 import message_service_pb2
from services.common import telemetry
from services.common.errors import InvalidArgument, LociError

UNKNOWN_ERROR = "An unknown error occurred"
TRACE_HEADER = "x-trace-id"
EXAMPLE_UUID = "123e4567-e89b-42d3-8456-426614174000"
# Fields that are not shown back.
_SECRETS = {"api_key", "access_key", "secrets", "tool_exec_environment_variables", "environment", "value"}
_SECRETS |= {"auth_token", "custom_headers", "env", "env_vars", "config", "stdio_config"}
_MASK = "***"
# What clients sent is shown back in outline: a body may be 30 MB.
_ECHO = reprlib.Repr()
_ECHO.maxlevel, _ECHO.maxstring = 2, 200

# Statuses of gRPC where no reason says otherwise.
_BY_CODE: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.UNAUTHENTICATED: 500,  # our own token was refused: not the caller's fault
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.CANCELLED: 499,
}


@dataclass(frozen=True)
class Rule:
    """How one reason is told."""

    status: int
    # The `error.type` of a model's failure; empty: the body is `{"detail": ...}`.
    error_type: str = ""
    # Replaces the service's sentence where clients know the reference's.
    detail: str = ""
    # Whether the SDK, which repeats every 409, 429 and 5xx twice, is told not to: when the answer would be the same.
    final: bool = False
    # Words by which clients know the failure, in whatever sentence: put before one that lacks them.
    says: str = ""


_BY_REASON: Mapping[str, Rule] = {
    "AGENT_NOT_FOUND": Rule(404, detail="Agent not found"),
    "AGENT_INVALID": Rule(422),
    "API_KEY_INVALID": Rule(422),
    "APPROVAL_PENDING": Rule(409, final=True, says="waiting for approval"),
    "ARCHIVE_ID_TAKEN": Rule(409, final=True),
    "ARCHIVE_INVALID": Rule(422),
    "BLOCK_INVALID": Rule(422),
    "BLOCK_LABEL_TAKEN": Rule(409, final=True),
    "BLOCK_NOTHING_TO_REDO": Rule(409, final=True),
    "BLOCK_NOTHING_TO_UNDO": Rule(409, final=True),
    "BLOCK_VERSION_CONFLICT": Rule(409, final=True),
    "BUDGET_INVALID": Rule(422),
    # Rejecting is what the operator or the client asked for; who wants to wait says so, and is not held to seconds.
    "CALLBACK_URL_INVALID": Rule(422),
    "CLIENT_TOKEN_INVALID": Rule(422),
    "CONVERSATION_BUSY": Rule(409, final=True, says="is currently being processed"),
    "CONVERSATION_INVALID": Rule(422),
    "CREDENTIAL_INVALID": Rule(401, detail="Unauthorized"),
    "DEVICE_INVALID": Rule(422),
    # Until the device comes back, the answer is the same.
    "DEVICE_OFFLINE": Rule(409, final=True),
    # Trying again at once does not help: it runs for minutes, or is over.
    "EMBEDDING_CHANGE_FINISHED": Rule(409, final=True),
    "EMBEDDING_CHANGE_RUNNING": Rule(409, final=True),
    "ENVIRONMENT_INVALID": Rule(422),
    "EXECUTION_FILE_INVALID": Rule(422),
    "FEEDBACK_INVALID": Rule(422),
    "FILE_INVALID": Rule(422),
    "FILE_NAME_TAKEN": Rule(409, final=True),
    "FILE_TOO_LARGE": Rule(413),
    "FILE_TYPE_UNSUPPORTED": Rule(415),
    "FOLDER_INVALID": Rule(422),
    "FOLDER_NAME_TAKEN": Rule(409, final=True),
    "FORWARD_NOT_PERMITTED": Rule(403),
    "GROUP_INVALID": Rule(422),
    "IDENTITY_INVALID": Rule(422),
    "IDENTITY_KEY_TAKEN": Rule(409, final=True),
    "IMPORT_EXISTS": Rule(409, final=True),
    "IMPORT_INVALID": Rule(400),
    "INVALID_ID": Rule(422),
    "INVALID_REQUEST": Rule(422),
    "LLM_AUTHENTICATION": Rule(401, "llm_authentication"),
    "LLM_BAD_REQUEST": Rule(400, "llm_bad_request"),
    "LLM_BUDGET_EXHAUSTED": Rule(402, "llm_insufficient_credits"),
    "LLM_CIRCUIT_OPEN": Rule(503, "llm_error"),
    "LLM_CONNECTION": Rule(502, "llm_error"),
    "LLM_CONTEXT_OVERFLOW": Rule(400),
    "LLM_EMPTY_RESPONSE": Rule(502, "llm_empty_response"),
    "LLM_IMAGES_UNSUPPORTED": Rule(400, "llm_bad_request"),
    "LLM_NOT_AN_API": Rule(502, "llm_error"),
    "LLM_QUEUE_FULL": Rule(503, "llm_error"),
    "LLM_QUOTA_EXHAUSTED": Rule(402, "llm_insufficient_credits"),
    "LLM_RATE_LIMIT": Rule(429, "llm_rate_limit"),
    "LLM_REPLAY_MISSING": Rule(502, "llm_error"),
    "LLM_REQUEST_TOO_LARGE": Rule(400, "llm_bad_request"),
    "LLM_SCHEMA_REFUSED": Rule(400, "llm_bad_request"),
    "LLM_SDK_MISSING": Rule(502, "llm_error"),
    "LLM_SERVER_ERROR": Rule(502, "llm_error"),
    "LLM_STREAM_INCOMPLETE": Rule(502, "llm_error"),
    "LLM_STREAM_MALFORMED": Rule(502, "llm_error"),
    "LLM_TIMEOUT": Rule(504, "llm_timeout"),
    "LLM_TOOLS_UNSUPPORTED": Rule(400, "llm_bad_request"),
    "MCP_FAILED": Rule(502, "mcp_error"),
    "MCP_OAUTH_REQUIRED": Rule(502, "mcp_oauth_required"),
    "MCP_SERVER_NAME_TAKEN": Rule(409, final=True),
    "MCP_TIMEOUT": Rule(408, final=True),
    "MCP_UNREACHABLE": Rule(502, "mcp_connection_error"),
    "MESSAGES_EMPTY": Rule(422),
    "MESSAGE_INVALID": Rule(422),
    "MESSAGE_QUERY_INVALID": Rule(422),
    "MODEL_NOT_FOUND": Rule(404),
    "MODEL_WINDOW_UNKNOWN": Rule(400),
    "NOTHING_TO_CANCEL": Rule(409, final=True),
    "NOT_YET": Rule(501, final=True),
    "NO_PENDING_APPROVAL": Rule(400),
    "ORGANIZATION_INVALID": Rule(422),
    "ORGANIZATION_IS_DEFAULT": Rule(409, final=True),
    "ORIGIN_NOT_ALLOWED": Rule(403),
    "PASSAGE_INVALID": Rule(422),
    "PASSWORD_REQUIRED": Rule(401, detail="Unauthorized"),
    "PROVIDER_CHANGED": Rule(409, final=True),
    "PROVIDER_INVALID": Rule(422),
    "PROVIDER_NAME_TAKEN": Rule(409, final=True),
    "PROVIDER_READ_ONLY": Rule(400),
    "RECEIPT_FILTER_INVALID": Rule(422),
    # Not the provider's limit: the SDK waits as long as it is told, and tries again.
    "REQUESTS_RATE_LIMITED": Rule(429),
    # gRPC's own, without a reason from a service: a message that is too large for it.
    "RESOURCE_EXHAUSTED": Rule(413, detail="the request, or what it asks for, is larger than 32 MiB; ask for less"),
    # Somebody has to act; meanwhile the answer is the same.
    "SANDBOX_UNAVAILABLE": Rule(503, final=True),
    "STEP_TRANSACTION_INVALID": Rule(422),
    "STREAM_EXPIRED": Rule(410),
    "TOOL_CALL_IDS_INVALID": Rule(400, says="Invalid tool call IDs"),
    "RUN_ACTIVE": Rule(409, final=True),
    "RUN_CHAIN_INVALID": Rule(409, final=True),
    "RUN_NOT_PERMITTED": Rule(403),
    "RUN_TOKEN_INVALID": Rule(401),
    "SANDBOX_CONFIG_EXISTS": Rule(409, final=True),
    "SANDBOX_CONFIG_INVALID": Rule(422),
    "TEMPLATE_INVALID": Rule(422),
    "TEMPLATE_NAME_TAKEN": Rule(409, final=True),
    "SCHEDULES_TOO_MANY": Rule(409, final=True),
    "SCHEDULE_INVALID": Rule(422),
    "TOOL_NAME_TAKEN": Rule(400),
    "USAGE_QUERY_INVALID": Rule(422),
    "USER_INVALID": Rule(422),
    "USER_IS_DEFAULT": Rule(409, final=True),
    "VARIABLE_EXISTS": Rule(409, final=True),
}

# For turns whose error came without a reason.
_BY_ERROR_TYPE: Mapping[str, Rule] = {
    "llm_timeout": _BY_REASON["LLM_TIMEOUT"],
    "llm_rate_limit": _BY_REASON["LLM_RATE_LIMIT"],
    "llm_authentication": _BY_REASON["LLM_AUTHENTICATION"],
    "llm_empty_response": _BY_REASON["LLM_EMPTY_RESPONSE"],
    "llm_bad_request": _BY_REASON["LLM_BAD_REQUEST"],
    "llm_insufficient_credits": _BY_REASON["LLM_QUOTA_EXHAUSTED"],
    "llm_error": _BY_REASON["LLM_SERVER_ERROR"],
    "context_window_overflow_in_system_prompt": Rule(400),
}
# What the reference finds out after a stream has begun. Its clients look for these there, under status 200.
TOLD_IN_STREAM = frozenset({"APPROVAL_PENDING", "NO_PENDING_APPROVAL", "TOOL_CALL_IDS_INVALID"})
_MESSAGE_ID = re.compile(r"message-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class InvalidRequest(InvalidArgument):
    """A body or parameter that the schema allows and the route does not: 422, naming the field."""

    def __init__(self, message: str, *loc: str) -> None:
        super().__init__(message, reason="INVALID_REQUEST")
        self.loc = loc


@dataclass(frozen=True)
class Problem:
    """An answer that is an error."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        """With the trace id in `x-trace-id`, by which the logs of every service are found."""
        trace_id = telemetry.current_trace_id()
        headers = {**self.headers, TRACE_HEADER: trace_id} if trace_id else dict(self.headers)
        return json_response(self.body, status=self.status, headers=headers)


def problem_of(error: LociError) -> Problem:
    """How a failed call is told."""
    rule = _BY_REASON.get(error.reason) or Rule(_BY_CODE.get(error.code, 500))
    headers = {"x-should-retry": "false"} if rule.final else {}
    if error.reason == "REQUESTS_RATE_LIMITED":
        # Where the client stands, in headers' names.
        headers |= error.metadata
    if rule.status == 401 and not rule.error_type:
        headers["www-authenticate"] = "Bearer"
    if rule.status == 422:
        loc = error.loc if isinstance(error, InvalidRequest) else ()
        prefix = error.metadata.get("prefix") if error.reason == "INVALID_ID" else None
        return invalid([{"type": error.reason.lower(), "loc": loc, "msg": error.message}], prefix)
    if rule.error_type:
        return Problem(rule.status, _model_error(rule.error_type, error.message, error.metadata.get("detail", "")))
    if rule.status == 500:
        return Problem(500, {"detail": UNKNOWN_ERROR})
    body: dict[str, Any] = {"detail": rule.detail or _sentence(rule, error.message)}
    if error.reason == "APPROVAL_PENDING":
        body = _pending(body["detail"], error.metadata.get("pending_request_id"))
    if "run_id" in error.metadata:
        body["run_id"] = error.metadata["run_id"]
    return Problem(rule.status, body, headers)


def problem_of_turn(error: message_service_pb2.TurnError) -> Problem:
    """How a blocking request is told that its turn failed. What the turn had stored stays.

    A repeated request is answered with this stored result, so the SDK is told that repeating is of no use.
    """
    rule = _BY_REASON.get(error.reason) or _BY_ERROR_TYPE.get(error.error_type) or Rule(500)
    headers = {"x-should-retry": "false"}
    if rule.error_type:
        return Problem(rule.status, _model_error(rule.error_type, error.message, error.detail), headers)
    text = _sentence(rule, error.message) or UNKNOWN_ERROR
    if error.reason == "APPROVAL_PENDING":
        return Problem(rule.status, _pending(text, _message_id(error)), headers)
    return Problem(rule.status, {"detail": text}, headers)


def turn_error(error: LociError) -> message_service_pb2.TurnError:
    """A request that was refused, as the error of a turn: for those in TOLD_IN_STREAM, when the answer is a stream."""
    return message_service_pb2.TurnError(
        error_type="internal_error",
        message=error.message,
        detail=error.metadata.get("pending_request_id", ""),
        reason=error.reason,
    )


def in_stream(error: message_service_pb2.TurnError) -> tuple[str, str]:
    """`message` and `detail` of the error_message that tells of `error`.

    Clients of the reference find the words they know a failure by in `detail`, and only where that is a text.
    """
    if error.reason not in TOLD_IN_STREAM:
        return error.message, error.detail
    text = _sentence(_BY_REASON[error.reason], error.message)
    pending = _message_id(error)
    return text, text if pending is None or pending in text else f"{text} (pending_request_id={pending})"


def invalid(errors: Sequence[Mapping[str, Any]], prefix: str | None = None) -> Problem:
    """422; `prefix`: that of the id which is malformed. What the client sent is echoed, shortened."""
    shortened = [{key: _short(key, value) for key, value in _masked(error).items()} for error in errors]
    body: dict[str, Any] = {"detail": repr(shortened), "trace_id": telemetry.current_trace_id()}
    if prefix:
        body["examples"] = [f"{prefix}-{EXAMPLE_UUID}"]
    return Problem(422, body)


def _sentence(rule: Rule, message: str) -> str:
    if rule.says.lower() in message.lower():
        return message
    return f"{rule.says}: {message}"


def _pending(text: str, request_id: str | None) -> dict[str, Any]:
    detail = {"code": "PENDING_APPROVAL", "message": text, "pending_request_id": request_id or None}
    return {"detail": detail}


def _message_id(error: message_service_pb2.TurnError) -> str | None:
    """The message that waits for an answer, which a turn's error names in its texts."""
    found = _MESSAGE_ID.search(error.detail) or _MESSAGE_ID.search(error.message)
    return found[0] if found else None


def _model_error(error_type: str, message: str, detail: str) -> dict[str, Any]:
    return {"error": {"type": error_type, "message": message, "detail": detail or None}}


def _masked(error: Mapping[str, Any]) -> dict[str, Any]:
    """Without the secrets of the body, and the link to pydantic's pages."""
    given, loc = error.get("input"), error.get("loc") or ()
    masked = {key: value for key, value in error.items() if key != "url"}
    if _SECRETS.intersection(map(str, loc)):
        masked["input"] = _MASK
    elif isinstance(given, dict | list):
        masked["input"] = _hidden(given, _ECHO.maxlevel)
    return masked


def _hidden(value: Any, levels: int) -> Any:
    """As far down as it is shown."""
    if levels < 0:
        return value
    if isinstance(value, dict):
        return {key: _MASK if key in _SECRETS else _hidden(part, levels - 1) for key, part in value.items()}
    if isinstance(value, list):
        # One more than is shown, so that the cut is.
        return [_hidden(part, levels - 1) for part in value[: _ECHO.maxlist + 1]]
    return value


def _short(key: str, value: Any) -> Any:
    if key in {"type", "loc", "msg"} or value is None or isinstance(value, bool | int | float):
        return value
    return value if isinstance(value, str) and len(value) <= _ECHO.maxstring else _ECHO.repr(value)
