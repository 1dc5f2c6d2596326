"""Lines of JSON out of bytes that are cut anywhere."""

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.ndjson import NdjsonParser


def parsed(*chunks: bytes) -> Sequence[bytes]:
    parser = NdjsonParser()
    return [line for chunk in chunks for line in parser.feed(chunk)] + parser.close()


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n\r\n\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
        # Half a line is none; one that is no JSON is told, and refused by who reads it.
        (b'{"a":1}\n{"b":', [b'{"a":1}']),
        (b"<html>\n", [b"<html>"]),
        (b"", []),
        (b"\n \n", []),
    ],
)
def test_lines(body: bytes, lines: Sequence[bytes]) -> None:
    assert parsed(body) == lines


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3), max_size=6), st.data())
def test_any_cut_gives_the_same(values: list[dict[str, str]], data: st.DataObject) -> None:
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
    body = b"".join(orjson.dumps(value) + end for value in values)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    chunks = [body[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert [orjson.loads(line) for line in parsed(*chunks)] == values
