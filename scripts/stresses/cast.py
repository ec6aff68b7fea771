"""Who takes part in a stress run and whom they write to.

Belongs here: names, roles and tags, the mailbox's configuration, how a message is told by its text. Every message
carries a token, ``[[w3.0.17]]``: who wrote it, in which of its lives, its number.
"""

from __future__ import annotations

import re

from agent_mailbox.core import proofs
from agent_mailbox.core.records import USER

WRITERS = tuple(f"w{n}" for n in range(8))
READERS = tuple(f"r{n}" for n in range(4))
HOLDERS = {"c0": ("builder",), "c1": ("builder",), "c2": ("tester",), "c3": ("builder", "tester")}
HOOKED: dict[str, tuple[str, ...]] = {"h0": (), "h1": ("builder",)}
"""Sessions that a client's hooks look after."""
LEADS = ("b0", "b1")
LED = {"k0": "b0", "k1": "b0", "k2": "b1", "k3": "user"}
"""Sessions whose tool calls wait for a lead's leave, with who that is. Every lead tries the other's as well."""
NAMES = ("nan-0", "nan-1")
"""Each borne by one short-lived session after the other."""
LIVES = {"l0": NAMES[0], "l1": NAMES[1]}
STEADY = (*WRITERS, *READERS, *HOLDERS, *HOOKED)
"""Those that never retire: what is for them must reach them."""
STEWARDS, STRANGERS = ("steward",), ("zed-0", "zed-1")
STRANGE_READER = "zed"
"""Begins the reader of the strangers' reads, which are of no message there is."""
ROLES = {**HOLDERS, **HOOKED}
TAG = "project:stress"
TAGGED = (*READERS, *HOOKED)
NOBODY = "role:nobody"
ADDRESSES = (
    *(*READERS, *READERS, *HOLDERS, *HOOKED, *NAMES, *NAMES, *WRITERS[:2]),
    *("role:builder", "role:tester", "builder") * 3,
    *(TAG, TAG, "all", NOBODY),
)
MAX_JUMP_HOURS = 50
CONFIG = """\
# No clock jump of the run makes mail expire, unless it was sent with a time to live of its own.
[ttl]
direct = 2400
tag = 2400
broadcast = 2400
[control]
timeout = 1.5
"""
DENIED = "rm"
"""No call that begins so may run, by a policy; no lead is asked about it."""
TOKEN = re.compile(r"\[\[([a-z0-9.-]+)\]\]")
TORN = "torn-on-purpose"
"""Stands in every line that is broken on purpose."""


def body(token: str, size: int) -> str:
    """The text of a message: its token and as many characters more."""
    return f"[[{token}]] " + "x" * size


def tokens(text: str) -> list[str]:
    """The tokens that occur in a text."""
    return TOKEN.findall(text)


def as_named(who: str) -> str:
    """Everyone is whom they say: the run is about what is written, not about who may."""
    return proofs.TERMINAL if who == USER else proofs.of_session(who)
