"""The protections of mail whose line the power took, or that is given back, each taken away: it is shown, and once."""

from __future__ import annotations

from tests.faults.mutant import Mutant

LOST = "tests/store/test_lost_lines.py"
LATE = f"{LOST}::test_a_poll_that_began_before_the_repetition_does_not_have_the_next_show_it"

MUTANTS = (
    Mutant(
        "an id of which a record is left has every session begin again",
        "Posting._append",
        ("        if were_read and new:\n            log.begin_again()\n", ""),
        tests=f"{LOST}::test_mail_that_was_lost_is_not_shown_again",
    ),
    Mutant(
        "mail from elsewhere of which a record is left has every session begin again",
        "Posting.take_in",
        ("                if were_read:\n                    log.begin_again()\n", ""),
        tests=f"{LOST}::test_mail_that_was_lost_is_not_shown_again",
    ),
    Mutant(
        "a foreign line of whose id a record is left has every session begin again",
        "foreign_lines.are_new",
        ("return is_new and not are_read(logs, wanted, LAG)", "return is_new"),
        tests=f"{LOST}::test_mail_that_was_lost_is_not_shown_again",
    ),
    Mutant(
        "nobody begins again before the line is there",
        "HeldLog._announce",
        ("0 if self._begins else size)", "size)"),
        tests=LATE,
    ),
    Mutant(
        "a session begins again with all lines that had it do so",
        "Poll._begun",
        ("epoch is None or is_old", "epoch is None"),
        tests=LATE,
    ),
    Mutant(
        "a release is found however another program spells it",
        "ReadSearch._note",
        ('event == "release":', 'b\'"event":"release"\' in line:'),
        tests="tests/store/test_scan.py::test_what_only_looks_dealt_with_is_unread",
    ),
    Mutant(
        "a session's place does not go back",
        "Poll._caught_up",
        (" and cursor.messages[1] <= logs.messages_end:", ":"),
        tests=LATE,
    ),
)
