"""The protections around the gone and the dead, each taken away: who judges, what goes back, what is removed."""

from __future__ import annotations

from tests.faults.mutant import Mutant

GONE, DEAD = "tests/cli/test_gone.py", "tests/cli/test_dead.py"

MUTANTS = (
    Mutant(
        "a process is told from a later one with its number",
        "processes.has_ended",
        ("process.start != start or ", ""),
        tests=f"{GONE}::test_only_a_process_of_this_boot_and_namespace_is_judged",
    ),
    Mutant(
        "a zombie has ended",
        "processes.has_ended",
        (" or process.is_over", ""),
        tests=f"{GONE}::test_mail_to_the_killed_waits_and_send_says_so",
    ),
    Mutant(
        "an invisible process has not ended",
        "processes.has_ended",
        (
            "    except (OSError, OverflowError):\n        pass\n    return False\n",
            "    except OSError:\n        pass\n    return True\n",
        ),
        tests=f"{GONE}::test_a_process_that_is_invisible_has_not_ended",
    ),
    Mutant(
        "a process elsewhere is not judged",
        "HostRecords._are_over",
        ("max(hosts, key=self._written).here == self.here", "True"),
        tests=f"{GONE}::test_only_a_process_of_this_boot_and_namespace_is_judged",
    ),
    Mutant(
        "a session with a process that may live is not gone",
        "HostRecords._are_over",
        (" or any(map(self._may_live, hosts))", ""),
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
        (" and (view is None or view.proof(line, position) is not None)", ""),
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
)
