"""The protections of the console, each taken away: what ends with a session, what is counted, what a review shows."""

from __future__ import annotations

from tests.faults.mutant import Mutant

ALL_DAY, CALLS = "tests/console/test_all_day.py", "tests/console/test_calls.py"
ORDERS = "tests/console/test_orders.py"

MUTANTS = (
    Mutant(
        "a stream ends with its session",
        "Gate._end",
        ("        session.is_over = True\n", ""),
        tests=f"{ALL_DAY}::test_a_stream_ends_with_a_session_that_gives_way_to_a_newer_one",
    ),
    Mutant(
        "mail that came beside an unreadable log is told by a resync",
        "Watcher.tell_news",
        ("if was_well or self._is_well else", "if was_well else"),
        tests="tests/console/test_live.py::test_mail_that_came_beside_an_unreadable_log_is_told_by_a_resync",
    ),
    Mutant(
        "requests that do not arrive whole are closed",
        "TimelyRequests._wait",
        ("elif self._due is None and is_amid:", "elif self._due is None and not is_amid:"),
        tests=f"{ALL_DAY}::test_requests_that_do_not_arrive_whole_are_closed",
    ),
    Mutant(
        "a form that is sent twice sends one message",
        "actions._draft",
        ('        id=fields.get("message_id") or None,\n', ""),
        tests=f"{ALL_DAY}::test_a_message_sent_twice_by_a_retry_is_one",
    ),
    Mutant(
        "a traceback moves no cursor of the terminal",
        "_Inert.format",
        ("visible_text(super().format(record))", "super().format(record)"),
        tests=f"{ALL_DAY}::test_an_unexpected_error_is_logged_with_its_traceback",
    ),
    Mutant(
        "a look at the timeline reads a bounded number of messages",
        "Tallies._to_read",
        (" or count > left", ""),
        tests=f"{ALL_DAY}::test_the_timeline_counts_all_that_it_says_it_counts",
    ),
    Mutant(
        "a look-up waits for another's question to the index",
        "facade.PATIENCE",
        ("PATIENCE = 1.0", "PATIENCE = 0.0"),
        tests=f"{ALL_DAY}::test_a_look_up_beside_another_one_does_not_read_everything",
    ),
    Mutant(
        "a diff leaves no field of the edit out",
        "calls._edit",
        ("    yield from _fields(rest, prefix)\n", ""),
        tests=f"{CALLS}::test_an_edit_is_a_diff_and_its_other_fields_stand_beside_it",
    ),
    Mutant(
        "a carriage return is seen in a command",
        "calls._exact",
        ("visible(char) if not char.isspace() else _spelt(char) for char", "visible(char) for char"),
        tests=f"{CALLS}::test_no_two_different_texts_look_the_same",
    ),
    Mutant(
        "a letter that draws nothing is seen in a command",
        "calls._exact",
        ("line.isascii() and line.isprintable()", "line.isprintable()"),
        tests=f"{CALLS}::test_no_two_different_texts_look_the_same",
    ),
    Mutant(
        "comparing two texts is bounded",
        "calls._difference",
        ("len(old_core) * len(new_core) > MOST_COMPARED", "not old_core"),
        tests=f"{CALLS}::test_a_hostile_change_costs_little_and_is_whole",
    ),
    Mutant(
        "retiring an agent must be said twice",
        "agent_orders.change_state",
        ('    if event == "retire" and not fields.get("sure"):\n', "    if False:\n"),
        tests=f"{ORDERS}::test_what_may_not_be_is_told_and_changes_nothing",
    ),
    Mutant(
        "an order is for the agent whose id the form has",
        "agent_orders._agent",
        ('now.roster.get(fields.get("agent", ""))', 'now.roster.find(fields.get("agent", ""))'),
        tests=f"{ORDERS}::test_what_may_not_be_is_told_and_changes_nothing",
    ),
    Mutant(
        "a conversation is read under its session's own name alone",
        "conversation_files.latest",
        ('if not place.startswith("/") or not (is_rollout or name == f"{session_id}.jsonl"):', "if not place:"),
        tests="tests/console/test_activity.py::test_a_session_names_no_other_file",
    ),
    Mutant(
        "a conversation is no link to another file",
        "conversation_files.latest",
        (" | system.O_NOFOLLOW", ""),
        tests="tests/console/test_activity.py::test_a_session_names_no_other_file",
    ),
    Mutant(
        "a live row is weighed at its place",
        "Watcher.look",
        ("weighed(m, view, line, at)", "weighed(m, view, line, None)"),
        tests="tests/console/test_live.py::test_a_copied_seal_proves_nothing_live",
    ),
)
