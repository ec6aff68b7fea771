"""The checkout as a plugin of the real client: valid, installable, and the same to the model as the settings."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.e2e.shown import takes_long
from tests.e2e.standin import bash, conversation, in_turn
from tests.helpers import MESSAGES, PATIENCE, READS, ROOT
from tests.night import nightly

if TYPE_CHECKING:
    from tests.e2e.client import Client

pytestmark = pytest.mark.usefixtures("on_path")
PARTS = (".claude-plugin", "agent_mailbox", "commands", "hooks", "skills", "README.md")


def say(client: Client, *words: object) -> str:
    """What the client's own command says, which must succeed."""
    with client.start(*words) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, (out, err)
    return out.decode()


def plug_in(client: Client, scope: str = "project") -> None:
    """Install the plugin from a checkout without an environment of its own."""
    checkout = client.post.scratch / "check out"
    checkout.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, checkout / part)
    say(client, "plugin", "marketplace", "add", checkout)
    say(client, "plugin", "install", "agent-mailbox@agent-mailbox", "--scope", scope)


def test_the_checkout_is_a_valid_plugin(client: Client) -> None:
    """Claude Code's own strict check accepts this checkout as a plugin."""
    said = say(client, "plugin", "validate", "--strict", ROOT)
    assert "Validation passed" in said
    assert "commands: agent-mailbox:bye" in said
    assert "skills: agent-mailbox:agent-mailbox" in said


@pytest.mark.parametrize("scope", ["project", pytest.param("user", marks=takes_long)])
def test_plugged_in_the_model_has_its_mail_and_the_refusals(client: Client, scope: str) -> None:
    """The plugin alone shows mail and refuses another's name, as an installation does. The session's end reaches the
    roster."""
    client.post.ok("uninstall", "claude-code", "--project", client.project)
    plug_in(client, scope)
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    client.model.script = in_turn([bash("agent-mailbox send --from user --to bob --body FORGED")])
    session = client.ask("PROMPT_ONE", "--allowedTools", "Bash")["session_id"]
    first, *_, last = client.model.asked("PROMPT_ONE")
    assert first.count("MAIL_FOR_ALL") == 1
    assert "the command knows who you are" in last
    assert [m["content"] for m in client.post.objects(MESSAGES)] == ["MAIL_FOR_ALL"]
    (agent,) = client.post.ok("roster", "list")["agents"]
    assert (agent["session_id"], agent["state"]) == (session, "frozen")
    client.ask("/agent-mailbox:bye")
    assert "agent-mailbox roster retire" in conversation(client.model.requests[-1])
    assert client.post.ok("doctor", cwd=client.project).get("notes", []) == []


@nightly
def test_beside_an_installation_mail_is_shown_once_and_the_doctor_tells(client: Client) -> None:
    """Both hooks look; one shows."""
    plug_in(client)
    client.post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    session = client.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})["session_id"]
    talk = client.model.asked("PROMPT_ONE")[-1]
    assert [talk.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [1, 1]
    offers = [r["reader_session_id"] for r in client.post.objects(READS) if r["event"] == "read"]
    assert offers == [session, session]
    notes = client.post.ok("doctor", cwd=client.project)["notes"]
    assert any("SessionStart" in note["what"] and "plugin" in note["what"] for note in notes)
