"""The fold of tasks: one holder each, none lost, none done that its holder did not do."""

from __future__ import annotations

from agent_mailbox.core.control import message_text, transitions
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.control.state import ControlState
from agent_mailbox.core.control.tasks import BLOCKED
from agent_mailbox.core.proofs import TERMINAL, UNPROVEN, WAITS, of_machine, of_session
from agent_mailbox.core.records import Message, RosterEvent
from agent_mailbox.core.roster import CLIENT_ENDED, Roster

MINUTE = 60_000
WORKERS = ("ann", "ben", "cat")
PEOPLE = [
    *(RosterEvent("register", who, 0, lead="lee", proof=of_session("lee"), tags=("role:worker",)) for who in WORKERS),
    RosterEvent("register", "lee", 0, proof=of_session("lee")),
]
ROSTER = Roster(PEOPLE)
IDS = ("t1", "t2", "t3")


def said(number: int, who: str, payload: m.Payload, to: str = "lee", *, proven: bool = True) -> Message:
    """The message at a place of the log, a minute after the one before."""
    return Message(
        id=f"m{number}", sender=who, recipients=(to,), timestamp=number * MINUTE, type="control",
        content=message_text.written(payload), proof=of_session(who) if proven else None,
    )  # fmt: skip


def test_a_proven_claim_stands_until_one_names_it() -> None:
    """A second claim is late. One that names the first takes its place: so does who finds its holder ended."""
    task, claim = m.TaskAssignment(request_id="t1", title="T"), m.TaskClaim(request_id="t1")
    takes = m.TaskClaim(request_id="t1", over="m1")
    steps = [
        said(0, "lee", task, "role:worker"), said(1, "ann", claim), said(2, "ben", claim),
        said(3, "ben", takes, proven=False), said(4, "cat", takes), said(5, "ben", takes),
        said(6, "ann", m.TaskCompleted(request_id="t1")), said(7, "cat", claim),
    ]  # fmt: skip
    fold = ControlState(ROSTER, steps)
    assert [fold.verdicts[f"m{n}"].outcome for n in range(8)] == [
        *("applied", "applied", "late", "late", "applied", "late", "refused", "repeated"),
    ]
    assert fold.tasks["t1"].answerer == "cat"
    assert [fold.verdicts[f"m{n}"].about for n in (2, 3, 5, 7)] == [*["ben"] * 3, "cat"]
    unknown = fold.apply(said(8, "ann", m.TaskCompleted(request_id="t2")))
    assert unknown is not None
    assert (unknown.outcome, unknown.about) == ("noted", "ann")
    done = [fold.apply(said(n, "cat", m.TaskCompleted(request_id="t1"))) for n in (9, 10)]
    assert [one and (one.outcome, one.before, one.after) for one in done] == [
        *(("applied", "claimed", "done"), ("late", "done", "done")),
    ]
    again = fold.apply(said(11, "lee", task, "role:worker"))
    assert again is not None
    assert (again.outcome, again.why) == ("repeated", "this task is there already")
    another = fold.apply(said(12, "le", task, "role:worker"))
    assert another is not None
    assert another.outcome == "refused"


def test_a_cycle_is_refused() -> None:
    """A task that closes a circle is none."""
    steps = [
        said(n, "lee", m.TaskAssignment(request_id=IDS[n], title="T", after=(IDS[(n + 1) % 3],)), "role:worker")
        for n in range(3)
    ]
    fold = ControlState(ROSTER, steps)
    assert [fold.verdicts[one.id].outcome for one in steps] == ["applied", "applied", "refused"]
    assert fold.tasks.waits_for(fold.tasks["t2"]) == ["t3"]


def test_a_holder_reports_nothing_of_a_task_that_waits_and_may_drop_it() -> None:
    """A task may be an agent's before the one that it waits for is done."""
    fold = ControlState(
        ROSTER,
        [
            said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "ben"),
            said(1, "lee", m.TaskAssignment(request_id="t2", title="T", after=("t1",)), "ann"),
        ],
    )
    for number, report in (
        (2, m.TaskProgress(request_id="t2", phase="verifying")),
        (3, m.TaskCompleted(request_id="t2")),
    ):
        verdict = fold.apply(said(number, "ann", report))
        assert verdict is not None
        assert (verdict.outcome, verdict.why) == ("refused", "it waits for t1")
        assert fold.tasks["t2"].state == "assigned"
    fold.apply(said(4, "ann", m.TaskDropped(request_id="t2")))
    assert fold.tasks["t2"].state == "open"


def test_a_task_that_is_added_again_is_repeated_and_another_with_its_id_is_refused() -> None:
    """The same words of the same sender change nothing. Other words, or another sender, would be lost silently."""
    first = m.TaskAssignment(request_id="t1", title="T")
    steps = [
        said(0, "lee", first, "role:worker"),
        said(1, "lee", first, "role:worker"),
        said(2, "lee", first.replace(title="another"), "role:worker"),
        said(3, "ann", first, "role:worker"),
    ]
    fold = ControlState(ROSTER, steps)
    assert [fold.verdicts[one.id].outcome for one in steps] == ["applied", "repeated", "refused", "refused"]
    assert fold.tasks["t1"].payload == first


def test_the_end_of_a_holder_opens_its_task() -> None:
    """A retired holder, one whose client ended, and one that came back from the dead hold nothing; a successor with its
    place does."""
    history = [
        said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "role:worker"),
        said(1, "ann", m.TaskClaim(request_id="t1")),
    ]
    later = 5 * MINUTE
    ends = {
        "ann": [],
        "": [RosterEvent("retire", "ann", later)],
    }
    back = [*ends[""], RosterEvent("register", "ann", later + 1)]
    gone = [RosterEvent("freeze", "ann", later, reason=CLIENT_ENDED)]
    cleared = [RosterEvent("register", "dan", later, continues="ann", proof=of_session("ann")), *ends[""]]
    for events, holder in ((ends["ann"], "ann"), (ends[""], ""), (back, ""), (gone, ""), (cleared, "dan")):
        fold = ControlState(Roster([*PEOPLE, *events]), history)
        assert fold.tasks["t1"].holder(fold.roster) == holder
        assert fold.tasks.state(fold.tasks["t1"], fold.roster) == ("claimed" if holder else "open")
    away = [RosterEvent("freeze", "ann", later, reason="session ended")]
    assert ControlState(Roster([*PEOPLE, *away]), history).tasks["t1"].holder(Roster([*PEOPLE, *away])) == "ann"


def test_what_a_holder_reported_stays_so_behind_its_end() -> None:
    """Its step counts whatever a clock that was set back says of its end. A successor with its place reports for it,
    and another does not. Who came back from the dead may claim the task again."""
    begun = [
        said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "role:worker"),
        said(1, "ann", m.TaskClaim(request_id="t1")),
    ]
    dead = [RosterEvent("retire", "ann", 5 * MINUTE)]
    back = [*dead, RosterEvent("register", "ann", 6 * MINUTE, proof=of_session("ann"))]
    successor = [RosterEvent("register", "dan", 4 * MINUTE, continues="ann", proof=of_session("ann")), *dead]
    reports = (
        m.TaskProgress(request_id="t1", phase="verifying"), m.TaskCompleted(request_id="t1", errors=("e",)),
        m.TaskDropped(request_id="t1"), m.TaskCompleted(request_id="t1"),
    )  # fmt: skip
    for report in reports:
        for minute in (4, 7):
            for events in ([], dead, back, successor):
                fold = ControlState(Roster([*PEOPLE, *events]), [*begun, said(minute, "ann", report)])
                assert fold.verdicts[f"m{minute}"].outcome == "applied", (report, events, minute)
        for events, outcome in ((successor, "applied"), (back, "refused")):
            fold = ControlState(Roster([*PEOPLE, *events]), [*begun, said(7, "dan", report)])
            assert fold.verdicts["m7"].outcome == outcome, (report, events)
    again = [*begun, said(7, "ann", m.TaskClaim(request_id="t1", over="m1"))]
    for events, outcome in (([], "repeated"), (back, "applied")):
        fold = ControlState(Roster([*PEOPLE, *events]), again)
        assert fold.verdicts["m7"].outcome == outcome
    fold.apply(said(8, "ann", reports[-1]))
    assert fold.tasks["t1"].state == "done"


def test_a_claim_in_the_person_s_name_counts_only_if_the_person_is_proven_to_write_it() -> None:
    """Another program cannot keep the others from a task so."""
    fold = ControlState(ROSTER, [said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), to="role:worker")])
    for number, proof, holder in ((1, None, ""), (2, TERMINAL, "user")):
        fold.apply(said(number, "user", m.TaskClaim(request_id="t1")).replace(proof=proof))
        assert fold.tasks["t1"].holder(fold.roster) == holder


def test_a_machine_that_is_not_listed_takes_a_task_over_from_one_that_was_away_alone() -> None:
    """Its claim names the one before. It counts if that holder was frozen or dead then, though it came back since: so
    all machines have the same holder. Who goes at the instant of a claim was away, and who comes at it was there."""
    north = RosterEvent("register", "eve", 0, tags=("role:worker",), proof=of_machine("north", UNPROVEN))
    steps = [
        said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "role:worker"),
        said(1, "ann", m.TaskClaim(request_id="t1")),
        said(3, "eve", m.TaskClaim(request_id="t1", over="m1")).replace(proof=WAITS),
    ]
    for gone, came, since, until, holder in (
        *(("freeze", "thaw", since, until, "eve") for since in (2, 3) for until in (4, None)),
        *(("freeze", "thaw", *span, "ann") for span in ((2, 3), (4, 5), (4, None))),
        *(("retire", "register", *span, "eve") for span in ((2, 4), (2, 3), (2, None), (3, None))),
        *(("retire", "register", *span, "ann") for span in ((0, 1), (4, None))),
    ):
        events = [RosterEvent(gone, "ann", since * MINUTE)]
        if until is not None:
            events.append(RosterEvent(came, "ann", until * MINUTE, client="1", proof=of_session("ann")))
        fold = ControlState(Roster([*PEOPLE, north, *events]), steps)
        assert fold.tasks["t1"].answerer == holder, (gone, since, until)
    assert ControlState(Roster([*PEOPLE, north]), steps).tasks["t1"].answerer == "ann"


def test_a_line_that_proves_nothing_is_no_word_of_another_machine() -> None:
    """Any program may write a claim in the name of that machine's session: it takes no task that another one held."""
    north = RosterEvent("register", "eve", 0, tags=("role:worker",), proof=of_machine("north", UNPROVEN))
    roster = Roster([*PEOPLE, north, RosterEvent("freeze", "ann", 2 * MINUTE)])
    for proof, outcome in ((None, "late"), (WAITS, "applied")):
        steps = [
            said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "role:worker"),
            said(1, "ann", m.TaskClaim(request_id="t1")),
            said(3, "eve", m.TaskClaim(request_id="t1", over="m1")).replace(proof=proof),
        ]
        assert ControlState(roster, steps).verdicts["m3"].outcome == outcome


def test_a_task_whose_handover_is_open_again_is_for_the_next_who_takes_that() -> None:
    """Its taker's client is gone, as its holder's is, though no record says so: it is open to nobody by itself."""
    history = [
        said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "ann"),
        said(1, "ann", m.TaskAssignment(request_id="t2", title="H", hands=("t1",)), "role:worker"),
        said(2, "ben", m.TaskClaim(request_id="t2")),
    ]
    tasks = ControlState(ROSTER, history).tasks
    states = [[tasks.state(tasks[one], ROSTER, gone) for one in ("t2", "t1")] for gone in (["ann"], ["ann", "ben"])]
    assert states == [[transitions.CLAIMED, transitions.OPEN], [transitions.OPEN, BLOCKED]]


def test_a_handover_that_names_a_task_which_is_not_there_takes_the_others_along() -> None:
    """Any program may write such a line, and whoever looks at it is told the rest."""
    fold = ControlState(
        ROSTER,
        [
            said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "ann"),
            said(1, "ann", m.TaskAssignment(request_id="t2", title="H", hands=("gone", "t1")), "role:worker"),
        ],
    )
    assert [one.id for one in fold.tasks.handed_by(fold.tasks["t2"])] == ["t1"]


def test_no_claim_names_one_that_is_not_there_and_no_handover_takes_what_another_has() -> None:
    """A proven claim passes by what its task waits for only as it takes the place of the very claim that it names. A
    task goes with the last handover that names it, whichever id begins with the other's."""
    tasks = [
        said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "ann"),
        said(1, "lee", m.TaskAssignment(request_id="t2", title="T", after=("t1",)), "role:worker"),
        said(2, "ben", m.TaskClaim(request_id="t2", over="m9")),
        said(3, "ann", m.TaskAssignment(request_id="h1", title="H", hands=("t1",)), "role:worker"),
        said(4, "ann", m.TaskAssignment(request_id="h10", title="H", hands=("t1",)), "role:worker"),
    ]
    fold = ControlState(ROSTER, tasks)
    assert (fold.verdicts["m2"].outcome, fold.verdicts["m2"].why) == ("refused", "it waits for t1")
    assert [[one.id for one in fold.tasks.handed_by(fold.tasks[name])] for name in ("h1", "h10")] == [[], ["t1"]]


def test_who_may_not_cancel_is_told_whose_the_task_is() -> None:
    """Its holder's, else its adder's."""
    plane = ControlState(ROSTER)
    steps = [
        said(0, "lee", m.TaskAssignment(request_id="t1", title="T"), "role:worker"),
        said(1, "cat", m.TaskCancelled(request_id="t1")),
        said(2, "ann", m.TaskClaim(request_id="t1")),
        said(3, "cat", m.TaskCancelled(request_id="t1")),
    ]
    verdicts = [verdict for one in steps if (verdict := plane.apply(one))]
    assert [(one.outcome, one.about) for one in verdicts[1::2]] == [("refused", "lee"), ("refused", "ann")]


def test_the_bare_word_of_a_session_s_own_machine_claims_and_reports() -> None:
    """Another machine's word claims nothing for it. A proven claim takes an unproven one's place without its name."""
    home = RosterEvent("register", "dan", 0, client="claude-code", proof=of_machine("desk", of_session("dan")))
    task, claim = m.TaskAssignment(request_id="t1", title="T"), m.TaskClaim(request_id="t1")
    fold = ControlState(Roster([*PEOPLE, home]), [said(0, "lee", task, "role:worker")])
    for number, machine, payload, outcome in (
        (1, "north", claim, "refused"), (2, "desk", claim, "applied"),
        (3, "north", m.TaskProgress(request_id="t1", phase="verifying"), "refused"),
        (4, "desk", m.TaskProgress(request_id="t1", phase="verifying"), "applied"),
        (5, "desk", m.TaskDropped(request_id="t1"), "applied"),
    ):  # fmt: skip
        verdict = fold.apply(said(number, "dan", payload).replace(proof=of_machine(machine, UNPROVEN)))
        assert verdict is not None
        assert verdict.outcome == outcome, number
    steps = (said(6, "ann", claim, proven=False), said(7, "ben", claim), said(8, "cat", claim))
    assert [one and one.outcome for one in map(fold.apply, steps)] == ["applied", "applied", "late"]
    fold.apply(said(9, "ben", m.TaskCompleted(request_id="t1")))
    assert fold.tasks.holder(fold.tasks["t1"], ROSTER, {"ben"}) == "ben"
