"""The object that a response is, at any state of its run. Pure."""

from typing import Any

from gateway.openai_api.chat import finish
from gateway.openai_api.responses.requests import CreateResponse, response_id
from gateway.rest.convert import Rest
from loci.agent.v1 import message_service_pb2, run_pb2

_STATUSES = {
    run_pb2.RUN_STATUS_CREATED: "queued",
    run_pb2.RUN_STATUS_RUNNING: "in_progress",
    run_pb2.RUN_STATUS_FAILED: "failed",
    run_pb2.RUN_STATUS_CANCELLED: "cancelled",
}


def response_object(
    run: run_pb2.Run, *, status: str, output: list[Rest], body: CreateResponse | None = None, **fields: Any
) -> Rest:
    """Returns the response; `body`: the request, where it is known."""
    text: Rest = {"format": {"type": "text"}}
    return {
        "id": response_id(run.id),
        "object": "response",
        "created_at": run.created_at.seconds,
        "status": status,
        "background": run.background,
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions if body else None,
        "max_output_tokens": None,
        "model": run.agent_id,
        "output": output,
        "parallel_tool_calls": body is None or body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id if body else None,
        "conversation": {"id": run.conversation_id or "default"},
        "store": True,
        "temperature": None,
        "text": text | ((body.text if body else None) or {}),
        "tool_choice": (body.tool_choice if body else None) or "auto",
        "tools": (body.tools if body else None) or [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
        "metadata": (body.metadata if body else None) or {},
    } | fields


def ended(end: message_service_pb2.TurnEnd, output: list[Rest], body: CreateResponse | None = None) -> Rest:
    """Returns the response of a turn that has ended well; `stop_reason` is our own word for how."""
    how = finish(end)
    status, details = "completed", None
    if how["stop_reason"] == "cancelled":
        status = "cancelled"
    elif how["finish_reason"] == "length":
        by_tokens = how["stop_reason"] == "max_tokens_exceeded"
        status, details = "incomplete", {"reason": "max_output_tokens" if by_tokens else how["stop_reason"]}
    fields = {"incomplete_details": details, "usage": usage(end.usage), "stop_reason": how["stop_reason"]}
    return response_object(end.run, status=status, output=output, body=body, **fields)


def stored(run: run_pb2.Run, used: message_service_pb2.TurnUsage, output: list[Rest]) -> Rest:
    """Returns the response of a run as it is stored."""
    if run.status not in _STATUSES:
        return ended(message_service_pb2.TurnEnd(run=run, stop_reason=run.stop_reason, usage=used), output)
    return response_object(run, status=_STATUSES[run.status], output=output, usage=usage(used))


def usage(used: message_service_pb2.TurnUsage) -> Rest:
    """Returns the tokens of all model calls of a turn."""
    return {
        "input_tokens": used.prompt_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_input_tokens},
        "output_tokens": used.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.total_tokens,
    }
