"""Prints the Secrets with the certificates of sandbox hosts and of tool-runner; their authority is then forgotten.

    python -m k8s.make_certificates | kubectl create -f -

Good for a year. To renew: delete both secrets, run it again, and restart tool-runner and the hosts together.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOST, RUNNER = "sandbox-host", "loci-tool-runner"
HOST_NAMESPACE, RUNNER_NAMESPACE = "loci-sandboxes", "loci"
_DAYS = 365


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def files(self, authority: x509.Certificate) -> dict[str, str]:
        """name -> PEM, as both sides read them."""
        key = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {"ca.crt": _pem(authority), "tls.crt": _pem(self.certificate), "tls.key": key.decode()}


def certificates(days: int = _DAYS, host: str = HOST) -> tuple[dict[str, str], dict[str, str]]:
    """The files of the hosts, whose certificate is for the name `host`, and those of the runner."""
    authority = _issued("loci sandbox authority", None, days)
    server = _issued(host, authority, days, ExtendedKeyUsageOID.SERVER_AUTH)
    client = _issued(RUNNER, authority, days, ExtendedKeyUsageOID.CLIENT_AUTH)
    return server.files(authority.certificate), client.files(authority.certificate)


def manifests() -> list[dict[str, Any]]:
    """Both Secrets."""
    host, runner = certificates()
    return [
        _secret("sandbox-host-tls", HOST_NAMESPACE, host),
        _secret("sandbox-runner-tls", RUNNER_NAMESPACE, runner),
    ]


def _issued(name: str, authority: Pair | None, days: int, *uses: x509.ObjectIdentifier) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signing = authority.key if authority else key
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .add_extension(_key_usage(signs=authority is None), critical=True)
    )
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return Pair(builder.sign(signing, hashes.SHA256()), key)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _secret(name: str, namespace: str, files: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": files,
    }


def main() -> None:
    """Prints one List."""
    description = "Certificates of sandbox hosts."
    argparse.ArgumentParser(prog="python -m k8s.make_certificates", description=description).parse_args()
    json.dump({"apiVersion": "v1", "kind": "List", "items": manifests()}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
