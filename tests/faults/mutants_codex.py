"""The protections of Codex's hooks, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

GUARD = "tests/claude/test_codex_guard.py"
ROLLOUT = "tests/claude/test_rollout.py"
SERVER = "tests/claude/test_codex_server.py"
CURSOR = "tests/claude/test_cursor.py"

MUTANTS = (
    Mutant(
        "Codex is refused what its person would be asked about",
        "own_commands_hook.denial",
        ("        if may_ask:\n", "        if True:\n"),
        tests=f"{GUARD}::test_a_file_is_not_sent_unasked",
    ),
    Mutant(
        "before a tool Codex hears no allowing answer",
        "Permit._say",
        ("            return  # the call goes on, by the client's own rules\n", "            pass\n"),
        tests=f"{GUARD}::test_rules_bind_and_what_they_allow_is_passed_in_silence",
    ),
    Mutant(
        "whom nobody leads asks the person in the console",
        "Permit._decide",
        ("elif verdict.decision == ASK and self.call.only_denies:", "elif False:"),
        tests=f"{GUARD}::test_whom_nobody_leads_asks_the_person",
    ),
    Mutant(
        "the default refuses where Codex cannot ask",
        "Permit._say",
        ("if self.call.only_denies and decision == ASK:", "if False:"),
        tests=f"{GUARD}::test_without_an_answer_the_call_is_refused_whatever_the_default",
    ),
    Mutant(
        "a changed input is no call that Codex makes by itself",
        "Permit._approved",
        ("self.call.only_denies or (self.asks_the_person", "(self.asks_the_person"),
        tests=f"{GUARD}::test_a_changed_input_is_a_call_that_the_model_is_told_to_make",
    ),
    Mutant(
        "the script that starts npm's Codex is no client around it",
        "hook_calls.proven",
        ("        started = above.pop(0)", "        break"),
        tests="tests/e2e/test_codex.py::test_its_lead_and_its_rules_bind_it",
    ),
    Mutant(
        "a Gemini CLI that starts itself again is one client",
        "client_processes.is_launcher",
        ("if ran != _ran(client):", "if True:"),
        tests="tests/e2e/test_gemini.py::test_mail_sent_during_a_turn_arrives_before_it_ends_and_the_session_knows_its_name",
    ),
    Mutant(
        "Codex has seen what its model was given before it spoke",
        "rollout._states",
        ("state == SHOWN and given >= places[offer.nonce]", "state == SHOWN"),
        tests=f"{ROLLOUT}::test_what_was_shown_and_what_was_seen",
    ),
    Mutant(
        "a quote in Codex's conversation shows nothing",
        "rollout._is_a_hook_s",
        ('isinstance(p, dict) and p.get("hook") is True', "isinstance(p, dict)"),
        tests=f"{ROLLOUT}::test_what_was_shown_and_what_was_seen",
    ),
    Mutant(
        "a Codex subagent's conversation is not its parent's",
        "codex.is_rollout",
        ('and name.endswith(f"-{session_id}.jsonl")', ""),
        tests=f"{ROLLOUT}::test_a_session_s_own_rollout_alone_is_looked_at",
    ),
    Mutant(
        "nothing is queued to a session of Codex that is not loaded",
        "ServedSession.lives",
        (" and is_loaded(self._rollout, self._session, self.pid) is not False", ""),
        tests=f"{SERVER}::test_an_unloaded_session_is_not_there_and_nothing_is_queued_to_it",
    ),
    Mutant(
        "somebody's words do not end a turn of Codex",
        "codex_server.turn",
        ('event.get("type") != "event_msg"', "False"),
        tests=f"{SERVER}::test_the_last_turn_s_end_tells_what_a_session_does",
    ),
    Mutant(
        "after Escape nothing is queued to Codex",
        "codex_server",
        ('"turn_aborted": HELD', '"turn_aborted": IDLE[0]'),
        tests=f"{SERVER}::test_the_last_turn_s_end_tells_what_a_session_does",
    ),
    Mutant(
        "a patch writes no file of a mailbox",
        "file_guard._refusal",
        ("        named += tool_files.of(tool, given)\n", ""),
        tests="tests/claude/test_files.py::test_a_patch_names_its_files_in_its_text",
    ),
    Mutant(
        "a patch is as strictly judged as its strictest file",
        "permit",
        ("STRICTEST = (DENY, ASK, None, ALLOW)", "STRICTEST = (ALLOW, None, ASK, DENY)"),
        tests=f"{GUARD}::test_a_patch_is_judged_as_an_edit_of_each_of_its_files",
    ),
    Mutant(
        "a subagent of Copilot CLI is bound as its session is",
        "client_input.parse",
        ("        session_id = hook_calls.root(parent, environ)  # it is bound as its session is\n", "        pass\n"),
        tests="tests/e2e/test_copilot.py::test_its_lead_and_its_rules_bind_it_and_its_subagents",
    ),
    Mutant(
        "mail at a turn's end begins no new count of them",
        "hook_events._prompt",
        ('if hook.call.prompt.partition("\\n")[0] not in budget.heads(""):', "if True:"),
        tests="tests/claude/test_copilot_hooks.py::test_mail_at_a_turn_s_end_is_no_prompt_of_the_person",
    ),
    Mutant(
        "a hook of Claude Code's that Cursor runs shows no mail",
        "hook_events.answer",
        ("if client is not None and not client.is_installed:", "if False:"),
        tests=f"{CURSOR}::test_hooks_that_cursor_runs_show_no_mail",
    ),
)
