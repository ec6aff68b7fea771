"""``check_mail``, for either parser: mail is shown, then recorded as read.

Belongs here: what is handed over, in which pieces, and what of it counts as shown. Must not import click.
"""

from __future__ import annotations

from ..cli import mail_output
from ..mailbox.delivery import Delivery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..cli.context import Context
    from ..core.inbox import Item
    from ..core.records import Message
    from ..core.roster import Roster
    from ..errors import MailboxError
    from ..mailbox.delivery import Offering
    from ..mailbox.opened import OpenMailbox


def check_mail(app: Context, desk: OpenMailbox, session: str | None, peek: bool, limit: int) -> None:
    """Show unread mail, then record it as read (``peek``: only show_items it). ``limit`` 0 shows all."""
    desk = desk.read_only() if peek else desk
    me = app.reading_session(session, desk)
    page, delivery = CheckPage(app, desk, me, limit), Delivery(desk)
    if peek:  # it holds no lock that others wait for, and may take its time
        items = delivery.peek(me)
        shown = items[: limit or None]
        if pieces := page.output_pieces(shown, len(items) - len(shown)):
            app.write_answer(app.fold_framed("".join(pieces)))
        return
    failed: list[MailboxError] = []
    page.begin_offer()

    def show_items(items: list[Item]) -> Sequence[Item]:
        shown = page.choose_items(items)
        pieces = page.output_pieces(shown, len(items) - len(shown) + delivery.left)
        taken, error = app.hand_over(pieces) if pieces else (0, None)
        if error is None:
            return shown
        kept = [item for row in page.rows[:taken] for item in row]
        failed.append(_partly_error(error, len(kept), len(shown)) if kept else error)
        return kept

    delivery.deliver(me, show_items, choose=page.choose_items, offering=page.offer)
    if failed:
        raise failed[0]
    if delivery.registered and session is not None:
        app.give_warning(
            f"no agent {me} was known, and this check registered it: `agent-mailbox roster list` shows all,"
            f" `agent-mailbox roster retire {me}` removes this one"
        )


class CheckPage:
    """The mail of one check as output: as much as there is room for, as text or as JSON.

    ``offer``: below a client, what later tells whether its model saw the mail.
    """

    offer: Offering | None = None
    rows: Sequence[Sequence[Item]] = ()
    """The messages of each piece of the text."""

    def __init__(self, app: Context, desk: OpenMailbox, me: str, limit: int) -> None:
        self._app = app
        self._desk = desk
        self._me = me
        self._limit = limit
        self._painter = app.painter
        self._roster: Roster | None = None

    @property
    def roster(self) -> Roster:
        """Return the roster, asked once for the whole page."""
        if self._roster is None:
            self._roster = self._desk.logs.read_roster()
        return self._roster

    def begin_offer(self) -> None:
        """Note what a client's model is to be shown."""
        if self._app.is_session:
            from ..cli import client_output  # below a client

            self.offer = client_output.offer_for(self._app, self._desk, self._me)

    def choose_items(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the first items, as many as there is room for."""
        items = items[: self._limit or None]
        if self.offer is None or sum(len(item.message.content) + _HEAD for item in items) < _SHORT:
            return items
        from ..cli import client_output

        return client_output.fitting_items(items, self._length_of)

    def _length_of(self, item: Item) -> int:
        if self._app.json:
            return len(mail_output.json_document(mail_output.item_json(item, self._desk.directory)))
        return len("\n".join(self._message_lines(item)))

    def output_pieces(self, items: Sequence[Item], more: int) -> list[str]:
        """Return the output in pieces, one for each message or one in all; none if there is nothing to print."""
        app, desk, me = self._app, self._desk, self._me
        if app.json:
            if self.offer is not None:  # a program takes the whole document; whether a model does is unknown
                self.offer.titles.update(item.message.id for item in items[:1] if self._length_of(item) > _PASSED_ON)
            self.rows = [items]
            return [mail_output.json_document(mail_output.check_json(me, items, more, desk.directory))]
        if not items:
            app.write_answer("no new mail\n")
            return []
        self.rows, texts = [(item,) for item in items], list[str]()
        for item in items if len(items) > 1 else ():
            if item.message.thread is not None:
                texts = self._thread_texts(items)
                break
        texts = texts or ["\n".join([*self._message_lines(item), ""]) for item in items]
        pieces = mail_output.check_pieces(me, items, texts, more, self.roster, self._painter, app.complete_command)
        if self.offer is None or self.offer.nonce is None:
            return pieces
        from ..cli import client_output

        return client_output.mark_pieces(pieces, self.offer.nonce)

    def _thread_texts(self, items: Sequence[Item]) -> list[str]:
        """Return the text of each row: of one message, or of several in a thread that say the same."""
        from ..core.showing import message_frame, thread_blocks  # answers
        from ..mailbox import parents

        texts: list[str] = []
        blocks = thread_blocks.arrange(items, parents.find_in(self._desk))
        for block in blocks:
            lines = block.lines(self._painter)
            for row in block.rows:
                head = message_frame.row_head(row, self.roster, block.told_thread, self._painter)
                texts.append("\n".join([*lines, head, *self._message_lines(row[0])[1:]]))
                lines = []
            texts[-1] += "\n"
        self.rows = [row for block in blocks for row in block.rows]
        return texts

    def _message_lines(self, item: Item) -> list[str]:
        """Return the lines of a message: below a client no more than fit, and then it is known by title."""
        from ..core.showing import message_frame  # mostly there is nothing to show

        app = self._app

        def frame_lines(message: Message) -> list[str]:
            options = app.options_of("control approve") if message.type == "control" else ""
            shown = item if message is item.message else item.replace(message=message)
            return message_frame.item(shown, self.roster, self._painter, self._desk.directory, options)

        if self.offer is None or len(item.message.content) < _SHORT:
            return frame_lines(item.message)
        from ..cli import client_output

        found = client_output.cut_message(item.message, 0, frame_lines, client_output.show_command(item.message, app))
        if client_output.is_cut(found):
            self.offer.titles.add(item.message.id)
        return found


_SHORT, _HEAD = 4000, 300
"""Characters of a text that surely fits, whatever signs it has; of what is before a text."""
_PASSED_ON = 30_000
"""Characters of a command's output that Claude Code passes on."""


def _partly_error(error: MailboxError, taken: int, of: int) -> MailboxError:
    """Return the error of an output whose reader took the first messages."""
    error.what = f"{error.what.partition(';')[0]}; {taken} of {of} messages were marked as read"
    error.hint = "run it again for the others"
    return error
