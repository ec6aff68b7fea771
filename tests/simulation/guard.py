"""The shell guard as a model: when does ``agent-mailbox-hook`` say "nothing new" without starting Python?

Belongs here: the guard's judgement, in the same order of system calls, as a simulated process makes it; and what the
judge holds it to. ``test_shells`` holds the model to the real dash, bash and busybox. Outside: the doorbell's guard,
which looks for a process, and the guards before tools, which read no state that mail changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_mailbox.store.files import system
from agent_mailbox.store.log.stamps import AT_TURN, STARTED, VOUCHED
from tests.simulation.places import LIVE

if TYPE_CHECKING:
    from tests.simulation.judge import Judge
    from tests.simulation.letters import Letter, Session

PERMITS = ("Permit", "permit", "PermissionRequest", "permission-request")
STOPS = ("Stop", "stop")
PROMPTS = ("UserPromptSubmit", "user-prompt-submit")
STARTS = ("SessionStart", "session-start", "SessionEnd", "session-end")
LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


class Ask(NamedTuple):
    """A call of the guard: its event, and what the environment says."""

    event: str
    session: str
    box: str
    state: str
    grain: int = 1
    """The ns that the shell's ``-nt`` tells apart: busybox compares whole seconds."""
    started: str = STARTED
    """The directory with the time of the machine's start."""


def says_nothing(ask: Ask) -> bool:
    """Does the guard end here, without starting Python?"""
    session = ask.session
    if ask.event in STARTS or not session or not LETTERS.issuperset(session[0]) or set(session) - LETTERS - {*"._@+-"}:
        return False
    box = ask.box or _line(f"{ask.state}/sessions/{session}")[0]
    quiet = f"{box}/.cache/quiet/{session}"
    if ask.event in PERMITS:
        if not box:  # an empty note is one whose writer was interrupted
            note = f"{ask.state}/sessions/{session}"
            return _size(note) > 0 if _is(note, system.S_IFREG) else not (_is(note) or _is_link(note))
        quiet = f"{ask.state}/unbound/{session}"
        if _line(quiet) != (box, True):
            return False
    if not box or not _is(quiet, system.S_IFREG):
        return False
    led = (ask.event in STOPS and _line(quiet)[0] != "") or (ask.event in PROMPTS and _line(quiet)[0] == AT_TURN)
    for name in VOUCHED:
        file, note = f"{box}/{name}", f"{box}/.cache/ends/{name.removesuffix('.jsonl')}"
        if _is(file):
            strange = not _is(note) or _newer(file, note, ask.grain) or _newer(note, file, ask.grain)
        else:
            strange = _is(note)
        led = led or strange
    return not led and _beats(f"{box}/agent-heartbeats", quiet, ask)


def _beats(hearts: str, quiet: str, ask: Ask) -> bool:
    heart, started, grain = f"{hearts}/{ask.session}", ask.started, ask.grain
    if not _is(heart, system.S_IFREG) or _size(heart) or _is_link(heart) or _is_link(hearts):
        return False
    try:
        system.close(system.open(heart, system.O_WRONLY | system.O_CREAT | system.O_TRUNC, 0o666))
    except OSError:
        return False
    if not _is(quiet, system.S_IFREG) or _newer(quiet, heart, grain):  # it may be gone since
        return False
    return not _newer(started, quiet, grain) or _newer(started, heart, grain)


def _is(path: str, kind: int = 0) -> bool:
    """Is anything at the path (``-e``), or that kind (``-f``)? It follows links."""
    try:
        mode: int = system.stat(path).st_mode
    except OSError:
        return False
    return not kind or mode & system.S_IFMT == kind


def _is_link(path: str) -> bool:
    try:
        mode: int = system.lstat(path).st_mode
    except OSError:
        return False
    return mode & system.S_IFMT == system.S_IFLNK


def _size(path: str) -> int:
    try:
        size: int = system.stat(path).st_size
    except OSError:
        return 0
    return size


def _newer(one: str, other: str, grain: int) -> bool:
    """Is the one newer than the other (``-nt``)? Without the other, shells differ: see ``says_nothing``."""
    try:
        first, second = system.stat(one).st_mtime_ns, system.stat(other).st_mtime_ns
    except OSError:
        return False
    return bool(first // grain > second // grain)


def _line(path: str) -> tuple[str, bool]:
    """What ``read`` gets of a file: its first line, and whether that ends."""
    try:
        fd = system.open(path, system.O_RDONLY)
    except OSError:
        return "", False
    try:
        data: bytes = system.read(fd, 4096)
    except OSError:
        return "", False
    finally:
        system.close(fd)
    line, end, _ = data.partition(b"\n")
    return line.decode("utf-8", "surrogateescape"), bool(end)


class Watch:
    """What a session had to be told of when its guard began at an event: if the guard says nothing, it hid that."""

    def __init__(self, judge: Judge, session: Session, event: str, grain: int) -> None:
        self.judge = judge
        self.session = session
        self.event = event
        self.grain = grain
        self.was_led = session.led
        self.pending = {letter.id for letter in judge.letters.values() if self._is_due(letter)}
        judge.watches[id(self)] = self.pending

    def _is_due(self, letter: Letter) -> bool:
        session, judge = self.session, self.judge
        if session.registered is None or session.may_be_dead:
            return False
        if letter.is_for_turn and self.event not in (*PROMPTS, *STOPS):
            return False
        if letter.foreign:
            before, written = letter.times  # one in the tick of the write before it escapes the guard, as the docs say
            told = letter.id in judge.appended and before // self.grain != written // self.grain
        else:
            told = letter.acked is not None
        return told and judge.is_unread(session, letter)

    def ends(self, *, nothing: bool) -> None:
        """The guard has answered."""
        del self.judge.watches[id(self)]
        if not nothing:
            return
        for message_id in sorted(self.pending):
            letter = self.judge.letters[message_id]
            if self._is_due(letter) and (not letter.foreign or self._is_live(message_id)):
                self.judge.breach(f"the guard of {self.session.id} says nothing, and {message_id} waits for it")

    def _is_live(self, message_id: str) -> bool:
        """Is a foreign line still there? One that came while the log was replaced may be lost, as the docs say."""
        try:
            inode = self.judge.world.kernel.look_up(LIVE[0])
        except OSError:
            return False
        return message_id.encode() in inode.data

    def permits(self, *, nothing: bool) -> None:
        """The guard has answered whether something binds the session."""
        del self.judge.watches[id(self)]
        session = self.session
        if nothing and self.was_led and not session.may_be_dead:
            self.judge.breach(f"the guard of {session.id} lets every tool pass, and a lead binds it")
