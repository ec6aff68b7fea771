"""The files that a cluster of NATS servers starts with, and those with which machines join its space.

Belongs here: their content and their places, and what each machine may do there. Nothing here talks to a server.

    DIR/1/server.conf, server.pem, server.key, authority.pem    one directory a server, to be copied to its host
    DIR/machines/NAME                                           the credential of one machine
    DIR/system                                                  the credential with which ``engine doctor`` looks
    DIR/keeper                                                  the one with which ``engine purge`` removes
    DIR/authority.pem, authority.key                            the authority of the servers' certificates

A machine may publish below ``mbx.SPACE.MACHINE`` alone, and neither remove nor change what is there. So a record's
subject proves its machine. Secrets that are there are kept: to add a machine, write the files again.
"""

from __future__ import annotations

import secrets
import shlex
from string import Template
from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import BadData, Malformed
from ..store import system
from ..store.custody import content
from ..store.order import is_machine
from ..store.small_files import replace_file
from . import server_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOOPBACK, PORT = "127.0.0.1", 4222
_ROUTES = 2000
"""The port for the other servers, less that for machines."""
_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.:")
_SERVER = Template("""\
# Written by `agent-mailbox engine config`. Start the server in this directory: nats-server -c server.conf
server_name: "$space-$number"
listen: "$listen:$port"
max_payload: 1MB
tls { cert_file: "server.pem", key_file: "server.key", timeout: 5 }
jetstream { store_dir: "store", sync_interval: always }
system_account: SYSTEM
accounts {
  SYSTEM { users: [ { user: "system", password: "$system" } ] }
  MAILBOX {
    jetstream: enabled
    users: [
      { user: "KEEPER", password: "$keeper", permissions: {
        publish: [ "$$JS.API.STREAM.PURGE.MBX_$space", "$$JS.API.STREAM.MSG.DELETE.MBX_$space" ]
        subscribe: [ "_INBOX.KEEPER.>" ] } },
$machines
    ]
  }
}
""")
_MACHINE = Template("""\
      { user: "$machine", password: "$password", permissions: {
        publish: [ "mbx.$space.$machine.>", "mbxf.$space.$machine.>", "mbxlive.$space.$machine", $calls ]
        subscribe: [ "_INBOX.$machine.>", "mbx.$space.>", "mbxlive.$space.*" ] } }""")
_CALLS = ("STREAM.INFO", "STREAM.CREATE", "STREAM.MSG.GET", "DIRECT.GET")
"""The calls of JetStream that a machine needs. Its ``CREATE`` changes nothing that is there."""
_NEIGHBOURS = Template("""\
cluster {
  name: "$space"
  listen: "$listen:$port"
  authorization { user: "route", password: "$route", timeout: 5 }
  tls { cert_file: "server.pem", key_file: "server.key", ca_file: "authority.pem", verify: true, timeout: 5 }
  routes: [ $routes ]
}
""")


class ClusterFiles(Record):
    """The files are written: the servers' address, the commands that start them, and those with which machines join."""

    directory: str
    url: str
    start: tuple[str, ...]
    join: tuple[str, ...]


def write(directory: str, space: str, hosts: Sequence[str], machines: Sequence[str], port: int = PORT) -> ClusterFiles:
    """Write the files of a server on each host, and the credential of each machine.

    Raises ``Malformed`` for a name of another form, ``BadData`` for a secret that cannot be read, ``StorageFailed``."""
    for name in (space, *machines):
        if not is_machine(name):
            raise Malformed(f"name is not lower-case letters, digits and -: {name}", "choose another")
    for host in hosts:
        if not host or not _HOST.issuperset(host):
            raise Malformed(f"host is no name and no address: {host}", "write it as in server-1.example")
    places = [(host, port + list(hosts[:n]).count(host)) for n, host in enumerate(hosts)]
    words = {
        "system": _word(system.join(directory, "system"), "system"),
        "keeper": _word(system.join(directory, "keeper"), "KEEPER"),
        "route": _word(system.join(directory, "route"), "route"),
        "machines": ",\n".join(_user(directory, space, machine) for machine in machines),
    }
    key = _kept(system.join(directory, "authority.key"), server_certificates.new_key)
    authority = _kept(system.join(directory, "authority.pem"), lambda: _of_key(server_certificates.authority, key))
    for number, (host, _) in enumerate(places, 1):
        home = system.join(directory, str(number))
        own = _kept(system.join(home, "server.key"), server_certificates.new_key)
        replace_file(system.join(home, "server.pem"), _of_key(server_certificates.of_server, own, host, key))
        replace_file(system.join(home, "authority.pem"), authority)
        replace_file(system.join(home, "server.conf"), _configuration(places, number, space, words).encode())
    url = ",".join(f"tls://{_in_url(host)}:{at}" for host, at in places)
    start = (
        f"(cd {shlex.quote(system.join(directory, str(n + 1)))} && nats-server -c server.conf)"
        for n in range(len(places))
    )
    return ClusterFiles(directory, url, tuple(start), tuple(_join(directory, url, space, one) for one in machines))


def _configuration(places: Sequence[tuple[str, int]], number: int, space: str, words: dict[str, str]) -> str:
    """Return the configuration of the server with that number, from 1 on."""
    host, port = places[number - 1]
    listen = LOOPBACK if host == LOOPBACK else "0.0.0.0"
    text = _SERVER.substitute(words, space=space, number=number, listen=listen, port=port)
    if len(places) == 1:
        return text
    routes = (f'"nats://route:{words["route"]}@{_in_url(to)}:{at + _ROUTES}"' for to, at in places)
    return text + _NEIGHBOURS.substitute(
        words, space=space, listen=listen, port=port + _ROUTES, routes=", ".join(routes)
    )


def _user(directory: str, space: str, machine: str) -> str:
    calls = ", ".join(f'"$JS.API.{call}.{kind}_{space}"' for kind in ("MBX", "MBXF") for call in _CALLS)
    word = _word(system.join(directory, "machines", machine), machine)
    return _MACHINE.substitute(machine=machine, password=word, space=space, calls=calls)


def _join(directory: str, url: str, space: str, machine: str) -> str:
    files = {"credential": system.join("machines", machine), "authority": "authority.pem"}
    options = " ".join(f"--{name} {shlex.quote(system.join(directory, path))}" for name, path in files.items())
    return f"agent-mailbox engine join {url} --space {space} --machine {machine} {options}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _word(path: str, user: str) -> str:
    """Return the password of a user's credential; make one if there is none."""
    found = _kept(path, lambda: f"{user} {secrets.token_hex(32)}\n".encode()).decode("utf-8", "replace").split()
    if len(found) != 2 or found[0] != user or not found[1].isalnum():
        raise BadData(f"credential has another form: {path}", "move it away, and write the files again")
    return found[1]


def _kept(path: str, make: Callable[[], bytes]) -> bytes:
    """Return a file's content; make it if there is none."""
    found = content(path)
    if found is None:
        found = make()
        system.make_directory(system.dirname(path))
        replace_file(path, found)
    return found


def _of_key(make: Callable[..., bytes], *given: bytes | str) -> bytes:
    try:
        return make(*given)
    except ValueError as error:
        raise BadData(
            f"key of the servers cannot be read: {error}", "move the files away, and write them again"
        ) from None
