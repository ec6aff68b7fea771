"""An engine that answers what none does counts as out of reach: each call says so, and commands go on."""

from __future__ import annotations

import itertools
import json
import socket
import socketserver
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.errors import MailboxError
from agent_mailbox.space import space_checks
from agent_mailbox.space.nats import connection
from agent_mailbox.space.nats.connection import NatsConnection
from agent_mailbox.space.nats.nats_order import NatsOrder
from agent_mailbox.space.nats.server_words import WORDS, ServerBytes
from agent_mailbox.space.order import order as orders
from agent_mailbox.space.order.order import MESSAGES, ROSTER, Moved, NoServer, Unavailable
from tests.helpers import PATIENCE, until

from .nats_server import serving
from .opened_orders import open_nats
from .pair import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.helpers import Program


INFO = b'INFO {"version":"2.99.0","headers":true}\r\n'


class WrongServer(socketserver.ThreadingTCPServer):
    """``answer`` is the data of each answer, and ``head`` its headers, if it has any.

    ``to_record``: that of the answer to a record, if it is another one."""

    daemon_threads = True
    allow_reuse_address = True
    answer, head, to_record = b"{}", b"", b""


class _Talk(socketserver.StreamRequestHandler):
    server: WrongServer
    disable_nagle_algorithm = True  # a second answer would wait for the first one's receipt

    def handle(self) -> None:
        """Speak first, then answer each publication."""
        self.wfile.write(INFO)
        for line in self.rfile:
            verb, *words = line.split()
            if verb == b"PING":
                self.wfile.write(b"PONG\r\n")
            elif verb in (b"PUB", b"HPUB"):
                self.rfile.read(int(words[-1]) + 2)
                if len(words) == (3 if verb == b"PUB" else 4):
                    self._reply(words[1], is_record=words[0].startswith(b"mbx."))

    def _reply(self, to: bytes, *, is_record: bool) -> None:
        head, data = self.server.head, (is_record and self.server.to_record) or self.server.answer
        if not head:
            self.wfile.write(b"MSG %s 0 %d\r\n%s\r\n" % (to, len(data), data))
            return
        for one, said in ((head, data), (b"NATS/1.0 204 EOB\r\n\r\n", b"")):  # and the end of several
            sizes = len(one), len(one) + len(said)
            self.wfile.write(b"HMSG %s 0 %d %d\r\n%s%s\r\n" % (to, *sizes, one, said))


@contextmanager
def answering() -> Iterator[tuple[WrongServer, str]]:
    """The server within, and its URL."""
    with WrongServer(("127.0.0.1", 0), _Talk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server, f"nats://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


CONFIG = {"subjects": ["mbx.s.>"]}
VALUES: list[Any] = [None, 7, 1e400, "é", [7], {"x": 7}, 2**70]
"""What may be in the place of anything."""
FORMS: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: {"error": x},
    lambda x: {"error": {"err_code": x}},
    lambda x: {"state": x},
    lambda x: {"config": x},
    lambda x: {"config": CONFIG, "state": x},
    lambda x: {"config": CONFIG, "state": {"last_seq": x, "messages": x, "subjects": x}},
    lambda x: {"config": CONFIG, "state": {"subjects": {str(x): 1}}},
    lambda x: {"config": {**CONFIG, "num_replicas": x}, "cluster": x},
    lambda x: {"config": {**CONFIG, "num_replicas": x}, "cluster": {"name": "c", "leader": x, "replicas": x}},
    lambda x: {"cluster": {"name": "c", "leader": "x", "replicas": [{"name": x, "current": x, "lag": x}]}},
    lambda x: {"server": x, "data": x},
    lambda x: {"data": {"jetstream": x, "version": x, "now": x}},
    lambda x: {"data": {"jetstream": {"config": {"max_storage": x}, "stats": {"storage": x}}}},
    lambda x: {"seq": x, "message": x},
    lambda x: {"message": {"seq": x, "subject": x, "data": x, "hdrs": x}},
    lambda x: {"message": {"seq": 1, "subject": x, "data": x, "hdrs": x}},
    lambda x: {"message": {"seq": 1, "subject": "mbx.s.a.roster", "data": "eA==", "hdrs": x}},
]
DEEP = b'{"error":' + b"[" * 100_000
CALLS: dict[str, Callable[[NatsOrder], object]] = {
    "make": lambda order: order.make_unless_there(),
    "name": lambda order: order.take_name("me"),
    "joined": lambda order: order.joined_machines(),
    "end": lambda order: order.last_position(),
    "holes": lambda order: order.count_holes(),
    "append": lambda order: order.append_lines(ROSTER, [b"x"], expect=0),
    "send": lambda order: order.append_lines(MESSAGES, [b"x"], ids=["m"]),
    "read": lambda order: order.read_after(0, 9),
    "read on": lambda order: order.read_after(7, 100),
    "log": lambda order: [*itertools.islice(order.of_log(ROSTER), 9)],
    "wait": lambda order: order.wait_for_record(0, 0),
    "remove": lambda order: order.remove_records([1]),
    "ship": lambda order: order.ship_file("d", b"x"),
    "take back": lambda order: order.take_back("d"),
    "fetch": lambda order: [*itertools.islice(order.fetch_copies("d"), 9)],
    "copies": lambda order: [*space_checks.of_copies(order.stream_info())],
    "servers": lambda order: [*space_checks.of_servers(order.connection, order.stream_info())],
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_answer_of_a_nats_server_is_that_of_none(call: str) -> None:
    """Whatever is in any place of an answer, a call returns, or raises an error that a person reads."""
    with answering() as (server, url):
        order = open_nats(url, "s", "a", wait=0.2)
        for answer in (DEEP, *(json.dumps(form(value)).encode() for form in FORMS for value in VALUES)):
            server.answer = answer
            try:
                CALLS[call](order)
            except MailboxError:
                pass
            except Exception as error:  # whatever it is, a person would read a traceback
                raise AssertionError(answer[:200]) from error
        order.close()


def test_what_a_nats_server_reads_out_of_order_is_no_answer() -> None:
    """A record ahead of where one reads would have a machine read for ever; one far behind, take all memory."""
    record = {"message": {"seq": 3, "subject": "mbx.s.a.roster", "data": "eA==", "hdrs": ""}}
    with answering() as (server, url):
        order = open_nats(url, "s", "a", wait=PATIENCE)
        server.answer = json.dumps(record).encode()
        for ask in (lambda: order.read_after(5, 1), lambda: [*order.of_log(ROSTER)]):
            with pytest.raises(Unavailable, match="another form"):
                ask()
        head = b"NATS/1.0\r\nNats-Sequence: %d\r\nNats-Subject: mbx.s.a.roster\r\n\r\n"
        server.head = head % 4
        with pytest.raises(Unavailable, match="another form"):
            order._read_batch(5, 90, 30)
        server.head = head % (1 << 60)
        assert order._read_batch(5, 90, 30) == {}
        order.close()
    assert connection.is_old("²")


@pytest.mark.parametrize("scheme", ["tls", "TLS"])
def test_an_address_with_tls_is_never_spoken_to_without(scheme: str) -> None:
    """A server without TLS gets nothing of a machine whose address asks for it, however the scheme is spelt."""
    with answering() as (_, url), pytest.raises(NoServer, match="the server has no TLS"):
        NatsConnection(f"{scheme}{url.removeprefix('nats')}", None, None).is_open()


def test_a_leader_that_counts_what_it_could_not_keep_has_not_answered() -> None:
    """It says that the mail's id is taken, and has no record of that. A decision beside it was overtaken, as ever."""
    with answering() as (server, url):
        order = open_nats(url, "s", "a", wait=PATIENCE)
        server.answer = b'{"error":{"err_code":10071,"description":"wrong last sequence: 7"}}'
        with pytest.raises(Unavailable, match="engine did not answer: log has moved: wrong last sequence: 7"):
            order.append_lines(MESSAGES, [b"x"], ids=["m"])
        with pytest.raises(Moved, match="log has moved: wrong last sequence: 7"):
            order.append_lines(ROSTER, [b"x"], expect=0)
        order.close()


def test_a_name_that_a_leader_could_not_keep_is_no_other_mailbox_s() -> None:
    """It says that the name is taken, and has no record of that: it has not answered whose the name is."""
    with answering() as (server, url):
        order = open_nats(url, "s", "a", wait=PATIENCE)
        server.to_record = b'{"error":{"err_code":10071,"description":"wrong last sequence: 7"}}'
        server.answer = b'{"error":{"err_code":10037,"description":"no message found"}}'
        with pytest.raises(Unavailable, match="engine refuses: no message found"):
            order.take_name("me")
        order.close()


def test_commands_go_on_beside_an_engine_that_answers_wrongly(
    program: Program, credential: str, tmp_path: Path
) -> None:
    """``send`` queues, ``status`` says what is wrong, and ``leave`` leaves."""
    with serving(tmp_path / "server") as url:
        pair = Pair(program, url, credential)
        pair.join("north")
        pair.ok("north", "roster", "register", "--session-id", "ann")
    with answering() as (server, wrong):
        path = pair.record("north") / "space"
        path.write_text(path.read_text().replace(url, wrong))
        server.answer = json.dumps({"config": {"subjects": [f"mbx.{pair.space}.>"]}, "state": 7}).encode()
        why = "engine's answer has another form"
        assert why in pair.ok("north", "engine", "status")["trouble"]
        assert why in pair.ok("north", "send", "--from", "ann", "--to", "all", "--body", "x")["why"]
        with pair.serving("north") as replicator:
            assert replicator.stderr is not None
            assert why.encode() in replicator.stderr.readline()
            until(lambda: why in program.run("engine", "doctor", "--dir", program.scratch / "north").stdout)
            assert replicator.poll() is None
        assert len(pair.ok("north", "engine", "leave")["kept"]) == 1


def test_a_server_that_speaks_and_does_not_answer_is_left_and_one_that_answers_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece of an answer begins the count of words again."""
    monkeypatch.setattr(orders, "QUIET", 0.001)
    ours, theirs = socket.socketpair()
    heard = ServerBytes(ours, lambda: theirs.sendall(b"PONG\r\n"))
    with orders.Hurry(60), ours, theirs:
        end = time.monotonic() + 60
        for _ in range(2):
            assert [heard.read_line(end) for _ in range(WORDS)] == [b"PONG"] * WORDS
            theirs.sendall(b"piece")
            assert heard.read_bytes(5, end) == b"piece"
        assert [heard.read_line(end) for _ in range(WORDS)] == [b"PONG"] * WORDS
        with pytest.raises(TimeoutError, match="does not answer"):
            heard.read_line(end)


@pytest.mark.parametrize("is_hurried", [True, False])
def test_a_server_that_closes_is_told_at_once(is_hurried: bool) -> None:
    """It would take the rest of the time, and ask the closed socket all the while."""
    ours, theirs = socket.socketpair()
    heard = ServerBytes(ours, lambda: None)
    theirs.sendall(b"half a li")
    theirs.close()
    with orders.Hurry(60) if is_hurried else nullcontext(), ours:
        with pytest.raises(OSError, match="closed the connection"):
            heard.read_line(time.monotonic() + 60)
        with pytest.raises(OSError, match="closed the connection"):
            heard.read_bytes(100, time.monotonic() + 60)
