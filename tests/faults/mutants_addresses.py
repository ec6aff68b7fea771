"""The protections around addresses and leads, each taken away: who gets mail, who is told, who leads whom."""

from __future__ import annotations

from tests.faults.mutant import Mutant

MAIL, ENROL, HOOKS = "tests/cli/test_mail.py", "tests/core/test_enrol.py", "tests/claude/test_hooks.py"

MUTANTS = (
    Mutant(
        "a word that nearly is somebody's is refused",
        "compose._unknown",
        (
            "if meant := misspelt.nearly(word, misspelt.known_words(roster)) or misspelt.nearly_agent(word, roster):",
            "if meant := []:",
        ),
        tests="tests/core/test_compose.py::test_a_word_that_nearly_is_one_is_refused_with_the_one_that_was_meant",
    ),
    Mutant(
        "only a bare word is given to who takes the name",
        "address.role_route",
        (
            'if bare and (word := address.removeprefix("role:")) in bare and',
            'if (word := address.removeprefix("role:")) and',
        ),
        tests=f"{MAIL}::test_mail_to_a_name_that_nobody_has_is_given_to_who_takes_it",
    ),
    Mutant(
        "mail to a swarm that nobody knows is refused",
        "leaving.check",
        ("    reachable.check(filter(is_remote, message.recipients), roster, directory)\n", ""),
        tests="tests/swarm/test_mailbox_side.py::test_mail_to_a_swarm_that_nobody_knows_fails_at_once",
    ),
    Mutant(
        "leads make no circle",
        "roster_changes.enrolled",
        ("    _refuse_circle(me, lead, roster)\n", ""),
        tests=f"{ENROL}::test_nobody_leads_itself_through_others",
    ),
    Mutant(
        "a successor continues the tags",
        "roster_changes.enrolled",
        ("_tags(request, present, inherited, ", "_tags(request, present, (), "),
        tests=f"{ENROL}::test_a_successor_by_name_continues_the_tags",
    ),
    Mutant(
        "a retired session that goes on is told",
        "hook_events._prompt",
        ("        hook.tell_retired()\n", "        pass\n"),
        tests=f"{HOOKS}::test_a_retired_session_that_goes_on_is_told_once_how_to_come_back",
    ),
)
