"""The protections between the machines of a space, each taken away: who may say what of whom."""

from __future__ import annotations

from tests.faults.mutant import Mutant

JUDGE = "tests/engine/test_space_judge.py"
HOSTILE = "tests/engine/test_hostile_machine.py"

MUTANTS = (
    Mutant(
        "what another machine seals counts as far as the person says",
        "SpaceJudge.weighed",
        ("if not may_say(seal.machine, rights, seal.proof, decoded, homes):", "if False:"),
        tests=f"{JUDGE}::test_the_person_speaks_on_another_machine_if_its_person_says_so",
    ),
    Mutant(
        "a machine's other key proves nothing",
        "SpaceJudge.is_key_of",
        ("and machine_keys.fingerprint(seal.key) == rights.fingerprint", ""),
        tests=f"{JUDGE}::test_a_machine_whose_key_changed",
    ),
    Mutant(
        "a machine speaks for the sessions that live there",
        "speaking.may_say",
        ("or homes.lives(session_id, machine))", "or True)"),
        tests=f"{JUDGE}::test_a_machine_says_nothing_of_sessions_that_live_elsewhere",
    ),
    Mutant(
        "a session of one machine continues none of another",
        "speaking.may_say",
        (" and (older is None or speaks_for(older))", ""),
        tests=f"{JUDGE}::test_a_machine_takes_no_place_of_a_session_elsewhere",
    ),
    Mutant(
        "a session of one machine takes no name of another's",
        "speaking.may_say",
        ("if any(homes.is_taken(word, record.session_id) for word in words):", "if False:"),
        tests=f"{JUDGE}::test_a_machine_takes_no_place_of_a_session_elsewhere",
    ),
    Mutant(
        "a machine seals in its own name alone",
        "SpaceJudge._judged",
        ("seal.machine == machine and ", ""),
        tests=f"{JUDGE}::test_a_line_that_names_another_machine_s_seal",
    ),
    Mutant(
        "a line that is published again counts once",
        "SpaceJudge._judged",
        (" or seal.number <= self.used(machine, record.log)", ""),
        tests=f"{JUDGE}::test_a_revoked_order_is_published_again",
    ),
    Mutant(
        "a line that the network held counts behind those of other logs",
        "space_seals.sequence",
        ('f"{log} {machine}"', "machine"),
        tests=f"{JUDGE}::test_a_line_that_the_network_held_counts_behind_those_of_other_logs",
    ),
    Mutant(
        "a lost state forgets no number",
        "Replica._take_lines",
        ("                self.judge.is_here(record)\n", "                pass\n"),
        tests=f"{JUDGE}::test_a_revoked_order_is_published_again",
    ),
    Mutant(
        "a line counts in its own space",
        "space_seals.covered",
        ("space.encode(), ", ""),
        tests=f"{JUDGE}::test_a_line_of_another_space",
    ),
    Mutant(
        "a line counts in its own log",
        "space_seals.covered",
        ("log.encode(), ", ""),
        tests=f"{JUDGE}::test_a_line_in_the_wrong_log",
    ),
    Mutant(
        "a line counts as it was signed",
        "SpaceJudge.is_true",
        ("return machine_keys.is_signed", "return True or machine_keys.is_signed"),
        tests=f"{JUDGE}::test_a_line_that_was_changed_after_signing",
    ),
    Mutant(
        "a machine vouches for what it saw itself",
        "SpaceJudge.weighed",
        ("if seal.proof is None or not proofs.is_seen_here(seal.proof):", "if seal.proof is None:"),
        tests=f"{JUDGE}::test_seals_that_no_machine_can_make",
    ),
    Mutant(
        "a line that no file can hold is passed over",
        "order.is_known",
        ("(is_line or record.is_decision or record.damaged)", "(is_line or True)"),
        tests="tests/fuzz/test_records.py::test_no_record_locks_anybody_out",
    ),
    Mutant(
        "a machine tells of its own sessions alone",
        "SpaceJudge.judge",
        ("            found = self.hold(other, record.log, found)\n", "            pass\n"),
        tests=f"{HOSTILE}::test_a_machine_changes_no_session_of_another",
    ),
    Mutant(
        "a machine archives no mail that another one has not read",
        "following._follow_messages",
        ("(*here, USER), now)", "(), now)"),
        tests=f"{HOSTILE}::test_nobody_archives_mail_that_another_machine_has_not_read",
    ),
    Mutant(
        "a machine archives no mail whose ack a session of another owes",
        "retention.without_open",
        (" - owed\n", "\n"),
        tests=f"{HOSTILE}::test_nobody_archives_mail_whose_ack_is_owed",
    ),
    Mutant(
        "a machine freezes no session of another for longer than it was not seen",
        "roster_changes.swept",
        ("max(agent.frozen[-1][0], seen)", "agent.frozen[-1][0]"),
        tests=f"{HOSTILE}::test_what_is_frozen_since_long_ago_is_not_retired",
    ),
    Mutant(
        "a machine that is given up takes no other's session with it",
        "joining_space.give_up",
        ("if not homes.is_another_s(who, machine)", ""),
        tests=f"{HOSTILE}::test_a_machine_takes_no_other_s_session_with_it",
    ),
    Mutant(
        "a machine restores no words of another's sessions",
        "lost_records.take_back",
        ("judge = copy.judge if machine != copy.order.machine else None", "judge = None"),
        tests=f"{HOSTILE}::test_lines_that_a_machine_claims_to_restore_are_its_own_words",
    ),
    Mutant(
        "nobody reads ahead for a session that is not there yet",
        "speaking.oversteps",
        ("homes.is_new(record.session_id) or ", ""),
        tests=f"{HOSTILE}::test_nobody_reads_ahead_for_a_session_that_is_not_there_yet",
    ),
    Mutant(
        "an answer in another's name settles nothing",
        "obligations._settles",
        ("    if proofs.is_bare_word(reply.proof):\n        return False\n", ""),
        tests=f"{HOSTILE}::test_an_answer_in_another_s_name_settles_nothing",
    ),
    Mutant(
        "a machine acts for no session of another",
        "ControlState._applied",
        ("if proofs.is_bare_word(message.proof) and not _may_only_narrow(payload, flow):", "if False:"),
        tests=f"{HOSTILE}::test_a_machine_acts_for_no_session_of_another",
    ),
    Mutant(
        "a line whose id no command writes is a stranger's",
        "codec._id",
        ("if not _is_id(found := _text(obj, key)):", "if not (found := _text(obj, key)):"),
        tests=f"{HOSTILE}::test_a_line_whose_id_no_command_writes_is_a_stranger_s",
    ),
    Mutant(
        "a proof's text is taken apart in one way",
        "proofs._taken_apart",
        (" and is_id(session_id) and session_id not in (USER, *OURS)", ""),
        tests=f"{HOSTILE}::test_a_proof_s_text_is_taken_apart_in_one_way",
    ),
    Mutant(
        "a session of another machine asks in its own name",
        "speaking._may_write",
        (" and speaks_for(message.sender)", ""),
        tests=f"{HOSTILE}::test_a_session_asks_in_nobody_else_s_name",
    ),
    Mutant(
        "a line that waits for the person's word proves nothing",
        "ProofView.proof",
        ("return said if said is None or said == proofs.BEFORE or proofs.proves(said) else None", "return said"),
        tests=f"{JUDGE}::test_a_machine_says_nothing_of_sessions_that_live_elsewhere",
    ),
    Mutant(
        "a line that waits counts at its own place alone",
        "ProofView.waits",
        ("said is not None and said.kind == proofs.WAITS", 'b\'"seal":"2 \' in line'),
        tests=f"{JUDGE}::test_a_program_writes_a_verdict",
    ),
    Mutant(
        "lines are judged again only after their numbers are used",
        "space_trust.apply",
        ("    copy.keep(true.numbers)", "    pass"),
        tests=f"{JUDGE}::test_a_kill_while_lines_are_judged_again",
    ),
    Mutant(
        "a copy of a line that waits is no second one",
        "_TrueSeals.take",
        ("        self.signatures.remove(seal.signature)\n", ""),
        tests=f"{JUDGE}::test_copies_of_what_waits_count_once",
    ),
    Mutant(
        "lines are judged again in the order in which they were signed",
        "_TrueSeals.look",
        ("is_next and ", ""),
        ("self.numbers[place] = seal.number", "self.numbers[place] = max(seal.number, self.numbers.get(place, 0))"),
        tests=f"{JUDGE}::test_lines_that_wait_out_of_order_count_for_nothing",
    ),
    Mutant(
        "a log that is not as it was left is not judged again",
        "resealing.reseal",
        ("        rotation.refuse_broken(logs)\n", ""),
        tests=f"{JUDGE}::test_logs_that_are_not_as_they_were_left_are_not_judged_again",
    ),
    Mutant(
        "lines that are judged again make no foreign line an old one",
        "resealing.reseal",
        (", before=view.entry.before", ""),
        tests=f"{JUDGE}::test_a_foreign_line_stays_one_as_others_are_judged_again",
    ),
    Mutant(
        "an order from another machine binds as it is written",
        "taken_records.disturbed",
        ("                _bind_by(logs, message)\n", "                    pass\n"),
        tests=f"{JUDGE}::test_an_order_from_elsewhere_binds_at_once",
    ),
    Mutant(
        "who cannot verify lets lines wait",
        "SpaceJudge._judged",
        ("if not is_known or not machine_keys.is_available():\n", "if not is_known:\n"),
        tests=f"{JUDGE}::test_a_machine_that_cannot_verify",
    ),
    Mutant(
        "a lost machine's key counts for nothing",
        "joining_space.give_up",
        ("    space_trust.forget(spaces.record_of(desk.logs).path(spaces.PLACE), machine)\n", ""),
        tests="tests/engine/test_two_homes.py::test_the_person_decides_from_another_machine",
    ),
    Mutant(
        "a killed process's lines keep their proof",
        "SpaceJudge.weighed",
        ("return Judged(content, seal.proof)", "return Judged(content, None)"),
        tests=f"{JUDGE}::test_a_kill_at_any_moment_loses_no_proof",
    ),
    Mutant(
        "a record that is made late is durable",
        "custody_setup._begin",
        ("in (boxes, system.dirname(boxes)):", "in (boxes,):"),
        tests="tests/simulation/test_found.py::test_a_record_that_was_made_late_survives_a_power_failure",
    ),
    Mutant(
        "a record whose maker was killed is durable once init has run",
        "creation.create",
        ("boxes if system.exists(boxes) else state", "state"),
        tests="tests/simulation/test_found.py::test_a_record_whose_maker_was_killed_survives_a_power_failure",
    ),
)
