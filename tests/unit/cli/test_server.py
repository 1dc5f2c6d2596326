"""The server that a command finds."""

from collections.abc import Mapping

import pytest

from cli.errors import CliError
from cli.server import base_url, password


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        (None, {}, "http://localhost:8283"),
        (None, {"LOCI_PORT": "9000"}, "http://localhost:9000"),
        (None, {"LOCI_PORT": "9000", "LETTA_BASE_URL": "http://b"}, "http://b"),
        (None, {"LOCI_BASE_URL": "http://a", "LETTA_BASE_URL": "http://b"}, "http://a"),
        ("http://c", {"LOCI_BASE_URL": "http://a", "LOCI_PORT": "no number"}, "http://c"),
    ],
)
def test_its_address(url: str | None, environment: Mapping[str, str], expected: str) -> None:
    assert base_url(url, environment) == expected


def test_a_port_that_is_none() -> None:
    with pytest.raises(CliError, match="LOCI_PORT") as error:
        base_url(None, {"LOCI_PORT": "door"})
    assert error.value.code == 2


def test_its_password() -> None:
    assert password({"LETTA_SERVER_PASSWORD": "a", "LETTA_API_KEY": "b"}) == "a"
    assert (password({"LETTA_API_KEY": "b"}), password({})) == ("b", "")
