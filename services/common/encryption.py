"""Secrets at rest: AES-256-GCM under the operator's key, bound to what they belong to.

LOCI_ENCRYPTION_KEY: base64 of 32 bytes, or the path of a 0600 file with it. Several, separated by commas, let a key be
replaced: the first seals, all open. A sealed value is version (1 byte), key id (4), nonce (12), ciphertext and tag.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from services.common.settings import Env, SettingsError

ENCRYPTION_KEY = "LOCI_ENCRYPTION_KEY"
_VERSION = b"\x01"
_ID_BYTES = 4
_NONCE_BYTES = 12


class UnreadableSecret(Exception):
    """A sealed value that none of the keys opens, or that was sealed for something else."""


class Sealer:
    """Seals with the first of `keys` (32 bytes each), opens with any."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = {_id(key): AESGCM(key) for key in keys}
        self._first = _id(keys[0])

    def seal(self, secret: bytes, belongs_to: str) -> bytes:
        """Returns the sealed form. `belongs_to` names the row and column, so that nobody can move it to another."""
        nonce = os.urandom(_NONCE_BYTES)
        return _VERSION + self._first + nonce + self._ciphers[self._first].encrypt(nonce, secret, belongs_to.encode())

    def open(self, sealed: bytes, belongs_to: str) -> bytes:
        """Returns the secret. Raises Unreadable."""
        start = len(_VERSION) + _ID_BYTES
        cipher = self._ciphers.get(sealed[len(_VERSION) : start])
        if sealed[: len(_VERSION)] != _VERSION or cipher is None:
            raise UnreadableSecret(f"it was sealed with another key than those of {ENCRYPTION_KEY}")
        nonce, text = sealed[start : start + _NONCE_BYTES], sealed[start + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, text, belongs_to.encode())
        except (InvalidTag, ValueError):
            raise UnreadableSecret("it was damaged, or sealed for something else") from None


def sealer_from(env: Env) -> Sealer:
    """Returns the sealer of LOCI_ENCRYPTION_KEY. Raises SettingsError."""
    expected = "base64 of 32 random bytes, or the path of a 0600 file with it"
    text = env.content(ENCRYPTION_KEY, expected=expected)
    try:
        keys = [base64.b64decode(key.strip(), validate=True) for key in text.split(",")]
    except binascii.Error:
        keys = []
    if not keys or any(len(key) != 32 for key in keys):
        raise SettingsError(f"{ENCRYPTION_KEY} is not {expected}")
    return Sealer(keys)


def _id(key: bytes) -> bytes:
    return hashlib.sha256(b"loci sealing key" + key).digest()[:_ID_BYTES]
