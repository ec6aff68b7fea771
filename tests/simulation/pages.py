"""The page about the simulation: what was met, what never, which mutants it finds.

``python -m tests.simulation.pages [FILE…]`` writes docs/internals/simulation.md; each FILE is what ``scripts/simulate
--coverage FILE`` wrote. Their sum replaces the figures that are kept. Belongs here: that page.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.helpers import ROOT
from tests.simulation import mutation
from tests.simulation.__main__ import Sums
from tests.simulation.calls import CALLS, CAN_FAIL, SILENT
from tests.simulation.mutation import FOUND, OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = ROOT / "agent_mailbox"
ROOMS = ("store", "mailbox", "control", "upkeep")
HELPERS = (
    "exists",
    "size",
    "is_directory",
    "write_whole",
    "make_directory",
    "sync_directory",
    "sync_way",
    "empty",
    "tree",
)
"""Functions of the door that consist of calls."""
PAGE = ROOT / "docs/internals/simulation.md"
FIGURES = ROOT / "docs/internals/simulation-coverage.json"
FIRST = "8241345"
"""The commit of the rows that name none."""
KINDS = ("switch", "park", "kill", "stop", "slow", "long", "fault", "short", "full", "jump", "power")
LIBERTIES = (
    "A call happens at once and whole; others run before it or after it. A power failure may take any part of it.",
    "A sector of 512 bytes is written whole or not at all. A lost sector within a longer file reads as zeros.",
    "A write over bytes that a file has already is not cut short.",
    "A look at a name fails where our code makes it, not in the shell's guard: `test -nt` cannot tell that from an"
    " older file. A look at an open file never fails.",
    "Python repeats a call that a signal interrupts (PEP 475), so `EINTR` never comes to our code. No signal comes"
    " but `SIGKILL`, `SIGSTOP` and `SIGCONT`. These rooms install no handlers, so others end a process like a kill.",
    "There are no threads and no forks; so no two processes share an open file, nor its lock.",
    "There is one user, one machine and one file system, without links except hard links. Worlds of several machines"
    " have one of each for every machine.",
    "The product's connections to an engine are no calls of that module. So the network is behind the order of records,"
    " which is kept in memory: servers are the engine's own tests'. A question arrives whole, and at once or late."
    " PostgreSQL's socket is left out.",
    "An engine loses its end, records of one log, or one record at a time, while no command of ours runs. Role mail of"
    " before may then have two holders, and mail that waited on its sender's machine may be shown again.",
    "A file ends at 2 MiB (`EFBIG`).",
    "A line that the network held back until later ones of its machine were in the same log counts as a repetition."
    " Nothing of it is proven, and the judge does not ask for that.",
    "In most worlds each change of names is durable by itself, as POSIX allows. In the others names are durable in"
    " their order, as in ext4, and any sync takes all earlier ones along.",
    "In some worlds `flock` fails for a while, and then works again, as a lock service may. Commands then fail, and"
    " nothing is lost.",
    "inotify merges events and is absent in some worlds. It loses none: the kernel reports an overflow, too.",
    "A sync that fails is told to every process that has the file open, as Linux does since 4.13. On a system that"
    " tells one alone, another could acknowledge what was dropped.",
    "The clock jumps in some worlds, and the power fails in others, never both in one.",
    "The machine tells when it started. On macOS none does: a power failure may bring a stamp back until its session"
    " starts.",
    "A client with a transcript meets no coarse times and no jumping clock: its offers would count as older than the "
    "machine's start. A failed call may lose the list of them. Until the session starts again a stamp may hide them.",
    "Mail that was shown and not recorded, for want of a lock, may come again whatever the transcript says of it. A"
    " title counts as the text. When a hook gives mail back is not known.",
    "Clients' processes are of one namespace, and after a power failure nobody's process of before is judged. A client"
    " whose record was not written, since a call failed or its hook was killed, may count as gone or as living. If the"
    " first hook of one that came back failed, what its conversation holds may count as seen.",
    "A record about mail that a foreign program writes may count or not. One about a message to come does not count for"
    " a cursor that begins behind it.",
    "No program writes a message again whose only line another program spoilt: it would be shown again. None gives"
    " mail another time to live that has expired by its mode's: the scan of a large log seeks no such line.",
    "The steward removes a file that no message names after eight minutes, so a later message may name none.",
    "The steward compacts a roster of 15 lines, and moves mail above 0 to 9 live messages.",
    "Before somebody was told that the mailbox is made, nothing else counts as acknowledged: its own name may be lost.",
    "A foreign line that comes between our look and our write moves sealed lines of ours: at the steward's next run"
    " these come last. The order is not judged in such worlds.",
    "A foreign program may have a log open while the steward replaces it. Lines behind the rename, or those that a"
    " killed steward did not fetch, stays in the old file, which has no name any more. No line of ours can: we look"
    " again.",
    "The search index is outside: SQLite does its own input and output. So is what no door leads to: terminals,"
    " crontab, the ancestors of a process. The model of the shell guard leaves out a doorbell's process and a tool's"
    " input.",
)
MISSING = ("the console, teams and swarm, and the servers of an engine",)


def kept(met: list[list[Any]], sums: dict[str, Any]) -> dict[str, Any]:
    """The figures that the page keeps of a run: for each call and fault how often, and beside how many states."""
    often: Counter[tuple[str, str]] = Counter()
    states: dict[tuple[str, str], set[str]] = defaultdict(set)
    sites: dict[str, Counter[str]] = defaultdict(Counter)
    for site, call, kind, state, count in met:
        often[call, kind] += count
        states[call, kind].add(state)
        sites[site][kind] += count
    calls = {f"{c} {k}": [often[c, k], len(states[c, k])] for c, k in sorted(often)}
    return {
        "sums": sums,
        "met": calls,
        "sites": {site: sites[site] for site in sorted(sites)},
        "known": sorted(asking()),
    }


def asking() -> set[str]:
    """Every function of the product's rooms that asks the system, ``store/log/log.py:HeldLog.append``."""
    found = set()
    for path in sorted(file for room in ROOMS for file in (PACKAGE / room).glob("*.py")):
        if path.name != "system.py":
            below = ast.parse(path.read_text())
            found |= {f"{path.relative_to(PACKAGE)}:{name}" for name in _asking(below, "")}
    return found


def _asking(tree: ast.AST, above: str) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            name = f"{above}{node.name}"
            if any(isinstance(one, ast.Call) and _is_asked(one.func) for one in ast.walk(node)):
                yield name
        elif isinstance(node, ast.ClassDef):
            yield from _asking(node, f"{above}{node.name}.")


def _is_asked(called: ast.expr) -> bool:
    """Does it go through the door, and is it a call at which something can happen?"""
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "system"
        and called.attr in {*CALLS, *HELPERS} - SILENT
    )


def never(met: dict[str, list[int]]) -> list[str]:
    """What could have been met and was not, in a line for each kind; calls that the product never made are left out."""
    made = [call for call in CALLS if call not in SILENT and any(f"{call} {kind}" in met for kind in KINDS)]
    may = {"fault": (*CAN_FAIL, "fsync", "fdatasync"), "short": ("write", "pwrite")}
    missed = {kind: [c for c in may.get(kind, made) if c in made and f"{c} {kind}" not in met] for kind in KINDS}
    return [f"{kind}: {', '.join(f'`{call}`' for call in calls)}" for kind, calls in missed.items() if calls]


def page(figures: dict[str, Any], found: dict[str, Any]) -> str:
    """The page."""
    sums, met = figures["sums"], figures["met"]
    lines = [
        "# Simulation",
        "",
        "`scripts/simulate` runs the real store, facade, control plane, steward, backup and hooks on a simulated",
        "machine.",
        "All their system calls go through one module, which the simulation replaces:",
        "`agent_mailbox/store/files/system.py`.",
        "Many processes run in one thread. At every call a seed decides who goes on, and what goes wrong.",
        "A judge knows only what was acknowledged and shown. After each acknowledgement and change of names it asks:",
        "would all of it survive if the power failed now?",
        "The shell guard is a model (`tests/simulation/guard.py`). Drawn directories hold it to the real dash, bash",
        "and busybox (`tests/simulation/shells.py`).",
        "",
        "Three of four seeds mean a sweep (`tests/simulation/sweeps.py`). In its rounds a few commands meet,",
        "and others come behind them. Its first round teaches where these commands ask the system. In each other",
        "round an attack befalls them at such places, a rare one as often as a common one. One",
        "or two commands are held, killed or made to fail, often behind a change of names. Others are held before they",
        "read or write a derived file. Then the power may fail.",
        "Behind each change of some commands, outcomes of a power failure are tried on copies of the disk",
        "(`tests/simulation/outcomes.py`). The steward must find the mailbox there as it was left.",
        "",
        "A fifth of the others mean turns of clients with transcripts (`tests/simulation/clients.py`). One client",
        "drops a hook's text, or its model never speaks after it. Some mean a long world, in which agents do",
        "everything for a day. The rest mean a drill (`tests/simulation/plans.py`), whose commands are held at a",
        "drawn call until the others have ended (`park`). One thing may befall each. Worlds that broke a promise are",
        "kept with all their choices (`tests/simulation/worlds`).",
        "",
        "Agents ask what they have, owe and lost (`tests/simulation/questions.py`). Derived files must answer as",
        "the logs do, read whole and judged by the core. Processes that stay look again, though clock and",
        "configuration change. Foreign programs append records about mail in spellings of their own. Shorter",
        "questions ask one table, scan or poll each (`tests/simulation/tables.py`). There other programs leave out the",
        "end of a line, begin a message anew behind a torn line, and write second lines. Clients'",
        "processes are killed and come back (`tests/simulation/hosts.py`). Their roles' mail that they did not",
        "see goes to others. Sessions take the names of others, and clients clear their conversations",
        "(`tests/simulation/succession.py`). A successor is not shown what the older one had read. It is shown",
        "what waited for that one.",
        "",
        "Sessions lease files, write them beside each other, and watch each other",
        "(`tests/simulation/coordination.py`, `watches.py`). No two are told that they lease one file. One that writes",
        "what another leases, or wrote a moment ago, is told. A lease that ended with its session is shown to none.",
        "The watcher of a retired agent has a report.",
        "",
        "The person forbids a session a tool, and takes that back; a lead answers a client's question",
        "(`tests/simulation/policies.py`). No forbidden tool runs, and the client is told what was decided.",
        "",
        "Short sweeps (`tests/simulation/meetings.py`) have two or three agents and single hooks of a client. One",
        "attack befalls a round: before a lock, before a file gets its seal, or where it reads. A look fails once,",
        "or each time. A check that nobody disturbs shows all that waits.",
        "",
        "In other worlds two or three machines share a mailbox (`tests/simulation/machines.py`). Each has its own",
        "disk, clock and processes: commands, hooks, a replicator, a steward. The network loses questions to the",
        "engine, or its answers. It delays and doubles them, brings them after their sender died, and cuts machines",
        "off. Single machines lose their power. The judge looks at the whole space: whatever was acknowledged is on",
        "every machine in the end, once, and was shown once. Role mail had one holder. All copies are equal.",
        "",
        "Four of five of these are sweeps, too (`tests/simulation/machines_sweeps.py`). Between commands an engine",
        "loses records or is put back, and a machine loses its record of how far it is. The person gives up a machine",
        "that lives on (`tests/simulation/machines_absence.py`). Another machine lies, under its own name or with an",
        "honest one's credential (`tests/simulation/machines_deeds.py`). The judge asks each machine what it believes",
        "of each line's writer (`tests/simulation/machines_proofs.py`). An honest machine's word is proven where the",
        "person lets it speak, and nothing else is.",
        "",
        "Beside the logs are attachments, exports, a doorbell's lock and a lead's approvals",
        "(`tests/simulation/side_files.py`). An export holds each message once. A backup has every file.",
        "",
        "Drawn traces of calls hold the disk and the locks to the real ones (`tests/simulation/agreement.py`). Real",
        "processes make each call in turn, and some are killed. Whole workloads, one command after the other, answer",
        "as on the real system, and leave the same files (`tests/simulation/real.py`). The order of real processes",
        "beside each other cannot be chosen. They agree in what each order must give (`tests/simulation/together.py`).",
        "",
        "- `scripts/simulate --seed N --commit C` replays a world, byte for byte.",
        "- `scripts/simulate --machines` runs worlds of several machines alone. Else every fourth world is followed by",
        "  one from the same seed.",
        "- `scripts/simulate --plan KIND` runs worlds of one kind; `--changed REF` mostly those that come to the lines",
        "  which changed since a commit (`tests/simulation/directed.py`).",
        "- `scripts/simulate --hours 8` goes on through the night; a failure prints its seed and a short story.",
        "- `python -m tests.simulation.mutation` takes protections away, and measures how soon the simulation notices.",
        "",
        "## What was met",
        "",
        f"The last recorded run, of commit {sums['commit']}, broke {sums['broken']} promises. It came to:",
        "",
        *(f"- {part}" for part in sums["told"].split("; ")),
        "",
        "| before the call | " + " | ".join(KINDS) + " |",
        "| --- |" + " --- |" * len(KINDS),
    ]
    for call in (c for c in CALLS if any(f"{c} {kind}" in met for kind in KINDS)):
        cells = [f"{met[f'{call} {k}'][0]:,} ({met[f'{call} {k}'][1]})" if f"{call} {k}" in met else "" for k in KINDS]
        lines.append(f"| `{call}` | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Each number is how often that happened there; in brackets, beside how many states of another process.",
        "",
        "Never met before these calls:",
        "",
        *(f"- {line}" for line in never(met)),
        "",
        *_places(figures["sites"], set(figures["known"])),
        "## What it finds",
        "",
        "Each protection of the store and of delivery was taken away, and each mended defect was put back.",
        "Five runs began at five seeds. The columns tell how many found it, and the medians of calls and seconds.",
        "They drew their worlds as `--changed` does: of each kind, and more often those that come to the lines which",
        "were taken away.",
        "",
        "A second is one of the processor's, however busy that is. A row ends at the second seed that finds nothing",
        "within 60 seconds. Rows of earlier commits met earlier worlds, from seeds of those days.",
        "",
        "| taken away: that … | found | calls | seconds | commit |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"{_row(without, row['runs'])} {row.get('commit', FIRST)} |" for without, row in found.items()]
    untried = figures.get("untried", [])
    lines += ["", "Not tried yet:", "", *(f"- {what}" for what in untried)] if untried else []
    lines += ["", "Not for it to find:", "", *(f"- {what}: {why}" for what, why in sorted(OUTSIDE.items()))]
    lines += ["", "## Liberties", "", "The world differs from a real one:", "", *(f"- {text}" for text in LIBERTIES)]
    lines += ["", "Not simulated yet:", "", *(f"- {text}" for text in MISSING), ""]
    return "\n".join(lines)


def _places(met: dict[str, dict[str, int]], known: set[str]) -> list[str]:
    """What each function of the product that asked the system, of all that may, was met with."""
    asked = known & set(met)
    missed = ({site for site in asked if not met[site].get(kind)} for kind in ("switch", "kill", "power"))
    columns = [known - asked, *missed]
    files = sorted({site.partition(":")[0] for sites in columns for site in sites})
    return [
        f"{len(asked)} of {len(known)} functions that ask the system did so there. The others, and those that met no",
        "switch, no kill or no power failure:",
        "",
        "| file | never asked | no switch | no kill | no power failure |",
        "| --- | --- | --- | --- | --- |",
        *(f"| `{file}` | " + " | ".join(_in_file(file, sites) for sites in columns) + " |" for file in files),
        "",
    ]


def _in_file(file: str, sites: set[str]) -> str:
    return ", ".join(f"`{site.partition(':')[2]}`" for site in sorted(sites) if site.partition(":")[0] == file)


def _row(without: str, runs: list[dict[str, Any]]) -> str:
    got = [one for one in runs if one["breach"]]
    if not got:
        return f"| {without} | **no** | | |"
    calls, seconds = (median(one[key] for one in got) for key in ("calls", "seconds"))
    return f"| {without} | {len(got)} of {len(mutation.SEEDS)} | {calls:,.0f} | {seconds:.1f} |"


def main(words: list[str]) -> int:
    """Write the page, and keep what it says of mutants that were not tried."""
    if words:
        runs = [json.loads(Path(word).read_text()) for word in words]
        sums = Sums()
        for run in runs:
            sums.merge(run["sums"]["numbers"])
            sums.met.update({tuple(key): count for *key, count in run["met"]})
        commits = sorted({run["sums"]["commit"] for run in runs})
        broken = sum(run["sums"]["broken"] for run in runs)
        said = {"told": sums.told(), "commit": ", ".join(commits), "broken": broken}
        met = [[*key, count] for key, count in sorted(sums.met.items())]
        FIGURES.write_text(json.dumps(kept(met, said), indent=1, ensure_ascii=False) + "\n")
    figures, found = json.loads(FIGURES.read_text()), json.loads(FOUND.read_text())
    ours = [mutant.without for mutant in mutation.ours()]
    figures["untried"] = [without for without in ours if without not in found]
    FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    found = {without: row for without, row in found.items() if without in ours}
    mutation.write_found(found)
    PAGE.write_text(page(figures, found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
