"""The protections around the gone and the dead, each taken away: who judges, what goes back, what is removed."""

from __future__ import annotations

from tests.faults.mutant import Mutant

GONE, DEAD = "tests/cli/test_gone.py", "tests/cli/test_dead.py"
ROLLBOOK, LARGE = "tests/core/test_rollbook.py", "tests/store/test_large_roster.py"

UNTAKEN = "tests/store/test_untaken.py"

MUTANTS = (
    Mutant(
        "mail that was given back may be a dead letter",
        "UntakenTable._read_records",
        ("word.decode() not in doubted and ", ""),
        tests=f"{UNTAKEN}::test_mail_that_was_given_back_or_told_by_title_is_not_passed_by",
    ),
    Mutant(
        "a line that is no record takes no mail",
        "UntakenTable._read_records",
        ("PLAIN_READ.fullmatch(line)", 'PLAIN_READ.fullmatch(line.replace(b"02-30", b"02-28"))'),
        tests=f"{UNTAKEN}::test_mail_that_was_given_back_or_told_by_title_is_not_passed_by",
    ),
    Mutant(
        "a read of a role's title is no claim",
        "UntakenTable._read_records",
        (' or claim[1] != b"claim"', ""),
        tests=f"{UNTAKEN}::test_a_title_and_an_id_that_stands_twice_are_judged_decoded",
    ),
    Mutant(
        "what is given back later is looked for in the log",
        "UntakenTable.catch_up",
        ("        if missing:\n", "        if False:\n"),
        tests=f"{UNTAKEN}::test_what_nobody_has_a_record_of_is_counted_undecoded",
    ),
    Mutant(
        "what is given back is looked for before its second line is",
        "UntakenTable.catch_up",
        (
            "        missing = {one for one in doubted if not self.doubtful[one] and self._is_read(spelt(one))}\n"
            "        missing |= self._read_messages(taken)\n",
            "        missing = self._read_messages(taken)\n"
            "        missing |= {one for one in doubted if not self.doubtful[one] and self._is_read(spelt(one))}\n",
        ),
        tests=f"{UNTAKEN}::test_a_second_line_of_what_was_given_back_hides_no_first_one",
    ),
    Mutant(
        "what a killed steward left in both logs is counted once",
        "untaken.found",
        (" | table.positions_of(others, dead)", ""),
        tests=f"{UNTAKEN}::test_what_a_killed_steward_left_in_both_logs_is_counted_once",
    ),
    Mutant(
        "an id that was there before is in doubt",
        "UntakenTable._read_messages",
        (" or n is not None:\n                if is_read", ":\n                if is_read"),
        tests=f"{UNTAKEN}::test_a_title_and_an_id_that_stands_twice_are_judged_decoded",
    ),
    Mutant(
        "a table that another process writes anew answers nothing",
        "untaken._answer",
        ("        if saved.is_sound():\n", "        if True:\n"),
        tests=f"{UNTAKEN}::test_a_table_written_anew_in_between_is_asked_again",
    ),
    Mutant(
        "rows of other logs count for nothing",
        "UntakenTable.__init__",
        ("            saved.forget()\n", "            pass\n"),
        tests=f"{UNTAKEN}::test_a_table_of_other_logs_is_made_again",
    ),
    Mutant(
        "a frozen recipient's mail is judged by its time",
        "dead_letters.last_dead",
        ("    if is_dead(usual) and not is_dead(usual + 1):\n", "    if True:\n"),
        tests=f"{UNTAKEN}::test_a_stopped_clock_spares_what_was_not_expired",
    ),
    Mutant(
        "a process is told from a later one with its number",
        "processes.lives",
        ("process.start == start and ", ""),
        tests=f"{GONE}::test_only_a_process_of_this_boot_and_namespace_is_judged",
    ),
    Mutant(
        "a zombie has ended",
        "processes.lives",
        (" and not process.is_over", ""),
        tests=f"{GONE}::test_mail_to_the_killed_waits_and_send_says_so",
    ),
    Mutant(
        "an invisible process has not ended",
        "processes.lives",
        (
            "    except (OSError, OverflowError):\n        pass\n    return None\n",
            "    except OSError:\n        pass\n    return False\n",
        ),
        tests=f"{GONE}::test_a_process_that_is_invisible_has_not_ended",
    ),
    Mutant(
        "a process elsewhere is not judged",
        "HostRecords._are_over",
        ("max((host for host, _ in hosts), key=self._written).here == self.here", "True"),
        tests=f"{GONE}::test_only_a_process_of_this_boot_and_namespace_is_judged",
    ),
    Mutant(
        "a session with a process that may live is not gone",
        "HostRecords._are_over",
        (" or any(lives is not False for _, lives in hosts)", ""),
        tests=f"{GONE}::test_a_session_that_may_run_elsewhere_is_not_gone",
    ),
    Mutant(
        "a session that ended by itself is not gone",
        "Agent.may_be_gone",
        (" and self.reason == CLIENT_ENDED", ""),
        tests=f"{GONE}::test_a_session_that_ended_by_itself_is_not_gone",
    ),
    Mutant(
        "who came back meanwhile is not frozen",
        "absence.note.decide",
        ("_newly_gone(desk, new, roster)", "new"),
        tests=f"{GONE}::test_who_comes_back_meanwhile_is_not_frozen",
    ),
    Mutant(
        "the gone give back role mail that they did not see",
        "absence.note",
        ("    hand_back(desk, new, actor)\n", ""),
        tests=f"{GONE}::test_role_mail_that_the_killed_never_saw_goes_to_the_next_holder_at_once",
    ),
    Mutant(
        "their own mail stays with the gone",
        "absence.is_by_role",
        (' and read.via.startswith("role:")', ""),
        tests=f"{GONE}::test_mail_of_its_own_stays_with_the_killed_until_it_returns",
    ),
    Mutant(
        "mail that was answered was seen",
        "absence._unseen_claims",
        (" if claim not in answered", ""),
        tests=f"{GONE}::test_mail_that_the_killed_saw_or_answered_stays_with_it",
    ),
    Mutant(
        "a notice counts by its seal",
        "notices._told_live",
        (" and (by_anyone or view is None or view.proof(line, position) is not None)", ""),
        tests=f"{DEAD}::test_no_other_program_s_line_keeps_a_sender_from_being_told",
    ),
    Mutant(
        "what a notice named is told",
        "notices._untold",
        ("set(_told_live(mailbox))", "set()"),
        ("{*_told_live(mailbox), *_told_in_archive(mailbox, oldest)}", "set()"),
        tests=f"{DEAD}::test_a_sender_is_told_of_its_dead_letters_once",
    ),
    Mutant(
        "one run tells of every letter",
        "notices._notices",
        ("count, parts = len(letters), _parts(letters)", "count, parts = len(letters), _parts(letters)[:1]"),
        tests=f"{DEAD}::test_one_run_tells_of_every_letter_and_moves_all_that_is_finished",
    ),
    Mutant(
        "a dead letter is not archived before its sender was told",
        "notices.held_back",
        ("plan.move - (waiting - hopeless)", "plan.move"),
        tests=f"{DEAD}::test_a_letter_is_not_archived_before_its_sender_was_told",
    ),
    Mutant(
        "a line in the person's name tells the person nothing",
        "dead_letters._concerned",
        ("USER if proofs.speaker(message.proof, USER) == USER else None", "USER"),
        tests=f"{DEAD}::test_the_person_is_told_of_their_own_letters_alone",
    ),
    Mutant(
        "a session that came back keeps its files",
        "leftovers._remove",
        ("        if logs.read_roster().state(session_id) != DEAD:\n            return\n", ""),
        tests=f"{DEAD}::test_a_session_that_comes_back_meanwhile_keeps_its_files",
    ),
    Mutant(
        "a delivery lock is removed under itself",
        "leftovers._remove",
        ("with FileLock(logs.heart(session_id), 0), logs.roster.held():", "with logs.roster.held():"),
        tests=f"{DEAD}::test_a_heartbeat_that_is_locked_stays",
    ),
    Mutant(
        "an agent that changed is no longer what the rollbook says",
        "RosterCache._mentioning",
        (" if place not in self._changed]", "]"),
        tests=f"{ROLLBOOK}::test_a_written_roster_takes_events_as_the_roster_itself",
    ),
    Mutant(
        "a rollbook is asked for an agent's lines by every word that finds it",
        "roster_cache._words",
        ("*tags, *agent.continues}", "*tags}"),
        tests=f"{ROLLBOOK}::test_a_written_roster_answers_as_the_roster_itself",
    ),
    Mutant(
        "a long rollbook is written again when the changes are many",
        "Logs._folded_roster",
        (" or end - at[1] >= NEWS", ""),
        tests=f"{LARGE}::test_a_change_is_folded_from_the_log_until_there_are_many",
    ),
    Mutant(
        "the stamps of many go before the mail comes",
        "stamps._is_put_aside",
        ("            system.rename(directory, aside)\n", "            pass\n"),
        tests=f"{LARGE}::test_the_stamps_of_many_go_in_one_step",
    ),
    Mutant(
        "stamps go one by one where no room is left to put them aside",
        "stamps._is_put_aside",
        ("    return False\n", "    return True\n"),
        tests=f"{LARGE}::test_stamps_put_aside_are_bounded",
    ),
    Mutant(
        "the sweep of stamps follows no link",
        "StampFiles.sweep",
        (" if system.is_own_directory(aside) else ()", ""),
        tests=f"{LARGE}::test_a_link_in_the_place_of_stamps_is_not_followed_by_the_sweep",
    ),
    Mutant(
        "who may have read mail is asked what it owes",
        "line_forms.may_be_read_by",
        ('return b"\\\\" in line or any', "return any"),
        tests=f"{LARGE}::test_a_read_is_somebody_s_however_another_program_spells_the_id",
    ),
)
