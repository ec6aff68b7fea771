"""The commands that tell what a session has and owes, for either parser: ``status`` and ``dead-letters``.

Belongs here: the two commands once their arguments are parsed. Must not import click.
"""

from __future__ import annotations

from ..cli import mail_output, render
from ..core import frame, instant
from ..core.frame import name_of, shown_state, when, word
from ..core.records import USER
from ..core.roster import DEAD
from ..core.text import typed
from ..errors import Malformed
from ..mailbox.queries import LATELY, MailQueries
from ..store.files import system
from ..store.log.stamps import OFFERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..cli.context import Context
    from ..core.message_reads import Reads
    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.mailbox import Mailbox
    from ..mailbox.queries import Status

DEAD_LETTERS = 50
"""Dead letters that are listed unless more are asked for."""


def show_status(app: Context, mailbox: Mailbox, *, cost: bool = False) -> None:
    """Print a session's unread mail, obligations and dead letters in short; ``cost``: with the tokens of its mail."""
    me, box = app.reading_session(mailbox), mailbox.directory
    queries = MailQueries(mailbox)
    found = queries.status(me)
    roster = mailbox.logs.read_roster()
    asked = _count_asked(mailbox, me, roster)
    lines = _status_text(app, found, roster, asked)
    value: dict[str, Any] = {
        "session": me,
        "name": found.agent.name if found.agent else None,
        "unread": found.unread,
        "obligations": [mail_output.message_json(m, found.reads, box) for m in found.obligations],
        "dead_letters": found.dead_letters,
        "to_decide": asked,
        "state": shown_state(found.agent, found.gone) if found.agent else None,
        "tags": list(found.agent.tags) if found.agent else [],
        "missing_acks": [
            {**_waiting_json(m, found.reads, found.now, box), "owed_by": render.owing_json(owed)}
            for m, owed in found.missing_acks
        ],
        "waiting_for_nobody": [_waiting_json(m, found.waiting_reads, found.now, box) for m in found.waiting],
        "idle": [{"agent": m.sender, "since": instant.text(m.timestamp)} for m in found.idle],
        **({"queued": len(found.queued)} if found.queued else {}),
        **({"never_sent": found.never_sent} if found.never_sent else {}),
        "dir": box,
    }
    if system.exists(mailbox.logs.stamp_files.kept_here(OFFERED)):
        from ..cli import task_output  # a mailbox that has tasks
        from ..control.task_views import TaskViews

        held = [one for one in TaskViews(mailbox).tasks(me) if one.is_mine]
        value["tasks"] = [task_output.task_json(one) for one in held]
        lines += ["You hold:", *task_output.list_text(app, held, mailbox).splitlines()] if held else []
    if cost:
        costs = queries.costs(me)
        wakes, spent = queries.wakes(me)
        lines += render.costs_text(costs, roster, wakes, spent)
        value["cost"] = [dict(one.__dict__) for one in costs]
        value["wakes"] = {"count": wakes, "tokens": spent}
    app.print_answer(app.place_line(mailbox.directory) + app.fold_framed("\n".join(lines) + "\n"), value)


def _count_asked(mailbox: Mailbox, me: str, roster: Roster) -> int:
    """Return how many requests wait for the decision of the person, or of an agent that leads others."""
    if me != USER and not roster.led_by(me):
        return 0
    from ..control.requests import Requests  # most agents decide nothing

    return len(Requests(mailbox).calling(me))


def _status_text(app: Context, found: Status, roster: Roster, asked: int) -> list[str]:
    """Return the lines of a status; ``asked``: the requests that wait for its decision."""
    agent = found.agent
    next_step = app.complete_command("check")
    if agent is not None and agent.state == DEAD:
        again = f"roster register --session-id {typed(agent.session_id)}"
        next_step = f"it is dead and reads none; {app.complete_command(again)}"
    me = frame.short_session(found.session_id)
    lines = [
        f"{me}: you, the person"
        if found.session_id == USER
        else (f"{frame.bare_name(agent)} ({me})" if agent and agent.name else me)
        + f": {shown_state(agent, found.gone) if agent else 'not registered'}"
        + (f", {' '.join(map(word, agent.tags))}" if agent and agent.tags else ""),
        f"{mail_output.count_noun(found.unread, 'unread message')}" + (f" ({next_step})" if found.unread else ""),
    ]
    if found.queued:
        many, since = mail_output.count_noun(len(found.queued), "message"), when(found.queued[0].timestamp)
        why = app.complete_command("engine status")
        lines.append(f"{many} of this machine waiting for the engine since {since} ({why})")
    if found.never_sent:
        many, why = mail_output.count_noun(found.never_sent, "message"), app.complete_command("engine join")
        lines.append(f"{many} of this machine never sent to others: it left them, and may join again ({why})")
    if asked:
        lines.append(f"{mail_output.count_noun(asked, 'request')} to decide ({app.complete_command('pending')})")
    lines += [f"idle since {when(m.timestamp)}: {name_of(m.sender, roster)}" for m in found.idle]
    if found.obligations:
        lines.append(f"{mail_output.count_noun(len(found.obligations), 'message')} waiting for your ack or reply:")
        listing = render.messages_text(found.obligations, found.reads, roster, app.painter)
        lines += ["  " + line for line in listing.splitlines()]
    if found.missing_acks:
        lines.append(f"{mail_output.count_noun(len(found.missing_acks), 'message')} of yours without every ack:")
        lines += ["  " + line for line in render.missing_text(found.missing_acks, found.now, roster, app.painter)]
    if found.waiting:
        oldest = render.spell_age(found.now - min(m.timestamp for m in found.waiting))
        said = (
            f"{mail_output.count_noun(len(found.waiting), 'message')} of yours waiting for nobody, the oldest {oldest}"
        )
        lines.append(f"{said} ({app.complete_command('dead-letters --waiting')})")
    if found.dead_letters:
        lines.append(
            f"{mail_output.count_noun(found.dead_letters, 'dead letter')} ({app.complete_command('dead-letters')})"
        )
    return lines


def _waiting_json(message: Message, reads: Reads, now: int, box: str) -> dict[str, Any]:
    return {**mail_output.message_json(message, reads, box), "age_seconds": max(0, now - message.timestamp) // 1000}


def show_waiting(app: Context, mailbox: Mailbox, *, everyones: bool, since: int | None, limit: int) -> None:
    """Print the newest ``limit`` messages (0: all) that wait for nobody, with their age: the session's, or
    ``everyones``."""
    every, reads = MailQueries(mailbox).waiting(None if everyones else who_or_all(app, mailbox))
    chosen = [m for m in every if since is None or m.timestamp >= since]
    found = chosen[-limit:]
    more = len(chosen) - len(found)
    if not found and not app.json:
        app.write_answer("no mail without a recipient\n")
        return
    now, roster = mailbox.now(), mailbox.logs.read_roster()
    value = {"messages": [_waiting_json(m, reads, now, mailbox.directory) for m in found], "more": more}
    rest = f"{mail_output.count_noun(more, 'older message')} (--limit 0 shows all)\n" if more else ""
    app.print_answer(render.waiting_text(found, now, roster, app.painter) + rest, value)


def who_or_all(app: Context, mailbox: Mailbox) -> str:
    """Return the session that the command acts as; without one, the hint names ``--all``, too."""
    try:
        return app.reading_session(mailbox)
    except Malformed as error:
        if error.code == "no_session":
            error.hint = "pass --all for everyone's mail, or --session ID for one session's"
        raise


def dead_letters(
    app: Context, mailbox: Mailbox, *, everyones: bool, since: int | None = None, limit: int = DEAD_LETTERS
) -> None:
    """Print the newest ``limit`` dead letters (0: all) with their reasons: the session's, or ``everyones``."""
    who = None if everyones else who_or_all(app, mailbox)
    found, more = MailQueries(mailbox).dead_letters(who, since, limit or None)
    earlier = since is None and mailbox.archive.reaches_before(mailbox.now() - LATELY)
    unseen = "archived mail of more than 30 days ago is left out (--since 365d)\n" if earlier else ""
    if not found and not app.json:
        app.write_answer(f"no dead letters\n{unseen}")
        return
    roster = mailbox.logs.read_roster()
    box = mailbox.directory
    letters = [{**mail_output.message_json(m, box=box), "reason": reason} for m, reason in found]
    value = {"messages": letters, "more": more}
    rest = f"{mail_output.count_noun(more, 'older dead letter')} (--limit 0 shows all)\n" if more else ""
    app.print_answer(render.dead_letters_text(found, roster, app.painter) + rest + unseen, value)
