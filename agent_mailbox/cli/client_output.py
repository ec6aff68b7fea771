"""Mail in the output of a command below a client: how much its model sees, and how that is known later.

Belongs here: the limit of one output, where a longer text is cut, and the offer that the client's transcript settles
(``clients.hooks.receipt_rules``). Without click.
"""

from __future__ import annotations

from ..core import frame
from ..mailbox.delivery import Offering
from ..store.files import paths, system
from ..store.polling import offers
from ..store.user_state import whereabouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.inbox import Item
    from ..core.records import Message
    from ..mailbox.opened import OpenMailbox
    from .context import Context

ROOM = 25_000
"""Characters of mail in one output. Claude Code passes on 30,000 of a command's output."""
_LEAST = 200
"""Characters of a text that are shown at least, however many signs of it take more room than they are."""


_CUT = "(cut;"


def fitting_items(items: Sequence[Item], length: Callable[[Item], int]) -> Sequence[Item]:
    """Return the first items that fit into the room, by their ``length``: at least one."""
    room = ROOM
    for number, item in enumerate(items):
        room -= length(item)
        if room < 0 and number:
            return items[:number]
    return items


def cut_message(message: Message, start: int, lines: Callable[[Message], list[str]], command: str) -> list[str]:
    """Return the lines of a message whose text begins at ``start``, as far as there is room. The last one says how the
    text goes on: by ``command``, which shows the message."""
    if message.type == "control":
        whole = lines(message)
        is_long = len("\n".join(whole)) > ROOM
        return [*whole[:-1], whole[-1][:ROOM], f"{_CUT} all: {command} --json)"] if is_long else whole
    text = message.content
    end = len(text)
    while len("\n".join(found := lines(message.replace(content=text[start:end])))) > ROOM and end - start > _LEAST:
        end = start + max(min(end - start, ROOM) * 9 // 10, _LEAST)
        end = text.rfind("\n", start + (end - start) // 2, end) + 1 or end
    return found if end == len(text) else [*found, f"{_CUT} it goes on: {command} --at {end})"]


def is_cut(lines: list[str]) -> bool:
    """Return whether ``cut_message`` left something out: no line of a message begins so."""
    return lines[-1].startswith(_CUT)


def offer_for(app: Context, desk: OpenMailbox, me: str) -> Offering:
    """Return the offer by which a check shows mail to a client's session. It has a nonce if the client keeps its
    conversation where we can read it, and if the output is text for its model."""
    quiet, kept = not offers.load(desk.logs, me), ""
    if me == app.own_session and not app.json and app.columns is None:
        where = whereabouts.of(me, paths.state_directory(app.environ))
        kept = where.conversation if where is not None else ""
    length = system.size(kept) if kept else 0
    nonce = system.urandom(3).hex() if length else None
    return Offering(nonce, length, "", {}, set(), quiet)


def mark_pieces(pieces: list[str], nonce: str) -> list[str]:
    """Return the text of a check between two lines that show later whether the model was given all of it."""
    head, _, rest = pieces[0].partition("\n")
    count = sum(map(len, pieces)) - len(head) - 1
    pieces = [f"{head}, mail {nonce}\n{rest}", *pieces[1:]]
    return [*pieces[:-1], f"{pieces[-1]}end of mail {nonce}: {count} characters\n"]


def show_command(message: Message, app: Context) -> str:
    """Return the command that shows the message in this mailbox."""
    return app.complete_command(f"show {frame.short_typed(message.id)}")
