"""The tables and functions of a space in a PostgreSQL database, and who may do what with them.

Belongs here: their text. A space is one schema, so one database may hold several. ``log`` has the records, ``space``
one row: the version of these tables and last position. An append locks that row until it commits, so positions become
visible in their order. A role that may only read cannot lock it. All writing goes through functions that run as the
owner. Once ``speaker`` names any role, each may append only in the name of a machine that ``speaker`` gives it. So a
record's machine is proven. Only the owner removes anything.
"""

from __future__ import annotations

from ..order.order import MOST, MOST_PARTS, PART, WIDEST

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


def schema_name(space: str) -> str:
    """Return the schema of a space, which is the channel of its notifications, too."""
    return f"mbx_{space}"


def role_name(space: str, machine: str) -> str:
    return f"mbx_{space}_{machine}"


def creation_script(space: str) -> str:
    """Return what makes a space; the space's name is checked (``core.proofs.is_machine``)."""
    limits = {"most": MOST, "widest": WIDEST, "longest": LONGEST_WORD, "parts": MOST_PARTS, "part": PART}
    return _MAKE.format(schema=schema_name(space), version=VERSION, **limits)


def make_role(space: str, machine: str, password: str, *, is_there: bool = False) -> str:
    """Return what makes the role of a machine, or sets its password, which has no quotes."""
    verb, role, schema = "ALTER" if is_there else "CREATE", role_name(space, machine), schema_name(space)
    return _ROLE.format(verb=verb, role=role, machine=machine, schema=schema, password=password)


def remove_role(space: str, machine: str) -> str:
    return _REMOVAL.format(role=role_name(space, machine), schema=schema_name(space))
