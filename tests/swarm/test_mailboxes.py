"""Several mailboxes of one person at one gateway: each has its own swarms, and steers and reads no other's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.errors import Refused
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.swarm import boxes, pairing
from agent_mailbox.swarm.gateway_process import GatewayProcess
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import MESSAGES, refused, until
from tests.swarm.machine import Machine, meet
from tests.swarm.wirework import beside as ready
from tests.swarm.wirework import run

if TYPE_CHECKING:
    from tests.swarm.conftest import Make


class WaitAbort:
    """A second mailbox of a machine, at the same gateway; ``eve`` is in its swarm ``lab``, with ``beta``."""

    def __init__(self, a: Machine, b: Machine, place: Path) -> None:
        self.a, self.b, self.place = a, b, place
        assert a.call("init", place).rc == 0
        refused(a.call("swarm", "create", "lab", "--dir", place), 1, str(a.box), "swarm attach")
        self.ok("swarm", "attach")
        self.ok("roster", "register", "--session-id", "eve")
        self.ok("swarm", "create", "lab", "--session", "eve")
        b.register("b2")
        b.ok("swarm", "join", self.ok("swarm", "invite", "lab")["url"], "--session", "b2")

    def ok(self, *words: object) -> Any:
        """A command in this mailbox; its JSON."""
        return self.a.ok(*words, "--dir", self.place)

    def call(self, *words: object) -> Any:
        """A command in this mailbox."""
        return self.a.call(*words, "--dir", self.place)

    def send(self, text: str) -> None:
        """Mail of eve's to everyone in her swarm."""
        self.ok("send", "--from", "eve", "--to", "swarm:lab", "--body", text)

    def received(self) -> list[str]:
        """The texts from elsewhere."""
        lines = map(json.loads, (self.place / MESSAGES).read_text().splitlines())
        mail = [m for m in lines if m["sender"].startswith("swarm:") and m.get("type", "message") != "system"]
        return [m["content"] for m in mail]


@pytest.fixture
def beside(machine: Make, tmp_path: Path) -> WaitAbort:
    """Two machines; the first one's gateway, which serves already, gets a second mailbox."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    return WaitAbort(a, b, tmp_path / "second")


def test_mail_of_each_swarm_goes_to_its_mailbox_alone(beside: WaitAbort) -> None:
    """Both ways, without a restart of the gateway, and after it was killed."""
    a, b = beside.a, beside.b
    for turn in ("first", "after a kill"):
        b.send("b2", "swarm:lab", f"to lab, {turn}")
        b.send("beta-agent", "swarm:demo", f"to demo, {turn}")
        beside.send(f"from lab, {turn}")
        a.send("ann", "swarm:demo", f"from demo, {turn}")
        until(lambda turn=turn: beside.received()[-1:] == [f"to lab, {turn}"])
        until(lambda turn=turn: a.received()[-1:] == [f"to demo, {turn}"])
        sent = [f"from {swarm}, {turn}" for swarm in ("lab", "demo")]
        until(lambda sent=sent: set(sent) <= {*b.received()})
        a.kill()
        a.serve()
    assert sorted(b.received()) == sorted(f"from {s}, {t}" for s in ("lab", "demo") for t in ("first", "after a kill"))
    assert a.received() == ["to demo, first", "to demo, after a kill"]
    assert beside.received() == ["to lab, first", "to lab, after a kill"]


def test_a_mailbox_sees_and_steers_its_own_swarms_alone(beside: WaitAbort) -> None:
    """A mailbox sees and steers only its own swarms, whether by a command or by a line in its log."""
    a, b = beside.a, beside.b
    assert [one["name"] for one in beside.ok("swarm", "status")["swarms"]] == ["lab"]
    assert [one["name"] for one in a.ok("swarm", "status")["swarms"]] == ["demo"]
    for words in (
        ("invite", "demo"),
        ("members", "demo"),
        ("kick", "demo", "beta"),
        ("leave", "demo"),
        ("context", "demo"),
    ):
        refused(beside.call("swarm", *words), 1, "not joined here: 'demo'")
    for words in (("invite", "lab"), ("members", "lab"), ("transfer", "lab", "beta")):
        refused(a.call("swarm", *words), 1, "not joined here: 'lab'")
    url = a.ok("swarm", "invite", "demo", "--unlimited")["url"]
    refused(beside.call("swarm", "join", url, "--session", "eve"), 1, "another mailbox")
    forged = {
        "id": "f",
        "sender": "user",
        "recipient": "swarm:demo",
        "timestamp": "2026-03-16T12:00:00.000Z",
        "content": "x",
    }
    with (beside.place / MESSAGES).open("a") as log:
        log.write(json.dumps(forged) + "\n")
    beside.send("seen by both")
    until(lambda: b.received() == ["seen by both"])
    assert a.knows("demo").members.keys() == {"alpha", "beta"}
    assert {row["swarm_id"] for row in beside.ok("swarm", "outbox")["messages"]} == {a.knows("lab").swarm_id}
    assert a.knows("lab").swarm_id not in {row["swarm_id"] for row in a.ok("swarm", "outbox")["messages"]}


def test_a_mailbox_that_is_away_stops_its_own_mail_alone(beside: WaitAbort, tmp_path: Path) -> None:
    """Its peers try again; the other mailbox's mail goes on. When it is back, its mail comes."""
    a, b = beside.a, beside.b
    shutil.move(beside.place, tmp_path / "away")
    b.send("b2", "swarm:lab", "waits")
    b.send("beta-agent", "swarm:demo", "goes on")
    until(lambda: a.received() == ["goes on"])
    assert "waits" not in a.received()
    assert not beside.place.exists()
    until(lambda: [str(beside.place)] == list(ready(a, "/api/ready").json().get("away", {})))
    shutil.move(tmp_path / "away", beside.place)
    until(lambda: beside.received() == ["waits"])
    assert a.received() == ["goes on"]
    until(lambda: ready(a, "/api/ready").json() == {"ready": True, "problem": None})


def test_a_mailbox_whose_log_cannot_be_read_holds_up_no_other(beside: WaitAbort) -> None:
    """Its own mail waits; that of the other mailbox goes out and comes in, also after the gateway starts again."""
    a, b, log = beside.a, beside.b, beside.place / MESSAGES
    log.rename(beside.place / "aside")
    log.mkdir()
    a.send("ann", "swarm:demo", "goes out")
    until(lambda: b.received() == ["goes out"])
    a.kill()
    a.serve()
    b.send("b2", "swarm:lab", "waits")
    b.send("beta-agent", "swarm:demo", "comes in")
    until(lambda: a.received() == ["comes in"])
    log.rmdir()
    (beside.place / "aside").rename(log)
    until(lambda: beside.received() == ["waits"])


def test_an_archived_month_that_cannot_be_read_holds_up_no_other_mailbox(beside: WaitAbort) -> None:
    """Without it nobody knows what was taken in: that mailbox takes nothing, and says so. The gateway starts, and the
    rest goes on, in both directions."""
    a, b, month = beside.a, beside.b, beside.place / "agent-mailbox-archive" / "2026-01.jsonl"
    a.kill()
    month.parent.mkdir(exist_ok=True)
    month.mkdir()
    a.serve()
    b.send("b2", "swarm:lab", "waits")
    b.send("beta-agent", "swarm:demo", "comes in")
    beside.send("goes out")
    until(lambda: a.received() == ["comes in"] and b.received() == ["goes out"])
    assert str(month) in ready(a, "/api/ready").json()["away"][str(beside.place)]
    assert beside.call("swarm", "inbox").rc == 5
    assert beside.received() == []
    month.rmdir()
    until(lambda: beside.received() == ["waits"])
    until(lambda: [m["subject"] for m in beside.ok("swarm", "inbox")["messages"]][-1:] == ["beta joined lab"])
    assert ready(a, "/api/ready").json() == {"ready": True, "problem": None}


def test_a_mailbox_that_cannot_be_opened_is_told_with_the_reason_and_not_tried_for_ever(
    machine: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time would close the connections to peers. It is looked for once more, as it may only have blinked."""
    a, second = machine("alpha"), str(tmp_path / "second")
    assert a.call("init", second).rc == 0
    home = Home(str(a.swarm_home))
    pairing.claim_mailbox(home, str(a.box))
    pairing.attach_mailbox(home, second)
    assert boxes.why_away(home, second) == ""
    told: list[tuple[str, object]] = []
    monkeypatch.setattr(boxes, "log_event", lambda _, event, **about: told.append((event, about["code"])))
    opened = Mailbox.__init__

    def failing(self: Mailbox, directory: str, **how: Any) -> None:
        if directory == second:
            raise Refused(f"{directory} is not for us", "")
        opened(self, directory, **how)

    monkeypatch.setattr(Mailbox, "__init__", failing)

    async def look() -> list[int]:
        serving, counts = GatewayProcess(Mailbox(str(a.box)), home, GatewaySettings()), [len(told)]
        for _ in range(3):
            serving.carrier.looked()
            counts.append(len(told))
        return counts

    first, again, *later = run(look())
    assert told[0] == ("mailbox_not_there", "refused")
    assert again > first
    assert later == [again] * 2


def test_a_mailbox_is_detached_once_it_is_in_no_swarm(beside: WaitAbort) -> None:
    """A mailbox is detached once it is in no swarm. The first mailbox, whose swarms name no mailbox, never is."""
    a = beside.a
    refused(beside.call("swarm", "detach"), 1, "lab", "swarm leave")
    refused(a.call("swarm", "detach"), 1, "demo")
    beside.ok("swarm", "leave", "lab", "--dissolve")
    beside.ok("swarm", "detach")
    refused(beside.call("swarm", "status"), 1, str(a.box))
    assert [one["name"] for one in a.ok("swarm", "status")["swarms"]] == ["demo", "lab"]


def test_a_mailbox_that_comes_or_blinks_while_a_gateway_starts_is_served(
    machine: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway knew its mailboxes already: it looks again. One that is back by then is served, too."""
    a, second, away = machine("alpha"), str(tmp_path / "second"), str(tmp_path / "away")
    assert a.call("init", second).rc == 0
    home, opened = Home(str(a.swarm_home)), boxes.open_boxes

    def attaching(home: Home, places: list[str]) -> list[boxes.Box]:
        pairing.attach_mailbox(home, second)
        return opened(home, places)

    def blinking(home: Home, places: list[str]) -> list[boxes.Box]:
        monkeypatch.undo()
        os.rename(second, away)
        found = opened(home, places)
        os.rename(away, second)
        return found

    async def look() -> list[str]:
        serving = GatewayProcess(Mailbox(str(a.box)), home, GatewaySettings())
        serving.carrier.looked()
        return [one.mailbox.directory for one in serving.statuses.each]

    for opening in (attaching, blinking):
        monkeypatch.setattr(boxes, "open_boxes", opening)
        assert run(look()) == [str(a.box), second], opening
