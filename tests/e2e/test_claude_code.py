"""The real Claude Code against a stand-in model: what our installation makes reach the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers import READS

if TYPE_CHECKING:
    from tests.e2e.conftest import Client


def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(client: Client) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record; mail that came meanwhile is there, too. A second session gets only what is for everyone."""
    client.post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    session = client.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})["session_id"]
    first = client.model.asked("PROMPT_ONE")[0]
    assert "MAIL_FOR_THE_ROLE" in first
    assert "MAIL_FOR_ALL" in first
    assert {r["reader_session_id"] for r in client.post.objects(READS)} == {session}
    client.post.send("bob", session, "MAIL_MEANWHILE")
    assert client.ask("PROMPT_TWO", "--resume", session)["session_id"] == session
    second = client.model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    assert len(client.post.objects(READS)) == 3
    client.ask("PROMPT_THREE", env={"AGENT_MAILBOX_ROLE": "architect"})
    third = client.model.asked("PROMPT_THREE")[0]
    assert [third.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [0, 1]


def test_without_mail_nothing_of_ours_is_in_the_conversation(client: Client) -> None:
    """The hooks cost no tokens; uninstalled, they do not even run."""
    session = client.ask("PROMPT_ONE")["session_id"]
    (talk,) = client.model.asked("PROMPT_ONE")
    assert "unread message" not in talk
    assert [a["session_id"] for a in client.post.ok("roster", "list")["agents"]] == [session]
    client.post.ok("uninstall", "claude-code", "--project", client.project)
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    client.ask("PROMPT_TWO")
    assert "MAIL_FOR_ALL" not in client.model.asked("PROMPT_TWO")[0]
    assert len(client.post.ok("roster", "list")["agents"]) == 1


def test_the_commands_and_the_section_reach_the_model(client: Client) -> None:
    """``/checkpoint`` and ``/bye`` are the client's to expand; CLAUDE.md's section stands in the conversation."""
    for name, said in (("checkpoint", "Do not retire."), ("bye", "agent-mailbox roster retire")):
        client.ask(f"/{name}")
        talk = client.model.asked(f"/{name}")[-1]
        assert said in talk
        assert "## Mail from other agents" in talk
