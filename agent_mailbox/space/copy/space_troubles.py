"""The troubles of a space that a process of this machine noticed, the mail that waits, and other machines' words.

Belongs here: such files in the user's own record. Troubles and words are shown, and decide nothing: a session is
judged by its own machine. So they are never synced. Sends wait durably for an engine that is out of reach, and are in
the order once, later. The machine's lock is around delivering them, the queue's own around each change of it.
"""

from __future__ import annotations

from ...core import codec, frame, instant, proofs
from ...core.address import is_id
from ...core.records import BadLine, Message, Record
from ...core.text import count_noun, term
from ...errors import BadData, Unavailable
from ...store.files import small_files, system
from ...store.files.small_files import note_time, noted_age, read_file, remove_file, replace_file
from ...store.log.log import Log
from ...store.log.logs import end_of
from ..order.order import Displaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ...core.records import Proof
    from ...store.log.logs import End, Logs

KINDS = AWAY, GONE, RESTORED, NAME, TAKEN, TWIN = "away", "gone", "restored", "name", "taken", "twin"
FILES = tuple(f"trouble.{kind}" for kind in KINDS)
HOLDS = {RESTORED: 7 * 86_400_000, TWIN: 300_000}
"""For how many ms a word holds without being said again; the others hold until they are taken back."""
SLOW = 300_000
"""Milliseconds by which a clock is behind mail that is there, and is told so."""
TAIL = 64 << 10
"""Bytes at a log's end in which the newest mail is looked for."""
QUEUE, UNSENT = "queue", "unsent"
FULL = 32 << 20
"""Bytes of a queue; further mail is refused, as it is without a queue."""
FILE, JOINED = "elsewhere", "joined"
EVERY = 60.0
"""Seconds between two words of a machine."""
SESSIONS, MACHINES = 1000, 64
"""The most that are told of, and kept."""
PROCESS = system.urandom(8).hex()
"""Tells this process's words from those of a copy of this machine."""


class Entry(Record):
    """One send: the lines of its messages, what is proven of the writer of each, and why it was not taken."""

    lines: tuple[bytes, ...]
    proofs: tuple[Proof | None, ...]
    why: str

    def about(self) -> Iterator[tuple[bytes, Proof | None]]:
        return zip(self.lines, self.proofs, strict=True)


class SpaceQueue:
    """The queue in a directory of the user's own."""

    def __init__(self, directory: str, wait: float) -> None:
        self._directory = directory
        self._log = Log(system.join(directory, QUEUE), wait)

    def put_entry(self, lines: Sequence[bytes], proofs: Sequence[Proof | None], why: str = "") -> None:
        """Keep one send durably, with why it waits; raise ``Unavailable`` if the queue is full."""
        system.make_directory(self._directory)
        texts = [line.decode() for line in lines]
        with self._log.held() as log:
            if system.fstat(log.fd).st_size > FULL:
                raise Unavailable("engine is out of reach, and the queue is full", "try again later")
            log.append([codec.dumps({"lines": texts, "proofs": list(proofs), "why": why}).encode() + b"\n"])

    def end(self) -> End:
        return end_of(self._log.path)

    def read_entries(self) -> list[Entry]:
        """Return what waits, oldest first. A torn line was never acknowledged."""
        return [entry for _, line in self._log.lines() if (entry := _parse_entry(line)) is not None]

    def read_messages(self) -> list[Message]:
        """Return the messages that wait, oldest first, with what is proven of their writers."""
        found = ((codec.message(line), proof) for one in self.read_entries() for line, proof in one.about())
        return [message.replace(proof=proof) for message, proof in found if isinstance(message, Message)]

    def drop_oldest(self, done: Entry, known: Sequence[bytes]) -> None:
        """Remove the oldest entry, which is ``done``. ``known``: the lines that had its ids before; if none of them is
        the same mail, it can never be sent, and is kept aside."""
        if known and not any(is_same(one, line) for one in known for line in done.lines):
            Log(system.join(self._directory, UNSENT)).append([line + b"\n" for line in done.lines])
        with self._log.held() as log:
            lines = [line for _, line in log.lines() if _parse_entry(line) is not None]
            if not lines or _parse_entry(lines[0]) != done:
                raise BadData(f"queue was changed by another program: {self._log.path}", "look at the file")
            replace_file(self._log.path, b"".join(line + b"\n" for line in lines[1:]))

    def count_unsent(self) -> int:
        return sum(1 for _ in Log(system.join(self._directory, UNSENT)).lines())


def note_trouble(directory: str, kind: str, text: str) -> None:
    """Note a trouble in a machine's record of its space; an empty text takes the word back."""
    if text:
        note_time(_path_of(directory, kind), system.time_ns() // 1_000_000, text.encode())
    else:
        remove_file(_path_of(directory, kind))


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
    waiting = SpaceQueue(directory, 0).read_entries()
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


def is_same(these: bytes, those: bytes) -> bool:
    """Return whether two lines are the same mail, perhaps written at two times."""
    one, other = codec.message(these), codec.message(those)
    if isinstance(one, BadLine) or isinstance(other, BadLine):
        return False
    return one.replace(timestamp=0) == other.replace(timestamp=0)


def _parse_entry(line: bytes) -> Entry | None:
    found = codec.parse(line, FULL)
    if not isinstance(found, dict):
        return None
    said = (None if word is None else proofs.parse(word.encode()) for word in found["proofs"])
    return Entry(tuple(text.encode() for text in found["lines"]), tuple(said), str(found.get("why", "")))


class Elsewhere(Record):
    """A machine's word. ``heard``: when it came (ms, our clock); ``applied``: up to where its copy is; ``seen``: when
    its sessions last acted (ms). ``behind``: how many records it lacked then; None: it did not say."""

    machine: str
    heard: int
    applied: int
    seen: Mapping[str, int]
    behind: int | None = None


def own_word(logs: Logs, applied: int, end: int, now: int, host: str) -> bytes:
    """Return this machine's word for the others; ``end`` is the order's."""
    seen = sorted(((at, who) for who, at in logs.last_seen().items() if now - at < instant.DAY), reverse=True)
    word = {"applied": applied, "behind": max(end - applied, 0), "by": PROCESS, "host": host}
    return codec.dumps({**word, "seen": {who: at for at, who in seen[:SESSIONS]}}).encode()


def find_twin(word: bytes) -> str | None:
    """Return the host of another process that spoke in this machine's own name; None: nobody else did."""
    said = codec.parse(word) if word else None
    if not isinstance(said, dict) or said.get("by", PROCESS) == PROCESS:
        return None
    return term(str(said.get("host") or "unknown"), 64)


def load_peers(directory: str) -> list[Elsewhere]:
    """Return the last word of each other machine, as the replicator keeps it in its directory."""
    return [Elsewhere(machine, *word) for machine, word in load_object(system.join(directory, FILE)).items()]


def keep_words(directory: str, words: Mapping[str, bytes], now: int) -> None:
    """Keep the words that came, each in place of the machine's earlier one; one of another form counts for nothing."""
    known = load_object(system.join(directory, FILE))
    for machine, word in words.items():
        if (found := _parse_word(word, now)) is not None and (machine in known or len(known) < MACHINES):
            known[machine] = (now, *found)
    small_files.save_derived(system.join(directory, FILE), codec.dumps(known).encode())


def keep_joined(directory: str, machines: Sequence[str]) -> None:
    """Keep which machines joined, as the engine just said, for when it is away."""
    small_files.save_derived(system.join(directory, JOINED), codec.dumps({"machines": [*machines]}).encode())


def load_joined(directory: str) -> list[str]:
    return [*map(str, load_object(system.join(directory, JOINED)).get("machines", ()))]


def load_object(path: str) -> dict[str, Any]:
    """Return what a derived file of this machine's record says; empty if it counts for nothing."""
    body = small_files.load_derived(path)
    found = codec.parse(body, len(body)) if body is not None else None
    return found if isinstance(found, dict) else {}


def _parse_word(word: bytes, now: int) -> tuple[int, dict[str, int], int | None] | None:
    said = codec.parse(word)
    if not isinstance(said, dict) or not isinstance(said.get("seen"), dict) or not isinstance(said.get("applied"), int):
        return None
    told = ((who, at) for who, at in list(said["seen"].items())[:SESSIONS] if isinstance(at, int) and is_id(who))
    seen = {who: min(max(at, 0), now) for who, at in told}  # its clock may be ahead of ours
    behind = said.get("behind")
    return said["applied"], seen, behind if type(behind) is int and behind >= 0 else None
