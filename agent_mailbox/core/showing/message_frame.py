"""A message in the frame: how every surface shows a whole message in text.

Belongs here: the lines of a message. Those of a body are behind a bar, so that nothing in it can pass for the frame
(Promise 4).
"""

from __future__ import annotations

from .. import frame, proofs
from ..text import clipped, neutral, neutral_lines, term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
    head = f"{style(frame.short(m.id), 'id')}  {style(frame.sender_of(m, roster), 'sender')} → {_through(shown)}"
    said = [frame.when(m.timestamp), *frame.notes(m), *_outcome(shown)]
    lines = control(m, "" if shown.note else "agent-mailbox", options) if m.type == "control" else body(m, style, box)
    return [", ".join([head, *said]), *lines]


def brief(shown: Item, roster: Roster, time: str, program: str, box: str = "") -> list[str]:
    """Return the same in the fewest words, for a model: the head, then its sender's words alone, each line behind a
    bar.

    ``time`` may be empty; ``program`` is how the reader starts ours; ``box`` as for ``item``. Example::

        0bc9f3d7 cat → role:x, high, ack?, re 5d01aa02
        | Schema change?
        | May I add a column?
    """
    m = shown.message
    head = f"{frame.short(m.id)} {frame.sender_of(m, roster, brief=True)} → {_through(shown)}"
    said = [*([time] if time else []), *frame.notes(m, frame.BRIEF_NOTES), *_outcome(shown)]
    lines = [frame.BAR + clipped(neutral(m.subject), frame.SUBJECT)] if m.subject and m.type != "control" else []
    lines += (
        control(m, "" if shown.note else program) if m.type == "control" else body(m.replace(subject=None), box=box)
    )
    return [", ".join([head, *said]), *lines]


def _through(shown: Item) -> str:
    return "you" if shown.mode == "direct" else frame.word(shown.via if shown.mode != "role" else _role(shown))


def _outcome(shown: Item) -> list[str]:
    return [clipped(neutral(shown.note), frame.SUBJECT)] if shown.note else []


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
            return lines
    if message.attachments is not None:
        from .. import attachments  # likewise

        lines += attachments.lines(message, box)
    return [*lines, *(frame.BAR + line for line in neutral_lines(message.content))]
