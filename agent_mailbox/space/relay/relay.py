"""The replicator's socket, over which this machine's commands ask the engine: they need no connection of their own.

Belongs here: serving it. It only reads and appends. So a process can do no more over it than by writing a line into the
mailbox's files. While the engine is out of reach it says so at once: no command waits for what another one waited for.
"""

from __future__ import annotations

import os
import socket
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING, Any

from ...errors import MailboxError, Unavailable
from ...store.files.small_files import OpenFile, remove_file
from ..order.order import START, Hurry
from .relayed_order import PAGE, SOCKET, position_asked, receive_frame, send_frame, socket_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..order.order import SpaceOrder

MOST = 16
"""Commands that are served at once; others connect to the engine by themselves."""
_AGAIN = f"the replicator asks again within seconds; if that fails, too, {START}"
IDLE = 30.0
"""Seconds for which a command may say nothing."""


class Relay:
    """A socket in a directory of the user's own, served by threads until the process ends."""

    def __init__(self, directory: str, opened: Callable[[], SpaceOrder]) -> None:
        self.away: MailboxError | None = None
        """Why the last attempt to reach the engine failed; None: it did not. The replicator's turns set it."""
        self._opened = opened
        self._free: list[SpaceOrder] = []
        self._room = BoundedSemaphore(MOST)
        with OpenFile(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
            path = socket_address(directory, fd)
            remove_file(path)  # a replicator that was killed left it, and we hold its lock
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(path)
            os.chmod(path, 0o600)
        self._path = os.path.join(directory, SOCKET)
        self._socket.listen(MOST)
        Thread(target=self._accept_forever, daemon=True).start()

    def close(self) -> None:
        remove_file(self._path)
        self._socket.close()

    def _accept_forever(self) -> None:
        while True:
            try:
                command, _ = self._socket.accept()
            except OSError:
                return
            if self._room.acquire(blocking=False):
                Thread(target=self._serve_command, args=(command,), daemon=True).start()
            else:
                command.close()

    def _serve_command(self, command: socket.socket) -> None:
        try:
            command.settimeout(IDLE)
            send_frame(command, {})
            while (asked := receive_frame(command)) is not None:
                send_frame(command, *self._answer_call(*asked))
        except (OSError, ValueError):
            pass  # a command that was killed, or is none of ours
        finally:
            self._room.release()
            command.close()  # last: whoever sees this end finds room

    def _answer_call(self, head: dict[str, Any], lines: Sequence[bytes]) -> tuple[dict[str, object], list[bytes]]:
        try:
            order = self._free.pop()
        except IndexError:
            order = self._opened()
        try:
            if (away := self.away) is not None:
                kind = type(away) if isinstance(away, Unavailable) else Unavailable
                hint = _AGAIN if away.hint == START else away.hint
                return {"error": kind.__name__, "what": away.what, "hint": hint, "code": away.code}, []
            with Hurry(float(head["soon"]) if "soon" in head else None):
                if head.get("call") != "read":
                    return {"position": position_asked(order, head, lines)}, []
                found = order.read_after(int(head["after"]), min(int(head["most"]), PAGE))
                return {"records": [(r.position, r.log, r.machine, r.damaged) for r in found]}, [r.line for r in found]
        except MailboxError as error:
            if isinstance(error, Unavailable):
                self.away = self.away or error
            return {"error": type(error).__name__, **vars(error), "code": error.code}, []
        except (KeyError, TypeError) as error:
            raise ValueError(f"another form: {error}") from None
        finally:
            self._free.append(order)
