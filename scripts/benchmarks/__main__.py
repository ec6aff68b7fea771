"""The command line of the benchmarks: makes a scratch directory, runs the groups, writes the report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from . import plot, report
from .launch import ROOT
from .measures import GROUPS, Bench
from .timing import Failed

EPILOG = """\
The groups:
  hook     the hook with nothing new, through the shipped shim, in each shell
  mail     hook and check with five unread messages
  check    check with nothing new, against the plain scheme, and the memory of both
  send     a durable send, against the plain scheme
  roster   registering, retiring and listing agents, a send after a change, the stamps of all
  foreign  check with five new lines by another program
  search   a search for a rare word
  owed     a known session's start with nothing new, and its status
  poll     a poll inside a process
  busy     the hook with nothing new while twenty others mail each other and check
  rebuild  cursor and first search with everything derived gone
  writers  messages a second by one and by eight processes, against raw appends

A whole run writes benchmarks.md, benchmarks.csv and poll-cost.svg in docs/internals. It takes about a quarter of an
hour, 1.5 GB of scratch space (TMPDIR says where; the disk measured is that one) and wants a quiet machine. With --quick
or --only the report goes to standard output; --out DIR writes the files there.
"""
SIZES, AGENTS, ROUNDS, WRITES = (1_000, 100_000, 1_000_000), (10, 1_000, 10_000), 41, 1_000
QUICK_SIZES, QUICK_AGENTS, QUICK_ROUNDS, QUICK_WRITES = (1_000, 10_000), (10,), 3, 20


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure agent-mailbox: whole processes as ratios to a bare interpreter start in the same run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--sizes", type=_numbers, metavar="N,N", help="messages in the mailboxes (1000,100000,1000000)")
    made.add_argument(
        "--agents", type=_numbers, metavar="N,N", help="agents in the rosters, 10 or more (10,1000,10000)"
    )
    made.add_argument("--rounds", type=int, metavar="N", help=f"rounds of every pair, at most ({ROUNDS})")
    made.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP", help="this group; may be repeated")
    made.add_argument("--quick", action="store_true", help="1k and 10k messages, few rounds: does it run at all?")
    made.add_argument("--out", type=Path, metavar="DIR", help="where to write the report")
    return made


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(word) for word in text.split(",")))


def main() -> int:
    """Run what is asked for; returns the exit code."""
    options = parser().parse_args()
    usual = (QUICK_SIZES, QUICK_AGENTS, QUICK_ROUNDS) if options.quick else (SIZES, AGENTS, ROUNDS)
    sizes, agents, rounds = options.sizes or usual[0], options.agents or usual[1], options.rounds or usual[2]
    if min(agents) < 10 or min(sizes) < 10 or rounds < 1:
        parser().error("fewer than 10 messages, 10 agents or 1 round measure nothing")
    whole = not (options.quick or options.only)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the scratch directory goes, too
    with tempfile.TemporaryDirectory(prefix="agent-mailbox-bench-") as name:
        scratch = Path(os.path.realpath(name))
        bench = Bench(scratch, sizes, agents, rounds, QUICK_WRITES if options.quick else WRITES)
        for group in options.only or GROUPS:
            print(f"{group} …", file=sys.stderr, flush=True)
            try:
                GROUPS[group](bench)
            except Failed as error:
                print(f"error: {group}: {error}", file=sys.stderr)
                return 1
        _hand_out(bench, options.out or (ROOT / "docs" / "internals" if whole else None))
    return 0


def _hand_out(bench: Bench, directory: Path | None) -> None:
    text, figures = report.markdown(bench.results, bench.scratch), report.figures(bench.results)
    if directory is None:
        print(text, figures, sep="\n", end="")
        return
    directory.mkdir(parents=True, exist_ok=True)
    drawn = plot.lines(bench.results)
    if drawn:
        text = text.replace(
            "\n## Goals", "\n![Cost of a poll against the length of the history](poll-cost.svg)\n\n## Goals"
        )
        (directory / "poll-cost.svg").write_text(plot.svg(drawn), encoding="utf-8")
    (directory / "benchmarks.md").write_text(text, encoding="utf-8")
    (directory / "benchmarks.csv").write_text(figures, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
