"""The protections of who may decide, each taken away: seals, the record of a mailbox, the fold by what is proven."""

from __future__ import annotations

from tests.faults.mutant import Mutant

FORGED, CUSTODY = "tests/trust/test_forged.py", "tests/trust/test_custody.py"
PROOFS, BACK = "tests/trust/test_proof_key.py", "tests/trust/test_brought_back.py"
STATE = "tests/core/control/test_state.py"
TEXT = "tests/core/test_text.py"
TABLE = "tests/trust/test_control_table.py"
SHOWN = "tests/cli/test_hostile_text.py"
ASKED = "tests/cli/test_widening.py"
NAMES = "tests/claude/test_guarded_names.py"

LOST, SEVERAL = "tests/trust/test_lost_notes.py", "tests/trust/test_several_mailboxes.py"
CALLERS = "tests/cli/test_callers.py"

MUTANTS = (
    Mutant(
        "every mailbox that a mark names judges",
        "judging_mailboxes.answer",
        ("    elsewhere = [name for name in named or ()", "    elsewhere = [name for name in ()"),
        tests=f"{SEVERAL}::test_each_mailbox_that_binds_it_must_agree",
    ),
    Mutant(
        "a link to another mailbox frees nobody",
        "judging_mailboxes._why_moved",
        ("if system.real_directory(name) == name else", "if True else"),
        tests=f"{SEVERAL}::test_one_that_is_missing_or_is_a_link_to_another_closes",
    ),
    Mutant(
        "another input is judged by the other mailboxes",
        "Permit._approved",
        ("changed is not None and self.is_one_of_several", "False"),
        tests=f"{SEVERAL}::test_another_input_that_one_lead_approves_is_a_call_of_its_own",
    ),
    Mutant(
        "a grant is taken by the mailbox that gave it",
        "bindings.take",
        ("            return False  # another mailbox's: each that binds the session decides\n", "            pass\n"),
        tests=f"{SEVERAL}::test_a_grant_answers_for_the_mailbox_that_gave_it",
    ),
    Mutant(
        "a mark that names no mailbox closes",
        "judging_mailboxes.answer",
        ("    if named == [] and not is_bound:\n", "    if False:\n"),
        tests=f"{LOST}::test_it_stays_so_where_another_mailbox_would_judge_it",
    ),
    Mutant(
        "a session that starts elsewhere takes its bounds along",
        "session.enter",
        ("        _take_along(session_id, before.mailbox, desk.logs.wait)\n", "        pass\n"),
        tests=f"{LOST}::test_it_stays_so_where_another_mailbox_would_judge_it",
    ),
    Mutant(
        "a hook whose client is not to be seen proves no session",
        "hook_calls._by_environment",
        ('    if sys.platform != "darwin":\n', "    if False:\n"),
        tests=f"{CALLERS}::test_where_ancestors_are_not_seen_no_variable_makes_a_session[empty]",
    ),
    Mutant(
        "what a log that was brought back allows takes a second word",
        "upkeep._trust",
        ("withheld = () if again else seen.withheld", "withheld = ()"),
        tests=f"{BACK}::test_a_rule_that_was_taken_back_waits_for_a_word_of_its_own",
    ),
    Mutant(
        "a rule for everyone waits, too",
        "withheld_rules.compare",
        ("found = [_of(ALL, after, before, everyone=False)]\n", "found = [_of(USER, after, before, everyone=False)]\n"),
        tests=f"{BACK}::test_everything_that_widens_waits_and_all_that_narrows_stays",
    ),
    Mutant(
        "a bound session's tools write nothing that the person's terminal runs",
        "file_guard._refusal",
        ("return STARTS if any(names.runs_for_the_person(*place) for place in places.items()) else", "return"),
        tests=f"{NAMES}::test_a_bound_session_s_tools_write_nothing_that_the_person_s_terminal_runs",
    ),
    Mutant(
        "a bound session's tools write no commands that a client runs past our hooks",
        "file_guard._refusal",
        ("    if any(map(names.runs_unasked, places.values())):\n        return RUNNING\n", ""),
        tests=f"{NAMES}::test_a_bound_session_s_tools_write_no_commands_that_a_client_runs_past_our_hooks",
    ),
    Mutant(
        "no tool writes the settings of a client",
        "file_guard._refusal",
        ("any(map(names.is_settings, places.values()))", "False"),
        tests=f"{NAMES}::test_they_are_found_by_links_by_variables_and_in_any_case",
    ),
    Mutant(
        "no tool writes what an installed hook starts",
        "file_guard.GuardedFiles.__init__",
        ("*programs]", "]"),
        tests=f"{NAMES}::test_no_tool_writes_the_person_s_configuration_or_what_an_installed_hook_starts",
    ),
    Mutant(
        "mail on whose proof nothing hangs tells it to programs",
        "logs.weighed",
        ("view.kept.custody.weighs_mail", "False"),
        tests=f"{PROOFS}::test_each_message_in_json_tells_its_proof",
    ),
    Mutant(
        "what a planted program has the person's terminal run is asked",
        "prompts.is_typed",
        ("leads and reads and is_shell and named", "reads"),
        tests=f"{ASKED}::test_what_the_person_s_terminal_runs_for_an_agent_asks_the_person[a script]",
    ),
    Mutant(
        "a program that holds the terminal does not answer for the person",
        "prompts.holder",
        ("process.terminal not in (0, terminal)", "False"),
        tests=f"{ASKED}::test_a_program_that_holds_the_terminal_answers_nothing",
    ),
    Mutant(
        "a program's denial is not told as the lead's word",
        "control_requests.ControlRequest.doubt",
        ("if self.answer_proven else", "if self else"),
        tests="tests/claude/test_permit.py::test_a_program_s_denial_is_not_told_as_the_lead_s_word",
    ),
    Mutant(
        "a rule's text reads as no sentence of ours",
        "policy._shown",
        ("term(rule.text, MAX_REASON - 60)", "rule.text"),
        tests="tests/claude/test_permit.py::test_a_rule_s_text_reads_as_no_sentence_of_ours",
    ),
    Mutant(
        "no sender's id looks like the person",
        "compose.checked",
        ('        check_name(draft.sender, "session id")\n', "        pass\n"),
        tests="tests/cli/test_refusals.py::test_a_malformed_argument_is_exit_2",
    ),
    Mutant(
        "the person is no agent",
        "Context.is_session",
        ("        if self.caller.is_person:\n            return False\n", ""),
        ("if self.caller.kind == callers.SESSION or self.caller.client:", "if self.caller.client is not None:"),
        tests="tests/cli/test_file_arguments.py::test_told_by_their_processes_the_person_and_a_program_send_any_file",
    ),
    Mutant(
        "an agent that a program names as the person is not shown so",
        "frame.sender_of",
        ("is_shown((agent and agent.name) or message.sender)", "False"),
        tests=f"{SHOWN}::test_no_agent_is_shown_as_the_person",
    ),
    Mutant(
        "the roster's list shows no agent as the person",
        "frame.bare_name",
        ("_own(agent.name)", "agent.name"),
        tests=f"{SHOWN}::test_no_agent_is_shown_as_the_person[you]",
    ),
    Mutant(
        "no role reads like the person",
        "frame.roles_of",
        ("_own(", "word("),
        tests=f"{SHOWN}::test_no_role_reads_like_the_person_or_like_a_sentence",
    ),
    Mutant(
        "a program does not send as the steward",
        "Posting._prepare",
        (" and self.prove(draft.sender) == STEWARD", ""),
        tests=f"{SHOWN}::test_only_the_steward_is_shown_as_the_steward",
    ),
    Mutant(
        "a subject is quoted",
        "message_frame.body",
        ("term(message.subject, frame.SUBJECT)", "clipped(neutral(message.subject), frame.SUBJECT)"),
        tests=f"{SHOWN}::test_a_subject_is_quoted",
    ),
    Mutant(
        "a word of the frame does not end its quotes",
        "text.within_quotes",
        (""".replace('"', "'")""", ""),
        tests=f"{SHOWN}::test_no_word_ends_its_quotes",
    ),
    Mutant(
        "a request's id runs nothing in a command to paste",
        "summary.question",
        ("    which = typed(payload.request_id)\n", "    which = neutral(payload.request_id)\n"),
        tests=f"{SHOWN}::test_a_request_s_id_runs_nothing",
    ),
    Mutant(
        "what a new record notes of a log is durable before",
        "custody_setup._begin",
        ("            _sync(path)  #", "            #"),
        tests="tests/simulation/test_found.py::test_a_new_record_accuses_nobody_of_lines_that_a_power_failure_took",
    ),
    Mutant(
        "a proven line that a table names is proven still",
        "ControlTable._listed",
        ("                if was_proven and not proofs.proves(found[at].proof):\n", "                if False:\n"),
        tests=f"{TABLE}::test_who_was_bound_stays_bound_beside_a_table",
    ),
    Mutant(
        "a table that counted otherwise than the record accuses nobody",
        "ControlTable.ask",
        (
            "                    if self._view.is_whole() and self._is_sound():\n",
            "                    if self._is_sound():\n",
        ),
        tests=f"{TABLE}::test_a_table_of_a_wrong_count_accuses_nobody",
    ),
    Mutant(
        "messages of one request are found together",
        "control_table._belonging",
        ("    if payload.request_id:\n", "    if False:\n"),
        tests=f"{TABLE}::test_a_part_answers_as_the_whole_does",
    ),
    Mutant(
        "messages of one id are found together",
        "control_table._belonging",
        ("    yield of_id(message.id)\n", ""),
        tests=f"{TABLE}::test_a_part_answers_as_the_whole_does",
    ),
    Mutant(
        "a reader believes the announced end of a log that was replaced",
        "log.Log.view",
        ("ProofView(self.kept, path=self.path)", "ProofView(self.kept)"),
        tests=f"{CUSTODY}::test_a_log_whose_replacement_nobody_noted_is_read_as_it_is",
    ),
    Mutant(
        "only what is decided is passed over by who asks what waits",
        "ControlTable.settle",
        (" if decided(request_id)]", "]"),
        tests=f"{TABLE}::test_an_answer_that_counts_for_nothing_hides_no_request",
    ),
    Mutant(
        "what is decided is read no more to tell what waits",
        "ControlTable._listed",
        ("                if at in over:\n                    continue\n", ""),
        tests=f"{TABLE}::test_what_is_decided_is_read_no_more_to_tell_what_waits",
    ),
    Mutant(
        "an answer with effects is found by its asker",
        "ControlTable._words",
        ("        if _has_effects(payload):\n", "        if False:\n"),
        tests=f"{TABLE}::test_what_an_answer_brings_is_found_by_its_asker",
    ),
    Mutant(
        "a seal counts in its mailbox alone",
        "ProofView._is_ours",
        ("key.mac(self.kept.custody.id, ", 'key.mac(b"", '),
        tests=f"{CUSTODY}::test_any_changed_byte_ends_a_seal",
    ),
    Mutant(
        "a MAC is compared",
        "ProofView._is_ours",
        (
            "        return key.mac(self.kept.custody.id, self.kept.name.encode(), seal.signed) == seal.mac\n",
            "        return True\n",
        ),
        tests=f"{CUSTODY}::test_any_changed_byte_ends_a_seal",
    ),
    Mutant(
        "a seal counts at its place alone",
        "ProofView._is_in_place",
        ("            return seal.position == position\n", "            return True\n"),
        tests=f"{CUSTODY}::test_a_line_of_one_log_proves_nothing_in_another",
    ),
    Mutant(
        "a sealed line that was copied does not come below the base",
        "replacement.put_back",
        ("    misplaced = {place for place in kept if is_misplaced(log, place)}\n", "    misplaced = set()\n"),
        tests=f"{CUSTODY}::test_a_revoked_rule_that_is_appended_again_counts_for_nothing",
    ),
    Mutant(
        "a log must continue what was left",
        "LogEnd.continues",
        ("        if not self.size:\n", "        if True:\n"),
        tests=f"{CUSTODY}::test_a_session_s_start_says_that_the_log_was_cut",
    ),
    Mutant(
        "every line that decided must be there",
        "ProofView.is_whole",
        ("        return not self._differs and self.count >= self.entry.count\n", "        return True\n"),
        tests="tests/trust/test_control_table.py::test_who_was_bound_stays_bound_beside_a_table",
    ),
    Mutant(
        "in a broken mailbox nothing is proven",
        "ProofView._said",
        ("        if not self.trusted:\n", "        if False:\n"),
        tests=f"{CUSTODY}::test_after_the_person_looked_what_is_there_counts",
    ),
    Mutant(
        "whom an order binds is noted as it is given",
        "effects._bind",
        ("            bindings.bind(desk.logs.trail, session_id)\n", "            pass\n"),
        tests=f"{CUSTODY}::test_whom_an_order_alone_bound_stays_bound",
    ),
    Mutant(
        "who was bound is closed in a broken mailbox",
        "Permit.answer",
        ("        if (why := self.control.broken()) is not None:\n", "        if (why := None) is not None:\n"),
        tests=f"{CUSTODY}::test_who_was_bound_stays_bound",
    ),
    Mutant(
        "a writer that was killed is counted by the next",
        "HeldLog._look_at_what_was_left",
        ("            self._count(kept, entry.size, left=True)\n", "            pass\n"),
        tests=f"{CUSTODY}::test_a_writer_killed_before_it_counts_leaves_nothing_broken",
    ),
    Mutant(
        "the fold goes by the seal, not by the sender",
        "proofs.speaker",
        ("    return proof.id\n", "    return proof.id and claimed\n"),
        tests=f"{FORGED}::test_a_session_decides_as_itself_whomever_a_message_names",
    ),
    Mutant(
        "an unproven line approves nothing",
        "ControlState._decided",
        (
            "        elif what == transitions.APPROVE and not (self._is_proven(message) and request.proven):\n",
            "        elif False:\n",
        ),
        tests=f"{FORGED}::test_a_forged_answer_may_deny_and_never_approve",
    ),
    Mutant(
        "an unproven policy allows nothing",
        "standing_orders._policies",
        ("            if not may_loosen:", "            if False:"),
        tests=f"{FORGED}::test_a_forged_policy_denies_and_takes_nothing_away",
    ),
    Mutant(
        "an unproven mode loosens nothing",
        "standing_orders._modes",
        ("        if order.kind == MODE and may_loosen:\n", "        if order.kind == MODE:\n"),
        tests=f"{FORGED}::test_a_forged_mode_loosens_nothing_and_tightens",
    ),
    Mutant(
        "a foreign line ends no session that has a client",
        "roster.narrowed",
        ("    if agent is None or agent.client is None:\n", "    if True:\n"),
        tests=f"{FORGED}::test_a_foreign_line_neither_ends_nor_renames_nor_re_leads_a_session_with_a_client",
    ),
    Mutant(
        "a foreign line makes nobody an heir",
        "roster.narrowed",
        (
            "        older = event.continues if continued is not None and continued.client is None else None\n",
            "        older = event.continues\n",
        ),
        tests=f"{FORGED}::test_nobody_becomes_a_dead_lead_s_heir_by_a_foreign_line",
    ),
    Mutant(
        "only a proven lead may allow",
        "authority.commands",
        ("    if not proven:\n", "    if True:\n"),
        tests=f"{FORGED}::test_a_forged_lead_binds_and_allows_nothing",
    ),
    Mutant(
        "a foreign read hides no order",
        "claims.read_by",
        (
            "    unproven_too = not (proofs.proves(message.proof) and is_kept(message))\n",
            "    unproven_too = True\n",
        ),
        tests=f"{FORGED}::test_a_forged_read_hides_plain_mail_and_no_order",
    ),
    Mutant(
        "a foreign ack settles nothing that the person asked",
        "Reads.acked",
        ("        least = proofs.is_person(message.proof)\n", "        least = False\n"),
        tests=f"{FORGED}::test_a_forged_line_settles_nothing_that_the_person_asked",
    ),
    Mutant(
        "a foreign release frees no claim",
        "Reads.apply",
        (
            "            if before is not None and proofs.proves(before.proof) and not proven:\n",
            "            if False:\n",
        ),
        tests=f"{FORGED}::test_a_forged_release_frees_no_claim",
    ),
    Mutant(
        "a batch proves nothing",
        "Posting._append",
        ("self.prove(made.message.sender) if sealed else None", "self.prove(made.message.sender)"),
        tests=f"{FORGED}::test_a_batch_and_mail_from_elsewhere_prove_nothing",
    ),
    Mutant(
        "a name gives nobody the place of who bore it",
        "roster.changed",
        (
            "if proofs.speaker(event.proof, old) in (USER, old) else inherits",
            "if proofs.proves(event.proof) else inherits",
        ),
        tests=f"{STATE}::test_who_only_took_a_lead_s_name_leads_nobody",
    ),
    Mutant(
        "a name gives nobody what its bearer was allowed",
        "standing_orders._orders_of",
        ("yield order, order.proven and order.to in estate", "yield order, order.proven"),
        tests=f"{STATE}::test_what_an_agent_was_allowed_is_not_its_name_s",
    ),
    Mutant(
        "a plan approved for one frees nobody who took its name",
        "standing_orders._frees",
        ("(may_loosen or held.to == release.to)", "True"),
        tests=f"{STATE}::test_a_plan_approved_for_one_frees_nobody_who_took_its_name",
    ),
    Mutant(
        "the person's trust counts no copy",
        "adoption._without_copies",
        ("found[is_sealed and line in seen]", "found[False]"),
        tests=f"{CUSTODY}::test_the_person_s_trust_counts_no_copy",
    ),
    Mutant(
        "no part of a line begins one on a terminal",
        "folding._pieces",
        ("if line.isascii() and len(line) <= columns:", "if True:"),
        tests="tests/cli/test_terminal.py::test_no_part_of_a_line_begins_one_on_a_terminal",
    ),
    Mutant(
        "a row of characters that draw nothing is shown",
        "text._is_needed",
        ("and (_is_drawn(before) or before in _SELECTORS)", "or char in _JOINERS"),
        tests=f"{TEXT}::test_a_row_of_characters_that_draw_nothing_is_shown",
    ),
    Mutant(
        "wide brackets do not save a marker",
        "text._plain",
        ("for bracket in _BRACKETS:", 'for bracket in "<":'),
        tests=f"{TEXT}::test_wide_letters_and_brackets_do_not_save_a_marker",
    ),
    Mutant(
        "a sender who looks like another is quoted",
        "text.word",
        ("if USUAL.issuperset(text) and", "if visible(text) == text and"),
        tests="tests/cli/test_hostile_text.py::test_a_sender_who_looks_like_another_is_quoted",
    ),
    Mutant(
        "a command to paste runs nothing of another program",
        "text.typed",
        ("shell_quoted(neutral(word))", "neutral(word)"),
        tests="tests/cli/test_hostile_text.py::test_a_command_to_paste_runs_nothing_of_another_program",
    ),
)
