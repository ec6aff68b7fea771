"""Requests to peers: HTTPS, HTTP/2 if they speak it, and only to addresses that peers may name.

Belongs here: one request, bounded in time and size, to an address checked before connecting. The name is resolved once
and the connection goes to the checked address: a second answer of the name server changes nothing (SSRF, DNS
rebinding). Redirects and the environment's proxies are ignored; certificates are always verified: by an authority, or
by the peer's own key.

Then the certificate that a gateway makes for itself, and renews. An invitation tells its key, a membership pins it. So
its peers verify each certificate that it signs, and a new one is no news to them. The key signs no handshake: a second
one, for TLS alone, does.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ..core.records import Record
from ..errors import BadData
from ..identity import tls_certificates as certificates
from ..store.files.small_files import replace_file
from .home import Home, mode_problem
from .protocol import wire
from .protocol.outgoing import PeerAnswer
from .protocol.refusal import Refusal
from .swarm_settings import GatewaySettings

FILE = "certificate.pem"
"""Certificate and key in one file: a reader never meets halves of two."""
_END = datetime(9999, 12, 31, tzinfo=UTC)
_LEFT = timedelta(days=365)
TIMEOUT = 10.0
KEY_TIMEOUT = 5.0
MAX_ANSWER = 1 << 20
MAX_INFO = 16 * 1024
MAX_WAIT = 3600
MAX_ADDRESSES = 4
UNVERIFIED = "CERTIFICATE_VERIFY_FAILED"
_UNICAST = IPv6Network("2000::/3")
_NOBODYS = (IPv6Network("2001::/23"), IPv6Network("2002::/16"), IPv6Network("3fff::/20"))
"""Networks in 2000::/3 that are nobody's: Teredo and other assignments of the IETF, 6to4, documentation."""
_RELAYS = IPv4Network("192.88.99.0/24")
"""The relays of 6to4 (RFC 7526)."""


def is_public(address: str) -> bool:
    """Return whether a peer may be at an address: global unicast only.

    Private, loopback, link-local, multicast and reserved addresses are refused, also inside an IPv6 address.
    """
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        # the rest is local, translated (NAT64) or unassigned; older Pythons call parts of it global
        if ip not in _UNICAST or any(ip in network for network in _NOBODYS):
            return False
    return ip.is_global and not ip.is_multicast and not (isinstance(ip, IPv4Address) and ip in _RELAYS)


class Unreachable(Exception):
    """A peer cannot be reached: now, or (``final``) at all."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


def verifying_context(ca_file: str | None) -> ssl.SSLContext:
    """Return what verifies peers: the system's authorities, and those of ``ca_file`` beside them.

    Raise ``BadData`` if that file cannot be used.
    """
    made = ssl.create_default_context()
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        try:
            made.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise BadData(
                f"[swarm] ca_file unusable: {ca_file} ({error.strerror or error})",
                "name a file of certificates in PEM, or remove the key",
            ) from None
    return made


class _Request(Record):
    """A request to a peer. ``trusts``: whose word for its certificate counts, in order (empty: the authorities')."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    trusts: tuple[str, ...]

    @property
    def host(self) -> str:
        """Return the name, or the address, to connect to."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 443

    @property
    def pinned(self) -> bool:
        """Return whether no authority counts."""
        return "" not in self.trusts


Way = tuple[str, int, str, str]
"""The name and port of a peer, its address, and the key that vouches for it (empty: the authorities)."""


class Peers:
    """Connections to peers, kept by origin."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._private = settings.private_addresses
        self._networks = [ip_network(network) for network in settings.networks]
        self._context = verifying_context(settings.ca_file)
        self._clients: dict[Way, httpx.AsyncClient] = {}
        self._by_key: set[Way] = set()
        """Those of them whose certificate only the peer's own key signed."""

    def _may_be_at(self, address: str) -> bool:
        ip = ip_address(address.partition("%")[0])
        ip = getattr(ip, "ipv4_mapped", None) or ip
        return self._private or is_public(address) or any(ip in network for network in self._networks)

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def post_body(
        self, endpoint: str, path: str, body: bytes, agent_id: str, key: str = "", *, only: bool = False
    ) -> PeerAnswer:
        """POST a body to an endpoint; an absent peer is an answer of status 0.

        ``key``: the peer's public key, which may vouch for its certificate, too; ``only``: nothing else may.
        """
        headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "X-Agent-ID": agent_id,
            "X-Swarm-Protocol": wire.PROTOCOL,
        }
        request = _Request("POST", f"{endpoint}/{path}", headers, body, _trusted_keys(key, only))
        return await self._ask_peer(request, TIMEOUT, MAX_ANSWER)

    async def get_document(self, url: str, key: str = "") -> PeerAnswer:
        """GET a small document; ``key`` as with ``post_body``."""
        return await self._ask_peer(_Request("GET", url, {}, None, _trusted_keys(key)), KEY_TIMEOUT, MAX_INFO)

    async def _ask_peer(self, request: _Request, seconds: float, most: int) -> PeerAnswer:
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange_once(request, most)
        except TimeoutError:
            return PeerAnswer(0, message=f"no answer within {seconds:.0f} s")
        except Unreachable as error:
            return PeerAnswer(0, message=str(error), final=error.final)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError, ValueError) as error:
            said = f"{type(error).__name__}: {str(error) or 'the connection broke'}"
            if UNVERIFIED in said:
                verified = "verify, nor is it by the key that it had" if len(request.trusts) > 1 else "verify"
                said = f"its certificate does not {verified}: {said.rpartition('] ')[2]}"
                said = f"its certificate is not by the invitation's key: {said}" if request.pinned else said
            return PeerAnswer(0, message=said[:200])

    async def _exchange_once(self, request: _Request, most: int) -> PeerAnswer:
        answer = await self._connect_first_address(request)
        try:
            data = b""
            async for chunk in answer.aiter_raw():
                data += chunk
                if len(data) > most:
                    return PeerAnswer(0, message=f"an answer of more than {most} bytes")
        finally:
            await answer.aclose()
        return _parse_answer(answer, data)

    async def _connect_first_address(self, request: _Request) -> httpx.Response:
        """Return the answer's head, from the first of the name's addresses that accepts a connection."""
        addresses = await self._allowed_addresses(request.host, request.port)
        for address in addresses[:-1]:
            with suppress(httpx.ConnectError):
                return await self._connect_trusted(request, address)
        return await self._connect_trusted(request, addresses[-1])

    async def _connect_trusted(self, request: _Request, address: str) -> httpx.Response:
        """Return the answer by the first of the trusts under which the certificate verifies.

        A certificate is verified before anything is sent: a vain try tells nobody the request.
        """
        first, last = ((request.host, request.port, address, key) for key in (request.trusts[0], request.trusts[-1]))
        if last in self._by_key:
            first = last
        try:
            return await self._send_request(request, first)
        except httpx.ConnectError as error:
            self._by_key.discard(last)  # it may have an authority's certificate by now
            if first == last or UNVERIFIED not in str(error):
                raise
            try:
                answer = await self._send_request(request, last)
            except httpx.ConnectError:
                raise error from None  # why no authority vouches for it says more
        self._by_key.add(last)
        return answer

    async def _send_request(self, request: _Request, where: Way) -> httpx.Response:
        """Return the answer's head, by the client of that way: a connection verified for one name, or by one peer's
        key, serves no other."""
        _, port, address, key = where
        if where not in self._clients:
            self._clients[where] = httpx.AsyncClient(
                http2=True,
                verify=context_for_key(key) if key else self._context,
                trust_env=False,
                follow_redirects=False,
                timeout=TIMEOUT,
                limits=httpx.Limits(max_connections=4, max_keepalive_connections=2, keepalive_expiry=60),
            )
        client, parts = self._clients[where], urlsplit(request.url)
        made = client.build_request(
            request.method,
            f"https://{f'[{address}]' if ':' in address else address}:{port}{parts.path}",
            content=request.body,
            headers={**request.headers, "Host": parts.netloc},
            extensions={"sni_hostname": request.host},
        )
        return await client.send(made, stream=True)

    async def _allowed_addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses that may be connected to; raise ``Unreachable`` if none."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable(f"{host}: {error.strerror or error}") from None
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        allowed = [address for address in addresses if self._may_be_at(address)]
        if not allowed:
            # a name may resolve elsewhere soon: behind a hotel's portal every one is private
            raise Unreachable(f"{host} is at no public address; nothing was sent there", final=host in addresses)
        return allowed[:MAX_ADDRESSES]


def _trusted_keys(key: str, only: bool = False) -> tuple[str, ...]:
    return (key,) if only else ("", key) if key else ("",)


def _parse_answer(answer: httpx.Response, data: bytes) -> PeerAnswer:
    try:  # as strict as with requests: half a surrogate pair could not be written down
        body = wire.parse_json(data)
    except Refusal:
        body = None
    error = body.get("error") if body is not None else None
    error = error if isinstance(error, dict) else {}
    return PeerAnswer(
        status=answer.status_code,
        code=str(error.get("code") or "")[:64],
        message=str(error.get("message") or f"HTTP {answer.status_code}")[:200],
        wait=_parse_wait(answer.headers.get("retry-after")) if answer.status_code in (429, 503) else None,
        body=body,
    )


def _parse_wait(given: Any) -> int | None:
    """Return the seconds a peer asks to wait, at most an hour; None if invalid: the reference writes an instant
    there."""
    text = str(given or "")
    return min(int(text), MAX_WAIT) if text.isascii() and text.isdigit() and len(text) < 7 else None


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
