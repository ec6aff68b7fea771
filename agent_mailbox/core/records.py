"""The logs' content as frozen values: ``Message``, ``Read``, ``RosterEvent``, ``Proof``.

Belongs here: the shapes; ``codec`` reads and writes them. ``Record`` replaces ``dataclasses``, whose import alone costs
twice a bare interpreter start on the path of every hook. To a type checker it *is* a frozen dataclass (PEP 681).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """A frozen value whose fields are its annotations (a base's first), in order, with class attributes as defaults.

    It takes each field once, by place or name, and raises ``TypeError`` like a dataclass.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._fields = (*dict.fromkeys((*cls._fields, *cls.__annotations__)),)
        cls._names = frozenset(cls._fields)

    def __init__(self, *args: Any, **values: Any) -> None:
        mine = self.__dict__
        if args:
            mine.update(zip(self._fields, args, strict=False))
        mine.update(values)
        given = len(args) + len(values)
        if given == len(self._fields) and (not values or mine.keys() == self._names):
            return
        cls, unknown = type(self), mine.keys() - self._names
        if unknown or given != len(mine):
            raise TypeError(f"{cls.__name__} has no such fields: {sorted(unknown) or 'one is surplus or given twice'}")
        for name in self._fields:
            if name not in mine:
                if not hasattr(cls, name):
                    raise TypeError(f"{cls.__name__} needs the field {name!r}")
                mine[name] = getattr(cls, name)

    def replace(self, **changes: Any) -> Self:
        """Return the same value with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[name] for name in self._fields))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({inside})"


class Proof(str):
    """The proof of a record's writer: its text, and the parts of that. Only ``core.proofs`` makes one.

    ``machine``: the other machine whose word it is; None if this one saw the writer. ``id``: the session's, if it is a
    session.
    """

    __slots__ = ("id", "kind", "machine")
    machine: str | None
    kind: str
    id: str | None


USER = "user"
"""The person: a reserved agent that always lives."""

MAX_WORD = 60
"""Characters of a client's name in an id: two of them and the sign between stay under ``address.MAX_ID``."""
MAX_TTL_HOURS = 24 * 366 * 100
"""A century: more is a typing error, and "no expiry" has a spelling of its own."""
TYPES = ("message", "control", "notification", "system", "note")
PRIORITIES = ("low", "normal", "high")
NOW, TURN, IDLE = "now", "turn", "idle"
WHENS = (NOW, TURN, IDLE)
"""When a session is shown mail: between two tools or by a wake, never by a wake, or once its turn is over."""
READ_EVENTS = ("read", "ack", "release", "seen", "claim")
ROSTER_EVENTS = ("register", "update", "freeze", "thaw", "retire")


BARE = "bare"
"""The key of a message that keeps such words (``Message.bare``)."""


class Message(Record):
    """One line of the messages log.

    ``recipients`` are stored addresses: a session id, ``ns:value`` or ``all``. ``timestamp`` and ``expires_at`` are in
    milliseconds since 1970 UTC. ``read_by`` holds the readers a *foreign* writer put into the line itself (ours never
    does). ``extra`` keeps every unknown key, so that it survives a round trip. ``proof`` is what the line's seal proves
    of its writer (``core.proofs``); None if it proves nothing, or nothing hangs on it. ``written_by`` is the same for
    any message, where programs are told it (``OpenMailbox.weigh_mail``): no decision uses it.
    """

    id: str
    sender: str
    recipients: tuple[str, ...]
    timestamp: int
    content: str
    subject: str | None = None
    thread: str | None = None
    ttl_hours: float | None = None
    expires_at: int | None = None
    type: str = "message"
    when: str | None = None
    ack: bool = False
    priority: str = "normal"
    references: Any = None
    attachments: Any = None
    metadata: Any = None
    read_by: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None
    proof: Proof | None = None
    written_by: Proof | None = None

    @property
    def bare(self) -> tuple[str, ...]:
        """Return the words among ``recipients`` that were written without ``role:`` and that nobody had: who takes such
        a name gets the mail."""
        if self.extra is None or type(words := self.extra.get(BARE)) is not list:
            return ()
        return tuple(word for word in words if type(word) is str and f"role:{word}" in self.recipients)


class Read(Record):
    """One line of the reads log: ``session_id`` did ``event`` to a message; ``via`` is the address it came through.

    ``nonce`` names the hook's delivery that offered it: a ``seen`` with the same nonce may follow. ``tokens`` is the
    cost of this message in that delivery. ``title``: the delivery gave its title alone, without the text.
    """

    message_id: str
    session_id: str
    timestamp: int
    event: str = "read"
    via: str | None = None
    nonce: str | None = None
    tokens: int | None = None
    title: bool = False
    proof: Proof | None = None


class RosterEvent(Record):
    """One line of the roster log. A field that is None leaves the agent's unchanged (``()`` empties it)."""

    event: str
    session_id: str
    timestamp: int
    name: str | None = None
    tags: tuple[str, ...] | None = None
    lead: str | None = None
    continues: str | None = None
    by: str | None = None
    reason: str | None = None
    client: str | None = None
    muted: tuple[str, ...] | None = None
    proof: Proof | None = None


class BadLine(Record):
    """A foreign or broken line, as a value: it is skipped and counted, and hides no other line (Promise 2)."""

    reason: str
