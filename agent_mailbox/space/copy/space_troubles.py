"""The troubles of a space that a process of this machine noticed, kept until they are mended.

Belongs here: those words in the user's own record, and how long they hold. They decide nothing.
"""

from __future__ import annotations

from ...core import codec, frame, instant
from ...core.records import Message
from ...core.text import count_noun
from ...store.files import system
from ...store.files.small_files import noted_age, read_file, remove_file, set_time, write_if_possible
from ...store.log.logs import end_of
from ..order.order import Displaced
from .send_queue import SendQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...store.log.log import Log

KINDS = AWAY, GONE, RESTORED, NAME, TAKEN, TWIN = "away", "gone", "restored", "name", "taken", "twin"
FILES = tuple(f"trouble.{kind}" for kind in KINDS)
UNREACHED = (GONE, AWAY)
"""Why the replicator cannot go on: the space is gone, or something else that waiting does not mend."""
HOLDS = {RESTORED: 7 * 86_400_000, TWIN: 300_000}
"""For how many ms a word holds without being said again; the others hold until they are taken back."""
SLOW = 300_000
"""Milliseconds by which a clock is behind mail that is there, and is told so."""
TAIL = 64 << 10
"""Bytes at a log's end in which the newest mail is looked for."""


def note_trouble(directory: str, kind: str, text: str) -> None:
    """Note a trouble in a machine's record of its space; an empty text takes the word back."""
    path = _path_of(directory, kind)
    if not text:
        remove_file(path)
    elif write_if_possible(path, text.encode()):
        set_time(path, system.time_ns())


def noted_trouble(directory: str, kind: str) -> str:
    """Return what was noted of a kind and still holds; empty if nothing does."""
    age = noted_age(_path_of(directory, kind), system.time_ns() // 1_000_000)
    if age is None or age > HOLDS.get(kind, age):
        return ""
    return (read_file(_path_of(directory, kind)) or b"").decode("utf-8", "replace")


def restored_warning(count: int) -> str:
    when = instant.text(system.time_ns() // 1_000_000)
    return (
        f"engine had lost records at {when}, and {count_noun(count, 'bundle')} of this machine's files brought them"
        " back: look at the disk and the log of its server"
    )


def note_displaced(directory: str, machine: str | None) -> None:
    """Note that another mailbox has this machine's name; None: it has it itself."""
    why = None if machine is None else Displaced(machine)
    note_trouble(directory, TAKEN, "" if why is None else f"{why.what}; {why.hint}")


def standing_troubles(directory: str, messages: Log) -> Iterator[str]:
    """Yield the troubles that hold, but for those that keep mail here: ``space.why_late`` tells of these."""
    yield from filter(None, (noted_trouble(directory, kind) for kind in (RESTORED, NAME, TWIN)))
    yield from slow_clock(messages)


def waiting_sends(directory: str) -> Iterator[str]:
    """Yield how many sends wait here for the engine, since when, and why the newest does; nothing if none waits."""
    waiting = SendQueue(directory, 0).read_entries()
    mail = (codec.message(line) for entry in waiting for line in entry.lines)
    since = next((frame.when(one.timestamp) for one in mail if isinstance(one, Message)), "")
    if since:
        verb = "waits" if len(waiting) == 1 else "wait"
        why = f"; the newest because {waiting[-1].why}" if waiting[-1].why else ""
        yield f"{count_noun(len(waiting), 'send')} {verb} here for the engine since {since}{why}"


def slow_clock(messages: Log) -> Iterator[str]:
    """Yield whether this machine's clock is behind mail that is here: what it sends may expire on its way."""
    found = (codec.message(line) for _, line in messages.lines(max(end_of(messages.path)[1] - TAIL, 0)))
    newest = max((one.timestamp for one in found if isinstance(one, Message)), default=0)
    late = newest - system.time_ns() // 1_000_000
    if late > SLOW:
        yield (
            f"this machine's clock is {late // 60_000} minutes behind mail that is here, or the sender's is ahead:"
            " mail of the slow one may expire before it is read; set the clocks, and look at `date` on both"
        )


def _path_of(directory: str, kind: str) -> str:
    return system.join(directory, f"trouble.{kind}")
