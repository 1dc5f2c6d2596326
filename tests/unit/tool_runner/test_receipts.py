"""The meaning of a receipt: the table of at most once, and the sentences for the model."""

from dataclasses import replace
from uuid import UUID

import pytest

from services.tool_runner.core import receipts
from services.tool_runner.core.job import ExitReason, File, Limits, Result, ToolError
from services.tool_runner.core.model import NewFile, Outcome, Receipt, State, Tool, ToolType

TOOL_ID = UUID(int=1)
TOOL = Tool(
    id=TOOL_ID,
    name="act",
    description="",
    tool_type=ToolType.CUSTOM,
    source_type="python",
    source_code="",
    json_schema="{}",
)


def receipt(state: State, *, alive: bool) -> Receipt:
    return Receipt(
        call_key="k",
        tool_id=TOOL_ID,
        tool_version=1,
        arguments_hash="h",
        state=state,
        owner_id=UUID(int=2),
        owner_alive=alive,
    )


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("alive", [False, True])
@pytest.mark.parametrize("state", State)
def test_a_tool_acts_at_most_once(state: State, alive: bool, idempotent: bool) -> None:
    decision = receipts.claim_of(receipt(state, alive=alive), TOOL_ID, "h", idempotent=idempotent)
    expected: dict[tuple[State, bool], receipts.Claim] = {
        (State.RESERVED, True): receipts.Wait(),
        (State.RESERVED, False): receipts.TakeOver(),
        (State.STARTED, True): receipts.Wait(),
        (State.STARTED, False): receipts.Abandon(),
        (State.DONE, True): receipts.Settled(),
        (State.DONE, False): receipts.Settled(),
        (State.UNKNOWN, True): receipts.TakeOver() if idempotent else receipts.Settled(),
        (State.UNKNOWN, False): receipts.TakeOver() if idempotent else receipts.Settled(),
    }
    assert decision == expected[state, alive]


@pytest.mark.parametrize("state", State)
def test_a_key_belongs_to_one_call(state: State) -> None:
    for tool_id, arguments_hash in ((UUID(int=9), "h"), (TOOL_ID, "other")):
        found = receipts.claim_of(receipt(state, alive=True), tool_id, arguments_hash, idempotent=True)
        assert found == receipts.KeyReused()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ('"plain"', "plain"),
        ("null", "None"),
        ("true", "True"),
        ("3", "3"),
        ('{"a": [1, null], "b": "c"}', "{'a': [1, None], 'b': 'c'}"),
        ('"\\u0000"', "\ufffd"),
    ],
)
def test_results_as_the_model_reads_them(result: str, text: str) -> None:
    ending = receipts.ending_of(TOOL, Result(ExitReason.OK, result=result))
    assert (ending.state, ending.outcome) == (State.DONE, Outcome.SUCCESS)
    assert (ending.tool_return, ending.result) == (text, result)


def test_an_exception_is_told_as_the_reference_tells_it() -> None:
    error = ToolError("KeyError", "'x'", '  File "<tool>", line 2, in act\n')
    ending = receipts.ending_of(TOOL, Result(ExitReason.RAISED, error=error))
    assert ending.tool_return == "Error executing function act: KeyError: 'x'"
    program = receipts.ending_of(
        replace(TOOL, tool_type=ToolType.LETTA_BUILTIN), Result(ExitReason.RAISED, error=error)
    )
    assert program.tool_return.endswith('\n  File "<tool>", line 2, in act')


@pytest.mark.parametrize(
    ("tool_type", "reason", "trace", "printed"),
    [
        (
            ToolType.CUSTOM,
            ExitReason.RAISED,
            '  File "<tool>", line 2, in act\n',
            'out\nTraceback (most recent call last):\n  File "<tool>", line 2, in act\nKeyError: x\n',
        ),
        (ToolType.CUSTOM, ExitReason.RAISED, "", "out\nKeyError: x\n"),
        (ToolType.CUSTOM, ExitReason.KILLED, "", "out\nact was stopped: x.\n"),
        (ToolType.EXTERNAL_MCP, ExitReason.RAISED, "", "out\n"),
    ],
)
def test_stderr_ends_with_the_error(tool_type: ToolType, reason: ExitReason, trace: str, printed: str) -> None:
    result = Result(reason, error=ToolError("KeyError", "x", trace), stderr="out\n")
    assert receipts.with_error_output(replace(TOOL, tool_type=tool_type), result).stderr == printed


def test_the_error_of_an_mcp_server_is_its_answer() -> None:
    error = ToolError("McpToolError", "it failed")
    ending = receipts.ending_of(replace(TOOL, tool_type=ToolType.EXTERNAL_MCP), Result(ExitReason.RAISED, error=error))
    assert (ending.tool_return, ending.outcome) == ("it failed", Outcome.RAISED)


def test_refused_arguments_stand_in_stderr() -> None:
    ending = receipts.refused_ending("act", ["n is missing"])
    assert ending.stderr == ending.tool_return
    assert ending.output_order == ((2, len(ending.stderr)),)


def test_a_long_return_is_cut_with_a_note() -> None:
    ending = receipts.ending_of(replace(TOOL, return_char_limit=5), Result(ExitReason.OK, result='"0123456789"'))
    assert ending.tool_return.startswith("01234... [function output was truncated")
    assert "10 characters, 5 are shown" in ending.tool_return


def test_files_that_are_kept_are_bounded_and_named_for_the_model() -> None:
    files = tuple(File(name, b"12345") for name in ("a.txt", "../b", "sub/c.txt", "d.txt", "e.txt"))
    result = Result(ExitReason.OK, result="1", files=files, files_dropped=1)
    kept = receipts.files_within(result, Limits(files=2, file_bytes=100))
    assert [file.name for file in kept] == ["a.txt", "sub/c.txt"]
    assert len(receipts.files_within(result, Limits(file_bytes=12))) == 2
    new = [NewFile(id=UUID(int=7), name="a.txt", content=b"12345", created_by_id=UUID(int=8))]
    ending = receipts.with_files(receipts.ending_of(TOOL, result), new, dropped=5)
    assert ending.files == tuple(new)
    assert ending.tool_return.splitlines() == [
        "1",
        f"Files made: a.txt (execfile-{UUID(int=7)}, 5 bytes); 5 not kept: over a limit, or no regular files",
    ]
