"""The hot verbs in their plain form, without click, as agents and clients call them.

Belongs here: recognising those forms, exactly. Click gets anything else: another option, an abbreviation, a missing
value, an error. It parses these forms alike; a test holds the two to the same answer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..cli.context import Context
    from ..core.compose import Draft
    from ..mailbox.mailbox import Mailbox
    from ..mailbox.open_mailbox import OpenMailbox

    D = TypeVar("D", bound=OpenMailbox)
    Given = dict[str, list[str]]

# Each verb's options; an equals sign marks those with a value.
_CHECK = "--session= --limit= --dir= --peek --json"
_WRITING = "--from= --to= --subject= --body= --ttl-hours= --priority= --type= --dir= --ack --json --strict"
_REPLY = f"{_WRITING} --all"
_SEARCH = "--json"
_LISTED = "--dir= --json"
_SETTLE = f"--session= {_LISTED}"
_DEAD = f"{_SETTLE} --all"
_ENDED = f"--session-id= {_LISTED}"
_AGENT = f"{_ENDED} --name= --lead= --role= --tags= --add-tags= --remove-tags="
_REPEATED = ("--to", "--role")


class _NotPlain(Exception):
    """Click must see the command; nothing is done yet."""


def _parse(words: Sequence[str], known: str) -> Given:
    """Return the values by option. All words must be known long options, each once and with its value."""
    given: Given = {}
    options, rest = known.split(), list(words)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        is_valued = f"{option}=" in options
        if not (is_valued or option in options) or (option in given and option not in _REPEATED):
            raise _NotPlain
        if is_valued and not equals and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        if bool(value.strip()) != is_valued or (equals and not is_valued):
            raise _NotPlain
        given.setdefault(option, []).append(value)
    return given


def run(arguments: Sequence[str]) -> int | None:
    """Run a plain command; returns its exit code, or None if click must see it (nothing is done then)."""
    verb, *words = arguments or ("",)
    target = words[0] if words and not words[0].startswith("-") else None
    try:
        if verb in ("check", "read"):
            return _check(_parse(words, _CHECK))
        if verb == "send":
            return _send(_parse(words, _WRITING))
        if verb in ("ack", "release", "reply", "show") and target is not None:
            return _about(verb, target, _parse(words[1:], {"reply": _REPLY, "show": _LISTED}.get(verb, _SETTLE)))
        if verb == "search":
            return _search([word for word in words if not word.startswith("-")], words)
        if verb == "roster" and words:
            return _roster(words[0], words[1:])
        if verb in ("status", "dead-letters"):
            return _standing(verb, _parse(words, _SETTLE if verb == "status" else _DEAD))
    except _NotPlain:
        return None
    if verb == "hook" and len(words) == 1 and target is not None:
        from ..commands.hook_command import answer_hook

        return answer_hook(target, None)
    return None


def _number(given: Given, option: str) -> int | None:
    """Return the option's value, which must be a whole number in plain spelling; None if not given."""
    text = _one(given, option)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _NotPlain
    return None if text is None else int(text)


def _run(given: Given, kind: type[D], do: Callable[..., object], *words: object) -> int:
    """Run a verb on the mailbox, opened as the kind that it needs, and on its own words; return the exit code."""
    from ..cli.context import Context

    app = Context(_one(given, "--dir"))
    app.named = _one(given, "--from" if "--from" in given else "--session")
    app.json = "--json" in given
    try:
        do(app, app.open_desk(kind), *words)
        return 0
    except (Exception, KeyboardInterrupt) as error:
        from ..cli import boundary  # few commands fail

        return boundary.report_failure(error, app.json and not app.answered, app)


def _check(given: Given) -> int:
    limit = _number(given, "--limit")
    from ..commands import check_verb
    from ..mailbox.open_mailbox import OpenMailbox

    most = 20 if limit is None else limit
    return _run(given, OpenMailbox, check_verb.check_mail, "--peek" in given, most)


def _search(query: Sequence[str], words: Sequence[str]) -> int:
    given = _parse([word for word in words if word.startswith("-")], _SEARCH)
    if not query or not all(query):
        raise _NotPlain
    from ..cli import show_verbs
    from ..mailbox.mailbox import Mailbox

    return _run(given, Mailbox, show_verbs.search_messages, " ".join(query), show_verbs.SEARCH_LIMIT)


def _about(verb: str, message_id: str, given: Given) -> int:
    if verb == "reply":
        _check_written(given)
    if {"--all", "--to"} <= given.keys():
        raise _NotPlain
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
            settle(app, desk, message_id)

    return _run(given, Mailbox, do)


def _standing(verb: str, given: Given) -> int:
    from ..commands import standing_verbs
    from ..mailbox.mailbox import Mailbox

    if verb == "status":
        return _run(given, Mailbox, standing_verbs.show_status)
    is_all = "--all" in given
    return _run(given, Mailbox, lambda app, desk: standing_verbs.dead_letters(app, desk, everyones=is_all))


def _roster(what: str, words: Sequence[str]) -> int:
    ends = what in ("freeze", "retire")
    named = words[0] if ends and words and words[0].strip() and not words[0].startswith("-") else None
    if not ends and what not in ("register", "update", "list"):
        raise _NotPlain
    given = _parse(words[named is not None :], _ENDED if ends else _LISTED if what == "list" else _AGENT)
    from ..commands import roster_verbs
    from ..mailbox.open_mailbox import OpenMailbox

    session_id = _one(given, "--session-id")

    def do(app: Context, _: OpenMailbox) -> None:
        if what == "list":
            roster_verbs.show_all(app, None)
        elif ends:
            roster_verbs.end_agent(app, what, session_id, named)
        else:
            others = [_one(given, option) for option in ("--tags", "--add-tags", "--remove-tags", "--lead")]
            change = roster_verbs.change_of(session_id, _one(given, "--name"), given.get("--role", ()), *others)
            roster_verbs.register_session(app, change.replace(event=what))

    return _run(given, OpenMailbox, do)


def _send(given: Given) -> int:
    _check_written(given)
    if "--to" not in given:
        raise _NotPlain
    from ..cli import verbs
    from ..mailbox.open_mailbox import OpenMailbox
    from ..mailbox.sending import Sending

    def send(app: Context, desk: OpenMailbox) -> None:
        sent = Sending(desk).send(_draft(app, desk, given), strict="--strict" in given)
        verbs.confirm_sent(app, desk, sent)

    return _run(given, OpenMailbox, send)


def _check_written(given: Given) -> None:
    """Check that the words themselves have the text, and hours that click would take; click asks about orders."""
    body = _one(given, "--body") or "-"
    _number(given, "--ttl-hours")
    if body == "-" or body.startswith("@") or given.get("--type") == ["control"]:
        raise _NotPlain


def _draft(app: Context, desk: OpenMailbox, given: Given) -> Draft:
    from ..cli import verbs
    from ..cli.context import FROM
    from ..core.compose import Draft

    return Draft(
        sender=app.acting_session(desk, FROM),
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
