"""Mutants of clocks, of derived files from another time or place, and of backups."""

from __future__ import annotations

from tests.faults.mutant import Mutant

STANDING = "tests/store/test_quiet_polls.py"
GUARD, UPKEEP, BACKUP = "tests/claude/test_guard.py", "tests/cli/test_upkeep.py", "tests/store/test_backup.py"

MUTANTS = (
    Mutant(
        "a quiet stamp has the time at which it was judged",
        "StampFiles.stamp",
        ("        set_time(begun, now * 1_000_000 - TICK)\n", ""),
        tests=f"{GUARD}::test_a_hook_with_its_clock_ahead_hides_nothing_when_the_clock_is_right_again",
    ),
    Mutant(
        "a stamp of a session that is led comes with its word",
        "StampFiles.stamp",
        (" if led else path  # the guard looks for no such name", " if False else path"),
        ("                system.rename(begun, path)\n", "                pass\n"),
        tests=f"{GUARD}::test_a_stamp_without_its_word_is_none",
    ),
    Mutant(
        "a stamp that the guard does not believe is made again",
        "StampFiles.believed",
        (" or not all(map(self._is_dated, VOUCHED))", ""),
        tests=f"{GUARD}::test_a_configuration_in_the_place_of_another_starts_python_whatever_its_time",
    ),
    Mutant(
        "a stamp of before the machine's start is made again",
        "StampFiles.believed",
        (" < (_time(STARTED) or 0) <= ", " < 0 <= "),
        tests=f"{GUARD}::test_a_stamp_of_before_the_machine_s_start_hides_nothing",
    ),
    Mutant(
        "no stamp stays where a file is not as noted",
        "StampFiles.vouch",
        ("        self.disturb(EVERYONE)\n", ""),
        tests=f"{GUARD}::test_one_session_that_finds_the_derived_files_strange_takes_away_everyone_s_stamps",
    ),
    Mutant(
        "a log that was changed in its place has a new epoch",
        "StampFiles._renew",
        ("        if known is not None and self._is_dated(system.basename(path)):\n", "        if False:\n"),
        tests=f"{GUARD}::test_a_line_changed_in_its_place_is_noticed_although_the_log_is_as_long",
    ),
    Mutant(
        "a writer gives the note of its log the log's time",
        "HeldLog._swallowed",
        ("                self.trail.date(self.path, there.st_mtime_ns)\n", "                pass\n"),
        tests=f"{GUARD}::test_however_slow_a_writer_is_its_note_has_the_time_of_its_log",
    ),
    Mutant(
        "a lock that comes too late is given back",
        "system.flock_within",
        ("                    flock(mine, LOCK_UN)\n", "                    sleep(99)\n"),
        tests="tests/store/test_lock.py::test_a_lock_that_comes_too_late_is_given_back",
    ),
    Mutant(
        "a forked process keeps no descriptor of a waiting thread",
        "lock._forked",
        ("        system.close(system.waiting.pop())\n", "        break\n"),
        tests="tests/store/test_lock.py::test_a_lock_that_comes_too_late_is_given_back",
    ),
    Mutant(
        "a standing process looks again with its clock behind",
        "Poll.unread",
        (" and now >= cursor.floor:", ":"),
        tests=f"{STANDING}::test_another_configuration_and_an_earlier_clock_judge_again",
    ),
    Mutant(
        "a standing process looks again with another configuration",
        "Poll.unread",
        (" and cursor.config == self._stamp", ""),
        tests=f"{STANDING}::test_another_configuration_and_an_earlier_clock_judge_again",
    ),
    Mutant(
        "a log that changed lately tells a standing process nothing",
        "quiet_polls.are_settled",
        (" and newest + LATELY < system.time_ns()", ""),
        tests=f"{STANDING}::test_logs_that_changed_lately_are_opened",
    ),
    Mutant(
        "a steward far from every sign moves nothing",
        "steward.run",
        ("        if not trust_clock:\n", "        if False:\n"),
        tests=f"{UPKEEP}::test_a_steward_far_from_every_time_in_the_mailbox_moves_nothing_and_says_so",
    ),
    Mutant(
        "a time that was set is no sign",
        "clock_signs._changed",
        ("min(there.st_mtime_ns, there.st_ctime_ns)", "there.st_mtime_ns"),
        tests=f"{UPKEEP}::test_no_line_in_a_log_frees_or_stops_a_steward_by_its_date",
    ),
    Mutant(
        "a clock that was set meanwhile did not run steadily",
        "clocks._steady",
        ("ran if abs(passed - ran) <= STEP else -STEADY", "passed"),
        tests=f"{UPKEEP}::test_a_doubted_clock_that_ran_steadily_for_a_day_is_believed",
    ),
    Mutant(
        "a sign by another clock begins the day again",
        "clocks.doubted",
        (" or before.newest != look.newest", ""),
        tests=f"{UPKEEP}::test_a_doubted_clock_that_ran_steadily_for_a_day_is_believed",
    ),
    Mutant(
        "a header of a backup is bounded",
        "backup._Entry.frombuf",
        ("        if entry.size < 0 or", "        if False and"),
        tests=f"{BACKUP}::test_a_header_that_claims_anything_is_refused_in_bounded_memory_and_leaves_nothing",
    ),
    Mutant(
        "a refused restore leaves nothing",
        "restoring.restore",
        ("                _remove(aside, missing)\n", ""),
        tests=f"{BACKUP}::test_a_refused_restore_leaves_nothing_of_itself",
    ),
    Mutant(
        "a backup of a read-only mailbox takes its locks",
        "Snapshot._locks",
        ("            yield ReadLock(kept, logs.wait)\n", "            pass\n"),
        tests=f"{BACKUP}::test_a_read_only_mailbox_is_backed_up_under_the_locks_of_its_writers",
    ),
    Mutant(
        "a message's own instant holds while its reader is frozen",
        "expiry.expires_at",
        ("if message.expires_at is not None:", "if False:"),
        tests="tests/store/test_exact_expiry.py::test_a_frozen_reader_stops_no_instant",
    ),
    Mutant(
        "new mail that has expired already is refused",
        "compose.check_expiry",
        ("if message.expires_at <= message.timestamp:", "if False:"),
        tests="tests/store/test_exact_expiry.py::test_an_instant_that_cannot_be_is_refused",
    ),
)
