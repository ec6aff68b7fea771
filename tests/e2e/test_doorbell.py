"""The real client at a terminal: an idle session is woken by its mail, once, and nothing of ours outlives it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients import doorbell
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.mailbox.session_brake import SessionBrake
from tests.e2e.shown import shows, shows_at, takes_long
from tests.e2e.standin import ANSWER, bash, in_turn, said, use
from tests.e2e.terminal import Terminal, bell
from tests.helpers import READS, until
from tests.night import nightly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.client import Client
    from tests.helpers import Post

WOKEN = doorbell.LINE


def sessions(client: Client) -> dict[str, str]:
    """Session id to its state, of all that ever registered."""
    return {agent["session_id"]: agent["state"] for agent in client.post.ok("roster", "list")["agents"]}


def idle(client: Client, terminal: Terminal) -> str:
    """Wait until the client is idle with a doorbell beside it and nothing to read; the session's id."""

    def look() -> str | None:
        session = terminal.session()
        if not session or not terminal.idle() or not quiet(client, session).exists():
            return None
        return session if bell(client.post, session) else None

    return str(terminal.wait(look))


def send_at_once(post: Post, session: str, texts: Sequence[str]) -> None:
    """Send a session many messages by one append: sent one by one, they may come before and after a wake's turn."""
    lines = (json.dumps({"sender": "bob", "recipient": session, "content": text}) + "\n" for text in texts)
    post.ok("send", "--jsonl", "-", stdin="".join(lines))


def quiet(client: Client, session: str) -> Path:
    """The stamp that says a session has nothing to read."""
    return client.post.file(".cache", "quiet", session)


def test_no_shell_stands_between_a_client_and_its_doorbell(client: Client) -> None:
    """The doorbell is the client's own child process. The client would otherwise wait for a dead shell as it ends."""
    with Terminal(client) as terminal:
        waits = bell(client.post, idle(client, terminal))
        assert Path(f"/proc/{waits}/stat").read_text().rpartition(") ")[2].split()[1] == str(terminal.pid)


@shows(CLAUDE_CODE, "wake when idle", "end", "prompt")
@shows_at(CLAUDE_CODE, "terminal", "mail", "wake")
def test_mail_wakes_an_idle_session(client: Client) -> None:
    """Before any prompt and after one: the model has the mail in the wake's own turn, framed, and it is recorded as
    read; each message is one turn, and twenty at once are one, too. What rings is no mail."""
    with Terminal(client) as terminal:
        session = idle(client, terminal)
        terminal.mark()
        client.post.send("bob", session, "MAIL_ONE")
        first = str(terminal.wait(lambda: client.model.asked("MAIL_ONE"))[0])
        assert WOKEN in first
        assert "| MAIL_ONE" in first
        reads = [r["reader_session_id"] for r in client.post.objects(READS) if r["event"] == "read"]
        assert reads == [session]
        assert idle(client, terminal) == session
        terminal.ask("PROMPT_ONE")
        idle(client, terminal)
        turns = len(client.model.asked(""))
        assert turns == 2
        terminal.mark()
        send_at_once(client.post, session, [f"MAIL_{number:02}_OF_MANY" for number in range(20)])
        terminal.wait(lambda: client.model.asked("MAIL_19_OF_MANY"))
        idle(client, terminal)
        assert client.post.unread(session) == []
        assert client.model.asked("")[-1].count(WOKEN) == 2
        assert terminal.leave() == 0
    assert sessions(client) == {session: "frozen"}
    until(lambda: bell(client.post, session) is None)


def test_a_turn_in_progress_is_not_rung_into(client: Client) -> None:
    """Mail that comes meanwhile is shown at the turn's end, as ever; nobody is woken for what was shown."""
    answer = threading.Event()

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        if body.get("tools"):
            answer.wait()
        return [said(ANSWER)]

    client.model.script = script
    with Terminal(client) as terminal:
        session = idle(client, terminal)
        terminal.ask("PROMPT_ONE")
        client.post.send("bob", session, "MAIL_ONE")
        answer.set()
        terminal.wait(lambda: client.model.asked("MAIL_ONE"))
        idle(client, terminal)
        terminal.ask("PROMPT_TWO")
        idle(client, terminal)
        assert WOKEN not in "".join(client.model.asked(""))
        assert client.events("MAIL_ONE") == [(session, "read"), (session, "seen")]


@nightly
def test_mail_comes_at_the_time_that_its_sender_chose_and_a_brake_holds_up_wakes(client: Client) -> None:
    """Mail for now is shown behind a tool, and mail for idle time wakes the session when its turn is over. That wake
    brakes the next one. Mail for a turn never asks for a wake. Both are shown with the next prompt, where one line says
    of the braked one why it did not wake."""
    client.post.settings = "[wake]\ngap_seconds = 600\n"
    client.post.configure("")
    with Terminal(client, "--allowedTools", "Bash(true:*)") as terminal:
        session = idle(client, terminal)

        def script(_: dict[str, Any]) -> list[dict[str, Any]]:
            for when in ("idle", "now"):
                client.post.send("bob", session, f"MAIL_{when.upper()}", "--when", when)
            client.model.script = in_turn()
            return [bash("true")]

        client.model.script = script
        terminal.ask("PROMPT_ONE")
        woken = terminal.wait(lambda: client.model.asked(WOKEN))[0]
        _, after_tool = client.model.asked("PROMPT_ONE")[:2]
        assert ("| MAIL_NOW" in after_tool, "| MAIL_IDLE" in after_tool, "| MAIL_IDLE" in woken) == (True, False, True)
        idle(client, terminal)
        client.post.send("bob", session, "MAIL_TURN", "--when", "turn")
        client.post.send("bob", session, "MAIL_BRAKED")
        until(lambda: SessionBrake(OpenMailbox(str(client.post.box)), session).held)
        told = terminal.ask("PROMPT_TWO")
        assert [told.count(word) for word in ("| MAIL_TURN", "| MAIL_BRAKED", WOKEN)] == [1, 1, 1]
        assert told.count("agent-mailbox: 1 message did not wake you: at most one wake in 600 seconds") == 1


@nightly
def test_a_turn_that_was_interrupted_leaves_the_doorbell_working(client: Client) -> None:
    """Escape ends a turn without a Stop hook: mail wakes the session all the same."""
    answer = threading.Event()
    client.model.script = lambda _: [said(ANSWER)] if answer.wait() else []
    with Terminal(client) as terminal:
        session = idle(client, terminal)
        terminal.ask("PROMPT_ONE")
        terminal.wait(terminal.busy)
        terminal.mark()
        terminal.type("\x1b")
        idle(client, terminal)
        answer.set()
        client.post.send("bob", session, "MAIL_ONE")
        assert WOKEN in terminal.wait(lambda: client.model.asked("MAIL_ONE"))[0]


def test_commands_in_the_background_do_not_keep_the_session_asleep(client: Client) -> None:
    """Its turn is over, though the client does not call it idle."""
    started = in_turn([use("Bash", command="sleep 60", description="as the test wants it", run_in_background=True)])
    client.model.script = started
    with Terminal(client, "--allowedTools", "Bash(sleep:*)") as terminal:
        session = idle(client, terminal)
        terminal.ask("PROMPT_ONE")
        idle(client, terminal)
        client.post.send("bob", session, "MAIL_ONE")
        assert WOKEN in terminal.wait(lambda: client.model.asked("MAIL_ONE"))[0]


@takes_long
@shows_at(CLAUDE_CODE, "cleared", "wake")
@shows_at(CLAUDE_CODE, "resumed", "mail", "wake")
def test_one_doorbell_whatever_becomes_of_the_session(client: Client) -> None:
    """Compacted, cleared, killed, resumed: one waits for the session that is there, none for one that is not. Mail that
    is there as the hook of a compaction's or clearing's start looks wakes the session behind it, once."""
    mailer = client.post.scratch / "mailer"
    settings = client.project / ".claude/settings.local.json"
    ours = f"{client.post.home}/.local/share/agent-mailbox/agent-mailbox-hook SessionStart"
    assert ours in settings.read_text()
    settings.write_text(settings.read_text().replace(ours, f"[ ! -e {mailer} ] || {mailer}; {ours}"))
    with Terminal(client) as terminal:
        session = idle(client, terminal)
        terminal.ask("PROMPT_ONE")
        idle(client, terminal)
        before = bell(client.post, session)
        client.mailer("MAIL_COMPACTED")
        terminal.mark()
        terminal.submit("/compact")
        woken = terminal.wait(lambda: client.model.asked("MAIL_COMPACTED"))[0]
        assert ("PROMPT_ONE" in woken, woken.count("| MAIL_COMPACTED"), woken.count(WOKEN)) == (False, 1, 1)
        idle(client, terminal)
        assert bell(client.post, session) != before
        client.mailer("MAIL_CLEARED")
        terminal.submit("/clear")
        terminal.wait(lambda: terminal.session() != session)
        woken = terminal.wait(lambda: client.model.asked("MAIL_CLEARED"))[0]
        assert (woken.count("| MAIL_CLEARED"), woken.count(WOKEN)) == (1, 1)
        cleared = idle(client, terminal)
        until(lambda: bell(client.post, session) is None)
        projects = client.post.home / ".claude/projects"

        def kept() -> str:
            return "".join(path.read_text() for path in projects.glob(f"*/{cleared}.jsonl"))  # written a little later

        # The prompt is written down in several places, its turn last: killed before, it is no part of what is resumed.
        terminal.wait(lambda: '"type":"assistant"' in kept().partition("MAIL_CLEARED")[2])
        terminal.kill()
    mailer.unlink()
    until(lambda: bell(client.post, cleared) is None)
    quiet(client, cleared).unlink(missing_ok=True)  # a start leaves another; mail that comes before is shown by that
    with Terminal(client, "--resume", cleared) as terminal:
        terminal.wait(lambda: terminal.session() == cleared)
        idle(client, terminal)
        client.post.send("bob", cleared, "MAIL_ONE")
        woken = terminal.wait(lambda: client.model.asked("MAIL_ONE"))[0]
        assert WOKEN in woken
        assert "MAIL_CLEARED" in woken
        terminal.kill()  # told to end, a session that was resumed takes ten seconds
    until(lambda: bell(client.post, cleared) is None)
