"""The order in a real PostgreSQL server conforms, keeps what it acknowledged, and says clearly what is wrong."""

from __future__ import annotations

import itertools
import os
import random
import re
import shlex
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from psycopg2.extensions import parse_dsn

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.core.records import USER
from agent_mailbox.errors import Malformed, Refused, Unavailable
from agent_mailbox.identity import tls_certificates as certificates
from agent_mailbox.space import joining_space, space_checks
from agent_mailbox.space.order import order as orders
from agent_mailbox.space.order.order import MESSAGES, MOST_PARTS, PART, ROSTER, HeldUp, NoServer, NoSpace, reads_of
from agent_mailbox.space.postgres import postgres_connection, postgres_order
from agent_mailbox.space.postgres.postgres_connection import _places_of
from agent_mailbox.space.postgres.postgres_order import PostgresOrder, write_roles
from agent_mailbox.space.servers import cluster
from agent_mailbox.space.space import Space
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import PATIENCE, Program, until

from .conformance import Pair, SpaceConformance, lines_of
from .cut_links import stopped
from .hostile_space import Joined, lock_nobody_out
from .opened_orders import open_postgres
from .pair import MACHINES
from .pair import Pair as Two
from .postgres_server import OLD, OWNER, PASSWORD, PostgresServer, credential, made
from .test_machine_names import take_over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_spaces = itertools.count()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server that the tests of this file share, each with a space of its own."""
    with made() as server, server.running():
        yield server


@pytest.fixture
def opened(postgres: PostgresServer, tmp_path: Path) -> Iterator[PostgresOrder]:
    """The way of machine ``a`` to a fresh space."""
    order = open_postgres(postgres.url, f"own-{next(_spaces)}", "a", credential(tmp_path / "owner"))
    order.make_unless_there()
    yield order
    order.close()


class TestPostgresOrder(SpaceConformance):
    """The order in PostgreSQL does what every order must do."""

    @pytest.fixture
    def machines(self, postgres: PostgresServer, tmp_path: Path) -> Iterator[Pair]:  # type: ignore[override]
        """Two machines' ways to one fresh space."""
        space, word = f"space-{next(_spaces)}", credential(tmp_path / "owner")
        a, b = (open_postgres(postgres.url, space, machine, word) for machine in "ab")
        a.make_unless_there()
        b.make_unless_there()
        yield a, b
        a.close()
        b.close()


def test_a_wrong_database_credential_is_refused_with_its_reason(
    postgres: PostgresServer, opened: PostgresOrder, tmp_path: Path
) -> None:
    """A wrong password, role, database or space, and a file that others may read: each is refused with its reason."""

    def way(path: str, url: str = postgres.url, space: str = opened.space) -> PostgresOrder:
        return open_postgres(url, space, "b", path)

    good, wrong = credential(tmp_path / "good"), credential(tmp_path / "wrong", password="nonsense")
    with pytest.raises(Refused, match=r"engine refuses the credential: .*password authentication failed"):
        way(wrong).last_position()
    (tmp_path / "wrong").chmod(0o644)
    with pytest.raises(Refused, match="credential is open to others"):
        way(wrong).last_position()
    with pytest.raises(Refused, match="credential cannot be read"):
        way(str(tmp_path / "none")).last_position()
    (tmp_path / "word").touch(0o600)
    with pytest.raises(Refused, match="credential has no known form"):
        way(str(tmp_path / "word")).last_position()
    with pytest.raises(NoSpace, match="engine has no such space"):
        way(good, space="elsewhere").last_position()
    with pytest.raises(Refused, match="engine has no such database"):
        way(good, postgres.url.replace("/postgres", "/nowhere")).last_position()
    with pytest.raises(Malformed, match="address is no PostgreSQL URL"):
        way(good, f"{postgres.url}?nonsense=1").last_position()
    for odd in (
        postgres.url.replace("@127.0.0.1:", "@h:9"),
        f"{postgres.url}?sslmode=x",
        "postgresql:///?service=none",
    ):
        with pytest.raises(NoServer, match=r"engine's address is none to PostgreSQL: .*(invalid|not found)") as unread:
            way(good, odd).last_position()
        assert unread.value.hint.startswith("correct the URL, or the service that it names")
    with pytest.raises(Refused, match="address has a password"):
        way(good, postgres.url.replace("@", ":secret@")).last_position()
    with pytest.raises(Unavailable, match="engine is out of reach"):
        way(good, f"postgresql://{OWNER}@127.0.0.1:1/postgres").last_position()


def test_a_program_without_the_database_library_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person may have installed it again without the extra."""
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(Refused, match="package for PostgreSQL is missing: psycopg2") as told:
        open_postgres("postgresql://ann@localhost/mail", "team", "a").last_position()
    assert (told.value.code, told.value.hint) == ("no_extra", "`agent-mailbox engine join` tells how to add it")


def test_a_role_that_is_made_again_works_for_who_was_connected_before(
    postgres: PostgresServer, program: Program, tmp_path: Path
) -> None:
    """A machine that is taken away and named again, with a new password, goes on over the connection of before: its
    replicator need not be started again."""
    owner, home = credential(tmp_path / "owner"), program.scratch / "engine"
    config = "engine", "config", "--postgresql", postgres.url, "--credential", owner, "--into", home, "--space", "again"
    for machine in MACHINES:
        assert program.call(*config, "--machine", machine).rc == 0
    word = home / "machines" / "south"
    order = open_postgres(postgres.url.replace(f"{OWNER}@", "mbx_again_south@"), "again", "south", str(word))
    try:
        assert order.append_lines(ROSTER, [b"before"]) == 1
        assert program.call(*config, "--remove", "south").rc == 0
        with pytest.raises(Refused, match="credential"):
            order.append_lines(ROSTER, [b"taken away"])
        assert program.call(*config, "--machine", "south").rc == 0
        assert order.append_lines(ROSTER, [b"again"]) == 2
        assert program.call(*config, "--remove", "south").rc == 0
        assert program.call(*config, "--machine", "south").rc == 0
        assert order.append_lines(ROSTER, [b"without a word between"]) == 3
    finally:
        order.close()


def test_a_machine_speaks_for_itself_alone(postgres: PostgresServer, opened: PostgresOrder, tmp_path: Path) -> None:
    """A machine with its documented role cannot append, join or tell as another machine. It changes nothing that is
    there."""
    postgres.ask(*(postgres_order.make_role(opened.space, machine, PASSWORD) for machine in ("north", "south")))
    role = postgres_order.role_name(opened.space, "north")
    url, word = postgres.url.replace(OWNER, role), credential(tmp_path / "north", role)
    north = open_postgres(url, opened.space, "north", word)
    assert north.take_name("me") == "me"
    position = north.append_lines(MESSAGES, [b"mine"], ids=["m1"])
    forged = open_postgres(url, opened.space, "south", word)
    for attack in (
        lambda: forged.append_lines(ROSTER, [b"forged"]),
        lambda: forged.take_name("me"),
        lambda: forged.tell_machines(b"{}"),
        lambda: north.append_lines(reads_of("south"), [b"forged"]),
        lambda: forged.ship_file("0" * 64, b"forged"),
        lambda: forged.take_back("0" * 64),
        lambda: north.ship_file("0" * 64, b"x" * (PART * (MOST_PARTS + 1))),
        lambda: north.query_rows("INSERT INTO SPACE.file VALUES ('south', '0', 0, 1, 'x')"),
        lambda: north.query_rows("INSERT INTO SPACE.log VALUES (99, 'roster', NULL, 'south', 'x', 'x')"),
        lambda: north.query_rows("UPDATE SPACE.log SET line = 'x'"),
        lambda: north.query_rows("DELETE FROM SPACE.log"),
        lambda: north.query_rows("TRUNCATE SPACE.log"),
        lambda: north.query_rows("DROP TABLE SPACE.log"),
        lambda: north.query_rows("UPDATE SPACE.space SET last = 7"),
        lambda: north.query_rows("SELECT last FROM SPACE.space FOR UPDATE"),  # it could stop all others
        lambda: north.query_rows("INSERT INTO SPACE.speaker VALUES (session_user, 'south')"),
        lambda: north.query_rows("CREATE FUNCTION SPACE.now() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
        lambda: north.query_rows("SET SESSION AUTHORIZATION " + OWNER),
        lambda: north.query_rows("SET ROLE " + OWNER),
    ):
        with pytest.raises(Refused, match="engine refuses the credential"):
            attack()
    assert [(one.position, one.line, one.machine) for one in opened.read_after(0, 9)] == [(position, b"mine", "north")]
    assert opened.joined_machines() == ["north"]
    with pytest.raises(Refused, match=r"may not speak as machine a$"):  # not even the owner, unless it is named
        opened.append_lines(ROSTER, [b"x"])
    stranger = open_postgres(url, "another", "north", word)
    with pytest.raises(Refused, match="cannot be made"):
        stranger.make_unless_there()
    for order in (north, forged, stranger):
        order.close()


def found_records(pair: Two) -> int:
    """How many records the space has."""
    return int(pair.ok("north", "engine", "status")["records"])


def test_two_mailboxes_share_a_database(postgres: PostgresServer, program: Program, tmp_path: Path) -> None:
    """The owner makes the space and a role for each; the printed commands join; mail goes both ways, role mail to one.

    ``status``, ``doctor``, ``forget`` and ``leave`` work as with NATS; the files are equal in the end."""
    owner, home = credential(tmp_path / "owner"), program.scratch / "engine"
    config = ("engine", "config", "--postgresql", postgres.url, "--credential", owner, "--into", home)
    commands = []
    for machine in MACHINES:
        result = program.run(*config, "--space", "team-7", "--machine", machine, "--json")
        assert result.rc == 0, result
        commands += result.json["join"]
    again = program.run(*config, "--space", "team-7", "--machine", "north", "--json")
    assert again.json["join"] == commands[:1]
    assert {path.stat().st_mode & 0o077 for path in home.glob("machines/*")} == {0}
    pair = Two(program, postgres.url, "")
    pair.space = "team-7"
    for machine, command in zip(MACHINES, commands, strict=True):
        done = program.run(*shlex.split(command)[1:], "--dir", program.scratch / machine)
        assert done.rc == 0, done
    twin = [*shlex.split(commands[0])[1:], "--dir", program.scratch / "south"]
    assert "mailbox is in this space under another name" in program.run(*twin).stderr
    program.run("init", program.scratch / "third")
    assert "name is another mailbox's: north" in program.run(*twin[:-1], program.scratch / "third").stderr
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
    with pair.serving("south"), pair.serving("north"):
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "to ben")
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        assert pair.seen("south", "ben") == ["to ben"]
        pair.send("south", "--from", "user", "--to", "role:dev", "--body", "to one of you")
        assert pair.seen("south", "ben") + pair.seen("north", "ann") == ["to one of you"]
        pair.claim_at_once()
        found = program.run("engine", "doctor", "--json", "--dir", program.scratch / "south").json
        assert all("by a key that you did not confirm" in problem for problem in found["problems"])
        until(
            lambda: pair.ok("south", "engine", "status")["applied"] == pair.ok("north", "engine", "status")["records"]
        )
    assert pair.ok("north", "engine", "forget", "south")["frozen"] == ["ben"]
    for machine in MACHINES:
        pair.ok(machine, "engine", "leave")
    assert pair.lines("north") == pair.lines("south")


def test_engine_config_takes_access_from_no_other_machine(
    postgres: PostgresServer, program: Program, tmp_path: Path
) -> None:
    """`engine config` for some machines takes access from no other machine, nor from another space. A machine's
    password is not made twice. ``--remove`` takes a role and its file away. It refuses the last machine, since without
    any role each machine may speak as any."""
    owner, home = credential(tmp_path / "owner"), program.scratch / "engine"
    config = "engine", "config", "--postgresql", postgres.url, "--credential", owner, "--into"
    for space in ("kept", "other"):
        for machine in MACHINES:
            assert program.call(*config, home, "--space", space, "--machine", machine).rc == 0
    places = {
        (space, machine): (place / "machines" / machine).read_text().strip()
        for space, place in (("kept", home), ("other", home / "spaces" / "other"))
        for machine in MACHINES
    }

    def end(space: str, machine: str) -> int:
        word = tmp_path / "word"
        word.touch(0o600)
        word.write_text(places[space, machine])
        url = postgres.url.replace(f"{OWNER}@", f"mbx_{space}_{machine}@")
        order = open_postgres(url, space, machine, str(word))
        try:
            return order.append_lines(ROSTER, [b"x"])
        finally:
            order.close()

    assert [end(*one) for one in places] == [1, 2, 1, 2]
    said = program.call(*config, program.scratch / "elsewhere", "--space", "kept", "--machine", "north")
    assert (said.rc, "machine has a password already, and its file is not there" in said.stderr) == (1, True), said
    gone = program.call(*config, home, "--space", "kept", "--remove", "south")
    assert (gone.rc, gone.stdout) == (0, "south may no longer write to kept\n"), gone
    assert not (home / "machines" / "south").exists()
    for machine, text in (
        ("south", "machine has no role in the space kept: south"),
        ("north", "machine is the only one"),
    ):
        said = program.call(*config, home, "--space", "kept", "--remove", machine)
        assert (said.rc, text in said.stderr) == (1, True), said
    with pytest.raises(Refused, match="engine refuses the credential"):
        end("kept", "south")
    assert [end(*one) for one in places if one != ("kept", "south")] == [3, 3, 4]


def test_passwords_are_scrambled_as_scram_says_whatever_the_server_would_do(
    postgres: PostgresServer, program: Program, tmp_path: Path
) -> None:
    """A server whose own default is MD5 keeps none so. Each machine joins by its own password; a second run of
    `engine config` keeps them."""
    owner, home = credential(tmp_path / "owner"), program.scratch / "engine"
    config = ("engine", "config", "--postgresql", postgres.url, "--credential", owner, "--into", home)
    machines = ("w-1", "w-10")
    named = [word for machine in machines for word in ("--machine", machine)]
    postgres.ask("ALTER SYSTEM SET password_encryption = 'md5'", "SELECT pg_reload_conf()")
    try:
        until(lambda: postgres.found("SHOW password_encryption") == "md5")
        for _ in range(2):
            made = program.call(*config, "--space", "salted", *named, "--json")
            assert made.rc == 0, made
            for machine in machines:
                role = postgres_order.role_name("salted", machine)
                kept = postgres.found(f"SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'")
                assert str(kept).startswith("SCRAM-SHA-256$"), role
    finally:
        postgres.ask("ALTER SYSTEM RESET password_encryption", "SELECT pg_reload_conf()")
    for machine, command in zip(machines, made.json["join"], strict=True):
        program.run("init", program.scratch / machine)
        joined = program.run(*shlex.split(command)[1:], "--dir", program.scratch / machine)
        assert joined.rc == 0, joined


def test_the_doctor_names_what_a_server_would_lose(postgres: PostgresServer, opened: PostgresOrder) -> None:
    """Without fsync, and with a role that may speak as any machine."""
    assert list(space_checks.of_database(opened)) == [
        "any machine may speak as another: `engine config --postgresql` writes a role for each"
    ]
    postgres.ask("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        until(lambda: opened.connection.query_rows("SHOW fsync")[0][0] == "off")
        said = next(space_checks.of_database(opened))
        assert said == "server acknowledges what a power failure loses; set fsync to on, it is off"
    finally:
        postgres.ask("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def test_the_doctor_tells_a_clock_that_is_ahead_or_behind(
    opened: PostgresOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mail of two machines is sorted by their times."""
    for ahead, said in ((900, r"server's clock differs by -9\d\d s"), (-900, r"server's clock differs by [89]\d\d s")):
        monkeypatch.setattr(space_checks, "time", SimpleNamespace(time=lambda ahead=ahead: time.time() + ahead))
        assert re.fullmatch(said, next(space_checks.of_database(opened)))


def test_the_last_word_of_each_machine_is_told_once(opened: PostgresOrder) -> None:
    """The last of each machine that joined; none of oneself, none that is too long, none from before one listened."""
    others = [PostgresOrder(opened.connection, opened.space, name) for name in ("south", "west")]
    for order in others:
        order.take_name("somebody")
        order.tell_machines(b"before")
    assert opened.latest_words() == {}
    others[0].tell_machines(b"first")
    others[0].tell_machines(b"second")
    others[1].tell_machines(b"x" * (postgres_order.LONGEST_WORD + 1))
    assert opened.latest_words() == {"south": b"second"}
    assert opened.latest_words() == {}


def test_rows_of_unknown_logs_and_machines_are_no_records(postgres: PostgresServer, opened: PostgresOrder) -> None:
    """Those of a later version's log, or of no machine, have no log that is known here; a changed one is damaged."""
    opened.append_lines(MESSAGES, [b"first"], ids=["m1"])
    row = f'INSERT INTO "{opened.schema}".log VALUES'
    postgres.ask(
        f"{row} (2, 'later', NULL, 'a', 'x', 'x')",
        f"{row} (3, 'roster', NULL, 'A*', 'x', 'x')",
        f'UPDATE "{opened.schema}".space SET last = 3',
    )
    opened.append_lines(MESSAGES, [b"last"], ids=["m2"])
    assert [(one.position, one.log) for one in opened.read_after(0, 3)] == [(1, MESSAGES), (2, "later"), (3, "")]
    postgres.ask(f"UPDATE \"{opened.schema}\".log SET line = 'flipped' WHERE pos = 1")
    assert [one.damaged for one in opened.read_after(0, 9)] == [True, True, False, False]
    assert [one.line for one in opened.of_log(MESSAGES)] == [b"last"]


def test_a_database_that_answers_what_none_does_is_out_of_reach(
    postgres: PostgresServer, opened: PostgresOrder
) -> None:
    """Its owner changed the tables: a call says that the answer has another form, and mail waits."""
    opened.append_lines(ROSTER, [b"x"])
    opened.take_name("me")
    null = "ALTER TABLE {0}.machine ALTER owner DROP NOT NULL; UPDATE {0}.machine SET owner = NULL"
    changed: list[tuple[str, Callable[[], object]]] = [
        ("ALTER TABLE {0}.log ALTER line TYPE text USING 'x'", lambda: opened.read_after(0, 1)),
        (null, lambda: opened.take_name("me")),
        ("INSERT INTO {0}.space VALUES (1, 9)", opened.last_position),
        ("DELETE FROM {0}.space", opened.count_holes),
    ]
    for change, ask in changed:
        postgres.ask(change.format(f'"{opened.schema}"'))
        with pytest.raises(Unavailable, match="another form"):
            ask()


def test_no_hostile_row_locks_a_machine_out(postgres: PostgresServer, opened: PostgresOrder, tmp_path: Path) -> None:
    """Lines that no file can hold, and damaged ones, on every log: all join, leave, and have the same mail."""

    def damage(_: Joined, log: str) -> None:
        opened.query_rows("SELECT * FROM SPACE.append('north', %s, ARRAY['x'::bytea], ARRAY['wrong'], NULL, NULL)", log)

    lock_nobody_out(
        tmp_path, lambda machine: Space(postgres.url, opened.space, machine, str(tmp_path / "owner")), damage
    )


def test_the_name_of_a_machine_that_was_given_up_is_taken_over(
    postgres: PostgresServer, opened: PostgresOrder, tmp_path: Path
) -> None:
    """It is so with PostgreSQL as it is with NATS (``test_machine_names``)."""
    word = str(tmp_path / "owner")
    take_over(tmp_path, lambda machine: Space(postgres.url, opened.space, machine, word))


def test_what_all_archived_is_removed_by_the_owner_alone(postgres: PostgresServer, tmp_path: Path) -> None:
    """A machine's role may remove nothing, nor may it with the owner's password; the owner's URL and password may."""
    space, owner = f"own-{next(_spaces)}", credential(tmp_path / "owner")
    ((_, url, word),) = write_roles(str(tmp_path / "roles"), postgres.url, space, ["north"], [], owner, None)
    north = Joined(tmp_path, Space(url, space, "north", word))
    north.box.register(Registration(session_id="ann"), "ann")
    for body in "abc":
        north.box.send(Draft(sender=USER, to=("ann",), content=body))
    assert north.box.deliver("ann", lambda items: items) == 3
    assert stewards.run_upkeep(north.box, 0).archived == 3
    logs, hint = Mailbox(north.path).logs, "a machine may remove nothing: give the owner's `--url postgresql://"
    for given in ((None, None), (url, word)):
        with pytest.raises(Refused) as told:
            joining_space.purge_archived(logs, *given)
        assert told.value.hint.startswith(hint)
    with pytest.raises(Refused, match="credential"):
        joining_space.purge_archived(logs, None, owner)
    before = len(north.order.read_after(0, 99))
    plan = joining_space.purge_archived(logs, postgres.url, owner, dry_run=True)
    assert len(north.order.read_after(0, 99)) == before
    assert joining_space.purge_archived(logs, postgres.url, owner).positions == plan.positions
    assert not {*plan.positions} & {one.position for one in north.order.read_after(0, 99)}
    assert plan.positions
    north.close()


def test_a_database_that_cannot_take_a_record_says_why(
    postgres: PostgresServer, opened: PostgresOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of a newer version, a full disk, a server that is too old: nothing is written, and all is there later."""
    refuse = f"""CREATE FUNCTION "{opened.schema}".full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END$$"""
    postgres.ask(refuse, f'CREATE TRIGGER t BEFORE INSERT ON "{opened.schema}".log EXECUTE FUNCTION '
                         f'"{opened.schema}".full_disk()')  # fmt: skip
    with pytest.raises(Unavailable, match="engine is full: could not extend file"):
        opened.append_lines(MESSAGES, [b"one"], ids=["m1"])
    postgres.ask(f'DROP TRIGGER t ON "{opened.schema}".log')
    assert opened.append_lines(MESSAGES, [b"one"], ids=["m1"]) == 1
    postgres.ask(f'UPDATE "{opened.schema}".space SET version = 2')
    later = open_postgres(postgres.url, opened.space, "a", credential(tmp_path / "word"))
    for call in (
        later.make_unless_there,
        later.last_position,
        lambda: later.append_lines(MESSAGES, [b"two"], ids=["m2"]),
    ):
        with pytest.raises(Refused, match="space was made by another version of agent-mailbox: 2"):
            call()
    postgres.ask(f'UPDATE "{opened.schema}".space SET version = 1')
    assert lines_of(later, MESSAGES) == [b"one"]
    version = int(str(postgres.found("SHOW server_version_num")))
    monkeypatch.setattr(postgres_connection, "LEAST", version)
    later.close()
    assert later.last_position() == 1
    monkeypatch.setattr(postgres_connection, "LEAST", version + 1)
    later.close()
    with pytest.raises(Refused, match=r"engine is too old: PostgreSQL \d\d"):
        later.last_position()


def test_a_transaction_that_is_left_open_is_told(
    postgres: PostgresServer, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program keeps the row that every append locks: who appends hears whose transaction that is, mail is
    queued, and the doctor tells it. A machine's own role keeps no transaction open."""
    monkeypatch.setattr(postgres_connection, "HELD", 0.05)
    pair = Two(program, postgres.url, credential(tmp_path / "owner"))
    pair.join("north")
    pair.ok("north", "roster", "register", "--session-id", "ann")
    order = open_postgres(postgres.url, pair.space, "a", credential(tmp_path / "word"))
    assert order.last_position() > 0
    with postgres.asking(f'SELECT last FROM "mbx_{pair.space}".space FOR UPDATE'):
        said = r"engine is held up by an open transaction of role owner, process \d+"
        with pytest.raises(HeldUp, match=said):
            order.append_lines(ROSTER, [b"x"])
        for _ in range(2):  # the second asks nobody, and tells what the first was told
            why = pair.ok("north", "send", "--from", "ann", "--to", "all", "--body", "x")["why"]
            assert re.match(said, why)
        assert why.endswith(", a moment ago")
        monkeypatch.setattr(postgres_connection, "HELD", 10 * PATIENCE)
        with orders.Hurry(10 * PATIENCE), pytest.raises(HeldUp, match=said):
            order.append_lines(ROSTER, [b"x"])
        monkeypatch.setattr(postgres_connection, "HELD", 0.05)
        with pair.serving("north") as replicator:
            assert pair.ok("north", "send", "--from", "ann", "--to", "all", "--body", "x")["queued"]
            assert replicator.stderr is not None
            assert re.search(said, replicator.stderr.readline().decode())
            assert re.search(said, pair.program.run("doctor", "--dir", program.scratch / "north").stdout)
    order.close()
    pair.ok("north", "engine", "join")
    assert pair.ok("north", "engine", "status")["queued"] == 0
    postgres.ask(postgres_order.make_role(pair.space, "north", PASSWORD))
    role = postgres_order.role_name(pair.space, "north")
    north = open_postgres(postgres.url.replace(OWNER, role), pair.space, "north", credential(tmp_path / "role", role))
    assert north.query_rows("SHOW idle_in_transaction_session_timeout") == [("10s",)]
    north.close()


def test_a_database_server_that_says_nothing_is_left(
    postgres: PostgresServer, opened: PostgresOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller in a hurry leaves a server that says no word, connected or not, however long others would wait. The
    caller stays with one that answers. The server, too, ends a statement when the time of others is over."""
    word = credential(tmp_path / "word")
    near, far = (open_postgres(postgres.url, opened.space, "a", word, wait=10 * PATIENCE) for _ in range(2))
    with orders.Hurry(10 * PATIENCE):
        with monkeypatch.context() as patch:
            patch.setattr(orders, "WORD", 1.5)  # a busy machine's server takes a while to say one
            patch.setattr(orders, "SILENT", 1.5)
            assert near.query_rows("SELECT 1 FROM pg_sleep(2)") == [(1,)]
            limit = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
            assert near.query_rows(limit) == [(f"{10_000 * PATIENCE:.0f}",)]
        with stopped(*postgres.pids()):
            for order in (near, far):
                with pytest.raises(Unavailable, match="engine is out of reach"):
                    order.last_position()
    assert (near.last_position(), far.last_position()) == (0, 0)
    near.close()
    far.close()


def test_a_hurried_caller_looks_where_the_library_connects() -> None:
    """Hosts and ports are those that libpq reads in the URL; of a service it alone knows them."""
    for url, places in {
        "postgresql://me@host/db": [("host", 5432)],
        "postgresql://a:1,b/db?sslmode=require": [("a", 1), ("b", 5432)],
        "postgres://[::1]:8,[fe80::1]/db": [("::1", 8), ("fe80::1", 5432)],
        "postgresql://name:7/db?hostaddr=127.0.0.1": [("127.0.0.1", 7)],
        "postgresql:///db?host=/run": [("/run/.s.PGSQL.5432", 5432)],
        "postgresql:///?service=x": [],
    }.items():
        assert _places_of(parse_dsn(url)) == places, url


def test_a_full_database_disk_loses_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    """A real one: what does not fit is told as that, what was acknowledged is read, the rest comes with more room."""
    with postgres.small_disk() as grow:
        url, word = f"{postgres.url}?options=-c%20default_tablespace%3Dsmall", credential(tmp_path / "word")
        order = open_postgres(url, f"own-{next(_spaces)}", "a", word)
        order.make_unless_there()
        lines = [random.Random(n).randbytes(4000) for n in range(300)]  # which no page compresses
        with pytest.raises(Unavailable, match=r"engine is full: could not extend file .*No space left on device"):
            _sent(order, lines, 0)
        there = lines_of(order, MESSAGES)
        assert 0 < len(there) < len(lines)
        assert there == lines[: len(there)]
        grow("8m")
        _sent(order, lines, len(there))
        assert lines_of(order, MESSAGES) == lines
        order.close()
        postgres.ask(f'DROP SCHEMA "{order.schema}" CASCADE', "DROP TABLESPACE small")


def _sent(order: PostgresOrder, lines: Sequence[bytes], start: int) -> None:
    for n, line in enumerate(lines[start:], start):
        order.append_lines(MESSAGES, [line], ids=[f"m{n}"])


def test_an_old_postgresql_server_is_refused(tmp_path: Path) -> None:
    """A real one: each call says which version it is, and which one it takes."""
    if OLD not in os.environ:
        pytest.skip(f"no old PostgreSQL here: {OLD} names the directory of its programs")
    with made(Path(os.environ[OLD])) as server, server.running():
        order = open_postgres(server.url, "space", "a", credential(tmp_path / "word"))
        for call in (
            order.make_unless_there,
            order.last_position,
            lambda: order.append_lines(MESSAGES, [b"x"], ids=["m1"]),
        ):
            with pytest.raises(Refused, match=r"engine is too old: PostgreSQL 1[0-3]$") as refusal:
                call()
            assert refusal.value.hint == "run PostgreSQL 14 or later"


def test_the_database_server_proves_itself_by_its_certificate(
    postgres: PostgresServer, opened: PostgresOrder, program: Program, tmp_path: Path
) -> None:
    """A server proves itself by a certificate that follows from the authority and names the host. Any other server
    hears nothing, nor does one without TLS. It counts as out of reach, so mail waits."""
    key, other, own = (certificates.new_key() for _ in range(3))
    known, unknown = tmp_path / "authority.pem", tmp_path / "unknown.pem"
    known.write_bytes(cluster.authority_certificate(key))
    unknown.write_bytes(cluster.authority_certificate(other))
    word, north = credential(tmp_path / "word"), program.scratch / "north"
    send = "send", "--from", "user", "--to", "all", "--body", "hello", "--dir", north

    def way(url: str = postgres.url, authority: Path | None = None) -> PostgresOrder:
        return open_postgres(url, opened.space, "a", word, authority and str(authority))

    with pytest.raises(Unavailable, match="server does not support SSL, but SSL was required"):
        way(authority=known).last_position()
    with postgres.encrypted(certificates.key_text(own), cluster.of_server(own, "127.0.0.1", key)):
        by_url = f"{postgres.url}?sslmode=verify-full&sslrootcert={known}"
        for order in (way(authority=known), way(by_url)):
            assert order.last_position() == 0
            assert order.connection.query_rows("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [(True,)]
            order.close()
        with pytest.raises(Unavailable, match="certificate verify failed"):
            way(authority=unknown).last_position()
        space = "--space", opened.space, "--machine", "a", "--credential", word, "--authority", known
        program.run("init", north)
        joined = program.run("engine", "join", postgres.url, *space, "--dir", north)
        assert joined.rc == 0, joined
        assert program.run(*send).stdout.startswith("sent ")
    with postgres.encrypted(certificates.key_text(own), cluster.of_server(own, "db.example", key)):
        with pytest.raises(Unavailable, match=r'certificate for "db\.example".* does not match host name "127'):
            way(authority=known).last_position()
        assert " to all: engine is out of reach: " in program.run(*send).stdout


def test_a_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """A server that is killed is out of reach; started again, it has every acknowledged record, and none twice.

    One that was away while nobody asked is asked as if it had been there. A role whose default is not to wait for the
    disk waits for it."""
    with made() as server:
        word = credential(tmp_path / "word")
        with server.running():
            server.ask(f"ALTER ROLE {OWNER} SET synchronous_commit = off")
            order = open_postgres(server.url, "space", "a", word, wait=30)
            order.make_unless_there()
            assert order.query_rows("SHOW synchronous_commit")[0][0] == "on"
            for n in range(20):
                order.append_lines(MESSAGES, [b"%d" % n], ids=[f"m{n}"])
        with pytest.raises(Unavailable):
            order.append_lines(MESSAGES, [b"20"], ids=["m20"])
        with server.running():
            order.append_lines(MESSAGES, [b"20"], ids=["m20"])
            assert lines_of(order, MESSAGES) == [b"%d" % n for n in range(21)]
        with server.running():
            assert order.last_position() == 21
        order.close()
