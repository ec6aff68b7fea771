"""The places of a gateway: so many in all, so many for one address, and some that only members get.

Belongs here: counting who is in. Connections have one room, requests under way another. An address is the unit of
``protocol.limits.network``: an IPv4 address, or the /64 of an IPv6 one.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

FULL, CROWDED = "full", "crowded"
"""Why somebody stays out: no place is left, or none for this address."""
KEPT = 4
"""One place in so many is kept for members."""
MAX_MEMBERS_KNOWN = 4096
"""Most addresses of members remembered: the ones that were heard of longest ago give way."""


class Acquaintances:
    """The addresses that verified messages came from, the latest last: bounded, and in memory alone."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, address: str) -> bool:
        return address in self._known

    def add_address(self, address: str) -> None:
        """Remember an address."""
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
        """Give a place back."""
        self.taken -= 1
        self._inside[address] -= 1
        if not self._inside[address]:
            del self._inside[address]
