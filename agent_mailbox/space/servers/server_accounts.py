"""The accounts in the configuration of a cluster's servers: who reaches the records of a space, and how far.

Belongs here: their text. NATS checks the subject of a publication, and not the one that it names for the answer.
JetStream answers there with the rights of the account that keeps the records. So nobody logs in to that account:

    MAILBOX, MAILBOX_SPACE    keep the records of the cluster's first space, and of another one; have no user
    MACHINE_SPACE_MACHINE     a machine: what it publishes goes there as a service, and so do the calls that read
    KEEPER, KEEPER_SPACE      who removes records: two calls
    LOOKER                    who asks each server for its settings: one call, of the SYSTEM account

An answer to any subject stays in the account of who asked. There it reaches what that one may ask for anyway. Machines
hear of new records as streams of each other's accounts, since no answer goes that way.
"""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SYSTEM, KEEPER = "system", "KEEPER"
"""The users who look at the servers, and who remove records."""
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
_STORE = Template("""\
  $account {
    jetstream: enabled
    exports: [$exports ]
  }
""")


def user_of(first: str, space: str, machine: str) -> str:
    """Return a machine's user; ``first`` is the cluster's first space, whose users have the machines' names."""
    return machine if space == first else f"{space}_{machine}"


def keeper_of(first: str, space: str) -> str:
    """Return the user, and the account, of who removes records of a space."""
    return KEEPER if space == first else f"{KEEPER}_{space}"


def system_accounts(password: str) -> str:
    """Return the accounts of the servers themselves, and of who looks at them."""
    service = f'{{ service: {{ account: SYSTEM, subject: "{_LOOK}" }} }}'
    publish = [_LOOK, f"mbxapi.{_INFO}"]
    looker = _user_account("LOOKER", SYSTEM, password, publish=publish, imports=[service])
    return f"  SYSTEM {{ exports: [ {_service_export(_LOOK, ['LOOKER'], 'response: stream, ')} ] }}\n{looker}"


def space_accounts(first: str, space: str, machines: Sequence[str], password: Callable[[str], str]) -> str:
    """Return the accounts of a space; ``password`` gives that of a user."""
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
        *(_service_export(own, [_account_name(space, one)]) for one in machines for own in _own_subjects(space, one)),
    ]
    found = [_STORE.substitute(account=store, exports=_indent_rows(exports))]
    found.append(_user_account(keeper, keeper, password(keeper), store, [_INFO, *removals]))
    for machine in machines:
        own, others = _own_subjects(space, machine), [one for one in machines if one != machine]
        to = ", ".join(_account_name(space, one) for one in others)
        user = user_of(first, space, machine)
        made = _user_account(
            _account_name(space, machine),
            user,
            password(user),
            store,
            [_INFO, *calls, several],
            publish=[*own, _word_subject(space, machine)],
            subscribe=[f"mbx.{space}.>", _word_subject(space, "*")],
            exports=[
                f'{{ stream: "{said}", accounts: [ {to} ] }}' for said in _heard_subjects(space, machine) if others
            ],
            imports=[
                *(f'{{ service: {{ account: {store}, subject: "{one}" }} }}' for one in own),
                *(
                    f'{{ stream: {{ account: {_account_name(space, one)}, subject: "{said}" }} }}'
                    for one in others
                    for said in _heard_subjects(space, one)
                ),
            ],
        )
        found.append(made)
    return "".join(found)


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
        publish=_quote_subjects([*publish, *(f"mbxapi.{one}" for one in calls)]),
        subscribe=_quote_subjects([f"_INBOX.{user}.>", *subscribe]),
        exports=_indent_rows(exports),
        imports=_indent_rows([*taken, *imports]),
    )


def _account_name(space: str, machine: str) -> str:
    return f"MACHINE_{space}_{machine}"


def _own_subjects(space: str, machine: str) -> list[str]:
    """Return the subjects on which a machine publishes what is kept."""
    return [f"mbx.{space}.{machine}.>", f"mbxf.{space}.{machine}.>"]


def _word_subject(space: str, machine: str) -> str:
    return f"mbxlive.{space}.{machine}"


def _heard_subjects(space: str, machine: str) -> list[str]:
    """Return the subjects on which the others listen to a machine."""
    return [f"mbx.{space}.{machine}.>", _word_subject(space, machine)]


def _service_export(subject: str, accounts: Iterable[str], how: str = "") -> str:
    return f'{{ service: "{subject}", {how}accounts: [ {", ".join(accounts)} ] }}'


def _quote_subjects(subjects: Iterable[str]) -> str:
    return ", ".join(f'"{one}"' for one in subjects)


def _indent_rows(rows: Iterable[str]) -> str:
    return "".join(f"\n      {row}" for row in rows)
