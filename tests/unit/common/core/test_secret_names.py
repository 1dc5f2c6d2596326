"""What is secret by its name or its form, and masks in the arguments of a command."""

import time

import pytest

from services.common.core.secret_names import (
    MASK,
    is_secret_name,
    mask_arguments,
    secrets_of_value,
    unmask_arguments,
)


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "api-key",
        "figmaApiKey",
        "PGPASSWORD",
        "Authorization",
        "Cookie",
        "clientSecret",
        "X-Auth",
        "PAT",
    ],
)
def test_names_that_say_that_they_are_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "DATA_DIR",
        "JIRA_URL",
        "NODE_ENV",
        "KEYBOARD",
        "TOKEN_FILE",
        "AUTH_URL",
        "KEY_ID",
        "MAX_TOKENS",
        "PATH",
        "TOKENS",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("DATA_DIR", "/work/data", ()),
        ("JIRA_URL", "https://acme.example", ()),
        ("NODE_ENV", "production", ()),
        ("AUTH", "true", ()),
        ("MONGO", "mongodb-cluster-eu-west-1-production", ()),
        ("Authorization", "Bearer abcdef", ("Bearer abcdef", "abcdef")),
        ("ANYTHING", "ghp_abcdefghijkl", ("ghp_abcdefghijkl",)),
        ("ANYTHING", "a8f5f167f44f4964e6c998dee827110c", ("a8f5f167f44f4964e6c998dee827110c",)),
        ("DATABASE_URI", "postgresql://me:p%40ss@db:5432/x", ("p%40ss", "p@ss")),
        ("SERVER_URL", "https://host.example/mcp?api_key=abcdef&page=2", ("abcdef",)),
    ],
)
def test_secrets_of_a_value(name: str, value: str, secrets: tuple[str, ...]) -> None:
    assert secrets_of_value(name, value) == secrets


def test_masks_in_arguments_come_and_go() -> None:
    arguments = (
        *("-y", "server", "--access-token=s3cret", "--api-key", "k3y", "--header", "Authorization: Bearer t0ken"),
        *("postgresql://me:pass@db/x", "-e", "PASSWORD=word", "--port", "8000", "--verbose"),
    )
    masked = mask_arguments(arguments)
    assert masked == (
        *("-y", "server", f"--access-token={MASK}", "--api-key", MASK, "--header", f"Authorization: {MASK}"),
        *(f"postgresql://me:{MASK}@db/x", "-e", f"PASSWORD={MASK}", "--port", "8000", "--verbose"),
    )
    assert unmask_arguments(masked, arguments) == arguments
    # Others may have come and gone; a secret is known by its option.
    moved = ("--api-key", MASK, "--new", "x", f"--access-token={MASK}")
    assert unmask_arguments(moved, arguments) == ("--api-key", "k3y", "--new", "x", "--access-token=s3cret")
    assert unmask_arguments(("--other-token", MASK), arguments) is None


@pytest.mark.parametrize("text", ["a" * 4096, "?" * 4096, "eyJ" * 1365, "a://" * 1024, "A" * 32_768, "-" * 4096])
def test_no_text_takes_long(text: str) -> None:
    """Hundreds of such arguments are looked at in each call."""
    before = time.process_time()
    for _ in range(20):
        mask_arguments((text, f"--option={text}"))
    assert time.process_time() - before < 5
