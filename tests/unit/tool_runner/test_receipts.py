"""The meaning of a receipt: the table of at most once, and the sentences for the model."""

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
        ('{"a": [1, null]}', '{"a": [1, null]}'),
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
    assert ending.tool_return.splitlines() == [
        "Error executing function act: KeyError: 'x'",
        '  File "<tool>", line 2, in act',
    ]


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
