"""The coordinator's own certificate authority, which invitations pin, and the certificate of its server.

A federation of one address needs no public authority: a node trusts exactly the certificate that its invitation names,
whatever its machine trusts otherwise. Keys are P-256, which every TLS library accepts.
"""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from foltr.errors import InputError, StorageError
from foltr.files import create_private, write_durably

AUTHORITY, AUTHORITY_KEY, SERVER, SERVER_KEY = "authority.pem", "authority.key", "server.pem", "server.key"
_AUTHORITY_DAYS, _SERVER_DAYS = 3650, 397
RENEW_DAYS = 30  # before the end of a server's certificate it is issued anew
_SKEW = timedelta(days=2)  # clocks of nodes may be behind


def make_authority(folder: Path, federation: str, now: float) -> None:
    """A new authority; an existing one is never overwritten."""
    key, begin = ec.generate_private_key(ec.SECP256R1()), _time(now)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"foltr federation {federation[:16]}")])
    certificate = (
        _builder(name, name, key.public_key(), begin, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    create_private(folder / AUTHORITY_KEY, _private(key))
    create_private(folder / AUTHORITY, certificate.public_bytes(Encoding.PEM))


def issue_server(folder: Path, address: str, now: float) -> None:
    """A certificate for the host of the address, under the authority of the folder; the one before is replaced."""
    authority, key = read_certificate(folder / AUTHORITY), _read_key(folder / AUTHORITY_KEY)
    server, begin, host = ec.generate_private_key(ec.SECP256R1()), _time(now), host_of(address)
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        alternative = x509.DNSName(host)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    certificate = (
        _builder(subject, authority.subject, server.public_key(), begin, _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_durably(folder / SERVER_KEY, _private(server))
    write_durably(folder / SERVER, certificate.public_bytes(Encoding.PEM))


def days_left(path: Path, now: float) -> float:
    """Until a certificate ends."""
    return (read_certificate(path).not_valid_after_utc - _time(now)).total_seconds() / 86_400


def names_of(path: Path) -> list[str]:
    """Hosts that a certificate is for."""
    extension = read_certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(name.value) for name in extension.value]


def authority_of(folder: Path) -> bytes:
    """The authority's certificate, DER, for invitations."""
    return read_certificate(folder / AUTHORITY).public_bytes(Encoding.DER)


def read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise StorageError(f"{path}: not a certificate ({problem}); restore it from a backup") from None


def host_of(address: str) -> str:
    host = urlsplit(address).hostname
    if not host:
        raise InputError(f"{address!r}: write the address as https://host:port")
    return host


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begin: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
        .serial_number(x509.random_serial_number()).not_valid_before(begin - _SKEW)
        .not_valid_after(begin + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )  # fmt: skip


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=key_cert_sign, crl_sign=key_cert_sign, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError) as problem:
        raise StorageError(f"{path}: not a private key ({problem}); restore it from a backup") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise StorageError(f"{path}: not a P-256 key; restore it from a backup")
    return key


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
