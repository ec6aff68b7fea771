"""The hot verbs, for either parser: one call on the mailbox, one answer.

Belongs here: the hot verbs once their arguments are parsed. Must not import click.
"""

from __future__ import annotations

from ..core import claims, frame
from ..core.address import is_remote
from ..core.text import typed
from ..errors import MailboxError, NotFound
from . import mail_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.awaited import Owing
    from ..core.inbox import Item
    from ..core.records import Message
    from ..mailbox.delivery import Delivery, Offering
    from ..mailbox.facade import FoundMessage, Mailbox
    from ..mailbox.opened import OpenMailbox
    from ..mailbox.sending import Sent
    from .context import Context


def check(app: Context, desk: Delivery, session: str | None, peek: bool, limit: int) -> None:
    """Show unread mail, then record it as read (``peek``: only show it). ``limit`` 0 shows all."""
    desk = desk.read_only() if peek else desk
    me = app.me(session, desk)
    if session is not None:
        refuse_misspelt(me, desk)
    page = CheckPage(app, desk, me, limit)
    if peek:  # it holds no lock that others wait for, and may take its time
        items = desk.peek(me)
        shown = items[: limit or None]
        if pieces := page.pieces(shown, len(items) - len(shown)):
            app.print(app.framed("".join(pieces)))
        return
    failed: list[MailboxError] = []
    page.begin()

    def show(items: list[Item]) -> Sequence[Item]:
        shown = page.choose(items)
        pieces = page.pieces(shown, len(items) - len(shown) + desk.left)
        taken, error = app.hand_over(pieces) if pieces else (0, None)
        if error is not None:
            failed.append(_partly(error, taken, len(shown)) if taken else error)
        return shown if error is None else shown[:taken]

    desk.deliver(me, show, choose=page.choose, offering=page.offer)
    if failed:
        raise failed[0]
    if desk.registered and session is not None:
        app.warn(
            f"no agent {me} was known, and this check registered it: `agent-mailbox roster list` shows all,"
            f" `agent-mailbox roster retire {me}` removes this one"
        )


def refuse_misspelt(me: str, desk: OpenMailbox) -> None:
    """Raise ``NotFound`` for a session that nobody knows and whose id nearly is an agent's id or name."""
    roster = desk.logs.read_roster()
    if roster.get(me) is not None:
        return
    from ..core import misspelt  # serves only mistakes

    if meant := misspelt.nearly(me, misspelt.agent_words(roster)):
        raise NotFound(
            f"no agent {me!r} is known",
            f"did you mean {' or '.join(meant)}? For a new session, first run"
            f" `agent-mailbox roster register --session-id {typed(me)}`",
        )


class CheckPage:
    """The mail of one check as output: as much as there is room for, as text or as JSON.

    ``offer``: below a client, what later tells whether its model saw the mail.
    """

    offer: Offering | None = None

    def __init__(self, app: Context, desk: Delivery, me: str, limit: int) -> None:
        self._app = app
        self._desk = desk
        self._me = me
        self._limit = limit

    def begin(self) -> None:
        """Note what a client's model is to be shown."""
        if self._app.is_session:
            from . import client_output  # below a client

            self.offer = client_output.offering(self._app, self._desk, self._me)

    def choose(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the first items, as many as there is room for."""
        items = items[: self._limit or None]
        if self.offer is None or sum(len(item.message.content) + _HEAD for item in items) < _SHORT:
            return items
        from . import client_output

        return client_output.fitting(items, self._length)

    def _length(self, item: Item) -> int:
        if self._app.json:
            return len(mail_output.json(mail_output.item_json(item, self._desk.directory)))
        return len("\n".join(self._lines(item)))

    def pieces(self, items: Sequence[Item], more: int) -> list[str]:
        """Return the output in pieces, one for each message or one in all; none if there is nothing to print."""
        app, desk, me = self._app, self._desk, self._me
        if app.json:
            if self.offer is not None:  # a program takes the whole document; whether a model does is unknown
                self.offer.titles.update(item.message.id for item in items[:1] if self._length(item) > _PASSED_ON)
            return [mail_output.json(mail_output.check_json(me, items, more, desk.directory))]
        if not items:
            app.nothing("no new mail\n")
            return []
        roster = desk.logs.read_roster()
        pieces = mail_output.check_pieces(me, items, self._lines, more, roster, app.style, app.command)
        if self.offer is None or self.offer.nonce is None:
            return pieces
        from . import client_output

        return client_output.marked(pieces, self.offer.nonce)

    def _lines(self, item: Item) -> list[str]:
        """Return the lines of a message: below a client no more than fit, and then it is known by title."""
        app, desk = self._app, self._desk
        roster = desk.logs.read_roster()

        def lines(message: Message) -> list[str]:
            options = app.options_of("control approve")
            return frame.item(item.replace(message=message), roster, app.style, desk.directory, options)

        if self.offer is None or len(item.message.content) < _SHORT:
            return lines(item.message)
        from . import client_output

        found = client_output.cut(item.message, 0, lines, client_output.show_command(item.message, app))
        if client_output.is_cut(found):
            self.offer.titles.add(item.message.id)
        return found


_SHORT, _HEAD = 4000, 300
"""Characters of a text that surely fits, whatever signs it has; of what stands before a text."""
_PASSED_ON = 30_000
"""Characters of a command's output that Claude Code passes on."""


def _partly(error: MailboxError, taken: int, of: int) -> MailboxError:
    """Return the error of an output whose reader took the first messages."""
    error.what = f"{error.what.partition(';')[0]}; {taken} of {of} messages were marked as read"
    error.hint = "run it again for the others"
    return error


SEARCH_LIMIT = 20
"""Messages that a search shows by default."""


def search(app: Context, mailbox: Mailbox, query: str, limit: int) -> None:
    """Print the messages that contain every word of the query, newest last."""
    from ..core import words  # check and send look nothing up
    from ..mailbox.queries import Library
    from . import render

    words.check(query)
    messages, reads = Library(mailbox).search(query, limit)
    if app.json:
        box = mailbox.directory
        app.print(mail_output.json({"messages": [mail_output.message_json(m, reads, box) for m in messages]}))
    elif messages:
        app.print(render.messages_text(messages, reads, mailbox.logs.read_roster(), app.style, app.columns))
    else:
        app.nothing("no message contains all these words\n")


def confirm_sent(app: Context, desk: OpenMailbox, sent: Sent) -> None:
    """Print where a message went, when each reader will see it, and the warnings about it."""
    from ..mailbox import arrivals  # check and ack send nothing

    sent = sent.replace(warnings=tuple(map(app.hint, sent.warnings)))
    for warning in sent.warnings:
        app.warn(warning)
    found = arrivals.arrival_of(desk, sent)
    if any(map(is_remote, sent.message.recipients)):
        from ..swarm import pairing  # most mail stays here

        if (home := pairing.elsewhere(desk.directory, app.environ)) is not None:
            app.given["--home"] = home
    if app.json:
        app.confirm(mail_output.json(mail_output.sent_json(sent, found, desk.directory)))
    else:
        app.confirm(mail_output.sent_text(sent, found, desk.logs.read_roster(), app.style, app.command))


def show(app: Context, mailbox: Mailbox, message_id: str, start: int = 0) -> None:
    """Print one message with its receipts, and the agents it reaches now; its text from character ``start`` on."""
    from . import render

    found = mailbox.find(message_id)
    roster, shown = mailbox.logs.read_roster(), mailbox.here(found.message)
    resolved = mailbox.delivery(found.message, roster)
    lines, is_all = _message_lines(app, mailbox, shown, start)
    lines += ["", *render.receipts_text(found.message, resolved, found.receipts, roster)]
    lines += [] if any(r.event != "claim" for r in found.receipts) else ["no agent has read it"]
    owed = _owing(mailbox, found) if found.message.ack else []
    lines += [f"ack owed by: {render.owing_text(owed, roster)}"] if owed else []
    value = {
        "message": mail_output.message_json(shown, found.reads, mailbox.directory),
        "delivery": mail_output.reach_json(resolved),
        "receipts": render.receipts_json(found.receipts),
        **({"owed_by": render.owing_json(owed)} if found.message.ack else {}),
    }
    tell(app, mailbox, "\n".join(lines) + "\n", value, [found.message] if is_all else [], found.reads)


def _message_lines(app: Context, mailbox: Mailbox, message: Message, start: int) -> tuple[list[str], bool]:
    """Return the lines of a message from a character of its text on, and whether they reach to its end."""
    from . import render

    roster = mailbox.logs.read_roster()

    def lines(message: Message) -> list[str]:
        return render.message_text(message, roster, app.style, mailbox.directory)

    if message.type == "control" or (not start and len(message.content) < _SHORT):
        return lines(message), True
    from . import client_output

    if app.is_session:
        found = client_output.cut(message, start, lines, client_output.show_command(message, app))
        return found, not client_output.is_cut(found)
    return lines(message.replace(content=message.content[start:])), True


def _owing(mailbox: Mailbox, found: FoundMessage) -> list[Owing]:
    from ..mailbox.queries import Library  # most mail asks for no ack

    return Library(mailbox).owing(found)


def tell(
    app: Context, mailbox: Mailbox, text: str, value: object, messages: Sequence[Message], reads: claims.Reads
) -> None:
    """Print whole messages. Record that the calling session now has the texts that it was given by title."""
    me = app.own_session if any(claims.untold(message, reads) for message in messages) else None
    if me is None:
        app.out(app.framed(text), value)
    elif (error := app.out_in_full(app.framed(text), value)) is not None:
        app.warn(f"{error.what.partition(';')[0]}; the receipt was not recorded")
    else:
        note_told(app, mailbox, me, messages, reads)


def note_told(app: Context, mailbox: Mailbox, me: str, messages: Sequence[Message], reads: claims.Reads) -> None:
    """Record that a session now has the texts that it was given by title."""
    from ..mailbox import receipts  # where there was no room for a text

    try:
        receipts.tell_in_full(mailbox, me, messages, reads)
    except MailboxError as error:
        app.warn(f"the receipt was not recorded: {error.what}")


def ack(app: Context, mailbox: Mailbox, message_id: str, session: str | None) -> None:
    """Record that the session dealt with a message."""
    message = mailbox.ack(message_id, app.me(session, mailbox))
    app.done(f"acknowledged {frame.word(message.id)}\n", {"message_id": message.id, "event": "ack"})


def release(app: Context, mailbox: Mailbox, message_id: str, session: str | None) -> None:
    """Give a message back."""
    message = mailbox.release(message_id, app.me(session, mailbox))
    app.done(f"released {frame.word(message.id)}\n", {"message_id": message.id, "event": "release"})


def recipients(to: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses of all ``--to`` values, each split on commas."""
    return tuple(word.strip() for part in to for word in part.split(",") if word.strip())
