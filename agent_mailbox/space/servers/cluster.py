"""The files that a cluster of NATS servers starts with, and those with which machines join its space.

Belongs here: their content and their places, who signs the servers' certificates, and what each machine may do there.

    DIR/1/server.conf, server.pem, server.key, authority.pem    one directory a server, to be copied to its host
    DIR/machines/NAME, DIR/keeper                               of the first space: the credential of each machine, and
                                                                that with which ``engine purge`` removes
    DIR/spaces/SPACE/machines/NAME, …/keeper                    the same of each other space
    DIR/system                                                  the credential with which ``engine doctor`` looks
    DIR/authority.pem, authority.key                            the authority of the servers' certificates
    DIR/cluster.json                                            what these are for (``cluster_record``)

A machine may publish below ``mbx.SPACE.MACHINE`` alone, and neither remove nor change what is there. So a record's
subject proves its machine. Secrets that are there are kept: to add a machine, write the files again.

**Accounts.** NATS checks the subject of a publication, and not the one that it names for the answer. JetStream answers
there with the rights of the account that keeps the records. So nobody logs in to that account:

    MAILBOX, MAILBOX_SPACE    keep the records of the cluster's first space, and of another one; have no user
    MACHINE_SPACE_MACHINE     a machine: what it publishes goes there as a service, and so do the calls that read
    KEEPER, KEEPER_SPACE      who removes records: two calls
    LOOKER                    who asks each server for its settings: one call, of the SYSTEM account

An answer to any subject stays in the account of who asked. Machines hear of new records as streams of each other's
accounts, since no answer goes that way.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from string import Template
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ...core.records import Record
from ...core.text import typed
from ...errors import BadData
from ...identity import tls_certificates as certificates
from ...store.files import system
from ...store.files.small_files import remove_file, replace_file
from . import cluster_record
from .cluster_record import LOOPBACK, ROUTES, SYSTEM
from .first_server import read_or_make_file, read_or_make_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
PrivateKey = ec.EllipticCurvePrivateKey
KEEPER = "KEEPER"
"""The user who removes records."""
_LOOK = "$SYS.REQ.SERVER.PING.VARZ"
_INFO = "INFO"
"""The call by which a connection finds out that there are such accounts."""
_CALLS = ("STREAM.INFO", "STREAM.CREATE", "STREAM.MSG.GET")
"""The calls of JetStream that a machine needs. Its ``CREATE`` changes nothing that is there."""
_SEVERAL = "DIRECT.GET"
"""One that is answered by several messages."""
_REMOVE = ("STREAM.PURGE", "STREAM.MSG.DELETE")
_ACCOUNT = Template("""\
  $account {
    users: [ { user: "$user", password: "$password", permissions: {
      publish: [ $publish ]
      subscribe: [ $subscribe ] } } ]
    exports: [$exports ]
    imports: [$imports ]
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
    """Write the files of a server on each host, and the credential of each machine; see ``change_record``."""
    directory = change.directory
    before = cluster_record.load_record(directory)
    found = cluster_record.change_record(before, change)
    accounts = _accounts_text(directory, before, found)
    route = read_or_make_password(system.join(directory, "route"), "route ", before is not None)
    key_file, certificate = (system.join(directory, f"authority.{kind}") for kind in ("key", "pem"))
    key = _read_or_make_key(key_file, before is not None)
    authority = read_or_make_file(certificate, lambda: authority_certificate(key))
    _check_authority(authority, certificate, key)
    cluster_record.save_record(directory, found)  # behind the secrets, which it promises, and ahead of what it says
    places = [(host, found.port + list(found.hosts[:n]).count(host)) for n, host in enumerate(found.hosts)]
    for number, (host, _) in enumerate(places, 1):
        home = system.join(directory, str(number))
        own = _read_or_make_key(system.join(home, "server.key"))
        replace_file(system.join(home, "server.pem"), of_server(own, host, key))
        replace_file(system.join(home, "authority.pem"), authority)
        text = _server_configuration(places, number, found.name, accounts, route)
        replace_file(system.join(home, "server.conf"), text.encode())
    space = change.space or next(iter(found.spaces))
    for machine in change.removed:
        remove_file(_credential_path(directory, found, space, "machines", machine))
    url = ",".join(f"tls://{_in_url(host)}:{at}" for host, at in places)
    homes = (shlex.quote(system.join(directory, str(n + 1))) for n in range(len(places)))
    start = (f"(cd {home} && nats-server -c server.conf)" for home in homes)
    spaces = found.spaces if change.space is None else {space: found.spaces[space]}
    users = ((space, one) for space, machines in spaces.items() for one in machines)
    there = ((*user, _credential_path(directory, found, user[0], "machines", user[1])) for user in users)
    return ClusterFiles(url, tuple(start), certificate, tuple(there))


def _accounts_text(directory: str, before: ClusterRecord | None, found: ClusterRecord) -> str:
    """Return the servers' accounts; make the credentials that are missing."""
    known = {} if before is None else before.spaces
    words = read_or_make_password(system.join(directory, "system"), f"{SYSTEM} ", before is not None)
    service = f'{{ service: {{ account: SYSTEM, subject: "{_LOOK}" }} }}'
    text = f"  SYSTEM {{ exports: [ {_service_export(_LOOK, ['LOOKER'], 'response: stream, ')} ] }}\n"
    text += _user_account("LOOKER", SYSTEM, words, publish=[_LOOK, f"mbxapi.{_INFO}"], imports=[service])
    for space, machines in found.spaces.items():
        keeper = keeper_of(found.name, space)
        path = _credential_path(directory, found, space, "keeper")
        passwords = {keeper: read_or_make_password(path, f"{keeper} ", space in known)}
        for one in machines:
            user = user_of(found.name, space, one)
            is_known = one in known.get(space, ())
            path = _credential_path(directory, found, space, "machines", one)
            passwords[user] = read_or_make_password(path, f"{user} ", is_known)
        text += space_accounts(found.name, space, machines, passwords.__getitem__)
    return text


def _server_configuration(places: Sequence[tuple[str, int]], number: int, name: str, accounts: str, route: str) -> str:
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


def authority_certificate(key: PrivateKey) -> bytes:
    made = certificates.make_authority(key.public_key(), _NAME, _end_of_validity(), key, signs_lists=True)
    return certificates.pem_of(made)


def of_server(own: PrivateKey, host: str, by: PrivateKey) -> bytes:
    """Return the certificate of a server with this key at a host (a name or an address), signed by an authority's."""
    made = certificates.make_for_host(
        own.public_key(), host, host[:64], _end_of_validity(), by, by=_NAME, authority=by.public_key(), is_client=True
    )
    return certificates.pem_of(made)


def _end_of_validity() -> datetime:
    return datetime.now(UTC) + certificates.YEARS


def _read_or_make_key(path: str, is_known: bool = False) -> PrivateKey:
    """Return the key in a file; make it if there is none. Raises ``BadData`` for another one than ours."""
    pem = read_or_make_file(path, lambda: certificates.key_text(certificates.new_key()), is_known)
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


def _check_authority(pem: bytes, path: str, key: PrivateKey) -> None:
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


def user_of(first: str, space: str, machine: str) -> str:
    """Return a machine's user; ``first`` is the cluster's first space, whose users have the machines' names."""
    return machine if space == first else f"{space}_{machine}"


def keeper_of(first: str, space: str) -> str:
    return KEEPER if space == first else f"{KEEPER}_{space}"


def space_accounts(first: str, space: str, machines: Sequence[str], password: Callable[[str], str]) -> str:
    store = "MAILBOX" if space == first else f"MAILBOX_{space}"
    keeper = keeper_of(first, space)
    all_of_them = [_account_name(space, machine) for machine in machines]
    calls = [f"{call}.{kind}_{space}" for kind in ("MBX", "MBXF") for call in _CALLS]
    several = f"{_SEVERAL}.MBX_{space}"
    removals = [f"{call}.MBX_{space}" for call in _REMOVE]
    exports = [
        _service_export(f"$JS.API.{_INFO}", [*all_of_them, keeper]),
        *(_service_export(f"$JS.API.{call}", all_of_them) for call in calls),
        _service_export(f"$JS.API.{several}", all_of_them, "response: stream, "),
        *(_service_export(f"$JS.API.{call}", [keeper]) for call in removals),
        *(
            _service_export(own, [_account_name(space, one)])
            for one in machines
            for own in _own_subjects(space, one)[:2]
        ),
    ]
    text = f"  {store} {{\n    jetstream: enabled\n    exports: [{_indent_rows(exports)} ]\n  }}\n"
    text += _user_account(keeper, keeper, password(keeper), store, [_INFO, *removals])
    for machine in machines:
        own, others = _own_subjects(space, machine), [one for one in machines if one != machine]
        to = ", ".join(_account_name(space, one) for one in others)
        heard = [(_account_name(space, one), said) for one in others for said in _own_subjects(space, one)[::2]]
        user = user_of(first, space, machine)
        text += _user_account(
            _account_name(space, machine),
            user,
            password(user),
            store,
            [_INFO, *calls, several],
            publish=own,
            subscribe=[f"mbx.{space}.>", f"mbxlive.{space}.*"],
            exports=[f'{{ stream: "{one}", accounts: [ {to} ] }}' for one in own[::2] if others],
            imports=[
                *(f'{{ service: {{ account: {store}, subject: "{one}" }} }}' for one in own[:2]),
                *(f'{{ stream: {{ account: {one}, subject: "{said}" }} }}' for one, said in heard),
            ],
        )
    return text


def _user_account(
    account: str,
    user: str,
    password: str,
    store: str = "",
    calls: Sequence[str] = (),
    *,
    publish: Sequence[str] = (),
    subscribe: Sequence[str] = (),
    exports: Sequence[str] = (),
    imports: Sequence[str] = (),
) -> str:
    """Return an account with one user; ``calls`` are those of JetStream that it takes from the account ``store``."""
    taken = [f'{{ service: {{ account: {store}, subject: "$JS.API.{one}" }}, to: "mbxapi.{one}" }}' for one in calls]
    return _ACCOUNT.substitute(
        account=account,
        user=user,
        password=password,
        publish=", ".join(f'"{one}"' for one in (*publish, *(f"mbxapi.{one}" for one in calls))),
        subscribe=", ".join(f'"{one}"' for one in (f"_INBOX.{user}.>", *subscribe)),
        exports=_indent_rows(exports),
        imports=_indent_rows([*taken, *imports]),
    )


def _account_name(space: str, machine: str) -> str:
    return f"MACHINE_{space}_{machine}"


def _own_subjects(space: str, machine: str) -> list[str]:
    """Return the subjects on which a machine publishes: records and files, which are kept, and its word.

    The others listen to the first and the last."""
    return [f"mbx.{space}.{machine}.>", f"mbxf.{space}.{machine}.>", f"mbxlive.{space}.{machine}"]


def _service_export(subject: str, accounts: Iterable[str], how: str = "") -> str:
    return f'{{ service: "{subject}", {how}accounts: [ {", ".join(accounts)} ] }}'


def _indent_rows(rows: Iterable[str]) -> str:
    return "".join(f"\n      {row}" for row in rows)
