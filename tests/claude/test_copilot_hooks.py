"""GitHub Copilot CLI's hooks by the shim and without the client, as it was seen to call them (1.0.102)."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.install import merge
from agent_mailbox.clients.install.hook_entries import calls_us
from agent_mailbox.known_clients.copilot_cli import COPILOT_CLI
from tests.claude.house import House
from tests.claude.shim import SHELLS, Shim
from tests.claude.test_clients import Session

if TYPE_CHECKING:
    from tests.helpers import Post

CHILD = "99091651-0a0a-496f-a654-ab905873f3c1"


@pytest.fixture
def session(post: Post) -> Session:
    """A session that has started and has nothing to read."""
    made = Session(Shim(post), COPILOT_CLI)
    made.shim.env = {"COPILOT_CLI": "1", "PYTHONPATH": None, "PATH": "/usr/bin:/bin"}
    assert "you are " in made.hook("SessionStart")
    assert made.hook("UserPromptSubmit") == ""
    made.shim.starts()
    return made


def of_child(session: Session) -> dict[str, Any]:
    """The fields by which a subagent's call differs."""
    return {"session_id": CHILD, "agent_id": CHILD, "parent_agent_id": session.id}


@pytest.mark.parametrize("shell", SHELLS)
def test_where_there_is_nothing_new_no_python_starts(session: Session, shell: str) -> None:
    """Whatever the JSON holds, for a subagent too. Mail is shown once, in the client's own form."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    for fields in (
        {},
        {"prompt": "ä" * 100_000},
        {"prompt": '"},{"session_id":"x","parent_agent_id":"y'},
        of_child(session),
    ):
        assert session.hook("UserPromptSubmit", *words, **fields) == ""
    assert session.hook("Stop", *words) == ""
    assert session.hook("PostToolUse", *words, **of_child(session)) == ""
    assert session.shim.starts() == 0
    session.shim.post.send("x", session.id, "MAIL")
    assert session.hook("PostToolUse", *words, **of_child(session)) == ""
    answer = json.loads(session.hook("UserPromptSubmit", *words))
    assert [*answer] == ["additionalContext"]
    assert "| MAIL" in answer["additionalContext"]
    assert session.hook("Stop", *words) == ""


def test_mail_at_a_turn_s_end_is_no_prompt_of_the_person(session: Session) -> None:
    """It is the next prompt, for which the prompt's hook runs: five in a row are counted all the same.

    Mail that came meanwhile lets that hook start Python. The person's own prompt begins again."""
    said, send = [], session.shim.post.send
    for number in range(6):
        send("x", session.id, f"MAIL_{number}")
        answer = session.hook("Stop", stop_hook_active=number > 0)
        said.append(bool(answer))
        if answer:
            send("x", session.id, f"MORE_{number}")
            assert f"MORE_{number}" in session.hook("UserPromptSubmit", prompt=json.loads(answer)["reason"])
    assert said == [True] * 5 + [False]
    assert "MAIL_5" in session.hook("UserPromptSubmit", prompt="go on")
    send("x", session.id, "LAST")
    assert "LAST" in session.hook("Stop", stop_hook_active=True)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("key", ["path", "file_path"])
def test_no_tool_writes_the_mailbox(session: Session, shell: str, key: str) -> None:
    """The hook refuses a tool of Copilot CLI that writes a mailbox file, and lets other files be written."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    post = session.shim.post

    def files(path: object, **more: Any) -> str:
        call = {"tool_name": "Write", "tool_input": {key: str(path), "file_text": "x"}, **more}
        session.client = COPILOT_CLI.replace(hooks=lambda: [w for w in COPILOT_CLI.hooks() if w.event == "Files"])
        return session.hook("PreToolUse", *words, **call)

    assert '"deny"' in files(post.box / "config.toml")
    assert '"deny"' in files(post.box / "config.toml", **of_child(session))
    session.shim.starts()
    assert files(post.scratch / "other") == ""
    patch = {"input": f"*** Begin Patch\n*** Add File: {post.box}/new\n+x\n*** End Patch\n"}
    session.client = COPILOT_CLI.replace(hooks=lambda: [w for w in COPILOT_CLI.hooks() if w.event == "Files"])
    assert '"deny"' in session.hook("PreToolUse", *words, tool_name="Edit", tool_input=patch)


def test_its_file_takes_a_person_s_own_hooks_and_gives_them_back(house: House) -> None:
    """A flat list, each of ours in it once; edited since, the file loses only ours."""
    path = house.project / ".github/hooks/agent-mailbox.json"
    theirs = {"version": 1, "hooks": {"Stop": [{"type": "command", "bash": "true"}], "notification": []}}
    before = house.write(theirs, path)
    where = ("copilot", "--project", house.project)
    for _ in range(2):
        assert house.program.call("install", *where).rc == 0
    loaded = json.loads(path.read_text())
    ours = {event: [one for one in every if calls_us(one)] for event, every in loaded["hooks"].items()}
    assert {event: len(every) for event, every in ours.items() if every} == {
        **dict.fromkeys(("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"), 1),
        "PreToolUse": 3,
    }
    assert loaded["hooks"]["Stop"][0] == theirs["hooks"]["Stop"][0]
    path.write_text(path.read_text().replace('"bash": "true"', '"bash": "false"'))
    assert house.program.call("uninstall", *where).rc == 0
    assert json.loads(path.read_text()) == json.loads(before.replace(b"true", b"false"))
    assert not (house.project / ".github/skills").exists()


def test_a_person_s_own_way_of_calling_us_stays() -> None:
    """It does what ours would do."""
    mine = {"type": "command", "command": "NAME=x agent-mailbox hook Stop"}
    wanted = next(one for one in COPILOT_CLI.hooks() if one.event == "Stop")
    ours = merge.Ours([(wanted, "/x/agent-mailbox-hook Stop copilot")], {}, COPILOT_CLI.time_key)
    assert merge.merge_ours("p", {"hooks": {"Stop": [mine]}}, ours)["hooks"]["Stop"] == [mine]


@pytest.fixture
def house(program: Post) -> House:
    """A project without any settings."""
    return House(program)
