"""What the program tells people to type can be typed."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from agent_mailbox.cli import suggested
from agent_mailbox.cli.group import cli
from tests.helpers import ROOT, each
from tests.test_docs import ALL

SHORT = {"lease": "take", "watch": "set"}
"""Groups whose first word may be left out."""


def hints() -> list[str]:
    """Every call of the program between backticks in the code's texts; ``X`` is in the place of a value."""
    found = set()
    for file in (ROOT / "agent_mailbox").rglob("*.py"):
        text = re.sub(r'"\s*\n\s*f?"', "", file.read_text())
        found |= {re.sub(r"\{[^}]*\}", "X", said) for said in re.findall(r"`agent-mailbox ([^`]*)`", text)}
    return sorted(said for said in found if said.split()[0] != "X")


GIVEN = {"--dir": "a mailbox", "--home": "a gateway", "--session": "bob"}
"""What a command may be given, and its hints repeat."""


@pytest.mark.parametrize("given", [{}, GIVEN], ids=["bare", "with options"])
@each("said", hints())
def test_a_command_that_the_program_names_can_be_typed(said: str, given: dict[str, str]) -> None:
    """Its words, options and number of arguments are a command's, also with the options that it repeats."""
    said = suggested.with_options(said, given)
    words = shlex.split(said.replace('\\"', '"'))
    if words[0] in SHORT and tuple(words[:2]) not in ALL and words[1:]:
        words[1:1] = [SHORT[words[0]]]
    path = next(tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in ALL)
    command, rest = ALL[path], words[len(path) :]
    if isinstance(command, click.Group) and rest[:1] == ["X"]:
        return  # for any of its commands
    context = click.Context(command, info_name=" ".join(path), parent=click.Context(cli, **cli.context_settings))
    given, left, _ = command.make_parser(context).parse_args(rest)
    assert left == [] or isinstance(command, click.Group), given


@pytest.mark.parametrize(
    ("said", "completed"),
    [
        ("init --adopt X", "init --adopt X"),
        ("init 'a b'", "init 'a b'"),
        ("init --adopt", "init --dir box --adopt"),
        ("restore 'a b.tar' X", "restore 'a b.tar' X"),
        ("restore 'a b.tar'", "restore 'a b.tar' --dir box"),
    ],
)
def test_a_command_names_its_mailbox_once(said: str, completed: str) -> None:
    """A suggested command names its mailbox once, by its argument or by the option that it repeats."""
    assert suggested.with_options(said, {"--dir": "box"}) == completed


NEEDLESS = {("statusline",), ("tail",), ("task", "list"), ("task", "show"), ("lease", "list")}
"""Commands that take a session, and that no hint names for one."""


def test_a_hint_repeats_the_session_to_each_command_that_acts_for_one() -> None:
    """A program that gave ``--session`` could not tell who calls without it. To the roster it is the object."""
    for path, command in ALL.items():
        options = {one.opts[0] for one in command.params}
        taken = options & {"--session", "--from"} if path[:1] != ("roster",) and path not in NEEDLESS else set()
        completed = suggested.with_options(" ".join(path), {"--session": "bob"})
        assert isinstance(command, click.Group) or set(shlex.split(completed)) & {"--session", "--from"} == taken, path
