"""``help``: the commands of a first week, all of them by subject, topics, and each command's own page.

What the program tells people to type works when pasted. Each option and argument, given what no user means,
is an error.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import click
import pytest

from agent_mailbox.cli.group import FIRST, SECTIONS, DefaultCommands, cli
from agent_mailbox.commands import main as registered
from agent_mailbox.commands.help_command import PAGES, topics
from agent_mailbox.commands.main import load_all
from tests.helpers import MESSAGES, READS, ROSTER, refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers import Post, Program, Result


def test_the_first_page_lists_a_week_s_commands_and_where_the_others_are(program: Program) -> None:
    """The first page has at most fourteen commands, each on a whole line. The second has every command, by subject."""
    first, rest = program.call("help").stdout, program.call("help", "--all").stdout
    assert program.call("--help").stdout == first
    assert [row.split()[0] for row in first.partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()] == [*FIRST]
    assert len(FIRST) <= 14
    assert "agent-mailbox help --all" in first
    listed = [row.split()[0] for row in rest.splitlines() if row.startswith("  ")]
    assert listed == [name for names in SECTIONS.values() for name in names]
    assert not [row for row in (first + rest).splitlines()[1:] if row.endswith(("...", "…"))]


def test_each_topic_shows_commands_that_exist(program: Program) -> None:
    """A page fits on a screen, and each command on it knows each option shown and lacks none that it needs."""
    registered.load_all()
    for topic in topics():
        page = program.call("help", topic).stdout
        assert page == (PAGES / f"{topic}.txt").read_text(encoding="utf-8")
        lines = page.splitlines()
        assert len(lines) <= 22
        assert max(map(len, lines)) <= 80, topic
        found = re.findall(r"agent-mailbox (\S+(?: \S+)*)", page)
        assert found
        for text in found:
            words, command = shlex.split(text), cli
            while words and isinstance(command, click.Group) and words[0] in command.commands:
                command = command.commands[words.pop(0)]
            if isinstance(command, DefaultCommands):
                command = command.commands[command.default]
            known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            assert command is not cli, text
            assert {word for word in words if word.startswith("--")} <= known, text
            needed = {one.opts[0] for one in command.params if isinstance(one, click.Option) and one.required}
            assert needed <= {*words} or "--help" in words, text
    assert ", ".join(topics()) in program.call("help", "help").stdout


def test_the_help_of_each_command_fits_eighty_columns() -> None:
    """No line is longer, and none is cut."""
    registered.load_all()
    left: list[tuple[list[str], click.Command]] = [(["agent-mailbox"], cli)]
    while left:
        path, command = left.pop()
        context = click.Context(command, info_name=" ".join(path), **cli.context_settings)
        context.terminal_width = context.max_content_width = 80
        lines = command.get_help(context).splitlines()
        assert max(map(len, lines)) <= 80, path
        assert [line for line in lines[1:] if line.endswith("…")] == [], path
        assert not re.search(r"--\S+ (INTEGER|FLOAT)", "\n".join(lines)), path
        if isinstance(command, click.Group):
            left += [([*path, name], one) for name, one in command.commands.items()]


def test_help_of_a_command_is_its_own(program: Program) -> None:
    """A command within a group has its own help, too; an unknown word gets the topics."""
    for words in (["send"], ["control", "policy"], ["roster"]):
        assert program.call("help", *words).stdout == program.call(*words, "--help").stdout
    refused(program.call("help", "xyzzy"), 2, "addresses, approvals, machines, teams")
    refused(program.call("help", "--all", "send"), 2, "leave one of them out")


def test_an_answer_needs_one_word(program: Program) -> None:
    """`approve`, `deny` and `pending` are `control`'s own."""
    for word in ("approve", "deny", "pending"):
        short, long = (program.call(*words, "--help").stdout for words in ((word,), ("control", word)))
        assert short.replace("agent-mailbox ", "agent-mailbox control ", 1) == long or short.split("\n", 1)[1] in long


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("claim", "run `agent-mailbox task claim`"),
        ("policy bob", "run `agent-mailbox control policy`"),
        ("progres", "run `agent-mailbox task progress`"),
        ("rooster list", "did you mean roster?"),
        ("control aprove x", "did you mean approve?"),
        ("task lst", "did you mean list?"),
        ("note claim", "run `agent-mailbox task claim`"),
        ("install cluade", "did you mean claude-code?"),
        ("help tems", "did you mean teams?"),
        ("help claim", "run `agent-mailbox task claim --help`"),
        ("send --form a --to b --body x", "did you mean --from?"),
        ("send --lead a --to b --body x", "it is an option of `agent-mailbox roster"),
        ("check --follow", "it is an option of `agent-mailbox control log`"),
        ("check --all", "`agent-mailbox check --help` shows the usage"),
        ("note list --session a", "`agent-mailbox note list --help` shows the usage"),
        ("help tasks", "did you mean task?"),
        ("help roles", "name a topic (addresses, "),
        ("check --nonsense", "`agent-mailbox check --help` shows the usage"),
        ("nonsense", "`agent-mailbox help --all` lists the commands"),
    ],
)
def test_an_unknown_word_says_what_was_meant_from_all_commands_and_options(
    program: Program, words: str, hint: str
) -> None:
    """The word may be a command of another group, or nearly; the option another command's."""
    assert hint in refused(program.call(*words.split()), 2).stderr


# -- what the program tells people to type ----------------------------------------------------------------------------


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


# -- each option, given what no user means ----------------------------------------------------------------------------


LOGS = (MESSAGES, READS, ROSTER)
STARTS = {*SECTIONS["Setting up"], "console", "top", "tail", "statusline", "wait", "engine", "notify"} - {"init"}
STARTS |= {"swarm serve", "control wait", "control log", "teams bridge", "teams import", "steward crontab"}
"""Commands that serve, wait, or change a client."""
KNOWN = {"session": "ann", "sender": "ann", "message_id": "MESSAGE", "task_id": "task-a", "to": "ben", "body": "b"}
"""Values of the other parameters with which a command begins."""
HOSTILE = "a\udcff\x1b[2J\n\u202e" + "x" * 9_000
"""An argument that is not UTF-8, forges a line, and is longer than anybody wants to read again."""


def every_command(group: Any = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands of the program that end by themselves, with the words that name each."""
    context = click.Context(group)
    for name in group.list_commands(context):
        here, found = (*path, name), group.get_command(context, name)
        if not {name, " ".join(here)} & STARTS:
            yield from every_command(found, here) if isinstance(found, click.Group) else [(here, found)]


def words_for(param: click.Parameter, value: str) -> list[str]:
    """The words that give a parameter a value."""
    return [f"{param.opts[0]}={value}"] if param.param_type_name == "option" else [value]


def values_of(param: click.Parameter, others: dict[str, str]) -> list[str]:
    """The words by which another parameter is given, if it must be or says who calls."""
    choices = getattr(param.type, "choices", ["b"])
    is_given = param.required or param.name in ("session", "sender", "to", "body")
    return words_for(param, others.get(param.name or "", choices[0])) if is_given else []


def test_no_value_of_any_option_ends_a_command_otherwise_than_documented(post: Post) -> None:
    """It is exit 0 to 5, an error with a hint, one JSON document, and no byte that a terminal takes for an order. All
    that was in the logs is there, in its place."""
    load_all()
    post.register("ann", "--tags", "project:x")
    post.register("ben")
    others = {**KNOWN, "message_id": post.send("ben", "ann")}
    post.ok("task", "add", "--to", "ann", "--title", "t", "--task-id", "task-a", "--session", "ben")
    post.check("ann")
    wrong, tried = [], 0
    for path, command in every_command():
        params = [param for param in command.params if not getattr(param, "is_flag", False)]
        for hostile, value in itertools.product(params, (HOSTILE, "")):
            given = [words_for(one, value) if one is hostile else values_of(one, others) for one in params]
            before, tried = [post.file(name).read_bytes() for name in LOGS], tried + 1
            result = post.call(*path, *itertools.chain(*given), *([] if path == ("export",) else ["--json"]))
            said = result.stdout + result.stderr
            error = {} if path == ("export",) else json.loads(result.stdout).get("error", {})
            faults = {
                "code": result.rc not in range(6) or "unexpected error" in said,
                "hint": result.rc > 1 and bool(error) and not (error["message"] and error["hint"]),
                "line": result.rc > 1 and "error: " not in result.stderr,
                "long": len(said) > 40_000,
                "bytes": not {"\x1b", "\u202e", "\udcff"}.isdisjoint(said),
                "lost": any(not post.file(n).read_bytes().startswith(old) for n, old in zip(LOGS, before, strict=True)),
            }
            wrong += [(*path, hostile.name, value[:9], fault, said[:300]) for fault, is_so in faults.items() if is_so]
    assert not wrong
    assert tried > 500
