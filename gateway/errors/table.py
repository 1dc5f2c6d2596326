"""The HTTP status of each failure: by ErrorInfo.reason, else by gRPC status, in the reference's wordings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import grpc

# Statuses of gRPC where no reason says otherwise.
BY_CODE: Mapping[grpc.StatusCode, int] = {
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
    """The answer to failures with one reason."""

    status: int
    # The `error.type` of a model's failure; empty: the body is `{"detail": ...}`.
    error_type: str = ""
    # Replaces the service's sentence where clients know the reference's.
    detail: str = ""
    # Whether the SDK, which repeats every 409, 429 and 5xx twice, is told not to: when the answer would be the same.
    final: bool = False
    # Words by which clients know the failure, in whatever sentence: put before one that lacks them.
    says: str = ""


BY_REASON: Mapping[str, Rule] = {
    "AGENT_NOT_FOUND": Rule(404, detail="Agent not found"),
    "AGENT_INVALID": Rule(422),
    "API_KEY_INVALID": Rule(422),
    "APPROVAL_INVALID": Rule(400),
    "APPROVAL_PENDING": Rule(409, final=True, says="waiting for approval"),
    "ARCHIVE_ID_TAKEN": Rule(409, final=True),
    "ARCHIVE_INVALID": Rule(422),
    "BLOCK_INVALID": Rule(422),
    "BLOCK_LABEL_TAKEN": Rule(409, final=True),
    "BLOCK_NOTHING_TO_REDO": Rule(409, final=True),
    "BLOCK_NOTHING_TO_UNDO": Rule(409, final=True),
    "BLOCK_OVER_LIMIT": Rule(422),
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
    # Whoever names a model for vectors names it in a setting, not in a path.
    "EMBEDDING_NOT_FOUND": Rule(400),
    "ENVIRONMENT_INVALID": Rule(422),
    "EXECUTION_FILE_INVALID": Rule(422),
    "FEEDBACK_INVALID": Rule(422),
    "FILE_INVALID": Rule(422),
    "FILE_NAME_TAKEN": Rule(400, says="already exists"),
    "FILE_TOO_LARGE": Rule(413),
    "FILE_TYPE_UNSUPPORTED": Rule(415),
    "FOLDER_INVALID": Rule(422),
    "FOLDER_NAME_TAKEN": Rule(409, final=True),
    "FORWARD_NOT_PERMITTED": Rule(403),
    "GROUP_INVALID": Rule(422),
    "GROUP_CANNOT_SPEAK": Rule(409, final=True),
    "FIELD_INVALID": Rule(422),
    "GUESSES_RATE_LIMITED": Rule(429),
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
    "MODEL_HANDLE_INVALID": Rule(400),
    "MODEL_NOT_FOUND": Rule(404, says="not found"),
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
BY_ERROR_TYPE: Mapping[str, Rule] = {
    "llm_timeout": BY_REASON["LLM_TIMEOUT"],
    "llm_rate_limit": BY_REASON["LLM_RATE_LIMIT"],
    "llm_authentication": BY_REASON["LLM_AUTHENTICATION"],
    "llm_empty_response": BY_REASON["LLM_EMPTY_RESPONSE"],
    "llm_bad_request": BY_REASON["LLM_BAD_REQUEST"],
    "llm_insufficient_credits": BY_REASON["LLM_QUOTA_EXHAUSTED"],
    "llm_error": BY_REASON["LLM_SERVER_ERROR"],
    "context_window_overflow_in_system_prompt": Rule(400),
}
# What the reference finds out after a stream has begun. Its clients look for these there, under status 200.
TOLD_IN_STREAM = frozenset({"APPROVAL_PENDING", "NO_PENDING_APPROVAL", "TOOL_CALL_IDS_INVALID"})
