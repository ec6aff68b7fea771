"""Signing and verifying a message: Ed25519 over the SHA-256 of six fields (founding text, "Message signing").

Belongs here: the exact bytes. ``message_id + timestamp + swarm_id + recipient + type + content``, no separators, UTF-8;
the signature is over the 32 bytes of the digest and is spelt in standard base64.

Two further signatures are ours, over a whole JSON object: a word that says what is signed, then the object's canonical
form (RFC 8785) without the member that holds the signature. None can be taken for another: a message's is over 32
bytes, these are over more and begin with different words, and no token has a line feed in what is signed of it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Protocol

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .refusal import Refusal
from .wire import base64_of, raw_key, unbase64

SEAL = "seal"
"""The member that holds a signature over everything beside it."""
MESSAGE, JOIN = b"agent-swarm-protocol/envelope/1\n", b"agent-swarm-protocol/join-request/1\n"
"""The words that say what is sealed: a message with all its members, which the six fields leave open; a request to
join, by who wants to."""


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
    return _verifies(digest(m), signature, public_key)


def _verifies(data: bytes, signature: str, public_key: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(raw_key(public_key)).verify(unbase64(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def whole(word: bytes, value: dict[str, Any]) -> bytes:
    """What is sealed of an object; raises ``Refusal`` (400) where it holds a number that RFC 8785 has no form for."""
    try:
        return word + rfc8785.dumps({key: one for key, one in value.items() if key != SEAL})
    except ValueError:
        raise Refusal("INVALID_FORMAT", "what is sealed holds no number beyond 53 bits") from None


def sealed(word: bytes, value: dict[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """The object with its seal."""
    return {**value, SEAL: base64_of(key.sign(whole(word, value)))}


def seal_holds(word: bytes, value: dict[str, Any], public_key: str) -> bool:
    """Did the holder of the key seal the object as it stands?"""
    return _verifies(whole(word, value), str(value.get(SEAL)), public_key)


def public_of(key: Ed25519PrivateKey) -> str:
    """The public half, as the wire spells it: its 32 raw bytes in base64."""
    return base64_of(key.public_key().public_bytes_raw())
