"""Composing: from a draft to the record that is stored, or the reason for its refusal.

Belongs here: resolving written addresses, the checks on every field, the warnings a sender gets.
"""

from __future__ import annotations

from ..errors import BadData, Malformed, NotFound, Refused
from . import codec, instant, text
from .address import ALL, DIRECT, EXAMPLE_ID, MAX_ID, check_name, check_role, check_tag, is_remote, teammate
from .records import BARE, MAX_TTL_HOURS, PRIORITIES, TYPES, USER, WHENS, Message, Record
from .roster import DEAD, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

MAX_SUBJECT = 1000
"""Characters in a subject: RFC 5322 ends a line at 998."""
MAX_RECORD = 512 * 1024
"""Bytes of one stored line: half of what a reader takes."""


class Draft(Record):
    """A sender's message. ``to`` as written (names and prefixes allowed); ``id`` only for a retry."""

    sender: str
    to: tuple[str, ...]
    content: str
    subject: str | None = None
    thread: str | None = None
    ttl_hours: float | None = None
    expires_at: int | None = None
    ack: bool = False
    priority: str = "normal"
    type: str = "message"
    when: str | None = None
    id: str | None = None
    references: Any = None
    attachments: Any = None
    metadata: Any = None
    extra: Any = None


class Composed(Record):
    """A message that may be sent: the written addresses and their meaning, its line, warnings for its sender."""

    message: Message
    written: tuple[str, ...]
    line: bytes
    resolved: Resolved
    warnings: tuple[str, ...]


def compose_message(
    draft: Draft,
    roster: Roster,
    new_id: Callable[[], str],
    now: int,
    *,
    namespaces: tuple[str, ...],
    max_content: int,
    long_words: int,
    is_ours: bool,
    strict: bool,
    answering: str | None,
) -> Composed:
    """Return what a draft becomes at ``now``; ``new_id`` gives its id, if it has none. See ``checked``, ``resolve`` and
    ``stored_line`` for the reasons why it may become nothing."""
    checked(draft, max_content, is_ours=is_ours)
    sender = roster.get(draft.sender)
    is_dead = sender is not None and sender.state == DEAD and not roster.heirs(draft.sender)
    message_id = new_id() if draft.id is None else check_id_form(draft.id)
    resolved = resolve(draft.to, roster, namespaces, strict=strict, answering=answering)
    if draft.type == "note" and (other := next((one for one in resolved.recipients if ":" not in one), None)):
        raise Malformed(f"a note is for a tag: {other!r}", "name project:NAME, or another tag")
    made = message(draft, resolved.recipients, message_id, now, resolved.bare)
    warnings = [*([unanswerable(draft.sender)] if is_dead else []), *resolved.warnings]
    if len(draft.content) > long_words and (count := text.words(draft.content)) > long_words:
        advice = f"put more than {long_words} words in a file and send its path"
        warnings.append(f"{count} words fill the reader's context; {advice}")
    return Composed(made, draft.to, stored_line(made), resolved, tuple(warnings))


_TYPES: dict[str, type] = {
    "ttl_hours": int,
    "expires_at": str,
    "subject": str,
    "thread": str,
    "ack": bool,
    "type": str,
    "when": str,
    "priority": str,
    "id": str,
    "sender": str,
    "from": str,
}
_KINDS: dict[type, str] = {int: "a whole number", str: "text", bool: "true or false"}


def draft_from(obj: object) -> Draft:
    """Return the draft of a message object in canonical (or older) keys, as a batch holds them; raise ``BadData``.

    A missing sender is empty. The mailbox sets ``timestamp`` and ``read_by``; given ones are ignored.
    """
    if not isinstance(obj, dict):
        raise BadData("not a JSON object", "write one message a line, in the keys of `agent-mailbox show --json`")
    for key, kind in _TYPES.items():
        if obj.get(key) is not None and type(obj[key]) is not kind:
            raise BadData(f"{key} is of the wrong type", f"give it as {_KINDS[kind]}")
    to = obj.get("recipient", obj.get("to"))
    if type(to) is list and not all(type(item) is str for item in to):
        raise BadData("a recipient is not text", "give one address as text, or several as an array of texts")
    stand_in = {"id": "-", "sender": "-", "timestamp": "2000-01-01"}
    try:
        m = codec.message_from({**obj, **stand_in})
    except ValueError as error:
        raise BadData(str(error), "give at least recipient and content") from None
    check_ttl(obj.get("ttl_hours"))
    if obj.get("expires_at") is not None and m.expires_at is None:
        raise BadData(f"expires_at is not a time: {obj['expires_at'][:40]!r}", "write it as 2026-03-16T14:30:00Z")
    return Draft(
        sender=obj.get("sender") or obj.get("from") or "",
        to=m.recipients,
        content=m.content,
        subject=m.subject,
        thread=m.thread,
        ttl_hours=m.ttl_hours,
        expires_at=m.expires_at,
        ack=m.ack,
        priority=obj.get("priority") or "normal",
        type=obj.get("type") or "message",
        when=obj.get("when") or None,
        id=obj.get("id"),
        references=m.references,
        attachments=m.attachments,
        metadata=m.metadata,
        extra={key: value for key, value in (m.extra or {}).items() if key != "from"} or None,
    )


def check_id_form(message_id: str) -> str:
    """Return a UUID in its usual form, lower case; else raise ``Malformed``."""
    wanted = message_id.strip().lower()
    groups = wanted.split("-")
    if [len(g) for g in groups] != [8, 4, 4, 4, 12] or any(c not in "0123456789abcdef-" for c in wanted):
        raise Malformed(
            f"not a message id: {message_id!r}",
            f"pass a UUID such as {EXAMPLE_ID}, or leave the id out to have one made",
        )
    return wanted


def checked(draft: Draft, max_content: int, *, is_ours: bool = False) -> None:
    """Raise ``Malformed`` or ``BadData`` for a field that no recipient could be sent. ``is_ours``: a job of
    ours sends it."""
    if draft.sender != USER and not is_ours:
        check_name(draft.sender, "session id")
    if not any(draft.to):
        raise Malformed("the message has no recipient", "pass --to with an agent, a role, namespace:value or all")
    if not draft.content.strip():
        raise Malformed("the body is empty", "pass --body TEXT, --body - (standard input) or --body @FILE")
    for field, value in (("body", draft.content), ("subject", draft.subject or ""), ("thread", draft.thread or "")):
        if "\0" in value:
            raise BadData(f"the {field} contains a NUL character", "mail is text; send the path of a binary file")
        try:
            size = len(value.encode("utf-8"))
        except UnicodeEncodeError:
            raise BadData(f"the {field} is not UTF-8", "mail is text in UTF-8; send the path of another file") from None
        if field == "body" and size > max_content:
            raise BadData(
                f"the body is over the limit of {max_content} bytes: {size}",
                "write it to a file and send its path",
                code="too_large",
            )
    if draft.subject is not None and len(draft.subject) > MAX_SUBJECT:
        raise BadData(
            f"the subject is over the limit of {MAX_SUBJECT} characters: {len(draft.subject)}",
            "shorten it; the body has more room",
            code="too_large",
        )
    if len(draft.thread or "") > MAX_ID:
        raise Malformed(
            f"the thread id is over the limit of {MAX_ID} characters",
            "pass --thread the id of the message it continues",
        )
    if draft.ttl_hours is not None:
        check_ttl(draft.ttl_hours)
        if draft.expires_at is not None:
            raise Malformed("the message has two times to expire", "give its hours to live or its instant, not both")
    if draft.priority not in PRIORITIES:
        raise Malformed(f"unknown priority: {draft.priority!r}", f"choose one of {', '.join(PRIORITIES)}")
    if draft.when is not None and draft.when not in WHENS:
        raise Malformed(f"unknown time to show it: {draft.when!r}", f"choose one of {', '.join(WHENS)}")
    if draft.type not in TYPES:
        raise Malformed(f"unknown type: {draft.type!r}", f"choose one of {', '.join(TYPES)}")


def check_ttl(hours: object) -> None:
    """Raise ``Malformed`` unless ``hours`` is None or a whole number from 1 to a century."""
    if hours is None:
        return
    if type(hours) is not int or not 0 < hours <= MAX_TTL_HOURS:
        raise Malformed(
            f"not a time to live in hours: {hours!r}",
            f"pass a whole number from 1 to {MAX_TTL_HOURS}, or leave it out for the default",
        )


def is_over_a_century_away(at: int, now: int) -> bool:
    """Return whether an instant (ms) is further off than anything may last: ``MAX_TTL_HOURS``."""
    return at > now + MAX_TTL_HOURS * instant.HOUR


def check_expiry(message: Message) -> None:
    """Raise ``Malformed`` for new mail that expires at an instant which has passed, or is more than a century off."""
    if message.expires_at is None:
        return
    written = instant.text(message.expires_at)
    if message.expires_at <= message.timestamp:
        raise Malformed(f"the time to expire has passed: {written}", "pass a time to come, in UTC or with its zone")
    if is_over_a_century_away(message.expires_at, message.timestamp):
        raise Malformed(f"the time to expire is over a century away: {written}", "leave it out for the default")


def stored_line(message: Message) -> bytes:
    """Return the message's line; raise ``BadData`` if readers would have to skip it."""
    try:
        line = codec.spell_message(message)
    except ValueError as error:
        raise BadData(f"the message cannot be stored: {error}", "keep metadata and references flat and short") from None
    if len(line) > MAX_RECORD:
        raise BadData(
            f"the record is over the limit of {MAX_RECORD} bytes: {len(line)}",
            "keep metadata and references short; write the rest to a file",
            code="too_large",
        )
    return line


class Resolved(Record):
    """Stored addresses and warnings.

    ``dead`` are the dead recipients, to whom *new* mail is refused. ``bare`` are the words that nobody has: see
    ``Message.bare``. ``leaves``: one of the recipients is an agent on another machine.
    """

    recipients: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    dead: tuple[Agent, ...] = ()
    bare: tuple[str, ...] = ()
    leaves: bool = False


def resolve(
    written: tuple[str, ...],
    roster: Roster,
    namespaces: tuple[str, ...],
    *,
    strict: bool = False,
    answering: str | None = None,
) -> Resolved:
    """Return the stored addresses that written ones mean (semantics, "Addressing").

    ``answering`` is the sender a reply goes to: a session id even if the roster does not know it. The mail then waits
    until that session checks in. A bare word is an agent's id or name, then a role that was ever held, then a unique id
    prefix: roles outlive instances. One that is none of these waits for whoever takes it as name or role. Raise
    ``NotFound`` if it nearly is one.
    """
    stored: dict[str, None] = {}
    warnings: list[str] = []
    dead: dict[str, Agent] = {}
    bare: list[str] = []
    leaves = False
    for word in written:
        member = teammate(word) if ":" in word else None
        if word == ALL:
            stored[ALL] = None
        elif member is not None and roster.get(member) is None:
            from . import misspelt  # serves only mistakes

            warnings.append(misspelt.warn_stranger(word, member, roster, strict=strict))
            stored[member] = None
        elif ":" in word and member is None:
            held = roster.roles_ever if word.startswith("role:") else ()
            stored[check_tag(word, namespaces, held)] = None
            if is_remote(word):
                leaves = True  # to agents elsewhere: ``mailbox_gateway`` knows them
            elif word not in roster.roles_ever if word.startswith("role:") else not roster.carriers(word):
                from . import misspelt  # likewise

                warnings += misspelt.warn_unheld(word, roster)
        elif word:
            if word == answering and roster.meant(word) is None:
                stored[word] = None  # a whole id, never the beginning of another's
                continue
            agent = _agent(member or word, roster)
            if agent is None:
                if f"role:{word}" not in roster.roles_ever:
                    from . import misspelt  # likewise

                    warnings.append(misspelt.warn_unknown(word, roster, strict=strict))
                    bare.append(word)
                stored[check_role(word, roster.roles_ever)] = None
                continue
            living = roster.heirs(agent.session_id)  # itself, and those that continue it
            if not living:
                dead[agent.session_id] = agent
            is_last = not living or agent.session_id in living
            stored[agent.session_id if is_last else living[-1]] = None
    return Resolved(tuple(stored), tuple(warnings), tuple(dead.values()), tuple(dict.fromkeys(bare)), leaves)


def find_meanings(written: Iterable[str], roster: Roster) -> set[str]:
    """Return all addresses that written words may have been stored as with an earlier roster: a role, an agent, one
    that this agent continues."""
    found: set[str] = set()
    for word in written:
        agent = None if ":" in word else roster.meant(word)
        found.update((word, f"role:{word}", *(roster.lineage(agent.session_id) if agent else ())))
    return found


def _agent(word: str, roster: Roster) -> Agent | None:
    if roster.mode(word) == DIRECT:
        return roster.find(word)
    if f"role:{word}" in roster.roles_ever and not roster.is_shown_of_another(word):
        return None
    try:
        return roster.find(word)
    except NotFound:
        return None


def unanswerable(sender: str) -> str:
    """Return the warning of mail by a dead agent."""
    register = f"`agent-mailbox roster register --session-id {text.typed(sender)}`"
    return f"{sender} is dead, so an answer to this mail would be refused; {register} revives it"


def refuse_dead(resolved: Resolved) -> None:
    """Raise ``Refused`` if a directly addressed agent is dead; the hint names the roles it held."""
    for agent in resolved.dead:
        roles = ", ".join(agent.roles)
        raise Refused(
            f"the recipient is dead and would never read mail: {agent.name or agent.session_id}",
            f"write to its role: {roles}"
            if roles
            else "it held no role; `agent-mailbox roster list` shows the living agents",
            code="dead_recipient",
        )


def message(
    draft: Draft, recipients: tuple[str, ...], message_id: str, now: int, bare: tuple[str, ...] = ()
) -> Message:
    """Return the record of a checked draft; ``bare`` as in ``Resolved``."""
    return Message(
        id=message_id,
        sender=draft.sender,
        recipients=recipients,
        timestamp=now,
        content=draft.content,
        subject=draft.subject or None,
        thread=draft.thread,
        ttl_hours=draft.ttl_hours,
        expires_at=draft.expires_at,
        type=draft.type,
        when=draft.when,
        ack=draft.ack,
        priority=draft.priority,
        references=draft.references,
        attachments=draft.attachments,
        metadata=draft.metadata,
        extra={**(draft.extra or {}), BARE: list(bare)} if bare else draft.extra,
    )


def same_mail(retry: Message, known: Message, meanings: Collection[str]) -> bool:
    """Return whether a message sent again under its id is the same mail.

    Its times do not count, nor who wrote it, nor a recipient's name that now means another address, or nobody yet.
    ``meanings``: the addresses that the written ones ever had.
    """
    if len(known.recipients) != len(retry.recipients) or not {*meanings, *retry.recipients}.issuperset(
        known.recipients
    ):
        return False
    if (retry.expires_at is None) != (known.expires_at is None):
        return False
    unlike = {"timestamp": 0, "expires_at": None, "recipients": (), "read_by": (), "proof": None, "written_by": None}
    return retry.replace(**unlike, extra=_unmarked(retry)) == known.replace(**unlike, extra=_unmarked(known))


def _unmarked(message: Message) -> dict[str, Any] | None:
    return {key: value for key, value in (message.extra or {}).items() if key != BARE} or None
