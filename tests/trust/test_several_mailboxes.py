"""A session that more than one mailbox binds: each judges its calls, wherever it is now."""

from __future__ import annotations

import json
import os
import shutil
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.user_state import bindings
from tests.control_desk import ControlDesk
from tests.helpers import until
from tests.trust.scene import LEAD, WORKER, Scene

if TYPE_CHECKING:
    from pathlib import Path

CURL, GET, RUN = {"command": "curl evil.example"}, {"command": "wget x"}, {"command": "make"}


@pytest.fixture
def other(scene: Scene, tmp_path: Path) -> Path:
    """A second mailbox, where the session is now; the first denies it ``curl``, and has seen it ask."""
    scene.policy(deny=("Bash(curl:*)",), allow=("Bash(make:*)",))
    assert scene.asked() == "deny"
    box = tmp_path / "other/data"
    scene.post.ok("init", box)
    Mailbox(str(box)).register(Registration(session_id=WORKER, client="4711"), WORKER)
    scene.post.env["AGENT_MAILBOX_DIR"] = str(box)
    return box


def test_each_mailbox_that_binds_it_must_agree(scene: Scene, other: Path) -> None:
    """The strictest answer counts; what one allows and another has no opinion on is left to the client."""
    assert [scene.asked(given) for given in (CURL, GET, RUN)] == ["deny", None, "allow"]
    ControlDesk(OpenMailbox(str(other))).set_policy(USER, [WORKER], deny=("Bash(wget:*)",))
    assert [scene.asked(given) for given in (CURL, GET, RUN)] == ["deny", "deny", None]
    scene.post.env["AGENT_MAILBOX_DIR"] = str(scene.post.box)
    assert [scene.asked(given) for given in (CURL, GET, RUN)] == ["deny", "deny", None]
    ControlDesk(OpenMailbox(str(other))).set_policy(USER, [WORKER])
    assert [scene.asked(given) for given in (CURL, GET, RUN)] == ["deny", None, "allow"]


def test_one_that_is_missing_or_is_a_link_to_another_closes(scene: Scene, other: Path) -> None:
    """A session's call is denied if a mailbox that binds it is missing or replaced. A call that the mailbox would not
    forbid is denied, too. A link does not help, since it may lead to any mailbox of the user's."""
    box = scene.post.box
    os.rename(box, f"{box}.aside")
    assert scene.asked(RUN) == "deny"
    box.symlink_to(other)
    assert scene.asked(RUN) == "deny"
    box.unlink()
    os.rename(f"{box}.aside", box)
    assert scene.asked(RUN) == "allow"
    shutil.copytree(box, f"{box}.aside")
    shutil.rmtree(box)
    os.rename(f"{box}.aside", box)
    assert scene.asked(RUN) == "deny"


def test_another_input_that_one_lead_approves_is_a_call_of_its_own(scene: Scene, other: Path) -> None:
    """The other mailbox judges that input, too: so an approval passes by no rule."""
    Mailbox(str(other)).register(Registration(session_id=LEAD, client="4712"), LEAD)
    Mailbox(str(other)).register(Registration(session_id=WORKER, event="update", lead=LEAD), USER)
    desk = ControlDesk(OpenMailbox(str(other)))
    desk.set_mode(USER, [WORKER], "safe")
    scene.post.configure("[control]\ntimeout = 30\n")

    def approve() -> None:
        asked = until(lambda: ControlDesk(OpenMailbox(str(other))).pending(LEAD))[0]
        ControlDesk(OpenMailbox(str(other))).answer(LEAD, asked.id, True, updated_input=CURL)

    thread = Thread(target=approve)
    thread.start()
    told = permission(scene, {"command": "make x"})
    thread.join()
    assert told["permissionDecision"] == "deny"
    assert "call Bash again, with exactly" in told["permissionDecisionReason"]
    assert scene.asked(CURL) == "deny"


def permission(scene: Scene, given: dict[str, str]) -> dict[str, str]:
    """What the hook answers to the question before a tool."""
    call = {"session_id": WORKER, "cwd": str(scene.post.cwd), "tool_name": "Bash", "tool_input": given}
    env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": WORKER}
    found: dict[str, str] = scene.post.call("hook", "Permit", stdin=json.dumps(call), env=env).json[
        "hookSpecificOutput"
    ]
    return found


def test_a_grant_answers_for_the_mailbox_that_gave_it(scene: Scene, other: Path) -> None:
    """Another mailbox's look takes it away from nobody."""
    here, there = scene.mailbox.logs.stamp_files, OpenMailbox(str(other)).logs.stamp_files
    bindings.grant(here, "call")
    now = scene.mailbox.now()
    assert [bindings.take(one, "call", now) for one in (there, here, here)] == [False, True, False]


def test_asking_binds_nobody_else(scene: Scene, other: Path) -> None:
    """A session that nothing binds is as free as it was, and gets the stamp of the mailbox where it is."""
    assert scene.asked(CURL, who="someone") is None
    assert (scene.post.user_state / "unbound/someone").read_text() == f"{other}\n"
    assert not (scene.post.user_state / "bound/someone").exists()
