"""``show_message`` and ``search_messages``, for either parser: a message again, as often as somebody asks.

Belongs here: the two commands once their arguments are parsed, and the receipts of whole texts. Must not import click.
"""

from __future__ import annotations

from ..core import frame, message_reads
from ..core.address import is_remote
from ..errors import MailboxError
from ..mailbox.open_mailbox import UNSENT
from . import mail_output, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.awaited import Owing
    from ..core.records import Message
    from ..mailbox.mailbox import Mailbox
    from .context import Context

LONG = 4000
"""Characters of a text that may be more than a client passes on."""
SEARCH_LIMIT = 20
"""Messages that a search shows by default."""
OLDER = "older ones are left out (--limit 0 shows all)\n"


def one_more(limit: int) -> int:
    """Return how many messages to ask for, so that ``split_newest`` can tell whether there are more than ``limit``."""
    return limit + 1 if limit else 0


def split_newest(found: list[Message], limit: int) -> tuple[list[Message], bool]:
    """Return the newest ``limit`` messages (0: all), and whether there are older ones."""
    return found[-limit:], 0 < limit < len(found)


def search_messages(app: Context, mailbox: Mailbox, query: str, limit: int) -> None:
    """Print the messages that contain every word of the query, newest last."""
    from ..core import words  # check and send look nothing up
    from ..mailbox.queries import MailQueries

    words.check(query)
    found, reads = MailQueries(mailbox).search(query, one_more(limit))
    list_messages(app, mailbox, found, reads, limit, "no message contains all these words")


def list_messages(
    app: Context, mailbox: Mailbox, every: list[Message], reads: message_reads.Reads, limit: int, nothing: str
) -> None:
    """Print the newest ``limit`` messages (0: all), a line each; ``nothing``: what is said where there are none."""
    messages, is_older = split_newest(every, limit)
    box, unsent = mailbox.directory, mailbox.unsent()
    if app.json:
        told = [mail_output.message_json(m, reads, box) | mail_output.unsent_json(unsent.get(m.id)) for m in messages]
        app.write_answer(mail_output.json_document({"messages": told, "older": is_older}))
    elif messages:
        roster = mailbox.logs.read_roster()
        text = render.messages_text(messages, reads, roster, app.painter, app.columns, unsent)
        app.write_answer(text + (OLDER if is_older else ""))
    else:
        app.write_answer(f"{app.complete_hint(nothing)}\n")


def show_message(app: Context, mailbox: Mailbox, message_id: str, start: int = 0) -> None:
    """Print one message with its receipts, and the agents it reaches now; its text from character ``start`` on."""
    from ..mailbox import arrivals  # search asks for no reach

    found = mailbox.find(message_id)
    roster, shown = mailbox.logs.read_roster(), mailbox.here(found.message)
    resolved = arrivals.judge_reach(mailbox, found.message, roster)
    lines, is_all = _message_lines(app, mailbox, shown, start)
    unsent = mailbox.unsent().get(found.message.id, "")
    lines += ["", *render.receipts_text(found.message, resolved, found.receipts, roster, unsent)]
    if unsent:
        more = f" since {frame.when(found.message.timestamp)}" if found.queued else ""
        then = app.complete_command("engine status" if found.queued else "engine join")
        lines.append(f"{unsent}: {UNSENT[unsent]}{more} ({then})")
    elif not any(r.event != "claim" for r in found.receipts):
        is_away = any(map(is_remote, found.message.recipients))
        where = f" here; delivered or not: {app.complete_command('swarm outbox')}" if is_away else ""
        lines.append(f"no agent has read it{where}")
    owed: list[Owing] = []
    if found.message.ack:
        from ..mailbox.queries import MailQueries  # most mail asks for no ack

        owed = MailQueries(mailbox).owing(found)
    lines += [f"ack owed by: {render.owing_text(owed, roster)}"] if owed else []
    value = {
        "message": mail_output.message_json(shown, found.reads, mailbox.directory),
        "delivery": mail_output.reach_json(resolved),
        "receipts": render.receipts_json(found.receipts),
        **mail_output.unsent_json(unsent),
        **({"owed_by": render.owing_json(owed)} if found.message.ack else {}),
    }
    print_and_note(app, mailbox, "\n".join(lines) + "\n", value, [found.message] if is_all else [], found.reads)


def _message_lines(app: Context, mailbox: Mailbox, message: Message, start: int) -> tuple[list[str], bool]:
    """Return the lines of a message from a character of its text on, and whether they reach to its end."""
    roster = mailbox.logs.read_roster()

    def lines_of(message: Message) -> list[str]:
        return render.message_text(message, roster, app.painter, mailbox.directory)

    if message.type == "control" or (not start and len(message.content) < LONG):
        return lines_of(message), True
    from . import client_output

    if app.is_session:
        found = client_output.cut_message(message, start, lines_of, client_output.show_command(message, app))
        return found, not client_output.is_cut(found)
    return lines_of(message.replace(content=message.content[start:])), True


def print_and_note(
    app: Context, mailbox: Mailbox, text: str, value: object, messages: Sequence[Message], reads: message_reads.Reads
) -> None:
    """Print whole messages. Record that the calling session now has the texts that it was given by title."""
    me = app.own_session if any(message_reads.untold(message, reads) for message in messages) else None
    if me is None:
        app.print_answer(app.fold_framed(text), value)
    elif (error := app.out_in_full(app.fold_framed(text), value)) is not None:
        app.give_warning(f"{error.what.partition(';')[0]}; the receipt was not recorded")
    else:
        note_told(app, mailbox, me, messages, reads)


def note_told(app: Context, mailbox: Mailbox, me: str, messages: Sequence[Message], reads: message_reads.Reads) -> None:
    """Record that a session now has the texts that it was given by title."""
    from ..mailbox import receipts  # where there was no room for a text

    try:
        receipts.tell_in_full(mailbox, me, messages, reads)
    except MailboxError as error:
        app.give_warning(f"the receipt was not recorded: {error.what}")
