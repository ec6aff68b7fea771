"""A connection to a PostgreSQL server, by ``psycopg2``: its settings, time limits, and its errors in our words.

Belongs here: connecting and asking. Each row of an answer has the columns that it must have, or the answer counts for
nothing. Any trouble closes the connection and is ``Unavailable``; the next question connects again.
"""

from __future__ import annotations

import _socket as socket  # as in ``first_server``
import os
import select

from ...errors import MailboxError, Malformed, Refused, Unavailable
from ..order import order as orders
from ..order.order import START, HeldUp, NoServer, NoSpace, of_another_form
from ..servers.first_server import connect_first, read_credential, split_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import Event
    from typing import Any

    from psycopg2.extensions import connection as Connection

    from ..servers.first_server import Place

PORT = 5432
TEXT, NUMBER, BYTES, NULL = (str,), (int,), (bytes,), (type(None),)
"""Kinds of a column."""
LEAST = 140000
"""The first version of the server that is known to do what is used here, as it numbers itself: 14."""
_CREDENTIAL = ("password", "authentication", "pg_hba.conf", "role ", "client certificate")
"""Words of the server's refusals that speak of who connects; it gives them no code that a client sees.

A server whose own certificate is another's is out of reach: mail waits for the right one."""
_NOBODY = ("refused", "not known", "translate host name", "resolve host", "does not support SSL", "certificate verify")
"""Words of libpq for an address at which no such server is, as far as it speaks English."""
_UNREAD = ("invalid ", "definition of service", "service file", "syntax error", "nested service", "unrecognized")
"""The beginnings of libpq's words for an address that it cannot read."""
_SETTINGS = """SELECT
    set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, false),
    set_config('statement_timeout', %s, false), set_config('client_min_messages', 'error', false)"""
"""An acknowledged record is synced, whatever the role's default."""
_ASK_FOR_TLS = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
"""The message ``SSLRequest`` of PostgreSQL's protocol: a server answers it before it asks who connects."""
HELD, HELD_SOON = 1.5, 0.1
"""Seconds until who waits for a lock hears that, in no hurry and in one: an append keeps it for a few milliseconds."""


class PostgresConnection:
    """A way to the database that ``url`` names, as libpq reads it (TLS and services, too).

    ``credential`` is libpq's password file, ``authority`` a file with the CA certificate that signed the server's."""

    def __init__(self, url: str, credential: str | None, authority: str | None, patience: float = 5.0) -> None:
        self.url = url
        self.patience = patience
        self._credential = credential
        self._authority = authority
        self._connection: Connection | None = None
        self._heard: set[str] = set()
        self._held = 0.0

    def query_rows(self, query: str, words: Sequence[object] | None = None) -> list[Any]:
        """Return the rows that answer a query; empty for one that has none. Raises ``Unavailable`` or ``Refused``.

        Without ``words`` it may be several statements, all or none. If a connection of before may not, a login of now
        is tried: its role may have gone, and been made again."""
        is_new = self._connection is None
        try:
            return self._ask_in_time(query, words)
        except Refused:
            self.close()
            if is_new:
                raise
        return self._ask_in_time(query, words)

    def _ask_in_time(self, query: str, words: Sequence[object] | None) -> list[Any]:
        connection = self._ensure_connected()
        from threading import Event, Thread  # like the library, for who has found a server

        import psycopg2

        over = Event()
        Thread(target=_cut_in_time, args=(connection, over, self.patience, orders.seconds_left()), daemon=True).start()
        try:
            held = HELD_SOON if orders.is_hurried() else HELD
            if held != self._held:
                _fetch_rows(connection, "SELECT set_config('lock_timeout', %s, false)", (f"{held * 1000:.0f}",))
                self._held = held
            return _fetch_rows(connection, query, words)
        except psycopg2.Error as error:
            if connection.closed:
                self.close()
            raise self._complaint_error(error) from None
        finally:
            over.set()

    def listen_on(self, channel: str) -> None:
        """Hear of notifications on a channel from now on, until the connection closes; see ``has_heard``."""
        self._ensure_connected()
        if channel not in self._heard:
            self.query_rows(f'LISTEN "{channel}"')
            self._heard.add(channel)

    def has_heard(self, seconds: float) -> bool:
        import psycopg2

        connection = self._ensure_connected()
        try:
            connection.poll()
            if not connection.notifies:
                waiting = select.poll()
                waiting.register(connection, select.POLLIN)
                waiting.poll(seconds * 1000)
                connection.poll()
            has_come = bool(connection.notifies)
            connection.notifies.clear()
            return has_come
        except psycopg2.Error as error:
            self.close()
            raise self._complaint_error(error) from None

    @property
    def is_private(self) -> bool:
        """Return whether nobody between can read: the connection is encrypted, or leaves this machine nowhere."""
        found = self._ensure_connected()
        ours = socket.socket(fileno=os.dup(found.fileno()))
        peer = "" if ours.family == socket.AF_UNIX else ours.getpeername()[0]
        ours.close()
        return found.info.ssl_in_use or peer.startswith("127.") or peer in ("", "::1")

    def scrambled_password(self, password: str, role: str) -> str:
        """Return a role's password as the server keeps it: so no log of the server has it."""
        connection = self._ensure_connected()
        from psycopg2.extensions import encrypt_password

        return str(encrypt_password(password, role, connection, "scram-sha-256"))

    def close(self) -> None:
        self._heard.clear()
        self._held = 0.0
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ensure_connected(self) -> Connection:
        if self._connection is not None and (self._heard or not _has_ended(self._connection)):
            return self._connection  # who listens hears of the end, and looks for losses
        self.close()
        try:
            import psycopg2
            from psycopg2.extensions import parse_dsn
        except ImportError:
            hint = "`agent-mailbox engine join` tells how to add it"
            raise Refused("package for PostgreSQL is missing: psycopg2", hint, code="no_extra") from None
        try:
            self._refuse_silent(_places_of(parse_dsn(self.url)))
            found: Connection = psycopg2.connect(self.url, **self._connection_options())
            found.autocommit = True
            if (version := found.info.server_version) < LEAST:
                found.close()
                said = f"engine is too old: PostgreSQL {version // 10000}"
                raise Refused(said, f"run PostgreSQL {LEAST // 10000} or later")
            _fetch_rows(found, _SETTINGS, (f"{self.patience * 1000:.0f}",))
        except psycopg2.ProgrammingError as error:
            raise Malformed(f"engine's address is no PostgreSQL URL: {error}", "write postgresql://HOST/DB") from None
        except psycopg2.Error as error:
            raise self._complaint_error(error) from None
        self._connection = found
        return found

    def _refuse_silent(self, places: Sequence[Place]) -> None:
        """Raise ``Unavailable`` for a caller in a hurry if the servers say nothing."""
        if orders.is_hurried() and _is_silent(places, orders.SILENT):
            raise self._complaint_error(TimeoutError("no answer in time"))

    def _connection_options(self) -> dict[str, Any]:
        seconds = max(2, round(self.patience))
        options: dict[str, Any] = {
            "application_name": "agent-mailbox",
            "client_encoding": "UTF8",
            "connect_timeout": seconds,
            "tcp_user_timeout": seconds * 1000,
            "keepalives_idle": seconds,
            "target_session_attrs": "read-write",  # of several hosts, the one that is no copy
        }
        if ":" in split_address(self.url)[1]:
            raise Refused("engine's address has a password", "write it into a password file: --credential FILE")
        if self._credential is not None:
            options["passfile"] = _check_path(self._credential)
        if self._authority is not None:
            options |= {"sslrootcert": self._authority, "sslmode": "verify-full"}
        return options

    def _complaint_error(self, error: Exception) -> MailboxError:
        """Return the error in our words; the server's own may be translated. It leaves out the place in a function."""
        first = getattr(getattr(error, "diag", None), "message_primary", None)
        state, said = getattr(error, "pgcode", None) or "", " ".join((first or str(error)).split())[:300]
        if state in ("3F000", "42P01", "42883"):
            return NoSpace("engine has no such space", NoSpace.mend)
        if state == "55P03":
            return HeldUp("engine was held up by another transaction, which is over", "try again")
        if state == "42501" or (not state and any(word in said for word in _CREDENTIAL)):
            hint = "`--credential FILE` of `engine join` names one; the database's owner makes it by `engine config`"
            return Refused(f"engine refuses the credential: {said}", hint)
        if not state and "database" in said and "exist" in said:
            return Refused(f"engine has no such database: {said}", "name another in the URL, or make it")
        if state in ("53100", "53200", "54000"):
            return Unavailable(f"engine is full: {said}", "make room on the server; nothing was lost")
        _, _, where, more = split_address(self.url)
        if not state and said.startswith(_UNREAD):
            hint = "correct the URL, or the service that it names: `agent-mailbox engine join URL --space NAME`"
            return NoServer(f"engine's address is none to PostgreSQL: {where}{more}: {said}", hint)
        is_known = not state and any(word in said for word in _NOBODY)
        kind = NoServer if is_known else Unavailable
        return kind(f"engine is out of reach: {where}{more.partition('?')[0]}: {said}", START)


def rows_of(rows: Sequence[Any], *kinds: tuple[type, ...]) -> list[tuple[Any, ...]]:
    """Return the rows, each with columns of these kinds; raise ``Unavailable`` for others."""
    for row in rows:
        if len(row) != len(kinds) or not all(map(isinstance, row, kinds)):
            raise of_another_form()
    return [*rows]


def row_of(rows: Sequence[Any], *kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """Return the only row; raise ``Unavailable`` if there is another number of them, or it has other columns."""
    if len(rows) != 1:
        raise of_another_form()
    return rows_of(rows, *kinds)[0]


def value_of(rows: Sequence[Any], kind: tuple[type, ...]) -> Any:
    """Return the only column of the only row; raises as ``row_of`` does."""
    return row_of(rows, kind)[0]


def _fetch_rows(connection: Connection, query: str, words: Sequence[object] | None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, words)
        rows = cursor.fetchall() if cursor.description else []
    return [tuple(bytes(one) if isinstance(one, memoryview) else one for one in row) for row in rows]


def _has_ended(connection: Connection) -> bool:
    import psycopg2

    try:
        connection.poll()  # what it said last
        connection.poll()  # that it ended
    except psycopg2.Error:
        return True
    return bool(connection.closed)


def _check_path(path: str) -> str:
    text = read_credential(path)
    if text.startswith("\ufeff"):  # libpq reads it itself, and would take that for a part of the host
        raise Refused(
            f"credential begins with a byte order mark: {path}", f"run `sed -i '1s/^\\xef\\xbb\\xbf//' {path}`"
        )
    if not any(line.count(":") >= 4 for line in text.splitlines()):
        raise Refused(f"credential has no known form: {path}", "write HOST:PORT:DATABASE:USER:PASSWORD, each may be *")
    return path


def _places_of(words: Mapping[str, object]) -> list[Place]:
    """Return where the servers are, by the words of libpq that have been read."""
    hosts = str(words.get("hostaddr") or words.get("host") or "").split(",")
    ports = [port or str(PORT) for port in str(words.get("port") or "").split(",")]
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    return [
        (f"{host}/.s.PGSQL.{port}" if host.startswith("/") else host, int(port))
        for host, port in zip(hosts, ports, strict=True)
        if host and port.isdecimal()
    ]


def _is_silent(places: Sequence[Place], seconds: float) -> bool:
    """Return whether no server gives a sign for so long, once it is connected.

    The library waits two seconds for one that is dark, and for a query without end. One that refuses speaks. So does
    one of which only libpq knows where it is."""
    try:
        if places:
            connect_first(places, seconds, _ASK_FOR_TLS)[1].close()
    except TimeoutError:
        return True
    except OSError:
        pass
    return False


def _cut_in_time(connection: Connection, over: Event, patience: float, left: float | None) -> None:
    """End a connection on which nothing is over in time, from another thread: a server that stopped does not even
    cancel. ``left``: the seconds that a caller in a hurry waits while the server says a word when asked; None: it is in
    none."""
    if left is None:
        over.wait(patience + 1)
    elif not over.wait(orders.QUIET) and not _is_silent(_places_of(connection.info.dsn_parameters), orders.WORD):
        over.wait(left - orders.QUIET)
    if over.is_set():
        return
    try:
        ours = socket.socket(fileno=os.dup(connection.fileno()))
        ours.shutdown(socket.SHUT_RDWR)
        ours.close()
    except Exception:  # it is closed already
        return
