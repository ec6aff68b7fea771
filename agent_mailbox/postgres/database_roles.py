"""The roles of a space's machines in a PostgreSQL database: made by the owner, each with its password file.

Belongs here: making them, and the files. Secrets that are there are kept, so to add a machine is to name it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from ..errors import BadData, Malformed
from ..store import system
from ..store.custody import content
from ..store.order import is_machine
from ..store.small_files import replace_file
from . import space_tables
from .postgres_order import open_order

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 63
"""Bytes of a name in PostgreSQL; it cuts what is longer."""


def write(
    directory: str, url: str, space: str, machines: Sequence[str], credential: str | None, authority: str | None
) -> list[tuple[str, str, str]]:
    """Make the space, and a role for each machine; return (machine, URL, password file) of each.

    The URL's user owns the space, and may make roles. Raises ``Malformed`` for a name that is none, ``Refused``,
    ``Unavailable``, ``BadData`` for a password file of another form."""
    for name in (space, *machines):
        if not is_machine(name):
            raise Malformed(f"name is not lower-case letters, digits and -: {name}", "choose another")
        if len(space_tables.role(space, name)) > LONGEST:
            raise Malformed(f"names are too long for a role: {space} {name}", "choose shorter ones")
    order = open_order(url, space, machines[0], credential, authority)
    found = []
    try:
        order.make()
        for machine in machines:
            role, path = space_tables.role(space, machine), system.join(directory, "machines", machine)
            is_there = order.connection.ask("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
            word = order.connection.hidden(_word(path, role), role)
            order.connection.run(space_tables.make_role(space, machine, word, is_there=bool(is_there)))
            found.append((machine, _of_user(url, role), path))
    finally:
        order.close()
    return found


def _word(path: str, role: str) -> str:
    """Return the password in a machine's file; make both if there are none."""
    known = content(path)
    if known is None:
        known = f"*:*:*:{role}:{secrets.token_hex(32)}\n".encode()
        system.make_directory(system.dirname(path))
        replace_file(path, known)
    user, _, word = known.decode("utf-8", "replace").strip().removeprefix("*:*:*:").partition(":")
    if user != role or not word.isalnum():
        raise BadData(f"credential has another form: {path}", "move it away, and write the files again")
    return word


def _of_user(url: str, role: str) -> str:
    """Return a URL with another user."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{role}@{place.rpartition('@')[2]}{slash}{path}"
