"""The real Codex at a terminal, its session run by its background server: mail wakes it, and what cannot be woken is
told."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients import doorbell
from agent_mailbox.known_clients.codex import CODEX
from tests.e2e.codex_client import Codex
from tests.e2e.responses import by_prompt, conversation, said, shell
from tests.e2e.shown import shows, shows_at, takes_long
from tests.e2e.standin import ANSWER
from tests.e2e.terminal import Terminal, bell, is_alive
from tests.e2e.test_doorbell import send_at_once
from tests.helpers import PATIENCE, READS, TOOLS, until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

SERVER = ("app-server", "--listen", "unix://")
"""How a plain ``codex`` starts its background server, but for a copy of the program that updates itself."""


class CodexTerminal(Terminal):
    """Codex at a terminal."""

    words = ()
    answers = ((b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62;c"))

    def submit(self, prompt: str) -> None:
        """Type a prompt and send it."""
        self.enter(prompt, lambda _: self.client.model.asked(prompt))

    def enter(self, words: str, has_followed: Callable[[bytes], Any]) -> None:
        """Type words and send them: a return key right behind them counts as one of a pasted text. It draws them in
        pieces as its list of commands goes. That it works says nothing: it does at its start, too."""
        seen = len(self.screen)
        self.type(words)
        in_pieces = b".*".join(re.escape(letter.encode()) for letter in words[-8:].replace(" ", ""))
        self.wait(lambda: re.search(in_pieces, self.screen[seen:], re.DOTALL))
        self.press("\r", has_followed, again_after=0.5)


@contextmanager
def served(codex: Codex, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """The background server; our hooks are installed, and trusted."""
    if not (codex.project / ".codex").exists():
        codex.install()
        codex.trust()
    with codex.start(*SERVER, env=env) as server:
        until((codex.home / "app-server-control/app-server-control.sock").exists)
        try:
            yield server
        finally:
            server.terminate()
            server.wait(PATIENCE)


def session(codex: Codex) -> str:
    """The one session."""
    (agent,) = codex.post.ok("roster", "list")["agents"]
    return str(agent["session_id"])


def listens(codex: Codex, me: str) -> bool:
    """Whether a doorbell waits beside the session, which has nothing to read."""
    return codex.post.file(".cache", "quiet", me).exists() and bell(codex.post, me) is not None


def unwoken(codex: Codex) -> list[str]:
    """What the doctor says of sessions that mail does not wake."""
    notes = codex.post.ok("doctor", cwd=codex.project).get("notes", [])
    return [note["what"] for note in notes if "mail does not wake" in note["what"]]


def turn_is_over(codex: Codex) -> bool:
    """Whether the client wrote down that the last turn ended."""
    rollouts = [path.read_text() for path in codex.home.glob("sessions/**/*.jsonl")]  # none yet, or one
    lines = "".join(rollouts).rpartition("\n")[0].splitlines()  # the last one may be half written
    told = [json.loads(line)["payload"].get("type") for line in lines]
    return [one for one in told if one in ("task_started", "task_complete")][-1:] == ["task_complete"]


@shows(CODEX, "wake when idle", "tasks")
@shows_at(CODEX, "terminal", "mail", "wake")
def test_mail_wakes_an_idle_session(codex: Codex) -> None:
    """The doorbell wakes an idle session of Codex, for many messages at once only one time. Each message comes framed,
    once. The session has no role from the terminal that started the server."""
    post, model = codex.post, codex.model
    with served(codex, AGENT_MAILBOX_ROLE="architect"), CodexTerminal(codex) as terminal:
        assert "AGENT_MAILBOX_ROLE left out" in terminal.ask("PROMPT_ONE")
        me = session(codex)
        assert "role:architect" not in json.dumps(post.ok("roster", "show", me))
        for words in (["MAIL_FOR_THE_IDLE"], [f"MAIL_{number}_OF_MANY" for number in range(9)]):
            terminal.wait(lambda: listens(codex, me) and turn_is_over(codex))
            send_at_once(post, me, words)
            terminal.wait(lambda word=words[-1]: model.asked(word))
        terminal.wait(lambda: listens(codex, me) and turn_is_over(codex))
        assert unwoken(codex) == []
        assert "agent-mailbox roster retire" in terminal.ask("$bye now LEAVING")
    talk = model.asked("LEAVING")[0]
    assert talk.count(doorbell.LINE) == 2
    assert talk.count("| MAIL_FOR_THE_IDLE") == 1
    assert [r["event"] for r in post.objects(READS)].count("read") == 10
    until(lambda: bell(codex.post, me) is None)


@shows_at(CODEX, "without its server", "mail", "no wake")
@shows_at(CODEX, "cleared", "no wake")
@takes_long
def test_a_session_that_cannot_be_woken_is_told_by_the_doctor(codex: Codex) -> None:
    """After Escape, Codex keeps what is queued until the next prompt: nothing is queued, and mail comes with that
    prompt. After ``/clear`` the old session stays loaded for a minute, out of its person's sight: mail begins no turn
    there. A terminal without the server has no queue."""
    post, model = codex.post, codex.model
    answer = threading.Event()
    model.script = lambda body: [said(ANSWER)] if "PROMPT_TWO" not in conversation(body) or answer.wait() else []
    with served(codex):
        with CodexTerminal(codex) as terminal:
            terminal.ask("PROMPT_ONE")
            me = session(codex)
            terminal.wait(lambda: listens(codex, me) and turn_is_over(codex))
            terminal.ask("PROMPT_TWO")
            terminal.press("\x1b", lambda _: unwoken(codex))
            (note,) = unwoken(codex)
            assert "its last turn was broken off" in note
            answer.set()
            post.send("bob", me, "MAIL_AFTER_ESCAPE")
            talk = terminal.ask("PROMPT_THREE")
            assert talk.count("| MAIL_AFTER_ESCAPE") == 1
            assert doorbell.LINE not in talk
            terminal.wait(lambda: listens(codex, me) and turn_is_over(codex) and not unwoken(codex))
            terminal.enter("/clear", lambda _: unwoken(codex))
            assert "by /clear" in unwoken(codex)[0]
            post.send("bob", me, "MAIL_FOR_THE_CLEARED")
            assert "PROMPT_THREE" not in terminal.ask("PROMPT_CLEARED")
        with CodexTerminal(codex, "--no-daemon") as terminal:
            terminal.ask("PROMPT_ALONE")
            (note,) = terminal.wait(lambda: [note for note in unwoken(codex) if "its terminal runs it" in note])
            assert "none runs" not in note
    assert not any(doorbell.LINE in talk or "MAIL_FOR_THE_CLEARED" in talk for talk in model.asked(""))


@shows_at(CODEX, "resumed", "mail", "wake")
@takes_long
def test_a_resumed_session_is_its_own_and_is_woken_again(codex: Codex) -> None:
    """Its server ends: the doorbell with it, and what comes then is queued nowhere. Resumed in another, it is shown
    that mail with its prompt, its commands are its own, and mail wakes it."""
    post, model = codex.post, codex.model
    tools = TOOLS
    post.env["PATH"] = f"{tools}:{post.env['PATH']}"
    (post.home / ".profile").write_text(f"PATH='{tools}':$PATH\n")
    with served(codex), CodexTerminal(codex) as terminal:
        terminal.ask("PROMPT_ONE")
        me = session(codex)
        terminal.wait(lambda: listens(codex, me) and turn_is_over(codex))
        waits = bell(codex.post, me)
    until(lambda: not is_alive(waits))
    post.send("bob", me, "MAIL_MEANWHILE")
    model.script = by_prompt(PROMPT_TWO=[shell("agent-mailbox send --to user --body FROM_THE_RESUMED")])
    with served(codex), CodexTerminal(codex, "resume", me) as terminal:
        assert terminal.ask("PROMPT_TWO").count("| MAIL_MEANWHILE") == 1
        terminal.wait(lambda: listens(codex, me) and turn_is_over(codex))
        post.send("bob", me, "MAIL_FOR_THE_IDLE")
        terminal.wait(lambda: model.asked("MAIL_FOR_THE_IDLE"))
    assert model.asked("")[-1].count(doorbell.LINE) == 1
    (sent,) = [m for m in post.ok("history", "--all")["messages"] if m["content"] == "FROM_THE_RESUMED"]
    assert sent["sender"] == me


@shows_at(CODEX, "headless", "no wake")
def test_a_run_that_ends_by_itself_has_no_doorbell(codex: Codex) -> None:
    """A run that ends by itself has no doorbell, even beside the server. Mail that is queued to it may be lost."""
    with served(codex):
        codex.ask("PROMPT_ONE", trusting=False)
        assert not codex.post.file(".cache", "doorbell").exists()
