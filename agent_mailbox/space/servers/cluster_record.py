"""The purpose of a cluster's files: its servers, its spaces, and the machines of each.

Belongs here: that record, and which change of it is refused. Files that are written again take access away from whom
they no longer name, at the servers' next start. So nobody is left out but by ``--remove``.
"""

from __future__ import annotations

import shlex
from ipaddress import ip_address

from ...core import codec
from ...core.records import BadLine, Record
from ...core.text import typed
from ...errors import BadData, Malformed, NotFound, Refused
from ...store.files import system
from ...store.files.small_files import read_file, replace_file
from ..order.order import check_names

FILE = "cluster.json"
LOOPBACK, PORT, NODES, SPACE = "127.0.0.1", 4222, 3, "team"
LAST_PORT, ROUTES = 63000, 2000
"""The highest port of a first server, and the port for the other servers, less that for machines."""
SYSTEM = "system"
"""The user who looks at the servers."""
_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.:")


class ClusterRecord(Record):
    """``name`` is the first space, which names the cluster. ``hosts`` has one for each server; ``port`` is the first's.
    ``spaces`` has the machines of each."""

    name: str
    hosts: tuple[str, ...]
    port: int
    spaces: dict[str, tuple[str, ...]]


class ClusterChange(Record):
    """The words of the person. None, or nothing, leaves it as it was. ``removed`` are machines that lose access."""

    directory: str
    space: str | None
    machines: tuple[str, ...]
    removed: tuple[str, ...]
    hosts: tuple[str, ...]
    nodes: int | None
    port: int | None


def load_record(directory: str) -> ClusterRecord | None:
    """Return what the directory's files are for; None if there are none. Raises ``BadData`` for another form."""
    path = system.join(directory, FILE)
    if (text := read_file(path)) is None:
        if read_file(system.join(directory, "1", "server.conf")) is None:
            return None
        hint = f"put it back; or move {typed(system.join(directory, '1'))} away, and name all machines"
        raise BadData(f"record of the cluster is not there: {path}", hint)
    found = codec.parse(text)
    try:
        if isinstance(found, BadLine):
            raise TypeError
        spaces = {str(space): tuple(map(str, machines)) for space, machines in found["spaces"].items()}
        known = ClusterRecord(str(found["name"]), tuple(map(str, found["hosts"])), int(found["port"]), spaces)
        _check_names(known)
        return known
    except (KeyError, TypeError, ValueError, AttributeError, Malformed):
        raise BadData(f"record of the cluster has another form: {path}", "put back what it was") from None


def save_record(directory: str, known: ClusterRecord) -> None:
    system.make_directory(directory)
    value = {**known.__dict__, "hosts": list(known.hosts), "spaces": {k: list(v) for k, v in known.spaces.items()}}
    replace_file(system.join(directory, FILE), (codec.dumps(value) + "\n").encode())


def change_record(known: ClusterRecord | None, change: ClusterChange) -> ClusterRecord:
    """Return the record with a change; raise ``Refused`` if a machine or a server would be left out."""
    spaces = {} if known is None else dict(known.spaces)
    space = change.space or (SPACE if known is None else next(iter(spaces)))
    if change.space is None and len(spaces) > 1 and (change.machines or change.removed):
        raise Malformed(f"space is not named, and the cluster has {', '.join(spaces)}", "name it: --space NAME")
    spaces[space] = _changed_machines(spaces.get(space, ()), space, change)
    found = ClusterRecord(
        space if known is None else known.name,
        _changed_hosts(known, change),
        change.port or (PORT if known is None else known.port),
        spaces,
    )
    _check_names(found)
    return found


def _changed_machines(there: tuple[str, ...], space: str, change: ClusterChange) -> tuple[str, ...]:
    """Return the machines of a space with a change: those that were there come first."""
    check_names(space, *change.machines)
    if both := sorted({*change.machines} & {*change.removed}):
        raise Malformed(f"machine is named, and removed: {both[0]}", "leave one of both out")
    for one in change.removed:
        if one not in there:
            raise NotFound(f"machine is not in the space {space}: {one}", f"these are: {', '.join(there) or 'none'}")
    stay = [one for one in there if one not in change.removed]
    found = tuple(dict.fromkeys([*stay, *change.machines]))
    if change.machines and (lost := [one for one in stay if one not in change.machines]):
        words = " ".join(f"--machine {shlex.quote(one)}" for one in found)
        all_of_them = f"agent-mailbox engine config --into {shlex.quote(change.directory)} --space {space} {words}"
        raise Refused(
            f"machines would lose their access to {space}: {', '.join(lost)}",
            f"`{all_of_them}` keeps all; --remove {lost[0]} takes one away",
        )
    if not found:
        raise Malformed(f"cluster has no machine for the space {space}", "name each that may join: --machine NAME")
    return found


def _changed_hosts(known: ClusterRecord | None, change: ClusterChange) -> tuple[str, ...]:
    """Return the hosts of the servers; without ``--host`` those that there were, or this one."""
    before = () if known is None else known.hosts
    nodes = change.nodes or len(before) or NODES
    if nodes < len(before) or (len(before) == 1 and nodes > 1):
        raise Refused(
            f"cluster has {len(before)} servers, with the mail on them: {nodes} cannot take their place",
            "write another cluster: --into DIR",
        )
    hosts = change.hosts or (before if nodes == len(before) else ())
    if not hosts and {*before} <= {LOOPBACK} and (before or known is None):
        hosts = (LOOPBACK,) * nodes
    if len(hosts) != nodes:
        raise Malformed(f"hosts are not as many as the servers: {len(hosts)} for {nodes}", "give --host for each")
    return hosts


def _check_names(known: ClusterRecord) -> None:
    """Raise ``Malformed`` for a name that could say something else in a server's configuration."""
    machines = [one for of_space in known.spaces.values() for one in of_space]
    check_names(known.name, *known.spaces, *machines)
    if SYSTEM in machines:
        raise Malformed(f"name is that of the servers' own user: {SYSTEM}", "choose another")
    for host in known.hosts:
        if not _HOST.issuperset(host) or not _is_host(host):
            what = f"host is no name and no address: {host}"
            raise Malformed(what, "write it as in server-1.example, or 2001:db8::1")
    if not 0 < known.port <= LAST_PORT:
        raise Malformed(f"port is not from 1 to {LAST_PORT}: {known.port}", "choose another: --port N")


def _is_host(text: str) -> bool:
    if ":" not in text:
        return all(label and label.strip("-") == label for label in text.split("."))
    try:
        return bool(ip_address(text))
    except ValueError:
        return False
