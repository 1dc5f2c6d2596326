"""Base64 that travels as text."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.common.core.base64_text import canonical, decoded_size

_SPOILT = st.text(alphabet="AQZaz059+/=-_ \n\0é", max_size=12)


@given(st.binary(max_size=40))
def test_what_is_canonical_stays(data: bytes) -> None:
    text = b64encode(data).decode()
    assert canonical(text) == text
    assert decoded_size(text) == len(data)


@given(_SPOILT)
@example("AAF=")
@example("AF==")
@example("AAAA====")
@example("AAAA\n")
@example("=AAA")
@example("AA==AA==")
@example("\ud800AAA")
def test_the_same_is_base64_as_for_python(text: str) -> None:
    try:
        expected = b64encode(b64decode(text, validate=True)).decode()
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - whichever sentence Python has for it
            canonical(text)
    else:
        assert canonical(text) == expected
