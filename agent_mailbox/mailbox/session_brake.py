"""A session's brake: which of its unread mail may wake it now, what was held up, and who is told of that.

Belongs here: the wakes so far, in a small file of each session among the user's own records: no checkout changes it.
``core.brake`` decides. A file that is lost or damaged costs a wake too many.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING

from ..core import brake, codec, conversations, frame, inbox, proofs
from ..core.address import uuid_of
from ..core.brake import BrakeVerdict, Call, Limits, Wake
from ..core.compose import Draft
from ..core.records import USER, BadLine
from ..core.text import count_noun
from ..errors import MailboxError
from ..store.files import system
from ..store.files.small_files import read_if_possible, replace_file
from ..store.log.stamps import WOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..core.inbox import Item
    from ..core.records import Message, Proof
    from .open_mailbox import OpenMailbox

    _State = tuple[list[Wake], dict[str, str], tuple[str, ...], str, tuple[str, ...], int | None]

_MOST = 1 << 17
"""Bytes of a session's file at most; ours stay far below."""
_KEPT = 100
"""Messages that are remembered as held up, and threads of which the person was told."""
_DIGITS = 16
NOTHING: _State = ([], {}, (), "", (), None)
"""The state of a session that was never woken and has no limit of its own."""


class SessionBrake:
    """The brake of one session. ``send`` tells the person. ``held``: the messages that did not wake it, ``why`` not."""

    def __init__(self, desk: OpenMailbox, session_id: str, send: Callable[[Draft], object] = lambda _: None) -> None:
        self._desk = desk
        self._send = send
        self._me = session_id
        self._path = system.join(desk.logs.stamp_files.kept_here(WOKEN), session_id)
        self._wakes, self._threads, self.held, self.why, self._told, self._most = self._read()
        self._judged: bool | None = None

    def may_ring(self, items: Sequence[Item]) -> BrakeVerdict:
        """Return whether unread mail may wake the idle session now. If so, that is noted as a wake."""
        return self._ask(self._calls(items), self._limits(), is_turns_end=False)

    def may_ring_for_task(self, is_first: Callable[[], bool]) -> BrakeVerdict:
        """Return the same of a task that is open to the session. ``is_first`` tells whether no other was woken for it,
        and is asked only if the session may be woken."""
        call = Call("", "", brake.TASK)
        found = brake.judge([call], self._wakes, self._limits(), self._desk.now())
        if not found.wakes:
            return found
        return self._ask([call], self._limits(), is_turns_end=False) if is_first() else BrakeVerdict(False)

    def let_on(self, items: list[Item]) -> list[Item]:
        """Return the mail that keeps the session from ending its turn: all, or none. It is asked once."""
        if self._judged is None:
            self._judged = self._ask(self._calls(items), self._limits().replace(gap=0), is_turns_end=True).wakes
        return items if self._judged else []

    def find_hold(self, message: Message) -> tuple[str, str]:
        """Return why a message that was just sent does not wake the session now, and what its sender can do. The reason
        is empty if it does. Nothing is noted."""
        call, now = self._call(message), self._desk.now()
        why = brake.judge([call], self._wakes, self._limits(), now).why
        return why, "--ack wakes it" if call.waits_until > now else ""

    def tell_held(self, items: Sequence[Item]) -> list[str]:
        """Return the line for a session that is shown mail which had not woken it, once; none for other mail."""
        count = sum(item.message.id in self.held for item in items)
        if not count:
            return []
        self.held = ()
        self._write()
        return [f"agent-mailbox: {count_noun(count, 'message')} did not wake you: {self.why}"]

    def set_most(self, per_day: int | None) -> None:
        """Have mail wake the session so often a day at most, or as often as the person's own limit says."""
        if per_day != self._most:
            self._most = per_day
            self._write()

    def take_over(self, before: str) -> None:
        """Go on with the wakes and the limit of the session that this one continues within its client."""
        state = SessionBrake(self._desk, before)._read()
        if state != NOTHING:
            self._wakes, self._threads, self.held, self.why, self._told, self._most = state
            self._write()

    def _ask(self, calls: Sequence[Call], limits: Limits, *, is_turns_end: bool) -> BrakeVerdict:
        now = self._desk.now()
        found = brake.judge(calls, self._wakes, limits, now)
        free = {call.id for call in calls}.difference(found.held)
        fresh = [thread for thread in found.over if thread not in self._told]
        over = {*found.over}.difference(fresh)
        unsaid = {"", *free, *(call.id for call in calls if call.waits_until > now or call.thread in over)}
        fresh_held = [i for i in found.held if i not in unsaid]
        held = [i for i in dict.fromkeys((*self.held, *fresh_held)) if i not in free][-_KEPT:]
        if not found.wakes and (*held,) == self.held and not fresh:
            return found
        if found.wakes:
            self._wakes = brake.note(calls, self._wakes, now, is_turns_end=is_turns_end)
        self.held, self.why, self._told = (*held,), found.why or self.why, (*self._told, *fresh)[-_KEPT:]
        threads = {**self._threads, **{call.id: call.thread for call in calls}}
        self._threads = dict([*threads.items()][-brake.KEPT :])
        for thread in fresh:  # ahead of the file: one that is killed in between tells it again, by the same id
            self._tell_person(next(call for call in calls if call.thread == thread))
        self._write()
        return found

    # -- what wakes ---------------------------------------------------------------------------------------------------

    def _calls(self, items: Sequence[Item]) -> list[Call]:
        return [self._call(item.message) for item in items]

    def _call(self, message: Message) -> Call:
        is_proven = _is_proven(message)
        if inbox.is_idle_notice(message):
            return Call(message.id, f"idle {message.sender}", brake.PROVEN if is_proven else brake.UNPROVEN)
        if message.type == "control":
            return Call(message.id, message.id, brake.CONTROL, passes=is_proven)
        is_person = proofs.speaker(_writer(message), USER) == USER == message.sender
        passes = is_person or (is_proven and message.priority == "high")
        kind = brake.PROVEN if is_proven else brake.UNPROVEN
        above = conversations.upwards(message, self._desk.look_up)
        near = [*islice(above, 3)]
        return Call(
            message.id,
            self._thread(message, chain(near, above)),
            kind,
            passes=passes,
            is_echo=len(near) > 1 and brake.is_echo(*near[:2]),
            waits_until=message.timestamp + brake.PATIENCE if len(near) > 2 and self._is_last_word(*near) else 0,
        )

    def _thread(self, message: Message, above: Iterable[Message]) -> str:
        """Return the key of a message's thread. Messages of the same words by one sender, which answer nothing, are a
        thread."""
        if message.thread is None:
            said = f"{message.sender}\n{message.subject or ''}\n{message.content}"
            return sha256(said.encode()).hexdigest()[:_DIGITS]
        root = message
        for root in above:
            if root is not message and root.id in self._threads:
                return self._threads[root.id]
        return root.thread or root.id

    def _is_last_word(self, reply: Message, answer: Message, question: Message) -> bool:
        """Return whether a reply waits for a turn. A lead's word never does; unproven mail makes no proven one wait."""
        if not brake.is_last_word(reply, answer, question):
            return False
        if _is_proven(reply) and not (_is_proven(answer) and _is_proven(question)):
            return False
        me = self._desk.logs.read_roster().get(self._me)
        return me is None or me.lead != reply.sender

    # -- the person ---------------------------------------------------------------------------------------------------

    def _limits(self) -> Limits:
        own = self._desk.own.wake
        usual = Limits()
        gap = own.get("gap_seconds")
        per_day = own.get("per_day", usual.per_day)
        return Limits(
            usual.gap if gap is None else round(gap * 1000),
            own.get("per_thread", usual.per_thread),
            per_day if self._most is None else min(per_day, self._most),
        )

    def _tell_person(self, call: Call) -> None:
        """Tell the person, once for each thread, that its talk wakes nobody for now. Several sessions may find that:
        the message's id follows from the thread, so the first one tells it."""
        roster, found = self._desk.logs.read_roster(), self._desk.look_up(call.id)
        if found is None:
            return
        said = (
            f"Mail from {frame.name_of(found.sender, roster)} to {frame.name_of(self._me, roster)} came often in one"
            " thread, or repeated what it answered. It wakes nobody for now:"
            f" `agent-mailbox thread {frame.short_typed(found.id)}` shows it."
        )
        digits = sha256(f"{self._desk.directory}\n{call.thread}".encode()).hexdigest()
        draft = Draft(
            sender=self._me, to=(USER,), subject="A thread was stopped", content=said, type="notification",
            priority="low", id=uuid_of(digits, "4"),
        )  # fmt: skip
        try:
            self._send(draft)
        except MailboxError:
            pass  # the other side told it, or the next one does

    # -- the file -----------------------------------------------------------------------------------------------------

    def _read(self) -> _State:
        said = codec.parse(read_if_possible(self._path) or b"", _MOST)
        if isinstance(said, BadLine):
            return NOTHING
        try:
            return _parse(said)
        except (AttributeError, KeyError, TypeError, ValueError):
            return NOTHING

    def _write(self) -> None:
        wakes = [[wake.at, wake.is_turns_end, [list(cause) for cause in wake.causes]] for wake in self._wakes]
        said = {
            "wakes": wakes, "threads": self._threads, "held": self.held, "why": self.why, "told": self._told,
            "most": self._most,
        }  # fmt: skip
        try:
            system.make_directory(system.dirname(self._path))
            replace_file(self._path, codec.dumps(said).encode("utf-8", "surrogatepass"), durable=False)
        except (OSError, MailboxError):
            pass  # a wake too many


def _parse(said: Mapping[str, Any]) -> _State:
    wakes = [
        Wake(int(at), tuple((str(kind), str(thread)) for kind, thread in causes), bool(is_turns_end))
        for at, is_turns_end, causes in said["wakes"]
    ]
    threads = {str(message): str(thread) for message, thread in said["threads"].items()}
    held, told = (tuple(map(str, said[key]))[-_KEPT:] for key in ("held", "told"))
    most = said.get("most")
    return wakes[-brake.KEPT :], threads, held, str(said["why"]), told, None if most is None else int(most)


def _writer(message: Message) -> Proof | None:
    return message.proof if message.proof is not None else message.written_by


def _is_proven(message: Message) -> bool:
    return proofs.proves(_writer(message))
