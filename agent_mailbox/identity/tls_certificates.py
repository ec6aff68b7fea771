"""Certificates that we make ourselves: of a host, and of the key that signs such ones.

Belongs here: making them, by a library that only some extras bring. The gateway and the engine say who signs what, and
where the files are.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID as Use
from cryptography.x509.oid import NameOID

PublicKey = ec.EllipticCurvePublicKey | Ed25519PublicKey
PrivateKey = ec.EllipticCurvePrivateKey | Ed25519PrivateKey

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
"""Long ago: a machine whose clock is slow believes it, too."""
YEARS = timedelta(days=3650)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key for TLS."""
    return ec.generate_private_key(ec.SECP256R1())


def key_text(key: PrivateKey) -> bytes:
    """Return a private key, in PEM."""
    how = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *how)


def pem_of(certificate: x509.Certificate) -> bytes:
    """Return a certificate, in PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def name_of_host(host: str) -> x509.GeneralName:
    """Return the name by which a client knows a host: an address, or a name of the DNS."""
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def make_authority(own: PublicKey, name: str, end: datetime, key: PrivateKey, *, signs_lists: bool) -> x509.Certificate:
    """Return the certificate of an authority with this public key and name, signed by ``key``."""
    no = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    usage = dict.fromkeys((*no, "encipher_only", "decipher_only"), False)
    made = (
        _begin_certificate(own, name, name, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=signs_lists, **usage), critical=True)
    )
    return _sign_certificate(made, own, key)


def make_for_host(
    own: PublicKey,
    host: str,
    subject: str,
    end: datetime,
    key: PrivateKey,
    *,
    by: str,
    authority: PublicKey,
    is_client: bool = False,
) -> x509.Certificate:
    """Return the certificate of a host (a name or an address) with this public key, signed by ``key``. The
    ``authority`` that is to have signed it is called ``by``. ``is_client``: it is its neighbours' client, too."""
    usage = [Use.SERVER_AUTH, *([Use.CLIENT_AUTH] if is_client else [])]
    made = (
        _begin_certificate(own, subject, by, end)
        .add_extension(x509.SubjectAlternativeName([name_of_host(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
    )
    return _sign_certificate(made, own, key)


def _begin_certificate(own: PublicKey, subject: str, issuer: str, end: datetime) -> x509.CertificateBuilder:
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (issuer, subject)]
    builder = x509.CertificateBuilder().issuer_name(names[0]).subject_name(names[1]).public_key(own)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(BEGIN).not_valid_after(end)


def _sign_certificate(made: x509.CertificateBuilder, own: PublicKey, key: PrivateKey) -> x509.Certificate:
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
    return made.sign(key, None if isinstance(key, Ed25519PrivateKey) else hashes.SHA256())
