"""The protections of leases, of notices to the person, and of the console behind a proxy, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

GUARD, FOLD = "tests/claude/test_leases.py", "tests/core/control/test_leases.py"
NOTIFY, PROXIED = "tests/cli/test_notify.py", "tests/console/test_proxied.py"

MUTANTS = (
    Mutant(
        "a lease that proves nothing refuses no tool",
        "LeaseGuard.answer",
        ("if lease.proven and self.desk", "if self.desk"),
        tests=f"{GUARD}::test_a_line_that_proves_nothing_stops_nobody",
    ),
    Mutant(
        "a lease ends by a proven word of who may end it",
        "StandingNotices.end",
        ("if notice.proven and not (_is_proven(message) and", "if notice.proven and not ("),
        tests=f"{FOLD}::test_a_proven_lease_ends_by_its_holder_its_lead_or_the_person",
    ),
    Mutant(
        "a session leases so much at once and no more",
        "StandingNotices.enter",
        ("        if len(held) >= most:\n", "        if False:\n"),
        tests=f"{FOLD}::test_ten_thousand_leases_are_as_many_as_a_session_may_hold",
    ),
    Mutant(
        "a lease ends with its holder",
        "Leases.is_kept",
        ("return any(self", "return True or any(self"),
        tests=f"{FOLD}::test_a_lease_ends_in_time_and_with_its_holder",
    ),
    Mutant(
        "who comes back from the dead leases anew",
        "Leases._has_stayed",
        ("agent.returned <= max(lease.begins, *passed, 0)", "True"),
        tests=f"{FOLD}::test_who_comes_back_from_the_dead_leases_anew",
    ),
    Mutant(
        "an agent that was compacted is known to have come back",
        "retention._retold",
        ("if agent.returned else []", "if False else []"),
        tests="tests/core/test_retention.py::test_compacting_keeps_when_an_agent_came_back_from_the_dead",
    ),
    Mutant(
        "nobody leases a whole project",
        "lease_paths.check",
        ("if wild == 0 and", "if False and"),
        tests=f"{FOLD}::test_a_pattern_for_everything_is_refused",
    ),
    Mutant(
        "a lease is noted for the shim after it is in the log",
        "Edits.settle",
        ("            elif system.exists(self._leased):\n", "            if system.exists(self._leased):\n"),
        tests=f"{GUARD}::test_without_its_derived_files_a_lease_counts_all_the_same",
    ),
    Mutant(
        "a note that comes between a writer's time and its look stays",
        "Edits.others",
        ("if when >= 0 and abs(now - when) < RECENT:", "if 0 <= now - when < RECENT:"),
        tests="tests/simulation/test_found.py::test_a_write_beside_ours_is_told_though_it_came_after_our_time",
    ),
    Mutant(
        "the directory of attachments is durable, whoever made it",
        "attachment_files.put",
        ("        system.sync_directory(directory)  #", "        #"),
        tests="tests/simulation/test_found.py::test_a_file_stays_though_the_one_who_made_its_directory_was_killed",
    ),
    Mutant(
        "a command's redirection writes a file",
        "written_files._written",
        ("[*simple.targets, *_named(words)]", "_named(words)"),
        tests=f"{GUARD}::test_a_command_that_names_a_leased_file_is_told_as_well",
    ),
    Mutant(
        "a command writes from the directory that it changed to",
        "written_files._written",
        ("here = _path(words[-1], here)", "pass"),
        tests=f"{GUARD}::test_a_command_that_names_a_leased_file_is_told_as_well",
    ),
    Mutant(
        "a lease is noted for commands before any file tool ran",
        "Edits.leased",
        ("                system.make_directory(self._directory)\n", "                return\n"),
        tests=f"{GUARD}::test_a_command_that_names_a_leased_file_is_told_as_well",
    ),
    Mutant(
        "a name in a notice is no markup",
        "notice_ways._markup",
        ('.replace("<", "&lt;")', ""),
        tests=f"{NOTIFY}::test_the_content_goes_only_where_the_person_says_so_and_as_no_markup",
    ),
    Mutant(
        "what a notice says is filled into nothing",
        "text.filled",
        ('else "{" + part', 'else ""'),
        tests=f"{NOTIFY}::test_who_and_what_kind_reach_ntfy_a_webhook_and_a_program_once",
    ),
    Mutant(
        "a flood is one notice",
        "attention.decide",
        ("due = at + GAP if at else now", "due = now"),
        tests=f"{NOTIFY}::test_a_flood_is_one_notice_and_foreign_lines_are_named_so",
    ),
    Mutant(
        "behind a proxy the console answers to its address alone",
        "AllowedHosts.allows",
        ("        if self._origin:\n", "        if self._origin == header:\n"),
        tests=f"{PROXIED}::test_an_origin_is_written_as_browsers_write_it",
    ),
)
