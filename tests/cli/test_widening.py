"""What widens asks the person, unless they typed it: real shells at real terminals, and what an agent may plant."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.control import message_text, messages
from agent_mailbox.identity import terminals
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, ROSTER
from tests.surroundings import at_terminal, line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers import Post

ALLOW = ("control", "policy", "w", "--allow", "Bash")
NO, YES = "n\n", "y\n"


@pytest.fixture
def led(post: Post) -> Post:
    """A mailbox with ``w``, which the person put under a rule that denies."""
    post.register("w")
    post.ok("control", "policy", "w", "--deny", "Bash(curl:*)", "--session", "user")
    return post


def rules(post: Post) -> dict[str, list[str]]:
    """The rules of ``w``."""
    policy = ControlDesk(OpenMailbox(str(post.box))).standing("w").policy
    return {"allow": [*policy.allow], "deny": [*policy.deny]}


def _hook(post: Post, text: str) -> str:
    """A git hook, as the person commits."""
    subprocess.run(["git", "init", "-q"], cwd=post.cwd, check=True, env=post.environ())
    (hook := post.cwd / ".git/hooks/pre-commit").write_text(f"#!/bin/sh\n{text}\n")
    hook.chmod(0o755)
    return "git -c user.name=p -c user.email=p@x commit -q --allow-empty -m x"


def _makefile(post: Post, text: str) -> str:
    (post.cwd / "Makefile").write_text(f"test:\n\t@{text}\n")
    return "make test"


def _script(post: Post, text: str, first: str = "#!/bin/sh") -> str:
    (post.cwd / "run").write_text(f"{first}\n{text}\n")
    (post.cwd / "run").chmod(0o755)
    return "./run"


PLANTED: dict[str, Callable[[Post, str], str]] = {
    "a git hook": _hook,
    "a Makefile": _makefile,
    "a script": _script,
    "a script that replaces itself": lambda post, text: _script(post, f"exec {text}"),
    "a script of another shell": lambda post, text: _script(post, text, "#!/bin/bash -i"),
    "a shell within the shell": lambda _, text: f"sh -c {shlex.quote(f'{text}; :')}",
    "a pipe of commands": lambda _, text: f"echo {shlex.quote(text)} | bash",
    "a conftest of Python": lambda post, text: _script(
        post, f"import os; os.system({text!r})", "#!/usr/bin/env python3"
    ),
    "with --yes": lambda _, text: f"sh -c {shlex.quote(f'yes | {text}; :')}",
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_the_person_s_terminal_runs_for_an_agent_asks_the_person(led: Post, what: str) -> None:
    """The question names what it would widen and who asks; no answer, or another than yes, changes nothing."""
    if what == "a Makefile" and shutil.which("make") is None:
        pytest.skip("no make")
    before = rules(led)
    done = at_terminal(led, PLANTED[what](led, line(*ALLOW)), answer=NO)
    assert "This widens what agents may do: allow Bash for w; no longer deny Bash(curl:*) for w." in done.stdout, done
    assert "This command was started by bash (process " in done.stdout
    assert "error: nothing changed: you did not confirm it" in done.stdout
    assert rules(led) == before


def test_the_first_process_of_a_terminal_is_asked_who_made_that(led: Post) -> None:
    """No shell is between it and what made its terminal (``script -c`` in a job): that one is named."""
    done = at_terminal(led, f"exec {line(*ALLOW)}", answer=NO, shell=("sh", "-c"))
    assert "This command was started by python" in done.stdout, done


def test_the_person_may_say_yes_and_what_they_type_asks_nothing(led: Post) -> None:
    """A command that a program planted asks the person, who may say yes. A command that they type asks nothing."""
    done = at_terminal(led, PLANTED["a script"](led, line(*ALLOW)), answer=YES)
    assert done.rc == 0, done
    assert rules(led)["allow"] == ["Bash"]
    for text in (line(*ALLOW), f"{line(*ALLOW)} | cat", f"f() {{ {line(*ALLOW)}; }}; f"):
        led.ok("control", "policy", "w", "--clear", "--session", "user")
        done = at_terminal(led, text)
        assert "[y/N]" not in done.stdout, (text, done)
        assert rules(led)["allow"] == ["Bash"], (text, done)


WIDEN = (
    ALLOW,
    ("control", "policy", "w", "--clear"),
    ("control", "policy", "w", "--deny", "Bash(wget:*)"),
    ("control", "policy", "w", "--add", "--host", "example.org"),
    ("control", "policy", "all", "--allow", "Bash"),
    ("control", "mode", "w", "acceptEdits"),
    ("control", "approve", "perm-1"),
    ("control", "answer", "perm-1", "approve"),
    ("control", "answer", "perm-1", "deny", "--mode", "acceptEdits"),
    ("send", "--to", "w", "--type", "control", "--body", '{"type": "mode_set_request", "mode": "acceptEdits"}'),
    ("send", "--to", "w", "--type", "control", "--body", "@order.json"),
    ("roster", "update", "--session-id", "w", "--lead", "x"),
    ("roster", "register", "--session-id", "new", "--lead", "x"),
    ("roster", "register", "--session-id", "new", "--name", "Gone"),
    ("install", "claude-code", "--closed"),
    ("install", "codex", "--user"),
    ("uninstall", "claude-code"),
    ("uninstall", "--all"),
    ("uninstall", "--all", "--state"),
    ("restore", "b.tar", "there"),
    ("console", "--port", "0", "--open"),
    ("engine", "join", "nats://127.0.0.1:1", "--space", "s", "--speaks", "north=user"),
)
NARROW = (
    ("control", "policy", "w", "--add", "--deny", "Bash(wget:*)"),
    ("control", "policy", "w", "--deny", "Bash(curl:*)", "--deny", "Bash(wget:*)", "--deny", "Bash(nc:*)"),
    ("control", "policy", "w"),
    ("control", "mode", "w", "safe"),
    ("control", "mode", "w"),
    ("control", "pending"),
    ("control", "deny", "perm-1"),
    ("roster", "update", "--session-id", "w", "--lead", "user"),
    ("roster", "register", "--session-id", "other", "--name", "Other"),
    ("send", "--to", "w", "--body", "hello"),
    ("check",),
    ("install", "claude-code", "--dry-run"),
    ("uninstall", "--all", "--dry-run"),
)


def test_each_command_that_widens_asks_and_none_that_looks_or_narrows(led: Post) -> None:
    """All of them, run by one script at the person's terminal, who says no to each."""
    order = message_text.written(messages.PolicyUpdate(allow=("Bash",)))
    (led.cwd / "order.json").write_text(order)
    led.register("old", "--name", "Gone")
    led.call("roster", "retire", "old")
    ask = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "npm test"}')
    led.ok(*ask, "--session", "w", "--request-id", "perm-1")
    led.ok("install", "claude-code")
    led.ok("backup", "b.tar")
    asked_before = len(led.objects(MESSAGES))
    roster = led.file(ROSTER).read_bytes()
    lines = [f"{line(*words)} || echo; echo ..." for words in WIDEN]
    done = at_terminal(led, _script(led, "\n".join(lines)), answer=NO)
    told = done.stdout.split("...\r\n")[: len(WIDEN)]
    assert len(told) == len(WIDEN), done
    for words, said in zip(WIDEN, told, strict=True):
        assert "[y/N]" in said, (words, said)
        assert "nothing changed: you did not confirm it" in said, (words, said)
    assert (len(led.objects(MESSAGES)), led.file(ROSTER).read_bytes()) == (asked_before, roster)
    assert not (led.cwd / "there").exists()
    assert [*led.user_state.rglob("console-host")] == []
    done = at_terminal(led, _script(led, "\n".join(line(*words) for words in NARROW)), answer=NO)
    assert (done.rc, "[y/N]" in done.stdout) == (0, False), done
    assert rules(led)["deny"] == ["Bash(curl:*)", "Bash(wget:*)", "Bash(nc:*)"]


def test_a_program_that_holds_the_terminal_answers_nothing(led: Post) -> None:
    """`script` and its like have the other end of a terminal of their own, and could type there."""
    held = f"script -qec {shlex.quote(line(*ALLOW))} /dev/null"
    for text in (held, f"setsid -w {held}"):
        done = at_terminal(led, _script(led, f"printf 'y\\ny\\n' | {text}"), answer=YES)
        assert "holds this terminal, and could answer in your place" in done.stdout, (text, done)
        assert "[y/N]" not in done.stdout
    assert rules(led)["allow"] == []


SWAP = """
import os, sys
master, slave = os.openpty()
if os.system(f"mount --bind {os.ttyname(slave)} /dev/tty"):
    raise SystemExit("no mount")
os.write(master, bytes([121, 10]) * 3)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_nobody_is_asked_in_the_background_or_at_another_terminal(led: Post) -> None:
    """A job in the background would stop for ever. A terminal that a program put in the place of the person's own would
    answer as the program likes."""
    done = at_terminal(led, f"sh -c {shlex.quote(f'{line(*ALLOW)}; :')} & wait", answer=YES)
    assert "runs in the background, where nobody can be asked" in done.stdout, done
    (led.cwd / "swap.py").write_text(SWAP)
    apart = "unshare -m" if os.geteuid() == 0 else "unshare -rm"
    swapped = at_terminal(led, _script(led, f"{apart} {sys.executable} swap.py {line(*ALLOW)}"), answer=YES)
    assert (swapped.rc, "[y/N]" in swapped.stdout) == (1, False), swapped
    assert rules(led)["allow"] == []


CALLS = (
    (("bash",), True),
    (("-bash",), True),
    (("zsh", "-il"), True),
    (("bash", "--rcfile", "/x/rc", "-i"), True),
    (("bash", "-O", "extglob"), True),
    (("sh", "-c", "x"), False),
    (("bash", "-lic", "x"), False),
    (("fish", "--command=x"), False),
    (("bash", "script"), False),
    (("bash", "-i", "script"), False),
    ((), False),
)


@pytest.mark.parametrize(("words", "wanted"), CALLS, ids=lambda value: str(value))
def test_a_shell_is_interactive_that_got_neither_a_command_nor_a_script(words: tuple[str, ...], wanted: bool) -> None:
    """Else what it runs was not typed."""
    assert terminals._is_interactive(words) is wanted


def test_what_changes_nothing_asks_nothing(led: Post) -> None:
    """A decided request, what is not installed, a backup that is missing, a place that is used, what is refused: the
    question would have had no effect."""
    ask = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "npm test"}')
    led.ok(*ask, "--session", "w", "--request-id", "perm-1")
    assert (
        "suggests no narrow rule"
        in at_terminal(led, _script(led, line("control", "approve", "perm-1", "--always")), answer=NO).stdout
    )
    led.ok("control", "deny", "perm-1", "--session", "user")
    led.ok("backup", led.cwd / "made.tar")
    words = (
        *(("control", "approve", "perm-1"), ("uninstall", "claude-code")),
        *(("restore", "missing.tar", "there"), ("restore", "made.tar", str(led.box))),
        *(("install", "codex", "--user", "--project", "x"), ("install", "claude-code", "--host", "a")),
        *(("console", "--origin", "http://x"), ("console", "--host", "127.0.0.1.invalid", "--open")),
        *(("engine", "join", "--speaks", "north=user"), ("control", "mode", "nobody", "acceptEdits")),
        *(("control", "policy", "w", "--allow", "(("), ("control", "policy", "w", "--allow", "X", "--session", "w")),
    )
    done = at_terminal(led, _script(led, "\n".join(f"{line(*one)}; echo" for one in words)), answer=YES)
    assert "[y/N]" not in done.stdout
    for told in (
        "perm-1 is decided: denied",
        "; nothing to change",
        "missing.tar",
        "is a mailbox already",
        "--project and --user exclude each other",
        "--host has no effect without --sandbox",
        "not an https origin",
        "cannot listen on 127.0.0.1.invalid",
        "choose an address of this machine with --host",
        "space to join is missing",
        "no agent 'nobody'",
        "is no permission rule",
        "nothing proves that a policy is w's",
    ):
        assert told in done.stdout
