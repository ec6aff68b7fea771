"""The real Claude Code in other places: a container, an editor, and by words that take hooks away.

Belongs here: what its sessions see there, and what a sender is told. ``scripts/clients`` runs it.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.client import Client
from tests.e2e.shown import shows_at, takes_long
from tests.e2e.terminal import Terminal
from tests.e2e.test_doorbell import WOKEN, quiet
from tests.helpers import PATIENCE, until
from tests.surroundings import can_run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [takes_long, pytest.mark.claude_code]
CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Process numbers of its own: the client is number 1, as in ``docker run image claude``."""


def wrapped(client: Client) -> Path:
    """A program that starts the client in a container of its own."""
    binary = client.post.scratch / "contained"
    if not binary.exists():
        binary.write_text(f'#!/bin/sh\nexec {" ".join(CONTAINER)} "{client.binary}" "$@"\n')
        binary.chmod(0o755)
    return binary


class First(Terminal):
    """A terminal whose client is the first process of its container."""

    @property
    def pid(self) -> int:
        """The client's process, as the client itself sees it."""
        return 1


def seen(client: Client, session: str) -> str:
    """When the session would see mail, as the roster tells it."""
    return str(client.post.ok("roster", "show", session)["agent"].get("mail", {}).get("seen"))


@pytest.mark.skipif(not can_run(*CONTAINER, "true"), reason="this user may make no namespace of processes")
@shows_at(CLAUDE_CODE, "container", "mail", "wake")
def test_the_first_process_of_a_container_is_woken(client: Client) -> None:
    """Its number has one digit. Mail wakes it, and the session sees it, once."""
    client.binary = wrapped(client)
    with First(client) as terminal:
        session = str(terminal.wait(terminal.session))
        terminal.wait(lambda: terminal.idle() and quiet(client, session).exists())
        bell = client.post.file(".cache", "doorbell", session)
        terminal.wait(lambda: bell.exists() and bell.read_text()[:1].isdigit())
        client.post.send("bob", session, "MAIL_IN_THE_CONTAINER")
        woken = str(terminal.wait(lambda: client.model.asked("MAIL_IN_THE_CONTAINER"))[0])
        assert WOKEN in woken
        assert woken.count("| MAIL_IN_THE_CONTAINER") == 1


@shows_at(CLAUDE_CODE, "editor", "mail", "no wake")
def test_an_editor_s_session_sees_mail_with_its_next_prompt(client: Client) -> None:
    """An editor speaks to it by streams of JSON. Mail comes beside a prompt; nothing wakes it, and a sender is told."""
    words = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    env = {"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}
    with client.start(*words, env=env, stderr=subprocess.DEVNULL, **pipes) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None

        def ask(text: str) -> None:
            message = {"type": "user", "message": {"role": "user", "content": text}}
            editor.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            editor.stdin.flush()  # type: ignore[union-attr]
            for line in editor.stdout:  # type: ignore[union-attr]
                if json.loads(line)["type"] == "result":
                    return

        ask("PROMPT_ONE")
        (agent,) = client.post.ok("roster", "list")["agents"]
        session = agent["session_id"]
        assert seen(client, session) == "at_next_turn"
        client.post.send("bob", session, "MAIL_FOR_THE_EDITOR")
        ask("PROMPT_TWO")
        assert client.model.asked("PROMPT_TWO")[0].count("| MAIL_FOR_THE_EDITOR") == 1
        assert WOKEN not in "".join(client.model.asked(""))
        editor.stdin.close()
        editor.wait(PATIENCE)


HOOKLESS = {
    "bare": ["--bare"],
    "safe-mode": ["--safe-mode"],
    "restricted": ["--restricted"],
    "setting-sources": ["--setting-sources", "user"],
    "disableAllHooks": ["--settings", '{"disableAllHooks":true}'],
}
"""Words by which the client calls no hook of ours."""


@pytest.mark.parametrize("words", HOOKLESS.values(), ids=HOOKLESS)
def test_a_session_that_comes_back_without_its_hooks_is_promised_nothing(client: Client, words: list[str]) -> None:
    """Its client shows it no mail. The sender is told that the mail waits for it and, while that client runs, by which
    of its words. Mail comes once hooks run again."""
    session = client.ask("PROMPT_ONE")["session_id"]
    with Terminal(client, "--resume", session, *words) as terminal:
        terminal.wait(terminal.idle)
        sent = client.post.ok("send", "--from", "bob", "--to", session, "--body", "MAIL_MEANWHILE")["delivery"]
        assert (sent["agents"], sent["waiting_for"]) == ([], [session])
        why = f"its client runs with {words[0]}, and calls no hook of ours"
        assert sent["reasons"] == {session: why}
        assert client.post.ok("roster", "show", session)["agent"]["mail"]["reason"] == why
        assert "MAIL_MEANWHILE" not in terminal.ask("PROMPT_TWO")
        terminal.wait(terminal.has_answer)
        terminal.leave()
    assert client.post.ok("roster", "show", session)["agent"]["state"] == "frozen"
    client.ask("PROMPT_THREE", "--resume", session)
    assert client.model.asked("PROMPT_THREE")[0].count("| MAIL_MEANWHILE") == 1


def test_a_session_whose_settings_switch_hooks_off_is_promised_nothing(client: Client) -> None:
    """While it runs: the client reads its settings again, a little later, and shows no mail from then on. Whoever asks
    is told so."""
    settings = client.project / ".claude/settings.local.json"
    with Terminal(client) as terminal:
        session = str(terminal.wait(terminal.session))
        terminal.ask("PROMPT_ONE")
        until(lambda: seen(client, session) == "now")
        value = json.loads(settings.read_text())
        settings.write_text(json.dumps({**value, "disableAllHooks": True}))

        def unseen() -> bool:
            until(lambda: seen(client, session) == "when_it_looks")
            terminal.wait(lambda: terminal.idle() or terminal.has_answer())
            number = len(client.model.requests)
            sent = client.post.ok("send", "--from", "bob", "--to", session, "--body", f"MAIL_{number}_")
            assert sent["delivery"]["when_it_looks"] == [session]
            return f"MAIL_{number}_" not in terminal.ask(f"PROMPT_{number}_")

        until(unseen)
        assert seen(client, session) == "when_it_looks"
