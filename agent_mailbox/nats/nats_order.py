"""The order of a space as one JetStream stream.

Belongs here: the mapping of the order to subjects, sequences and expectations. A record's subject names the space, the
machine that published it, and its log; a message's also the digest of its id:

    mbx.SPACE.MACHINE.roster        mbx.SPACE.MACHINE.messages.DIGEST
    mbx.SPACE.MACHINE.claims        mbx.SPACE.MACHINE.reads

So an account that may publish below ``mbx.SPACE.MACHINE`` alone proves its machine. A position is the sequence in the
stream. An expectation is the last sequence on ``mbx.SPACE.*.LOG``; a message expects none on ``mbx.SPACE.*`` and its
digest. Both need server 2.12 or later, and so do atomic batches.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

from ..errors import BadData, Malformed, Refused, Unavailable
from ..store.order import CLAIMS, MESSAGES, ROSTER, Moved, Ordered, Taken, check_size, is_machine, is_reads, reads_of
from .connection import NatsConnection, Publication, ServerAnswer, headers_of, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLICAS = 3
"""Copies of a space in a cluster: two of them answer for it."""
LEAST = (2, 12)
"""The first version of the server with everything that is used here."""
WINDOW = 200
"""Records that are asked for at once."""
LOOKS = 5.0
"""Seconds after which a waiting machine looks, whatever it heard."""
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_SUM = "Mailbox-Sum"
_WRONG_SEQUENCE, _NO_STREAM, _NO_MESSAGE = (10071, 10164), 10059, 10037


class NatsOrder:
    """One machine's way to a space in NATS; see ``store.order.TotalOrder``."""

    def __init__(self, connection: NatsConnection, space: str, machine: str) -> None:
        if not is_machine(space) or not is_machine(machine):
            raise Malformed(f"name is not lower-case letters, digits and -: {space} {machine}", "choose another")
        self.connection = connection
        self.space = space
        self.machine = machine

    @property
    def stream(self) -> str:
        """Return the stream's name."""
        return f"MBX_{self.space}"

    # -- the stream ---------------------------------------------------------------------------------------------------

    def make(self) -> bool:
        """Make the space unless it is there; return whether it was made. A cluster keeps it three times.

        Raises ``Refused`` for an old server."""
        try:
            self.info()
            return False
        except Refused as error:
            if error.code != "no_space":
                raise
        wanted = {
            "name": self.stream,
            "subjects": [f"mbx.{self.space}.>"],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": REPLICAS if self.connection.info.get("cluster") else 1,
            "allow_atomic": True,
            "allow_direct": True,
            "duplicate_window": 0,
        }
        self._api(f"STREAM.CREATE.{self.stream}", wanted)
        return True

    def info(self) -> dict[str, Any]:
        """Return the stream's configuration and state; raise ``Refused`` if the space is not there."""
        found = self._api(f"STREAM.INFO.{self.stream}", None)
        if is_old(said := str(self.connection.info.get("version", ""))):
            raise Refused(f"engine is too old: nats-server {said or '?'}", "run nats-server 2.12 or later")
        return found

    def _api(self, call: str, body: object) -> dict[str, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        return self._judged(self.connection.ask([Publication(f"$JS.API.{call}", data)])[0])

    def _judged(self, answer: ServerAnswer) -> dict[str, Any]:
        """Return what the engine answered; raise its complaint."""
        found = parsed(answer.data)
        error = found.get("error")
        if error is None:
            return found
        code, said = (error.get("err_code"), error.get("description")) if isinstance(error, dict) else (0, error)
        if code == _NO_STREAM:
            raise Refused(f"engine has no such space: {self.space}", "`engine join` makes it", code="no_space")
        if code in _WRONG_SEQUENCE:
            raise Moved(f"log has moved: {said}", "look again")
        raise Unavailable(f"engine refuses: {said} ({code})", "`agent-mailbox engine doctor` looks closer")

    def named(self, owner: str) -> str:
        """Take the machine's name for an owner unless it is taken; return whose it is."""
        subject = f"mbx.{self.space}.{self.machine}.joined"
        one = Publication(subject, owner.encode(), {_EXPECTED: "0", _SUM: _sum(owner.encode())})
        try:
            self._judged(self.connection.ask([one])[0])
            return owner
        except Moved:
            asked = Publication(f"$JS.API.STREAM.MSG.GET.{self.stream}", json.dumps({"last_by_subj": subject}).encode())
            found = self._judged(self.connection.ask([asked])[0])["message"]
            return base64.b64decode(found.get("data", "")).decode("utf-8", "replace")

    # -- the order ----------------------------------------------------------------------------------------------------

    def end(self) -> int:
        """Return the position of the last record."""
        return int(self.info()["state"]["last_seq"])

    def append(self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None) -> int:
        """Append the lines; see ``TotalOrder.append``."""
        check_size(lines)
        if not lines:
            return self.end()
        batch = [self._publication(log, line, ids[n] if ids else None) for n, line in enumerate(lines)]
        if expect is not None and batch[0].headers is not None:
            filtered = f"mbx.{self.space}.*.{log}" if not is_reads(log) else batch[0].subject
            headers = {**batch[0].headers, _EXPECTED: str(expect), f"{_EXPECTED}-Subject": filtered}
            batch[0] = batch[0].replace(headers=headers)
        try:
            return int(self._judged(self._published(batch))["seq"])
        except Moved:
            for message_id in ids:
                self._refuse_taken(message_id)
            raise

    def _published(self, batch: Sequence[Publication]) -> ServerAnswer:
        if len(batch) == 1:
            return self.connection.ask(batch)[0]
        name = os.urandom(16).hex()
        numbered = [
            one.replace(headers={**(one.headers or {}), "Nats-Batch-Id": name, "Nats-Batch-Sequence": str(n + 1)})
            for n, one in enumerate(batch)
        ]
        last = numbered.pop()
        self.connection.tell(numbered)
        return self.connection.ask([last.replace(headers={**(last.headers or {}), "Nats-Batch-Commit": "1"})])[0]

    def _publication(self, log: str, line: bytes, message_id: str | None) -> Publication:
        headers = {_SUM: _sum(line)}
        name = "reads" if is_reads(log) else log
        if message_id is not None:
            name = f"{log}.{_digest(message_id)}"
            headers |= {_EXPECTED: "0", f"{_EXPECTED}-Subject": f"mbx.{self.space}.*.{name}"}
        return Publication(f"mbx.{self.space}.{self.machine}.{name}", line, headers)

    def _refuse_taken(self, message_id: str) -> None:
        subject = f"mbx.{self.space}.*.{MESSAGES}.{_digest(message_id)}"
        answer = self.connection.ask(
            [Publication(f"$JS.API.STREAM.MSG.GET.{self.stream}", json.dumps({"last_by_subj": subject}).encode())]
        )[0]
        found = parsed(answer.data).get("message")
        if isinstance(found, dict):
            raise Taken(message_id, int(found["seq"]))

    def read(self, after: int, most: int) -> list[Ordered]:
        """Return the first records behind a position, in order."""
        state = self.info()["state"]
        last, place = int(state["last_seq"]), max(after + 1, int(state["first_seq"]))
        found: list[Ordered] = []
        while place <= last and len(found) < most:
            upto = min(place + min(WINDOW, most - len(found)), last + 1)
            asked = [
                Publication(f"$JS.API.STREAM.MSG.GET.{self.stream}", b'{"seq":%d}' % seq) for seq in range(place, upto)
            ]
            found += [record for answer in self.connection.ask(asked) if (record := self._record(answer)) is not None]
            place = upto
        return found

    def _record(self, answer: ServerAnswer) -> Ordered | None:
        """Return the record of an answer; None for a sequence without one, and for what is none of ours."""
        told = parsed(answer.data)
        error = told.get("error")
        if isinstance(error, dict) and error.get("err_code") == _NO_MESSAGE:
            return None
        if error is not None:
            self._judged(answer)
        try:
            found = told["message"]
            line = base64.b64decode(found.get("data", ""))
            _, headers = headers_of(base64.b64decode(found.get("hdrs", "")))
            _, _, machine, log, *_ = str(found["subject"]).split(".")
            seq = int(found["seq"])
        except (KeyError, ValueError, TypeError, AttributeError):
            raise BadData("engine's record has another form", "`agent-mailbox engine doctor` looks closer") from None
        if log not in (MESSAGES, ROSTER, CLAIMS, "reads") or not is_machine(machine) or _SUM.lower() not in headers:
            return None  # of a later version, or a stranger's
        named = reads_of(machine) if log == "reads" else log
        return Ordered(seq, named, line, machine, headers[_SUM.lower()] != _sum(line))

    def wait(self, after: int, seconds: float) -> bool:
        """Return whether there is a record behind the position, waiting for one at most that long."""
        deadline = time.monotonic() + seconds
        while True:
            if seconds > 0:
                self.connection.listen(f"mbx.{self.space}.>")
            if self.end() > after:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.connection.heard(min(left, LOOKS))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def open_order(
    url: str, space: str, machine: str, credential: str | None = None, authority: str | None = None, wait: float = 5.0
) -> NatsOrder:
    """Return the way of a machine to a space; connects at the first call."""
    return NatsOrder(NatsConnection(url, credential, authority, wait), space, machine)


def is_old(version: str) -> bool:
    """Return whether a server of that version lacks what is used here."""
    return tuple(int(word) for word in version.split("-")[0].split(".") if word.isdigit()) < LEAST


def _digest(message_id: str) -> str:
    return hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _sum(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]
