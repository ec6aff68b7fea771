"""Mail in the output of a command below a client: how much its model sees.

Belongs here: the limit of one output, and where a longer text is cut. Without click.
"""

from __future__ import annotations

from ..core import frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.records import Message
    from .context import Context

ROOM = 25_000
"""Characters of mail in one output. Claude Code passes on 30,000 of a command's output."""
_LEAST = 200
"""Characters of a text that are shown at least, however many signs of it take more room than they are."""


_CUT = "(cut;"


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


def show_command(message: Message, app: Context) -> str:
    """Return the command that shows the message in this mailbox."""
    return app.complete_command(f"show {frame.short_typed(message.id)}")
