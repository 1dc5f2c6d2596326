"""Secrets at rest."""

import base64

import pytest

from services.common.encryption import ENCRYPTION_KEY, Sealer, UnreadableSecret, sealer_from
from services.common.settings import Env, SettingsError

OLD, NEW = bytes(32), bytes(range(32))


def test_what_is_sealed_can_be_opened_for_the_same_thing_alone() -> None:
    sealer = Sealer([OLD])
    sealed = sealer.seal(b"sk-secret", "providers/1/key")
    assert b"sk-secret" not in sealed
    assert sealer.seal(b"sk-secret", "providers/1/key") != sealed
    assert sealer.open(sealed, "providers/1/key") == b"sk-secret"
    with pytest.raises(UnreadableSecret, match="something else"):
        sealer.open(sealed, "providers/2/key")
    with pytest.raises(UnreadableSecret, match="something else"):
        sealer.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), "providers/1/key")


def test_a_key_is_replaced_without_losing_what_the_old_one_sealed() -> None:
    sealed = Sealer([OLD]).seal(b"x", "here")
    assert Sealer([NEW, OLD]).open(sealed, "here") == b"x"
    with pytest.raises(UnreadableSecret, match="another key"):
        Sealer([NEW]).open(sealed, "here")
    with pytest.raises(UnreadableSecret, match="another key"):
        Sealer([OLD]).open(b"", "here")


def test_the_setting() -> None:
    text = base64.b64encode(OLD).decode()
    assert sealer_from(Env({ENCRYPTION_KEY: f"{text},{text}"})).open(Sealer([OLD]).seal(b"x", "a"), "a") == b"x"
    for wrong in ("short", base64.b64encode(b"x" * 31).decode(), f"{text},"):
        with pytest.raises(SettingsError, match="base64 of 32 random bytes"):
            sealer_from(Env({ENCRYPTION_KEY: wrong}))
