"""The protections of the control plane, each taken away: see ``mutants``."""

from __future__ import annotations

from tests.faults.mutant import Mutant

STATE, PERMIT, CLI, POLICY = (
    *("tests/core/control/test_state.py", "tests/claude/test_permit.py", "tests/cli/test_control.py"),
    "tests/core/test_policy.py",
)

MUTANTS = (
    Mutant(
        "a report that does not count is an error",
        "Coordination.report",
        ("        self.refuse_unapplied(sent, f", "        str(f"),
        tests="tests/cli/test_callers.py::test_a_report_that_does_not_count_is_an_error_and_ends_no_watch",
    ),
    Mutant(
        "a request whose beginning alone is shown says so",
        "summary.unshown",
        ("len(whole(payload)) > WIDTH", "False"),
        tests="tests/cli/test_control.py::test_a_request_whose_beginning_alone_is_shown_says_so_and_is_shown_whole",
    ),
    Mutant(
        "only the lead or the person commands",
        "authority.commands",
        (
            "any(lead is not None and is_same(speaker, lead, when, roster, proven=proven) for lead in leads)",
            "True",
        ),
        tests=f"{STATE}::test_who_is_not_the_lead_decides_nothing",
    ),
    Mutant(
        "nobody commands itself",
        "authority.commands",
        (
            "    if worker == USER or speaker == worker or is_same(worker, speaker, when, roster, proven=False):\n",
            "    if speaker == worker:\n        return True\n"
            "    if worker == USER or is_same(worker, speaker, when, roster, proven=False):\n",
        ),
        tests=f"{STATE}::test_who_is_not_the_lead_decides_nothing",
    ),
    Mutant(
        "who led when it was said counts",
        "authority.lead_at",
        (" in reversed(leads) if since <= when)", " in reversed(leads))"),
        tests=f"{STATE}::test_who_led_when_it_was_said_counts",
    ),
    Mutant(
        "the first decision counts",
        "ControlState._decided",
        (
            "        after = transitions.after(flow, request.state, what)\n",
            "        after = transitions.after(flow, transitions.OPEN, what)\n",
        ),
        tests=f"{STATE}::test_the_first_decision_counts",
    ),
    Mutant(
        "a time-out is a decision",
        "transitions._ASKED",
        ("    (OPEN, TIMEOUT): TIMED_OUT,\n", "    (OPEN, TIMEOUT): OPEN,\n"),
        tests=f"{STATE}::test_a_time_out_is_a_decision",
    ),
    Mutant(
        "only who asked gives up",
        "ControlState._decided",
        (
            "            if not authority.is_same(speaker, request.asker, when, self.roster):\n",
            "            if False:\n",
        ),
        tests=f"{STATE}::test_only_the_asker_gives_up",
    ),
    Mutant(
        "a time-out stands in the log before it is acted on",
        "Control.wait",
        ('            request = self.give_up(me, request, beside.why() if beside else "")\n', "            pass\n"),
        tests=f"{CLI}::test_a_time_out_is_a_decision_and_a_late_approval_changes_nothing",
    ),
    Mutant(
        "a mode or a policy is the lead's to set",
        "ControlState._ordered",
        (
            "to != ALL and not authority.commands(speaker, to, message.timestamp, self.roster, proven=False)",
            "False",
        ),
        tests=f"{STATE}::test_modes_and_policies_are_the_lead_s_to_set",
    ),
    Mutant(
        "no message sets a mode that bypasses permissions",
        "message_text.mode",
        (
            '    if found is None:\n        raise ValueError(f"{where}: no message can set',
            '    if found is None:\n        return str(given)\n        raise ValueError(f"{where}: no message can set',
        ),
        tests=f"{STATE}::test_what_is_not_understood_changes_nothing"
        f" and {CLI}::test_what_cannot_be_is_refused_with_what_to_do",
    ),
    Mutant(
        "mail that looks like control is none",
        "ControlState.apply",
        ('        if message.type != "control":\n            return None\n', ""),
        tests=f"{STATE}::test_plain_mail_that_looks_like_control_is_none",
    ),
    Mutant(
        "a request goes to the archive with its answer",
        "retention.without_standing",
        ("        if not move.issuperset(group):\n", "        if False:\n"),
        tests=f"{STATE}::test_a_request_goes_to_the_archive_with_its_answer_or_not_at_all",
    ),
    Mutant(
        "what an archived request came to is told",
        "Coordination.find",
        ("        if found is None and len(word) >= MIN_PREFIX:\n", "        if False:\n"),
        tests=f"{CLI}::test_what_was_decided_is_told_though_it_was_archived_meanwhile",
    ),
    Mutant(
        "what a stranger waits for is not archived undecided",
        "ControlState.standing",
        ("self.roster.get(request.worker) is not None and not self.roster", "not self.roster"),
        tests=f"{CLI}::test_what_a_stranger_waits_for_is_not_archived_undecided",
    ),
    Mutant(
        "a denial goes before everything",
        "policy.judge",
        ("    if caught is not None:\n        return _verdict(DENY,", "    if False:\n        return _verdict(DENY,"),
        tests=f"{PERMIT}::test_rules_and_modes_answer_without_anybody_being_asked",
    ),
    Mutant(
        "of what cannot be told to only look it is assumed that it acts",
        "policy.is_reading",
        ("        return False\n    return bool(found) and all", "        return True\n    return bool(found) and all"),
        tests=f"{POLICY}::test_reading_commands",
    ),
    Mutant(
        "a session that was bound may not where nobody can tell by what",
        "hook_command._close",
        ("        write(permit.closed(", "        (permit.closed("),
        tests=f"{PERMIT}::test_a_session_that_was_bound_is_denied_where_nobody_can_tell_by_what",
    ),
    Mutant(
        "a question about a session that is bound is answered though the mailbox fails, mark or no mark",
        "Permit.answer",
        (
            '            self.write(closed(self.call.event, getattr(error, "what", "") or type(error).__name__))\n',
            "            pass\n",
        ),
        tests=f"{PERMIT}::test_one_that_is_found_bound_is_denied_where_asking_fails_whatever_became_of_its_mark",
    ),
    Mutant(
        "a question is answered once",
        "_permit.tell",
        ("        if not told:\n", "        if True:\n"),
        tests=f"{PERMIT}::test_what_goes_wrong_after_the_answer_voids_it_not",
    ),
    Mutant(
        "without an answer nothing is approved",
        "Permit._tell",
        ("        if request.state == transitions.APPROVED:\n", "        if request.state != transitions.DENIED:\n"),
        tests=f"{PERMIT}::test_without_an_answer_the_default_counts",
    ),
    Mutant(
        "an input that a lead put in is judged as well",
        "Permit._approved",
        ("            if judged.decision == DENY:\n", "            if False:\n"),
        tests=f"{PERMIT}::test_an_input_that_the_lead_put_in_is_judged_as_well",
    ),
    Mutant(
        "a decision answers one question of the client that follows it",
        "bindings.take",
        (
            "        system.unlink(path)\n    except OSError:\n        return False\n",
            "    except OSError:\n        return False\n",
        ),
        tests=f"{PERMIT}::test_an_approval_answers_the_question_that_the_floor_makes_the_client_ask_next_once",
    ),
    Mutant(
        "a stamp that nothing binds a session goes before what binds it comes",
        "StampFiles.disturb",
        ("        for directory in (self._quiet, self.kept(UNBOUND)):\n", "        for directory in (self._quiet,):\n"),
        tests=f"{PERMIT}::test_a_session_that_nothing_binds_is_not_answered_and_stamped",
    ),
    Mutant(
        "the doctor tells a stamp that nothing binds a session where something does",
        "derived_checks.examine",
        ("_stamps, _unbound, _cursors", "_stamps, _cursors"),
        tests="tests/cli/test_doctor.py::test_a_stamp_that_denies_what_binds_a_session_is_a_problem",
    ),
    Mutant(
        "the doctor calls no stamp a problem that the guard does not believe",
        "derived_checks._stamps",
        ("trail.counting(session_id, mailbox.now()) is not None and", "trail.is_quiet(session_id) and"),
        tests="tests/cli/test_doctor.py::test_a_stamp_that_the_guard_does_not_believe_is_no_problem",
    ),
    Mutant(
        "who agreed to end runs nothing any more",
        "standing.is_over",
        ("    return standing.is_shut_down and agent is not None and agent.state == DEAD\n", "    return False\n"),
        tests=f"{PERMIT}::test_one_that_agreed_to_end_runs_nothing_any_more_until_it_is_begun_anew",
    ),
    Mutant(
        "who is begun anew is not shut down any more",
        "ControlState.is_shut_down",
        ("            and request.decided >= began\n", ""),
        tests=f"{STATE}::test_who_registers_again_is_not_shut_down_any_more",
    ),
    Mutant(
        "a shutdown is answered by who is to end",
        "ControlState.may_answer",
        (
            "            return authority.is_same(speaker, request.answerer, when, self.roster)\n",
            "            return True\n",
        ),
        tests=f"{STATE}::test_a_shutdown_is_asked_by_the_lead_and_answered_by_the_worker",
    ),
    Mutant(
        "what its asker waits for no longer is not pending",
        "Control.pending",
        ("if not overdue(request, now)]", "]"),
        tests=f"{CLI}::test_a_killed_waiter_loses_nothing",
    ),
    Mutant(
        "a request is pending to who decides it, and to nobody else",
        "Control.pending",
        ("if everyones or me in self.deciders(request)]", "]"),
        tests=f"{CLI}::test_a_request_is_seen_decided_and_told",
    ),
)
