"""Checks between a gateway and its peers: clocks, certificates, reachability.

Belongs here: the checks of ``swarm doctor`` that use the network; ``home_checks`` has the others.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from ..core import instant
from ..mailbox.mailbox_gateway import SERVING, serve_words
from ..store.locks.lock import is_held
from . import home as names
from .home_checks import SKEW, Finding
from .ledger import Ledger
from .peer_client import Peers, context_for_key, verifying_context
from .protocol import signing, wire
from .protocol.membership import ACTIVE, Member
from .protocol.outgoing import PeerAnswer
from .swarm_settings import GatewaySettings

SOON = 14 * instant.DAY
_COPY = "a gateway of this name answers there, and none serves here: another copy of this key gets the mail; keep one"


async def check_network(ledger: Ledger, peers: Peers, settings: GatewaySettings) -> list[Finding]:
    """Return findings about our endpoint as peers see it, its certificate, and every peer's clock."""
    known = ledger.identified_knowledge()
    found: list[Finding] = []
    if settings.private_addresses:
        found.append(("config.toml", "private_addresses admits peers at private addresses: for tests only", True))
    mine = signing.public_of(ledger.home.read_key()) if os.path.lexists(ledger.home.path_of(names.KEY)) else ""
    at = {known.endpoint: Member(known.agent_id, known.endpoint, mine, "")}
    for swarm in known.seen:
        if swarm.state == ACTIVE:
            at |= {member.endpoint: member for member in swarm.members.values()}
    skews: dict[str, int] = {}
    asked = (peers.get_document(f"{endpoint}/health", member.public_key) for endpoint, member in at.items())
    answers = await asyncio.gather(*asked)
    for (endpoint, member), answer in zip(at.items(), answers, strict=True):
        ours = endpoint == known.endpoint
        if answer.status != 200 or answer.body is None:
            found.append((endpoint, _unfit_words(ledger, member.agent_id, answer, ours=ours), not ours))
        elif ours and answer.body.get("agent_id") != known.agent_id:
            found.append(
                (endpoint, f"another agent answers there: {_quoted(answer.body.get('agent_id'))[:64]!r}", False)
            )
        elif ours and not is_held(ledger.home.path_of(SERVING)):
            found.append((endpoint, f"{_COPY}: {known.agent_id}", False))
        elif not ours:
            with suppress(ValueError):  # it does not say
                skews[endpoint] = instant.parse(f"{str(answer.body.get('timestamp'))[:23]}Z") - ledger.now()
    found += _check_clocks(skews, at)
    found += await asyncio.to_thread(_check_certificate, known.endpoint, mine, ledger.now(), settings)
    return found


def _unfit_words(ledger: Ledger, agent: str, answer: PeerAnswer, *, ours: bool) -> str:
    """Return what is wrong with a gateway that is not healthy; of ours, what to do."""
    serves = is_held(ledger.home.path_of(SERVING))
    serve = f"`agent-mailbox {serve_words(ledger.home.directory)}`"
    if answer.status == 503 and answer.body is not None and answer.body.get("agent_id") == agent:
        again = f"; make room, or start {serve} again if the mailbox was moved" if ours else ""
        return f"{agent} answers, and can keep no mail now{again}"
    # A certificate that does not verify, or an address that is not allowed, is no other place to serve at.
    is_elsewhere = answer.status or answer.message.startswith(("ConnectError", "no answer"))
    remedy = f"run {serve}" if not serves else "serve at the address where the endpoint leads" if is_elsewhere else ""
    return f"{agent} cannot be reached: {_quoted(answer.message)}" + (f"; {remedy}" if ours and remedy else "")


def _quoted(words: object) -> str:
    """Return what a peer said, in which nothing is between backticks: commands of ours are."""
    return str(words).replace("`", "'")


def _check_clocks(skews: Mapping[str, int], at: Mapping[str, Member]) -> list[Finding]:
    """Return the wrong clocks. If several peers agree with each other but not with us, ours is wrong."""
    grave = "messages are refused until it is set" if any(abs(s) > wire.FRESH for s in skews.values()) else ""
    if len(skews) > 1 and max(skews.values()) - min(skews.values()) <= SKEW < min(map(abs, skews.values())):
        off = next(iter(skews.values())) // 1000
        what = f"this machine's clock is {abs(off)} s {'slow' if off > 0 else 'fast'}, say all {len(skews)} peers"
        return [("clock", "; ".join(filter(None, (what, grave))), not grave)]
    return [
        (
            endpoint,
            f"its clock and ours differ by {skew // 1000} s; {at[endpoint].agent_id} or this machine is wrong",
            abs(skew) <= wire.FRESH,
        )
        for endpoint, skew in skews.items()
        if abs(skew) > SKEW
    ]


def _check_certificate(endpoint: str, key: str, now: int, settings: GatewaySettings) -> list[Finding]:
    try:
        try:
            certificate = _fetch_certificate(endpoint, verifying_context(settings.ca_file))
        except ssl.SSLCertVerificationError:
            if not key:
                raise
            certificate = _fetch_certificate(endpoint, context_for_key(key))
    except ssl.SSLError as error:
        return [(endpoint, f"its certificate does not verify: {error}", False)]
    except OSError:
        return []  # nobody showed one; that it cannot be reached is said already
    left = int(ssl.cert_time_to_seconds(str(certificate["notAfter"]))) * 1000 - now
    return (
        [(endpoint, f"its certificate expires in {left // instant.DAY} days", left > instant.DAY)]
        if left < SOON
        else []
    )


def _fetch_certificate(endpoint: str, trust: ssl.SSLContext) -> dict[str, Any]:
    """Return the certificate that an endpoint shows; raise ``OSError`` if it does not verify."""
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "", parts.port or 443
    with (
        socket.create_connection((host, port), timeout=5) as plain,
        trust.wrap_socket(plain, server_hostname=host) as wrapped,
    ):
        return wrapped.getpeercert() or {}
