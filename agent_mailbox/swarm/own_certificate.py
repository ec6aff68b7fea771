"""The certificate that a gateway makes for itself: its own key vouches for it, as an authority does elsewhere.

Belongs here: making and renewing it, and the context of a client that believes one key and nothing else. An invitation
tells the key, a membership pins it. So its peers verify each certificate that it signs, and a new one is no news to
them. The key signs no handshake: a second one, for TLS alone, does.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ..identity import tls_certificates as certificates
from ..store.files.small_files import replace_file
from .home import Home, mode_problem
from .protocol import wire

FILE = "certificate.pem"
"""Certificate and key in one file: a reader never meets halves of two."""
_END = datetime(9999, 12, 31, tzinfo=UTC)
_LEFT = timedelta(days=365)


def ready_certificate(home: Home, key: Ed25519PrivateKey, endpoint: str, now: int) -> str:
    """Return the path of a certificate for the endpoint, good for a year at least; make one if there is none."""
    path, host = home.path_of(FILE), urlsplit(endpoint).hostname or ""
    at = datetime.fromtimestamp(now / 1000, UTC)
    if not _is_good(path, key.public_key(), host, at):
        replace_file(path, _make_certificate(key, key.public_key(), host, at))
    return path


def _is_good(path: str, by: Ed25519PublicKey, host: str, at: datetime) -> bool:
    try:
        with open(path, "rb") as file:
            data = file.read(65536)
        found, own = x509.load_pem_x509_certificate(data), serialization.load_pem_private_key(data, None)
        if own.public_key() != found.public_key() or mode_problem(path):
            return False
        by.verify(found.signature, found.tbs_certificate_bytes)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # a damaged file has many ways to fail; each ends in a new one
        return False
    return list(names) == [certificates.name_of_host(host)] and found.not_valid_after_utc - at > _LEFT


def _make_certificate(key: Ed25519PrivateKey, by: Ed25519PublicKey, host: str, at: datetime) -> bytes:
    """Return a new key for TLS and its certificate, which ``by``'s owner, ``key``, signs; in PEM."""
    own = certificates.new_key()
    end = max(at, certificates.BEGIN + certificates.YEARS) + certificates.YEARS  # also where a clock is years slow
    signed = certificates.make_for_host(
        own.public_key(), host, "agent-mailbox gateway", end, key, by=_signer_name(by), authority=by
    )
    return certificates.key_text(own) + certificates.pem_of(signed)


def _signer_name(by: Ed25519PublicKey) -> str:
    return by.public_bytes_raw().hex()


@lru_cache(256)
def context_for_key(public_key: str) -> ssl.SSLContext:
    """Return what verifies a peer by its own key (base64) alone: the chain, the times, and the name as everywhere.

    An anchor is a name and a key (RFC 5280, 6.1.1): nobody verifies its own signature, so any key may make that.
    """
    by = Ed25519PublicKey.from_public_bytes(wire.raw_key(public_key))
    anchor = certificates.make_authority(by, _signer_name(by), _END, Ed25519PrivateKey.generate(), signs_lists=False)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.load_verify_locations(cadata=anchor.public_bytes(serialization.Encoding.DER))
    return made
