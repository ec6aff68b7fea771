"""The signs of life in a mailbox, by which the steward judges its clock; see ``core.clocks``.

Belongs here: reading the signs, and keeping a doubt until the next run.

A sign is a time of a file: of a log, a heartbeat, or the steward's last run. The date on a line is none, for any
program may write lines: a false date neither stops nor frees a steward. A file's time can be set, but not the time at
which that happened (``st_ctime``). The earlier of the two counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import clocks, codec, instant
from ...core.clocks import ClockDoubt
from ...errors import Refused
from ...store.archive import rotation
from ...store.files import paths, small_files, system
from ...store.files.small_files import list_names, read_if_possible
from ...store.log.stamps import LOGS
from ...store.user_state.processes import ProcessRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...mailbox.mailbox import Mailbox

DOUBT = "steward-clock"


def check_clock(mailbox: Mailbox) -> None:
    """Raise ``Refused`` if the clock is far from every sign, and keep the doubt for the next run."""
    now, found = mailbox.now(), [*signs_of_life(mailbox)]
    look = ClockDoubt(
        now,
        ProcessRecords(mailbox.logs.stamp_files.kept()).here.partition(" ")[0],
        _uptime_millis(),
        max(found, default=0),
    )
    doubt = clocks.doubted(look, found, doubt_of(mailbox))
    if doubt is None:
        return
    small_files.save_derived(mailbox.logs.cache(DOUBT), codec.dumps(doubt.__dict__).encode())
    raise Refused(
        f"the clock is {describe_doubt(doubt, found)}: {instant.text(now)}",
        "set the clock, or run `agent-mailbox steward run --trust-clock` if it is right",
        code="clock",
    )


def describe_doubt(doubt: ClockDoubt, found: list[int]) -> str:
    """Return how far the clock is from the signs, in words."""
    away = clocks.distance(doubt.now, found) // instant.HOUR
    span = f"{away} hours" if away < 72 else f"{away // 24} days"
    return f"{span} {'ahead of' if doubt.now > doubt.newest else 'away from'} every time in the mailbox"


def doubt_of(mailbox: Mailbox) -> ClockDoubt | None:
    """Return the doubt of the last run; None if it had none."""
    body = small_files.load_derived(mailbox.logs.cache(DOUBT))
    told = codec.parse(body) if body else None
    try:
        doubt = ClockDoubt(**told) if isinstance(told, dict) else None
    except TypeError:  # of another form
        return None
    numbers = () if doubt is None else (doubt.now, doubt.up, doubt.newest, doubt.steady)
    return doubt if {*map(type, numbers)} <= {int} else None


def signs_of_life(mailbox: Mailbox) -> Iterator[int]:
    """Yield the times (ms) of the mailbox's files."""
    logs = mailbox.logs
    hearts = (logs.path(paths.HEARTBEATS, name) for name in list_names(logs.path(paths.HEARTBEATS)))
    for path in (*map(logs.path, LOGS), *hearts, logs.cache(rotation.LAST_RUN)):
        if (changed := _change_time(path)) is not None:
            yield changed


def _change_time(path: str) -> int | None:
    """Return when (ms) a file changed; None if there is none. Only a time in the past was ever seen by the system."""
    try:
        there = system.lstat(path)
    except OSError:
        return None
    return min(there.st_mtime_ns, there.st_ctime_ns) // 1_000_000


def _uptime_millis() -> int:
    """Return the ms since the machine's start, sleep included; -1 if the system does not tell.

    The kernel tells it in a file, which no replaced clock of a process changes.
    """
    words = (read_if_possible("/proc/uptime", 64) or b"").split()
    try:
        return int(float(words[0]) * 1000)
    except (IndexError, ValueError, OverflowError):
        return -1
