"""Mutants of the rules about claims before showing, for ``mutants``."""

from __future__ import annotations

from tests.faults.mutant import Mutant

CLAIMS, DELIVERY = "tests/core/test_claims.py", "tests/store/test_delivery.py"

MUTANTS = (
    Mutant(
        "each bare word of several has a holder of its own",
        "claims.holder",
        (" and not _is_apart(address, read.via, message):", ":"),
        tests="tests/cli/test_mail.py::test_each_bare_word_of_several_has_a_taker_of_its_own",
    ),
    Mutant(
        "mail of several recipients stays in the table of what nobody took",
        "UntakenTable._read_messages",
        (" and is_for_one(line):", ":"),
        tests="tests/cli/test_mail.py::test_an_address_of_several_that_means_nobody_is_told_its_sender",
    ),
    Mutant(
        "role mail is claimed before it is shown",
        "Delivery.deliver",
        (
            "                items = self._claimed(poll, items, items if choose is None else choose(items))\n",
            "                pass\n",
        ),
        tests=f"{DELIVERY}::test_role_mail_is_claimed_then_shown_then_read",
    ),
    Mutant(
        "who claims looks again if anything was written",
        "Delivery._claim",
        ("if not poll.is_current() or any(", "if any("),
        tests=f"{DELIVERY}::test_what_another_read_between_look_and_claim_is_shown_to_it_alone",
    ),
    Mutant(
        "who takes over a claim looks again for its claimer",
        "Delivery._claim",
        (" or any(item.claimed and item.claimed.session_id != me for item in items):", ":"),
        tests=f"{DELIVERY}::test_a_claimer_that_comes_back_between_the_other_s_look_and_claim_keeps_it",
    ),
    Mutant(
        "only role mail that there is room for is claimed",
        "Delivery._claimed",
        ("for item in chosen if item.claims}", "for item in items if item.claims}"),
        tests=f"{DELIVERY}::test_only_role_mail_that_there_is_room_for_is_claimed",
    ),
    Mutant(
        "no quiet stamp stands while a claim may go back",
        "Delivery._settle",
        (" and not poll.withheld", ""),
        tests=f"{DELIVERY}::test_a_holder_is_not_left_quiet_while_another_may_give_back",
    ),
    Mutant(
        "a cursor keeps what another claimed",
        "Poll._caught_up",
        ("inbox.waiting(", "inbox.unread("),
        tests=f"{DELIVERY}::test_what_is_claimed_and_not_read_goes_back_after_ten_minutes",
    ),
    Mutant(
        "another's claim hides the message",
        "inbox._is_withheld",
        ("    return not claims.lapsed(", "    return False and claims.lapsed("),
        tests=f"{CLAIMS}::test_a_claim_hides_the_message_from_other_holders_and_not_from_its_claimer",
    ),
    Mutant(
        "a claim lapses after ten minutes without a check",
        "claims.lapsed",
        ("(not counts or abs(now - seen) >= LAPSES)", "not counts"),
        tests=f"{CLAIMS}::test_a_claim_lapses",
    ),
    Mutant(
        "a check that goes on keeps its claims",
        "claims.lapsed",
        ("seen != DELIVERING and (", "bool("),
        tests=f"{DELIVERY}::test_a_check_that_goes_on_keeps_its_claim_however_long",
    ),
    Mutant(
        "a claim of one who would not be shown the message counts for nothing",
        "claims.lapsed",
        ("counts = _may_show(claim.session_id, message, reads, roster)", "counts = True"),
        tests=f"{CLAIMS}::test_a_claim_of_one_who_would_not_be_shown_the_message_hides_nothing",
    ),
    Mutant(
        "an unproven claim ends no proven one",
        "Reads.apply",
        ("if proven or not self._is_proven_claim(record.message_id):", "if True:"),
        tests=f"{CLAIMS}::test_the_next_holder_s_claim_takes_the_place_of_a_lapsed_one",
    ),
)
