"""Messages and sessions as the judge knows them, and what became of each message for each session.

Belongs here: these, and nothing that judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from tests.simulation.process import Process

SHOWN, READ, FREE, MAYBE, RELEASING = "shown", "read", "free", "maybe", "releasing"
OFFERED, TAKING, TAKEN, LEFT, BACK = "offered", "taking", "taken", "left", "back"
"""``OFFERED``: a hook gave it to the client, and nobody knows whether the model took it in. ``TAKING``: the model
speaks after it, which may not be written down. ``LEFT``: its client was killed first, and a role brought it: so another
holder gets it, once somebody looks. ``BACK``: that client came back, and shows it from its own file. ``TAKEN``: it did,
and need not be told again. ``RELEASING``: it is being given back, and nobody was shown it since. ``MAYBE``: its showing
was interrupted, before or after it was recorded; it may come again, and need not."""


class Letter:
    """A message as its sender meant it."""

    def __init__(self, number: int, message_id: str, sender: str, to: str, content: str, begun: int) -> None:
        self.number = number
        self.id = message_id
        self.sender = sender
        self.to = to
        self.content = content
        self.begun = begun
        self.acked: int | None = None
        """The call at which it was acknowledged."""
        self.ack = False
        self.lasting = True
        self.class_ = 1
        self.foreign = False
        self.times = (0, 0)
        """Of a foreign one: the log's time before it was written, and with it."""
        self.was_released = False
        self.attachments: list[dict[str, Any]] | None = None
        self.stored = ""
        """The path of the file that it brings, once it is sent."""

    @property
    def is_role(self) -> bool:
        """Is it for one holder of a role?"""
        return self.to.startswith("role:")

    @property
    def is_for_turn(self) -> bool:
        """Does it wait for a turn? Mail to a tag or to all does, unless it asks for an ack."""
        return not self.ack and (self.to == "all" or (":" in self.to and not self.is_role))


class Session:
    """An agent as the judge knows it."""

    def __init__(self, session_id: str, role: str, tag: str) -> None:
        self.id = session_id
        self.role = role
        self.tag = tag
        self.registered: int | None = None
        self.may_hold = self.holds = False
        """Did it begin to register with its role and tag? Was that confirmed? A check registers it without them."""
        self.retired = False
        self.retiring = 0
        """The last call at which a process began or ended to retire it."""
        self.retirer: Process | None = None
        self.may_be_dead = False
        self.lost_list = False
        """May the list of its open offers be lost, until it starts again?"""
        self.forgotten = 0
        """How often something removed that list."""
        self.may_seem_gone = False
        """Could its client's process not be recorded once? Then others may have got what it was offered."""
        self.is_gone = False
        """Was its client's process killed?"""
        self.led = self.may_be_frozen = False
        self.deaths = 0
        """How often it may have died."""
        self.seen = 0
        self.name = f"n-{session_id}"
        self.line = [session_id]
        """It and those it continues, as far as it may."""
        self.owns = [session_id]
        """It and those that it continues for sure."""
        self.heir: Session | None = None
        """Who continues it."""
        self.passings = 0
        """How many sessions may have taken its place, or may be about to."""

    def may_get(self, letter: Letter) -> bool:
        """May it be shown the letter? What those sent that it continues, it may."""
        return letter.sender != self.id and letter.to in ("all", *(self._words if self.may_hold else ()), *self.line)

    def must_get(self, letter: Letter) -> bool:
        return letter.sender not in self.line and letter.to in ("all", *(self._words if self.holds else ()), *self.owns)

    @property
    def is_leaving(self) -> bool:
        """Is it retired, or just being retired?"""
        return self.retired or (self.retirer is not None and not self.retirer.ended)

    @property
    def _words(self) -> tuple[str, str]:
        return self.role, self.tag
