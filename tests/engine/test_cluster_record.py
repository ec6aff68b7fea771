"""What a cluster's files are for: each change that is taken, and each that is refused with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.errors import BadData, MailboxError, Malformed, NotFound, Refused
from agent_mailbox.space.servers import cluster_record
from agent_mailbox.space.servers.cluster_record import (
    LOOPBACK,
    NODES,
    PORT,
    SPACE,
    SYSTEM,
    ClusterChange,
    ClusterRecord,
)

if TYPE_CHECKING:
    from pathlib import Path

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


LISTENS = 'server_name: "team-1"\nlisten: "{}:4223"\n'
USERS = "".join(f'publish: [ "mbx.{one}.>", "x" ]\n' for one in ("team.north", "team.south", "other.east"))
ROUTES = 'routes: [ "tls://u:p@server-1.example:6222", "tls://u:p@[::1]:6222" ]\n'


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (LISTENS.format("0.0.0.0") + USERS + ROUTES, ("server-1.example", "::1")),
        (LISTENS.format(LOOPBACK) + USERS + ROUTES, ("server-1.example", "::1")),
        (LISTENS.format(LOOPBACK) + USERS, (LOOPBACK,)),
        (LISTENS.format("127.0.0.12") + USERS, ()),
    ],
)
def test_files_without_a_record_tell_what_they_are_for(tmp_path: Path, text: str, hosts: tuple[str, ...]) -> None:
    """An earlier version wrote them. A server that is alone and is reached from elsewhere does not tell its host."""
    (conf := tmp_path / "1/server.conf").parent.mkdir()
    conf.write_text("# \n" + text)
    spaces = {"team": ("north", "south"), "other": ("east",)}
    assert cluster_record.load_record(str(tmp_path)) == ClusterRecord("team", hosts, 4223, spaces)
    for line in text.splitlines(keepends=True)[:2]:
        conf.write_text(text.replace(line, ""))
        with pytest.raises(BadData, match="server's configuration has another form"):
            cluster_record.load_record(str(tmp_path))
    conf.write_bytes(b"# \xff\n" + text.replace("publish", "subscribe").encode())
    with pytest.raises(BadData, match="server's configuration has another form") as told:
        cluster_record.load_record(str(tmp_path))
    assert told.value.hint == "put back what it was"
