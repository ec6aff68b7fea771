"""The brake on wakes: how often mail may wake a session, or keep it from ending its turn.

Belongs here: that decision, by the person's limits (``Limits``). Control, high priority by a proven writer, and the
person pass.

Anybody may write mail, so wakes are counted apart by what is proven of who caused them. Unproven mail holds up no
proven mail, and plain mail holds up no control. An *echo*, a reply with the very words that it answers, wakes nobody.

A *last word* waits for a turn: its writer had asked for an ack, was answered, and answers that without asking again.
So it is told by structure: no word of a text decides. It may still say something new, so it wakes in the end.
"""

from __future__ import annotations

from .instant import DAY, HOUR, MINUTE
from .records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .records import Message

KEPT = 400
"""Wakes that are remembered at most, the newest: more than a day's of all kinds."""
CAUSES = 8
"""Threads that are remembered of one wake."""
PATIENCE = 15 * MINUTE
"""The time (ms) that a last word waits for a turn of its reader."""
PROVEN, UNPROVEN, CONTROL, TASK = "proven", "unproven", "control", "task"
"""The kinds of what wakes: mail by who wrote it, control of which nothing is proven, a task that is open."""


class Limits(Record):
    """The person's limits: ms between two wakes, wakes an hour by one thread, wakes a day."""

    gap: int = 30_000
    per_thread: int = 6
    per_day: int = 60


class Call(Record):
    """A message that would wake a session: its id, its thread's key, its kind. ``passes``: no limit holds it up.
    ``waits_until``: a last word, which waits for a turn until then."""

    id: str
    thread: str
    kind: str
    passes: bool = False
    is_echo: bool = False
    waits_until: int = 0


class Wake(Record):
    """A wake that was: its instant (ms), the kinds and threads of what caused it. ``is_turns_end``: mail kept the
    session from ending its turn."""

    at: int
    causes: tuple[tuple[str, str], ...]
    is_turns_end: bool = False


class BrakeVerdict(Record):
    """Whether the session is woken; else when to ask again (ms; None: once more mail comes), and why it is not.

    ``held``: the ids of the calls that may not wake it now. ``over``: the threads whose talk is at its end for now:
    they have had their wakes, or echo."""

    wakes: bool
    again: int | None = None
    why: str = ""
    held: tuple[str, ...] = ()
    over: tuple[str, ...] = ()


def judge(calls: Sequence[Call], before: Iterable[Wake], limits: Limits, now: int) -> BrakeVerdict:
    """Return whether one of the calls wakes the session, by the wakes so far. At a turn's end pass no ``gap``: a
    session that has not ended its turn is not woken."""
    past = [wake for wake in before if now - DAY < wake.at <= now]  # a clock that was set back holds nothing up
    over = tuple(dict.fromkeys(call.thread for call in calls if _is_over(call, past, limits, now)))
    free = {call.id: _free_at(call, past, limits, now) for call in calls}
    held = {i: (at, why) for i, (at, why) in free.items() if at is None or at > now}
    why = next(iter(held.values()))[1] if held else ""
    waits = [at for at, _ in held.values() if at is not None]
    return BrakeVerdict(len(held) < len(free), min(waits, default=None), why, tuple(held), over)


def note(calls: Sequence[Call], before: Iterable[Wake], now: int, *, is_turns_end: bool = False) -> list[Wake]:
    """Return the wakes with one by these calls. Those that pass are not counted: they hold up nothing else."""
    past = [wake for wake in before if now - DAY < wake.at <= now]
    causes = tuple(dict.fromkeys((call.kind, call.thread) for call in calls if not call.passes and not call.is_echo))
    return [*past, Wake(now, causes[:CAUSES], is_turns_end)][-KEPT:] if causes else past


def is_echo(reply: Message, answered: Message) -> bool:
    """Return whether a reply only repeats the words that it answers, and asks for no ack."""
    return reply.content.split() == answered.content.split() and not reply.ack and not _brings(reply, answered)


def is_last_word(reply: Message, answer: Message, question: Message) -> bool:
    """Return whether a reply is the last word after a question: its sender had asked for an ack, and now answers the
    answer. Neither of the two asks for anything; else somebody may wait."""
    return (
        question.ack
        and question.sender == reply.sender != answer.sender
        and reply.recipients == (answer.sender,)
        and not any(one.type != "message" for one in (reply, answer, question))
        and not any(one.ack or one.priority == "high" or one.when is not None for one in (reply, answer))
        and not _brings(reply, answer)
    )


def _brings(reply: Message, answered: Message) -> bool:
    """Return whether a reply brings more than words: a file, a reference, a topic of its own."""
    return any((reply.attachments, reply.references, reply.subject not in (None, answered.subject)))


def _free_at(call: Call, past: Sequence[Wake], limits: Limits, now: int) -> tuple[int | None, str]:
    """Return the instant from which a call may wake the session, None if it never does, and what holds it up."""
    if call.passes:
        return now, ""
    if call.is_echo:
        return None, "it repeats what it answers"
    of_kind = [wake.at for wake in past if any(_counts(kind, call.kind) for kind, _ in wake.causes)]
    found = [(call.waits_until, "it answers an answer, and asks for nothing")]
    found.append((_after(of_kind, limits.per_day, DAY), f"at most {limits.per_day} wakes a day"))
    if call.kind != CONTROL:
        last = max((wake.at for wake in past if not wake.is_turns_end), default=now - limits.gap)
        found.append((last + limits.gap, f"at most one wake in {limits.gap / 1000:g} seconds"))
    if call.kind not in (CONTROL, TASK):
        at = _after(_of_thread(call, past), limits.per_thread, HOUR)
        found.append((at, f"at most {limits.per_thread} wakes an hour by one thread"))
    return max(found)


def _of_thread(call: Call, past: Sequence[Wake]) -> list[int]:
    return [
        wake.at
        for wake in past
        if any(thread == call.thread and _counts(kind, call.kind) for kind, thread in wake.causes)
    ]


def _counts(kind: str, about: str) -> bool:
    """Return whether a wake of a kind counts for one of the other kind: proven mail counts for unproven mail alone."""
    return kind == about or (kind == PROVEN and about == UNPROVEN)


def _after(at: Sequence[int], most: int, span: int) -> int:
    """Return the instant at which fewer than ``most`` wakes are within the span; 0 if they are."""
    return at[-most] + span if len(at) >= most else 0


def _is_over(call: Call, past: Sequence[Wake], limits: Limits, now: int) -> bool:
    if call.passes or call.kind == TASK:
        return False
    return call.is_echo or _after(_of_thread(call, past), limits.per_thread, HOUR) > now
