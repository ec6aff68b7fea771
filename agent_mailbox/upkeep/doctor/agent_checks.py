"""Check the agents and the steward: agents that are alive but silent, and a steward that is overdue.

Belongs here: notes only. Silence is harmless; the steward's next run sweeps the roster and archives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import instant
from ...core.findings import Problem
from ...core.roster import ALIVE
from ...mailbox import agents
from ...store.archive import rotation
from ...store.files import paths
from ...store.files.line_numbers import newlines
from ...store.files.small_files import noted_age
from ...store.log.logs import OpenLogs
from . import clock_signs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...mailbox.mailbox import Mailbox

OVERDUE = 24 * instant.HOUR
"""Milliseconds without a steward run after which its pending work is reported; cron starts one every hour."""


def check_agents(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield notes of agents silent beyond the steward's limit, and of an overdue steward."""
    now, roster = mailbox.now(), mailbox.logs.read_only().read_roster()
    seen = agents.judged_signs(mailbox, roster.agents)
    limit = int(mailbox.config.freeze_after_hours * instant.HOUR)
    waiting = False
    for agent in roster.agents.values():
        last = max(seen.get(agent.session_id, 0), agent.registered, agent.changed)
        if agent.state == ALIVE and now - last > limit:
            waiting = True
            silent = (now - last) // instant.HOUR
            what = f"{agent.session_id} is alive but silent for {silent} h; the steward will freeze it"
            yield Problem(mailbox.logs.path(paths.HEARTBEATS, agent.session_id), None, what, note=True)
    with OpenLogs(mailbox.logs) as logs:
        live = 0 if logs.messages is None else newlines(logs.messages, 0, logs.messages_end)
    if (doubt := clock_signs.doubt_of(mailbox)) is not None:
        what = (
            f"the steward refused to run at {instant.text(doubt.now)}, far from every time in the mailbox;"
            " if that clock was right, `agent-mailbox steward run --trust-clock` confirms it"
        )
        yield Problem(mailbox.logs.cache(clock_signs.DOUBT), None, what, note=True)
    age = noted_age(mailbox.logs.cache(rotation.LAST_RUN), now)
    if (waiting or live > mailbox.config.max_live) and (age is None or age > OVERDUE):
        last_time = "has no recorded run" if age is None else f"last ran {instant.text(now - age)}"
        what = f"the steward {last_time}; `agent-mailbox steward crontab --install` lets cron run it hourly"
        yield Problem(mailbox.directory, None, what, note=True)
