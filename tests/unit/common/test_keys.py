"""Keys as operators hold them."""

import base64
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.common.context import CallContext
from services.common.errors import Unauthenticated
from services.common.keys import load_private_key, new_private_key, public_keys_of, signer_from, verifier_from
from services.common.settings import Env, SettingsError

CONTEXT = CallContext(UUID(int=1), UUID(int=2), "user", ("memory",))


def test_a_new_key_signs_what_its_public_document_verifies(tmp_path: Path) -> None:
    private, public = tmp_path / "signing.pem", tmp_path / "public.json"
    private.write_text(new_private_key())
    private.chmod(0o600)
    public.write_text(public_keys_of(private.read_text()))
    public.chmod(0o644)
    env = Env({"LOCI_CONTEXT_SIGNING_KEY": str(private), "LOCI_CONTEXT_PUBLIC_KEYS": str(public)})
    token = signer_from(env).sign(CONTEXT)
    assert verifier_from(env).verify(token, "memory") == CONTEXT


def test_keys_may_stand_in_the_variables_themselves_and_two_may_be_valid_at_once() -> None:
    old, new = new_private_key(), base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()
    verifier = verifier_from(Env({"LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(old, new)}))
    for key in (old, new):
        token = signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": key})).sign(CONTEXT)
        assert verifier.verify(token, "memory") == CONTEXT


def test_a_key_in_base64_that_begins_like_a_path_is_a_key() -> None:
    raw = bytes([0xFC, *range(31)])
    key = base64.b64encode(raw).decode()
    assert key.startswith("/")
    token = signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": key})).sign(CONTEXT)
    assert verifier_from(Env({"LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(key)})).verify(token, "memory") == CONTEXT


def rsa_pem() -> str:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.mark.parametrize("text", ["x", "AAAA", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_private_key(text)
    with pytest.raises(SettingsError, match="LOCI_CONTEXT_SIGNING_KEY is not an Ed25519") as caught:
        signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": text}))
    assert text not in str(caught.value) or text == "x"


def test_keys_of_other_kinds_are_refused() -> None:
    with pytest.raises(SettingsError, match="not an Ed25519"):
        signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": rsa_pem()}))


JOB = CallContext(UUID(int=1), UUID(int=0), "memory", ("llm_gateway",))


@pytest.mark.parametrize(
    "context",
    [
        CONTEXT,
        replace(JOB, role="admin"),
        replace(JOB, role="run"),
        replace(JOB, audience=("agent",)),
        replace(JOB, audience=("llm_gateway", "agent")),
        replace(JOB, run_id=UUID(int=3)),
        replace(JOB, ancestors=(UUID(int=3),)),
    ],
)
def test_the_key_of_the_memory_service_vouches_for_its_jobs_alone(context: CallContext) -> None:
    """Attack: the process that has it parses strangers' files, and could be taken over."""
    edge, memory = new_private_key(), new_private_key()
    verifier = verifier_from(Env({"LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(edge, memory_key=memory)}))
    stolen = signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": memory}))
    with pytest.raises(Unauthenticated, match="not valid"):
        verifier.verify(stolen.sign(context), context.audience[0])
    assert verifier.verify(stolen.sign(JOB), "llm_gateway") == JOB
    signer = signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": edge}))
    assert verifier.verify(signer.sign(context), context.audience[0]) == context


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"a": "AAAA"}', '{"a": 5}', '{"a": {}}', '{"a": {"key": "AAAA", "role": "x"}}', "null"]
)
def test_other_documents_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="LOCI_CONTEXT_PUBLIC_KEYS"):
        verifier_from(Env({"LOCI_CONTEXT_PUBLIC_KEYS": text}))


def test_a_key_id_is_the_start_of_a_hash() -> None:
    (name,) = orjson.loads(public_keys_of(new_private_key()))
    assert len(name) == 16
    assert int(name, 16) >= 0
