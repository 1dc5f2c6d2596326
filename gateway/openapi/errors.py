"""Errors, and what is sent in few words."""

from gateway.openapi.schemas import TEXT, array, choice, maybe, record, some

# Of an error whose body is one text, and of the two kinds that say more.
PROBLEM = record(
    "Problem",
    {
        "detail": some(
            TEXT,
            record(
                "PendingApproval",
                {"code": choice("PENDING_APPROVAL"), "message": TEXT, "pending_request_id": maybe(TEXT)},
            ),
        ),
        "run_id": TEXT,
    },
    optional=("run_id",),
)
MODEL_PROBLEM = record(
    "ModelProblem", {"error": record("ModelError", {"type": TEXT, "message": TEXT, "detail": maybe(TEXT)})}
)
INVALID = record(
    "Invalid",
    {"detail": TEXT, "trace_id": maybe(TEXT), "examples": array(TEXT)},
    optional=("examples",),
)
OPENAI_PROBLEM = record(
    "OpenAIProblem",
    {"error": record("OpenAIError", {"message": TEXT, "type": maybe(TEXT), "param": maybe(TEXT), "code": maybe(TEXT)})},
)
