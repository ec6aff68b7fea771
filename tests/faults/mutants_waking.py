"""The protections of starting a session again, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TESTS = "tests/cli/test_wake.py"

MUTANTS = (
    Mutant(
        "mail of nobody's proven word starts no session",
        "waker._proven",
        (".proof is not None:", ".id:"),
        tests=f"{TESTS}::test_a_line_that_any_program_wrote_starts_nobody",
    ),
    Mutant(
        "mail for many starts no session",
        "waking.calls",
        ("    return item.mode == DIRECT\n", "    return True\n"),
        tests=f"{TESTS}::test_other_mail_starts_nobody",
    ),
    Mutant(
        "sessions are started so often in an hour and no more",
        "waking.due",
        ("(len(at) >= per_hour and agent not in started)", "False"),
        tests=f"{TESTS}::test_starts_are_counted_by_the_hour",
    ),
    Mutant(
        "an agent's id is no option of the person's program",
        "waker._wanted",
        (' or agent.session_id.startswith("-")', ""),
        tests=f"{TESTS}::test_no_id_becomes_an_option_of_the_program",
    ),
    Mutant(
        "a message starts a session once",
        "waking.due",
        ("message.id in ids or", "False or"),
        tests=f"{TESTS}::test_the_steward_starts_whom_urgent_mail_waits_for_once",
    ),
)
