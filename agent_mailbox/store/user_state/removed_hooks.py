"""The places out of which our hooks were taken while sessions ran: a session there calls none since.

Belongs here: the note of them, among the user's own records, which an uninstallation writes and an installation takes
back. A line is a project's directory, or empty for all of the user's sessions; the file's time is the last removal's.
A line of ``=``, a session and a time (ns) is of that session alone: its doorbell saw its settings switch hooks off.
"""

from __future__ import annotations

from ..files import system
from ..files.paths import UNHOOKED
from ..files.small_files import read_if_possible, remove_if_possible, time_of, write_if_possible
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST = 64
"""Lines above which those of sessions are given up: most of these are over."""


def note(state: str, place: str) -> None:
    """Note that the hooks of a place are gone."""
    _write(state, {*_places(state), place})


def forget(state: str, place: str) -> None:
    """Note that a place has hooks again; with those of the user, every place has."""
    if left := _places(state):
        _write(state, left - {place} if place else set())


def note_session(state: str, session_id: str) -> None:
    """Note that a session calls no hook from now on."""
    path = system.join(state, UNHOOKED)
    before, places = time_of(path), _places(state)
    kept = {place for place in places if not place.startswith("=")} if len(places) > _MOST else places
    now = system.time_ns()
    _write(state, {place for place in kept if not place.startswith(f"={session_id} ")} | {f"={session_id} {now}"})
    system.utime(path, ns=(now, before or now))


def find_silent(state: str, sessions: Iterable[str], heart_of: Callable[[str], str]) -> set[str]:
    """Return those sessions that called no hook since the hooks of their place were taken out. ``heart_of`` gives the
    file whose time is that of a session's last hook."""
    places, removed = _places(state), time_of(system.join(state, UNHOOKED)) or 0
    found = set()
    for who in sessions if places else ():
        last = time_of(heart_of(who)) or 0
        noted = [place.rpartition(" ")[2] for place in places if place.startswith(f"={who} ")]
        times = [*map(int, filter(str.isdigit, noted)), removed if _is_in(places, state, who) else -1]
        if last <= max(times):
            found.add(who)
    return found


def _is_in(places: set[str], state: str, session_id: str) -> bool:
    where = processes.find_whereabouts(session_id, state)
    return "" in places or (where is not None and any(f"{where.directory}/".startswith(f"{p}/") for p in places))


def _places(state: str) -> set[str]:
    data = read_if_possible(system.join(state, UNHOOKED))
    return {*data.decode("utf-8", "surrogateescape").split("\n")[:-1]} if data else set()


def _write(state: str, places: set[str]) -> None:
    path = system.join(state, UNHOOKED)
    if places:
        write_if_possible(path, b"".join(system.encoded(place) + b"\n" for place in sorted(places)))
    else:
        remove_if_possible(path)
