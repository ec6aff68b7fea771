"""The structure and the language of the package, held where they are: each figure may only get better."""

from __future__ import annotations

from scripts.measuring import Sources, figures
from scripts.prose import LONG
from tests.helpers import ROOT

SOURCES = Sources(ROOT)
FIGURES = figures(SOURCES)
KNOWN_CYCLES: list[set[str]] = []
"""Modules that import each other, lazily or for types. Whoever cuts one takes it out here."""


def test_no_cycle_is_added() -> None:
    """Of imports, lazy and type-only ones included."""
    found = [{module.partition(".")[2] for module in cycle} for cycle in SOURCES.cycles()]
    assert [cycle for cycle in found if cycle not in KNOWN_CYCLES] == []
    assert [cycle for cycle in KNOWN_CYCLES if cycle not in found] == []


def test_a_module_name_leads_to_one_module() -> None:
    """Whoever looks for a feature finds it by ``ls``."""
    assert FIGURES["module names that repeat"] == []


def test_a_class_name_leads_to_one_class() -> None:
    """A reader who meets a public name needs no path to know it."""
    assert FIGURES["class names that repeat"] == []


def test_the_language_gets_no_harder() -> None:
    """Sentences begin as readers expect, and end in time: no more exceptions than there are."""
    assert FIGURES["sentences that begin oddly"] <= 455
    assert FIGURES[f"sentences of more than {LONG} words"] <= 225
