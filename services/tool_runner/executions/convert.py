"""Calls, receipts and their files: Protobuf to plain values and back."""

from uuid import UUID

from loci.tool.v1 import execution_service_pb2 as execution_pb
from services.common.codec import Codec
from services.common.core.paging import checked_size
from services.common.errors import InvalidArgument
from services.common.ids import from_public, optional_id
from services.common.page_requests import allow
from services.common.timestamps import moment_in
from services.tool_runner.core.job import Output
from services.tool_runner.core.model import Call, KeptFile, Outcome, Receipt, State
from services.tool_runner.core.schemas.json_fields import json_object
from services.tool_runner.executions.files.inputs import MOST_FILES
from services.tool_runner.executions.model import FileFilter, ReceiptFilter
from services.tool_runner.sandbox_configs.model import VariableSettings
from services.tool_runner.sandbox_configs.rules import variables
from services.tool_runner.tools.convert import tool_id
from services.tool_runner.tools.model import DEFAULT_SIZE

# Who runs a call is the runner's own affair.
_OWN = ("owner_id", "owner_alive", "cancel_requested", "output_order")
_RECEIPTS = Codec(Receipt, execution_pb.Receipt, leave=(*_OWN, "block_edits", "settings"))
_FILES = Codec(KeptFile, execution_pb.ExecutionFile)
_LONGEST_CALL_KEY = 200


# The requests that run something.
_RunRequest = execution_pb.ExecuteToolRequest | execution_pb.RunSourceRequest


def agent_id(text: str) -> UUID:
    """Returns the UUID of `agent-<uuid>`."""
    return from_public("agent", text)


def file_id(text: str) -> UUID:
    """Returns the UUID of `execfile-<uuid>`."""
    return from_public("execfile", text)


def call(request: execution_pb.ExecuteToolRequest) -> Call:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID, TIMEOUT_INVALID, ENVIRONMENT_INVALID), Refused."""
    state = request.agent_state_json
    return Call(
        call_key=call_key(request.call_key),
        tool_id=tool_id(request.tool_id),
        arguments=request.arguments_json,
        agent_id=optional_id("agent", request.agent_id),
        seconds=_seconds(request),
        environment=_environment(request),
        run_id=optional_id("run", request.run_id),
        step_id=optional_id("step", request.step_id),
        agent_state=json_object(state, "agent_state_json") if state else "",
        client_token=request.client_token,
        file_ids=_file_ids(request),
        agent_tool_ids=tuple(map(tool_id, request.agent_tool_ids)),
    )


def source_call(request: execution_pb.RunSourceRequest, of_tool: UUID) -> Call:
    """Returns a call of source that is not in the catalogue. Raises as `call`."""
    return Call(
        call_key=call_key(request.call_key),
        tool_id=of_tool,
        arguments=request.arguments_json,
        seconds=_seconds(request),
        environment=_environment(request),
        file_ids=_file_ids(request),
    )


def call_key(text: str) -> str:
    """Raises InvalidArgument (CALL_KEY_INVALID)."""
    if not 1 <= len(text) <= _LONGEST_CALL_KEY or "\x00" in text:
        raise InvalidArgument(
            f"a call key has 1 to {_LONGEST_CALL_KEY} characters, none of them NUL", reason="CALL_KEY_INVALID"
        )
    return text


def receipt_filter(request: execution_pb.ListReceiptsRequest) -> ReceiptFilter:
    """Raises InvalidArgument (INVALID_ID, TIME_INVALID), Refused (PAGE_SIZE_INVALID)."""
    allow(request.page, "page_size", "page_token")
    return ReceiptFilter(
        size=checked_size(request.page.page_size, DEFAULT_SIZE),
        token=request.page.page_token,
        agent_id=optional_id("agent", request.agent_id),
        run_id=optional_id("run", request.run_id),
        tool_id=optional_id("tool", request.tool_id),
        states=tuple(map(_state, request.states)),
        outcomes=tuple(map(_outcome, request.outcomes)),
        since=moment_in(request, "since", _invalid_time),
        until=moment_in(request, "until", _invalid_time),
    )


def file_filter(request: execution_pb.ListFilesRequest) -> FileFilter:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID), Refused (PAGE_SIZE_INVALID)."""
    allow(request.page, "page_size", "page_token")
    return FileFilter(
        size=checked_size(request.page.page_size, DEFAULT_SIZE),
        token=request.page.page_token,
        call_key=call_key(request.call_key) if request.call_key else None,
        agent_id=optional_id("agent", request.agent_id),
    )


def receipt_message(receipt: Receipt) -> execution_pb.Receipt:
    """Returns a stored receipt."""
    edits = [execution_pb.BlockEdit(label=label, value=value) for label, value in receipt.block_edits]
    return _RECEIPTS.encode(receipt, block_edits=edits, sandbox_config_fingerprint=receipt.settings)


def file_message(file: KeptFile) -> execution_pb.ExecutionFile:
    """Returns a kept file."""
    return _FILES.encode(file)


def event_message(sequence: int, event: Output | Receipt) -> execution_pb.StreamExecutionResponse:
    """Returns what happened in a call that is watched."""
    if isinstance(event, Receipt):
        return execution_pb.StreamExecutionResponse(sequence=sequence, receipt=receipt_message(event))
    if event.stream == "stdout":
        return execution_pb.StreamExecutionResponse(sequence=sequence, stdout=event.text)
    return execution_pb.StreamExecutionResponse(sequence=sequence, stderr=event.text)


def _seconds(request: _RunRequest) -> float | None:
    seconds = request.timeout.ToNanoseconds() / 1e9 if request.HasField("timeout") else None
    if seconds is not None and seconds <= 0:
        raise InvalidArgument(f"timeout is {seconds:g} s; it must be above zero", reason="TIMEOUT_INVALID")
    return seconds


def _environment(request: _RunRequest) -> dict[str, str]:
    environment = dict(request.environment)
    variables.check_all([VariableSettings(name, value) for name, value in environment.items()])
    return environment


def _file_ids(request: _RunRequest) -> tuple[UUID, ...]:
    ids = tuple(dict.fromkeys(map(file_id, request.file_ids)))
    if len(ids) > MOST_FILES:
        raise InvalidArgument(f"a call takes at most {MOST_FILES} files", reason="EXECUTION_FILE_INVALID")
    return ids


def _state(number: int) -> State:
    try:
        return State(number)
    except ValueError:
        raise InvalidArgument(f"{number} is not a state of receipts", reason="RECEIPT_FILTER_INVALID") from None


def _outcome(number: int) -> Outcome:
    try:
        return Outcome(number)
    except ValueError:
        raise InvalidArgument(f"{number} is not an outcome of calls", reason="RECEIPT_FILTER_INVALID") from None


def _invalid_time(name: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{name} {problem}", reason="TIME_INVALID")
