"""The roles of a space's machines in a PostgreSQL database: made by the owner, each with its password file.

Belongs here: making them, and the files. Secrets that are there are kept, so to add a machine is to name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import Malformed, NotFound, Refused
from ...store.files import system
from ...store.files.small_files import read_file, remove_file
from ..order.order import check_names
from ..servers.cluster_record import read_or_make_password
from ..servers.first_server import split_address
from . import space_tables
from .postgres_order import open_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .postgres_order import PostgresOrder

LONGEST = 63
"""Bytes of a name in PostgreSQL; it cuts what is longer."""


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
        check_names(name)
        if len(space_tables.role_name(space, name)) > LONGEST:
            raise Malformed(f"names are too long for a role: {space} {name}", "choose shorter ones")
    if not named or len({*named}) < len(named):
        raise Malformed("space has no machine, or one is named and removed", "name each that may join: --machine NAME")
    order = open_order(url, space, named[0], credential, authority)
    scheme, _, where, more = split_address(url)
    try:
        order.make_unless_there()
        paths = [_make_role(order, directory, space, machine) for machine in machines]
        for machine in removed:
            _remove_role(order, directory, space, machine)
    finally:
        order.close()
    urls = [f"{scheme}://{space_tables.role_name(space, one)}@{where}{more}" for one in machines]
    return [*zip(machines, urls, paths, strict=True)]


def _make_role(order: PostgresOrder, directory: str, space: str, machine: str) -> str:
    """Make a machine's role, or set its password, by its file; return the file's path."""
    role, path = space_tables.role_name(space, machine), _password_file(directory, space, machine)
    is_there = _is_role(order, role)
    if is_there and read_file(path) is None:  # another password would shut the machine out
        raise Refused(
            f"machine has a password already, and its file is not there: {path}",
            f"name the directory that has it by --into; or --remove {machine} first, for a new one",
        )
    word = order.connection.scrambled_password(read_or_make_password(path, f"*:*:*:{role}:"), role)
    order.connection.query_rows(space_tables.make_role(space, machine, word, is_there=is_there))
    return path


def _remove_role(order: PostgresOrder, directory: str, space: str, machine: str) -> None:
    """Take a machine's role away, and its file. The last one's stays: where no role is named, each speaks as any."""
    role = space_tables.role_name(space, machine)
    if not _is_role(order, role):
        raise NotFound(f"machine has no role in the space {space}: {machine}", "was it another --space?")
    if not order.connection.query_rows(
        f'SELECT 1 FROM "{space_tables.schema_name(space)}".speaker WHERE role <> %s', (role,)
    ):
        raise Refused(f"machine is the only one of the space {space}: {machine}", "name another first: --machine NAME")
    order.connection.query_rows(space_tables.remove_role(space, machine))
    remove_file(_password_file(directory, space, machine))


def _is_role(order: PostgresOrder, role: str) -> bool:
    return bool(order.connection.query_rows("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)))


def _password_file(directory: str, space: str, machine: str) -> str:
    """Return the path of a machine's file: beside those of its space, if another space has a machine of that name."""
    path, mark = system.join(directory, "machines", machine), f":{space_tables.role_name(space, machine)}:".encode()
    own = system.join(directory, "spaces", space, "machines", machine)
    known = read_file(path)
    return own if read_file(own) is not None or (known is not None and mark not in known) else path
