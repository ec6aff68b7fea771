"""The certificates of a cluster's servers, and the authority that signs them.

Belongs here: who signs what. The authority's key is the person's: whoever has it can stand in for a server.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ...identity import tls_certificates as certificates

_NAME = "agent-mailbox engine"


def new_key() -> bytes:
    """Return a new private key, in PEM."""
    return certificates.key_text(certificates.new_key())


def authority_certificate(key: bytes) -> bytes:
    """Return the certificate of the authority that has this key, in PEM."""
    own = _load_private_key(key)
    return certificates.pem_of(
        certificates.make_authority(own.public_key(), _NAME, _end_of_validity(), own, signs_lists=True)
    )


def of_server(key: bytes, host: str, by: bytes) -> bytes:
    """Return the certificate of a server with this key at a host (a name or an address), signed by an authority's."""
    signer = _load_private_key(by)
    made = certificates.make_for_host(
        _load_private_key(key).public_key(),
        host,
        host[:64],
        _end_of_validity(),
        signer,
        by=_NAME,
        authority=signer.public_key(),
        is_client=True,
    )
    return certificates.pem_of(made)


def _end_of_validity() -> datetime:
    return datetime.now(UTC) + certificates.YEARS


def _load_private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(pem, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise ValueError("another kind of key")
    return found
