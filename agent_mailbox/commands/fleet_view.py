"""The agents in a terminal: their lines, and the screen of ``top``.

Belongs here: the lines and the terminal's modes. Agents' words go through ``core.frame``.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..cli import render
from ..cli.output import write_out
from ..control.requests import Requests
from ..core import frame, inbox, instant
from ..core.frame import shown_state
from ..core.records import USER
from ..core.roster import DEAD
from ..core.text import clipped, neutral
from ..errors import MailboxError
from ..mailbox import agents
from ..store.files.watch import Watch
from .roster_verbs import agent_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..cli.options import App
    from ..core.inbox import InboxState
    from ..core.roster import Agent
    from ..store.log.logs import Ends

HEAD = ("agent", "state", "unread", "sees mail", "task", "lead", "seen", "tags")
REST = 0.25
"""Seconds between two looks at least, however much is written."""
LARGE = 32 << 20
"""Bytes of live messages above which each agent's unread mail is looked up by itself: a fold loads every message."""
COLUMNS, ROWS = 80, 24
"""The size of a terminal that tells none."""
ENDS = b"qQ\x03\x04"
"""The keys that end it."""
_OPEN, _CLOSE, _HOME, _LINE_END, _BELOW = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H", "\x1b[K\n", "\x1b[J"


class FleetRow:
    """One agent, as its row shows it."""

    def __init__(self, agent: Agent, seen: int, state: str, unread: int, facts: tuple[str, str, str]) -> None:
        self.agent, self.seen, self.state, self.unread = agent, seen, state, unread
        self.lead, self.sees, self.task = facts


class FleetView:
    """The agents that are not dead, at most ``limit``; each question looks again."""

    def __init__(self, app: App, limit: int) -> None:
        self.app = app
        self._limit = limit
        self._folded: tuple[Ends, InboxState] | None = None

    def list_rows(self) -> tuple[list[FleetRow], int]:
        """Return a row for each agent, the one seen last first, and how many more there are."""
        desk = self.app.mailbox
        found = [one for one in agents.every(desk) if one[0].state != DEAD and one[0].session_id != USER]
        found.sort(key=lambda one: -one[1])
        chosen = found[: self._limit]
        gone, running = desk.judge_clients(agent for agent, _ in chosen)
        facts = agent_facts(desk, [agent for agent, _ in chosen], gone, running)
        unread = self._count_unread([agent.session_id for agent, _ in chosen])
        rows = [
            FleetRow(agent, seen, shown_state(agent, gone), count, facts[agent.session_id])
            for (agent, seen), count in zip(chosen, unread, strict=True)
        ]
        return rows, len(found) - len(chosen)

    def _count_unread(self, sessions: Sequence[str]) -> list[int]:
        """Return how much is unread for each, by one fold for all. After a run of the steward a poll reads as much for
        each session that does not check."""
        desk, ends = self.app.mailbox, self.app.mailbox.logs.ends()
        if ends[0][1] > LARGE:
            return [len(desk.peek(who)) for who in sessions]
        if self._folded is None or self._folded[0] != ends:
            self._folded = ends, desk.state()
        return [len(inbox.unread(who, self._folded[1], desk.now())) for who in sessions]

    def _own(self) -> tuple[int, int]:
        """Return the person's unread mail, and the requests that wait for them."""
        return self._count_unread([USER])[0], len(Requests(self.app.mailbox).calling(USER))

    def list_lines(self) -> list[str]:
        """Return the fleet as lines of text."""
        desk = self.app.mailbox
        (rows, more), (unread, waiting), now = self.list_rows(), self._own(), desk.now()
        cells = [
            (
                *(frame.name_of(row.agent.session_id, desk.logs.read_roster()), row.state, str(row.unread or "-")),
                *(row.sees, row.task, row.lead, render.spell_age(max(now - row.seen, 0))),
                " ".join(frame.words([*row.agent.tags])),
            )
            for row in rows
        ]
        waits = f", {waiting} wait{'s' if waiting == 1 else ''} for you" if waiting else ""
        count = f"{len(rows) + more} agent{'' if len(rows) + more == 1 else 's'}"
        head = f"{frame.when(now)}  {count}, {unread} unread for you{waits}  {neutral(desk.directory)}"
        rest = [f"and {more} more: {self.app.complete_command('roster list')}"] if more else []
        return [head, *render.table_lines(cells, HEAD if cells else ()), *rest]

    def spell_json(self) -> dict[str, Any]:
        """Return the same for JSON."""
        (rows, more), (unread, waiting), desk = self.list_rows(), self._own(), self.app.mailbox
        gone = {row.agent.session_id for row in rows if row.state == "gone"}
        return {
            "dir": desk.directory,
            "at": instant.text(desk.now()),
            "unread": unread,
            "waiting": waiting,
            "agents": [
                {
                    **render.agent_json(row.agent, row.seen, gone),
                    "unread": row.unread,
                    "sees": row.sees,
                    "task": None if row.task == "-" else row.task,
                }
                for row in rows
            ],
            "more": more,
        }


def is_interactive() -> bool:
    """Return whether a person looks at the output, and can press a key."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def show_live(view: FleetView, interval: float) -> None:
    """Show the fleet until a key ends it, or the terminal is gone."""
    keys = sys.stdin.fileno()
    try:
        with Watch([view.app.mailbox.directory]) as changes, _screen(keys):
            while True:
                write_out(_picture(view))
                until = time.monotonic() + interval
                time.sleep(REST)
                changes.wait(until, keys)
                if _is_ended(keys):
                    return
    except KeyboardInterrupt:
        return
    except MailboxError as error:
        if not error.code.startswith("output"):
            raise
        sys.stdout = None  # the terminal is gone
    except OSError:
        sys.stdout = None


def _picture(view: FleetView) -> str:
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    lines = [*view.list_lines()[: max((rows or ROWS) - 2, 1)], "q ends"]
    return (
        _HOME
        + "".join(clipped(line, max(columns or COLUMNS, 20)) + _LINE_END for line in lines[:-1])
        + lines[-1]
        + _BELOW
    )


def _is_ended(keys: int) -> bool:
    while select.select([keys], [], [], 0)[0]:
        typed = os.read(keys, 64)
        if not typed or any(key in ENDS for key in typed):
            return True
    return False


@contextmanager
def _screen(keys: int) -> Iterator[None]:
    """Take the terminal's other screen, and its keys one by one; give both back, also while it is stopped (Ctrl-Z)."""
    before = termios.tcgetattr(keys)

    def take() -> None:
        signal.signal(signal.SIGTSTP, stop)
        tty.setcbreak(keys)
        write_out(_OPEN)

    def give_back() -> None:
        try:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)
            write_out(_CLOSE)
        except (MailboxError, OSError, termios.error):
            sys.stdout = None  # the terminal is gone

    def stop(*_: object) -> None:
        give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        take()  # it goes on

    def end(number: int, _: object) -> None:
        raise click.exceptions.Exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    take()
    try:
        yield
    finally:
        give_back()
