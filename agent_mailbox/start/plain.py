"""The hot verbs in their plain form, without click, as agents and clients call them.

Belongs here: recognising those forms, exactly. Click gets anything else: another option, an abbreviation, a missing
value, an error. It parses these forms alike; a test holds the two to the same answer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from ..cli.context import Context
    from ..core.compose import Draft
    from ..mailbox.mailbox import Mailbox
    from ..mailbox.open_mailbox import OpenMailbox

    D = TypeVar("D", bound=OpenMailbox)
    Given = dict[str, list[str]]

_CHECK = {"--session": 1, "--limit": 1, "--dir": 1, "--peek": 0, "--json": 0}
_WRITING = {
    "--from": 1,
    "--to": 1,
    "--subject": 1,
    "--body": 1,
    "--ttl-hours": 1,
    "--priority": 1,
    "--type": 1,
    "--dir": 1,
    "--ack": 0,
    "--json": 0,
    "--strict": 0,
}
_REPLY = {**_WRITING, "--all": 0}
_SEARCH = {"--json": 0}
_SHOW = {"--dir": 1, "--json": 0}
_SETTLE = {"--session": 1, "--dir": 1, "--json": 0}
_AGENT = {"--session-id": 1, "--name": 1, "--lead": 1, "--dir": 1, "--json": 0}
_AGENT |= {"--role": 1, "--tags": 1, "--add-tags": 1, "--remove-tags": 1}
_ENDED = {"--session-id": 1, "--dir": 1, "--json": 0}
_LISTED = {"--dir": 1, "--json": 0}
_STATUS = {"--session": 1, "--dir": 1, "--json": 0}
_DEAD = {"--session": 1, "--all": 0, "--dir": 1, "--json": 0}
_REPEATED = ("--to", "--role")


def parsed(words: Sequence[str], known: Mapping[str, int]) -> Given | None:
    """Return the values by option; None unless all words are known long options, each once and with its value."""
    given: Given = {}
    rest = list(words)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option not in known or (option in given and option not in _REPEATED):
            return None
        if known[option]:
            if not equals:
                if not rest or rest[0].startswith("-"):
                    return None
                value = rest.pop(0)
        elif equals:
            return None
        if known[option] and not value:
            return None
        given.setdefault(option, []).append(value)
    return given


def run(arguments: Sequence[str]) -> int | None:
    """Run a plain command; returns its exit code, or None if click must see it (nothing is done then)."""
    if not arguments:
        return None
    verb, words = arguments[0], arguments[1:]
    if verb in ("check", "read"):
        given = parsed(words, _CHECK)
        return None if given is None else _check(given)
    if verb == "send":
        given = parsed(words, _WRITING)
        return None if given is None else _send(given)
    if verb in ("ack", "release", "reply", "show") and words and not words[0].startswith("-"):
        known = {"reply": _REPLY, "show": _SHOW}.get(verb, _SETTLE)
        given = parsed(words[1:], known)
        return None if given is None else _about(verb, words[0], given)
    if verb == "search":
        query = [word for word in words if not word.startswith("-")]
        given = parsed([word for word in words if word.startswith("-")], _SEARCH)
        return None if given is None or not all(query) or not query else _search(query, given)
    if verb == "roster" and words:
        return _roster(words[0], words[1:])
    if verb in ("status", "dead-letters"):
        given = parsed(words, _STATUS if verb == "status" else _DEAD)
        return None if given is None else _standing(verb, given)
    if verb == "hook" and len(words) == 1 and not words[0].startswith("-"):
        from ..commands.hook_command import answer_hook

        return answer_hook(words[0], None)
    return None


def _number(given: Given, option: str) -> int | None:
    """Return the option's value as a whole number in plain spelling: -1 for any other text, None if not given."""
    text = given[option][0] if option in given else None
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _run(given: Given, kind: type[D], do: Callable[..., object], *words: object) -> int:
    """Run a verb on the mailbox, opened as the kind that it needs, and on its own words; return the exit code."""
    from ..cli.context import Context

    app = Context(_one(given, "--dir"))
    app.json = "--json" in given
    try:
        do(app, app.open_desk(kind), *words)
        return 0
    except (Exception, KeyboardInterrupt) as error:
        from ..cli import boundary  # few commands fail

        return boundary.report_failure(error, app.json and not app.answered, app.complete_hint, app.shorten_ids)


def _check(given: Given) -> int | None:
    limit = _number(given, "--limit")
    if limit == -1:
        return None
    from ..commands import check_verb
    from ..mailbox.open_mailbox import OpenMailbox

    most = 20 if limit is None else limit
    return _run(given, OpenMailbox, check_verb.check_mail, _one(given, "--session"), "--peek" in given, most)


def _search(query: Sequence[str], given: Given) -> int | None:
    from ..cli import show_verbs
    from ..mailbox.mailbox import Mailbox

    return _run(given, Mailbox, show_verbs.search_messages, " ".join(query), show_verbs.SEARCH_LIMIT)


def _about(verb: str, message_id: str, given: Given) -> int | None:
    if verb == "reply" and (not _is_written(given) or {"--all", "--to"} <= given.keys()):
        return None
    from ..mailbox.mailbox import Mailbox

    if verb == "show":
        from ..cli import show_verbs

        return _run(given, Mailbox, show_verbs.show_message, message_id)
    from ..cli import verbs

    def do(app: Context, desk: Mailbox) -> None:
        if verb == "reply":
            options = {"strict": "--strict" in given, "everyone": "--all" in given}
            verbs.confirm_sent(app, desk, desk.reply(message_id, _draft(app, desk, given), **options))
        else:
            settle = verbs.acknowledge if verb == "ack" else verbs.give_back
            settle(app, desk, message_id, _one(given, "--session"))

    return _run(given, Mailbox, do)


def _standing(verb: str, given: Given) -> int:
    from ..commands import standing_verbs
    from ..mailbox.mailbox import Mailbox

    session = _one(given, "--session")
    if verb == "status":
        return _run(given, Mailbox, standing_verbs.show_status, session)
    return _run(
        given,
        Mailbox,
        lambda app, desk: standing_verbs.dead_letters(app, desk, session, everyones="--all" in given),
    )


def _roster(what: str, words: Sequence[str]) -> int | None:
    named = words[0] if what in ("freeze", "retire") and words and words[0] and not words[0].startswith("-") else None
    known = {"register": _AGENT, "update": _AGENT, "freeze": _ENDED, "retire": _ENDED, "list": _LISTED}.get(what)
    given = None if known is None else parsed(words[named is not None :], known)
    if given is None:
        return None
    from ..commands import roster_verbs
    from ..mailbox.open_mailbox import OpenMailbox

    session_id = _one(given, "--session-id")

    def do(app: Context, _: OpenMailbox) -> None:
        if what == "list":
            roster_verbs.show_all(app, None)
        elif known is _ENDED:
            roster_verbs.end_agent(app, what, session_id, named)
        else:
            change = roster_verbs.change_of(
                session_id,
                _one(given, "--name"),
                given.get("--role", ()),
                _one(given, "--tags"),
                _one(given, "--add-tags"),
                _one(given, "--remove-tags"),
                _one(given, "--lead"),
            )
            roster_verbs.register_session(app, change.replace(event=what))

    return _run(given, OpenMailbox, do)


def _send(given: Given) -> int | None:
    if "--to" not in given or not _is_written(given):
        return None
    from ..cli import verbs
    from ..mailbox.open_mailbox import OpenMailbox
    from ..mailbox.sending import Sending

    def send(app: Context, desk: OpenMailbox) -> None:
        sent = Sending(desk).send(_draft(app, desk, given), strict="--strict" in given)
        verbs.confirm_sent(app, desk, sent)

    return _run(given, OpenMailbox, send)


def _is_written(given: Given) -> bool:
    """Return whether the words themselves have the text, and hours that click would take; click asks about orders."""
    body = _one(given, "--body") or "-"
    is_plain = body != "-" and not body.startswith("@") and _number(given, "--ttl-hours") != -1
    return is_plain and given.get("--type") != ["control"]


def _draft(app: Context, desk: OpenMailbox, given: Given) -> Draft:
    from ..cli import verbs
    from ..cli.context import FROM
    from ..core.compose import Draft

    return Draft(
        sender=app.acting_session(_one(given, FROM), desk, FROM),
        to=verbs.split_recipients(given.get("--to", ())),
        content=given["--body"][0],
        subject=_one(given, "--subject"),
        ttl_hours=_number(given, "--ttl-hours"),
        ack="--ack" in given,
        priority=_one(given, "--priority") or "normal",
        type=_one(given, "--type") or "message",
    )


def _one(given: Given, option: str) -> str | None:
    return given[option][0] if option in given else None
