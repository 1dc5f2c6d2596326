"""The Ed25519 keys of call contexts as operators hold them, and the signer and verifier made from settings.

LOCI_CONTEXT_SIGNING_KEY: PEM, or base64 of the 32 raw bytes, or the path of a 0600 file with either.
LOCI_CONTEXT_PUBLIC_KEYS: JSON {"<key id>": "<base64 of the 32 raw bytes>"}, or the path of a file with it. A key that
may vouch for less is {"key": "<base64>", "role": "memory", "audience": ["llm_gateway"]}.
Two entries at once let a key be replaced without a pause.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from services.common.context import KeyLimit, Signer, Verifier
from services.common.settings import Env, SettingsError

SIGNING_KEY = "LOCI_CONTEXT_SIGNING_KEY"
PUBLIC_KEYS = "LOCI_CONTEXT_PUBLIC_KEYS"


def signer_from(env: Env) -> Signer:
    """Returns the signer of LOCI_CONTEXT_SIGNING_KEY. Raises SettingsError."""
    text = env.content(SIGNING_KEY, expected="an Ed25519 private key in PEM, or the path of a 0600 file with it")
    try:
        private_key = load_private_key(text)
    except ValueError:
        raise SettingsError(f"{SIGNING_KEY} is not an Ed25519 private key in PEM or base64") from None
    return Signer(private_key, key_id(private_key.public_key()))


def verifier_from(env: Env) -> Verifier:
    """Returns the verifier of LOCI_CONTEXT_PUBLIC_KEYS. Raises SettingsError."""
    expected = "JSON of key ids and base64 Ed25519 public keys, or the path of a file with it"
    text = env.content(PUBLIC_KEYS, secret=False, expected=expected)
    try:
        keys = orjson.loads(text)
        limits = {name: _limit(value) for name, value in keys.items() if not isinstance(value, str)}
        public_keys = {
            str(name): Ed25519PublicKey.from_public_bytes(
                base64.b64decode(value["key"] if name in limits else value, validate=True)
            )
            for name, value in keys.items()
        }
    except (ValueError, TypeError, AttributeError, KeyError):
        raise SettingsError(f"{PUBLIC_KEYS} is not {expected}") from None
    if not public_keys:
        raise SettingsError(f"{PUBLIC_KEYS} holds no key; expected {expected}")
    return Verifier(public_keys, limits)


def _limit(value: Mapping[str, Any]) -> KeyLimit:
    if not isinstance(value["audience"], list):
        raise TypeError("an audience is a list")
    return KeyLimit(str(value["role"]), frozenset(map(str, value["audience"])))


def load_private_key(text: str) -> Ed25519PrivateKey:
    """Returns the key in PEM (PKCS 8) or base64 text. Raises ValueError."""
    try:
        if not text.startswith("-----"):
            return Ed25519PrivateKey.from_private_bytes(base64.b64decode(text, validate=True))
        key = serialization.load_pem_private_key(text.encode(), password=None)
    except (binascii.Error, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("not a private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")  # noqa: TRY004 - the text is wrong, not the caller's type
    return key


def new_private_key() -> str:
    """Returns a fresh private key in PEM, for a 0600 file."""
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        .decode()
    )


def public_keys_of(*private_keys: str, memory_key: str = "") -> str:
    """Returns the value of LOCI_CONTEXT_PUBLIC_KEYS for private keys in PEM or base64. Raises ValueError.

    memory_key: that of the memory service, which has its background jobs embed texts, and vouches for nothing else.
    """
    public_keys = [load_private_key(text).public_key() for text in private_keys]
    document: dict[str, Any] = {key_id(key): _base64(key) for key in public_keys}
    if memory_key:
        key = load_private_key(memory_key).public_key()
        document[key_id(key)] = {"key": _base64(key), "role": "memory", "audience": ["llm_gateway"]}
    return orjson.dumps(document).decode()


def _base64(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode()


def key_id(public_key: Ed25519PublicKey) -> str:
    """Returns the first 16 hex digits of the SHA-256 of the raw public key."""
    return hashlib.sha256(public_key.public_bytes_raw()).hexdigest()[:16]
