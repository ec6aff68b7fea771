"""The command line of the stress run: makes a scratch mailbox, runs, reports."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.door import switches

from . import report
from .commands import FAKETIME, Stage
from .director import Director

EPILOG = """\
Eight writers, four readers, four holders of two roles, two names borne by one session after the other, two sessions
with hooks, four whose tool calls wait for two leads or the person, a steward, and two programs that are not ours use
one mailbox at once, through the Python interface, the commands and the shell shim. Meanwhile processes are killed and
stopped, clocks jump, derived files are damaged, answers are forged. In quiet moments between, and at the end, the logs
are read as plain JSON and held against what every process was told:

  acknowledged mail is there exactly once, live or archived; what was refused as busy is not there
  everyone a message was for has read it once or has it unread; again only after a kill before it was recorded
  role mail has one holder at a time; pending or owed mail is not archived
  a request has one decision, the first in the log by who may take it, a time-out among them; everyone is told that one
  what runs was approved so, with the input approved; forgeries, late answers and what the policy denies run nothing
  the guard never says "nothing" falsely; a look gives what the definition gives; the doctor finds only what was broken

A process that meets a lock held by a stopped one ends as busy: counted, no violation. The seed decides who does what
and what happens to whom; in which order the system lets it happen, no seed can say, so a violation may need a few
repetitions. Exit code 1 on a violation; the mailbox and all journals are kept then.
"""


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="scripts/stress",
        description="Everybody at once on one mailbox, with everything going wrong; then every promise is checked.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--seconds", type=float, default=60, metavar="S", help="how long things happen (60)")
    made.add_argument("--seed", default="1", metavar="N", help="what decides (1)")
    made.add_argument("--keep", action="store_true", help="keep the mailbox and the journals in any case")
    made.add_argument("--json", action="store_true", help="the result as one JSON document")
    return made


def main() -> int:
    """Run; returns the exit code."""
    options = parser().parse_args()
    if options.seconds < 2:
        parser().error("in less than 2 seconds nothing happens")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nobody is left running
    if not FAKETIME:
        print("no libfaketime: the clocks of commands do not jump, those of the others do", file=sys.stderr)
    scratch = Path(os.path.realpath(tempfile.mkdtemp(prefix="agent-mailbox-stress-")))
    os.environ[switches.STATE] = str(scratch / ".local/state/agent-mailbox")  # who judges looks at the same records
    director = Director(Stage(scratch), options.seed)
    keep = True
    try:
        director.run(options.seconds)
        keep = options.keep or bool(director.violations)
    finally:
        if not keep:
            shutil.rmtree(scratch)
    if options.json:
        print(report.document(director, options.seed, str(scratch) if keep else None), end="")
    else:
        print(report.table(director), end="")
    if director.violations:
        print(f"violated with --seed {options.seed} --seconds {options.seconds:g}; kept in {scratch}", file=sys.stderr)
    return 1 if director.violations else 0


if __name__ == "__main__":
    sys.exit(main())
