"""The hot verbs in their plain form, without click: ``check``, ``send``, ``search`` and ``hook`` as agents and clients
call them.

Belongs here: recognising those forms, exactly. Click gets anything else: another option, an abbreviation, a missing
value, an error. It parses these forms alike; a test holds the two to the same answer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Given = dict[str, list[str]]

_CHECK = {"--session": 1, "--limit": 1, "--dir": 1, "--peek": 0, "--json": 0}
_SEND = {
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
_SEARCH = {"--json": 0}
_REPEATED = ("--to",)


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
        given = parsed(words, _SEND)
        return None if given is None or "--to" not in given or "--body" not in given else _send(given)
    if verb == "search":
        query = [word for word in words if not word.startswith("-")]
        given = parsed([word for word in words if word.startswith("-")], _SEARCH)
        return None if given is None or not all(query) or not query else _search(query, given)
    if verb == "hook" and len(words) == 1 and not words[0].startswith("-"):
        from ..cli.hook_command import answer

        return answer(words[0], None)
    return None


def _number(given: Given, option: str) -> int | None:
    """Return the option's value as a whole number in plain spelling: -1 for any other text, None if not given."""
    text = given[option][0] if option in given else None
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _check(given: Given) -> int | None:
    limit = _number(given, "--limit")
    if limit == -1:
        return None
    from ..cli import boundary, verbs
    from ..cli.context import Context
    from ..mailbox.delivery import Delivery

    app = Context(_one(given, "--dir"))
    app.json = "--json" in given

    def work() -> int:
        desk = app.desk(Delivery)
        verbs.check(app, desk, _one(given, "--session"), "--peek" in given, 20 if limit is None else limit)
        return 0

    return boundary.guarded(work, lambda: app.json and not app.answered)


def _search(query: Sequence[str], given: Given) -> int | None:
    from ..cli import boundary, verbs
    from ..cli.context import Context
    from ..mailbox.facade import Mailbox

    app = Context()
    app.json = "--json" in given

    def work() -> int:
        verbs.search(app, app.desk(Mailbox), " ".join(query), verbs.SEARCH_LIMIT)
        return 0

    return boundary.guarded(work, lambda: app.json and not app.answered)


def _send(given: Given) -> int | None:
    hours, body = _number(given, "--ttl-hours"), given["--body"][0]
    if hours == -1 or body == "-" or body.startswith("@"):
        return None
    from ..cli import boundary, verbs
    from ..cli.context import Context
    from ..core.compose import Draft
    from ..mailbox.sending import Posting

    app = Context(_one(given, "--dir"))
    app.json = "--json" in given

    def work() -> int:
        desk = app.desk(Posting)
        draft = Draft(
            sender=app.me(_one(given, "--from"), desk),
            to=verbs.recipients(given["--to"]),
            content=body,
            subject=_one(given, "--subject"),
            ttl_hours=hours,
            ack="--ack" in given,
            priority=_one(given, "--priority") or "normal",
            type=_one(given, "--type") or "message",
        )
        verbs.confirm_sent(app, desk, desk.send(draft, strict="--strict" in given))
        return 0

    return boundary.guarded(work, lambda: app.json and not app.answered)


def _one(given: Given, option: str) -> str | None:
    return given[option][0] if option in given else None
