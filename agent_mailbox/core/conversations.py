"""Mail as history: correspondence, threads, and channels with their topics.

Belongs here: questions that ignore whether mail was read. A channel is the mail to an address and every answer in its
threads. A subject begins a topic, and answers stay in it. Topics of one name are one topic, as in Zulip.
"""

from __future__ import annotations

from .address import ALL, DIRECT, role_of, teammate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .records import Message
    from .roster import Roster

    Parent = Callable[[str], Message | None]
    """Looks up the message of an id."""

DEEPEST = 64
"""Messages of a thread that are looked at upwards: a hostile thread may be endless."""


def upwards(message: Message, parent: Parent) -> Iterator[Message]:
    """Yield the message and those above it in its thread, nearest first."""
    one: Message | None = message
    met: set[str] = set()
    while one is not None and one.id not in met and len(met) < DEEPEST:
        yield one
        met.add(one.id)
        one = parent(one.thread) if one.thread is not None else None


def belongs(message: Message, address: str, roster: Roster, parent: Parent) -> bool:
    """Return whether the message is to the address, or answers in a thread of such mail."""
    return any(exchanged((one,), address, roster) for one in upwards(message, parent))


def topic(message: Message, parent: Parent) -> str:
    """Return the subject of the message, else of the nearest one above it that has one; empty if none has."""
    return next((one.subject for one in upwards(message, parent) if one.subject), "")


def folded(subject: str) -> str:
    """Return what topics of one name share: ``Re: Schema  4`` and ``schema 4`` are one topic."""
    words = subject.casefold().split()
    while words and words[0] == "re:":
        del words[0]
    return " ".join(words)


def exchanged(messages: Iterable[Message], word: str, roster: Roster) -> list[Message]:
    """Return the messages from or to a written address; raise ``NotFound`` or ``Ambiguous``."""
    word = teammate(word) or word
    if word == ALL or ":" in word or (f"role:{word}" in roster.roles_ever and roster.mode(word) != DIRECT):
        wanted = word if word == ALL or ":" in word else f"role:{word}"
        return [m for m in messages if m.sender == wanted or any(wanted in (a, role_of(a)) for a in m.recipients)]
    agent = roster.find(word)
    lineage = {*roster.lineage(agent.session_id)}
    names = {*lineage, agent.name}
    return [m for m in messages if m.sender in lineage or not names.isdisjoint((*m.recipients, *m.bare))]


def thread_of(message_id: str, messages: Mapping[str, Message]) -> list[Message]:
    """Return the whole conversation of a message, oldest first: up to its root, then everything below."""
    root, seen = message_id, {message_id}
    while root in messages:
        parent = messages[root].thread
        if parent is None or parent not in messages or parent in seen:
            break
        seen.add(parent)
        root = parent
    answers: dict[str, list[str]] = {}
    for message in messages.values():
        if message.thread is not None:
            answers.setdefault(message.thread, []).append(message.id)
    members, pending = {root}, [root]
    while pending:
        fresh = [i for i in answers.get(pending.pop(), ()) if i not in members]
        members.update(fresh)
        pending += fresh
    return [message for message in messages.values() if message.id in members]
