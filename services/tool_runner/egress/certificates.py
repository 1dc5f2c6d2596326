"""Certificates for hosts whose requests are looked into: made on the fly, by an authority that lives as long as this.

Only sandboxes trust it, and its own key is in memory alone.
"""

import ipaddress
import ssl
import tempfile
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from services.tool_runner.core.network_policy import canonical

_MOST_HOSTS = 256
_AUTHORITY_DAYS = 3_650
_HOST_DAYS = 30
# How long before its end a certificate is made anew.
_SPARE = timedelta(days=2)
# Clocks of sandboxes may be behind.
_EARLIER = timedelta(days=1)


class Authority:
    """Makes contexts that speak for a host to a tool."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[str, tuple[datetime, ssl.SSLContext]] = OrderedDict()

    @cached_property
    def pem(self) -> str:
        """Returns its certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def context(self, host: str) -> ssl.SSLContext:
        """Returns the context for TLS as `host`, a canonical name or address, and no other."""
        known = self._contexts.get(host)
        if known is None or known[0] - datetime.now(UTC) < _SPARE:
            known = self._contexts[host] = self._make(host)
            if len(self._contexts) > _MOST_HOSTS:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(host)
        return known[1]

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _host_key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _certificate(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Loci, for tools in sandboxes")])
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            _builder(name, name, self._key.public_key(), _AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _make(self, host: str) -> tuple[datetime, ssl.SSLContext]:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _builder(self._certificate.subject, subject, self._host_key.public_key(), _HOST_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.not_valid_after_utc, _context(host, certificate, self._host_key)


def _context(host: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])

    def check_name(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        return None if name is None or canonical(name) == host else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = check_name
    _load(context, certificate, key)
    return context


def _load(context: ssl.SSLContext, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    """Loads the chain through a file: ssl reads files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        file.flush()
        context.load_cert_chain(file.name)


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
