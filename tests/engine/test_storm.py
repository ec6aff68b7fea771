"""The program of the storm ends what it started, whoever ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.helpers import PATIENCE, until

from .nats_server import program

ROOT = Path(__file__).parents[2]


def _session_of(pid: int) -> dict[int, str]:
    """The processes of the session that a process leads, each with its name."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, _, _, session = rest.split()[:4]
        if int(session) == pid and state not in "ZX":
            found[int(path.parent.name)] = name
    return found


def test_a_storm_that_is_terminated_leaves_no_server_behind() -> None:
    """SIGTERM ends the run's servers, replicators and commands with it."""
    program()
    words = sys.executable, "-m", "tests.engine.storm", "--seconds", "600", "--agents", "1"
    with subprocess.Popen(words, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE) as storm:
        until(lambda: [*_session_of(storm.pid).values()].count("nats-server") == 3)
        storm.send_signal(signal.SIGTERM)
        assert storm.wait(PATIENCE * 3) == 128 + signal.SIGTERM
    assert _session_of(storm.pid) == {}
