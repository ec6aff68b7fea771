"""A message in the frame: how every surface shows a whole message in text.

Belongs here: the lines of a message. Those of a body are behind a bar, so that nothing in it can pass for the frame
(Promise 4).
"""

from __future__ import annotations

from .. import frame, proofs
from ..text import clipped, neutral, neutral_lines, term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..inbox import Item
    from ..records import Message
    from ..roster import Roster


def item(
    shown: Item, roster: Roster, style: Callable[[str, str], str] = frame.plain, box: str = "", options: str = ""
) -> list[str]:
    """Return an unread message as lines: the head, the subject, the body behind its bar.

    ``box``: the mailbox's path, for the paths of attachments. ``options``: those that a decision's command repeats.
    """
    m = shown.message
    sender = f"{style(frame.short(m.id), 'id')}  {style(frame.sender_of(m, roster), 'sender')}"
    lines = control(m, "" if shown.note else "agent-mailbox", options) if m.type == "control" else body(m, style, box)
    return [_head(sender, shown, frame.when(m.timestamp), frame.PLAIN_NOTES), *lines]


def brief(shown: Item, roster: Roster, time: str, program: str, box: str = "") -> list[str]:
    """Return the same in the fewest words, for a model: the head, then its sender's words alone, each line behind a
    bar.

    ``time`` may be empty; ``program`` is how the reader starts ours; ``box`` as for ``item``. Example::

        0bc9f3d7 cat → role:x, high, ack?, re 5d01aa02
        | Schema change?
        | May I add a column?
    """
    m = shown.message
    sender = f"{frame.short(m.id)} {frame.sender_of(m, roster, brief=True)}"
    lines = [frame.BAR + clipped(neutral(m.subject), frame.SUBJECT)] if m.subject and m.type != "control" else []
    lines += (
        control(m, "" if shown.note else program) if m.type == "control" else body(m.replace(subject=None), box=box)
    )
    return [_head(sender, shown, time, frame.BRIEF_NOTES), *lines]


def row_head(
    row: Sequence[Item], roster: Roster, told: str | None, style: Callable[[str, str], str] = frame.plain
) -> str:
    """Return the head of messages that say the same. ``told``: what a line above says that they answer, if it does."""
    senders = ", ".join(
        f"{style(frame.short(one.message.id), 'id')}  {style(frame.sender_of(one.message, roster), 'sender')}"
        for one in row
    )
    times = dict.fromkeys(frame.when(one.message.timestamp) for one in (row[0], row[-1]))
    return _head(senders, row[0], " to ".join(times), frame.PLAIN_NOTES, told)


def brief_row_head(row: Sequence[Item], roster: Roster, told: str | None, time: str) -> str:
    """Return the same in the fewest words."""
    senders = (f"{frame.short(one.message.id)} {frame.sender_of(one.message, roster, brief=True)}" for one in row)
    return _head(", ".join(senders), row[0], time, frame.BRIEF_NOTES, told)


def _head(senders: str, shown: Item, time: str, words: tuple[str, str, str], told: str | None = None) -> str:
    """Return the line above a message; the line of its thread tells its address, too."""
    m = shown.message
    way = f" → {told_way(shown)}" if told is None else ""
    notes = frame.notes(m.replace(thread=None) if told is not None and m.thread == told else m, words)
    note = [clipped(neutral(shown.note), frame.SUBJECT)] if shown.note else []
    return ", ".join([f"{senders}{way}", *([time] if time else []), *notes, *note])


def told_way(shown: Item) -> str:
    """Return by which address a message came, in the frame's words."""
    return "you" if shown.mode == "direct" else frame.word(shown.via if shown.mode != "role" else _role(shown))


def _role(shown: Item) -> str:
    roles = [a for a in shown.message.recipients if a.startswith("role:")]
    return shown.via if shown.via.startswith("role:") or not roles else roles[0]


def control(
    message: Message, program: str = "agent-mailbox", options: str = "", *, is_whole: bool = False
) -> list[str]:
    """Return a control message as lines: the command that answers it (no ``program``: it is decided), its content.
    ``options``: those that this command repeats. A request that is cut says how to read it, unless ``is_whole``."""
    from ..control import message_text, summary  # rare in mail

    payload = message_text.parse(message.content)
    proven = proofs.proves(message.proof)
    question = summary.question(payload, program, options, proven=proven) if program else ""
    decide = [f"Decide: {question}"] if question else []
    if is_whole:
        return [*decide, frame.BAR + summary.whole(payload)]
    unshown = summary.unshown(payload, f"{program} show {frame.short_typed(message.id)}") if question else []
    return [*unshown, *decide, frame.BAR + summary.line(payload)]


def body(message: Message, style: Callable[[str, str], str] = frame.plain, box: str = "") -> list[str]:
    """Return subject, references, attachments and text of a message as lines; ``box`` as for ``item``."""
    if message.type == "control":
        return control(message, is_whole=True)
    lines = [f"Subject: {style(term(message.subject, frame.SUBJECT), 'subject')}"] if message.subject else []
    if message.references is not None or message.type == "system":
        from .. import references  # rare in mail

        lines += references.lines(message)
        if message.type == "system" and references.is_event(message):
            return [*lines, *references.reason_lines(message)]
    if message.attachments is not None:
        from .. import attachments  # likewise

        lines += attachments.lines(message, box)
    return [*lines, *(frame.BAR + line for line in neutral_lines(message.content))]
