"""Signing and verifying a message: Ed25519 over the SHA-256 of six fields (founding text, "Message signing").

Belongs here: the exact bytes. The fields are ``message_id + timestamp + swarm_id + recipient + type + content``,
without separators, UTF-8. The signature is over the 32 bytes of the digest, in standard base64.

Two further signatures are ours, each over a whole JSON object. Its bytes are a word for its kind, then the object's
canonical form (RFC 8785) without the seal. None passes for another: a message's is over 32 bytes, these are longer and
begin with different words. The signed part of a token has no line feed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .envelope import Envelope
from .refusal import Refusal
from .wire import base64_of, decode_base64, raw_key

SEAL = "seal"
"""The member that holds a signature over everything beside it."""
MESSAGE, JOIN = b"agent-swarm-protocol/envelope/1\n", b"agent-swarm-protocol/join-request/1\n"
"""The words for the kinds of seal: a message with all members, which the six fields leave open; a request to join."""


def signing_string(m: Envelope) -> str:
    """Return the six fields, one behind the other: ``…e2026-11-21T11:27:18.935Za8…49alphamessageHello``."""
    return m.message_id + m.timestamp + m.swarm_id + m.recipient + m.type + m.content


def signed_digest(m: Envelope) -> bytes:
    """Return the 32 bytes that are signed."""
    return sha256(signing_string(m).encode("utf-8")).digest()


def sign_message(m: Envelope, key: Ed25519PrivateKey) -> str:
    """Return the signature, in base64."""
    return base64_of(key.sign(signed_digest(m)))


def is_signed_by(m: Envelope, signature: str, public_key: str) -> bool:
    """Return whether the holder of the key (base64) signed the message; False for a malformed signature or key.

    OpenSSL refuses signatures whose scalar is not reduced (RFC 8032, 5.1.7), so each has one spelling.
    """
    return _verify_signature(signed_digest(m), signature, public_key)


def _verify_signature(data: bytes, signature: str, public_key: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(raw_key(public_key)).verify(decode_base64(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def bytes_to_seal(word: bytes, value: dict[str, Any]) -> bytes:
    """Return the bytes to seal of an object; raise ``Refusal`` (400) for a number that RFC 8785 has no form for."""
    try:
        return word + rfc8785.dumps({key: one for key, one in value.items() if key != SEAL})
    except ValueError:
        raise Refusal("INVALID_FORMAT", "what is sealed holds no number beyond 53 bits") from None


def seal_object(word: bytes, value: dict[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    return {**value, SEAL: base64_of(key.sign(bytes_to_seal(word, value)))}


def seal_holds(word: bytes, value: dict[str, Any], public_key: str) -> bool:
    """Return whether the holder of the key sealed the object as it is."""
    return _verify_signature(bytes_to_seal(word, value), str(value.get(SEAL)), public_key)


def public_of(key: Ed25519PrivateKey) -> str:
    """Return the public key as the wire spells it: its 32 raw bytes in base64."""
    return base64_of(key.public_key().public_bytes_raw())
