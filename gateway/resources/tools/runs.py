"""Tools that are run outside of a turn: those of an agent, and source that is in no catalogue."""

from datetime import UTC, datetime
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.access.run_tokens import check_members
from gateway.openapi.answers import returns
from gateway.resources.agents.responses import agent_state
from gateway.resources.agents.routes import fetch
from gateway.resources.executions.requests import RunAgentTool, RunSource
from gateway.resources.executions.schemas import EXECUTION_RESULT
from gateway.resources.messages.responses import COMMON
from gateway.resources.messages.schemas import TOOL_RETURN
from gateway.rest.body import dump
from gateway.rest.convert import Rest
from gateway.rest.params import AgentId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns.events import call_until_answered
from gateway.turns.idempotency import retry_of
from loci.agent.v1 import agent_service_pb2
from loci.tool.v1 import execution_service_pb2

router = APIRouter(tags=["tools"])


@router.post("/tools/run")
@returns(TOOL_RETURN)
async def run_source(body: RunSource, request: Request, loci: Loci) -> Response:
    """Runs source in a sandbox; nothing of it is kept but its receipt. Source that is no tool is refused with 400."""
    check_members(body.model_fields_set)
    rpc_request = body.request(f"source/{await _key(request, loci)}")
    window = loci.settings.reattach_window
    answer = await call_until_answered(loci.peers.executions.RunSource, rpc_request, window=window)
    return json_response(_message(answer.receipt, body.name))


@router.post("/agents/{agent_id}/tools/{tool_name}/run", tags=["agents"])
@returns(EXECUTION_RESULT)
async def run_agent_tool(
    agent_id: AgentId, tool_name: str, request: Request, loci: Loci, body: RunAgentTool | None = None
) -> Response:
    """Runs a tool of the agent as a call of its model is run.

    `func_return` is null after an error, of which `stderr` tells; `agent_state` is null unless the tool changed it.
    """
    rpc_request = agent_service_pb2.RunAgentToolRequest(
        agent_id=agent_id,
        tool_name=tool_name,
        arguments_json=dump(body.args if body else {}),
        call_key=await _key(request, loci),
    )
    window = loci.settings.reattach_window
    answer = await call_until_answered(loci.peers.agents.RunAgentTool, rpc_request, window=window)
    state = None
    if answer.changed_memory:
        state = agent_state(await fetch(loci, agent_id), await loci.catalogue.models())
    return json_response(
        {
            "status": "error" if answer.is_error else "success",
            "func_return": None if answer.is_error else _value(answer),
            "agent_state": state,
            "stdout": list(answer.stdout),
            "stderr": list(answer.stderr),
            "sandbox_config_fingerprint": answer.sandbox_config_fingerprint or None,
        }
    )


async def _key(request: Request, loci: Services) -> str:
    return loci.call_keys.of(await retry_of(request), request.scope["path"])


def _value(answer: agent_service_pb2.RunAgentToolResponse) -> Any:
    """Returns the tool's result; the text for the model where that is no JSON, or more than ours can hold."""
    try:
        return orjson.loads(answer.result_json)
    except orjson.JSONDecodeError:
        return answer.tool_return


def _message(receipt: execution_service_pb2.Receipt, name: str | None) -> Rest:
    """Returns the reference's ToolReturnMessage; its ids, which belong to nothing, are the text "null" there."""
    one = {
        "tool_call_id": "null",
        "status": "success" if receipt.outcome == execution_service_pb2.OUTCOME_SUCCESS else "error",
        "stdout": [receipt.stdout] if receipt.stdout else [],
        "stderr": [receipt.stderr] if receipt.stderr else [],
    }
    return {
        "id": "null",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "message_type": "tool_return_message",
        **dict.fromkeys((*COMMON, "is_err", "seq_id")),
        "name": name,
        "tool_return": receipt.tool_return,
        **one,
        "tool_returns": [{"type": "tool", "tool_return": receipt.tool_return, **one}],
    }
