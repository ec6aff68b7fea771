"""Each protection of the store and of delivery taken away: does the simulation alone notice, and how soon?

``python -m tests.simulation.mutation [WORD…]`` patches a copy of the package, runs worlds on it from five seeds each,
and writes how many calls and seconds it took to docs/internals/simulation-mutants.json. The worlds are directed at the
lines that were changed, as ``scripts/simulate --changed`` directs them. Belongs here: the mutants that are the
simulation's to find, those of ``tests.faults``, and what the change log mended, put back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from tests.faults import mutants_engine, mutants_machines
from tests.faults.mutant import Mutant
from tests.faults.mutants import MUTANTS
from tests.helpers import ROOT
from tests.simulation import directed, kinds
from tests.simulation.__main__ import commit

SEEDS = (86_008_105, 122_690_886, 160_450_383, 325_216_002, 409_173_435)
"""Drawn on 2026-11-25 behind the last change of the worlds and the mutants; none was used before."""
SECONDS = 60
FOUND = ROOT / "docs/internals/simulation-mutants.json"
PLACES = (
    *("agent_mailbox/store/", "agent_mailbox/mailbox/"),
    *("agent_mailbox/core/keeping/retention.py", "agent_mailbox/core/dead_letters.py"),
)
FORGER = "trust: needs a forger; tests/trust"
FILES = (
    "limits and names of files, which no world comes to; tests/console/test_beside.py, tests/swarm/test_peer_files.py"
)
LEAVING = "mail to another machine; tests/swarm"
COST = "costs time alone: no answer changes"
LOOKS = "a look that failed excuses what its command answers; tests/store/test_unreadable.py"
LINKS = "the world has no symbolic links; tests/store, tests/console"
OUTSIDE = {
    "a process elsewhere is not judged": "the world is one namespace of processes; tests/cli/test_gone.py",
    "their own mail stays with the gone": "the session is shown that mail again either way; tests/cli/test_gone.py",
    "a decision answers one question of the client that follows it": "a client's dialog; tests/claude",
    "a line in the person's name tells the person nothing": FORGER,
    "a quiet stamp has the time at which it was judged": (
        "needs a process whose clock differs from the kernel's; tests/claude/test_guard.py"
    ),
    "a log that was changed in its place has a new epoch": (
        "needs a program that edits a line in its place; tests/claude/test_guard.py"
    ),
    "a log that changed lately tells a standing process nothing": (
        "needs a program that edits a line in its place; tests/store/test_quiet_polls.py"
    ),
    "a seal that an interrupted run left is synced, too": (
        "the next steward seals again what a power failure takes; tests/faults/test_errors.py"
    ),
    "a writer gives the note of its log the log's time": COST,
    "no more lines of one hash are decoded than chance brings": COST,
    "no more records of one hash are decoded than chance brings": COST,
    "a record that only shares a hash has nobody begin again": COST,
    "nobody waits while records are taken in": COST,
    "what another program appended stays foreign until a poll looks": COST,
    "a look without news leaves the session quiet": COST,
    "what nobody can tell is asked about no more": COST,
    "a title is no text": "the judge takes a title for the text; tests/claude/test_receipts.py",
    "what is given back is nothing quiet": (
        "the judge does not know when a hook gives mail back; tests/claude/test_receipts.py"
    ),
    "a long rollbook is written again when the changes are many": COST,
    "an agent that was compacted is known to have come back": (
        "a roster that would tell of other agents is not compacted; tests/core/test_retention.py"
    ),
    "nobody can give many ids one number in the index": "SQLite is outside; tests/store/test_bounds.py",
    "a look-up waits for another's question to the index": "SQLite is outside; tests/store",
    "the places of records count for the log they were found in": (
        "SQLite is outside, which alone knows such places; tests/store/test_acts_at_scale.py"
    ),
    "a senseless figure in the telemetry is no cost": "telemetry is no state; tests/claude/test_doorbell.py",
    "a backup of a read-only mailbox takes its locks": "there is one user, who may write; tests/store/test_backup.py",
    "a session's place does not go back": (
        "needs two polls of a session in one millisecond, or a clock that goes back; tests/store/test_lost_lines.py"
    ),
    "mail from elsewhere of which a record is left has every session begin again": (
        "a gateway's mail; tests/store/test_lost_lines.py"
    ),
    "the name of a new file is synced": "the log is made and synced by init; tests/faults/test_errors.py",
    "a failed send names the id to repeat it with": "a text; tests/faults/test_errors.py",
    "a lock that comes too late is given back": "the thread that waits is behind the door; tests/store/test_lock.py",
    "a forked process keeps no descriptor of a waiting thread": "there are no forks; tests/store/test_lock.py",
    "the sweep of stamps follows no link": LINKS,
    "a conversation is no link to another file": LINKS,
    "a conversation is read under its session's own name alone": "the console's view of a transcript; tests/console",
    "a copy is compared before joining is done": (
        "a line that changes then might as well change a moment later; tests/engine/test_replica.py"
    ),
    "a release of another machine wakes everybody however it is spelt": (
        "no other program gives mail back between machines; tests/engine/test_replica.py"
    ),
    "a bundle does not fill the memory": "memory is no state; tests/engine/test_archiving.py",
    "archived mail is handed over once": (
        "costs room in the engine alone: no machine files a line twice; tests/engine/test_archiving.py"
    ),
    **dict.fromkeys(
        (
            "nobody is silent because the heartbeats cannot be looked at",
            "one without a heartbeat hides nobody else's",
            "files that cannot be looked at are not missing",
            "a path that cannot be followed is not taken for nothing",
        ),
        LOOKS,
    ),
    "a mailbox that cannot be looked at sends nobody to the next one": (
        "every world names its mailbox; tests/store/test_unreadable.py"
    ),
    "a mailbox that cannot be looked at frees nobody": "every world names its mailbox; tests/claude/test_permit.py",
    "a program does not send as the steward": FORGER,
    "a closed directory of the user's own ends the search for a mailbox": (
        "every world names its mailbox; tests/store/test_unreadable.py"
    ),
    "a list of mailboxes that cannot be read is not empty": (
        "every world names its mailbox; tests/store/test_unreadable.py"
    ),
    "a worktree whose repository cannot be looked at takes no other mailbox": (
        "every world names its mailbox; tests/store/test_unreadable.py"
    ),
    "a session joins no other mailbox because its own cannot be looked at": (
        "every world names its mailbox; tests/store/test_unreadable.py"
    ),
    "a mailbox that cannot be looked at ends no doorbell": (
        "a wait for the mailbox to answer; tests/claude/test_doorbell.py"
    ),
    "where the bound cannot be listed somebody is bound": (
        "which commands are the person's alone; tests/store/test_unreadable.py"
    ),
    **dict.fromkeys(
        (
            "who cannot be looked at is bound",
            "a stamp that binds and cannot be read may bind here",
            "who may be bound is noted all the same",
        ),
        "asked of a mailbox that somebody tampered with, and by the hook's command; tests/store/test_unreadable.py",
    ),
    **dict.fromkeys(
        (
            "a seal counts in its mailbox alone",
            "a MAC is compared",
            "a seal counts at its place alone",
            "a sealed line that was copied does not come below the base",
            "a log must continue what was left",
            "every line that decided must be there",
            "in a broken mailbox nothing is proven",
            "a batch proves nothing",
        ),
        FORGER,
    ),
    **dict.fromkeys(
        (
            "small files do not become too many",
            "a name of a file is the last part of a path",
            "a file is served with its digest alone",
        ),
        FILES,
    ),
    **dict.fromkeys(
        ("no secret leaves in a file", "a secret does not leave by a command", "only the person lets a secret leave"),
        LEAVING,
    ),
}
"""Mutants in these places that no world of ours can notice, each with the reason."""
SHARED = {mutant.without for mutant in (*mutants_engine.MUTANTS, *mutants_machines.MUTANTS)}
"""Mutants for the worlds of several machines alone."""
HISTORIC = (
    Mutant(
        "a release does not race the steward",
        "Mailbox._release",
        ("            _refuse_archived(found.message, not self._is_live(found))\n", ""),
        tests="",
    ),
    Mutant(
        "our line behind a torn one of a foreign writer is written again",
        "HeldLog._swallowed",
        ("        return 1\n", "        return 0\n"),
        tests="",
    ),
    Mutant(
        "a short write of a derived file is not sealed",
        "cache.save",
        ("            if system.write(fd, data) == len(data):", "            if system.write(fd, data):"),
        tests="",
    ),
    Mutant(
        "what a failed sync dropped is written again before it is acknowledged",
        "HeldLog.sync",
        (
            "            self._write_again("
            "[(max(position - 1, 0), position + len(line) + 1) for position, line in found])\n",
            "            pass\n",
        ),
        tests="",
    ),
    Mutant(
        "a derived file from before a power failure counts for nothing",
        "cache.load",
        ("        if there.st_ctime_ns < system.booted():\n            return None\n", ""),
        tests="",
    ),
    Mutant(
        "deciding lines whose number could not be noted are counted by the next note",
        "HeldLog._count",
        ("        self._uncounted = None if kept.change(counted) else start\n", "        kept.change(counted)\n"),
        tests="",
    ),
    Mutant(
        "a line that another writer left is written again before it is counted",
        "HeldLog._count",
        (
            "        if left and (found or self._left_by_us(inode, size) is not None):\n"
            "            self._write_again([(start, None)])\n",
            "",
        ),
        tests="",
    ),
    Mutant(
        "a steward whose sync fails still fetches what was written beside it",
        "replacement.replace",
        (
            "        finally:  # nobody else can: the old file has no name any more\n",
            "        except ZeroDivisionError:\n            pass\n        else:\n",
        ),
        tests="",
    ),
    Mutant(
        "a killed init blocks no later one with its process number",
        "keys.make",
        ("{path}.{system.urandom(4).hex()}", "{path}.{system.getpid()}"),
        tests="",
    ),
    Mutant(
        "the key's name is durable",
        "keys.make",
        ("        system.sync_directory(state)  # without the key everything sealed by it would look forged\n", ""),
        ("            system.fsync(fd)\n", "            pass\n"),
        tests="",
    ),
    Mutant(
        "a replaced log is durable before it is noted by another than its steward",
        "rotation._every_line",
        (
            "            system.sync_directory(directory)  # that steward may have died before: the old log would be "
            "another file\n",
            "",
        ),
        tests="",
    ),
    Mutant(
        "a replaced log is durable before the next writer notes it",
        "HeldLog._look_at_what_was_left",
        (
            "            system.sync_directory(system.dirname(self.path))\n            kept.follow(entry)\n",
            "            kept.follow(entry)\n",
        ),
        tests="",
    ),
    Mutant(
        "the note of a log that somebody else made says that its name is durable",
        "StampFiles._renew",
        ("                system.sync_directory(self._mailbox)\n", "                pass\n"),
        tests="",
    ),
    Mutant(
        "the note of a replacement is durable before the next one is announced",
        "Kept.announce",
        ("        system.sync_directory(system.dirname(self.path))\n", ""),
        tests="",
    ),
    Mutant(
        "a small file is written whole",
        "system.write_whole",
        ("    while data:\n        data = data[write(fd, data) :]\n", "    write(fd, data)\n"),
        tests="",
    ),
    Mutant(
        "a log that its first writer makes beside a reader is not gone",
        "Log.attentively",
        (
            "                if is_there(self.path):\n                    continue",
            "                if False:\n                    continue",
        ),
        tests="",
    ),
    Mutant(
        "a lock on a replaced file does not count",
        "FileLock.take",
        ("                if self._is_at_path(fd):\n", "                if True:\n"),
        tests="",
    ),
    Mutant(
        "readers open messages and reads of one moment",
        "OpenLogs.__enter__",
        ("            if messages[0] == end_of(self._logs.messages.path)[0]:\n", "            if True:\n"),
        tests="",
    ),
    Mutant(
        "a note of an empty log hides no replacement that was announced",
        "Kept.checked",
        ("if (entry.size or entry.inode == inode) and entry.continues(fd):", "if entry.continues(fd):"),
        tests="",
    ),
    Mutant(
        "a torn line hides no later message with its id",
        "scan._add",
        ("        before[0].append(place)\n", "        return\n"),
        tests="",
    ),
    Mutant(
        "a torn record is none, also for the table of asks",
        "asking._words",
        (" and len(ours) == 9", ""),
        tests="",
    ),
    Mutant(
        "a record of a client that cannot be read ends nobody",
        "HostRecords._load",
        ("        if data is None and strictly and system.exists(self._path(pid)):\n", "        if False:\n"),
        tests="",
    ),
    Mutant(
        "a session's start leaves no quiet stamp over an open offer",
        "hook_events._session_start",
        (", quiet=not left", ""),
        tests="",
    ),
    Mutant(
        "a lease that ended with its session does not come back with it",
        "Leases._has_stayed",
        ("agent.returned <= max(lease.begins, *passed, 0)", "True"),
        tests="",
    ),
    Mutant(
        "the table of untaken mail is asked again where another process writes it",
        "untaken._answer",
        ("(ManyUnknown, IndexError, OverflowError)", "ManyUnknown"),
        tests="",
    ),
)


def ours() -> list[Mutant]:
    """The mutants that the simulation is to find."""
    there = [m for m in MUTANTS if m.file.startswith(PLACES) and m.without not in OUTSIDE]
    return [*HISTORIC, *there]


def lines_of(mutant: Mutant) -> set[directed.Line]:
    """The lines of the whole package that it changes."""
    path, text = mutant.patched(ROOT)
    return {(mutant.file, line) for line in directed.touched(path.read_text(), text)}


def hunt(mutant: Mutant, direction: directed.Direction, seconds: float = SECONDS) -> list[dict[str, Any]]:
    """How it went from each seed, in worlds of that direction; ends at the second seed that finds nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        for name in ("agent_mailbox", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.apply(tree)
        (tree / "direction.json").write_text(json.dumps(direction))
        words = [sys.executable, "-m", "tests.simulation", "--seconds", str(seconds)]
        words += ["--direction", str(tree / "direction.json"), "--hunt", *map(str, SEEDS)]
        env = {**os.environ, "PYTHONPATH": str(tree)}
        done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise SystemExit(f"{mutant.without}: {done.stderr[-2000:]}")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


def main(words: list[str]) -> int:
    """Hunt all, or those that a word names, one on each core; others keep what was found before."""
    known = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    todo = [one for one in ours() if not words or any(word in f"{one.without} {one.at}" for word in words)]
    here = {one.without: lines_of(one) for one in todo}
    one_machine, several = kinds.one_machine(), kinds.several_machines()
    reached = directed.reach(set().union(*here.values()), one_machine | several, seconds=2.0)

    def found_for(mutant: Mutant) -> list[dict[str, Any]]:
        usual = several if mutant.without in SHARED else one_machine
        return hunt(mutant, directed.towards(here[mutant.without], reached, usual))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        for mutant, found in zip(todo, cores.map(found_for, todo), strict=True):
            known[mutant.without] = {"in": mutant.file, "commit": commit(), "runs": found}
            got = [one for one in found if one["breach"]]
            calls, took = (median(one[key] for one in got or [{key: 0}]) for key in ("calls", "seconds"))
            told = f", median {calls:,.0f} calls, {took:.1f} s: {got[0]['breach']}" if got else ""
            print(f"{mutant.without}: {len(got)}/{len(SEEDS)}{told}", flush=True)
            FOUND.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
