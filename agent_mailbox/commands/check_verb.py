"""``check_mail``, for either parser: mail is shown, then recorded as read.

Belongs here: what is handed over, in which pieces, and what of it counts as shown. Must not import click.
"""

from __future__ import annotations

from ..cli import mail_output
from ..core import frame
from ..core.address import BROADCAST, TAG
from ..core.proofs import OURS
from ..core.roster import DEAD
from ..core.text import count_noun
from ..mailbox.delivery import Delivery, Offering, load_offers
from ..store.files import paths, system
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..cli.context import Context
    from ..core.inbox import Item
    from ..core.records import Message
    from ..errors import MailboxError
    from ..mailbox.open_mailbox import OpenMailbox


def check_mail(app: Context, desk: OpenMailbox, peek: bool, limit: int) -> None:
    """Show unread mail, then record it as read (``peek``: only show_items it). ``limit`` 0 shows all."""
    desk = desk.read_only() if peek else desk
    me = app.reading_session(desk)
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
        if delivery.waits:
            page.unclaimed, page.held = mail_output.unclaimed_text(delivery.left, delivery.waits), delivery.left
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
    if delivery.registered and app.named is not None:
        from ..cli import misspelt_session  # serves only mistakes

        app.give_warning(misspelt_session.registered_text(me, "check"))


class CheckPage:
    """The mail of one check as output: as much as there is room for, as text or as JSON.

    ``offer``: below a client, what later tells whether its model saw the mail.
    """

    offer: Offering | None = None
    unclaimed, held = "", 0
    rows: Sequence[Sequence[Item]] = ()
    """The messages of each piece of the text."""

    def __init__(self, app: Context, desk: OpenMailbox, me: str, limit: int) -> None:
        self._app = app
        self._desk = desk
        self._me = me
        self._limit = limit
        self._painter = app.painter
        self.roster = desk.logs.read_roster()

    def begin_offer(self) -> None:
        """Note what a client's model is to be shown. The offer has a nonce if the client keeps its conversation where
        we can read it, and if the output is text for its model."""
        app, me, kept = self._app, self._me, ""
        if not app.is_session:
            return
        if me == app.own_session and not app.json and app.columns is None:
            where = processes.find_whereabouts(me, paths.state_directory(app.environ))
            kept = where.conversation if where is not None else ""
        length = system.size(kept) if kept else 0
        nonce = system.urandom(3).hex() if length else None
        self.offer = Offering(nonce, length, "", {}, set(), quiet=not load_offers(self._desk.logs, me))

    def choose_items(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the first items, as many as there is room for."""
        items = items[: self._limit or None]
        if self.offer is None or sum(len(item.message.content) + _HEAD for item in items) < _SHORT:
            return items
        return fitting_items(items, self._length_of)

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
            app.write_answer(f"{self.unclaimed or 'no new mail'}\n")
            return []
        self.rows, texts = [(item,) for item in items], list[str]()
        for item in items if len(items) > 1 else ():
            if item.message.thread is not None:
                texts = self._thread_texts(items)
                break
        texts = texts or ["\n".join([*self._message_lines(item), ""]) for item in items]
        pieces = self._text_pieces(items, texts, more)
        return pieces if self.offer is None or self.offer.nonce is None else mark_pieces(pieces, self.offer.nonce)

    def _text_pieces(self, items: Sequence[Item], texts: Sequence[str], more: int) -> list[str]:
        """Return the output, a piece for each of the ``texts``; the last has the command to answer."""
        roster, command = self.roster, self._app.complete_command
        blocks = [[text] for text in texts]
        head = f"{count_noun(len(items), 'unread message')} for {frame.name_of(self._me, roster)}"
        blocks[0].insert(0, self._painter(head, "dim") + "\n")
        last = blocks[-1]
        takes, asks, unheard = [], [], ""
        for item in items:
            sender = item.message.sender
            # A reply answers no control and no event of a swarm, and our own programs read nothing.
            if item.message.type in ("control", "system") or sender in OURS:
                continue
            # A reply to the dead is refused, unless an agent has its place.
            if roster.state(sender) == DEAD and not roster.heirs(sender):
                unheard = unheard or sender
                continue
            takes.append(item)
            if item.message.ack:
                asks.append(item)
        if takes:
            # The one that asks, else the only one: of several, whoever pastes the command chooses.
            meant = asks or takes
            has_others = any(len(item.message.recipients) > 1 or item.mode in (TAG, BROADCAST) for item in meant)
            wide = " (--all: everyone it was for)" if has_others else ""
            which = frame.short_typed(meant[0].message.id) if len(meant) == 1 else "ID"
            last.append(f"Reply{wide}: " + command(f'reply {which} --body "…"'))
        elif unheard:
            last.append(f"Nobody can be answered: {frame.name_of(unheard, roster)} is dead")
        if more > self.held:
            last.append(f"{more - self.held} more: {command('check')}")
        if self.unclaimed:
            last.append(self.unclaimed)
        return ["\n".join(block) + "\n" for block in blocks]

    def _thread_texts(self, items: Sequence[Item]) -> list[str]:
        """Return the text of each row: of one message, or of several in a thread that say the same."""
        from ..core.showing import message_frame, thread_blocks  # answers

        texts: list[str] = []
        blocks = thread_blocks.arrange(items, self._desk.look_up)
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
            options = app.options_of("approve") if message.type == "control" else ""
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


def mark_pieces(pieces: list[str], nonce: str) -> list[str]:
    """Return the text of a check between two lines that show later whether the model was given all of it."""
    head, _, rest = pieces[0].partition("\n")
    count = sum(map(len, pieces)) - len(head) - 1
    pieces = [f"{head}, mail {nonce}\n{rest}", *pieces[1:]]
    return [*pieces[:-1], f"{pieces[-1]}end of mail {nonce}: {count} characters\n"]


def fitting_items(items: Sequence[Item], length: Callable[[Item], int]) -> Sequence[Item]:
    """Return the first items that fit into the room, by their ``length``: at least one."""
    from ..cli import client_output  # of long mail

    room = client_output.ROOM
    for number, item in enumerate(items):
        room -= length(item)
        if room < 0 and number:
            return items[:number]
    return items
