"""What can be wrong between a gateway and its peers: clocks, certificates, whether anybody is reached.

Belongs here: those checks of ``swarm doctor`` that ask others; ``files`` has those that do not.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from urllib.parse import urlsplit

from ..core import instant
from .client import Peers
from .files import SKEW, Finding
from .ledger import Ledger
from .protocol import acceptance
from .protocol.membership import ACTIVE
from .settings import Settings

SOON = 14 * instant.DAY


async def network(ledger: Ledger, peers: Peers, settings: Settings) -> list[Finding]:
    """Our own endpoint as peers see it, its certificate, and every peer's clock."""
    known = ledger.identified()
    found: list[Finding] = []
    if settings.private_addresses:
        found.append(("config.toml", "private_addresses lets peers be anywhere: for tests only", True))
    endpoints = {known.endpoint: known.agent_id}
    for swarm in known.swarms.values():
        if swarm.state == ACTIVE:
            endpoints |= {m.endpoint: m.agent_id for m in swarm.members.values()}
    answers = await asyncio.gather(*(peers.get(f"{endpoint}/health") for endpoint in endpoints))
    for (endpoint, agent), answer in zip(endpoints.items(), answers, strict=True):
        mine = endpoint == known.endpoint
        if answer.status != 200 or answer.body is None:
            found.append((endpoint, f"{agent} is not reached: {answer.message}", not mine))
        elif mine and answer.body.get("agent_id") != known.agent_id:
            found.append((endpoint, f"somebody else answers there: {str(answer.body.get('agent_id'))[:64]!r}", False))
        else:
            found += _clock(endpoint, agent, answer.body.get("timestamp"), ledger.now())
    found += await asyncio.to_thread(_certificate, known.endpoint, ledger.now(), settings)
    return found


def _clock(endpoint: str, agent: str, told: object, now: int) -> list[Finding]:
    try:
        skew = instant.parse(str(told)[:23] + "Z") - now
    except ValueError:
        return []
    if abs(skew) <= SKEW:
        return []
    grave = abs(skew) > acceptance.FRESH
    return [(endpoint, f"its clock and ours differ by {skew // 1000} s; {agent} or this machine is wrong", not grave)]


def _certificate(endpoint: str, now: int, settings: Settings) -> list[Finding]:
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "", parts.port or 443
    context = ssl.create_default_context(cafile=settings.ca_file)
    try:
        with (
            socket.create_connection((host, port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname=host) as wrapped,
        ):
            certificate = wrapped.getpeercert() or {}
    except OSError as error:
        return [(endpoint, f"its certificate does not verify: {error}", False)]
    left = int(ssl.cert_time_to_seconds(str(certificate["notAfter"]))) * 1000 - now
    return (
        [(endpoint, f"its certificate ends in {left // instant.DAY} days", left > instant.DAY)] if left < SOON else []
    )
