"""Invitations: ``swarm://<swarm_id>@<host>?token=<jwt>``, EdDSA and nothing else.

Belongs here: making, reading and verifying one; ``membership`` counts its uses. The bearer writes a token's header, so
it chooses neither algorithm nor key (RFC 8725): ``jwk``, ``jku`` and ``kid`` are ignored.
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
from .envelope import AgentId, Endpoint, Instant, Model, PublicKey, Uuid, read_model
from .refusal import Refusal

MAX_TOKEN = 4096
"""Most characters of a token: a real one has some four hundred."""


class TokenClaims(Model):
    """The claims of a token. ``max_uses`` None: any number; ``expires_at`` None: for ever. ``issuer``: the member that
    invites, in a swarm that lets members (ours; the founding text has no field for it)."""

    swarm_id: Uuid
    master: AgentId
    endpoint: Endpoint
    iat: Annotated[int, Field(ge=0, le=1 << 53)]
    max_uses: Annotated[int, Field(ge=1, le=1 << 31)] | None = None
    expires_at: Instant | None = None
    issuer: AgentId | None = None

    def is_expired(self, now: int) -> bool:
        """Return whether it has expired at ``now`` (ms)."""
        return self.expires_at is not None and now >= instant.parse(self.expires_at)


class Invitation(Model):
    """An invitation's URL, read but unverified: only its maker's swarm can verify it.

    ``key``: the master's, if the URL tells it (ours): it alone vouches for the master's certificate then.
    """

    swarm_id: Uuid
    token: str
    claims: TokenClaims
    key: PublicKey | None = None


def make_token(claims: TokenClaims, key: Ed25519PrivateKey) -> str:
    payload = claims.model_dump(exclude_none=True)
    return jwt.encode(payload, key, algorithm="EdDSA", sort_headers=True)


def invitation_url(claims: TokenClaims, token: str, key: str | None = None) -> str:
    """Return the URL to hand on; with the master's key, if that vouches for its certificate."""
    told = f"&key={wire.raw_key(key).hex()}" if key else ""
    return f"swarm://{claims.swarm_id}@{urlsplit(claims.endpoint).netloc}?token={token}{told}"


def _read_claims(token: str, key: Ed25519PublicKey | None) -> TokenClaims:
    """Return the verified claims, or without a key what is claimed. Raise ``Refusal``."""
    if len(token) > MAX_TOKEN or not token.isascii() or token.count(".") != 2:
        raise Refusal("INVALID_TOKEN", "the invite token is incomplete")
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
    payload = wire.parse_json(data, "the invite token")
    try:
        return read_model(TokenClaims, payload, "the invite token")
    except Refusal as error:
        raise Refusal("INVALID_TOKEN", error.message) from None


def unverified_claims(token: str) -> TokenClaims:
    """Return the unverified claims: they name the swarm, and so the key to verify the token with."""
    return _read_claims(token, None)


def verified_claims(token: str, public_key: str) -> TokenClaims:
    """Return the claims of a token that the key's holder signed; raise ``Refusal`` (400 malformed, 401 forged)."""
    return _read_claims(token, Ed25519PublicKey.from_public_bytes(wire.raw_key(public_key)))


def token_fingerprint(token: str) -> str:
    """Return the word by which a use is counted: the SHA-256 of the signed part.

    The signature is left out: base64 spells its last character in several ways, each of which would be a fresh token.
    """
    return sha256(token.rpartition(".")[0].encode("ascii")).hexdigest()


def parse_url(text: str) -> Invitation:
    """Return the invitation in a URL; raise ``Refusal`` if its parts contradict the token's claims."""
    parts = urlsplit(text.strip())
    swarm_id, at, host = parts.netloc.partition("@")
    told = dict(parse_qsl(parts.query, keep_blank_values=True))
    token = told.get("token", "")
    if parts.scheme != "swarm" or not at or not token:
        raise Refusal("INVALID_TOKEN", "an invitation is swarm://SWARM@HOST?token=TOKEN")
    claims = unverified_claims(token)
    if claims.swarm_id != swarm_id or urlsplit(claims.endpoint).netloc != host:
        raise Refusal("INVALID_TOKEN", "the invitation's address is not the one its token names")
    key = _master_key_of(told.get("key"), claims, token)
    return Invitation(swarm_id=swarm_id, token=token, claims=claims, key=key)


def _master_key_of(told: str | None, claims: TokenClaims, token: str) -> str | None:
    """Return the master's key that a URL tells; raise ``Refusal`` if it did not sign the master's token."""
    if told is None:
        return None
    try:
        key = wire.base64_of(bytes.fromhex(told))
        wire.raw_key(key)
    except ValueError:
        raise Refusal("INVALID_TOKEN", "the invitation's key is incomplete") from None
    if claims.issuer in (None, claims.master):
        verified_claims(token, key)
    return key
