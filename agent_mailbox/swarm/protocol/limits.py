"""Limits: so many in a sliding window, per key; so many at once, per address, with some places for members alone.

Belongs here: counting. Connections have one room, requests under way another. The numbers are the founding text's
("Recommended limits") and configurable. A key is something the other side cannot choose: a *verified* sender, a swarm,
an address.

The library ``limits`` (5.8) does not serve here. Its memory has no bound: 100,000 addresses are 51 MiB. It counts by
``time.time`` alone and starts a thread.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from ipaddress import IPv4Address, IPv6Address, ip_address

MINUTE, HOUR = 60_000, 3_600_000
MAX_KEYS = 20_000
"""Most keys remembered: the oldest give way, so that many addresses cost little memory."""
FULL, CROWDED = "full", "crowded"
"""Why somebody stays out: no place is left, or none for this address."""
KEPT = 4
"""One place in so many is kept for members."""
MAX_MEMBERS_KNOWN = 4096
"""Most addresses of members remembered: the ones that were heard of longest ago give way."""


class LimitWindow:
    """At most ``most`` within ``span`` ms, for each key."""

    def __init__(self, most: int, span: int) -> None:
        self.most = most
        self.span = span
        self._taken: OrderedDict[str, deque[int]] = OrderedDict()

    def seconds_to_wait(self, key: str, now: int) -> int:
        """Return the seconds until the key may have one more; 0: now."""
        taken = self._taken.get(key)
        if taken is None:
            return 0
        while taken and (taken[0] <= now - self.span or taken[0] > now):  # a clock set back forgives
            taken.popleft()
        if len(taken) < self.most:
            return 0
        return max(1, -(-(taken[0] + self.span - now) // 1000))

    def take_one(self, key: str, now: int) -> int:
        """Count one for the key; return 0. Beyond the limit count nothing and return the seconds to wait."""
        wait = self.seconds_to_wait(key, now)
        if wait == 0:
            taken = self._taken.setdefault(key, deque())
            taken.append(now)
            self._taken.move_to_end(key)
            self._forget_old_keys(now)
        return wait

    def _forget_old_keys(self, now: int) -> None:
        """Drop keys with nothing left in the window, and the oldest beyond ``MAX_KEYS``: they are in the order of their
        last.

        Otherwise an address that came once would cost memory until ``MAX_KEYS`` others did.
        """
        while len(self._taken) > 1:
            taken = next(iter(self._taken.values()))
            if taken and now - self.span < taken[-1] <= now and len(self._taken) <= MAX_KEYS:
                return
            self._taken.popitem(last=False)

    def limit_headers(self, key: str, now: int) -> dict[str, str]:
        """Return the limit, the rest of it as of the last look, and when (Unix seconds) the key has the next one
        back."""
        taken = self._taken.get(key, ())
        back = -(-((taken[0] if taken else now) + self.span) // 1000)
        told = {"Limit": self.most, "Remaining": max(0, self.most - len(taken)), "Reset": back}
        return {f"X-RateLimit-{name}": str(value) for name, value in told.items()}


def origin_address(peer: str, forwarded: str | None, trusted: frozenset[str]) -> str:
    """Return the address to count a request for: the peer's, unless that is a trusted proxy.

    Behind one it is the rightmost other entry of ``X-Forwarded-For``: the client may have written those left of it.
    """
    found = peer
    if forwarded is not None:
        for hop in reversed(forwarded.split(",")):
            if _plain_address(found) not in trusted:
                break
            found = hop.strip()
    return counted_network(found, peer)


def counted_network(address: str, otherwise: str) -> str:
    """Return the unit of counting: an IPv4 address, or the /64 of an IPv6 one, all of which its holder has;
    ``otherwise`` if invalid."""
    try:
        ip = ip_address(_plain_address(address))
    except ValueError:
        return otherwise
    if isinstance(ip, IPv6Address):
        return str(IPv6Address(int(ip) >> 64 << 64)) + "/64"
    return str(ip)


def _plain_address(address: str) -> str:
    """Return the address without brackets, port or zone; an IPv4-mapped one as IPv4."""
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


class Acquaintances:
    """The addresses that verified messages came from, the latest last: bounded, and in memory alone."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, address: str) -> bool:
        return address in self._known

    def add_address(self, address: str) -> None:
        self._known[address] = None
        self._known.move_to_end(address)
        if len(self._known) > MAX_MEMBERS_KNOWN:
            self._known.popitem(last=False)


class Room:
    """``total`` places, ``each`` for one address. The last ``1 / KEPT`` of the places are for members."""

    def __init__(self, total: int, each: int, members: Acquaintances) -> None:
        self.set_limits(total, each, frozenset())
        self._members = members
        self._inside: Counter[str] = Counter()
        self.taken = 0

    def set_limits(self, total: int, each: int, shared: frozenset[str]) -> None:
        """Change the numbers; who is in stays. ``shared``: proxies, which speak for many and have no limit."""
        self.total, self.each, self._shared = total, each, shared

    def take_place(self, address: str) -> str:
        """Take a place; return an empty text, or why there is none (then nothing is taken)."""
        speaks_for_many = address in self._shared
        if not speaks_for_many and self._inside[address] >= self.each:
            return CROWDED
        known = speaks_for_many or address in self._members
        if self.taken >= (self.total if known else self.total - self.total // KEPT):
            return FULL
        self._inside[address] += 1
        self.taken += 1
        return ""

    def give_back_place(self, address: str) -> None:
        self.taken -= 1
        self._inside[address] -= 1
        if not self._inside[address]:
            del self._inside[address]
