"""Files of last week in place of today's: the person's word for the logs is none for what these allow."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.control import messages as m
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.store.log.custody import Custody
from tests.helpers import MESSAGES, ROSTER, Post
from tests.surroundings import at_terminal, line
from tests.trust.scene import DENIED, LEAD, OTHER, WORKER, Scene

if TYPE_CHECKING:
    from pathlib import Path

RULE = "Bash(curl:*)"


def bring_back(scene: Scene, copy: Path) -> None:
    """Put the logs of a copy over today's, as ``cp`` does."""
    for name in (MESSAGES, ROSTER):
        scene.post.file(name).write_bytes((copy / name).read_bytes())


def revoked(scene: Scene, tmp_path: Path) -> Path:
    """A copy of the files from before the person took a rule back."""
    scene.policy(allow=(RULE,), deny=("Bash(rm:*)",))
    copy = scene.copy(tmp_path / "last-week")
    scene.policy(deny=("Bash(rm:*)",))
    assert scene.asked() is None
    return copy


@pytest.mark.parametrize("command", ["doctor", "init"])
def test_a_rule_that_was_taken_back_waits_for_a_word_of_its_own(scene: Scene, tmp_path: Path, command: str) -> None:
    """After the hinted command it allows nothing, what it denies holds, and the answer names the rule with the command
    that lets it allow again, which works."""
    bring_back(scene, revoked(scene, tmp_path))
    assert scene.asked() == "deny"
    words = ("doctor", "--trust") if command == "doctor" else ("init", scene.post.box, "--adopt")
    told = scene.post.ok(*words, "--yes")
    assert told["withheld"] == [{"agent": WORKER, "allow": [RULE], "mode": None}]
    order = json.loads(scene.post.objects(MESSAGES)[-1]["content"])
    assert (order["type"], order["agentId"]) == ("team_permission_update", USER)
    assert scene.mailbox.logs.broken() is None
    assert (scene.rules(), scene.asked()) == (((), ("Bash(rm:*)",)), None)
    assert scene.asked({"command": "rm x"}) == "deny"
    assert scene.problems() == []
    assert not any("unverified" in note or "proven" in note for note in scene.notes())
    bring_back(scene, tmp_path / "last-week")
    said = scene.post.call("doctor", "--trust", "--yes").stdout
    (named,) = [one for one in said.splitlines() if one.startswith("not allowed again: ")]
    assert f"allow {RULE}" in named
    again = shlex.split(named.partition(": agent-mailbox ")[2])
    assert scene.post.call(*again, "--session", USER).rc == 0
    assert (scene.rules(), scene.asked()) == (((RULE,), ("Bash(rm:*)",)), "allow")


def test_a_second_word_lets_it_allow(scene: Scene, tmp_path: Path) -> None:
    """``--allows`` says so at once."""
    bring_back(scene, revoked(scene, tmp_path))
    assert scene.post.ok("doctor", "--trust", "--yes", "--allows")["withheld"] == []
    assert (scene.rules(), scene.asked()) == (((RULE,), ("Bash(rm:*)",)), "allow")


@pytest.mark.parametrize(("answers", "allowed"), [("y\ny\n", (RULE,)), ("y\nn\n", ()), ("y\n\x04", ())])
def test_the_second_question_names_the_rule(
    scene: Scene, tmp_path: Path, answers: str, allowed: tuple[str, ...]
) -> None:
    """A yes to the first confirms the logs; to the second, the rules. Without a yes these allow nothing."""
    bring_back(scene, revoked(scene, tmp_path))
    asking = at_terminal(scene.post, line("doctor", "--trust"), answer=answers)
    assert asking.rc == 0, asking
    assert asking.stdout.count("[y/N]") == 2
    assert f"allow {RULE}" in asking.stdout.partition("[y/N]")[2].partition("[y/N]")[0]
    assert scene.rules() == (allowed, ("Bash(rm:*)",))


def test_everything_that_widens_waits_and_all_that_narrows_stays(scene: Scene, tmp_path: Path) -> None:
    """A looser mode, rules of the lead's, rules for everyone and thereby for agents that come later, rules of one that
    is dead; beside them a stricter mode, hosts and rules that deny."""
    for who, client in (("strict", "4712"), ("gone", "4713")):
        scene.mailbox.register(Registration(session_id=who, client=client), who)
    control = scene.control
    control.set_policy(USER, ["all"], allow=("Bash(make:*)",), deny=("Bash(dd:*)",))
    control.set_policy(LEAD, [WORKER], allow=(RULE,), deny=("Bash(rm:*)",), hosts=("example.org",), adds=True)
    control.set_policy(USER, ["gone"], allow=(RULE,))
    control.set_mode(USER, [WORKER], "acceptEdits")
    control.set_mode(USER, ["strict"], "locked-down")
    scene.post.ok("roster", "retire", "gone")
    copy = scene.copy(tmp_path / "last-week")
    scene.post.file(MESSAGES).write_bytes(b"")
    assert scene.rules() == ((), ())
    bring_back(scene, copy)
    told = {
        one["agent"]: (one["allow"], one["mode"]) for one in scene.post.ok("doctor", "--trust", "--yes")["withheld"]
    }
    both = ["Bash(make:*)", RULE]
    assert told[WORKER] == (both, "acceptEdits")
    assert (told["all"], told["gone"]) == ((["Bash(make:*)"], None), ([RULE], None))
    assert (told[OTHER], told["strict"]) == ((["Bash(make:*)"], None), (["Bash(make:*)"], None))
    scene.mailbox.register(Registration(session_id="later", client="4714"), "later")
    scene.mailbox.register(Registration(session_id="gone", client="4713"), "gone")
    found = {who: scene.control.standing(who) for who in (WORKER, LEAD, OTHER, "strict", "gone", "later")}
    assert {one.policy.allow for one in found.values()} == {()}
    assert (found[WORKER].policy.deny, found[WORKER].policy.hosts) == (("Bash(dd:*)", "Bash(rm:*)"), ("example.org",))
    assert found["later"].policy.deny == ("Bash(dd:*)",)
    assert [found[who].mode for who in (WORKER, "strict", "later")] == ["default", "locked-down", "default"]


def test_a_log_that_goes_on_withholds_nothing(scene: Scene) -> None:
    """The command changes no rule of a mailbox that is as our writers left it, and asks nothing."""
    scene.policy(allow=(RULE,))
    lines = scene.post.lines(MESSAGES)
    assert scene.post.ok("doctor", "--trust")["withheld"] == []
    assert (scene.post.lines(MESSAGES), scene.rules()[0]) == (lines, (RULE,))


def test_a_request_of_last_week_s_that_was_denied_allows_nothing_by_itself(scene: Scene, tmp_path: Path) -> None:
    """It waits for an answer again, which the person or its lead gives."""
    request = scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input=DENIED))
    copy = scene.copy(tmp_path / "last-week")
    scene.control.answer(LEAD, request.id, approved=False)
    bring_back(scene, copy)
    scene.post.ok("doctor", "--trust", "--yes")
    assert scene.control.find(request.id).is_open
    assert scene.rules()[0] == ()


def test_the_orders_are_there_before_the_logs_count(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed between the two leaves nothing that allows."""
    scene = Scene(post)
    bring_back(scene, revoked(scene, tmp_path))
    forget = Custody.forget_broken

    def killed(record: Custody) -> None:
        if "preview-" not in record.directory:
            raise KeyboardInterrupt
        forget(record)

    with monkeypatch.context() as before:
        before.setattr(Custody, "forget_broken", killed)
        post.call("doctor", "--trust", "--yes")
    assert (scene.asked(), scene.rules()[0]) == ("deny", ())
    assert post.call("doctor", "--trust", "--yes", "--allows").rc == 0
    assert scene.rules()[0] == ()
