"""The certificates of a cluster's servers, and the authority that signs them.

Belongs here: making them. The authority's key is the person's: whoever has it can stand in for a server.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
"""Long ago: a machine whose clock is slow believes it, too."""
_YEARS = timedelta(days=3650)
_PEM, _PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agent-mailbox engine")])


def new_key() -> bytes:
    """Return a new private key, in PEM."""
    return _text(ec.generate_private_key(ec.SECP256R1()))


def authority(key: bytes) -> bytes:
    """Return the certificate of the authority that has this key, in PEM."""
    own = _key(key)
    usage = dict.fromkeys(("key_encipherment", "data_encipherment", "key_agreement", "content_commitment"), False)
    made = (
        _begun(own.public_key(), _NAME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(
                key_cert_sign=True,
                crl_sign=True,
                digital_signature=False,
                encipher_only=False,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
    )
    return made.sign(own, hashes.SHA256()).public_bytes(_PEM)


def of_server(key: bytes, host: str, by: bytes) -> bytes:
    """Return the certificate of a server with this key at a host (a name or an address), signed by an authority's."""
    own, signer = _key(key).public_key(), _key(by)
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]  # a server is its neighbours' client
    made = (
        _begun(own, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])]))
        .add_extension(x509.SubjectAlternativeName([_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
    )
    return made.sign(signer, hashes.SHA256()).public_bytes(_PEM)


def _begun(own: ec.EllipticCurvePublicKey, subject: x509.Name) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().issuer_name(_NAME).subject_name(subject).public_key(own)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(_BEGIN)
    return builder.not_valid_after(datetime.now(UTC) + _YEARS)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(pem, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise ValueError("another kind of key")
    return found


def _text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, _PKCS8, serialization.NoEncryption())
