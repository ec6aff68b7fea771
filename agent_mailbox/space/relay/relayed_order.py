"""The order of a space by way of the replicator: a command that asks it need not import a database's library.

Belongs here: the client's side of the replicator's socket, and the form of what goes over it. A command goes to the
engine itself if no replicator answers. One that it serves is greeted. A question, its answer and the greeting have the
same form. Four bytes give the length of a head, a JSON object. Then come the lines whose sizes it gives, as they are.
"""

from __future__ import annotations

import _socket as socket  # ``socket`` itself makes enums, which costs 9 ms
import os
from io import BytesIO

from ...core import codec
from ...core.records import BadLine
from ...core.text import ascii_json
from ...errors import BadData, Busy, Refused, Unavailable
from ...store.files import system
from ...store.files.small_files import OpenFile, note_time, noted_age, read_if_possible
from ..order import order as orders
from ..order.order import START, HeldUp, Moved, NoServer, NoSpace, Ordered, Taken, check_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from ..order.order import SpaceOrder

    T = TypeVar("T")

SOCKET = "relay"
AWAY_FILE, AWAY, LONG = "away", 15_000, 0.2
"""The file whose time says when a command waited ``LONG`` seconds in vain; for ``AWAY`` ms no other does."""
DEAF_FILE, DEAF = "deaf", 2_000
"""The same of a replicator that said no word: for so long commands connect by themselves."""
LONGEST_HEAD, MOST_BYTES = 1 << 20, 64 << 20
"""Bytes of a head, and of the lines behind it."""
_SERVE = "try again; `agent-mailbox engine serve` starts it"
PAGE = 100
"""Records that are asked for at once."""
KINDS = {kind.__name__: kind for kind in (Unavailable, Busy, Refused, BadData, Moved, NoSpace, NoServer, HeldUp)}
"""The errors that an engine may answer with, but for ``Taken``."""


class RelayedOrder:
    """One machine's way to a space over the socket in ``directory``, or over its own; see ``TotalOrder``."""

    def __init__(self, machine: str, directory: str, patience: float, direct: Callable[[], SpaceOrder]) -> None:
        self.machine = machine
        self._directory = directory
        self._patience = patience
        self._direct = direct
        self._own: SpaceOrder | None = None
        self._socket: socket.socket | None = None
        self._answered = 0

    def last_position(self) -> int:
        return self._ask_position({"call": "end"})

    def count_holes(self) -> int:
        return self._ask_position({"call": "holes"})

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        check_size(lines)
        return self._ask_position({"call": "append", "log": log, "ids": [*ids], "expect": expect}, lines)

    def read_after(self, after: int, most: int) -> list[Ordered]:
        if (replicator := self._find_replicator()) is None:
            return self._ask_directly(lambda order: [*order.read_after(after, most)])
        found: list[Ordered] = []
        while len(found) < most:
            wanted = min(PAGE, most - len(found))
            head, lines = self._ask_replicator(replicator, {"call": "read", "after": after, "most": wanted})
            told = zip(head["records"], lines, strict=True)
            found += [Ordered(place, log, line, who, damaged) for (place, log, who, damaged), line in told]
            if len(lines) < wanted:
                break
            after = found[-1].position
        return found

    def close(self) -> None:
        for one in (self._own, self._socket):
            if one is not None:
                one.close()
        self._own = self._socket = None

    def _ask_position(self, head: dict[str, Any], lines: Sequence[bytes] = ()) -> int:
        """Return the position that the replicator answers, or the engine itself if no replicator does."""
        if (replicator := self._find_replicator()) is None:
            return self._ask_directly(lambda order: position_asked(order, head, lines))
        return int(self._ask_replicator(replicator, head, lines)[0]["position"])

    def _ask_replicator(
        self, replicator: socket.socket, head: dict[str, object], lines: Sequence[bytes] = ()
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Ask the replicator; raise the error that it answers with, or ``Unavailable`` if it ends meanwhile."""
        left = orders.seconds_left()
        try:
            replicator.settimeout(self._patience + 1 if left is None else orders.WORD)
            send_frame(replicator, head if left is None else {**head, "soon": left}, lines)
            if left is not None:
                self._await_answer(replicator, left)
            answer = receive_frame(replicator)
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.close()
            raise Unavailable(f"replicator does not answer: {error}", _SERVE) from None
        if answer is None:
            self.close()
            raise Unavailable("replicator ended meanwhile", _SERVE)
        told = answer[0]
        if (kind := told.get("error")) == "Taken":
            raise Taken(told["id"], told["position"])
        if kind is not None:
            raise KINDS.get(kind, Unavailable)(told["what"], told["hint"], code=told["code"])
        orders.note_answer()
        return answer

    def _await_answer(self, of: socket.socket, seconds: float) -> None:
        """Return once an answer begins; raise ``TimeoutError`` if none does, or the replicator says no word."""
        deadline = system.monotonic() + seconds
        while system.monotonic() < deadline:
            try:
                of.settimeout(orders.SILENT / 2)
                of.recv(1, socket.MSG_PEEK)
                return of.settimeout(orders.WORD)
            except TimeoutError:
                try:
                    connect_to_replicator(self._directory, orders.WORD).close()
                except ValueError:
                    pass  # it serves enough already, so it lives
        raise TimeoutError("no answer in time")

    def _find_replicator(self) -> socket.socket | None:
        """Return the connection to the replicator; None if none answers, so that this process connects by itself."""
        if self._socket is not None and _has_ended(self._socket):  # it leaves who asks nothing for ``relay.IDLE``
            self.close()
        if self._own is None and self._socket is None:
            patience = orders.WORD if orders.is_hurried() else self._patience + 1  # one that is stopped says nothing
            try:
                self._socket = connect_to_replicator(self._directory, patience)
            except (OSError, ValueError):
                return None
        return self._socket

    def _ask_directly(self, ask: Callable[[SpaceOrder], T]) -> T:
        """Return what the engine answers to this process; raise ``Unavailable`` at once if it was away just now."""
        path = os.path.join(self._directory, AWAY_FILE)
        if _is_noted(path, min(AWAY, _now() - self._answered)):
            what, _, hint = (read_if_possible(path) or b"").decode("utf-8", "replace").partition("\n")
            if what:
                raise HeldUp(what, hint)
            raise Unavailable("engine was out of reach a moment ago, and no replicator answers here", START)
        if self._own is None:
            self._own = self._direct()
        begun = system.monotonic()
        try:
            found = ask(self._own)
            self._answered = _now()
            return found
        except HeldUp as error:
            note_time(path, _now(), f"{error.what}, a moment ago\n{error.hint}".encode())
            raise
        except Unavailable:
            if system.monotonic() - begun > LONG:
                note_time(path, _now())
            raise


def position_asked(order: SpaceOrder, head: dict[str, Any], lines: Sequence[bytes]) -> int:
    """Return the position that the engine answers to a question; raise ``ValueError`` for another one."""
    call = head.get("call")
    if call == "end":
        return order.last_position()
    if call == "holes":
        return order.count_holes()
    if call == "append":
        return order.append_lines(str(head["log"]), lines, ids=[*map(str, head["ids"])], expect=head["expect"])
    raise ValueError(f"another call: {call}")


def _now() -> int:
    return system.time_ns() // 1_000_000


def _is_noted(path: str, within: int) -> bool:
    age = noted_age(path, _now())
    return age is not None and 0 <= age < within


def socket_address(directory: str, fd: int) -> str:
    """Return a socket's address in an open directory: the kernel takes 108 bytes, and a path may be longer."""
    path = os.path.join(directory, SOCKET)
    return f"/proc/self/fd/{fd}/{SOCKET}" if len(os.fsencode(path)) > 100 else path


def connect_to_replicator(directory: str, patience: float) -> socket.socket:
    """Return a connection to the replicator; raise ``OSError`` if none answers, ``ValueError`` if it has no room."""
    deaf = os.path.join(directory, DEAF_FILE)
    if _is_noted(deaf, DEAF):
        raise OSError("replicator said no word a moment ago")
    found = socket.socket(socket.AF_UNIX)
    try:
        found.settimeout(patience)
        with OpenFile(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
            found.connect(socket_address(directory, fd))
        if receive_frame(found) is None:
            raise ValueError("replicator serves enough already")
    except BaseException as error:
        found.close()
        if isinstance(error, TimeoutError):
            note_time(deaf, _now())
        raise
    return found


def _has_ended(connection: socket.socket) -> bool:
    """Return whether the other side closed a connection on which nothing is under way."""
    connection.settimeout(0)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def send_frame(to: socket.socket, head: dict[str, object], lines: Sequence[bytes] = ()) -> None:
    text = ascii_json(codec.dumps({**head, "sizes": [*map(len, lines)]})).encode()
    to.sendall(len(text).to_bytes(4, "big") + text + b"".join(lines))


def receive_frame(of: socket.socket) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return what comes next; None at the end. Raises ``OSError``, or ``ValueError`` for what has another form."""
    first = of.recv(4, socket.MSG_WAITALL)
    if not first:
        return None
    head = codec.parse(_read_exactly(of, int.from_bytes(first, "big"), LONGEST_HEAD), ours=False)
    if isinstance(head, BadLine) or not isinstance(sizes := head.pop("sizes", None), list):
        raise ValueError("another form")
    if not all(type(size) is int and 0 <= size <= MOST_BYTES for size in sizes):
        raise ValueError("another form")
    body = BytesIO(_read_exactly(of, sum(sizes), MOST_BYTES))
    return head, [body.read(size) for size in sizes]


def _read_exactly(of: socket.socket, size: int, most: int) -> bytes:
    if size > most:
        raise ValueError(f"{size} bytes at once")
    found = bytearray()
    while len(found) < size:
        data = of.recv(min(size - len(found), 1 << 18))
        if not data:
            raise OSError("it ended meanwhile")
        found += data
    return bytes(found)
