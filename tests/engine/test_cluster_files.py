"""The files of ``engine config``: who has access, and that nobody loses it in silence."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from agent_mailbox.errors import BadData, MailboxError, Malformed, NotFound, Refused
from agent_mailbox.identity import tls_certificates as certificates
from agent_mailbox.space.servers import cluster, cluster_record
from agent_mailbox.space.servers.cluster_record import (
    LOOPBACK,
    NODES,
    PORT,
    SPACE,
    SYSTEM,
    ClusterChange,
    ClusterRecord,
)
from tests.helpers import Program
from tests.ports import free_port

from .nats_server import started

if TYPE_CHECKING:
    from pathlib import Path


MACHINES_OF_FOUR = "north", "south", "east", "west"


def _machines(*names: str) -> list[str]:
    return [word for name in names for word in ("--machine", name)]


def test_adding_a_machine_keeps_every_secret(program: Program) -> None:
    """Written again with one more, the files keep every secret; those of the servers are open to nobody else."""
    home = program.scratch / "engine"
    config = "engine", "config", "--into", home, "--machine", "north", "--machine", "south"
    assert program.call(*config, "--port", 14222).rc == 0
    secrets = [*home.glob("machines/*"), *home.glob("*/server.key"), home / "authority.key"]
    before = {path: path.read_bytes() for path in [*secrets, home / "authority.pem"]}
    assert len(before) == 7
    hosts = [word for host in ("a.example", "b.example", "2001:db8::1") for word in ("--host", host)]
    again = program.call(*config, "--machine", "east", *hosts, "--port", 4222, "--json").json
    assert {path: path.read_bytes() for path in before} == before
    assert again["url"] == "tls://a.example:4222,tls://b.example:4222,tls://[2001:db8::1]:4222"
    assert program.call("engine", "config", "--into", home, "--json").json == again
    assert "mbx.team.east.>" in (home / "3" / "server.conf").read_text()
    assert {path.stat().st_mode & 0o077 for path in home.rglob("*")} == {0}


def test_files_that_would_leave_a_machine_out_are_not_written(program: Program) -> None:
    """Files that would leave a machine, a server or a secret out are not written: the error names what, and a command
    that keeps all. ``--remove`` takes a machine's credential away, and another space leaves the first one as it is."""
    home = program.scratch / "engine"
    config = "engine", "config", "--into", home

    def written() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    def refused(rc: int, said: str, *words: str) -> str:
        before = written()
        result = program.call(*config, *words)
        assert (result.rc, said in result.stderr, written() == before) == (rc, True, True), result
        return result.stderr

    assert program.call(*config, *_machines("north", "south", "east", "west")).rc == 0
    secrets = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path.suffix in ("", ".key")]
    hint = refused(1, "machines would lose their access to team: south, east, west", "--machine", "north")
    assert program.call(*shlex.split(hint.split("`")[1])[1:]).rc == 0
    assert {*secrets} <= {*written().values()}
    refused(1, "team: east, west", *_machines("north", "new"), "--remove", "south")
    refused(1, "machine is not in the space team: new", "--remove", "new")
    refused(2, "machine is named, and removed: west", *_machines("west"), "--remove", "west")
    refused(2, "cluster has no machine for the space ops", "--space", "ops")
    refused(2, "no machine for the space team", *(word for one in MACHINES_OF_FOUR for word in ("--remove", one)))
    refused(1, "cluster has 3 servers", "--nodes", "1")
    refused(2, "hosts are not as many as the servers: 1 for 3", "--host", "a.example")
    refused(2, "name is that of the servers' own user: system", *_machines(*MACHINES_OF_FOUR, "system"))
    secrets.remove((home / "machines" / "west").read_bytes())
    assert program.call(*config, "--remove", "west").rc == 0
    assert not (home / "machines" / "west").exists()
    assert "west" not in (home / "1" / "server.conf").read_text()
    assert program.call(*config, "--space", "ops", *_machines("north", "far")).rc == 0
    assert {*secrets} <= {*written().values()}
    refused(2, "space is not named, and the cluster has team, ops", "--machine", "new")
    joins = program.call(*config, "--json").json["join"]
    assert [command.split("--space ")[1].split(" --credential")[0] for command in joins] == [
        *(f"team --machine {machine}" for machine in ("north", "south", "east")),
        *(f"ops --machine {machine}" for machine in ("north", "far")),
    ]
    for gone in ("keeper", "route", "authority.key", "machines/south", "spaces/ops/machines/far"):
        (home / gone).rename(home / "away")
        refused(1, f"secret of the cluster is not there: {home / gone}")
        (home / "away").rename(home / gone)
    (home / "cluster.json").write_text("{}")
    refused(3, "record of the cluster has another form")
    (home / "cluster.json").unlink()
    refused(3, "record of the cluster is not there")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "cluster has no machine"),
        (("--machine", "A*"), "name is not lower-case letters"),
        (("--machine", "a", "--space", 'b"'), "name is not lower-case letters"),
        (("--machine", "a", "--host", "x"), "hosts are not as many as the servers: 1 for 3"),
        (("--machine", "system"), "name is that of the servers' own user: system"),
        (("--machine", "a", "--nodes", "1", "--host", 'x" }'), "host is no name and no address"),
        (("--machine", "a", "--nodes", "1", "--host", "a.example:4222"), "host is no name and no address"),
        (("--machine", "a", "--nodes", "1", "--host", "::x"), "host is no name and no address"),
        (("--machine", "a", "--nodes", "1", "--host", "-a"), "host is no name and no address"),
        (("--machine", "a", "--nodes", "2"), "'2' is not one of '1', '3', '5'"),
    ],
    ids=str,
)
def test_nothing_is_written_for_a_malformed_cluster(program: Program, words: tuple[str, ...], said: str) -> None:
    """Nothing is written then."""
    result = program.run("engine", "config", "--into", program.scratch / "engine", *words)
    assert (result.rc, said in result.stderr) == (2, True), result
    assert not (program.scratch / "engine").exists()


def test_a_key_or_an_authority_that_serves_nobody_is_named(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key with a password, or of another kind, and a certificate of another key, or one that ended, are told with
    the file. The command that is named mends it. A server's key that is gone is made again."""
    home = program.scratch / "engine"
    config = "engine", "config", "--into", home
    assert program.call(*config, "--nodes", 1, "--machine", "a").rc == 0
    server, signer, authority = home / "1/server.key", home / "authority.key", home / "authority.pem"

    def refused(path: Path, content: bytes, said: str) -> str:
        before = path.read_bytes()
        path.write_bytes(content)
        result = program.run(*config)
        assert (result.rc, f"{said}: {path}" in result.stderr) == (3, True), result
        if "run `" not in result.stderr:
            path.write_bytes(before)
        return result.stderr.partition("run `")[2].partition("`")[0]

    def key_of(pem: bytes, password: bytes) -> bytes:
        found = serialization.load_pem_private_key(pem, None)
        hidden = serialization.BestAvailableEncryption(password)
        return found.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)

    other = rsa.generate_private_key(65537, 2048)
    kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    for path in (server, signer):
        refused(path, other.private_bytes(*kind), "key of the servers is none of an elliptic curve, in PEM")
        before = path.read_bytes()
        mend = refused(path, key_of(before, b"x"), "key of the servers has a password")
        if shutil.which("openssl"):
            mend = mend.replace("openssl pkey", "openssl pkey -passin pass:x")
            subprocess.run(mend, shell=True, check=True)
        path.write_bytes(before)
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "_end_of_validity", lambda: datetime.now(UTC) - timedelta(days=1))
        ended = cluster.authority_certificate(cluster._read_or_make_key(str(signer)))
    unknown = cluster.authority_certificate(certificates.new_key())
    other_s = "is not that of authority.key"
    for content, said in ((ended, "has ended"), (unknown, other_s), (b"x", other_s)):
        subprocess.run(refused(authority, content, f"authority's certificate {said}"), shell=True, check=True)
        server.unlink()
        assert program.call(*config).rc == 0


def test_a_server_with_an_ipv6_address_is_reached_there(program: Program) -> None:
    """The server listens where its machines look for it."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here: its loopback address ::1 is missing")
    words = "--nodes", 1, "--machine", "a", "--host", "::1", "--port", free_port(), "--json"
    written = program.call("engine", "config", "--into", program.scratch / "engine", *words).json
    program.run("init", program.scratch / "box")
    with started(program.scratch / "engine/1"):
        joined = program.run(*shlex.split(written["join"][0])[1:], "--dir", program.scratch / "box")
    assert joined.stdout.startswith("joined team as a"), joined


THREE = ClusterRecord("team", ("a", "b", "c"), 4222, {"team": ("north", "south")})
ONE = THREE.replace(hosts=(LOOPBACK,))
TWO_SPACES = THREE.replace(spaces={**THREE.spaces, "other": ("east",)})


def changed(known: ClusterRecord | None, **given: Any) -> ClusterRecord:
    """The record with a change of what is given alone."""
    plain = {"space": None, "machines": (), "removed": (), "hosts": (), "nodes": None, "port": None}
    return cluster_record.change_record(known, ClusterChange(directory="/d", **{**plain, **given}))


def test_a_new_cluster_has_what_is_named_and_the_rest_by_default() -> None:
    """Its name is that of its first space. Without hosts its servers are on this machine."""
    assert changed(None, machines=("n",)) == ClusterRecord(SPACE, (LOOPBACK,) * NODES, PORT, {SPACE: ("n",)})
    named = changed(None, space="s", machines=("n", "m", "n"), hosts=("h", "::1"), nodes=2, port=7)
    assert named == ClusterRecord("s", ("h", "::1"), 7, {"s": ("n", "m")})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, THREE),
        ({"port": 9}, THREE.replace(port=9)),
        ({"nodes": 3, "hosts": ("x", "y", "z")}, THREE.replace(hosts=("x", "y", "z"))),
        ({"nodes": 4, "hosts": ("x", "y", "z", "w")}, THREE.replace(hosts=("x", "y", "z", "w"))),
        ({"machines": ("south", "west", "north")}, THREE.replace(spaces={"team": ("north", "south", "west")})),
        ({"removed": ("north",)}, THREE.replace(spaces={"team": ("south",)})),
        ({"removed": ("north",), "machines": ("west", "south")}, THREE.replace(spaces={"team": ("south", "west")})),
        ({"space": "other", "machines": ("east",)}, TWO_SPACES),
    ],
)
def test_a_change_keeps_all_that_it_does_not_name(given: dict[str, Any], wanted: ClusterRecord) -> None:
    """The machines that were there come first, in their order."""
    assert changed(THREE, **given) == wanted


def test_servers_on_one_machine_may_become_more_and_a_lone_one_stays_alone() -> None:
    """More of them are on this machine, too, if all were."""
    here = THREE.replace(hosts=(LOOPBACK,) * 3)
    assert changed(here, nodes=5) == here.replace(hosts=(LOOPBACK,) * 5)
    assert changed(ONE, port=9) == changed(ONE, nodes=1, port=9) == ONE.replace(port=9)


def test_of_several_spaces_the_one_that_changes_is_named() -> None:
    """A change of the servers alone names none."""
    assert changed(TWO_SPACES, port=9) == TWO_SPACES.replace(port=9)
    assert changed(TWO_SPACES, space="other", removed=("east",), machines=("w",)).spaces["other"] == ("w",)
    for given in ({"machines": ("north",)}, {"removed": ("north",)}):
        with pytest.raises(Malformed, match="space is not named, and the cluster has team, other"):
            changed(TWO_SPACES, **given)


@pytest.mark.parametrize(
    ("known", "given", "error", "said"),
    [
        (None, {}, Malformed, "cluster has no machine for the space"),
        (THREE, {"space": "new"}, Malformed, "cluster has no machine for the space new"),
        (THREE, {"removed": ("north", "south")}, Malformed, "cluster has no machine for the space team"),
        (THREE, {"removed": ("nor",)}, NotFound, "machine is not in the space team: nor"),
        (THREE, {"removed": ("north",), "machines": ("north",)}, Malformed, "machine is named, and removed: north"),
        (THREE, {"machines": ("west",)}, Refused, "machines would lose their access to team: north, south"),
        (THREE, {"nodes": 2}, Refused, "cluster has 3 servers, with the mail on them: 2 cannot take their place"),
        (ONE, {"nodes": 2}, Refused, "cluster has 1 servers, with the mail on them: 2 cannot take their place"),
        (ONE, {"nodes": 3}, Refused, "cluster has 1 servers, with the mail on them: 3 cannot take their place"),
        (THREE.replace(hosts=()), {}, Malformed, "hosts are not as many as the servers: 0 for 3"),
        (THREE, {"nodes": 5}, Malformed, "hosts are not as many as the servers: 0 for 5"),
        (None, {"machines": ("n",), "hosts": ("a",), "nodes": 3}, Malformed, "hosts are not as many .*: 1 for 3"),
        (None, {"machines": ("n",), "space": "S"}, Malformed, "name is not lower-case letters, digits and -: S"),
        (THREE, {"space": 'x"', "machines": ("n",)}, Malformed, "name is not lower-case letters"),
        (None, {"machines": ("n", 'm"}')}, Malformed, "name is not lower-case letters"),
        (None, {"machines": ("n", SYSTEM)}, Malformed, f"name is that of the servers' own user: {SYSTEM}"),
        (None, {"machines": ("n",), "hosts": ('h"',), "nodes": 1}, Malformed, "host is no name and no address"),
        (None, {"machines": ("n",), "hosts": ("",), "nodes": 1}, Malformed, "host is no name and no address"),
    ],
)
def test_a_change_that_would_harm_is_refused(
    known: ClusterRecord | None, given: dict[str, Any], error: type[MailboxError], said: str
) -> None:
    """No machine loses its access unsaid, no server its mail, and no name says more in a server's configuration."""
    with pytest.raises(error, match=said):
        changed(known, **given)


def test_a_record_is_read_as_it_was_kept(tmp_path: Path) -> None:
    """One of another form is said, also if a name in it would say more than a name."""
    assert cluster_record.load_record(str(tmp_path)) is None
    cluster_record.save_record(str(tmp_path / "d"), TWO_SPACES)
    assert cluster_record.load_record(str(tmp_path / "d")) == TWO_SPACES
    path = tmp_path / "d" / cluster_record.FILE
    whole = path.read_text()
    for wrong in ("", "[]", "{}", whole.replace('"north"', '"no\\"rth"'), whole.replace("4222", '"x"')):
        path.write_text(wrong)
        with pytest.raises(BadData, match="record of the cluster has another form"):
            cluster_record.load_record(str(tmp_path / "d"))


def test_a_refusal_says_how_to_keep_all_or_take_one_away() -> None:
    """The hint names the machines that were there and the new one; it names those of the space where one is unknown."""
    with pytest.raises(Refused) as told:
        changed(THREE, machines=("west",))
    keeps = "agent-mailbox engine config --into /d --space team --machine north --machine south --machine west"
    assert told.value.hint == f"`{keeps}` keeps all; --remove north takes one away"
    for space, there in (("team", "north, south"), ("new", "none")):
        with pytest.raises(NotFound) as unknown:
            changed(THREE, space=space, removed=("x",))
        assert unknown.value.hint == f"these are: {there}"


def test_files_without_their_record_are_not_written_again(tmp_path: Path) -> None:
    """They are refused: nobody knows which machines would lose their access."""
    (conf := tmp_path / "1/server.conf").parent.mkdir()
    assert cluster_record.load_record(str(tmp_path)) is None
    conf.write_bytes(b"# \xff")
    with pytest.raises(BadData, match="record of the cluster is not there") as told:
        cluster_record.load_record(str(tmp_path))
    assert told.value.hint == f"put it back; or move {tmp_path}/1 away, and name all machines"
