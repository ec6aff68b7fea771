"""The model of the shell guard answers as the real shells do, whatever is in a mailbox's directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox.store.log.stamps import VOUCHED
from tests.simulation import shells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATES = 240
TAKEN_AWAY = {
    "a note has the time of its file": ("|| led=maybe\n                elif", "|| :\n                elif"),
    "a note without its file counts for nothing": ('elif [ -e "$note" ]; then', "elif false; then"),
    "a configuration counts, too": ("agent-roster.jsonl config.toml", "agent-roster.jsonl"),
    "a stamp from the future counts for nothing": ('&& ! [ "$quiet" -nt "$heart" ] &&\n', "&&\n"),
    "a stamp from before the machine's start counts for nothing": ('! [ "$proc" -nt "$quiet" ] ||', "true ||"),
    "a machine's start that is to come tells nothing": ('|| [ "$proc" -nt "$heart" ]; }', "; }"),
    "a heart that cannot beat ends no shell": ('true 2>/dev/null >"$heart" &&', ': 2>/dev/null >"$heart" &&'),
    "a link in the heart's place is not written to": ('! [ -L "$heart" ] && ', ""),
    "a full file in the heart's place is not emptied": ('! [ -s "$heart" ] && ', ""),
    "a word of the stamp lets a prompt through": ('[ "$led" = turn ] || led=\n', "led=\n"),
    "a word of the stamp lets a turn's end through": (
        'IFS= read -r led 2>/dev/null <"$quiet"\n                [ -n',
        "[ -n",
    ),
    "a stamp that nothing binds a session is of this mailbox": ('&& [ "$of" = "$box" ] || quiet=', "|| quiet="),
}
"""Parts of the guard's text, and what the drawn states must notice to be gone."""


CONCERNS = {
    "configuration": {"config.toml"}, "note": {*VOUCHED}, "heart": {"heart"}, "future": {"times"}, "start": {"start"},
    "word": {"quiet"},
}  # fmt: skip
"""Words of those, and the parts of a mailbox that such states have otherwise."""
Drawn = tuple["Path", list[shells.State]]


@pytest.fixture(scope="module")
def drawn() -> Iterator[Drawn]:
    """States, made on a disk, and where."""
    with shells.memory() as scratch:
        yield scratch, shells.states(3, STATES, scratch)


@pytest.mark.parametrize("shell", shells.SHELLS)
def test_every_shell_answers_as_the_model(shell: str, drawn: Drawn) -> None:
    """Drawn directories: stamps, notes and times, hearts, links, files that nobody may write."""
    if shell not in shells.installed():
        pytest.skip(f"this machine has no {shell}")
    scratch, there = drawn
    expected = shells.modelled(there, shells.resolution(shell), scratch)
    got = shells.answered(shells.SHELLS[shell], there, scratch)
    assert sum(answer.nothing for answer in expected) > STATES // 4
    assert sum(answer.beats and not answer.nothing for answer in expected) > 3
    different = [(s.seed, s.event, a, b) for s, a, b in zip(there, got, expected, strict=True) if a != b]
    assert different == []


@pytest.mark.parametrize("without", TAKEN_AWAY)
def test_the_states_tell_what_is_missing_in_the_guard(without: str, drawn: Drawn) -> None:
    """Each part of the guard decides something in them."""
    scratch, there = drawn
    parts = next((found for word, found in CONCERNS.items() if word in without), {"unbound"})
    there = [state for state in there if state.odd & parts]
    name, words = next(iter(shells.installed().items()))
    expected = shells.modelled(there, shells.resolution(name), scratch)
    try:
        got = shells.answered(words, there, scratch, TAKEN_AWAY[without])
    except shells.Broken:
        return  # it ends with another code
    assert got != expected
