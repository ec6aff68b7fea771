"""Invitations: ``swarm://<swarm_id>@<host>?token=<jwt>``, EdDSA and nothing else.

Belongs here: making, reading and verifying one. How often it was used is ``membership``'s. The header of a token is the
bearer's word: it chooses neither algorithm nor key (RFC 8725), so ``jwk``, ``jku`` and ``kid`` are never looked at.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field

from ...core import instant
from . import wire
from .envelope import AgentId, Endpoint, Instant, Model, Uuid, read
from .refusal import Refusal

MAX_TOKEN = 4096
"""Characters of a token: a real one has some four hundred."""


class Claims(Model):
    """What a token says. ``max_uses`` None: any number; ``expires_at`` None: for ever. ``issuer`` names the member that
    invites where a swarm lets members (ours; the founding text has no member for it)."""

    swarm_id: Uuid
    master: AgentId
    endpoint: Endpoint
    iat: Annotated[int, Field(ge=0, le=1 << 53)]
    max_uses: Annotated[int, Field(ge=1, le=1 << 31)] | None = None
    expires_at: Instant | None = None
    issuer: AgentId | None = None

    def expired(self, now: int) -> bool:
        """Is it past its time at ``now`` (ms)?"""
        return self.expires_at is not None and now >= instant.parse(self.expires_at)


class Invitation(Model):
    """An invitation's URL, read but not verified (only its maker's swarm can)."""

    swarm_id: Uuid
    host: str
    token: str
    claims: Claims


def make(claims: Claims, key: Ed25519PrivateKey) -> str:
    """The token."""
    payload = claims.model_dump(exclude_none=True)
    return jwt.encode(payload, key, algorithm="EdDSA", sort_headers=True)


def url(claims: Claims, token: str) -> str:
    """The URL that is handed on."""
    return f"swarm://{claims.swarm_id}@{urlsplit(claims.endpoint).netloc}?token={token}"


def _payload(token: str, key: Ed25519PublicKey | None) -> Any:
    """The verified payload; with no key the one that is claimed. Raises ``Refusal``."""
    if len(token) > MAX_TOKEN or not token.isascii() or token.count(".") != 2:
        raise Refusal("INVALID_TOKEN", "the invite token has not the form of one")
    tokens = jwt.PyJWS(algorithms=["EdDSA"])
    options: Any = {"verify_signature": key is not None}
    try:
        if tokens.get_unverified_header(token).get("alg") != "EdDSA":
            raise Refusal("INVALID_TOKEN", "the invite token is not signed with EdDSA")
        data = tokens.decode(token, key or "", algorithms=["EdDSA"], options=options)
    except jwt.InvalidSignatureError:
        raise Refusal("INVALID_SIGNATURE", "the invite token was not signed by this swarm's master") from None
    except (jwt.PyJWTError, ValueError, TypeError):
        raise Refusal("INVALID_TOKEN", "the invite token cannot be read") from None
    return wire.parse_json(data, "the invite token")


def claimed(token: str) -> Claims:
    """What the token claims, unverified: to find the swarm, and so the key, to verify it with."""
    return _claims(_payload(token, None))


def verified(token: str, public_key: str) -> Claims:
    """The claims of a token that the key's holder signed; raises ``Refusal`` (400 for what is no token, 401 forged)."""
    return _claims(_payload(token, Ed25519PublicKey.from_public_bytes(wire.raw_key(public_key))))


def _claims(value: Any) -> Claims:
    try:
        return read(Claims, value, "the invite token")
    except Refusal as error:
        raise Refusal("INVALID_TOKEN", error.message) from None


def fingerprint(token: str) -> str:
    """What a use is counted by: the SHA-256 of what was signed. The signature's own text is left out, for base64 lets
    its last character be spelt in several ways, each of which would be a fresh token."""
    return sha256(token.rpartition(".")[0].encode("ascii")).hexdigest()


def parse_url(text: str) -> Invitation:
    """The invitation in a URL; raises ``Refusal`` where its parts do not agree with the token's claims."""
    parts = urlsplit(text.strip())
    swarm_id, at, host = parts.netloc.partition("@")
    token = dict(parse_qsl(parts.query)).get("token", "")
    if parts.scheme != "swarm" or not at or not token:
        raise Refusal("INVALID_TOKEN", "an invitation is swarm://SWARM@HOST?token=TOKEN")
    claims = claimed(token)
    if claims.swarm_id != swarm_id or urlsplit(claims.endpoint).netloc != host:
        raise Refusal("INVALID_TOKEN", "the invitation's address is not the one its token names")
    return Invitation(swarm_id=swarm_id, host=host, token=token, claims=claims)
