"""``help``: the commands of a first week, all of them by subject, topics, and each command's own page."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from agent_mailbox.cli.group import FIRST, SECTIONS, DefaultCommands, cli
from agent_mailbox.commands import main as registered
from agent_mailbox.commands.help_command import PAGES, topics
from tests.helpers import refused

if TYPE_CHECKING:
    from tests.helpers import Program


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
