"""The protections of permissions, clients and receipts, each taken away: see ``mutants``."""

from __future__ import annotations

from tests.faults.mutant import Mutant

POLICY, COMMANDS, PERMIT, TEAMMATE = (
    *("tests/core/test_policy.py", "tests/claude/test_commands.py"),
    *("tests/claude/test_permit.py", "tests/claude/test_teammate.py"),
)
HOOKS, INSTALL, CLIENTS = (f"tests/claude/test_{name}.py" for name in ("hooks", "install", "clients"))
MAILBOXES = "tests/claude/test_other_mailboxes.py"
CALLERS = "tests/cli/test_callers.py"
RECEIPTS, CLAIMS, CORE = "tests/claude/test_receipts.py", "tests/core/test_claims.py", "tests/core/test_receipts.py"
PLAIN = f"{POLICY}::test_accept_edits_lets_through_the_project_s_plain_files_alone"
DENIED = "tests/core/test_denied_commands.py"
SPELLINGS = f"{DENIED}::test_every_spelling_of_a_denied_command_is_denied"
WHEREVER = f"{POLICY}::test_what_is_denied_is_denied_wherever_it_stands"
HIDDEN = f"{POLICY}::test_no_spelling_hides_a_command"
DIFFER = f"{POLICY}::test_rules_that_deny_and_rules_that_allow_differ_where_the_client_s_do"
READING = f"{POLICY}::test_reading_commands"
ANOTHERS = f"{COMMANDS}::test_a_teammate_s_command_without_its_own_name_is_refused_however_it_is_written"

POLICIES = (
    Mutant(
        "a question that is broken off while it is written is given up",
        "_Ending.__enter__",
        ("        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n", ""),
        ("        self._handler = signal.signal(signal.SIGTERM, self._end)\n", ""),
        tests=f"{PERMIT}::test_a_question_that_the_client_gives_up_is_given_up",
    ),
    Mutant(
        "a rule for all that a tool can do is not allowed for good by one press",
        "lasting._is_narrow",
        ('bool(what.strip("*:/ ~.?"))', "True"),
        tests="tests/core/control/test_lasting.py::test_one_wide_or_foreign_rule_makes_nothing_offered",
    ),
    Mutant(
        "a suggestion about another tool is not offered",
        "lasting._is_narrow",
        ("name == tool and ", ""),
        tests="tests/core/control/test_lasting.py::test_one_wide_or_foreign_rule_makes_nothing_offered",
    ),
    Mutant(
        "a hidden file of the project is none to be edited unasked",
        "policy._inside",
        (' or (tool in rules.WRITING and inner.startswith("."))', ""),
        tests=PLAIN,
    ),
    Mutant(
        "a file is where its links lead",
        "policy._inside",
        ("for spelled in (name, where.resolve(name)):", "for spelled in (name,):"),
        tests=PLAIN,
    ),
    Mutant(
        "who has no approved plan does not act",
        "policy._held",
        ('policy.plan_required or policy.mode == "plan"', 'policy.mode == "plan"'),
        tests=f"{POLICY}::test_a_session_whose_plan_is_not_approved_only_reads_and_plans",
    ),
    Mutant(
        "a mode that nobody knows lets nothing through",
        "policy._held",
        (" and policy.mode in MODES:\n", ":\n"),
        tests=f"{POLICY}::test_modes",
    ),
    Mutant(
        "what a rule asks about is not allowed by another",
        "policy.judge",
        ("    if caught is not None:\n        return _verdict(ASK,", "    if False:\n        return _verdict(ASK,"),
        tests=f"{POLICY}::test_an_allow_rule_of_the_lead_lets_through_what_the_mode_would_ask_about",
    ),
    Mutant(
        "a tool goes to no host that is not named",
        "policy.judge",
        ("    if host is not None:\n", "    if False:\n"),
        tests=f"{POLICY}::test_hosts",
    ),
    Mutant(
        "mail is no way around what may be read",
        "policy.judge",
        (' and not (policy.mode == "locked-down" and _sends_files(given))', ""),
        tests=f"{POLICY}::test_mail_is_no_way_around_what_may_be_read",
    ),
    Mutant(
        "no command counts as one within the project",
        "policy._inside",
        ("    if tool in rules.SHELLS:\n        return False\n", ""),
        tests=f"{POLICY}::test_modes",
    ),
    Mutant(
        "who sets a variable does not only look",
        "policy._only_reads",
        ("    if simple.computes:\n        return False\n", ""),
        tests=READING,
    ),
    Mutant(
        "what a variable holds may be a command where a shell computes",
        "quoting.computes",
        ('if not all(map(_is_plain, text.split("${")[1:])):', "if False:"),
        tests=READING,
    ),
    Mutant(
        "a rule that allows lets nothing compute",
        "rules._allowed_by",
        ("    if simple.computes:\n        return None\n", ""),
        tests=HIDDEN,
    ),
    Mutant(
        "a text that an expansion may run is looked at",
        "command_forms.forms",
        ("if any(map(_computes, found)) and any(map(_holds_commands, found)):", "if False:"),
        tests=HIDDEN,
    ),
    Mutant(
        "git does not only look where a command went elsewhere",
        "policy.is_reading",
        ('if "git" in programs and (went or "cd" in programs):', "if False:"),
        tests=READING,
    ),
    Mutant(
        "git does not only look where an earlier command went",
        "policy.is_reading",
        ("(went or ", "("),
        tests=f"{POLICY}::test_git_only_reads_where_the_session_started",
    ),
    Mutant(
        "a denied file is denied to the shell as well",
        "rules.catches",
        ("            return _touches(rule, given, where)\n", "            return False\n"),
        tests=f"{POLICY}::test_a_denied_file_is_denied_to_the_shell_as_well",
    ),
    Mutant(
        "of a compound every command must be allowed",
        "rules._all_allowed",
        ("return by[0] if by and all(by) else None", "return next(filter(None, by), None)"),
        tests=HIDDEN,
    ),
    Mutant(
        "a command outside the sandbox is not the one allowed",
        "rules._all_allowed",
        (' or given.get("dangerouslyDisableSandbox")', ""),
        tests=f"{POLICY}::test_a_command_that_runs_elsewhere_is_another",
    ),
    Mutant(
        "an allowed command writes no file",
        "rules._allowed_by",
        ('any(target != "/dev/null" for target in simple.targets) or ', ""),
        tests=f"{POLICY}::test_an_allowed_command_is_allowed_alone",
    ),
    Mutant(
        "a rule that is none allows nothing",
        "rules.allows",
        ("if rule.sound and _may_allow(rule)]", "if _may_allow(rule)]"),
        tests=f"{POLICY}::test_a_rule_that_is_none_closes",
    ),
    Mutant(
        "a pattern of tools allows those of one server alone",
        "rules.allows",
        ("if rule.sound and _may_allow(rule)]", "if rule.sound]"),
        tests=DIFFER,
    ),
    Mutant(
        "a link is allowed with what it points to alone",
        "rules._allows",
        ("spelled = [*names, *map(where.resolve, names)]", "spelled = names"),
        tests=DIFFER,
    ),
    Mutant(
        "a link to what is denied is denied",
        "rules._at",
        ("spelled = {full, where.resolve(full)}", "spelled = {full}"),
        tests=DIFFER,
    ),
    Mutant(
        "a denial does not look at case",
        "patterns.path",
        ("    if loose:\n", "    if False:\n"),
        tests=DIFFER,
    ),
    Mutant(
        "a star in a host's pattern stands for one label",
        "patterns.host",
        ("return len(wanted) == len(labels) and all(map(like, wanted, labels))", "return like(pattern, name)"),
        tests=f"{POLICY}::test_rules_of_other_tools_match_as_the_client_says",
    ),
    Mutant(
        "a host of numbers has one spelling",
        "patterns._plain_host",
        ('if last.isdigit() or last.startswith("0x"):', "if False:"),
        tests=f"{POLICY}::test_a_host_has_one_name_however_a_url_spells_it",
    ),
    Mutant(
        "a denial looks behind wrappers",
        "command_forms._starts",
        ("if name in WRAPPERS and not wraps:", "if False:"),
        tests=WHEREVER,
    ),
    Mutant(
        "the person's terminal decides and asks in nobody else's name",
        "Context.acting",
        ("if self.caller.is_person and who != USER:", "if False:"),
        tests="tests/cli/test_whose_word.py::"
        "test_at_the_person_s_terminal_nothing_is_decided_or_asked_in_another_s_name",
    ),
    Mutant(
        "old mail with an unknown key is decoded",
        "line_search._expired",
        ("return LASTING.match(piece, stamp + 25) is not None", "return True"),
        tests="tests/store/test_spellings.py::test_an_unknown_key_has_old_mail_decoded",
    ),
    Mutant(
        "a denial looks behind programs that run another by a verb",
        "command_forms._starts",
        ("((place + n for n in runners.commands(name, words[place:])), False)", "((), False)"),
        tests=SPELLINGS,
    ),
    Mutant(
        "an option hides no word of a denied command",
        "_Search._steps",
        ("yield number, command_options.takes_value(self.name, word)", "return"),
        tests=SPELLINGS,
    ),
    Mutant(
        "a word known only at run time may be a denied one",
        "denied_words._is_wild",
        ("return ONE in form or MANY in form", "return False"),
        tests=SPELLINGS,
    ),
    Mutant(
        "options are denied in every cluster and spelling",
        "command_options._has",
        ("return bool(letters) and all(", "return False and all("),
        tests=f"{DENIED}::test_other_rules_catch_the_spellings_of_their_commands",
    ),
    Mutant(
        "a denial looks into what a shell is given",
        "command_forms._spelled",
        ("    if base(words[0]) in _INTERPRETERS:\n", "    if False:\n"),
        tests=WHEREVER,
    ),
    Mutant(
        "what a shell is handed unseen is denied",
        "command_forms.forms",
        ("if not simple.inputs and _is_handed(words):", "if False:"),
        tests=HIDDEN,
    ),
    Mutant(
        "a command within a substitution is one",
        "_Reader.nested",
        ("        self.found += inner.found\n", ""),
        tests=WHEREVER,
    ),
    Mutant(
        "the substitutions of a here-document run",
        "_Reader._here_documents",
        ("            if expanded:\n", "            if False:\n"),
        tests=f"{READING} and {ANOTHERS}",
    ),
    Mutant(
        "a pattern of case ends no substitution",
        "_Reader.read",
        ("if not self._cases:", "if True:"),
        tests=HIDDEN,
    ),
    Mutant(
        "an escaped quote ends no text",
        "Words.dollar",
        ("""elif following == "'" and not quoted:""", "elif False:"),
        tests=HIDDEN,
    ),
    Mutant(
        "an operator in two lines cannot be read",
        "Words.refuse_joined",
        ("if self.text.startswith(JOINED, self.at):", "if False:"),
        tests=HIDDEN,
    ),
)

ASKING = (
    Mutant(
        "a decision is about the input it was asked about",
        "Permit._call_id",
        ("self.call.tool, named]", "self.call.tool]"),
        tests=f"{PERMIT}::test_an_approval_answers_no_question_about_another_call",
    ),
    Mutant(
        "what the model asks its person is not the lead's",
        "Permit._is_for_the_lead",
        ("        if self.call.tool in PERSONS:\n", "        if False:\n"),
        tests=f"{PERMIT}::test_the_lead_is_asked_only_where_the_client_would_ask_or_the_mode_says_so",
    ),
    Mutant(
        "a dialog that was answered ends the question beside it",
        "Permit._dialog",
        ("return ANSWERED if", 'return "" if'),
        tests=f"{PERMIT}::test_a_call_that_ended_asks_nobody_any_longer",
    ),
    Mutant(
        "a dialog is watched for before the client has written a line",
        "Permit._dialog",
        ("or not path:", "or not system.exists(path):"),
        tests=f"{PERMIT}::test_a_transcript_that_comes_after_the_question_tells_its_end",
    ),
    Mutant(
        "a request to the model ends no call",
        "transcript._has_ended",
        ('kind == ("user", "tool_result")', 'kind[1] == "tool_result"'),
        tests=f"{PERMIT}::test_what_the_client_keeps_of_its_requests_ends_and_begins_no_call",
    ),
    Mutant(
        "a request to the model begins no call",
        "transcript._has_ended",
        ('kind == ("assistant", "tool_use")', 'kind[1] == "tool_use"'),
        tests=f"{PERMIT}::test_what_the_client_keeps_of_its_requests_ends_and_begins_no_call",
    ),
    Mutant(
        "of two calls of the same words both must have ended",
        "transcript._has_ended",
        ("return ended and not running", "return ended"),
        tests=f"{PERMIT}::test_an_end_that_may_be_another_call_s_ends_no_question",
    ),
    Mutant(
        "a call that ended before the question does not end it",
        "transcript._has_ended",
        (" >= since", " >= 0"),
        tests=f"{PERMIT}::test_an_end_that_may_be_another_call_s_ends_no_question",
    ),
    Mutant(
        "a teammate's lead is not its own to set",
        "own_commands._call",
        ('any(word.partition("=")[0] == "--lead" for word in arguments)', "False"),
        tests=ANOTHERS,
    ),
    Mutant(
        "the client asks before another mailbox is used",
        "own_questions._elsewhere",
        ("not place.is_own([*moves, word])", "False"),
        tests=f"{MAILBOXES}::test_the_client_asks_before_another_project_s_mailbox",
    ),
    Mutant(
        "the client asks where a command goes to another mailbox",
        "OwnCommands.read",
        ("                self._moves += directory_changes.after(words)\n", ""),
        tests=f"{MAILBOXES}::test_the_client_asks_before_another_project_s_mailbox",
    ),
    Mutant(
        "the entry point's script is the same program",
        "own_commands.is_ours",
        (', f"{PROGRAM}-python"', ""),
        tests=ANOTHERS,
    ),
    Mutant(
        "another's entry of the roster is not a teammate's to change",
        "own_commands._call",
        ("    if changes:\n", "    if False:\n"),
        tests=ANOTHERS,
    ),
    Mutant(
        "a text that cannot be read is looked at word by word",
        "own_commands.find_calls",
        ("        found.opaque.append(text)\n", "        pass\n"),
        tests=ANOTHERS,
    ),
    Mutant(
        "a script that is written and run is looked into",
        "OwnCommands.read",
        ("if self._runs_scripts and not depth:", "if False:"),
        tests=ANOTHERS,
    ),
    Mutant(
        "a program whose name is in a variable is known by its verb",
        "OwnCommands._command",
        ('if words[0][:1] in ("$", "`") and', "if False and"),
        tests=ANOTHERS,
    ),
    Mutant(
        "only who leads a team speaks as its lead",
        "teammate.lead_of",
        ("if lead in sessions and (", "if ("),
        tests=f"{CALLERS}::test_a_lead_speaks_for_the_teammates_of_its_own_team",
    ),
)

SESSIONS = (
    Mutant(
        "of the sessions of one process only the one that is meant is the caller",
        "callers.meant",
        ("return named[:1] or tuple(sessions)", "return tuple(dict.fromkeys((*named, *sessions)))"),
        tests=f"{CALLERS}::test_of_the_sessions_of_one_process_a_command_is_the_one_that_is_meant",
    ),
    Mutant(
        "a settings file names no lead for a known session",
        "hook_calls.is_started_with",
        (".get(name) == environ.get(name)", " != {}"),
        tests=f"{CALLERS}::test_only_the_client_s_own_process_gives_a_known_session_its_lead[settings]"
        f" and {CALLERS}::test_an_agent_names_no_lead_for_itself_where_its_command_passes_for_a_hook",
    ),
    Mutant(
        "a variable changes no lead that is settled",
        "session._with_lead",
        ("is_free = known.lead is None or not is_settled", "is_free = True"),
        tests=f"{HOOKS}::test_a_lead_that_is_settled_is_no_variable_s_to_change",
    ),
    Mutant(
        "a lead that another program wrote yields to the person's",
        "session._with_lead",
        ("is_free = known.lead is None or not is_settled", "is_free = known.lead is None"),
        tests=f"{CALLERS}::test_a_lead_that_another_program_wrote_yields_to_the_person_s",
    ),
    Mutant(
        "a known session takes nobody's place by a variable",
        "session._additions",
        ("bearer.state != DEAD", "bearer.state not in (DEAD, FROZEN)"),
        tests=f"{HOOKS}::test_a_known_session_takes_nobody_s_place_by_a_variable",
    ),
    Mutant(
        "a compaction applies no variables again",
        "session.enter",
        ("source in SAME_PROCESS", "source == CLEARED"),
        tests=f"{HOOKS}::test_what_a_session_put_off_comes_with_the_next_client_and_not_within_the_same",
    ),
    Mutant(
        "clearing a context sheds no lead",
        "session.enter",
        ("            lead=old.lead,\n", ""),
        tests=f"{PERMIT}::test_who_continues_a_session_is_bound_as_it_was",
    ),
    Mutant(
        "clearing a context sheds no policy",
        "standing_orders._orders_of",
        ("line, estate = roster.lineage(session_id), roster", "line, estate = (session_id,), roster"),
        tests=f"{PERMIT}::test_who_continues_a_session_is_bound_as_it_was"
        f" and {PERMIT}::test_clearing_a_context_ends_no_wait_for_a_plan",
    ),
    Mutant(
        "a clear continues the session of its own process",
        "session._cleared",
        (" and a.client == client]", "]"),
        tests=f"{HOOKS}::test_a_clear_continues_and_nothing_else_does",
    ),
    Mutant(
        "in the place of a lead that cannot be had is the person",
        "session._variables",
        ("check_id, told)), USER) if leads", "check_id, told)), None) if leads"),
        tests=f"{PERMIT}::test_a_session_is_begun_with_a_lead",
    ),
    Mutant(
        "a session that cannot have its lead is not begun without one",
        "session._register",
        ("lead=request.lead and USER)", "lead=None)"),
        tests=f"{PERMIT}::test_a_session_is_begun_with_a_lead",
    ),
    Mutant(
        "within two clients nobody is taken for the other",
        "client_variables.session",
        ("if len(named) > 1 or (named and any(environ.get(name) for name in NAMELESS)):", "if False:"),
        tests=f"{CLIENTS}::test_within_two_clients_nobody_is_taken_for_the_other",
    ),
    Mutant(
        "a closed project asks about files",
        "texts.FLOOR",
        (' "Edit", "Write",', ""),
        tests=f"{INSTALL}::test_a_closed_project_has_the_client_ask_about_all_that_acts",
    ),
    Mutant(
        "plain mail is all that needs no asking",
        "texts.FREE",
        ('"dead-letters",', '"dead-letters", "roster",'),
        tests=f"{INSTALL}::test_only_plain_mail_needs_no_asking and {CLIENTS}::test_the_rules_open_plain_mail_only",
    ),
    Mutant(
        "commands in the sandbox put no program in the place of ours",
        "installation.own_places",
        ("*planted]", "]"),
        tests=f"{INSTALL}::test_the_sandbox_keeps_what_runs_outside_it",
    ),
    Mutant(
        "commands in the sandbox write no mailbox",
        "texts.sandbox",
        ('"denyWrite": [*kept]', '"denyWrite": []'),
        tests=f"{INSTALL}::test_the_sandbox_keeps_commands_from_the_mailbox_and_lets_them_reach_the_hosts_named",
    ),
    Mutant(
        "a file that changed meanwhile is not overwritten",
        "foreign_files.carry_out",
        ("if read(change.path) != change.before:", "if False:"),
        tests=f"{INSTALL}::test_a_file_that_changes_between_plan_and_change_is_not_overwritten",
    ),
    Mutant(
        "an edited file is not taken for ours",
        "installation.installation",
        (" and entry is not None and files.checksum(data) in entry.written", ""),
        tests=f"{INSTALL}::test_an_edited_command_is_left_alone",
    ),
    Mutant(
        "of a key that stands twice nothing is lost",
        "merge.read.once",
        ("if (key := codec.repeated_key(pairs)) is not None:", "if False:"),
        tests=f"{INSTALL}::test_settings_that_cannot_be_merged_are_refused_and_nothing_changes",
    ),
    Mutant(
        "other people's hooks stay",
        "merge._without_hooks",
        ('[hook for hook in one["hooks"] if not is_ours(hook)]', "[]"),
        tests=f"{INSTALL}::test_after_an_edit_only_ours_goes",
    ),
    Mutant(
        "a hook that does more than call us is the person's",
        "hook_entries.is_ours",
        ('words[1:-1] == (["hook"] if _base(words[0]) == PROGRAM else []) and ', ""),
        tests=f"{INSTALL}::test_a_call_of_ours_that_does_more_is_the_person_s",
    ),
    Mutant(
        "a file that could not be written leaves none beside",
        "foreign_files._replace",
        ("    except OSError:\n        os.unlink(aside)\n", "    except OSError:\n"),
        tests=f"{INSTALL}::test_a_write_that_fails_half_way_leaves_the_files_as_they_were",
    ),
)

SEEN = (
    Mutant(
        "a release of one delivery leaves a later one",
        "Reads.apply",
        (" and self._has_another(before, record.nonce):", " and False:"),
        tests=f"{CLAIMS}::test_a_release_of_one_delivery_leaves_a_later_one",
    ),
    Mutant(
        "a check leaves the guard in doubt while a delivery is",
        "Delivery._show",
        ("            quiet = not offers.load(self.logs, me)\n", "            quiet = True\n"),
        tests=f"{RECEIPTS}::test_a_check_leaves_the_guard_in_doubt_while_a_delivery_is",
    ),
    Mutant(
        "a transcript that cannot be read for the moment tells nothing",
        "transcript.read",
        ("        if error.errno in _PASSING:\n            raise\n", ""),
        tests=f"{RECEIPTS}::test_a_transcript_that_cannot_be_read_for_the_moment_tells_nothing",
    ),
    Mutant(
        "a release takes the ack back",
        "Reads.apply",
        ("            self._acked.pop(key, None)\n", ""),
        tests=f"{CLAIMS}::test_an_ack_implies_the_read_and_a_release_takes_both_back",
    ),
    Mutant(
        "of two claims the first counts",
        "claims.holder",
        ("in reads.of(message.id):", "in reversed(reads.of(message.id)):"),
        tests=f"{CLAIMS}::test_of_two_claims_the_first_in_the_log_counts",
    ),
    Mutant(
        "who reads for itself claims nothing",
        "claims.is_claim",
        ("    if own_route(message.recipients, roster.reader(read.session_id)):\n        return False\n", ""),
        tests=f"{CLAIMS}::test_a_line_without_as_is_a_claim_if_only_a_role_brought_the_message",
    ),
    Mutant(
        "seen is of one delivery",
        "Reads.stages",
        (
            "(message_id, session, read.nonce) not in self._seen",
            "not any(s[:2] == (message_id, session) for s in self._seen)",
        ),
        tests=f"{CORE}::test_seen_is_of_one_delivery_to_one_reader",
    ),
    Mutant(
        "the dead give back what they did not see",
        "obligations.owed_on_death",
        ("any(r.session_id == session_id for r in state.reads.missed(m))", "False"),
        tests=f"{CORE}::test_the_dead_give_back_what_they_were_offered_and_never_saw",
    ),
    Mutant(
        "a title is no text",
        "delivery.Delivery._offered",
        (", title=i in titles)", ")"),
        tests=f"{RECEIPTS}::test_receipts_tell_what_was_seen_from_what_was_seen_by_title",
    ),
    Mutant(
        "a title settles nothing that asks for an ack",
        "Reads.missed",
        ("(OFFERED, TITLE_SEEN) if message.ack else (OFFERED,)", "(OFFERED,)"),
        tests=f"{RECEIPTS}::test_a_session_that_dies_gives_back_what_it_knew_by_title",
    ),
    Mutant(
        "an ask that nobody read but by title is a dead letter when it expires",
        "claims.takers",
        (" if stages.get(reader) != TITLE_SEEN", ""),
        tests=f"{CORE}::test_a_title_settles_nothing_that_asks_for_an_ack",
    ),
    Mutant(
        "the text behind a title is proven as the title was",
        "Reads.apply",
        (
            "elif before.title and not record.title and (proven or not proofs.proves(before.proof)):",
            "elif before.title:",
        ),
        tests=f"{CORE}::test_seen_is_of_one_delivery_to_one_reader",
    ),
    Mutant(
        "what was said before an offer tells nothing of it",
        "transcript._states",
        ("elif state == OPEN and spoken >= offer.time:", "elif state == OPEN:"),
        tests=f"{RECEIPTS}::test_two_hooks_of_one_start_show_mail_once",
    ),
    Mutant(
        "what a subagent says is not said by its session",
        "transcript._states",
        (' or event.get("isSidechain") is True', ""),
        tests=f"{RECEIPTS}::test_the_answer_in_which_it_was_shown_is_not_one_to_it",
    ),
    Mutant(
        "what a turn dropped is offered again as it ends",
        "receipt_rules._LOST",
        ('"Stop": (transcript.PASSED,)', '"Stop": ()'),
        tests=f"{RECEIPTS}::test_quoting_is_not_seeing",
    ),
    Mutant(
        "what a session did not see before it ended is offered again",
        "receipt_rules._LOST",
        ('"SessionEnd": _UNTAKEN', '"SessionEnd": ()'),
        tests=f"{RECEIPTS}::test_an_error_of_the_api_is_no_word_of_the_model",
    ),
    Mutant(
        "who ends before a word was said saw nothing",
        "receipt_rules._without_transcript",
        ('if event == "SessionEnd" and', "if False and"),
        tests=f"{RECEIPTS}::test_a_session_closed_before_a_word_was_said_gives_back_what_it_was_shown",
    ),
    Mutant(
        "what nobody can tell is asked about no more",
        "receipts.settle",
        (" and offer.nonce not in verdict.unknown]", "]"),
        tests=f"{RECEIPTS}::test_a_client_without_transcripts_is_not_shown_anything_twice",
    ),
    Mutant(
        "what is given back is nothing quiet",
        "receipts.settle",
        ("EVERYONE if verdict.lost else ()", "()"),
        tests=f"{RECEIPTS}::test_what_is_given_back_is_nothing_quiet_to_who_may_have_it_now",
    ),
    Mutant(
        "a delivery forgets no earlier one",
        "Delivery._offered",
        ("[*offers.load(self.logs, me), offer]", "[offer]"),
        tests=f"{RECEIPTS}::test_every_delivery_before_a_word_is_known_to_be_seen_after_it",
    ),
)

CALLED = (
    Mutant(
        "a script does not change whose command it runs",
        "callers._given",
        ("return given if any(", "return environ if any("),
        tests=f"{CALLERS}::test_the_environment_picks_among_the_sessions_of_one_client",
    ),
)

MUTANTS = (*POLICIES, *ASKING, *SESSIONS, *SEEN, *CALLED)
