"""The protections of watches, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

FOLD, HOOKS, GONE = "tests/core/control/test_watches.py", "tests/claude/test_watches.py", "tests/cli/test_gone.py"

MUTANTS = (
    Mutant(
        "a report counts by the agent's own word, or by what the log shows",
        "Watches.report",
        ("        if not own and not self.has_happened", "        if not is_proven and not self.has_happened"),
        tests=f"{FOLD}::test_nobody_else_ends_it_by_a_lie",
    ),
    Mutant(
        "an end before the watch began ends it not",
        "Watches.has_happened",
        ("until is None or until >= watch.begins", "True"),
        tests=f"{FOLD}::test_whoever_notes_an_end_may_tell_of_it",
    ),
    Mutant(
        "a watch is cancelled by a proven word of who may",
        "StandingNotices.end",
        ("if notice.proven and not (_is_proven(message) and", "if notice.proven and not ("),
        tests=f"{FOLD}::test_only_its_watcher_or_who_commands_it_cancels",
    ),
    Mutant(
        "the hook at a watched agent's turn end is let through",
        "Delivery._settle",
        ("told = led or Watched(logs.trail).is_watched(poll.session_id)", "told = led"),
        tests=f"{HOOKS}::test_a_turn_s_end_is_told_once_and_costs_a_start_only_until_then",
    ),
    Mutant(
        "who is watched no more pays no more",
        "watch_reports.of_event",
        ("        desk.logs.trail.try_to_disturb(agent)", "        pass"),
        tests=f"{HOOKS}::test_a_turn_s_end_is_told_once_and_costs_a_start_only_until_then",
    ),
    Mutant(
        "the steward tells what a killed process could not",
        "steward.run",
        ("        _tell_watchers(mailbox)\n", ""),
        tests=f"{HOOKS}::test_the_steward_tells_what_a_killed_process_could_not",
    ),
    Mutant(
        "a watcher's doorbell may note that a client is gone",
        "Doorbell._sees_one_gone",
        (", prove=self._prove)", ")"),
        tests=f"{GONE}::test_a_watcher_s_doorbell_notes_a_killed_client",
    ),
)
