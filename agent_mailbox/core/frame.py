"""The frame around other people's words: how every surface writes ids, names, addresses and notes in text.

Belongs here: the words of a line of the frame, for the command line and the hooks alike. Every field goes through
``text``. ``core.showing.message_frame`` has whole messages.
"""

from __future__ import annotations

from . import address, instant, proofs
from .address import ALL, is_remote, is_shown
from .records import USER
from .roster import CLIENT_ENDED
from .text import clipped, neutral, neutral_lines, typed, within_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .records import Message
    from .roster import Agent, Roster

BAR = "| "
GONE = "gone"
"""The word for a session whose client's process ended without a word: it is no state of the roster."""
_WORD = 128
"""Characters of a word in the frame: the longest id there can be."""
_USUAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+-/#:")
"""Characters of ids, names and tags."""
_USUAL_BYTES = "".join(_USUAL).encode()
TITLE = 60
"""Characters of a title, where a message is given by that alone."""
_UNREAD = "no agent can see it now; any that matches before it expires will"
_OWN = "no agent sees its own message: it waits for nobody"
SUBJECT = 300
"""Characters of a subject that are shown: a longer one is a body."""


def plain(text: str, _style: str) -> str:
    """Return the text without style, as for a file, a pipe or an agent."""
    return text


def short(message_id: str) -> str:
    """Return the part of an id that is shown, for a line of the frame."""
    return _own(address.shorten_id(message_id))


def short_typed(message_id: str) -> str:
    """Return the same for a command that somebody will paste."""
    return typed(address.shorten_id(message_id))


def word(text: str) -> str:
    """Return an id, name or tag as one word of the frame.

    A word that none of ours could be is quoted, so that it cannot read like a sentence of the frame. So are letters
    beyond ASCII: some scripts write a whole sentence without spaces.
    """
    return text if _USUAL.issuperset(text) and len(text) <= _WORD else within_quotes(text, _WORD)


def _own(text: str) -> str:
    """Return an id, a name or a role as ``word`` does. One that looks like a word of the frame for the person, the
    reader, everyone or ours is quoted, too."""
    return within_quotes(text, _WORD) if is_shown(text) else word(text)


def shown_state(agent: Agent, gone: Collection[str]) -> str:
    """Return an agent's state for people: its state in the roster, or that it is among the ``gone``."""
    return GONE if agent.session_id in gone else agent.state


def shown_reason(agent: Agent, gone: Collection[str]) -> str:
    """Return the reason of that state; empty if none is known."""
    return CLIENT_ENDED if agent.session_id in gone else agent.reason or ""


def whole_id(session_id: str) -> str:
    """Return a session's whole id; the person is ``user``."""
    return USER if session_id == USER else _own(session_id)


def short_session(session_id: str) -> str:
    """Return a session's id as a line shows it; the person is ``user``."""
    return USER if session_id == USER else short(session_id)


def bare_name(agent: Agent) -> str:
    """Return an agent's name, for a column of names."""
    return _own(agent.name) if agent.name else "-"


def words(texts: list[str]) -> list[str]:
    """Return each text as ``word`` does; together they take the time of one."""
    together = "".join(texts)
    if len(together) <= _WORD and not together.encode("utf-8", "surrogatepass").translate(None, _USUAL_BYTES):
        return texts
    return [*map(word, texts)]


def when(millis: int) -> str:
    """Return an instant to the minute: ``2026-03-16 14:30Z``."""
    return instant.text(millis)[:16].replace("T", " ") + "Z"


def name_of(session_id: str, roster: Roster) -> str:
    """Return an agent's name, else its id, shortened if it is a UUID; the person and our jobs have words."""
    agent = roster.get(session_id)
    if agent is None and is_remote(session_id):
        return word(session_id)  # a remote agent may choose an id with a UUID's hyphens
    if session_id in (USER, *proofs.OURS):
        return session_id
    return _own(agent.name) if agent and agent.name else short(session_id)


def shown_words(agent: Agent) -> tuple[str, ...]:
    """Return the words by which an agent is shown: its name, its id, its short id."""
    return (*([agent.name] if agent.name is not None else []), agent.session_id, short(agent.session_id))


def party(address: str, roster: Roster) -> str:
    """Return an address as people write it: an agent's by its name."""
    return word(address) if ":" in address or address == ALL else name_of(address, roster)


def roles_of(agent: Agent) -> list[str]:
    """Return the roles an agent holds, without their prefix."""
    return [_own(tag.removeprefix("role:")) for tag in agent.roles]


def identity(session_id: str, roster: Roster) -> str:
    """Return who a session is: its name, and its roles."""
    agent = roster.get(session_id)
    roles = f" ({', '.join(roles_of(agent))})" if agent and agent.roles else ""
    return f"{name_of(session_id, roster)}{roles}"


def sender_of(message: Message, roster: Roster, *, brief: bool = False) -> str:
    """Return the claimed sender of the message: name, and the roles it holds; ``brief``: roles in a name's place."""
    agent = roster.get(message.sender)
    if message.sender == USER:
        return f"{USER} (the person)" if proofs.speaker(message.proof, USER) == USER else f"{USER} (unverified)"
    if is_remote(message.sender):
        return f"{word(message.sender)} (remote)"
    if message.sender in proofs.OURS and proofs.is_our_job(message.proof):
        return message.sender
    shown = name_of(message.sender, roster)
    if message.sender in proofs.OURS or is_shown((agent and agent.name) or message.sender):
        return f"{shown} (unverified)"  # no command of ours gives such a name
    if brief and agent and agent.name:
        return shown
    roles = roles_of(agent) if agent else []
    roles = [*roles[:3], "…"] if len(roles) > 3 else roles
    return f"{shown} ({', '.join(roles)})" if roles else shown


def named(message: Message, roster: Roster) -> str:
    """Return the sender's name for one row of a list, with its mark: see ``sender_of``."""
    shown = name_of(message.sender, roster)
    return f"{shown} (unverified)" if is_unverified(message, roster) else shown


def is_unverified(message: Message, roster: Roster) -> bool:
    """Return whether nothing proves a sender whose word would count: the person's, our job's, or of control."""
    if message.sender == USER:
        return proofs.speaker(message.proof, USER) != USER
    agent = roster.get(message.sender)
    if message.sender in proofs.OURS:
        return not proofs.is_our_job(message.proof)
    if message.type == "control":
        return not proofs.proves(message.proof)
    return is_shown((agent and agent.name) or message.sender)


def target_of(message: Message, roster: Roster) -> str:
    """Return the addressees, as people write addresses."""
    return some([party(address, roster) for address in message.recipients])


def unreached(message: Message) -> str:
    """Return the notice to a sender whose message has no reader and no known agent to wait for."""
    return _OWN if message.recipients == (message.sender,) else _UNREAD


def some(words: Sequence[str], most: int = 8) -> str:
    """Return the first words, and how many more there are: ``ada, bo and 3 more``."""
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


PLAIN_NOTES = ("{} priority", "asks for an ack", "in reply to {}")
BRIEF_NOTES = ("{}", "ack?", "re {}")
"""Urgency, a requested ack, a reply: for people, and for a model, to whom each word costs tokens."""


def notes(message: Message, words: tuple[str, str, str] = PLAIN_NOTES) -> list[str]:
    """Return the notes for a reader before the text: control, urgency, a requested ack, a reply."""
    urgency, asks, answers = words
    said = [message.type] if message.type != "message" else []
    if message.type == "control" and not proofs.proves(message.proof):
        said = ["unverified control"]
    if message.type == "system" and is_remote(message.sender):
        from . import references  # rare in mail

        # "system" might read like the client's own word, and only the gateway marks an event
        said = ["swarm event"] if references.is_event(message) else []
    said += [urgency.format(message.priority)] if message.priority != "normal" else []
    said += [asks] if message.ack else []
    said += [answers.format(short(message.thread))] if message.thread else []
    return said


def title(message: Message) -> str:
    """Return a message's subject or beginning, fit for double quotes on a line of others."""
    return quoted(message.subject or message.content[: 4 * TITLE])


def barred(text: str) -> list[str]:
    """Return all lines of somebody's text, each behind the bar. ``message_frame`` does so itself: a call less."""
    return [BAR + line for line in neutral_lines(text)]


def quoted(text: str) -> str:
    """Return the beginning of a text, fit for double quotes on a line of others."""
    return clipped(neutral(text), TITLE).replace('"', "'")
