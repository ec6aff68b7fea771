"""Addresses: their grammar, their modes, and which of them brings a message to a reader.

Belongs here: the form of ids, names, roles and tags, which id the beginning of one means, and the matching rule. Must
not know how the roster is kept
(``roster``) or which messages are read (``claims``).

Stored addresses: ``all`` (broadcast), ``role:x`` (role), ``ns:value`` (tag), a session id (direct). A foreign writer
may store a bare word: an agent's name, or a role without its prefix as the seed writes it.

``swarm:s`` is the tag of all here that joined the swarm ``s``. ``swarm:s/a`` is its agent ``a`` on another machine; it
is the sender of that agent's mail, and no agent here has it. ``team:t/n`` is written for one member of a client's team,
whose id is ``n@t``; ``team:t`` is the tag of all of them.
"""

from __future__ import annotations

from ..errors import Ambiguous, Malformed
from .records import MAX_WORD, NOW, TURN, USER, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping, Sequence

    from .records import Message

ALL = "all"
DIRECT, ROLE, TAG, BROADCAST = "direct", "role", "tag", "broadcast"
MODES = (DIRECT, ROLE, TAG, BROADCAST)
"""From the most specific to the least; if several addresses bring a message, the first of these is reported."""
DEFAULT_TTL: Mapping[str, float | None] = {DIRECT: 24, ROLE: None, TAG: 72, BROADCAST: 4}
"""Hours per mode. Direct, role (none) and broadcast are the seed's; the seed gives tags none, 72 is ours."""
NAMESPACES = ("role", "project", "concern", "domain", "team", "swarm")
SHOWN = frozenset(
    (
        ALL,
        USER,
        "you",
        "your",
        "the",
        "person",
        "theperson",
        "human",
        "system",
        "steward",
        "agentmailbox",
        "swarmgateway",
    )
)
"""Words by which readers know everyone, the person, themselves, or a word of ours: no name may consist of them."""
UUID_SIZE = 36
"""Characters of a UUID as it is written (RFC 9562)."""
MAX_ID = 128
"""Characters in an id, name, role or tag value: a longer one risks the file name that each agent has."""
EXAMPLE_ID = "3e0372f9-8dd5-42a4-86dc-24f763ea5cb1"
"""An id as errors show it to somebody who never saw one."""

ID_SHOWN = 8
"""Characters of a UUID that are shown."""
SHORTEST = 4
"""Characters to which a person may shorten the id of a request, a lease, a watch or a note."""
_ID = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+-")
_WORD = _ID - {*"@+"}
_SIGNS = dict.fromkeys(map(ord, "._@+-/#:"), " ")


class Reader(Record):
    """A reading session: its id, the sessions it continues (itself first), its name, its tags, the agents it muted."""

    session_id: str
    lineage: tuple[str, ...]
    name: str | None = None
    tags: frozenset[str] = frozenset()
    muted: tuple[str, ...] = ()


class Route(Record):
    """The way a message reached a reader: the mode to report, the address it was read through, if that is a claim."""

    mode: str
    via: str
    claims: bool


def is_id(text: str) -> bool:
    """Return whether the text has the form of an id or a name: see ``check_id``."""
    return text[:1].isalnum() and _ID.issuperset(text) and len(text) <= MAX_ID and text != ALL


def check_id(text: str, what: str = "session id") -> str:
    """Return ``text`` if it can be an id or a name (ASCII letters, digits, ``. _ @ + -``); else raise ``Malformed``."""
    if not (text[:1].isalnum() and _ID.issuperset(text)) or len(text) > MAX_ID:
        raise Malformed(
            f"not a {what}: {text!r}" if len(text) <= MAX_ID else f"the {what} is too long: {len(text)} characters",
            f"use 1 to {MAX_ID} ASCII letters, digits or . _ @ + -, beginning with a letter or digit",
        )
    if text == ALL:
        raise Malformed(f"the {what} {text!r} is reserved", "choose another")
    return text


def check_name(text: str, what: str = "name") -> str:
    """Return ``text`` if it can be an agent's name, or a new agent's id; else raise ``Malformed``.

    It has an id's form, and looks like no word of ``SHOWN``."""
    if is_shown(check_id(text, what)):
        raise Malformed(f"the {what} {text!r} is reserved", "choose another")
    return text


def is_shown(word: str) -> bool:
    """Return whether a word consists of ``SHOWN``: in any case, and with any signs within and around."""
    parts = word.casefold().translate(_SIGNS).split()
    return "".join(parts) in SHOWN or (bool(parts) and SHOWN.issuperset(parts))


def is_value(text: str) -> bool:
    """Return whether the text can be the value of a role or tag."""
    return 0 < len(text) <= MAX_ID and text[0].isalnum() and all(c.isalnum() or c in "._@+-/#" for c in text)


def check_role(text: str, held: Container[str] = ()) -> str:
    """Return the tag ``role:x`` for a role given with or without its prefix; else raise ``Malformed``.

    ``held``: role tags that there are; earlier versions gave some that are reserved now. ``steward`` is a role that
    projects give (the founding text on tags does), and is shown in quotes."""
    value = text.removeprefix("role:")
    if not is_value(value):
        raise Malformed(f"not a role: {text!r}", "use letters, digits or . _ @ + - / #, as in architect")
    if value != "steward" and is_shown(value) and f"role:{value}" not in held:
        raise Malformed(f"the role {value!r} is reserved", "choose another")
    return f"role:{value}"


def check_namespace(text: str, namespaces: Collection[str]) -> tuple[str, str]:
    """Return the namespace and the value of a tag; raise ``Malformed`` with the known namespaces if it is of none."""
    namespace, colon, value = text.partition(":")
    known = ", ".join(f"{name}:" for name in namespaces)
    if not colon:
        raise Malformed(f"the tag has no namespace: {text!r}", f"write namespace:value with one of {known}")
    if namespace not in namespaces:
        raise Malformed(f"unknown namespace: {namespace!r} in {text!r}", f"use one of {known}")
    return namespace, value


def check_tag(text: str, namespaces: Collection[str], held: Container[str] = ()) -> str:
    """Return ``text`` if it is a ``namespace:value`` of a known namespace; else raise ``Malformed`` as
    ``check_namespace`` does. ``held`` as for ``check_role``."""
    namespace, value = check_namespace(text, namespaces)
    if namespace == "role":
        return check_role(text, held)
    if not is_value(value):
        raise Malformed(f"not a tag: {text!r}", "use letters, digits or . _ @ + - / # after the namespace")
    return text


def is_remote(sender: str) -> bool:
    """Return whether the sender is an agent on another machine. No id or name of ours holds a colon."""
    return sender.startswith("swarm:")


def swarm_of(word: str) -> tuple[str, str] | None:
    """Return an address's swarm, and its agent there (empty: all of them); None for an address of another kind."""
    if not is_remote(word):
        return None
    swarm, _, agent = word[6:].partition("/")
    return swarm, agent


def teammate(word: str) -> str | None:
    """Return the session id of the member that ``team:t/n`` names (``n@t``, as its client spells it); None for another
    word.

    Raise ``Malformed`` for a name that is empty.
    """
    if not word.startswith("team:") or "/" not in word:
        return None
    team, _, name = word[5:].partition("/")
    if not team or not name:
        raise Malformed(f"not a teammate: {word!r}", "write team:TEAM/NAME, or team:TEAM for the whole team")
    return f"{_word(name)}@{_word(team)}"


def _word(name: str) -> str:
    """Return a client's name as ``naming`` spells it; a name spelt so already is unchanged."""
    if name[:1].isalnum() and _WORD.issuperset(name) and len(name) <= MAX_WORD:
        return name
    from .naming import word  # few names need it

    return word(name)


def role_of(address: str) -> str:
    """Return the role tag of a role address: ``role:x`` for ``role:x`` and for a bare ``x``."""
    return address if address.startswith("role:") else f"role:{address}"


def role_or_tag(address: str) -> str:
    """Return the tag whose bearers an address means that is neither an agent nor ``all``."""
    return address if ":" in address else f"role:{address}"


def own_route(recipients: tuple[str, ...], reader: Reader) -> tuple[str, str] | None:
    """Return the most specific (mode, address) by which a message is the reader's own, not its role's; None if none."""
    tag = None
    for address in recipients:
        if address in reader.lineage or address == reader.name:
            return DIRECT, address
        if tag is None and address in reader.tags and not address.startswith("role:"):
            tag = address
    if tag is not None:
        return TAG, tag
    return (BROADCAST, ALL) if ALL in recipients else None


def role_route(recipients: tuple[str, ...], reader: Reader, bare: Container[str] = ()) -> str | None:
    """Return the reader's role that a message is for, as its tag; None if none.

    An agent with one of the ``bare`` words (``Message.bare``) as name or id takes the mail as a holder would; that goes
    before its roles.
    """
    found = None
    for address in recipients:
        if bare and (word := address.removeprefix("role:")) in bare and has_name(word, reader):
            return address
        if found is None and (
            (address.startswith("role:") and address in reader.tags)
            or (":" not in address and address != ALL and f"role:{address}" in reader.tags)
        ):
            found = role_of(address)
    return found


def has_name(word: str, reader: Reader) -> bool:
    """Return whether the word is the reader's name, its id, or that of one it continues."""
    return word == reader.name or word in reader.lineage


def is_muted(message: Message, muted: Collection[str], lineage: Collection[str]) -> bool:
    """Return whether its sender or one of that one's ``lineage`` is muted; control and the person are always heard."""
    if message.type == "control" or message.sender == USER:
        return False
    return not set(muted).isdisjoint(lineage)


def when_shown(message: Message, mode: str) -> str:
    """Return when a session is shown a message that reaches it by a mode (semantics, "Quiet"): control now, else as its
    sender said. By default: low priority at a turn, what asks for an ack or is urgent now, else by its mode."""
    if message.type == "control":
        return NOW
    if message.when is not None:
        return message.when
    if message.priority == "low":
        return TURN
    return NOW if message.ack or message.priority == "high" or mode in (DIRECT, ROLE) else TURN


def route(recipients: tuple[str, ...], reader: Reader, bare: Container[str] = ()) -> Route | None:
    """Return how a message to ``recipients`` reaches the reader, or None; ``bare`` as for ``role_route``.

    A role is more specific than a tag, so it is the mode reported. But a reader that its session, a tag or ``all`` also
    matches reads for itself and claims nothing (semantics, "Unread").
    """
    own = own_route(recipients, reader)
    role = role_route(recipients, reader, bare)
    if own is None:
        return None if role is None else Route(mode=ROLE, via=role, claims=True)
    if role is not None and own[0] != DIRECT:
        return Route(mode=ROLE, via=own[1], claims=False)
    return Route(mode=own[0], via=own[1], claims=False)


def is_concerned(message: Message, reader: Reader) -> bool:
    """Return whether the message is part of the reader's history: sent by it, or addressed to it."""
    return message.sender in reader.lineage or route(message.recipients, reader, message.bare) is not None


def uuid_of(digits: str, version: str, variant: str = "") -> str:
    """Return 32 or more hexadecimal digits as a UUID (RFC 9562), without the 8 ms of ``import uuid``.

    ``version`` takes the place of digit 12, ``variant`` that of digit 16; by default that one's last two bits stay.
    """
    variant = variant or "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def derived_uuid(*words: str) -> str:
    """Return the UUID that follows from words (version 8): a message is one by it, whoever sends it and how often."""
    from hashlib import sha256  # 4 ms, which most commands are spared

    return uuid_of(sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest(), "8", variant="8")


def shorten_id(text: str) -> str:
    """Return the part of an id that is shown: the beginning of a UUID, else all of it."""
    is_uuid = len(text) == UUID_SIZE and text[8] == text[13] == text[18] == text[23] == "-"
    return text[:ID_SHOWN] if is_uuid else text


def meant_ids(word: str, ids: Collection[str]) -> list[str]:
    """Return which of the ids that begin with a word it means, in any case: the one that it is whole, or all.

    Any program may take an id, and so what we show of a longer one. Such an id never hides that one. Two ids may
    differ in case alone: then a word means the one that has its case, if one has it.
    """
    begin = word.casefold()
    whole = [i for i in ids if i.casefold() == begin]
    if not whole or any(shorten_id(i).casefold() == begin for i in ids if i not in whole):
        return [*ids]
    return [word] if word in whole else whole


def begun_ids(word: str, ids: Iterable[str]) -> list[str]:
    """Return the id that a word is, or else those that begin with it, in any case. A shorter word than ``SHORTEST``
    begins none."""
    begin = word.casefold() if len(word) >= SHORTEST else None
    return meant_ids(word, [one for one in ids if one == word or (begin and one.casefold().startswith(begin))])


def describe_unknown(kind: str, word: str) -> str:
    """Return what an error says of a word that is the id of none, nor the beginning of one."""
    return f"no {kind} {word!r}" + (f": a beginning needs {SHORTEST} characters" if len(word) < SHORTEST else "")


def only_match(word: str, ids: Sequence[str], kinds: str) -> str | None:
    """Return the one id that matches a word, None if none does; raise ``Ambiguous`` with the candidates if several do.

    ``kinds`` names the things in the error: ``agents``.
    """
    if len(ids) > 1:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise Ambiguous(f"{word!r} could be {len(ids)} {kinds}", f"write more of the id: {shown}")
    return ids[0] if ids else None
