"""The fold of control messages: what is decided once stays so, who may not changes nothing, everyone agrees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.core import proofs
from agent_mailbox.core.control import authority, message_text, summary, transitions, verdicts
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.control.state import ControlState
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.proofs import of_session
from agent_mailbox.core.records import Message, Proof, RosterEvent
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_cache import RosterCache, written
from tests.core.build import at, event, message, proof_of, read, register, state

WORKER, OTHER, LEAD, PEER = "worker-1", "worker-2", "lead-1", "peer-1"
PEOPLE = [
    register(LEAD),
    register(PEER),
    register(WORKER, lead=LEAD),
    register(OTHER, lead=LEAD),
    register("boss-1"),
    register("free-1"),
]
ROSTER = Roster(PEOPLE)
_count = iter(range(1 << 30))


def says(sender: str, payload: m.Payload, to: str | tuple[str, ...] = LEAD, hours: float = 1, **more: Any) -> Message:
    """A control message in the log."""
    more.setdefault("content", message_text.written(payload))
    return message(f"c{next(_count)}", to, sender, hours, type="control", **more)


def asks(request_id: str = "r-1", sender: str = WORKER, hours: float = 1) -> Message:
    """A worker asks to use a tool."""
    return says(sender, m.PermissionRequest(request_id=request_id, tool="Bash", input={"command": "ls"}), hours=hours)


def answers(sender: str, approved: bool, request_id: str = "r-1", hours: float = 2, **more: Any) -> Message:
    """Somebody answers it."""
    return says(sender, m.PermissionResponse(request_id=request_id, approved=approved, **more), WORKER, hours)


def gives_up(sender: str = WORKER, request_id: str = "r-1") -> Message:
    """Somebody says that the asker waits no longer."""
    return answers(sender, False, request_id, cause=m.TIMEOUT)


def outcomes(*messages: Message, roster: Roster = ROSTER) -> list[str]:
    """What became of each."""
    plane = ControlState(roster)
    return [verdict.outcome for one in messages if (verdict := plane.apply(one))]


# -- one request ------------------------------------------------------------------------------------------------------


def test_another_request_under_a_known_id_is_refused_to_its_sender() -> None:
    """It changes nothing of the first, and the verdict is about the one that sent it."""
    for first, second in ((WORKER, OTHER), (f"{WORKER}0", WORKER)):
        plane = ControlState(ROSTER, [asks(sender=first)])
        verdict = plane.apply(asks(sender=second))
        assert verdict is not None
        assert (verdict.outcome, verdict.why, verdict.about) == ("refused", "another request has this id", second)
        assert plane.requests["r-1"].asker == first


@pytest.mark.parametrize("approved", [True, False])
def test_the_first_decision_counts(approved: bool) -> None:
    """Another one, the same one, a time-out: nothing changes any more."""
    first = answers(LEAD, approved)
    late = [answers("user", not approved), answers(LEAD, approved), gives_up(), first]
    plane = ControlState(ROSTER, [asks(), first])
    before = plane.requests["r-1"]
    assert [plane.apply(one).outcome for one in late] == ["late", "repeated", "late", "applied"]  # type: ignore[union-attr]
    assert plane.requests["r-1"] == before
    assert before.state == (transitions.APPROVED if approved else transitions.DENIED)
    assert before.answer_id == first.id


def test_a_time_out_is_a_decision() -> None:
    """An approval behind it comes too late."""
    plane = ControlState(ROSTER, [asks(), gives_up(), answers(LEAD, True, mode="acceptEdits", updates=())])
    assert plane.requests["r-1"].state == transitions.TIMED_OUT
    assert plane.mode(WORKER) == "default"


@pytest.mark.parametrize("sender", [WORKER, PEER, OTHER, "stranger", f"{WORKER}0"])
def test_who_is_not_the_lead_decides_nothing(sender: str) -> None:
    """An answer of anybody but the lead is refused, also one of the worker itself. The request stays open."""
    plane = ControlState(ROSTER, [asks()])
    verdict = plane.apply(answers(sender, True, mode="acceptEdits"))
    assert verdict is not None
    assert (verdict.outcome, verdict.forbidden, verdict.about) == ("refused", True, WORKER)
    assert ("for itself" in verdict.why) == (sender == WORKER)
    assert plane.requests["r-1"].is_open
    assert plane.mode(WORKER) == "default"


def test_only_the_asker_gives_up() -> None:
    """Only the agent that asked can give its request up."""
    assert outcomes(asks(), gives_up(LEAD), gives_up(PEER), gives_up()) == ["applied", "refused", "refused", "applied"]


def test_an_answer_to_nothing_or_to_another_flow_changes_nothing() -> None:
    """An answer that comes before its request, or to a request of another kind, is refused."""
    early = answers(LEAD, True)
    other = says(LEAD, m.PlanResponse(request_id="r-1", approved=True), WORKER)
    plane = ControlState(ROSTER, [early, asks(), early, other])
    assert plane.requests["r-1"].is_open
    assert [v.outcome for v in plane.verdicts.values()] == ["refused", "applied", "refused"]


def test_a_request_s_id_belongs_to_who_used_it_first() -> None:
    """The same again is a repetition; another with its id is refused, whoever sends it."""
    again = asks()
    taken = says(OTHER, m.PermissionRequest(request_id="r-1", tool="Bash", input={"command": "rm -rf /"}))
    changed = says(WORKER, m.PermissionRequest(request_id="r-1", tool="Bash", input={"command": "rm -rf /"}))
    plane = ControlState(ROSTER, [asks(), again, taken, changed, answers(LEAD, True)])
    assert [v.outcome for v in plane.verdicts.values()] == ["applied", "repeated", "refused", "refused", "applied"]
    assert plane.requests["r-1"].payload.input == {"command": "ls"}  # type: ignore[attr-defined]


def test_plain_mail_that_looks_like_control_is_none() -> None:
    """Only the envelope's type makes a control message."""
    plane = ControlState(ROSTER, [asks()])
    for kind in ("message", "notification", "system"):
        assert plane.apply(answers(LEAD, True).replace(type=kind)) is None
    assert plane.requests["r-1"].is_open


def test_what_is_not_understood_changes_nothing() -> None:
    """It has a verdict all the same."""
    plane = ControlState(ROSTER, [asks()])
    verdict = plane.apply(says(LEAD, m.ModeSet(mode="plan"), WORKER, content='{"type":"permission_response"}'))
    assert verdict is not None
    assert (verdict.outcome, verdict.kind) == ("unknown", "permission_response")


# -- who may ----------------------------------------------------------------------------------------------------------


def test_who_led_when_it_was_said_counts() -> None:
    """A later lead does not make good what was refused, a former one's word stays."""
    forged, first = answers(PEER, True, hours=2), answers(LEAD, False, hours=3)
    later = Roster([*PEOPLE, event("update", WORKER, 4, lead=PEER)])
    for roster in (ROSTER, later):
        assert ControlState(roster, [asks(), forged, first]).requests["r-1"].state == transitions.DENIED
    now = [asks("r-2", hours=5), answers(LEAD, True, "r-2", 6), answers(PEER, False, "r-2", 6)]
    assert outcomes(*now, roster=later) == ["applied", "refused", "applied"]


def test_a_lead_that_is_continued_is_the_lead() -> None:
    """A lead's successor leads its workers from then on. Its earlier orders stay without effect."""
    heir = register("lead-2", hours=4, continues=LEAD, proof=proof_of(LEAD))
    roster = Roster([*PEOPLE, event("retire", LEAD, 3), heir])
    assert not authority.commands("lead-2", WORKER, at(3), roster)
    assert authority.commands("lead-2", WORKER, at(5), roster)
    assert authority.lead_of(WORKER, roster) == "lead-2"
    heir = Roster([*PEOPLE, event("retire", WORKER, 3), register("worker-9", hours=4, continues=WORKER)])
    assert not authority.commands("worker-9", WORKER, at(5), heir)


@pytest.mark.parametrize("proof", [None, of_session("lead-2"), of_session("someone"), proofs.STEWARD, proofs.BEFORE])
def test_who_only_took_a_lead_s_name_leads_nobody(proof: Proof | None) -> None:
    """Neither the older session's own client nor the person said so: it has the mail, and may forbid."""
    roster = Roster([*PEOPLE, event("retire", LEAD, 3), register("lead-2", hours=4, continues=LEAD, proof=proof)])
    assert LEAD in roster.lineage("lead-2")
    assert not authority.commands("lead-2", WORKER, at(5), roster)
    assert authority.commands("lead-2", WORKER, at(5), roster, proven=False)
    assert authority.lead_of(WORKER, roster) == "user"
    told = ControlState(
        roster, [asks(), says("lead-2", m.PolicyUpdate(allow=("Bash",), deny=("Read",)), WORKER, hours=5)]
    )
    assert told.policy(WORKER).allow == ()
    assert told.policy(WORKER).deny == ("Read",)
    assert outcomes(asks(), answers("lead-2", True, hours=6), roster=roster) == ["applied", "refused"]


@pytest.mark.parametrize("proof", [proofs.TERMINAL, proofs.CONSOLE, of_session(LEAD), proofs.ADOPTED])
def test_who_has_a_lead_s_place_by_proof_leads(proof: Proof) -> None:
    """An agent that proves that it took the lead's place leads, also after several successions."""
    heirs = [
        register("lead-2", hours=4, continues=LEAD, proof=proof),
        register("lead-3", hours=5, continues="lead-2", proof=proof_of("lead-2")),
    ]
    roster = Roster([*PEOPLE, event("retire", LEAD, 3), *heirs])
    assert roster.estate("lead-3") == ("lead-3", "lead-2", LEAD)
    assert authority.commands("lead-3", WORKER, at(6), roster)
    assert outcomes(asks(), answers("lead-3", True, hours=6), roster=roster) == ["applied", "applied"]


@pytest.mark.parametrize("is_proven", [True, False])
def test_what_an_agent_was_allowed_is_not_its_name_s(is_proven: bool) -> None:
    """Its prohibitions, the plan it owes and its stricter mode go with the name; its approvals do not."""
    proof = proof_of(WORKER if is_proven else "worker-9")
    roster = Roster([*PEOPLE, event("retire", WORKER, 3), register("worker-9", hours=4, continues=WORKER, proof=proof)])
    rules = says(LEAD, m.PolicyUpdate(allow=("Bash",), deny=("Read",)), WORKER, hours=1)
    strict, loose = (says(LEAD, m.ModeSet(mode=mode), WORKER, hours=1) for mode in ("plan", "acceptEdits"))
    heir = ControlState(roster, [rules, strict])
    assert heir.policy("worker-9").deny == ("Read",)
    assert heir.policy("worker-9").allow == (("Bash",) if is_proven else ())
    assert heir.mode("worker-9") == "plan"
    assert ControlState(roster, [loose]).mode("worker-9") == ("acceptEdits" if is_proven else "default")
    hosts = [
        says(LEAD, m.PolicyUpdate(hosts=("a.example",)), WORKER, hours=1),
        says(WORKER, m.SandboxRequest(request_id="n-1", capability="network", hosts=("b.example",))),
        says(LEAD, m.SandboxResponse(request_id="n-1", approved=True, scope="session"), WORKER, hours=2),
    ]
    more = ("b.example",) if is_proven else ()
    assert ControlState(roster, hosts).policy("worker-9").hosts == ("a.example", *more)


@pytest.mark.parametrize("after", ["worker-9", f"{WORKER}0"])
def test_a_plan_approved_for_one_frees_nobody_who_took_its_name(after: str) -> None:
    """An approved plan does not free a successor from its own wait. It frees it only from the wait of its
    predecessor."""
    roster = Roster([*PEOPLE, event("retire", WORKER, 6), register(after, lead=LEAD)])
    roster.apply(event("update", after, 7, continues=WORKER))
    owes = [
        says(LEAD, m.TaskAssignment(request_id=f"t-{who}", title="it", plan_required=True), who, hours=1)
        for who in (WORKER, after)
    ]
    plan = says(WORKER, m.PlanRequest(content="so", request_id="p-1"), LEAD, hours=2)
    approval = says(LEAD, m.PlanResponse(request_id="p-1", approved=True), WORKER, hours=3)
    assert ControlState(roster, [*owes, plan, approval]).waits_for_plan(after)
    assert not ControlState(roster, [owes[0], plan, approval]).waits_for_plan(after)


def test_no_agent_leads_itself_by_a_succession() -> None:
    """A worker that continues its lead, or a lead that continues its worker, does not lead itself. The person leads all
    agents."""
    roster = Roster([*PEOPLE, event("update", WORKER, 2, continues=LEAD)])
    assert not authority.commands(WORKER, WORKER, at(3), roster)
    assert not authority.commands(LEAD, WORKER, at(3), roster)
    taken_over = Roster([*PEOPLE, event("retire", WORKER, 2), event("update", LEAD, 2, continues=WORKER)])
    assert not authority.commands(LEAD, WORKER, at(3), taken_over)
    assert authority.commands(LEAD, WORKER, at(1), taken_over)
    assert authority.commands("user", WORKER, at(3), roster)
    assert not authority.commands("user", "user", at(3), roster)
    assert authority.lead_of("free-1", roster) == "user"


def test_leads_that_lead_each_other_are_found() -> None:
    """However long the circle is; who is only under one is in none of its own, and yet never comes to an end."""
    circle = [register("a-1", lead="b-1"), register("b-1", lead="c-1"), register("c-1", lead="a-1")]
    roster = Roster([*PEOPLE, *circle, register("d-1", lead="a-1")])
    assert [authority.leads_itself(i, roster) for i in ("a-1", "b-1", "d-1", WORKER, LEAD)] == [True] * 3 + [False] * 2


LEADS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([LEAD, PEER, "boss-1"])), max_size=5)


@given(LEADS, st.booleans())
def test_the_history_of_leads_survives_being_written_down(changes: list[tuple[int, str]], dead: bool) -> None:
    """The rollbook and the compacted roster tell of the same leads at the same times."""
    events: list[RosterEvent] = [*PEOPLE[:4], register("w-9", hours=0)]
    events += [event("update", "w-9", hours, lead=lead) for hours, lead in sorted(changes)]
    events += [event("retire", "w-9", 10)] if dead else []
    roster = Roster(events)
    known = roster.agents["w-9"]
    assert RosterCache(written(roster)).get("w-9") == known
    told = Roster(retention.compacted(events, at(0))).agents
    assert {i: a.leads for i, a in told.items()} == {i: a.leads for i, a in roster.agents.items()}


# -- standing orders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["all", "all-1", "allan"])
def test_what_one_agent_is_told_binds_no_other_though_its_name_begins_with_all(name: str) -> None:
    """Only the word itself is everyone."""
    roster = Roster([*PEOPLE, register("allan", lead=LEAD), register("all-1", lead=LEAD)])
    plane = ControlState(roster, [says(LEAD, m.PolicyUpdate(deny=("WebFetch",)), name)])
    bound = {one for one in (WORKER, OTHER, "allan", "all-1") if plane.policy(one).deny}
    assert bound == ({WORKER, OTHER, "allan", "all-1"} if name == "all" else {name})


def test_modes_and_policies_are_the_lead_s_to_set() -> None:
    """Only a lead sets a mode or policy. It sets it for one worker by id, or for all that it ever leads."""
    orders = [
        says(LEAD, m.ModeSet(mode="plan"), WORKER),
        says(LEAD, m.PolicyUpdate(deny=("WebFetch",)), "all"),
        says(PEER, m.ModeSet(mode="default"), WORKER),
        says(PEER, m.ModeSet(mode="locked-down"), OTHER),
        says(WORKER, m.ModeSet(mode="default"), WORKER),
        says(PEER, m.PolicyUpdate(allow=("Bash",)), "all"),
        says(LEAD, m.ModeSet(mode="locked-down"), "project:p"),
    ]
    roster = Roster([*PEOPLE, register("late-1", "project:p", hours=5, lead=LEAD)])
    plane = ControlState(roster, orders)
    assert [plane.mode(i) for i in (WORKER, OTHER, PEER, LEAD)] == ["plan", "default", "default", "default"]
    denied = {i: plane.policy(i).deny for i in (WORKER, OTHER, "late-1", PEER, LEAD)}
    assert denied == {WORKER: ("WebFetch",), OTHER: ("WebFetch",), "late-1": ("WebFetch",), PEER: (), LEAD: ()}
    assert plane.policy(WORKER).allow == ()
    assert plane.mode("late-1") == "default"


def test_an_order_is_refused_for_each_address_that_it_may_not_have() -> None:
    """An order for nobody else is refused as a whole, and tells each of its addresses why."""
    to, why = ("project:p", LEAD), "project:p: only ids and all are taken here, for an agent chooses its own tags"
    plane = ControlState(ROSTER)
    for order, outcome, told in (
        (says(LEAD, m.ModeSet(mode="plan"), "project:p"), "refused", why),
        (says(PEER, m.ModeSet(mode="plan"), to), "refused", f"{why}; {PEER} is not the lead of {LEAD}"),
        (says(LEAD, m.ModeSet(mode="plan"), ("project:p", WORKER)), "applied", why),
    ):
        verdict = plane.apply(order)
        assert verdict is not None
        assert (verdict.outcome, verdict.why) == (outcome, told)
    assert [plane.mode(i) for i in (WORKER, OTHER, LEAD)] == ["plan", "default", "default"]


def test_clearing_a_context_sheds_nothing() -> None:
    """An agent's successor keeps its mode, its policy and its wait for a plan."""
    orders = [
        says(LEAD, m.ModeSet(mode="safe"), WORKER),
        says(LEAD, m.PolicyUpdate(deny=("Bash",)), WORKER),
        says(LEAD, m.TaskAssignment(request_id="t", title="T", plan_required=True), WORKER),
    ]
    heir = register("worker-9", hours=4, continues=WORKER, lead=LEAD)
    plane = ControlState(Roster([*PEOPLE, event("retire", WORKER, 3), heir]), orders)
    assert (plane.mode("worker-9"), plane.policy("worker-9").deny) == ("safe", ("Bash",))
    assert plane.waits_for_plan("worker-9")


def test_a_policy_replaces_or_adds() -> None:
    """An update takes the place of what was, unless it says that it adds; a decision adds."""
    granted = m.PermissionResponse(
        request_id="r-1",
        approved=True,
        updates=({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "ls:*"}]},),
    )
    host = m.SandboxResponse(request_id="n-1", approved=True, scope="session")
    plane = ControlState(
        ROSTER,
        [
            says(LEAD, m.PolicyUpdate(allow=("Read",), deny=("Bash",)), WORKER),
            says(LEAD, m.PolicyUpdate(allow=("Edit",), adds=True), WORKER),
            asks(),
            says(LEAD, granted, WORKER),
            says(WORKER, m.SandboxRequest(request_id="n-1", capability="network", hosts=("a.example",))),
            says(LEAD, host, WORKER),
        ],
    )
    found = plane.policy(WORKER)
    assert (found.allow, found.deny, found.hosts) == (("Read", "Edit", "Bash(ls:*)"), ("Bash",), ("a.example",))
    for one, is_empty in ((m.PolicyUpdate(), True), (m.PolicyUpdate(allow=("Read",)), False)):
        plane.apply(says(LEAD, one, WORKER))
        assert plane.policy(WORKER).is_empty == is_empty


def test_an_approval_adds_its_denials_and_passes_over_what_lists_no_rules() -> None:
    """A denial alone is added; rules that are one text are no list of rules."""
    deny = {"type": "addRules", "behavior": "deny", "rules": ["Bash(rm:*)"]}
    given = m.PermissionResponse(request_id="r-1", approved=True, updates=({**deny, "rules": "Read"}, deny))
    plane = ControlState(ROSTER, [asks(), says(LEAD, given, WORKER)])
    assert (plane.policy(WORKER).allow, plane.policy(WORKER).deny) == ((), ("Bash(rm:*)",))


def test_an_approval_counts_only_where_question_and_answer_are_proven() -> None:
    """An unproven request may be denied. Its asker's time is over at the instant that it said."""
    for approved, outcome in ((True, "refused"), (False, "applied")):
        assert outcomes(asks().replace(proof=None), answers(LEAD, approved)) == ["applied", outcome]
    asked = says(WORKER, m.PermissionRequest(request_id="r-1", tool="Bash", expires=at(2)))
    request = ControlState(ROSTER, [asked]).requests["r-1"]
    assert [request.has_timed_out(at(2) + step) for step in (-1, 0)] == [False, True]


def test_an_order_to_all_is_for_those_that_its_sender_leads_and_other_mail_is_for_all() -> None:
    """An agent that is named beside all is meant in any case."""
    order = m.ModeSet(mode="plan")
    for one, theirs in (
        (says(LEAD, order, "all"), False),
        (says(LEAD, order, ("all", PEER)), True),
        (says(WORKER, m.IdleNotification(), "all"), True),
    ):
        assert ControlState(ROSTER, [one]).is_for(one, PEER) is theirs


@pytest.mark.parametrize("to", [(WORKER, OTHER), "all", "role:builder"])
def test_a_shutdown_is_asked_of_one_agent_alone(to: Any) -> None:
    """An address of several has no answer that counts."""
    assert outcomes(says(LEAD, m.ShutdownRequest(request_id="s-1"), to)) == ["refused"]


def test_another_machine_s_bare_word_binds_at_most() -> None:
    """It denies; it times out no request, and claims no task for another agent."""
    word = proofs.of_machine("desk", proofs.UNPROVEN)
    plane = ControlState(ROSTER, [asks(), says(LEAD, m.TaskAssignment(request_id="t-1", title="T"), WORKER)])
    steps = (gives_up(), says(WORKER, m.TaskClaim(request_id="t-1", holder=OTHER)), answers(LEAD, False))
    found = [plane.apply(step.replace(proof=word)) for step in steps]
    assert [one and (one.outcome, one.why) for one in found] == [
        *[("refused", "another machine speaks for its own sessions alone")] * 2,
        ("applied", verdicts.UNPROVEN),
    ]


@pytest.mark.parametrize("other", ["*", "Bash(", {"toolName": 1}, 5])
def test_an_approval_with_a_rule_that_is_none_adds_no_rule_and_shows_none(other: Any) -> None:
    """It still approves; what it is shown to allow for good is what it does."""
    rule = {"type": "addRules", "behavior": "allow", "rules": ["Bash(ls:*)"]}
    given = m.PermissionResponse(request_id="r-1", approved=True, updates=(rule, {**rule, "rules": [other]}))
    plane = ControlState(ROSTER, [asks(), says(LEAD, given, WORKER)])
    assert (plane.requests["r-1"].state, plane.policy(WORKER).allow) == ("approved", ())
    assert "always allows" not in summary.whole(given)
    assert "always allows Bash(ls:*)" in summary.whole(given.replace(updates=(rule,)))


def test_a_required_plan_is_awaited() -> None:
    """Until one that was asked for since is approved; only the lead can require it; plan mode ends with it."""
    hold = m.TaskAssignment(request_id="t-1", title="T", plan_required=True)
    old = says(WORKER, m.PlanRequest(request_id="p-0", goal="old"))
    plane = ControlState(ROSTER, [old, says(LEAD, hold, WORKER), says(LEAD, m.ModeSet(mode="plan"), WORKER)])
    plane.apply(says(LEAD, m.PlanResponse(request_id="p-0", approved=True), WORKER))
    assert plane.waits_for_plan(WORKER)
    assert plane.mode(WORKER) == "plan"
    plane.apply(says(WORKER, m.PlanRequest(request_id="p-1", goal="new")))
    plane.apply(says(LEAD, m.PlanResponse(request_id="p-1", approved=False), WORKER))
    assert plane.waits_for_plan(WORKER)
    plane.apply(says(WORKER, m.PlanRequest(request_id="p-2", goal="better")))
    plane.apply(says(WORKER, m.PlanResponse(request_id="p-2", approved=True), WORKER))
    assert plane.waits_for_plan(WORKER)
    plane.apply(says(LEAD, m.PlanResponse(request_id="p-2", approved=True, mode="acceptEdits"), WORKER))
    assert not plane.waits_for_plan(WORKER)
    assert plane.mode(WORKER) == "acceptEdits"
    plane.apply(says(PEER, hold.replace(request_id="t-2"), WORKER))
    assert not plane.waits_for_plan(WORKER)


def test_a_shutdown_is_asked_by_the_lead_and_answered_by_the_worker() -> None:
    """Each its own; a second request, or a second answer, restarts nothing."""
    ask = m.ShutdownRequest(request_id="s-1", reason="done")
    plane = ControlState(ROSTER)
    steps = [
        says(PEER, ask, WORKER),
        says(LEAD, ask, "all"),
        says(LEAD, ask, WORKER),
        says(LEAD, m.ShutdownApproved(request_id="s-1"), LEAD),
        says(OTHER, m.ShutdownApproved(request_id="s-1"), LEAD),
        says(WORKER, m.ShutdownApproved(request_id="s-1"), LEAD),
        says(LEAD, ask, WORKER),
        says(WORKER, m.ShutdownRejected(request_id="s-1"), LEAD),
    ]
    found = [plane.apply(step).outcome for step in steps]  # type: ignore[union-attr]
    assert found == ["refused", "refused", "applied", "refused", "refused", "applied", "repeated", "late"]
    assert plane.is_shut_down(WORKER)
    assert not plane.is_shut_down(OTHER)


def test_who_registers_again_is_not_shut_down_any_more() -> None:
    """An agent that registers again is no longer shut down. A later shutdown counts again."""
    ask, agreed = m.ShutdownRequest(request_id="s-1"), m.ShutdownApproved(request_id="s-1")
    end = [says(LEAD, ask, WORKER, 1), says(WORKER, agreed, LEAD, 2)]
    again = Roster([*PEOPLE, event("retire", WORKER, 3), register(WORKER, hours=4, lead=LEAD)])
    plane = ControlState(again, end)
    assert not plane.is_shut_down(WORKER)
    at_once = Roster([*PEOPLE, event("retire", WORKER, 1), register(WORKER, hours=2, lead=LEAD)])
    assert ControlState(at_once, end).is_shut_down(WORKER), "nothing tells that it came after that"
    later = (ask.replace(request_id="s-2"), agreed.replace(request_id="s-2"))
    for step in (says(LEAD, later[0], WORKER, 5), says(WORKER, later[1], LEAD, 6)):
        plane.apply(step)
    assert plane.is_shut_down(WORKER)


def test_a_task_is_assigned_worked_on_and_done() -> None:
    """Assigned, worked on, done; only its worker tells; what is done stays so."""
    task = m.TaskAssignment(request_id="t-1", title="T")
    doing, done = m.TaskProgress(request_id="t-1", phase="implementing"), m.TaskCompleted(request_id="t-1")
    steps = [says(LEAD, task, WORKER), says(OTHER, done), says(WORKER, doing), says(WORKER, done), says(WORKER, doing)]
    plane = ControlState(ROSTER)
    assert [plane.apply(step).outcome for step in steps] == ["applied", "refused", "applied", "applied", "late"]  # type: ignore[union-attr]
    assert plane.tasks["t-1"].state == transitions.DONE


# -- any history ------------------------------------------------------------------------------------------------------

IDS = ("r-1", "r-2", "p-1", "n-1", "s-1")
SENDERS = (WORKER, OTHER, LEAD, PEER, "user", "stranger")


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any control message, by anybody, to anybody."""
    request_id, sender, to = draw(st.sampled_from(IDS)), draw(st.sampled_from(SENDERS)), draw(st.sampled_from(SENDERS))
    approved, mode = draw(st.booleans()), draw(st.sampled_from(("", *m.MODES)))
    cause = draw(st.sampled_from(("", "" if approved else m.TIMEOUT)))
    rule, scope = draw(st.sampled_from(("Bash", "Read", "Edit"))), draw(st.sampled_from(("one-shot", "session")))
    likely = [
        m.PermissionRequest(request_id=request_id, tool="Bash"),
        m.PermissionResponse(request_id=request_id, approved=approved, mode=mode, cause=cause),
        m.PlanRequest(request_id=request_id, goal="g"),
        m.PlanResponse(request_id=request_id, approved=approved, mode=mode, cause=cause),
        m.SandboxRequest(request_id=request_id, capability="network", hosts=(f"{rule}.example",)),
        m.SandboxResponse(request_id=request_id, approved=approved, cause=cause, scope=scope),
        m.ShutdownRequest(request_id=request_id),
        m.ShutdownApproved(request_id=request_id)
        if approved
        else m.ShutdownRejected(request_id=request_id, cause=cause),
        m.ModeSet(mode=mode or "plan"),
        m.PolicyUpdate(deny=(rule,), adds=approved),
        m.PolicyUpdate(allow=(rule,), adds=approved),
        m.TaskAssignment(request_id=request_id, title="T", plan_required=approved),
        m.IdleNotification(),
    ]
    return says(sender, draw(st.sampled_from(likely)), draw(st.sampled_from((to, "all"))))


HISTORIES = st.lists(messages(), max_size=25)


def picture(plane: ControlState) -> Any:
    """Everything a consumer can ask."""
    people = (WORKER, OTHER, LEAD, PEER)
    return (
        plane.requests,
        plane.tasks,
        [(plane.mode(i), plane.policy(i), plane.waits_for_plan(i), plane.is_shut_down(i)) for i in people],
    )


@given(HISTORIES)
def test_any_history_decides_each_request_once(history: list[Message]) -> None:
    """Every state is one of its table, reached by one decision. By whose: tests/judge/test_decisions.py."""
    plane = ControlState(ROSTER, history)
    for request in plane.requests.values():
        assert request.state in (transitions.OPEN, *transitions.ASKED.values())
        steps = [v for v in plane.verdicts.values() if v.request_id == request.id and v.outcome == "applied"]
        assert [v.after for v in steps if v.after != transitions.ASSIGNED] == (
            [transitions.OPEN] if request.is_open else [transitions.OPEN, request.state]
        )


@given(HISTORIES, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=10))
def test_duplicates_and_replays_change_nothing(history: list[Message], copies: list[tuple[int, int]]) -> None:
    """A message that comes again later, under its id or a new one, leaves every request and task as it was."""
    same = list(history)
    anew = list(history)
    for which, where in copies if history else ():
        original = which % len(history)
        behind = same.index(history[original]) + 1
        same.insert(behind + where % (len(same) - behind + 1), history[original])
        late = history[original].replace(id=f"again-{next(_count)}")
        if message_text.parse(late.content).__class__ not in (
            m.ModeSet,
            m.PolicyUpdate,
        ):  # which a lead may well repeat
            anew.append(late)
    assert picture(ControlState(ROSTER, same)) == picture(ControlState(ROSTER, history))
    before, after = ControlState(ROSTER, history), ControlState(ROSTER, anew)
    for request_id, request in before.requests.items():
        if not request.is_open:
            assert after.requests[request_id] == request


@given(HISTORIES, st.randoms(use_true_random=False))
def test_any_order_and_any_loss_reach_a_legal_state_that_all_agree_on(history: list[Message], chance: Any) -> None:
    """Shuffled and thinned out, folded at once or bit by bit."""
    left = [one for one in history if chance.random() < 0.7]
    chance.shuffle(left)
    whole = ControlState(ROSTER, left)
    bit_by_bit = ControlState(ROSTER)
    for one in left:
        picture(bit_by_bit)
        bit_by_bit.apply(one)
    assert picture(whole) == picture(bit_by_bit)


@given(HISTORIES)
def test_nothing_waits_for_ever(history: list[Message]) -> None:
    """Whatever happened, each asker can end its waiting by itself, and then nothing is open."""
    plane = ControlState(ROSTER, history)
    for request in plane.open_requests():
        kinds: dict[str, m.Payload] = {
            transitions.PLAN: m.PlanResponse(request_id=request.id, cause=m.TIMEOUT),
            transitions.PERMISSION: m.PermissionResponse(request_id=request.id, cause=m.TIMEOUT),
            transitions.SANDBOX: m.SandboxResponse(request_id=request.id, cause=m.TIMEOUT),
            transitions.SHUTDOWN: m.ShutdownRejected(request_id=request.id, cause=m.TIMEOUT),
        }
        plane.apply(says(request.asker, kinds[request.flow]))
    assert plane.open_requests() == []


@example(
    [
        says(LEAD, m.TaskAssignment(request_id="t-1", title="T", plan_required=True), WORKER),
        says(WORKER, m.PlanRequest(request_id="p-1", goal="g")),
        says(LEAD, m.PlanResponse(request_id="p-1", approved=True), WORKER),
    ]
)
@example([says(LEAD, m.PolicyUpdate(deny=(rule,), adds=rule != "Bash"), WORKER) for rule in ("Bash", "Read", "Edit")])
@example(
    [
        says(LEAD, m.TaskAssignment(request_id="t-1", title="T", plan_required=True), WORKER),
        says(LEAD, m.TaskCancelled(request_id="t-1"), WORKER),
    ]
)
@given(HISTORIES)
def test_what_the_steward_moves_changes_no_answer(history: list[Message]) -> None:
    """Everything read, and far more than is kept live: what counts stays, a request goes whole or not at all."""
    reads = [read(one.id, to) for one in history for to in (WORKER, OTHER, LEAD, PEER, "user", "stranger")]
    logs = state(history, reads, PEOPLE)
    moved = retention.plan(logs, at(500), 0).move
    before = ControlState(ROSTER, history)
    after = ControlState(ROSTER, [one for one in history if one.id not in moved])
    assert picture(after)[2] == picture(before)[2]
    for request_id, request in before.requests.items():
        if request_id in after.requests:
            assert after.requests[request_id].replace(place=0) == request.replace(place=0)
        else:
            assert not request.is_open or not before.roster.heirs(request.worker)


def test_a_request_goes_to_the_archive_with_its_answer_or_not_at_all() -> None:
    """A mode that came with an answer keeps both; an answer that somebody has yet to read keeps its request closed. An
    agreed end stays, one that was refused may go."""
    mode = [asks(), answers(LEAD, True, mode="safe")]
    unread = [asks("r-2"), answers(LEAD, True, "r-2")]
    done = [asks("r-3"), answers(LEAD, False, "r-3"), answers(LEAD, True, "r-3")]
    end, stay = (m.ShutdownRequest(request_id=request_id) for request_id in ("s-1", "s-2"))
    ended = [says(LEAD, end, WORKER), says(WORKER, m.ShutdownApproved(request_id="s-1"))]
    done += [says(LEAD, stay, OTHER), says(OTHER, m.ShutdownRejected(request_id="s-2"))]
    history = [*mode, *unread, *ended, *done]
    reads = [read(one.id, to) for one in history if one is not unread[1] for to in (WORKER, OTHER, LEAD)]
    moved = retention.plan(state(history, reads, PEOPLE), at(3), 0).move
    assert moved == {one.id for one in done}


def test_of_a_request_a_bundle_takes_nothing_ahead_of_it_or_while_a_part_must_stay() -> None:
    """A bundle of one month has a part of its messages. An answer goes behind its request, which an answer that
    somebody has yet to read, or that gave a mode, keeps."""
    done = [answers(LEAD, False), asks(), answers(LEAD, False), answers(LEAD, True)]
    mode = [asks("r-2"), answers(LEAD, True, "r-2", mode="safe")]
    unread = [asks("r-3"), answers(LEAD, True, "r-3")]
    mail = [*done, *mode, *unread]
    reads = [read(one.id, to) for one in mail if one is not unread[1] for to in (WORKER, LEAD)]

    def taken(*named: Message, readers: tuple[str, ...] | None = (WORKER, LEAD)) -> set[str]:
        return retention.movable({one.id for one in named}, state(mail, reads, PEOPLE), at(3), readers)

    early, request, answer, late = done
    assert taken(request) == {request.id}
    assert taken(early, answer, late) == set()
    assert taken(request, late) == {request.id, late.id}
    assert (taken(mode[0]), taken(mode[1]), taken(unread[0])) == (set(), set(), set())
    assert taken(unread[0], readers=None) == {unread[0].id}
