"""The secrets of the old server's database, as they are stored there. No I/O.

A column `_enc` holds either the plain text or base64 of `salt 16 | iv 12 | ciphertext | tag 16`: AES-256-GCM under
PBKDF2-HMAC-SHA256 of the key, with 100,000 rounds.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_SALT, _IV, _TAG = 16, 12, 16
_ROUNDS = 100_000
_LEAST = _SALT + _IV + _TAG + 1
# A long key of a vendor can be base64, too.
_VENDORS = ("sk-", "pk-", "key-", "api-", "ghp_", "gho_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "hf_")

NO_KEY = "it is encrypted, and no key was given (--encryption-key)"
WRONG_KEY = "it is encrypted with another key than the one that was given"
NOT_TEXT = "what it decrypts to is no text"


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in the clear, or why it cannot be had."""

    value: str = ""
    problem: str = ""


class Keyring:
    """Reads secrets with the old server's key; "": there is none."""

    def __init__(self, key: str = "") -> None:
        self._key = key

    def read(self, sealed: str | None, plain: str | None = None) -> Secret:
        """A secret of a column `_enc` and the older one beside it, which counts where the first is null."""
        if sealed is None:
            return Secret(plain or "")
        packed = _packed(sealed)
        if packed is None:
            return Secret(sealed)
        if not self._key:
            return Secret(sealed) if _is_of_vendor(sealed) else Secret(problem=NO_KEY)
        salt, iv, rest = packed[:_SALT], packed[_SALT : _SALT + _IV], packed[_SALT + _IV :]
        derived = hashlib.pbkdf2_hmac("sha256", self._key.encode(), salt, _ROUNDS, 32)
        try:
            return Secret(AESGCM(derived).decrypt(iv, rest, None).decode())
        except InvalidTag:
            return Secret(sealed) if _is_of_vendor(sealed) else Secret(problem=WRONG_KEY)
        except UnicodeDecodeError:
            return Secret(problem=NOT_TEXT)


def _packed(text: str) -> bytes | None:
    """The bytes of what looks encrypted."""
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return packed if len(packed) >= _LEAST else None


def _is_of_vendor(text: str) -> bool:
    return text.startswith(_VENDORS)
