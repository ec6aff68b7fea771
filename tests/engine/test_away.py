"""An engine that says nothing costs no command more than a moment: mail is queued, once, and one's own is read."""

from __future__ import annotations

import _socket
import errno
import gc
import os
import socket
import threading
import time
from contextlib import closing, contextmanager
from itertools import chain, repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.space.relay.relayed_order import AWAY_FILE
from agent_mailbox.space.servers import first_server
from agent_mailbox.space.servers.first_server import connect_first
from agent_mailbox.store.locks.lock import FileLock
from tests.helpers import PATIENCE, ROSTER, until

from .cut_links import stopped
from .pair import Pair, is_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SEND = "send", "--from", "ann", "--to", "ben", "--body"


def test_who_finds_no_server_is_spared_the_libraries(dark: tuple[Pair, int]) -> None:
    """A send whose servers are dark imports nothing that only a connection needs: mail is queued soon on a busy
    machine, too."""
    pair, pid = dark
    with stopped(pid):
        python = "-X", "importtime", "-m", "agent_mailbox"
        found = pair.program.run(*SEND, "x", "--json", "--dir", pair.program.scratch / "north", python=python)
    assert found.json["queued"]
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "agent_mailbox.space.nats.nats_order" in imported
    assert imported.isdisjoint(("ssl", "hashlib", "socket", "selectors", "urllib.parse", "base64"))


def silent() -> socket.socket:
    """A server that takes connections, and says nothing."""
    return socket.create_server(("127.0.0.1", 0))


def test_six_who_send_at_once_to_a_silent_engine_are_queued(dark: tuple[Pair, int]) -> None:
    """Each is told that its mail waits; later each is in the order once. No replicator runs while it is silent."""
    pair, pid = dark
    with stopped(pid):
        senders = [
            pair.program.start(*SEND, f"{n}", "--json", "--dir", pair.program.scratch / "north") for n in range(6)
        ]
        said = [sender.communicate(timeout=PATIENCE) for sender in senders]
        assert [sender.returncode for sender in senders] == [0] * 6, said
        assert all(b'"queued":true' in out for out, _ in said)
        pair.send("north", "--from", "kim", "--to", "ann", "--body", "a local word")
        assert pair.ok("north", "check", "--session", "ann")["messages"] == []
        assert pair.seen("north", "zoe") == []  # her first look registers her, here first
        (word,) = pair.program.user_state.glob(f"**/{AWAY_FILE}")
    os.utime(word, (0, 0))  # which was long ago
    with pair.serving("south"), pair.serving("north"):
        until(lambda: pair.ok("north", "engine", "status")["queued"] == 0)
        until(lambda: b'"zoe"' in (pair.program.scratch / "south" / ROSTER).read_bytes())
    assert sorted(pair.seen("south", "ben")) == [f"{n}" for n in range(6)]


def test_the_replicator_says_at_once_that_the_engine_is_away(dark: tuple[Pair, int]) -> None:
    """Once it was told, a command asks nobody: it waits for nothing, and role mail stays."""
    pair, pid = dark
    pair.send("south", "--from", "ben", "--to", "role:dev", "--body", "for a role")
    with pair.serving("north") as replicator:
        assert replicator.stderr is not None
        until(lambda: b"for a role" in b"".join(pair.lines("north")))
        with stopped(pid):
            assert b"engine is out of reach" in replicator.stderr.readline()
            assert "the replicator asks again within seconds; " in pair.ok("north", *SEND, "late")["why"]
            assert pair.seen("north", "ann") == []
            assert not [*pair.program.user_state.glob(f"**/{AWAY_FILE}")], "which tells of a command that waited"
        assert b"engine is back" in replicator.stderr.readline()
        until(lambda: pair.ok("north", "engine", "status")["queued"] == 0)
        assert pair.seen("north", "ann") == ["for a role"]
    assert b"late" in b"".join(pair.ordered())


def test_a_replicator_goes_on_where_the_space_is_made_again(dark: tuple[Pair, int]) -> None:
    """A stream that is gone ends no replicator: it says so, waits, and goes on once `engine join` made the space."""
    pair, _ = dark
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "before")
    with pair.serving("south") as replicator:
        assert replicator.stderr is not None
        pair.remove_stream()
        until(lambda: b"engine has no such space" in replicator.stderr.readline())
        assert "no such space" in pair.ok("north", *SEND, "meanwhile")["why"]
        until(lambda: "`agent-mailbox engine join" in pair.ok("south", *SEND, "by the relay")["why"])
        pair.ok("north", "engine", "join")
        until(lambda: b"engine is back" in replicator.stderr.readline())
        until(lambda: b"by the relay" in b"".join(pair.lines("south")))
    assert pair.seen("south", "ben")[:2] == ["before", "meanwhile"]


def test_mail_is_queued_while_another_command_keeps_the_lock(dark: tuple[Pair, int]) -> None:
    """A command that was stopped, or one that reads all records, holds up no send, and nobody's own mail.

    The replicator sends what was queued, though nothing else happens."""
    pair, _ = dark
    pair.send("north", "--from", "ben", "--to", "ann", "--body", "mine")
    pair.send("north", "--from", "ben", "--to", "role:dev", "--body", "for a role")
    (lock,) = [path for path in pair.program.user_state.glob("**/engine/lock") if is_of(path, "north")]
    with kept(lock):
        assert pair.ok("north", *SEND, "waits")["why"].startswith(
            "this machine's turn at the engine did not come yet: "
        )
        assert pair.seen("north", "ann") == ["mine"]
    assert pair.seen("north", "ann") == ["for a role"]
    assert b"waits" in b"".join(pair.ordered())
    with pair.serving("north"):
        with kept(lock):
            assert pair.ok("north", *SEND, "once more")["queued"]
        until(lambda: pair.ok("north", "engine", "status")["queued"] == 0)


@contextmanager
def kept(turn: Path) -> Iterator[None]:
    """Somebody has this machine's turn, and promised an end that has passed."""
    with FileLock(str(turn)):
        os.utime(turn, (0, 0))
        yield


def speak(server: socket.socket) -> None:
    """Greet the next client, as a server does."""
    client, _ = server.accept()
    client.sendall(b"INFO {}")
    client.close()


def test_a_server_that_was_long_in_reach_has_its_time_to_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is a sign of life, from which on it is waited for as long again."""
    moments = chain((0, 0), repeat(PATIENCE))  # this begins, asks for a connection, has one
    monkeypatch.setattr(first_server, "system", SimpleNamespace(monotonic=lambda: next(moments), urandom=os.urandom))
    with silent() as there:
        threading.Thread(target=speak, args=(there,), daemon=True).start()
        connect_first([there.getsockname()], PATIENCE)[1].close()


def test_a_server_of_this_machine_is_reached_by_its_socket(tmp_path: Path) -> None:
    """Its place is a path, and what may stand beside it is no port."""
    place = str(tmp_path / "socket"), 5432
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(place[0])
        there.listen()
        threading.Thread(target=speak, args=(there,), daemon=True).start()
        found, connection = connect_first([place], PATIENCE)
        connection.close()
    assert found == place


def test_a_server_that_takes_no_connection_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says nothing for two minutes where a queue is full. Whoever gets the connection waits for all that
    the server says."""
    monkeypatch.setattr(first_server, "system", SimpleNamespace(monotonic=time.monotonic, urandom=bytes))
    taken = list[socket.socket]()
    with socket.socket() as full, silent() as there:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        places = [there.getsockname(), full.getsockname()]  # the last is tried first
        with closing(socket.create_connection(places[1])):
            threading.Thread(target=speak, args=(there,), daemon=True).start()
            threading.Thread(target=lambda: taken.append(connect_first(places, PATIENCE)[1]), daemon=True).start()
            until(lambda: taken, PATIENCE / 3)
    with closing(taken[0]) as found:
        assert (found.getpeername(), found.getblocking()) == (places[0], True)


def test_a_kernel_without_ipv6_reaches_a_host_by_its_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of some such machines name ``localhost`` as ``::1``, too. A host with no other address is refused."""

    def socket_of(family: int) -> _socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return _socket.socket(family)

    with silent() as there:
        six, four = (
            (family, 0, 0, "", place)
            for family, place in ((socket.AF_INET6, ("::1", 1, 0, 0)), (socket.AF_INET, there.getsockname()))
        )
        known = {b"both": [six, four], b"six": [six]}
        without = {**vars(_socket), "socket": socket_of, "getaddrinfo": lambda host, *_: known[host]}
        monkeypatch.setattr(first_server, "socket", SimpleNamespace(**without))
        threading.Thread(target=speak, args=(there,), daemon=True).start()
        place, found = connect_first([("both", 0)], PATIENCE)
        assert (place, found.recv(4)) == (("both", 0), b"INFO")
        found.close()
        with pytest.raises(OSError, match="not supported"):
            connect_first([("six", 0)], PATIENCE)


@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_of_several_servers_the_first_that_speaks_is_taken() -> None:
    """A dark one and one that refuses cost no time-out; all dark is an error, and so is one that hangs up.

    The error of a host that has no address names that. Each connection but that one is closed."""
    gone = silent()
    refusing = gone.getsockname()
    gone.close()
    with silent() as dark, silent() as there:
        threading.Thread(target=speak, args=(there,), daemon=True).start()
        places = [dark.getsockname(), refusing, there.getsockname()]
        place, found = connect_first(places, PATIENCE)
        assert (place, found.recv(7)) == (there.getsockname(), b"INFO {}")
        found.close()
        with pytest.raises(TimeoutError, match="no answer in time"):
            connect_first([dark.getsockname()], 0.01)
    with pytest.raises(ConnectionRefusedError):
        connect_first([refusing], PATIENCE)
    with pytest.raises(socket.gaierror):
        connect_first([("fe80::1%none", 4222)], PATIENCE)
    with silent() as hangs:
        threading.Thread(target=lambda: hangs.accept()[0].close(), daemon=True).start()
        with pytest.raises(ConnectionResetError):
            connect_first([hangs.getsockname()], PATIENCE)
    gc.collect()  # whatever an error holds warns, unless it is closed
