"""The inbox and the outbox as one command asks for them: the serving gateway's memory, else a fold of the logs.

Belongs here: the asking. A gateway remembers its folds, so its answer costs what it shows. It is asked at the socket in
its own directory, which only its user can make or open. So whoever may ask may read the logs, too. Without a good
answer the command folds them itself.
"""

from __future__ import annotations

import os
import socket
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

from ..core import codec
from ..core.records import BadLine, Message
from ..mailbox.mailbox import Mailbox
from . import home as names
from .home import Home, mode_problem
from .ledger import Ledger
from .outbox import Outbox
from .statuses import STATUSES, Row, Statuses

PATIENCE = 2.0
"""Seconds that a gateway may be silent."""
MOST = 64 << 20
"""Bytes of an answer: a hundred messages of the greatest size fit."""


class InboxView:
    """The answers of ``Statuses`` and the number of open parcels, for one command."""

    def __init__(self, home: Home, mailbox: Mailbox) -> None:
        self._home, self._mailbox = home, mailbox
        self._silent = False
        self._fold: Statuses | None = None

    def choose_rows(self, status: str, swarm_id: str | None, limit: int) -> list[Row]:
        """Return the matching rows, newest first; ``all`` means every status but deleted."""
        said = self._ask_gateway("/api/inbox", status=status, swarm_id=swarm_id, limit=limit)
        entries = said.get("messages") if said else None
        rows = [_row_from_entry(one) for one in entries] if isinstance(entries, list) else [None]
        known = [row for row in rows if row is not None]
        return known if len(known) == len(rows) else self._fold_statuses().choose_rows(status, swarm_id, limit=limit)

    def list_ids(self, status: str, swarm_id: str) -> list[str]:
        """Return the ids of a swarm's messages with a status, newest first."""
        said = self._ask_gateway("/api/inbox/ids", status=status, swarm_id=swarm_id)
        found = said.get("ids") if said else None
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return found
        return self._fold_statuses().list_ids(status, swarm_id)

    def count_statuses(self) -> dict[str, int]:
        """Return the number of messages of each status, and in total."""
        said = self._ask_gateway("/api/inbox/count") or {}
        found = {name: said.get(name) for name in (*STATUSES, "total")}
        counted = {name: count for name, count in found.items() if type(count) is int}
        return counted if len(counted) == len(found) else self._fold_statuses().count_statuses()

    def open_parcels(self, ledger: Ledger) -> int:
        """Return the number of messages on their way."""
        said = self._ask_gateway("/api/outbox/count") or {}
        count = said.get("open")
        return count if type(count) is int else Outbox(self._mailbox, ledger, 0).open_parcels()

    def _fold_statuses(self) -> Statuses:
        self._silent = True  # one command gives the answers of one source
        self._fold = self._fold or Statuses(self._home, self._mailbox)
        return self._fold

    def _ask_gateway(self, path: str, **about: str | int | None) -> dict[str, Any] | None:
        """Return a serving gateway's answer about this mailbox; None without a good one."""
        place = self._home.path_of(names.SOCKET)
        if self._silent or not os.path.lexists(place) or mode_problem(self._home.directory) or mode_problem(place):
            return None
        about["mailbox"] = os.path.realpath(self._mailbox.directory)
        line = HTTPConnection("localhost")
        try:
            line.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            line.sock.settimeout(PATIENCE)
            line.sock.connect(place)
            line.request("GET", f"{path}?{urlencode({key: v for key, v in about.items() if v is not None})}")
            answer = line.getresponse()
            data = answer.read(MOST + 1)
        except (OSError, ValueError, HTTPException):
            self._silent = True
            return None
        finally:
            line.close()
        said = codec.parse(data, MOST, ours=False) if answer.status == 200 else BadLine("refused")
        self._silent = isinstance(said, BadLine)
        return None if isinstance(said, BadLine) else said


def _row_from_entry(entry: object) -> Row | None:
    """Return an entry of the local API as a row; None if it is none."""
    if not isinstance(entry, dict):
        return None
    text, status, read_at = (entry.get(name) for name in ("content_preview", "status", "read_at"))
    message = codec.message(text.encode("utf-8", "replace")) if isinstance(text, str) else None
    good = isinstance(message, Message) and status in STATUSES and isinstance(read_at, str | None)
    return (message, status, read_at) if good else None  # type: ignore[return-value]
