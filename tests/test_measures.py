"""The structure and the language of the package, held where they are."""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

import pytest

from scripts.measuring import Sources, figures, hard_sentences
from tests.helpers import ROOT


@cache
def found() -> dict[str, Any]:
    """Return the figures of the sources, and their sentences that are hard to read. Nobody keeps the sources' trees."""
    gc.disable()  # none of a tree is garbage, and to look at them all again and again takes longer than all else
    try:
        sources = Sources(ROOT)
        return {**figures(sources), "hard sentences": list(hard_sentences(sources, ""))}
    finally:
        gc.enable()


def test_no_module_imports_itself_by_a_detour() -> None:
    """A module does not import itself by a detour, neither lazily nor for types."""
    assert found()["cycles"] == []


def test_a_module_name_leads_to_one_module() -> None:
    """A person who looks for a feature finds its module by ``ls``: no two modules share a name."""
    assert found()["module names that repeat"] == []


def test_a_class_name_leads_to_one_class() -> None:
    """A reader who meets a public name needs no path to know it."""
    assert found()["class names that repeat"] == []


def test_the_language_is_plain() -> None:
    """Each sentence of a docstring begins as readers expect, and ends in time."""
    assert found()["hard sentences"] == [], "rewrite these; scripts/measure --hard ROOM lists them"


def test_nobody_reads_a_word_that_nobody_says() -> None:
    """Pages, help, errors, comments and the tests' docstrings have everyday words alone."""
    assert found()["words that nobody says"] == [], "say it in other words; scripts/prose.py has the list"


def test_a_user_has_little_to_read() -> None:
    """The pages for users have at most 20,000 words; the reference, and what a program writes, are apart."""
    assert found()["words of the pages for users"] <= 20_000


def test_few_modules_are_in_no_room() -> None:
    """Six at most; a seventh asks which room it belongs in."""
    assert len(found()["loose modules"]) <= 6


MOST = {
    "modules over 400 lines": 0,
    "classes called unlike their module": 0,
    "one-word function names, of 100": 29.6,
    "fragments in tests' docstrings": 0,
    "lazy imports outside hot modules": 107,
    "sentences of pages of more than 20 words": 0,
}
"""The most of what is to become less: these figures only go down."""


@pytest.mark.parametrize("name", MOST)
def test_a_measure_only_gets_better(name: str) -> None:
    """Names say what things are, docstrings are sentences, and only hot modules import late."""
    now = found()[name]
    count = len(now) if isinstance(now, list) else now
    assert count <= MOST[name], f"{name}: {now}; scripts/measure prints it, with --fragments the tests"


def test_no_two_rooms_are_one() -> None:
    """Rooms that import each other cannot be read apart."""
    assert found()["room cycles"] == []
