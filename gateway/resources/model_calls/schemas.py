"""Context windows and single model calls."""

from gateway.openapi.schemas import MOMENT, OBJECT, TEXT, array, choice, maybe, of, record
from gateway.resources.messages.schemas import USAGE
from loci.agent.v1 import model_call_service_pb2

_FUNCTION = record("FunctionDefinition", {"name": TEXT, "description": TEXT, "parameters": OBJECT})
_MESSAGE = record(
    "WindowMessage",
    {
        "id": TEXT,
        "agent_id": TEXT,
        "role": choice("system", "user", "assistant", "tool", "approval"),
        "content": array(OBJECT),
        "tool_calls": maybe(array(OBJECT)),
        **dict.fromkeys(("name", "tool_call_id", "step_id", "run_id", "otid"), maybe(TEXT)),
        "created_at": MOMENT,
    },
)
OVERVIEW = of(
    "ContextWindowOverview",
    model_call_service_pb2.GetContextWindowResponse.DESCRIPTOR,
    functions_definitions=array(record("FunctionTool", {"type": choice("function"), "function": _FUNCTION})),
    messages=array(_MESSAGE),
)
GENERATED = record("GeneratedText", {"content": TEXT, "model": TEXT, "usage": USAGE})
