"""Rate limits as values of ``now``: so many in a sliding window, per key.

Belongs here: counting. The numbers are the founding text's ("Recommended limits") and configurable; a key is something
the other side cannot choose: a *verified* sender, a swarm, an address.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from ipaddress import IPv4Address, IPv6Address, ip_address

MINUTE, HOUR = 60_000, 3_600_000
MAX_KEYS = 20_000
"""Keys remembered at once: the oldest give way, so that many addresses cost no memory."""


class Window:
    """At most ``most`` within ``span`` ms, for each key."""

    def __init__(self, most: int, span: int) -> None:
        self.most = most
        self.span = span
        self._taken: OrderedDict[str, deque[int]] = OrderedDict()

    def wait(self, key: str, now: int) -> int:
        """Seconds until the key may have one more; 0: now."""
        taken = self._taken.get(key)
        if taken is None:
            return 0
        while taken and (taken[0] <= now - self.span or taken[0] > now):  # a clock set back forgives
            taken.popleft()
        if len(taken) < self.most:
            return 0
        return max(1, -(-(taken[0] + self.span - now) // 1000))

    def take(self, key: str, now: int) -> int:
        """Count one for the key; returns 0, or the seconds to wait where it may have none (which counts nothing)."""
        wait = self.wait(key, now)
        if wait == 0:
            taken = self._taken.setdefault(key, deque())
            taken.append(now)
            self._taken.move_to_end(key)
            self._forget(now)
        return wait

    def _forget(self, now: int) -> None:
        """Drop whoever has nothing left in the window, and beyond ``MAX_KEYS`` the oldest: they stand in the order of
        their last. Else an address that is heard once would cost memory until as many others were."""
        while len(self._taken) > 1:
            taken = next(iter(self._taken.values()))
            if taken and now - self.span < taken[-1] <= now and len(self._taken) <= MAX_KEYS:
                return
            self._taken.popitem(last=False)

    def left(self, key: str) -> int:
        """How many more the key may have, as of the last look."""
        return max(0, self.most - len(self._taken.get(key, ())))


def origin(peer: str, forwarded: str | None, trusted: frozenset[str]) -> str:
    """The address to count a request for: the peer's, unless that is a proxy we were told of. Then the rightmost of
    ``X-Forwarded-For`` that is no such proxy: whatever stands left of it the client may have written itself."""
    found = peer
    if forwarded is not None:
        for hop in reversed(forwarded.split(",")):
            if _plain(found) not in trusted:
                break
            found = hop.strip()
    return network(found, peer)


def network(address: str, otherwise: str) -> str:
    """What is counted as one: an IPv4 address, the /64 of an IPv6 one (who has one address there has them all)."""
    try:
        ip = ip_address(_plain(address))
    except ValueError:
        return otherwise
    if isinstance(ip, IPv6Address):
        return str(IPv6Address(int(ip) >> 64 << 64)) + "/64"
    return str(ip)


def _plain(address: str) -> str:
    """The address without brackets, port or zone, and an IPv4 one that IPv6 carries as itself."""
    text = address.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped if isinstance(mapped, IPv4Address) else ip)
