"""The core's decisions over random histories, held to the judge's: who may answer, order, claim, report and cancel."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from agent_mailbox.core import codec, proofs
from agent_mailbox.core.control import authority
from agent_mailbox.core.control.state import ControlState
from agent_mailbox.core.roster import CLIENT_ENDED, Roster
from tests.judge.deciding import Decisions, Word, may_command
from tests.judge.lines import USER, Facts, Line
from tests.judge.people import ALIVE, DEAD, FROZEN, NEVER, fold_roster, selves

SESSIONS = ("agent-1", "agent-10", "Agent-1", "lee")
"""Ids that begin with each other, or differ by case alone; the first three have a lead each."""
EVERYBODY = (*SESSIONS, USER)
TASKS = ("task-1", "task-10", "Task-1")
MODES = ("acceptEdits", "default", "safe", "plan", "locked-down")
RULES = ("Bash", "Bash(rm:*)", "Read")
ASKS: dict[str, Line] = {
    "plan_approval_request": {"plan": {"goal": "G"}},
    "permission_request": {"tool": {"name": "Bash"}},
    "sandbox_permission_request": {"capability": "network", "details": {"hostnames": ["a.example"]}},
    "shutdown_request": {},
}
who = st.sampled_from(SESSIONS)
anybody = st.sampled_from(EVERYBODY)
proven = st.sampled_from((True, True, True, False))
task = st.sampled_from(TASKS)
place = st.integers(0, 3)


class Core(RuleBasedStateMachine):
    """Agents with leads ask, decide, order and share tasks, while they come, go and continue each other."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime.fromisoformat("2026-10-25T00:59:59.990+00:00")
        self.facts = Facts()
        self.words: list[Word] = []
        self.over: set[str] = set()
        """Who spoke after its death: it stays away, for the roster tells of its last death alone."""
        for session, lead in zip(SESSIONS, ("lee", None, "agent-1", None), strict=True):
            self._tell("register", session, by=session, lead=lead, client="claude-code")

    def _stamp(self) -> str:
        self.now += timedelta(milliseconds=1)
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _tell(self, event: str, session: str, **said: object) -> None:
        if session in self.over:
            return
        line = {"event": event, "session_id": session, "timestamp": self._stamp()}
        self.facts.roster.append(line | {key: value for key, value in said.items() if value is not None or key == "by"})

    def _say(self, speaker: str, is_proven: bool, to: str, kind: str, **said: object) -> None:
        """A session that speaks is awake, as its client is. One whose place another has is silent."""
        people = fold_roster(self.facts)
        if speaker in people and people[speaker].state == DEAD:
            self.over.add(speaker)
        if any(speaker in selves(people, one, by_place=True) for one in SESSIONS if one != speaker):
            return
        if is_proven and speaker in people and people[speaker].state == FROZEN:
            self._tell("thaw", speaker, by=speaker)
        self._stamp()
        by = speaker if is_proven else None
        self.words.append(Word(f"m{len(self.words)}", self.now, speaker, by, to, {"type": kind} | said))

    # -- the agents

    @rule(session=who, lead=st.sampled_from((None, *EVERYBODY)), by=st.sampled_from(("own", "own", USER, None)))
    def someone_gets_a_lead(self, session, lead, by):
        """By its own registration, by the person, or by a line that nobody is proven to have written."""
        self._tell("register", session, by=session if by == "own" else by, lead=lead if lead != session else None)

    @rule(session=who, event=st.sampled_from(("freeze", "thaw", "retire", "ended")), is_proven=proven)
    def someone_comes_or_goes(self, session, event, is_proven):
        """Its client ends, or it rests, or it is dead."""
        by, reason = session if is_proven else None, CLIENT_ENDED if event == "ended" else None
        self._tell("freeze" if event == "ended" else event, session, by=by, reason=reason)

    @rule(later=who, older=who, by=st.sampled_from(("own", "older", USER)))
    def someone_continues_another(self, later, older, by):
        """It took the name, or cleared its conversation, or the person said so."""
        people = fold_roster(self.facts)
        is_circle = later in selves(people, older)
        if people[older].state != ALIVE and not is_circle and older not in self.over:
            by = {"own": later, "older": older}.get(by, by)
            self._tell("register", later, by=by, continues=older)

    # -- requests and orders

    @rule(
        asker=anybody,
        to=who,
        is_proven=proven,
        kind=st.sampled_from(sorted(ASKS)),
        name=st.integers(0, 5),
    )
    def someone_asks(self, asker, to, is_proven, kind, name):
        """For a plan, a tool, a host, or another's end."""
        self._say(asker, is_proven, to, kind, requestId=f"ask-{name}", **ASKS[kind])

    @precondition(lambda self: any("_request" in word.said["type"] for word in self.words))
    @rule(
        at=place,
        speaker=anybody,
        is_proven=proven,
        what=st.sampled_from(("yes", "yes", "no", "timeout")),
        mode=st.sampled_from((None, None, *MODES)),
    )
    def someone_answers(self, at, speaker, is_proven, what, mode):
        """Whoever it is, and whatever was decided before."""
        asks = [word for word in self.words if word.said["type"].endswith("_request") and "requestId" in word.said]
        if not asks:
            return
        ask = asks[-1 - at % len(asks)]
        kind = ask.said["type"].replace("_request", "_response")
        said: Line = {"approved": what == "yes"} | (
            {"permissionMode": mode} if mode and not kind.startswith("sandbox") else {}
        )
        if kind.startswith("shutdown"):
            kind, said = ("shutdown_approved" if what == "yes" else "shutdown_rejected"), {}
        said |= {"cause": "timeout"} if what == "timeout" else {}
        self._say(speaker, is_proven, ask.named, kind, requestId=ask.said["requestId"], **said)

    @rule(speaker=anybody, to=st.sampled_from((*SESSIONS, "all")), is_proven=proven, mode=st.sampled_from(MODES))
    def someone_orders_a_mode(self, speaker, to, is_proven, mode):
        """For one, or for all that it leads."""
        self._say(speaker, is_proven, to, "mode_set_request", mode=mode)

    @rule(
        speaker=anybody,
        to=st.sampled_from((*SESSIONS, "all")),
        is_proven=proven,
        allow=st.sets(st.sampled_from(RULES), max_size=2),
        deny=st.sets(st.sampled_from(RULES), max_size=2),
        adds=st.booleans(),
    )
    def someone_gives_rules(self, speaker, to, is_proven, allow, deny, adds):
        """In the place of the earlier ones, or beside them."""
        rules = {"allowedTools": sorted(allow), "disallowedTools": sorted(deny)} | ({"adds": True} if adds else {})
        self._say(speaker, is_proven, to, "team_permission_update", rules=rules)

    # -- tasks

    @rule(
        adder=anybody,
        to=st.sampled_from((*SESSIONS, "role:op", "role:op")),
        is_proven=proven,
        name=task,
        after=st.lists(task, max_size=1),
        plan=st.booleans(),
    )
    def someone_adds_a_task(self, adder, to, is_proven, name, after, plan):
        """For an agent, or for who claims it; it may wait for another."""
        said = {"title": f"T{len(self.words)}"} | ({"blockedBy": after} if after else {})
        said |= {"planModeRequired": True} if plan else {}
        self._say(adder, is_proven, to, "task_assignment", requestId=name, task=said)

    @rule(
        speaker=anybody,
        holder=st.sampled_from((None, None, *SESSIONS)),
        is_proven=proven,
        name=task,
        names=st.sampled_from((True, True, True, False, "m0")),
    )
    def someone_claims(self, speaker, holder, is_proven, name, names):
        """For itself or another, in the place of the claim that it knows, or takes for the last. One that came back
        names a claim: the roster keeps its last return alone."""
        judged, people = self._judge().tasks.get(name), fold_roster(self.facts)
        if names is not True and (holder or speaker) in people and people[holder or speaker].back != NEVER:
            return
        known = judged.claim if judged and names is True else names
        more = {"holder": holder} if holder else {}
        more |= {"takesOver": known} if isinstance(known, str) else {}
        self._say(speaker, is_proven, "lee", "task_claim", requestId=name, **more)

    @rule(
        speaker=anybody,
        is_proven=proven,
        name=task,
        kind=st.sampled_from(("task_progress", "task_completed", "task_dropped", "task_cancelled")),
    )
    def someone_takes_a_step(self, speaker, is_proven, name, kind):
        """Whoever holds it."""
        more: Line = {"task_progress": {"progress": {"phase": "verifying"}}, "task_completed": {"result": {}}}.get(
            kind, {}
        )
        self._say(speaker, is_proven, "lee", kind, requestId=name, **more)

    @precondition(lambda self: self.words)
    @rule()
    def a_holder_comes_back_and_claims(self):
        """Its end opened the task, so it names the claim before, as anybody does. No text tells of what was between two
        returns."""
        held = [task for task in self._judge().tasks.values() if task.holder and task.state == "open"]
        if held and held[0].holder != USER and self._judge().people[held[0].holder].back == NEVER:
            for event in ("retire", "register"):
                self._tell(event, held[0].holder, by=held[0].holder)
            self.someone_claims(held[0].holder, None, True, held[0].word.said["requestId"], True)
            self._compare()

    @precondition(lambda self: self.words)
    @rule(
        kind=st.sampled_from(("task_progress", "task_completed", "task_dropped")), event=st.sampled_from(("", "retire"))
    )
    def a_holder_takes_a_step(self, kind, event):
        """Perhaps after its end."""
        held = [task for task in self._judge().tasks.values() if task.holder and task.state == "open"]
        if held and held[0].holder != USER:
            if event:
                self._tell(event, held[0].holder, by=held[0].holder)
            self.someone_takes_a_step(held[0].holder, True, held[0].word.said["requestId"], kind)

    # -- what is asked

    @rule()
    def everybody_asks(self):
        """What was decided."""
        self._compare()

    def teardown(self):
        """Ask at the end, too."""
        self._compare()

    def _judge(self) -> Decisions:
        return Decisions(self.facts, self.words)

    def _compare(self) -> None:
        judge, roster = self._judge(), Roster(self._events())
        state = ControlState(roster, [_message(word) for word in self.words])
        assert {one.id: (one.state, one.by) for one in state.requests.values()} == {
            name: judge.decided.get(name, ("open", "")) for name in judge.asked
        }
        for one in SESSIONS:
            allow, deny = judge.rules(one)
            rules = state.policy(one)
            assert state.mode(one) == judge.mode(one), one
            assert (set(rules.allow), set(rules.deny)) == (allow, deny), one
            assert state.waits_for_plan(one) == judge.waits_for_plan(one), one
            for other in EVERYBODY:
                for sure in (True, False):
                    told = authority.commands(other, one, round(self.now.timestamp() * 1000), roster, proven=sure)
                    assert told == may_command(judge.people, other, one, proven=sure), (other, one, sure)
        assert state.tasks.keys() == judge.tasks.keys()
        for name, task in state.tasks.items():
            own = judge.tasks[name]
            over = task.state if task.is_over else "open"
            assert over == own.state, name
            assert any(one in state.tasks for one in state.tasks.waits_for(task)) == judge.is_blocked(own), name
            if not task.is_over:
                assert task.holder(roster) == (judge.holder(own) or ""), name

    def _events(self):
        for line in self.facts.roster:
            event = codec.roster_event(json.dumps({key: line[key] for key in line if key != "by"}).encode())
            yield event.replace(proof=_proof(line["by"]))


def _proof(by: str | None):
    return None if by is None else proofs.TERMINAL if by == USER else proofs.of_session(by)


def _message(word: Word):
    line = {
        "id": word.id,
        "sender": word.named,
        "recipient": word.to,
        "timestamp": word.at.isoformat(),
        "type": "control",
    }
    return codec.message(json.dumps(line | {"content": json.dumps(word.said)}).encode()).replace(proof=_proof(word.by))


Core.TestCase.settings = settings(max_examples=2 * settings().max_examples, stateful_step_count=40)
TestDecisions = Core.TestCase
TestDecisions.__doc__ = "After any history the core's decisions are the judge's, which knows the texts alone."
