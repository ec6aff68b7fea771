"""A real PostgreSQL server for tests: a cluster of its own in a temporary directory, on a free port of loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import PATIENCE, until
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OWNER, PASSWORD = "owner", "a-password-of-the-tests"
pytest.importorskip("psycopg2", reason="no psycopg2 here: the extra [postgresql] brings it")


NAMED, OLD = "AGENT_MAILBOX_POSTGRES", "AGENT_MAILBOX_OLD_POSTGRES"
"""Variables with the directory of another server's programs: of one to test with, and of one before version 14."""


def programs() -> Path:
    """The directory of the server's programs, or a skip that says what is missing."""
    found = shutil.which("initdb")
    places = [Path(os.environ[NAMED])] if NAMED in os.environ else []
    places += [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists():
            return place
    pytest.skip("no PostgreSQL server here: Debian's package is postgresql")


class PostgresServer:
    """A server that runs. PostgreSQL refuses root, so it is an unprivileged user's."""

    def __init__(self, home: Path, place: Path) -> None:
        self.home = home
        self.place = place
        self.port = free_port()
        self.url = f"postgresql://{OWNER}@127.0.0.1:{self.port}/postgres"
        self.child: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make the cluster, whose owner has a password."""
        word = self.home / "password"
        word.write_text(PASSWORD)
        word.chmod(0o644)
        kind = ("-U", OWNER, "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C")
        done = self._start("initdb", *kind, "--pwfile", word, "-D", self.home / "data")
        assert done.wait(PATIENCE) == 0, (self.home / "log").read_text()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The server answers within."""
        settings = ("unix_socket_directories=", "listen_addresses=127.0.0.1", "shared_buffers=16MB")
        settings += ("dynamic_shared_memory_type=mmap",)  # in the directory that goes, whoever is killed
        words = [word for setting in settings for word in ("-c", setting)]
        self.child = self._start("postgres", "-D", self.home / "data", "-p", self.port, *words)
        try:
            until(self.answers)
            yield
        finally:
            self._kill()

    def _kill(self) -> None:
        """Kill all of the server at once: nothing that was acknowledged depends on an orderly end."""
        assert self.child is not None
        pid = self.child.pid
        os.kill(pid, signal.SIGSTOP)  # else it forks or reaps while its children are read, and some are not listed
        until(lambda: _state(pid) in "TZ")
        _, *children = self.pids()
        for one in (*children, pid):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.child.wait(PATIENCE)
        until(lambda: all(_state(one) in "ZX" for one in children))
        lines = (self.home / "data/postmaster.pid").read_text().splitlines()
        if ipcrm := shutil.which("ipcrm"):  # nobody else gives back what it shared
            subprocess.run([ipcrm, "-m", lines[6].split()[1]], check=True)

    def pids(self) -> list[int]:
        """The process that takes connections, and those that it started."""
        assert self.child is not None
        pid = self.child.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    @contextmanager
    def encrypted(self, key: bytes, certificate: bytes) -> Iterator[None]:
        """The server offers TLS within."""
        for name, content in (("server.key", key), ("server.crt", certificate)):
            path = self.home / name
            path.touch(0o600)
            path.write_bytes(content)
            if os.getuid() == 0:
                os.chown(path, self.home.stat().st_uid, -1)
            self.ask(f"ALTER SYSTEM SET ssl_{'key' if name.endswith('key') else 'cert'}_file = '{path}'")
        self._turn("ssl", "on")
        try:
            yield
        finally:
            self._turn("ssl", "off")

    def _turn(self, setting: str, value: str) -> None:
        self.ask(f"ALTER SYSTEM SET {setting} = {value}", "SELECT pg_reload_conf()")
        until(lambda: self.found(f"SHOW {setting}") == value)

    @contextmanager
    def small_disk(self) -> Iterator[Callable[[str], None]]:
        """A tablespace ``small`` of 1 MiB; what comes makes it as large as one says. A skip for who may not mount."""
        place = self.home / "small"
        place.mkdir()
        kind = ("mount", "-t", "tmpfs", "-o", f"size=1m,mode=0700,uid={self.home.stat().st_uid}", "tmpfs")
        if os.getuid() or subprocess.run([*kind, place], capture_output=True).returncode:
            pytest.skip("no small disk here: only root may mount one")
        try:
            self.ask(f"CREATE TABLESPACE small LOCATION '{place}'")
            yield lambda size: subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True) and None
        finally:
            subprocess.run(["umount", "-l", place], check=True)

    def _start(self, name: str, *words: object) -> subprocess.Popen[bytes]:
        with (self.home / "log").open("ab") as log:
            call = [self.place / name, *map(str, words)]
            env = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
            return subprocess.Popen(call, stdout=log, stderr=log, cwd="/", env=env, **_as_nobody())

    def answers(self) -> bool:
        """Does the server answer? It must not have ended."""
        assert self.child is not None
        assert self.child.poll() is None, (self.home / "log").read_text()
        try:
            self.ask("SELECT 1")
        except Exception:
            return False
        return True

    def ask(self, *queries: str) -> None:
        """Run statements as the owner of everything."""
        with self._connected() as cursor:
            for query in queries:
                cursor.execute(query)

    @contextmanager
    def asking(self, query: str) -> Iterator[None]:
        """A transaction of the owner's is open, with that question."""
        with self._connected(is_open=True) as cursor:
            cursor.execute(query)
            yield

    def found(self, query: str) -> object:
        """The first word of the answer to a query of the owner's."""
        with self._connected() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
        return row and row[0]

    @contextmanager
    def _connected(self, *, is_open: bool = False) -> Iterator[Any]:
        import psycopg2

        with closing(psycopg2.connect(self.url, password=PASSWORD)) as connection:
            connection.autocommit = not is_open
            yield connection.cursor()
            if is_open:
                connection.commit()


@contextmanager
def made(place: Path | None = None) -> Iterator[PostgresServer]:
    """A cluster that does not run yet, of the programs at a place."""
    place = place or programs()
    home = Path(tempfile.mkdtemp(prefix="mailbox-pg-"))
    try:
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
        server = PostgresServer(home, place)
        server.make()
        yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


def credential(path: Path, user: str = OWNER, password: str = PASSWORD) -> str:
    path.touch(0o600)
    path.write_text(f"*:*:*:{user}:{password}\n")
    return str(path)


def _state(pid: int) -> str:
    """The kernel's letter for a process's state; X if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _as_nobody() -> dict[str, Any]:
    if os.getuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
