"""A fake token endpoint of Google Cloud, and the key of a service account that it knows."""

import base64
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.fakes.http import Request
from tests.fakes.script import DEFAULT_REPLY, Reply
from tests.fakes.server import JSON_HEADERS, FakeServer, Planned

ACCOUNT = "loci@fake-project.iam.gserviceaccount.com"
PROJECT = "fake-project"
_AUDIENCE = "https://oauth2.googleapis.com/token"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class TokenServer(FakeServer):
    """Gives a token for an assertion that the account's key signed. `given` are all tokens so far."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.given: list[str] = []
        self.seconds = 3600
        # What it answers instead, where that is set.
        self.failure: Planned | None = None

    @property
    def token_uri(self) -> str:
        """The URL that issues tokens."""
        return f"{self.base_url}/token"

    def account(self, **changes: Any) -> str:
        """The JSON of the account's key, as the vendor's console gives it."""
        private = _key().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        info = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "fake-key-1",
            "private_key": private.decode(),
            "client_email": ACCOUNT,
            "token_uri": self.token_uri,
        }
        return orjson.dumps({**info, **changes}).decode()

    def respond(self, request: Request, body: Any) -> tuple[Reply, Planned]:
        if self.failure is not None:
            return DEFAULT_REPLY, self.failure
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        complaint = self._complain(form) if request.path == "/token" else "not found"
        if complaint is not None:
            said = {"error": "invalid_grant", "error_description": complaint}
            return DEFAULT_REPLY, Planned(400, JSON_HEADERS, orjson.dumps(said))
        self.given.append(f"ya29.fake-{len(self.given) + 1}")
        token = {"access_token": self.given[-1], "expires_in": self.seconds, "token_type": "Bearer"}
        return DEFAULT_REPLY, Planned(200, JSON_HEADERS, orjson.dumps(token))

    def _complain(self, form: dict[str, str]) -> str | None:
        if form.get("grant_type") != _GRANT or form.get("assertion", "").count(".") != 2:
            return "unsupported grant"
        signed, _, signature = form["assertion"].rpartition(".")
        try:
            _key().public_key().verify(_bytes(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return "Invalid JWT Signature."
        header, claims = (orjson.loads(_bytes(part)) for part in signed.split("."))
        expected = {"iss": ACCOUNT, "aud": _AUDIENCE, "scope": "https://www.googleapis.com/auth/cloud-platform"}
        if header["kid"] != "fake-key-1" or any(claims.get(name) != value for name, value in expected.items()):
            return "Invalid JWT."
        return None if 0 < claims["exp"] - claims["iat"] <= 3600 else "Invalid JWT: a token lives for an hour at most."


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
