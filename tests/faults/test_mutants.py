"""The mutants of ``scripts/mutants`` still fit the code they take a protection out of."""

from __future__ import annotations

import ast
import gc
import textwrap
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.faults import scopes
from tests.faults.mutant import Mutant, read_mutants
from tests.faults.operators import Source, text_without
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CODE = textwrap.dedent('''
    LIMIT = 1


    class Log:
        @property
        def end(self):
            """Return the end."""
            return self.at() if self.at else 0


    def end(size, names=()):
        """Return nothing."""
        note(size)  # a comment
        if size and names:
            note(f"{size} of {names}")
        elif size > 3:
            raise Full(size, names, told="a text")
        with held(size), lock:
            total = [*names, size.strip(), 3 | size]
        return total
    ''').lstrip()


def misfit(mutant: Mutant) -> str:
    """Return why a run of the mutant would show nothing, "" if it would."""
    try:
        ast.parse(_part(mutant))
    except (LookupError, SyntaxError) as error:
        return f"{mutant.without}: {error}"
    missing = [test for test in mutant.tests if f"def {_function(test)}(" not in _text(test.partition("::")[0])]
    return f"{mutant.without}: no test {missing}" if missing else ""


def _part(mutant: Mutant) -> str:
    """Return what the mutant makes of its scope; the rest of the file is as it was."""
    scope, text = scopes.find(ROOT, mutant.at), mutant.patched()
    above = getattr(scope.node, "lineno", 1) - 1
    below = len(scope.source.lines) - getattr(scope.node, "end_lineno", len(scope.source.lines))
    lines = text.splitlines(keepends=True)
    return textwrap.dedent("".join(lines[above : len(lines) - below]))


def _function(test: str) -> str:
    return test.partition("::")[2].partition("[")[0]


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def test_each_mutant_fits_the_code_and_has_tests() -> None:
    """The place of each row is there once, the package without it is still Python, and its tests exist."""
    gc.disable()  # no tree is garbage before the end
    try:
        assert [told for told in map(misfit, read_mutants()) if told] == []
    finally:
        scopes.forget()
        gc.enable()


def test_no_two_mutants_have_one_name() -> None:
    """The table has one row for each."""
    assert [name for name, count in Counter(one.without for one in read_mutants()).items() if count > 1] == []


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("never names", "size and names", "size and (False)"),
        ("never size and", "size and names", "(False)"),
        ("always >", "size > 3", "(True)"),
        ("drop note() #1", "note(size)  #", "pass  #"),
        ("drop raise", 'raise Full(size, names, told="a text")', "pass"),
        ("less told=", 'Full(size, names, told="a text")', "(Full(size, names))"),
        ("less held()", "with held(size), lock:", "with lock:"),
        ("less *", "[*names, size.strip(), 3 | size]", "([size.strip(), 3 | size])"),
        ("less 3", "3 | size", "(size)"),
        ("bare Full()", 'Full(size, names, told="a text")', "(size)"),
        ("bare strip()", "size.strip()", "(size)"),
        ("4 for 3 #1", "size > 3", "size > (4)"),
        ("f'{size}' for f''", 'f"{size} of {names}"', "(f'{size}')"),
        ("spell a text as no text", '"a text"', "('no text')"),
        ("return at raise", 'raise Full(size, names, told="a text")', "return"),
        ("return 7", "note(size)  #", "return 7\n    note(size)  #"),
        ("first size = 3", "note(size)  #", "size = 3\n    note(size)  #"),
        (
            "drop raise then never >",
            'size > 3:\n        raise Full(size, names, told="a text")',
            "(False):\n        pass",
        ),
    ],
)
def test_an_operator_changes_the_smallest_place_that_has_its_words(operator: str, old: str, new: str) -> None:
    """All else stays as it is, comments and lines included."""
    source = Source(CODE)
    function = source.tree.body[-1]
    assert CODE.count(old) == 1
    assert text_without(source, function, operator) == CODE.replace(old, new)


def test_a_late_statement_follows_the_other_one() -> None:
    """It is where the other one ends, as deep as that."""
    source = Source("def end():\n    if one():\n        two()\n        three()\n")
    late = text_without(source, source.tree, "late two() past three()")
    assert late == "def end():\n    if one():\n        pass\n        three()\n        two()\n"


@pytest.mark.parametrize("operator", ["drop note()", "drop nothing()", "always fit", "never size #9"])
def test_a_place_that_is_not_there_once_is_refused(operator: str) -> None:
    """Else the mutant would take away something else."""
    source = Source(CODE)
    with pytest.raises(LookupError, match=r"names \d places"):
        text_without(source, source.tree.body[-1], operator)


def test_a_name_is_found_by_its_end_wherever_its_module_stands(tmp_path: Path) -> None:
    """A class, a method, a function, an assignment, a module; a name of several places is refused."""
    there = tmp_path / "agent_mailbox" / "far" / "away.py"
    there.parent.mkdir(parents=True)
    there.write_text(CODE)
    names = ("away.LIMIT", "Log.end", "away.end", "away")
    kinds = [type(scopes.find(tmp_path, name).node) for name in names]
    assert kinds == [ast.Assign, ast.FunctionDef, ast.FunctionDef, ast.Module]
    with pytest.raises(LookupError, match="names 2 places"):
        scopes.find(tmp_path, "end")
    with pytest.raises(LookupError, match="names 0 places"):
        scopes.find(tmp_path, "og.end")
