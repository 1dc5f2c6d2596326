"""The table from gRPC to HTTP."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from gateway.errors.invalid import InvalidRequest
from gateway.errors.problems import Problem, invalid, problem_of, problem_of_turn, turn_error
from gateway.rest.not_yet import NotYet
from loci.agent.v1 import message_service_pb2
from services.common import errors
from services.common.errors import LociError

UNKNOWN = {"detail": "An unknown error occurred"}


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (errors.InvalidArgument("bad"), 400, {"detail": "bad"}),
        (errors.InvalidArgument("line 3", reason="TOOL_SOURCE_INVALID"), 400, {"detail": "line 3"}),
        (errors.NotFound("no block", reason="BLOCK_NOT_FOUND"), 404, {"detail": "no block"}),
        (errors.NotFound("x", reason="AGENT_NOT_FOUND"), 404, {"detail": "Agent not found"}),
        (errors.AlreadyExists("taken"), 409, {"detail": "taken"}),
        (errors.AlreadyExists("taken", reason="TOOL_NAME_TAKEN"), 400, {"detail": "taken"}),
        (errors.Aborted("again", reason="BLOCK_VERSION_CONFLICT"), 409, {"detail": "again"}),
        (errors.FailedPrecondition("built in", reason="TOOL_READ_ONLY"), 400, {"detail": "built in"}),
        (errors.ResourceExhausted("full", reason="CONVERSATION_LINE_FULL"), 429, {"detail": "full"}),
        (
            errors.ResourceExhausted("message larger than max"),
            413,
            {"detail": "the request, or what it asks for, is larger than 32 MiB; ask for less"},
        ),
        (errors.PermissionDenied("no"), 403, {"detail": "no"}),
        (errors.Unavailable("away"), 503, {"detail": "away"}),
        (errors.DeadlineExceeded("slow"), 504, {"detail": "slow"}),
        (errors.Unimplemented("later"), 501, {"detail": "later"}),
        (errors.Internal("secret"), 500, UNKNOWN),
        (errors.Unknown("secret"), 500, UNKNOWN),
        (errors.DataLoss("secret"), 500, UNKNOWN),
        (errors.Unauthenticated("expired", reason="CONTEXT_EXPIRED"), 500, UNKNOWN),
        (errors.Unauthenticated("x", reason="PASSWORD_REQUIRED"), 401, {"detail": "Unauthorized"}),
        (
            errors.FailedPrecondition("key refused", reason="LLM_AUTHENTICATION"),
            401,
            {"error": {"type": "llm_authentication", "message": "key refused", "detail": None}},
        ),
        (
            errors.ResourceExhausted("slow down", reason="LLM_RATE_LIMIT"),
            429,
            {"error": {"type": "llm_rate_limit", "message": "slow down", "detail": None}},
        ),
        (errors.OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW"), 400, {"detail": "too long"}),
    ],
)
def test_statuses_and_bodies(error: LociError, status: int, body: dict[str, Any]) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.body) == (status, body)


@pytest.mark.parametrize("reason", ["NOTHING_TO_CANCEL", "CONVERSATION_BUSY", "BLOCK_LABEL_TAKEN", "APPROVAL_PENDING"])
def test_a_deliberate_conflict_is_not_to_be_repeated(reason: str) -> None:
    problem = problem_of(errors.FailedPrecondition("no", reason=reason))
    assert (problem.status, problem.headers) == (409, {"x-should-retry": "false"})


def test_what_comes_later_is_not_to_be_repeated() -> None:
    problem = problem_of(NotYet("Turns of groups come later."))
    assert (problem.status, problem.body) == (501, {"detail": "Turns of groups come later."})
    assert problem.headers == {"x-should-retry": "false"}


def test_a_busy_conversation_names_its_run() -> None:
    busy = errors.Aborted("is currently being processed", reason="CONVERSATION_BUSY", metadata={"run_id": "run-1"})
    assert problem_of(busy).body == {"detail": "is currently being processed", "run_id": "run-1"}


PENDING = "message-00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("message", "metadata", "text", "request_id"),
    [
        ("not yet", {"pending_request_id": PENDING}, "waiting for approval: not yet", PENDING),
        ("it is waiting for approval", {}, "it is waiting for approval", None),
    ],
)
def test_a_call_that_waits_for_approval(
    message: str, metadata: dict[str, str], text: str, request_id: str | None
) -> None:
    detail = {"code": "PENDING_APPROVAL", "message": text, "pending_request_id": request_id}
    refused = problem_of(errors.Aborted(message, reason="APPROVAL_PENDING", metadata=metadata))
    assert (refused.status, refused.body) == (409, {"detail": detail})
    # The same from a request that waited in line.
    ended = message_service_pb2.TurnError(message=message, detail=request_id or "", reason="APPROVAL_PENDING")
    assert (problem_of_turn(ended).status, problem_of_turn(ended).body) == (409, {"detail": detail})
    assert problem_of_turn(ended).headers == refused.headers == {"x-should-retry": "false"}


@pytest.mark.parametrize(
    ("reason", "message", "detail"),
    [
        ("TOOL_CALL_IDS_INVALID", "c2 does not wait", "Invalid tool call IDs: c2 does not wait"),
        ("TOOL_CALL_IDS_INVALID", "invalid tool call ids: c2", "invalid tool call ids: c2"),
        ("NO_PENDING_APPROVAL", "nothing waits", "nothing waits"),
    ],
)
def test_answers_that_fit_no_call(reason: str, message: str, detail: str) -> None:
    problem = problem_of(errors.InvalidArgument(message, reason=reason))
    assert (problem.status, problem.body) == (400, {"detail": detail})
    ended = problem_of_turn(message_service_pb2.TurnError(message=message, reason=reason))
    assert (ended.status, ended.body) == (400, {"detail": detail})


def test_a_refusal_as_the_end_of_a_turn() -> None:
    refused = errors.Aborted("not yet", reason="APPROVAL_PENDING", metadata={"pending_request_id": PENDING})
    error = turn_error(refused)
    assert (error.reason, error.error_type, error.detail) == ("APPROVAL_PENDING", "internal_error", PENDING)


@pytest.mark.parametrize("reason", ["AGENT_INVALID", "BLOCK_INVALID", "MESSAGES_EMPTY", "PASSAGE_INVALID"])
def test_what_the_references_schemas_refuse_is_a_422(reason: str) -> None:
    problem = problem_of(errors.InvalidArgument("name: too long", reason=reason))
    assert problem.status == 422
    [only] = ast.literal_eval(problem.body["detail"])
    assert only == {"type": "value_error", "loc": (), "msg": "name: too long"}


def test_an_invalid_id_comes_with_an_example() -> None:
    error = errors.InvalidArgument("'x' is no id", reason="INVALID_ID", metadata={"prefix": "source"})
    assert problem_of(error).body["examples"] == ["source-123e4567-e89b-42d3-8456-426614174000"]


def test_a_field_that_cannot_be_had_is_named() -> None:
    problem = problem_of(InvalidRequest("`secrets`: not yet", "body", "secrets"))
    [only] = ast.literal_eval(problem.body["detail"])
    assert (problem.status, only["loc"]) == (422, ("body", "secrets"))


@pytest.mark.parametrize(
    ("loc", "given"),
    [
        (("body", "env_vars", "KEY"), ["sk-1"]),
        (("body", "source_code"), {"env_vars": {"KEY": "sk-1"}}),
        (("body",), {"variables": [{"key": "KEY", "value": "sk-1"}]}),
        (("body",), [{"api_key": "sk-1"}]),
    ],
)
def test_secrets_are_not_shown_back(loc: tuple[str, ...], given: Any) -> None:
    problem = invalid([{"type": "a", "loc": loc, "msg": "m", "input": given}])
    assert "sk-1" not in str(problem.body)


def test_what_was_sent_is_shown_in_outline() -> None:
    errors_: list[dict[str, Any]] = [
        {"type": "a", "loc": ("body",), "msg": "m", "input": "x" * 10_000, "url": "https://x"},
        {"type": "b", "loc": ("body",), "msg": "m", "input": {"deep": [[[["x" * 10_000]]]]}, "ctx": {"le": 3}},
        {"type": "c", "loc": ("query", "limit"), "msg": "m", "input": 5},
    ]
    problem = invalid(errors_)
    detail = ast.literal_eval(problem.body["detail"])
    assert len(problem.body["detail"]) < 1_500
    assert "url" not in detail[0]
    assert detail[2]["input"] == 5


@pytest.mark.parametrize(
    ("fields", "status", "error_type"),
    [
        ({"reason": "LLM_AUTHENTICATION"}, 401, "llm_authentication"),
        ({"error_type": "llm_timeout"}, 504, "llm_timeout"),
        ({"error_type": "llm_error", "reason": "LLM_SOMETHING_NEW"}, 502, "llm_error"),
        ({"reason": "LLM_EMPTY_RESPONSE"}, 502, "llm_empty_response"),
        ({"reason": "LLM_CONTEXT_OVERFLOW", "error_type": "llm_bad_request"}, 400, None),
        ({"reason": "MODEL_NOT_FOUND", "error_type": "llm_not_found"}, 404, None),
        ({"error_type": "context_window_overflow_in_system_prompt"}, 400, None),
        ({"error_type": "internal_error", "reason": "RUN_DEADLINE"}, 500, None),
    ],
)
def test_a_turn_that_failed(fields: dict[str, str], status: int, error_type: str | None) -> None:
    problem = problem_of_turn(message_service_pb2.TurnError(message="say", detail="why", **fields))
    assert (problem.status, problem.headers["x-should-retry"]) == (status, "false")
    if error_type is None:
        assert problem.body == {"detail": "not found: say" if status == 404 else "say"}
    else:
        assert problem.body == {"error": {"type": error_type, "message": "say", "detail": "why"}}


def test_a_problem_outside_of_a_trace_has_no_trace_header() -> None:
    assert "x-trace-id" not in Problem(404, {"detail": "x"}).response().headers
