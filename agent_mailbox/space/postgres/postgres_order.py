"""The order of a space, and its files, in the tables of a PostgreSQL database.

Belongs here: their text, the mapping of both to them, and who may do what with them. One space is one schema, so one
database may hold several. ``log`` has the records, ``space`` one row: the version of these tables and last position. An
append locks that row until it commits, so positions become visible in their order. A role that may only read cannot
lock it. All writing goes through functions that run as the owner. Once ``speaker`` names any role, each may append only
in the name of a machine that ``speaker`` gives it. So a record's machine is proven. Only the owner removes anything.
A file has a row for each part, and the machine that shipped it. The owner makes the machines' roles, each with a
password file, which is kept if it is there.
"""

from __future__ import annotations

import time

from ...core.proofs import is_machine
from ...errors import Malformed, NotFound, Refused
from ...store.files import system
from ...store.files.small_files import read_file, remove_file
from ..order import order as orders
from ..order.order import HeldUp, Moved, Ordered, Taken
from ..servers.first_server import read_or_make_password, split_address
from .postgres_connection import BYTES, NULL, NUMBER, TEXT, PostgresConnection, row_of, rows_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

LOOKS = 5.0
"""Seconds after which a waiting machine looks, whatever it heard."""
_HOLDERS = """SELECT usename::text, a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.relation = %s::text::regclass AND l.mode <> 'AccessShareLock' AND l.granted
    AND NOT EXISTS (SELECT FROM pg_locks waited WHERE waited.pid = l.pid AND NOT waited.granted)"""
"""It gives who keeps the row that every append locks, and waits for nobody."""
VERSION = 1
"""The version of the tables; a later one's are left alone."""
LONGEST_WORD = 64 << 10
"""Bytes of what a machine tells of itself."""
_MAKE = """\
CREATE SCHEMA "{schema}";
CREATE TABLE "{schema}".space (version integer NOT NULL, last bigint NOT NULL);
INSERT INTO "{schema}".space VALUES ({version}, 0);
CREATE TABLE "{schema}".log (pos bigint PRIMARY KEY, log text NOT NULL, id text, machine text NOT NULL,
    line bytea NOT NULL, sum text NOT NULL, UNIQUE (log, id));
CREATE INDEX log_of ON "{schema}".log (log, pos);
CREATE TABLE "{schema}".machine (name text PRIMARY KEY, owner text NOT NULL, joined bigint NOT NULL,
    word bytea, told timestamptz);
CREATE TABLE "{schema}".speaker (role name NOT NULL, machine text NOT NULL, PRIMARY KEY (role, machine));

CREATE TABLE "{schema}".file (machine text NOT NULL, digest text NOT NULL, part integer NOT NULL,
    parts integer NOT NULL, data bytea NOT NULL, PRIMARY KEY (digest, machine, part));
ALTER TABLE "{schema}".file ALTER data SET STORAGE EXTERNAL;

CREATE FUNCTION "{schema}".check_speaker(who text) RETURNS void LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM "{schema}".speaker) AND NOT EXISTS
        (SELECT FROM "{schema}".speaker WHERE role = session_user AND machine = who) THEN
        RAISE insufficient_privilege USING MESSAGE = format('role %s may not speak as machine %s', session_user, who);
    END IF;
END $$;

CREATE FUNCTION "{schema}".append(who text, kind text, lines bytea[], sums text[], ids text[], expected bigint,
    OUT said text, OUT place bigint, OUT taken text) LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    many integer := cardinality(lines);
    base bigint;
BEGIN
    PERFORM "{schema}".check_speaker(who);
    IF kind NOT IN ('messages', 'roster', 'claims', 'archive', 'passed', 'reads.' || who)
        OR many NOT BETWEEN 1 AND {most} OR (SELECT sum(length(one)) FROM unnest(lines) one) > {widest} THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s lines of %s are nothing to append', many, kind);
    END IF;
    SELECT last INTO base FROM "{schema}".space FOR UPDATE;
    IF ids IS NOT NULL THEN
        SELECT 'taken', found.pos, found.id INTO said, place, taken FROM "{schema}".log found
            WHERE found.log = kind AND found.id = ANY (ids) ORDER BY array_position(ids, found.id) LIMIT 1;
        IF FOUND THEN RETURN; END IF;
    END IF;
    IF expected < (SELECT max(pos) FROM "{schema}".log WHERE log = kind) OR (kind = 'archive' AND expected < base) THEN
        said := 'moved';
        RETURN;
    END IF;
    INSERT INTO "{schema}".log (pos, log, id, machine, line, sum)
        SELECT base + n, kind, ids[n], who, lines[n], sums[n] FROM generate_series(1, many) n;
    UPDATE "{schema}".space SET last = last + many RETURNING last INTO place;
    PERFORM pg_notify('{schema}', '');
    said := 'done';
END $$;

CREATE FUNCTION "{schema}".named(who text, owner text, OUT whose text) LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM "{schema}".check_speaker(who);
    PERFORM FROM "{schema}".space FOR UPDATE;
    INSERT INTO "{schema}".machine SELECT who, named.owner, count(*) + 1 FROM "{schema}".machine ON CONFLICT DO NOTHING;
    SELECT machine.owner INTO whose FROM "{schema}".machine WHERE name = who;
END $$;

CREATE FUNCTION "{schema}".tell(who text, said bytea) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM "{schema}".check_speaker(who);
    UPDATE "{schema}".machine SET word = said, told = clock_timestamp() WHERE name = who AND length(said) <= {longest};
END $$;

CREATE FUNCTION "{schema}".ship(who text, of_digest text, number integer, many integer, given bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM "{schema}".check_speaker(who);
    IF many NOT BETWEEN 1 AND {parts} OR number NOT BETWEEN 0 AND many - 1 OR length(given) > {part} THEN
        RAISE insufficient_privilege USING MESSAGE = format('part %s of %s is nothing to ship', number, many);
    END IF;
    INSERT INTO "{schema}".file VALUES (who, of_digest, number, many, given) ON CONFLICT (digest, machine, part)
        DO UPDATE SET parts = many, data = given;
END $$;

CREATE FUNCTION "{schema}".take_back(who text, of_digest text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM "{schema}".check_speaker(who);
    DELETE FROM "{schema}".file WHERE machine = who AND digest = of_digest;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "{schema}" FROM PUBLIC;
"""
_ROLE = """\
{verb} ROLE "{role}" LOGIN PASSWORD '{password}';
ALTER ROLE "{role}" SET idle_in_transaction_session_timeout = '10s';
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO "{role}";
GRANT EXECUTE ON FUNCTION "{schema}".append, "{schema}".named, "{schema}".tell,
    "{schema}".ship, "{schema}".take_back TO "{role}";
INSERT INTO "{schema}".speaker VALUES ('{role}', '{machine}') ON CONFLICT DO NOTHING;
"""
_REMOVAL = """\
DELETE FROM "{schema}".speaker WHERE role = '{role}';
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "{schema}" FROM "{role}";
REVOKE ALL ON ALL TABLES IN SCHEMA "{schema}" FROM "{role}";
REVOKE ALL ON SCHEMA "{schema}" FROM "{role}";
DROP ROLE "{role}";
"""
_AT_ONCE = 10_000
"""Records that are removed at once."""
LONGEST = 63
"""Bytes of a name in PostgreSQL; it cuts what is longer."""


class PostgresOrder:
    """One machine's way to a space in PostgreSQL; see ``space.order.order.SpaceOrder``."""

    def __init__(self, connection: PostgresConnection, space: str, machine: str) -> None:
        orders.check_names(space, machine)
        self.connection = connection
        self.space = space
        self.machine = machine
        self.schema = schema_name(space)
        self._known = False
        self._since: object = None

    def make_unless_there(self) -> None:
        """Make the space unless it is there. Raises ``Refused`` for a newer one's."""
        rows = self.connection.query_rows("SELECT to_regnamespace(%s)::text", (f'"{self.schema}"',))
        if value_of(rows, TEXT + NULL) is not None:
            self.query_rows("SELECT 1")
            return
        limits = {"most": orders.MOST, "widest": orders.WIDEST, "parts": orders.MOST_PARTS, "part": orders.PART}
        script = _MAKE.format(schema=self.schema, version=VERSION, longest=LONGEST_WORD, **limits)
        try:
            self.connection.query_rows(script)
        except Refused as error:
            raise Refused(
                f"space is not there, and cannot be made: {error.what}",
                "`engine config --postgresql URL` writes what the database's owner runs",
            ) from None

    def query_rows(self, query: str, *words: object) -> list[Any]:
        """Return the rows that answer a query, in which ``SPACE`` means the schema."""
        if not self._known:
            version = value_of(self.connection.query_rows(f'SELECT version FROM "{self.schema}".space'), NUMBER)
            if version != VERSION:
                raise Refused(f"space was made by another version of agent-mailbox: {version}", "bring this one up")
            self._known = True
        try:
            return self.connection.query_rows(query.replace("SPACE", f'"{self.schema}"'), words)
        except HeldUp:
            rows = self.connection.query_rows(_HOLDERS, (f'"{self.schema}".space',))
            for role, process in rows_of(rows, TEXT, NUMBER):  # whose transaction is open, if one is still
                raise HeldUp(
                    f"engine is held up by an open transaction of role {role}, process {process}",
                    f"end it there; the database's owner may run `SELECT pg_terminate_backend({process})`",
                ) from None
            raise

    def take_name(self, owner: str) -> str:
        return str(value_of(self.query_rows("SELECT SPACE.named(%s, %s)", self.machine, owner), TEXT))

    def joined_machines(self) -> list[str]:
        rows = rows_of(self.query_rows("SELECT name FROM SPACE.machine"), TEXT)
        return sorted(name for (name,) in rows if is_machine(name))

    def of_log(self, log: str, after: int = 0) -> Iterator[Ordered]:
        place = after
        where = "SELECT pos, log, line, machine, sum FROM SPACE.log WHERE log = %s AND pos > %s ORDER BY pos LIMIT 1000"
        while records := _records_from(self.query_rows(where, log, place), place):
            yield from (one for one in records if not one.damaged and one.log == log)
            place = records[-1].position

    def last_position(self) -> int:
        return int(value_of(self.query_rows("SELECT last FROM SPACE.space"), NUMBER))

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        orders.check_size(lines)
        if not lines:
            return self.last_position()
        digests = [orders.digest_of_id(one) for one in ids]
        words = [*lines], [orders.checksum_of(line) for line in lines], digests or None, expect
        question = "SELECT * FROM SPACE.append(%s, %s, %s::bytea[], %s::text[], %s::text[], %s::bigint)"
        rows = self.query_rows(question, self.machine, log, *words)
        said, place, taken = row_of(rows, TEXT, NUMBER + NULL, TEXT + NULL)
        if said == "moved":
            raise Moved(f"log has moved: {log}", "look again")
        if place is None or (said == "taken" and taken not in digests):
            raise orders.of_another_form()
        if said == "taken":
            raise Taken(ids[digests.index(taken)], place)
        return int(place)

    def read_after(self, after: int, most: int) -> list[Ordered]:
        where = "SELECT pos, log, line, machine, sum FROM SPACE.log WHERE pos > %s ORDER BY pos LIMIT %s"
        return _records_from(self.query_rows(where, after, most), after)

    def count_holes(self) -> int:
        question = "SELECT last - (SELECT count(*) FROM SPACE.log) FROM SPACE.space"
        return int(value_of(self.query_rows(question), NUMBER))

    def remove_records(self, positions: Sequence[int]) -> None:
        for start in range(0, len(positions), _AT_ONCE):
            self.query_rows("DELETE FROM SPACE.log WHERE pos = ANY(%s)", [*positions[start : start + _AT_ONCE]])

    def remove_through(self, log: str, position: int) -> None:
        rows = self.query_rows("SELECT min(pos) FROM SPACE.log WHERE log = %s", log)
        first = value_of(rows, NUMBER + NULL) or position
        for end in (*range(first + _AT_ONCE, position, _AT_ONCE), position):
            self.query_rows("DELETE FROM SPACE.log WHERE log = %s AND pos <= %s", log, end)

    def wait_for_record(self, after: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            if seconds > 0:
                self.connection.listen_on(self.schema)
            if self.last_position() > after:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.connection.has_heard(min(left, LOOKS))

    def tell_machines(self, word: bytes) -> None:
        self.query_rows("SELECT SPACE.tell(%s, %s)", self.machine, word)

    def latest_words(self) -> dict[str, bytes]:
        since, self._since = self._since, value_of(self.query_rows("SELECT clock_timestamp()"), (object,))
        if since is None:
            return {}
        where = "SELECT name, word FROM SPACE.machine WHERE told > %s AND told <= %s"
        rows = rows_of(self.query_rows(where, since, self._since), TEXT, BYTES)
        return {name: word for name, word in rows if is_machine(name)}

    def ship_file(self, digest: str, data: bytes) -> None:
        """Give a file to the space; its first part comes last."""
        parts = orders.parts_of(data)
        for number in reversed(range(len(parts))):
            words = self.machine, digest, number, len(parts), parts[number]
            self.query_rows("SELECT SPACE.ship(%s, %s, %s, %s, %s)", *words)

    def take_back(self, digest: str) -> None:
        self.query_rows("SELECT SPACE.take_back(%s, %s)", self.machine, digest)

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        where = "SELECT machine, parts FROM SPACE.file WHERE digest = %s AND part = 0 ORDER BY machine"
        for machine, count in rows_of(self.query_rows(where, digest), TEXT, NUMBER):
            if count > orders.MOST_PARTS:
                continue
            parts = [part for n in range(count) for part in self._get_part(digest, machine, n, count)]
            if len(parts) == count:
                yield b"".join(parts)

    def _get_part(self, *words: object) -> list[bytes]:
        where = "SELECT data FROM SPACE.file WHERE digest = %s AND machine = %s AND part = %s AND parts = %s"
        return [data for (data,) in rows_of(self.query_rows(where, *words), BYTES)]

    def close(self) -> None:
        self.connection.close()


def schema_name(space: str) -> str:
    """Return the schema of a space, which is the channel of its notifications, too."""
    return f"mbx_{space}"


def role_name(space: str, machine: str) -> str:
    return f"mbx_{space}_{machine}"


def make_role(space: str, machine: str, password: str, *, is_there: bool = False) -> str:
    """Return what makes the role of a machine, or sets its password, which has no quotes."""
    verb, role, schema = "ALTER" if is_there else "CREATE", role_name(space, machine), schema_name(space)
    return _ROLE.format(verb=verb, role=role, machine=machine, schema=schema, password=password)


def write_roles(
    directory: str,
    url: str,
    space: str,
    machines: Sequence[str],
    removed: Sequence[str],
    credential: str | None,
    authority: str | None,
) -> list[tuple[str, str, str]]:
    """Make the space, and a role for each machine; return (machine, URL, password file) of each.

    The URL's user owns the space, and may make roles. ``removed`` are machines whose roles go. Raises ``Malformed`` for
    a name that is none, ``Refused``, ``NotFound``, ``Unavailable``, ``BadData`` for a password file of another form."""
    machines, removed = [*dict.fromkeys(machines)], [*dict.fromkeys(removed)]
    named = [*machines, *removed]
    for name in (space, *named):
        orders.check_names(name)
        if len(role_name(space, name)) > LONGEST:
            raise Malformed(f"names are too long for a role: {space} {name}", "choose shorter ones")
    if not named or len({*named}) < len(named):
        raise Malformed("space has no machine, or one is named and removed", "name each that may join: --machine NAME")
    order = PostgresOrder(PostgresConnection(url, credential, authority), space, named[0])
    scheme, _, where, more = split_address(url)
    try:
        order.make_unless_there()
        paths = [_make_role(order, directory, space, machine) for machine in machines]
        for machine in removed:
            _remove_role(order, directory, space, machine)
    finally:
        order.close()
    urls = [f"{scheme}://{role_name(space, one)}@{where}{more}" for one in machines]
    return [*zip(machines, urls, paths, strict=True)]


def _make_role(order: PostgresOrder, directory: str, space: str, machine: str) -> str:
    """Make a machine's role, or set its password, by its file; return the file's path."""
    role, path = role_name(space, machine), _password_file(directory, space, machine)
    is_there = bool(order.connection.query_rows("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)))
    if is_there and read_file(path) is None:  # another password would shut the machine out
        raise Refused(
            f"machine has a password already, and its file is not there: {path}",
            f"name the directory that has it by --into; or --remove {machine} first, for a new one",
        )
    word = order.connection.scrambled_password(read_or_make_password(path, f"*:*:*:{role}:"), role)
    order.connection.query_rows(make_role(space, machine, word, is_there=is_there))
    return path


def _remove_role(order: PostgresOrder, directory: str, space: str, machine: str) -> None:
    """Take a machine's role away, and its file. The last one's stays: where no role is named, each speaks as any."""
    role = role_name(space, machine)
    roles = {one for (one,) in rows_of(order.query_rows("SELECT role::text FROM SPACE.speaker"), TEXT)}
    if role not in roles:
        raise NotFound(f"machine has no role in the space {space}: {machine}", "was it another --space?")
    if roles == {role}:
        raise Refused(f"machine is the only one of the space {space}: {machine}", "name another first: --machine NAME")
    order.connection.query_rows(_REMOVAL.format(role=role, schema=order.schema))
    remove_file(_password_file(directory, space, machine))


def _password_file(directory: str, space: str, machine: str) -> str:
    """Return the path of a machine's file: beside those of its space, if another space has a machine of that name."""
    path, mark = system.join(directory, "machines", machine), f":{role_name(space, machine)}:".encode()
    own = system.join(directory, "spaces", space, "machines", machine)
    known = read_file(path)
    return own if read_file(own) is not None or (known is not None and mark not in known) else path


def _records_from(rows: Sequence[Any], after: int) -> list[Ordered]:
    """Return rows as records, which are behind a position: else nobody who reads on would end."""
    found = rows_of(rows, NUMBER, TEXT, BYTES, TEXT, TEXT)
    if found and found[-1][0] <= after:
        raise orders.of_another_form()
    return [
        Ordered(place, log, line, machine, known != orders.checksum_of(line))
        if is_machine(machine)
        else Ordered(place, "", b"", "")  # a stranger's
        for place, log, line, machine, known in found
    ]
