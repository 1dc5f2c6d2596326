"""The output of a call: numbered, masked, bounded, and the same wherever it is read."""

import asyncio
from contextlib import aclosing
from typing import Literal
from uuid import UUID

from services.tool_runner.core.job import ExitReason, Output, Result, ToolError
from services.tool_runner.core.masked_results import mask_json, mask_result
from services.tool_runner.core.masking import Mask
from services.tool_runner.core.model import Ending, Outcome, Receipt, State
from services.tool_runner.executions.output import CallOutput, pieces_of, with_output

SECRET = "hunter2-and-more"
ENDING = Ending(state=State.DONE, outcome=Outcome.SUCCESS, tool_return="")


def printed(capture: int = 1_000, *secrets: str) -> CallOutput:
    mask = Mask(secrets)
    return CallOutput(capture, mask.stream(), mask.stream())


def piece(stream: Literal["stdout", "stderr"], text: str) -> Output:
    return Output(0, stream, text)


def receipt_of(ending: Ending) -> Receipt:
    return Receipt(
        call_key="k",
        tool_id=UUID(int=1),
        tool_version=1,
        arguments_hash="",
        state=State.DONE,
        owner_id=UUID(int=2),
        stdout=ending.stdout,
        stderr=ending.stderr,
        output_order=ending.output_order,
    )


async def test_a_receipt_replays_what_was_seen_live() -> None:
    call = printed()
    seen: list[Output] = []

    async def watch(after: int) -> None:
        async with aclosing(call.after(after)) as pieces:
            async for one in pieces:
                seen.append(one)

    watching = asyncio.create_task(watch(0))
    for stream, text in (("stdout", "a"), ("stderr", "é"), ("stdout", "b\x00")):
        call.add(piece(stream, text))  # type: ignore[arg-type]
        await asyncio.sleep(0.03)
    # What the runner did not give as it came is there at the end.
    call.end(Result(ExitReason.OK, result="1", stdout="ab\x00c", stderr="é"))
    await watching
    expected = [
        Output(1, "stdout", "a"),
        Output(2, "stderr", "é"),
        Output(3, "stdout", "b\ufffd"),
        Output(4, "stdout", "c"),
    ]
    assert seen == expected
    ending = call.complete(ENDING)
    assert (ending.stdout, ending.stderr) == ("ab\ufffdc", "é")
    assert pieces_of(receipt_of(ending)) == expected
    seen.clear()
    await watch(2)
    assert seen == expected[2:]


async def test_each_stream_is_kept_to_its_limit_and_says_so() -> None:
    call = printed(capture=8)
    call.add(piece("stdout", "xxxxxé"))
    call.add(piece("stdout", "yyyyyyyyy"))
    call.end(Result(ExitReason.OK, result="1", stdout="xxxxxéyyyyyyyyy", stderr="short"))
    ending = call.complete(ENDING)
    assert ending.stdout == "xxxxxéy\n... (cut at 8 bytes)"
    assert ending.stderr == "short"


async def test_a_tool_that_prints_letter_by_letter_makes_few_pieces() -> None:
    call = printed(capture=100_000)
    for number in range(20_000):
        call.add(piece("stdout" if number % 2 else "stderr", "x"))
        if not number % 100:
            await asyncio.sleep(0)
    call.end()
    assert len(call.pieces) < 2_000
    assert [one.sequence for one in call.pieces] == list(range(1, len(call.pieces) + 1))
    assert sum(len(one.text) for one in call.pieces) == 20_000


async def test_a_secret_in_two_pieces_is_masked_in_both() -> None:
    call = printed(1_000, SECRET)
    for text in ("key: hunt", "er2-and", "-more!", " and hunt"):
        call.add(piece("stdout", text))
        await asyncio.sleep(0.03)
    call.end()
    assert "hunter2" not in "".join(one.text for one in call.pieces)
    assert call.complete(ENDING).stdout == "key: ********! and hunt"


def test_a_result_is_masked_in_its_texts_and_else_stays_byte_for_byte() -> None:
    mask = Mask([SECRET])
    plain = '{"n": 1.0, "big": 123456789012345678901234567890, "s": "\\u00e9"}'
    assert mask_json(plain, mask.text) == plain
    escaped = '["\\u0068unter2-and-more", {"hunter2-and-more": 1.0}]'
    assert mask_json(escaped, mask.text) == '["********", {"********": 1.0}]'
    assert SECRET not in mask_json("[" * 50_000 + f'"{SECRET}"' + "]" * 50_000, mask.text)
    error = ToolError("E", f"no {SECRET}", f"line {SECRET}")
    masked = mask_result(Result(ExitReason.RAISED, error=error, block_edits=(("human", SECRET),)), mask.text)
    assert masked.error == ToolError("E", "no ********", "line ********")
    assert masked.block_edits == (("human", "********"),)


def test_what_is_known_of_a_lost_call_is_told() -> None:
    ending = with_output(ENDING, [Output(1, "stderr", "e"), Output(2, "stdout", "o")])
    assert (ending.stdout, ending.stderr, ending.output_order) == ("o", "e", ((2, 1), (1, 1)))
