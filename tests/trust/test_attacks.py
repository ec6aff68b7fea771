"""Ways to be free that a reader found who had not built the seals: commands in a row, and lines over other lines."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.control import message_text
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.store.log.custody import Kept
from agent_mailbox.upkeep import steward
from tests.helpers import MESSAGES, ROSTER, record, refused
from tests.trust.scene import DENIED, LEAD, OTHER, WORKER, Scene

if TYPE_CHECKING:
    from pathlib import Path

RULE = "Bash(curl:*)"


class Killed(BaseException):
    """The process ends here."""


def overwrite(path: Path, old: bytes, new: bytes) -> None:
    """Put a line over another in place, with blanks behind it."""
    place, room = path.read_bytes().index(old), len(old.rstrip(b"\n"))
    new = new.rstrip(b"\n")
    assert len(new) <= room
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(new.ljust(room))


def chat(scene: Scene, count: int = 3) -> None:
    """Mail behind what matters: more than a log's end is checked by."""
    for _ in range(count):
        scene.post.send(OTHER, LEAD, "y" * 300)


def test_a_worker_that_retires_and_comes_back_is_under_its_rules_still(scene: Scene) -> None:
    """Three commands that it may run, with a steward between them that archives what is finished."""
    scene.policy(deny=(RULE,))
    chat(scene)
    scene.post.check(WORKER)
    scene.post.check(LEAD)
    scene.post.ok("roster", "retire", WORKER)
    scene.post.ok("steward", "run", "--max-live", "0")
    scene.mailbox.register(Registration(session_id=WORKER, client="4711"), WORKER)
    assert scene.rules() == ((), (RULE,))
    assert scene.asked() == "deny"


def test_a_steward_does_not_bless_a_log_that_was_edited(scene: Scene) -> None:
    """It counts what decides before it moves anything, and moves nothing of such a log."""
    scene.policy(deny=(RULE,))
    chat(scene)
    scene.post.check(LEAD)
    assert scene.asked() == "deny"
    scene.without(RULE, same_length=True)
    refused(scene.post.call("steward", "run", "--max-live", "0"), 1, "lacks a line that decided something")
    assert scene.asked() == "deny"
    assert scene.mailbox.logs.broken() is not None


def test_another_s_line_with_the_id_of_an_order_does_not_displace_it(scene: Scene) -> None:
    """Though it comes first: of two that bear an id the proven one counts."""
    scene.post.send(OTHER, LEAD, "x" * 900)
    before = scene.line("xxxx")
    scene.policy(deny=(RULE,))
    chat(scene)
    idle = message_text.written(m.IdleNotification(reason="available", timestamp=1))
    fake = {**record(OTHER, OTHER, idle, type="control"), "id": json.loads(scene.line(RULE))["id"]}
    overwrite(scene.post.file(MESSAGES), before, json.dumps(fake, separators=(",", ":")).encode())
    assert scene.rules() == ((), (RULE,))


def test_an_archived_allow_over_a_line_below_the_base_is_noticed(scene: Scene) -> None:
    """It is one line that decides more than there were."""
    scene.policy(allow=(RULE,))
    line = scene.line(RULE)
    scene.policy(deny=("Bash(touch:*)",))
    scene.post.send("someone", "nobody-yet", "q" * 1500)
    chat(scene)
    scene.post.check(LEAD)
    scene.post.check(WORKER)
    scene.post.ok("steward", "run", "--max-live", "0")
    assert line not in scene.post.file(MESSAGES).read_bytes()
    chat(scene)
    overwrite(scene.post.file(MESSAGES), scene.line("qqqq"), line)
    assert scene.rules()[0] == ()
    assert scene.mailbox.logs.broken() is not None


def test_a_sealed_roster_line_does_not_count_twice(scene: Scene) -> None:
    """A sealed roster line that is appended again does not count, not even right behind itself. A lead that was taken
    away is not given back."""
    scene.mailbox.register(Registration(session_id=WORKER, event="update", lead=OTHER), USER)
    scene.post.append(ROSTER, scene.line(f'"lead":"{LEAD}"', ROSTER))
    assert scene.mailbox.logs.read_roster().agents[WORKER].proven_leads[-1][1] == OTHER


def test_a_foreign_line_makes_nobody_the_person_s_heir(scene: Scene) -> None:
    """Before its client registers: it approves nothing, and the person's orders to it hold."""
    scene.forge_event("register", "w9", continues=USER)
    scene.forge_event("register", "w8", continues="not-there-yet")
    for session_id in ("w9", "w8"):
        scene.mailbox.register(Registration(session_id=session_id, client="98"), session_id)
        assert scene.mailbox.logs.read_roster().lineage(session_id) == (session_id,)
    scene.control.set_policy(USER, ["w9"], deny=(RULE,))
    assert scene.control.standing("w9").policy.deny == (RULE,)


def test_a_foreign_line_takes_no_living_agent_s_name(scene: Scene) -> None:
    """Neither as a name nor as an id: orders reach whom they name."""
    scene.mailbox.register(Registration(session_id=WORKER, event="update", name="alice"), WORKER)
    scene.forge_event("register", "alice")
    scene.forge_event("register", "another", name="alice")
    scene.control.set_policy(USER, ["alice"], deny=(RULE,))
    assert scene.rules() == ((), (RULE,))


def test_what_a_foreign_line_registered_still_gets_its_lead(scene: Scene) -> None:
    """A session that a foreign line registered gets its lead as it registers itself."""
    scene.forge_event("register", "w7")
    scene.mailbox.register(Registration(session_id="w7", lead=LEAD, client="97"), "w7")
    assert scene.mailbox.logs.read_roster().agents["w7"].proven_leads[-1][1] == LEAD


def test_an_unproven_stricter_order_displaces_none_that_is_proven(scene: Scene) -> None:
    """The person's stays when the other is archived, is overwritten, or its plan is approved."""
    scene.control.set_mode(USER, [WORKER], "safe")
    scene.forge(m.ModeSet(mode="plan"))
    asked = scene.control.request(WORKER, m.PlanRequest(content="a plan"))
    scene.control.answer(LEAD, asked.id, True)
    assert scene.control.standing(WORKER).mode == "safe"
    scene.forge(m.ModeSet(mode="locked-down"))
    chat(scene)
    scene.post.check(WORKER)
    scene.post.check(LEAD)
    scene.post.ok("steward", "run", "--max-live", "0")
    scene.without("locked-down", same_length=True)
    assert scene.control.standing(WORKER).mode in ("safe", "locked-down")


def test_another_mailbox_in_the_place_of_its_own_frees_nobody(scene: Scene, tmp_path: Path) -> None:
    """A link to a directory that looks like one: who was bound is closed, and stays so when it is put back."""
    scene.policy(deny=(RULE,))
    assert scene.asked() == "deny"
    box = scene.post.box
    os.rename(box, f"{box}.aside")
    (other := tmp_path / "other").mkdir(mode=0o700)
    (other / MESSAGES).touch(0o600)
    box.symlink_to(other)
    assert scene.asked(DENIED) == "deny"
    box.unlink()
    os.rename(f"{box}.aside", box)
    assert scene.asked() == "deny"


def test_the_trust_of_a_person_makes_no_foreign_line_an_old_one(scene: Scene) -> None:
    """A foreign line that was passed over before the person looked stays passed over after `doctor --trust`."""
    scene.policy(deny=(RULE,))
    scene.forge_event("update", continues=LEAD)
    scene.forge_event("retire")
    content = scene.post.file(MESSAGES).read_bytes()
    scene.post.file(MESSAGES).write_bytes(b"")
    assert scene.rules()[0] == ()
    scene.post.file(MESSAGES).write_bytes(content)
    assert scene.post.call("doctor", "--trust", "--yes").rc == 0
    assert scene.rules() == ((), (RULE,))
    assert scene.mailbox.logs.read_roster().agents[WORKER].state == "alive"


def test_a_steward_that_follows_one_that_was_killed_keeps_what_is_proven(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the new log and the note of it: the next run notes it first."""
    scene.policy(allow=("Bash(ls:*)",), deny=(RULE,))
    chat(scene)
    scene.post.check(LEAD)
    scene.post.send(OTHER, LEAD, "late")

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Kept, "follow", killed)
        with pytest.raises(Killed):
            steward.run_upkeep(scene.mailbox, 0)
    scene.post.check(LEAD)
    steward.run_upkeep(scene.mailbox, 0)
    assert scene.rules() == (("Bash(ls:*)",), (RULE,))
    assert scene.mailbox.logs.broken() is None


def test_nothing_that_was_counted_before_is_gone_on_from_once_a_log_was_edited(scene: Scene) -> None:
    """A derived file says how far its log was proven, and that log is no more."""
    scene.policy(deny=(RULE,))
    chat(scene)
    counted = scene.mailbox.logs.messages.view().counted
    assert counted is not None
    assert scene.mailbox.logs.messages.view().resume(*counted)
    scene.without(RULE, same_length=True)
    refused(scene.post.call("steward", "run", "--max-live", "0"), 1, "lacks a line that decided something")
    view = scene.mailbox.logs.messages.view()
    assert view.counted is None
    assert not view.resume(*counted)
