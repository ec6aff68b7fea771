"""What a credential of ``engine config`` may do on a real server: its own, however it asks for more.

The server runs by the written files, with two spaces, and some that nobody has joined yet. Every call of JetStream is
tried with every credential, straight, and through the subject on which the answer is to come.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_mailbox.errors import Refused
from agent_mailbox.space.nats import nats_order
from agent_mailbox.space.nats.connection import API, NatsConnection, Publication
from agent_mailbox.space.nats.nats_order import NatsOrder
from agent_mailbox.space.order.order import MESSAGES, ROSTER
from agent_mailbox.space.servers import cluster
from agent_mailbox.space.servers.cluster_record import ClusterChange
from tests.helpers import PATIENCE, until
from tests.night import NIGHT
from tests.ports import free_row

from .cluster_servers import makes_space
from .nats_server import started
from .opened_orders import open_nats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_mailbox.space.nats.nats_order import NatsOrder


DENIED = b"Permissions Violation for "


class Attacker:
    """A connection with a credential's rights."""

    def __init__(self, url: str, credential: str | None, authority: str | None, user: str) -> None:
        self.user = user
        self.connection = NatsConnection(url, credential, authority, PATIENCE)
        self.connection.publish_unanswered([])
        self.connection._api = API  # the subjects as they are given
        self.heard: list[bytes] = []

    def publish(self, subject: str, reply: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Publish, and have it answered anywhere."""
        words = self.connection._publication_bytes(Publication(subject, data, headers or {}), None)
        verb, rest = words.split(b" ", 1)
        self.connection._send_bytes(b"%s %s %s" % (verb, subject.encode(), reply.encode()) + rest[len(subject) :])

    def subscribe(self, subject: str, queue: str = "") -> None:
        self.connection._send_bytes(f"SUB {subject} {queue} 77\r\n".encode())

    def settle(self) -> list[bytes]:
        """Wait until the server has taken everything; return what it denied, as it names it.

        What it sent is in ``heard``: subjects."""
        denied = []
        self.connection._send_bytes(b"PING\r\n")
        while (line := self.connection._incoming_bytes().read_line(time.monotonic() + PATIENCE)) != b"PONG":
            words = line.split()
            if words[0] in (b"MSG", b"HMSG"):
                self.connection._read_message(words, time.monotonic() + PATIENCE)
                self.heard.append(words[1])
            elif line.startswith(b"-ERR"):
                assert DENIED in line, line
                denied.append(line.partition(DENIED)[2].strip(b"'"))
        return denied

    def end(self, calls: Iterable[tuple[str, bytes]]) -> None:
        """Close, once the servers have answered these calls: what it did before is done then, by those that lead.

        They answer several at once. To a record they answer once it is kept, in its sequence."""
        self.settle()
        self.connection.ask_each([Publication(subject, body) for subject, body in calls])
        self.close()

    def close(self) -> None:
        self.connection.close()


def settle(order: NatsOrder, calls: int = 20) -> None:
    """Wait until JetStream has done what it was asked, and both streams of the space have taken what came.

    It answers several calls at once. A stream takes one after the other, and refuses this for its expectation."""
    order.connection.ask_each([Publication(f"{API}INFO", b"")] * calls)
    late = {"Nats-Expected-Last-Sequence": "999999"}
    for kind in ("mbx", "mbxf"):
        (answer,) = order.connection.ask_each([Publication(f"{kind}.{order.space}.{order.machine}.late", b"", late)])
        assert b"wrong last sequence" in answer.data


def state(order: NatsOrder) -> dict[str, Any]:
    """What the two streams of a space are and have: all but what JetStream counts by itself, and ``late``."""
    found: dict[str, Any] = {}
    for stream in (order.stream, f"MBXF_{order.space}"):
        info = order.call_api(f"STREAM.INFO.{stream}", None)
        found[stream] = info["config"], info["state"]["first_seq"]
        asked = [b'{"seq":%d}' % seq for seq in range(1, info["state"]["last_seq"] + 1)]
        for seq, answer in enumerate(
            order.connection.ask_each([Publication(f"{API}STREAM.MSG.GET.{stream}", a) for a in asked])
        ):
            message = json.loads(answer.data).get("message")
            if message and not message["subject"].endswith(".late"):
                found[f"{stream} {seq}"] = message
    return found


def written(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The subjects of what was added to those streams; everything else must be as it was."""
    assert {key: (before[key], after.get(key)) for key in before if after.get(key) != before[key]} == {}
    return {after[key]["subject"] for key in after.keys() - before.keys()}


NODES = 3 if NIGHT else 1
"""A cluster takes three times as long."""
SPACES = {"team": ("north", "south"), "ops": ("east", "north")}
TAKEN = tuple(f"taken-{n}" for n in range(7))
"""Spaces whose first machine makes the streams as it likes."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CALLS = _words("""
INFO ACCOUNT.PURGE.MAILBOX ACCOUNT.STREAM.MOVE.MAILBOX.@ ACCOUNT.STREAM.CANCEL_MOVE.MAILBOX.@ META.LEADER.STEPDOWN
META.RESCUE SERVER.REMOVE SERVER.EVACUATE STREAM.NAMES STREAM.LIST STREAM.CREATE.@ STREAM.UPDATE.@ STREAM.INFO.@
STREAM.DELETE.@ STREAM.PURGE.@ STREAM.MSG.GET.@ STREAM.MSG.DELETE.@ STREAM.SNAPSHOT.@ STREAM.RESTORE.@
STREAM.LEADER.STEPDOWN.@ STREAM.PEER.REMOVE.@ STREAM.PEER.EVACUATE.@ STREAM.CREATE.other DIRECT.GET.@
DIRECT.GET.@.mbx.team.south.roster CONSUMER.CREATE.@ CONSUMER.CREATE.@.c CONSUMER.CREATE.@.c.mbx.team.>
CONSUMER.DURABLE.CREATE.@.c CONSUMER.NAMES.@ CONSUMER.LIST.@ CONSUMER.INFO.@.c CONSUMER.DELETE.@.c CONSUMER.PAUSE.@.c
CONSUMER.RESET.@.c CONSUMER.UNPIN.@.c CONSUMER.MSG.NEXT.@.c CONSUMER.LEADER.STEPDOWN.@.c CONSUMER.PEER.REMOVE.@.c
CONSUMER.PEER.EVACUATE.@.c
""")
STREAMS = tuple(f"{kind}_{space}" for kind in ("MBX", "MBXF") for space in SPACES)
ALL_CALLS = [
    f"{api}{call.replace('@', stream)}"
    for api in ("$JS.API.", "mbxapi.")
    for call in CALLS
    for stream in (STREAMS if "@" in call else STREAMS[:1])
]
CHANGING = [call for call in ALL_CALLS if not any(word in call for word in ("INFO", "NAMES", "LIST", ".GET"))]
SUBJECTS = _words("""
mbx.team.south.roster mbx.team.south.messages.x mbx.team.newcomer.joined mbx.ops.north.roster mbx.ops.newcomer.joined
mbxf.team.south.d.0 mbxf.ops.north.d.0 mbxlive.team.south mbxlive.ops.north _INBOX.south.x _INBOX.ops_north.x
$JS.ACK.MBX_team.c.1.1.1.1.1 $JS.ACK.MBX_team.c $JS.FC.MBX_team.c.x $JS.SNAPSHOT.RESTORE.MBX_team.x
$JS.SNAPSHOT.ACK.MBX_team.x $JS.EVENT.ADVISORY.API $SYS.REQ.USER.INFO $SYS.REQ.SERVER.PING.VARZ
$SYS.REQ.SERVER.PING.CONNZ $SYS.REQ.ACCOUNT.MAILBOX.CONNZ $SYS.ACCOUNT.MAILBOX.DISCONNECT $KV.b.key $O.b.C.x $O.b.M.x
_R_.x mbx.team.> >
""")
LISTENED = _words("""
> mbx.> mbx.ops.> mbx.team.> mbxf.team.> mbxlive.> mbxlive.team.* mbxlive.ops.* _INBOX.> _INBOX.south.>
_INBOX.ops_north.> mbxapi.> $JS.> $JS.API.> $JS.ACK.> $SYS.> _R_.> $KV.> $O.>
""")
LIMITED = {"name": "MBX_team", "subjects": ["mbx.team.>"], "max_msgs": 1}
CONSUMER = {"stream_name": "MBX_team", "config": {"deliver_subject": "mbx.team.south.roster", "name": "c"}}
STORED = b"", b"{}", b'{"seq": 1}', json.dumps(LIMITED).encode(), json.dumps(CONSUMER).encode()
"""What an attacker writes in its own name, to have it sent on: there it is a request."""
BODIES = {
    "STREAM.CREATE": LIMITED,
    "STREAM.UPDATE": LIMITED,
    "STREAM.PURGE": {"filter": "mbx.team.nobody.>"},
    "STREAM.MSG.DELETE": {"seq": 99_999},
    "CONSUMER": CONSUMER,
}
"""The keeper may purge and delete: the records that it names here are not there."""
HEADERS: list[dict[str, str]] = [
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"Nats-TTL": "1s"},
    {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "mbx.team.south.roster"},
    {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "mbx.team.south.roster", "Nats-Schedule-Source": ">"},
    {"Nats-Incr": "1"},
    {"Nats-Msg-Id": "of another"},
    {"Nats-Expected-Last-Sequence": "0"},
    {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-Expected-Last-Subject-Sequence-Subject": "mbx.team.south.*"},
    {"Nats-Expected-Stream": "MBX_ops"},
    *([{"Nats-Expected-Last-Msg-Id": "x"}] if NODES == 1 else []),  # on a cluster it stops the stream
    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"},
    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"},
    {"Nats-Trace-Dest": "mbx.team.south.roster"},
    {"Nats-Trace-Dest": "mbxapi.STREAM.PURGE.MBX_team", "Nats-Trace-Only": "true"},
    {"Nats-Trace-Dest": "_INBOX.south.x"},
    {"Nats-Subject": "mbx.team.south.roster", "Nats-Sequence": "1", "Nats-Stream": "MBX_team"},
    {"Nats-Stream-Source": "MBX_ops 1 > >", "Nats-Marker-Reason": "Purge"},
    {"Nats-Request-Info": "{}", "Nats-Required-Api-Level": "99"},
]


class Credential(NamedTuple):
    """A file, its user, and the calls and subjects that it may publish to."""

    file: str
    user: str
    may: frozenset[str]


def _machine(space: str) -> frozenset[str]:
    calls = [f"{call}.{kind}_{space}" for kind in ("MBX", "MBXF") for call in ("STREAM.INFO", "STREAM.CREATE")]
    calls += [f"STREAM.MSG.GET.{kind}_{space}" for kind in ("MBX", "MBXF")]
    return frozenset(f"mbxapi.{call}" for call in ("INFO", f"DIRECT.GET.MBX_{space}", *calls))


def _keeper(space: str) -> frozenset[str]:
    calls = "INFO", f"STREAM.PURGE.MBX_{space}", f"STREAM.MSG.DELETE.MBX_{space}"
    return frozenset(f"mbxapi.{call}" for call in calls)


CREDENTIALS = {
    "a machine of the space": Credential("machines/north", "north", _machine("team")),
    "a machine of another space": Credential("spaces/ops/machines/east", "ops_east", _machine("ops")),
    "the keeper": Credential("keeper", "KEEPER", _keeper("team")),
    "another space's keeper": Credential("spaces/ops/keeper", "KEEPER_ops", _keeper("ops")),
    "who looks at the servers": Credential("system", "system", frozenset(("mbxapi.INFO", "$SYS.REQ.SERVER.PING.VARZ"))),
}
OWN = {
    "north": ("mbx.team.north.roster", "mbxf.team.north.own.0", "mbxlive.team.north"),
    "ops_east": ("mbx.ops.east.roster", "mbxf.ops.east.own.0", "mbxlive.ops.east"),
}


class Running(NamedTuple):
    """The server, its files, and two spaces with a record and a file of each machine."""

    home: Path
    url: str
    spaces: dict[str, NatsOrder]

    def order(self, space: str, machine: str) -> NatsOrder:
        """A machine's way to its space."""
        place = self.home if space == "team" else self.home / "spaces" / space
        authority = str(self.home / "authority.pem")
        return open_nats(self.url, space, machine, str(place / "machines" / machine), authority, 10.0)

    def is_ready(self) -> bool:
        """Do the servers make a space? Those of a cluster need a moment after their start."""
        return makes_space(self.order("team", "north"))

    def attacker(self, one: Credential) -> Attacker:
        """Somebody with that credential."""
        return Attacker(self.url, str(self.home / one.file), str(self.home / "authority.pem"), one.user)

    def state(self) -> dict[str, object]:
        """What the streams of both spaces are and have, once they have taken all that came."""
        for order in self.spaces.values():
            settle(order)
        return {key: value for order in self.spaces.values() for key, value in state(order).items()}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all attacks."""
    home = tmp_path_factory.mktemp("accounts")
    port = free_row(beside=2000)
    made = None
    for space, machines in {**SPACES, **dict.fromkeys(TAKEN, ("honest", "mallory"))}.items():
        made = cluster.write_cluster(ClusterChange(str(home), space, machines, (), (), NODES, port))
    assert made is not None
    with ExitStack() as servers:
        for node in range(1, NODES + 1):
            servers.enter_context(started(home / str(node)))
        found = Running(home, made.url, {})
        until(found.is_ready)
        for space, machines in SPACES.items():
            for machine in machines:
                order = found.order(space, machine)
                order.make_unless_there()
                order.take_name(f"the mailbox of {machine}")
                order.append_lines(ROSTER, [b"of %s" % machine.encode()])
                order.append_lines(MESSAGES, [b"mail of %s" % machine.encode()], ids=[f"m-{machine}"])
                order.ship_file("0" * 64, b"a file of %s" % machine.encode())
                found.spaces[space] = order
        yield found
        for order in found.spaces.values():
            order.close()


def _bodies(call: str, user: str) -> list[bytes]:
    """What is asked: of calls that read, each of what the attacker wrote."""
    if given := [json.dumps(body).encode() for part, body in BODIES.items() if f".{part}." in call]:
        return given
    own = OWN.get(user, ("mbx.team.north.roster",))[0].removesuffix("roster")
    many = len(STORED) if "DIRECT" in call else 1
    return [json.dumps({"last_by_subj": f"{own}stored{n}"}).encode() for n in range(many)]


@pytest.mark.parametrize("name", CREDENTIALS)
def test_no_credential_reaches_more_than_its_own(running: Running, name: str) -> None:
    """Every call of JetStream and every subject, and whatever is allowed once more with an answer on every subject:
    records, files and settings stay, nobody writes or tells in another's name, and nobody hears another's answers."""
    one = CREDENTIALS[name]
    before = running.state()
    victim = running.attacker(Credential("machines/south", "south", frozenset()))
    for subject in ("mbx.team.>", "mbxlive.team.*", "_INBOX.south.>"):
        victim.subscribe(subject)
    attacker = running.attacker(one)
    assert victim.settle() == []
    stored = [f"{own.removesuffix('roster')}stored{n}" for own in OWN.get(one.user, ())[:1] for n in range(len(STORED))]
    for subject, body in zip(stored, STORED, strict=False):
        attacker.publish(subject, "", body)
    inbox = f"_INBOX.{one.user}.x"
    for subject in (*ALL_CALLS, *SUBJECTS):
        attacker.publish(subject, inbox, _bodies(subject, one.user)[0])
    denied = {said.partition(b'"')[2].strip(b'"').decode() for said in attacker.settle()}
    assert {*ALL_CALLS, *SUBJECTS} - denied == one.may
    known = victim.connection._inbox
    for subject in (*one.may, *OWN.get(one.user, ())):
        for reply in (*SUBJECTS[:-2], *CHANGING, f"{known}.1", f"{known}.2", *OWN.get(one.user, ())):
            for body in _bodies(subject, one.user) if subject in one.may else (b"its own",):
                attacker.publish(subject, reply, body)
    assert {said.partition(b'"')[0] for said in attacker.settle()} <= {b"Publish with Reply of "}  # of the server's own
    for headers in HEADERS:
        for subject in OWN.get(one.user, ()):
            attacker.publish(subject, inbox, b"with a header", headers)
            attacker.publish(subject, "mbx.team.south.roster", b"with a header", headers)
    late = [f"{subject.rpartition('.')[0]}.late" for subject in OWN.get(one.user, ())[:2]]
    calls = [] if one.user == "system" else [subject for subject in one.may if "DIRECT" not in subject] * 4
    attacker.end([*((call, _bodies(call, one.user)[0]) for call in calls), *((subject, b"") for subject in late)])
    assert written(before, running.state()) <= {*OWN.get(one.user, ())[:2], *stored}
    victim.settle()
    victim.close()
    heard = {*victim.heard} - {f"{known}.0".encode(), *(f"mbx.team.{one}.late".encode() for one in SPACES["team"])}
    assert heard <= {subject.encode() for subject in (*OWN["north"], *stored) if one.user == "north"}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_no_credential_hears_more_than_its_space(running: Running, name: str) -> None:
    """Alone, and as one of a group that shares what comes."""
    one = CREDENTIALS[name]
    space = {"north": "team", "ops_east": "ops"}.get(one.user)
    may = {f"_INBOX.{one.user}.>", *([f"mbx.{space}.>", f"mbxlive.{space}.*"] if space else [])}
    for queue in ("", "group"):
        attacker = running.attacker(one)
        for subject in (*LISTENED, *may):
            attacker.subscribe(subject, queue)
        denied = {said.split(b'"')[1].decode() for said in attacker.settle()}
        assert {*LISTENED} - denied == may & {*LISTENED}
        attacker.close()


def test_a_space_that_a_machine_made_as_it_likes_is_refused(running: Running) -> None:
    """One whose stream would pass records on in another's name, take others', or replace them: no other machine joins.

    The records of another space never come into it."""
    given: list[dict[str, Any]] = [
        {"republish": {"src": "mbx.{}.mallory.>", "dest": "elsewhere.>"}},
        {"subject_transform": {"src": "mbx.{}.mallory.>", "dest": "mbx.{}.honest.>"}},
        {"sources": [{"name": "MBX_team"}]},
        {"mirror": {"name": "MBX_team"}, "subjects": None, "allow_atomic": False},
        {"allow_rollup_hdrs": True},
        {"subjects": ["mbx.{}.>", "mbx.team.>"]},
        {
            "name": "MBXF_{}",
            "subjects": ["mbxf.{}.>"],
            "republish": {"src": "mbxf.{}.mallory.>", "dest": "mbx.{}.honest.>"},
        },
    ]
    for space, changes in zip(TAKEN, given, strict=True):
        mallory, honest = running.order(space, "mallory"), running.order(space, "honest")
        mallory.connection.publish_unanswered([])
        wanted = {"name": f"MBX_{space}", "subjects": [f"mbx.{space}.>"], **nats_order.LASTING}
        wanted |= {"allow_atomic": True, "allow_direct": True, **changes}
        wanted = json.loads(json.dumps(wanted).replace("{}", space))
        mallory.call_api(f"STREAM.CREATE.{wanted['name']}", {key: value for key, value in wanted.items() if value})
        with pytest.raises(Refused, match="stream of the space was not made by agent-mailbox: "):
            honest.make_unless_there()
        assert mallory.call_api(f"STREAM.INFO.{wanted['name']}", None)["state"]["messages"] == 0
        mallory.close()
        honest.close()


def test_no_two_machines_of_two_spaces_are_one_user() -> None:
    """The name of a space may begin with that of the first one."""
    spaces = ("team", "team2", "tea", "t")
    assert len({cluster.keeper_of("team", space) for space in spaces}) == len(spaces)
    assert len({cluster.user_of("team", space, "a") for space in spaces}) == len(spaces)
    assert cluster.keeper_of("team", "team") == cluster.KEEPER
    assert cluster.user_of("team", "team", "a") == "a"
