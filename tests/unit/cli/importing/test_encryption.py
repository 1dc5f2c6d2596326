"""Secrets of the old server's database: sealed, plain, and those that only look sealed."""

import base64
import hashlib
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cli.importing.encryption import NO_KEY, NOT_TEXT, WRONG_KEY, Keyring, Secret
from tests.letta_database import ENCRYPTION_KEY, sealed

LONG = base64.b64encode(bytes(range(60))).decode()


@pytest.mark.parametrize(
    ("stored", "older", "found"),
    [
        pytest.param(sealed("hidden"), None, Secret("hidden"), id="sealed"),
        pytest.param(sealed("schlüssel"), "older", Secret("schlüssel"), id="beside an older one"),
        pytest.param(sealed("hidden", "another key"), None, Secret(problem=WRONG_KEY), id="with another key"),
        ("plain", None, Secret("plain")),
        ("", "older", Secret("")),
        (None, "older", Secret("older")),
        (None, None, Secret("")),
        (LONG, None, Secret(problem=WRONG_KEY)),
        # Base64, and too short to be sealed.
        (base64.b64encode(bytes(44)).decode(), None, Secret(base64.b64encode(bytes(44)).decode())),
        ("sk-" + "A" * 61, None, Secret("sk-" + "A" * 61)),
        ("AKIA" + "A" * 60, None, Secret("AKIA" + "A" * 60)),
    ],
)
def test_with_the_key(stored: str | None, older: str | None, found: Secret) -> None:
    assert Keyring(ENCRYPTION_KEY).read(stored, older) == found


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        pytest.param(sealed("hidden"), Secret(problem=NO_KEY), id="sealed"),
        ("plain", Secret("plain")),
        ("AKIA" + "A" * 60, Secret("AKIA" + "A" * 60)),
    ],
)
def test_without_a_key(stored: str, found: Secret) -> None:
    assert Keyring().read(stored) == found


def test_what_is_no_text() -> None:
    salt, iv = os.urandom(16), os.urandom(12)
    key = hashlib.pbkdf2_hmac("sha256", b"k", salt, 100_000, 32)
    packed = base64.b64encode(salt + iv + AESGCM(key).encrypt(iv, b"\xff\xfe", None)).decode()
    assert Keyring("k").read(packed) == Secret(problem=NOT_TEXT)
