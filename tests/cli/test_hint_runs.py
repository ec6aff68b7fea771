"""What the program tells people to type works when pasted: each command that it printed is run as it is."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from tests.helpers import Post, Result

BOX = "a mailbox, not here"
SITUATIONS = (
    ("check", "--session", "bob", "--limit", "1"),
    ("check", "--session", "lee"),
    ("status", "--session", "bob"),
    ("show", "no-such"),
    ("check", "--session", "gone"),
    ("roster", "register", "--session-id", "dup", "--name", "Bob"),
    ("control", "pending", "--session", "lee"),
    ("control", "request", "permission", "--tool", "Bash", "--session", "bob"),
    ("control", "deny", "no-such", "--session", "lee"),
    ("watch", "cancel", "no-such", "--session", "bob"),
    ("watch", "set", "gone", "--idle", "--session", "bob"),
    ("lease", "release", "no-such", "--session", "bob"),
    ("roster", "show", "no-such"),
    ("teams", "export", "no-such"),
    ("release", "LEE", "--session", "bob"),
    ("task", "claim", "task-lee", "--session", "bob"),
    ("task", "cancel", "task-lee", "--session", "lee"),
    ("note", "drop", "NOTE", "--session", "bob"),
)
"""Commands whose answers name commands. ``LEE``: a message that bob may not release. ``NOTE``: a note of lee's."""

ADD_TASK = ("task", "add", "--to", "project:x", "--title", "t", "--session", "lee")
TASKS = (("task-lee",), ("task-open",), ("task-late", "--after", "task-lee"))


def said(result: Result) -> list[str]:
    """The commands in an answer, each as a person would copy it: between backticks, or to the end of its line."""
    text = result.stdout + result.stderr
    quoted = re.findall(r"`(agent-mailbox [^`\n]*)`", text)
    plain = re.sub(r"`[^`\n]*`", "", text)
    return quoted + [line.rstrip(") ") for line in re.findall(r"agent-mailbox [^\n(]*", plain)]


@pytest.fixture
def away(post: Post) -> Post:
    """A mailbox that no command finds by itself, with an agent's mail, a request, and one that is dead."""
    box = post.cwd / BOX
    post.run("init", box)
    post.env.pop("AGENT_MAILBOX_DIR", None)
    post.box = box
    for words in (
        ("roster", "register", "--session-id", "lee", "--tags", "project:x"),
        ("roster", "register", "--session-id", "bob", "--name", "Bob", "--lead", "lee", "--tags", "project:x"),
        ("roster", "register", "--session-id", "gone", "--role", "tester"),
        ("roster", "retire", "gone"),
        *(("send", "--from", "lee", "--to", "bob", "--body", body) for body in "abc"),
        ("send", "--from", "bob", "--to", "lee", "--body", "for lee"),
        ("control", "request", "permission", "--tool", "Bash", "--session", "bob"),
        *((*ADD_TASK, "--task-id", task, *more) for task, *more in TASKS),
        ("task", "claim", "task-lee", "--session", "lee"),
        ("note", "add", "--title", "lee's", "--session", "lee"),
    ):
        assert post.call(*words, "--dir", BOX).rc == 0, words
    return post


@pytest.mark.parametrize("words", SITUATIONS, ids=" ".join)
def test_each_command_that_an_answer_names_works_as_it_stands(away: Post, words: tuple[str, ...]) -> None:
    """Each command that an answer names works as it is, from the same directory and for the same mailbox."""
    ids = {
        "LEE": next(m["id"] for m in away.objects(MESSAGES) if m["recipient"] == "lee"),
        "NOTE": next(m["id"] for m in away.objects(MESSAGES) if m.get("type") == "note"),
    }
    result = away.call(*(ids.get(word, word) for word in words), "--dir", BOX)
    found = said(result)
    assert found, result
    for command in found:
        assert shlex.quote(BOX) in command or shlex.split(command)[1] == "init", command
        typed = shlex.split(command.replace("…", "text").replace("--timeout 600", "--timeout 0.01"))[1:]
        again = away.call(*typed)
        assert "no mailbox" not in again.stderr, (command, again)
        assert again.rc == (1 if " wait " in command else 0), (command, again)  # nobody answers meanwhile


def test_a_mailbox_that_is_found_without_an_option_needs_none_in_a_hint(post: Post) -> None:
    """A hint leaves ``--dir`` out if the command found the mailbox without it."""
    post.register("bob")
    post.send("alice", "bob")
    assert "--dir" not in post.call("check", "--session", "bob").stdout
    assert "--dir" not in post.call("show", "no-such").stderr
