"""The files that a cluster of NATS servers starts with, and those with which machines join its space.

Belongs here: their content and their places, who signs the servers' certificates, and what each machine may do there.
The authority's key is the person's: whoever has it can stand in for a server. Nothing here talks to a server.

    DIR/1/server.conf, server.pem, server.key, authority.pem    one directory a server, to be copied to its host
    DIR/machines/NAME, DIR/keeper                               of the first space: the credential of each machine, and
                                                                that with which ``engine purge`` removes
    DIR/spaces/SPACE/machines/NAME, …/keeper                    the same of each other space
    DIR/system                                                  the credential with which ``engine doctor`` looks
    DIR/authority.pem, authority.key                            the authority of the servers' certificates
    DIR/cluster.json                                            what these are for (``cluster_record``)

A machine may publish below ``mbx.SPACE.MACHINE`` alone, and neither remove nor change what is there
(``server_accounts``). So a record's subject proves its machine. Secrets that are there are kept: to add a machine,
write the files again.
"""

from __future__ import annotations

import secrets
import shlex
from datetime import UTC, datetime
from string import Template
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ...core.records import Record
from ...core.text import typed
from ...errors import BadData, Refused
from ...identity import tls_certificates as certificates
from ...store.files import system
from ...store.files.small_files import read_file, remove_file, replace_file
from . import cluster_record, server_accounts
from .cluster_record import LOOPBACK, ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .cluster_record import ClusterChange, ClusterRecord

_NAME = "agent-mailbox engine"
_SERVER = Template("""\
# Written by `agent-mailbox engine config`. Start the server in this directory: nats-server -c server.conf
server_name: "$name-$number"
listen: "$listen:$port"
max_payload: 1MB
tls { cert_file: "server.pem", key_file: "server.key", timeout: 5 }
jetstream { store_dir: "store", sync_interval: always }
system_account: SYSTEM
accounts {
$accounts}
""")
_NEIGHBOURS = Template("""\
cluster {
  name: "$name"
  listen: "$listen:$port"
  authorization { user: "route", password: "$route", timeout: 5 }
  tls { cert_file: "server.pem", key_file: "server.key", ca_file: "authority.pem", verify: true, timeout: 5 }
  routes: [ $routes ]
}
""")


class ClusterFiles(Record):
    """The files are written: the servers' address, the commands that start them, and the authority's certificate.

    ``machines``: the space, the name and the credential of each."""

    url: str
    start: tuple[str, ...]
    authority: str
    machines: tuple[tuple[str, str, str], ...]


def write_cluster(change: ClusterChange) -> ClusterFiles:
    """Write the files of a server on each host, and the credential of each machine.

    Raises what ``cluster_record.change_record`` raises, ``Refused`` for a secret that is gone, ``BadData`` for one that
    cannot be read, ``StorageFailed``."""
    directory = change.directory
    before = cluster_record.load_record(directory)
    found = cluster_record.change_record(before, change)
    accounts = _accounts_text(directory, before, found)
    route = _read_or_make_password(system.join(directory, "route"), "route", before is not None)
    key_file, certificate = (system.join(directory, f"authority.{kind}") for kind in ("key", "pem"))
    key = _read_or_make_file(key_file, new_key, before is not None)
    signer = _load_private_key(key, key_file)
    authority = _read_or_make_file(certificate, lambda: authority_certificate(key))
    _check_authority(authority, certificate, signer)
    cluster_record.save_record(directory, found)  # behind the secrets, which it promises, and ahead of what it says
    places = [(host, found.port + list(found.hosts[:n]).count(host)) for n, host in enumerate(found.hosts)]
    for number, (host, _) in enumerate(places, 1):
        home = system.join(directory, str(number))
        path = system.join(home, "server.key")
        own = _read_or_make_file(path, new_key)
        _load_private_key(own, path)
        replace_file(system.join(home, "server.pem"), of_server(own, host, key))
        replace_file(system.join(home, "authority.pem"), authority)
        text = _server_configuration(places, number, found.name, accounts, route)
        replace_file(system.join(home, "server.conf"), text.encode())
    space = change.space or next(iter(found.spaces))
    for machine in change.removed:
        remove_file(_credential_path(directory, found, space, "machines", machine))
    url = ",".join(f"tls://{_in_url(host)}:{at}" for host, at in places)
    start = (
        f"(cd {shlex.quote(system.join(directory, str(n + 1)))} && nats-server -c server.conf)"
        for n in range(len(places))
    )
    spaces = found.spaces if change.space is None else {space: found.spaces[space]}
    users = ((space, one) for space, machines in spaces.items() for one in machines)
    there = ((*user, _credential_path(directory, found, user[0], "machines", user[1])) for user in users)
    return ClusterFiles(url, tuple(start), certificate, tuple(there))


def _accounts_text(directory: str, before: ClusterRecord | None, found: ClusterRecord) -> str:
    """Return the servers' accounts; make the credentials that are missing."""
    known = {} if before is None else before.spaces
    words = _read_or_make_password(system.join(directory, "system"), server_accounts.SYSTEM, before is not None)
    text = server_accounts.system_accounts(words)
    for space, machines in found.spaces.items():
        keeper = server_accounts.keeper_of(found.name, space)
        path = _credential_path(directory, found, space, "keeper")
        passwords = {keeper: _read_or_make_password(path, keeper, space in known)}
        for one in machines:
            user = server_accounts.user_of(found.name, space, one)
            is_known = one in known.get(space, ())
            path = _credential_path(directory, found, space, "machines", one)
            passwords[user] = _read_or_make_password(path, user, is_known)
        text += server_accounts.space_accounts(found.name, space, machines, passwords.__getitem__)
    return text


def _server_configuration(places: Sequence[tuple[str, int]], number: int, name: str, accounts: str, route: str) -> str:
    """Return the configuration of the server with that number, from 1 on."""
    host, port = places[number - 1]
    listen = _in_url(host) if host in (LOOPBACK, "::1") else "[::]" if ":" in host else "0.0.0.0"
    text = _SERVER.substitute(name=name, number=number, listen=listen, port=port, accounts=accounts)
    if len(places) == 1:
        return text
    routes = ", ".join(f'"nats://route:{route}@{_in_url(to)}:{at + ROUTES}"' for to, at in places)
    return text + _NEIGHBOURS.substitute(name=name, listen=listen, port=port + ROUTES, route=route, routes=routes)


def _credential_path(directory: str, found: ClusterRecord, space: str, *user: str) -> str:
    """Return where a credential of a space is: ``user`` is the keeper, or one of the machines."""
    return system.join(directory, *(() if space == found.name else ("spaces", space)), *user)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _read_or_make_password(path: str, user: str, is_known: bool) -> str:
    """Return the password of a user's credential; make one if there is none, unless the servers know one."""
    made = _read_or_make_file(path, lambda: f"{user} {secrets.token_hex(32)}\n".encode(), is_known)
    found = made.decode("utf-8", "replace").split()
    if len(found) != 2 or found[0] != user or not found[1].isalnum():
        raise BadData(f"credential has another form: {path}", "put back what it was")
    return found[1]


def _read_or_make_file(path: str, make: Callable[[], bytes], is_known: bool = False) -> bytes:
    """Return a file's content; make it if there is none. ``is_known``: others rely on what it was."""
    found = read_file(path)
    if found is None and is_known:
        raise Refused(f"secret of the cluster is not there: {path}", "put it back, or `--remove` its machine first")
    if found is None:
        found = make()
        system.make_directory(system.dirname(path))
        replace_file(path, found)
    return found


def new_key() -> bytes:
    """Return a new private key, in PEM."""
    return certificates.key_text(certificates.new_key())


def authority_certificate(key: bytes) -> bytes:
    """Return the certificate of the authority that has this key, in PEM."""
    own = _load_private_key(key)
    return certificates.pem_of(
        certificates.make_authority(own.public_key(), _NAME, _end_of_validity(), own, signs_lists=True)
    )


def of_server(key: bytes, host: str, by: bytes) -> bytes:
    """Return the certificate of a server with this key at a host (a name or an address), signed by an authority's."""
    signer = _load_private_key(by)
    own, public = _load_private_key(key).public_key(), signer.public_key()
    made = certificates.make_for_host(
        own, host, host[:64], _end_of_validity(), signer, by=_NAME, authority=public, is_client=True
    )
    return certificates.pem_of(made)


def _end_of_validity() -> datetime:
    return datetime.now(UTC) + certificates.YEARS


def _load_private_key(pem: bytes, path: str = "") -> ec.EllipticCurvePrivateKey:
    """Return a key; raise ``BadData`` for a file with another one than ours."""
    try:
        found = serialization.load_pem_private_key(pem, None)
    except TypeError:
        raise BadData(
            f"key of the servers has a password: {path}",
            f"run `openssl pkey -in {typed(path)} -out {typed(path)}.open && mv {typed(path)}.open {typed(path)}`",
        ) from None
    except ValueError:
        found = None
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        what = f"key of the servers is none of an elliptic curve, in PEM: {path}"
        raise BadData(what, "put back what it was; without a server.key this command makes another")
    return found


def _check_authority(pem: bytes, path: str, key: ec.EllipticCurvePrivateKey) -> None:
    """Raise ``BadData`` for a certificate by which no machine would believe the servers."""
    try:
        found = x509.load_pem_x509_certificate(pem)
        is_ours, is_over = found.public_key() == key.public_key(), found.not_valid_after_utc < datetime.now(UTC)
    except ValueError:
        is_ours = is_over = False
    if is_ours and not is_over:
        return
    why = "has ended" if is_over else "is not that of authority.key"
    hint = f"run `mv {typed(path)} {typed(path)}.away`, then this again, and give each machine the new one"
    raise BadData(f"authority's certificate {why}: {path}", hint)
