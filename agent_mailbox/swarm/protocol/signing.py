"""Signing and verifying a message: Ed25519 over the SHA-256 of six fields (founding text, "Message signing").

Belongs here: the exact bytes. ``message_id + timestamp + swarm_id + recipient + type + content``, no separators, UTF-8;
the signature is over the 32 bytes of the digest and is spelt in standard base64.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .wire import base64_of, raw_key, unbase64


class Signed(Protocol):
    """What is signed of a message."""

    @property
    def message_id(self) -> str: ...
    @property
    def timestamp(self) -> str: ...
    @property
    def swarm_id(self) -> str: ...
    @property
    def recipient(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def content(self) -> str: ...


def signing_string(m: Signed) -> str:
    """The six fields behind one another."""
    return m.message_id + m.timestamp + m.swarm_id + m.recipient + m.type + m.content


def digest(m: Signed) -> bytes:
    """The 32 bytes that are signed."""
    return sha256(signing_string(m).encode("utf-8")).digest()


def sign(m: Signed, key: Ed25519PrivateKey) -> str:
    """The signature, in base64."""
    return base64_of(key.sign(digest(m)))


def verifies(m: Signed, signature: str, public_key: str) -> bool:
    """Did the holder of the key (base64) sign the message? False for whatever is no signature or no key.

    OpenSSL refuses signatures whose scalar is not reduced (RFC 8032, 5.1.7), so none has a second spelling.
    """
    try:
        Ed25519PublicKey.from_public_bytes(raw_key(public_key)).verify(unbase64(signature), digest(m))
    except (InvalidSignature, ValueError):
        return False
    return True


def public_of(key: Ed25519PrivateKey) -> str:
    """The public half, as the wire spells it: its 32 raw bytes in base64."""
    return base64_of(key.public_key().public_bytes_raw())
